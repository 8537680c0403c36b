"""The background as a process of its own: this side hands over calls through a pipe, and sends them again where that process dies."""

from __future__ import annotations

import importlib
import itertools
import pickle
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scorekit.errors import ArgumentTypeError
from scorekit.monitor.background import ThreadBackground
from scorekit.monitor.counters import POLL_S, Tally, Wake, wait_until
from scorekit.monitor.launched import Launched
from scorekit.monitor.scoring import LOG

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scorekit.monitor.channel import Channel, Item
    from scorekit.monitor.counters import Counters
    from scorekit.monitor.scoring import Scoring
    from scorekit.monitor.worker import OpenChannel, Ticket

GATHER_S: Final = 0.05
"""How long calls gather before they are sent."""

BATCH: Final = 64
"""How many calls are sent at once: few, since pickling them holds the interpreter."""

MOST_DEATHS: Final = 2
"""How often the process may die with one call alone before that call is kept without a score."""

MOST_DEADLY: Final = 10
"""How often the process may die with single calls of one function before all further ones are kept without a score: each death holds up all others."""

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
    """A call on its way, the size of its texts, and how often the process died with it alone."""

    ticket: Ticket
    scorings: Sequence[Scoring]
    item: Item
    size: int
    deaths: int = 0


class ProcessBackground:
    """Scores and stores in a process of its own, which starts with the first call, at a lower priority, and ends with this one."""

    def __init__(self, counters: Counters) -> None:
        """Start the thread that sends."""
        self._lock = threading.RLock()
        """Held while calls move; never while something is sent."""
        self._queue: deque[Sent] = deque()
        self._again: deque[list[Sent]] = deque()
        self._under_way: dict[int, list[Sent]] = {}
        self._numbers: weakref.WeakKeyDictionary[OpenChannel, int] = weakref.WeakKeyDictionary()
        self._new = itertools.count()
        self._told: set[int] = set()
        self._refused: set[int] = set()
        self._deaths: dict[int, int] = {}
        self._wake = Wake()
        self._idle = self._hurry = self._ended = False
        self._child: Launched | None = None
        self._batches = self._failed_starts = 0
        self._counts: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._spilled: dict[Path, int] = {}
        self._local = ThreadBackground(counters)
        threading.Thread(target=self._run, name="scorekit-live-sender", daemon=True).start()

    def submit(self, ticket: Ticket, scorings: Sequence[Scoring], item: Item, size: int) -> None:
        """Take a call; wakes the thread only where it had nothing to do."""
        with self._lock:
            self._queue.append(Sent(ticket, scorings, item, size))
            idle, self._idle = self._idle, False
        if idle:
            self._wake.set()

    @property
    def pid(self) -> int | None:
        """The id of the process that scores; None where none runs."""
        child = self._child
        return None if child is None or not child.alive else child.pid

    def counts(self) -> dict[str, int]:
        """Return what the processes have counted beside calls: those that died up to their last report."""
        with self._lock:
            return {name: self._counts.get(name, 0) + self._before.get(name, 0) for name in {*self._counts, *self._before}}

    @property
    def spilled(self) -> dict[Path, int]:
        """How many rows wait in each spill file, as far as is reported."""
        with self._lock:
            return {**self._local.spilled, **self._spilled}

    @property
    def settled(self) -> bool:
        """Whether everything handed over is committed, in its store or in the spill file."""
        with self._lock:
            return not (self._queue or self._again or self._under_way) and self._local.settled

    def hurry(self) -> None:
        """Send, score and store what waits now."""
        self._hurry = True
        self._wake.set()
        self._local.hurry()

    def close(self, timeout_s: float) -> int:
        """Wait for the rest, end the process, and spill what it has not done. Return how many rows could be written nowhere."""
        deadline = time.monotonic() + timeout_s
        self.hurry()
        done = wait_until(lambda: self.settled, timeout_s / 2)
        self._ended = True
        self._wake.set()
        if self._child is not None:
            self._child.end(1.0 if done else max(0.5, deadline - time.monotonic() - 1.0))
        with self._lock:
            left = [sent for batch in (*self._under_way.values(), *self._again, self._queue) for sent in batch]
        for sent in left:
            self._local.give_up(sent.ticket, sent.scorings, sent.item, sent.size)
        return self._local.close(max(1.0, deadline - time.monotonic()))

    def let_go(self) -> None:
        """In a forked child: leave the process to the parent."""
        self._ended = True
        if self._child is not None:
            self._child.let_go()

    def _run(self) -> None:
        """Keep the process alive and send what waits."""
        while not self._ended:
            try:
                self._turn()
            except OSError:  # the other end of the pipe is closed: the next turn finds the process dead
                time.sleep(POLL_S)
            except Exception:  # noqa: BLE001  (nobody stands behind this thread, and calls wait for it)
                LOG.exception("Sending calls to the process for live scoring failed; it goes on.")
                time.sleep(1.0)

    def _turn(self) -> None:
        """Send a batch, or wait for calls."""
        child = self._child
        if self._hurry and child is not None and child.alive:
            self._hurry = False
            child.send("hurry")
        with self._lock:
            waits = bool(self._queue or self._again or (self._under_way and child is not None and not child.alive))
            self._idle = not waits
        if not waits:
            self._wake.wait(1.0 if self._under_way else None)
            return
        child = self._started()
        if child is not None:
            if not self._hurry and len(self._queue) < BATCH:
                self._wake.wait(GATHER_S)
            self._send(child)

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
        except Exception as error:  # noqa: BLE001  (OSError, or that no thread can be started, or no executable is known)
            self._failed_starts += 1
            LOG.warning("The process for live scoring cannot be started: %s", error)
            time.sleep(0.5 * self._failed_starts)
            return None
        for channel, number in list(self._numbers.items()):  # so that it sends what waits in their spill files
            if number not in self._refused:
                self._tell(self._child, number, channel.channel)
        return self._child

    def _take_back(self, child: Launched) -> None:
        """After a death: what was under way is sent again, a batch at a time, then a call at a time, so that a deadly one is found."""
        child.end(0.5)
        self._child = None
        with self._lock:
            batches = list(self._under_way.values())
            self._under_way.clear()
            self._told.clear()
            for name, count in self._counts.items():
                self._before[name] = self._before.get(name, 0) + count
            self._counts = {}
            if len(batches) == 1:
                batches = [[sent] for sent in batches[0]]
            if len(batches) == 1:
                batches[0][0].deaths += 1
                number = self._number(batches[0][0])
                self._deaths[number] = self._deaths.get(number, 0) + 1
            self._again.extendleft(reversed(batches))
        self._failed_starts += not child.was_ready
        if not self._ended:
            LOG.warning("The process for live scoring died (exit code %s); it is started anew.", child.exit_code)
            time.sleep(0.2 + 0.5 * self._failed_starts)

    def _send(self, child: Launched) -> None:
        """Send a batch; of those that a process died with one at a time."""
        with self._lock:
            careful = bool(self._again)
            if careful:
                taken = [] if self._under_way else self._again.popleft()
            else:
                taken = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH))]
            self._batches += 1
            batch = [sent for sent in taken if self._may_be_sent(sent)]
            if batch:
                self._under_way[self._batches] = batch
            news = {self._number(sent): sent.ticket.channel.channel for sent in batch if self._number(sent) not in self._told}
            calls = [(self._number(sent), sent.item, sent.size) for sent in batch]
            number = self._batches
        for new, channel in news.items():
            if not self._tell(child, new, channel):
                return
        if calls:
            child.send("calls", number, calls)
            if careful:
                child.send("hurry")
        elif not taken:
            time.sleep(POLL_S)

    def _tell(self, child: Launched, number: int, channel: Channel) -> bool:
        """Tell the process of a channel; where it cannot be sent any more (what its functions refer to has changed), score it here."""
        try:
            dumped = _dumped(channel)
        except Exception as error:  # noqa: BLE001  (whatever pickling the user's objects raises)
            self._refuse(number, f"{type(error).__name__}: {error}")
            with self._lock:
                self._again.extendleft([self._under_way.pop(key) for key in sorted(self._under_way) if key == self._batches])
            return False
        self._told.add(number)
        child.send("channel", number, dumped)
        return True

    def _number(self, sent: Sent) -> int:
        """Return the number by which the process knows a channel."""
        channel = sent.ticket.channel
        if channel not in self._numbers:
            self._numbers[channel] = next(self._new)
        return self._numbers[channel]

    def _may_be_sent(self, sent: Sent) -> bool:
        """Return whether a call goes to the process; others are dealt with here."""
        if self._number(sent) in self._refused:
            self._local.submit(sent.ticket, sent.scorings, sent.item, sent.size)
            return False
        deadly = self._deaths.get(self._number(sent), 0) >= MOST_DEADLY
        if sent.deaths >= MOST_DEATHS or deadly:
            if not deadly:
                name = sent.ticket.channel.channel.entity_id
                LOG.error("A call of %r ended the process that scores each time; it is kept without a score.", name)
            self._local.give_up(sent.ticket, sent.scorings, sent.item, sent.size, code="scorer_error", why=DIED)
            return False
        return True

    def _report(self, message: tuple[Any, ...]) -> None:
        """Take what the process says; runs in the thread that reads."""
        kind, *rest = message
        if kind == "refused":
            self._refuse(*rest)
            return
        counts, spilled, *done = rest
        with self._lock:
            self._counts, self._spilled = counts, spilled
            self._failed_starts = 0
            batch = self._under_way.pop(done[0], []) if done else []
        tally = done[1] if done else Tally()
        for sent in batch:
            rows = len(sent.item.picked)
            sent.ticket.release(Tally(rows, rows * sent.size, tally.failed, tally.stored, tally.lost))
            tally = Tally()  # counted with the first one

    def _refuse(self, number: int, why: str) -> None:
        """Score in this process what the other cannot load."""
        with self._lock:
            self._refused.add(number)
            for key, batch in list(self._under_way.items()):
                for sent in [sent for sent in batch if self._number(sent) == number]:
                    batch.remove(sent)
                    self._local.submit(sent.ticket, sent.scorings, sent.item, sent.size)
                if not batch:
                    del self._under_way[key]
        LOG.warning("Scorers run in a thread, since the other process cannot load them: %s", why)

    def _score_all_here(self) -> None:
        """Score in this process what waits, since no other can be started."""
        with self._lock:
            waiting = [sent for batch in (*self._again, self._queue) for sent in batch]
            self._again.clear()
            self._queue.clear()
        if self._failed_starts == MOST_STARTS:
            self._failed_starts += 1
            LOG.warning("The process for live scoring does not start; its scorers run in a thread.")
        for sent in waiting:
            self._local.submit(sent.ticket, sent.scorings, sent.item, sent.size)
        self._wake.wait(GATHER_S)
