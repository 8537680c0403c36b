"""Intervals and tests: arrays in, numbers out. numpy and scipy.special are imported inside the functions, scipy.stats never."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from scorekit.errors import OptionRangeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class MeanInterval(NamedTuple):
    """A mean and how far the mean of the population may lie from it.

    Attributes
    ----------
    mean
        The arithmetic mean of the values that are there; NaN where none is.
    low, high
        The ends of the interval; both NaN where the values cannot give one.
    n
        How many values were there.
    """

    mean: float
    low: float
    high: float
    n: int


def mean_interval(values: ArrayLike, *, confidence: float = 0.95) -> MeanInterval:
    """Return the mean of some scores with Student's t interval.

    Parameters
    ----------
    values
        Numbers in one dimension; NaN stands for a row without a score and is left out.
    confidence
        Share of such intervals that hold the mean of the population, above 0 and below 1.

    Returns
    -------
    MeanInterval
        ``mean``, ``low``, ``high``, ``n``. ``low`` and ``high`` are NaN where fewer than two values are there, where all are equal, and
        where one is infinite: twenty scores of 1.0 do not show that every further one is 1.0, and a width of 0 would say so.

    Raises
    ------
    OptionRangeError
        When ``confidence`` is not between 0 and 1.

    Notes
    -----
    Why Student's t and not a bootstrap: it is the same on every run, needs no scale, and covers as well (``benchmarks/mean_interval.py``).
    Of 2,000 samples of scores with 60 % at 1.0, as judged ones have, the 95 % interval held the mean in 89 % (t) and 90 % (bootstrap BCa)
    at n = 10, in 94 % and 96 % at n = 30; of uniform scores in 94 % and 92 % at n = 10, in 94 % both at n = 30. Where nearly all scores sit
    at one end of the scale ten rows are too few for either.

    The interval is not cut off at the ends of the scale: one that reaches beyond it says that rows are few or scores pile up there.

    It takes the values as independent. Rows that share an item (one question under several prompt variants) are not: over such a frame as
    a whole the interval is too narrow, so summarize it by variant, where every item counts once.

    References
    ----------
    Student (1908), The probable error of a mean. Efron (1987), Better bootstrap confidence intervals.

    Examples
    --------
    >>> result = mean_interval([0.0, 0.5, 1.0, float("nan")])
    >>> result.mean, round(result.low, 3), round(result.high, 3), result.n
    (0.5, -0.742, 1.742, 3)
    >>> mean_interval([1.0, 1.0, 1.0])
    MeanInterval(mean=1.0, low=nan, high=nan, n=3)
    """
    from scipy import special

    if not 0 < confidence < 1:
        raise OptionRangeError.from_value("confidence", confidence, "above 0 and below 1")
    given = np.asarray(values, dtype=np.float64)
    there = given[~np.isnan(given)]
    n = len(there)
    if n == 0:
        return MeanInterval(np.nan, np.nan, np.nan, 0)
    if n == 1 or there.min() == there.max():
        return MeanInterval(float(there[0]), np.nan, np.nan, n)
    if not np.isfinite(there).all():
        with np.errstate(invalid="ignore"):
            return MeanInterval(float(there.mean()), np.nan, np.nan, n)
    mean = float(there.mean())
    half = float(special.stdtrit(n - 1, (1 + confidence) / 2) * there.std(ddof=1) / np.sqrt(n))
    return MeanInterval(mean, mean - half, mean + half, n)
