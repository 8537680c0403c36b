"""Lanes: threads that gather calls for a moment and score them together; what only computes shares one, what may wait has one each."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from scorekit.monitor.scoring import LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scorekit.monitor.channel import Item
    from scorekit.monitor.scoring import Scoring
    from scorekit.monitor.stored import EncodedRow

GATHER_S: Final = 0.25
"""How long a lane lets calls gather: no call wakes it meanwhile, so a call costs no switch of threads, and a batch costs about as much as a row."""

CODE_ROWS, SLOW_ROWS = 512, 256
"""How many rows are scored together: where a judge is asked, as many as are under way at a time."""


class Owner(Protocol):
    """Who waits for rows to be done with: a channel of this process, or a batch that another process sent."""

    def release(self, rows: int, size: int) -> None:
        """Take note that so many rows, with texts of so many characters, are done with."""


class Entry(NamedTuple):
    """A picked row on its way: whose it is, how it is scored, the call, and the size of its texts."""

    owner: Owner
    scoring: Scoring
    item: Item
    size: int


class Scored(NamedTuple):
    """Rows for the store, and the entries that they came from."""

    rows: list[EncodedRow]
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
        Called with what was scored and with how many of its rows are ``scorer_error``.
    """

    def __init__(self, name: str, most: int, hand_on: Callable[[Scored, int], None]) -> None:
        """Start the thread."""
        self._most = most
        self._hand_on = hand_on
        self._waiting: deque[Entry] = deque()
        self._under_way: list[Entry] = []
        self._wake = threading.Event()
        self._idle = False
        self._hurry = False
        self._stopped = False
        threading.Thread(target=self._run, name=f"scorekit-live-{name}", daemon=True).start()

    def put(self, entry: Entry) -> None:
        """Add an entry; wakes the thread only where it had nothing to do."""
        self._waiting.append(entry)
        if self._idle:
            self._idle = False
            self._wake.set()

    def hurry(self) -> None:
        """Score what waits without letting more gather."""
        self._hurry = True
        self._wake.set()

    def take_back(self) -> list[Entry]:
        """End the lane and return what it has not handed on, in order; what it is in the middle of is handed on no more."""
        self._stopped = True
        self._wake.set()
        left = list(self._under_way)
        while self._waiting:
            left.append(self._waiting.popleft())
        return left

    def _run(self) -> None:
        """Gather, score, hand on."""
        while not self._stopped:
            if not self._waiting:
                self._wake.clear()
                self._idle = True
                if not self._waiting:  # one may have come between the two lines above
                    self._hurry = False
                    self._wake.wait()
                self._idle = False
                continue
            if not self._hurry and len(self._waiting) < self._most:
                time.sleep(GATHER_S)
            batch = self._under_way
            while self._waiting and len(batch) < self._most:
                batch.append(self._waiting[0])  # never in neither place
                self._waiting.popleft()
            for scoring, entries in grouped(batch).items():
                self._score(scoring, entries)
            self._under_way = []

    def _score(self, scoring: Scoring, entries: list[Entry]) -> None:
        """Score the entries of one scorer and hand them on."""
        items = [entry.item for entry in entries]
        try:
            rows, failed = scoring.rows(items)
        except Exception:  # noqa: BLE001  (nobody stands behind this thread)
            LOG.exception("Live scoring failed; its rows are kept without a score.")
            rows, failed = self._without_score(scoring, items), len(items)
        if not self._stopped:
            self._hand_on(Scored(rows, entries), failed)
            done = set(map(id, entries))
            self._under_way = [entry for entry in self._under_way if id(entry) not in done]

    @staticmethod
    def _without_score(scoring: Scoring, items: list[Item]) -> list[EncodedRow]:
        """Return rows without a score; none where even that fails."""
        try:
            return scoring.cancelled(items)
        except Exception:  # noqa: BLE001
            LOG.exception("Rows of live scoring were lost.")
            return []


def grouped(entries: Sequence[Entry]) -> dict[Scoring, list[Entry]]:
    """Return entries by their scorer, each in order."""
    found: dict[Scoring, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.scoring, []).append(entry)
    return found
