"""What scores and stores behind the calls of this process: attached channels, the two kinds of background, and how they end."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401  (its own exit handler must be registered before ours, so that it runs after)
import contextlib
import os
import signal
import threading
import time
import weakref
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scorekit.monitor.background import ThreadBackground
from scorekit.monitor.counters import Counters, Tally, wait_until
from scorekit.monitor.process import ProcessBackground, check_sendable
from scorekit.monitor.scoring import LOG, Scoring
from scorekit.monitor.writer import is_there, spill_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from scorekit.monitor.channel import Channel, Item, LiveStats

EXIT_S: Final = 5.0
"""How long the end of the process waits for what is not stored yet; the rest goes to the spill file."""

LAST_S: Final = 1.0
"""How long it waits once more at the very end, for calls that came meanwhile."""

MOST_S: Final = 5.0
"""How long spilling may take then."""

MOST_CHARACTERS: Final = 2**28
"""How many characters of texts may wait in a channel, whatever its capacity in rows."""

ROOM_S: Final = 0.002
"""How often a call that blocks looks for room."""


class _State:
    """What a process has; a forked child begins with a new one."""

    def __init__(self) -> None:
        self.counters = Counters()
        self.thread: ThreadBackground | None = None
        self.process: ProcessBackground | None = None
        self.closed = False
        self.ended = threading.Event()
        self.epoch = 0
        self.pending: dict[int, int] = {}
        """How many rows are on their way, by the epoch in which they were handed over; each flush ends one."""

    def running(self) -> list[ThreadBackground | ProcessBackground]:
        """Return the backgrounds that have started."""
        return [background for background in (self.process, self.thread) if background is not None]

    def spilled(self) -> int:
        """Return how many rows wait in spill files; of one store the backgrounds see the same file."""
        found: dict[Path, int] = {}
        for background in self.running():
            for path, count in background.spilled.items():
                found[path] = max(count, found.get(path, 0))
        return sum(found.values())

    def end_epoch(self) -> int:
        """End an epoch, so that what comes later is not waited for, hurry what is in it, and return it."""
        with self.counters.lock:
            epoch = self.epoch
            self.epoch += 1
        for background in self.running():
            background.hurry()
        return epoch

    def is_done(self, epoch: int) -> bool:
        """Return whether all rows up to an epoch are committed."""
        with self.counters.lock:
            return not any(of <= epoch for of in self.pending)


_state = _State()
_inherited: list[_State] = []
"""States of the parent in a forked child: kept, so that nothing of them is closed there."""

_channels: weakref.WeakSet[OpenChannel] = weakref.WeakSet()
"""Those of functions that are still there."""


class Ticket(NamedTuple):
    """Rows on their way: of which process, channel and epoch."""

    state: _State
    channel: OpenChannel
    epoch: int

    def release(self, tally: Tally) -> None:
        """Make room, and count what became of the rows."""
        with self.state.counters.lock:
            self.channel.take(-tally.rows, -tally.size)
            left = self.state.pending[self.epoch] - tally.rows
            if left:
                self.state.pending[self.epoch] = left
            else:
                del self.state.pending[self.epoch]
            self.state.counters.add(scored=tally.rows - tally.lost, failed=tally.failed, stored=tally.stored, lost=tally.lost)


class OpenChannel:
    """An attached channel: it takes calls, within its capacity."""

    def __init__(self, channel: Channel) -> None:
        """Rehearse the scorers."""
        self.channel = channel
        self.scorings = tuple(Scoring(channel, place) for place in range(len(channel.scorers)))
        self.forget()

    def forget(self) -> None:
        """Count from nothing: what a forked child inherited is its parent's."""
        self._rows = self._characters = 0

    def take(self, rows: int, characters: int) -> None:
        """Take room, or give it back; the counters' lock is held."""
        self._rows += rows
        self._characters += characters

    def offer(self, item: Item) -> bool:
        """Hand over a call; False where it was dropped."""
        size = _size(item)
        ticket = self._fits(item, size)
        if ticket is None and self.channel.full == "block":
            deadline = time.monotonic() + self.channel.block_timeout_s
            while ticket is None and time.monotonic() < deadline:
                time.sleep(ROOM_S)
                ticket = self._fits(item, size)
        return self._dropped(item) if ticket is None else self._submitted(ticket, item, size)

    async def offer_async(self, item: Item) -> bool:
        """Hand over a call; where it must wait for room the loop runs on."""
        size = _size(item)
        ticket = self._fits(item, size)
        if ticket is None and self.channel.full == "block":
            deadline = time.monotonic() + self.channel.block_timeout_s
            while ticket is None and time.monotonic() < deadline:
                await asyncio.sleep(ROOM_S)
                ticket = self._fits(item, size)
        return self._dropped(item) if ticket is None else self._submitted(ticket, item, size)

    def _fits(self, item: Item, size: int) -> Ticket | None:
        """Take room for a call where there is any; a single call always fits, however large."""
        rows, state = len(item.picked), _state
        with state.counters.lock:
            full = self._rows + rows > self.channel.capacity or self._characters + rows * size > MOST_CHARACTERS
            if full and self._rows:
                return None
            self.take(rows, rows * size)
            state.pending[state.epoch] = state.pending.get(state.epoch, 0) + rows
            return Ticket(state, self, state.epoch)

    def _dropped(self, item: Item) -> bool:
        """Count a call that found no room."""
        _state.counters.add(dropped=len(item.picked))
        return False

    def _submitted(self, ticket: Ticket, item: Item, size: int) -> bool:
        """Pass a call to the background, which starts with the first one; once that has ended the call is dropped."""
        try:
            if not ticket.state.closed:
                background = _process() if self.channel.worker == "process" else _thread()
                background.submit(ticket, self.scorings, item, size)
                return True
        except Exception:  # noqa: BLE001  (nothing of ours reaches the caller)
            LOG.exception("A call could not be handed to the background.")
        rows = len(item.picked)
        ticket.release(Tally(rows, rows * size, lost=rows))
        ticket.state.counters.add(lost=-rows, dropped=rows)
        return False


def attach(channel: Channel) -> OpenChannel:
    """Make a channel ready for calls; nothing starts before the first one, but to send what an earlier process left in the spill file.

    Raises
    ------
    ArgumentTypeError
        Where ``worker="process"`` and a scorer cannot be sent to another process.
    Exception
        What is wrong with a scorer for every row, see `Scoring`.
    """
    opened = OpenChannel(channel)
    if channel.worker == "process":
        check_sendable(channel)
    with _state.counters.lock:
        _channels.add(opened)
    _drain_on_sigterm()
    if not _state.closed and is_there(spill_path(channel.store)):
        _thread().writer(channel.store)
    return opened


def note(**counts: int) -> None:
    """Add to the process's counters, by the names of `LiveStats`."""
    _state.counters.add(**counts)


def count_call(picked: int) -> None:
    """Add a call, of which so many rows were picked."""
    _state.counters.add_call(picked)


def stats() -> LiveStats:
    """Return what live scoring has done in this process."""
    state = _state
    more = {} if state.process is None else state.process.counts()
    with state.counters.lock:
        waiting = sum(state.pending.values())
    return state.counters.stats(waiting=waiting, spilled=state.spilled(), **more)


def flush(timeout_s: float) -> bool:
    """Wait until everything handed over so far is committed in its store; return whether it is. A scorer cannot wait for itself: False."""
    state = _state
    if threading.current_thread().name.startswith("scorekit-live-"):
        return False
    epoch = state.end_epoch()
    return wait_until(lambda: state.is_done(epoch) and not state.spilled(), timeout_s)


def close(timeout_s: float = EXIT_S) -> None:
    """End the backgrounds: what is not stored within the time goes to the spill file. Calls made later are dropped."""
    state = _state
    with state.counters.lock:
        first, state.closed = not state.closed, True
    if not first:  # SIGTERM in the middle of the end, say: whoever is second waits for the first
        state.ended.wait(timeout_s + LAST_S)
        return
    deadline = time.monotonic() + timeout_s
    for background in state.running():
        state.counters.add(lost=background.close(max(0.0, deadline - time.monotonic())))
    state.ended.set()


def reset() -> None:
    """Close, and begin anew as a process does; for tests."""
    global _state  # noqa: PLW0603
    close(1.0)
    _state = _State()
    for channel in list(_channels):
        channel.forget()


def worker_pid() -> int | None:
    """Return the id of the process that scores for this one; None where none runs."""
    return None if _state.process is None else _state.process.pid


def _thread() -> ThreadBackground:
    """Return the process's thread background."""
    if _state.thread is None:
        with _state.counters.lock:
            if _state.thread is None:
                _state.thread = ThreadBackground(_state.counters)
    return _state.thread


def _process() -> ProcessBackground:
    """Return the process's process background."""
    if _state.process is None:
        with _state.counters.lock:
            if _state.process is None:
                _state.process = ProcessBackground(_state.counters)
    return _state.process


def _size(item: Item) -> int:
    """Return the size of a call's texts."""
    return len(item.input or "") + len(item.output or "") + len(item.context or "") + len(item.metadata or "")


def _drain_at_exit() -> None:
    """When the main thread has ended: wait for what waits, while pools still take work. Threads that run on may call until they end."""
    state = _state
    epoch = state.end_epoch()
    with contextlib.suppress(KeyboardInterrupt):  # the rest is spilled, then
        wait_until(lambda: state.is_done(epoch) or state.closed, EXIT_S)
    if parent_process() is not None:  # a child of multiprocessing, which ends without exit handlers
        _close_at_exit()


def _close_at_exit() -> None:
    """Close, in a thread that is left behind where something hangs for good."""
    state = _state
    if not state.running():
        state.closed = True  # a first call after this would start what nobody ends
        return
    closing = threading.Thread(target=close, args=(LAST_S,), name="scorekit-live-exit", daemon=True)
    closing.start()
    deadline = time.monotonic() + MOST_S
    while closing.is_alive() and time.monotonic() < deadline:
        with contextlib.suppress(KeyboardInterrupt):  # it takes this little time in any case
            closing.join(max(0.0, deadline - time.monotonic()))
    if closing.is_alive():
        with state.counters.lock:
            waiting = sum(state.pending.values())
        LOG.error("Live scoring did not end in time: %d rows may be lost.", waiting)


def _start_afresh() -> None:
    """In a forked child: nothing waits, nothing is counted; what waits in the parent is the parent's to score."""
    global _state  # noqa: PLW0603
    _inherited.append(_state)
    _state = _State()
    for channel in list(_channels):
        channel.forget()
    if _inherited[-1].process is not None:
        _inherited[-1].process.let_go()


def _drain_on_sigterm() -> None:
    """Make SIGTERM drain before it ends the process, where nobody else handles it; the first process of a container it does not end."""
    if os.getpid() != 1 and threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with contextlib.suppress(ValueError, OSError):  # an interpreter inside another program
            signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, _: FrameType | None) -> None:
    """Drain in another thread, since this one may hold a lock, then end the process by the same signal; a second one ends it at once."""
    signal.signal(number, signal.SIG_DFL)

    def drain() -> None:
        _drain_at_exit()
        _close_at_exit()
        os.kill(os.getpid(), number)

    threading.Thread(target=drain, name="scorekit-live-sigterm", daemon=True).start()


atexit.register(_close_at_exit)
_register: Callable[[Callable[..., Any]], Any] = getattr(threading, "_register_atexit", atexit.register)
"""Before pools refuse new work, which a judge's client may need; Python has no public name for that moment."""
_register(_drain_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
