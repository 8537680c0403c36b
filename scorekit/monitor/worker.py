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
from typing import TYPE_CHECKING, Any, Final

from scorekit.monitor.background import ThreadBackground
from scorekit.monitor.counters import Counters
from scorekit.monitor.process import ProcessBackground, check_sendable
from scorekit.monitor.scoring import LOG, Scoring

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from scorekit.monitor.channel import Channel, Item, LiveStats

EXIT_S: Final = 5.0
"""How long the end of the process waits for what is not stored yet; the rest goes to the spill file."""

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


_state = _State()
_inherited: list[_State] = []
"""States of the parent in a forked child: kept, so that nothing of them is closed there."""

_channels: weakref.WeakSet[OpenChannel] = weakref.WeakSet()
"""Those of functions that are still there."""


class OpenChannel:
    """An attached channel: it takes calls, within its capacity.

    Attributes
    ----------
    rows
        How many rows are on their way: neither stored nor spilled.
    """

    def __init__(self, channel: Channel) -> None:
        """Rehearse the scorers."""
        self.channel = channel
        self.scorings = tuple(Scoring(channel, place) for place in range(len(channel.scorers)))
        self.forget()

    def forget(self) -> None:
        """Count from nothing: what a forked child inherited is its parent's."""
        self.rows = self._characters = 0

    def offer(self, item: Item) -> bool:
        """Hand over a call; False where it was dropped."""
        size = _size(item)
        if not self._fits(item, size):
            deadline = time.monotonic() + self.channel.block_timeout_s
            while self.channel.full == "block" and time.monotonic() < deadline:
                time.sleep(ROOM_S)
                if self._fits(item, size):
                    break
            else:
                return self._dropped(item)
        return self._submitted(item, size)

    async def offer_async(self, item: Item) -> bool:
        """Hand over a call; where it must wait for room the loop runs on."""
        size = _size(item)
        if not self._fits(item, size):
            deadline = time.monotonic() + self.channel.block_timeout_s
            while self.channel.full == "block" and time.monotonic() < deadline:
                await asyncio.sleep(ROOM_S)
                if self._fits(item, size):
                    break
            else:
                return self._dropped(item)
        return self._submitted(item, size)

    def release(self, rows: int, size: int) -> None:
        """Make room."""
        with _state.counters.lock:
            self.rows -= rows
            self._characters -= size

    def _fits(self, item: Item, size: int) -> bool:
        """Take room for a call where there is any; a single call always fits, however large."""
        rows = len(item.picked)
        with _state.counters.lock:
            full = self.rows + rows > self.channel.capacity or self._characters + rows * size > MOST_CHARACTERS
            if full and self.rows:
                return False
            self.rows += rows
            self._characters += rows * size
        return True

    def _dropped(self, item: Item) -> bool:
        """Count a call that found no room."""
        _state.counters.add(dropped=len(item.picked))
        return False

    def _submitted(self, item: Item, size: int) -> bool:
        """Pass a call to the background, which starts with the first one; once that has ended the call is dropped."""
        if _state.closed:
            self.release(len(item.picked), len(item.picked) * size)
            return self._dropped(item)
        try:
            if self.channel.worker == "process":
                _process().submit(self, item, size)
            else:
                _thread().submit(self, self.channel, self.scorings, item, size)
        except Exception:  # noqa: BLE001  (nothing of ours reaches the caller)
            LOG.exception("A call could not be handed to the background.")
            self.release(len(item.picked), len(item.picked) * size)
            return self._dropped(item)
        return True


def attach(channel: Channel) -> OpenChannel:
    """Make a channel ready for calls; nothing starts before the first one.

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
    return opened


def note(calls: int = 0, skipped: int = 0, picked: int = 0, hook_errors: int = 0) -> None:
    """Add to the process's counters."""
    if calls == 1 and not skipped:
        _state.counters.add_call(picked)
    else:
        _state.counters.add(calls=calls, skipped=skipped, picked=picked)
    if hook_errors:
        _state.counters.add(hook_errors=hook_errors)


def stats() -> LiveStats:
    """Return what live scoring has done in this process."""
    state = _state
    more = {} if state.process is None else state.process.counts()
    more["spilled"] = max(
        more.get("spilled", 0), 0 if state.thread is None else state.thread.spilled
    )  # of one store both see the same file
    with state.counters.lock:
        waiting = sum(channel.rows for channel in _channels)
    return state.counters.stats(waiting=waiting, **more)


def flush(timeout_s: float) -> bool:
    """Wait until everything handed over so far is committed in its store; return whether it is."""
    deadline = time.monotonic() + timeout_s
    running = [background for background in (_state.thread, _state.process) if background is not None]
    done = [background.flush(max(0.0, deadline - time.monotonic())) for background in running]  # each, also where the first is not done
    return all(done)


def close(timeout_s: float = EXIT_S) -> None:
    """End the backgrounds: what is not stored within the time goes to the spill file. Calls made later are dropped."""
    state = _state
    if state.closed:
        return
    state.closed = True
    deadline = time.monotonic() + timeout_s
    running = [background for background in (state.process, state.thread) if background is not None]
    for background in running:
        state.counters.add(lost=background.close(max(0.0, deadline - time.monotonic())))


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
    return sum(len(cell) for cell in (item.input, item.output, item.context, item.metadata) if cell is not None)


def _close_at_exit() -> None:
    """Close, in a thread that is left behind where something hangs for good."""
    if _state.thread is None and _state.process is None:
        _state.closed = True  # a first call after this would start what nobody ends
        return
    closing = threading.Thread(target=close, name="scorekit-live-exit", daemon=True)
    closing.start()
    closing.join(EXIT_S + 2.0)


def _start_afresh() -> None:
    """In a forked child: nothing waits, nothing is counted; what waits in the parent is the parent's to score."""
    global _state  # noqa: PLW0603
    if _state.process is not None:
        _state.process.let_go()
    _inherited.append(_state)
    _state = _State()
    for channel in list(_channels):
        channel.forget()


def _drain_on_sigterm() -> None:
    """Make SIGTERM drain before it ends the process, where nobody else handles it."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with contextlib.suppress(ValueError, OSError):  # an interpreter inside another program
            signal.signal(signal.SIGTERM, _on_sigterm)


def _on_sigterm(number: int, _: FrameType | None) -> None:
    """Drain in another thread, since this one may hold a lock, then end the process by the same signal; a second one ends it at once."""
    signal.signal(number, signal.SIG_DFL)

    def drain() -> None:
        _close_at_exit()
        os.kill(os.getpid(), number)

    threading.Thread(target=drain, name="scorekit-live-sigterm", daemon=True).start()


_register: Callable[[Callable[..., Any]], Any] = getattr(threading, "_register_atexit", atexit.register)
"""Before pools refuse new work, which a judge's client may need; Python has no public name for that moment."""
_register(_close_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
