"""figure_agreement: what is drawn, read from the figure's own numbers and texts."""

import re

import numpy as np
import pandas as pd
import pytest

from scorekit.analysis.agreement import agreement
from scorekit.errors import ArgumentTypeError
from scorekit.widgets.figure_agreement import figure_agreement


def ten():
    """Ten labelled rows at 0.5: four good ones pass and one fails, two bad ones pass and three fail."""
    return pd.DataFrame({"relevancy_score": [0.9, 0.8, 0.7, 0.5, 0.4, 0.9, 0.6, 0.3, 0.2, 0.1], "label": ["pass"] * 5 + ["fail"] * 5})


def figure(df=None, **options):
    return figure_agreement(agreement(ten() if df is None else df, **{"score": "relevancy", "human": "label", **options}))


def traces(drawn):
    return {trace.name: trace for trace in drawn.data if trace.name}


def texts(drawn):
    return [re.sub(r"<[^>]*>", "", annotation.text) for annotation in drawn.layout.annotations]


def page(drawn):
    return drawn.to_json().replace("\\u003c", "<").replace("\\u003e", ">").replace("\\u0026", "&")


def test_figure_agreement_matrix_has_counts_and_shares_of_the_label():
    heat = figure().data[0]
    assert heat.text.tolist() == [["4<br>80 %", "1<br>20 %"], ["2<br>40 %", "3<br>60 %"]]
    # Agreement above 0 (blue), the rest below (orange).
    assert heat.z.tolist() == [[0.8, -0.2], [-0.4, 0.6]]
    assert heat.hovertext[1][0] == "label: fail, relevancy_score: pass<br>2 rows, 40.0 % of the 5 rows that label calls fail"


def test_figure_agreement_matrix_begins_in_the_upper_left_corner():
    drawn = figure()
    assert list(drawn.layout.yaxis.ticktext) == list(drawn.layout.xaxis.ticktext) == ["pass", "fail"]
    assert drawn.layout.yaxis.autorange == "reversed"


def test_figure_agreement_label_without_rows_has_no_share():
    heat = figure(pd.DataFrame({"relevancy_score": [0.9, 0.1], "label": ["yes", "yes"]})).data[0]
    assert heat.text.tolist() == [["1<br>50 %", "1<br>50 %"], ["0", "0"]]


def test_figure_agreement_curve_reaches_over_the_scale():
    lines = traces(figure())
    assert list(lines) == ["TPR", "TNR", "J"]
    assert list(lines["TPR"].x) == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    assert list(lines["TPR"].y) == pytest.approx([1, 1, 1, 1, 1, 0.8, 0.6, 0.6, 0.4, 0.2, 0])
    assert list(lines["TNR"].y) == pytest.approx([0, 0, 0.2, 0.4, 0.6, 0.6, 0.6, 0.8, 0.8, 0.8, 1])
    assert {line.line.shape for line in lines.values()} == {"vh"}


def test_figure_agreement_lower_is_better_turns_the_curve_round():
    df = ten().rename(columns={"relevancy_score": "toxicity_score"}).assign(toxicity_score=lambda rows: 1 - rows["toxicity_score"])
    drawn = figure(df, score="toxicity")
    lines = traces(drawn)
    assert (lines["TPR"].y[0], lines["TPR"].y[-1], lines["TNR"].y[0], lines["TNR"].y[-1]) == (0, 1, 1, 0)
    assert lines["J"].line.shape == "hv"
    assert drawn.layout.xaxis2.title.text == "threshold (a score at or below it passes)"


def test_figure_agreement_marks_the_threshold_used_and_the_best():
    drawn = figure()
    assert [shape.x0 for shape in drawn.layout.shapes] == [0.5, 0.4]
    assert {"used 0.5", "best 0.4: J 0.60"} <= set(texts(drawn))
    assert any("at 0.5: TPR 0.80   TNR 0.60   J 0.40" in text for text in texts(drawn))


def test_figure_agreement_marks_one_line_where_the_threshold_is_the_best():
    drawn = figure(threshold=0.4)
    assert [shape.x0 for shape in drawn.layout.shapes] == [0.4]
    assert "used 0.4, the best" in texts(drawn)


def test_figure_agreement_without_negatives_draws_what_is_known():
    drawn = figure(pd.DataFrame({"relevancy_score": [0.9, 0.1, 0.8], "label": ["yes"] * 3}))
    assert list(traces(drawn)) == ["TPR"]
    assert "used 0.5" in texts(drawn)


def test_figure_agreement_of_labels_is_the_matrix_alone():
    df = pd.DataFrame({"judge": list("aabbcc"), "label": list("aabbca")})
    drawn = figure(df, score="judge")
    assert len(drawn.data) == 1
    assert list(drawn.layout.xaxis.ticktext) == ["a", "b", "c"]


def test_figure_agreement_of_many_classes_shows_counts_alone():
    names = [f"class {number}" for number in range(12)]
    drawn = figure(pd.DataFrame({"judge": names * 2, "label": names * 2}), score="judge")
    assert drawn.data[0].text[0].tolist() == ["2", *["0"] * 11]


def test_figure_agreement_title_says_the_conclusion():
    title = re.sub(r"<[^>]*>", "", figure().layout.title.text.replace("<br>", " "))
    assert title.startswith("relevancy_score and label It cannot be concluded from 10 labelled rows")
    assert title.endswith("Rows: 10 compared.")


def test_figure_agreement_sends_no_more_than_a_few_thousand_points():
    rng = np.random.default_rng(0)
    good = rng.random(20_000) < 0.7
    df = pd.DataFrame({"relevancy_score": np.where(good, rng.beta(5, 2, 20_000), rng.beta(2, 4, 20_000)), "label": good})
    found = agreement(df, score="relevancy", human="label")
    drawn = figure_agreement(found)
    assert len(traces(drawn)["J"].x) <= 2002
    assert max(traces(drawn)["J"].y) == pytest.approx(found.curve["j"].max())
    assert len(page(drawn)) < 300_000


def test_figure_agreement_escapes_names_and_labels():
    bad = "</script><img src=x onerror=alert(1)>"
    df = pd.DataFrame({f"{bad}_score": [0.9, 0.1, 0.8], bad: ["yes", "no", "no"]})
    for drawn in (
        figure(df, score=f"{bad}_score", human=bad),
        figure(pd.DataFrame({"judge": [bad, "b"], "label": [bad, "b"]}), score="judge"),
    ):
        assert "</script" not in page(drawn)
        assert "<img" not in page(drawn)


def test_figure_agreement_equal_long_names_stay_two_classes():
    first, second = "x" * 80 + "1", "x" * 80 + "2"
    drawn = figure(pd.DataFrame({"judge": [first, second], "label": [first, second]}), score="judge")
    assert drawn.data[0].z.shape == (2, 2)
    assert list(drawn.data[0].x) == [0, 1]


@pytest.mark.parametrize("given", [pd.DataFrame(), None, 1])
def test_figure_agreement_of_anything_else_raises(given):
    with pytest.raises(ArgumentTypeError, match="figure_agreement: the first argument must be what agreement returned"):
        figure_agreement(given)
