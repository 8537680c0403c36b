"""side_by_side(): what each message of the browser does, what the next cell reads, and that the caller's frame stays as it is."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit.analysis.compare import compare
from scorekit.analysis.paired import describe_differences
from scorekit.errors import ArgumentTypeError, ColumnConflictError, OptionRangeError, UnknownOptionError
from scorekit.testing import FakeJudge
from scorekit.widgets.export import export_html
from scorekit.widgets.rows import CELL_CHARACTERS, PAGE
from scorekit.widgets.side_by_side import SideBySide, side_by_side

# ipywidgets 8.1.0 to 8.1.3 call a method that traitlets has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Deprecated in traitlets 4.1:DeprecationWarning")

SURROGATE = "\ud800"
BAD = "</script><img src=x onerror=alert(1)>"

BASE = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
GAINS = [0.1, -0.4, 0.0, 0.3, -0.2, 0.5]


def frame(before=BASE, after=None, **columns):
    """Items q0, q1 ... under the prompts "short" and "long"; by default ``long`` gains 0.1, -0.4, 0, 0.3, -0.2 and 0.5."""
    after = [score + gain for score, gain in zip(BASE, GAINS, strict=True)] if after is None else after
    items = [f"q{i}" for i in range(len(before))]
    df = pd.DataFrame(
        {
            "id": items * 2,
            "prompt": ["short"] * len(items) + ["long"] * len(items),
            "input": [f"question {item}" for item in items] * 2,
            "output": [f"{side} of {item}" for side in ("short", "long") for item in items],
            "tone_score": np.array([*before, *after], dtype=np.float64).round(3),
        }
    )
    return df.assign(**columns)


def three(scores):
    """Frames of several variants: variant -> scores by item, None where the item has no row."""
    rows = [
        (f"q{i}", name, f"{name} of q{i}", score) for name, column in scores.items() for i, score in enumerate(column) if score is not None
    ]
    return pd.DataFrame(rows, columns=["id", "prompt", "output", "tone_score"])


def compared(df=None, **options):
    return compare(frame() if df is None else df, **{"variant": "prompt", "item": "id", **options})


def opened(df=None, **options):
    return side_by_side(compared(df), **options)


def send(view, **message):
    """Tell the view something as the browser does."""
    view._handle_custom_msg({"asked": view.shown["asked"] + 1, **message}, [])


def press(view, *messages):
    for message in messages:
        send(view, **message)


def step(by=1):
    return {"do": "step", "by": by}


def vote(name):
    return {"do": "vote", "vote": name}


def names(view):
    return [line["name"] for line in view.shown["lines"]]


def reading(view):
    return view.detail.get("name")


def cast(view):
    """The votes by item."""
    return view.data.set_index("id")["vote"].dropna().to_dict()


def wire(view):
    """What goes to the browser, as bytes; it raises where JSON or UTF-8 cannot carry it."""
    return json.dumps(
        {name: getattr(view, name) for name in ("setup", "scatter", "shown", "detail")}, allow_nan=False, ensure_ascii=False
    ).encode()


# --- what is shown at first


def test_view_opens_the_largest_loss_and_shows_all_pairs():
    view = opened()
    assert names(view) == ["q1", "q4", "q2", "q0", "q3", "q5"]
    shown = view.shown
    assert (shown["total"], shown["kept"], shown["place"], shown["page"], shown["row"], shown["problem"]) == (6, 6, 0, 0, 1, "")
    assert view.detail["outputs"] == {
        "baseline": [["short", True], [" of q1", False]],
        "variant": [["long", True], [" of q1", False]],
    }


def test_setup_names_scores_variants_and_how_many_pairs_each_has():
    df = three({"a": [0.1, 0.2, 0.3], "b": [0.2, None, np.nan], "c": [0.5, 0.5, 0.5]}).assign(brevity_score=0.5)
    assert opened(df).setup == {
        "scores": ["tone", "brevity"],
        "variants": ["b", "c"],
        "pairs": {"tone": {"b": 1, "c": 3}, "brevity": {"b": 2, "c": 3}},
        "baseline": "a",
        "orders": ["losses", "wins", "largest", "frame"],
        "votes": ["baseline", "variant", "tie"],
        "page": 25,
        "readonly": False,
    }


def test_scatter_has_both_scores_and_the_outcome_of_each_pair():
    assert opened(frame([0.5, 0.2, 1.0], [0.7, 0.2, 0.1])).scatter == {
        "low": 0.0,
        "high": 1.0,
        "total": 3,
        "positions": [0, 1, 2],
        "x": [0.5, 0.2, 1.0],
        "y": [0.7, 0.2, 0.1],
        "outcomes": ["win", "tie", "loss"],
    }


def test_numbers_of_all_pairs_are_those_of_the_summary():
    found = compared()
    row = found.summary.iloc[0]
    assert side_by_side(found).shown["numbers"] == {
        "n": 6,
        "wins": 3,
        "ties": 1,
        "losses": 2,
        "mean": pytest.approx(row["difference"], abs=1e-15),
        "low": row["ci_low"],
        "high": row["ci_high"],
    }


@pytest.mark.parametrize(
    ("order", "higher", "lower"),
    [
        ("losses", ["q1", "q4", "q2", "q0", "q3", "q5"], ["q5", "q3", "q0", "q2", "q4", "q1"]),
        ("wins", ["q5", "q3", "q0", "q2", "q4", "q1"], ["q1", "q4", "q2", "q0", "q3", "q5"]),
        ("largest", ["q5", "q1", "q3", "q4", "q0", "q2"], ["q5", "q1", "q3", "q4", "q0", "q2"]),
        ("frame", ["q0", "q1", "q2", "q3", "q4", "q5"], ["q0", "q1", "q2", "q3", "q4", "q5"]),
    ],
)
def test_order_follows_the_direction_of_the_score(order, higher, lower):
    assert names(opened(order=order)) == higher
    assert names(side_by_side(compared(lower_is_better=["tone"]), order=order)) == lower


def test_numbers_of_a_score_that_is_better_when_lower_count_its_falls_as_wins():
    view = side_by_side(compared(lower_is_better=["tone"]))
    assert [view.shown["numbers"][name] for name in ("wins", "ties", "losses")] == [2, 1, 3]
    assert view.shown["better"] == "lower"
    assert view.detail["results"]["variant"][0]["lower"] is True


def test_margin_for_ties_is_that_of_the_comparison():
    view = side_by_side(compared(tie=0.25))
    assert [view.shown["numbers"][name] for name in ("wins", "ties", "losses")] == [2, 3, 1]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"score": "tune"}, UnknownOptionError, "score='tune' is not known; choose one of 'tone'"),
        ({"variant": "short"}, UnknownOptionError, "variant='short' is not known; choose one of 'long'"),
        ({"order": "worst"}, UnknownOptionError, "order='worst' is not known; choose one of 'losses', 'wins', 'largest', 'frame'"),
        ({"save": 3}, ArgumentTypeError, "save must be the path of a file, not int"),
        ({"save": "no/such/folder/votes.jsonl"}, OptionRangeError, "in a folder that is there"),
    ],
)
def test_option_that_cannot_be_used_raises(options, error, words):
    with pytest.raises(error, match=words):
        opened(**options)


def test_frame_in_place_of_a_comparison_raises():
    with pytest.raises(ArgumentTypeError, match=r"what compare\(df, \.\.\.\) returned"):
        side_by_side(frame())


def test_score_may_be_named_by_its_column():
    assert opened(score="tone_score").score == "tone"


def test_items_with_a_column_vote_of_their_own_raise():
    with pytest.raises(ColumnConflictError, match="Rename it before compare"):
        side_by_side(compared(frame().rename(columns={"id": "vote"}), item="vote"))


@pytest.mark.parametrize("column", ["label", "note", "tags"])
def test_column_of_the_items_is_no_vote(column):
    view = side_by_side(compared(frame(**{column: ["tie"] * 12}), cluster=column))
    assert view.votes.to_dict() == {"baseline": 0, "variant": 0, "tie": 0}
    assert view.data["vote"].isna().all()


# --- filters


@pytest.mark.parametrize(
    ("brush", "kept"),
    [
        ([0, 1, 0, 1], ["q0", "q1", "q2"]),
        ([0.2, 0.5, 0.4, 0.6], ["q0", "q1"]),  # both borders of both sides are inside
        ([0.2, 0.4999, 0.4, 0.6], ["q1"]),
        ([0.2, 0.5, 0.4001, 0.6], ["q0"]),
        ([0.2001, 0.5, 0.4, 0.6], ["q0"]),
        ([0.2, 0.5, 0.4, 0.5999], ["q1"]),
        ([0.5, 0.2, 0.6, 0.4], ["q0", "q1"]),
        ([0.51, 0.52, 0, 1], []),
        ([-np.inf, 0.5, -np.inf, np.inf], ["q0", "q1"]),
    ],
)
def test_brush_keeps_the_pairs_within_it_and_on_its_borders(brush, kept):
    view = opened(frame([0.5, 0.2, 0.9], [0.6, 0.4, 0.1]), order="frame")
    send(view, do="filters", filters={"brush": brush})
    assert names(view) == kept
    assert view.selected["id"].tolist() == kept
    assert view.shown["kept"] == len(kept)
    wire(view)


def test_infinite_end_of_a_brush_becomes_the_end_of_the_scores():
    view = opened(frame([0.5, 3.0], [0.6, -2.0]))
    view.filters = {"brush": (-np.inf, np.inf, -np.inf, np.inf)}
    assert view.filters == {"brush": [-2.0, 3.0, -2.0, 3.0]}


@pytest.mark.parametrize(("outcome", "kept"), [("win", ["q0", "q3", "q5"]), ("tie", ["q2"]), ("loss", ["q1", "q4"])])
def test_outcome_keeps_its_pairs(outcome, kept):
    view = opened(order="frame")
    send(view, do="filters", filters={"outcome": outcome})
    assert names(view) == view.selected["id"].tolist() == kept


@pytest.mark.parametrize(
    ("words", "kept"), [("QUESTION Q3", ["q3"]), ("short of q1", ["q1"]), ("LONG of Q5", ["q5"]), ("of q2\nlong", ["q2"]), ("nowhere", [])]
)
def test_text_is_looked_for_in_the_input_and_both_outputs_without_case(words, kept):
    view = opened(order="frame")
    send(view, do="filters", filters={"text": words})
    assert names(view) == view.selected["id"].tolist() == kept


def test_votes_are_filtered_by():
    view = opened(order="frame")
    press(view, vote("tie"), step(), vote("variant"), step(), vote("tie"))
    found = {}
    for wanted in ("tie", "variant", "baseline", "none"):
        send(view, do="filters", filters={"vote": wanted})
        found[wanted] = names(view)
        assert view.selected["id"].tolist() == found[wanted]
    assert found == {"tie": ["q0", "q2"], "variant": ["q1"], "baseline": [], "none": ["q3", "q4", "q5"]}


def test_filters_go_together_and_are_taken_away():
    view = opened()
    view.filters = {"brush": [0, 1, 0.2, 1], "outcome": "loss", "text": "question"}
    assert names(view) == ["q4"]
    view.filters = {"outcome": "", "text": None}
    assert (view.filters, view.shown["kept"]) == ({}, 6)
    view.filters = {"outcome": "win"}
    view.clear()
    assert view.shown["kept"] == 6


@pytest.mark.parametrize(
    ("filters", "error", "words"),
    [
        ({"outcomes": "win"}, UnknownOptionError, "filters='outcomes' is not known; choose one of 'brush', 'outcome', 'text', 'vote'"),
        ({"outcome": "won"}, UnknownOptionError, "choose one of 'win', 'tie', 'loss'"),
        ({"vote": "long"}, UnknownOptionError, "choose one of 'baseline', 'variant', 'tie', 'none'"),
        ({"brush": [0, 1]}, ArgumentTypeError, "four numbers"),
        ({"brush": 1}, ArgumentTypeError, "four numbers"),
        ({"brush": [0, 1, "x", 1]}, ArgumentTypeError, "four numbers"),
        ({"brush": [0, 1, np.nan, 1]}, OptionRangeError, "four numbers"),
    ],
)
def test_filter_that_cannot_be_used_raises_in_python_and_is_told_in_the_browser(filters, error, words):
    view = opened()
    view.filters = {"outcome": "win"}
    with pytest.raises(error, match=words):
        view.filters = filters
    send(view, do="filters", filters=filters)
    assert re.search(words, view.shown["problem"])
    assert (view.filters, view.shown["kept"]) == ({"outcome": "win"}, 3)
    send(view, **step())
    assert view.shown["problem"] == ""


# --- numbers of a part


def counted(deltas):
    return {"wins": int((deltas > 0).sum()), "ties": int((deltas == 0).sum()), "losses": int((deltas < 0).sum())}


@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_brushed_pairs_equal_describe_differences_of_the_selected_rows(seed):
    rng = np.random.default_rng(seed)
    view = side_by_side(compared(frame(rng.integers(0, 11, 80) / 10, rng.integers(0, 11, 80) / 10), confidence=0.9))
    send(view, do="filters", filters={"brush": [0.2, 0.8, 0.1, 0.9]})
    deltas = view.selected["tone_delta"]
    told = describe_differences(deltas, confidence=0.9, resamples=2000)
    assert 10 < len(deltas) < 80
    assert view.shown["numbers"] == {"n": told.n, **counted(deltas), "mean": told.mean, "low": told.low, "high": told.high}


@pytest.mark.parametrize("seed", range(3))
def test_numbers_of_brushed_pairs_in_clusters_equal_describe_differences_with_the_clusters(seed):
    rng = np.random.default_rng(seed)
    topics = rng.choice(list("abcdefghij"), 80).tolist()
    df = frame(rng.integers(0, 11, 80) / 10, rng.integers(0, 11, 80) / 10, topic=topics * 2)
    view = side_by_side(compared(df, cluster="topic"))
    send(view, do="filters", filters={"brush": [0.2, 0.8, 0.1, 0.9]})
    rows = view.selected
    told = describe_differences(rows["tone_delta"], rows["topic"].astype(str), resamples=2000)
    assert told.clusters == 10
    assert view.shown["numbers"] == {"n": told.n, **counted(rows["tone_delta"]), "mean": told.mean, "low": told.low, "high": told.high}


def test_pairs_without_a_cluster_are_one_each_as_in_compare():
    rng = np.random.default_rng(0)
    topics = ["a"] * 10 + ["b"] * 10 + [None] * 20
    view = side_by_side(compared(frame(rng.random(40), rng.random(40), topic=topics * 2), cluster="topic"))
    send(view, do="filters", filters={"text": "question"})
    whole = view.shown["numbers"]
    send(view, do="filters", filters={"brush": [0.1, 0.9, 0.1, 0.9]})
    rows = view.selected
    told = describe_differences(rows["tone_delta"], [f"a{topic}" if isinstance(topic, str) else f"b{at:02}" for at, topic in rows["topic"].items()], resamples=2000)  # fmt: skip
    assert told.clusters == 2 + rows["topic"].isna().sum()
    assert [view.shown["numbers"][end] for end in ("low", "high")] == [told.low, told.high]
    assert whole["low"] == view.found.summary["ci_low"].iloc[0]


def test_numbers_of_a_comparison_in_groups_are_of_all_its_pairs():
    rng = np.random.default_rng(0)
    view = side_by_side(compared(frame(rng.random(40), rng.random(40), language=["en", "de"] * 40), by="language"))
    told = describe_differences(view.data["tone_delta"], resamples=2000)
    assert view.shown["numbers"]["n"] == 40
    assert [view.shown["numbers"][part] for part in ("mean", "low", "high")] == [told.mean, told.low, told.high]


@pytest.mark.parametrize(("brush", "n", "mean"), [([0.51, 0.52, 0, 1], 0, None), ([0, 1, 0.9, 1], 1, 0.5), ([0, 1, 0.75, 0.85], 1, 0.3)])
def test_numbers_of_no_pair_and_of_one_have_no_interval(brush, n, mean):
    view = opened()
    send(view, do="filters", filters={"brush": brush})
    told = view.shown["numbers"]
    assert (told["n"], told["low"], told["high"]) == (n, None, None)
    assert told["mean"] == (mean if mean is None else pytest.approx(mean))


def test_numbers_of_equal_differences_have_no_interval():
    view = opened(frame([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]))
    assert [view.shown["numbers"][end] for end in ("low", "high")] == [None, None]
    send(view, do="filters", filters={"brush": [0.15, 1, 0, 1]})
    assert [view.shown["numbers"][part] for part in ("n", "low", "high")] == [2, None, None]


# --- reading


def test_steps_stop_at_both_ends():
    view = opened(order="frame")
    send(view, **step(-1))
    assert reading(view) == "q0"
    press(view, step(), step(3))
    assert (reading(view), view.shown["place"]) == ("q4", 4)
    press(view, step(), step(), step())
    assert (reading(view), view.shown["place"]) == ("q5", 5)


def test_step_turns_the_page_and_a_page_does_not_step():
    view = opened(frame([0.5] * 60, np.linspace(0, 1, 60)), order="frame")
    send(view, **step(PAGE))
    assert (view.shown["page"], names(view)[0], reading(view)) == (1, "q25", "q25")
    send(view, do="page", page=2)
    assert (view.shown["page"], names(view)[0], reading(view)) == (2, "q50", "q25")
    send(view, do="page", page=9)
    assert view.shown["page"] == 2
    send(view, do="page", page=-1)
    assert view.shown["page"] == 0


def test_opened_point_is_read_though_a_filter_leaves_it_out():
    view = opened(order="frame")
    send(view, do="filters", filters={"outcome": "win"})
    send(view, do="open", position=1)
    assert (reading(view), view.shown["row"], view.shown["place"], view.shown["kept"]) == ("q1", 1, -1, 3)
    send(view, **step())
    assert reading(view) == "q3"


def test_row_that_is_not_there_is_refused():
    view = opened()
    with pytest.raises(UnknownOptionError, match="-1 to 5"):
        view.row = 6
    send(view, do="open", position=6)
    assert "row=6 is not known" in view.shown["problem"]
    assert reading(view) == "q1"


def test_filter_keeps_the_pair_that_is_read_where_it_leaves_it():
    view = opened(order="frame")
    press(view, step(3), {"do": "filters", "filters": {"outcome": "win"}})
    assert (reading(view), view.shown["place"]) == ("q3", 1)
    send(view, do="filters", filters={"outcome": "loss"})
    assert (reading(view), view.shown["place"]) == ("q1", 0)
    send(view, do="filters", filters={"text": "nowhere"})
    assert (view.row, view.detail, view.shown["lines"]) == (-1, {}, [])
    press(view, step(), vote("tie"), {"do": "undo"})
    assert view.row == -1
    send(view, do="filters", filters={})
    assert reading(view) == "q0"


# --- another score, another variant

THREE = {"a": [0.5, 0.5, 0.5, 0.5], "b": [0.6, 0.2, 0.9, 0.4], "c": [None, None, 0.1, None]}


def test_other_variant_drops_the_brush_keeps_the_other_filters_and_reads_the_same_item():
    view = opened(three(THREE), order="wins")
    view.filters = {"brush": [0, 1, 0, 1], "text": "of q"}
    assert reading(view) == "q2"
    send(view, do="variant", variant="c")
    assert view.filters == {"text": "of q"}
    assert (reading(view), view.shown["variant"], view.shown["total"], view.row) == ("q2", "c", 1, 0)
    assert view.detail["outputs"]["variant"] == [["c", True], [" of q2", False]]
    assert view.selected["variant"].tolist() == ["c"]


def test_variant_with_fewer_pairs_opens_its_first_while_a_high_row_was_open():
    view = opened(three(THREE), order="frame")
    send(view, **step(3))
    assert view.row == 3
    view.variant = "c"
    assert (view.row, reading(view), names(view)) == (0, "q2", ["q2"])
    view.variant = "b"
    assert reading(view) == "q2"


def test_other_score_has_its_own_pairs_numbers_and_reads_the_same_item():
    df = frame(brevity_score=[0.5] * 6 + [0.6, np.nan, 0.4, 0.9, 0.5, 0.5])
    view = opened(df)
    send(view, **step())
    assert reading(view) == "q4"
    send(view, do="score", score="brevity")
    assert (reading(view), view.row, view.shown["total"]) == ("q4", 3, 5)
    assert [view.shown["numbers"][name] for name in ("wins", "ties", "losses")] == [2, 2, 1]
    assert view.scatter["positions"] == [0, 1, 2, 3, 4]
    view.score = "tone"
    assert (reading(view), view.row) == ("q4", 4)


def test_who_listens_to_filters_hears_of_them_with_the_new_pairs():
    view = opened(three(THREE))
    view.filters = {"brush": [0, 1, 0, 1]}
    heard = []
    view.observe(lambda change: heard.append((change["new"], view.selected["id"].tolist())), names=["filters"])
    view.variant = "c"
    assert heard == [({}, ["q2"])]


@pytest.mark.parametrize(("trait", "value"), [("score", "tune"), ("variant", "a"), ("variant", 3)])
def test_score_or_variant_that_is_not_there_is_refused(trait, value):
    view = opened(three(THREE))
    before = getattr(view, trait)
    with pytest.raises(UnknownOptionError, match=f"{trait}={value!r} is not known"):
        setattr(view, trait, value)
    assert getattr(view, trait) == before


@pytest.mark.parametrize("labels", [[1, 2, 3], [0.5, 1.5, 2.5], [BAD, 2, "한 국"], pd.Categorical(["u", "v", "w"])])
def test_variants_of_any_kind_are_named_in_the_browser_and_taken_by_those_names(labels):
    prompts = pd.Series(list(labels) * 2, dtype=getattr(labels, "dtype", object))
    df = pd.DataFrame({"id": ["q0"] * 3 + ["q1"] * 3, "prompt": prompts, "tone_score": [0.1, 0.3, 0.5, 0.2, 0.4, 0.6]})
    view = side_by_side(compare(df, variant="prompt", item="id"))
    second, third = view.setup["variants"]
    send(view, do="variant", variant=third)
    assert view.variant == list(labels)[2]
    assert view.scatter["y"] == [0.5, 0.6]
    send(view, do="variant", variant=second)
    assert view.variant == list(labels)[1]
    assert len(view.selected) == 2
    assert view.shown["variant"] == second
    wire(view)
    repr(view).encode("utf-8", "surrogatepass")


def test_variant_without_a_scored_pair_shows_none():
    df = three({"a": [0.5, 0.5], "b": [0.6, 0.4], "c": [np.nan, np.nan]})
    view = opened(df, variant="c")
    assert view.shown["numbers"] == {"n": 0, "wins": 0, "ties": 0, "losses": 0, "mean": None, "low": None, "high": None}
    assert (view.row, view.detail, view.scatter["total"], len(view.selected), len(view.data)) == (-1, {}, 0, 0, 4)
    press(view, step(), step(-1), {"do": "page", "page": 1}, vote("tie"), {"do": "undo"}, {"do": "order", "order": "largest"})
    press(view, {"do": "filters", "filters": {"text": "x", "vote": "none", "brush": [0, 1, 0, 1]}})
    assert view.shown["problem"] == ""
    assert "0 of 0 pairs" in repr(view)
    wire(view)
    view._repr_mimebundle_()
    send(view, do="variant", variant="b")
    assert view.shown["total"] == 2


# --- one pair in full

REPLIES = {
    "preprocess": {"statements": ["Paris.", "Buy shoes."]},
    "analyze": {"results": [{"statement": 1, "result": "yes", "reason": "A city."}, {"statement": 2, "result": "no", "reason": "Off."}]},
    "generate_reason": {"reason": "Half of it."},
}


def test_pair_of_a_judged_score_has_reasons_and_statements_of_both_sides():
    texts = {"input": ["Capital?"] * 2, "output": ["Paris. Buy shoes.", ""], "prompt": ["a", "b"], "id": ["q", "q"]}
    view = side_by_side(compare(sk.score_relevancy(pd.DataFrame(texts), judge=FakeJudge(REPLIES)), variant="prompt", item="id"))
    before, after = (view.detail["results"][side][0] for side in ("baseline", "variant"))
    assert (before["score"], before["reason"], before["judge"]) == (0.5, "Half of it.", "fake")
    assert [statement["text"] for statement in before["statements"]] == ["Paris.", "Buy shoes."]
    assert (after["score"], after["statements"]) == (0.0, [])
    assert after["reason"] != before["reason"]


def told(view):
    """Both sides' texts, scores and reasons of the pair that is read."""
    row = view.detail
    return {
        side: ("".join(text for text, _ in row["outputs"][side]), row["results"][side][0]["score"], row["results"][side][0]["reason"])
        for side in ("baseline", "variant")
    }


INDEXES = {
    "duplicates": [7] * 12,
    "levels": pd.MultiIndex.from_product([["x", "y"], range(6)]),
    "floats": np.linspace(0, 1, 12),
}


@pytest.mark.parametrize("index", list(INDEXES))
def test_pair_shows_its_own_rows_whatever_the_index(index):
    df = frame(tone_reason=[f"reason {i}" for i in range(12)]).set_axis(INDEXES[index])
    view = opened(df.sample(frac=1, random_state=3), order="frame")
    found = {}
    for _ in range(6):
        found[reading(view)] = told(view)
        send(view, **step())
    sides = {side: df[df["prompt"] == side].set_index("id") for side in ("short", "long")}
    first = df.sample(frac=1, random_state=3)["prompt"].iloc[0]
    ways = {"baseline": first, "variant": "long" if first == "short" else "short"}
    assert found == {
        f"q{i}": {
            way: (f"{side} of q{i}", sides[side].loc[f"q{i}", "tone_score"], sides[side].loc[f"q{i}", "tone_reason"])
            for way, side in ways.items()
        }
        for i in range(6)
    }


def test_pair_of_repeats_has_the_mean_score_and_the_first_row_and_says_of_how_many():
    df = pd.concat([frame(), frame(after=[0.9] * 6).iloc[6:].assign(output="again")])
    view = opened(df, order="frame")
    assert view.detail["variant"] == pytest.approx((0.6 + 0.9) / 2)
    assert view.detail["repeats"] == {"baseline": 1, "variant": 2}
    assert told(view)["variant"] == ("long of q0", 0.6, None)


def test_items_of_several_columns_are_named_by_all():
    df = frame(language=["en", "de", "en", "de", "en", "de"] * 2)
    assert reading(side_by_side(compared(df, item=["id", "language"]), order="frame")) == "q0 · en"


def test_columns_with_tuples_for_names_are_read():
    df = frame().set_axis(pd.Index([("id", 1), "prompt", "input", ("out", 1), "tone_score"], dtype=object, tupleize_cols=False), axis=1)
    view = side_by_side(compare(df, variant="prompt", item=[("id", 1)], output=("out", 1)), order="frame")
    assert (reading(view), told(view)["variant"][0]) == ("q0", "long of q0")
    assert view.data.columns[0] == ("id", 1)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_outputs_are_empty(missing):
    df = frame()
    df["output"] = pd.Series([missing] + ["text"] * 11, dtype=object)
    df.loc[6, "input"] = df.loc[0, "input"] = missing
    view = opened(df, order="frame")
    assert view.detail["outputs"] == {"baseline": [], "variant": [["text", True]]}
    assert (view.detail["input"], view.shown["lines"][0]["input"]) == ("", "")
    send(view, do="filters", filters={"text": "nan"})
    assert view.shown["kept"] == 0


def test_frame_without_texts_has_empty_ones():
    view = opened(three(THREE).drop(columns="output"))
    assert view.detail["outputs"] == {"baseline": [], "variant": []}
    wire(view)


def test_long_outputs_are_cut_and_it_is_said():
    df = frame()
    df.loc[6, "output"] = "word " * 10_000
    view = opened(df, order="frame")
    text = told(view)["variant"][0]
    assert text == f"{'word ' * 4000}\n… {50_000 - CELL_CHARACTERS:,} more characters"


# --- votes


def test_vote_is_kept_in_a_column_beside_the_rows():
    view = opened(order="frame")
    press(view, vote("variant"), step(), vote("baseline"), step(), vote("tie"))
    assert cast(view) == {"q0": "variant", "q1": "baseline", "q2": "tie"}
    assert view.votes.to_dict() == {"baseline": 1, "variant": 1, "tie": 1}
    assert view.shown["votes"] == {"baseline": 1, "variant": 1, "tie": 1}
    assert [line["vote"] for line in view.shown["lines"]] == ["variant", "baseline", "tie", None, None, None]
    assert view.detail["vote"] == "tie"


@pytest.mark.parametrize("part", ["data", "selected"])
def test_data_and_selected_are_the_rows_of_the_comparison_with_the_column_vote(part):
    view = opened()
    rows = getattr(view, part)
    pd.testing.assert_frame_equal(rows.drop(columns="vote"), view.found.rows)
    assert list(rows.columns) == [*view.found.rows.columns, "vote"]
    assert rows["vote"].dtype == "string"
    assert rows["vote"].isna().all()


def test_same_vote_again_takes_it_back_and_another_replaces_it():
    view = opened(order="frame")
    press(view, vote("tie"), vote("tie"))
    assert cast(view) == {}
    press(view, vote("tie"), vote("variant"))
    assert cast(view) == {"q0": "variant"}


def test_undo_takes_votes_back_and_opens_their_pairs():
    view = opened(order="frame")
    press(view, vote("tie"), vote("variant"), step(2), vote("baseline"), step(), {"do": "undo"})
    assert (reading(view), cast(view), view.shown["undo"]) == ("q2", {"q0": "variant"}, True)
    press(view, {"do": "undo"})
    assert (reading(view), cast(view)) == ("q0", {"q0": "tie"})
    press(view, {"do": "undo"}, {"do": "undo"})
    assert (cast(view), view.shown["undo"], view.shown["problem"]) == ({}, False, "")


def test_vote_that_is_none_is_told():
    view = opened()
    send(view, **vote("long"))
    assert "'baseline', 'variant', 'tie'" in view.shown["problem"]
    assert cast(view) == {}


def test_vote_takes_its_pair_out_of_the_filter_and_leaves_its_place_to_the_next():
    view = opened(order="frame")
    send(view, do="filters", filters={"vote": "none"})
    press(view, step(), vote("tie"))
    assert (reading(view), view.shown["place"], view.shown["kept"], view.shown["numbers"]["n"]) == ("q1", -1, 5, 5)
    assert view.selected["id"].tolist() == names(view) == ["q0", "q2", "q3", "q4", "q5"]
    send(view, **step())
    assert reading(view) == "q2"
    send(view, **vote("tie"))
    send(view, **step(-1))
    assert reading(view) == "q0"
    press(view, {"do": "undo"})
    assert (reading(view), view.shown["kept"], view.shown["place"]) == ("q2", 5, 1)


def test_votes_on_two_variants_are_counted_together_and_kept_apart():
    view = opened(three(THREE), order="frame")
    press(view, {"do": "open", "position": 2}, vote("tie"), {"do": "variant", "variant": "c"})
    assert view.detail["vote"] is None
    press(view, vote("variant"))
    assert view.data.dropna(subset="vote")[["variant", "vote"]].to_numpy().tolist() == [["b", "tie"], ["c", "variant"]]
    assert view.shown["votes"] == {"baseline": 0, "variant": 1, "tie": 1}
    press(view, {"do": "undo"}, {"do": "undo"})
    assert view.votes.sum() == 0
    assert view.shown["variant"] == "c"


def test_saved_votes_are_there_in_a_new_view_of_the_rows_in_another_order(tmp_path):
    path = tmp_path / "votes.jsonl"
    view = opened(order="frame", save=path)
    press(view, vote("variant"), step(), vote("tie"), step(), vote("baseline"), vote("baseline"), step(), vote("tie"), {"do": "undo"})
    again = opened(frame().iloc[[5, 4, 3, 2, 1, 0, 11, 10, 9, 8, 7, 6]], save=path)
    assert cast(again) == {"q0": "variant", "q1": "tie"}
    assert again.shown["votes"] == {"baseline": 0, "variant": 1, "tie": 1}
    assert again.shown["save"] == "votes.jsonl"


def test_saved_votes_are_not_those_of_other_outputs(tmp_path):
    path = tmp_path / "votes.jsonl"
    send(opened(order="frame", save=path), **vote("variant"))
    assert cast(opened(frame(output="other"), save=path)) == {}


def test_vote_that_cannot_be_saved_is_told_and_does_not_count(tmp_path):
    view = opened(save=tmp_path / "votes.jsonl")
    (tmp_path / "votes.jsonl").mkdir()
    send(view, **vote("tie"))
    assert "votes.jsonl" in view.shown["problem"]
    assert cast(view) == {}


# --- what is sent


def hostile():
    """Markup and lone surrogates wherever the frame can have a text; scores beyond 0 and 1, and a missing one."""
    bad = BAD + SURROGATE
    texts = {
        "id": [bad, 1, "q2"] * 2,
        "prompt": [f"{BAD}a"] * 3 + [f"{BAD}b"] * 3,
        "input": [bad, 3, bad] * 2,
        "output": [bad, "x", {"a": bad}, f"{bad} {bad}", None, [bad]],
        "tone_reason": [bad, 1, bad] * 2,
        "tone_error": [bad, None, 4] * 2,
        "tone_judge": [BAD] * 6,
        "tone_a_prompt": [bad] * 6,
        "tone_statements": [json.dumps([bad])] * 6,
        "tone_results": [json.dumps([{"statement": 1, "result": bad, "reason": bad}])] * 6,
    }
    # With numbers among them, because pandas 3 takes columns of texts alone for its own texts, which have no lone surrogates.
    df = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in texts.items()})
    return df.assign(**{"tone_score": [0.5, 1e6, np.nan, -0.1, -1e6, 0.3], f"{BAD}_score": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})


@pytest.mark.parametrize("order", ["losses", "wins", "largest", "frame"])
def test_everything_sent_is_json_and_utf8(order, tmp_path):
    view = side_by_side(compare(hostile(), variant="prompt", item="id"), order=order, save=tmp_path / f"{BAD[9:20]}.jsonl")
    for name in (BAD, "tone"):
        send(view, do="score", score=name)
        for message in (step(), vote("tie"), step(), {"do": "undo"}, {"do": "filters", "filters": {"text": SURROGATE}}, vote(SURROGATE)):
            send(view, **message)
            wire(view)
    assert view.shown["problem"].startswith("label=")


def test_infinite_scores_are_refused_before_there_is_a_view():
    with pytest.raises(OptionRangeError, match="infinite"):
        opened(frame([np.inf] * 6))


def test_largest_scores_are_sent():
    view = opened(frame([1e60, 0.5], [-1e60, 0.5]))
    assert (view.scatter["low"], view.scatter["high"]) == (-1e60, 1e60)
    wire(view)


def test_text_representations_are_escaped_and_utf8():
    view = side_by_side(compare(hostile(), variant="prompt", item="id"))
    bundle, _ = view._repr_mimebundle_()
    json.dumps(bundle, ensure_ascii=False, allow_nan=False).encode()
    assert "<img" not in bundle["text/html"]
    assert "&lt;img" in bundle["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_repr_says_what_is_left():
    view = opened()
    view.filters = {"outcome": "win"}
    assert repr(view) == "SideBySide: tone of long against short, 3 of 6 pairs: 3 wins, 0 ties, 0 losses"


def test_frame_and_comparison_stay_as_they_were():
    df = frame(tone_reason="r")
    found = compared(df)
    before, rows = df.copy(deep=True), found.rows.copy(deep=True)
    view = side_by_side(found)
    press(view, vote("tie"), step(), {"do": "filters", "filters": {"text": "q1", "brush": [0, 1, 0, 1]}}, {"do": "order", "order": "wins"})
    for rows_read in (view.data, view.selected):
        rows_read.loc[:, "tone_delta"] = 9.0
    pd.testing.assert_frame_equal(df, before)
    pd.testing.assert_frame_equal(found.rows, rows)


def test_view_reads_the_frame_as_it_was_compared():
    df = frame(tone_reason="before")
    view = opened(df, order="frame")
    df["tone_reason"] = "after"
    df.loc[:, "tone_score"] = 0.0
    send(view, **step())
    assert told(view)["variant"] == ("long of q1", 0.1, "before")


# --- the page


class Page(HTMLParser):
    """The elements of a page and the text of its first script, which holds the data."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.data, self.within = [], "", False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.within = ("id", "payload") in attrs

    def handle_data(self, data):
        if self.within:
            self.data += data
            self.within = False


def exported(view, tmp_path, **options):
    page = Page(export_html(view, tmp_path / "page.html", **options).read_text(encoding="utf-8"))
    return page, json.loads(page.data)


ELEMENTS = ["html", "head", "meta", "meta", "meta", "title", "style", "body", "main", "h1", "div", "script", "script"]


def test_page_has_every_pair_with_its_numbers_and_votes(tmp_path):
    view = opened(three(THREE), order="frame")
    press(view, vote("tie"), {"do": "filters", "filters": {"brush": [0, 1, 0, 0.7]}})
    page, payload = exported(view, tmp_path)
    assert page.elements == ELEMENTS
    assert [(row["name"], row["of"], row["vote"]) for row in payload["rows"] if row["of"]] == [
        ("q0", "b", "tie"),
        ("q1", "b", None),
        ("q2", "b", None),
        ("q3", "b", None),
        ("q2", "c", None),
    ]
    assert payload["start"] == {"filters": {"brush": [0, 1, 0, 0.7]}, "score": "tone", "variant": "b", "order": "frame"}
    summary = view.found.summary.set_index("variant")
    assert payload["intervals"]["tone"]["b"] == summary.loc["b", ["ci_low", "ci_high"]].tolist()
    assert payload["intervals"]["tone"]["c"] == [None, None]
    assert payload["setup"]["readonly"] is True


def test_page_takes_hostile_texts_for_data(tmp_path):
    view = side_by_side(compare(hostile(), variant="prompt", item="id"))
    page, payload = exported(view, tmp_path, title=BAD)
    assert page.elements == ELEMENTS
    assert BAD in payload["rows"][0]["input"]


def test_page_has_so_many_rows_at_most_the_first_in_the_order_of_reading_and_says_so(tmp_path):
    _, payload = exported(opened(), tmp_path, most_rows=2)
    assert [row["name"] for row in payload["rows"]] == ["q1", "q4"]
    assert [row["position"] for row in payload["rows"]] == [0, 1]
    assert payload["setup"]["pairs"] == {"tone": {"long": 6}}  # so the page knows that its interval would be of more than it has
    assert "The first 2 of 6 rows in the order of reading." in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_page_of_no_scored_pair_is_written(tmp_path):
    _, payload = exported(opened(three({"a": [0.5], "b": [np.nan]})), tmp_path)
    assert [row["of"] for row in payload["rows"]] == [None]


def test_view_of_a_frame_shown_twice_is_two_views():
    found = compared()
    first, second = side_by_side(found), side_by_side(found)
    send(first, **vote("tie"))
    assert isinstance(second, SideBySide)
    assert cast(second) == {}
