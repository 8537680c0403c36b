"""How often do 95 % intervals of a pass rate hold the true one, and how wide are they, from few labels and many verdicts of a judge?

    python benchmarks/ppi_coverage.py

Labels alone (Wilson), PPI++ with the paper's normal interval (as ppi-python gives it) and with Student's t in its place, PPI++ as `ppi_rate` gives it,
and Rogan and Gladen's; then the bootstrap interval of kappa. 2,000 scores of which some have a label; 10,000 samples each; takes about a minute.
Widths are means, as shares of the mean width of the labels alone; "widest" is the largest of the samples.
"""

import numpy as np
from scipy import special

from scorekit.analysis.rates import kappa, kappa_interval, ppi_rate, rogan_gladen, wilson_interval

SAMPLES, SCORES = 10_000, 2_000
JUDGES = {
    "perfect": (1, 1),
    "good": (0.95, 0.9),
    "lenient": (0.98, 0.5),
    "harsh": (0.6, 0.97),
    "middling": (0.85, 0.7),
    "useless": (0.8, 0.2),
}
"""TPR and TNR."""


def drawn(rng, rate, tpr, tnr, labels, samples=SAMPLES):
    """Return matrices of the labelled rows, and how many of the others pass."""
    cells = [rate * tpr, rate * (1 - tpr), (1 - rate) * (1 - tnr), (1 - rate) * tnr]
    return rng.multinomial(labels, cells, samples).reshape(-1, 2, 2), rng.binomial(SCORES - labels, cells[0] + cells[2], samples)


def covered(low, high, rate):
    """Return how many of the intervals that are there hold the rate."""
    there = ~np.isnan(low)
    return np.mean((low <= rate)[there] & (rate <= high)[there]) if there.any() else np.nan


def pass_rates():
    """Print the table of pass rates."""
    rng = np.random.default_rng(0)
    z = special.ndtri(0.975)
    print("labels  rate judge     | covered: labels normal      t   PPI++  Rogan-G. | width: PPI++ (widest) Rogan-G. (none)")
    for labels in (20, 50, 200):
        t = special.stdtrit(labels - 1, 0.975)
        for rate in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95):
            for judge, (tpr, tnr) in JUDGES.items():
                matrices, passed = drawn(rng, rate, tpr, tnr, labels)
                alone = wilson_interval(matrices[:, 0].sum(axis=1) / labels, labels)
                ppi = ppi_rate(matrices, passed, SCORES - labels)
                formula = rogan_gladen(matrices, passed, SCORES - labels)
                normal, student = ((ppi.estimate - q * ppi.standard_error, ppi.estimate + q * ppi.standard_error) for q in (z, t))
                shares = [covered(*ends, rate) for ends in (alone, normal, student, ppi[1:3], formula[1:])]
                width = alone[1] - alone[0]
                print(
                    f"{labels:>6} {rate:>5} {judge:<9} |       {shares[0]:>9.1%} {shares[1]:>6.1%} {shares[2]:>6.1%} {shares[3]:>7.1%} {shares[4]:>9.1%} |"
                    f" {np.mean(ppi.high - ppi.low) / width.mean():>12.2f} ({np.max((ppi.high - ppi.low) / width):.2f})"
                    f" {np.nanmean(formula.high - formula.low) / width.mean():>12.2f} ({np.isnan(formula.low).mean():.1%})",
                    flush=True,
                )


def kappas():
    """Print the table of kappas."""
    rng = np.random.default_rng(0)
    print("\nlabels  rate judge     |  kappa | covered (no interval)")
    for labels in (50, 200):
        for rate in (0.5, 0.8):
            for judge, (tpr, tnr) in JUDGES.items():
                if judge == "perfect":
                    continue
                true = float(kappa(np.array([[rate * tpr, rate * (1 - tpr)], [(1 - rate) * (1 - tnr), (1 - rate) * tnr]])))
                ends = np.array([kappa_interval(matrix, resamples=1000) for matrix in drawn(rng, rate, tpr, tnr, labels, 1000)[0]])
                print(
                    f"{labels:>6} {rate:>5} {judge:<9} | {true:>6.2f} | {covered(ends[:, 0], ends[:, 1], true):.1%} ({np.isnan(ends[:, 0]).mean():.1%})"
                )


if __name__ == "__main__":
    pass_rates()
    kappas()
