"""The writer of a store: one thread that commits rows in their order, and keeps them in a local spill file while the store cannot be reached."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scorekit.errors import StoreError
from scorekit.monitor.scoring import LOG
from scorekit.monitor.store import ScoreStore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scorekit.monitor.counters import Counters
    from scorekit.monitor.lanes import Scored
    from scorekit.monitor.stored import EncodedRow

MOST_ROWS: Final = 2000
"""How many rows share a transaction."""

FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 15.0
"""How long a store that failed is left alone: at first, and at most."""


def spill_path(store: ScoreStore) -> Path:
    """Return the file where rows for a store wait: in the folder of the environment variable SCOREKIT_SPILL, else in the user's state folder.

    It is an SQLite file with the store's own table, named after the store's URL, and shared by the processes of the machine.

    Examples
    --------
    >>> spill_path(ScoreStore("scores.db")).suffix
    '.sqlite3'
    """
    folder = os.environ.get("SCOREKIT_SPILL")
    if folder is None:
        from platformdirs import user_state_path

        folder = str(user_state_path("scorekit", appauthor=False) / "spill")
    return Path(folder) / f"{hashlib.sha256(store.url.encode()).hexdigest()[:16]}.sqlite3"


class Writer:
    """Commits what is handed to it: in the store, or in the spill file, or holds it in memory where neither can be written.

    Order: while the spill file holds rows, new ones go behind them, and they are sent first. A row is released once it is committed in either.
    Rows have ids, so that one that is sent again after a crash between two commits is not there twice.
    """

    def __init__(self, store: ScoreStore, counters: Counters) -> None:
        """Start the thread, which first sends what an earlier process left in the spill file."""
        self._store = store
        self._counters = counters
        self._path = spill_path(store)
        self._spill: ScoreStore | None = None
        self._waiting: deque[Scored] = deque()
        self._under_way: list[Scored] = []
        self._wake = threading.Event()
        self._stopped = False
        self._retry_at = 0.0
        self._wait_s = FIRST_WAIT_S
        self.spilled = 0
        threading.Thread(target=self._run, name="scorekit-live-writer", daemon=True).start()

    def put(self, scored: Scored) -> None:
        """Take rows, to be committed soon."""
        self._waiting.append(scored)
        self._wake.set()

    @property
    def settled(self) -> bool:
        """Whether all that was put is committed, in the store or in the spill file."""
        return not self._waiting and not self._under_way

    def hurry(self) -> None:
        """Try a store that failed again now."""
        self._retry_at = 0.0
        self._wake.set()

    def take_back(self) -> list[Scored]:
        """End the thread and return what is committed nowhere yet."""
        self._stopped = True
        self._wake.set()
        left = list(self._under_way)
        while self._waiting:
            left.append(self._waiting.popleft())
        return left

    def spill(self, rows: Sequence[EncodedRow]) -> None:
        """Commit rows in the spill file.

        Raises
        ------
        StoreError
            Where that cannot be written either.
        """
        if self._spill is None:
            self._spill = ScoreStore(str(self._path))
        self._spill.insert(rows, existing="keep")
        self.spilled = self._spill.count()

    def _run(self) -> None:
        """Commit what waits; where it cannot be, wait and try again."""
        self._find_spilled()
        while not self._stopped:
            batch = self._under_way or self._next()
            if self._reachable() and self.spilled:
                self._send()
            if batch and self._kept([row for scored in batch for row in scored.rows]):
                for scored in batch:
                    for entry in scored.entries:
                        entry.owner.release(1, entry.size)
                self._under_way = []
            elif batch:
                time.sleep(FIRST_WAIT_S)
            if not self._waiting and not self._under_way:
                self._wake.clear()
                if not self._waiting:
                    self._wake.wait(max(0.05, self._retry_at - time.monotonic()) if self.spilled else None)

    def _next(self) -> list[Scored]:
        """Take what waits, up to the rows of one transaction; nothing is ever in neither place."""
        batch = self._under_way
        rows = 0
        while self._waiting and rows < MOST_ROWS:
            batch.append(self._waiting[0])
            rows += len(self._waiting.popleft().rows)
        return batch

    def _reachable(self) -> bool:
        """Return whether the store may be tried."""
        return time.monotonic() >= self._retry_at

    def _kept(self, rows: list[EncodedRow]) -> bool:
        """Commit rows in the store, or behind those in the spill file; return whether they are in either."""
        if not self.spilled and self._reachable() and self._inserted(rows):
            return True
        try:
            self.spill(rows)
        except StoreError as error:
            LOG.error("Scores wait in memory, since the spill file %s cannot be written: %s", self._path, error)
            return False
        return True

    def _send(self) -> None:
        """Send the oldest rows of the spill file, as many as share a transaction."""
        assert self._spill is not None  # noqa: S101  (rows were counted in it)
        try:
            rows = self._spill.first(MOST_ROWS)
        except StoreError as error:
            LOG.error("The spill file %s cannot be read: %s", self._path, error)
            self._put_off()
            return
        if not rows or self._inserted(rows):
            try:
                self._spill.remove([row.id for row in rows])
                self.spilled = self._spill.count()
            except StoreError as error:
                LOG.error("The spill file %s cannot be emptied: %s", self._path, error)
                self._put_off()

    def _inserted(self, rows: list[EncodedRow]) -> bool:
        """Commit rows in the store; where that fails say so, and put the next attempt off."""
        try:
            self._store.insert(rows, existing="keep")
        except StoreError as error:
            if _is_refused(error):
                return self._split(rows, error)
            if self._wait_s == FIRST_WAIT_S:
                LOG.warning("The store %s cannot be written; scores go to %s meanwhile: %s", self._store.name, self._path, error)
            self._counters.add(store_errors=1)
            self._put_off()
            return False
        if self._wait_s > FIRST_WAIT_S:
            LOG.warning("The store %s can be written again.", self._store.name)
        self._wait_s = FIRST_WAIT_S
        self._counters.add(stored=len(rows))
        return True

    def _split(self, rows: list[EncodedRow], error: StoreError) -> bool:
        """Commit in halves what the database refuses for what is in it, so that one such row keeps no other waiting."""
        if len(rows) > 1:
            half = len(rows) // 2
            return self._inserted(rows[:half]) and self._inserted(rows[half:])
        LOG.error("A score of the run %r is lost, since the store refuses it: %s", rows[0].run_id, error)
        self._counters.add(lost=1)
        return True

    def _put_off(self) -> None:
        """Leave the store alone for a while, twice as long each time."""
        self._retry_at = time.monotonic() + self._wait_s
        self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)

    def _find_spilled(self) -> None:
        """Count what waits in a spill file that is there already."""
        if not self._path.exists():
            return
        try:
            self._spill = ScoreStore(str(self._path))
            self.spilled = self._spill.count()
        except StoreError as error:
            self._spill = None
            LOG.error("The spill file %s cannot be read: %s", self._path, error)


def _is_refused(error: StoreError) -> bool:
    """Return whether the database refused the rows themselves, not the attempt."""
    from sqlalchemy.exc import DataError, IntegrityError

    return isinstance(error.__cause__, (DataError, IntegrityError, OverflowError))
