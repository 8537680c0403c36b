"""Figures: what is drawn, read from the figure's own numbers and texts."""

import re

import numpy as np
import pandas as pd
import pytest

from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, UnknownOptionError
from scorekit.widgets.figures import figure_scores, figure_statements

NAN = float("nan")


def texts(figure):
    return [annotation.text for annotation in figure.layout.annotations]


def title(figure):
    """The title and the subtitle as one line."""
    return re.sub(r"<[^>]*>", "", figure.layout.title.text.replace("<br>", " "))


def everything(figure):
    return figure.to_json().replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")


def two_scores():
    return pd.DataFrame(
        {
            "variant": ["a", "a", "b", "b"],
            "relevancy_score": [0.0, 1.0, 0.5, NAN],
            "toxicity_score": [0.1, 0.2, 0.3, 0.4],
        }
    )


def test_figure_scores_sends_bin_counts_only():
    df = pd.DataFrame({"tone_score": np.linspace(0, 1, 10_001)})
    (bars,) = figure_scores(df, bins=10).data
    assert list(bars.y) == [1000] * 9 + [1001]


def test_figure_scores_borders_belong_to_the_upper_bin():
    df = pd.DataFrame({"x_score": [0.1, 0.3, 0.6, 0.7, 0.29, 1.0]})
    assert list(figure_scores(df, bins=10).data[0].y) == [0, 1, 1, 1, 0, 0, 1, 1, 0, 1]


def test_figure_scores_bins_are_fixed_for_constant_scores():
    bars = figure_scores(pd.DataFrame({"x_score": [0.5] * 7}), bins=4).data[0]
    assert list(bars.x) == [0.125, 0.375, 0.625, 0.875]
    assert list(bars.y) == [0, 0, 7, 0]


def test_figure_scores_scale_stretches_bins_and_bands():
    figure = figure_scores(pd.DataFrame({"relevancy_score": [0.0, 10.0, 5.0]}), scale=10, bins=5)
    assert list(figure.data[0].y) == [1, 0, 1, 0, 1]
    bands = [(shape.x0, shape.x1) for shape in figure.layout.shapes if shape.type == "rect"]
    assert bands == [(0.0, 3.5), (3.5, 6.5), (6.5, 10.0)]


def test_figure_scores_title_counts_unscored_rows_and_tells_direction():
    written = texts(figure_scores(two_scores()))
    assert any("<b>relevancy</b>" in text and "higher is better" in text and "3 scored, 1 unscored" in text for text in written)
    assert any("<b>toxicity</b>" in text and "lower is better" in text and "4 scored, 0 unscored" in text for text in written)


def test_figure_scores_direction_of_a_users_own_score_can_be_told():
    assert any("lower is better" in text for text in texts(figure_scores(pd.DataFrame({"risk_score": [0.1]}), lower_is_better={"risk"})))


def test_figure_scores_marks_the_mean():
    figure = figure_scores(two_scores(), scores="toxicity")
    (line,) = [shape for shape in figure.layout.shapes if shape.type == "line"]
    assert line.x0 == line.x1 == pytest.approx(0.25)
    assert "mean 0.25" in texts(figure)


def test_figure_scores_labels_bands_and_exact_ends():
    figure = figure_scores(two_scores(), scores="relevancy")
    assert {"barely<br>answers", "partially<br>answers", "mostly<br>answers"} <= set(texts(figure))
    assert list(figure.layout.xaxis.ticktext) == ["0<br>unrelated", "0.25", "0.5", "0.75", "1<br>fully answers"]


def test_figure_scores_outside_the_scale_stay_visible():
    df = pd.DataFrame({"x_score": [-0.2, -np.inf, 0.5, 1.5]})
    figure = figure_scores(df, bins=10)
    bars, below, above = figure.data
    assert (list(bars.y), list(below.y), list(above.y)) == ([0, 0, 0, 0, 0, 1, 0, 0, 0, 0], [2], [1])
    assert any("2 below 0, 1 above 1" in text for text in texts(figure))
    assert figure.layout.xaxis.range[0] < below.x[0] < 0
    assert 1 < above.x[0] < figure.layout.xaxis.range[1]
    assert list(figure.layout.xaxis.ticktext)[-2:] == ["&lt;0", "&gt;1"]


def test_figure_scores_by_few_groups_overlays_shares_with_one_legend():
    figure = figure_scores(two_scores(), by="variant", bins=2)
    assert [(trace.name, trace.showlegend) for trace in figure.data] == [("a", True), ("b", True), ("a", False), ("b", False)]
    assert list(figure.data[0].y) == [50.0, 50.0, 50.0]
    assert list(figure.data[1].y) == [0.0, 100.0, 100.0]
    assert any("a <b>0.50</b>" in text and "b <b>0.50</b>" in text for text in texts(figure))


def test_figure_scores_by_many_groups_draws_small_multiples():
    df = pd.DataFrame({"group": list("abcde") * 2, "x_score": np.linspace(0, 1, 10), "y_score": np.linspace(0, 1, 10)})
    figure = figure_scores(df, by="group")
    assert len(figure.data) == 10
    assert figure.layout.showlegend is False
    assert len({axis.range for axis in (figure.layout.yaxis, figure.layout.yaxis3, figure.layout.yaxis9)}) == 1


def test_figure_scores_too_many_groups_draws_the_largest_and_says_so():
    df = pd.DataFrame({"group": [f"g{i // 2}" for i in range(80)] + ["big"] * 5, "x_score": 0.5})
    figure = figure_scores(df, by="group", most_groups=6)
    assert [trace.name for trace in figure.data] == ["g0", "g1", "g2", "g3", "g4", "big"]
    assert "the 6 largest of 41 groups" in title(figure)


def test_figure_scores_missing_group_is_a_group():
    df = pd.DataFrame({"group": ["a", None, ""], "x_score": [0.1, 0.2, 0.3]})
    assert [trace.name for trace in figure_scores(df, by="group").data] == ["a", "(empty)", "(missing)"]


def test_figure_scores_escapes_names_and_groups():
    bad = "</script><img src=x onerror=alert(1)>"
    df = pd.DataFrame({bad: ['<b>"x"</b>', "a & b"], f"{bad}_score": [0.1, 0.2]})
    for layout in ("overlay", "multiples"):
        page = everything(figure_scores(df, by=bad, layout=layout))
        assert "<img" not in page
        assert "</script" not in page
        assert "&lt;img" in page
        assert "a &amp; b" in page


def test_figure_scores_dollar_signs_are_not_tex():
    df = pd.DataFrame({"group": ["$5 or $6"], "x_score": [0.1]})
    assert figure_scores(df, by="group").data[0].name == "&#36;5 or &#36;6"


@pytest.mark.parametrize("by", [None, "variant"])
@pytest.mark.parametrize("rows", [slice(0, 0), slice(3, 4)])
def test_figure_scores_without_scored_rows_says_so(by, rows):
    figure = figure_scores(two_scores().iloc[rows], scores="relevancy", by=by)
    assert "no scored rows" in texts(figure)


def test_figure_scores_changes_nothing():
    df = two_scores()
    before = df.copy(deep=True)
    figure_scores(df, by="variant")
    pd.testing.assert_frame_equal(df, before)


def test_figure_scores_duplicated_index_does_not_matter():
    df = two_scores()
    assert figure_scores(df.set_axis([0, 0, 0, 0]), by="variant").to_json() == figure_scores(df, by="variant").to_json()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scale": 0}, OptionRangeError, "scale=0"),
        ({"scale": np.inf}, OptionRangeError, "scale=inf"),
        ({"bins": 1}, OptionRangeError, "from 2 to 200"),
        ({"most_groups": 0}, OptionRangeError, "most_groups=0"),
        ({"bins": 0}, OptionRangeError, "bins=0"),
        ({"bins": 2.5}, ArgumentTypeError, "bins must be a whole number, not float"),
        ({"bins": True}, ArgumentTypeError, "bins must be a whole number, not bool"),
        ({"most_groups": 2.5}, ArgumentTypeError, "most_groups must be a whole number, not float"),
        ({"scale": "1"}, ArgumentTypeError, "scale must be a number, not str"),
        ({"scores": []}, OptionRangeError, r"scores=\[\] is out of range: it must be at least one name, or None for all"),
        ({"scores": 5}, ArgumentTypeError, "scores must be a name or a list of names, not int"),
        ({"lower_is_better": 5}, ArgumentTypeError, "lower_is_better must be a name or a list of names, not int"),
        ({"by": 0}, MissingColumnError, "needs a column 0; the frame has"),
        ({"layout": "grid"}, UnknownOptionError, "'auto', 'overlay', 'multiples'"),
        ({"scores": "relevance"}, MissingColumnError, "Did you mean 'relevancy'"),
        ({"by": "varient"}, MissingColumnError, "Did you mean by='variant'"),
    ],
)
def test_figure_scores_wrong_use_raises(options, error, words):
    with pytest.raises(error, match=words):
        figure_scores(two_scores(), **options)


def test_figure_scores_overlay_of_five_groups_raises():
    df = pd.DataFrame({"group": list("abcde"), "x_score": 0.5})
    with pytest.raises(OptionRangeError, match="4 at most can be told apart"):
        figure_scores(df, by="group", layout="overlay")


def test_figure_scores_not_a_frame_raises():
    with pytest.raises(ArgumentTypeError, match="pandas DataFrame"):
        figure_scores({"x_score": [1]})


def verdicts():
    return pd.DataFrame(
        {
            "id": ["q1", "q2", "q3", "q4"],
            "variant": ["a", "b", "a", "b"],
            "relevancy_yes": [2.0, 0.0, 1.0, NAN],
            "relevancy_unsure": [0.0, 1.0, 0.0, NAN],
            "relevancy_no": [0.0, 3.0, 1.0, NAN],
        }
    )


def test_figure_statements_draws_shares_worst_first():
    figure = figure_statements(verdicts(), label="id")
    assert list(figure.layout.yaxis.ticktext) == ["q2  (4)", "q3  (2)", "q1  (2)"]
    assert {bar.name: list(bar.x) for bar in figure.data} == {"yes": [0, 50, 100], "unsure": [25, 0, 0], "no": [75, 50, 0]}
    assert {bar.name: list(bar.text) for bar in figure.data} == {"yes": ["", "1", "2"], "unsure": ["1", "", ""], "no": ["3", "1", ""]}


def test_figure_statements_counts_rows_without_statements():
    written = title(figure_statements(verdicts()))
    assert "a yes is good; all 3 rows, worst first, an unsure counted half" in written
    assert "1 rows without statements are not drawn" in written


def test_figure_statements_states_its_limit():
    figure = figure_statements(verdicts(), most=2)
    assert len(figure.data[0].x) == 2
    assert "the 2 worst of 3 rows" in title(figure)


def test_figure_statements_by_group_pools_the_statements():
    figure = figure_statements(verdicts(), by="variant")
    assert list(figure.layout.yaxis.ticktext) == ["b  (4)", "a  (4)"]
    assert {bar.name: list(bar.x) for bar in figure.data} == {"yes": [0, 75], "unsure": [25, 0], "no": [75, 25]}


def test_figure_statements_lower_is_better_turns_order_and_words():
    df = pd.DataFrame({"toxicity_yes": [2.0, 0.0], "toxicity_no": [0.0, 3.0]}, index=["bad", "good"])
    figure = figure_statements(df, "toxicity")
    assert list(figure.layout.yaxis.ticktext) == ["bad  (2)", "good  (3)"]
    assert "a yes is bad" in title(figure)
    relevancy = figure_statements(verdicts())
    assert figure.data[0].marker.color == relevancy.data[2].marker.color


def test_figure_statements_rows_of_one_label_stay_apart():
    figure = figure_statements(verdicts().set_axis(["x"] * 4))
    assert list(figure.data[0].y) == [0, 1, 2]
    assert list(figure.layout.yaxis.ticktext) == ["x  (4)", "x  (2)", "x  (2)"]


def test_figure_statements_escapes_labels():
    df = verdicts().assign(id=["<img src=x onerror=alert(1)>", "a\nb", "$x$", "d"])
    ticks = list(figure_statements(df, label=["id", "variant"]).layout.yaxis.ticktext)
    assert ticks == ["a b · b  (4)", "&#36;x&#36; · a  (2)", "&lt;img src=x onerror=alert(1)&gt; · a  (2)"]


def test_figure_statements_multiindex_names_rows_by_all_levels():
    df = verdicts().set_index(["id", "variant"])
    assert list(figure_statements(df, most=1).layout.yaxis.ticktext) == ["q2 · b  (4)"]


@pytest.mark.parametrize("rows", [slice(0, 0), slice(3, 4)])
def test_figure_statements_without_statements_draws_nothing(rows):
    figure = figure_statements(verdicts().iloc[rows])
    assert [len(bar.x) for bar in figure.data] == [0, 0, 0]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"name": "bias"}, MissingColumnError, "needs the columns 'bias_yes' and 'bias_no'; the frame has verdicts of 'relevancy'"),
        ({"label": "ID"}, MissingColumnError, "Did you mean label='id'"),
        ({"by": "variants"}, MissingColumnError, "Did you mean by='variant'"),
        ({"most": 0}, OptionRangeError, "most=0"),
        ({"most": 2.5}, ArgumentTypeError, "most must be a whole number, not float"),
        ({"name": 5}, ArgumentTypeError, "name must be a scorer's name, not int"),
        ({"label": 0}, MissingColumnError, "needs a column 0; the frame has"),
    ],
)
def test_figure_statements_wrong_use_raises(options, error, words):
    with pytest.raises(error, match=words):
        figure_statements(verdicts(), **options)


def test_figure_statements_text_for_counts_raises():
    with pytest.raises(
        ArgumentTypeError, match=r"the column 'relevancy_yes' must hold counts; it holds string\. Convert it with pd.to_numeric"
    ):
        figure_statements(verdicts().assign(relevancy_yes=["2", "0", "1", None]))


def test_figure_statements_reads_counts_of_any_number_dtype():
    frame = verdicts().assign(
        relevancy_yes=pd.array([2, 0, 1, None], dtype="Int64"), relevancy_no=np.array([0, 3, 1.0, None], dtype=object)
    )
    assert {bar.name: list(bar.x) for bar in figure_statements(frame).data} == {
        "yes": [0, 50, 100],
        "unsure": [25, 0, 0],
        "no": [75, 50, 0],
    }


def test_figure_statements_of_an_unknown_score_says_nothing_about_good_and_bad():
    df = pd.DataFrame({"risk_yes": [2.0, 0.0], "risk_no": [0.0, 3.0]}, index=["q1", "q2"])
    assert title(figure_statements(df, "risk")) == (
        "Verdicts of risk all 2 rows, fewest yes first, an unsure counted half; number of statements in brackets"
    )
    assert "a yes is bad; all 2 rows, worst first" in title(figure_statements(df, "risk", lower_is_better="risk"))


@pytest.mark.parametrize("key", [0, 1.5, ("a", 1), pd.Timestamp("2026-01-01")])
def test_figures_take_columns_of_any_name(key):
    df = verdicts().assign(relevancy_score=[0.1, 0.2, 0.3, 0.4])
    df[key] = ["x", "y", "x", "y"]
    assert [trace.name for trace in figure_scores(df, by=key).data] == ["x", "y"]
    assert list(figure_statements(df, by=key).layout.yaxis.ticktext) == ["y  (4)", "x  (4)"]
    assert list(figure_statements(df, label=[key, "id"]).layout.yaxis.ticktext) == ["y · q2  (4)", "x · q3  (2)", "x · q1  (2)"]


def test_figures_take_an_empty_list_for_none():
    df = verdicts().assign(relevancy_score=[0.1, 0.2, 0.3, 0.4])
    assert figure_scores(df, by=[]).to_json() == figure_scores(df).to_json()
    assert figure_statements(df, by=[], label=[]).to_json() == figure_statements(df).to_json()


def test_figure_scores_with_many_groups_draws_the_largest():
    codes = np.repeat(np.arange(3000), 2)
    df = pd.DataFrame({"group": [*codes, 7], "x_score": 0.5, "x_yes": 1.0, "x_no": 0.0})
    assert "the 1 largest of 3000 groups" in title(figure_scores(df, by="group", most_groups=1))
    assert list(figure_statements(df, "x", by="group", most=1).layout.yaxis.ticktext) == ["7  (3)"]


@pytest.mark.parametrize(
    ("name", "scale", "words"),
    [
        ("text_difference", 1, "1 = identical"),
        ("text_difference", 100, "100 = identical"),
        ("relevancy", 1, "higher is better"),
        ("faithfulness", 1, "higher is better"),
        ("tone", 1, "higher is better"),
        ("toxicity", 1, "lower is better"),
        ("bias", 1, "lower is better"),
        ("hallucination", 1, "lower is better"),
    ],
)
def test_figure_scores_tells_the_direction_of_shipped_scores(name, scale, words):
    assert any(words in text for text in texts(figure_scores(pd.DataFrame({f"{name}_score": [0.5]}), scale=scale)))


def test_figure_scores_says_nothing_about_the_direction_of_others():
    for options in ({}, {"lower_is_better": "risky"}, {"lower_is_better": {"other"}}):
        written = "".join(texts(figure_scores(pd.DataFrame({"risk_score": [0.5]}), **options)))
        assert "better" not in written
        assert "identical" not in written


def test_figures_have_no_width_of_their_own():
    for figure in (figure_scores(two_scores()), figure_statements(verdicts())):
        assert figure.layout.width is None
        assert figure.layout.autosize is True


def test_figure_titles_break_into_lines_for_narrow_screens():
    df = verdicts().assign(relevancy_score=[0.1, 0.2, 0.3, 0.4], long=["a long name of a variant", "another long name of one"] * 2)
    for figure in (figure_statements(df, by="long"), figure_scores(df, by="long")):
        lines = [re.sub(r"<[^>]*>", "", line) for text in (figure.layout.title.text, *texts(figure)) for line in text.split("<br>")]
        assert max(map(len, lines)) <= 50


def test_figure_scores_side_by_side_say_how_wide_they_must_be():
    df = pd.DataFrame({"group": list("abcd"), "x_score": 0.5, "y_score": 0.5})
    assert figure_scores(df, by="group").layout.meta == {"scorekit_least_width": 540}
    assert figure_scores(df).layout.meta == {"scorekit_least_width": 0}
