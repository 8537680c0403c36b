"""What live scoring counts in a process, from any thread, signal handler or finalizer."""

from __future__ import annotations

import threading

from scorekit.monitor.channel import LiveStats


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
