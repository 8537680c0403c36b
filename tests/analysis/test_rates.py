"""Kappa, Wilson, PPI++, Rogan-Gladen and the threshold curve: by hand, and beside scikit-learn, statsmodels and ppi-python."""

import numpy as np
import pytest

from scorekit.analysis.rates import kappa, kappa_interval, more_labels, ppi_rate, rogan_gladen, threshold_curve, wilson_interval
from scorekit.errors import ArgumentTypeError, OptionRangeError

NAN = float("nan")
Z = 1.959963984540054


def as_rows(matrix):
    """Human labels and verdicts, 1 for a pass, row by row."""
    (hits, misses), (false, true) = matrix
    human = np.repeat([1.0, 1.0, 0.0, 0.0], [hits, misses, false, true])
    return human, np.repeat([1.0, 0.0, 1.0, 0.0], [hits, misses, false, true])


# Wilson


def test_wilson_interval_nine_of_ten_by_hand():
    # z^2 = 3.84146; middle (0.9 + 3.84146 / 20) / 1.384146 = 0.788987; half 1.959964 / 1.384146 * sqrt(0.09 / 10 + 3.84146 / 400) = 0.193137
    assert [float(end) for end in wilson_interval(0.9, 10)] == pytest.approx([0.595850, 0.982124], abs=1e-6)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_interval_equals_statsmodels(confidence):
    from statsmodels.stats.proportion import proportion_confint

    counts, of = np.array([0, 1, 7, 20, 50]), np.array([5, 3, 10, 20, 90])
    expected = proportion_confint(counts, of, alpha=1 - confidence, method="wilson")
    np.testing.assert_allclose(wilson_interval(counts / of, of, confidence=confidence), expected, atol=1e-12)


def test_wilson_interval_none_and_all_reach_the_ends():
    low, high = wilson_interval([0.0, 1.0], [4, 4])
    assert low[0] == 0.0
    assert high[1] == 1.0


def test_wilson_interval_of_no_rows_is_nan():
    np.testing.assert_equal([float(end) for end in wilson_interval(NAN, 0)], [NAN, NAN])


# Kappa


def test_kappa_by_hand():
    # Of 50 rows 35 agree: 0.7. By chance 25/50 * 30/50 + 25/50 * 20/50 = 0.5. (0.7 - 0.5) / 0.5 = 0.4.
    assert float(kappa([[20, 5], [10, 15]])) == pytest.approx(0.4, abs=1e-15)


def test_kappa_of_three_classes_by_hand():
    # Of 10 rows 7 agree. Chance: (4*4 + 3*3 + 3*3) / 100 = 0.34. (0.7 - 0.34) / 0.66 = 6/11.
    assert float(kappa([[3, 1, 0], [0, 2, 1], [1, 0, 2]])) == pytest.approx(6 / 11, abs=1e-15)


def test_kappa_equals_scikit_learn():
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(0)
    for classes in (2, 3, 5):
        first, second = rng.integers(0, classes, (2, 200))
        second = np.where(rng.random(200) < 0.5, first, second)
        matrix = np.bincount(first * classes + second, minlength=classes**2).reshape(classes, classes)
        assert float(kappa(matrix)) == pytest.approx(cohen_kappa_score(first, second), abs=1e-12)


def test_kappa_of_stacked_matrices_gives_one_each():
    assert kappa([[[20, 5], [10, 15]], [[5, 0], [0, 5]], [[0, 5], [5, 0]]]).tolist() == pytest.approx([0.4, 1.0, -1.0])


@pytest.mark.parametrize("matrix", [[[7, 0], [0, 0]], [[0, 0], [0, 0]]])
def test_kappa_where_both_raters_are_constant_is_nan(matrix):
    assert np.isnan(kappa(matrix))


def test_kappa_interval_is_the_same_for_the_same_seed():
    matrix = [[20, 5], [10, 15]]
    assert kappa_interval(matrix, seed=3) == kappa_interval(matrix, seed=3) != kappa_interval(matrix, seed=4)


def test_kappa_interval_lies_about_kappa_and_is_near_the_large_sample_one():
    from statsmodels.stats.inter_rater import cohens_kappa

    matrix = np.array([[200, 50], [100, 150]])
    expected = cohens_kappa(matrix)
    assert kappa_interval(matrix, resamples=20_000) == pytest.approx((expected.kappa_low, expected.kappa_upp), abs=0.005)


def test_kappa_interval_equals_resampling_the_rows():
    from sklearn.metrics import cohen_kappa_score

    human, verdicts = as_rows([[20, 5], [10, 15]])
    rng = np.random.default_rng(1)
    drawn = [cohen_kappa_score(human[rows], verdicts[rows]) for rows in rng.integers(0, 50, (1000, 50))]
    assert kappa_interval([[20, 5], [10, 15]]) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.03)


@pytest.mark.parametrize("matrix", [[[5, 0], [0, 5]], [[5, 0], [0, 0]], [[0, 0], [0, 0]]])
def test_kappa_interval_without_spread_is_nan(matrix):
    np.testing.assert_equal(kappa_interval(matrix), (NAN, NAN))


def test_kappa_interval_covers_the_kappa_of_the_population():
    # TPR 0.85, TNR 0.7, half of the rows good: agreement 0.775, by chance 0.5, so that kappa is 0.55.
    matrices = np.random.default_rng(0).multinomial(100, [0.425, 0.075, 0.15, 0.35], 500).reshape(-1, 2, 2)
    ends = [kappa_interval(matrix, resamples=500) for matrix in matrices]
    assert 0.92 < np.mean([low <= 0.55 <= high for low, high in ends]) < 0.97


# PPI++


def test_ppi_rate_by_hand():
    # 10 labels: 5 good, 5 pass, 4 both. Covariance 0.4 - 0.25 = 0.15. All 50 verdicts: 5 + 20 pass, variance 0.25 * 50/49.
    # Tuning 0.15 * 40 / (50 * 0.255102) = 0.4704; estimate 0.4704 * 0.5 + 0.5 - 0.4704 * 0.5 = 0.5.
    found = ppi_rate([[4, 1], [1, 4]], 20, 40)
    assert float(found.tuning) == pytest.approx(0.4704, abs=1e-12)
    assert float(found.estimate) == pytest.approx(0.5, abs=1e-12)
    # Variance 0.4704^2 * 0.25 / 40 + (0.25 - 2 * 0.4704 * 0.15 + 0.4704^2 * 0.25) / 10 = 0.0178031
    assert float(found.standard_error) == pytest.approx(0.0178031**0.5, abs=1e-6)


def test_ppi_rate_equals_ppi_python():
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    rng = np.random.default_rng(0)
    for _ in range(50):
        rate, tpr, tnr = rng.uniform(0.2, 0.9), rng.uniform(0.5, 1), rng.uniform(0.3, 1)
        matrix = rng.multinomial(50, [rate * tpr, rate * (1 - tpr), (1 - rate) * (1 - tnr), (1 - rate) * tnr]).reshape(2, 2)
        others = (rng.random(2000) < rate * tpr + (1 - rate) * (1 - tnr)).astype(float)
        human, verdicts = as_rows(matrix)
        found = ppi_rate(matrix, others.sum(), len(others))
        assert float(found.estimate) == pytest.approx(float(ppi_mean_pointestimate(human, verdicts, others)[0]), abs=1e-9)
        # Their interval estimates its own tuning, by the same rule; ours is normal with the same standard error.
        low, high = ppi_mean_ci(human, verdicts, others, alpha=0.05)
        normal = (found.estimate - Z * found.standard_error, found.estimate + Z * found.standard_error)
        assert [float(end) for end in normal] == pytest.approx([float(low[0]), float(high[0])], abs=1e-9)
        low, high = ppi_mean_ci(human, verdicts, others, alpha=0.05, lam=float(found.tuning))
        assert [float(end) for end in normal] == pytest.approx([float(low[0]), float(high[0])], abs=1e-9)


def test_ppi_rate_of_a_contrary_score_is_the_labels_alone():
    # The covariance is below 0; the paper cuts the tuning to 0.
    found = ppi_rate([[1, 4], [4, 1]], 20, 40)
    assert (float(found.tuning), float(found.estimate)) == (0.0, 0.5)
    assert [float(found.low), float(found.high)] == pytest.approx([float(end) for end in wilson_interval(0.5, 10)])


@pytest.mark.parametrize(("matrix", "passed", "rest"), [([[6, 0], [4, 0]], 40, 40), ([[4, 2], [1, 3]], 0, 0)])
def test_ppi_rate_without_anything_to_learn_is_the_labels_alone(matrix, passed, rest):
    found = ppi_rate(matrix, passed, rest)
    assert (float(found.tuning), float(found.estimate)) == (0.0, 0.6)
    assert [float(found.low), float(found.high)] == pytest.approx([float(end) for end in wilson_interval(0.6, 10)])


def test_ppi_rate_without_errors_among_few_labels_is_not_certain():
    found = ppi_rate([[7, 0], [0, 3]], 700, 1000)
    assert float(found.high - found.low) > 0.15


JUDGES = {"good": (0.95, 0.9), "biased": (0.98, 0.5), "useless": (0.8, 0.2)}


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("judge", JUDGES)
def test_ppi_rate_covers_the_true_rate_and_is_never_wider_than_labels_alone(judge, rate):
    # 2,000 samples of 2,000 scores, 50 of them with a label. The judge passes TPR of the good rows and 1 - TNR of the bad ones.
    tpr, tnr = JUDGES[judge]
    cells = [rate * tpr, rate * (1 - tpr), (1 - rate) * (1 - tnr), (1 - rate) * tnr]
    rng = np.random.default_rng(20)
    matrices = rng.multinomial(50, cells, 2000).reshape(-1, 2, 2)
    found = ppi_rate(matrices, rng.binomial(1950, cells[0] + cells[2], 2000), 1950)
    assert 0.93 <= np.mean((found.low <= rate) & (rate <= found.high)) <= 0.97
    low, high = wilson_interval(matrices[:, 0].sum(axis=1) / 50, 50)
    assert np.max((found.high - found.low) / (high - low)) <= 1 + 1e-9


def test_ppi_rate_of_a_good_judge_is_much_narrower():
    found = ppi_rate([[33, 2], [2, 13]], 1365, 1950)
    low, high = wilson_interval(0.7, 50)
    assert float(found.high - found.low) < 0.65 * float(high - low)


def test_ppi_rate_of_stacked_matrices_equals_one_at_a_time():
    matrices, passed = np.array([[[30, 2], [3, 15]], [[20, 5], [10, 15]]]), np.array([1400, 1100])
    together = ppi_rate(matrices, passed, 2000)
    for place in range(2):
        alone = ppi_rate(matrices[place], passed[place], 2000)
        np.testing.assert_allclose([field[place] for field in together], list(alone), rtol=1e-12)


# Rogan and Gladen


def test_rogan_gladen_by_hand():
    # TPR 45/50, TNR 40/50, half pass: (0.5 + 0.8 - 1) / (0.9 + 0.8 - 1) = 3/7.
    found = rogan_gladen([[45, 5], [10, 40]], 500, 1000)
    assert float(found.estimate) == pytest.approx(3 / 7, abs=1e-12)
    # Lang and Reiczigel: TPR 46/52, TNR 41/52, rate (500 + z2/2) / (1000 + z2) = 0.5; J = 35/52; middle (0.5 + 41/52 - 1) / J = 3/7.
    # Variances 0.884615 * 0.115385 / 52 = 0.0019629 and 0.788462 * 0.211538 / 52 = 0.0032075.
    # Half z * sqrt(0.25 / 1003.84 + (3/7)^2 * 0.0019629 + (4/7)^2 * 0.0032075) / J = 0.118532
    # Shift 2 * z2 * (3/7 * 0.0019629 - 4/7 * 0.0032075) = -0.007618
    assert [float(found.low), float(found.high)] == pytest.approx([0.302421, 0.539485], abs=2e-6)


def test_rogan_gladen_is_cut_to_0_and_1():
    assert float(rogan_gladen([[9, 1], [2, 8]], 0, 100).estimate) == 0.0
    assert float(rogan_gladen([[9, 1], [2, 8]], 100, 100).estimate) == 1.0


@pytest.mark.parametrize(
    ("matrix", "passed", "rest"),
    [
        ([[5, 5], [5, 5]], 50, 100),
        ([[1, 9], [9, 1]], 50, 100),
        ([[9, 1], [0, 0]], 50, 100),
        ([[0, 0], [1, 9]], 50, 100),
        ([[9, 1], [2, 8]], 0, 0),
    ],
)
def test_rogan_gladen_without_skill_or_rows_is_nan(matrix, passed, rest):
    np.testing.assert_equal([float(value) for value in rogan_gladen(matrix, passed, rest)], [NAN, NAN, NAN])


def test_rogan_gladen_of_too_few_labels_has_no_interval():
    # TPR 1/1 + TNR 1/10 is above 1, but (1+1)/(1+2) + (1+1)/(10+2) is not.
    found = rogan_gladen([[1, 0], [9, 1]], 95, 100)
    assert float(found.estimate) == pytest.approx(0.5)
    np.testing.assert_equal([float(found.low), float(found.high)], [NAN, NAN])


@pytest.mark.parametrize("judge", ["good", "biased"])
def test_rogan_gladen_covers_the_true_rate(judge):
    tpr, tnr = JUDGES[judge]
    cells = [0.7 * tpr, 0.7 * (1 - tpr), 0.3 * (1 - tnr), 0.3 * tnr]
    rng = np.random.default_rng(0)
    found = rogan_gladen(rng.multinomial(200, cells, 2000).reshape(-1, 2, 2), rng.binomial(1800, cells[0] + cells[2], 2000), 1800)
    assert 0.93 <= np.mean((found.low <= 0.7) & (found.high >= 0.7)) <= 0.97


# How many more labels


def test_more_labels_alone_by_hand():
    # Of 50 rows 32 are good: 0.64. Wilson's width is 2z / (1 + z2/n) * sqrt(0.2304/n + z2/(4 n2)); 0.1 is reached between 350 and 351.
    def width(n):
        return 2 * Z / (1 + Z * Z / n) * (0.2304 / n + Z * Z / (4 * n * n)) ** 0.5

    assert width(350) > 0.1 > width(351)
    assert more_labels([[30, 2], [3, 15]], 1400, 2000, 0.1)[0] == 301


def test_more_labels_with_them_the_interval_is_so_narrow():
    # A matrix of the same shares with the labels that more_labels asks for, taken from the unlabelled rows.
    matrix, passed, rest = np.array([[30, 2], [3, 15]]), 1400, 2000
    _, more = more_labels(matrix, passed, rest, 0.1)
    share = (50 + more) / 50
    found = ppi_rate(matrix * share, passed * (rest - more) / rest, rest - more)
    assert float(found.high - found.low) == pytest.approx(0.1, abs=0.003)


def test_more_labels_of_an_interval_that_is_narrow_enough_are_none():
    found = ppi_rate([[30, 2], [3, 15]], 1400, 2000)
    assert more_labels([[30, 2], [3, 15]], 1400, 2000, float(found.high - found.low) + 1e-9)[1] == 0
    assert more_labels([[30, 2], [3, 15]], 1400, 2000, 0.9) == (0, 0)


def test_more_labels_than_there_are_rows_are_the_same_for_both():
    alone, together = more_labels([[30, 2], [3, 15]], 70, 100, 0.05)
    assert alone == together > 100


def test_more_labels_with_the_score_are_never_more_than_alone():
    rng = np.random.default_rng(0)
    for cells in rng.multinomial(40, [0.4, 0.1, 0.2, 0.3], 50):
        for width in (0.05, 0.1, 0.2):
            alone, together = more_labels(cells.reshape(2, 2), 500, 800, width)
            assert together <= alone


@pytest.mark.parametrize("width", [0, 1, -0.1, 10])
def test_more_labels_width_outside_0_to_1_raises(width):
    with pytest.raises(OptionRangeError, match=rf"width={width} is out of range: it must be above 0 and below 1"):
        more_labels([[30, 2], [3, 15]], 1400, 2000, width)


def test_more_labels_width_of_another_kind_raises():
    with pytest.raises(ArgumentTypeError, match="width must be a number, not str"):
        more_labels([[30, 2], [3, 15]], 1400, 2000, "0.1")


# Thresholds


def test_threshold_curve_by_hand():
    scores, passed = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True])
    tpr, tnr = threshold_curve(scores, passed, np.array([0.1, 0.4, 0.5, 0.8, 0.9]))
    assert tpr.tolist() == [1.0, 1.0, 0.5, 0.5, 0.0]
    assert tnr.tolist() == [0.0, 0.5, 1.0, 1.0, 1.0]


def test_threshold_curve_of_a_lower_is_better_score_is_the_mirror():
    scores, passed = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, False, True, True])
    cuts = np.array([0.1, 0.4, 0.5])
    np.testing.assert_array_equal(threshold_curve(-scores, passed, -cuts, lower=True), threshold_curve(scores, passed, cuts))


def test_threshold_curve_equals_scikit_learn():
    from sklearn.metrics import roc_curve

    rng = np.random.default_rng(0)
    scores, passed = rng.integers(0, 20, 300) / 20, rng.random(300) < 0.6
    false, true, cuts = roc_curve(passed, scores, drop_intermediate=False)
    tpr, tnr = threshold_curve(scores, passed, cuts)
    np.testing.assert_allclose(tpr, true, atol=1e-12)
    np.testing.assert_allclose(1 - tnr, false, atol=1e-12)


def test_threshold_curve_without_bad_rows_has_no_tnr():
    tpr, tnr = threshold_curve(np.array([0.2, 0.8]), np.array([True, True]), np.array([0.5]))
    np.testing.assert_equal([tpr.tolist(), tnr.tolist()], [[0.5], [NAN]])


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_confidence_outside_0_to_1_raises(confidence):
    for call in (
        lambda: wilson_interval(0.5, 10, confidence=confidence),
        lambda: kappa_interval([[5, 1], [1, 5]], confidence=confidence),
        lambda: ppi_rate([[5, 1], [1, 5]], 50, 100, confidence=confidence),
        lambda: rogan_gladen([[5, 1], [1, 5]], 50, 100, confidence=confidence),
    ):
        with pytest.raises(OptionRangeError, match="confidence=.* above 0 and below 1"):
            call()
