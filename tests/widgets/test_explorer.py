"""explore(): what each message of the browser does, what the next cell reads, and that the caller's frame stays as it is."""

import copy
import errno
import json
import os
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest
import traitlets
from hypothesis import given, settings
from hypothesis import strategies as st

import scorekit as sk
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, UnknownOptionError
from scorekit.testing import FakeJudge
from scorekit.widgets.explorer import explore
from scorekit.widgets.rows import PAGE

# ipywidgets 8.1.0 to 8.1.3 call a method that traitlets has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:Deprecated in traitlets 4.1:DeprecationWarning")

SURROGATE = "\ud800"
BAD = "</script><img src=x onerror=alert(1)>"


def frame(count=6, **columns):
    """Rows with the scores 0, 1/count ... in turn: the worst first is the frame's order."""
    scores = np.arange(count) / count
    return pd.DataFrame({"input": [f"q{i}" for i in range(count)], "output": [f"a{i}" for i in range(count)], "tone_score": scores}).assign(
        **columns
    )


def send(view, **message):
    """Tell the view something as the browser does."""
    view._handle_custom_msg({"asked": view.shown["asked"] + 1, **message}, [])


def press(view, *messages):
    for message in messages:
        send(view, **message)


def step(by=1):
    return {"do": "step", "by": by}


def label(name):
    return {"do": "label", "label": name}


def tag(name):
    return {"do": "tag", "tag": name}


def note(text):
    return {"do": "note", "note": text}


def positions(view):
    return [line["position"] for line in view.shown["lines"]]


def wire(view):
    """What goes to the browser, as bytes; it raises where JSON or UTF-8 cannot carry it."""
    return json.dumps(
        {name: getattr(view, name) for name in ("setup", "shown", "detail", "marked")}, allow_nan=False, ensure_ascii=False
    ).encode()


def held(view):
    return view.data["tags"].dropna().to_dict()


# --- what is shown at first


def test_view_opens_the_worst_row_and_shows_a_page():
    view = explore(frame(60, tone_score=[0.5] * 30 + [0.1] * 30))
    assert view.row == 30
    assert positions(view) == list(range(30, 55))
    shown = view.shown
    assert (shown["total"], shown["kept"], shown["place"], shown["page"], shown["row"], shown["problem"]) == (60, 60, 0, 0, 30, "")
    assert view.detail["texts"] == {"input": "q30", "output": "a30"}


def test_setup_tells_scores_groups_errors_and_columns_to_read():
    df = frame(2, variant=["a", "b"], tone_error=pd.array([None, "not_text"], dtype="string"), toxicity_score=[3.0, 0.0])
    assert explore(df).setup == {
        "scores": [
            {"name": "tone", "low": 0.0, "high": 1.0, "lower": False},
            {"name": "toxicity", "low": 0.0, "high": 3.0, "lower": True},
        ],
        "bins": 20,
        "page": 25,
        "groups": {"variant": ["a", "b"]},
        "errors": {"tone": {"not_text": 1}},
        "orders": ["worst", "random", "informative", "frame"],
        "labels": ["pass", "fail", "unsure"],
        "texts": ["input", "output"],
        "readonly": False,
    }


def test_view_of_columns_of_other_names_reads_them():
    df = frame(2).rename(columns={"input": "question", "output": "answer"}).assign(docs=["c", "d"])
    view = explore(df, input="question", output="answer", context="docs")
    assert view.detail["texts"] == {"input": "q0", "output": "a0", "context": "c"}
    assert view.shown["lines"][0]["texts"] == {"input": "q0", "output": "a0"}


def test_view_of_tuples_for_names_reads_them():
    df = frame(2).set_axis(pd.Index([("in", 1), None, "tone_score"], dtype=object, tupleize_cols=False), axis=1)
    view = explore(df, input=("in", 1), output=None)
    assert view.detail["texts"] == {"input": "q0", "output": "a0"}
    assert view.detail["cells"] == {}


def test_view_takes_the_scores_that_are_named_and_sorts_by_the_first():
    df = frame(3, other_score=[0.5, 0.4, 0.3])
    view = explore(df, scores=["other", "tone_score"])
    assert [score["name"] for score in view.setup["scores"]] == ["other", "tone"]
    assert positions(view) == [2, 1, 0]


def test_view_takes_what_is_better_when_lower_from_the_caller():
    assert positions(explore(frame(3), lower_is_better="tone")) == [2, 1, 0]


@pytest.mark.parametrize("count", [0, 1])
def test_view_of_no_row_and_of_one(count):
    view = explore(frame(1).iloc[:count])
    press(view, step(), step(-1), {"do": "page", "page": 3}, label("fail"), tag("a"), note("x"), {"do": "order", "order": "random"})
    assert (view.row, view.shown["kept"], view.shown["page"]) == (count - 1, count, 0)
    assert len(view.shown["lines"]) == len(view.selected) == len(view.data) == count
    assert (view.detail == {}) == (count == 0)
    assert view.marked["read"] == count
    press(view, {"do": "undo"}, {"do": "filters", "filters": {"scores": {"tone": [0.5, 1]}}})
    assert (view.row, view.shown["kept"], view.detail) == (-1, 0, {})
    assert "0 of" in repr(view)
    wire(view)
    view._repr_mimebundle_()


def test_view_of_errors_alone_shows_them():
    df = frame(3, tone_score=[np.nan] * 3, tone_error=pd.array(["judge_timeout"] * 3, dtype="string"))
    view = explore(df, order="informative")
    assert view.shown["histograms"]["tone"] == {"all": [0] * 20, "kept": [0] * 20, "mean": None, "scored": 0, "unscored": 3}
    assert [line["errors"]["tone"] for line in view.shown["lines"]] == ["judge_timeout"] * 3
    send(view, do="filters", filters={"errors": {"tone": "judge_timeout"}})
    assert view.shown["kept"] == 3


REPLIES = {
    "preprocess": {"statements": ["Paris.", "Buy shoes."]},
    "analyze": {"results": [{"statement": 1, "result": "yes", "reason": "A city."}, {"statement": 2, "result": "no", "reason": "Off."}]},
    "generate_reason": {"reason": "Half of it."},
}


def test_view_of_a_judged_score_has_its_statements_steps_and_prompts():
    df = pd.DataFrame({"input": ["Capital?"], "output": ["Paris. Buy shoes."]})
    view = explore(sk.score_relevancy(df, judge=FakeJudge(REPLIES), keep_prompts=True))
    (result,) = view.detail["results"]
    assert (result["score"], result["reason"], result["error"], result["judge"]) == (0.5, "Half of it.", None, "fake")
    assert result["statements"] == [
        {"text": "Paris.", "result": "yes", "reason": "A city."},
        {"text": "Buy shoes.", "result": "no", "reason": "Off."},
    ]
    assert (result["steps"]["yes"], result["steps"]["no"]) == ("1.0", "1.0")
    assert list(result["prompts"]) == ["preprocess", "analyze", "generate_reason"]
    assert "<output>\nParis. Buy shoes.\n</output>" in result["prompts"]["preprocess"]
    assert view.detail["cells"] == {}


# --- arguments


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"order": "best"}, UnknownOptionError, "order='best' is not known; choose one of 'worst', 'random', 'informative', 'frame'"),
        ({"input": "inputs"}, MissingColumnError, "explore needs a column 'inputs'; .* Did you mean input='input'"),
        ({"context": "docs"}, MissingColumnError, "explore needs a column 'docs'"),
        ({"output": ["output"]}, ArgumentTypeError, "output must be the name of a column, not list"),
        ({"scores": "tune"}, MissingColumnError, "Did you mean 'tone'"),
        ({"by": "kind"}, MissingColumnError, "explore needs a column 'kind'"),
        ({"tags": [1]}, ArgumentTypeError, "Each name in tags must be a text, not int"),
        ({"save": 1}, ArgumentTypeError, "save must be the path of a file, not int"),
        ({"seed": -1}, OptionRangeError, "seed=-1 is out of range"),
        ({"seed": "x"}, ArgumentTypeError, "seed must be a whole number, not str"),
        ({"lower_is_better": 1}, ArgumentTypeError, "lower_is_better must be a name or a list of names"),
        ({"agreement": "relevancy"}, ArgumentTypeError, r"agreement must be what agreement\(df\) returns, or a function"),
    ],
)
def test_explore_with_an_option_that_cannot_be_used_raises(options, error, words):
    with pytest.raises(error, match=words):
        explore(frame(), **options)


def test_explore_of_no_frame_raises():
    with pytest.raises(ArgumentTypeError, match="explore: the first argument must be a pandas DataFrame, not list"):
        explore([1])


def test_explore_of_a_frame_without_scores_raises():
    with pytest.raises(MissingColumnError, match=r"explore needs a column '<name>_score' of numbers; .*Score it first"):
        explore(frame()[["input", "output"]])


def test_explore_of_columns_that_are_there_twice_raises_where_they_are_read():
    df = frame()
    with pytest.raises(ColumnConflictError, match="explore reads the column 'output', but the frame has 2 columns of that name"):
        explore(pd.concat([df, df[["output"]]], axis=1))
    doubled = pd.concat([df.assign(x="1"), df[["input"]].set_axis(["x"], axis=1)], axis=1)
    assert explore(doubled).data.columns.tolist() == ["input", "output", "tone_score", "x", "x", "label", "note", "tags"]


# --- pages and steps


def test_pages_are_turned_up_to_the_last_and_the_first():
    view = explore(frame(60))
    send(view, do="page", page=1)
    assert positions(view) == list(range(25, 50))
    send(view, do="page", page=99)
    assert (view.shown["page"], positions(view)) == (2, list(range(50, 60)))
    send(view, do="page", page=-1)
    assert (view.shown["page"], view.row) == (0, 0)


def test_page_stays_within_what_a_filter_leaves():
    view = explore(frame(60))
    send(view, do="page", page=2)
    send(view, do="filters", filters={"scores": {"tone": [0, 0.5]}})
    assert (view.shown["page"], view.shown["kept"]) == (0, 31)


def test_page_whose_last_row_a_label_takes_away_is_left():
    view = explore(frame(PAGE + 1))
    view.filters = {"label": "none"}
    press(view, {"do": "page", "page": 1}, label("pass"))
    assert (view.shown["kept"], view.shown["page"], positions(view)) == (PAGE, 0, list(range(1, PAGE + 1)))


def test_page_of_as_many_rows_as_it_holds_is_one():
    view = explore(frame(PAGE))
    send(view, do="page", page=1)
    assert (view.shown["page"], len(view.shown["lines"])) == (0, PAGE)


def test_steps_stop_at_both_ends_and_turn_the_page():
    view = explore(frame(30))
    press(view, step(-1), step(-1))
    assert (view.row, view.shown["place"]) == (0, 0)
    press(view, *[step()] * 25)
    assert (view.row, view.shown["page"], positions(view)) == (25, 1, [25, 26, 27, 28, 29])
    press(view, *[step()] * 9)
    assert (view.row, view.shown["place"]) == (29, 29)
    press(view, step(-5))
    assert (view.row, view.shown["page"]) == (24, 0)


def test_step_follows_the_order_and_the_filters():
    view = explore(frame(6), order="random", seed=3)
    view.filters = {"scores": {"tone": (0, 0.6)}}
    seen = [view.row]
    for _ in range(3):
        send(view, **step())
        seen.append(view.row)
    assert seen == [row for row in np.random.default_rng(3).permutation(6) if row < 4]


def test_open_shows_a_row_and_its_page():
    view = explore(frame(60))
    send(view, do="open", position=40)
    assert (view.row, view.detail["position"], view.shown["row"], view.shown["page"]) == (40, 40, 40, 1)


def test_row_that_is_set_in_python_is_shown_though_no_filter_leaves_it():
    view = explore(frame(6))
    view.filters = {"scores": {"tone": (0, 0.2)}}
    view.row = 5
    assert (view.detail["position"], view.shown["row"], view.shown["place"], positions(view)) == (5, 5, -1, [0, 1])
    send(view, **step())
    assert view.row == 1
    view.row = 5
    send(view, **step(-1))
    assert view.row == 1


def test_row_that_is_not_there_raises():
    view = explore(frame(6))
    for row in (6, -2):
        with pytest.raises(UnknownOptionError, match=f"row={row} is not known; choose one of '-1 to 5'"):
            view.row = row
    assert view.row == 0


def test_row_minus_1_reads_none_and_a_step_opens_the_first():
    view = explore(frame(6))
    view.row = -1
    assert (view.detail, view.shown["place"]) == ({}, -1)
    press(view, label("fail"), tag("a"), note("x"))
    assert view.data["label"].isna().all()
    send(view, **step())
    assert view.row == 0


def test_order_opens_its_first_row():
    view = explore(frame(6))
    send(view, do="open", position=4)
    send(view, do="order", order="random")
    wanted = np.random.default_rng(0).permutation(6).tolist()
    assert (positions(view), view.row, view.shown["order"]) == (wanted, wanted[0], "random")
    view.order = "frame"
    assert positions(view) == [0, 1, 2, 3, 4, 5]


def test_order_turns_to_the_first_page_also_where_the_row_stays():
    view = explore(frame(60))
    send(view, do="page", page=2)
    send(view, do="order", order="frame")
    assert (view.row, view.shown["page"], positions(view)[0]) == (0, 0, 0)


def test_order_that_is_none_raises():
    with pytest.raises(traitlets.TraitError, match="'random'"):
        explore(frame()).order = "best"


def test_answer_bears_the_number_of_its_message_also_where_something_is_wrong():
    view = explore(frame())
    send(view, do="step", by=1, asked=1_700_000_000_000)
    assert view.shown["asked"] == 1_700_000_000_000
    send(view, do="filters", filters={"scores": {"none": [0, 1]}}, asked=1_700_000_000_001)
    assert (view.shown["asked"], view.shown["problem"][:30]) == (1_700_000_000_001, "filters['scores']='none' is no")
    send(view, do="order", order="no such order", asked=1_700_000_000_002)
    assert view.shown["asked"] == 1_700_000_000_002
    send(view, **step())
    assert view.shown["problem"] == ""


def test_message_is_answered_in_one_message(monkeypatch):
    view = explore(frame(), tags=["a"])
    sent = []
    monkeypatch.setattr(view.comm, "publish_msg", lambda *_, data, **__: sent.append(sorted(data["state"])))
    press(view, tag("a"), step(), {"do": "filters", "filters": {"tag": "a"}})
    assert sent == [["detail", "marked", "shown"], ["detail", "shown"], ["detail", "shown"]]


# --- filters


def test_filters_keep_the_row_that_is_read_where_they_leave_it():
    view = explore(frame(60))
    send(view, do="open", position=50)
    send(view, do="filters", filters={"scores": {"tone": [0.5, 1]}})
    assert (view.row, view.shown["place"], view.shown["page"], view.shown["kept"]) == (50, 20, 0, 30)
    send(view, do="filters", filters={"scores": {"tone": [0, 0.5]}})
    assert (view.row, view.shown["place"], view.shown["page"]) == (0, 0, 0)


def test_filters_that_leave_nothing_open_no_row_and_clear_opens_the_first():
    view = explore(frame())
    send(view, do="filters", filters={"text": "zebra"})
    assert (view.row, view.detail, view.shown["lines"], view.shown["kept"]) == (-1, {}, [], 0)
    press(view, step(), label("fail"))
    assert view.row == -1
    view.clear()
    assert (view.row, view.shown["kept"], view.shown["filters"], view.marked["read"]) == (0, 6, {}, 0)


def test_filters_set_in_python_and_by_message_are_told_alike():
    view = explore(frame(6, variant=list("aabbab")))
    view.filters = {"scores": {"tone": (0.2, np.inf)}, "groups": {"variant": "a"}, "text": "", "errors": {}}
    assert view.shown["filters"] == view.filters == {"scores": {"tone": [0.2, 1.0]}, "groups": {"variant": "a"}}
    assert view.selected["input"].tolist() == ["q4"]
    histogram = view.shown["histograms"]["tone"]
    assert (sum(histogram["all"]), sum(histogram["kept"]), histogram["scored"]) == (6, 1, 1)


def test_filters_by_label_and_tag_leave_what_is_written_down():
    view = explore(frame(), tags=["a"])
    press(view, label("fail"), step(), tag("a"), step(), label("pass"), tag("a"))
    found = {}
    for filters in ({"label": "fail"}, {"label": "none"}, {"tag": "a"}, {"tag": "a", "label": "pass"}, {"label": "unsure"}):
        view.filters = filters
        found[str(filters)] = view.selected.index.tolist()
    assert list(found.values()) == [[0], [1, 3, 4, 5], [1, 2], [2], []]


def test_filters_that_do_not_exist_raise_and_leave_those_there_are():
    view = explore(frame(label=["meh", *[None] * 5]), tags=["too long"])
    view.filters = {"label": "meh"}
    for filters, words in (
        ({"label": "good"}, r"filters\['label'\]='good' is not known; choose one of 'none', 'pass', 'fail', 'unsure', 'meh'"),
        ({"tag": "to long"}, r"filters\['tag'\]='to long' is not known; .* Did you mean 'too long'"),
        ({"cell": ("pass", "fail")}, r"filters\['cell'\]=\['pass', 'fail'\] is not known; there is none to choose from"),
    ):
        with pytest.raises(UnknownOptionError, match=words):
            view.filters = filters
    assert view.filters == {"label": "meh"}
    assert view.shown["kept"] == 1


def test_filter_by_a_label_of_the_frames_own_stays_when_its_last_row_leaves_it():
    view = explore(frame(label=["meh", *[None] * 5]))
    view.filters = {"label": "meh"}
    send(view, **label("fail"))
    assert (view.filters, view.shown["kept"], view.row, view.shown["place"]) == ({"label": "meh"}, 0, 0, -1)


def test_row_that_a_label_takes_out_of_the_filter_stays_open_and_leaves_its_place_to_the_next():
    view = explore(frame(6))
    view.filters = {"label": "none"}
    press(view, step(), step(), label("fail"))
    assert (view.row, view.shown["kept"], view.shown["place"], positions(view)) == (2, 5, -1, [0, 1, 3, 4, 5])
    assert (view.detail["position"], view.detail["label"]) == (2, "fail")
    send(view, **step())
    assert (view.row, view.shown["place"]) == (3, 2)
    press(view, label("fail"), step(-1))
    assert view.row == 1
    press(view, step(), step(), label("pass"), step())
    assert view.row == 4  # 5 was the last one: the one before it is opened


def test_rows_labelled_one_after_another_under_a_filter_are_all_reached():
    view = explore(frame(40))
    view.filters = {"label": "none"}
    for _ in range(40):
        press(view, label("pass"), step())
    assert view.data["label"].tolist() == ["pass"] * 40
    assert view.shown["kept"] == 0


# --- what the next cell reads


def test_data_has_the_frames_columns_and_then_the_marks():
    df = frame(3)
    view = explore(df, tags=["a", "b"])
    press(view, label("fail"), tag("b"), tag("a"), step(), note("n"))
    data = view.data
    assert data.columns.tolist() == ["input", "output", "tone_score", "label", "note", "tags"]
    assert data.dtypes.astype(str).tolist()[3:] == ["string"] * 3
    pd.testing.assert_frame_equal(data[df.columns], df)
    assert sk.read_steps(data, "tags").tolist() == [["b", "a"], None, None]
    assert data["note"].tolist() == [pd.NA, "n", pd.NA]


def test_data_takes_the_place_of_columns_that_the_frame_came_with():
    df = frame(3, label=["pass", None, None], tags=[["x"], None, None])[["label", "input", "tags", "output", "tone_score"]]
    view = explore(df)
    assert view.data.columns.tolist() == ["input", "output", "tone_score", "label", "note", "tags"]
    assert held(view) == {0: '["x"]'}
    send(view, **label("fail"))
    assert view.data["label"].tolist() == ["fail", pd.NA, pd.NA]
    again = explore(view.data)
    pd.testing.assert_frame_equal(again.data, view.data)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index(["x", "x", "y"], name="id"),
        pd.MultiIndex.from_tuples([(1, "a"), (1, "a"), (2, "b")], names=["n", "k"]),
        pd.to_datetime(["2024-01-03", "2024-01-01", "2024-01-02"]),
        pd.Index([2.5, None, "z"], dtype=object),
    ],
)
def test_selected_and_data_keep_every_index(index):
    view = explore(frame(3).set_axis(index, axis=0))
    view.row = 2
    send(view, **label("fail"))
    pd.testing.assert_index_equal(view.data.index, index)
    view.filters = {"label": "fail"}
    pd.testing.assert_index_equal(view.selected.index, index[[2]])
    assert view.selected["output"].tolist() == ["a2"]


def test_selected_keeps_dtypes_attrs_and_the_name_of_the_columns():
    df = frame(3, kind=pd.Categorical(["a", "b", "a"]), when=pd.to_datetime(["2024-01-01"] * 3), n=pd.array([1, None, 3], dtype="Int64"))
    df.columns.name = "columns"
    df.attrs = {"from": np.arange(3)}
    view = explore(df)
    view.filters = {"text": "zebra"}
    assert view.selected.dtypes.to_dict() == {
        **df.dtypes.to_dict(),
        **dict.fromkeys(["label", "note", "tags"], pd.Series([""], dtype="string").dtype),
    }
    assert view.selected.columns.name == "columns"
    assert view.data.attrs["from"].tolist() == [0, 1, 2]


def test_selected_and_data_are_the_callers_to_write_in():
    view = explore(frame(3))
    view.filters = {"scores": {"tone": (0, 0.4)}}
    mine = view.selected
    mine["more"] = 1
    mine.loc[0, "output"] = "changed"
    data = view.data
    data["tone_score"] = 0.0
    data.loc[:, "output"] = "changed"
    assert view.data["output"].tolist() == ["a0", "a1", "a2"]
    assert view.data["tone_score"].tolist() == [0, 1 / 3, 2 / 3]


def test_tag_counts_and_saturation_are_frames_of_the_next_cell():
    view = explore(frame(12), tags=["a", "b"])
    for place in range(12):
        press(view, label("fail"), tag("a"), *([tag("c")] if place == 11 else []), step())
    assert view.tag_counts.to_dict("list") == {"tag": ["a", "c", "b"], "rows": [12, 1, 0], "share": [1.0, 1 / 12, 0.0]}
    assert (view.saturation.tolist(), view.saturation.index.tolist(), view.saturation.index.name) == ([1, 1], [1, 2], "ten_rows")
    assert view.marked["saturation"] == [1, 1]
    assert explore(frame()).saturation.tolist() == []


# --- the caller's frame


def odd_frame():
    df = pd.DataFrame(
        {
            "input": pd.array(["q", None, "r", "s"], dtype="string"),
            "output": pd.Series([["a"], {"b": [1]}, None, np.arange(2)], dtype=object),
            "kind": pd.Categorical(["a", None, "b", "a"]),
            "tone_score": [0.5, np.nan, 0.25, 1.0],
            "tone_error": pd.array([None, "not_text", None, None], dtype="string"),
            "label": ["pass", None, None, "meh"],
            "note": [None, "n", None, None],
            "tags": pd.Series([["x"], None, '["y"]', "z"], dtype=object),
        }
    ).set_axis(pd.Index(["r", "r", "s", "t"], name="id"))
    df.attrs = {"run": [1]}
    return df


def use(view, tmp_path):
    """Use everything there is."""
    press(
        view,
        label("fail"),
        tag("new"),
        note("more"),
        step(),
        label("pass"),
        {"do": "undo"},
        {"do": "page", "page": 1},
        {"do": "open", "position": 2},
    )
    for order in ("random", "informative", "frame", "worst"):
        send(view, do="order", order=order)
    view.filters = {
        "scores": {"tone": (0, 1)},
        "errors": {"tone": "any"},
        "groups": {"kind": "a"},
        "text": "q",
        "label": "none",
        "tag": "new",
    }
    view.clear()
    view.rename_tag("new", "newer")
    view.undo()
    sk.export_html(view, tmp_path / "page.html")
    return view.selected, view.data, view.tag_counts, view._repr_mimebundle_(), repr(view)


def test_frame_is_never_changed(tmp_path):
    df = odd_frame()
    before, lists = copy.deepcopy(df), [df["output"].iloc[0], df["tags"].iloc[0]]
    use(explore(df, save=tmp_path / "labels.jsonl", by="kind"), tmp_path)
    pd.testing.assert_frame_equal(df, before)
    assert (df.attrs, df.columns.tolist(), df.index.name) == ({"run": [1]}, before.columns.tolist(), "id")
    assert df["output"].iloc[0] is lists[0]
    assert (lists, df["tags"].iloc[0] is lists[1]) == ([["a"], ["x"]], True)


def test_view_stays_as_it_is_when_the_caller_writes_in_the_frame():
    df = odd_frame()
    view = explore(df, by="kind")
    before, shown, detail = view.data.copy(deep=True), copy.deepcopy(view.shown), copy.deepcopy(view.detail)
    df.loc[:, "tone_score"] = 0.0
    df.iloc[:, 0] = "changed"
    df.loc["r", "output"] = "changed"
    df["kind"] = "changed"
    df["label"] = "fail"
    del df["note"]
    df.columns = list("abcdefg")
    df.index = [0] * len(df)
    pd.testing.assert_frame_equal(view.data, before)
    view.order = "frame"
    view.order = "worst"
    assert (view.shown, view.detail) == (shown, detail)


# --- labels, notes and tags


def test_label_is_taken_away_by_the_same_key():
    view = explore(frame())
    send(view, **label("fail"))
    assert (view.detail["label"], view.shown["lines"][0]["label"], view.marked["labels"]) == (
        "fail",
        "fail",
        {"pass": 0, "fail": 1, "unsure": 0},
    )
    send(view, **label("fail"))
    assert (view.detail["label"], view.data["label"].isna().all(), view.marked["read"]) == (None, True, 0)


def test_undo_takes_back_each_change_and_opens_its_row():
    view = explore(frame(), tags=["a"])
    press(view, label("fail"), step(), tag("a"), step(), note("n"), note("no"), note("not"), step(), step())
    trail = []
    for _ in range(4):
        send(view, do="undo")
        trail.append((view.row, view.data["note"].count(), view.data["tags"].count(), view.data["label"].count(), view.marked["undo"]))
    assert trail == [(2, 0, 1, 1, True), (1, 0, 0, 1, True), (0, 0, 0, 0, False), (0, 0, 0, 0, False)]


def test_note_that_is_taken_up_again_after_another_row_is_a_change_of_its_own():
    view = explore(frame())
    press(view, note("a"), step(), step(-1), note("ab"), {"do": "undo"})
    assert view.data["note"][0] == "a"


def test_note_of_the_row_that_was_left_goes_to_that_row():
    view = explore(frame())
    press(view, step(), {"do": "note", "note": "late", "position": 0})
    assert (view.data["note"].dropna().to_dict(), view.row) == ({0: "late"}, 1)


def test_tags_keep_the_order_of_their_digits():
    view = explore(frame(), tags=["b", "a"])
    press(view, tag("c"), step(), tag("a"), tag("d"))
    assert view.marked["tags"] == [{"tag": "b", "rows": 0}, {"tag": "a", "rows": 1}, {"tag": "c", "rows": 1}, {"tag": "d", "rows": 1}]
    view.rename_tag("c", "z")
    assert [one["tag"] for one in view.marked["tags"]] == ["b", "a", "z", "d"]
    assert held(view) == {0: '["z"]', 1: '["a", "d"]'}


def test_rename_tag_into_another_makes_one_of_two_and_can_be_undone():
    view = explore(frame(), tags=["a", "b"])
    press(view, tag("a"), tag("b"), step(), tag("b"), step())
    view.filters = {"tag": "b"}
    view.rename_tag("b", "a")
    assert (held(view), view.filters, view.shown["kept"]) == ({0: '["a"]', 1: '["a"]'}, {"tag": "a"}, 2)
    assert view.marked["tags"] == [{"tag": "a", "rows": 2}]
    view.clear()
    row = view.row
    view.undo()
    assert (held(view), view.row) == ({0: '["a", "b"]', 1: '["b"]'}, row)
    assert [one["tag"] for one in view.marked["tags"]] == ["a", "b"]
    with pytest.raises(UnknownOptionError, match="tag='c' is not known; choose one of 'a', 'b'"):
        view.rename_tag("c", "d")


def test_filter_by_a_tag_that_is_taken_back_goes_with_it():
    view = explore(frame())
    send(view, **tag("typo"))
    view.filters = {"tag": "typo", "text": "q"}
    send(view, do="undo")
    assert (view.filters, view.shown["filters"], view.shown["kept"]) == ({"text": "q"}, {"text": "q"}, 6)


def test_tag_that_is_none_is_told_and_not_taken():
    view = explore(frame())
    send(view, **tag(" "))
    assert view.shown["problem"].startswith("tag='' is out of range: it must be a text of 1 to 60 characters")
    assert (view.marked["tags"], view.marked["undo"]) == ([], False)
    send(view, **label("great"))
    assert view.shown["problem"].startswith("label='great' is not known; choose one of 'pass', 'fail', 'unsure'")


# --- the file


def test_save_has_each_mark_when_the_message_returns_and_a_new_view_has_them_again(tmp_path):
    path = tmp_path / "labels.jsonl"
    df = frame(30)
    view = explore(df, save=path, tags=["a"])
    assert (view.marked["save"], view.marked["strangers"]) == ("labels.jsonl", 0)
    for message in (
        step(7),
        label("fail"),
        step(-3),
        tag("b"),
        tag("a"),
        note("n"),
        {"do": "undo"},
        step(),
        note("kept"),
        step(),
        label("pass"),
        label("pass"),
    ):
        send(view, **message)
        again = explore(df, save=path, tags=["a"])
        pd.testing.assert_frame_equal(again.data, view.data)
        assert (again.marks.read, again.saturation.tolist()) == (view.marks.read, view.saturation.tolist())
        assert again.marked["tags"] == view.marked["tags"]


def test_save_that_holds_other_rows_says_how_many(tmp_path):
    path = tmp_path / "labels.jsonl"
    view = explore(frame(6), save=path)
    press(view, label("fail"), step(4), label("fail"), step(), label("pass"))
    few = explore(frame(6).iloc[:3], save=path)
    assert (few.marked["strangers"], few.marked["read"]) == (2, 1)
    assert explore(frame(6), save=path).marked["read"] == 3


def test_save_knows_rows_by_their_texts_whatever_the_scores_the_order_and_the_index(tmp_path):
    path = tmp_path / "labels.jsonl"
    df = frame(4, context=[["c"], None, "c", ""])
    view = explore(df, save=path)
    press(view, step(), label("fail"))
    turned = df.iloc[::-1].reset_index(drop=True).assign(tone_score=0.0, other_score=1.0, context=['["c"]', "c", None, "c"][::-1])
    turned["context"] = pd.Series(["", "c", np.nan, '["c"]'], dtype=object)
    assert explore(turned, save=path).data["label"].tolist() == [pd.NA, pd.NA, "fail", pd.NA]


def test_save_of_a_frame_without_columns_to_read_knows_rows_by_what_no_scorer_wrote(tmp_path):
    path = tmp_path / "labels.jsonl"
    df = frame(3).rename(columns={"input": "question", "output": "answer"})
    view = explore(df, save=path)
    press(view, step(), label("fail"))
    assert explore(df.iloc[::-1], save=path).data["label"].tolist() == [pd.NA, "fail", pd.NA]
    assert explore(df.iloc[[1, 0]].assign(tone_score=1.0), save=path).data["label"].tolist() == ["fail", pd.NA]


def test_save_of_something_else_raises(tmp_path):
    (tmp_path / "data.csv").write_text("input,output\n", encoding="utf-8")
    with pytest.raises(OptionRangeError, match="it must be a file of labels that a view has written, or a new file"):
        explore(frame(), save=tmp_path / "data.csv")


def test_save_that_cannot_be_written_is_told_and_the_mark_is_not_taken(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    view = explore(frame(), save=folder / "labels.jsonl")
    send(view, **label("pass"))
    shutil.rmtree(folder)
    for message in (label("fail"), tag("a"), note("n"), {"do": "undo"}):
        send(view, **message)
        assert "No such file or directory" in view.shown["problem"]
        assert (view.detail["label"], view.detail["tags"], view.detail["note"]) == ("pass", [], "")
    folder.mkdir()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    send(view, **label("fail"))
    assert (view.shown["problem"], view.data["label"][0]) == ("[Errno 28] No space left on device", "pass")
    monkeypatch.undo()
    send(view, **label("fail"))
    assert (view.shown["problem"], view.data["label"][0]) == ("", "fail")


def test_save_shared_by_two_views_keeps_what_both_write(tmp_path):
    path = tmp_path / "labels.jsonl"
    one, two = (explore(frame(), save=path) for _ in range(2))
    press(one, label("fail"))
    press(two, step(), label("pass"), step(), tag("a"))
    assert one.data["label"].count() == 1
    assert explore(frame(), save=path).data[["label", "tags"]].count().tolist() == [2, 1]


# --- agreement

COMPARE = partial(sk.agreement, score="tone_score", human="label", threshold=0.5)


def labelled():
    """Scores 0, 1/6 ... 5/6; the labels pass, fail, fail, pass, pass, None: one row in each cell but (pass, pass), which has two."""
    return frame(label=["pass", "fail", "fail", "pass", "pass", None]).assign(tone_score=[0.0, 0.1, 0.6, 0.7, 0.8, 0.9])


def test_agreement_that_was_found_before_is_shown_and_its_cells_filter():
    df = labelled()
    view = explore(df, agreement=COMPARE(df), order="frame")
    matrix = view.marked["matrix"]
    assert (matrix["human"], matrix["score"], matrix["rows"], matrix["columns"]) == (
        "label",
        "tone_score",
        ["pass", "fail"],
        ["pass", "fail"],
    )
    assert matrix["counts"] == [[2, 1], [1, 1]]
    assert len(matrix["remarks"]) == 2
    send(view, do="filters", filters={"cell": ["pass", "pass"]})
    assert (positions(view), view.shown["filters"]) == ([3, 4], {"cell": ["pass", "pass"]})
    view.filters = {"cell": ("fail", "pass"), "text": "q"}
    assert view.selected.index.tolist() == [2]
    view.filters = {"cell": ("missing", "pass")}
    assert view.selected.index.tolist() == [5]


def test_agreement_that_was_found_before_stays_when_a_label_changes():
    df = labelled()
    view = explore(df, agreement=COMPARE(df))
    press(view, label("fail"))
    assert view.marked["matrix"]["counts"] == [[2, 1], [1, 1]]


def test_agreement_cell_that_is_not_there_raises():
    df = labelled()
    view = explore(df, agreement=COMPARE(df))
    with pytest.raises(UnknownOptionError, match="human='passed' is not known; choose one of 'missing', 'unsure', 'pass', 'fail'"):
        view.filters = {"cell": ("passed", "fail")}
    with pytest.raises(ArgumentTypeError, match="two labels, people's and the score's"):
        view.filters = {"cell": "pass"}


def test_agreement_function_is_called_anew_when_a_label_changes_and_then_alone():
    calls = []

    def compare(df):
        calls.append(df["label"].tolist())
        return COMPARE(df)

    view = explore(labelled(), agreement=compare, order="frame")
    assert (view.marked["matrix"]["counts"], len(calls)) == ([[2, 1], [1, 1]], 1)
    press(view, step(5), tag("a"), note("n"), {"do": "filters", "filters": {"tag": "a"}}, {"do": "filters", "filters": {}})
    assert len(calls) == 1
    send(view, **label("pass"))
    assert (view.marked["matrix"]["counts"], len(calls), calls[-1][5]) == ([[3, 1], [1, 1]], 2, "pass")
    assert view.agreement.matrix.to_numpy().tolist() == [[3, 1], [1, 1]]
    send(view, do="undo")
    assert view.marked["matrix"]["counts"] == [[2, 1], [1, 1]]


def test_agreement_cell_filter_follows_the_labels():
    view = explore(labelled(), agreement=COMPARE, order="frame")
    send(view, do="filters", filters={"cell": ["pass", "pass"]})
    assert (view.row, positions(view)) == (3, [3, 4])
    send(view, **label("fail"))
    assert (view.row, positions(view), view.shown["place"]) == (3, [4], -1)
    send(view, **step())
    assert view.row == 4


def test_agreement_of_too_few_labels_leaves_no_matrix_and_says_why():
    view = explore(frame(), agreement=COMPARE)
    assert (view.agreement, view.marked["matrix"]) == (None, None)
    assert view.marked["unmatched"].startswith("agreement has no row to compare")
    press(view, label("pass"))
    assert (view.marked["matrix"]["counts"], view.marked["unmatched"]) == ([[0, 1], [0, 0]], "")
    view.filters = {"cell": ("pass", "fail"), "text": "q"}
    assert view.shown["kept"] == 1
    send(view, do="undo")
    assert (view.marked["matrix"], view.filters, view.shown["kept"]) == (None, {"text": "q"}, 6)


def test_agreement_function_that_fails_on_a_label_leaves_the_label_taken():
    def compare(df):
        if (df["label"] == "unsure").any():
            raise KeyError(f"no {SURROGATE}")
        return COMPARE(df)

    view = explore(labelled(), agreement=compare)
    press(view, label("unsure"))
    assert (view.data["label"][0], view.detail["label"], view.marked["matrix"]) == ("unsure", "unsure", None)
    assert view.marked["unmatched"].startswith("KeyError: ")
    wire(view)
    press(view, label("pass"))
    assert view.marked["matrix"]["counts"] == [[2, 1], [1, 1]]


def test_agreement_function_that_can_never_work_raises_at_once():
    with pytest.raises(MissingColumnError, match="Did you mean"):
        explore(labelled(), agreement=partial(sk.agreement, score="tone_scores", human="label"))
    with pytest.raises(
        ArgumentTypeError, match="agreement must be what agreement.* returns, or a function from a frame to it, not DataFrame"
    ):
        explore(labelled(), agreement=lambda df: df)


def test_agreement_of_another_frame_raises():
    with pytest.raises(ArgumentTypeError, match="agreement is of a frame of 5 rows, and this one has 6"):
        explore(labelled(), agreement=COMPARE(labelled().iloc[:5]))


# --- what goes to the browser


def test_wire_carries_infinite_scores_as_none():
    df = frame(4, tone_score=[np.inf, -np.inf, np.nan, 0.5], b_score=[1e308, -1e308, 1e308, np.nan])
    view = explore(df)
    assert [line["scores"]["tone"] for line in view.shown["lines"]] == [None, 0.5, None, None]
    assert (view.shown["histograms"]["tone"]["mean"], view.shown["histograms"]["tone"]["unscored"]) == (0.5, 3)
    wire(view)
    view._repr_mimebundle_()


TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)


@settings(deadline=None, max_examples=60)
@given(*[TEXTS] * 9, st.sampled_from([0.5, np.nan, np.inf, -np.inf, -1e308, 3]))
def test_wire_carries_every_text_wherever_it_stands(cell, group, index, code, reason, mark, typed, column, words, score):
    df = pd.DataFrame(
        {
            "input": pd.Series([cell, None], dtype=object),
            "output": pd.Series([[cell], {cell: cell}], dtype=object),
            "kind": pd.Series([group, "b"], dtype=object),
            "tone_score": [score, 0.5],
            "tone_reason": pd.Series([reason, None], dtype=object),
            "tone_error": pd.Series([code, None], dtype=object),
            "tone_results": pd.Series([json.dumps([{"result": reason, "reason": reason}]), None], dtype=object),
            "tone_a_prompt": pd.Series([reason, None], dtype=object),
            "label": pd.Series([mark, None], dtype=object),
            "note": pd.Series([mark, None], dtype=object),
            "tags": pd.Series([[mark], mark], dtype=object),
        },
        index=pd.Index([index, "x"], dtype=object),
    )
    df[f"other {column.encode('ascii', 'ignore').decode()}"] = 1
    view = explore(df, by="kind", order="frame")
    wire(view)
    press(
        view,
        note(typed),
        tag(f"t{typed}"),
        label("fail"),
        {"do": "filters", "filters": {"text": words}},
        {"do": "filters", "filters": {"groups": {"kind": "b"}}},
    )
    wire(view)
    view.clear()
    send(view, **step())
    wire(view)
    data, _ = view._repr_mimebundle_()
    json.dumps(data, ensure_ascii=False).encode()


def test_wire_of_a_cell_of_10_mb_is_small():
    df = frame(3, output=["é" * 5_000_000] * 3)
    view = explore(df)
    assert len(wire(view)) < 100_000
    press(view, step(), label("fail"))
    assert view.data["output"][1] == "é" * 5_000_000


# --- where no browser draws it


def test_repr_tells_what_is_shown_and_read():
    view = explore(frame(1200), tags=["a"])
    assert repr(view) == "Explorer: 1,200 of 1,200 rows; 0 read"
    press(view, label("fail"), step(), label("fail"), step(), tag("a"), {"do": "filters", "filters": {"label": "fail"}})
    assert repr(view) == "Explorer: 2 of 1,200 rows; 3 read (2 fail, 1 no label)"


def test_mime_bundle_has_a_plain_summary_beside_the_view():
    view = explore(frame(3), tags=["too long"])
    press(view, label("fail"), tag("too long"))
    data, metadata = view._repr_mimebundle_()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id
    assert data["text/plain"].startswith("Explorer: 3 of 3 rows; 1 read (1 fail)\n\nscore ")
    assert "too long     1    1.0" in data["text/plain"]
    assert data["text/html"].startswith("<p>Explorer: 3 of 3 rows; 1 read (1 fail)</p><table>")
    assert "<td>too long</td>" in data["text/html"]
    assert isinstance(metadata, dict)


def test_mime_bundle_escapes_every_text():
    df = frame(2, tone_error=pd.array([BAD, None], dtype="string"), tone_judge=[BAD] * 2, label=[BAD, None], tags=[[BAD], None]).rename(
        columns={"tone_score": f"{BAD}_score", "tone_error": f"{BAD}_error", "tone_judge": f"{BAD}_judge"}
    )
    data, _ = explore(df)._repr_mimebundle_()
    assert "<img" not in data["text/html"]
    assert data["text/html"].count("&lt;img src=x onerror=alert(1)&gt;") >= 5
