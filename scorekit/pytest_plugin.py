"""Evaluations as pytest tests: the fixture `evals`, `assert_evals`, and a table of scores after the run. PYTEST_DONT_REWRITE.

pytest finds it by itself where scorekit is installed (entry point ``scorekit``); ``-p no:scorekit`` turns it off. It loads pandas and the rest when a
test first uses it.

The table after the run has a row per test and score; means, ``n`` and ``unscored`` are JUnit properties of the test as well (``--junitxml``). With
pytest-xdist each worker keeps its own table, and none is shown; the JUnit file is complete, and baselines are read but not written there.

Examples
--------
A test file::

    from my_app import answer
    import scorekit as sk

    def test_answers(evals):
        result = evals.run(["What is the capital of France?", "And of Spain?"], answer, [sk.score_relevancy])
        evals.check(result, pass_rate={"relevancy": (0.7, 0.9)}, baseline="tests/evals.json", margin=0.05)
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable

    import pandas as pd

    from scorekit.evals.result import EvalResult
    from scorekit.evals.targets import Target
    from scorekit.run import ScorerLike

__all__ = ["Evals", "assert_evals", "evals"]

Threshold = float | Mapping[str, float]
"""What a mean must reach: a number, or ``{"min": 0.2, "max": 0.8}`` with one end at least."""

NOT_CHECKED, PASSED, MISSED, WRITTEN = "not checked", "passed", "missed", "baseline written"
OUTCOMES: Final = (NOT_CHECKED, PASSED, WRITTEN, MISSED)
"""The later one stays where several checks look at one score."""


@dataclass
class _Row:
    """A line of the table."""

    test: str
    source: object
    name: str | None
    numbers: Mapping[str, Any]
    outcome: str = NOT_CHECKED

    def cells(self) -> list[str]:
        """Return the line's texts."""
        numbers = self.numbers
        mean, low, high = ("none" if math.isnan(numbers[key]) else f"{numbers[key]:.3f}" for key in ("mean", "low", "high"))
        test = f"{self.test} / {self.name}" if self.name else self.test
        interval = "none" if "none" in (low, high) else f"{low} to {high}"
        return [test, numbers["score"], mean, interval, str(numbers["n"]), str(numbers["unscored"]), self.outcome]


@dataclass
class _Table:
    """What the tests of one session in one process scored."""

    rows: list[_Row] = field(default_factory=list)
    keys: set[tuple[Path, str]] = field(default_factory=set)

    def forget(self, test: str) -> None:
        """Drop what an earlier try of a test left."""
        self.rows = [row for row in self.rows if row.test != test]

    def record(self, test: str, result: object, names: Collection[str] | None = None) -> list[_Row]:
        """Keep the scores of a result, once, and return their lines."""
        from scorekit.pytest_checks import numbers_of

        known = [row for row in self.rows if row.test == test and row.source is result]
        if not known:
            known = [_Row(test, result, None, numbers) for numbers in numbers_of(result, None if names is None else list(names))]
            self.rows += known
        return known


_TABLE = pytest.StashKey[_Table]()
_RUNNING: list[pytest.Item] = []
"""The test that runs, last; a test that runs pytest in its own process has another one after it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's option."""
    parser.getgroup("scorekit").addoption(
        "--evals-update-baseline",
        action="store_true",
        help="write the means of assert_evals(..., baseline=PATH) to PATH, in place of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Begin with an empty table."""
    config.stash[_TABLE] = _Table()
    if config.getoption("--evals-update-baseline", False) and (hasattr(config, "workerinput") or config.getoption("numprocesses", None)):
        msg = "--evals-update-baseline does not work with several processes, which would overwrite each other's baselines: add -n 0."
        raise pytest.UsageError(msg)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Know which test runs."""
    _RUNNING.append(item)
    try:
        return (yield)
    finally:
        _RUNNING.remove(item)
        for row in item.config.stash[_TABLE].rows:
            row.source = None  # frames may be large


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin a test, or another try of it."""
    table = item.config.stash[_TABLE]
    table.forget(item.nodeid)
    table.keys.clear()
    item.user_properties[:] = [(name, value) for name, value in item.user_properties if not name.startswith("scorekit.")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Keep a test's numbers as JUnit properties."""
    try:
        return (yield)
    finally:
        for row in item.config.stash[_TABLE].rows:
            if row.test == item.nodeid:
                prefix = ".".join(["scorekit", *([row.name] if row.name else []), row.numbers["score"]])
                item.user_properties += [(f"{prefix}.{key}", row.numbers[key]) for key in ("mean", "n", "unscored")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the table."""
    rows = config.stash[_TABLE].rows
    if not rows:
        return
    from scorekit.terminal import aligned

    names = ["test", "score", "mean", "95 % interval", "n", "unscored", "outcome"]
    terminalreporter.ensure_newline()
    terminalreporter.section("scorekit evals")
    terminalreporter.write_line(aligned(names, [row.cells() for row in rows], {"mean", "n", "unscored"}))


def assert_evals(
    result_or_frame: EvalResult | pd.DataFrame,
    *,
    pass_rate: Mapping[str, tuple[float, float]] | None = None,
    thresholds: Mapping[str, Threshold] | None = None,
    gates: str | Iterable[str] | None = None,
    baseline: str | os.PathLike[str] | None = None,
    margin: float = 0.0,
    most_unscored: float = 0.0,
    lower_is_better: Collection[str] | None = None,
    name: str | None = None,
) -> None:
    """Fail the test where scores are not what they must be, with every miss in one message.

    Parameters
    ----------
    result_or_frame
        What `run_evals` gave, or a scored frame. The gates and thresholds that `run_evals` was given itself are checked too. Of several targets each is
        checked, its scores named ``"relevancy (old)"``.
    pass_rate
        By score the bound of a row and the share of scored rows that must be at or above it, for one in ``lower_is_better`` at or below:
        ``{"relevancy": (0.7, 0.9)}`` wants 0.7 or more in 90 % of them.
    thresholds
        By score what its mean must reach: a number is the least, for one in ``lower_is_better`` the most; or ``{"min": 0.2, "max": 0.8}``, ends included.
    gates
        Scores that must be 1.0 in every row (0.0 for one in ``lower_is_better``). An unscored row misses a gate, whatever ``most_unscored``.
    baseline
        A JSON file of the means of an earlier run, by test and score: no mean may be worse by more than ``margin``. A relative path begins at pytest's
        rootdir. ``pytest --evals-update-baseline`` writes it, where nothing else is missed. All scores are compared.
    margin
        By how much a mean may be worse than the baseline's, in units of the score, 0 or more.
    most_unscored
        The share of rows of a checked score that may be unscored, 0 to 1. The default allows none: a mean over the rows that are left would pass for one
        over all. Scores that nothing here names are in the table with their unscored rows, and not checked.
    lower_is_better
        Names of scores that are worse when higher, beside the shipped ones. All others are taken for better when higher.
    name
        Tells several checks of one test apart, in the table, in JUnit and in the baseline.

    Raises
    ------
    AssertionError
        Where something is missed: each miss with its numbers, and of each score at most 3 of the worst rows, with 80 characters of their text.
    ArgumentTypeError, OptionRangeError, UnknownOptionError, MissingColumnError
        When there is nothing to check, an argument is of the wrong kind or out of range, or names a score that is not there.
    TableFileError
        When the baseline file cannot be read or written.

    Examples
    --------
    >>> import pandas as pd
    >>> scored = pd.DataFrame({"output": ["yes", "no idea"], "relevancy_score": [1.0, 0.2]})
    >>> assert_evals(scored, thresholds={"relevancy": 0.6}, name="doctest")
    >>> assert_evals(scored, pass_rate={"relevancy": (0.7, 0.9)}, name="doctest")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    AssertionError: assert_evals: 1 miss ...
    """
    __tracebackhide__ = True
    from scorekit.errors import ArgumentTypeError
    from scorekit.pytest_checks import WHO, Criteria, check, checked_names, frame_of, names_of

    frame, _ = frame_of(result_or_frame)
    criteria = Criteria.of(
        frame,
        pass_rate=pass_rate,
        thresholds=thresholds,
        gates=gates,
        margin=margin,
        most_unscored=most_unscored,
        lower_is_better=lower_is_better,
    )
    names = names_of(result_or_frame) if baseline is not None else checked_names(result_or_frame, criteria)
    if not names:
        msg = f"{WHO} has nothing to check: give pass_rate=, thresholds=, gates= or baseline=."
        raise ArgumentTypeError(msg)
    item = _RUNNING[-1] if _RUNNING and isinstance(_RUNNING[-1], pytest.Function) else None  # a doctest keeps no scores
    test = item.nodeid if item else os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    key = " / ".join(part for part in (test, name) if part)
    found = check(result_or_frame, criteria, names, _stored(baseline, key, item), key or "a script")
    if item is not None:
        for row in item.config.stash[_TABLE].record(test, result_or_frame, names):
            if (missed := found.missed.get(row.numbers["score"])) is not None:
                row.name = row.name or name
                row.outcome = max(row.outcome, MISSED if missed else WRITTEN if found.written else PASSED, key=OUTCOMES.index)
    if found.message:
        raise AssertionError(found.message)


def _stored(baseline: str | os.PathLike[str] | None, key: str, item: pytest.Item | None) -> tuple[Path, str, bool] | None:
    """Return the file of a baseline, the key in it, and whether to write it anew.

    Raises
    ------
    ArgumentTypeError
        When two checks of one test would share a key, or there is none.
    """
    from scorekit.errors import ArgumentTypeError

    if baseline is None:
        return None
    if not key:
        msg = "assert_evals outside of a test needs name=, under which the baseline keeps its means."
        raise ArgumentTypeError(msg)
    if item is None:
        return Path(baseline), key, False
    path, keys = item.config.rootpath / baseline, item.config.stash[_TABLE].keys
    if (path, key) in keys:
        msg = f"Two checks of {key!r} use the baseline {baseline}: tell them apart with name=."
        raise ArgumentTypeError(msg)
    keys.add((path, key))
    return path, key, bool(item.config.getoption("--evals-update-baseline", False))


class Evals:
    """What the fixture `evals` gives: `run` and `score` keep their scores for the table, `check` is `assert_evals`."""

    check = staticmethod(assert_evals)

    def __init__(self, item: pytest.Item) -> None:
        """Belong to a test."""
        self._item = item

    def run(
        self,
        data: pd.DataFrame | Iterable[Mapping[str, Any]] | Iterable[str],
        target: Target | Mapping[str, Target],
        scorers: Iterable[ScorerLike] | ScorerLike = (),
        **options: Any,
    ) -> EvalResult:
        """Return what `run_evals` gives for the same arguments; without a progress bar unless ``progress=True``."""
        from scorekit.evals.run_evals import run_evals

        result = run_evals(data, target, scorers, **{"progress": False, **options})
        self._item.config.stash[_TABLE].record(self._item.nodeid, result)
        return result

    def score(self, df: pd.DataFrame, /, scorers: Iterable[ScorerLike] | ScorerLike, **options: Any) -> pd.DataFrame:
        """Return what `score` gives for the same arguments; every score of the frame comes into the table. No progress bar unless ``progress=True``."""
        from scorekit.run import score

        scored = score(df, scorers, **{"progress": False, **options})
        self._item.config.stash[_TABLE].record(self._item.nodeid, scored)
        return scored


@pytest.fixture
def evals(request: pytest.FixtureRequest) -> Evals:
    """Give evaluations with ``run``, ``score`` and ``check``; their scores are shown after the run."""
    return Evals(request.node)
