"""Random draws for bootstraps and permutation tests: sums of resampled and of sign-flipped columns, exact and from a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BLOCK: Final = 256
"""Rows that a byte can tell apart; two draws among them make a 16-bit number, and so one look into a table of sums of two."""

PLAIN: Final = 4 * BLOCK
"""Below so many rows every draw is one look: tables of sums of two would cost more than they save."""

BYTE: Final = 8
"""Signs in a byte: one look into a table gives the sum of so many rows."""

AT_ONCE: Final = 1 << 20
"""About how many draws are in memory at a time."""

STATES: Final = 1 << 16
"""Up to so many different sums all sign flips are counted, which takes a few milliseconds, and not drawn."""


def bootstrap_sums(columns: Floats, resamples: int, seed: int) -> Floats:
    """Return the sums of every column over rows drawn with replacement, as many as there are.

    Parameters
    ----------
    columns
        A row per unit that is resampled, a column per quantity; all columns see the same draws.
    resamples
        How many.
    seed
        The draws follow from it, the number of rows and the number of resamples alone: a column's sums do not depend on its neighbours.

    Returns
    -------
    numpy.ndarray
        A row per resample, a column per column.

    Notes
    -----
    With fewer than 1,024 rows the draws are those of ``numpy.random.default_rng(seed).integers(0, n, (resamples, n))``, so that
    `scipy.stats.bootstrap` with the same seed resamples the same rows. With more, how many draws fall into each block of 256 rows comes first, from
    binomials whose product is the multinomial; then the draws within the block, two at a time as a 16-bit number, which is the place of
    their sum in a table. Both are plain resamples, of equal probability; the second takes a third of the first's time (``benchmarks/compare.py``).

    Examples
    --------
    The sums of an identity matrix tell how often each row is drawn:

    >>> bootstrap_sums(np.eye(4), 3, seed=0)
    array([[0., 1., 2., 1.],
           [3., 1., 0., 0.],
           [1., 0., 1., 2.]])
    """
    rng = np.random.default_rng(seed)
    n, width = columns.shape
    sums = np.zeros((resamples, width), order="F")
    step = max(1, AT_ONCE // max(n if n < PLAIN else BLOCK, 1))
    for first in range(0, resamples, step):
        part = sums[first : first + step]
        if n < PLAIN:
            drawn = rng.integers(0, n, (len(part), n))
            for j in range(width):
                part[:, j] = columns[:, j][drawn].sum(axis=1)
        else:
            _add_blocks(part, columns, rng)
    return sums


def _add_blocks(sums: Floats, columns: Floats, rng: np.random.Generator) -> None:
    """Add to ``sums`` what resamples of all rows sum to, block by block."""
    n, width = columns.shape
    draws = np.full(len(sums), n)
    for start in range(0, n - BLOCK + 1, BLOCK):
        rows = n - start
        own = rng.binomial(draws, BLOCK / rows) if rows > BLOCK else draws
        draws = draws - own
        pairs, odd = np.divmod(own, 2)
        ends = np.cumsum(pairs)
        total = int(ends[-1])
        places = rng.integers(0, 1 << 64, -(-total // 4), dtype=np.uint64).view(np.uint16)[:total].astype(np.intp)
        single = rng.integers(0, BLOCK, len(sums))
        for j in range(width):
            values = columns[start : start + BLOCK, j]
            sums[:, j] += _sums_of_runs(np.add.outer(values, values).ravel()[places], pairs) + odd * values[single]
    rest = n % BLOCK
    if rest:
        # Few rows, and the number of draws differs from one resample to the next.
        places = rng.integers(n - rest, n, int(draws.sum()))
        for j in range(width):
            sums[:, j] += _sums_of_runs(columns[:, j][places], draws)


def _sums_of_runs(values: Floats, lengths: NDArray[np.int64]) -> Floats:
    """Return the sums of consecutive runs of values, 0 for a run of none.

    Examples
    --------
    >>> _sums_of_runs(np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1, 0]))
    array([3., 0., 3., 0.])
    """
    sums = np.zeros(len(lengths))
    filled = lengths > 0
    if len(values):
        # reduceat takes a run of none for one of one: the runs that hold something follow one another without gaps.
        sums[filled] = np.add.reduceat(values, (np.cumsum(lengths) - lengths)[filled])
    return sums


def flipped_sums(columns: Floats, flips: int, seed: int) -> Floats:
    """Return the sums of every column with random signs, each row's sign plus or minus with equal probability.

    Parameters
    ----------
    columns
        A row per unit whose sign is flipped, a column per quantity; all columns see the same signs.
    flips
        How many times.
    seed
        The signs follow from it, the number of rows and the number of flips alone.

    Returns
    -------
    numpy.ndarray
        A row per flip, a column per column.

    Examples
    --------
    The sums of an identity matrix tell the signs:

    >>> flipped_sums(np.eye(4), 3, seed=0)
    array([[-1.,  1., -1.,  1.],
           [ 1., -1., -1., -1.],
           [ 1.,  1., -1., -1.]])
    """
    rng = np.random.default_rng(seed)
    n, width = columns.shape
    signs = 2.0 * np.unpackbits(np.arange(1 << BYTE, dtype=np.uint8)[:, None], axis=1).T - 1
    padded = np.zeros((-(-n // BYTE) * BYTE, width))
    padded[:n] = columns
    # One row of a table per byte of signs: the sum of its eight rows under each of the 256 ways to sign them.
    groups = padded.reshape(-1, BYTE, width)
    sums = np.zeros((flips, width), order="F")
    step = max(1, AT_ONCE // max(flips, 1))
    for start in range(0, len(groups), step):
        part = groups[start : start + step]
        drawn = rng.integers(0, 1 << 64, -(-flips * len(part) // BYTE), dtype=np.uint64).view(np.uint8)[: flips * len(part)]
        places = drawn.reshape(flips, len(part)) + (np.arange(len(part)) << BYTE)
        for j in range(width):
            sums[:, j] += (part[:, :, j] @ signs).ravel()[places].sum(axis=1)
    return sums


def all_flipped_sums(values: Floats) -> tuple[Floats, Floats] | None:
    """Return every sum that flipping signs can give, with its probability; None where there are too many to count.

    Parameters
    ----------
    values
        The numbers whose signs are flipped, each with probability one half.

    Returns
    -------
    tuple of numpy.ndarray, or None
        Sums and their probabilities; a sum may be there more than once. Numbers of one magnitude are taken together (as many of them are plus as a
        binomial says), so that 16 different magnitudes can be counted, and any number of differences between scores of 0 and 1.

    Examples
    --------
    >>> sums, shares = all_flipped_sums(np.array([0.5, 0.5, -1.0]))
    >>> sums.tolist(), shares.tolist()
    ([-2.0, 0.0, -1.0, 1.0, 0.0, 2.0], [0.125, 0.125, 0.25, 0.25, 0.125, 0.125])
    """
    from scipy import special

    sizes = np.abs(values[values != 0])
    sums, shares = np.zeros(1), np.ones(1)
    if not len(sizes):
        return sums, shares
    # 0.3 - 0.2 and 0.2 - 0.1 are one magnitude, a rounding error apart.
    unit = float(sizes.max())
    magnitudes, counts = np.unique(np.round(sizes / unit, 12), return_counts=True)
    if float(np.log2(counts + 1.0).sum()) > np.log2(max(STATES, len(sizes) + 1)):
        return None
    for magnitude, count in zip(magnitudes.tolist(), counts.tolist(), strict=True):
        plus = np.arange(count + 1.0)
        logs = special.gammaln(count + 1) - special.gammaln(plus + 1) - special.gammaln(count - plus + 1) - count * np.log(2)
        sums = np.add.outer(sums, unit * magnitude * (2 * plus - count)).ravel()
        shares = np.multiply.outer(shares, np.exp(logs)).ravel()
    return sums, shares
