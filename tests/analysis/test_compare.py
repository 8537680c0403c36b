"""compare: small frames worked out by hand, beside plain pandas, and what it refuses."""

import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

import scorekit as sk
from scorekit.analysis.compare import compare
from scorekit.analysis.paired import describe_differences
from scorekit.analysis.power import pairs_needed
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, UnknownOptionError

NAN = float("nan")


def long(scores, items=None, **more):
    """A frame of one score under several variants: ``long({"a": [0.5, 1.0], "b": [1.0, 1.0]})``."""
    parts = [
        pd.DataFrame({"id": items or [f"q{i}" for i in range(1, len(values) + 1)], "prompt": variant, "relevancy_score": values})
        for variant, values in scores.items()
    ]
    return pd.concat(parts, ignore_index=True).assign(**more)


def of(df, **options):
    return compare(df, **{"variant": "prompt", "item": "id", "resamples": 1000, **options})


def row(found, place=0):
    return found.summary.iloc[place].to_dict()


def five():
    """Differences 0.5, 0.0, 0.25, -0.25, 0.5 of b to a."""
    return long({"a": [0.5, 0.5, 0.25, 0.75, 0.0], "b": [1.0, 0.5, 0.5, 0.5, 0.5]})


# The summary


def test_compare_summary_by_hand():
    found = of(five())
    numbers = row(found)
    # Mean 0.2; deviations 0.3, -0.2, 0.05, -0.45, 0.3, squares 0.4250 over 4: 0.325960.
    assert {key: numbers[key] for key in ("score", "variant", "n_pairs", "wins", "ties", "losses", "verdict")} == {
        "score": "relevancy", "variant": "b", "n_pairs": 5, "wins": 3, "ties": 1, "losses": 1, "verdict": "unclear",
    }  # fmt: skip
    assert [numbers[key] for key in ("mean_baseline", "mean_variant", "difference")] == pytest.approx([0.4, 0.6, 0.2])
    assert numbers["effect"] == pytest.approx(0.2 / 0.325960, abs=1e-5)
    # Signs of 0.5, 0.25, 0.25, 0.5, where 1.0 was seen: 1.5 and 1.0 on either side, (1 + 2) * 2 of 16.
    assert numbers["p"] == numbers["p_holm"] == 6 / 16
    assert np.isnan(numbers["mcnemar_p"])
    assert numbers["note"] == "5 pairs: fewer than 20, the interval is too narrow, and no p is below 0.062"
    assert found.baseline == "a"
    assert found.variants == ("b",)


def test_compare_interval_is_that_of_the_differences():
    df = five()
    found = of(df, confidence=0.9, resamples=2000, seed=3)
    expected = describe_differences([0.5, 0.0, 0.25, -0.25, 0.5], confidence=0.9, resamples=2000, seed=3)
    assert (row(found)["ci_low"], row(found)["ci_high"]) == (expected.low, expected.high)


def test_compare_dtypes_are_fixed():
    floats = ("mean_baseline", "mean_variant", "difference", "ci_low", "ci_high", "p", "p_holm", "mcnemar_p", "effect")
    expected = {"score": "string", "n_pairs": "int64", **dict.fromkeys(floats, "float64")}
    expected |= {**dict.fromkeys(("wins", "ties", "losses"), "int64"), "verdict": "string", "note": "string"}
    for df in (five(), five().assign(relevancy_score=NAN), long({"a": [1.0], "b": [0.0]}), long({"a": [1, 0], "b": [0, 1]})):
        found = of(df)
        assert {column: str(dtype) for column, dtype in found.summary.dtypes.items() if column != "variant"} == expected
        assert set(map(str, found.counts.dtypes[2:])) == {"int64"}
        kinds = {column: str(dtype) for column, dtype in found.rows.dtypes.items()}
        assert {kinds[f"relevancy_{part}"] for part in ("baseline", "variant", "delta")} == {"float64"}
        assert [kinds[name] for name in ("relevancy_outcome", "rows_baseline", "position_variant")] == ["string", "int64", "Int64"]


def test_compare_equals_plain_pandas_on_the_shipped_data():
    df = sk.load_dataset("smollm_answers").assign(length_score=lambda rows: rows["output"].str.len())
    found = compare(df, variant="variant", item="id", baseline="expert", resamples=1000)
    wide = df.pivot_table(index="id", columns="variant", values="length_score")
    assert found.summary["variant"].tolist() == ["short", "detailed"]
    assert found.summary["difference"].tolist() == pytest.approx([(wide[name] - wide["expert"]).mean() for name in ("short", "detailed")])
    assert found.summary["wins"].tolist() == [(wide[name] > wide["expert"]).sum() for name in ("short", "detailed")]


def test_compare_order_of_rows_does_not_matter():
    df = long({"a": list(np.linspace(0, 0.9, 30)), "b": list(np.sqrt(np.linspace(0, 0.9, 30)))})
    first = of(df)
    other = of(df.sample(frac=1, random_state=0), baseline="a")
    numbers = ["n_pairs", "mean_baseline", "mean_variant", "difference", "p", "effect", "wins", "ties", "losses"]
    pd.testing.assert_frame_equal(first.summary[numbers], other.summary[numbers], atol=0.01)


def test_compare_swapped_baseline_turns_everything_round():
    one, other = row(of(five(), baseline="a")), row(of(five(), baseline="b"))
    assert one["difference"] == pytest.approx(-other["difference"])
    assert (one["wins"], one["ties"], one["losses"]) == (other["losses"], other["ties"], other["wins"])
    assert one["p"] == other["p"]


def test_compare_index_does_not_matter_and_the_frame_stays():
    df = five().set_index(pd.Index([0] * 10))
    before = df.copy(deep=True)
    pd.testing.assert_frame_equal(of(df).summary, of(five()).summary)
    pd.testing.assert_frame_equal(df, before)


def test_compare_every_score_by_default_and_those_named():
    df = five().assign(tone_score=[0.1] * 10, credit_score=[700] * 10)
    assert of(df).summary["score"].tolist() == ["relevancy", "tone", "credit"]
    assert of(df, score=["tone", "relevancy_score"]).scores == ("tone", "relevancy")


def test_compare_scores_of_different_scale_stay_apart():
    df = five().assign(percent_score=lambda rows: rows["relevancy_score"] * 100)
    found = of(df, tie={"percent": 25})
    assert found.summary["difference"].tolist() == pytest.approx([0.2, 20.0])
    assert found.summary["ci_high"].tolist() == pytest.approx([row(found)["ci_high"], row(found)["ci_high"] * 100])
    assert found.summary["effect"].tolist() == pytest.approx([row(found)["effect"]] * 2)
    assert found.summary["ties"].tolist() == [1, 3]


# What becomes of the items


def test_compare_counts_every_item_once():
    df = pd.DataFrame(
        [
            ("pair", "a", 0.5), ("pair", "b", 1.0),
            ("only a", "a", 0.5),
            ("only b", "b", 0.5),
            ("no score in a", "a", None), ("no score in a", "b", 0.5),
            ("no score in b", "a", 0.5), ("no score in b", "b", None),
            ("no score", "a", None), ("no score", "b", None),
            ("twice", "a", 0.5), ("twice", "a", 1.0), ("twice", "b", 0.25), ("twice", "b", None),
        ],
        columns=["id", "prompt", "relevancy_score"],
    )  # fmt: skip
    found = of(df)
    assert found.counts.iloc[0, 2:].to_dict() == {
        "items": 7, "pairs": 2, "missing_baseline": 1, "missing_variant": 1,
        "unscored_baseline": 1, "unscored_variant": 1, "unscored_both": 1, "duplicates": 2, "clusters": 2,
    }  # fmt: skip
    # The rows of "twice" count once, with means of 0.75 and 0.25.
    assert row(found)["n_pairs"] == 2
    assert row(found)["mean_baseline"] == pytest.approx((0.5 + 0.75) / 2)
    assert row(found)["difference"] == pytest.approx((0.5 - 0.5) / 2)
    assert any(
        text.startswith("A comparison leaves out up to 2 items without a partner and up to 3 items unscored") for text in found.remarks
    )
    assert "Several rows of one item and variant count once, with the mean of their scores." in found.remarks


def test_compare_rows_without_variant_or_item_are_counted():
    df = five()
    df.loc[[0, 6], "prompt"] = None
    df.loc[[0, 4], "id"] = None
    found = of(df)
    assert found.left_out.to_dict() == {"without a variant": 2, "without an item": 1}
    assert row(found)["n_pairs"] == 2
    assert {"2 rows without a variant are left out.", "1 rows without an item are left out."} <= set(found.remarks)


def test_compare_missing_part_of_an_item_is_a_missing_item():
    df = five().assign(part=["x", None, "x", "x", "x"] * 2)
    assert of(df, item=["id", "part"]).left_out.to_dict() == {"without a variant": 0, "without an item": 2}


def test_compare_item_of_several_columns():
    df = pd.DataFrame(
        {"id": [1, 1, 2] * 2, "turn": [1, 2, 1] * 2, "prompt": ["a"] * 3 + ["b"] * 3, "x_score": [0.0, 0.5, 1.0, 0.5, 0.5, 0.5]}
    )
    found = of(df, item=["id", "turn"])
    assert row(found)["n_pairs"] == 3
    assert found.rows[["id", "turn", "x_delta"]].to_numpy().tolist() == [[1, 1, 0.5], [1, 2, 0.0], [2, 1, -0.5]]


def test_compare_lopsided_missing_scores_are_noted():
    df = long({"a": [0.5] * 12, "b": [0.5, 1.0, 0.25] + [None] * 9})
    assert "unscored more often on one side (baseline 0 items, variant 9): the pairs left are a choice" in row(of(df))["note"]


def test_compare_disjoint_items_raise_and_show_them():
    df = pd.concat([long({"a": [0.1, 0.2]}, items=["q1", "q2"]), long({"b": [0.1, 0.2]}, items=["x1", "x2"])])
    with pytest.raises(
        OptionRangeError,
        match=r"no pair: no item has rows of the baseline 'a'.* begin with 'q1' and 'q2', those of the others with 'x1' and 'x2'",
    ):
        of(df)


def test_compare_one_variant_without_partners_leaves_the_others():
    found = of(pd.concat([five(), long({"c": [0.1, 0.2]}, items=["x1", "x2"])]))
    assert found.summary["n_pairs"].tolist() == [5, 0]
    assert found.summary["note"].tolist()[1] == "no item has rows of both"
    assert found.conclusions[1] == "Nothing can be said of c and a on relevancy: no item has rows of both."
    assert found.counts[["items", "missing_baseline", "missing_variant"]].iloc[1].tolist() == [7, 2, 5]
    assert found.summary["p_holm"].tolist()[0] == found.summary["p"].tolist()[0]


def test_compare_nothing_scored_is_a_result_that_says_so():
    found = of(five().assign(relevancy_score=NAN))
    assert row(found)["n_pairs"] == 0
    assert np.isnan([row(found)[key] for key in ("mean_baseline", "difference", "ci_low", "p", "p_holm", "effect")]).all()
    assert found.conclusions == ("Nothing can be said of b and a on relevancy: no item is scored on both sides.",)
    assert found.regressions().empty


def test_compare_one_pair_cannot_tell():
    found = of(long({"a": [0.5], "b": [0.75]}))
    assert row(found)["difference"] == 0.25
    assert np.isnan([row(found)[key] for key in ("ci_low", "p", "effect", "mcnemar_p")]).all()
    assert found.conclusions == ("1 pair cannot tell b from a on relevancy: the difference is 0.25.",)
    assert row(found)["note"] == "1 pair: no interval and no test"


def test_compare_constant_scores_are_no_proof_of_equality():
    found = of(long({"a": [0.5] * 59, "b": [0.5] * 59}))
    assert [row(found)[key] for key in ("difference", "p", "ties")] == [0.0, 1.0, 59]
    assert np.isnan([row(found)["ci_low"], row(found)["effect"]]).all()
    # 0.95 ** ... : 1 - 0.05 ** (1 / 59) = 4.95 %.
    assert found.conclusions == (
        "b and a have the same relevancy on all 59 pairs; elsewhere up to 5 % of items may differ (95 % confidence).",
    )


def test_compare_constant_differences_count_by_the_test_alone():
    many, few = (of(long({"a": [0.5] * n, "b": [0.75] * n})) for n in (20, 4))
    assert row(many)["verdict"] == "better"
    assert many.conclusions == (
        "b is better than a on relevancy by 0.25 on every one of 20 pairs: 20 won, 0 tied, 0 lost. Note: all differences are equal: no interval.",
    )
    assert row(few)["verdict"] == "unclear"
    assert row(few)["p"] == 0.125


def test_compare_means_of_the_same_repeats_do_not_differ_by_rounding():
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 end in other last digits.
    df = pd.DataFrame({"id": ["q"] * 6 + ["r"] * 2, "prompt": list("aaabbbab"), "x_score": [0.1, 0.2, 0.3, 0.3, 0.2, 0.1, 0.0, 1.0]})
    assert of(df).rows["x_outcome"].tolist() == ["tie", "win"]


# Variants and baselines


@pytest.mark.parametrize(
    "labels", [(1, 2, 3), (0.1, 0.2, 0.7), (True, False), ("b", "a", "c"), (pd.Timestamp("2024-01-01"), pd.Timestamp("2023-01-01"))]
)
def test_compare_variants_of_any_kind_come_in_their_order(labels):
    found = of(long({label: [0.5, 1.0] for label in labels}))
    assert found.baseline == labels[0]
    assert found.variants == labels[1:]
    assert found.summary["variant"].tolist() == list(labels[1:])
    assert of(long({label: [0.5, 1.0] for label in labels}), baseline=labels[1]).baseline == labels[1]


def test_compare_categories_come_in_their_order_without_empty_ones():
    df = five()
    df["prompt"] = pd.Categorical(df["prompt"], categories=["none", "b", "a"])
    found = of(df)
    assert (found.baseline, found.variants) == ("b", ("a",))
    assert isinstance(found.summary["variant"].dtype, pd.CategoricalDtype)
    with pytest.raises(UnknownOptionError, match=r"baseline='none' is not known; choose one of 'b', 'a'"):
        of(df, baseline="none")


@pytest.mark.parametrize(
    ("baseline", "near"), [("A ", "Did you mean 'a'"), (1, "choose one of"), (NAN, "choose one of"), (["a"], "choose one of")]
)
def test_compare_unknown_baseline_raises(baseline, near):
    with pytest.raises(UnknownOptionError, match=near):
        of(five(), baseline=baseline)


def test_compare_one_variant_raises():
    with pytest.raises(OptionRangeError, match="needs two variants or more; the column 'prompt' has only 'a'"):
        of(long({"a": [0.5, 1.0]}))


@pytest.mark.parametrize("df", [five().iloc[:0], five().assign(prompt=None), five().assign(id=NAN)])
def test_compare_without_rows_raises(df):
    with pytest.raises(OptionRangeError, match="needs two variants or more; none of"):
        of(df)


def test_compare_swapped_columns_raise():
    df = long({"a": [0.5] * 101, "b": [0.5] * 101})
    with pytest.raises(OptionRangeError, match=r"variant='id' has 101 different values.* Are variant= and item= swapped"):
        of(df, variant="id", item="prompt")


def test_compare_variant_as_item_raises():
    with pytest.raises(ColumnConflictError, match="'prompt' is given as the variant and as the item"):
        of(five(), item=["id", "prompt"])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"variant": "promt"}, MissingColumnError, "Did you mean variant='prompt'"),
        ({"item": "Id"}, MissingColumnError, "Did you mean item='id'"),
        ({"by": "lang"}, MissingColumnError, "needs a column 'lang'"),
        ({"cluster": "topic"}, MissingColumnError, "needs a column 'topic'"),
        ({"output": "answer"}, MissingColumnError, "needs a column 'answer'"),
        ({"score": "relevance"}, MissingColumnError, "Did you mean 'relevancy'"),
        ({"score": []}, OptionRangeError, "score=.* at least one name"),
        ({"item": []}, OptionRangeError, "item=.* must be the name of a column"),
        ({"variant": ["prompt", "id"]}, OptionRangeError, "variant=.* must be the name of one column"),
        ({"tie": -0.1}, OptionRangeError, "tie=-0.1 is out of range"),
        ({"tie": "0.1"}, ArgumentTypeError, "tie must be a number"),
        ({"tie": {"tone": 0.1}}, UnknownOptionError, "tie: the score='tone' is not known; choose one of 'relevancy'"),
        ({"confidence": 95}, OptionRangeError, "above 0 and below 1"),
        ({"resamples": 500}, OptionRangeError, "1000 or more"),
        ({"lower_is_better": 3}, ArgumentTypeError, "lower_is_better"),
        ({"lower_is_better": ["x"], "higher_is_better": ["x_score"]}, OptionRangeError, "'x' cannot be better both when lower and when higher"),
    ],
)  # fmt: skip
def test_compare_option_that_does_not_fit_raises(options, error, words):
    with pytest.raises(error, match=words):
        of(five(), **options)


def test_compare_infinite_score_raises():
    with pytest.raises(OptionRangeError, match="'relevancy_score' holds infinite scores"):
        of(long({"a": [0.5, np.inf], "b": [0.5, 1.0]}))


def test_compare_not_a_frame_raises():
    with pytest.raises(ArgumentTypeError, match="compare: the first argument must be a pandas DataFrame"):
        of([1, 2])


# Direction, ties, binary scores


@pytest.mark.parametrize(
    ("name", "options", "better", "outcomes", "verdict"),
    [
        ("relevancy", {}, "higher", (12, 0), "better"),
        ("toxicity", {}, "lower", (0, 12), "worse"),
        ("text_difference", {}, "", (12, 0), "higher"),
        ("own", {}, "", (12, 0), "higher"),
        ("own", {"higher_is_better": ["own"]}, "higher", (12, 0), "better"),
        ("own", {"lower_is_better": ["own_score"]}, "lower", (0, 12), "worse"),
        ("relevancy", {"lower_is_better": ["relevancy"]}, "lower", (0, 12), "worse"),
    ],
)
def test_compare_direction_decides_what_a_win_is(name, options, better, outcomes, verdict):
    df = long({"a": [0.1] * 12, "b": list(np.linspace(0.2, 0.9, 12))}).rename(columns={"relevancy_score": f"{name}_score"})
    found = of(df, **options)
    assert found.better == {name: better}
    assert (row(found)["wins"], row(found)["losses"]) == outcomes
    assert row(found)["verdict"] == verdict


@pytest.mark.parametrize(
    ("tie", "expected"), [(0, (3, 1, 1)), (0.2, (3, 1, 1)), (0.25, (2, 3, 0)), (0.5, (0, 5, 0)), ({"relevancy_score": 0.25}, (2, 3, 0))]
)
def test_compare_tie_margin_holds_its_border(tie, expected):
    numbers = row(of(five(), tie=tie))
    assert (numbers["wins"], numbers["ties"], numbers["losses"]) == expected
    assert numbers["difference"] == pytest.approx(0.2)


def test_compare_tie_margin_is_no_matter_of_rounding():
    # 0.3 - 0.2 is 0.09999999999999998 and 0.4 - 0.3 is 0.10000000000000003.
    assert row(of(long({"a": [0.2, 0.3, 0.0], "b": [0.3, 0.4, 0.5]}), tie=0.1))["ties"] == 2


@pytest.mark.parametrize("scale", [1, 100])
def test_compare_binary_scores_get_mcnemars_test(scale):
    # Only b right 6 times, only a once; p of 1 in 7: 0.125.
    df = long({"a": [0, 0, 0, 0, 0, 0, scale, scale, 0], "b": [scale, scale, scale, scale, scale, scale, 0, scale, 0]})
    numbers = row(of(df))
    assert (numbers["wins"], numbers["losses"], numbers["ties"]) == (6, 1, 2)
    assert numbers["mcnemar_p"] == pytest.approx(0.125, abs=1e-12)
    assert numbers["p"] == pytest.approx(0.125, abs=1e-12)


def test_compare_binary_scores_of_any_number_dtype():
    for dtype in ("boolean", "Int64", "bool", "float32"):
        df = long({"a": [1, 0, 0], "b": [1, 1, 1]}).astype({"relevancy_score": dtype})
        assert row(of(df))["mcnemar_p"] == 0.5


def test_compare_scores_that_are_not_binary_have_no_mcnemar_test():
    assert np.isnan(row(of(long({"a": [0, 1, 0.5], "b": [1, 1, 1]})))["mcnemar_p"])
    # Repeats that disagree make a mean between.
    assert np.isnan(row(of(pd.concat([long({"a": [0, 1], "b": [1, 1]}), long({"a": [1, 1]})])))["mcnemar_p"])


# Several variants, groups, clusters


def four_variants():
    rng = np.random.default_rng(3)
    return long(
        {name: list(np.round(rng.random(40) * 0.5 + shift, 3)) for name, shift in (("a", 0.0), ("b", 0.1), ("c", 0.13), ("d", 0.0))}
    )


def test_compare_several_variants_are_corrected_as_statsmodels_does():
    found = of(four_variants())
    assert found.summary["variant"].tolist() == ["b", "c", "d"]
    assert found.summary["p_holm"].tolist() == pytest.approx(multipletests(found.summary["p"], method="holm")[1])
    assert (found.summary["p_holm"] > found.summary["p"]).any()


def test_compare_scores_are_corrected_each_for_itself():
    df = four_variants().assign(tone_score=lambda rows: rows["relevancy_score"])
    found = of(df).summary
    assert found["p_holm"].tolist()[:3] == found["p_holm"].tolist()[3:] == of(four_variants()).summary["p_holm"].tolist()


def test_compare_difference_that_holm_takes_back_is_unclear():
    # b wins 8 of 9: p = 2 * (1 + 9) / 512 = 0.0390625, three times that among three; c and d win 4 of 8.
    half = [1.0] * 4 + [-1.0] * 4 + [0.0]
    df = long({"a": [0.0] * 9, "b": [1.0] * 8 + [-1.0], "c": half, "d": half}).rename(columns={"relevancy_score": "own_score"})
    alone, among = of(df[df["prompt"].isin(["a", "b"])]), of(df)
    assert [row(alone)["p_holm"], row(among)["p"], row(among)["p_holm"]] == pytest.approx([0.0390625, 0.0390625, 0.1171875])
    assert (row(alone)["verdict"], row(among)["verdict"]) == ("higher", "unclear")
    assert ", and p is 0.12 when corrected for all comparisons of the score." in among.conclusions[0]


def groups():
    df = pd.concat([five(), long({"a": [0.0, 0.5, 0.5], "b": [1.0, 1.0, 0.75]}, items=["r1", "r2", "r3"])], ignore_index=True)
    return df.assign(language=["en"] * 10 + ["ja"] * 6)


def test_compare_by_gives_each_group_its_own_numbers():
    found = of(groups(), by="language")
    alone = [of(groups().query("language == @name")).summary for name in ("en", "ja")]
    assert found.summary["language"].tolist() == ["en", "ja"]
    columns = ["n_pairs", "mean_baseline", "difference", "ci_low", "ci_high", "p", "effect", "wins", "ties", "losses"]
    pd.testing.assert_frame_equal(found.summary[columns], pd.concat(alone, ignore_index=True)[columns])
    assert found.summary["p_holm"].tolist() == pytest.approx(multipletests(found.summary["p"], method="holm")[1])
    assert found.counts["items"].tolist() == [5, 3]


def test_compare_by_several_columns_keeps_missing_as_a_group():
    df = five().assign(language=["en", "en", None, "ja", "ja"] * 2, turn=[1, 2, 1, 1, 1] * 2)
    found = of(df, by=["language", "turn"]).summary
    told = found[["language", "turn", "n_pairs"]].astype(object)
    assert told.where(told.notna(), None).to_numpy().tolist() == [["en", 1, 1], ["en", 2, 1], ["ja", 1, 2], [None, 1, 1]]


def test_compare_by_group_without_pairs_has_a_row():
    df = groups().drop(index=range(13, 16))
    found = of(df, by="language")
    assert found.summary["n_pairs"].tolist() == [5, 0]
    assert found.counts["missing_variant"].tolist() == [0, 3]


@pytest.mark.parametrize("option", ["by", "cluster"])
def test_compare_column_that_differs_within_an_item_raises(option):
    df = five().assign(finish=["stop"] * 5 + ["stop", "length", "stop", "stop", "stop"])
    with pytest.raises(
        ColumnConflictError,
        match=rf"{option}='finish' must be the same in all rows of an item, and the item of row 6 .* has 'stop' and 'length'",
    ):
        of(df, **{option: "finish"})


def test_compare_by_the_variant_raises():
    with pytest.raises(ColumnConflictError, match="by='prompt' must be the same in all rows of an item"):
        of(five(), by="prompt")


@pytest.mark.parametrize("name", ["score", "variant", "p", "pairs", "note"])
def test_compare_by_a_column_named_like_a_result_raises(name):
    with pytest.raises(ColumnConflictError, match=f"its .summary has a column of its own named '{name}'"):
        of(groups().rename(columns={"language": name}), by=name)


def test_compare_clusters_are_resampled_and_flipped_whole():
    rng = np.random.default_rng(0)
    topics = np.repeat(rng.normal(0, 0.3, 25), 4)
    df = long({"a": [0.0] * 100, "b": list(topics + rng.normal(0.05, 0.05, 100))}).assign(topic=list(np.repeat(range(25), 4)) * 2)
    alone, whole = of(df), of(df, cluster="topic")
    expected = describe_differences(df["relevancy_score"].to_numpy()[100:], np.repeat(range(25), 4), resamples=1000)
    assert [row(whole)[key] for key in ("ci_low", "ci_high", "p")] == pytest.approx([expected.low, expected.high, expected.p])
    assert row(whole)["ci_high"] - row(whole)["ci_low"] > 1.5 * (row(alone)["ci_high"] - row(alone)["ci_low"])
    assert row(whole)["difference"] == row(alone)["difference"]
    assert int(whole.items_needed()["items"].iloc[0]) > 2 * int(alone.items_needed()["items"].iloc[0])


def test_compare_few_clusters_are_noted_and_missing_ones_count_alone():
    found = of(five().assign(topic=["x", "x", "y", None, None] * 2), cluster="topic")
    assert (
        row(found)["note"]
        == "4 clusters: fewer than 20, the interval is too narrow, and no p is below 0.12; 2 items without a cluster count as one each"
    )


def test_compare_one_cluster_cannot_tell():
    found = of(five().assign(topic="x"), cluster="topic")
    assert np.isnan([row(found)["ci_low"], row(found)["p"]]).all()
    assert row(found)["note"] == "1 cluster: no interval and no test"
    assert found.conclusions == (
        "5 pairs in 1 cluster cannot tell b from a on relevancy: the difference is 0.20, which shows no spread. Note: 1 cluster: no interval and no test.",
    )


def test_compare_binary_scores_in_clusters_have_no_mcnemar_test():
    numbers = row(of(long({"a": [0, 0, 0], "b": [1, 1, 0]}).assign(topic=[1, 2, 3] * 2), cluster="topic"))
    assert np.isnan(numbers["mcnemar_p"])
    assert "no McNemar test with clusters" in numbers["note"]


# Judges


def judged(judges):
    return five().assign(relevancy_judge=pd.array(judges, dtype="string"))


def test_compare_mixed_judges_raise_unless_allowed():
    df = judged(["gpt"] * 5 + ["local"] * 5)
    with pytest.raises(
        ColumnConflictError, match=r"'relevancy' come from 2 judges, 'gpt' \(5 rows\), 'local' \(5 rows\): a difference between judges"
    ):
        of(df)
    found = of(df, mixed_judges=True)
    assert found.judges == {"relevancy": ("gpt", "local")}
    assert "judges mixed: gpt, local" in row(found)["note"]


def test_compare_judge_of_an_unscored_row_does_not_count():
    df = judged(["gpt"] * 9 + ["local"])
    df.loc[9, "relevancy_score"] = NAN
    found = of(df)
    assert found.judges == {"relevancy": ("gpt",)}
    assert "relevancy was judged by gpt." in found.remarks


# The rows, and those that moved


def texts():
    df = long({"a": [0.5, 1.0, None], "b": [1.0, 0.25, 0.5]})
    df["input"] = ["Why?", "How?", "When?"] * 2
    df["output"] = ["a1", "a2", "a3", "b1", "b2", "b3"]
    df["relevancy_reason"] = [f"because {text}" for text in df["output"]]
    df["relevancy_error"] = pd.array([None, None, "judge_timeout", None, None, None], dtype="string")
    return df


def test_compare_rows_hold_both_sides():
    rows = of(texts().drop(index=3)).rows
    assert rows.columns.tolist() == [
        "id", "variant", "input", "output_baseline", "output_variant",
        "relevancy_baseline", "relevancy_variant", "relevancy_delta", "relevancy_outcome",
        "relevancy_reason_baseline", "relevancy_reason_variant", "relevancy_error_baseline", "relevancy_error_variant",
        "rows_baseline", "rows_variant", "position_baseline", "position_variant",
    ]  # fmt: skip
    told = rows.astype(object).where(rows.notna(), None).to_numpy().tolist()
    assert told == [
        ["q1", "b", "Why?", "a1", None, 0.5, None, None, None, "because a1", None, None, None, 1, 0, 0, None],
        ["q2", "b", "How?", "a2", "b2", 1.0, 0.25, -0.75, "loss", "because a2", "because b2", None, None, 1, 1, 1, 3],
        ["q3", "b", "When?", "a3", "b3", None, 0.5, None, None, "because a3", "because b3", "judge_timeout", None, 1, 1, 2, 4],
    ]


def test_compare_rows_point_into_the_frame():
    df = texts().set_index(pd.Index(list("uvwxyz")))
    rows = of(df).rows
    assert df.iloc[rows["position_variant"]]["output"].tolist() == rows["output_variant"].tolist()
    assert df.iloc[rows["position_baseline"]]["output"].tolist() == rows["output_baseline"].tolist()


def test_compare_rows_take_the_texts_that_are_named():
    df = texts().rename(columns={"input": "question", "output": "answer"})
    assert of(df).rows[["input", "output_variant"]].isna().all(axis=None)
    rows = of(df, input="question", output="answer").rows
    assert rows["input"].tolist() == ["Why?", "How?", "When?"]
    assert rows["output_variant"].tolist() == ["b1", "b2", "b3"]


def test_compare_item_may_be_the_input():
    rows = of(texts(), item="input").rows
    assert rows.columns.tolist()[:3] == ["input", "variant", "output_baseline"]
    assert rows["input"].tolist() == ["Why?", "How?", "When?"]


def test_compare_rows_have_one_per_variant_and_item():
    rows = of(four_variants()).rows
    assert len(rows) == 120
    assert rows["variant"].value_counts().to_dict() == {"b": 40, "c": 40, "d": 40}
    assert rows["id"].tolist()[:40] == rows["id"].tolist()[40:80]


def test_compare_item_named_like_a_column_of_the_rows_raises():
    with pytest.raises(ColumnConflictError, match="its .rows has a column of its own named 'output_baseline'"):
        of(five().rename(columns={"id": "output_baseline"}), item="output_baseline")


def moving():
    """Differences 0.1, -0.4, 0.0, -0.2, 0.6, -0.4 of b, and no partner for the last item."""
    df = long({"a": [0.5, 0.9, 0.5, 0.5, 0.2, 0.9, 0.5], "b": [0.6, 0.5, 0.5, 0.3, 0.8, 0.5, None]})
    return df.assign(input="i", output="o", topic="t")


def test_compare_regressions_come_worst_first():
    found = of(moving())
    worst = found.regressions(2)
    assert worst["id"].tolist() == ["q2", "q6"]
    assert worst.index.tolist() == [1, 5]
    assert found.regressions()["id"].tolist() == ["q2", "q6", "q4"]
    assert worst.columns.tolist() == [
        "id", "variant", "relevancy_baseline", "relevancy_variant", "relevancy_delta", "input", "output_baseline", "output_variant",
        "relevancy_reason_baseline", "relevancy_reason_variant",
    ]  # fmt: skip


def test_compare_improvements_come_best_first():
    assert of(moving()).improvements()["id"].tolist() == ["q5", "q1"]
    assert of(moving(), tie=0.1).improvements()["id"].tolist() == ["q5"]


def test_compare_regressions_of_a_score_that_is_better_when_lower_are_rises():
    df = moving().rename(columns={"relevancy_score": "toxicity_score"})
    assert of(df).regressions()["id"].tolist() == ["q5", "q1"]


def test_compare_regressions_by_score_and_variant():
    df = pd.concat([moving(), long({"c": [0.0] * 7}).assign(input="i", output="o", topic="t")])
    df = df.assign(tone_score=1 - df["relevancy_score"])
    found = of(df)
    assert found.regressions(1)["variant"].tolist() == ["c"]
    assert found.regressions(variant="b")["id"].tolist() == ["q2", "q6", "q4"]
    assert found.regressions(score="tone_score", variant="b")["id"].tolist() == ["q5", "q1"]


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"n": 0}, OptionRangeError, "n=0 is out of range"),
        ({"n": 2.5}, ArgumentTypeError, "n must be a whole number"),
        ({"score": "tone"}, UnknownOptionError, "score='tone' is not known; choose one of 'relevancy'"),
        ({"variant": "a"}, UnknownOptionError, "variant='a' is not known; choose one of 'b'"),
    ],
)
def test_compare_regressions_option_that_does_not_fit_raises(options, error, words):
    with pytest.raises(error, match=words):
        of(moving()).regressions(**options)


# Items needed


def test_compare_items_needed_are_those_of_the_t_test():
    found = of(five())
    # Mean 0.2, standard deviation 0.325960.
    assert found.items_needed()["items"].tolist() == [pairs_needed(0.2 / 0.3259601)]
    needed = found.items_needed(power=0.9, difference=0.1)
    assert needed["items"].tolist() == [pairs_needed(0.1 / 0.3259601, power=0.9)]
    assert needed.columns.tolist() == ["score", "variant", "difference", "items"]
    assert needed["difference"].tolist() == [0.1]


def test_compare_items_needed_for_several_comparisons_share_the_level():
    found = of(four_variants())
    spread = float(found.spreads[0])
    assert found.items_needed(difference=0.1)["items"].tolist()[0] == pairs_needed(0.1 / spread, alpha=0.05 / 3)


def test_compare_items_needed_by_score():
    found = of(five().assign(percent_score=lambda rows: rows["relevancy_score"] * 100))
    needed = found.items_needed(difference={"relevancy": 0.1, "percent_score": 10})
    assert needed["items"].tolist()[0] == needed["items"].tolist()[1] == pairs_needed(0.1 / 0.3259601)
    assert found.items_needed(difference={"percent": 10})["items"].isna().tolist() == [True, False]


def test_compare_items_needed_that_cannot_be_known_are_missing():
    assert of(long({"a": [0.5] * 5, "b": [0.75] * 5})).items_needed(difference=0.1)["items"].isna().all()
    assert of(long({"a": [0.5, 0.7], "b": [0.7, 0.5]})).items_needed()["items"].isna().all()
    assert of(long({"a": [0.5], "b": [0.7]})).items_needed()["items"].isna().all()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"power": 80}, OptionRangeError, "power=80"),
        ({"difference": 0}, OptionRangeError, "difference=0 is out of range: it must be above 0"),
        ({"difference": -0.1}, OptionRangeError, "difference=-0.1"),
        ({"difference": "0.1"}, ArgumentTypeError, "difference must be a number"),
        ({"difference": {"tone": 0.1}}, UnknownOptionError, "difference: the score='tone'"),
    ],
)
def test_compare_items_needed_option_that_does_not_fit_raises(options, error, words):
    with pytest.raises(error, match=words):
        of(five()).items_needed(**options)


# Sentences


def shown(name="relevancy", sign=1, **options):
    """Forty differences from 0.05 to 0.15 around 0.1, shown beyond doubt."""
    steps = np.linspace(0.05, 0.15, 40) * sign
    df = long({"expert": [0.5] * 40, "short": list(0.5 + steps)}).rename(columns={"relevancy_score": f"{name}_score"})
    return of(df, **options).conclusions[0]


def test_compare_says_which_is_better_and_by_how_much():
    # Standard error 0.0299 / sqrt(40) = 0.0047: about 0.091 to 0.109.
    assert re.fullmatch(
        r"short is better than expert on relevancy by 0\.1000? \(0\.09\d+ to 0\.1[01]\d*\) over 40 pairs: 40 won, 0 tied, 0 lost\.", shown()
    )


def test_compare_says_which_is_worse():
    assert shown(sign=-1).startswith("short is worse than expert on relevancy by 0.100 (0.09")
    assert "over 40 pairs (higher is worse): 0 won, 0 tied, 40 lost." in shown("toxicity")
    assert "over 40 pairs (lower is better): 40 won" in shown("toxicity", sign=-1)


def test_compare_does_not_say_better_of_a_likeness():
    text = shown("text_difference")
    assert text.startswith("short is higher than expert on text_difference by 0.100")
    assert text.endswith("; neither is known to be better: 40 higher, 0 tied, 0 lower.")


def test_compare_says_that_a_shown_difference_is_within_the_margin():
    assert ", within the tie margin of 0.2: 0 won, 40 tied, 0 lost." in shown(tie=0.2)


def test_compare_says_what_it_cannot_tell_and_what_it_would_take():
    assert of(five(), resamples=5000).conclusions[0] == (
        "5 pairs cannot tell b from a on relevancy: the difference is 0.20 (-0.10 to 0.45). So many pairs find one of 0.55 in 80 % of cases; one of 0.20, as "
        "seen, needs about 23 pairs. Note: 5 pairs: fewer than 20, the interval is too narrow, and no p is below 0.062."
    )


def test_compare_interval_without_0_is_not_enough_where_chance_gives_as_much():
    found = of(long({"a": [0.0] * 4, "b": [0.1, 0.2, 0.3, 0.4]}))
    # All four positive: 2 of 16 flips.
    assert row(found)["ci_low"] > 0
    assert ", and chance gives one as large too often (p 0.12)." in found.conclusions[0]
    assert row(found)["verdict"] == "unclear"


def test_compare_says_that_a_small_interval_within_the_margin_is_no_more_than_it():
    df = long({"a": [0.5] * 40, "b": list(0.5 + np.linspace(-0.1, 0.1, 40))})
    assert re.match(
        r"b and a differ on relevancy by no more than the tie margin of 0\.1: 0\.000? \(-0\.\d+ to 0\.\d+\) over 40 pairs: 0 won, 40 tied, 0 lost\.",
        of(df, tie=0.1).conclusions[0],
    )


def test_compare_sentences_name_the_group():
    assert of(groups(), by="language").conclusions[1].startswith("3 pairs cannot tell b from a on relevancy for language ja:")


def test_compare_an_end_near_0_shows_its_side():
    steps = np.array([1.0] * 12 + [-1.0] * 8) * np.linspace(0.5, 1.0, 20)
    for seed in range(3):
        found = of(long({"a": [0.0] * 20, "b": list(steps)}), seed=seed)
        low = row(found)["ci_low"]
        told = re.search(r"\((-?[\d.]+) to", found.conclusions[0])[1]
        assert (float(told) < 0) == (low < 0)


# Showing itself


def test_compare_html_is_escaped():
    bad = "</script><img src=x onerror=alert(1)>"
    df = pd.DataFrame({"id": [bad, "q"] * 2, "prompt": [bad, bad, "b", "b"], f"{bad}_score": [0.5, 0.5, 1.0, 0.5], bad: [bad] * 4})
    page = of(df, by=bad)._repr_html_() + of(df, baseline="b", cluster=bad)._repr_html_()
    assert "<img" not in page
    assert "</script" not in page
    assert page.count("&lt;img") > 4


def test_compare_html_and_repr_say_the_same():
    found = of(five())
    assert found.conclusions[0] in repr(found)
    assert found.conclusions[0] in found._repr_html_()
    assert "p_holm" not in repr(found)
    assert "mcnemar_p" not in repr(found)


def test_compare_html_marks_what_is_shown():
    found = of(long({"a": [0.5] * 30, "b": list(np.linspace(0.5, 0.9, 30))}))
    assert f"<li><b>{found.conclusions[0]}</b></li>" in found._repr_html_()
    assert f"<li>{of(five()).conclusions[0]}</li>" in of(five())._repr_html_()


def test_compare_of_many_groups_tells_the_first_and_counts_the_rest():
    n = 60
    df = long({"a": [0.5] * n, "b": list(np.linspace(0, 1, n))}).assign(group=[*range(25), *range(25), *range(25, 35)] * 2)
    text = repr(of(df, by="group"))
    assert text.count("cannot tell b from a") == 20
    assert "10 more comparisons have fewer than two pairs and say nothing." in text
    assert "5 more comparisons are in .summary." in text


def test_compare_lone_surrogates_can_be_shown():
    df = five().assign(prompt=pd.Series(["\ud83d"] * 5 + ["b"] * 5, dtype=object))
    found = of(df)
    found._repr_html_().encode()
    repr(found).encode()


def test_comparison_pickles():
    found = of(groups(), by="language", cluster="id")
    other = pickle.loads(pickle.dumps(found))
    pd.testing.assert_frame_equal(other.summary, found.summary)
    pd.testing.assert_frame_equal(other.rows, found.rows)
    assert repr(other) == repr(found)


def test_comparison_is_frozen():
    with pytest.raises(AttributeError):
        of(five()).baseline = "b"


def test_compare_follows_the_seed():
    df = four_variants()
    first, same, other = (of(df, seed=seed).summary for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, same)
    assert first["ci_low"].tolist() != other["ci_low"].tolist()


def test_compare_interval_of_a_score_does_not_depend_on_the_others():
    df = four_variants().assign(tone_score=lambda rows: rows["relevancy_score"] ** 2)
    alone, both = of(df, score="tone").summary, of(df).summary
    pd.testing.assert_frame_equal(both.iloc[3:].reset_index(drop=True), alone)


@pytest.mark.parametrize("key", [("a", 1), 7, True])
def test_compare_columns_of_any_name(key):
    df = groups().rename(columns={"language": key, "id": ("item", 0)})
    found = of(df, item=[("item", 0)], by=[key])
    assert found.summary.columns[2] == key
    assert found.rows.columns[0] == ("item", 0)
    assert found.summary["n_pairs"].tolist() == [5, 3]


def test_importing_compare_does_not_load_scipy():
    code = "import sys, scorekit.analysis.compare; print('scipy' in sys.modules, 'plotly' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


@pytest.mark.parametrize("column", ["output", "input", "id", "prompt", "tone_reason", "tone_judge"])
def test_compare_of_texts_with_a_lone_surrogate_shows_itself(column):
    cells = {
        "id": ["q", "r"] * 2,
        "prompt": ["a", "a", "b", "b"],
        "input": ["i"] * 4,
        "output": ["o"] * 4,
        "tone_reason": ["r"] * 4,
        "tone_judge": ["j"] * 4,
    }
    cells[column] = [f"{text}\ud800" for text in cells[column]]
    df = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in cells.items()}).assign(tone_score=[0.1, 0.2, 0.3, 0.4])
    found = compare(df, variant="prompt", item="id")
    assert found.summary["n_pairs"].tolist() == [2]
    repr(found).encode()
    found._repr_html_().encode()


def test_compare_names_of_lower_is_better_stand_beside_the_shipped_ones_and_higher_is_better_overrides_them():
    df = long({"a": [0.1, 0.2, 0.3], "b": [0.2, 0.3, 0.4]}).rename(columns={"relevancy_score": "toxicity_score"})
    assert of(df, lower_is_better=["cost"]).better == {"toxicity": "lower"}
    assert of(df, higher_is_better=["toxicity"]).better == {"toxicity": "higher"}
