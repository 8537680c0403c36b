"""The threads behind the calls of one process: lanes that score what is handed over, and a writer a store that commits it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from scorekit.errors import StoreError
from scorekit.monitor.counters import wait_until
from scorekit.monitor.lanes import CODE_ROWS, SLOW_ROWS, Entry, Lane, Scored, grouped
from scorekit.monitor.scoring import CANCELLED, LOG
from scorekit.monitor.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scorekit.monitor.channel import Item
    from scorekit.monitor.counters import Counters, Owner
    from scorekit.monitor.rows import EncodedRow
    from scorekit.monitor.scoring import Scoring
    from scorekit.monitor.store import ScoreStore


class ThreadBackground:
    """Scores and stores in threads of this process; they start when the first call is handed over."""

    def __init__(self, counters: Counters) -> None:
        """Start nothing yet."""
        self._counters = counters
        self._lanes: dict[Scoring | None, Lane] = {}
        self._writers: dict[ScoreStore, Writer] = {}
        self._known: set[Scoring] = set()
        """Those whose lane and writer have begun."""
        self._lock = threading.RLock()

    def submit(self, owner: Owner, scorings: Sequence[Scoring], item: Item, size: int) -> None:
        """Score a call with the scorers that were picked for it, and store the results."""
        for place in item.picked:  # first all that may fail: no thread may be had
            if scorings[place] not in self._known:
                self._begin(scorings[place])
        for place in item.picked:
            scoring = scorings[place]
            entry = Entry(owner, scoring, item, size)
            while not self._lanes[scoring if scoring.slow else None].put(entry):  # it has ended, since nothing came for long
                self._begin(scoring)

    def give_up(
        self, owner: Owner, scorings: Sequence[Scoring], item: Item, size: int, *, code: str = "cancelled", why: str = CANCELLED
    ) -> None:
        """Store a call without scoring it, under an error code, so that it can be scored later."""
        for place in item.picked:
            scoring = scorings[place]
            self.writer(scoring.store).put(Scored(scoring.cancelled([item], code, why), [Entry(owner, scoring, item, size)]))

    @property
    def spilled(self) -> dict[Path, int]:
        """How many rows wait in each spill file."""
        return {writer.path: writer.spilled for writer in list(self._writers.values())}

    @property
    def settled(self) -> bool:
        """Whether everything handed over is committed, in its store or in the spill file; in the order in which rows move."""
        return all(lane.settled for lane in list(self._lanes.values())) and all(writer.settled for writer in list(self._writers.values()))

    def hurry(self) -> None:
        """Score and store what waits now."""
        for lane in list(self._lanes.values()):
            lane.hurry()
        for writer in list(self._writers.values()):
            writer.hurry()

    def close(self, timeout_s: float) -> int:
        """Wait for the rest; what is not committed by then goes to the spill files. Return how many rows could be written nowhere."""
        self.hurry()
        return 0 if wait_until(lambda: self.settled, timeout_s) else self._rescue()

    def writer(self, store: ScoreStore) -> Writer:
        """Return the writer of a store, made at the first call; it begins with what waits in the store's spill file."""
        found = self._writers.get(store)
        if found is not None:
            return found
        with self._lock:
            if store not in self._writers:
                self._writers[store] = Writer(store, self._counters)
            return self._writers[store]

    def _begin(self, scoring: Scoring) -> None:
        """Begin the lane of a scorer, where none runs, and the writer of its store; those that only compute share a lane."""
        self.writer(scoring.store)
        key = scoring if scoring.slow else None
        with self._lock:
            for ended in [other for other, lane in self._lanes.items() if lane.ended and other not in (key, None)]:
                del self._lanes[ended]
                self._known.discard(ended)
            lane = self._lanes.get(key)
            if lane is None or lane.ended:
                name, most = (scoring.key, SLOW_ROWS) if scoring.slow else ("code", CODE_ROWS)
                self._lanes[key] = Lane(name, most, self._hand_on)
            self._known.add(scoring)

    def _hand_on(self, scored: Scored) -> None:
        """Pass what a lane scored to the writer of its store."""
        self.writer(scored.entries[0].scoring.store).put(scored)

    def _rescue(self) -> int:
        """End the threads and keep what they leave in the spill files: results in their order, then calls that were not scored."""
        entries = [entry for lane in list(self._lanes.values()) for entry in lane.take_back()]  # first, so that they hand on nothing more
        lost = 0
        for writer in list(self._writers.values()):
            lost += _spilled(writer, [row for scored in writer.take_back() for row in scored.rows if row is not None])
        for scoring, mine in grouped(entries).items():
            lost += _spilled(self.writer(scoring.store), scoring.cancelled([entry.item for entry in mine]))
        return lost


def _spilled(writer: Writer, rows: Sequence[EncodedRow]) -> int:
    """Commit rows in a writer's spill file; return how many could not be."""
    try:
        if rows:
            writer.spill(rows)
    except StoreError as error:
        LOG.error("%d live scores are lost, since neither the store nor the spill file can be written. %s", len(rows), error)
        return len(rows)
    return 0
