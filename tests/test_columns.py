"""Writing and reading result columns."""

import numpy as np
import pandas as pd
import pytest

from scorekit.columns import add_result, bands, read_steps, require, score_names, to_json, unnest
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, UnknownOptionError

RELEVANCY = {
    "relevancy_score": [0.5, np.nan, 0.0],
    "relevancy_reason": ["r", "missing", "empty"],
    "relevancy_error": [None, "missing_input", None],
    "relevancy_statements": ['["Paris.", "Tea."]', None, "[]"],
    "relevancy_results": [
        '[{"statement": 1, "result": "yes", "reason": "a"}, {"statement": 2, "result": "no", "reason": "b"}]',
        None,
        "[]",
    ],
}


def test_require_missing_column_names_the_nearest():
    df = pd.DataFrame(columns=["question", "Answer "])
    with pytest.raises(
        MissingColumnError,
        match=r"score_tone needs a column 'answer'; the frame has 'question', 'Answer '\. Did you mean answer='Answer '\?",
    ):
        require(df, "answer", "score_tone", "answer")


def test_require_doubled_column_raises():
    df = pd.DataFrame([["a", "b"]], columns=["input", "input"])
    with pytest.raises(ColumnConflictError, match="the frame has 2 columns of that name"):
        require(df, "input", "score_tone")


def test_missing_column_error_is_a_key_error_that_reads_plainly():
    error = MissingColumnError.from_columns("f", "a", [])
    assert isinstance(error, KeyError)
    assert str(error) == "f needs a column 'a'; the frame has no columns."


def test_add_result_duplicate_index_keeps_order_and_labels():
    df = pd.DataFrame({"x": [1, 2]}, index=[7, 7])
    added = add_result(df, "a", pd.DataFrame({"a_score": [0.1, 0.2]}), [])
    assert added.index.tolist() == [7, 7]
    assert added["a_score"].tolist() == [0.1, 0.2]
    assert list(df.columns) == ["x"]


def test_add_result_own_columns_are_written_anew():
    df = pd.DataFrame({"a_score": [1.0], "a_reason": ["r"], "a_error": [None], "a_old": [3]})
    added = add_result(df, "a", pd.DataFrame({"a_score": [0.1]}), ["a_score", "a_reason", "a_error", "a_old"])
    assert added.to_dict("list") == {"a_score": [0.1]}


def test_add_result_foreign_column_raises():
    with pytest.raises(ColumnConflictError, match="would write 'a_score', which the frame already has.*Pass name="):
        add_result(pd.DataFrame({"a_score": [1.0]}), "a", pd.DataFrame({"a_score": [0.1]}), ["a_score"])


def test_add_result_keeps_attrs():
    df = pd.DataFrame({"x": [1]})
    df.attrs["origin"] = "here"
    assert add_result(df, "a", pd.DataFrame({"a_score": [0.1]}), []).attrs == {"origin": "here"}


def test_to_json_lone_surrogate_is_written_in_ascii():
    assert to_json(["é"]) == '["é"]'
    assert to_json(["\ud800"]) == '["\\ud800"]'


def test_read_steps_keeps_index_and_missing_cells():
    steps = read_steps(pd.DataFrame(RELEVANCY, index=["x", "x", "y"]), "relevancy_statements")
    assert steps.index.tolist() == ["x", "x", "y"]
    assert steps.tolist() == [["Paris.", "Tea."], None, []]


def test_read_steps_text_that_is_no_json_names_the_row():
    with pytest.raises(ArgumentTypeError, match="'relevancy_reason' has text that is not JSON in row 0"):
        read_steps(pd.DataFrame(RELEVANCY), "relevancy_reason")


def test_unnest_gives_a_row_per_statement_with_the_row_s_index():
    flat = unnest(pd.DataFrame(RELEVANCY, index=["x", "y", "z"]), "relevancy")
    assert flat.index.tolist() == ["x", "x"]
    assert flat.to_dict("list") == {
        "statement_number": [1, 2],
        "statement": ["Paris.", "Tea."],
        "result": ["yes", "no"],
        "reason": ["a", "b"],
    }


def test_unnest_multiindex_is_kept():
    df = pd.DataFrame(RELEVANCY, index=pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["k", "n"]))
    assert unnest(df, "relevancy").index.tolist() == [("a", 1), ("a", 1)]


def test_unnest_unknown_scorer_names_the_choices():
    with pytest.raises(UnknownOptionError, match="'relevance' has none here; the frame has lists of 'relevancy'"):
        unnest(pd.DataFrame(RELEVANCY), "relevance")


def test_score_names_need_numbers():
    assert score_names(pd.DataFrame({"a_score": [1.0], "b_score": ["x"], "_score": [1.0], 3: [1]})) == ["a"]


@pytest.mark.parametrize(
    ("name", "score", "label"),
    [
        ("relevancy", 0.0, "unrelated"),
        ("relevancy", 0.3499, "barely answers"),
        ("relevancy", 0.35, "partially answers"),
        ("relevancy", 0.65, "mostly answers"),
        ("relevancy", 0.999, "mostly answers"),
        ("relevancy", 1.0, "fully answers"),
        ("tone", 0.0, "contradictory"),
        ("tone", 0.35, "mixed"),
        ("tone", 0.55, "mostly consistent"),
        ("tone", 0.75, "very consistent"),
        ("text_difference", 0.0, "different"),
        ("text_difference", 1.0, "identical"),
    ],
)
def test_bands_cut_in_the_middle_of_the_published_gaps(name, score, label):
    assert bands(pd.DataFrame({f"{name}_score": [score]}), name).tolist() == [label]


def test_bands_scale_divides_the_score():
    banded = bands(pd.DataFrame({"relevancy_score": [10.0, 5.0, np.nan]}), "relevancy", scale=10)
    assert banded.tolist()[:2] == ["fully answers", "partially answers"]
    assert banded.isna().tolist() == [False, False, True]
    assert banded.cat.ordered


def test_bands_zero_scale_raises():
    with pytest.raises(OptionRangeError, match="scale=0 is out of range"):
        bands(pd.DataFrame({"relevancy_score": [0.0]}), "relevancy", scale=0)


def test_bands_unknown_score_takes_labels_of_your_own():
    df = pd.DataFrame({"polite_score": [0.1, 0.9]})
    assert bands(df, "polite", labels={0.0: "rude", 0.5: "kind"}).tolist() == ["rude", "kind"]


def test_bands_labels_that_are_none_or_doubled_raise():
    df = pd.DataFrame({"a_score": [0.5]})
    for labels in ({}, {0.0: "x", 0.5: "x"}):
        with pytest.raises(OptionRangeError, match="labels="):
            bands(df, "a", labels=labels)


def test_unnest_row_that_failed_before_its_verdicts_keeps_its_statements():
    df = pd.DataFrame({**RELEVANCY, "relevancy_results": [None, None, "[]"]})
    flat = unnest(pd.concat([pd.DataFrame(RELEVANCY), df], ignore_index=True), "relevancy")
    assert list(flat.columns) == ["statement_number", "statement", "result", "reason"]
    assert flat["statement"].tolist() == ["Paris.", "Tea."] * 2
    assert flat["result"].isna().tolist() == [False, False, True, True]


@pytest.mark.parametrize("rows", [slice(0, 0), slice(1, 2), slice(2, 3)])
def test_unnest_without_any_item_gives_the_same_columns(rows):
    flat = unnest(pd.DataFrame(RELEVANCY).iloc[rows], "relevancy")
    assert flat.shape == (0, 4)
    assert list(flat.columns) == ["statement_number", "statement", "result", "reason"]


def test_unnest_leaves_another_scorer_s_columns_alone():
    other = {f"relevancy_b{column.removeprefix('relevancy')}": values for column, values in RELEVANCY.items()}
    flat = unnest(pd.DataFrame({**RELEVANCY, **other}), "relevancy")
    assert list(flat.columns) == ["statement_number", "statement", "result", "reason"]


def test_add_result_keeps_the_columns_name_and_attrs_with_arrays():
    df = pd.DataFrame({"x": [1]})
    df.columns.name = "kind"
    df.attrs["vector"] = np.array([1, 2])
    added = add_result(df, "a", pd.DataFrame({"a_score": [0.1]}), [])
    assert added.columns.name == "kind"
    assert added.attrs["vector"].tolist() == [1, 2]


def test_to_json_missing_values_are_none():
    assert [to_json(value) for value in (None, float("nan"), pd.NA)] == [None, None, None]
