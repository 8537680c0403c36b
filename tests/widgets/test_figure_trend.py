"""figure_trend: what is drawn, read from the figure's own numbers and texts."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from scorekit.analysis.trend import trend
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError
from scorekit.widgets.figure_trend import figure_trend
from scorekit.widgets.looks import LEAST_WIDTH, PALETTE


def days(*values, start="2026-03-01", freq="D", name="relevancy", **more):
    """A frame of one day after another, each with the scores given."""
    times = pd.date_range(start, periods=len(values), freq=freq, tz="UTC").repeat([len(part) for part in values])
    return pd.DataFrame({"created_at": times, f"{name}_score": np.concatenate(values).astype(float), **more})


def steady(count, rows=12, fall=(), by=0.3, seed=0):
    """Days of scores around 0.7; those in ``fall`` are lower."""
    rng = np.random.default_rng(seed)
    return [np.round(rng.normal(0.7, 0.05, rows) - (by if day in fall else 0), 3) for day in range(count)]


def traces(drawn, name, axis="x"):
    return [
        trace
        for trace in drawn.data
        if trace.name == name and (trace.xaxis or "x") == axis and trace.x is not None and len(trace.x) and trace.x[0] is not None
    ]


def one(drawn, name, axis="x"):
    (found,) = traces(drawn, name, axis)
    return found


def plain(text):
    return re.sub(r"<[^>]*>", "", text.replace("<br>", " "))


def texts(drawn):
    return [plain(annotation.text) for annotation in drawn.layout.annotations]


def title(drawn):
    return plain(drawn.layout.title.text)


def page(drawn):
    return drawn.to_json().replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")


def dates(trace):
    return [str(value)[:10] for value in trace.x]


def hovers(trace):
    return [plain(text) for text in trace.hovertext]


def shaded(drawn, axis="x"):
    return [(str(shape.x0), str(shape.x1)) for shape in drawn.layout.shapes if shape.type == "rect" and shape.xref == axis]


def test_figure_trend_draws_the_means_with_their_intervals():
    df = days(*steady(8))
    found = trend(df)
    mean = one(figure_trend(df), "mean")
    assert dates(mean) == [f"2026-03-0{day}" for day in range(1, 9)]
    assert mean.y.tolist() == found["mean"].tolist()
    assert (mean.y + mean.error_y.array).tolist() == pytest.approx(found["ci_high"].tolist())
    assert (mean.y - mean.error_y.arrayminus).tolist() == pytest.approx(found["ci_low"].tolist())


def test_figure_trend_counts_stand_under_the_means():
    drawn = figure_trend(days([0.5, 0.6, np.nan], [0.5, 0.7]))
    assert one(drawn, "scored", "x2").y.tolist() == [2, 2]
    assert one(drawn, "unscored", "x2").y.tolist() == [1, 0]
    assert one(drawn, "unscored", "x2").marker.pattern.shape == "/"
    assert drawn.layout.barmode == "stack"
    assert drawn.layout.xaxis2.matches == "x"


def test_figure_trend_without_unscored_rows_has_no_bars_for_them():
    drawn = figure_trend(days([0.5, 0.6], [0.5, 0.7]))
    assert [trace.name for trace in drawn.data] == ["line", "mean", "scored"]
    assert drawn.layout.showlegend is False


def test_figure_trend_marks_drift_in_a_shape_and_a_colour_of_its_own():
    drawn = figure_trend(days(*steady(8, fall=[5, 6])))
    worse = one(drawn, "worse")
    assert dates(worse) == ["2026-03-06", "2026-03-07"]
    assert (worse.marker.symbol, worse.marker.color) == ("x", PALETTE[1])
    assert one(drawn, "mean").marker.symbol is None
    assert "relevancy  higher is better 6 days compared: 2 worse (first: 2026-03-06)" in texts(drawn)
    assert drawn.layout.showlegend is True
    assert [trace.name for trace in drawn.data if trace.x[0] is None] == ["drifted: worse"]


def test_figure_trend_shades_the_reference_and_dashes_its_mean():
    df = days(*steady(8))
    drawn = figure_trend(df)
    assert shaded(drawn) == shaded(drawn, "x2") == [("2026-02-28T12:00:00.000", "2026-03-02T12:00:00.000")]
    (line,) = [shape for shape in drawn.layout.shapes if shape.type == "line"]
    assert line.y0 == line.y1 == pytest.approx(df["relevancy_score"].iloc[:24].mean())
    assert line.line.dash == "dash"
    assert "reference" in texts(drawn)
    assert f"{line.y0:.3g}" in texts(drawn)


def test_figure_trend_reference_runs_apart_are_shaded_apart():
    df = pd.DataFrame({"run": np.repeat(list("abcd"), 3), "relevancy_score": [0.5, 0.6, 0.7] * 4})
    assert shaded(figure_trend(df, by="run", time=None, reference=["a", "b", "d"])) == [("-0.5", "1.5"), ("2.5", "3.5")]


@pytest.mark.parametrize(
    ("name", "options", "by", "kind", "symbol"),
    [
        ("toxicity", {}, -0.3, "worse", "x"),
        ("toxicity", {}, 0.3, "better", "diamond"),
        ("relevancy", {}, -0.3, "better", "diamond"),
        ("quality", {}, 0.3, "lower", "triangle-down"),
        ("quality", {}, -0.3, "higher", "triangle-up"),
        ("quality", {"lower_is_better": ["quality"]}, -0.3, "worse", "x"),
        ("quality", {"higher_is_better": "quality_score"}, -0.3, "better", "diamond"),
        ("toxicity", {"higher_is_better": ["toxicity"]}, -0.3, "better", "diamond"),
    ],
)
def test_figure_trend_drift_is_named_by_the_direction_of_the_score(name, options, by, kind, symbol):
    drawn = figure_trend(days(*steady(8, fall=[6], by=by), name=name), **options)
    assert one(drawn, kind).marker.symbol == symbol
    assert any(f"6 days compared: 1 {kind} (first: 2026-03-07)" in text for text in texts(drawn))


def test_figure_trend_says_what_is_better_of_known_scores_alone():
    df = days(*steady(3), toxicity_score=0.1, quality_score=0.5)
    heads = [text.removesuffix(" 2 days compared: none drifted") for text in texts(figure_trend(df)) if "compared" in text]
    assert heads == ["relevancy  higher is better", "toxicity  lower is better", "quality"]


def test_figure_trend_score_better_both_ways_raises():
    with pytest.raises(OptionRangeError, match="figure_trend: 'tone' cannot be better both when lower and when higher"):
        figure_trend(days([0.5]), lower_is_better=["tone"], higher_is_better=["tone"])


def test_figure_trend_hover_tells_the_numbers_and_the_test():
    values = steady(8, fall=[6])
    errors = [None] * 95 + ["judge_timeout"]
    df = days(*values, relevancy_error=errors).assign(
        relevancy_score=lambda frame: frame["relevancy_score"].where(frame["relevancy_error"].isna())
    )
    row = trend(df).iloc[6]
    told = hovers(one(figure_trend(df), "mean"))
    assert told[0].startswith("2026-03-01 12 scored, 0 unscored mean 0.")
    assert told[0].endswith("in the reference window")
    assert told[6] == (
        f"2026-03-07 12 scored, 0 unscored mean {row['mean']:.3g} ({row['ci_low']:.3g} to {row['ci_high']:.3g}) "
        f"{row['difference']:+.3g} to the reference mean of {row['mean'] - row['difference']:.3g} "
        "p below 0.001, with Holm's correction below 0.001: drifted, worse"
    )
    assert "11 scored, 1 unscored (judge_timeout: 1)" in told[7]
    assert told[7].endswith("no drift shown")
    assert hovers(one(figure_trend(df), "scored", "x2"))[7] == "2026-03-08 11 scored, 1 unscored (judge_timeout: 1)"


def test_figure_trend_title_says_what_is_drawn_and_tested():
    assert title(figure_trend(days(*steady(8)))) == (
        "Trend by day 96 rows in 8 days (UTC). Bars: 95 % interval. Shaded: the reference window, its mean dashed. "
        "Drifted: p below 0.05 against it, by Welch's and Student's t tests with Holm's correction."
    )
    assert "Bars: 99 % interval" in title(figure_trend(days(*steady(8)), confidence=0.99))
    assert "p below 0.01 " in title(figure_trend(days(*steady(8)), confidence=0.99))


def test_figure_trend_rows_without_a_time_are_counted_in_the_title():
    df = days(*steady(4))
    drawn = figure_trend(pd.concat([df, df.iloc[:7].assign(created_at=pd.NaT)]))
    assert "7 rows without a time are not drawn." in title(drawn)
    assert len(one(drawn, "mean").x) == 4


def test_figure_trend_line_breaks_where_days_are_missing():
    df = days(*steady(6))
    line = one(figure_trend(df[~df["created_at"].dt.day.isin([3, 4])]), "line")
    assert np.isnan(line.y).tolist() == [False, False, True, False, False]


def test_figure_trend_line_does_not_break_where_clocks_are_put_forward():
    line = one(figure_trend(days(*steady(5), start="2026-03-28T23:00", freq="h"), by="hour", zone="Europe/Berlin"), "line")
    assert [str(value)[11:16] for value in line.x] == ["00:00", "01:00", "03:00", "04:00", "05:00"]
    assert not np.isnan(line.y).any()


def test_figure_trend_hours_that_clocks_show_twice_stand_apart():
    drawn = figure_trend(days(*steady(4), start="2026-10-24T23:00", freq="h"), by="hour", zone="Europe/Berlin")
    mean, bars = one(drawn, "mean"), one(drawn, "scored", "x2")
    assert [str(value)[11:16] for value in mean.x] == ["01:00", "02:00", "02:30", "03:00"]
    assert [text[:21] for text in hovers(mean)][1:3] == ["2026-10-25 02:00 CEST", "2026-10-25 02:00 CET "]
    # The two bars do not overlap.
    assert bars.width[1] / 2 + bars.width[2] / 2 < 1_800_000
    assert "(Europe/Berlin)" in title(drawn)


def test_figure_trend_many_buckets_are_a_line_in_a_band():
    drawn = figure_trend(days(*steady(100, rows=4)))
    band, mean = one(drawn, "interval"), one(drawn, "mean")
    assert (band.fill, len(band.x)) == ("toself", 2 * 100 + 1)
    assert mean.error_y.array is None
    assert "Band: 95 % interval." in title(drawn)


def test_figure_trend_band_has_no_interval_where_there_is_none():
    values = steady(70, rows=4)
    values[10] = np.array([0.7])
    df = days(*values)
    band = one(figure_trend(df[df["created_at"].dt.date.astype(str) != "2026-03-31"]), "interval")
    # Three stretches: before the day with one row, up to the missing day, and after it.
    assert np.isnan(band.y).sum() == 3
    assert len(band.x) == 2 * 68 + 3


def test_figure_trend_of_thousands_of_hours_draws_the_last_ones_and_tests_all():
    rng = np.random.default_rng(0)
    df = days(*rng.random((2500, 2)), start="2026-01-01", freq="h")
    drawn = figure_trend(df, by="hour")
    assert len(one(drawn, "mean").x) == 2000
    assert "5,000 rows in 2,500 hours (UTC). The last 2,000 are drawn; the tests are of all." in title(drawn)
    assert "Of so many hours only large shifts show: by='day' finds smaller ones." in title(drawn)
    assert any("1,875 hours compared: none drifted" in text for text in texts(drawn))
    assert len(shaded(drawn)) == 1
    assert len(page(drawn)) < 2_000_000


@pytest.mark.parametrize(
    ("df", "words"),
    [
        (days([0.5, 0.6]), "1 day, all in the reference window: nothing to compare yet"),
        (days([0.5, 0.6]).iloc[:0], "no rows"),
        (days([0.5, 0.6]).assign(created_at=pd.NaT), "no rows"),
        (days([0.5, 0.6], [0.7]), "nothing to compare: too few scored rows in 1 day or in the reference window"),
        (days([0.5, 0.6], [0.7], [0.4, 0.5]), "1 day compared: none drifted; 1 more with too few rows"),
        (days([0.5, 0.5], [0.5, 0.5]), "1 day compared: none drifted"),
        (days([np.inf, 0.5], [0.5, 0.5]), "nothing to compare: too few scored rows in 1 day or in the reference window"),
        (days([np.nan, np.nan]), "no scored rows"),
    ],
)
def test_figure_trend_of_next_to_nothing_is_drawn(df, words):
    drawn = figure_trend(df)
    assert any(text.endswith(words) for text in texts(drawn))
    assert all(np.isfinite(drawn.layout.yaxis.range))
    assert np.diff(drawn.layout.yaxis.range)[0] > 0


def test_figure_trend_reference_without_scored_rows_is_said():
    drawn = figure_trend(days([np.nan, np.nan], [0.5, 0.6], [0.4, 0.5]), reference=("2026-03-01", "2026-03-02"))
    assert any(text.endswith("no scored rows in the reference window: nothing to compare with") for text in texts(drawn))


def test_figure_trend_single_day_does_not_fill_the_axis():
    drawn = figure_trend(days([0.5, 0.6]))
    low, high = pd.DatetimeIndex(drawn.layout.xaxis.range)
    assert high - low == pd.Timedelta(days=5)
    assert drawn.layout.xaxis2.dtick == 86_400_000


def test_figure_trend_axis_reaches_over_the_means_not_over_every_wide_interval():
    values = [np.array([0.5, 0.6, 0.7])] * 8
    values[5] = np.array([-40.0, 41.2])
    bottom, top = figure_trend(days(*values)).layout.yaxis.range
    assert -1 < bottom < 0.4
    assert 0.8 < top < 2


def test_figure_trend_runs_stand_side_by_side_in_their_order():
    df = pd.DataFrame(
        {
            "run": np.repeat(["nightly-2026-03-05-b", "v1", "v2"], 3),
            "created_at": np.repeat(["2026-03-05", "2026-03-01", "2026-03-02"], 3),
            "relevancy_score": [0.5, 0.6, 0.7] * 3,
        }
    )
    drawn = figure_trend(df, by="run")
    assert list(drawn.layout.xaxis2.ticktext) == ["v1", "v2", "nightly…3-05-b"]
    assert one(drawn, "mean").x.tolist() == [0, 1, 2]
    assert hovers(one(drawn, "mean"))[2].startswith("nightly-2026-03-05-b 3 scored")
    assert title(drawn).startswith("Trend by run 9 rows in 3 runs. ")


def test_figure_trend_run_of_one_score_alone_keeps_its_place():
    df = pd.DataFrame({"run": np.repeat(list("abc"), 2), "relevancy_score": [0.5, 0.6, np.nan, np.nan, 0.7, 0.6], "tone_score": 0.5})
    drawn = figure_trend(df.assign(relevancy_error=None), by="run", time=None)
    assert one(drawn, "mean").x.tolist() == [0, 2]
    assert np.isnan(one(drawn, "line").y).tolist() == [False, True, False]
    assert one(drawn, "mean", "x3").x.tolist() == [0, 1, 2]


def test_figure_trend_of_many_runs_names_some_of_them():
    df = pd.DataFrame({"run": np.repeat([f"r{number}" for number in range(40)], 2), "relevancy_score": [0.5, 0.6] * 40})
    ticks = figure_trend(df, by="run", time=None).layout.xaxis2.ticktext
    assert len(ticks) == 12
    assert (ticks[0], ticks[-1]) == ("r0", "r39")


def test_figure_trend_every_score_has_its_panels():
    df = days(*steady(4), tone_score=0.5, toxicity_score=0.2)
    drawn = figure_trend(df)
    assert [len(one(drawn, "mean", axis).x) for axis in ("x", "x3", "x5")] == [4, 4, 4]
    domains = [drawn.layout[f"yaxis{number}"].domain for number in ("", 2, 3, 4, 5, 6)]
    assert all(lower[1] < upper[0] for upper, lower in pairwise(domains))
    assert domains[0][1] == 1
    assert domains[-1][0] == pytest.approx(0)
    only = figure_trend(df, scores="tone")
    assert only.layout.height < drawn.layout.height / 2
    assert "yaxis3" not in only.layout


def test_figure_trend_can_be_read_on_any_page():
    assert figure_trend(days(*steady(4))).layout.meta[LEAST_WIDTH] == 0


def test_figure_trend_escapes_names_runs_and_codes():
    bad = "</script><img src=x onerror=alert(1)>$x$"
    runs = pd.Series([bad] * 3 + [f"{bad} 2"] * 3 + ["\ud800"] * 3, dtype=object)
    df = pd.DataFrame({"run": runs, f"{bad}_score": [0.5, 0.6, None] * 3, f"{bad}_error": [None, None, bad] * 3})
    drawn = figure_trend(df, by="run", time=None)
    shown = page(drawn)
    assert "<img" not in shown
    assert "</script" not in shown
    assert "$x$" not in shown


def test_figure_trend_same_frame_gives_the_same_figure():
    df = days(*steady(8, fall=[5]))
    before = df.copy(deep=True)
    assert page(figure_trend(df)) == page(figure_trend(df))
    pd.testing.assert_frame_equal(df, before)


def test_figure_trend_of_another_column_of_times():
    drawn = figure_trend(days(*steady(3)).rename(columns={"created_at": "when"}), time="when")
    assert dates(one(drawn, "mean")) == ["2026-03-01", "2026-03-02", "2026-03-03"]
    with pytest.raises(MissingColumnError, match="needs a column 'created_at'"):
        figure_trend(days([0.5]).rename(columns={"created_at": "when"}))


def test_figure_trend_of_anything_else_raises():
    with pytest.raises(ArgumentTypeError, match="trend: the first argument must be a pandas DataFrame, not NoneType"):
        figure_trend(None)
