"""Paired differences: resamples, BCa, sign flips, McNemar, Holm and power, beside scipy, statsmodels and plain numpy, by hand and by simulation."""

import inspect
import math
from itertools import product

import numpy as np
import pytest
from scipy import special, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from scorekit.analysis.paired import bca_intervals, describe_differences, describe_samples, exact_p, holm, mcnemar_p, sign_flip_p
from scorekit.analysis.power import detectable_effect, pairs_needed, t_test_power
from scorekit.analysis.resampling import all_flipped_sums, bootstrap_sums, flipped_sums
from scorekit.errors import ArgumentTypeError, OptionRangeError

NAN = float("nan")


def seeded(generator):
    """Return the argument by which this scipy takes a generator: ``rng`` from 1.15 on."""
    return {"rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state": generator}


def counts_of(n, resamples, seed):
    """How often each row is in each resample: 13 rows to a column, as digits of a number in base 16."""
    weights = np.zeros((n, -(-n // 13)))
    weights[np.arange(n), np.arange(n) // 13] = 16.0 ** (np.arange(n) % 13)
    sums = bootstrap_sums(weights, resamples, seed).astype(np.int64)
    return np.stack([(sums[:, i // 13] >> 4 * (i % 13)) & 15 for i in range(n)], axis=1)


def plain_bca(x, counts, confidence=0.95):
    """Return the BCa interval of the mean from counts of rows, as Efron's paper writes it."""
    n, mean = len(x), np.mean(x)
    means = np.array([np.repeat(x, row).mean() for row in counts])
    z0 = special.ndtri(np.mean(np.where(means < mean, 1.0, np.where(means == mean, 0.5, 0.0))))
    jackknife = np.array([np.delete(x, i).mean() for i in range(n)])
    steps = jackknife.mean() - jackknife
    a = np.sum(steps**3) / (6 * np.sum(steps**2) ** 1.5)
    z = special.ndtri((1 + confidence) / 2)
    levels = [special.ndtr(z0 + (z0 + end) / (1 - a * (z0 + end))) for end in (-z, z)]
    return np.quantile(means, levels)


def brute_force_p(values):
    """The share of all sign flips that are as far from 0, one by one."""
    seen = abs(math.fsum(values))
    flips = [
        abs(math.fsum(sign * value for sign, value in zip(signs, values, strict=True))) for signs in product((1, -1), repeat=len(values))
    ]
    return np.mean([flip >= seen - 1e-9 for flip in flips])


# Resamples


def test_bootstrap_sums_of_few_rows_are_those_of_numpys_draws():
    values = np.array([[1.0], [10.0], [100.0]])
    drawn = np.random.default_rng(5).integers(0, 3, (40, 3))
    assert bootstrap_sums(values, 40, 5)[:, 0].tolist() == values[drawn, 0].sum(axis=1).tolist()


@pytest.mark.parametrize("n", [7, 1023, 1024, 1100, 2048, 2049])
def test_bootstrap_sums_draw_as_many_rows_as_there_are_each_as_often(n):
    resamples = 1000
    counts = counts_of(n, resamples, seed=3)
    assert (counts.sum(axis=1) == n).all()
    # Chi-square of the rows' totals: n - 1 degrees of freedom, five deviations allowed.
    expected = resamples
    chi = ((counts.sum(axis=0) - expected) ** 2 / expected).sum()
    assert abs(chi - (n - 1)) < 5 * math.sqrt(2 * (n - 1))
    # One row's count is binomial: its variance 1 - 1 / n.
    assert counts.var() == pytest.approx(1 - 1 / n, abs=5 * math.sqrt(2 / (n * resamples)) + 1e-3)


def test_bootstrap_sums_share_draws_over_blocks_as_a_multinomial_does():
    # The first block, its even and its odd rows, and the first row of the next block with the last of all.
    rows = np.arange(2048)
    chosen = [rows < 256, (rows < 256) & (rows % 2 == 0), (rows < 256) & (rows % 2 == 1), (rows == 256) | (rows == 2047)]
    first, even, odd, few = bootstrap_sums(np.stack(chosen, axis=1).astype(float), 4000, 1).T
    # Binomial(2048, 1 / 8): mean 256, variance 224; the estimates from 4,000 have deviations of 0.24 and 5.
    assert first.mean() == pytest.approx(256, abs=1.2)
    assert first.var() == pytest.approx(224, abs=25)
    # Even and odd rows share the draws: a covariance of -2048 / 16 ** 2 by variances of 2048 / 16 * 15 / 16.
    assert np.corrcoef(even, odd)[0, 1] == pytest.approx(-1 / 15, abs=0.08)
    assert few.var() == pytest.approx(2 * (1 - 2 / 2048), abs=0.25)


@pytest.mark.parametrize("n", [50, 1300])
def test_bootstrap_sums_of_a_column_do_not_depend_on_its_neighbours(n):
    columns = np.random.default_rng(0).normal(size=(n, 3))
    both = bootstrap_sums(columns, 100, 7)
    assert both[:, 1].tolist() == bootstrap_sums(columns[:, [1]], 100, 7)[:, 0].tolist()


def test_bootstrap_sums_follow_the_seed():
    values = np.arange(2000.0)[:, None]
    assert (bootstrap_sums(values, 50, 1) == bootstrap_sums(values, 50, 1)).all()
    assert (bootstrap_sums(values, 50, 1) != bootstrap_sums(values, 50, 2)).any()


@pytest.mark.parametrize("n", [1, 8, 13, 300])
def test_flipped_sums_flip_each_sign_half_the_time_and_alone(n):
    signs = flipped_sums(np.eye(n), 2000, 0)
    assert set(signs.ravel().tolist()) == {-1.0, 1.0}
    assert np.abs(signs.mean(axis=0)).max() < 5 / math.sqrt(2000)
    assert np.abs(np.corrcoef(signs.T) - np.eye(n)).max() < 6 / math.sqrt(2000)


def test_all_flipped_sums_count_equal_magnitudes_together():
    sums, shares = all_flipped_sums(np.array([1.0] * 5000 + [-1.0] * 3000 + [0.0] * 10))
    assert len(sums) == 8001
    assert shares.sum() == pytest.approx(1, abs=1e-9)


def test_all_flipped_sums_of_too_many_magnitudes_are_not_counted():
    assert all_flipped_sums(np.arange(1.0, 18.0)) is None
    assert len(all_flipped_sums(np.arange(1.0, 17.0))[0]) == 2**16
    assert len(all_flipped_sums(np.ones(100_000))[0]) == 100_001


# The interval


@pytest.mark.parametrize(("n", "draw"), [(12, "exponential"), (50, "normal"), (50, "quarters"), (1100, "exponential")])
def test_bca_equals_plain_numpy_on_the_same_resamples(n, draw):
    rng = np.random.default_rng(n)
    x = {"normal": rng.normal(size=n), "exponential": rng.exponential(size=n), "quarters": rng.integers(-4, 5, n) / 4}[draw]
    expected = plain_bca(x, counts_of(n, 2000, seed=11))
    assert bca_intervals(x[:, None], resamples=2000, seed=11)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_bca_equals_scipys_on_the_same_resamples(confidence):
    x = np.random.default_rng(4).beta(5, 1, 60) - 0.7
    found = stats.bootstrap(
        (x,), np.mean, method="BCa", n_resamples=3000, confidence_level=confidence, **seeded(np.random.default_rng(9))
    ).confidence_interval
    assert bca_intervals(x[:, None], confidence=confidence, resamples=3000, seed=9)[0] == pytest.approx(tuple(found), abs=1e-12)


def test_bca_of_many_rows_is_near_scipys_on_other_resamples():
    x = np.random.default_rng(2).exponential(size=1500)
    expected = stats.bootstrap(
        (x,), np.mean, method="BCa", n_resamples=4000, batch=100, **seeded(np.random.default_rng(1))
    ).confidence_interval
    # A quantile at 2.5 % of 4,000 resamples is known to 0.07 deviations of the mean, 0.026: twice two of them apart at most.
    assert bca_intervals(x[:, None], resamples=4000, seed=3)[0] == pytest.approx(tuple(expected), abs=0.007)


def test_bca_of_whole_clusters_equals_plain_numpy():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 30).astype(float)
    sums = np.array([rng.normal(0.3, 1, int(size)).sum() for size in sizes])
    counts = counts_of(30, 2000, seed=5)
    means, mean = (counts @ sums) / (counts @ sizes), sums.sum() / sizes.sum()
    z0 = special.ndtri(np.mean(means < mean))
    jackknife = np.array([np.delete(sums, i).sum() / np.delete(sizes, i).sum() for i in range(30)])
    steps = jackknife.mean() - jackknife
    a = np.sum(steps**3) / (6 * np.sum(steps**2) ** 1.5)
    expected = np.quantile(means, [special.ndtr(z0 + (z0 + z) / (1 - a * (z0 + z))) for z in special.ndtri([0.025, 0.975])])
    assert bca_intervals(sums[:, None], sizes[:, None], resamples=2000, seed=5)[0] == pytest.approx(expected, abs=1e-9)


def test_bca_rounding_does_not_decide_what_is_equal():
    # In tenths many resamples have the very mean of the sample, up to rounding; in whole numbers they have it exactly.
    whole = np.array([3, 1, 0, 0, -1, 2, 0, 1, -2, 4, 0, 1.0])
    assert bca_intervals(whole[:, None] * 0.1)[0] == pytest.approx(bca_intervals(whole[:, None])[0] / 10, abs=1e-9)


def test_bca_of_a_far_shifted_sample_shifts_with_it():
    x = np.random.default_rng(0).normal(size=40)
    assert bca_intervals(x[:, None] + 1e6)[0] - 1e6 == pytest.approx(bca_intervals(x[:, None])[0], abs=1e-7)


def test_bca_of_the_opposite_differences_is_the_opposite_interval():
    x = np.random.default_rng(1).exponential(size=30)
    low, high = bca_intervals(x[:, None])[0]
    assert bca_intervals(-x[:, None])[0] == pytest.approx([-high, -low], abs=0.03)


def covered(draw, mean, n=50, samples=2000, batch=100):
    """The share of samples whose interval holds the mean; each hundred has resamples of its own."""
    held = []
    for number in range(samples // batch):
        low, high = bca_intervals(draw(np.random.default_rng([number, n]), (n, batch)), resamples=2000, seed=number).T
        held.append((low <= mean) & (mean <= high))
    return np.concatenate(held).mean()


@pytest.mark.parametrize(
    ("draw", "mean", "least", "most"),
    [
        (lambda rng, shape: rng.normal(0.1, 0.4, shape), 0.1, 0.93, 0.97),
        (lambda rng, shape: rng.beta(5, 1, shape) - rng.beta(4, 1, shape), 5 / 6 - 4 / 5, 0.92, 0.97),
        (lambda rng, shape: rng.exponential(size=shape), 1.0, 0.90, 0.98),
    ],
    ids=["normal", "bounded", "exponential"],
)
def test_bca_covers_the_true_difference_at_50_pairs(draw, mean, least, most):
    assert least <= covered(draw, mean) <= most


def test_bca_of_clusters_covers_where_that_of_pairs_does_not():
    # 30 topics of 8 items each, alike within the topic: half the variance is the topic's.
    rng = np.random.default_rng(0)
    items = rng.normal(size=(30, 1, 500)) + rng.normal(size=(30, 8, 500))
    whole = bca_intervals(items.sum(axis=1), np.full((30, 500), 8.0), resamples=1000)
    alone = bca_intervals(items.reshape(240, 500), resamples=1000)
    shares = [np.mean((ends[:, 0] <= 0) & (ends[:, 1] >= 0)) for ends in (whole, alone)]
    assert 0.90 <= shares[0] <= 0.97
    assert shares[1] < 0.75


# The sign-flip test


@pytest.mark.parametrize("n", range(1, 11))
@pytest.mark.parametrize("kind", ["normal", "tenths", "signs"])
def test_exact_p_equals_all_flips_one_by_one(n, kind):
    rng = np.random.default_rng(n)
    for _ in range(5):
        values = {"normal": rng.normal(0.4, 1, n), "tenths": rng.integers(-3, 6, n) * 0.1, "signs": rng.integers(-1, 2, n).astype(float)}[
            kind
        ]
        assert exact_p(values) == pytest.approx(brute_force_p(values), abs=1e-12)


def test_exact_p_equals_scipys_permutation_test():
    values = np.random.default_rng(8).normal(0.5, 1, 9)
    expected = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True).pvalue
    assert exact_p(values) == pytest.approx(expected, abs=1e-12)


def test_exact_p_of_one_sign_is_two_over_all_flips():
    assert exact_p(np.array([0.1, 0.2, 0.3, 0.4])) == 2 / 16


def test_exact_p_of_zeros_is_one():
    assert exact_p(np.zeros(7)) == 1.0


def test_sign_flip_p_is_near_the_exact_one():
    values = np.random.default_rng(0).normal(0.35, 1, 16)
    assert sign_flip_p(values[:, None])[0] == pytest.approx(exact_p(values), abs=0.012)


def test_sign_flip_p_is_never_zero():
    assert sign_flip_p(np.ones((200, 1)))[0] == 1 / 10_000


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, shape: rng.normal(size=shape),
        lambda rng, shape: rng.choice([-0.5, -0.25, 0, 0.25, 0.5], shape),
        lambda rng, shape: rng.exponential(size=shape) - rng.exponential(size=shape),
    ],
    ids=["normal", "quarters", "exponential"],
)
def test_sign_flip_p_rejects_no_more_than_the_level_where_nothing_differs(draw):
    p = [sign_flip_p(draw(np.random.default_rng(number), (50, 100)), flips=999, seed=number) for number in range(20)]
    assert np.mean(np.concatenate(p) < 0.05) <= 0.06


def test_exact_p_rejects_no_more_than_the_level_at_8_pairs():
    samples = np.random.default_rng(0).normal(size=(2000, 8))
    assert np.mean([exact_p(sample) < 0.05 for sample in samples]) <= 0.06


# McNemar and Holm


def test_mcnemar_equals_statsmodels():
    for losses, wins in product(range(0, 40, 3), range(0, 40, 4)):
        if losses + wins:
            expected = mcnemar([[11, losses], [wins, 17]], exact=True).pvalue
            assert mcnemar_p(losses, wins) == pytest.approx(expected, abs=1e-12)


def test_mcnemar_by_hand():
    # 1 of 7: 2 * (1 + 7) / 128.
    assert mcnemar_p(1, 6) == pytest.approx(0.125, abs=1e-15)
    assert mcnemar_p(0, 0) == 1.0


@pytest.mark.parametrize(("losses", "wins", "ties"), [(3, 9, 100), (40, 61, 20), (0, 5, 0), (500, 560, 3000), (70_000, 70_500, 9)])
def test_mcnemar_is_the_sign_flip_p_of_binary_scores(losses, wins, ties):
    values = np.array([-1.0] * losses + [1.0] * wins + [0.0] * ties)
    assert exact_p(values) == pytest.approx(mcnemar_p(losses, wins), abs=1e-9)


def test_holm_equals_statsmodels():
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 7):
        p = np.round(rng.random(size) ** 3, 3)
        assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-15)


def test_holm_by_hand_leaves_missing_ones_out():
    # Of three: 0.01 * 3, 0.03 * 2, and 0.04 raised to 0.06 as it must not be below the one before.
    np.testing.assert_allclose(holm([0.04, NAN, 0.01, 0.03]), [0.06, NAN, 0.03, 0.06], atol=1e-15)
    assert holm([0.6, 0.9]).tolist() == [1.0, 1.0]
    assert np.isnan(holm([NAN])).all()


# Power


@pytest.mark.parametrize("effect", [0.02, 0.1, 0.25, 0.5, 0.8, 1.5])
@pytest.mark.parametrize(("power", "alpha"), [(0.8, 0.05), (0.9, 0.05), (0.5, 0.01), (0.8, 0.05 / 3)])
def test_pairs_needed_equal_statsmodels(effect, power, alpha):
    expected = TTestPower().solve_power(effect, power=power, alpha=alpha, alternative="two-sided")
    assert pairs_needed(effect, power=power, alpha=alpha) == math.ceil(expected)
    assert pairs_needed(-effect, power=power, alpha=alpha) == math.ceil(expected)


def test_pairs_needed_are_enough_and_one_less_is_not():
    n = pairs_needed(0.3)
    assert t_test_power(0.3, n) >= 0.8 > t_test_power(0.3, n - 1)


def test_pairs_needed_find_the_difference_so_often():
    n = pairs_needed(0.5)
    samples = np.random.default_rng(0).normal(0.5, 1, (4000, n))
    assert np.mean(stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05) == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("effect", [0.0, NAN, 1e-9])
def test_pairs_needed_that_cannot_be_told_are_none(effect):
    assert pairs_needed(effect) is None


def test_detectable_effect_is_the_inverse_of_pairs_needed():
    for n in (3, 34, 120, 5000):
        effect = detectable_effect(n)
        assert pairs_needed(effect * (1 + 1e-9)) == n
        assert pairs_needed(effect * 0.999) >= n
    assert np.isnan(detectable_effect(1))


@pytest.mark.parametrize(
    ("power", "error"), [(0.05, OptionRangeError), (1, OptionRangeError), (80, OptionRangeError), ("0.8", ArgumentTypeError)]
)
def test_pairs_needed_power_that_is_none_raises(power, error):
    with pytest.raises(error, match="power"):
        pairs_needed(0.5, power=power)


# All together


def test_describe_differences_by_hand():
    found = describe_differences([1.0, 2.0, NAN, 3.0, 6.0])
    # Mean 3, deviations -2 -1 0 3: standard deviation sqrt(14 / 3).
    assert (found.n, found.clusters, found.mean) == (4, 4, 3.0)
    assert found.effect == pytest.approx(3 / math.sqrt(14 / 3), abs=1e-12)
    assert found.spread == pytest.approx(math.sqrt(14 / 3), abs=1e-12)
    assert (found.p, found.exact) == (0.125, True)
    assert 1 < found.low < 3 < found.high < 6


def test_describe_differences_of_clusters_by_hand():
    # Sums 3, 1, 8 of 2, 1 and 2 pairs; mean 12 / 5; errors -1.8, -1.4, 3.2 with squares 3.24 + 1.96 + 10.24 = 15.44.
    found = describe_differences([1.0, 2.0, 1.0, 3.0, 5.0], ["x", "x", "y", "z", "z"])
    assert (found.n, found.clusters, found.mean) == (5, 3, 2.4)
    assert found.spread == pytest.approx(math.sqrt(3 / 2 * 15.44 / 5), abs=1e-12)
    # Three clusters, all positive: 2 of 8 flips.
    assert found.p == 0.25


def test_describe_differences_one_pair_a_cluster_is_no_cluster_at_all():
    x = np.random.default_rng(0).normal(size=60)
    assert describe_differences(x, np.arange(60)[::-1])[:6] == pytest.approx(describe_differences(x)[:6], abs=0.02)
    assert describe_differences(x, np.arange(60)) == describe_differences(x)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (0, 0, NAN, NAN, NAN, NAN, False, NAN, NAN)),
        ([NAN], (0, 0, NAN, NAN, NAN, NAN, False, NAN, NAN)),
        ([0.5], (1, 1, 0.5, NAN, NAN, NAN, False, NAN, NAN)),
        ([0.5] * 4, (4, 4, 0.5, NAN, NAN, 0.125, True, NAN, NAN)),
        ([0.0] * 4, (4, 4, 0.0, NAN, NAN, 1.0, True, NAN, NAN)),
    ],
)
def test_describe_differences_without_spread_has_no_interval(values, expected):
    np.testing.assert_equal(tuple(describe_differences(values)), expected)


def test_describe_differences_equal_up_to_rounding_have_no_interval():
    found = describe_differences([0.3 - 0.2, 0.2 - 0.1, 0.1, 0.4 - 0.3])
    assert np.isnan([found.low, found.high, found.effect]).all()


def test_describe_differences_one_cluster_has_no_interval_and_no_test():
    found = describe_differences([0.1, 0.2, 0.6], [1, 1, 1])
    np.testing.assert_allclose(tuple(found)[1:6], (1, 0.3, NAN, NAN, NAN), atol=1e-15)
    assert found.effect == pytest.approx(0.3 / np.std([0.1, 0.2, 0.6], ddof=1))


def test_describe_differences_of_equal_clusters_have_no_interval():
    found = describe_differences([0.1, 0.3, 0.3, 0.1], [1, 1, 2, 2])
    assert np.isnan([found.low, found.high, found.spread]).all()
    assert found.p == 0.5


def test_describe_samples_together_are_as_each_alone():
    rng = np.random.default_rng(0)
    samples = [(rng.normal(size=n), None) for n in (30, 1, 5, 30, 0)]
    samples.append((rng.normal(size=30), rng.integers(0, 9, 30)))
    for found, (values, clusters) in zip(describe_samples(samples), samples, strict=True):
        np.testing.assert_equal(tuple(found), tuple(describe_differences(values, clusters)))


def test_describe_differences_follow_the_seed():
    x = np.random.default_rng(0).normal(size=40)
    first, same, other = (describe_differences(x, seed=seed) for seed in (1, 1, 2))
    assert first == same
    assert first.low != other.low
    assert first.p != other.p


def test_describe_differences_more_confidence_is_wider():
    x = np.random.default_rng(0).normal(size=40)
    wide, narrow = (describe_differences(x, confidence=share) for share in (0.99, 0.8))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"confidence": 95}, OptionRangeError, "above 0 and below 1"),
        ({"resamples": 999}, OptionRangeError, "resamples=999 is out of range: it must be 1000 or more"),
        ({"resamples": 2000.0}, ArgumentTypeError, "resamples must be a whole number"),
        ({"seed": -1}, OptionRangeError, "seed=-1"),
    ],
)
def test_describe_differences_option_out_of_range_raises(options, error, words):
    with pytest.raises(error, match=words):
        describe_differences([0.1, 0.2], **options)
