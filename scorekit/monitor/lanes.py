"""Lanes: threads that gather calls for a moment and score them together; what only computes shares one, what may wait has one each."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from scorekit.evals.calls import told
from scorekit.monitor.counters import Owner, Wake
from scorekit.monitor.scoring import LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scorekit.monitor.channel import Item
    from scorekit.monitor.rows import EncodedRow
    from scorekit.monitor.scoring import Scoring

GATHER_S: Final = 0.25
"""How long a lane lets calls gather: no call wakes it meanwhile, so a call costs no switch of threads, and a batch costs about as much as a row."""

IDLE_S: Final = 60.0
"""After how long without a call a lane ends; the next call begins another."""

CODE_ROWS, SLOW_ROWS = 512, 256
"""How many rows are scored together: where a judge is asked, as many as are under way at a time."""


class Entry(NamedTuple):
    """A picked row on its way: whose it is, how it is scored, the call, and the size of its texts."""

    owner: Owner
    scoring: Scoring
    item: Item
    size: int


class Scored(NamedTuple):
    """Rows for the store, and the entries that they came from, one each; None for one that could not even be made."""

    rows: Sequence[EncodedRow | None]
    entries: Sequence[Entry]


class Lane:
    """A daemon thread that takes entries in the order of their coming and hands on what it made of them.

    Parameters
    ----------
    name
        Of the thread.
    most
        How many rows are scored together.
    hand_on
        Called with what was scored.
    """

    def __init__(self, name: str, most: int, hand_on: Callable[[Scored], None]) -> None:
        """Start the thread."""
        self._most = most
        self._hand_on = hand_on
        self._lock = threading.RLock()
        """Held while entries move, so that each is in exactly one place; never while they are scored."""
        self._waiting: deque[Entry] = deque()
        self._under_way: list[Entry] = []
        self._wake = Wake()
        self._idle = self._hurry = False
        self.ended = False
        threading.Thread(target=self._run, name=f"scorekit-live-{name}", daemon=True).start()

    def put(self, entry: Entry) -> bool:
        """Add an entry; False where the lane has ended. Wakes the thread only where it had nothing to do."""
        with self._lock:
            if self.ended:
                return False
            self._waiting.append(entry)
            idle, self._idle = self._idle, False
        if idle:
            self._wake.set()
        return True

    @property
    def settled(self) -> bool:
        """Whether all that was put is handed on."""
        with self._lock:
            return not self._waiting and not self._under_way

    def hurry(self) -> None:
        """Score what waits without letting more gather."""
        self._hurry = True
        self._wake.set()

    def take_back(self) -> list[Entry]:
        """End the lane and return what it has not handed on, in order; what it is in the middle of is handed on no more."""
        with self._lock:
            self.ended = True
            left = [*self._under_way, *self._waiting]
        self._wake.set()
        return left

    def _run(self) -> None:
        """Gather, score, hand on."""
        while self._gathered():
            for scoring, entries in grouped(self._under_way).items():
                self._score(scoring, entries)

    def _gathered(self) -> bool:
        """Wait for entries and take those that are scored together; False where the lane ends."""
        while True:
            with self._lock:
                if self.ended:
                    return False
                if self._waiting:
                    break
                self._idle, self._hurry = True, False
            if not self._wake.wait(IDLE_S):
                with self._lock:
                    self.ended = not self._waiting
        if not self._hurry and len(self._waiting) < self._most:
            self._wake.wait(GATHER_S)
        with self._lock:
            if not self.ended:
                self._under_way = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._most))]
            return not self.ended

    def _score(self, scoring: Scoring, entries: list[Entry]) -> None:
        """Score the entries of one scorer and hand them on, unless they were taken back meanwhile."""
        rows = self._rows(scoring, [entry.item for entry in entries])
        with self._lock:
            if not self.ended:
                self._hand_on(Scored(rows, entries))
                done = set(map(id, entries))
                self._under_way = [entry for entry in self._under_way if id(entry) not in done]

    def _rows(self, scoring: Scoring, items: list[Item]) -> list[EncodedRow | None]:
        """Return the rows of calls; in halves where they cannot be made together, so that one bad call costs no other its score."""
        try:
            return [*scoring.rows(items)]
        except Exception as error:  # noqa: BLE001  (nobody stands behind this thread)
            if len(items) > 1:
                half = len(items) // 2
                return self._rows(scoring, items[:half]) + self._rows(scoring, items[half:])
            LOG.exception("What the scorer %r gave cannot be kept; the row is kept without a score.", scoring.key)
            try:
                return [*scoring.cancelled(items, "scorer_error", f"What the scorer gave cannot be kept: {told(error)}")]
            except Exception:  # noqa: BLE001
                LOG.exception("A row of live scoring is lost.")
                return [None]


def grouped(entries: Sequence[Entry]) -> dict[Scoring, list[Entry]]:
    """Return entries by their scorer, each in order."""
    found: dict[Scoring, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.scoring, []).append(entry)
    return found
