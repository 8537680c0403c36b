"""Rates of a judge against labels, and the pass rate that both give together: counts in, numbers out.

A matrix of counts has a row per human label and a column per label of the score, pass before fail. Several matrices may be stacked: the last two axes
are read, and every result has the shape of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from scorekit.analysis.statistics import check_confidence, check_real
from scorekit.errors import OptionRangeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

SMOOTHING: Final = 1 / 3
"""Rows added to each cell of a matrix when the gain of PPI++ is judged; of what was tried it covers best at 50 labels."""


class RateInterval(NamedTuple):
    """A rate and how far that of the population may lie from it; NaN where the counts cannot tell."""

    estimate: Floats
    low: Floats
    high: Floats


class PpiRate(NamedTuple):
    """The numbers of `ppi_rate`.

    Attributes
    ----------
    estimate
        The pass rate; may lie a little outside 0 to 1.
    low, high
        The ends of the interval, within 0 to 1.
    standard_error
        Of the estimate, as ppi-python gives it.
    tuning
        How far the scores are trusted, 0 (labels alone) to 1: the paper's lambda.
    """

    estimate: Floats
    low: Floats
    high: Floats
    standard_error: Floats
    tuning: Floats


def wilson_interval(share: ArrayLike, n: ArrayLike, *, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """Return the ends of Wilson's interval of a share, 0 to 1; NaN where ``n`` is 0.

    Parameters
    ----------
    share
        The share that was seen, 0 to 1.
    n
        Of how many, whole or not (an effective number).
    confidence
        Above 0 and below 1.

    References
    ----------
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Examples
    --------
    >>> low, high = wilson_interval(0.9, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.596, 0.982)
    """
    middle, half = _wilson(np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64), _quantile(confidence))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def kappa(matrix: ArrayLike) -> Floats:
    """Return Cohen's kappa of a square matrix of counts: agreement beyond chance, at most 1; NaN where both raters gave one and the same label.

    References
    ----------
    J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20 (1960).

    Examples
    --------
    >>> float(kappa([[20, 5], [10, 15]]))
    0.4
    """
    counts = np.asarray(matrix, dtype=np.float64)
    total = counts.sum(axis=(-2, -1))
    chance = (counts.sum(axis=-1) * counts.sum(axis=-2)).sum(axis=-1)
    agreed = np.trace(counts, axis1=-2, axis2=-1)
    # Whole numbers as far as the division, so that a constant pair of raters divides 0 by 0 and nothing near it.
    return _divided(agreed * total - chance, total * total - chance)


def kappa_interval(matrix: ArrayLike, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Return the ends of the percentile bootstrap interval of Cohen's kappa.

    Parameters
    ----------
    matrix
        One square matrix of counts. Rows are resampled as draws from its cells, which comes to the same.
    confidence
        Above 0 and below 1.
    resamples
        How many.
    seed
        Of the resamples: the same one gives the same interval.

    Returns
    -------
    tuple of float
        Both NaN where kappa is, and where all resamples give the same value, as those of a perfect agreement do.

    Examples
    --------
    >>> [round(end, 2) for end in kappa_interval([[20, 5], [10, 15]])]
    [0.15, 0.64]
    """
    share = check_confidence(confidence)
    counts = np.asarray(matrix, dtype=np.float64)
    total = int(counts.sum())
    if not total:
        return float("nan"), float("nan")
    drawn = np.random.default_rng(seed).multinomial(total, counts.ravel() / total, size=resamples)
    values = kappa(drawn.reshape(resamples, *counts.shape))
    values = values[~np.isnan(values)]
    if not len(values) or values.min() == values.max():
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


def ppi_rate(matrix: ArrayLike, passed: ArrayLike, unlabelled: ArrayLike, *, confidence: float = 0.95) -> PpiRate:
    """Return the pass rate by prediction-powered inference (PPI++) from a few labels and the score's verdicts on many more rows.

    Parameters
    ----------
    matrix
        Counts of the labelled rows, two by two.
    passed, unlabelled
        Of so many rows without a label, so many pass by the score.
    confidence
        Above 0 and below 1.

    Returns
    -------
    PpiRate
        ``estimate``, ``standard_error`` and ``tuning`` are those of ``ppi_mean_pointestimate`` and ``ppi_mean_ci`` of ppi-python, where these have any;
        where all verdicts are equal, or no row is without a label, the labels alone are left: a tuning of 0.

    Notes
    -----
    The interval is not the normal one of the paper, which at 50 labels held the true rate in 86 to 88 % of samples instead of 95 % where nine rows of
    ten pass. It is Wilson's, of the PPI++ estimate and the effective number of labels: as many as would, without scores, give the same variance.
    A third of a row more in each cell enters that variance (not the estimate), so that a score without an error among few labels is not taken for one
    that makes none. It is never wider than Wilson's of the labels alone. At 50 labels it held the true rate, from 0.3 to 0.95, in 93 to 97 % of samples
    with judges from useless to good, and in 99 % and more with one that makes no errors (``benchmarks/ppi_coverage.py``).

    References
    ----------
    A. N. Angelopoulos, J. C. Duchi and T. Zrnic, PPI++: efficient prediction-powered inference, arXiv:2311.01453 (2023). The effective number:
    E. L. Korn and B. I. Graubard, Confidence intervals for proportions with small expected number of positive counts estimated from survey data, Survey
    Methodology 24 (1998).

    Examples
    --------
    >>> found = ppi_rate([[30, 2], [3, 15]], passed=1400, unlabelled=2000)
    >>> round(float(found.estimate), 3), round(float(found.low), 3), round(float(found.high), 3)
    (0.673, 0.582, 0.752)
    """
    known = _Known.of(matrix, passed, unlabelled)
    z = _quantile(confidence)
    n, rest = known.n, known.rest
    tuning = known.tuning(n, rest)
    estimate = tuning * known.far + known.human - tuning * known.judge
    residual = known.human * (1 - known.human) - 2 * tuning * known.covariance + tuning**2 * known.judge * (1 - known.judge)
    error = np.sqrt(np.maximum(residual, 0.0) / n + _share(tuning**2 * known.far * (1 - known.far), rest))
    middle, half = _ppi_interval(known, n, rest, z)
    return PpiRate(estimate, np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0), error, tuning)


def rogan_gladen(matrix: ArrayLike, passed: ArrayLike, unlabelled: ArrayLike, *, confidence: float = 0.95) -> RateInterval:
    """Return the pass rate that Rogan and Gladen's formula gives: the score's own, corrected by its TPR and TNR.

    Parameters
    ----------
    matrix
        Counts of the labelled rows, two by two: TPR and TNR come from them.
    passed, unlabelled
        Of so many rows without a label, so many pass by the score.
    confidence
        Above 0 and below 1.

    Returns
    -------
    RateInterval
        ``(passed / unlabelled + TNR - 1) / (TPR + TNR - 1)``, cut to 0 to 1, with Lang and Reiczigel's interval, which takes TPR and TNR as estimated. All NaN
        where TPR + TNR is 1 or less, or either is unknown, or no row is without a label; the ends alone NaN where their own, more careful TPR and TNR (one more
        hit and miss each) come to 1 or less.

    References
    ----------
    W. J. Rogan and B. Gladen, Estimating prevalence from the results of a screening test, American Journal of Epidemiology 107 (1978).
    Z. Lang and J. Reiczigel, Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity, Preventive
    Veterinary Medicine 113 (2014).

    Examples
    --------
    >>> found = rogan_gladen([[45, 5], [10, 40]], passed=500, unlabelled=1000)
    >>> round(float(found.estimate), 3), round(float(found.low), 3), round(float(found.high), 3)
    (0.429, 0.302, 0.539)
    """
    counts = np.asarray(matrix, dtype=np.float64)
    seen, rest = np.asarray(passed, dtype=np.float64), np.asarray(unlabelled, dtype=np.float64)
    z = _quantile(confidence)
    hits, misses, false, true = counts[..., 0, 0], counts[..., 0, 1], counts[..., 1, 0], counts[..., 1, 1]
    tpr, tnr, rate = _divided(hits, hits + misses), _divided(true, true + false), _divided(seen, rest)
    # A comparison with NaN is False, so that unknown rates count as no better than chance.
    estimate = np.clip(_divided(np.where(tpr + tnr > 1, rate + tnr - 1, np.nan), tpr + tnr - 1), 0.0, 1.0)
    positives, negatives, tests = hits + misses + 2, true + false + 2, rest + z * z
    tpr, tnr, rate = (hits + 1) / positives, (true + 1) / negatives, (seen + z * z / 2) / tests
    skill = np.where((tpr + tnr > 1) & ~np.isnan(estimate), tpr + tnr - 1, np.nan)
    middle = (rate + tnr - 1) / skill
    tpr_variance, tnr_variance = tpr * (1 - tpr) / positives, tnr * (1 - tnr) / negatives
    half = z * np.sqrt(rate * (1 - rate) / tests + middle**2 * tpr_variance + (1 - middle) ** 2 * tnr_variance) / skill
    middle = middle + 2 * z * z * (middle * tpr_variance - (1 - middle) * tnr_variance)
    low, high = np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)
    return RateInterval(estimate, np.minimum(low, estimate), np.maximum(high, estimate))


def more_labels(matrix: ArrayLike, passed: int, unlabelled: int, width: float, *, confidence: float = 0.95) -> tuple[int, int]:
    """Return how many more labels make an interval of the pass rate so narrow: of the labels alone, and of PPI++.

    Parameters
    ----------
    matrix, passed, unlabelled, confidence
        As in `ppi_rate`; one matrix.
    width
        From the low to the high end, above 0 and below 1.

    Returns
    -------
    tuple of int
        0 where it is narrow enough already. New labels are taken from the rows without one; where these are too few, the number for the labels alone holds for
        both, as every further row needs its label.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        When ``width`` is no number, or not between 0 and 1.

    Examples
    --------
    >>> more_labels([[30, 2], [3, 15]], 1400, 2000, 0.1)
    (301, 108)
    """
    wanted = check_real("width", width)
    if not 0 < wanted < 1:
        raise OptionRangeError.from_value("width", width, "above 0 and below 1: from the low to the high end of the interval")
    known = _Known.of(matrix, passed, unlabelled)
    z = _quantile(confidence)
    labelled, every = int(known.n), int(known.n + known.rest)

    def alone(n: int) -> float:
        return 2 * float(_wilson(known.human, np.asarray(n, dtype=np.float64), z)[1])

    def together(n: int) -> float:
        return 2 * float(_ppi_interval(known, np.asarray(n, dtype=np.float64), np.asarray(every - n, dtype=np.float64), z)[1])

    most = max(every, 1)
    while alone(most) > wanted:
        most *= 2
    needed = _least(alone, wanted, labelled, most)
    fewer = _least(together, wanted, labelled, every) if together(every) <= wanted else needed
    return needed - labelled, min(fewer, needed) - labelled


def threshold_curve(scores: Floats, passed: NDArray[np.bool_], thresholds: Floats, *, lower: bool = False) -> tuple[Floats, Floats]:
    """Return TPR and TNR at each threshold.

    Parameters
    ----------
    scores, passed
        Of the labelled rows: a number, and whether the human label is a pass.
    thresholds
        Where to cut, in any order.
    lower
        Whether a score at or below the threshold passes, and not one at or above it.

    Returns
    -------
    tuple of numpy.ndarray
        NaN throughout where no row passes, or none fails.

    Examples
    --------
    >>> tpr, tnr = threshold_curve(np.array([0.2, 0.4, 0.9]), np.array([False, True, True]), np.array([0.4, 0.5]))
    >>> tpr.tolist(), tnr.tolist()
    ([1.0, 0.5], [1.0, 1.0])
    """

    def passing(group: Floats) -> Floats:
        below = np.searchsorted(np.sort(group), thresholds, side="right" if lower else "left")
        return _divided(np.asarray(below if lower else len(group) - below, dtype=np.float64), np.float64(len(group)))

    return passing(scores[passed]), 1 - passing(scores[~passed])


class _Known(NamedTuple):
    """What labels and scores tell, all per row: shares, and the variances that smoothed counts give."""

    n: Floats
    rest: Floats
    human: Floats
    judge: Floats
    far: Floats
    covariance: Floats
    spread: Floats
    smooth: tuple[Floats, Floats, Floats]

    @classmethod
    def of(cls, matrix: ArrayLike, passed: ArrayLike, unlabelled: ArrayLike) -> _Known:
        """Return what the counts tell."""
        counts = np.asarray(matrix, dtype=np.float64)
        seen, rest = np.asarray(passed, dtype=np.float64), np.asarray(unlabelled, dtype=np.float64)
        n = counts.sum(axis=(-2, -1))
        human, judge, covariance = _moments(counts)
        every = n + rest
        pooled = (judge * n + seen) / every
        spread = _divided(pooled * (1 - pooled) * every, every - 1)
        near, by, both = _moments(counts + SMOOTHING)
        smooth = near * (1 - near), by * (1 - by), both
        return cls(n, rest, human, judge, np.nan_to_num(_divided(seen, rest)), covariance, spread, smooth)

    def tuning(self, n: Floats, rest: Floats) -> Floats:
        """Return the share of trust that makes the variance least, with ``n`` rows labelled and ``rest`` not."""
        return np.clip(np.nan_to_num(_divided(self.covariance * rest, (n + rest) * self.spread)), 0.0, 1.0)


def _ppi_interval(known: _Known, n: Floats, rest: Floats, z: float) -> tuple[Floats, Floats]:
    """Return the middle and half the width of the interval that `ppi_rate` tells, with ``n`` rows labelled and ``rest`` not."""
    tuning = known.tuning(n, rest)
    own, others, both = known.smooth
    far = tuning**2 * known.far * (1 - known.far)
    variance = (own - 2 * tuning * both + tuning**2 * others) + n * _share(far, rest)
    effective = np.minimum(n / np.clip(variance / own, 1e-9, 1.0), n + rest)
    estimate = np.clip(known.tuning(known.n, known.rest) * (known.far - known.judge) + known.human, 0.0, 1.0)
    middle, half = _wilson(estimate, effective, z)
    return middle, np.minimum(half, _wilson(known.human, n, z)[1])


def _moments(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the shares that pass by label and by score, and the covariance of the two verdicts."""
    n = counts.sum(axis=(-2, -1))
    human, judge = counts[..., 0, :].sum(axis=-1) / n, counts[..., :, 0].sum(axis=-1) / n
    return human, judge, counts[..., 0, 0] / n - human * judge


def _wilson(share: Floats, n: Floats, z: float) -> tuple[Floats, Floats]:
    """Return the middle and half the width of Wilson's interval."""
    there = np.where(n > 0, n, np.nan)
    whole = 1 + z * z / there
    half = z / whole * np.sqrt(share * (1 - share) / there + z * z / (4 * there * there))
    return (share + z * z / (2 * there)) / whole, half


def _least(width: Callable[[int], float], wanted: float, low: int, high: int) -> int:
    """Return the least whole number from ``low`` whose interval is narrow enough; that of ``high`` is."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if width(middle) <= wanted else (middle + 1, high)
    return low


def _quantile(confidence: float) -> float:
    """Return the normal quantile of a two-sided interval."""
    from scipy import special

    return float(special.ndtri((1 + check_confidence(confidence)) / 2))


def _divided(above: Any, below: Any) -> Floats:
    """Return a quotient, NaN where there is nothing to divide by."""
    top, bottom = np.broadcast_arrays(np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64))
    quotient: Floats = np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0)
    return quotient


def _share(above: Floats, rest: Floats) -> Floats:
    """Return a quotient, 0 where there is nothing to divide by."""
    return np.nan_to_num(_divided(above, rest))
