"""What a scored frame says in total: one row per score and group, with an interval and with what could not be scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.analysis.statistics import mean_interval
from scorekit.columns import require, require_frame, score_names
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, listed, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

NUMBERS: Final = ("mean", "ci_low", "ci_high", "n", "unscored", "errors", "min", "median", "max", "judges")


def summarize(
    df: pd.DataFrame,
    /,
    *,
    by: str | Sequence[str] | None = None,
    scores: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    scale: float | None = None,
) -> pd.DataFrame:
    """Return one row per score, or per score and group, of a scored frame.

    Parameters
    ----------
    df
        A scored frame; not changed.
    by
        A column, or several, whose values make the groups. Rows where it is missing are a group of their own, the last. Groups come in the
        order of their first row, those of a categorical column in the order of its categories; categories without rows are left out.
    scores
        Names of scorers, such as ``"relevancy"``; by default every scorer that has scored the frame.
    confidence
        Of the interval around the mean, above 0 and below 1.
    scale
        The highest score there can be: the interval is cut to 0..scale, where the mean must lie. None takes 1 where all scores lie in 0..1, and
        cuts nothing elsewhere.

    Returns
    -------
    pandas.DataFrame
        On a fresh index: ``score`` (string: the scorer's name), the columns of ``by`` with their own dtypes, and

        - ``mean``, ``ci_low``, ``ci_high`` (float64): of the rows that have a score; Student's t interval, see
          `scorekit.analysis.statistics.mean_interval`. The ends are NaN where fewer than two rows have a score or all scores are equal.
        - ``n``, ``unscored`` (int64): rows with and without a score.
        - ``errors`` (string): error codes with their counts, most frequent first, ``"judge_timeout: 3, not_scorable: 1"``; empty if none.
        - ``min``, ``median``, ``max`` (float64).
        - ``judges`` (string): who judged these rows. More than one name means that the mean mixes judges. Empty for code scorers.

        A frame without rows gives ``n = 0`` and NaN; grouped, it gives no rows.

    Raises
    ------
    MissingColumnError
        When a column of ``by`` or the score of a named scorer is not there; the message names the nearest.
    ColumnConflictError
        When a column of ``by`` is there twice or has the name of a column of the result.
    ArgumentTypeError
        When a score is not a column of numbers, or cells of ``by`` cannot be grouped (lists).
    OptionRangeError
        When ``confidence`` is not between 0 and 1.

    Notes
    -----
    Rows are taken as independent. Where one item has several rows (a question under three prompt variants), summarize ``by="variant"``:
    over all rows together the interval would be too narrow.

    Examples
    --------
    >>> df = pd.DataFrame({"variant": ["a", "a", "b"], "tone_score": [0.5, 1.0, None], "tone_error": [None, None, "not_scorable"]})
    >>> summary = summarize(df, by="variant")
    >>> summary[["score", "variant", "mean", "n", "unscored"]]
      score variant  mean  n  unscored
    0  tone       a  0.75  2         0
    1  tone       b   NaN  0         1
    >>> summary["errors"].tolist()
    ['', 'not_scorable: 1']
    """
    frame = require_frame(df, "summarize")
    if scale is not None and not scale > 0:
        raise OptionRangeError.from_value("scale", scale, "above 0")
    if not 0 < confidence < 1:
        raise OptionRangeError.from_value("confidence", confidence, "above 0 and below 1")
    names = select_scores(frame, scores, "summarize")
    keys = [] if by is None else [by] if isinstance(by, str) else list(by)
    if clash := [key for key in keys if key == "score" or key in NUMBERS]:
        msg = f"summarize cannot group by {listed(clash)}: its result has a column of that name. Rename the column first."
        raise ColumnConflictError(msg)
    columns = [require(frame, key, "summarize", "by") for key in keys]
    groups = group_rows(columns, len(frame))
    rows = [_describe(frame, name, positions, confidence, scale) for name in names for positions in groups]
    first = np.array([positions[0] for positions in groups if len(positions)] * len(names), dtype=np.intp)
    result = pd.DataFrame(
        {
            "score": pd.array([name for name in names for _ in groups], dtype="string"),
            **{key: column.iloc[first].reset_index(drop=True) for key, column in zip(keys, columns, strict=True)},
            **{key: [row[key] for row in rows] for key in NUMBERS},
        }
    )
    floats = dict.fromkeys(("mean", "ci_low", "ci_high", "min", "median", "max"), "float64")
    texts = dict.fromkeys(("errors", "judges"), "string")
    return result.astype({**floats, **texts, "n": "int64", "unscored": "int64"})


def select_scores(df: pd.DataFrame, scores: str | Iterable[str] | None, who: str) -> list[str]:
    """Return the names of the scorers to read, checked against the frame.

    Raises
    ------
    MissingColumnError
        When the frame has no scores, or not that of a named scorer.
    ArgumentTypeError
        When a named score is not a column of numbers.
    """
    present = score_names(df)
    if scores is None:
        if not present:
            has = f"the frame has {listed(df.columns)}" if len(df.columns) else "the frame has no columns"
            msg = f"{who} needs a column '<name>_score' of numbers; {has}. Score it first: df.pipe(sk.score_tone)."
            raise MissingColumnError(msg)
        for name in present:
            require(df, f"{name}_score", who)
        return present
    names = [str(name) if f"{name}_score" in df.columns else str(name).removesuffix("_score") for name in _as_list(scores)]
    for name in names:
        if f"{name}_score" not in df.columns:
            near = nearest(str(name).removesuffix("_score"), present)
            hint = "" if near is None else f" Did you mean {near!r}?"
            msg = f"{who} needs a column '{name}_score'; the frame has scores of {listed(present) or 'no scorer'}.{hint}"
            raise MissingColumnError(msg)
        column = require(df, f"{name}_score", who)
        if not pd.api.types.is_numeric_dtype(column.dtype):
            msg = f"{who}: the column '{name}_score' must hold numbers; its dtype is {column.dtype}. Convert it with pd.to_numeric first."
            raise ArgumentTypeError(msg)
    return names


def _as_list(names: str | Iterable[str]) -> list[str]:
    """Return names as a list; a single one is a list of one."""
    return [names] if isinstance(names, str) else list(names)


def read_score(df: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Return a scorer's scores as floats, NaN where a row has none."""
    return df[f"{name}_score"].to_numpy(dtype=np.float64, na_value=np.nan)


def group_rows(columns: Sequence[pd.Series[Any]], n: int) -> list[NDArray[np.intp]]:
    """Return the row positions of each group, in the order that `summarize` tells; all rows as one group without columns."""
    if not columns:
        return [np.arange(n, dtype=np.intp)]
    codes = pd.DataFrame({i: _codes(column) for i, column in enumerate(columns)})
    grouped = codes.groupby(list(codes.columns), sort=True).indices
    ordered: list[Any] = sorted(grouped)  # the keys are numbers, or tuples of numbers
    return [np.sort(np.asarray(grouped[key], dtype=np.intp)) for key in ordered]


def _codes(column: pd.Series[Any]) -> NDArray[np.intp]:
    """Return a number per row: equal values get equal numbers, missing ones the highest."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.intp)
    else:
        try:
            codes = pd.factorize(column)[0]
        except TypeError as error:
            msg = f"The column {str(column.name)!r} cannot make groups: {error}. Group by a column of texts or numbers."
            raise ArgumentTypeError(msg) from error
    return np.where(codes < 0, len(column), codes)


def _describe(df: pd.DataFrame, name: str, positions: NDArray[np.intp], confidence: float, scale: float | None) -> dict[str, Any]:
    """Return the numbers of one score in one group."""
    every = read_score(df, name)
    values = every[positions]
    there = values[~np.isnan(values)]
    interval = mean_interval(there, confidence=confidence)
    quantiles = (there.min(), float(np.median(there)), there.max()) if len(there) else (np.nan,) * 3
    errors = _texts(df, f"{name}_error", positions)
    counts = pd.Series(errors, dtype=object).value_counts() if errors else pd.Series(dtype="int64")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    return {
        "mean": interval.mean,
        **dict(zip(("ci_low", "ci_high"), _cut(interval.low, interval.high, every, scale), strict=True)),
        "n": interval.n,
        "unscored": len(values) - interval.n,
        "errors": ", ".join(f"{code}: {count}" for code, count in ordered),
        **dict(zip(("min", "median", "max"), quantiles, strict=True)),
        "judges": ", ".join(sorted(set(_texts(df, f"{name}_judge", positions)))),
    }


def _cut(low: float, high: float, scores: NDArray[np.float64], scale: float | None) -> tuple[float, float]:
    """Return the ends of an interval within 0..scale, where every score lies there."""
    top = 1.0 if scale is None else scale
    there = scores[~np.isnan(scores)]
    if len(there) and there.min() >= 0 and there.max() <= top:
        return float(np.maximum(low, 0.0)), float(np.minimum(high, top))
    return low, high


def _texts(df: pd.DataFrame, column: str, positions: NDArray[np.intp]) -> list[str]:
    """Return the cells of a column that are not missing; none where the frame has no such column."""
    if column not in df.columns:
        return []
    return [str(cell) for cell in df[column].iloc[positions].dropna()]
