"""run_evals: an application is called with every item, what it gives is scored as it comes, and the run gets a verdict."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scorekit.analysis.statistics import check_whole
from scorekit.analysis.summary import summarize, worse_when_higher
from scorekit.columns import require
from scorekit.errors import ArgumentTypeError
from scorekit.evals.gates import Bounds, gates_frame, groups_of, read_thresholds, thresholds_frame, typed_rows, verdict_of
from scorekit.evals.items import Layout, item_ids
from scorekit.evals.result import EvalResult
from scorekit.evals.running import COLUMNS, OnItem, Run, interrupted
from scorekit.evals.targets import Target, as_scorers, read_data, read_targets, refuse_async
from scorekit.judge.loop import interruptible
from scorekit.progress import progress_bar
from scorekit.run import Job
from scorekit.scorer import warn_if_local

if TYPE_CHECKING:
    import pandas as pd

    from scorekit.run import ScorerLike
    from scorekit.scorer import JudgeLike


def run_evals(
    data: pd.DataFrame | Iterable[Mapping[str, Any]] | Iterable[str],
    target: Target | Mapping[str, Target],
    scorers: Iterable[ScorerLike] | ScorerLike = (),
    *,
    gates: Iterable[ScorerLike] | ScorerLike = (),
    thresholds: Mapping[str, float | Mapping[str, float]] | None = None,
    on_item_complete: OnItem | None = None,
    concurrency: int = 8,
    judge: JudgeLike | None = None,
    input: str = "input",  # noqa: A002  (the column's name is the keyword, as in scorers)
    item: Hashable | None = None,
    lower_is_better: Collection[str] = (),
    progress: bool = True,
    **columns: Hashable,
) -> EvalResult:
    """Return what an application gives for every item, its scores, and a verdict.

    Outputs are scored as they come, those that came together as one micro-batch, so that a slow item holds up no other. An item for which the target
    raises, or gives no text, is an error row: its scorers are not run. Judges answer from their cache: the same call again costs no judge call for
    outputs that are the same.

    Parameters
    ----------
    data
        The items: a frame, records (``[{"input": "...", "ground_truth": "..."}]``), or texts, which are inputs.
    target
        What to evaluate: a function, sync or async, that gives a text or chat messages. It is called with the item's input; one that needs two
        arguments is called with the input and the whole item, a dict. Or several by name, ``{"old": agent, "new": agent2}``: each is called with
        every item. A sync one runs in threads; an async one on an event loop of its own, not that of the caller.
    scorers
        As in `score`. They read the column ``output`` and the item's own.
    gates
        Scorers that every row must pass with 1.0 (0.0 for one in ``lower_is_better``). Without any scorers, gates alone are enough.
    thresholds
        By score what its mean must reach: a number is the least, for one in ``lower_is_better`` the most; or ``{"min": 0.2, "max": 0.8}``, ends included.
    on_item_complete
        ``on_item_complete(item, target_result, {scorer: ScoreResult})``, called in the caller's thread once for every item (and target), as its
        micro-batch is scored. The item is a dict, the target's result as it gave it, None where it failed; then every result has the error.
    concurrency
        How many calls of targets run at once, 1 or more.
    judge
        Whom scorers ask that take a judge and have none bound.
    input
        The column that the target, and the scorers, read as the input.
    item
        The column that tells items apart: no id is missing or there twice. None adds, with several targets, a column ``item`` with the index's labels.
    lower_is_better
        Names of scores that are worse when higher, beside the shipped ones.
    progress
        Show a bar when it takes more than 2 seconds.
    **columns
        Which column stands for one that the scorers need, as in `score`: ``context="docs"``.

    Returns
    -------
    EvalResult
        ``frame`` with one target has the rows and the index of ``data``; with several, a row an item and target on a fresh index, with ``target``
        (string) and ``item``. It adds ``output`` (string; messages as JSON, which scorers read like messages), ``error`` and ``reason`` (string, missing
        where there is an output), ``seconds`` (float64), and the columns of the scorers. ``verdict`` is that of Mastra: ``"failed"`` where a gate is
        missed, ``"scored"`` where a threshold is, else ``"passed"``; None where there are no gates and no thresholds, for then nothing was passed.

    Raises
    ------
    ArgumentTypeError, OptionRangeError, UnknownOptionError, MissingColumnError, ColumnConflictError, JudgeSetupError
        Before any call: no items, no scorers, a target that needs other arguments, a threshold for no score, a column that is not there or there twice.
    Exception, KeyboardInterrupt
        What a scorer or ``on_item_complete`` raises. What was done is in ``error.partial``, a frame; other items have the error ``cancelled``.

    Notes
    -----
    A target that never returns holds up the end of the run: give it a time-out of its own. Ctrl-C ends the wait, but not a thread that is in it.

    A gate or a threshold is not passed either where no row has that score, or where the target or the judge failed in one (``failures``): a run that could
    not be carried out shows nothing. A row that is ``not_scorable``, ``not_text`` or ``missing_input`` for a scorer counts for neither side. The call
    again asks judges about failed rows alone, and the target about every item.

    References
    ----------
    runEvals of Mastra, with its gates, thresholds and verdict. There a gate must average 1.0, which is the same as 1.0 in every row.

    Examples
    --------
    >>> from functools import partial
    >>> from scorekit import score_text_difference
    >>> result = run_evals(
    ...     [{"input": "ab", "ground_truth": "AB"}, {"input": "cd", "ground_truth": "CX"}],
    ...     target=str.upper,
    ...     scorers=[partial(score_text_difference, input="ground_truth")],
    ...     thresholds={"text_difference": 0.7},
    ... )
    >>> result.frame[["output", "text_difference_score"]]
      output  text_difference_score
    0     AB                    1.0
    1     CD                    0.5
    >>> result.verdict
    'passed'
    """
    frame = read_data(data, input)
    tracked, required = as_scorers(scorers, "scorers"), as_scorers(gates, "gates")
    if not tracked and not required:
        msg = "run_evals needs at least one scorer or gate, such as scorers=[score_relevancy]."
        raise ArgumentTypeError(msg)
    targets = read_targets(target)
    check_whole("concurrency", concurrency, 1)
    refuse_async(on_item_complete, "on_item_complete")
    require(frame, input, "run_evals", "input")
    key = "target" if isinstance(target, Mapping) else None
    ids = item_ids(frame, item, "run_evals") if key is not None or item is not None else None
    layout = Layout(frame, ids, key, tuple(map(str, targets)))
    layout.refuse_conflicts(COLUMNS, "run_evals")
    distinct = [*tracked, *(gate for gate in required if not any(gate is scorer for scorer in tracked))]
    jobs = [Job.of(scorer, {"judge": judge}, {"input": input, **columns}) for scorer in distinct]
    _refuse_unread(columns, jobs)
    run = Run(layout, list(targets.values()), input, jobs, on_item_complete)
    run.rehearse()
    worse = worse_when_higher(lower_is_better)
    bounds = read_thresholds(thresholds or {}, run.names, worse)
    if judge is None and any(job.judged and not job.has_judge for job in jobs):
        warn_if_local()
    total = layout.count * (1 + len(jobs))
    try:
        with interruptible(), progress_bar(total, "run_evals", run.counters, shown=progress) as show:
            run.work(concurrency, show)
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        error.partial = run.frame()  # type: ignore[union-attr]
        if isinstance(error, KeyboardInterrupt):
            error.args = (interrupted(error.partial, run.names),)  # type: ignore[attr-defined]
        raise
    gate_names = [
        name for scorer, job in zip(distinct, jobs, strict=True) if any(scorer is gate for gate in required) for name in job.scores
    ]
    return _result(run, gate_names, bounds, worse)


def _result(run: Run, gates: Sequence[str], bounds: Mapping[str, Bounds], lower_is_better: Collection[str]) -> EvalResult:
    """Return a finished run's result."""
    frame, named = run.frame(), run.layout.key is not None
    groups = groups_of(frame, named=named)
    gate_table, threshold_table = gates_frame(groups, gates, lower_is_better), thresholds_frame(groups, bounds)
    rows = []
    for target, part in groups.items():
        own = [table[table["target"] == target] if named else table for table in (gate_table, threshold_table)]
        codes = part["error"].value_counts()
        counts = {"items": len(part), "failed": int(codes.sum()), "errors": ", ".join(f"{code}: {n}" for code, n in codes.items())}
        rows.append({"target": target, **counts, "seconds": part["seconds"].mean(), "verdict": verdict_of(*own)})
    dtypes = {"target": "string", "items": "int64", "failed": "int64", "errors": "string", "seconds": "float64", "verdict": "string"}
    return EvalResult(
        frame=frame,
        scores=summarize(frame, by=run.layout.key, scores=run.names),
        summary=typed_rows(rows, dtypes, named=named),
        gates=gate_table,
        thresholds=threshold_table,
        verdict=verdict_of(gate_table, threshold_table),
    )


def _refuse_unread(columns: Collection[str], jobs: Sequence[Job]) -> None:
    """Raise where no scorer of the call reads a column that was named."""
    for keyword in columns:
        if not any(keyword in job.reads for job in jobs):
            msg = f"run_evals has no argument {keyword!r}, and none of its scorers reads a column of that name; set options with functools.partial."
            raise ArgumentTypeError(msg)
