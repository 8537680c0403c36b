"""What `agreement` is made of: a score read as verdicts, and tables made of two raters' classes.

A rater's classes are a code per row, the place of its class in a tuple of names; below 0 where there is none (see `scorekit.analysis.labels`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.labels import BINARY, MISSING, UNSURE
from scorekit.analysis.rates import kappa, kappa_interval, ppi_rate, rogan_gladen, threshold_curve, wilson_interval
from scorekit.analysis.statistics import check_real
from scorekit.analysis.summary import judge_counts
from scorekit.columns import require
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    from numpy.typing import NDArray

    from scorekit.analysis.rates import RateInterval

    Codes = NDArray[np.int64]

METHODS: Final = ("labels only", "PPI++", "Rogan-Gladen")
NUMBER_KINDS: Final = ("integer", "floating", "mixed-integer-float", "decimal", "empty")


class Bootstrap(NamedTuple):
    """How kappa's intervals are made."""

    confidence: float
    resamples: int
    seed: int


class Verdicts(NamedTuple):
    """A score that is read as pass or fail by its numbers, or a column of labels (``numbers`` None, ``threshold`` NaN)."""

    label: Hashable
    cells: pd.Series[Any]
    numbers: NDArray[np.float64] | None
    threshold: float
    lower: bool

    @property
    def column(self) -> str:
        """Return the column's name."""
        return str(self.label)

    def codes(self) -> Codes:
        """Return 0 where a row passes, 1 where it fails, `MISSING` where it has no score."""
        numbers = np.empty(0) if self.numbers is None else self.numbers
        passes = numbers <= self.threshold if self.lower else numbers >= self.threshold
        return np.where(np.isnan(numbers), MISSING, np.where(passes, 0, 1)).astype(np.int64)


def read_verdicts(df: pd.DataFrame, score: Hashable, threshold: float | None, lower_is_better: Collection[str]) -> Verdicts:
    """Return the column that ``score`` names, directly or as a scorer, with the threshold that holds for it.

    Raises
    ------
    MissingColumnError, ColumnConflictError
        When it is not there, or twice.
    ArgumentTypeError, OptionRangeError
        When labels are given a threshold; when numbers have none, or one where no score lies, or are infinite.
    """
    named = isinstance(score, str) and score not in df.columns and f"{score}_score" in df.columns
    label = f"{score}_score" if named else score
    if not isinstance(label, str) and label not in df.columns:
        raise MissingColumnError.from_columns("agreement", str(label), df.columns, "score")
    cells = require(df, label, "agreement", "score")
    dtype = cells.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        numeric = threshold is not None and _holds_numbers(dtype.categories.dtype)
    elif pd.api.types.is_object_dtype(dtype):
        numeric = pd.api.types.infer_dtype(cells.dropna(), skipna=True) in NUMBER_KINDS
    else:
        numeric = _holds_numbers(dtype)
    if not numeric:
        if threshold is not None:
            msg = (
                f"agreement: threshold={threshold!r} needs a score of numbers, and the dtype of {label!r} is {dtype}. Leave the threshold out to compare "
                "labels, or make numbers of them with pd.to_numeric."
            )
            raise ArgumentTypeError(msg)
        return Verdicts(label, cells, None, float("nan"), lower=False)
    plain = cells.astype(object) if isinstance(dtype, pd.CategoricalDtype) else cells
    numbers = plain.to_numpy(dtype=np.float64, na_value=np.nan)
    cut = _threshold(numbers, threshold, str(label))
    return Verdicts(label, cells, numbers, cut, lower=str(label).removesuffix("_score") in lower_is_better)


def _holds_numbers(dtype: Any) -> bool:
    """Return whether a dtype is one of real numbers; pandas counts booleans and complex numbers among them."""
    return pd.api.types.is_any_real_numeric_dtype(dtype)


def _threshold(numbers: NDArray[np.float64], threshold: float | None, column: str) -> float:
    """Return the threshold to use on these scores."""
    there = numbers[~np.isnan(numbers)]
    if not len(there):
        msg = f"agreement: no row has a score in {column!r} ({len(numbers):,} rows). Score the frame first, or look into the errors with summarize."
        raise OptionRangeError(msg)
    if np.isinf(there).any():
        msg = f"agreement: {column!r} holds infinite scores, which no threshold can be chosen among. Replace them, or make them NaN (not scored)."
        raise OptionRangeError(msg)
    low, high = min(0.0, float(there.min())), max(1.0, float(there.max()))
    if threshold is None:
        if low < 0 or high > 1:
            reach = f"{there.min():g} to {there.max():g}"
            msg = (
                f"agreement needs threshold= for {column!r}: its scores reach from {reach}, and 0.5 is taken only where all lie in 0 to 1."
            )
            raise OptionRangeError(msg)
        return 0.5
    cut = check_real("threshold", threshold)
    if not low <= cut <= high:
        raise OptionRangeError.from_value("threshold", threshold, f"from {low:g} to {high:g}, where the scores of {column!r} lie")
    return cut


def judges_of(df: pd.DataFrame, verdicts: Verdicts, *, mixed: bool) -> tuple[str, ...]:
    """Return who gave the scores, from the column ``<name>_judge`` where there is one.

    Raises
    ------
    ColumnConflictError
        When they are several, unless ``mixed`` allows it.
    """
    name = verdicts.column.removesuffix("_score")
    column, counts = f"{name}_judge", judge_counts(df, name, verdicts.cells.notna().to_numpy(dtype=bool), "agreement")
    names = tuple(map(str, counts.index))
    if len(names) > 1 and not mixed:
        found = ", ".join(f"{shown(name)!r} ({count:,} rows)" for name, count in counts.items())
        msg = (
            f"agreement: the scores of {verdicts.column!r} come from {len(names)} judges, {found}, which err differently. Keep one, "
            f"df[df[{column!r}] == {shown(names[0])!r}], or pass mixed_judges=True."
        )
        raise ColumnConflictError(msg)
    return names


def majority(columns: Sequence[NDArray[np.int64]], classes: int) -> NDArray[np.int64]:
    """Return the class that most raters gave each row; `UNSURE` where two classes tie or all are unsure, `MISSING` where nobody gave any.

    Examples
    --------
    >>> majority([np.array([0, 0, -1]), np.array([0, 1, -1]), np.array([1, -1, -2])], 2)
    array([ 0, -2, -2])
    """
    given = np.stack(columns)
    votes = np.stack([(given == number).sum(axis=0) for number in range(classes)])
    most = votes.max(axis=0)
    one = (votes == most).sum(axis=0) == 1
    nobody = np.where((given == UNSURE).any(axis=0), UNSURE, MISSING)
    return np.where(most == 0, nobody, np.where(one, votes.argmax(axis=0), UNSURE)).astype(np.int64)


def cross(codes: tuple[Codes, Codes], classes: int) -> NDArray[np.int64]:
    """Return how often each two classes meet, the first rater's in rows; rows without a class of both are left out."""
    first, second = codes
    both = (first >= 0) & (second >= 0)
    return np.bincount(first[both] * classes + second[both], minlength=classes**2).reshape(classes, classes).astype(np.int64)


def unlabelled_counts(codes: tuple[Codes, Codes]) -> tuple[int, int]:
    """Return how many rows without a human label pass, and how many such rows have a verdict."""
    verdicts = codes[1][(codes[0] == MISSING) & (codes[1] >= 0)]
    return int((verdicts == 0).sum()), len(verdicts)


def pair_row(first: tuple[str, Codes], second: tuple[str, Codes], names: Sequence[str], draws: Bootstrap) -> dict[str, Any]:
    """Return the kappa of two raters with its interval, as a row of a table."""
    matrix = cross((first[1], second[1]), len(names))
    n = int(matrix.sum())
    row = {"rater_a": first[0], "rater_b": second[0], "kappa": float("nan"), "ci_low": float("nan"), "ci_high": float("nan")}
    row |= {"agreed": float(np.trace(matrix)) / n if n else float("nan"), "n": n, "note": ""}
    for (rater, _), totals in ((second, matrix.sum(axis=0)), (first, matrix.sum(axis=1))):
        if np.count_nonzero(totals) == 1:
            row["note"] = (
                f"{rater} gave all {n:,} rows the label {names[int(totals.argmax())]}, so that agreement by chance cannot be told from any other"
            )
    if not n:
        row["note"] = "no row has a label of both"
    if row["note"]:
        return row
    low, high = kappa_interval(matrix, confidence=draws.confidence, resamples=draws.resamples, seed=draws.seed)
    note = "all rows agree, so that resampling them shows no spread" if np.trace(matrix) == n else ""
    return row | {"kappa": float(kappa(matrix)), "ci_low": low, "ci_high": high, "note": note}


def rate_table(matrix: NDArray[np.int64], pair: dict[str, Any], names: tuple[str, ...], confidence: float) -> pd.DataFrame:
    """Return accuracy, TPR, TNR, precision and kappa with their intervals."""
    n = int(matrix.sum())
    shares = {"accuracy": (int(np.trace(matrix)), n)}
    notes = dict.fromkeys(("tpr", "tnr", "precision"), "the labels are not pass and fail")
    if names == BINARY:
        (hits, misses), (false, true) = matrix.tolist()
        shares |= {"tpr": (hits, hits + misses), "tnr": (true, false + true), "precision": (hits, hits + false)}
        notes = {"tpr": "no row is labelled pass", "tnr": "no row is labelled fail", "precision": "no row passes by the score"}
    rows = []
    for metric in ("accuracy", "tpr", "tnr", "precision"):
        count, of = shares.get(metric, (0, 0))
        low, high = wilson_interval(count / of if of else np.nan, of, confidence=confidence)
        rows.append((metric, count / of if of else np.nan, float(low), float(high), of, "" if of else notes[metric]))
    rows.append(("kappa", pair["kappa"], pair["ci_low"], pair["ci_high"], n, pair["note"]))
    found = pd.DataFrame(rows, columns=["metric", "value", "ci_low", "ci_high", "n", "note"])
    return found.astype({"metric": "string", "note": "string", "n": "int64"})


def pass_rate_table(matrix: NDArray[np.int64], codes: tuple[Codes, Codes], names: tuple[str, ...], confidence: float) -> pd.DataFrame:
    """Return the pass rate by each of `METHODS`; no rows where the classes are not pass and fail."""
    rows = []
    if names == BINARY:
        n, (passed, rest) = int(matrix.sum()), unlabelled_counts(codes)
        share = float(matrix[0].sum()) / n
        both = ppi_rate(matrix, passed, rest, confidence=confidence)
        formula = rogan_gladen(matrix, passed, rest, confidence=confidence)
        numbers: tuple[tuple[Any, ...], ...] = (
            (share, *wilson_interval(share, n, confidence=confidence), n, ""),
            (np.clip(both.estimate, 0.0, 1.0), both.low, both.high, n + rest, _ppi_note(matrix, passed, rest)),
            (*formula, n + rest, _formula_note(matrix, passed, rest, formula)),
        )
        for method, (estimate, low, high, of, note) in zip(METHODS, numbers, strict=True):
            rows.append((method, float(estimate), float(low), float(high), n, of, note))
    found = pd.DataFrame(rows, columns=["method", "estimate", "ci_low", "ci_high", "n_labelled", "n_scored", "note"])
    dtypes = {"method": "string", "note": "string", "n_labelled": "int64", "n_scored": "int64"}
    return found.astype(dtypes | dict.fromkeys(("estimate", "ci_low", "ci_high"), "float64"))


def _ppi_note(matrix: NDArray[np.int64], passed: int, rest: int) -> str:
    """Return why PPI++ is no more than the labels alone, if it is not."""
    if not rest:
        return "every scored row has a label: the labels alone"
    all_passed = passed + int(matrix[:, 0].sum())
    return "the score gives every row the same verdict: the labels alone" if all_passed in (0, rest + int(matrix.sum())) else ""


def _formula_note(matrix: NDArray[np.int64], passed: int, rest: int, found: RateInterval) -> str:
    """Return why Rogan and Gladen's formula gives no rate or no interval, or an end of the scale."""
    if not rest:
        return "every scored row has a label"
    if np.isnan(found.estimate):
        return "the score cannot tell good rows from bad ones: TPR + TNR is 1 or less, or unknown"
    if np.isnan(found.low):
        return "too few labels to tell the score from a guess"
    (hits, misses), (false, true) = matrix.tolist()
    if passed / rest < false / (false + true):
        return "cut to 0: fewer rows pass than of the bad ones would"
    return "cut to 1: more rows pass than of the good ones would" if passed / rest > hits / (hits + misses) else ""


def curve_table(verdicts: Verdicts, codes: tuple[Codes, Codes]) -> tuple[pd.DataFrame, float]:
    """Return TPR, TNR and J at every threshold that changes a verdict, and the one with the highest J; without rows and NaN for labels."""
    compared = (codes[0] >= 0) & (codes[1] >= 0)
    if verdicts.numbers is None:
        return pd.DataFrame({name: np.empty(0) for name in ("threshold", "tpr", "tnr", "j")}), float("nan")
    scores, passed = verdicts.numbers[compared], codes[0][compared] == 0
    cuts = np.unique(np.append(scores, verdicts.threshold))
    tpr, tnr = threshold_curve(scores, passed, cuts, lower=verdicts.lower)
    j = tpr + tnr - 1
    if np.isnan(j).any():
        best = float("nan")
    else:
        # Rounding must not choose between thresholds that are equally good.
        ties = cuts[j >= j.max() - 1e-12]
        best = float(ties[np.abs(ties - verdicts.threshold).argmin()])
    return pd.DataFrame({"threshold": cuts, "tpr": tpr, "tnr": tnr, "j": j}), best
