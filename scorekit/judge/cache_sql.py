"""Replies in any database that SQLAlchemy knows, through a thread of their own: a reply keeps its slot until it is committed."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scorekit.errors import JudgeSetupError
from scorekit.judge.cache import TABLE, CacheSize, CacheWarning, Entry, oldest

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Table

MOST_AT_ONCE: Final = 64
"""How many waiting look-ups and replies share one transaction."""


DOWN_S: Final = 10.0
"""How long a database that has failed twice in a row is left alone."""


@dataclass(slots=True)
class _Work:
    """A look-up (``entry`` is None) or a reply to keep, and who waits for it."""

    key: str
    entry: Entry | None
    replace: bool
    done: asyncio.Future[Entry | None]
    loop: asyncio.AbstractEventLoop


class SqlStore:
    """Replies in a database by URL, PostgreSQL first of all."""

    def __init__(self, url: str, max_age_days: float | None) -> None:
        """Connect and make the table.

        Raises
        ------
        JudgeSetupError
            Where the database, its driver or the right to make a table is missing; the message has no password.
        """
        self._max_age_days = max_age_days
        self._told = False
        self._down_until = 0.0
        self._queue: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        self._name, self._engine, self._table = _opened(url, max_age_days)
        threading.Thread(target=self._serve, name="scorekit-cache", daemon=True).start()

    async def get(self, key: str) -> Entry | None:
        """Return the entry of a key that is not too old, or None."""
        return await self._ask(key, None, replace=False)

    async def put(self, entry: Entry, *, replace: bool) -> None:
        """Keep an entry, committed when this returns."""
        await self._ask(entry.key, entry, replace=replace or self._max_age_days is not None)

    def clear(self) -> None:
        """Remove every entry."""
        with self._engine.begin() as db:
            db.execute(self._table.delete())

    def size(self) -> CacheSize:
        """Return the number of entries and the characters of their texts."""
        from sqlalchemy import func, select

        with self._engine.connect() as db:
            count, length = db.execute(
                select(func.count(), func.coalesce(func.sum(func.length(self._table.c.reply)), 0)).select_from(self._table)
            ).one()
        return CacheSize(int(count), int(length))

    async def _ask(self, key: str, entry: Entry | None, *, replace: bool) -> Entry | None:
        loop = asyncio.get_running_loop()
        work = _Work(key, entry, replace, loop.create_future(), loop)
        self._queue.put(work)
        return await work.done

    def _serve(self) -> None:
        """Do what waits, in one transaction at a time; runs in the store's thread."""
        while True:
            batch = [self._queue.get()]
            while len(batch) < MOST_AT_ONCE and not self._queue.empty():
                batch.append(self._queue.get())
            found = self._tried(batch)
            try:
                batch[0].loop.call_soon_threadsafe(_settle, batch, found)
            except RuntimeError:  # the loop has ended
                return

    def _tried(self, batch: list[_Work]) -> dict[str, Entry]:
        """Do a batch; twice where the connection was lost; a failure is told once and costs no answer."""
        if time.monotonic() < self._down_until:
            return {}
        for last in (False, True):
            try:
                with self._engine.begin() as db:
                    return self._done(db, batch)
            except Exception as error:  # noqa: BLE001  (any driver's error: the answers must still be given)
                if not last:
                    continue
                self._down_until = time.monotonic() + DOWN_S
                if not self._told:
                    self._told = True
                    message = f"The reply cache {self._name} failed ({type(error).__name__}); such replies are not kept."
                    with contextlib.suppress(CacheWarning):  # an error by the user's filter would end this thread
                        warnings.warn(message, CacheWarning, stacklevel=2)
        return {}

    def _done(self, db: Connection, batch: list[_Work]) -> dict[str, Entry]:
        """Keep the batch's entries and return those that it looks up."""
        from sqlalchemy import select

        for work in batch:
            if work.entry is not None:
                self._insert(db, work.entry, replace=work.replace)
        wanted = [work.key for work in batch if work.entry is None]
        if not wanted:
            return {}
        table = self._table
        rows = db.execute(select(table).where(table.c.key.in_(wanted), table.c.created >= oldest(self._max_age_days)))
        return {row.key: Entry(*row) for row in rows}

    def _insert(self, db: Connection, entry: Entry, *, replace: bool) -> None:
        """Keep one entry: the first of a key stays unless ``replace``."""
        values = entry._asdict()
        if db.dialect.name == "postgresql":
            from sqlalchemy.dialects.postgresql import insert

            statement = insert(self._table).values(values)
            changed = {name: statement.excluded[name] for name in values if name != "key"}
            keep = statement.on_conflict_do_update(index_elements=["key"], set_=changed)
            db.execute(keep if replace else statement.on_conflict_do_nothing(index_elements=["key"]))
            return
        from sqlalchemy.exc import IntegrityError

        if replace:
            db.execute(self._table.delete().where(self._table.c.key == entry.key))
        try:
            with db.begin_nested():
                db.execute(self._table.insert().values(values))
        except IntegrityError:
            return


def _opened(url: str, max_age_days: float | None) -> tuple[str, Engine, Table]:
    """Connect to a database and make the table; return its name without a password too."""
    import sqlalchemy as sa

    try:
        parsed = sa.make_url(url)
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        name = parsed.render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        msg = "The reply cache's URL cannot be read; it must look like 'postgresql://user:password@host/database'."
        raise JudgeSetupError(msg) from None
    number: sa.Double[float] = sa.Double()
    table = sa.Table(
        TABLE,
        sa.MetaData(),
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("created", number, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("step", sa.Text, nullable=False),
        sa.Column("reply", sa.Text, nullable=False),
        sa.Column("input_tokens", number, nullable=False),
        sa.Column("output_tokens", number, nullable=False),
    )
    try:
        seconds = {"connect_timeout": 10} if parsed.get_backend_name() == "postgresql" else {}
        engine = sa.create_engine(parsed, pool_pre_ping=True, connect_args=seconds)
        with engine.begin() as db:
            _make_table(db, table)
            db.execute(sa.select(table).limit(0))  # a table of that name may be something else
            if max_age_days is not None:
                db.execute(table.delete().where(table.c.created < oldest(max_age_days)))
    except ImportError as error:
        msg = f"The reply cache {name} needs the driver {error.name!r}. For PostgreSQL: pip install 'scorekit[postgres]'."
        raise JudgeSetupError(msg) from None
    except sa.exc.SQLAlchemyError as error:
        why = str(getattr(error, "orig", None) or error).splitlines()[0][:200]
        if parsed.password:
            why = why.replace(str(parsed.password), "***")
        msg = f"The reply cache {name} cannot be used: {why}. Check the URL, or pass cache=False."
        raise JudgeSetupError(msg) from None
    return name, engine, table


def _make_table(db: Connection, table: Table) -> None:
    """Make the table where it is missing; another process may be doing the same."""
    import sqlalchemy as sa

    try:
        with db.begin_nested():
            table.create(db, checkfirst=True)
    except sa.exc.DBAPIError:
        if not sa.inspect(db).has_table(table.name):
            raise


def _settle(batch: list[_Work], found: dict[str, Any]) -> None:
    """Give the results to those who still wait; runs on the loop."""
    for work in batch:
        if not work.done.done():
            work.done.set_result(found.get(work.key) if work.entry is None else None)
