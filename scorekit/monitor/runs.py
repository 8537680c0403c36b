"""Runs that are opened by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scorekit.errors import ArgumentTypeError
from scorekit.monitor.calls import CURRENT, NamedRun, fresh_id, usable_id
from scorekit.monitor.keys import LONGEST
from scorekit.monitor.scoring import LOG
from scorekit.monitor.worker import note

if TYPE_CHECKING:
    from types import TracebackType


class LiveRun:
    """An open run, for a with statement; see ``live.run``."""

    def __init__(self, run_id: object) -> None:
        """Take the id, or a new one where it cannot be kept."""
        usable = usable_id(run_id)
        if usable is None:
            _refuse_id(run_id)
        self.run_id = fresh_id() if usable is None else usable
        self._open: list[NamedRun] = []

    def __enter__(self) -> str:
        """Open the run and return its id."""
        self._open.append(NamedRun(self.run_id, CURRENT.get()))
        CURRENT.set(self._open[-1])
        return self.run_id

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it, where it is the one that is open: the same run may be open in other threads."""
        run = CURRENT.get()
        if isinstance(run, NamedRun) and run in self._open:
            self._open.remove(run)
            CURRENT.set(run.outer)
            run.outer = None  # as in `Running.leave`


_told: set[str] = set()


def _refuse_id(run_id: object) -> None:
    """Count an id that cannot be kept, and say so the first time."""
    note(hook_errors=1)
    if not _told:
        _told.add("run")
        error = ArgumentTypeError.from_value("run_id", run_id, f"a text of 1 to {LONGEST} characters")
        LOG.warning("live.run takes a new id: %s", error)
