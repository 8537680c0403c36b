"""summarize: literal tables for small frames."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from scorekit.analysis.summary import summarize
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError

NAN = float("nan")
COLUMNS = ["mean", "ci_low", "ci_high", "n", "unscored", "errors", "min", "median", "max", "judges"]


def scored():
    return pd.DataFrame(
        {
            "variant": ["a", "b", "a", "b", "a", None],
            "relevancy_score": [1.0, 0.0, 0.5, NAN, NAN, 0.25],
            "relevancy_reason": pd.array(["r"] * 6, dtype="string"),
            "relevancy_error": pd.array([None, None, None, "judge_timeout", "not_scorable", None], dtype="string"),
            "relevancy_judge": pd.array(["local"] * 6, dtype="string"),
            "tone_score": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
        }
    )


def test_summarize_gives_one_row_per_score():
    result = summarize(scored())
    assert list(result.columns) == ["score", *COLUMNS]
    assert result[["score", "mean", "n", "unscored", "errors", "min", "median", "max", "judges"]].to_dict("list") == {
        "score": ["relevancy", "tone"],
        "mean": [0.4375, pytest.approx(0.35)],
        "n": [4, 6],
        "unscored": [2, 0],
        "errors": ["judge_timeout: 1, not_scorable: 1", ""],
        "min": [0.0, 0.1],
        "median": [0.375, 0.35],
        "max": [1.0, 0.6],
        "judges": ["local", ""],
    }
    assert result.loc[1, "ci_low"] == pytest.approx(0.15366857, abs=1e-8)


def test_summarize_dtypes_are_fixed():
    expected = {"score": "string", **dict.fromkeys(["mean", "ci_low", "ci_high", "min", "median", "max"], "float64")}
    expected |= {"n": "int64", "unscored": "int64", "errors": "string", "judges": "string"}
    for frame in (scored(), scored().iloc[:0]):
        assert {column: str(dtype) for column, dtype in summarize(frame).dtypes.items()} == expected


def test_summarize_by_groups_in_order_of_first_row_and_keeps_missing():
    result = summarize(scored(), by="variant", scores="relevancy")
    assert result["variant"].tolist()[:2] == ["a", "b"]
    assert pd.isna(result["variant"][2])
    assert result["mean"].tolist() == [0.75, 0.0, 0.25]
    assert result["n"].tolist() == [2, 1, 1]
    assert result["errors"].tolist() == ["not_scorable: 1", "judge_timeout: 1", ""]


def test_summarize_by_categories_comes_in_their_order_without_empty_ones():
    df = scored().assign(variant=pd.Categorical(["a", "b", "a", "b", "a", None], categories=["b", "empty", "a"], ordered=True))
    result = summarize(df, by="variant", scores=["tone"])
    assert result["variant"].astype(object).fillna("?").tolist() == ["b", "a", "?"]
    assert result["variant"].dtype == df["variant"].dtype


def test_summarize_by_two_columns_gives_each_pair():
    df = scored().assign(language=["en", "en", "ja", "ja", "en", "en"])
    result = summarize(df, by=["language", "variant"], scores="tone")
    assert result["language"].tolist() == ["en", "en", "en", "ja", "ja"]
    assert result["variant"].fillna("?").tolist() == ["a", "b", "?", "a", "b"]
    assert result["n"].tolist() == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("key", [[1, "x", 1, "x", 1, 2.5], pd.to_datetime(["2026-01-01"] * 3 + ["2026-01-02"] * 3), [True, False] * 3])
def test_summarize_by_any_hashable_kind_works(key):
    result = summarize(scored().assign(key=key), by="key", scores="tone")
    assert result["n"].sum() == 6


@pytest.mark.parametrize("index", [[0, 0, 1, 1, 2, 2], list("zyxwvu"), pd.MultiIndex.from_product([["a", "b"], [1, 1, 2]])])
def test_summarize_index_does_not_matter(index):
    pd.testing.assert_frame_equal(summarize(scored().set_axis(index), by="variant"), summarize(scored(), by="variant"))


def test_summarize_filtered_frame_counts_its_rows_only():
    df = scored()
    assert summarize(df[df["variant"] == "b"], scores="relevancy")[["n", "unscored"]].to_numpy().tolist() == [[1, 1]]


def test_summarize_empty_frame_gives_n_0_and_nan():
    result = summarize(scored().iloc[:0])
    assert result["n"].tolist() == [0, 0]
    assert result[["mean", "ci_low", "ci_high", "min", "median", "max"]].isna().all(axis=None)


def test_summarize_empty_frame_by_group_gives_no_rows():
    result = summarize(scored().iloc[:0], by="variant")
    assert list(result.columns) == ["score", "variant", *COLUMNS]
    assert len(result) == 0


def test_summarize_all_unscored_gives_nan_and_the_codes():
    df = pd.DataFrame({"x_score": [NAN, NAN], "x_reason": ["", ""], "x_error": ["judge_error", "judge_error"]})
    result = summarize(df)
    assert np.isnan(result.loc[0, "mean"])
    assert result.loc[0, ["n", "unscored", "errors"]].tolist() == [0, 2, "judge_error: 2"]


def test_summarize_errors_come_most_frequent_first():
    df = pd.DataFrame({"x_score": [NAN] * 4, "x_error": ["not_scorable", "judge_timeout", "cancelled", "judge_timeout"]})
    assert summarize(df).loc[0, "errors"] == "judge_timeout: 2, cancelled: 1, not_scorable: 1"


def test_summarize_mixed_judges_are_listed():
    df = scored().assign(relevancy_judge=["local", "openai/gpt-5-mini", "local", None, "local", "local"])
    assert summarize(df, scores="relevancy").loc[0, "judges"] == "local, openai/gpt-5-mini"
    assert summarize(df, by="variant", scores="relevancy")["judges"].tolist() == ["local", "openai/gpt-5-mini", "local"]


@pytest.mark.parametrize("dtype", ["Float64", "float32", "double[pyarrow]"])
def test_summarize_any_float_dtype_is_read(dtype):
    df = pd.DataFrame({"x_score": pd.array([0.5, None, 1.0], dtype=dtype)})
    assert summarize(df).loc[0, ["mean", "n", "unscored"]].tolist() == [0.75, 2, 1]


def test_summarize_changes_nothing():
    df = scored()
    before = df.copy(deep=True)
    summarize(df, by="variant")
    pd.testing.assert_frame_equal(df, before)


def test_summarize_unscored_frame_raises_and_says_what_to_do():
    with pytest.raises(MissingColumnError, match=r"needs a column '<name>_score' of numbers; the frame has 'input'\. Score it first"):
        summarize(pd.DataFrame({"input": ["a"]}))


@pytest.mark.parametrize("name", ["relevancey", "Relevancy"])
def test_summarize_unknown_score_raises_with_the_nearest(name):
    with pytest.raises(MissingColumnError, match="Did you mean 'relevancy'"):
        summarize(scored(), scores=name)


def test_summarize_takes_the_column_s_name_for_the_scorer_s():
    pd.testing.assert_frame_equal(summarize(scored(), scores="relevancy_score"), summarize(scored(), scores="relevancy"))


def test_summarize_interval_stays_where_scores_can_be():
    df = pd.DataFrame({"tone_score": [0.9, 1.0, 1.0], "rate_score": [9.0, 10.0, 10.0]})
    found = summarize(df).set_index("score")
    assert found.loc["tone", "ci_high"] == 1.0
    assert found.loc["rate", "ci_high"] > 10
    assert summarize(df, scores="rate", scale=10)["ci_high"].tolist() == [10.0]


def test_summarize_unknown_group_raises_with_the_nearest():
    with pytest.raises(MissingColumnError, match=r"needs a column 'varient'.*Did you mean by='variant'"):
        summarize(scored(), by="varient")


def test_summarize_by_a_column_named_like_a_result_raises():
    with pytest.raises(ColumnConflictError, match="cannot group by 'n'"):
        summarize(scored().assign(n=1), by="n")


def test_summarize_doubled_score_raises():
    df = pd.DataFrame([[0.1, 0.2]], columns=["x_score", "x_score"])
    with pytest.raises(ColumnConflictError, match="2 columns of that name"):
        summarize(df, scores="x")


def test_summarize_by_a_column_of_lists_raises():
    with pytest.raises(ArgumentTypeError, match="'tags' cannot make groups"):
        summarize(scored().assign(tags=[["a"]] * 6), by="tags")


def test_summarize_text_score_raises():
    with pytest.raises(ArgumentTypeError, match="'x_score' must hold numbers"):
        summarize(pd.DataFrame({"x_score": ["high"]}), scores="x")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"confidence": "0.9"}, ArgumentTypeError, "confidence must be a number, not str"),
        ({"confidence": True}, ArgumentTypeError, "confidence must be a number, not bool"),
        ({"scale": "1"}, ArgumentTypeError, "scale must be a number, not str"),
        ({"scale": True}, ArgumentTypeError, "scale must be a number, not bool"),
        ({"scale": np.bool_(1)}, ArgumentTypeError, "scale must be a number, not bool"),
        ({"scale": NAN}, OptionRangeError, "scale=nan"),
        ({"scores": []}, OptionRangeError, "at least one name, or None for all"),
        ({"scores": [5]}, ArgumentTypeError, "Each name in scores must be a text, not int"),
        ({"by": [["variant"]]}, ArgumentTypeError, "The name of a column must be a text or another label, not list"),
        ({"by": 0}, MissingColumnError, "summarize needs a column 0; the frame has 'variant'"),
        ({"by": ("variant", 1)}, MissingColumnError, "summarize needs a column 1"),
    ],
)
def test_summarize_option_of_the_wrong_kind_raises(options, error, words):
    with pytest.raises(error, match=words):
        summarize(scored(), **options)


@pytest.mark.parametrize("scale", [10, 10.0, np.int64(10), np.float32(10), Fraction(10)])
def test_summarize_scale_is_any_real_number(scale):
    df = pd.DataFrame({"rate_score": [9.0, 10.0, 10.0]})
    assert summarize(df, scale=scale)["ci_high"].tolist() == [10.0]


@pytest.mark.parametrize("key", [0, 1.5, True, ("a", 1), pd.Timestamp("2026-01-01")])
def test_summarize_by_a_column_of_any_name(key):
    df = scored()
    df[key] = ["x", "x", "y", "y", "y", "y"]
    result = summarize(df, by=[key], scores="tone")
    assert list(result.columns) == ["score", key, *COLUMNS]
    assert result[key].tolist() == ["x", "y"]
    assert result["n"].tolist() == [2, 4]
    pd.testing.assert_frame_equal(summarize(df, by=key, scores="tone"), result)


def test_summarize_by_a_tuple_is_several_columns_where_no_column_has_that_name():
    df = scored().assign(language=["en", "en", "ja", "ja", "en", "en"])
    pd.testing.assert_frame_equal(summarize(df, by=("language", "variant")), summarize(df, by=["language", "variant"]))


def test_summarize_by_nothing_is_one_group():
    pd.testing.assert_frame_equal(summarize(scored(), by=[]), summarize(scored()))


def test_summarize_by_a_number_for_a_text_names_the_text():
    with pytest.raises(MissingColumnError, match=r"needs a column '2026'.*Did you mean by=2026\?"):
        summarize(scored().assign(x=1).rename(columns={"x": 2026}), by="2026")


def test_summarize_missing_category_comes_last_among_more_categories_than_rows():
    df = pd.DataFrame({"g": pd.Categorical([None, "j"], categories=list("abcdefghij")), "x_score": [0.1, 0.2]})
    assert summarize(df, by="g")["mean"].tolist() == [0.2, 0.1]


@pytest.mark.parametrize("part", ["error", "judge"])
def test_summarize_doubled_column_that_is_read_raises(part):
    df = pd.DataFrame([[0.1, "a", "b"]], columns=["tone_score", f"tone_{part}", f"tone_{part}"])
    with pytest.raises(ColumnConflictError, match=f"summarize reads the column 'tone_{part}', but the frame has 2 columns of that name"):
        summarize(df)


def test_summarize_many_groups_have_the_numbers_of_pandas():
    rng = np.random.default_rng(3)
    df = pd.DataFrame({"group": rng.integers(0, 900, 4000), "x_score": np.where(rng.random(4000) < 0.2, NAN, rng.random(4000))})
    expected = df.groupby("group", sort=False)["x_score"].agg(["mean", "count", "min", "median", "max"])
    result = summarize(df, by="group")
    assert result["group"].tolist() == expected.index.tolist()
    np.testing.assert_allclose(result[["mean", "n", "min", "median", "max"]].to_numpy(float), expected.to_numpy(float), rtol=1e-12)


def test_summarize_score_named_twice_is_told_once():
    assert summarize(scored(), scores=["tone", "tone_score"])["score"].tolist() == ["tone"]


def test_summarize_not_a_frame_raises():
    with pytest.raises(ArgumentTypeError, match="pandas DataFrame"):
        summarize([1, 2])


def test_summarize_confidence_out_of_range_raises():
    with pytest.raises(OptionRangeError, match="confidence=95"):
        summarize(scored(), confidence=95)
