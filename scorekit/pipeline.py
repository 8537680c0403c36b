"""How a Scorer's four steps run over rows: a generator per chunk, and one driver that keeps the judge busy with them.

A chunk is a generator: it yields the requests of a step and is sent their answers. The driver runs in the caller's thread, so debuggers and
Ctrl-C work; only the asking itself happens elsewhere.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pandas as pd

from scorekit.errors import ScorerDefinitionError, StepResultError
from scorekit.judge.loop import wait_any
from scorekit.judge.prompts import Prompt
from scorekit.judge.replies import Answer, Request
from scorekit.texts import TEXT

if TYPE_CHECKING:
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from scorekit.progress import Progress

StepFunction = Callable[..., "pd.DataFrame | pd.Series[Any]"]
FieldKind = Literal["number", "text", "json"]
Asking = Generator[tuple[str, list[Request]], list[Answer], "Outcome"]
"""A chunk under way: yields a step's name and requests, is sent the answers, returns the outcome."""

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
class Plan:
    """A Scorer's steps, ready to run: what a chunk needs to know."""

    name: str
    steps: tuple[tuple[str, StepFunction | Prompt], ...]
    kinds: Mapping[str, FieldKind]
    options: Mapping[str, Any]
    local: bool
    keep_prompts: bool = False
    repeat: int = 0

    @property
    def last_prompt(self) -> str | None:
        """The last step that asks: a row is done with its answer."""
        return next((step for step, work in reversed(self.steps) if isinstance(work, Prompt)), None)


@dataclass
class Outcome:
    """What became of a chunk's rows: object or float arrays as long as the chunk, by field."""

    count: int
    score: NDArray[np.float64] = field(init=False)
    reasons: NDArray[np.object_] = field(init=False)
    errors: NDArray[np.object_] = field(init=False)
    fields: dict[str, NDArray[Any]] = field(default_factory=dict)
    usage: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with no row scored."""
        self.score = np.full(self.count, np.nan)
        self.reasons = np.full(self.count, None, dtype=object)
        self.errors = np.full(self.count, None, dtype=object)
        self.usage = np.zeros((self.count, 3))

    def keep(self, name: str, kind: FieldKind, positions: NDArray[np.intp] | slice, values: Any) -> None:
        """Write a field's values at the given rows."""
        if name not in self.fields:
            self.fields[name] = np.full(self.count, np.nan) if kind == "number" else np.full(self.count, None, dtype=object)
        if kind == "number":
            self.fields[name][positions] = pd.to_numeric(pd.Series(values)).to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            self.fields[name][positions] = as_objects(values)

    def put(self, positions: NDArray[np.intp] | slice, part: Outcome) -> None:
        """Write what became of a part of the rows at their positions."""
        self.score[positions], self.reasons[positions] = part.score, part.reasons
        self.errors[positions], self.usage[positions] = part.errors, part.usage
        for name, values in part.fields.items():
            self.keep(name, "json" if values.dtype == object else "number", positions, values)

    def take(self, rows: NDArray[np.intp], paid: NDArray[np.intp]) -> Outcome:
        """Return the outcome of the given rows, repeated where they repeat; only the rows at ``paid`` have used anything."""
        taken = Outcome(len(rows))
        taken.score, taken.reasons, taken.errors = self.score[rows], self.reasons[rows], self.errors[rows]
        taken.fields = {name: values[rows] for name, values in self.fields.items()}
        taken.usage[paid] = self.usage[rows[paid]]
        return taken


def averaged(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the mean of repeated outcomes; reasons and fields are those of the repeat nearest to it.

    A row's mean is over the repeats that gave it a score; a row without any keeps the first repeat's error. ``spread`` is the highest less
    the lowest score, ``repeats`` the list of scores.
    """
    scores = np.stack([outcome.score for outcome in outcomes])
    given = ~np.isnan(scores)
    counts = given.sum(axis=0)
    with np.errstate(invalid="ignore"):
        mean = np.where(given, scores, 0.0).sum(axis=0) / counts
    nearest = np.where(given, np.abs(scores - mean), np.inf).argmin(axis=0)
    merged = Outcome(outcomes[0].count)
    for repeat, outcome in enumerate(outcomes):
        positions = np.flatnonzero(nearest == repeat)
        merged.score[positions], merged.reasons[positions], merged.errors[positions] = (
            mean[positions],
            outcome.reasons[positions],
            outcome.errors[positions],
        )
        for name, values in outcome.fields.items():
            merged.keep(name, "json" if values.dtype == object else "number", positions, values[positions])
    merged.usage = np.sum([outcome.usage for outcome in outcomes], axis=0)
    highest, lowest = np.where(given, scores, -np.inf).max(axis=0), np.where(given, scores, np.inf).min(axis=0)
    merged.fields["spread"] = np.where(counts > 0, highest - lowest, np.nan)
    merged.fields["repeats"] = as_objects([[None if np.isnan(score) else float(score) for score in row] for row in scores.T])
    return merged


def run_chunk(plan: Plan, rows: pd.DataFrame) -> Generator[tuple[str, list[Request]], list[Answer], Outcome]:
    """Run the steps over rows whose inputs are good; yield each judged step's requests, return the outcome.

    ``rows`` has the inputs, on a fresh index. A row leaves when a step gives it an error; the others go on.
    """
    outcome = Outcome(len(rows))
    alive = np.arange(len(rows))
    for step, work in plan.steps:
        if not len(alive):
            break
        if isinstance(work, Prompt):
            fields, failed = yield from _ask_step(plan, step, work, rows, outcome, alive)
        else:
            fields, failed = _call_step(plan, step, work, rows), np.zeros(len(rows), dtype=bool)
        stops = _stops(fields.pop("not_scorable", None), len(rows))
        told = np.array([reason is not None for reason in stops]) if stops is not None else np.zeros(len(rows), dtype=bool)
        if stops is not None:
            outcome.errors[alive[told]], outcome.reasons[alive[told]] = "not_scorable", stops[told]
        if step == "generate_reason":
            _keep_reasons(outcome, alive, fields.get("reason"), failed)
            break
        if step == "generate_score":
            told = told | _keep_score(outcome, alive, fields, told, plan.name)
        for name, values in fields.items():
            if name in plan.kinds:
                outcome.keep(name, plan.kinds[name], alive, values)
        stays = ~(told | failed)
        rows = _with_fields(rows, fields, plan.kinds)
        if not stays.all():
            rows, alive = rows[stays].reset_index(drop=True), alive[stays]
    else:
        if len(alive) and "reason" in rows.columns:
            outcome.reasons[alive] = as_objects(rows["reason"])
    return outcome


def _ask_step(
    plan: Plan, step: str, prompt: Prompt, rows: pd.DataFrame, outcome: Outcome, alive: NDArray[np.intp]
) -> Generator[tuple[str, list[Request]], list[Answer], tuple[dict[str, Any], NDArray[np.bool_]]]:
    """Run one judged step; return its fields and which rows failed."""
    asked = np.ones(len(rows), dtype=bool)
    if prompt.when is not None:
        asked = _aligned(prompt.when(rows), rows, plan.name, f"{step} (when=)").to_numpy(dtype=bool)
    fields = {name: np.full(len(rows), None, dtype=object) for name in prompt.reply.model_fields}
    for name, value in (prompt.otherwise or {}).items():
        fields[name][~asked] = as_objects([value] * int((~asked).sum()))
    failed = np.zeros(len(rows), dtype=bool)
    asking = rows if asked.all() else rows[asked].reset_index(drop=True)
    if plan.local:
        if len(asking):
            assert prompt.local is not None  # noqa: S101  (Scorer refuses LocalJudge where a stand-in is missing)
            found = _call_step(plan, step, prompt.local, asking)
            for name, values in fields.items():
                values[asked] = as_objects(found[name])
        return dict(fields), failed
    positions = np.flatnonzero(asked)
    requests = _requests(plan, step, prompt, asking)
    if plan.keep_prompts:
        texts = ["\n\n".join(message["content"] for message in request.messages) for request in requests]
        outcome.keep(f"{step}_prompt", "text", alive[positions], texts)
    answers = (yield step, requests) if requests else []
    for position, answer in zip(positions, answers, strict=True):
        row = alive[position]
        outcome.usage[row] += (answer.input_tokens, answer.output_tokens, answer.seconds)
        if answer.error is not None:
            outcome.errors[row], outcome.reasons[row], failed[position] = answer.error, answer.reason, True
        elif answer.value is not None:
            for name, value in answer.value.model_dump(mode="json").items():
                if name in fields:
                    fields[name][position] = value
    return dict(fields), failed


def _requests(plan: Plan, step: str, prompt: Prompt, rows: pd.DataFrame) -> list[Request]:
    """Render the step's prompt for each row."""
    unknown = sorted(prompt.names() - set(rows.columns) - set(plan.options))
    if unknown:
        msg = f"The template of {plan.name}.{step} reads {unknown}, but no input, option or earlier step is called so; there are {list(rows.columns)}."
        raise ScorerDefinitionError(msg)
    columns = {name: rows[name].tolist() for name in rows.columns}
    records = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return [
        Request(prompt.render(record, plan.options), prompt.reply, context=record, step=f"{plan.name}.{step}", repeat=plan.repeat)
        for record in records
    ]


def _call_step(plan: Plan, step: str, function: StepFunction, rows: pd.DataFrame) -> dict[str, Any]:
    """Call a whole-column step with the options it names; return its fields by name, in the rows' order."""
    wanted = {name: plan.options[name] for name in option_names(function) if name in plan.options}
    try:
        result = function(rows.copy(deep=False), **wanted)
    except Exception as error:
        error.add_note(f"(raised in step {step} of the scorer {plan.name!r})")
        raise
    alone = {"generate_score": "score", "generate_reason": "reason"}.get(step)
    if isinstance(result, pd.DataFrame):
        return {str(name): _aligned(result[name], rows, plan.name, step) for name in result.columns}
    name = alone or (result.name if isinstance(result, pd.Series) else None)
    if name is None:
        msg = f"Step {step} of the scorer {plan.name!r} must return a frame of fields, or a series with a name; it returned {type(result).__name__}."
        raise StepResultError(msg)
    return {str(name): _aligned(result, rows, plan.name, step)}


def _aligned(result: Any, rows: pd.DataFrame, scorer: str, step: str) -> pd.Series[Any]:
    """Return a step's column in the rows' order: by label where it has the rows' labels, else by position."""
    if isinstance(result, (list, tuple, np.ndarray, pd.api.extensions.ExtensionArray)):
        result = pd.Series(result)
    if not isinstance(result, pd.Series):
        msg = f"Step {step} of the scorer {scorer!r} must return one value a row, not {type(result).__name__}."
        raise StepResultError(msg)
    if len(result) != len(rows):
        msg = f"Step {step} of the scorer {scorer!r} returned {len(result)} values for {len(rows)} rows."
        raise StepResultError(msg)
    if result.index.equals(rows.index):
        return result
    if not result.index.is_unique or not result.index.isin(rows.index).all():
        msg = f"Step {step} of the scorer {scorer!r} returned other row labels than it was given. Keep the index of rows."
        raise StepResultError(msg)
    return result.reindex(rows.index)


def _stops(column: pd.Series[Any] | None, count: int) -> NDArray[np.object_] | None:
    """Return why each row stops, None for rows that go on; None where the step stops none."""
    if column is None or not count:
        return None
    stops = as_objects(column)
    texts = np.full(count, None, dtype=object)
    said = np.array([isinstance(text, str) and text != "" for text in stops])
    texts[said] = stops[said]
    return texts if said.any() else None


def _keep_score(outcome: Outcome, alive: NDArray[np.intp], fields: dict[str, Any], told: NDArray[np.bool_], name: str) -> NDArray[np.bool_]:
    """Write the scores; a row without a finite number is not scored, and says so. Return which those are."""
    if "score" not in fields:
        msg = f"Step generate_score of the scorer {name!r} must return the score: a series, or a frame with a column 'score'."
        raise StepResultError(msg)
    try:
        score = pd.to_numeric(fields["score"]).to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        msg = f"Step generate_score of the scorer {name!r} must return numbers: {error}"
        raise StepResultError(msg) from error
    fields["score"] = pd.Series(score)
    empty: NDArray[np.bool_] = ~np.isfinite(score) & ~told
    outcome.errors[alive[empty]], outcome.reasons[alive[empty]] = "not_scorable", "The score came out as no finite number."
    scored = ~empty & ~told
    outcome.score[alive[scored]] = score[scored]
    return empty


def _keep_reasons(outcome: Outcome, alive: NDArray[np.intp], reasons: Any, failed: NDArray[np.bool_]) -> None:
    """Write the reasons; a row whose reason could not be had keeps its score and says why there is none."""
    if reasons is None:
        return
    texts = as_objects(reasons)
    outcome.reasons[alive[~failed]] = texts[~failed]
    for row in alive[failed]:
        outcome.reasons[row] = f"(No explanation: {outcome.errors[row]}: {outcome.reasons[row]})"
        outcome.errors[row] = None


def _with_fields(rows: pd.DataFrame, fields: Mapping[str, Any], kinds: Mapping[str, FieldKind]) -> pd.DataFrame:
    """Return the rows with a step's fields as columns: numbers float64, texts string, everything else as Python objects."""
    columns: dict[str, Any] = {}
    for name, values in fields.items():
        kind = kinds.get(name)
        if kind == "number":
            columns[name] = pd.to_numeric(pd.Series(values)).to_numpy(dtype=np.float64, na_value=np.nan)
        elif kind == "text":
            columns[name] = pd.Series(as_objects(values), dtype=TEXT).array
        else:
            columns[name] = values.array if isinstance(values, pd.Series) else values
    added = pd.DataFrame(columns, index=rows.index)
    return pd.concat([rows.drop(columns=[name for name in added.columns if name in rows.columns]), added], axis=1)


def as_objects(values: Any) -> NDArray[np.object_]:
    """Return values as a one-dimensional object array; a list stays a single cell, a missing text becomes None."""
    if isinstance(values, pd.Series) and values.dtype != object and values.hasnans:
        values = values.astype(object).where(values.notna(), None)
    if isinstance(values, pd.Series):
        return values.to_numpy(dtype=object)
    return np.fromiter(values, dtype=object, count=len(values))


@lru_cache(maxsize=512)
def option_names(function: StepFunction) -> tuple[str, ...]:
    """Return the names of a step's keyword-only arguments: the options that it takes."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)


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

    A later chunk starts when the judge runs short of requests, so that few prompts are in memory at a time.

    Attributes
    ----------
    outcomes
        By the chunk's number; complete after `run`, and after `cancel` too.
    """

    def __init__(self, parts: Sequence[tuple[Plan, pd.DataFrame]], judge: AsksJudge | None, progress: Progress) -> None:
        """Take the chunks in the order of their rows."""
        self.outcomes: dict[int, Outcome] = {}
        self._parts = parts
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
                plan, rows = self._parts[self._started]
                self._started += 1
                chunk = _Chunk(self._started - 1, plan, len(rows), run_chunk(plan, rows))
                self._advance(chunk, None)
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
            self.outcomes[chunk.rank] = _cut_short(chunk)
        self._waiting.clear()
        for rank, (_, rows) in enumerate(self._parts):
            if rank not in self.outcomes:
                self.outcomes[rank] = _all_cancelled(len(rows))

    def _advance(self, chunk: _Chunk, answers: list[Answer] | None) -> None:
        """Send a chunk its answers, and submit what it asks next or keep its outcome."""
        try:
            step, requests = next(chunk.asking) if answers is None else chunk.asking.send(answers)
        except StopIteration as end:
            self.outcomes[chunk.rank] = end.value
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
