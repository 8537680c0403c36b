"""The writer of a store: one thread that commits rows in their order, and keeps them in a local spill file while the store cannot be reached."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from scorekit.errors import StoreError
from scorekit.monitor.counters import Counters, Owner, Tally, Wake
from scorekit.monitor.scoring import LOG
from scorekit.monitor.store import ScoreStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scorekit.monitor.lanes import Scored
    from scorekit.monitor.rows import EncodedRow

MOST_ROWS: Final = 2000
"""How many rows share a transaction."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 15.0
"""How long a store that failed is left alone: at first, and at most."""


def spill_path(store: ScoreStore) -> Path:
    """Return the file where rows for a store wait: in the folder of the environment variable SCOREKIT_SPILL, else in the user's state folder.

    It is an SQLite file with the store's own table, named after the store's URL (not its password, which may change), and shared by the processes
    of the machine.

    Examples
    --------
    >>> spill_path(ScoreStore("scores.db")).suffix
    '.sqlite3'
    """
    folder = os.environ.get("SCOREKIT_SPILL")
    if folder is None:
        from platformdirs import user_state_path

        folder = str(user_state_path("scorekit", appauthor=False) / "spill")
    return Path(folder) / f"{hashlib.sha256(store.name.encode()).hexdigest()[:16]}.sqlite3"


def is_there(path: Path) -> bool:
    """Return whether a file is there, and may be looked at."""
    try:
        return path.exists()
    except OSError:
        return False


def waiting_in_spill(store: ScoreStore) -> int:
    """Return how many rows wait in the spill file of a store; 0 where there is none.

    Raises
    ------
    StoreError
        Where it cannot be read.
    """
    path = spill_path(store)
    return ScoreStore(str(path)).count() if is_there(path) else 0


def send_spilled(store: ScoreStore) -> int:
    """Send what waits in the spill file of a store, in its order, and return how many rows that were.

    Raises
    ------
    StoreError
        Where the store or the file cannot be used; what is not sent stays in the file.
    """
    sent = 0
    if waiting_in_spill(store):
        spill = ScoreStore(str(spill_path(store)))
        while rows := spill.first(MOST_ROWS):
            store.insert(rows, existing="keep")
            spill.remove([row.id for row in rows])
            sent += len(rows)
    return sent


class Writer:
    """Commits what is handed to it: in the store, or in the spill file, or holds it in memory where neither can be written.

    Order: while the spill file holds rows, new ones go behind them, and they are sent first. A row is released once it is committed in either.
    Rows have ids, so that one that is sent again after a crash between two commits is not there twice.
    """

    def __init__(self, store: ScoreStore, counters: Counters) -> None:
        """Start the thread, which first sends what an earlier process left in the spill file."""
        self._store = store
        self._counters = counters
        self.path = spill_path(store)
        self._spill: ScoreStore | None = None
        self._lock = threading.RLock()
        """Held while rows move, so that each is in exactly one place; never while they are written."""
        self._waiting: deque[Scored] = deque()
        self._under_way: list[Scored] = []
        self._wake = Wake()
        self._ended = False
        self._retry_at = 0.0
        self._wait_s = FIRST_WAIT_S
        self._told_memory = False
        self._stored_new = 0
        self.spilled = 0
        threading.Thread(target=self._run, name="scorekit-live-writer", daemon=True).start()

    def put(self, scored: Scored) -> None:
        """Take rows, to be committed soon."""
        with self._lock:
            self._waiting.append(scored)
        self._wake.set()

    @property
    def settled(self) -> bool:
        """Whether all that was put is committed, in the store or in the spill file."""
        with self._lock:
            return not self._waiting and not self._under_way

    def hurry(self) -> None:
        """Try a store that failed again now."""
        self._retry_at = 0.0
        self._wake.set()

    def take_back(self) -> list[Scored]:
        """End the thread and return what is committed nowhere yet, as far as is known: a commit may be under way."""
        with self._lock:
            self._ended = True
            left = [*self._under_way, *self._waiting]
        self._wake.set()
        return left

    def spill(self, rows: Sequence[EncodedRow]) -> None:
        """Commit rows in the spill file.

        Raises
        ------
        StoreError
            Where that cannot be written either.
        """
        if self._spill is None:
            self._spill = ScoreStore(str(self.path))
        self._spill.insert(rows, existing="keep")
        self.spilled = self._spill.count()

    def _run(self) -> None:
        """Commit what waits; where it cannot be, wait and try again."""
        self._find_spilled()
        while not self._ended:
            try:
                self._commit()
            except Exception:  # noqa: BLE001  (nobody stands behind this thread, and rows wait for it)
                LOG.exception("The writer of live scores failed; it goes on.")
                time.sleep(FIRST_WAIT_S)

    def _commit(self) -> None:
        """Commit what waits, up to the rows of one transaction, and send some of what was spilled."""
        with self._lock:
            rows = sum(len(scored.rows) for scored in self._under_way)
            while self._waiting and rows < MOST_ROWS:
                self._under_way.append(self._waiting.popleft())
                rows += len(self._under_way[-1].rows)
            batch = list(self._under_way)
        if self.spilled and self._reachable():
            self._send()
        if batch:
            kept = self._kept([row for scored in batch for row in scored.rows if row is not None])
            if kept is None:
                time.sleep(FIRST_WAIT_S)
                return
            with self._lock:
                if not self._ended:
                    self._under_way = []
            _release(batch, kept)
        if self.settled:
            self._wake.wait(max(0.05, self._retry_at - time.monotonic()) if self.spilled else None)

    def _reachable(self) -> bool:
        """Return whether the store may be tried."""
        return time.monotonic() >= self._retry_at

    def _kept(self, rows: list[EncodedRow]) -> Kept | None:
        """Commit rows in the store, or behind those in the spill file; return where they are, None for in neither."""
        if not self.spilled and self._reachable():
            refused = self._inserted(rows)
            if refused is not None:
                return Kept(stored=True, refused=refused)
        try:
            self.spill(rows)
        except StoreError as error:
            if not self._told_memory:
                self._told_memory = True
                LOG.error("Scores wait in memory, since the spill file cannot be written either. %s", error)
            return None
        self._told_memory = False
        return Kept(stored=False)

    def _send(self) -> None:
        """Send the oldest rows of the spill file, as many as share a transaction."""
        assert self._spill is not None  # noqa: S101  (rows were counted in it)
        try:
            rows = self._spill.first(MOST_ROWS)
        except StoreError as error:
            LOG.error("The spill file %s cannot be read: %s", self.path, error)
            self._put_off()
            return
        before = self._stored_new
        refused = self._inserted(rows) if rows else frozenset()
        if refused is None:
            return
        self._counters.add(stored=self._stored_new - before, lost=len(refused))
        try:
            self._spill.remove([row.id for row in rows])
            self.spilled = self._spill.count()
        except StoreError as error:
            LOG.error("The spill file %s cannot be emptied: %s", self.path, error)
            self._put_off()

    def _inserted(self, rows: list[EncodedRow]) -> frozenset[str] | None:
        """Commit rows in the store, and return the ids that it refuses for what is in them; where it cannot be written, put the next attempt off."""
        try:
            self._stored_new += self._store.insert(rows, existing="keep")
        except StoreError as error:
            if _is_refused(error):
                return self._split(rows, error)
            if self._wait_s == FIRST_WAIT_S:
                LOG.warning("%s Scores wait in %s meanwhile.", error, self.path)
            self._counters.add(store_errors=1)
            self._put_off()
            return None
        if self._wait_s > FIRST_WAIT_S:
            LOG.warning("The store %s can be written again.", self._store.name)
        self._wait_s = FIRST_WAIT_S
        return frozenset()

    def _split(self, rows: list[EncodedRow], error: StoreError) -> frozenset[str] | None:
        """Commit in halves what the database refuses, so that one such row keeps no other waiting."""
        if len(rows) == 1:
            LOG.error("A score of the run %r is lost, since the store refuses it: %s", rows[0].run_id, error)
            return frozenset([rows[0].id])
        half = len(rows) // 2
        first = self._inserted(rows[:half])
        second = None if first is None else self._inserted(rows[half:])
        return None if first is None or second is None else first | second

    def _put_off(self) -> None:
        """Leave the store alone for a while, twice as long each time."""
        self._store.close()  # it is opened anew, and its tables are made where somebody has removed them
        self._retry_at = time.monotonic() + self._wait_s
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)

    def _find_spilled(self) -> None:
        """Count what waits in a spill file that is there already."""
        if not is_there(self.path):
            return
        try:
            self._spill = ScoreStore(str(self.path))
            self.spilled = self._spill.count()
        except StoreError as error:
            self._spill = None
            LOG.error("The spill file %s cannot be read: %s", self.path, error)


class Kept(NamedTuple):
    """Where rows were committed: in the store or the spill file; and the ids of those that the store refuses."""

    stored: bool
    refused: frozenset[str] = frozenset()


def _release(batch: Sequence[Scored], kept: Kept) -> None:
    """Tell the owners of rows what became of them."""
    tallies: dict[Owner, Tally] = {}
    for scored in batch:
        for entry, row in zip(scored.entries, scored.rows, strict=True):
            tally = tallies.setdefault(entry.owner, Tally())
            lost = row is None or row.id in kept.refused
            tally.rows += 1
            tally.size += entry.size
            tally.lost += lost
            tally.stored += kept.stored and not lost
            tally.failed += row is not None and row.error == "scorer_error"
    for owner, tally in tallies.items():
        owner.release(tally)


def _is_refused(error: StoreError) -> bool:
    """Return whether the database refused the rows themselves, not the attempt."""
    from sqlalchemy.exc import DataError, IntegrityError

    return isinstance(error.__cause__, (DataError, IntegrityError, OverflowError))
