"""The process's connection to the database of a store: opened, locked, migrated, and its errors made ours."""

from __future__ import annotations

import contextlib
import importlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from scorekit.errors import StoreError
from scorekit.monitor.forks import GATE
from scorekit.monitor.places import file_of, hidden
from scorekit.monitor.schema import MIGRATIONS, SCHEMA, SCORES, scores_table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

BUSY_S: Final = 30.0
"""How long a writer of an SQLite file waits for other processes."""

STATEMENT_S: Final = 60
CONNECT_S: Final = 5
"""How long one statement may take in PostgreSQL, and connecting to it."""

TELLING: Final = 6
"""Of so many characters a password is replaced wherever it stands in a message; a shorter one may be a part of any word, and would show itself so."""

SLICE_MS: Final = 100
"""How long a writer waits at a time; in between the process may fork."""

LOCK: Final = 0x5C0_4E_417
"""PostgreSQL's advisory lock that is held while tables are made."""


class Database:
    """The process's connection to one store. Opened at the first use: its tables are made or migrated then.

    Parameters
    ----------
    url
        As `normal_url` gives it.
    """

    def __init__(self, url: str) -> None:
        """Open nothing yet."""
        self._url = url
        self.name = hidden(url)
        self.path = file_of(url)
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._inode: int | None = None
        self.pruned: dict[float, float] = {}
        """When rows older than so many days were last removed, on the monotonic clock."""

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection to read from."""
        with self._ours(), contextlib.ExitStack() as stack:
            yield self._begun(stack, writes=False)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection in a transaction that is committed when this ends, and rolled back where it raises."""
        with self._ours(), contextlib.ExitStack() as stack:
            yield self._begun(stack, writes=True)

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        with self._lock:
            engine, self._engine = self._engine, None
        if engine is not None:
            with self._ours(), self._working():
                engine.dispose()

    def let_go(self) -> None:
        """Close the connections that nobody uses at the moment."""
        if (engine := self._engine) is not None:
            engine.dispose()

    def _working(self) -> AbstractContextManager[None]:
        """Return what keeps the process from forking meanwhile, where SQLite works."""
        return GATE.working(self, self.path) if self.path is not None else contextlib.nullcontext()

    def _begun(self, stack: contextlib.ExitStack, *, writes: bool) -> Connection:
        """Open the database and begin; wait for other writers a moment at a time, so that a fork can happen in between."""
        deadline = time.monotonic() + BUSY_S
        while True:
            with contextlib.ExitStack() as attempt:
                attempt.enter_context(self._working())
                try:
                    engine = self._opened()  # writes where tables are to be made
                    db = attempt.enter_context(engine.execution_options(writes=True).begin() if writes else engine.connect())
                except Exception as error:
                    if not _is_busy(getattr(error, "orig", None)) or time.monotonic() > deadline:
                        raise
                    continue
                stack.enter_context(attempt.pop_all())
                return db

    @contextlib.contextmanager
    def _ours(self) -> Iterator[None]:
        """Make a `StoreError` of whatever the database or its driver raises."""
        try:
            yield
        except ImportError as error:
            msg = f"The store {self.name} needs the driver {error.name or 'psycopg'!r}: pip install 'scorekit[postgres]'."
            raise StoreError(msg) from None
        except self._failures() as error:
            msg = f"The store {self.name} cannot be used: {self._why(error)}."
            raise StoreError(msg) from error

    def _failures(self) -> tuple[type[Exception], ...]:
        """Return what is raised where a database cannot be used."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            driver: type[Exception] = importlib.import_module("sqlite3" if self.path is not None else "psycopg").Error
        except ImportError:
            driver = SQLAlchemyError
        return SQLAlchemyError, driver, OSError, OverflowError

    def _why(self, error: Exception) -> str:
        """Return the first line of what is wrong, without the password."""
        from sqlalchemy import make_url

        lines = str(getattr(error, "orig", None) or error).strip().splitlines()
        why = (lines[0] if lines else type(error).__name__).rstrip(".")[:300]
        password = make_url(self._url).password if self.path is None else None
        for secret in {str(password), quote(str(password))} if password else ():
            if len(secret) >= TELLING:
                why = why.replace(secret, "***")
            why = why.replace(f":{secret}@", ":***@").replace(f"password={secret}", "password=***")
        return why

    def _opened(self) -> Engine:
        """Return the engine of a database whose tables are there."""
        with self._lock:
            if self._engine is not None and self.path is not None and self._file() != self._inode:
                self._engine.dispose()  # somebody removed or replaced the file: what went on into the old one would be lost
                self._engine = None
            if self._engine is None:
                self._refuse_lost()
                engine = _sqlite_engine(self.path) if self.path is not None else _postgres_engine(self._url)
                try:
                    self._migrate(engine)
                except BaseException:
                    engine.dispose()
                    raise
                self._engine, self._inode = engine, self._file()
            return self._engine

    def _refuse_lost(self) -> None:
        """Raise where the file was in use when this process was forked."""
        if self.path is not None and GATE.is_lost(self.path):
            msg = (
                f"The store {self.name} cannot be used in this process: another thread was working with the file when the process was forked. "
                "Start processes with the method 'spawn', or fork while nothing is stored."
            )
            raise StoreError(msg)

    def _file(self) -> int | None:
        """Return the inode of the SQLite file, or None where there is none."""
        try:
            return self.path.stat().st_ino if self.path is not None else None
        except OSError:
            return None

    def _migrate(self, engine: Engine) -> None:
        """Bring the tables to the version that this scorekit knows; processes that open together do so one after the other."""
        with engine.connect() as db:
            version = self._version(db)
        if version < len(MIGRATIONS):
            with engine.execution_options(writes=True).begin() as db:
                if db.dialect.name == "postgresql":
                    db.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")
                version = self._version(db)
                for step in MIGRATIONS[version:]:
                    step(db)
                if version < len(MIGRATIONS):
                    db.exec_driver_sql(f"UPDATE {SCHEMA} SET version = {len(MIGRATIONS)}")  # noqa: S608
        with engine.connect() as db:
            db.execute(scores_table().select().limit(0))  # a table of that name may be something else

    def _version(self, db: Connection) -> int:
        """Return the version of the tables; 0 where there are none."""
        import sqlalchemy as sa

        inspector = sa.inspect(db)
        if not inspector.has_table(SCHEMA):
            if inspector.has_table(SCORES):
                msg = f"The store {self.name} has a table {SCORES!r} that scorekit did not make. Choose another database."
                raise StoreError(msg)
            return 0
        version = int(db.exec_driver_sql(f"SELECT max(version) FROM {SCHEMA}").scalar_one() or 0)  # noqa: S608
        if version > len(MIGRATIONS):
            msg = f"The store {self.name} was made by a newer scorekit: its tables have version {version}, this one knows {len(MIGRATIONS)}. Upgrade scorekit."
            raise StoreError(msg)
        return version


def _sqlite_engine(path: Path) -> Engine:
    """Return an engine for an SQLite file in WAL mode, made for its owner alone where it is not there."""
    import sqlalchemy as sa

    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    engine = sa.create_engine(sa.URL.create("sqlite", database=str(path)), connect_args={"timeout": BUSY_S})

    @sa.event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None  # transactions begin where we say so
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                connection.execute("PRAGMA page_size = 8192")  # of a new file: rows of a kilobyte fill pages of SQLite's own size badly
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA cache_size = -32000")  # kilobytes
            except sqlite3.OperationalError as error:
                # the change to WAL does not wait for other processes that are opening the file
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    @sa.event.listens_for(engine, "begin")
    def _begin(db: Connection) -> None:
        if not db.get_execution_options().get("writes"):
            db.exec_driver_sql("BEGIN")
            return
        db.exec_driver_sql(f"PRAGMA busy_timeout = {SLICE_MS}")
        try:
            db.exec_driver_sql("BEGIN IMMEDIATE")
        finally:
            db.exec_driver_sql(f"PRAGMA busy_timeout = {round(BUSY_S * 1000)}")

    return engine


def _is_busy(error: BaseException | None) -> bool:
    """Return whether others use the file."""
    return str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_BUSY")


def _postgres_engine(url: str) -> Engine:
    """Return an engine for PostgreSQL, in which nothing waits for ever."""
    import sqlalchemy as sa

    parsed = sa.make_url(url)
    limits = {"connect_timeout": CONNECT_S, "tcp_user_timeout": STATEMENT_S * 1000, "prepare_threshold": None}
    engine = sa.create_engine(
        parsed, pool_pre_ping=True, connect_args={name: value for name, value in limits.items() if name not in parsed.query}
    )

    @sa.event.listens_for(engine, "connect")
    def _set_up(connection: Any, _: object) -> None:
        connection.execute(f"SET statement_timeout = '{STATEMENT_S}s'")
        connection.execute("SET TIME ZONE 'UTC'")
        connection.commit()

    return engine
