"""score: several scorers over one frame; run_one: one scorer over one row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pandas as pd

from scorekit.columns import read_steps, require_frame
from scorekit.drive import POLL_S, Stopped
from scorekit.errors import ArgumentTypeError, ColumnConflictError, ScorerDefinitionError
from scorekit.judge.loop import wait_any
from scorekit.progress import SHARED, Progress, progress_bar
from scorekit.scorer import Scorer

if TYPE_CHECKING:
    from scorekit.scorer import JudgeLike

ScorerLike = Callable[..., pd.DataFrame]
"""Any callable from a frame to the frame with a ``<name>_score`` column added: a public function, a partial of one, a Scorer, a user's own."""


def score(
    df: pd.DataFrame,
    scorers: Iterable[ScorerLike] | ScorerLike,
    *,
    judge: JudgeLike | None = None,
    keep_prompts: bool = False,
    usage: bool = False,
    progress: bool = True,
    **columns: str,
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
    judge, keep_prompts, usage
        Passed to each scorer that takes such an argument and does not have it bound already.
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
    settings = {"judge": judge, "keep_prompts": keep_prompts, "usage": usage}
    jobs = [_Job.of(scorer, settings, columns) for scorer in _as_list(scorers)]
    _refuse_unread(columns, jobs)
    for job in jobs:
        job.rehearse(df)
    _refuse_shared_columns(jobs)
    counters = Progress()
    judged = [job for job in jobs if job.judged]
    with ThreadPoolExecutor(max(1, len(judged)), thread_name_prefix="scorekit") as pool:
        try:
            with progress_bar(len(df) * len(jobs), "score", counters, shown=progress) as show:
                waiting = {pool.submit(_in_context, counters, job, df) for job in judged}
                for job in jobs:
                    if not job.judged:
                        _in_context(Progress(), job, df)
                        counters.add(rows=len(df))
                        show()
                while waiting:
                    for future in wait_any(list(waiting), POLL_S):
                        waiting.discard(future)
                        future.result()
                    show()
        except (Exception, KeyboardInterrupt) as error:
            counters.stopped = True
            pool.shutdown(wait=True)
            error.partial = _joined(df, jobs)  # type: ignore[union-attr]
            if isinstance(error, KeyboardInterrupt):
                error.args = (_interrupted(jobs, len(df)),)
            raise
    return _joined(df, jobs)


@dataclass
class _Job:
    """A scorer of one call: how to call it, what it writes, and what it gave."""

    label: str
    call: ScorerLike
    judged: bool
    name: str | None
    reads: frozenset[str] = frozenset()
    columns: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    result: pd.DataFrame | None = None

    @classmethod
    def of(cls, scorer: object, settings: Mapping[str, Any], columns: Mapping[str, str] | None = None) -> _Job:
        """Bind the settings and the columns that the scorer takes and does not have already."""
        columns = columns or {}
        if not callable(scorer):
            example = f"score_{scorer}" if isinstance(scorer, str) else "score_tone"
            hint = f"Pass functions such as {example}, partials of them, or Scorer values."
            raise ArgumentTypeError.from_value("a scorer", scorer, "a callable from a frame to a frame", hint)
        bound: dict[str, Any] = {}
        function: Any = scorer
        while isinstance(function, partial):
            bound = {**function.keywords, **bound}
            function = function.func
        parameters = inspect.signature(function).parameters if not isinstance(function, type) else {}
        free = {name: value for name, value in settings.items() if name in parameters and name not in bound and value is not None}
        reads = frozenset(function.needs if isinstance(function, Scorer) else parameters) & frozenset(columns)
        free |= {need: columns[need] for need in reads if need not in bound}
        if isinstance(function, Scorer):
            name: object = function.name
            judged = bool(function.prompts)
        else:
            default = parameters["name"].default if "name" in parameters else None
            name, judged = bound.get("name", default), "judge" in parameters
        label = getattr(function, "__name__", None) or str(name)
        return cls(label, partial(scorer, **free) if free else scorer, judged, name if isinstance(name, str) else None, reads)

    def rehearse(self, df: pd.DataFrame) -> None:
        """Call the scorer on no rows: what is wrong for every row raises here, and the result names its columns."""
        empty = df.iloc[:0]
        scored = self.call(empty)
        if not isinstance(scored, pd.DataFrame):
            msg = f"The scorer {self.label} must return a DataFrame; it returned {type(scored).__name__}."
            raise ScorerDefinitionError(msg)
        owned = self.name is not None and all(f"{self.name}_{part}" in df.columns for part in ("score", "reason", "error"))
        self.columns = [
            column for column in scored.columns if column not in df.columns or (owned and str(column).startswith(f"{self.name}_"))
        ]
        self.dropped = [column for column in df.columns if column not in scored.columns]
        if not any(str(column).endswith("_score") for column in self.columns):
            msg = f"The scorer {self.label} added no column that ends in '_score'; it gave {list(map(str, scored.columns))}."
            raise ScorerDefinitionError(msg)

    def run(self, df: pd.DataFrame) -> None:
        """Call the scorer; keep what it gave, or what it had finished when it raised."""
        try:
            self.result = self.call(df)
        except BaseException as error:
            self.result = getattr(error, "partial", None)
            raise


def _in_context(counters: Progress, job: _Job, df: pd.DataFrame) -> None:
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


def _refuse_unread(columns: Mapping[str, str], jobs: list[_Job]) -> None:
    """Raise where no scorer of the call reads a column that was named."""
    for keyword in columns:
        if not any(keyword in job.reads for job in jobs):
            msg = f"score has no argument {keyword!r}, and none of its scorers reads a column of that name; set options with functools.partial."
            raise ArgumentTypeError(msg)


def _refuse_shared_columns(jobs: list[_Job]) -> None:
    """Raise where two scorers would write one column."""
    for i, first in enumerate(jobs):
        for second in jobs[i + 1 :]:
            shared = [column for column in first.columns if column in second.columns]
            if shared:
                raise ColumnConflictError.from_scorers(first.label, second.label, shared)


def _joined(df: pd.DataFrame, jobs: list[_Job]) -> pd.DataFrame:
    """Return the frame with the columns of every job that gave a result."""
    done = [job for job in jobs if job.result is not None]
    gone = {column for job in done for column in (*job.columns, *job.dropped)}
    kept = df.drop(columns=[column for column in df.columns if column in gone])
    results = [job.result[job.columns] for job in done if job.result is not None]
    for job, result in zip(done, results, strict=True):
        if len(result) != len(df):
            msg = f"The scorer {job.label} returned {len(result)} rows for {len(df)}; a scorer keeps the rows as they are."
            raise ScorerDefinitionError(msg)
    joined = pd.concat([kept, *(result.set_axis(df.index, axis=0) for result in results)], axis=1)
    joined.attrs = dict(df.attrs)
    return joined


def _interrupted(jobs: list[_Job], count: int) -> str:
    """Say how far an interrupted call came."""
    parts = []
    for job in jobs:
        errors = None if job.result is None else job.result.get(f"{job.name}_error")
        done = 0 if job.result is None else count if errors is None else count - int((errors == "cancelled").sum())
        parts.append(f"{job.name or job.label} {done} of {count}")
    return f"Stopped. Rows done: {'; '.join(parts)}. They are in error.partial, and paid answers are in the judge's cache: run the call again to go on."


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
    """

    score: float
    reason: str | None
    error: str | None
    steps: dict[str, Any]
    prompts: dict[str, str]
    judge: str | None
    run_id: str


def run_one(scorer: ScorerLike, /, *, judge: JudgeLike | None = None, **columns: Any) -> ScoreResult:
    """Return one scorer's result for one row.

    Parameters
    ----------
    scorer
        As in `score`.
    judge
        Whom to ask, where the scorer takes one and has none bound.
    **columns
        The row: ``input="...", output="..."``; texts or lists of messages.

    Raises
    ------
    MissingColumnError, JudgeSetupError
        As the scorer itself.

    Examples
    --------
    >>> from scorekit import score_text_difference
    >>> run_one(score_text_difference, input="Hello world! How are you?", output="Hello there! How is it going?").score
    0.5925925925925926
    """
    job = _Job.of(scorer, {"judge": judge, "keep_prompts": True, "progress": False})
    cells: dict[str, pd.Series[Any]] = {name: pd.Series([value], dtype=object) for name, value in columns.items()}
    df = pd.DataFrame(cells, index=range(1))
    job.rehearse(df)
    scored = job.call(df)
    name = next(str(column).removesuffix("_score") for column in job.columns if str(column).endswith("_score"))
    row = {str(column).removeprefix(f"{name}_"): _plain(scored, column) for column in job.columns}
    prompts = {part.removesuffix("_prompt"): value for part, value in row.items() if part.endswith("_prompt") and value is not None}
    fixed = ("score", "reason", "error", "judge")
    return ScoreResult(
        score=float("nan") if row["score"] is None else row["score"],
        reason=row.get("reason"),
        error=row.get("error"),
        steps={part: value for part, value in row.items() if part not in fixed and not part.endswith("_prompt")},
        prompts=prompts,
        judge=row.get("judge"),
        run_id=str(uuid4()),
    )


def _plain(scored: pd.DataFrame, column: str) -> Any:
    """Return a one-row frame's cell as a Python value: a float, a text, the value of a JSON text, or None."""
    value = scored[column].iloc[0]
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return read_steps(scored, column).iloc[0]
        except ArgumentTypeError:
            return value
    if not isinstance(value, str) and pd.isna(value):
        return None
    return value.item() if hasattr(value, "item") else value
