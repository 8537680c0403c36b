"""What live scoring counts in a process, and how its threads wake each other: from any thread, signal handler or finalizer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from scorekit.monitor.channel import LiveStats

POLL_S: Final = 0.01


@dataclass(slots=True)
class Tally:
    """What became of some rows of one owner.

    Attributes
    ----------
    rows
        How many are done with.
    size
        The characters of their texts.
    failed, stored, lost
        Of the rows: whose scorer raised; that are committed in the store, not in the spill file; that could be written nowhere.
    """

    rows: int = 0
    size: int = 0
    failed: int = 0
    stored: int = 0
    lost: int = 0


class Owner(Protocol):
    """Who waits for rows to be done with: calls of this process, or a batch that another process sent."""

    def release(self, tally: Tally) -> None:
        """Take note of rows that are done with."""


class Counters:
    """Counters that are added to; re-entrant, since a finalizer may run in the middle of an addition."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.lock = threading.RLock()
        self._counts = dict.fromkeys(LiveStats.__dataclass_fields__, 0)

    def add(self, **counts: int) -> None:
        """Add to counters by name."""
        with self.lock:
            for name, count in counts.items():
                self._counts[name] += count

    def add_call(self, picked: int) -> None:
        """Add a call, of which so many rows were picked: what nearly every call does, and so by a shorter way."""
        with self.lock:
            self._counts["calls"] += 1
            self._counts["picked"] += picked

    def stats(self, **more: int) -> LiveStats:
        """Return the counters, with some that are kept elsewhere."""
        with self.lock:
            counts = dict(self._counts)
        for name, count in more.items():
            counts[name] += count
        return LiveStats(**counts)


class Wake:
    """Wakes a thread that waits. An event would not do: a finalizer that sets it in the middle of a wait of its own thread blocks for ever."""

    def __init__(self) -> None:
        """Wake nobody yet."""
        self._calls: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Wake the thread, or make its next wait end at once."""
        self._calls.put(None)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until woken, and forget further calls; return whether it was woken."""
        try:
            self._calls.get(timeout=timeout_s)
        except Empty:
            return False
        try:
            while True:
                self._calls.get_nowait()
        except Empty:
            return True


def wait_until(done: Callable[[], bool], timeout_s: float) -> bool:
    """Wait until something is so, at most for a time; return whether it is."""
    deadline = time.monotonic() + timeout_s
    while not done():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(POLL_S, left))
    return True
