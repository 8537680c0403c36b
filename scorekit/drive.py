"""Drive: runs chunks of rows and keeps the judge busy with them, earliest rows first.

The driver runs in the caller's thread, so debuggers and Ctrl-C work; only the asking itself happens elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from scorekit.judge.loop import wait_any
from scorekit.judge.replies import Answer, Request
from scorekit.pipeline import Outcome, run_chunk

if TYPE_CHECKING:
    from concurrent.futures import Future

    import pandas as pd

    from scorekit.pipeline import Asking, Plan
    from scorekit.progress import Progress

POLL_S = 0.1
"""How often the driver looks up while it waits: to start more chunks, move the progress bar, and notice a stop."""

BACKLOG = 256
"""A further chunk starts while fewer requests than this are unanswered."""

CANCELLED = "Stopped before this row was done; run the call again to go on from here."


class AsksJudge(Protocol):
    """What a scorer needs of a judge: `Judge` and `FakeJudge` are such, and a user's own may be."""

    @property
    def label(self) -> str:
        """The name that the judge column carries."""

    def submit(
        self, requests: Sequence[Request], *, rank: int = 0, on_answer: Callable[[int, Answer], None] | None = None
    ) -> Future[list[Answer]]:
        """Start asking; smaller ranks first; call ``on_answer`` with each answer as it arrives."""


class Stopped(BaseException):
    """Raised inside a scorer that ``score`` has told to stop; never seen outside."""


@dataclass(frozen=True)
class Part:
    """Some of the rows: how to run them, how many they are, and how to read them, which is done when their turn comes."""

    plan: Plan
    count: int
    read: Callable[[], pd.DataFrame]


@dataclass
class _Chunk:
    """A chunk under way: where it stands, and what it waits for."""

    rank: int
    plan: Plan
    count: int
    asking: Asking
    answers: list[Answer | None] = field(default_factory=list)
    counted: int = 0


class Drive:
    """Runs chunks to their outcomes, earliest rows first.

    A later chunk starts when the judge runs short of requests, so that few rows and prompts are in memory at a time: memory is that of
    the outcomes, which `keep` gets as they come.
    """

    def __init__(self, parts: Sequence[Part], judge: AsksJudge | None, progress: Progress, keep: Callable[[int, Outcome], None]) -> None:
        """Take the chunks in the order of their rows; ``keep`` gets each one's number and outcome, after `run` or `cancel` those of all."""
        self._parts = parts
        self._keep = keep
        self._done: set[int] = set()
        self._judge = judge
        self._progress = progress
        self._waiting: dict[Future[list[Answer]], _Chunk] = {}
        self._started = 0
        self._asked = 0
        self._answered = 0

    def run(self, show: Callable[[], None]) -> None:
        """Run all chunks; ``show`` is called every now and then."""
        while self._started < len(self._parts) or self._waiting:
            if self._started < len(self._parts) and self._asked - self._answered < BACKLOG:
                part = self._parts[self._started]
                self._started += 1
                self._advance(_Chunk(self._started - 1, part.plan, part.count, run_chunk(part.plan, part.read())), None)
            elif self._waiting:
                done = wait_any(list(self._waiting), POLL_S)
                for future in sorted(done, key=lambda future: self._waiting[future].rank):
                    self._advance(self._waiting.pop(future), future.result())
            if self._progress.stopped:
                raise Stopped
            show()

    def cancel(self) -> None:
        """Take back every open request and end each chunk with the answers that are there; other rows are ``cancelled``."""
        for future in self._waiting:
            future.cancel()
        for chunk in self._waiting.values():
            self._end(chunk.rank, _cut_short(chunk))
        self._waiting.clear()
        for rank, part in enumerate(self._parts):
            if rank not in self._done:
                self._end(rank, _all_cancelled(part.count))

    def _end(self, rank: int, outcome: Outcome) -> None:
        """Give away a chunk's outcome."""
        self._done.add(rank)
        self._keep(rank, outcome)

    def _advance(self, chunk: _Chunk, answers: list[Answer] | None) -> None:
        """Send a chunk its answers, and submit what it asks next or keep its outcome."""
        try:
            step, requests = next(chunk.asking) if answers is None else chunk.asking.send(answers)
        except StopIteration as end:
            self._end(chunk.rank, end.value)
            self._progress.add(rows=chunk.count - chunk.counted)
            return
        assert self._judge is not None  # noqa: S101  (only judged steps yield)
        chunk.answers = [None] * len(requests)
        self._asked += len(requests)

        def on_answer(index: int, answer: Answer) -> None:
            chunk.answers[index] = answer
            self._answered += 1  # always on the judge's thread, so it needs no lock
            done = answer.error is not None or step == chunk.plan.last_prompt
            chunk.counted += done
            self._progress.add(rows=int(done), errors=int(answer.error is not None), tokens=answer.input_tokens + answer.output_tokens)

        future = self._judge.submit(requests, rank=chunk.rank, on_answer=on_answer)
        self._waiting[future] = chunk


def _cut_short(chunk: _Chunk) -> Outcome:
    """End a chunk: questions without an answer are answered ``cancelled``."""
    answers = [answer or Answer(error="cancelled", reason=CANCELLED) for answer in chunk.answers]
    try:
        while True:
            _, requests = chunk.asking.send(answers)
            answers = [Answer(error="cancelled", reason=CANCELLED) for _ in requests]
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    except Exception:  # noqa: BLE001  (another error is on its way to the caller; these rows are lost to it)
        return _all_cancelled(chunk.count)


def _all_cancelled(count: int) -> Outcome:
    """Return the outcome of rows that were never begun."""
    outcome = Outcome(count)
    outcome.errors[:], outcome.reasons[:] = "cancelled", CANCELLED
    return outcome
