"""Calls of functions of the user's, sync or async, a few at a time: what each gave, or what it raised, comes as it is ready."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any

from scorekit.drive import POLL_S
from scorekit.judge.loop import background, interruptible
from scorekit.progress import SHARED, Progress
from scorekit.texts import without_surrogates


@dataclass(frozen=True, slots=True)
class Called:
    """What became of one call.

    Attributes
    ----------
    index
        Which of the calls.
    value
        What the function returned.
    error
        What it raised.
    seconds
        How long it took; waiting for its turn does not count.
    """

    index: int
    value: Any = None
    error: BaseException | None = None
    seconds: float = 0.0


class Calls:
    """Calls functions, at most so many at a time, and puts what came of each into a queue.

    Each call runs in a daemon thread, so that neither a slow one nor the end of the process waits for another. What a function returns is awaited
    where it is awaitable, on an event loop that all such calls of the process share. Scorers and `generate` inside a function show no bar.
    """

    def __init__(self, calls: Sequence[Callable[[], Any]], concurrency: int, done: SimpleQueue[Any]) -> None:
        """Start calling, in order."""
        self._calls = calls
        self._done = done
        self._indices = iter(range(len(calls)))
        self._lock = threading.Lock()
        self._stopped = False
        self._awaited: set[Future[Any]] = set()
        self._inside = Progress()
        self._context = copy_context()
        self._context.run(SHARED.set, self._inside)
        for _ in range(min(concurrency, len(calls))):
            threading.Thread(target=self._work, name="scorekit-call", daemon=True).start()

    def stop(self) -> None:
        """Call no more; what is awaited is cancelled, and what a thread is in the middle of ends by itself, unheard."""
        with self._lock:
            self._stopped = True
            awaited = list(self._awaited)
        self._inside.stopped = True
        for future in awaited:
            future.cancel()

    def _work(self) -> None:
        """Call one function after the other, until none is left."""
        while (index := self._take()) is not None:
            began = perf_counter()
            value = error = None
            try:
                value = self._context.copy().run(self._call, self._calls[index])
            except BaseException as raised:  # noqa: BLE001  (told to whoever reads the queue)
                error = raised
                if not isinstance(raised, Exception):
                    self._stopped = True
            self._done.put(Called(index, value, error, perf_counter() - began))

    def _take(self) -> int | None:
        """Return the next call's number; None where there is none."""
        with self._lock:
            return None if self._stopped else next(self._indices, None)

    def _call(self, call: Callable[[], Any]) -> Any:
        """Call a function and await what it returns."""
        value = call()
        if not inspect.isawaitable(value):
            return value
        future = asyncio.run_coroutine_threadsafe(_awaited(value), background("calls").loop)
        with self._lock:
            self._awaited.add(future)
            if self._stopped:
                future.cancel()
        try:
            returned, raised = future.result()
        finally:
            with self._lock:
                self._awaited.discard(future)
        if raised is not None:
            raise raised
        return returned


async def _awaited(value: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Await; what would end the loop's thread for everybody is handed on instead."""
    try:
        return await value, None
    except (KeyboardInterrupt, SystemExit) as error:
        return None, error


def next_event(events: SimpleQueue[Any]) -> Any:
    """Return what comes next, or None where nothing has come for a moment. Ctrl-C raises KeyboardInterrupt, in a running event loop too."""
    with interruptible():
        try:
            return events.get(timeout=POLL_S)
        except Empty:
            return None


def told(error: BaseException) -> str:
    """Return what a function raised as a row's reason."""
    try:
        message = without_surrogates(" ".join(str(error).split()))
    except Exception:  # noqa: BLE001  (its __str__ is the user's too)
        message = ""
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return text if len(text) <= MOST_TOLD else text[: MOST_TOLD - 1] + "…"


MOST_TOLD = 300
"""How many characters of an exception a row's reason shows."""
