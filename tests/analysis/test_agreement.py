"""agreement: small frames worked out by hand, beside scikit-learn, and what it refuses."""

import html
import pickle

import numpy as np
import pandas as pd
import pytest

from scorekit.analysis.agreement import Agreement, agreement
from scorekit.analysis.rates import ppi_rate
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, OptionRangeError, UnknownOptionError

NAN = float("nan")


def ten():
    """Ten labelled rows at 0.5: four good ones pass and one fails, two bad ones pass and three fail."""
    return pd.DataFrame(
        {
            "relevancy_score": [0.9, 0.8, 0.7, 0.5, 0.4, 0.9, 0.6, 0.3, 0.2, 0.1],
            "label": ["pass"] * 5 + ["fail"] * 5,
        }
    )


def of(labels, scores=None, **more):
    scores = [0.9, 0.8, 0.2, 0.1][: len(labels)] if scores is None else scores
    return pd.DataFrame({"x_score": scores, "label": pd.Series(labels), **more})


def unsure():
    return of(["yes", "unsure", "Maybe", "no"], [0.9, 0.8, 0.2, 0.1])


def matrix(found):
    return found.matrix.to_numpy().tolist()


def values(found):
    return dict(zip(found.table["metric"], found.table["value"], strict=True))


def notes(found):
    return dict(zip(found.table["metric"], found.table["note"], strict=True))


# The matrix and the table


def test_agreement_matrix_counts_labels_in_rows_and_verdicts_in_columns():
    found = agreement(ten(), score="relevancy_score", human="label", threshold=0.5)
    expected = pd.DataFrame(
        [[4, 1], [2, 3]], index=pd.Index(["pass", "fail"], name="label"), columns=pd.Index(["pass", "fail"], name="relevancy_score")
    )
    pd.testing.assert_frame_equal(found.matrix, expected, check_index_type=False, check_column_type=False)


def test_agreement_table_by_hand():
    found = agreement(ten(), score="relevancy", human="label", threshold=0.5)
    # 7 of 10 agree; 4 of 5 good ones pass; 3 of 5 bad ones fail; 4 of 6 that pass are good.
    # Kappa: by chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5 agree, (0.7 - 0.5) / 0.5 = 0.4.
    assert values(found) == pytest.approx({"accuracy": 0.7, "tpr": 0.8, "tnr": 0.6, "precision": 4 / 6, "kappa": 0.4})
    assert found.table["n"].tolist() == [10, 5, 5, 6, 10]
    assert found.table["note"].tolist() == [""] * 5
    # Wilson, 7 of 10: (0.7 + 0.192073 -+ 1.959964 * sqrt(0.021 + 0.0096036)) / 1.3841459
    assert found.table.loc[0, ["ci_low", "ci_high"]].tolist() == pytest.approx([0.396778, 0.892209], abs=1e-6)


def test_agreement_dtypes_are_fixed():
    expected = {"metric": "string", "value": "float64", "ci_low": "float64", "ci_high": "float64", "n": "int64", "note": "string"}
    shares = {"method": "string", "estimate": "float64", "ci_low": "float64", "ci_high": "float64"}
    shares |= {"n_labelled": "int64", "n_scored": "int64", "note": "string"}
    three = pd.DataFrame({"a": ["x", "y", "z"], "b": ["x", "z", "z"]})
    for found in (agreement(ten(), score="relevancy", human="label"), agreement(three, score="a", human="b")):
        assert {column: str(dtype) for column, dtype in found.table.dtypes.items()} == expected
        assert {column: str(dtype) for column, dtype in found.pass_rate.dtypes.items()} == shares
        assert set(map(str, found.curve.dtypes)) == {"float64"}
        assert [str(dtype) for dtype in found.kappas.dtypes] == ["string", "string", *["float64"] * 4, "int64", "string"]
        assert str(found.counts.dtype) == "int64"


def test_agreement_equals_scikit_learn():
    from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix, precision_score, recall_score

    rng = np.random.default_rng(0)
    good = rng.random(400) < 0.7
    scores = np.where(good, rng.beta(5, 2, 400), rng.beta(2, 4, 400))
    found = agreement(pd.DataFrame({"x_score": scores, "label": good}), score="x", human="label", threshold=0.6)
    passes = scores >= 0.6
    assert matrix(found) == confusion_matrix(good, passes, labels=[True, False]).tolist()
    expected = {"accuracy": accuracy_score(good, passes), "tpr": recall_score(good, passes), "tnr": recall_score(~good, ~passes)}
    expected |= {"precision": precision_score(good, passes), "kappa": cohen_kappa_score(good, passes)}
    assert values(found) == pytest.approx(expected, abs=1e-12)


def test_agreement_more_confidence_is_wider():
    wide, narrow = (agreement(ten(), score="relevancy", human="label", confidence=share).table for share in (0.99, 0.8))
    assert (wide["ci_low"] < narrow["ci_low"]).all()
    assert (wide["ci_high"] > narrow["ci_high"]).all()


def test_agreement_kappa_interval_follows_the_seed():
    first, same, other = (agreement(ten(), score="relevancy", human="label", seed=seed, resamples=500).table for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, same)
    assert first.iloc[4]["ci_low"] != other.iloc[4]["ci_low"] or first.iloc[4]["ci_high"] != other.iloc[4]["ci_high"]


# Direction and threshold


def test_agreement_score_at_the_threshold_passes():
    assert matrix(agreement(of(["yes", "no"], [0.5, 0.49]), score="x", human="label", threshold=0.5)) == [[1, 0], [0, 1]]


def test_agreement_lower_is_better_passes_at_or_below():
    df = pd.DataFrame({"toxicity_score": [0.5, 0.1, 0.51, 0.9], "label": ["good", "good", "bad", "bad"]})
    found = agreement(df, score="toxicity", human="label", threshold=0.5)
    assert matrix(found) == [[2, 0], [0, 2]]
    assert found.rule == "toxicity_score <= 0.5"
    assert found.lower_is_better
    assert found.best_threshold == 0.5


def test_agreement_direction_of_a_users_own_score_can_be_told():
    df = pd.DataFrame({"risk_score": [0.1, 0.9], "label": ["good", "bad"]})
    assert matrix(agreement(df, score="risk", human="label", lower_is_better={"risk"})) == [[1, 0], [0, 1]]
    assert matrix(agreement(df, score="risk", human="label")) == [[0, 1], [1, 0]]


def test_agreement_curve_and_best_threshold_by_hand():
    found = agreement(ten(), score="relevancy", human="label", threshold=0.5)
    # At 0.4 all good ones pass and 3 of 5 bad ones fail: J 1 + 0.6 - 1, the highest. 0.5 loses a good one.
    assert found.curve["threshold"].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert found.curve["tpr"].tolist() == pytest.approx([1, 1, 1, 1, 0.8, 0.6, 0.6, 0.4, 0.2])
    assert found.curve["tnr"].tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.6, 0.6, 0.8, 0.8, 0.8])
    assert found.curve["j"].tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.4, 0.2, 0.4, 0.2, 0.0])
    assert found.best_threshold == 0.4


def test_agreement_threshold_as_good_as_any_stays_the_best():
    # Every threshold above 0.2 and up to 0.8 tells all rows apart.
    found = agreement(of(["yes", "yes", "no", "no"]), score="x", human="label", threshold=0.35)
    assert found.best_threshold == 0.35
    assert found.curve.loc[found.curve["threshold"] == 0.35, "j"].tolist() == [1.0]


def test_agreement_best_threshold_equals_scikit_learns():
    from sklearn.metrics import roc_curve

    rng = np.random.default_rng(0)
    good = rng.random(300) < 0.7
    scores = np.where(good, rng.beta(5, 2, 300), rng.beta(2, 4, 300))
    found = agreement(pd.DataFrame({"x_score": scores, "label": good}), score="x", human="label")
    false, true, cuts = roc_curve(good, scores, drop_intermediate=False)
    assert found.best_threshold == cuts[np.argmax(true - false)]


def test_agreement_no_threshold_is_one_half_within_0_and_1():
    assert agreement(ten(), score="relevancy", human="label").threshold == 0.5


def test_agreement_no_threshold_on_another_scale_raises():
    with pytest.raises(OptionRangeError, match=r"needs threshold= for 'x_score': its scores reach from 2 to 9"):
        agreement(of(["yes", "no"], [9, 2]), score="x", human="label")


def test_agreement_scale_of_ten_takes_a_threshold_of_its_own():
    assert matrix(agreement(of(["yes", "no"], [9, 2]), score="x", human="label", threshold=6)) == [[1, 0], [0, 1]]


@pytest.mark.parametrize("threshold", [1.5, -0.1, NAN, np.inf])
def test_agreement_threshold_outside_the_scores_raises(threshold):
    with pytest.raises(
        OptionRangeError, match=r"threshold=.* is out of range: it must be from 0 to 1, where the scores of 'relevancy_score' lie"
    ):
        agreement(ten(), score="relevancy", human="label", threshold=threshold)


# What cannot be known


def test_agreement_without_negatives_has_no_tnr_and_says_so():
    found = agreement(of(["yes", "yes", "yes", None], [0.9, 0.8, 0.2, 0.7]), score="x", human="label")
    assert matrix(found) == [[2, 1], [0, 0]]
    np.testing.assert_equal(values(found), {"accuracy": 2 / 3, "tpr": 2 / 3, "tnr": NAN, "precision": 1.0, "kappa": NAN})
    assert notes(found)["tnr"] == "no row is labelled fail"
    assert "label gave all 3 rows the label pass" in notes(found)["kappa"]
    assert found.table["n"].tolist() == [3, 3, 0, 2, 3]
    assert np.isnan(found.best_threshold)
    assert "No labelled row is a fail: how the score treats those is unknown, and so are TNR, J and Rogan-Gladen." in found.remarks
    assert found.remarks[0].startswith("Whether x_score agrees with label beyond chance cannot be concluded from 3 labelled rows")
    assert found.pass_rate.loc[2, "note"] == "the score cannot tell good rows from bad ones: TPR + TNR is 1 or less, or unknown"


def test_agreement_constant_score_has_no_kappa_and_says_so():
    found = agreement(of(["yes", "no", "no"], [0.9, 0.9, 0.9], more=0), score="x", human="label")
    assert np.isnan(values(found)["kappa"])
    assert "x_score gave all 3 rows the label pass" in notes(found)["kappa"]


def test_agreement_score_that_passes_nothing_has_no_precision():
    found = agreement(of(["yes", "no"], [0.1, 0.2]), score="x", human="label")
    assert notes(found)["precision"] == "no row passes by the score"
    assert np.isnan(values(found)["precision"])


def test_agreement_on_all_rows_is_not_taken_for_certain():
    found = agreement(of(["yes", "yes", "no", "no"]), score="x", human="label")
    kappa = found.table.iloc[4]
    assert kappa["value"] == 1.0
    assert np.isnan(kappa["ci_low"])
    assert kappa["note"] == "all rows agree, so that resampling them shows no spread"
    # Wilson, 4 of 4: the low end is 4 / (4 + 3.8415) = 51 %.
    assert (
        found.remarks[0]
        == "x_score agrees with label on all 4 labelled rows; elsewhere they may agree on no more than 51 % (95 % interval of the accuracy)."
    )


def test_agreement_one_row_is_enough_to_say_little():
    found = agreement(of(["yes"], [0.9]), score="x", human="label")
    assert matrix(found) == [[1, 0], [0, 0]]
    assert found.remarks[0].startswith("Whether x_score agrees with label beyond chance cannot be concluded from 1 labelled row:")
    assert repr(found)
    assert found._repr_html_()


def test_agreement_contrary_labels_are_remarked():
    found = agreement(of(["no", "no", "no", "yes", "yes", "yes"] * 5, [0.9, 0.8, 0.9, 0.1, 0.2, 0.6] * 5), score="x", human="label")
    assert "less than chance would" in found.remarks[0]
    assert any("no better than a coin" in remark for remark in found.remarks)
    rogan = found.pass_rate.iloc[2]
    assert np.isnan(rogan["estimate"])


def test_agreement_few_rows_of_a_class_are_remarked():
    found = agreement(of(["yes"] * 12 + ["no"] * 2, [0.9] * 11 + [0.1] * 2 + [0.8]), score="x", human="label")
    # 1 of 2: Wilson from 9 to 91 %.
    assert "Only 2 labelled rows are a fail, so that TNR may be anything from 9 % to 91 %." in found.remarks


# The pass rate


def many(seed=0, *, rows=2000, labels=50):
    """Rows of which 70 % are good; the score passes 90 % of these and 40 % of the others. Some, at random, have a label."""
    rng = np.random.default_rng(seed)
    good = rng.random(rows) < 0.7
    passes = rng.random(rows) < np.where(good, 0.9, 0.4)
    label = pd.Series(np.where(good, "yes", "no"), dtype=object)
    label[rng.permutation(rows)[labels:]] = None
    return pd.DataFrame({"x_score": np.where(passes, 0.8, 0.3), "label": label, "good": good})


def test_agreement_pass_rate_equals_ppi_python_and_the_formula():
    from ppi_py import ppi_mean_pointestimate

    df = many()
    found = agreement(df, score="x", human="label")
    there = df["label"].notna()
    human, verdicts = (df.loc[there, "label"] == "yes").astype(float), (df["x_score"] >= 0.5).astype(float)
    estimate = found.pass_rate.set_index("method")["estimate"]
    assert estimate["PPI++"] == pytest.approx(
        float(ppi_mean_pointestimate(human.to_numpy(), verdicts[there].to_numpy(), verdicts[~there].to_numpy())[0]), abs=1e-9
    )
    assert estimate["labels only"] == human.mean()
    tpr, tnr = values(found)["tpr"], values(found)["tnr"]
    assert estimate["Rogan-Gladen"] == pytest.approx((verdicts[~there].mean() + tnr - 1) / (tpr + tnr - 1), abs=1e-12)
    assert found.pass_rate["n_labelled"].tolist() == [50, 50, 50]
    assert found.pass_rate["n_scored"].tolist() == [50, 2000, 2000]
    interval = ppi_rate(matrix(found), int(verdicts[~there].sum()), 1950)
    assert found.pass_rate.loc[1, ["ci_low", "ci_high"]].tolist() == [float(interval.low), float(interval.high)]


def test_agreement_pass_rate_covers_the_true_one_from_frames():
    # 100 frames from the caller's side; tests/analysis/test_rates.py has the 2,000 of each judge.
    held = []
    for seed in range(100):
        row = agreement(many(seed), score="x", human="label", resamples=100).pass_rate.iloc[1]
        held.append(row["ci_low"] <= 0.7 <= row["ci_high"])
    assert 0.9 <= np.mean(held) <= 0.99


def test_agreement_pass_rate_without_unlabelled_rows_is_the_labels_alone():
    found = agreement(ten(), score="relevancy", human="label").pass_rate
    assert found["estimate"].tolist()[:2] == [0.5, 0.5]
    assert found.loc[1, ["ci_low", "ci_high"]].tolist() == pytest.approx(found.loc[0, ["ci_low", "ci_high"]].tolist())
    assert np.isnan(found.loc[2, "estimate"])
    assert found["note"].tolist() == ["", "every scored row has a label: the labels alone", "every scored row has a label"]


def test_agreement_constant_verdicts_leave_the_labels_alone():
    df = pd.DataFrame({"x_score": [0.9] * 100, "label": ["yes"] * 6 + ["no"] * 4 + [None] * 90})
    found = agreement(df, score="x", human="label").pass_rate
    assert found["estimate"].tolist()[:2] == [0.6, 0.6]
    assert found.loc[1, "note"] == "the score gives every row the same verdict: the labels alone"


def test_agreement_labels_needed_are_fewer_with_the_score():
    needed = agreement(many(), score="x", human="label").labels_needed(0.1)
    assert needed.index.tolist() == ["labels only", "PPI++"]
    assert 0 < needed["PPI++"] < needed["labels only"]


def test_agreement_labels_needed_are_enough():
    first = agreement(many(), score="x", human="label")
    more = int(first.labels_needed(0.12)["PPI++"])
    row = agreement(many(labels=50 + more), score="x", human="label").pass_rate.iloc[1]
    assert row["ci_high"] - row["ci_low"] == pytest.approx(0.12, abs=0.02)


def test_agreement_picked_labels_are_remarked():
    df = many(labels=2000)
    # Somebody labelled what failed.
    df.loc[(df["x_score"] >= 0.5) & (np.arange(2000) > 20), "label"] = None
    assert any(
        "do not trust these pass rates unless the choice was random" in remark for remark in agreement(df, score="x", human="label").remarks
    )
    assert not any("do not trust" in remark for remark in agreement(many(), score="x", human="label").remarks)


# Several raters


def raters():
    return pd.DataFrame(
        {
            "x_score": [0.9, 0.8, 0.7, 0.2, 0.1, 0.6],
            "anna": ["yes", "yes", "no", "no", "no", None],
            "ben": [1, 1, 1, 0, 0, 1],
            "cleo": [True, False, True, False, None, False],
        }
    )


def test_agreement_several_raters_have_a_kappa_for_every_two():
    found = agreement(raters(), score="x", human=["anna", "ben", "cleo"])
    pairs = list(zip(found.kappas["rater_a"], found.kappas["rater_b"], strict=True))
    assert pairs == [("anna", "ben"), ("anna", "cleo"), ("anna", "x_score"), ("ben", "cleo"), ("ben", "x_score"), ("cleo", "x_score")]
    assert found.kappas["n"].tolist() == [5, 4, 5, 5, 6, 5]
    # anna and ben: yes yes no no no and 1 1 1 0 0: 4 of 5 agree, by chance (2*3 + 3*2) / 25 = 0.48; (0.8 - 0.48) / 0.52.
    assert found.kappas.loc[0, "kappa"] == pytest.approx(0.32 / 0.52)
    assert found.kappas.loc[0, "agreed"] == 0.8


def test_agreement_first_rater_is_the_reference():
    found = agreement(raters(), score="x", human=["ben", "anna"])
    assert found.human == "ben"
    assert matrix(found) == matrix(agreement(raters(), score="x", human="ben"))


def test_agreement_majority_is_the_reference_and_a_tie_is_unsure():
    found = agreement(raters(), score="x", human=["anna", "ben", "cleo"], reference="majority")
    # yes; yes (no from cleo); yes (no from anna); no; no; a tie of ben and cleo.
    assert found.human == "majority of 3"
    assert matrix(found) == [[3, 0], [0, 2]]
    assert found.counts.to_dict() == {"compared": 5, "unlabelled": 0, "unsure": 1, "unscored": 0}
    assert matrix(agreement(raters(), score="x", human=["anna", "ben", "cleo"], reference="majority", unsure="fail")) == [[3, 0], [1, 2]]


def test_agreement_raters_who_share_no_row_have_no_kappa():
    df = pd.DataFrame({"x_score": [0.9, 0.1, 0.9, 0.1], "a": ["yes", "no", None, None], "b": [None, None, "yes", "no"]})
    assert agreement(df, score="x", human=["a", "b"]).kappas.loc[0, ["n", "note"]].tolist() == [0, "no row has a label of both"]


def test_agreement_single_rater_has_one_kappa_that_of_the_table():
    found = agreement(ten(), score="relevancy", human="label")
    assert len(found.kappas) == 1
    assert found.kappas.loc[0, ["kappa", "ci_low", "ci_high"]].tolist() == found.table.iloc[4][["value", "ci_low", "ci_high"]].tolist()


# Rows


def test_agreement_rows_opens_a_cell():
    df = ten()
    found = agreement(df, score="relevancy", human="label")
    assert df.index[found.rows("fail", "pass")].tolist() == [5, 6]
    assert df.index[found.rows("pass", "fail")].tolist() == [4]
    assert found.rows("pass").sum() == 5
    assert found.rows().all()


def test_agreement_rows_cells_add_up_to_the_matrix():
    found = agreement(many(), score="x", human="label")
    assert [[int(found.rows(human, score).sum()) for score in found.classes] for human in found.classes] == matrix(found)
    assert found.rows("missing").sum() == found.counts["unlabelled"]


def test_agreement_rows_without_a_label_can_be_opened():
    found = agreement(unsure(), score="x", human="label")
    assert found.rows("unsure").tolist() == [False, True, True, False]


def test_agreement_rows_unknown_label_raises_with_the_choices():
    with pytest.raises(UnknownOptionError, match="human='good' is not known; choose one of 'missing', 'unsure', 'pass', 'fail'"):
        agreement(ten(), score="relevancy", human="label").rows("good")


@pytest.mark.parametrize("index", [[0, 0, 1, 1], pd.MultiIndex.from_product([["a", "b"], [1, 1]]), pd.to_datetime(["2026-01-01"] * 4)])
def test_agreement_index_does_not_matter(index):
    df = of(["yes", "no", "no", None])
    found, plain = agreement(df.set_axis(index), score="x", human="label"), agreement(df, score="x", human="label")
    pd.testing.assert_frame_equal(found.table, plain.table)
    assert df.set_axis(index)[found.rows("fail")]["x_score"].tolist() == [0.8, 0.2]


def test_agreement_changes_nothing():
    df = many()
    before = df.copy(deep=True)
    agreement(df, score="x", human="label")
    pd.testing.assert_frame_equal(df, before)


# Scores


@pytest.mark.parametrize("dtype", ["Float64", "float32", "double[pyarrow]", object, "category"])
def test_agreement_any_dtype_of_numbers_is_read(dtype):
    df = pd.DataFrame({"x_score": pd.Series([0.9, 0.1, None, 0.8], dtype=dtype), "label": ["yes", "no", "yes", None]})
    found = agreement(df, score="x", human="label", threshold=0.5)
    assert matrix(found) == [[1, 0], [0, 1]]
    assert found.counts.to_dict() == {"compared": 2, "unlabelled": 1, "unsure": 0, "unscored": 1}
    assert "Rows left out that have a label but no score: 1." in found.remarks


def test_agreement_score_is_a_column_or_a_scorers_name():
    df = ten().assign(relevancy=["yes"] * 10)
    assert agreement(df, score="relevancy_score", human="label").score == "relevancy_score"
    assert agreement(df, score="relevancy", human="label").score == "relevancy"
    assert agreement(ten(), score="relevancy", human="label").score == "relevancy_score"


def test_agreement_labels_that_are_no_texts_name_columns():
    df = pd.DataFrame({0: [0.9, 0.1], ("a", 1): ["yes", "no"]})
    df.columns = pd.Index([0, ("a", 1)], tupleize_cols=False)
    assert matrix(agreement(df, score=0, human=("a", 1))) == [[1, 0], [0, 1]]


def test_agreement_no_score_raises():
    with pytest.raises(OptionRangeError, match=r"no row has a score in 'x_score' \(2 rows\)"):
        agreement(of(["yes", "no"], [NAN, NAN]), score="x", human="label")


def test_agreement_infinite_score_raises():
    with pytest.raises(OptionRangeError, match="'x_score' holds infinite scores"):
        agreement(of(["yes", "no"], [np.inf, 0.2]), score="x", human="label")


@pytest.mark.parametrize("df", [of([None, None], [0.9, 0.1]), of(["unsure", None], [0.9, 0.1]), of(["yes", None], [NAN, 0.1])])
def test_agreement_no_labelled_row_raises_with_the_counts(df):
    with pytest.raises(
        OptionRangeError, match=r"has no row to compare: of 2 rows . have a value in 'x_score', . have a label in 'label', none has both"
    ):
        agreement(df, score="x", human="label")


def test_agreement_empty_frame_raises():
    with pytest.raises(OptionRangeError, match=r"no row has a score in 'x_score' \(0 rows\)"):
        agreement(of(["yes"]).iloc[:0], score="x", human="label")


def test_agreement_texts_of_numbers_with_a_threshold_raise_and_say_what_to_do():
    with pytest.raises(ArgumentTypeError, match=r"make numbers of them with pd\.to_numeric"):
        agreement(of(["yes", "no"], ["0.9", "0.1"]), score="x", human="label", threshold=0.5)


@pytest.mark.parametrize(
    ("options", "message"), [({"score": "relevancey"}, "relevancy_score"), ({"human": "labels"}, "Did you mean human='label'")]
)
def test_agreement_missing_column_raises_with_the_nearest(options, message):
    with pytest.raises(MissingColumnError, match=message):
        agreement(ten(), **{"score": "relevancy", "human": "label", **options})


def test_agreement_doubled_column_raises():
    df = pd.concat([ten(), ten()[["label"]]], axis=1)
    with pytest.raises(ColumnConflictError, match="2 columns of that name"):
        agreement(df, score="relevancy", human="label")


def test_agreement_one_column_for_both_raises():
    with pytest.raises(ColumnConflictError, match="'label' is given as the score and as a human label"):
        agreement(ten(), score="label", human="label")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"unsure": "drop"}, UnknownOptionError, "unsure='drop' is not known; choose one of 'exclude', 'fail', 'pass', 'class'"),
        ({"reference": "last"}, UnknownOptionError, "reference='last'"),
        ({"human": []}, OptionRangeError, "human="),
        ({"confidence": 95}, OptionRangeError, "confidence=95"),
        ({"resamples": 10}, OptionRangeError, "resamples=10"),
        ({"seed": -1}, OptionRangeError, "seed=-1"),
        ({"threshold": "0.5"}, ArgumentTypeError, "threshold must be a number, not str"),
        ({"threshold": True}, ArgumentTypeError, "threshold must be a number, not bool"),
    ],
)
def test_agreement_wrong_option_raises(options, error, message):
    with pytest.raises(error, match=message):
        agreement(ten(), **{"score": "relevancy", "human": "label", **options})


def test_agreement_other_than_a_frame_raises():
    with pytest.raises(ArgumentTypeError, match="agreement: the first argument must be a pandas DataFrame, not list"):
        agreement([], score="x", human="label")


# Judges


def test_agreement_mixed_judges_are_refused():
    df = ten().assign(relevancy_judge=["local"] * 3 + ["openai/gpt-5-mini"] * 7)
    message = r"come from 2 judges, 'local' \(3 rows\), 'openai/gpt-5-mini' \(7 rows\), .* df\[df\['relevancy_judge'\] == 'local'\], or pass mixed_judges=True"
    with pytest.raises(ColumnConflictError, match=message):
        agreement(df, score="relevancy", human="label")
    found = agreement(df, score="relevancy", human="label", mixed_judges=True)
    assert found.judges == ("local", "openai/gpt-5-mini")
    assert "The scores of 2 judges are mixed: the numbers describe none of them alone." in found.remarks


def test_agreement_judge_of_unscored_rows_does_not_count():
    df = ten().assign(relevancy_judge=["other", *["local"] * 9])
    df.loc[0, "relevancy_score"] = NAN
    assert agreement(df, score="relevancy", human="label").judges == ("local",)


# What is shown


def test_agreement_repr_says_the_conclusion_first_and_the_direction():
    text = repr(agreement(ten(), score="relevancy", human="label"))
    assert text.startswith(
        "It cannot be concluded from 10 labelled rows that relevancy_score agrees with label beyond chance (kappa 0.40, 95 % interval "
    )
    assert "relevancy_score >= 0.5 passes. Rows: 10 compared." in text
    assert "precision" in text


def test_agreement_beyond_chance_is_said_so():
    found = agreement(pd.concat([ten()] * 20, ignore_index=True), score="relevancy", human="label")
    assert found.remarks[0].startswith(
        "relevancy_score agrees with label beyond chance: on 70 % of 200 labelled rows (kappa 0.40, 95 % interval 0.2"
    )


@pytest.mark.parametrize(
    ("wrong", "how"),
    [(2, "agrees with label well beyond chance: on 98 %"), (40, "agrees with label only a little more than chance would: on 60 %")],
)
def test_agreement_grade_of_the_agreement_is_said(wrong, how):
    # 100 rows, half of them good; half of the wrong verdicts on each side. Kappa 0.96 and 0.2.
    scores = [0.1] * (wrong // 2) + [0.9] * (50 - wrong // 2)
    df = pd.DataFrame({"x_score": [*scores, *(1 - score for score in scores)], "label": ["yes"] * 50 + ["no"] * 50})
    assert how in agreement(df, score="x", human="label").remarks[0]


@pytest.mark.parametrize(
    ("score", "note"),
    [(0.1, "cut to 0: fewer rows pass than of the bad ones would"), (0.9, "cut to 1: more rows pass than of the good ones would")],
)
def test_agreement_formula_at_an_end_says_that_it_is_cut(score, note):
    df = pd.concat([ten(), pd.DataFrame({"relevancy_score": [score] * 20})])
    assert agreement(df, score="relevancy", human="label").pass_rate.loc[2, "note"] == note


def test_agreement_shown_tables_leave_out_an_empty_note():
    found = agreement(pd.concat([ten(), ten().assign(label=None)]), score="relevancy", human="label")
    assert "note" not in repr(found)
    assert repr(agreement(ten(), score="relevancy", human="label")).count("note") == 1


def test_agreement_better_threshold_is_remarked_with_a_warning():
    remarks = agreement(ten(), score="relevancy", human="label").remarks
    assert (
        "On these rows Youden's J is 0.60 at a threshold of 0.4, and 0.40 at 0.5. Chosen on them, it will do less well on others: confirm it with new labels."
        in remarks
    )


def test_agreement_html_is_escaped():
    bad = "</script><img src=x onerror=alert(1)>"
    df = pd.DataFrame(
        {f"{bad}_score": [0.9, 0.1, 0.8], bad: ["yes", "no", "no"], f"{bad}2": ["yes", "no", "yes"], f"{bad}_judge": [bad, bad, "local"]}
    )
    page = agreement(df, score=bad + "_score", human=[bad, f"{bad}2"], mixed_judges=True)._repr_html_()
    assert "<img" not in page
    assert "</script" not in page
    assert html.escape(bad) in page
    classes = pd.DataFrame({"judge": [bad, "b"], "label": [bad, "c"]})
    assert "<img" not in agreement(classes, score="judge", human="label")._repr_html_()


def test_agreement_pickles():
    found = agreement(ten(), score="relevancy", human="label")
    again = pickle.loads(pickle.dumps(found))
    assert isinstance(again, Agreement)
    assert repr(again) == repr(found)
