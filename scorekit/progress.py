"""How far a call is: counters that any thread may add to, and the bar that shows them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock

SILENT_S = 2.0
"""A call that ends sooner shows no bar."""


@dataclass
class Progress:
    """What the scorers of a call have done so far.

    Attributes
    ----------
    rows, errors
        Rows that are done, and how many answers of the judge were errors.
    tokens
        Tokens that the judge used.
    stopped
        Set by ``score`` to tell its scorers to end early.
    """

    rows: int = 0
    errors: int = 0
    tokens: float = 0.0
    stopped: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False)

    def add(self, *, rows: int = 0, errors: int = 0, tokens: float = 0.0) -> None:
        """Count what was done, from any thread."""
        with self._lock:
            self.rows += rows
            self.errors += errors
            self.tokens += tokens


SHARED: ContextVar[Progress | None] = ContextVar("scorekit_progress", default=None)
"""Set by ``score`` around several scorers: they count here and show no bar of their own."""


@contextmanager
def progress_bar(total: int, label: str, progress: Progress, *, shown: bool) -> Iterator[Callable[[], None]]:
    """Give a function that brings a tqdm bar up to date with the counters.

    The bar appears after 2 seconds; never where ``shown`` is False or the environment has ``SCOREKIT_PROGRESS=0``.
    """
    if not shown or os.environ.get("SCOREKIT_PROGRESS", "1").strip().lower() in ("0", "false", "off", "no"):
        yield lambda: None
        return
    from tqdm.auto import tqdm

    alive = tqdm.__module__ == "tqdm.auto" or (sys.stderr is not None and sys.stderr.isatty())  # a notebook, or a terminal
    calm = 0.1 if alive else 10.0  # a log file wants few lines
    with tqdm(total=total, desc=label, unit="row", delay=SILENT_S, mininterval=calm) as bar:

        def show() -> None:
            if progress.tokens or progress.errors:
                bar.set_postfix(errors=progress.errors, tokens=f"{progress.tokens:,.0f}", refresh=False)
            bar.update(min(progress.rows, total) - bar.n)

        yield show
        show()
