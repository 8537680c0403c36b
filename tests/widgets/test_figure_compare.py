"""figure_compare: what is drawn, read from the figure's own numbers and texts."""

import re

import numpy as np
import pandas as pd
import pytest

from scorekit.analysis.compare import compare
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.widgets.figure_compare import figure_compare
from scorekit.widgets.looks import PALETTE

GREY = "#9aa1a9"


def long(scores, name="relevancy", **more):
    parts = [pd.DataFrame({"id": range(len(values)), "prompt": variant, f"{name}_score": values}) for variant, values in scores.items()]
    return pd.concat(parts, ignore_index=True).assign(**more)


def five(name="relevancy"):
    """Differences 0.5, 0.0, 0.25, -0.25, 0.5 of b to a."""
    return long({"a": [0.5, 0.5, 0.25, 0.75, 0.0], "b": [1.0, 0.5, 0.5, 0.5, 0.5]}, name)


def found(df, **options):
    return compare(df, **{"variant": "prompt", "item": "id", "resamples": 1000, **options})


def figure(df=None, **options):
    return figure_compare(found(five() if df is None else df, **options))


def dots(drawn, name, axis="x"):
    """The differences drawn under a name; the slopes and the legend have names too."""
    return [
        trace
        for trace in drawn.data
        if trace.name == name and trace.mode == "markers" and trace.xaxis == axis and len(trace.x) and trace.x[0] is not None
    ]


def slopes(drawn, name, axis="x2"):
    return next(trace for trace in drawn.data if trace.name == name and trace.mode == "lines" and trace.xaxis == axis)


def means(drawn, axis):
    return [trace for trace in drawn.data if trace.name == "mean" and trace.xaxis == axis]


def plain(text):
    return re.sub(r"<[^>]*>", "", text.replace("<br>", " "))


def texts(drawn):
    return [plain(annotation.text) for annotation in drawn.layout.annotations]


def page(drawn):
    return drawn.to_json().replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")


def test_figure_compare_draws_every_difference_by_its_outcome():
    drawn = figure()
    assert [trace.x.tolist() for trace in dots(drawn, "better")] == [[0.5, 0.25, 0.5]]
    assert [trace.x.tolist() for trace in dots(drawn, "tie")] == [[0.0]]
    assert [trace.x.tolist() for trace in dots(drawn, "worse")] == [[-0.25]]
    assert [dots(drawn, name)[0].marker.color for name in ("better", "tie", "worse")] == [PALETTE[0], GREY, PALETTE[1]]


def test_figure_compare_marks_the_mean_with_its_interval_and_zero():
    comparison = found(five())
    row = comparison.summary.iloc[0]
    drawn = figure_compare(comparison)
    (mean,) = means(drawn, "x")
    assert list(mean.x) == [row["difference"]]
    assert mean.x[0] - mean.error_x.arrayminus[0] == pytest.approx(row["ci_low"])
    assert mean.x[0] + mean.error_x.array[0] == pytest.approx(row["ci_high"])
    assert [(shape.x0, shape.x1) for shape in drawn.layout.shapes] == [(0, 0)]


def test_figure_compare_slopes_go_from_the_baseline_to_the_variant():
    drawn = figure()
    worse = slopes(drawn, "worse")
    assert worse.x[:2].tolist() == [0, 1]
    # One line, of 0.75 and 0.5, shifted by no more than 1.2 % of the scale.
    assert worse.y[:2] == pytest.approx([0.75, 0.5], abs=0.012)
    assert worse.y[0] - 0.75 == pytest.approx(worse.y[1] - 0.5)
    assert np.isnan(worse.y[2])
    assert len(slopes(drawn, "better").x) == 9
    (mean,) = means(drawn, "x2")
    assert list(mean.y) == pytest.approx([0.4, 0.6])
    assert {"0.40", "0.60", "5 pairs"} <= set(texts(drawn))
    assert list(drawn.layout.xaxis2.ticktext) == ["a", "b"]
    assert drawn.layout.yaxis2.range == pytest.approx((-0.036, 1.036))


def test_figure_compare_lower_is_better_turns_the_colours():
    drawn = figure(five("toxicity"))
    assert dots(drawn, "worse")[0].x.tolist() == [0.5, 0.25, 0.5]
    assert "toxicity  lower is better" in texts(drawn)


def test_figure_compare_score_without_direction_is_neither_good_nor_bad():
    drawn = figure(five("text_difference"))
    assert {trace.name for trace in drawn.data} == {"higher", "tie", "lower", "mean"}
    assert dots(drawn, "higher")[0].marker.color == PALETTE[2]
    assert any("3 higher, 1 tied, 1 lower of 5" in text for text in texts(drawn))
    assert "text_difference  neither high nor low is known to be better" in texts(drawn)


def test_figure_compare_legend_has_each_outcome_once():
    drawn = figure(five().assign(text_difference_score=five()["relevancy_score"]))
    assert [trace.name for trace in drawn.data if trace.showlegend is None] == ["better", "tie", "worse", "higher", "lower"]


def test_figure_compare_strip_says_who_how_much_and_how_often():
    comparison = found(five())
    row = comparison.summary.iloc[0]
    told = f"b  0.20 ({row['ci_low']:.2f} to {row['ci_high']:.2f}) 3 won, 1 tied, 1 lost of 5; p 0.38"
    assert told in texts(figure_compare(comparison))


def test_figure_compare_title_of_one_comparison_says_the_conclusion():
    comparison = found(five())
    title = plain(figure_compare(comparison).layout.title.text)
    assert title.startswith("b against a 5 pairs cannot tell b from a on relevancy: the difference is 0.20")


def test_figure_compare_several_variants_have_a_strip_and_a_panel_each():
    drawn = figure(long({"a": [0.1, 0.2], "b": [0.2, 0.2], "c": [0.3, 0.1], "d": [0.4, 0.2]}))
    assert [text.split("  ")[0] for text in texts(drawn) if " of 2" in text] == ["b", "c", "d"]
    assert [drawn.layout[f"xaxis{number}"].ticktext[1] for number in (2, 3, 4)] == ["b", "c", "d"]
    assert drawn.layout.xaxis2.ticktext[0] == "<br>a"
    assert drawn.layout.yaxis.range == (3, 0)
    assert plain(drawn.layout.title.text).startswith("3 variants against a Dots are items")
    strips = np.concatenate([trace.y for name in ("better", "tie", "worse") for trace in dots(drawn, name)])
    assert sorted(np.floor(strips).tolist()) == [0, 0, 1, 1, 2, 2]


def test_figure_compare_groups_have_a_strip_each():
    df = pd.concat([five(), five().assign(id=lambda rows: rows["id"] + 10)]).assign(language=["en"] * 10 + [None] * 10)
    drawn = figure(df, by="language")
    assert [text.split("  ")[0] for text in texts(drawn) if "won" in text] == ["b · en", "b · (missing)"]
    assert [len(trace.x) for trace in dots(drawn, "better")] == [6]
    assert "10 pairs" in texts(drawn)


def test_figure_compare_of_more_groups_than_fit_draws_the_largest():
    sizes = [2] * 8 + [3] * 8
    groups = np.repeat(range(16), sizes)
    df = long({"a": [0.0] * 40, "b": list(np.linspace(-1, 1, 40))}, group=list(groups) * 2)
    drawn = figure(df, by="group")
    assert [text.split("  ")[0] for text in texts(drawn) if "won" in text] == [f"b · {group}" for group in (0, 1, 2, 3, *range(8, 16))]
    assert "4 smaller comparisons are not drawn." in plain(drawn.layout.title.text)


def test_figure_compare_of_more_variants_than_fit_draws_slopes_of_the_first():
    drawn = figure(long({name: [0.1, 0.2, 0.3] for name in "abcdefg"}))
    assert len([text for text in texts(drawn) if "won" in text]) == 6
    assert len(means(drawn, "x2") + means(drawn, "x3") + means(drawn, "x4") + means(drawn, "x5")) == 4
    assert "Slopes are of the first 4 variants; 2 more have none." in plain(drawn.layout.title.text)


def test_figure_compare_of_many_pairs_draws_some_and_says_so():
    rng = np.random.default_rng(0)
    df = long({"a": rng.random(20_000), "b": rng.random(20_000)})
    comparison = found(df)
    drawn = figure_compare(comparison)
    assert sum(len(trace.x) for name in ("better", "tie", "worse") for trace in dots(drawn, name)) == 5000
    assert sum(len(slopes(drawn, name).x) for name in ("better", "tie", "worse")) == 150 * 3
    title = plain(drawn.layout.title.text)
    assert "5,000 of 20,000 differences are drawn, chosen at random; means and intervals are of all." in title
    assert "150 of 20,000 pairs" in texts(drawn)
    assert list(means(drawn, "x")[0].x) == [comparison.summary.loc[0, "difference"]]
    assert len(page(drawn)) < 700_000
    assert page(drawn) == page(figure_compare(comparison))


def test_figure_compare_points_of_all_strips_together_stay_few():
    rng = np.random.default_rng(0)
    df = long({name: rng.random(4000) for name in "abcd"}).assign(tone_score=rng.random(16_000))
    drawn = figure(df)
    assert (
        sum(len(trace.x) for axis in ("x", "x5") for name in ("better", "tie", "worse") for trace in dots(drawn, name, axis))
        == 5000 // 6 * 6
    )


def test_figure_compare_hover_names_the_item_and_both_scores():
    drawn = figure()
    assert dots(drawn, "worse")[0].customdata[0] == ["3", "0.75", "0.5"]


def test_figure_compare_score_chooses():
    comparison = found(five().assign(tone_score=0.5))
    drawn = figure_compare(comparison, score="tone_score")
    assert any(text.startswith("tone") for text in texts(drawn))
    assert not any(text.startswith("relevancy") for text in texts(drawn))


def test_figure_compare_scores_of_another_scale_have_axes_of_their_own():
    drawn = figure(five().assign(percent_score=five()["relevancy_score"] * 100))
    assert drawn.layout.xaxis3.range == pytest.approx([value * 100 for value in drawn.layout.xaxis.range])
    assert drawn.layout.yaxis4.range == pytest.approx((-3.6, 103.6))
    assert {"40.0", "60.0"} <= set(texts(drawn))


@pytest.mark.parametrize(
    ("df", "words"),
    [
        (five().assign(relevancy_score=np.nan), "b  no pairs"),
        (long({"a": [0.5], "b": [0.75]}), "b  +0.25, no interval 1 won, 0 tied, 0 lost of 1"),
        (long({"a": [0.5] * 3, "b": [0.5] * 3}), "b  +0, no interval 0 won, 3 tied, 0 lost of 3; p 1.00"),
    ],
)
def test_figure_compare_of_next_to_nothing_is_drawn(df, words):
    drawn = figure(df)
    assert words in texts(drawn)
    assert all(np.isfinite(drawn.layout.xaxis.range))


def test_figure_compare_escapes_names_and_items():
    bad = "</script><img src=x onerror=alert(1)>"
    df = pd.DataFrame({"id": [bad, "q"] * 2, "prompt": [bad, bad, "b", "b"], f"{bad}_score": [0.5, 0.5, 1.0, 0.5], bad: [bad] * 4})
    for drawn in (figure(df, by=bad), figure(df, baseline="b")):
        assert "<img" not in page(drawn)
        assert "</script" not in page(drawn)


def test_figure_compare_long_names_keep_their_ends():
    drawn = figure(long({"a" * 60: [0.1, 0.5], "prompt number " * 4 + "7": [0.2, 0.4]}))
    assert any(text.startswith("prompt number …ompt number 7  ") for text in texts(drawn))


@pytest.mark.parametrize("given", [pd.DataFrame(), None, 1])
def test_figure_compare_of_anything_else_raises(given):
    with pytest.raises(ArgumentTypeError, match="figure_compare: the first argument must be what compare returned"):
        figure_compare(given)


def test_figure_compare_unknown_score_raises():
    with pytest.raises(UnknownOptionError, match="score='tone' is not known; choose one of 'relevancy'"):
        figure_compare(found(five()), score="tone")
    with pytest.raises(OptionRangeError, match="at least one name"):
        figure_compare(found(five()), score=[])
