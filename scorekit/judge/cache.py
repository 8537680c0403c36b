"""The replies of judges, kept so that no answer is paid for twice: SQLite by default, any SQL database by URL.

One table, ``scorekit_replies``, readable without scorekit: ``key`` (sha256 of the canonical JSON of everything that can change a reply),
``created`` (seconds since 1970), ``model``, ``step``, ``reply`` (the reply's JSON text), ``input_tokens``, ``output_tokens``. Errors are
never kept. The default place is ``replies.sqlite3`` in the user's cache folder (on Linux ``~/.cache/scorekit``).
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeVar
from weakref import WeakSet

from scorekit.errors import ArgumentTypeError, JudgeSetupError, OptionRangeError
from scorekit.judge.loop import background

CacheSetting = bool | str | os.PathLike[str] | None
"""False: off. None: as the environment variable SCOREKIT_CACHE says, else the default place. True: the default place. A path or a URL."""

TABLE: Final = "scorekit_replies"
DAY_S: Final = 86_400.0
BUSY_S: Final = 15.0
"""How long a writer waits for other processes."""

_SELECT: Final = f"SELECT key, created, model, step, reply, input_tokens, output_tokens FROM {TABLE}"  # noqa: S608  (a constant)
_INSERT: Final = f"INTO {TABLE} VALUES (?, ?, ?, ?, ?, ?, ?)"
_DELETE: Final = f"DELETE FROM {TABLE}"  # noqa: S608
_SIZE: Final = f"SELECT count(*), coalesce(sum(length(CAST(reply AS BLOB))), 0) FROM {TABLE}"  # noqa: S608
_CREATE: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} (key TEXT PRIMARY KEY, created REAL NOT NULL, model TEXT NOT NULL, step TEXT NOT NULL, "
    "reply TEXT NOT NULL, input_tokens REAL NOT NULL, output_tokens REAL NOT NULL)"
)
_OFF = ("off", "0", "false", "no", "none")
_URL = re.compile(r"\A[A-Za-z][\w.]*(\+\w+)?://")
_SQLITE_URL = re.compile(r"\Asqlite(?:\+pysqlite)?:///?(?P<path>[^?]*)\Z")
_LOCK = threading.Lock()
"""Held while SQLite runs, and across a fork: a child must not inherit SQLite's own locks in a locked state."""

_OPEN: Final[WeakSet[SqliteStore]] = WeakSet()
"""The process's caches that are files."""

Result = TypeVar("Result")


class CacheWarning(UserWarning):
    """The cache of replies could not be used as it was; answers are still given."""


class Entry(NamedTuple):
    """One kept reply."""

    key: str
    created: float
    model: str
    step: str
    reply: str
    input_tokens: float
    output_tokens: float


class CacheSize(NamedTuple):
    """How much a cache holds: the number of replies and the bytes of their texts."""

    replies: int
    bytes: int


class Store(Protocol):
    """An open cache: `get` and `put` run on the background loop, the others in any thread."""

    async def get(self, key: str) -> Entry | None:
        """Return the entry of a key, or None."""

    async def put(self, entry: Entry, *, replace: bool) -> None:
        """Keep an entry: committed when this returns. The first one of a key stays unless ``replace``."""

    def clear(self) -> None:
        """Remove every entry."""

    def size(self) -> CacheSize:
        """Return how much is kept."""


@dataclass(frozen=True)
class ReplyCache:
    """Where replies are kept; a value that pickles. The database opens at the first use, once a process.

    Parameters
    ----------
    setting
        A file, a SQLAlchemy URL (``"postgresql://..."``), True for the default file, False for none. None, the default, reads the
        environment variable SCOREKIT_CACHE (a file, a URL, or ``off``) and falls back to the default file.
    max_age_days
        Older replies are not used, and removed when the cache is opened. None, the default, keeps them for ever.

    Examples
    --------
    >>> ReplyCache("replies.sqlite3").path
    PosixPath('replies.sqlite3')
    >>> ReplyCache(False)
    ReplyCache(False)
    """

    setting: CacheSetting = None
    max_age_days: float | None = None

    def __post_init__(self) -> None:
        """Check the kind and the range; nothing is opened."""
        if not (self.setting is None or isinstance(self.setting, (bool, str, os.PathLike))):
            raise ArgumentTypeError.from_value("cache", self.setting, "True, False, a path or a SQLAlchemy URL")
        if self.max_age_days is not None and not self.max_age_days > 0:
            raise OptionRangeError.from_value("max_age_days", self.max_age_days, "above 0")
        if isinstance(self.setting, os.PathLike):
            object.__setattr__(self, "setting", os.fspath(self.setting))

    def __repr__(self) -> str:
        """Show the place, without a password."""
        setting = re.sub(r"(?<=://)([^:/@]*):[^@]*@", r"\1:***@", self.setting) if isinstance(self.setting, str) else self.setting
        age = "" if self.max_age_days is None else f", max_age_days={self.max_age_days}"
        return f"ReplyCache({setting!r}{age})"

    @property
    def path(self) -> Path | None:
        """The cache's file; None where it is off or in another database."""
        place = self._place()
        return place if isinstance(place, Path) else None

    def clear(self) -> None:
        """Remove every kept reply."""
        if (store := self.open()) is not None:
            store.clear()

    def size(self) -> CacheSize:
        """Return how many replies are kept and the bytes of their texts."""
        store = self.open()
        return CacheSize(0, 0) if store is None else store.size()

    def open(self) -> Store | None:
        """Return the process's open cache, or None where there is none.

        Raises
        ------
        JudgeSetupError
            Where a place that was asked for cannot be used; the default place only warns.
        """
        place = self._place()
        if place is None:
            return None
        chosen = isinstance(self.setting, str) or (self.setting is None and bool(os.environ.get("SCOREKIT_CACHE")))
        return background().keep(("cache", place, self.max_age_days), lambda: _open(place, self.max_age_days, chosen=chosen))

    def _place(self) -> Path | str | None:
        """Return the file or the URL that the setting and the environment mean."""
        setting = self.setting
        if setting is None:
            setting = os.environ.get("SCOREKIT_CACHE") or True
            if isinstance(setting, str) and setting.strip().lower() in _OFF:
                return None
        if setting is False:
            return None
        if setting is True:
            from platformdirs import user_cache_path

            return user_cache_path("scorekit", appauthor=False) / "replies.sqlite3"
        text = os.fspath(setting)
        if found := _SQLITE_URL.match(text):
            return Path(found["path"] or ":memory:")
        return text if _URL.match(text) else Path(text).expanduser()


def _open(place: Path | str, max_age_days: float | None, *, chosen: bool) -> Store | None:
    """Open a place; one that nobody chose may fail with a warning alone."""
    if isinstance(place, str):
        from scorekit.judge.cache_sql import SqlStore

        return SqlStore(place, max_age_days)
    try:
        return SqliteStore(place, max_age_days)
    except (OSError, sqlite3.Error) as error:
        if chosen:
            msg = f"The reply cache {str(place)!r} cannot be used: {error}. Choose another place with cache=, or cache=False."
            raise JudgeSetupError(msg) from error
        warnings.warn(f"No reply is cached: {str(place)!r} cannot be used ({error}). Set SCOREKIT_CACHE.", CacheWarning, stacklevel=2)
        return None


class SqliteStore:
    """Replies in an SQLite file: one connection a process, one commit a reply, several processes at once.

    Look-up and commit take about 0.1 ms, so they run on the loop itself.
    """

    def __init__(self, path: Path, max_age_days: float | None) -> None:
        """Open the file, or make it with access for its owner alone; a corrupt one is moved aside."""
        self._path = path
        self._max_age_days = max_age_days
        self._told = False
        self._inode = 0
        self._connection: sqlite3.Connection | None = None
        self._run(lambda _: None, strict=True)
        with _LOCK:
            _OPEN.add(self)

    async def get(self, key: str) -> Entry | None:
        """Return the entry of a key that is not too old, or None."""
        since = oldest(self._max_age_days)
        found = self._run(lambda db: db.execute(f"{_SELECT} WHERE key = ? AND created >= ?", (key, since)).fetchone())
        return None if found is None else Entry(*found)

    async def put(self, entry: Entry, *, replace: bool) -> None:
        """Keep an entry, committed."""
        verb = "REPLACE" if replace or self._max_age_days is not None else "IGNORE"
        self._run(lambda db: db.execute(f"INSERT OR {verb} {_INSERT}", entry))

    def clear(self) -> None:
        """Remove every entry and give the space back."""

        def work(db: sqlite3.Connection) -> None:
            db.execute(_DELETE)
            with contextlib.suppress(sqlite3.OperationalError):  # another process is writing: the space is used again later
                db.execute("VACUUM")

        self._run(work)

    def size(self) -> CacheSize:
        """Return the number of entries and the bytes of their texts."""
        found = self._run(lambda db: db.execute(_SIZE).fetchone())
        return CacheSize(0, 0) if found is None else CacheSize(*found)

    def let_go(self) -> None:
        """Close the file; the next use opens it again. What is in memory stays."""
        if self._connection is not None and str(self._path) != ":memory:":
            self._connection.close()
            self._connection = None

    def _run(self, work: Callable[[sqlite3.Connection], Result], *, strict: bool = False) -> Result | None:
        """Do something with the connection. A corrupt file is moved aside once; any other failure warns once and gives None."""
        with _LOCK:
            for again in (True, False):
                try:
                    self._connection = self._connection or self._connected()
                    return work(self._connection)
                except sqlite3.Error as error:
                    if again and str(getattr(error, "sqlite_errorname", "")).startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                        self._move_aside(error)
                    elif strict:
                        raise
                    else:
                        self._tell(f"The reply cache {str(self._path)!r} failed ({error}); such replies are not kept.")
                        return None
        return None

    def _connected(self) -> sqlite3.Connection:
        """Open the file and make its table."""
        if str(self._path) != ":memory:":
            if not self._path.parent.exists():
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            self._inode = os.fstat(file).st_ino
            os.close(file)
        db = sqlite3.connect(self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        deadline = time.monotonic() + BUSY_S
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                db.execute(_CREATE)
                db.execute(f"{_SELECT} LIMIT 0")  # a table of that name may be something else
                if self._max_age_days is not None:
                    db.execute(f"{_DELETE} WHERE created < ?", (oldest(self._max_age_days),))
            except sqlite3.OperationalError as error:
                # the change to WAL does not wait for other processes that are opening the file
                if getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY") and time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
                db.close()
                raise
            except sqlite3.Error:
                db.close()
                raise
            return db

    def _move_aside(self, error: sqlite3.Error) -> None:
        """Rename a corrupt file and its companions, unless another process has just done so."""
        self.let_go()
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        aside = self._path.with_name(f"{self._path.name}.corrupt-{stamp}")
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            with contextlib.suppress(ImportError):
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            if self._path.stat().st_ino != self._inode:
                return
            for ending in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    Path(f"{self._path}{ending}").replace(f"{aside}{ending}")
            self._path.replace(aside)
            self._tell(f"The reply cache {str(self._path)!r} was corrupt ({error}); it was moved to {str(aside)!r} and begun anew.")

    def _tell(self, message: str) -> None:
        """Warn, once a process."""
        if not self._told:
            self._told = True
            warnings.warn(message, CacheWarning, stacklevel=2)


def oldest(max_age_days: float | None) -> float:
    """Return the time of the oldest entry that may be used, in seconds since 1970."""
    return 0.0 if max_age_days is None else time.time() - max_age_days * DAY_S


def _before_fork() -> None:
    """Let no connection cross a fork: a child takes its parent's locks for its own, and the parent removed a journal that the child still wrote to."""
    _LOCK.acquire()
    for store in list(_OPEN):
        store.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_LOCK.release, after_in_child=_LOCK.release)
