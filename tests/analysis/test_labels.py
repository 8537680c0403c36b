"""Labels of any type as the same few classes: read alone, and by agreement."""

import numpy as np
import pandas as pd
import pytest

from scorekit.analysis.agreement import agreement
from scorekit.analysis.labels import match_classes, read_labels, read_meanings, spelled
from scorekit.errors import ArgumentTypeError, ColumnConflictError, OptionRangeError, UnknownOptionError

NAN = float("nan")


def of(labels, scores=None, **more):
    scores = [0.9, 0.8, 0.2, 0.1][: len(labels)] if scores is None else scores
    return pd.DataFrame({"x_score": scores, "label": pd.Series(labels), **more})


def matrix(found):
    return found.matrix.to_numpy().tolist()


def values(found):
    return dict(zip(found.table["metric"], found.table["value"], strict=True))


def notes(found):
    return dict(zip(found.table["metric"], found.table["note"], strict=True))


# Reading labels


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (1, "1"),
        (1.0, "1"),
        ("1.00", "1"),
        (0.5, "0.5"),
        (True, "true"),
        (np.True_, "true"),
        (" Not\nSure ", "not sure"),
        (np.float32(2), "2"),
        ("-1.0", "-1"),
    ],
)
def test_spelled_makes_one_text_of_what_means_the_same(cell, expected):
    assert spelled(cell) == expected


def test_read_labels_tells_true_from_1():
    found = read_labels(pd.Series([True, 1, "x"], dtype=object), read_meanings({"1": "one", "true": "truth"}), "agreement")
    assert found.words == ("one", "truth", "x")
    assert found.codes.tolist() == [1, 0, 2]


def test_match_classes_puts_pass_and_fail_first_then_numbers_then_words():
    column = read_labels(pd.Series(["zebra", "10", "9", "fail", "yes"]), {}, "agreement")
    assert match_classes([column], "agreement").names == ("yes", "fail", "9", "10", "zebra")


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        [1, 1, 0, 0],
        [1.0, 1.0, 0.0, 0.0],
        ["1", "1", "0", "0"],
        ["1.0", "1", "0", "0.0"],
        [True, True, False, False],
        ["True", "TRUE", "false", "f"],
        ["Yes", " y ", "NO", "n"],
        ["pass", "Passed", "FAIL", "failed"],
        ["good", "correct", "bad", "incorrect"],
        [1, "1", 0, "0"],
        [True, 1, False, 0],
        ["👍", "👍", "👎", "👎"],
        pd.array([True, True, False, False], dtype="boolean"),
        pd.array([1, 1, 0, 0], dtype="Int8"),
        pd.Categorical(["yes", "yes", "no", "no"], categories=["no", "never", "yes"]),
        pd.Categorical([1, 1, 0, 0]),
        pd.Categorical([True, True, False, False]),
        pd.array(["yes", "yes", "no", "no"], dtype="string"),
        pd.array(["yes", "yes", "no", "no"], dtype="string[pyarrow]"),
        pd.array([True, True, False, False], dtype="bool[pyarrow]"),
        pd.array([1, 1, 0, 0], dtype="int64[pyarrow]"),
        [np.bool_(True), np.int64(1), np.False_, np.float32(0)],
    ],
    ids=str,
)
def test_agreement_labels_of_any_type_are_matched(labels):
    assert matrix(agreement(of(labels), score="x", human="label")) == [[2, 0], [0, 2]]


@pytest.mark.parametrize(
    "labels",
    [
        ["yes", None, "no", "nan"],
        ["yes", "", "no", "N/A"],
        [1, NAN, 0, NAN],
        [True, None, False, pd.NA],
        pd.array([True, None, False, None], dtype="boolean"),
        pd.array(["yes", None, "no", None], dtype="string[pyarrow]"),
        pd.array([1, None, 0, None], dtype="int64[pyarrow]"),
        pd.Categorical(["yes", None, "no", None]),
    ],
    ids=str,
)
def test_agreement_missing_labels_are_the_unlabelled_rows(labels):
    found = agreement(of(labels), score="x", human="label")
    assert matrix(found) == [[1, 0], [0, 1]]
    assert found.counts.to_dict() == {"compared": 2, "unlabelled": 2, "unsure": 0, "unscored": 0}
    assert found.pass_rate["n_scored"].tolist() == [2, 4, 4]


def test_agreement_labels_maps_the_users_own_words():
    found = agreement(
        of(["OK", "meh", "poor", "skipped"]),
        score="x",
        human="label",
        labels={"ok": "pass", "meh": "unsure", "Poor": "fail", "skipped": None},
    )
    assert matrix(found) == [[1, 0], [0, 1]]
    assert found.counts.to_dict() == {"compared": 2, "unlabelled": 1, "unsure": 1, "unscored": 0}


def test_agreement_labels_turns_round_what_1_means():
    df = pd.DataFrame({"toxicity_score": [0.1, 0.2, 0.9], "toxic": [0, 0, 1]})
    assert matrix(agreement(df, score="toxicity", human="toxic", labels={1: "fail", 0: "pass"})) == [[2, 0], [0, 1]]


@pytest.mark.parametrize("labels", [{1: "fail", 0: "pass"}, {True: "fail", False: "pass"}, {"True": "fail", "0": "pass"}])
@pytest.mark.parametrize("column", [[0, 0, 1], [False, False, True], ["0", "false", "TRUE"]])
def test_agreement_labels_says_of_true_what_it_says_of_1(labels, column):
    df = pd.DataFrame({"toxicity_score": [0.1, 0.2, 0.9], "toxic": column})
    assert matrix(agreement(df, score="toxicity", human="toxic", labels=labels)) == [[2, 0], [0, 1]]


def test_agreement_unknown_word_raises_and_says_how_to_map_it():
    with pytest.raises(
        UnknownOptionError, match=r"does not know whether 'meh', 'ok' in 'label' means pass or fail\. Say it with labels=\{'meh': 'pass'\}"
    ):
        agreement(of(["ok", "meh", "no"]), score="x", human="label")


def test_agreement_unknown_words_are_shown_shortened():
    with pytest.raises(UnknownOptionError) as caught:
        agreement(of(["x" * 5000, "no"]), score="x", human="label")
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize("labels", [["a"], "pass", {"ok": 1}])
def test_agreement_labels_of_another_kind_raises(labels):
    with pytest.raises(ArgumentTypeError, match="labels"):
        agreement(of(["yes", "no"]), score="x", human="label", labels=labels)


def test_agreement_labels_with_two_meanings_for_one_word_raises():
    with pytest.raises(ColumnConflictError, match="'1' means both 'pass' and 'fail'"):
        agreement(of(["yes", "no"]), score="x", human="label", labels={1: "pass", "1": "fail"})


def test_agreement_lists_as_labels_raise():
    with pytest.raises(ArgumentTypeError, match="the column 'label' must hold labels"):
        agreement(of([["yes"], ["no"]]), score="x", human="label")


# Unsure


def unsure():
    return of(["yes", "unsure", "Maybe", "no"], [0.9, 0.8, 0.2, 0.1])


@pytest.mark.parametrize(
    ("rule", "expected", "left_out"),
    [("exclude", [[1, 0], [0, 1]], 2), ("fail", [[1, 0], [1, 2]], 0), ("pass", [[2, 1], [0, 1]], 0)],
)
def test_agreement_unsure_follows_its_rule(rule, expected, left_out):
    found = agreement(unsure(), score="x", human="label", unsure=rule)
    assert matrix(found) == expected
    assert found.counts["unsure"] == left_out
    assert found.counts.sum() == 4


def test_agreement_unsure_rows_are_neither_labelled_nor_unlabelled():
    found = agreement(unsure(), score="x", human="label")
    assert found.pass_rate["n_scored"].tolist() == [2, 2, 2]


def test_agreement_unsure_as_a_class_needs_a_score_of_labels():
    with pytest.raises(OptionRangeError, match="unsure='class' needs a score that can say unsure"):
        agreement(unsure(), score="x", human="label", unsure="class")
    df = pd.DataFrame({"judge": ["yes", "no", "unsure"], "label": ["yes", "unsure", "unsure"]})
    found = agreement(df, score="judge", human="label", unsure="class")
    assert found.classes == ("yes", "no", "unsure")
    assert matrix(found) == [[1, 0, 0], [0, 0, 0], [0, 1, 1]]


def test_agreement_unsure_as_fail_needs_pass_and_fail():
    df = pd.DataFrame({"judge": ["a", "b", "unsure"], "label": ["a", "b", "c"]})
    with pytest.raises(
        OptionRangeError, match="unsure='fail' is out of range: it must be 'exclude' or 'class' where the labels are not pass and fail"
    ):
        agreement(df, score="judge", human="label", unsure="fail")


# A score of labels, and more than two classes


def test_agreement_score_of_labels_is_matched_over_types():
    df = pd.DataFrame({"judge": ["1", "0", "1", "0"], "label": [True, False, False, True]})
    found = agreement(df, score="judge", human="label")
    assert matrix(found) == [[1, 1], [1, 1]]
    assert np.isnan(found.threshold)
    assert np.isnan(found.best_threshold)
    assert len(found.curve) == 0
    assert found.pass_rate["method"].tolist() == ["labels only", "PPI++", "Rogan-Gladen"]


def test_agreement_boolean_score_is_a_column_of_labels():
    df = pd.DataFrame({"x_score": [True, False], "label": ["yes", "no"]})
    assert matrix(agreement(df, score="x", human="label")) == [[1, 0], [0, 1]]
    with pytest.raises(ArgumentTypeError, match=r"threshold=0\.5 needs a score of numbers, and the dtype of 'x_score' is bool"):
        agreement(df, score="x", human="label", threshold=0.5)


def test_agreement_three_classes_by_hand():
    df = pd.DataFrame({"judge": list("aaabbbccca"), "label": list("aaabbcccab")})
    found = agreement(df, score="judge", human="label")
    assert found.classes == ("a", "b", "c")
    # label a: 3 judged a, 1 c; b: 1 a, 2 b; c: 1 b, 2 c. 7 of 10 agree, by chance (4*4 + 3*3 + 3*3) / 100 = 0.34: kappa 0.36 / 0.66.
    assert matrix(found) == [[3, 0, 1], [1, 2, 0], [0, 1, 2]]
    assert values(found) == pytest.approx({"accuracy": 0.7, "tpr": NAN, "tnr": NAN, "precision": NAN, "kappa": 6 / 11}, nan_ok=True)
    assert notes(found)["tpr"] == "the labels are not pass and fail"
    assert len(found.pass_rate) == 0
    with pytest.raises(OptionRangeError, match="a pass rate needs labels of pass and fail, and these are 'a', 'b', 'c'"):
        found.labels_needed(0.1)


def test_agreement_three_classes_equal_scikit_learn():
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    rng = np.random.default_rng(0)
    label = rng.choice(["low", "middle", "high"], 200)
    judge = np.where(rng.random(200) < 0.6, label, rng.choice(["low", "middle", "high"], 200))
    found = agreement(pd.DataFrame({"judge": judge, "label": label}), score="judge", human="label")
    assert matrix(found) == confusion_matrix(label, judge, labels=list(found.classes)).tolist()
    assert values(found)["kappa"] == pytest.approx(cohen_kappa_score(label, judge), abs=1e-12)


def test_agreement_classes_of_numbers_come_by_size_and_match_texts():
    df = pd.DataFrame({"judge": ["10", "9", "1", "2"], "label": [10, 9, 2, 2]})
    found = agreement(df, score="judge", human="label")
    assert found.classes == ("1", "2", "9", "10")
    assert np.trace(found.matrix.to_numpy()) == 3


def test_agreement_words_of_one_meaning_are_one_class():
    df = pd.DataFrame({"judge": [True, False, "partly", True], "label": ["yes", "no", "partly", "no"]})
    found = agreement(df, score="judge", human="label")
    assert found.classes == ("pass", "fail", "partly")
    assert matrix(found) == [[1, 0, 0], [1, 1, 0], [0, 0, 1]]


def test_agreement_labels_without_any_in_common_raise():
    df = pd.DataFrame({"judge": ["safe", "toxic"], "label": ["A", "B"]})
    with pytest.raises(UnknownOptionError, match=r"the labels of 'label' \('a', 'b'\) and 'judge' \('safe', 'toxic'\) have none in common"):
        agreement(df, score="judge", human="label")
    assert matrix(agreement(df, score="judge", human="label", labels={"safe": "A", "toxic": "B"})) == [[1, 0], [0, 1]]


def test_agreement_class_of_one_rater_alone_is_remarked():
    df = pd.DataFrame({"judge": ["a", "b", "b"], "label": ["a", "b", "bb"]})
    assert (
        "Only label uses the label bb; if it means the same as another, say so with labels=."
        in agreement(df, score="judge", human="label").remarks
    )
