"""A run of an application over items: its calls, and the scorers over what they give, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import SimpleQueue
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pandas as pd

from scorekit.columns import joined, owned_columns
from scorekit.drive import CANCELLED
from scorekit.errors import ScorerDefinitionError
from scorekit.evals.calls import Called, Calls, next_event
from scorekit.evals.items import Layout, text_column
from scorekit.evals.targets import Target, call_target, read_output
from scorekit.progress import Progress
from scorekit.run import Job, ScoreResult, read_result, refuse_shared_columns, run_job
from scorekit.texts import is_missing
from scorekit.trace import as_python

COLUMNS: Final = ("output", "error", "reason", "seconds")
"""The columns of a target's results, before those of the scorers."""

BATCHES, ROWS_A_BATCH = 4, 256
"""How many micro-batches are scored at once, and how many rows one has at most: what has come since the last one began."""

OnItem = Callable[[dict[str, Any], Any, dict[str, ScoreResult]], object]
"""Takes an item, what its target gave, and its scores by name."""


@dataclass(eq=False)
class _Batch:
    """Rows that are scored together: their scorers, and how many of these are still at it."""

    rows: list[int]
    jobs: list[Job]
    open: int = 0


@dataclass
class _Piece:
    """What a scorer wrote for some rows."""

    rows: list[int]
    result: pd.DataFrame


class Run:
    """A run under way: what each row is, what its target gave, and what its scorers wrote."""

    def __init__(self, layout: Layout, targets: Sequence[Target], column: str, jobs: Sequence[Job], on_item: OnItem | None) -> None:
        """Begin with nothing called."""
        self.layout = layout
        self.base = layout.frame()
        self.jobs = jobs
        self.counters = Progress()
        self._targets = targets
        self._column = column
        self._on_item = on_item
        count = layout.count
        self._cells = {str(name): self.base.iloc[:, place].astype(object).tolist() for place, name in enumerate(self.base.columns)}
        self._outputs: list[str | None] = [None] * count
        self._errors: list[str | None] = ["cancelled"] * count
        self._reasons: list[str | None] = [CANCELLED] * count
        self._seconds = np.full(count, np.nan)
        self._said: dict[int, Any] = {}
        self._pieces: list[list[_Piece]] = [[] for _ in jobs]
        self._events: SimpleQueue[Called | tuple[_Batch, Future[None]]] = SimpleQueue()
        self._waiting = 0
        self._ready: list[int] = []
        self._batches: list[_Batch] = []
        self._nothing: list[pd.DataFrame | None] = []

    @property
    def names(self) -> list[str]:
        """The scores that are written, once `rehearse` has found them out."""
        return [name for job in self.jobs for name in job.scores]

    def rehearse(self) -> None:
        """Call each scorer on no rows: what is wrong for every row raises here, before anything is called."""
        empty = self.scored_rows([])
        for job in self.jobs:
            job.rehearse(empty)
        refuse_shared_columns(list(self.jobs))
        for job in self.jobs:
            blank = replace(job)
            run_job(Progress(), blank, empty)
            self._nothing.append(blank.result)

    def work(self, concurrency: int, show: Callable[[], None]) -> None:
        """Call the targets and score what they give, until nothing is left."""
        rows = []
        for row, value in enumerate(self._cells[self._column]):
            if is_missing(value):
                self._fail(row, "missing_input", f"The {self._column} is missing.")
            else:
                rows.append(row)
        calls = Calls([partial(self._call, row) for row in rows], concurrency, self._events)
        self._waiting = len(rows)
        judged = sum(job.judged for job in self.jobs)
        with ThreadPoolExecutor(max(1, judged * BATCHES), thread_name_prefix="scorekit") as pool:
            try:
                while self._waiting or self._ready or self._batches:
                    while len(self._ready) < ROWS_A_BATCH and not self._events.empty():
                        self._take(rows, self._events.get())
                    if self._ready and len(self._batches) < BATCHES:
                        self._begin(pool)
                    elif (event := next_event(self._events)) is not None:
                        self._take(rows, event)
                    show()
            except BaseException:
                self.counters.stopped = True
                raise
            finally:
                calls.stop()

    def scored_rows(self, rows: list[int]) -> pd.DataFrame:
        """Return some rows as scorers see them."""
        some = self.base.iloc[rows]
        return joined(some, some, [self._results(rows)])

    def frame(self) -> pd.DataFrame:
        """Return the result: every row, with what is there."""
        for batch in self._batches:
            with suppress(ScorerDefinitionError):  # another error is on its way to the caller
                self._keep(batch)
        self._batches = []
        written = {column for job in self.jobs for column in job.columns}
        kept = self.base.drop(columns=[column for column in self.base.columns if column in written])
        rows = list(range(len(self.base)))
        return joined(self.base, kept, [self._results(rows), *map(self._columns, self.jobs, self._pieces, self._nothing)])

    def _call(self, row: int) -> Any:
        """Call a row's target; in a thread of its own."""
        return call_target(self._targets[row % len(self._targets)], self._item(row), self._column)

    def _item(self, row: int) -> dict[str, Any]:
        """Return a row's own cells."""
        return {name: values[row] for name, values in self._cells.items()}

    def _results(self, rows: list[int]) -> pd.DataFrame:
        """Return what the targets gave for some rows."""
        texts = {"output": self._outputs, "error": self._errors, "reason": self._reasons}
        columns: dict[str, Any] = {name: text_column(values[row] for row in rows) for name, values in texts.items()}
        return pd.DataFrame({**columns, "seconds": self._seconds[rows]}, index=range(len(rows)))

    def _take(self, rows: Sequence[int], event: Called | tuple[_Batch, Future[None]]) -> None:
        """Take what has come: a call's end, or that of a scorer's part of a batch."""
        if isinstance(event, Called):
            self._waiting -= 1
            self._keep_output(rows[event.index], event)
        else:
            self._end(*event)

    def _keep_output(self, row: int, called: Called) -> None:
        """Keep what a target gave."""
        output, error, reason = read_output(called)
        self._seconds[row] = called.seconds
        if error is not None:
            self._fail(row, error, str(reason))
            return
        self._outputs[row], self._errors[row], self._reasons[row] = output, None, None
        if self._on_item is not None:
            self._said[row] = called.value
        self._ready.append(row)
        self.counters.add(rows=1)

    def _fail(self, row: int, error: str, reason: str) -> None:
        """Keep why a row has no output, and tell."""
        self._errors[row], self._reasons[row] = error, reason
        self.counters.add(rows=1 + len(self.jobs), errors=1)
        if self._on_item is not None:
            results = {name: ScoreResult(float("nan"), reason, error, {}, {}, None, str(uuid4())) for name in self.names}
            self._on_item(as_python(self._item(row)), None, results)

    def _begin(self, pool: ThreadPoolExecutor) -> None:
        """Begin to score what is ready: judged scorers in threads, the others here."""
        rows, self._ready = self._ready[:ROWS_A_BATCH], self._ready[ROWS_A_BATCH:]
        batch = _Batch(rows, [replace(job, result=None) for job in self.jobs])
        frame = self.scored_rows(rows)
        self._batches.append(batch)
        for job in batch.jobs:
            if job.judged:
                batch.open += 1
                pool.submit(run_job, self.counters, job, frame).add_done_callback(partial(self._put, batch))
        for job in batch.jobs:
            if not job.judged:
                run_job(Progress(), job, frame)
                self.counters.add(rows=len(rows))
        if not batch.open:
            self._finish(batch)

    def _put(self, batch: _Batch, future: Future[None]) -> None:
        """Tell that a scorer has done its part of a batch."""
        self._events.put((batch, future))

    def _end(self, batch: _Batch, future: Future[None]) -> None:
        """Note that a scorer has done its part of a batch; with the last the batch is done. What it raised is raised."""
        future.result()
        batch.open -= 1
        if not batch.open:
            self._finish(batch)

    def _finish(self, batch: _Batch) -> None:
        """Keep the scores of a batch and tell about its rows."""
        self._batches.remove(batch)
        self._keep(batch)
        if self._on_item is None:
            return
        parts = {name: job.result[owned_columns(job.result, name)] for job in batch.jobs if job.result is not None for name in job.scores}
        for place, row in enumerate(batch.rows):
            results = {name: read_result(part, place, name) for name, part in parts.items()}
            self._on_item(as_python(self._item(row)), self._said.pop(row), results)

    def _keep(self, batch: _Batch) -> None:
        """Keep what the scorers of a batch wrote."""
        for pieces, job in zip(self._pieces, batch.jobs, strict=True):
            if job.result is not None:
                job.result = _with_numbers(job, job.result)
                pieces.append(_Piece(batch.rows, job.result))

    def _columns(self, job: Job, pieces: Sequence[_Piece], nothing: pd.DataFrame | None) -> pd.DataFrame:
        """Return a scorer's columns for all rows. Where it was not run, its error is that of the row."""
        rows = [row for piece in pieces for row in piece.rows]
        parts = [piece.result for piece in pieces] or [nothing if nothing is not None else pd.DataFrame(columns=job.columns)]
        written = pd.DataFrame({name: _concatenated([part[name] for part in parts]) for name in job.columns})
        whole = written.set_axis(rows, axis=0).reindex(range(len(self.base)))
        left = np.setdiff1d(np.arange(len(whole)), rows)
        for name in job.scores:
            told = {f"{name}_error": (self._errors, "cancelled"), f"{name}_reason": (self._reasons, CANCELLED)}
            if told.keys() <= set(job.columns):
                for column, (values, otherwise) in told.items():
                    cells = whole[column].astype(object)
                    cells.iloc[left] = [values[row] or otherwise for row in left]
                    whole[column] = cells.astype("string")
        return whole


def interrupted(frame: pd.DataFrame, names: Sequence[str]) -> str:
    """Say how far an interrupted run came."""
    called = frame["error"].fillna("") != "cancelled"
    scored = called.copy()
    for name in names:
        codes = frame.get(f"{name}_error")
        scored &= codes.fillna("") != "cancelled" if codes is not None else frame[f"{name}_score"].notna() | frame["error"].notna()
    return (
        f"Stopped: {int(called.sum())} of {len(frame)} items were called, {int(scored.sum())} are done with. They are in error.partial; the same call "
        f"again calls every item, but answers of judges that were paid for come from the cache."
    )


def _with_numbers(job: Job, result: pd.DataFrame) -> pd.DataFrame:
    """Return what a scorer wrote with its scores as float64; that they are numbers the job has seen to."""
    columns = [f"{name}_score" for name in job.scores]
    return result.assign(**{column: pd.to_numeric(result[column]).to_numpy(dtype=np.float64, na_value=np.nan) for column in columns})


def _concatenated(parts: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Return the parts of a column in one; where their dtypes differ, as pandas infers it from all of them."""
    if len({part.dtype for part in parts}) == 1:
        return pd.concat(parts, ignore_index=True)
    return pd.Series([cell for part in parts for cell in part.astype(object)], dtype=object).infer_objects()
