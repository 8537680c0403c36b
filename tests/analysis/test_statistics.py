"""The mean and its interval, beside scipy and by hand."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from scorekit.analysis.statistics import check_real, check_whole, describe_groups, mean_interval
from scorekit.errors import ArgumentTypeError, OptionRangeError

NAN = float("nan")


def test_mean_interval_equals_scipys_t_interval():
    values = [0.1, 0.4, 0.35, 0.8, 1.0, 0.0]
    expected = stats.t.interval(0.95, 5, loc=np.mean(values), scale=stats.sem(values))
    result = mean_interval(values)
    assert result.mean == pytest.approx(0.4416666666666667, abs=1e-15)
    assert (result.low, result.high) == pytest.approx(expected, abs=1e-12)
    assert result.n == 6


def test_mean_interval_student_sleep_data():
    # The differences of Student's own example (1908): mean 1.58, 95 % interval 0.70 to 2.46.
    result = mean_interval([1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4])
    assert (round(result.mean, 2), round(result.low, 2), round(result.high, 2)) == (1.58, 0.70, 2.46)


def test_mean_interval_missing_values_are_left_out():
    assert mean_interval([0.0, NAN, 1.0, NAN]) == mean_interval([0.0, 1.0])
    assert mean_interval([0.0, NAN, 1.0]).n == 2


def test_mean_interval_more_confidence_is_wider():
    values = [0.2, 0.5, 0.9]
    assert mean_interval(values, confidence=0.99).low < mean_interval(values).low < mean_interval(values, confidence=0.5).low


@pytest.mark.parametrize(
    ("values", "mean", "n"), [([], NAN, 0), ([NAN], NAN, 0), ([0.5], 0.5, 1), ([1.0] * 20, 1.0, 20), ([0.1] * 3, 0.1, 3)]
)
def test_mean_interval_without_spread_has_no_interval(values, mean, n):
    result = mean_interval(values)
    np.testing.assert_equal(tuple(result), (mean, NAN, NAN, n))


@pytest.mark.parametrize(("values", "mean"), [([0.0, np.inf], np.inf), ([-np.inf, np.inf], NAN)])
def test_mean_interval_infinite_value_has_no_interval(values, mean):
    np.testing.assert_equal(tuple(mean_interval(values)), (mean, NAN, NAN, 2))


def test_mean_interval_covers_the_mean_of_spread_scores():
    samples = np.random.default_rng(0).random((2000, 30))
    intervals = [mean_interval(sample) for sample in samples]
    assert 0.93 < np.mean([result.low <= 0.5 <= result.high for result in intervals]) < 0.97


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95])
def test_mean_interval_confidence_out_of_range_raises(confidence):
    with pytest.raises(OptionRangeError, match="above 0 and below 1"):
        mean_interval([0.1, 0.2], confidence=confidence)


def test_mean_interval_confidence_that_is_no_number_raises():
    with pytest.raises(ArgumentTypeError, match="confidence must be a number, not str"):
        mean_interval([0.1, 0.2], confidence="0.9")


def test_describe_groups_gives_each_group_its_own_numbers():
    values = np.array([1.0, 2.0, NAN, 4.0, 3.0, NAN, 0.5, np.inf, -np.inf])
    found = describe_groups(values, np.array([0, 0, 0, 0, 0, 1, 3, 4, 4]), 5, confidence=0.9)
    assert found.n.tolist() == [4, 0, 0, 1, 2]
    np.testing.assert_equal(found.mean, [2.5, NAN, NAN, 0.5, NAN])
    np.testing.assert_equal(found.least, [1, NAN, NAN, 0.5, -np.inf])
    np.testing.assert_equal(found.median, [2.5, NAN, NAN, 0.5, NAN])
    np.testing.assert_equal(found.most, [4, NAN, NAN, 0.5, np.inf])
    # 2.5 - 2.353363 * 1.290994 / 2: the 95 % quantile of t with 3 degrees of freedom.
    np.testing.assert_allclose(found.low, [0.980910, NAN, NAN, NAN, NAN], atol=1e-6)
    np.testing.assert_allclose(found.high, [4.019090, NAN, NAN, NAN, NAN], atol=1e-6)


def test_check_real_takes_more_than_a_float_can_hold_for_infinite():
    assert check_real("scale", 10**400) == np.inf
    assert check_real("scale", -(10**400)) == -np.inf


def test_check_whole_says_the_range():
    with pytest.raises(OptionRangeError, match="bins=300 is out of range: it must be from 2 to 200"):
        check_whole("bins", 300, 2, 200)


def test_importing_statistics_does_not_load_scipy_stats():
    code = "import sys, scorekit.analysis.summary; print('scipy' in sys.modules, 'scipy.stats' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
