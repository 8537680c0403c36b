"""How fast a judge is asked: slots in row order, back-off, rate limits, and slowing down when an endpoint says so."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Final

MAX_RETRY_AFTER_S: Final = 60.0
"""An endpoint may ask for more; a request waits no longer than this before it tries again."""

MAX_BACKOFF_S: Final = 20.0
FIRST_BACKOFF_S: Final = 0.5
SMALLEST_WINDOW: Final = 10
STARTS_A_ROUND: Final = 2


def retry_after_s(headers: Mapping[str, str] | None) -> float | None:
    """Return how long an endpoint asks to wait, from Retry-After in seconds or as a date; capped, None where it does not say.

    Examples
    --------
    >>> retry_after_s({"retry-after": "1.5"})
    1.5
    >>> retry_after_s({"retry-after": "86400"})
    60.0
    >>> retry_after_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})
    0.0
    """
    if headers is None:
        return None
    milliseconds = _as_number(headers.get("retry-after-ms"))
    said = headers.get("retry-after")
    wait = milliseconds / 1000 if milliseconds is not None else _as_number(said)
    if wait is None and said:
        try:
            date = parsedate_to_datetime(said)
        except ValueError:
            return None
        wait = ((date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.now(UTC)).total_seconds()
    return None if wait is None else min(max(wait, 0.0), MAX_RETRY_AFTER_S)


def backoff_s(failures: int) -> float:
    """Return how long to wait after the n-th failure in a row (from 1): doubling, capped, jittered down to half."""
    most: float = min(FIRST_BACKOFF_S * 2 ** min(failures - 1, 16), MAX_BACKOFF_S)
    return most * random.uniform(0.5, 1.0)  # noqa: S311  (jitter)


def _as_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class Slots:
    """How many requests are open at once; whoever has the smallest rank, then came first, is next. Used on one loop alone."""

    def __init__(self, limit: int) -> None:
        """Begin with every slot free."""
        self.limit = limit
        self.used = 0
        self._heap: list[tuple[int, int, int, Callable[[], bool]]] = []
        self._count = count()

    def enter(self, rank: int, order: int, start: Callable[[], bool]) -> None:
        """Call ``start`` when a slot is free: it returns False where it does not want the slot any more."""
        heapq.heappush(self._heap, (rank, order, next(self._count), start))
        self.grant()

    async def again(self, rank: int, order: int) -> None:
        """Wait for a slot once more."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def start() -> bool:
            if turn.done():
                return False
            turn.set_result(None)
            return True

        self.enter(rank, order, start)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()
            raise

    def leave(self) -> None:
        """Give a slot back."""
        self.used -= 1
        self.grant()

    def grant(self) -> None:
        """Give free slots to those next; a few in each round of the loop, so that a wave of requests is spread and its answers too."""
        started = 0
        while self.used < self.limit and self._heap:
            if started == STARTS_A_ROUND:
                asyncio.get_running_loop().call_soon(self.grant)
                return
            start = heapq.heappop(self._heap)[3]
            self.used += 1
            if start():
                started += 1
            else:
                self.used -= 1


class Pace:
    """Slows all requests down when most of a window of answers is 429, and speeds up again as answers come.

    Parameters
    ----------
    slots
        Its limit is halved at such a window and grows back by a quarter with each round of answers.
    """

    def __init__(self, slots: Slots) -> None:
        """Begin at full speed."""
        self._slots = slots
        self._most = slots.limit
        self._window: deque[bool] = deque(maxlen=max(SMALLEST_WINDOW, slots.limit))
        self._slowed_at = -math.inf
        self._paused_until = -math.inf
        self._slowed = 0
        self._good = 0

    def wait_s(self, now: float) -> float:
        """Return how long every request must still wait; 0 where none must."""
        return max(self._paused_until - now, 0.0)

    def saw(self, *, limited: bool, sent_at: float, now: float, retry_after: float | None = None) -> None:
        """Count an answer: 429 or not. Answers to requests sent before the last slow-down do not count."""
        if not limited:
            self._slowed = 0
            self._good += 1
            if self._slots.limit < self._most and self._good >= self._slots.limit:
                self._good = 0
                self._slots.limit = min(self._most, self._slots.limit + max(1, self._slots.limit // 4))
                self._slots.grant()
        if sent_at < self._slowed_at:
            return
        self._window.append(limited)
        if limited and sum(self._window) * 2 > (self._window.maxlen or 0):
            self._slowed += 1
            self._window.clear()
            self._good = 0
            self._slowed_at = now
            self._paused_until = now + (retry_after if retry_after is not None else backoff_s(self._slowed + 1))
            self._slots.limit = max(1, self._slots.limit // 2)


class Bucket:
    """At most ``per_minute`` of something in any minute, evenly spread with one second's worth at once."""

    def __init__(self, per_minute: float) -> None:
        """Begin with one second's worth."""
        self._most = max(1.0, per_minute / 60)
        self._rate = (per_minute - self._most + min(1.0, per_minute)) / 60
        self._level = self._most
        self._at: float | None = None

    def wait_s(self, now: float) -> float:
        """Return how long to wait until something may be taken."""
        self._fill(now)
        return 0.0 if self._level >= min(1.0, self._most) - 1e-9 else (min(1.0, self._most) - self._level) / self._rate

    def take(self, amount: float, now: float) -> None:
        """Take an amount; more than there is leaves a debt, a negative amount gives back."""
        self._fill(now)
        self._level = min(self._most, self._level - amount)

    def _fill(self, now: float) -> None:
        if self._at is not None:
            self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now


class Clock:
    """How much of its time a row has used: calls and back-off count, queueing does not."""

    def __init__(self, limit_s: float) -> None:
        """Begin with all of it left."""
        self.limit_s = limit_s
        self.spent_s = 0.0

    @property
    def left_s(self) -> float:
        """What is left, in seconds."""
        return self.limit_s - self.spent_s


class Breaker:
    """Stops asking when failures concern every row: a wrong key, an unknown model, an empty account.

    After `LIMIT` failures of one kind without a success in between, requests are refused with the same reason for `PAUSE_S`; then one
    failure more is enough.
    """

    LIMIT: Final = 4
    PAUSE_S: Final = 5.0

    def __init__(self) -> None:
        """Begin closed."""
        self._reason: str | None = None
        self._count = 0
        self._until = -math.inf

    def saw(self, reason: str | None, now: float) -> None:
        """Count an answer: the reason of a failure that concerns every row, or None for an answer that came."""
        self._count = 0 if reason is None else self._count + 1 if reason == self._reason else 1
        self._reason = reason
        if reason is not None and self._count >= self.LIMIT:
            self._until = now + self.PAUSE_S

    def refusal(self, now: float) -> str | None:
        """Return why no request is sent now, or None."""
        return self._reason if now < self._until else None
