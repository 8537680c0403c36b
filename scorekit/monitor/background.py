"""The background of one process: lanes that score what is handed over, and a writer a store that commits it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from scorekit.errors import StoreError
from scorekit.monitor.lanes import CODE_ROWS, SLOW_ROWS, Entry, Lane, Owner, Scored, grouped
from scorekit.monitor.scoring import CANCELLED, LOG
from scorekit.monitor.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scorekit.monitor.channel import Channel, Item
    from scorekit.monitor.counters import Counters
    from scorekit.monitor.scoring import Scoring
    from scorekit.monitor.store import ScoreStore
    from scorekit.monitor.stored import EncodedRow

POLL_S: Final = 0.01


def wait_until(done: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until something is so, at most for a time; return whether it is."""
    deadline = time.monotonic() + timeout_s
    while not done():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(POLL_S, left))
    return True


class ThreadBackground:
    """Scores and stores in threads of this process; they start when the first call is handed over."""

    def __init__(self, counters: Counters) -> None:
        """Start nothing yet."""
        self._counters = counters
        self._lanes: dict[Scoring | None, Lane] = {}
        self._writers: dict[ScoreStore, Writer] = {}
        self._lock = threading.RLock()
        self.waiting = 0

    def submit(self, owner: Owner, channel: Channel, scorings: Sequence[Scoring], item: Item, size: int) -> None:
        """Score a call with the scorers that were picked for it, and store the results."""
        with self._counters.lock:
            self.waiting += len(item.picked)
        for place in item.picked:
            scoring = scorings[place]
            lane = self._lanes.get(scoring if scoring.slow else None) or self._new_lane(scoring)
            self.writer(channel.store)
            lane.put(Entry(owner, scoring, item, size))

    def give_up(
        self, owner: Owner, scorings: Sequence[Scoring], item: Item, size: int, *, code: str = "cancelled", why: str = CANCELLED
    ) -> None:
        """Store a call without scoring it, under an error code, so that it can be scored later."""
        for place in item.picked:
            scoring = scorings[place]
            with self._counters.lock:
                self.waiting += 1
            self.writer(scoring.store)
            entry = Entry(owner, scoring, item, size)
            self._hand_on(Scored(scoring.cancelled([item], code, why), [entry]), int(code == "scorer_error"))

    @property
    def spilled(self) -> int:
        """How many rows wait in spill files."""
        return sum(writer.spilled for writer in list(self._writers.values()))

    @property
    def settled(self) -> bool:
        """Whether everything handed over is committed, in its store or in the spill file."""
        return self.waiting == 0 and all(writer.settled for writer in list(self._writers.values()))

    def hurry(self) -> None:
        """Score and store what waits now."""
        for lane in list(self._lanes.values()):
            lane.hurry()
        for writer in list(self._writers.values()):
            writer.hurry()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything handed over is committed in its store; return whether it is."""
        self.hurry()
        return wait_until(lambda: self.settled and not self.spilled, timeout_s)

    def close(self, timeout_s: float) -> int:
        """Wait for the rest; what is not committed by then goes to the spill files. Return how many rows could be written nowhere."""
        self.hurry()
        return 0 if wait_until(lambda: self.settled, timeout_s) else self._rescue()

    def _rescue(self) -> int:
        """End the threads and keep what they leave in the spill files, in order: results, then calls that were not scored."""
        lost = 0
        for writer in list(self._writers.values()):
            lost += self._spill(writer, [row for scored in writer.take_back() for row in scored.rows])
        for lane in list(self._lanes.values()):
            for scoring, entries in grouped(lane.take_back()).items():
                rows = scoring.cancelled([entry.item for entry in entries])
                lost += self._spill(self._writers[scoring.store], rows)
        return lost

    @staticmethod
    def _spill(writer: Writer, rows: Sequence[EncodedRow]) -> int:
        """Commit rows in a writer's spill file; return how many could not be."""
        try:
            if rows:
                writer.spill(rows)
        except StoreError as error:
            LOG.error("%d live scores are lost, since neither the store nor the spill file can be written: %s", len(rows), error)
            return len(rows)
        return 0

    def _new_lane(self, scoring: Scoring) -> Lane:
        """Return the lane of a scorer, made at the first call; those that only compute share one."""
        with self._lock:
            key = scoring if scoring.slow else None
            if key not in self._lanes:
                name, most = (scoring.key, SLOW_ROWS) if scoring.slow else ("code", CODE_ROWS)
                self._lanes[key] = Lane(name, most, self._hand_on)
            return self._lanes[key]

    def writer(self, store: ScoreStore) -> Writer:
        """Return the writer of a store, made at the first call; it begins with what waits in the store's spill file."""
        found = self._writers.get(store)
        if found is not None:
            return found
        with self._lock:
            if store not in self._writers:
                self._writers[store] = Writer(store, self._counters)
            return self._writers[store]

    def _hand_on(self, scored: Scored, failed: int) -> None:
        """Pass what a lane scored to the writer of its store."""
        count = len(scored.entries)
        self._writers[scored.entries[0].scoring.store].put(scored)  # first, so that it is never counted nowhere
        with self._counters.lock:
            self.waiting -= count
        self._counters.add(scored=count, failed=failed, lost=count - len(scored.rows))
