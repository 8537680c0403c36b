"""Paired comparison: seconds and memory of a BCa interval beside plain numpy in the same run, and how often intervals hold the true difference.

    python benchmarks/compare.py

Both BCa resample rows with replacement as often, take the acceleration from the jackknife, and give the same interval up to the draws. The plain one
does so 20 resamples at a time, as they do not fit in memory at once. The coverage takes about three minutes.
"""

import resource
import time

import numpy as np
import pandas as pd
from scipy import special

import scorekit as sk
from scorekit.analysis.compare import compare
from scorekit.analysis.paired import bca_intervals, describe_differences
from scorekit.analysis.resampling import flipped_sums

PAIRS, RESAMPLES, RUNS = 200_000, 2000, 3
SAMPLES, BATCH = 4000, 100


def plain_bca(x, resamples, seed, at_once=20):
    """Return the interval as one would write it with numpy, a few resamples at a time."""
    rng = np.random.default_rng(seed)
    n = len(x)
    means = np.concatenate([x[rng.integers(0, n, (at_once, n))].mean(axis=1) for _ in range(resamples // at_once)])
    bias = special.ndtri(((means < x.mean()).mean() + (means <= x.mean()).mean()) / 2)
    left_out = (x.sum() - x) / (n - 1)
    influence = left_out.mean() - left_out
    acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    ends = [bias + (bias + z) / (1 - acceleration * (bias + z)) for z in special.ndtri([0.025, 0.975])]
    return np.quantile(means, special.ndtr(ends))


def seconds(function):
    """Return how long a function takes by the clock and by the processor, and what it returns."""
    start, own = time.perf_counter(), time.process_time()
    found = function()
    return time.perf_counter() - start, time.process_time() - own, found


def peak():
    """Return the most memory this process has used, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def speed():
    """Print the table of times: the best of a few runs that take turns."""
    rng = np.random.default_rng(0)
    judged = rng.choice([-1, -0.5, -0.25, 0, 0.25, 0.5, 1], PAIRS, p=[0.02, 0.08, 0.1, 0.55, 0.1, 0.11, 0.04])
    spread = rng.beta(5, 2, PAIRS) - rng.beta(5, 2.1, PAIRS)
    rows = {
        "BCa, continuous": (lambda: bca_intervals(spread[:, None], resamples=RESAMPLES)[0], lambda: plain_bca(spread, RESAMPLES, 0)),
        "BCa, judged": (lambda: bca_intervals(judged[:, None], resamples=RESAMPLES)[0], lambda: plain_bca(judged, RESAMPLES, 0)),
    }
    print(f"{PAIRS:,} pairs, {RESAMPLES:,} resamples; seconds by the clock (by the processor), best of {RUNS}")
    print(f"{'':<34} {'scorekit':>14} {'plain numpy':>14} {'times':>6}   intervals")
    for label, functions in rows.items():
        runs = [[seconds(function) for function in functions] for _ in range(RUNS)]
        ours, plain = (min(run[side][:2] for run in runs) for side in (0, 1))
        ends = ["{:.6f} to {:.6f}".format(*run[2]) for run in runs[0]]
        times = [f"{clock:.2f} ({own:.2f})" for clock, own in (ours, plain)]
        print(f"{label:<34} {times[0]:>14} {times[1]:>14} {plain[1] / ours[1]:>6.1f}   {ends[0]} | {ends[1]}", flush=True)
    for label, function in (
        ("9,999 sign flips", lambda: flipped_sums(spread[:, None], 9999, 0)),
        ("all of describe_differences", lambda: describe_differences(spread, resamples=RESAMPLES)),
        ("the same in 5,000 clusters", lambda: describe_differences(spread, np.arange(PAIRS) % 5000, resamples=RESAMPLES)),
    ):
        clock, own, _ = min((seconds(function) for _ in range(RUNS)), key=lambda run: run[0])
        print(f"{label:<34} {f'{clock:.2f} ({own:.2f})':>14}", flush=True)
    df = pd.DataFrame({"id": np.tile(np.arange(PAIRS), 2), "prompt": np.repeat(["a", "b"], PAIRS)})
    df["output"] = df["id"].astype(str) + " an answer"
    df["x_score"] = np.concatenate([np.zeros(PAIRS), spread])
    df["y_score"] = np.concatenate([np.zeros(PAIRS), judged])
    clock, own, _ = seconds(lambda: compare(df, variant="prompt", item="id", resamples=RESAMPLES))
    print(f"{'compare, two scores':<34} {f'{clock:.2f} ({own:.2f})':>14}   peak memory {peak():,.0f} MB (limit 2,048)", flush=True)


DIFFERENCES = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "bounded, beta(5, 1) - beta(4, 1)": (lambda rng, shape: rng.beta(5, 1, shape) - rng.beta(4, 1, shape), 5 / 6 - 4 / 5),
    "wins 15 %, losses 5 %, else equal": (lambda rng, shape: rng.choice([-1.0, 0.0, 1.0], shape, p=[0.05, 0.8, 0.15]), 0.1),
    "exponential": (lambda rng, shape: rng.exponential(size=shape), 1.0),
}


def coverage():
    """Print how often the 95 % interval holds the mean of the population; samples without spread, which have no interval, are left out."""
    sizes = (5, 10, 20, 30, 50, 100)
    print(f"\nShare of {SAMPLES:,} samples whose 95 % interval holds the true difference, {RESAMPLES:,} resamples")
    print(f"{'differences':<34}" + "".join(f"{f'n = {n}':>9}" for n in sizes))
    for label, (draw, mean) in DIFFERENCES.items():
        shares = []
        for n in sizes:
            held = []
            for batch in range(SAMPLES // BATCH):
                samples = draw(np.random.default_rng([batch, n]), (n, BATCH))
                samples = samples[:, np.ptp(samples, axis=0) > 0]
                low, high = bca_intervals(samples, resamples=RESAMPLES, seed=batch).T
                held.append((low <= mean) & (mean <= high))
            shares.append(np.concatenate(held).mean())
        print(f"{label:<34}" + "".join(f"{share:>9.1%}" for share in shares), flush=True)


if __name__ == "__main__":
    print(f"scorekit {sk.__version__}, numpy {np.__version__}")
    speed()
    coverage()
