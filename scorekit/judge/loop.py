"""The background threads of a process with their event loops, and waiting for them in a way that Ctrl-C can end."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator
from concurrent import futures
from typing import Any, Final, TypeVar

CLOSING_S: Final = 2.0
"""How long the exit of the process waits for open connections to close."""

Made = TypeVar("Made")


class Background:
    """A daemon thread that runs an event loop, and what lives on it.

    Parameters
    ----------
    name
        Of the thread.

    Attributes
    ----------
    kept
        What the process keeps by key (engines, caches, what endpoints can do): see `keep`.
    closers
        Called on the loop when the process ends.
    """

    def __init__(self, name: str = "judge") -> None:
        """Start nothing yet: the thread begins with the first request."""
        self._name = f"scorekit-{name}"
        self.kept: dict[Any, Any] = {}
        self.closers: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def keep(self, key: Any, make: Callable[[], Made]) -> Made:
        """Return what is kept under a key, made at the first call."""
        with self._lock:
            if key not in self.kept:
                self.kept[key] = make()
            found: Made = self.kept[key]
            return found

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; its thread starts at the first use."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def is_current_thread(self) -> bool:
        """Return whether the caller runs on the loop's own thread, where waiting for it would never end."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """End the loop: open requests are dropped, connections closed; silent, and never longer than `CLOSING_S`."""
        with self._lock:
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):  # the loop may have ended by itself
            loop.call_soon_threadsafe(lambda: loop.create_task(self._close(loop)))
            thread.join(CLOSING_S)

    async def _close(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what runs, close what is open, stop the loop."""
        tasks = asyncio.all_tasks(loop) - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        with contextlib.suppress(BaseException):
            async with asyncio.timeout(CLOSING_S / 2):
                await asyncio.gather(*tasks, return_exceptions=True)
                await asyncio.gather(*(close() for close in self.closers), return_exceptions=True)
        loop.stop()

    @staticmethod
    def _run(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()


_state: dict[str, Background] = {}
_inherited: list[Background] = []


def background(name: str = "judge") -> Background:
    """Return the process's background of that name: judges share one, and functions of the user's run on another, where they may ask and wait."""
    return _state.get(name) or _state.setdefault(name, Background(name))


def _start_afresh() -> None:
    """In a forked child: keep what was inherited referenced, untouched, and begin with nothing.

    Dropping an inherited loop closes descriptors that the parent still waits on, and hung it.
    """
    while _state:
        _inherited.append(_state.popitem()[1])


def _close_at_exit() -> None:
    for here in list(_state.values()):
        here.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh)
atexit.register(_close_at_exit)


def wait_any(waiting: Collection[futures.Future[Any]], timeout_s: float | None = None) -> set[futures.Future[Any]]:
    """Wait in the caller's thread until one of the futures is done; return those that are.

    Parameters
    ----------
    waiting
        The futures: done means with a result, an exception or cancelled.
    timeout_s
        Return after this many seconds even where none is done. None waits for ever.

    Returns
    -------
    set
        The futures that are done; empty where the time was up.

    Raises
    ------
    KeyboardInterrupt
        In the main thread on SIGINT, inside ``asyncio.run`` or a notebook cell with ``await`` too, where Python alone would wait on.
    """
    with interruptible():
        return set(futures.wait(waiting, timeout_s, return_when=futures.FIRST_COMPLETED).done)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt in the main thread meanwhile, then put the handler back.

    ``asyncio.run`` and notebook cells with ``await`` handle SIGINT by cancelling a task of a loop that cannot run while we wait in it.
    A SIGINT that the process ignores stays ignored.
    """
    handler = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if handler in (None, signal.SIG_IGN, signal.default_int_handler):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
