"""score_stored: a scorer run over rows that are in a store already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.columns import joined, score_names
from scorekit.drive import POLL_S
from scorekit.errors import ArgumentTypeError
from scorekit.judge.loop import wait_any
from scorekit.monitor.cells import escape
from scorekit.monitor.reading import Picked, check_filters, check_limit, clauses, errors_of, pick_rows, read_results
from scorekit.monitor.rows import decode, encode, result_id
from scorekit.monitor.scoring import completed, mark
from scorekit.monitor.store import ScoreStore
from scorekit.monitor.versions import versions_of
from scorekit.monitor.writing import batches
from scorekit.progress import Progress, progress_bar
from scorekit.run import Job, ScorerLike, run_job
from scorekit.scorer import warn_if_local

if TYPE_CHECKING:
    from scorekit.scorer import JudgeLike

BATCH: Final = 1_000
"""How many rows are read, scored and stored together."""

TRIED_AGAIN: Final = frozenset({"cancelled", "scorer_error", "judge_error", "judge_timeout", "budget_reached"})
"""Errors that another attempt may not meet."""


def score_stored(
    store: ScoreStore,
    scorer: ScorerLike,
    /,
    *,
    where: Mapping[str, Any] | None = None,
    again: bool = False,
    judge: JudgeLike | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Return stored rows with a scorer's columns, scored and stored where they were not.

    Rows are read, scored and stored 1,000 at a time, so that an interrupted call goes on where it ended: what is stored is not scored again.

    Parameters
    ----------
    store
        Where the rows are, and where the scores go: under the same run, row, entity and time.
    scorer
        As in `score`: a public function, a partial of one, a `Scorer`, or a callable of your own. Its results are kept under its own name: for the key
        ``"mood"`` of `live` pass ``partial(score_tone, name="mood")``.
    where
        Which rows, in the words of ``store.read``: ``{"run": "v2", "since": "2026-01-01"}``, ``limit`` too. None takes all.
    again
        Score rows anew that this scorer has scored; their results are replaced. Otherwise rows that have a result of it are left alone, except
        where its error is one that may pass: judge_error, judge_timeout, scorer_error, budget_reached, cancelled. A call that raised has no
        output to score: it gets ``target_error``, as in `live`.
    judge
        As in `score`.
    progress
        Show a bar when it takes more than 2 seconds.

    Returns
    -------
    pandas.DataFrame
        The rows that ``where`` picks as ``store.read`` gives them, this scorer's columns among them.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError, OptionRangeError, MissingColumnError, JudgeSetupError
        Before any request: what is wrong with the filters, or for every row.
    StoreError
        Where the database cannot be used.
    Exception, KeyboardInterrupt
        What the scorer raises, and Ctrl-C; the rows that were finished are stored first.

    Notes
    -----
    Cost: as the scorer's, for each row that it has not scored.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from scorekit import score_text_difference, score_tone
    >>> store = ScoreStore(tempfile.mkdtemp() + "/scores.db")
    >>> df = pd.DataFrame({"input": ["I love it."], "output": ["I hate it."]})
    >>> store.append(df.pipe(score_tone), run="v1")
    1
    >>> score_stored(store, score_text_difference, where={"run": "v1"})["text_difference_score"].round(2).tolist()
    [0.7]
    >>> store.runs()["scorers"].tolist()
    ['text_difference, tone']
    """
    if not isinstance(store, ScoreStore):
        raise ArgumentTypeError.from_value("score_stored: the first argument", store, "a ScoreStore", "Such as ScoreStore('scores.db').")
    wanted = dict(where or {})
    limit = wanted.pop("limit", None)
    check_limit(limit)
    filters = check_filters(**wanted)
    with store.database().reading() as db:
        picked = pick_rows(db, clauses(db, filters), limit)
    job = Job.of(scorer, {"judge": judge})
    first = _frame(store, [id_ for row in picked[:BATCH] for id_ in row.ids])
    job.rehearse(first)
    names = [job.name] if job.ours and job.name else job.scores
    if job.judged and judge is None and not job.has_judge and picked:
        warn_if_local()
    counters = Progress()
    with progress_bar(len(picked), "score_stored", counters, shown=progress and bool(picked)) as show:
        for batch in batches(picked, BATCH):
            left = batch if again else _unscored(store, names, batch)
            counters.add(rows=len(batch) - len(left))
            if left:
                _score(store, job, names, left, first.columns, counters, show)
    ids = [id_ for row in picked for id_ in dict.fromkeys([*row.ids, *_ids(row, names)])]
    return _frame(store, ids)


def _ids(row: Picked, names: Sequence[str]) -> list[str]:
    """Return the ids that a row's results of the scorer have."""
    return [result_id(row.run, escape(name), row.row) for name in names]


def _frame(store: ScoreStore, ids: Sequence[str]) -> pd.DataFrame:
    """Return results as a frame."""
    with store.database().reading() as db:
        return decode(read_results(db, ids))


def _unscored(store: ScoreStore, names: Sequence[str], rows: Sequence[Picked]) -> list[Picked]:
    """Return the rows that lack a result of the scorer, or have an error that another attempt may not meet."""
    wanted = {row: _ids(row, names) for row in rows}
    with store.database().reading() as db:
        found = errors_of(db, [id_ for ids in wanted.values() for id_ in ids])
    return [row for row, ids in wanted.items() if any(id_ not in found or found[id_] in TRIED_AGAIN for id_ in ids)]


def _score(
    store: ScoreStore,
    job: Job,
    names: Sequence[str],
    rows: Sequence[Picked],
    columns: Iterable[Any],
    counters: Progress,
    show: Callable[[], None],
) -> None:
    """Score rows and store the results; where the scorer is ended, those that were finished. Calls that raised have nothing to score."""
    frame = _frame(store, [id_ for row in rows for id_ in row.ids])
    for column in columns:  # that no row of this batch has
        if column not in frame.columns and column not in job.columns:
            frame[column] = pd.Series(None, index=frame.index, dtype=object)
    raised = _raised(frame)
    job.result = None
    try:
        _run(job, frame[raised.isna()], counters, show)
    except (Exception, KeyboardInterrupt):
        _keep(store, job, names, rows, frame, raised, finished=True)
        raise
    counters.add(rows=int(raised.notna().sum()))
    _keep(store, job, names, rows, frame, raised, finished=False)


def _raised(frame: pd.DataFrame) -> pd.Series[Any]:
    """Return why there is no output, of the rows whose function raised; missing for the others."""
    found: pd.Series[Any] = pd.Series(pd.NA, index=frame.index, dtype="string")
    for name in score_names(frame):
        if {f"{name}_error", f"{name}_reason"} <= set(frame.columns):
            mine = frame[f"{name}_error"].eq("target_error").fillna(value=False).astype(bool)
            found = found.where(~mine | found.notna(), frame[f"{name}_reason"].astype("string").fillna("The function raised."))
    return found


def _run(job: Job, frame: pd.DataFrame, counters: Progress, show: Callable[[], None]) -> None:
    """Run the scorer; one that asks a judge in a thread of its own, so that the bar moves and Ctrl-C is heard."""
    if not job.judged:
        run_job(Progress(), job, frame)
        counters.add(rows=len(frame))
        show()
        return
    with ThreadPoolExecutor(1, thread_name_prefix="scorekit") as pool:
        future = pool.submit(run_job, counters, job, frame)
        try:
            while not wait_any([future], POLL_S):
                show()
            future.result()
        except BaseException:
            counters.stopped = True
            raise


def _keep(
    store: ScoreStore,
    job: Job,
    names: Sequence[str],
    rows: Sequence[Picked],
    frame: pd.DataFrame,
    raised: pd.Series[Any],
    *,
    finished: bool,
) -> None:
    """Store what the scorer gave, at the places of the rows; the finished ones alone where it was stopped."""
    if job.result is None:
        return
    result = job.result
    for name in names:
        result = completed(result, name)
    result = result.reindex(frame.index)
    without = np.flatnonzero(raised.notna())
    for name in names:
        mark(result, name, without.tolist(), "target_error", raised.iloc[without].tolist())
    kept = frame.drop(columns=[column for column in result.columns if column in frame.columns])
    scored = joined(frame, kept, [result])
    if finished:
        for name in names:
            if f"{name}_error" in scored.columns:
                scored = scored[scored[f"{name}_error"].ne("cancelled").fillna(value=True)]
    places = {(row.run, row.row): row.position for row in rows}
    made = encode(scored, scorers=names, versions=versions_of(names, None))
    store.insert([row._replace(position=places[row.run_id, row.row]) for row in made], existing="replace")
