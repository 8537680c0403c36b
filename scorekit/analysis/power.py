"""How many pairs it takes to find a difference, and which difference so many pairs find: a paired t test's power."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scorekit.analysis.statistics import check_real
from scorekit.errors import OptionRangeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

MOST_PAIRS: Final = 10**8


def t_test_power(effect: ArrayLike, n: ArrayLike, alpha: float = 0.05) -> Floats:
    """Return how often a paired t test, two-sided, finds a difference.

    Parameters
    ----------
    effect
        The true mean difference over the standard deviation of the differences, 0 or more.
    n
        Pairs, 2 or more.
    alpha
        The level of the test.

    References
    ----------
    J. Cohen, Statistical power analysis for the behavioral sciences (1988), chapter 2; the same as statsmodels' ``TTestPower``.

    Examples
    --------
    >>> float(t_test_power(0.5, 34).round(3))
    0.808
    """
    from scipy import special

    sizes = np.asarray(n, dtype=np.float64)
    shift = np.asarray(effect, dtype=np.float64) * np.sqrt(sizes)
    cut = special.stdtrit(sizes - 1, 1 - alpha / 2)
    # Where a tail is too small for it, nctdtr gives NaN.
    missed, reversed_ = (np.nan_to_num(special.nctdtr(sizes - 1, shift, end)) for end in (cut, -cut))
    found: Floats = 1 - missed + reversed_
    return found


def pairs_needed(effect: float, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """Return how many pairs a paired t test needs to find a difference so often; None for an effect of 0 or NaN, and where it would be over a hundred million.

    Parameters
    ----------
    effect
        The true mean difference over the standard deviation of the differences.
    power
        How often it is to be found, above ``alpha`` and below 1.
    alpha
        The level of the test.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        When ``power`` is no number or out of range.

    Examples
    --------
    >>> pairs_needed(0.5), pairs_needed(0.2)
    (34, 199)
    """
    found = float(many_pairs_needed(np.array([effect]), power=power, alpha=alpha)[0])
    return None if np.isnan(found) else int(found)


def many_pairs_needed(effects: Floats, *, power: float = 0.8, alpha: float = 0.05) -> Floats:
    """Return what `pairs_needed` does for many effects at once, NaN for None.

    Examples
    --------
    >>> many_pairs_needed(np.array([0.5, 0.2, 0.0])).tolist()
    [34.0, 199.0, nan]
    """
    wanted = check_power(power, alpha)
    sizes = np.abs(effects)
    able = np.flatnonzero(sizes > 0)
    able = able[t_test_power(sizes[able], MOST_PAIRS, alpha) >= wanted]
    low, high = np.full(len(able), 2.0), np.full(len(able), float(MOST_PAIRS))
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        enough = t_test_power(sizes[able], middle, alpha) >= wanted
        low, high = np.where(enough | (low == high), low, middle + 1), np.where(enough, middle, high)
    found = np.full(len(sizes), np.nan)
    found[able] = high
    return found


def detectable_effect(n: int, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the least effect that so many pairs find so often; NaN for fewer than two.

    Examples
    --------
    >>> round(detectable_effect(34), 2)
    0.5
    """
    wanted = check_power(power, alpha)
    if n < 2:  # noqa: PLR2004
        return float("nan")
    low, high = 0.0, 1.0
    while float(t_test_power(high, n, alpha)) < wanted:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if float(t_test_power(middle, n, alpha)) >= wanted else (middle, high)
    return high


def check_power(power: Any, alpha: float) -> float:
    """Return a power as a float, and raise an error that says what it must be if it is none."""
    wanted = check_real("power", power)
    if not alpha < wanted < 1:
        raise OptionRangeError.from_value("power", power, f"above {alpha:g}, the level of the test, and below 1")
    return wanted
