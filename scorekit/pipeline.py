"""How a Scorer's four steps run over rows: a generator per chunk that yields the requests of a step and is sent their answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from scorekit.columns import to_json
from scorekit.errors import ScorerDefinitionError, StepResultError, listed
from scorekit.judge.prompts import Prompt
from scorekit.judge.replies import Answer, Request
from scorekit.texts import TEXT
from scorekit.trace import Notes

if TYPE_CHECKING:
    from numpy.typing import NDArray

StepFunction = Callable[..., "pd.DataFrame | pd.Series[Any]"]
FieldKind = Literal["number", "text", "json"]
Asking = Generator[tuple[str, list[Request]], list[Answer], "Outcome"]
"""A chunk under way: yields a step's name and requests, is sent the answers, returns the outcome."""

WRITES_REACH = pd.__version__.startswith(("0.", "1.", "2."))
"""Whether a step that writes into its rows would write into ours: before pandas 3, unless they are copied."""

NUMBERS = frozenset({"floating", "integer", "mixed-integer-float", "boolean", "decimal", "empty"})
"""The kinds of object columns, by pandas' ``infer_dtype``, that hold numbers."""


@dataclass(frozen=True)
class Plan:
    """A Scorer's steps, ready to run: what a chunk needs to know."""

    name: str
    needs: tuple[str, ...]
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

    def keep(self, name: str, values: NDArray[Any], positions: NDArray[np.intp] | slice) -> None:
        """Write a field's values at the given rows: floats, or texts as objects."""
        if name not in self.fields:
            self.fields[name] = np.full(self.count, None if values.dtype == object else np.nan, dtype=values.dtype)
        self.fields[name][positions] = values

    def put(self, positions: NDArray[np.intp] | slice, part: Outcome) -> None:
        """Write what became of a part of the rows at their positions."""
        self.score[positions], self.reasons[positions] = part.score, part.reasons
        self.errors[positions], self.usage[positions] = part.errors, part.usage
        for name, values in part.fields.items():
            self.keep(name, values, positions)

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
            merged.keep(name, values[positions], positions)
    merged.usage = np.sum([outcome.usage for outcome in outcomes], axis=0)
    highest, lowest = np.where(given, scores, -np.inf).max(axis=0), np.where(given, scores, np.inf).min(axis=0)
    merged.fields["spread"] = np.where(counts > 0, highest - lowest, np.nan)
    merged.fields["repeats"] = as_objects([to_json([None if np.isnan(score) else float(score) for score in row]) for row in scores.T])
    return merged


def run_chunk(plan: Plan, rows: pd.DataFrame) -> Generator[tuple[str, list[Request]], list[Answer], Outcome]:
    """Run the steps over rows whose inputs are good; yield each judged step's requests, return the outcome.

    ``rows`` has the inputs, on a fresh index. A row leaves when a step gives it an error; the others go on.
    """
    outcome = Outcome(len(rows))
    alive = np.arange(len(rows))
    notes = Notes(plan.name, plan.repeat)
    for step, work in plan.steps:
        if not len(alive):
            break
        notes.begin(asks=isinstance(work, Prompt))
        if isinstance(work, Prompt):
            fields, failed = yield from _ask_step(plan, step, work, rows, outcome, alive, notes)
        else:
            fields, failed = _call_step(plan, step, work, rows), np.zeros(len(rows), dtype=bool)
        told = _stop(outcome, alive, fields.pop("not_scorable", None), plan, step)
        if step == "generate_reason":
            _keep_reasons(outcome, alive, fields.get("reason"), failed)
            notes.end(step, fields, outcome.errors, outcome.reasons, alive)
            break
        if step == "generate_score":
            told = told | _keep_score(outcome, alive, fields, told, plan)
        for name in plan.kinds.keys() & fields.keys():
            fields[name] = _typed(fields[name], plan.kinds[name], name, plan, step)
            outcome.keep(name, _kept(fields[name], plan.kinds[name], name, plan, step), alive)
        notes.end(step, fields, outcome.errors, outcome.reasons, alive)
        if step == "generate_score" and (absent := plan.kinds.keys() - outcome.fields.keys()):
            msg = f"The scorer {plan.name!r} declares the fields {sorted(absent)}, but no step gave them."
            raise StepResultError(msg)
        stays = ~(told | failed)
        rows = _with_fields(rows, fields)
        if not stays.all():
            rows, alive = rows[stays].reset_index(drop=True), alive[stays]
    else:
        if len(alive) and "reason" in rows.columns:
            outcome.reasons[alive] = as_objects(rows["reason"])
    return outcome


def _ask_step(
    plan: Plan, step: str, prompt: Prompt, rows: pd.DataFrame, outcome: Outcome, alive: NDArray[np.intp], notes: Notes
) -> Generator[tuple[str, list[Request]], list[Answer], tuple[dict[str, Any], NDArray[np.bool_]]]:
    """Run one judged step; return its fields and which rows failed."""
    asked = np.ones(len(rows), dtype=bool)
    if prompt.when is not None:
        asked = _call_when(plan, step, prompt.when, rows)
    fields = {name: np.full(len(rows), None, dtype=object) for name in prompt.reply.model_fields}
    for name, value in (prompt.otherwise or {}).items():
        fields[name][~asked] = as_objects([value] * int((~asked).sum()))
    failed = np.zeros(len(rows), dtype=bool)
    asking = rows if asked.all() else rows[asked].reset_index(drop=True)
    positions = np.flatnonzero(asked)
    if plan.local:
        notes.stood_in(positions)
        if len(asking):
            assert prompt.local is not None  # noqa: S101  (Scorer refuses LocalJudge where a stand-in is missing)
            found = _call_step(plan, step, prompt.local, asking)
            for name, values in fields.items():
                values[asked] = as_objects(found[name])
        return dict(fields), failed
    requests = _requests(plan, step, prompt, asking)
    if plan.keep_prompts:
        texts = ["\n\n".join(message["content"] for message in request.messages) for request in requests]
        outcome.keep(f"{step}_prompt", as_objects(texts), alive[positions])
    answers = (yield step, requests) if requests else []
    notes.asked(positions, requests, answers)
    for position, answer in zip(positions, answers, strict=True):
        row = alive[position]
        outcome.usage[row] += (answer.input_tokens, answer.output_tokens, answer.seconds)
        if answer.error is not None:
            outcome.errors[row], outcome.reasons[row], failed[position] = answer.error, answer.reason, True
        elif answer.value is not None:
            for name, value in answer.value.model_dump(mode="json", by_alias=False).items():
                if name in fields:
                    fields[name][position] = value
    return dict(fields), failed


def _requests(plan: Plan, step: str, prompt: Prompt, rows: pd.DataFrame) -> list[Request]:
    """Render the step's prompt for each row."""
    unknown = sorted(prompt.names() - set(rows.columns) - set(plan.options))
    if unknown:
        there = listed([*rows.columns, *plan.options])
        msg = f"The template of {plan.name}.{step} reads {unknown}, but no input, option or earlier step is called so; there are {there}."
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
    result = _called(plan, step, function, rows, wanted)
    alone = {"generate_score": "score", "generate_reason": "reason"}.get(step)
    if not isinstance(result, pd.DataFrame):
        name = alone or (result.name if isinstance(result, pd.Series) else None)
        if name is None:
            said = "must return a frame of fields, or a series with a name"
            raise StepResultError(_about(plan, step, f"{said}; it returned {type(result).__name__}."))
        result = pd.DataFrame({name: _aligned(result, rows, plan, step)})
    if not result.columns.is_unique:
        raise StepResultError(
            _about(plan, step, f"returned two columns of one name: {listed(result.columns[result.columns.duplicated()])}.")
        )
    fields = {str(name): _aligned(result[name], rows, plan, step) for name in result.columns}
    if inputs := [name for name in plan.needs if name in fields]:
        raise StepResultError(_about(plan, step, f"returned a field {inputs[0]!r}, which is the name of an input; give it another name."))
    return fields


def _call_when(plan: Plan, step: str, when: Callable[[pd.DataFrame], Any], rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Return which rows a judged step asks about."""
    answers = _aligned(_called(plan, f"{step} (when=)", when, rows, {}), rows, plan, f"{step} (when=)")
    if answers.isna().any() or pd.api.types.infer_dtype(answers) not in ("boolean", "empty"):
        raise StepResultError(_about(plan, f"{step} (when=)", "must return True or False for every row."))
    return answers.to_numpy(dtype=bool)


def _called(plan: Plan, step: str, function: Callable[..., Any], rows: pd.DataFrame, options: Mapping[str, Any]) -> Any:
    """Call a function of the scorer's on rows of its own; what it raises says where."""
    try:
        return function(rows.copy(deep=WRITES_REACH), **options)
    except Exception as error:
        error.add_note(f"(raised in step {step} of the scorer {plan.name!r})")
        raise


def _about(plan: Plan, step: str, what: str) -> str:
    """Begin a message with the step that it is about."""
    return f"Step {step} of the scorer {plan.name!r} {what}"


def _aligned(result: Any, rows: pd.DataFrame, plan: Plan, step: str) -> pd.Series[Any]:
    """Return a step's column in the rows' order: by label where it has the rows' labels, else by position."""
    flat = not isinstance(result, np.ndarray) or result.ndim == 1
    if flat and isinstance(result, (list, tuple, np.ndarray, pd.api.extensions.ExtensionArray)):
        result = pd.Series(result)
    if not isinstance(result, pd.Series):
        raise StepResultError(_about(plan, step, f"must return one value a row, not {type(result).__name__}."))
    if len(result) != len(rows):
        raise StepResultError(_about(plan, step, f"returned {len(result)} values for {len(rows)} rows."))
    if result.index.equals(rows.index):
        return result
    if not result.index.is_unique or not result.index.isin(rows.index).all():
        raise StepResultError(_about(plan, step, "returned other row labels than it was given. Keep the index of rows."))
    return result.reindex(rows.index)


def _stop(outcome: Outcome, alive: NDArray[np.intp], reasons: Any, plan: Plan, step: str) -> NDArray[np.bool_]:
    """Stop the rows for which a step says why they cannot be scored; return which those are."""
    if reasons is None:
        return np.zeros(len(alive), dtype=bool)
    texts = as_objects(reasons)
    told = np.array([isinstance(text, str) and text != "" for text in texts], dtype=bool)
    if step == "generate_reason" and told.any():
        raise StepResultError(_about(plan, step, "returned 'not_scorable', but its rows have their score; stop rows in an earlier step."))
    outcome.errors[alive[told]], outcome.reasons[alive[told]] = "not_scorable", texts[told]
    return told


def _typed(values: Any, kind: FieldKind, name: str, plan: Plan, step: str) -> Any:
    """Return a declared field as later steps see it: numbers float64, texts string, anything else as it is."""
    if kind == "number":
        return as_numbers(values, f"the field {name!r}", plan, step)
    if kind == "text":
        texts = as_objects(values)
        if odd := next((type(text).__name__ for text in texts if not (isinstance(text, str) or text is None or text is pd.NA)), None):
            raise StepResultError(_about(plan, step, f"must give text in the field {name!r}, not {odd}."))
        return pd.Series(texts, dtype=TEXT)
    return values


def _kept(values: Any, kind: FieldKind, name: str, plan: Plan, step: str) -> NDArray[Any]:
    """Return a declared field as its column keeps it: floats, texts, or JSON text."""
    if kind != "json":
        return values if isinstance(values, np.ndarray) else as_objects(values)
    try:
        return as_objects([to_json(value) for value in as_objects(values)])
    except (TypeError, ValueError, RecursionError) as error:
        raise StepResultError(_about(plan, step, f"gave something in the field {name!r} that JSON cannot hold: {error}")) from error


def as_numbers(values: Any, what: str, plan: Plan, step: str) -> NDArray[np.float64]:
    """Return numbers and booleans as float64, NaN where one is missing."""
    column = pd.Series(values)
    dtype = column.dtype
    plain = pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    if not plain and pd.api.types.infer_dtype(column, skipna=True) not in NUMBERS:
        raise StepResultError(_about(plan, step, f"must return numbers in {what}, not {'other objects' if dtype == 'object' else dtype}."))
    found: NDArray[np.float64] = pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def _keep_score(
    outcome: Outcome, alive: NDArray[np.intp], fields: dict[str, Any], told: NDArray[np.bool_], plan: Plan
) -> NDArray[np.bool_]:
    """Write the scores; a row without a finite number is not scored, and says so. Return which those are."""
    if "score" not in fields:
        raise StepResultError(_about(plan, "generate_score", "must return the score: a series, or a frame with a column 'score'."))
    score = as_numbers(fields["score"], "the score", plan, "generate_score")
    fields["score"] = score
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


def _with_fields(rows: pd.DataFrame, fields: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows with a step's fields as columns."""
    if not fields:
        return rows
    added = pd.DataFrame(
        {name: values.array if isinstance(values, pd.Series) else values for name, values in fields.items()}, index=rows.index
    )
    return pd.concat([rows.drop(columns=[name for name in added.columns if name in rows.columns]), added], axis=1)


def as_objects(values: Any) -> NDArray[np.object_]:
    """Return values as a one-dimensional object array; a list stays a single cell, a missing text becomes None."""
    if isinstance(values, pd.Series) and values.dtype != object and values.hasnans:
        values = values.astype(object).where(values.notna(), None)
    if isinstance(values, pd.Series):
        return values.to_numpy(dtype=object)
    return np.fromiter(values, dtype=object, count=len(values))


def option_names(function: StepFunction) -> tuple[str, ...]:
    """Return the names of a step's keyword-only arguments: the options that it takes."""
    try:
        return _option_names(function)
    except TypeError:  # not hashable, so not remembered
        return _option_names.__wrapped__(function)


@lru_cache(maxsize=512)
def _option_names(function: StepFunction) -> tuple[str, ...]:
    """Read the keyword-only arguments from the signature; none where there is no signature to read."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:
        return ()
    return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY)
