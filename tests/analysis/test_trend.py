"""trend: buckets by the clock and by run, the reference window, and the test beside scipy, statsmodels and simulated series."""

import datetime as dt
import subprocess
import sys
import zoneinfo

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from scorekit.analysis.statistics import mean_interval
from scorekit.analysis.trend import time_buckets, trend
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, UnknownOptionError

NAN = float("nan")
SHARE = 0.05


def days(*values, start="2026-03-01", **more):
    """A frame of one day after another, each with the scores given."""
    times = pd.date_range(start, periods=len(values), freq="D", tz="UTC").as_unit("us").repeat([len(part) for part in values])
    return pd.DataFrame({"created_at": times, "tone_score": np.concatenate(values).astype(float), **more})


def normal(rng, size):
    return rng.normal(0.5, 0.2, size)


def piled(rng, size):
    return np.where(rng.random(size) < 0.6, 1.0, rng.random(size))


def passed(rng, size):
    return (rng.random(size) < 0.9).astype(float)


def toxic(rng, size):
    return rng.beta(0.3, 4, size)


def month(seed=0, draw=normal):
    """Twelve days of 20 to 31 rows; the first three are the reference window."""
    rng = np.random.default_rng(seed)
    return [draw(rng, 20 + day) for day in range(12)]


def series(draw, rows, count, *, last=None, seed=0):
    """A frame of 30 days with as many scores as series; ``last`` draws the last day."""
    rng = np.random.default_rng(seed)
    values = draw(rng, (30 * rows, count))
    if last is not None:
        values[-rows:] = last(rng, (rows, count))
    df = pd.DataFrame(values, columns=[f"s{number}_score" for number in range(count)])
    return df.assign(created_at=pd.date_range("2026-03-01", periods=30, freq="D", tz="UTC").repeat(rows))


def starts(found):
    return found["bucket"].astype(str).tolist()


# ---- what comes back


def test_trend_has_a_row_per_score_and_day():
    df = days([0.5, 1.0], [0.0, NAN, 1.0], quality_score=[1, 2, 3, 4, 5], tone_error=[None, None, None, "judge_timeout", None])
    found = trend(df)
    assert found["score"].tolist() == ["tone", "tone", "quality", "quality"]
    assert starts(found) == ["2026-03-01 00:00:00+00:00", "2026-03-02 00:00:00+00:00"] * 2
    assert found["mean"].tolist() == [0.75, 0.5, 1.5, 4.0]
    assert found["n"].tolist() == [2, 2, 2, 3]
    assert found["unscored"].tolist() == [0, 1, 0, 0]
    assert found["errors"].tolist() == ["", "judge_timeout: 1", "", ""]
    assert found["reference"].tolist() == [True, False, True, False]
    assert found["difference"].tolist() == [0.0, -0.25, 0.0, 2.5]
    assert found.index.tolist() == [0, 1, 2, 3]


def test_trend_columns_have_their_dtypes_without_rows_too():
    wanted = {
        "score": "string",
        "bucket": "datetime64[us, UTC]",
        **dict.fromkeys(("mean", "ci_low", "ci_high"), "float64"),
        **dict.fromkeys(("n", "unscored"), "int64"),
        "errors": "string",
        "reference": "bool",
        **dict.fromkeys(("difference", "p", "p_holm"), "float64"),
        "drift": "bool",
    }
    for df in (days([0.5, 1.0], [0.0, 1.0]), days([0.5, 1.0]).iloc[:0]):
        found = trend(df)
        assert {name: str(dtype).partition("[py")[0] for name, dtype in found.dtypes.items()} == wanted
    assert len(found) == 0


def test_trend_interval_is_that_of_the_mean():
    rng = np.random.default_rng(0)
    values = [rng.random(9), rng.random(7)]
    found = trend(days(*values), confidence=0.9)
    expected = [mean_interval(part, confidence=0.9) for part in values]
    assert found["ci_low"].tolist() == pytest.approx([interval.low for interval in expected], abs=1e-12)
    assert found["ci_high"].tolist() == pytest.approx([interval.high for interval in expected], abs=1e-12)


def test_trend_leaves_the_frame_as_it_was():
    df = days([0.5, 1.0], [0.0, 1.0]).sample(frac=1, random_state=0)
    before = df.copy(deep=True)
    trend(df, by="hour", zone="Europe/Berlin")
    pd.testing.assert_frame_equal(df, before)


def test_trend_order_of_the_rows_changes_nothing():
    df = days(*month())
    pd.testing.assert_frame_equal(trend(df.sample(frac=1, random_state=1)), trend(df))


def test_trend_scores_choose():
    df = days([0.5], [1.0]).assign(quality_score=1.0)
    assert trend(df, scores="quality")["score"].tolist() == ["quality"] * 2


def test_trend_empty_days_do_not_appear():
    df = days([0.5], [1.0], [0.0])
    assert starts(trend(df.iloc[[0, 2]])) == ["2026-03-01 00:00:00+00:00", "2026-03-03 00:00:00+00:00"]


def test_trend_row_that_was_not_put_to_the_scorer_does_not_count():
    # As ScoreStore.read gives it, where two scorers are sampled at different rates.
    df = days([0.5, NAN, NAN], [NAN], tone_error=pd.array([None, "not_scorable", None, None], dtype="string"), quality_score=1.0)
    found = trend(df, scores="tone")
    assert (found["n"].tolist(), found["unscored"].tolist()) == ([1], [1])


def test_trend_row_without_a_score_counts_where_there_is_no_error_column():
    found = trend(days([0.5, NAN], [NAN]))
    assert (found["n"].tolist(), found["unscored"].tolist()) == ([1, 0], [1, 1])
    assert np.isnan(found["mean"].iloc[1])


# ---- the test


def test_trend_p_is_the_larger_of_welchs_and_students():
    values = month()
    found = trend(days(*values))
    reference = np.concatenate(values[:3])
    expected = [max(stats.ttest_ind(part, reference, equal_var=equal).pvalue for equal in (False, True)) for part in values[3:]]
    assert found["p"].iloc[:3].isna().all()
    assert found["p"].iloc[3:].tolist() == pytest.approx(expected, abs=1e-9)
    assert found["difference"].tolist() == pytest.approx([part.mean() - reference.mean() for part in values], abs=1e-12)


@pytest.mark.parametrize(("spread", "equal"), [(0.4, False), (0.02, True)])
def test_trend_p_is_welchs_of_a_wide_bucket_and_students_of_a_narrow_one(spread, equal):
    rng = np.random.default_rng(3)
    reference, bucket = rng.normal(0.5, 0.1, 60), rng.normal(0.45, spread, 8)
    pvalues = {same: stats.ttest_ind(bucket, reference, equal_var=same).pvalue for same in (False, True)}
    assert pvalues[equal] > pvalues[not equal]
    assert trend(days(reference, bucket))["p"].iloc[1] == pytest.approx(pvalues[equal], abs=1e-9)


def test_trend_p_of_large_and_tiny_numbers_is_scipys():
    rng = np.random.default_rng(5)
    for scale, shift in ((1e9, 1e6), (1e-9, 0.0), (1.0, 1e6)):
        reference, bucket = shift + scale * rng.normal(0, 1, 40), shift + scale * rng.normal(0.5, 2, 30)
        expected = stats.ttest_ind(bucket, reference, equal_var=False).pvalue
        assert trend(days(reference, bucket))["p"].iloc[1] == pytest.approx(expected, rel=1e-6)


def test_trend_p_holm_is_statsmodels():
    values = month(seed=1)
    values[7] = values[7] - 0.2
    df = days(*values).assign(other_score=np.random.default_rng(2).random(sum(map(len, values))))
    found = trend(df)
    for _, part in found.groupby("score"):
        tested = part[part["p"].notna()]
        assert len(tested) == 9
        assert tested["p_holm"].tolist() == pytest.approx(multipletests(tested["p"], method="holm")[1].tolist(), abs=1e-9)
    assert found["p_holm"].isna().tolist() == found["p"].isna().tolist()
    assert found["bucket"].dt.day[found["drift"]].tolist() == [8]


def test_trend_drift_is_where_the_corrected_p_is_below_the_level():
    values = month(seed=1)
    values[7] = values[7] - 0.2
    p = trend(days(*values))["p_holm"].iloc[7]
    for confidence, drift in ((1 - 1.01 * p, True), (1 - 0.99 * p, False)):
        assert trend(days(*values), confidence=confidence)["drift"].iloc[7] == drift


@pytest.mark.parametrize(("n", "m"), [(3, 5), (4, 4), (2, 2), (20, 30)])
def test_trend_p_without_any_spread_is_counted(n, m):
    found = trend(days([1.0] * m, [0.0] * n))
    assert found["p"].iloc[1] == pytest.approx(stats.fisher_exact([[n, 0], [0, m]]).pvalue, rel=1e-9)


def test_trend_equal_scores_everywhere_have_p_1():
    found = trend(days([0.3] * 5, [0.3] * 4, [0.1 + 0.2] * 4))
    assert found["p"].tolist() == pytest.approx([NAN, 1.0, 1.0], nan_ok=True)
    assert not found["drift"].any()


def test_trend_small_bucket_of_equal_scores_is_no_drift():
    # Nine in ten are 1.0, so that three of 1.0 are nothing strange; Welch's test alone has p below 0.002.
    reference = [1.0] * 90 + [0.0] * 10
    assert stats.ttest_ind_from_stats(1.0, 0.0, 3, 0.9, np.std(reference, ddof=1), 100, equal_var=False).pvalue < 0.002
    assert trend(days(reference, [1.0] * 3))["p"].iloc[1] > 0.5


def test_trend_large_bucket_of_equal_scores_that_are_off_is_drift():
    rng = np.random.default_rng(0)
    assert trend(days(passed(rng, 200), [0.0] * 20))["drift"].tolist() == [False, True]
    assert trend(days([1.0] * 200, passed(rng, 100)))["drift"].tolist() == [False, True]


@pytest.mark.parametrize(
    "values",
    [
        ([0.1, 0.5, 0.9], [0.4]),
        ([0.4], [0.1, 0.5, 0.9]),
        ([NAN, NAN], [0.1, 0.5, 0.9]),
        ([0.1, 0.5, 0.9], [0.1, np.inf]),
        ([0.1, -np.inf], [0.1, 0.5]),
        ([0.1, 0.5, 0.9], [NAN, NAN]),
        ([np.inf, -np.inf], [np.inf, np.inf]),
    ],
)
def test_trend_without_two_finite_scores_on_both_sides_has_no_p(values):
    found = trend(days(*values), reference=("2026-03-01", "2026-03-02"))
    assert found["p"].isna().all()
    assert not found["drift"].any()


def test_trend_infinite_scores_leave_other_buckets_their_p():
    found = trend(days([0.1, 0.5, 0.9], [0.1, np.inf], [0.2, 0.4]))
    assert found["p"].notna().tolist() == [False, False, True]
    assert found["mean"].iloc[1] == np.inf


def test_trend_one_bucket_is_the_reference():
    found = trend(days([0.1, 0.5, 0.9]))
    assert found[["reference", "difference", "drift"]].to_numpy().tolist() == [[True, 0.0, False]]
    assert np.isnan(found["p"].iloc[0])


@pytest.mark.parametrize("draw", [normal, piled, passed, toxic])
@pytest.mark.parametrize("rows", [3, 50])
def test_trend_without_drift_marks_one_series_in_twenty_at_most(draw, rows):
    found = trend(series(draw, rows, 200))
    assert found.groupby("score")["drift"].any().mean() <= SHARE


def test_trend_shift_of_most_of_a_deviation_is_found():
    found = trend(series(normal, 50, 200, last=lambda rng, size: rng.normal(0.5 - 0.16, 0.2, size)))
    last = found["bucket"] == found["bucket"].max()
    assert found.loc[last, "drift"].mean() >= 0.95
    assert (found.loc[last & found["drift"], "difference"] < 0).all()


def test_trend_fallen_pass_rate_is_found():
    found = trend(series(passed, 100, 200, last=lambda rng, size: (rng.random(size) < 0.7).astype(float)))
    assert found.loc[found["bucket"] == found["bucket"].max(), "drift"].mean() >= 0.85


def test_trend_of_a_thousand_hours_marks_what_is_far_off():
    rng = np.random.default_rng(0)
    times = pd.date_range("2026-01-01", periods=1000, freq="h", tz="UTC").repeat(30)
    values = rng.normal(0.5, 0.1, 30_000)
    values[30 * 900 : 30 * 903] -= 0.2
    found = trend(pd.DataFrame({"created_at": times, "tone_score": values}), by="hour")
    assert len(found) == 1000
    assert np.flatnonzero(found["drift"]).tolist() == [900, 901, 902]
    assert found["reference"].sum() == 250


# ---- the reference window


@pytest.mark.parametrize(("count", "first"), [(1, 1), (3, 1), (7, 1), (8, 2), (30, 7)])
def test_trend_reference_is_the_first_quarter(count, first):
    found = trend(days(*[[0.1, 0.2]] * count))
    assert found["reference"].tolist() == [True] * first + [False] * (count - first)


@pytest.mark.parametrize(
    ("reference", "inside"),
    [
        (2, [1, 2]),
        (9, [1, 2, 3, 4]),
        (("2026-03-02", "2026-03-04"), [2, 3]),
        (["2026-03-02", None], [2, 3, 4]),
        ((None, pd.Timestamp("2026-03-02 12:00")), [1, 2]),
        ((dt.date(2026, 3, 3), dt.datetime(2026, 3, 4, tzinfo=dt.UTC)), [3]),
        (("2026-03-02T01:00+01:00", np.datetime64("2026-03-03")), [2]),
        (("2026-03-02T00:30", None), [3, 4]),
    ],
)
def test_trend_reference_chooses_days(reference, inside):
    found = trend(days(*[[0.1, 0.2]] * 4), reference=reference)
    assert found["bucket"].dt.day[found["reference"]].tolist() == inside


def test_trend_reference_ends_are_in_the_zone_of_the_buckets():
    df = days(*[[0.1, 0.2]] * 4, start="2026-03-01T12:00")
    found = trend(df, zone="Asia/Tokyo", reference=("2026-03-02", "2026-03-03"))
    assert starts(found[found["reference"]]) == ["2026-03-02 00:00:00+09:00"]


def test_trend_reference_counts_the_buckets_with_scores():
    df = days([NAN, NAN], [0.1, 0.2], [NAN], [0.3, 0.4], [0.5, 0.6])
    assert trend(df)["reference"].tolist() == [False, True, False, False, False]
    assert trend(df, reference=2)["reference"].tolist() == [False, True, True, True, False]


def test_trend_reference_of_a_scorer_that_came_later_is_its_own():
    df = days(*[[0.1, 0.2]] * 4, tone_error=None, late_score=[NAN] * 4 + [0.5, 0.6, 0.7, 0.8], late_error=None)
    found = trend(df).groupby("score")["reference"].agg(list).to_dict()
    assert found == {"tone": [True, False, False, False], "late": [True, False]}


def test_trend_reference_mean_is_of_its_rows():
    found = trend(days([0.0], [1.0, 1.0, 1.0], [0.5, 0.5]), reference=2)
    assert found["difference"].tolist() == [-0.75, 0.25, -0.25]


@pytest.mark.parametrize(
    ("reference", "error", "words"),
    [
        (0, OptionRangeError, "reference=0 is out of range: it must be 1 or more"),
        (True, ArgumentTypeError, "reference must be a whole number, not bool"),
        ("2026-03-01", ArgumentTypeError, r"reference must be a number of days or \(since, until\), not str"),
        (("2026-03-01",), OptionRangeError, r"it must be a number of days or \(since, until\)"),
        ((None, None), OptionRangeError, r"it must be a number of days or \(since, until\)"),
        ((1, 2), ArgumentTypeError, "Each end of reference must be a time"),
        (("soon", None), OptionRangeError, "reference='soon' is out of range: it must be a time in ISO 8601"),
        ((pd.NaT, None), OptionRangeError, "it must be a time"),
        (("2026-03-02", "2026-03-02"), OptionRangeError, "since before until"),
        (("2027-01-01", None), OptionRangeError, r"where a day begins: they do from 2026-03-01 00:00:00\+00:00 to 2026-03-02"),
    ],
)
def test_trend_reference_that_cannot_be_raises(reference, error, words):
    with pytest.raises(error, match=words):
        trend(days([0.1], [0.2]), reference=reference)


# ---- times and zones


@pytest.mark.parametrize(
    "times",
    [
        ["2026-03-01", "2026-03-01T23:59:59.999999", "2026-03-02T00:00:00Z"],
        pd.array(["2026-03-01T00:00Z", "2026-03-02T08:59:59+09:00", "2026-03-01T19:00-05:00"], dtype="string"),
        pd.Categorical(["2026-03-01", "2026-03-01", "2026-03-02"]),
        [dt.datetime(2026, 3, 1, 1), dt.datetime(2026, 3, 1, 23, tzinfo=dt.UTC), dt.date(2026, 3, 2)],  # noqa: DTZ001
        ["2026-03-01", pd.Timestamp("2026-03-02 00:30", tz="Europe/Berlin"), np.datetime64("2026-03-02")],
        pd.DatetimeIndex(["2026-03-01", "2026-03-01T12:00", "2026-03-02"]),
        pd.DatetimeIndex(["2026-03-01", "2026-03-01T12:00", "2026-03-02"]).as_unit("s"),
        pd.DatetimeIndex(["2026-03-01T01:00", "2026-03-02T00:30", "2026-03-02T01:00"]).tz_localize("Europe/Berlin"),
    ],
)
def test_trend_reads_times_of_any_kind(times):
    found = trend(pd.DataFrame({"when": times, "tone_score": [0.0, 1.0, 0.5]}), time="when")
    assert starts(found) == ["2026-03-01 00:00:00+00:00", "2026-03-02 00:00:00+00:00"]
    assert found["n"].tolist() == [2, 1]


def test_trend_rows_without_a_time_are_a_last_row_that_is_not_compared():
    df = days([0.1, 0.3], [0.2, 0.4]).astype({"created_at": object})
    more = pd.DataFrame({"created_at": [None, pd.NaT, ""], "tone_score": [0.9, NAN, 0.7]}, dtype=object).astype({"tone_score": float})
    found = trend(pd.concat([df, more, df]))
    last = found.iloc[-1]
    assert last["bucket"] is pd.NaT
    assert (last["n"], last["unscored"], last["mean"], last["reference"], last["drift"]) == (2, 1, pytest.approx(0.8), False, False)
    assert found["p"].notna().tolist() == [False, True, False]
    assert np.isnan(last["difference"])
    assert found["n"].sum() + found["unscored"].sum() == 11


def test_trend_without_any_time_compares_nothing():
    found = trend(days([0.1, 0.3]).assign(created_at=pd.NaT))
    assert found[["n", "reference", "drift"]].to_numpy().tolist() == [[2, False, False]]


def by_half_hours(start, count, zone, freq="30min"):
    times = pd.date_range(start, periods=count, freq=freq, tz="UTC")
    found = trend(pd.DataFrame({"created_at": times, "tone_score": 0.5}), by="hour", zone=zone)
    return dict(zip(starts(found), found["n"], strict=True))


def test_trend_hour_that_the_clocks_show_twice_is_two():
    assert by_half_hours("2026-10-24T23:00", 8, "Europe/Berlin") == {
        "2026-10-25 01:00:00+02:00": 2,
        "2026-10-25 02:00:00+02:00": 2,
        "2026-10-25 02:00:00+01:00": 2,
        "2026-10-25 03:00:00+01:00": 2,
    }


def test_trend_hour_that_the_clocks_skip_is_none():
    assert by_half_hours("2026-03-29T00:00", 4, "Europe/Berlin") == {"2026-03-29 01:00:00+01:00": 2, "2026-03-29 03:00:00+02:00": 2}


def test_trend_hours_of_odd_zones_begin_as_the_clocks_do():
    assert by_half_hours("2026-03-01T00:15", 2, "Asia/Kathmandu") == {"2026-03-01 06:00:00+05:45": 2}
    # Lord Howe skips half an hour, and shows another half hour twice.
    assert by_half_hours("2026-10-03T14:30", 4, "Australia/Lord_Howe") == {
        "2026-10-04 01:00:00+10:30": 2,
        "2026-10-04 02:30:00+11:00": 1,
        "2026-10-04 03:00:00+11:00": 1,
    }
    assert by_half_hours("2026-04-04T14:00", 4, "Australia/Lord_Howe") == {"2026-04-05 01:00:00+11:00": 3, "2026-04-05 02:00:00+10:30": 1}


@pytest.mark.parametrize(
    ("start", "zone", "expected"),
    [
        ("2026-03-28T23:00", "Europe/Berlin", {"2026-03-29 00:00:00+01:00": 23, "2026-03-30 00:00:00+02:00": 24}),
        ("2026-10-24T22:00", "Europe/Berlin", {"2026-10-25 00:00:00+02:00": 25, "2026-10-26 00:00:00+01:00": 24}),
        # Midnight itself was skipped in Brazil; Samoa skipped a whole day.
        ("2018-11-04T03:00", "America/Sao_Paulo", {"2018-11-04 01:00:00-02:00": 23, "2018-11-05 00:00:00-02:00": 24}),
        ("2011-12-29T10:00", "Pacific/Apia", {"2011-12-29 00:00:00-10:00": 24, "2011-12-31 00:00:00+14:00": 24}),
    ],
)
def test_trend_day_has_the_hours_that_its_clocks_show(start, zone, expected):
    times = pd.date_range(start, periods=sum(expected.values()), freq="h", tz="UTC")
    found = trend(pd.DataFrame({"created_at": times, "tone_score": 0.5}), zone=zone)
    assert dict(zip(starts(found), found["n"], strict=True)) == expected


def test_trend_week_begins_on_monday():
    df = days(*[[0.5]] * 16, start="2026-10-18T23:30")  # Berlin: from Monday the 19th, over the change of the clocks on the 25th
    found = trend(df, by="week", zone="Europe/Berlin")
    assert dict(zip(starts(found), found["n"], strict=True)) == {
        "2026-10-19 00:00:00+02:00": 7,
        "2026-10-26 00:00:00+01:00": 7,
        "2026-11-02 00:00:00+01:00": 2,
    }


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Europe/Dublin", "America/St_Johns", "America/Havana", "Africa/El_Aaiun", "Antarctica/Troll", "Asia/Tehran", "Australia/Lord_Howe"]
)  # fmt: skip
@pytest.mark.parametrize("by", ["hour", "day", "week"])
def test_time_buckets_put_every_time_between_its_start_and_the_next(zone, by):
    times = pd.date_range("2020-01-01", "2026-12-31", freq="15min", tz="UTC").as_unit("us")
    found = time_buckets(times, by, zoneinfo.ZoneInfo(zone))
    first = pd.DatetimeIndex(found.labels).asi8
    after = np.append(first[1:], np.iinfo(np.int64).max)
    assert (first[found.codes] <= times.asi8).all()
    assert (times.asi8 < after[found.codes]).all()
    assert found.known == len(found.labels) == len(np.unique(found.codes))
    # Every bucket begins when its clock shows a full hour, or midnight, or where clocks were put forward.
    clocks = pd.DatetimeIndex(found.labels).tz_localize(None)
    assert (clocks == clocks.floor("h" if by == "hour" else "D")).mean() > 0.995


def test_trend_zone_may_be_a_tzinfo():
    zone = dt.timezone(dt.timedelta(hours=2))
    assert starts(trend(days([0.5], start="2026-03-01T22:30"), zone=zone)) == ["2026-03-02 00:00:00+02:00"]


@pytest.mark.parametrize(
    ("zone", "error", "words"),
    [
        ("Europe/Berln", UnknownOptionError, "zone='Europe/Berln' is not known; .* Did you mean 'Europe/Berlin'?"),
        ("Europe/Berlin\0", UnknownOptionError, "is not known"),
        (2, ArgumentTypeError, "zone must be the name of a time zone, such as 'Europe/Berlin', not int"),
    ],
)
def test_trend_unknown_zone_raises(zone, error, words):
    with pytest.raises(error, match=words):
        trend(days([0.5]), zone=zone)


def test_trend_without_the_column_of_times_says_how_to_name_one():
    df = days([0.5])
    with pytest.raises(
        MissingColumnError, match="trend needs a column 'created_at'; the frame has 'when', 'tone_score'. Pass time= with the name"
    ):
        trend(df.rename(columns={"created_at": "when"}))
    with pytest.raises(MissingColumnError, match="Did you mean time='created'"):
        trend(df.rename(columns={"created_at": "created"}))


@pytest.mark.parametrize(
    ("times", "words"),
    [
        (
            [1_772_323_200, 1_772_323_201],
            r"has the dtype int64. Convert it first: pd.to_datetime\(df\['created_at'\], unit='s', utc=True\)",
        ),
        (pd.array([5, "2026-03-01"], dtype=object), "has cells of kind int"),
        (["2026-03-01", "01/03/2026"], r"has '01/03/2026' in row 1 \(counted from 0\). Convert it first"),
        (["yesterday" * 20, "2026-03-01"], "has 'yesterday.*…' in row 0"),
        (pd.to_timedelta([1, 2]), "has the dtype timedelta64"),
        (pd.period_range("2026-03", periods=2, freq="M"), "has the dtype period"),
    ],
)
def test_trend_column_that_holds_no_times_raises(times, words):
    with pytest.raises(ArgumentTypeError, match=words):
        trend(pd.DataFrame({"created_at": times, "tone_score": [0.5, 0.6]}))


def test_trend_doubled_column_raises():
    df = days([0.5])
    with pytest.raises(ColumnConflictError, match="2 columns of that name"):
        trend(pd.concat([df, df[["created_at"]]], axis=1))


# ---- runs


def test_trend_runs_come_in_the_order_of_their_first_time():
    df = pd.DataFrame(
        {
            "run": ["v3", "v1", "v2", "v1", None, "v0"],
            "created_at": ["2026-03-03", "2026-03-09", "2026-03-02", "2026-03-01", "2026-02-01", None],
            "tone_score": [0.3, 0.1, 0.2, 0.5, 0.9, 0.4],
        }
    )
    found = trend(df, by="run")
    assert found["bucket"].iloc[:4].tolist() == ["v1", "v2", "v3", "v0"]
    assert pd.isna(found["bucket"].iloc[4])
    assert found["n"].tolist() == [2, 1, 1, 1, 1]
    assert found["reference"].tolist() == [True, False, False, False, False]
    assert np.isnan(found["difference"].iloc[4])


def test_trend_runs_without_times_come_in_the_order_of_their_rows():
    df = pd.DataFrame({"run": ["b", "a", "b"], "tone_score": [0.1, 0.2, 0.3]})
    assert trend(df, by="run", time=None)["bucket"].tolist() == ["b", "a"]
    with pytest.raises(MissingColumnError, match="needs a column 'created_at'"):
        trend(df, by="run")


@pytest.mark.parametrize(("reference", "inside"), [("b", ["b"]), (["a", "c"], ["a", "c"]), (("c",), ["c"]), (2, ["a", "b"])])
def test_trend_reference_names_runs(reference, inside):
    df = pd.DataFrame({"run": list("aabbccdd"), "tone_score": [0.1, 0.2] * 4})
    found = trend(df, by="run", time=None, reference=reference)
    assert found["bucket"][found["reference"]].tolist() == inside


def test_trend_runs_keep_their_dtype():
    df = pd.DataFrame({"run": [3, 7, 3], "tone_score": [0.1, 0.2, 0.3]})
    found = trend(df, by="run", time=None, reference=[7])
    assert found["bucket"].dtype == "int64"
    assert found["bucket"][found["reference"]].tolist() == [7]
    text = trend(df.astype({"run": "string"}), by="run", time=None)
    assert isinstance(text["bucket"].dtype, pd.StringDtype)


def test_trend_reference_that_is_no_run_raises():
    df = pd.DataFrame({"run": ["v1", "v2"], "tone_score": [0.1, 0.2]})
    for reference in ("v3", ["v1", "v3"], [["v3"]]):
        with pytest.raises(UnknownOptionError, match=r"is not known; choose one of 'v1', 'v2'"):
            trend(df, by="run", time=None, reference=reference)
    with pytest.raises(OptionRangeError, match="one run at least"):
        trend(df, by="run", time=None, reference=[])


def test_trend_without_a_column_of_runs_says_how_to_rename_one():
    with pytest.raises(
        MissingColumnError,
        match="trend by='run' needs a column 'run', as ScoreStore.read gives it; the frame has 'created_at', 'tone_score'. Rename",
    ):
        trend(days([0.5]), by="run")


# ---- other options


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"by": "month"}, UnknownOptionError, "by='month' is not known; choose one of 'hour', 'day', 'week', 'run'"),
        ({"scores": "tome"}, MissingColumnError, "Did you mean 'tone'?"),
        ({"scores": []}, OptionRangeError, "at least one name"),
        ({"confidence": 1.0}, OptionRangeError, "above 0 and below 1"),
        ({"confidence": "95"}, ArgumentTypeError, "confidence must be a number"),
    ],
)
def test_trend_option_that_cannot_be_raises(options, error, words):
    with pytest.raises(error, match=words):
        trend(days([0.5]), **options)


def test_trend_of_anything_else_raises():
    with pytest.raises(ArgumentTypeError, match="trend: the first argument must be a pandas DataFrame, not list"):
        trend([0.5])
    with pytest.raises(MissingColumnError, match="trend needs a column '<name>_score' of numbers"):
        trend(pd.DataFrame({"created_at": ["2026-03-01"]}))


def test_trend_loads_no_scipy_stats():
    code = (
        "import sys, pandas as pd\nfrom scorekit.analysis.trend import trend\n"
        "trend(pd.DataFrame({'created_at': ['2026-03-01', '2026-03-02'] * 3, 'tone_score': [0.1, 0.2, 0.4, 0.3, 0.2, 0.9]}))\n"
        "sys.exit('scipy.stats' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
