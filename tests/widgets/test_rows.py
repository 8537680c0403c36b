"""A scored frame as a view reads it: bins, orders, filters, lines and rows in full."""

import decimal
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, UnknownOptionError
from scorekit.widgets.rows import CELL_CHARACTERS, ORDERS, Rows, checked_filters

SURROGATE = "\ud800"


def frame(scores=(0.9, 0.2), **columns):
    """A frame with a tone score and further columns, all of objects unless they are series."""
    count = len(scores)
    given = {"input": [f"q{i}" for i in range(count)], "output": [f"a{i}" for i in range(count)], **columns}
    series = [
        cells.reset_index(drop=True) if isinstance(cells, pd.Series) else pd.Series(list(cells), dtype=object) for cells in given.values()
    ]
    series.append(pd.Series(scores, dtype="float64"))
    df = pd.concat(series, axis=1)
    df.columns = pd.Index([*given, "tone_score"], dtype=object)
    return df


def selected(rows, **filters):
    return np.flatnonzero(rows.mask(checked_filters(filters, rows))).tolist()


# --- bins


def test_bins_of_scores_on_a_border_hold_their_lower_end():
    scores = [0.0, 0.05, 0.1, 0.15, 0.2, 0.29, 0.3, 0.1 * 3, 0.7 - 0.4, 0.35, 0.55, 0.57, 0.58, 0.6, 0.7, 0.85, 0.95, 0.99, 1.0]
    assert Rows(frame(scores)).bins["tone"].tolist() == [0, 1, 2, 3, 4, 5, 6, 6, 6, 7, 11, 11, 11, 12, 14, 17, 19, 19, 19]


def test_bins_every_multiple_of_a_twentieth_has_its_own():
    for scores in ([k / 20 for k in range(20)], [k * 0.05 for k in range(20)], [1 - (20 - k) / 20 for k in range(20)]):
        assert Rows(frame(scores)).bins["tone"].tolist() == list(range(20))


def test_bins_of_scores_outside_0_to_1_span_all_of_them():
    rows = Rows(frame([-10.0, 0.0, 0.5, 29.9, 30.0]))
    assert (rows.scales["tone"].low, rows.scales["tone"].high) == (-10.0, 30.0)
    assert rows.bins["tone"].tolist() == [0, 5, 5, 19, 19]


@pytest.mark.parametrize(
    ("score", "low", "high", "place"), [(0.5, 0, 1, 10), (0.0, 0, 1, 0), (1.0, 0, 1, 19), (7.0, 0, 7, 19), (-3.0, -3, 1, 0)]
)
def test_bins_of_constant_scores_are_one_bin_of_a_scale_with_0_and_1(score, low, high, place):
    rows = Rows(frame([score] * 3))
    assert (rows.scales["tone"].low, rows.scales["tone"].high) == (low, high)
    assert rows.bins["tone"].tolist() == [place] * 3


def test_bins_of_missing_and_infinite_scores_are_none_and_leave_the_scale_alone():
    rows = Rows(frame([np.nan, np.inf, -np.inf, 0.5]))
    assert (rows.scales["tone"].low, rows.scales["tone"].high) == (0.0, 1.0)
    assert rows.bins["tone"].tolist() == [-1, -1, -1, 10]


def test_bins_of_the_largest_floats_do_not_overflow():
    assert Rows(frame([-1e308, 0.0, 1e308])).bins["tone"].tolist() == [0, 10, 19]


def test_histograms_count_all_rows_and_the_kept_with_their_mean():
    rows = Rows(frame([0.0, 0.5, 1.0, np.nan, np.inf]))
    found = rows.histograms(np.array([True, True, False, True, True]))["tone"]
    assert (found["mean"], found["scored"], found["unscored"]) == (0.25, 2, 2)
    assert found["all"] == [1, *[0] * 9, 1, *[0] * 8, 1]
    assert found["kept"] == [1, *[0] * 9, 1, *[0] * 9]


def test_histograms_without_a_score_have_no_mean():
    found = Rows(frame([np.nan, np.nan])).histograms(np.array([True, True]))["tone"]
    assert found == {"all": [0] * 20, "kept": [0] * 20, "mean": None, "scored": 0, "unscored": 2}


# --- orders


def order(rows, name, seed=0):
    return rows.order(name, rows.names[0], seed).tolist()


def test_order_worst_is_the_lowest_first_equal_ones_as_they_stand_and_missing_last():
    assert order(Rows(frame([0.5, np.nan, 0.1, 0.9, 0.1, np.nan])), "worst") == [2, 4, 0, 3, 1, 5]


def test_order_worst_of_a_score_that_is_better_when_lower_is_the_highest_first_and_missing_last():
    rows = Rows(frame([0.5, np.nan, 0.1, 0.9, 0.9]), lower_is_better=frozenset({"tone"}))
    assert order(rows, "worst") == [3, 4, 0, 2, 1]


@pytest.mark.parametrize(("lower", "wanted"), [(False, [2, 3, 0, 1]), (True, [0, 3, 2, 1])])
def test_order_worst_puts_infinite_scores_at_their_end_before_missing_ones(lower, wanted):
    rows = Rows(frame([np.inf, np.nan, -np.inf, 0.5]), lower_is_better=frozenset({"tone"} if lower else ()))
    assert order(rows, "worst") == wanted


def test_order_worst_knows_the_shipped_scores_that_are_better_when_lower():
    df = frame([0.1, 0.9]).rename(columns={"tone_score": "toxicity_score"})
    assert order(Rows(df), "worst") == [1, 0]


def test_order_informative_is_by_spread_then_unsure_share_then_nearness_to_the_middle_and_missing_last():
    parts = {
        "tone_spread": pd.Series([0.0, 0.4, 0.1, 0.0, np.nan, 0.0, 0.9]),
        "tone_yes": pd.Series([1.0, 4.0, 0.0, 3.0, 1.0, 4.0, 1.0]),
        "tone_unsure": pd.Series([0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0]),
        "tone_no": pd.Series([1.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]),
    }
    # 6 has the largest spread but no score; 4 and 3 are unsure of 1/2 and 1/4; 5 is nearer to 0.5 than 0.
    rows = Rows(frame([0.9, 1.0, 0.0, 0.1, 1.0, 0.55, np.nan], **parts))
    assert order(rows, "informative") == [1, 2, 4, 3, 5, 0, 6]


def test_order_informative_takes_the_middle_of_a_scale_beyond_1():
    assert order(Rows(frame([10.0, 0.5, 4.0, 5.5, 0.0])), "informative")[:2] == [3, 2]


def test_order_informative_breaks_ties_by_the_seed():
    rows = Rows(frame([0.5] * 6))
    assert order(rows, "informative", 0) == np.random.default_rng(0).permutation(6).tolist()
    assert order(rows, "informative", 1) == np.random.default_rng(1).permutation(6).tolist()


def test_order_informative_passes_over_parts_that_are_no_numbers():
    rows = Rows(frame([0.9, 0.5], tone_spread=["much", "none"], tone_unsure=["yes", "no"]))
    assert order(rows, "informative") == [1, 0]


def test_order_random_is_the_same_for_a_seed():
    rows = Rows(frame([0.1] * 8))
    assert order(rows, "random", 0) == np.random.default_rng(0).permutation(8).tolist()
    assert order(rows, "random", 7) == np.random.default_rng(7).permutation(8).tolist()


def test_order_frame_is_as_the_rows_stand():
    assert order(Rows(frame([0.9, 0.1, 0.5])), "frame") == [0, 1, 2]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("scores", [[], [0.3], [np.nan] * 4, [1e308, -1e308]])
def test_order_holds_every_row_once(name, scores):
    assert sorted(order(Rows(frame(scores)), name)) == list(range(len(scores)))


# --- filters


def test_mask_of_scores_holds_both_ends_and_no_missing_or_infinite_ones():
    rows = Rows(frame([0.2, 0.3, 0.5, 0.6, np.nan, np.inf, -np.inf]))
    assert selected(rows, scores={"tone": (0.3, 0.5)}) == [1, 2]
    assert selected(rows, scores={"tone": (0.5, 0.3)}) == [1, 2]
    assert selected(rows, scores={"tone": (-np.inf, np.inf)}) == [0, 1, 2, 3]


def test_mask_of_several_filters_is_of_rows_that_all_leave():
    rows = Rows(frame([0.1, 0.2, 0.3, 0.4], kind=["a", "b", "a", "b"], tone_error=["x", None, None, "y"]))
    assert selected(rows, scores={"tone": (0.15, 1)}, groups={"kind": "b"}) == [1, 3]
    assert selected(rows, scores={"tone": (0.15, 1)}, groups={"kind": "b"}, errors={"tone": "any"}) == [3]


def test_mask_of_errors_takes_one_code_or_any():
    rows = Rows(frame([np.nan, 0.2, np.nan], tone_error=pd.Series(["judge_timeout", None, "not_text"], dtype="string")))
    assert selected(rows, errors={"tone": "any"}) == [0, 2]
    assert selected(rows, errors={"tone": "not_text"}) == [2]
    assert selected(rows, errors={"tone": "cancelled"}) == []
    assert rows.error_codes == {"tone": {"judge_timeout": 1, "not_text": 1}}


def test_error_codes_are_the_most_frequent_first_and_scorers_without_are_left_out():
    df = frame([np.nan] * 3, tone_error=["a", "b", "b"], other_error=[None] * 3).assign(other_score=0.5)
    assert list(Rows(df).error_codes["tone"].items()) == [("b", 2), ("a", 1)]
    assert list(Rows(df).error_codes) == ["tone"]


def test_mask_of_groups_reads_values_as_they_are_written():
    rows = Rows(frame([0.1] * 4, good=[True, False, None, True], kind=pd.Series([1, 2, 1, 1])), by=["good", "kind"])
    assert rows.choices == {"good": ["True", "False", "(missing)"], "kind": ["1", "2"]}
    assert selected(rows, groups={"good": True}) == [0, 3]
    assert selected(rows, groups={"good": None}) == [2]
    assert selected(rows, groups={"kind": 2}) == [1]


def test_mask_of_text_is_without_case_and_takes_signs_for_what_they_are():
    rows = Rows(
        frame(
            [0.1] * 4,
            input=["What (a) STRASSE?", "b", "c", "d"],
            output=["x", "the straße.", "A.*B", None],
            other=["a", "b", "a.*b", "(a)"],
        )
    )
    assert selected(rows, text="strasse") == [0, 1]
    assert selected(rows, text="(a)") == [0]
    assert selected(rows, text="a.*b") == [2]
    assert selected(rows, text="zebra") == []


def test_mask_of_text_searches_context_numbers_and_lists():
    rows = Rows(frame([0.1] * 3, context=[["Paris is", "a city"], 4711, None]))
    assert selected(rows, text="a CITY") == [0]
    assert selected(rows, text="471") == [1]


def test_mask_of_text_without_columns_to_read_searches_the_texts_there_are():
    df = pd.DataFrame({"question": ["alpha", "beta"], "n": [7, 8], "tone_score": [0.1, 0.2], "tone_reason": ["gamma", "gamma"]})
    assert selected(Rows(df), text="BETA") == [1]
    assert selected(Rows(df), text="gamma") == []
    assert selected(Rows(df[["n", "tone_score"]]), text="8") == []


def test_mask_without_filters_keeps_all():
    rows = Rows(frame([0.1, np.nan]))
    assert selected(rows) == [0, 1]
    assert checked_filters({"scores": {}, "groups": None, "text": "", "label": None}, rows) == {}


CELLS = st.sampled_from(["Red fox", "red", "FOX hound", "", "(x)", None, 5])


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0, -2.0, np.nan, np.inf]),
            st.sampled_from(["judge_timeout", "not_text", None]),
            st.sampled_from(["a", "b", None]),
            CELLS,
            CELLS,
        ),
        min_size=1,
        max_size=12,
    ),
    st.one_of(st.none(), st.tuples(st.sampled_from([-2.0, 0.0, 0.3, 0.5]), st.sampled_from([0.25, 0.3, 1.0]))),
    st.sampled_from([None, "any", "not_text"]),
    st.sampled_from([None, "a", "b", "(missing)"]),
    st.sampled_from(["", "red", "FOX", "(", "5"]),
)
def test_mask_equals_a_plain_pandas_filter(rows, span, error, group, text):
    df = pd.DataFrame(rows, columns=["tone_score", "tone_error", "kind", "input", "output"])
    df[["input", "output"]] = df[["input", "output"]].astype(object)
    view = Rows(df, by="kind")
    wanted = pd.Series(True, index=df.index)
    filters = {}
    if span is not None:
        filters["scores"] = {"tone": span}
        wanted &= df["tone_score"].between(min(span), max(span))
    if error is not None:
        filters["errors"] = {"tone": error}
        wanted &= df["tone_error"].notna() if error == "any" else df["tone_error"].astype(object) == error
    if group is not None and group in view.choices["kind"]:
        filters["groups"] = {"kind": group}
        wanted &= df["kind"].astype(object).where(df["kind"].notna(), "(missing)") == group
    if text:
        filters["text"] = text
        cells = df[["input", "output"]].map(lambda cell: "" if pd.isna(cell) else str(cell).casefold())
        wanted &= cells["input"].str.contains(text.casefold(), regex=False) | cells["output"].str.contains(text.casefold(), regex=False)
    assert selected(view, **filters) == np.flatnonzero(wanted).tolist()


@pytest.mark.parametrize(
    ("filters", "error", "words"),
    [
        ({"score": {}}, UnknownOptionError, "filters='score' is not known; choose one of 'scores', .* Did you mean 'scores'"),
        ({"scores": {"tune": (0, 1)}}, UnknownOptionError, r"filters\['scores'\]='tune' is not known; choose one of 'tone'"),
        ({"scores": (0, 1)}, ArgumentTypeError, r"filters\['scores'\] must be a dict, not tuple"),
        ({"scores": {"tone": 0.5}}, ArgumentTypeError, "A range of scores must be two numbers, such as"),
        ({"scores": {"tone": (0, 1, 2)}}, ArgumentTypeError, "A range of scores must be two numbers"),
        ({"scores": {"tone": (0, np.nan)}}, OptionRangeError, r"A range of scores=\(0, nan\) is out of range"),
        ({"errors": {"tone": "judge_time"}}, UnknownOptionError, "'judge_time' is not known; .*Did you mean 'judge_timeout'"),
        ({"errors": {"other": "any"}}, UnknownOptionError, r"filters\['errors'\]='other' is not known"),
        ({"groups": {"kind": "c"}}, UnknownOptionError, r"filters\['groups'\]\['kind'\]='c' is not known; choose one of 'a', 'b'"),
        ({"groups": {"kund": "a"}}, UnknownOptionError, "Did you mean 'kind'"),
        ({"cell": "pass"}, ArgumentTypeError, r"filters\['cell'\] must be two labels, people's and the score's"),
        ({"cell": ("a", "b", "c")}, ArgumentTypeError, "must be two labels"),
        ({"cell": 5}, ArgumentTypeError, "must be two labels, .*not int"),
    ],
)
def test_checked_filters_of_what_is_not_there_raise_and_say_what_is(filters, error, words):
    rows = Rows(frame([0.1, 0.2], kind=["a", "b"], tone_error=[None, "other_code"]))
    with pytest.raises(error, match=words):
        checked_filters(filters, rows)


def test_checked_filters_are_plain_values_that_json_carries():
    rows = Rows(frame([0.1, 0.2], kind=["a", "b"]))
    given = {"scores": {"tone": (np.float64(0.5), np.inf)}, "groups": {"kind": "a"}, "text": f"x{SURROGATE}", "label": "fail"}
    found = checked_filters(given, rows)
    assert found == {"scores": {"tone": [0.5, 1.0]}, "groups": {"kind": "a"}, "text": "x\ufffd", "label": "fail"}
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()


# --- columns to filter by


def groups(**columns):
    return list(Rows(frame([0.1] * 20, **columns)).groups)


def test_groups_are_columns_of_texts_and_booleans_with_few_values():
    pairs = ["a", "b"] * 10
    assert groups(
        objects=pairs,
        strings=pd.Series(pairs, dtype="string"),
        arrow=pd.Series(pairs, dtype="string[pyarrow]"),
        category=pd.Series(pairs, dtype="category"),
        booleans=pd.Series([True, False] * 10),
        missing=["a", None] * 5 + ["b", None] * 5,
        twelve=[f"v{i % 12}" for i in range(20)],
    ) == ["objects", "strings", "arrow", "category", "booleans", "missing", "twelve"]


def test_groups_are_no_columns_of_other_kinds():
    assert (
        groups(
            numbers=pd.Series(range(20)),
            thirteen=[f"v{i % 13}" for i in range(20)],
            one=["a"] * 20,
            long=["a" * 41, "b"] * 10,
            lists=[["a"], ["b"]] * 10,
            dates=pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"] * 10)),
            none=[None] * 20,
            label=["pass", "fail"] * 10,
            note=["x", "y"] * 10,
            tags=["x", "y"] * 10,
            tone_reason=["x", "y"] * 10,
            input=["q", "r"] * 10,
        )
        == []
    )


def test_groups_of_lists_after_a_thousand_texts_are_no_groups():
    cells = ["a", "b"] * 600 + [["c"]]
    assert list(Rows(frame([0.1] * len(cells), cells=cells)).groups) == []


def test_groups_of_two_columns_of_one_name_are_no_groups_unless_one_is_named():
    df = frame([0.1, 0.2], kind=["a", "b"])
    doubled = pd.concat([df, df[["kind"]]], axis=1)
    assert list(Rows(doubled).groups) == []
    with pytest.raises(ColumnConflictError, match="'kind', but the frame has 2 columns of that name"):
        Rows(doubled, by="kind")


def test_groups_of_a_column_that_is_not_there_raise_with_the_nearest():
    with pytest.raises(MissingColumnError, match="Did you mean by='kind'"):
        Rows(frame(kind=["a", "b"]), by="kinds")


def test_groups_of_too_many_values_to_choose_from_raise():
    scores = [0.5] * 1001
    with pytest.raises(OptionRangeError, match="by='id' has 1,001 different values; a filter offers at most 1,000"):
        Rows(frame(scores, id=range(1001)), by="id")
    assert len(Rows(frame(scores[1:], id=range(1000)), by="id").choices["id"]) == 1000


def test_groups_are_named_apart_where_labels_read_the_same():
    df = pd.concat([frame([0.1, 0.2]), pd.DataFrame({1: ["a", "b"], "1": ["c", "d"]})], axis=1)
    rows = Rows(df, by=[1, "1"])
    assert rows.choices == {"1": ["a", "b"], "1 (2)": ["c", "d"]}
    assert selected(rows, groups={"1 (2)": "d"}) == [1]


# --- lines and rows in full


def test_line_has_scores_errors_and_how_the_texts_begin():
    rows = Rows(frame([0.9, np.nan], output=["a\n  b\tc", "x" * 161], context=["c", "d"], tone_error=[None, "not_text"]))
    assert rows.line(0) == {
        "position": 0,
        "name": "0",
        "scores": {"tone": 0.9},
        "errors": {"tone": None},
        "texts": {"input": "q0", "output": "a b c"},
    }
    assert rows.line(1)["errors"] == {"tone": "not_text"}
    assert rows.line(1)["scores"] == {"tone": None}
    assert rows.line(1)["texts"]["output"] == "x" * 159 + "…"


@pytest.mark.parametrize(
    ("index", "name"),
    [
        (["b", "b"], "b"),
        (pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["n", None]), "1, x"),
        (pd.Index([7, 8], name="id"), "7"),
        (pd.to_datetime(["2024-01-02", "2024-01-03"]), "2024-01-02 00:00:00"),
        (pd.Index([None, 1.5], dtype=object), "None"),
        (["y" * 90, "z"], "y" * 79 + "…"),
        (pd.Index([f"{SURROGATE}!", "z"], dtype=object), "\ufffd!"),
    ],
)
def test_row_name_is_the_index_label(index, name):
    assert Rows(frame().set_axis(index, axis=0)).row_name(0) == name


@pytest.mark.parametrize("dtype", ["object", "string", "string[python]", "string[pyarrow]", "category"])
def test_line_of_every_dtype_of_texts_is_the_same(dtype):
    df = frame([0.1, 0.2], input=["one", None]).astype({"input": dtype})
    assert [Rows(df).line(i)["texts"]["input"] for i in (0, 1)] == ["one", ""]
    assert [Rows(df).detail(i)["texts"]["input"] for i in (0, 1)] == ["one", None]


def test_line_of_arrow_columns_reads_texts_and_lists():
    pa = pytest.importorskip("pyarrow")
    texts = pd.Series(["one", None], dtype=pd.ArrowDtype(pa.string()))
    lists = pd.Series([["a", "b"], None], dtype=pd.ArrowDtype(pa.list_(pa.string())))
    scores = pd.Series([0.5, None], dtype=pd.ArrowDtype(pa.float64()))
    rows = Rows(frame([0.1, 0.2], input=texts, extra=lists, arrow_score=scores))
    assert rows.line(0)["texts"]["input"] == "one"
    assert rows.detail(0)["cells"] == {"extra": '[\n "a",\n "b"\n]'}
    assert [rows.line(i)["scores"]["arrow"] for i in (0, 1)] == [0.5, None]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (["a", 1, None], '[\n "a",\n 1,\n null\n]'),
        ({"role": "user", "content": "é"}, '{\n "role": "user",\n "content": "é"\n}'),
        (np.array([1, 2]), "[\n 1,\n 2\n]"),
        ({(1, 2): "key that JSON has none for"}, "{(1, 2): 'key that JSON has none for'}"),
        (b"\xff", "b'\\xff'"),
        (5, "5"),
        (True, "True"),
        (pd.Timestamp("2024-01-02"), "2024-01-02 00:00:00"),
        (decimal.Decimal("0.10"), "0.10"),
        ("a\x00b", "a\x00b"),
        (f"a{SURROGATE}b", "a\ufffdb"),
        ([f"a{SURROGATE}b"], '[\n "a\ufffdb"\n]'),
        ("", ""),
        (np.nan, None),
        (pd.NA, None),
        (pd.NaT, None),
        (decimal.Decimal("NaN"), None),
    ],
)
def test_detail_shows_cells_of_every_kind_as_text(cell, text):
    assert Rows(frame(extra=[cell, "x"])).detail(0)["cells"]["extra"] == text
    assert Rows(frame(output=[cell, "x"])).detail(0)["texts"]["output"] == text


def test_detail_of_a_cell_of_10_mb_is_cut_and_says_so():
    cell = "é" * 5_000_000
    rows = Rows(frame(output=[cell, "x"], extra=[[cell], "x"]))
    assert rows.detail(0)["texts"]["output"] == "é" * CELL_CHARACTERS + "\n… 4,980,000 more characters"
    assert len(rows.detail(0)["cells"]["extra"]) < CELL_CHARACTERS + 40
    assert rows.line(0)["texts"]["output"] == "é" * 159 + "…"
    assert Rows(frame(output=["x" * CELL_CHARACTERS, "x"])).detail(0)["texts"]["output"] == "x" * CELL_CHARACTERS


STATEMENTS = json.dumps(["One.", f"Two{SURROGATE}.", "Three."])
RESULTS = json.dumps([{"statement": 1, "result": "yes", "reason": "r"}, {"statement": 2, "result": "no", "reason": None}])


def test_detail_has_each_scorers_result_in_its_parts():
    df = frame(
        tone_reason=["why", None],
        tone_error=[None, "not_text"],
        tone_judge=["local", "local"],
        tone_statements=[STATEMENTS, None],
        tone_results=[RESULTS, None],
        tone_yes=[1, None],
        tone_no=[None, None],
        tone_analyze_prompt=["Judge this.", None],
    )
    rows = Rows(df)
    assert rows.detail(0)["results"] == [
        {
            "name": "tone",
            "lower": False,
            "score": 0.9,
            "reason": "why",
            "error": None,
            "judge": "local",
            "statements": [
                {"text": "One.", "result": "yes", "reason": "r"},
                {"text": "Two\ufffd.", "result": "no", "reason": None},
                {"text": "Three.", "result": None, "reason": None},
            ],
            "steps": {"yes": "1"},
            "prompts": {"analyze": "Judge this."},
        }
    ]
    second = rows.detail(1)["results"][0]
    assert (second["error"], second["statements"], second["steps"], second["prompts"]) == ("not_text", [], {}, {})
    assert rows.detail(0)["cells"] == {}


@pytest.mark.parametrize("cell", ["{", '{"a": 1}', "3", "plain words", "[" * 100_000])
def test_detail_of_statements_that_are_no_list_shows_them_as_a_step_result(cell):
    found = Rows(frame(tone_statements=[cell, None])).detail(0)["results"][0]
    assert found["statements"] == []
    assert found["steps"]["statements"].startswith(cell[:100])


def test_detail_of_verdicts_that_are_no_records_has_none():
    found = Rows(frame(tone_statements=['["a", ["b"]]', None], tone_results=['["yes", 5, null]', None])).detail(0)["results"][0]
    assert [one["text"] for one in found["statements"]] == ["a", '[\n "b"\n]', ""]
    assert {one["result"] for one in found["statements"]} == {None}


def test_detail_does_not_mix_scorers_whose_names_begin_alike():
    parts = {
        "tone_yes": [1, 2],
        "tone_b_score": pd.Series([0.1, 0.2]),
        "tone_b_reason": ["r", "s"],
        "tone_b_error": [None, None],
        "tone_b_yes": [3, 4],
    }
    results = {result["name"]: result for result in Rows(frame(**parts)).detail(0)["results"]}
    assert results["tone"]["steps"] == {"yes": "1"}
    assert results["tone_b"]["steps"] == {"yes": "3"}


def test_detail_of_odd_column_names_shows_every_column_once():
    df = frame([0.1, 0.2])
    odd = pd.concat([df, pd.DataFrame([["a", "b", "c", "d", "e"]] * 2)], axis=1)
    odd.columns = pd.Index([*df.columns, None, np.nan, ("a", 1), "x", "x"], dtype=object, tupleize_cols=False)
    assert Rows(odd).detail(1)["cells"] == {"None": "a", "nan": "b", "('a', 1)": "c", "x": "d", "x (2)": "e"}


def test_detail_leaves_out_what_is_shown_as_marks():
    assert Rows(frame(label=["pass", None], note=["n", None], tags=["t", None], x=["1", "2"])).detail(0)["cells"] == {"x": "1"}


# --- which columns are read


def test_rows_without_scores_raise_with_what_the_frame_has():
    with pytest.raises(MissingColumnError, match="explore needs a column '<name>_score' of numbers; the frame has 'input', 'output'"):
        Rows(frame()[["input", "output"]])


def test_rows_of_columns_in_levels_raise_with_what_the_frame_has():
    df = pd.DataFrame([["q", 0.5]], columns=pd.MultiIndex.from_tuples([("in", "input"), ("tone_score", "")]))
    with pytest.raises(MissingColumnError, match="explore needs a column '<name>_score' of numbers; the frame has"):
        Rows(df)


@pytest.mark.parametrize("part", ["score", "error", "reason", "judge", "statements"])
def test_rows_of_a_result_column_that_is_there_twice_raise(part):
    df = frame(tone_error=[None, None], tone_reason=["r", "s"], tone_judge=["j", "j"], tone_statements=["[]", "[]"])
    with pytest.raises(ColumnConflictError, match=f"'tone_{part}', but the frame has 2 columns of that name"):
        Rows(pd.concat([df, df[[f"tone_{part}"]]], axis=1))


def test_rows_of_a_score_name_that_no_browser_can_be_sent_raise():
    df = frame()
    df.columns = pd.Index(["input", "output", f"{SURROGATE}_score"], dtype=object)
    with pytest.raises(OptionRangeError, match="without lone surrogates; rename the column"):
        Rows(df)


def test_rows_are_known_by_what_is_read_or_by_all_that_is_no_result_and_no_mark():
    df = frame(context=["c", "d"], extra=["x", "y"], label=["pass", None], tone_reason=["r", "s"])
    assert [column.name for column in Rows(df).known_by] == ["input", "output", "context"]
    other = df.rename(columns={"input": "a", "output": "b", "context": "c"})
    assert [column.name for column in Rows(other).known_by] == ["a", "b", "c", "extra"]
