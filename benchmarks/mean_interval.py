"""How often does a 95 % interval hold the true mean? Student's t (what `mean_interval` gives) beside the bootstrap BCa.

    python benchmarks/mean_interval.py

Scores like those of judges: spread out, piled up at 1, nearly all 1, skewed. 2,000 samples each; takes a few minutes.
"""

import numpy as np
from scipy import special

from scorekit.analysis.statistics import mean_interval

SAMPLES, RESAMPLES = 2000, 1999
STEPS, SHARES = np.array([0, 0.3, 0.5, 0.65, 0.8, 1]), np.array([0.05, 0.05, 0.1, 0.1, 0.1, 0.6])
SCORES = {
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "60 % at 1": (lambda rng, n: rng.choice(STEPS, n, p=SHARES), float(STEPS @ SHARES)),
    "0 or 1, 90 % are 1": (lambda rng, n: (rng.random(n) < 0.9).astype(float), 0.9),
    "skewed, beta(5, 1)": (lambda rng, n: rng.beta(5, 1, n), 5 / 6),
    "skewed, beta(0.3, 3)": (lambda rng, n: rng.beta(0.3, 3, n), 0.3 / 3.3),
}


def bca(rng, x):
    """Return the bias-corrected and accelerated bootstrap interval of the mean."""
    if np.ptp(x) == 0:
        return np.nan, np.nan
    means = x[rng.integers(0, len(x), (RESAMPLES, len(x)))].mean(axis=1)
    below = ((means < x.mean()).sum() + 0.5 * (means == x.mean()).sum()) / RESAMPLES
    bias = special.ndtri(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES))
    influence = x - x.mean()
    acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    ends = [bias + z / (1 - acceleration * z) for z in (bias - 1.959964, bias + 1.959964)]
    return tuple(np.quantile(means, special.ndtr(ends)))


def main():
    """Print the table."""
    rng = np.random.default_rng(0)
    print(f"{'scores':<22} {'n':>4} {'no interval':>12} {'t covers':>9} {'BCa covers':>11} {'t width':>8} {'BCa width':>10}")
    for label, (draw, mean) in SCORES.items():
        for n in (10, 30, 120):
            found = {"t": [], "bca": []}
            for _ in range(SAMPLES):
                x = draw(rng, n)
                result = mean_interval(x)
                found["t"].append((result.low, result.high))
                found["bca"].append(bca(rng, x))
            ends = {name: np.array(pairs) for name, pairs in found.items()}
            cover = {name: np.mean((pairs[:, 0] <= mean) & (mean <= pairs[:, 1])) for name, pairs in ends.items()}
            width = {name: np.nanmean(pairs[:, 1] - pairs[:, 0]) for name, pairs in ends.items()}
            none = np.isnan(ends["t"][:, 0]).mean()
            print(
                f"{label:<22} {n:>4} {none:>12.1%} {cover['t']:>9.1%} {cover['bca']:>11.1%} {width['t']:>8.3f} {width['bca']:>10.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
