"""The background as a process of its own: this side hands over calls through a pipe, and sends them again where that process dies."""

from __future__ import annotations

import importlib
import pickle
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scorekit.errors import ArgumentTypeError
from scorekit.monitor.background import POLL_S, ThreadBackground, wait_until
from scorekit.monitor.launched import Launched
from scorekit.monitor.scoring import LOG

if TYPE_CHECKING:
    from scorekit.monitor.channel import Channel, Item
    from scorekit.monitor.counters import Counters
    from scorekit.monitor.worker import OpenChannel

GATHER_S: Final = 0.05
"""How long calls gather before they are sent."""

BATCH: Final = 64
"""How many calls are sent at once: few, since pickling them holds the interpreter."""

MOST_DEATHS: Final = 2
"""How often the process may die with one call alone before that call is kept without a score."""

MOST_STARTS: Final = 3
"""How often in a row the process may fail to start before its scorers run in a thread of this one."""

DIED: Final = "The process that scored this died."


def check_sendable(channel: Channel) -> None:
    """Raise an `ArgumentTypeError` where a channel cannot be sent to another process."""
    try:
        _dumped(channel)
    except Exception as error:
        hint = "Define the scorers in a module that can be imported, or pip install cloudpickle, or take worker='thread'."
        msg = f"worker='process' sends the scorers of {channel.entity_id!r} to another process, but they cannot be sent: {error}. {hint}"
        raise ArgumentTypeError(msg) from error


def _dumped(channel: Channel) -> bytes:
    """Return a channel as bytes: by cloudpickle where that is installed, so that functions of a script or notebook can be sent."""
    pickler: Any = pickle
    try:
        pickler = importlib.import_module("cloudpickle")
    except ImportError:
        for attached in channel.scorers:
            if getattr(attached.scorer, "__module__", "") == "__main__":
                msg = f"{attached.key!r} is defined in the script or notebook itself, which the other process does not run"
                raise TypeError(msg) from None
    dumped: bytes = pickler.dumps(channel)
    return dumped


@dataclass(eq=False, slots=True)
class Sent:
    """A call on its way: of which channel, the size of its texts, and how often the process died with it alone."""

    channel: OpenChannel
    item: Item
    size: int
    deaths: int = 0


class ProcessBackground:
    """Scores and stores in a process of its own, which starts with the first call, at a lower priority, and ends with this one."""

    def __init__(self, counters: Counters) -> None:
        """Start the thread that sends."""
        self._counters = counters
        self._queue: deque[Sent] = deque()
        self._again: deque[list[Sent]] = deque()
        self._under_way: dict[int, list[Sent]] = {}
        self._numbers: dict[OpenChannel, int] = {}
        self._refused: set[OpenChannel] = set()
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._idle = self._hurry = self._stopped = False
        self._child: Launched | None = None
        self._batches = self._failed_starts = 0
        self._counts: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._local: ThreadBackground | None = None
        threading.Thread(target=self._run, name="scorekit-live-sender", daemon=True).start()

    def submit(self, channel: OpenChannel, item: Item, size: int) -> None:
        """Take a call; wakes the thread only where it had nothing to do."""
        self._queue.append(Sent(channel, item, size))
        if self._idle:
            self._idle = False
            self._wake.set()

    @property
    def pid(self) -> int | None:
        """The id of the process that scores; None where none runs."""
        return None if self._child is None else self._child.pid

    def counts(self) -> dict[str, int]:
        """Return what the processes have counted: those that died up to their last report."""
        with self._lock:
            counts = {name: self._counts.get(name, 0) + self._before.get(name, 0) for name in {*self._counts, *self._before}}
            counts["spilled"] = max(self._counts.get("spilled", 0), 0 if self._local is None else self._local.spilled)
        return counts

    @property
    def settled(self) -> bool:
        """Whether everything handed over is committed, in its store or in the spill file."""
        with self._lock:
            return not (self._queue or self._again or self._under_way) and (self._local is None or self._local.settled)

    def hurry(self) -> None:
        """Send, score and store what waits now."""
        self._hurry = True
        self._wake.set()
        if self._local is not None:
            self._local.hurry()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything handed over is committed in its store, as far as the process has reported; return whether it is."""
        self.hurry()
        return wait_until(lambda: self.settled and not self.counts()["spilled"], timeout_s)

    def close(self, timeout_s: float) -> int:
        """Wait for the rest, end the process, and spill what it has not done. Return how many rows could be written nowhere."""
        deadline = time.monotonic() + timeout_s
        self.hurry()
        done = wait_until(lambda: self.settled, timeout_s / 2)
        self._stopped = True
        self._wake.set()
        if self._child is not None:
            self._child.end(1.0 if done else max(0.5, deadline - time.monotonic() - 1.0))
        with self._lock:
            left = [sent for batch in (*self._under_way.values(), *self._again, self._queue) for sent in batch]
        for sent in left:
            self._in_threads().give_up(sent.channel, sent.channel.scorings, sent.item, sent.size)
        return 0 if self._local is None else self._local.close(max(1.0, deadline - time.monotonic()))

    def let_go(self) -> None:
        """In a forked child: leave the process to the parent."""
        self._stopped = True
        if self._child is not None:
            self._child.let_go()

    def _run(self) -> None:
        """Keep the process alive and send what waits."""
        while not self._stopped:
            child = self._child
            try:
                if self._hurry and child is not None and child.alive:
                    self._hurry = False
                    child.send("hurry")
                died = child is not None and not child.alive
                if not (self._queue or self._again or died):
                    self._sleep()
                    continue
                child = self._started()
                if child is not None:
                    if not self._hurry and len(self._queue) < BATCH:
                        time.sleep(GATHER_S)
                    self._send(child)
            except OSError:  # the other end of the pipe is closed: the next round finds the process dead
                time.sleep(POLL_S)

    def _sleep(self) -> None:
        """Wait for a call, or for a while where the process might die meanwhile."""
        self._wake.clear()
        self._idle = True
        if not (self._queue or self._again or self._hurry):  # one may have come between the two lines above
            self._wake.wait(1.0 if self._under_way else None)
        if self._child is None:
            self._hurry = False
        self._idle = False

    def _started(self) -> Launched | None:
        """Return the process, started anew where it is not alive; None where it cannot be started now."""
        if self._child is not None and self._child.alive:
            return self._child
        if self._child is not None:
            self._take_back(self._child)
        if self._failed_starts >= MOST_STARTS:
            self._score_all_here()
            return None
        try:
            self._child = Launched(self._report)
            for channel, number in self._numbers.items():
                self._child.send("channel", number, _dumped(channel.channel))
        except OSError as error:
            self._failed_starts += 1
            LOG.warning("The process for live scoring cannot be started: %s", error)
            time.sleep(0.5 * self._failed_starts)
        return self._child

    def _take_back(self, child: Launched) -> None:
        """After a death: what was under way is sent again, a batch at a time, then a call at a time, so that a deadly one is found."""
        child.end(0.5)
        self._child = None
        with self._lock:
            batches = list(self._under_way.values())
            self._under_way.clear()
            for name, count in self._counts.items():
                self._before[name] = self._before.get(name, 0) + count
            self._counts = {"spilled": self._counts.get("spilled", 0)}  # the next one counts anew what waits there
            if len(batches) == 1:
                batches = [[sent] for sent in batches[0]]
            if len(batches) == 1:
                batches[0][0].deaths += 1
            self._again.extendleft(reversed(batches))
        self._failed_starts += not child.was_ready
        if not self._stopped:
            LOG.warning("The process for live scoring died (exit code %s); it is started anew.", child.exit_code)
            time.sleep(0.2 + 0.5 * self._failed_starts)

    def _send(self, child: Launched) -> None:
        """Send a batch; of those that a process died with one at a time."""
        with self._lock:
            careful = bool(self._again)
            if careful:
                batch = [] if self._under_way else self._again.popleft()
            else:
                batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH))]
            batch = [sent for sent in batch if self._may_be_sent(child, sent)]
            if batch:
                self._batches += 1
                number = self._batches
                self._under_way[number] = batch
        if not batch:
            time.sleep(POLL_S)
            return
        child.send("calls", number, [(self._numbers[sent.channel], sent.item, sent.size) for sent in batch])
        if careful:
            child.send("hurry")

    def _may_be_sent(self, child: Launched, sent: Sent) -> bool:
        """Return whether a call goes to the process, which is told of a new channel; other calls are dealt with here."""
        if sent.channel in self._refused:
            self._score_here(sent)
            return False
        if sent.deaths >= MOST_DEATHS:
            LOG.error("A call of %r ended the process that scores each time; it is kept without a score.", sent.channel.channel.entity_id)
            self._in_threads().give_up(sent.channel, sent.channel.scorings, sent.item, sent.size, code="scorer_error", why=DIED)
            return False
        if sent.channel not in self._numbers:
            self._numbers[sent.channel] = len(self._numbers)
            child.send("channel", self._numbers[sent.channel], _dumped(sent.channel.channel))
        return True

    def _report(self, message: tuple[Any, ...]) -> None:
        """Take what the process says; runs in the thread that reads."""
        kind, *rest = message
        if kind == "refused":
            self._refuse(*rest)
            return
        with self._lock:
            self._counts = rest[0]
            done = self._under_way.pop(rest[1], []) if kind == "done" else []
            self._failed_starts = 0
        for sent in done:
            rows = len(sent.item.picked)
            sent.channel.release(rows, rows * sent.size)

    def _refuse(self, number: int, why: str) -> None:
        """Score in this process what the other cannot load."""
        with self._lock:
            channel = next(channel for channel, of in self._numbers.items() if of == number)
            self._refused.add(channel)
            for key, batch in list(self._under_way.items()):
                for sent in [sent for sent in batch if sent.channel is channel]:
                    batch.remove(sent)
                    self._score_here(sent)
                if not batch:
                    del self._under_way[key]
        LOG.warning("The scorers of %r run in a thread, since the other process cannot load them: %s", channel.channel.entity_id, why)

    def _score_all_here(self) -> None:
        """Score in this process what waits, since no other can be started."""
        with self._lock:
            waiting = [sent for batch in self._again for sent in batch]
            self._again.clear()
            while self._queue:
                waiting.append(self._queue.popleft())
        if waiting and self._local is None:
            LOG.warning("The process for live scoring does not start; its scorers run in a thread.")
        for sent in waiting:
            self._score_here(sent)
        time.sleep(GATHER_S)

    def _score_here(self, sent: Sent) -> None:
        """Score a call in a thread of this process."""
        self._in_threads().submit(sent.channel, sent.channel.channel, sent.channel.scorings, sent.item, sent.size)

    def _in_threads(self) -> ThreadBackground:
        """Return the threads of this process that do what the other cannot."""
        with self._lock:
            if self._local is None:
                self._local = ThreadBackground(self._counters)
            return self._local
