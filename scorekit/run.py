"""score: several scorers over one frame; run_one: one scorer over one row."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pandas as pd

from scorekit.columns import joined, require_frame
from scorekit.drive import POLL_S, Stopped
from scorekit.errors import ArgumentTypeError, ColumnConflictError, ScorerDefinitionError, listed, shown
from scorekit.judge.loop import wait_any
from scorekit.pipeline import WRITES_REACH
from scorekit.progress import SHARED, Progress, progress_bar
from scorekit.scorer import RESUME, Scorer, warn_if_local
from scorekit.texts import is_missing
from scorekit.trace import TRACE, StepRun

if TYPE_CHECKING:
    from scorekit.scorer import JudgeLike

ScorerLike = Callable[..., pd.DataFrame]
"""Any callable from a frame to the frame with a ``<name>_score`` column added: a public function, a partial of one, a Scorer, a user's own."""


def score(
    df: pd.DataFrame,
    /,
    scorers: Iterable[ScorerLike] | ScorerLike,
    *,
    judge: JudgeLike | None = None,
    repeats: int = 1,
    keep_prompts: bool = False,
    usage: bool = False,
    progress: bool = True,
    **columns: Hashable,
) -> pd.DataFrame:
    """Return the frame with the columns of several scorers added.

    Each scorer reads the frame as given, not what the others add. Judged scorers run side by side and keep the judge busy together.

    Parameters
    ----------
    df
        The rows; never changed.
    scorers
        Scorers: public functions (``score_tone``), partials of them (``functools.partial(score_tone, lexicon="afinn")``), `Scorer` values, or
        callables of your own from a frame to the frame with a ``<name>_score`` column added.
    judge, repeats, keep_prompts, usage
        Passed to each judged scorer that takes such an argument and does not have it bound already.
    progress
        Show one bar for all when it takes more than 2 seconds.
    **columns
        Which column stands for one that the scorers need, ``input="question", output="answer"``: passed to each scorer that reads it.

    Returns
    -------
    pandas.DataFrame
        The same rows, order and index; after the frame's own columns those of each scorer, in the order of ``scorers``.

    Raises
    ------
    ArgumentTypeError, MissingColumnError, ColumnConflictError, JudgeSetupError
        Before any request: each scorer is first called on no rows.
    Exception, KeyboardInterrupt
        What a scorer raises; the rest is stopped, and what was done is in ``error.partial``.

    Examples
    --------
    >>> import pandas as pd
    >>> from scorekit import score_text_difference, score_tone
    >>> df = pd.DataFrame({"input": ["I love it."], "output": ["I like it."]})
    >>> scored = score(df, [score_tone, score_text_difference])
    >>> [column for column in scored.columns if column.endswith("_score")]
    ['tone_score', 'text_difference_score']
    """
    require_frame(df, "score")
    settings = {"judge": judge, "repeats": repeats if repeats != 1 else None, "keep_prompts": keep_prompts, "usage": usage}
    jobs = [Job.of(scorer, settings, columns) for scorer in _as_list(scorers)]
    _refuse_unread(columns, jobs)
    for job in jobs:
        job.rehearse(df)
    refuse_shared_columns(jobs)
    if len(df) and judge is None and any(job.judged and not job.has_judge for job in jobs):
        warn_if_local()
    counters = Progress()
    judged = [job for job in jobs if job.judged]
    with ThreadPoolExecutor(max(1, len(judged)), thread_name_prefix="scorekit") as pool:
        try:
            total = len(df) * sum(repeats if job.judged else 1 for job in jobs)
            with progress_bar(total, "score", counters, shown=progress and len(df) > 0 and SHARED.get() is None) as show:
                waiting = {pool.submit(run_job, counters, job, df) for job in judged}
                for job in jobs:
                    if not job.judged:
                        run_job(Progress(), job, df)
                        counters.add(rows=len(df))
                        show()
                while waiting:
                    for future in wait_any(list(waiting), POLL_S):
                        waiting.discard(future)
                        future.result()
                    show()
        except (Exception, KeyboardInterrupt) as error:
            counters.stopped = True
            try:
                pool.shutdown(wait=True)
            finally:  # a second Ctrl-C must not lose what is there
                error.partial = _joined(df, jobs)  # type: ignore[union-attr]
                if isinstance(error, KeyboardInterrupt):
                    error.args = (_interrupted(jobs, len(df)),)
            raise
    return _joined(df, jobs)


@dataclass
class Job:
    """A scorer of one call: how to call it, what it writes, and what it gave."""

    label: str
    call: ScorerLike
    judged: bool = False
    ours: bool = False
    has_judge: bool = False
    name: str | None = None
    reads: frozenset[str] = frozenset()
    columns: list[Hashable] = field(default_factory=list)
    result: pd.DataFrame | None = None

    @classmethod
    def of(cls, scorer: object, settings: Mapping[str, Any], columns: Mapping[str, Hashable] | None = None) -> Job:
        """Bind the settings and the columns that the scorer takes and does not have already."""
        columns = columns or {}
        if not callable(scorer):
            example = f"score_{scorer}" if isinstance(scorer, str) else "score_tone"
            hint = f"Pass functions such as {example}, partials of them, or Scorer values."
            raise ArgumentTypeError.from_value("a scorer", scorer, "a callable from a frame to a frame", hint)
        function, bound = unwrapped(scorer)
        parameters = parameters_of(function)
        if isinstance(function, Scorer):
            judged, reads = bool(function.prompts), frozenset(function.needs)
            name: object = function.name
            bound = {"judge": function.judge, **bound} if function.judge is not None else bound
        else:
            default = parameters["name"].default if "name" in parameters else None
            judged, name, reads = "judge" in parameters, bound.get("name", default), frozenset(parameters)
        free = {key: value for key, value in settings.items() if key in parameters and key not in bound and value is not None}
        if not judged:
            free.pop("repeats", None)
        free |= {need: columns[need] for need in reads & frozenset(columns) if need not in bound}
        return cls(
            str(getattr(function, "__name__", name if isinstance(name, str) else type(function).__name__)),
            partial(scorer, **free) if free else scorer,
            judged,
            ours=isinstance(function, Scorer) or str(getattr(function, "__module__", "")).startswith("scorekit."),
            has_judge="judge" in bound,
            name=name if isinstance(name, str) else None,
            reads=reads & frozenset(columns),
        )

    @property
    def scores(self) -> list[str]:
        """The names of the scores that it writes, once `rehearse` has found out its columns."""
        return [str(column).removesuffix("_score") for column in self.columns if str(column).endswith("_score")]

    def rehearse(self, df: pd.DataFrame) -> None:
        """Call the scorer on no rows: what is wrong for every row raises here, and the result names its columns."""
        token = SHARED.set(Progress())
        try:
            self.columns = self._written(df.iloc[:0])
        finally:
            SHARED.reset(token)
        if not self.scores:
            msg = f"The scorer {self.label} added no column that ends in '_score'."
            raise ScorerDefinitionError(msg)

    def _written(self, empty: pd.DataFrame) -> list[Hashable]:
        """Return the columns that the scorer writes, those of an earlier run too.

        Ours come last and begin with the score. What another's function writes anew shows when it is given the frame without any scores.
        """
        scored = self._called(empty)
        if self.ours:
            columns: list[Hashable] = list(scored.columns)
            return columns[columns.index(f"{self.name}_score") :]
        bare = empty.drop(columns=[column for column in empty.columns if str(column).endswith("_score")])
        try:
            again = self._called(bare)
        except Exception:  # noqa: BLE001  (it reads a score, so it cannot be shown a frame without)
            return [column for column in scored.columns if column not in empty.columns]
        return [column for column in again.columns if column not in bare.columns]

    def _called(self, df: pd.DataFrame) -> pd.DataFrame:
        """Call the scorer; another's function gets a frame of its own, so that what it writes does not reach the caller's."""
        scored = self.call(df if self.ours else df.copy(deep=WRITES_REACH))
        if not isinstance(scored, pd.DataFrame):
            msg = f"The scorer {self.label} must return a DataFrame; it returned {type(scored).__name__}."
            raise ScorerDefinitionError(msg)
        return scored

    def run(self, df: pd.DataFrame) -> None:
        """Call the scorer; keep what it gave, or what it had finished when it raised."""
        try:
            self.result = self._checked(self._called(df), df)
        except BaseException as error:
            partial_frame = getattr(error, "partial", None)
            self.result = None if partial_frame is None else partial_frame[self.columns]
            raise

    def _checked(self, scored: pd.DataFrame, df: pd.DataFrame) -> pd.DataFrame:
        """Return the scorer's columns, or raise where its rows are not the frame's."""
        if len(scored) != len(df):
            msg = f"The scorer {self.label} returned {len(scored)} rows for {len(df)}; a scorer keeps the rows as they are."
            raise ScorerDefinitionError(msg)
        same = [column for column in df.columns if column in scored.columns and column not in self.columns]
        moved = not scored.index.equals(df.index) or not all(_equal(scored[column], df[column]) for column in ([] if self.ours else same))
        if moved:
            msg = f"The scorer {self.label} returned the rows in another order or with another index; a scorer keeps them as they are."
            raise ScorerDefinitionError(msg)
        if lost := [column for column in self.columns if column not in scored.columns]:
            msg = f"The scorer {self.label} wrote {listed(self.columns)} on no rows, but not {listed(lost)} on {len(df)}."
            raise ScorerDefinitionError(msg)
        for name in [] if self.ours else self.scores:
            self._refuse_other_than_numbers(scored[f"{name}_score"])
        return scored[self.columns]

    def _refuse_other_than_numbers(self, scores: pd.Series[Any]) -> None:
        """Raise where a score is no number."""
        try:
            pd.to_numeric(scores)
        except (TypeError, ValueError):
            odd = next(cell for cell in scores.tolist() if not is_missing(cell) and not isinstance(cell, Real))
            msg = f"The scorer {self.label} must write numbers into {scores.name!r}, but wrote {shown(odd)!r}, which is a {type(odd).__name__}."
            raise ScorerDefinitionError(msg) from None


def unwrapped(scorer: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function inside nested partials, and the keywords that they bind."""
    bound: dict[str, Any] = {}
    while isinstance(scorer, partial):
        bound = {**scorer.keywords, **bound}
        scorer = scorer.func
    return scorer, bound


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter]:
    """Return a callable's parameters; none where it does not say."""
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _equal(first: Any, second: Any) -> bool:
    """Return whether two columns hold the same cells in the same order; cells that cannot be compared count as the same."""
    if first is second:
        return True
    try:
        return bool(first.equals(second))
    except (TypeError, ValueError, AttributeError):
        return True


def run_job(counters: Progress, job: Job, df: pd.DataFrame) -> None:
    """Run a job so that its scorer counts in ``counters`` and shows no bar of its own; one told to stop ends quietly."""
    token = SHARED.set(counters)
    try:
        job.run(df)
    except Stopped:
        return
    finally:
        SHARED.reset(token)


def _as_list(scorers: Iterable[ScorerLike] | ScorerLike) -> list[ScorerLike]:
    """Return the scorers as a list; a single one is a list of one."""
    found: list[ScorerLike] = [scorers] if callable(scorers) else list(scorers)
    if not found:
        msg = "score needs at least one scorer, such as [score_relevancy, score_tone]."
        raise ArgumentTypeError(msg)
    return found


def _refuse_unread(columns: Mapping[str, Hashable], jobs: list[Job]) -> None:
    """Raise where no scorer of the call reads a column that was named."""
    for keyword in columns:
        if not any(keyword in job.reads for job in jobs):
            msg = f"score has no argument {keyword!r}, and none of its scorers reads a column of that name; set options with functools.partial."
            raise ArgumentTypeError(msg)


def refuse_shared_columns(jobs: list[Job]) -> None:
    """Raise where two scorers would write one column."""
    for i, first in enumerate(jobs):
        for second in jobs[i + 1 :]:
            if shared := [column for column in first.columns if column in second.columns]:
                raise ColumnConflictError.from_scorers(first.label, second.label, [str(column) for column in shared])


def _joined(df: pd.DataFrame, jobs: list[Job]) -> pd.DataFrame:
    """Return the frame with the columns of every job that gave a result."""
    done = [job for job in jobs if job.result is not None]
    gone = {column for job in done for column in job.columns}
    kept = df.drop(columns=[column for column in df.columns if column in gone])
    return joined(df, kept, [job.result for job in done if job.result is not None])


def _interrupted(jobs: list[Job], count: int) -> str:
    """Say how far an interrupted call came."""
    parts = []
    for job in jobs:
        errors = None if job.result is None else job.result.get(f"{job.name}_error")
        done = 0 if job.result is None else count if errors is None else count - int((errors == "cancelled").sum())
        parts.append(f"{job.name or job.label} {done} of {count}")
    return f"Stopped. Rows done: {'; '.join(parts)}. {RESUME}"


@dataclass(frozen=True)
class ScoreResult:
    """One row's result.

    Attributes
    ----------
    score
        NaN where there is none.
    reason
        Why this score, or why none.
    error
        None when scored, else one of ``scorekit.columns.ERROR_CODES``.
    steps
        The fields of the steps by name, as Python values: ``{"yes": 2.0, "statements": [...], "results": [...]}``.
    prompts
        What each judged step asked, by step.
    judge
        Which judge gave the score; None for code scorers.
    run_id
        A new id for this result.
    trace
        What each step did, in order, those of the first repeat first: prompts, raw replies, fields, time and tokens. A step that did not run, since
        an earlier one ended the row, is not there.
    """

    score: float
    reason: str | None
    error: str | None
    steps: dict[str, Any]
    prompts: dict[str, str]
    judge: str | None
    run_id: str
    trace: tuple[StepRun, ...] = field(default=(), repr=False)


def run_one(scorer: ScorerLike, /, *, judge: JudgeLike | None = None, **columns: Any) -> ScoreResult:
    """Return one scorer's result for one row.

    Parameters
    ----------
    scorer
        As in `score`.
    judge
        Whom to ask, where the scorer takes one and has none bound.
    **columns
        The row: ``input="...", output="..."``, texts or lists of messages. Options of a public scorer may stand among them (``lexicon="afinn"``).

    Raises
    ------
    MissingColumnError, JudgeSetupError
        As the scorer itself.
    Exception, KeyboardInterrupt
        What a step raises. The steps that had run before are in ``error.trace``.

    Examples
    --------
    >>> from scorekit import score_text_difference
    >>> run_one(score_text_difference, input="Hello world! How are you?", output="Hello there! How is it going?").score
    0.5925925925925926
    >>> [run.step for run in run_one(score_text_difference, input="a", output="b").trace]
    ['analyze', 'generate_score', 'generate_reason']
    """
    function, _ = unwrapped(scorer)
    options = {key: value for key, value in columns.items() if key in _option_keywords(function)}
    job = Job.of(partial(scorer, **options) if options else scorer, {"judge": judge, "keep_prompts": True, "progress": False})
    cells: dict[str, pd.Series[Any]] = {name: pd.Series([value], dtype=object) for name, value in columns.items() if name not in options}
    df = pd.DataFrame(cells, index=range(1))
    job.rehearse(df)
    began = perf_counter()
    scored, trace = _traced(job, df)
    seconds = perf_counter() - began
    name = job.scores[0]
    result = read_result(scored[job.columns], 0, name)
    if not trace and not job.ours:
        given = {part: value for part in ("score", "reason") if not pd.isna(value := getattr(result, part))}
        trace = (StepRun(name, "scorer", "code", given | result.steps, seconds, error=result.error),)
    return replace(result, trace=trace)


def read_result(df: pd.DataFrame, position: int, name: str) -> ScoreResult:
    """Return the result that a frame of one scorer's columns holds in the row at a position, with an id of its own.

    Examples
    --------
    >>> df = pd.DataFrame({"tone_score": [0.5], "tone_reason": ["Even."], "tone_error": [None], "tone_difference": [1.0]})
    >>> read_result(df, 0, "tone").steps
    {'difference': 1.0}
    """
    row = {str(column).removeprefix(f"{name}_"): _plain(df[column].iloc[position]) for column in df.columns}
    fixed = ("score", "reason", "error", "judge")
    return ScoreResult(
        score=float("nan") if row["score"] is None else row["score"],
        reason=row.get("reason"),
        error=row.get("error"),
        steps={part: _nested(value) for part, value in row.items() if part not in fixed and not part.endswith("_prompt")},
        prompts={part.removesuffix("_prompt"): value for part, value in row.items() if part.endswith("_prompt") and value is not None},
        judge=row.get("judge"),
        run_id=str(uuid4()),
    )


def _traced(job: Job, df: pd.DataFrame) -> tuple[pd.DataFrame, tuple[StepRun, ...]]:
    """Call the scorer; return what it gave, and what its steps did, which an error carries too."""
    runs: list[StepRun] = []
    token = TRACE.set(runs)
    try:
        scored = job.call(df)
    except (Exception, KeyboardInterrupt) as error:
        error.trace = _in_order(runs)  # type: ignore[union-attr]
        raise
    finally:
        TRACE.reset(token)
    return scored, _in_order(runs)


def _in_order(runs: Iterable[StepRun]) -> tuple[StepRun, ...]:
    """Return the records of each repeat together; repeats run side by side."""
    return tuple(sorted(runs, key=lambda run: run.repeat))


def _option_keywords(function: Any) -> set[str]:
    """Return the keywords of a public scorer that are options: those that do not name a column by default, as ``input="input"`` does."""
    if isinstance(function, Scorer):
        return {"repeats", "usage"}
    return {
        key for key, parameter in parameters_of(function).items() if parameter.kind is parameter.KEYWORD_ONLY and parameter.default != key
    }


def _plain(value: Any) -> Any:
    """Return a cell as a Python value; None where it is missing."""
    if not isinstance(value, str) and pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value


def _nested(value: Any) -> Any:
    """Return the list or mapping that a step's text spells in JSON, or the value as it is."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
