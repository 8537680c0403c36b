"""How often `trend` finds drift where there is none, beside Welch's test alone, and where there is some: ``python benchmarks/trend.py``.

Series of 30 days, the first 7 of them the reference window; each score is a series of its own.
"""

import warnings

import numpy as np
import pandas as pd
from scipy import stats

from scorekit.analysis.paired import holm
from scorekit.analysis.trend import trend

SERIES, DAYS = 500, 30
SHAPES = {
    "normal": lambda rng, size: rng.normal(0.5, 0.2, size),
    "60 % at 1.0": lambda rng, size: np.where(rng.random(size) < 0.6, 1.0, rng.random(size)),
    "90 % at 1.0": lambda rng, size: np.where(rng.random(size) < 0.9, 1.0, rng.random(size)),
    "pass rate 0.9": lambda rng, size: (rng.random(size) < 0.9).astype(float),
    "pass rate 0.5": lambda rng, size: (rng.random(size) < 0.5).astype(float),
    "0, 0.25 ... 1": lambda rng, size: rng.choice([0, 0.25, 0.5, 0.75, 1.0], size=size, p=[0.05, 0.05, 0.1, 0.2, 0.6]),
    "like toxicity": lambda rng, size: rng.beta(0.3, 4, size),
}
SHIFTS = {
    "normal, 0.5 sd": ("normal", lambda rng, size: rng.normal(0.4, 0.2, size)),
    "normal, 0.8 sd": ("normal", lambda rng, size: rng.normal(0.34, 0.2, size)),
    "60 % at 1.0 -> 30 %": ("60 % at 1.0", lambda rng, size: np.where(rng.random(size) < 0.3, 1.0, rng.random(size))),
    "pass rate 0.9 -> 0.7": ("pass rate 0.9", lambda rng, size: (rng.random(size) < 0.7).astype(float)),
}


def found(values):
    """Return which days of each series have drifted; ``values`` has a row per row of the frame and a column per series."""
    rows = len(values) // DAYS
    frame = pd.DataFrame(values, columns=[f"s{i}_score" for i in range(values.shape[1])])
    frame.insert(0, "created_at", pd.date_range("2026-01-01", periods=DAYS, freq="D", tz="UTC").repeat(rows))
    return trend(frame)["drift"].to_numpy().reshape(-1, DAYS)


def welch(values):
    """Return the same by Welch's test alone."""
    days = values.reshape(DAYS, -1, values.shape[1])
    reference = days[: DAYS // 4].reshape(-1, values.shape[1])
    with np.errstate(all="ignore"):
        p = np.array([stats.ttest_ind(day, reference, equal_var=False).pvalue for day in days[DAYS // 4 :]])
    return np.array([(holm(series) < 0.05).any() for series in p.T])


def main():
    """Print both tables."""
    warnings.simplefilter("ignore")  # scipy's, of samples without spread
    rng = np.random.default_rng(0)
    print("no drift: share of series in which some day drifted\nscores             rows/day  trend  Welch alone")
    for name, draw in SHAPES.items():
        for rows in (2, 3, 5, 10, 20, 50, 200):
            values = draw(rng, (DAYS * rows, SERIES))
            print(f"{name:18} {rows:8}  {found(values).any(axis=1).mean():5.3f}  {welch(values).mean():5.3f}", flush=True)
    print("the last day is off: share of series in which it drifted\nscores                 rows/day  trend")
    for name, (before, draw) in SHIFTS.items():
        for rows in (20, 50, 100, 200):
            values = SHAPES[before](rng, (DAYS * rows, SERIES))
            values[-rows:] = draw(rng, (rows, SERIES))
            print(f"{name:22} {rows:8}  {found(values)[:, -1].mean():5.3f}", flush=True)


if __name__ == "__main__":
    main()
