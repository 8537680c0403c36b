"""What each step of a scorer did with a row: noted where somebody wants to see it, as `run_one` does, and nowhere else."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scorekit.judge.replies import Answer, Message, Request

StepKind = Literal["judge", "local", "code", "skipped"]


@dataclass(frozen=True, slots=True)
class StepRun:
    """What one step did with one row.

    Attributes
    ----------
    scorer, step
        Whose step it is, such as ``"relevancy"`` and ``"analyze"``. A callable that is not made of steps is one step ``"scorer"``.
    kind
        Who did it: ``"judge"``, ``"local"`` (the stand-in that `LocalJudge` runs), ``"code"``, or ``"skipped"``, where the prompt's ``when`` says
        that the row needs no call.
    fields
        What the step gave, by name, as Python values; None where a value is missing. Empty where the step failed.
    seconds
        How long it took: of a judge the time of its calls, 0 from the cache.
    messages
        What the judge was asked; empty for all but ``"judge"``.
    reply
        The judge's last raw reply; None where there was none.
    input_tokens, output_tokens, calls, cached
        What the reply cost, as in `Judge.usage`.
    error, reason
        Where the step ended the row, or could not give its reason: the error code, and why.
    repeat
        The number of the asking, from 0, where ``repeats`` asks several times.
    """

    scorer: str
    step: str
    kind: StepKind
    fields: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    messages: tuple[Message, ...] = ()
    reply: str | None = None
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    calls: int = 0
    cached: bool = False
    error: str | None = None
    reason: str | None = None
    repeat: int = 0


TRACE: ContextVar[list[StepRun] | None] = ContextVar("scorekit_trace", default=None)
"""Set by ``run_one`` to a list: the steps that run in its thread are added to it, one record a step and row."""


class Notes:
    """What a chunk's steps do, noted in the trace while they run; nothing where no trace is wanted."""

    def __init__(self, scorer: str, repeat: int) -> None:
        """Look whether a trace is wanted."""
        self._runs = TRACE.get()
        self._scorer, self._repeat = scorer, repeat
        self._answers: dict[int, tuple[Request, Answer]] = {}
        self._local: Collection[int] = ()
        self._asks = False
        self._began = 0.0

    def begin(self, *, asks: bool) -> None:
        """Begin a step, one that asks or one of code."""
        if self._runs is not None:
            self._answers, self._local, self._asks, self._began = {}, (), asks, perf_counter()

    def asked(self, positions: Iterable[int], requests: Sequence[Request], answers: Sequence[Answer]) -> None:
        """Note what was asked about the rows at some positions, and the answers."""
        if self._runs is not None:
            self._answers = {int(at): pair for at, pair in zip(positions, zip(requests, answers, strict=True), strict=True)}

    def stood_in(self, positions: Iterable[int]) -> None:
        """Note for which rows a local stand-in ran."""
        if self._runs is not None:
            self._local = frozenset(map(int, positions))

    def end(
        self,
        step: str,
        fields: Mapping[str, Any],
        errors: NDArray[np.object_],
        reasons: NDArray[np.object_],
        alive: NDArray[np.intp],
    ) -> None:
        """Add a record for each row that the step had: its fields by position; where the step ended it, its error and reason in the chunk."""
        if self._runs is None:
            return
        took = perf_counter() - self._began
        columns = {name: list(values) for name, values in fields.items()}
        for at, (error, reason) in enumerate(zip(errors[alive], reasons[alive], strict=True)):
            request, answer = self._answers.get(at, (None, None))
            kind: StepKind = "judge" if answer else "local" if at in self._local else "skipped" if self._asks else "code"
            failed = answer is not None and answer.error is not None
            self._runs.append(
                StepRun(
                    self._scorer,
                    step,
                    kind,
                    fields={} if failed else {name: as_python(values[at]) for name, values in columns.items()},
                    seconds=answer.seconds if answer else 0.0 if kind == "skipped" else took,
                    messages=request.messages if request else (),
                    reply=answer.text if answer else None,
                    input_tokens=answer.input_tokens if answer else 0.0,
                    output_tokens=answer.output_tokens if answer else 0.0,
                    calls=answer.calls if answer else 0,
                    cached=answer.cached if answer else False,
                    error=answer.error if answer and failed else error,
                    reason=answer.reason if answer and failed else reason if error is not None else None,
                    repeat=self._repeat,
                )
            )


def as_python(value: Any) -> Any:
    """Return a field's value in plain Python, copied, so that later steps cannot change it; None where it is missing.

    Examples
    --------
    >>> as_python({"score": np.float64(0.5), "ids": np.array([1, 2]), "none": pd.NA})
    {'score': 0.5, 'ids': [1, 2], 'none': None}
    """
    try:
        return _as_python(value)
    except RecursionError:  # a list that holds itself
        return value


def _as_python(value: Any) -> Any:
    """Convert a value and what is in it."""
    if isinstance(value, Mapping):
        return {key: _as_python(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_as_python(item) for item in value]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=False)
    if pd.api.types.is_scalar(value) and pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
