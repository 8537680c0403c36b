"""Gates, thresholds and the verdict: what a run must reach, and whether it did."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from scorekit.analysis.statistics import check_real
from scorekit.analysis.summary import read_score
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Verdict = Literal["passed", "scored", "failed"]

NOT_A_FAILURE: Final = frozenset({"missing_input", "not_text", "not_scorable"})
"""Codes of a score that say something of the item's texts; all others say that a target or a judge failed."""


ROUNDING: Final = 1e-9
"""How far a mean may lie outside its bounds: that of 0.2, 0.4 and 0.6 is a little above 0.4."""

COUNTS: Final = {"n": "int64", "failures": "int64"}


@dataclass(frozen=True)
class Bounds:
    """What the mean of a score must lie between, the ends included."""

    least: float
    most: float

    @classmethod
    def of(cls, name: str, given: object, *, lower_is_better: bool) -> Bounds:
        """Read a threshold: a number, or a mapping with ``min``, ``max`` or both.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError
            When it is neither, or nothing can lie between its ends.
        """
        option = f"thresholds[{name!r}]"
        if not isinstance(given, Mapping):
            given = {"max" if lower_is_better else "min": given}
        for end in given:
            if end not in ("min", "max"):
                raise UnknownOptionError.from_value(option, end, ("min", "max"))
        ends = {end: check_real(option, value) for end, value in given.items()}
        least, most = ends.get("min", -math.inf), ends.get("max", math.inf)
        if not ends or any(map(math.isnan, ends.values())) or least > most:
            raise OptionRangeError.from_value(
                option, given, "a number, or {'min': ..., 'max': ...} with one end at least, min not above max"
            )
        return cls(least, most)


def read_thresholds(thresholds: object, names: Sequence[str], lower_is_better: Collection[str]) -> dict[str, Bounds]:
    """Return the bounds by score.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError, OptionRangeError
        When it is no mapping, or a name is no score of the run, or there twice.
    """
    if not isinstance(thresholds, Mapping):
        raise ArgumentTypeError.from_value("thresholds", thresholds, "a mapping from scores to numbers, such as {'relevancy': 0.7}")
    found: dict[str, Bounds] = {}
    for given, value in thresholds.items():
        name = given if given in names else str(given).removesuffix("_score")
        if name not in names:
            raise UnknownOptionError.from_value("thresholds", given, names)
        if name in found:
            msg = f"thresholds has two for the score {name!r}: keep one."
            raise OptionRangeError(msg)
        found[name] = Bounds.of(name, value, lower_is_better=name in lower_is_better)
    return found


@dataclass(frozen=True)
class Measured:
    """The scores of one name in a group of rows.

    Attributes
    ----------
    scores
        NaN where a row has none.
    failures
        How many rows have none since the target or a judge failed.
    """

    scores: NDArray[np.float64]
    failures: int

    @property
    def n(self) -> int:
        """How many rows have a score."""
        return int((~np.isnan(self.scores)).sum())

    @property
    def mean(self) -> float:
        """The mean of the rows that have a score; NaN where none has."""
        return float(np.nanmean(self.scores)) if self.n else math.nan


def groups_of(frame: pd.DataFrame, *, named: bool) -> dict[str | None, pd.DataFrame]:
    """Return the rows of each target, in order; all of them under None where there is one without a name."""
    if not named:
        return {None: frame}
    return {name: frame[frame["target"] == name] for name in frame["target"].drop_duplicates()}


def measured(rows: pd.DataFrame, name: str) -> Measured:
    """Return a score of some rows. A row whose target failed has failed; one without an input has not."""
    scores = read_score(rows, name)
    failed = (rows["error"].notna() & (rows["error"] != "missing_input")).to_numpy(dtype=bool)
    if f"{name}_error" in rows.columns:
        codes = rows[f"{name}_error"]
        failed |= (codes.notna() & ~codes.isin(NOT_A_FAILURE)).to_numpy(dtype=bool)
    return Measured(scores, int((failed & np.isnan(scores)).sum()))


def gates_frame(groups: Mapping[str | None, pd.DataFrame], names: Sequence[str], lower_is_better: Collection[str]) -> pd.DataFrame:
    """Return a row per gate (and target): what it scored, and whether every row passed it."""
    rows: list[dict[str, Any]] = []
    for name in names:
        for target, frame in groups.items():
            found = measured(frame, name)
            missed = int((found.scores > 0).sum() if name in lower_is_better else (found.scores < 1).sum())
            counts = {"n": found.n, "missed": missed, "failures": found.failures}
            rows.append({"gate": name, "target": target, **counts, "passed": found.n > 0 and not missed and not found.failures})
    return typed_rows(rows, {"gate": "string", "target": "string", **COUNTS, "missed": "int64", "passed": "bool"}, named=None not in groups)


def thresholds_frame(groups: Mapping[str | None, pd.DataFrame], bounds: Mapping[str, Bounds]) -> pd.DataFrame:
    """Return a row per threshold (and target): the mean, what it must lie between, and whether it does."""
    rows: list[dict[str, Any]] = []
    for name, bound in bounds.items():
        for target, frame in groups.items():
            found = measured(frame, name)
            within = bound.least - ROUNDING <= found.mean <= bound.most + ROUNDING
            numbers = {
                "mean": found.mean,
                "min": _finite(bound.least),
                "max": _finite(bound.most),
                "n": found.n,
                "failures": found.failures,
            }
            rows.append({"score": name, "target": target, **numbers, "passed": within and not found.failures})
    floats = dict.fromkeys(("mean", "min", "max"), "float64")
    return typed_rows(rows, {"score": "string", "target": "string", **floats, **COUNTS, "passed": "bool"}, named=None not in groups)


def verdict_of(gates: pd.DataFrame, thresholds: pd.DataFrame) -> Verdict | None:
    """Return the verdict; None where nothing was asked for, so that nothing was passed.

    Examples
    --------
    >>> missed = pd.DataFrame({"passed": [True, False]})
    >>> verdict_of(missed.iloc[:1], missed), verdict_of(missed, missed.iloc[:0]), verdict_of(missed.iloc[:0], missed.iloc[:0])
    ('scored', 'failed', None)
    """
    if not gates["passed"].all():
        return "failed"
    if not thresholds["passed"].all():
        return "scored"
    return "passed" if len(gates) + len(thresholds) else None


def _finite(end: float) -> float:
    """Return an end of bounds; NaN where there is none."""
    return end if math.isfinite(end) else math.nan


def typed_rows(rows: list[dict[str, Any]], dtypes: Mapping[str, str], *, named: bool) -> pd.DataFrame:
    """Return rows as a frame with the dtypes in their order, without the column of targets where these have no names."""
    kept = {name: dtype for name, dtype in dtypes.items() if named or name != "target"}
    return pd.DataFrame([{name: row[name] for name in kept} for row in rows], columns=list(kept)).astype(kept)
