"""What an ask is made of: the future of its answers, the questions under way that several asks may share, and what becomes of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scorekit.judge.replies import Answer, Request

if TYPE_CHECKING:
    from scorekit.judge.pace import Clock


class Ask(Future[list[Answer]]):
    """The answers to come of one `submit`. It never counts as running, so that `cancel` works until the last answer."""

    def __init__(self, requests: Sequence[Request], on_answer: Callable[[int, Answer], None] | None) -> None:
        """Begin without answers."""
        super().__init__()
        self.requests = requests
        self.on_cancel: Callable[[], None] | None = None
        self._on_answer = on_answer
        self._answers: list[Answer | None] = [None] * len(requests)
        self._missing = len(requests)

    def cancel(self) -> bool:
        """Take back what has not been answered; its open requests are closed unless another ask shares them."""
        if self.cancelled() or not super().cancel():
            return self.cancelled()
        with contextlib.suppress(InvalidStateError, RuntimeError):  # another thread was quicker
            self.set_running_or_notify_cancel()
        if self.on_cancel is not None:
            self.on_cancel()
        return True

    def take(self, index: int, answer: Answer) -> None:
        """Keep an answer; with the last one the future is done."""
        if self.done() or self._answers[index] is not None:
            return
        self._answers[index] = answer
        self._missing -= 1
        with contextlib.suppress(InvalidStateError):  # cancelled meanwhile
            if self._on_answer is not None:
                try:
                    self._on_answer(index, answer)
                except Exception as error:  # noqa: BLE001  (a bug in the callback belongs to whoever waits)
                    self.set_exception(error)
                    return
            if not self._missing:
                self.set_result([kept for kept in self._answers if kept is not None])


@dataclass(slots=True, eq=False)
class Flight:
    """A question under way, and who waits for its answer."""

    key: str
    request: Request
    rank: int
    order: int
    clock: Clock
    waiters: list[tuple[Ask, int]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    holds_slot: bool = False
    text: str | None = None
    calls: int = 0
    seconds: float = 0.0
    input_tokens: float = 0.0
    cheap_input_tokens: float = 0.0
    output_tokens: float = 0.0

    @property
    def wanted(self) -> bool:
        """Whether anybody still waits."""
        return any(not ask.done() for ask, _ in self.waiters)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question: the reply's JSON text, or an error."""

    reply: str | None = None
    error: str | None = None
    reason: str | None = None
    cached: bool = False


class Stop(Exception):  # noqa: N818  (not an error of ours: an answer reached early)
    """Raised where a question ends without a reply."""

    def __init__(self, error: str, reason: str) -> None:
        """Take the row's error code and reason."""
        super().__init__(reason)
        self.outcome = Outcome(error=error, reason=reason)
