"""Rows a second of `summarize(by=)`, beside a plain pandas groupby that gives mean, deviation, count, least, median and most.

python benchmarks/summary.py
"""

import time

import numpy as np
import pandas as pd

import scorekit as sk

SIZES = ((50_000, 10), (50_000, 10_000), (1_000_000, 10), (1_000_000, 200_000))


def summarized(df):
    """What is measured."""
    return sk.summarize(df, by="group")


def grouped(df):
    """What it is compared with: no interval, no errors, no judges."""
    return df.groupby("group", sort=False)["tone_score"].agg(["mean", "std", "count", "min", "median", "max"])


def seconds(function, df):
    """Return the shortest of three runs."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        function(df)
        best = min(best, time.perf_counter() - start)
    return best


def main():
    """Print the table."""
    rng = np.random.default_rng(0)
    print(f"{'rows':>10} {'groups':>8} {'summarize rows/s':>18} {'pandas rows/s':>15}")
    for rows, groups in SIZES:
        missing = rng.random(rows) < 0.05
        df = pd.DataFrame({
            "group": rng.integers(0, groups, rows).astype(str),
            "tone_score": np.where(missing, np.nan, rng.random(rows)),
            "tone_error": pd.array(np.where(missing, "not_scorable", None), dtype="string"),
            "tone_judge": pd.array(["local"] * rows, dtype="string"),
        })  # fmt: skip
        ours, plain = seconds(summarized, df), seconds(grouped, df)
        print(f"{rows:>10,} {groups:>8,} {rows / ours:>18,.0f} {rows / plain:>15,.0f}", flush=True)


if __name__ == "__main__":
    main()
