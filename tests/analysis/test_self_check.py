"""self_check: figures worked out by hand."""

import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.testing import FakeJudge

DF = pd.DataFrame({"input": ["q"] * 2, "output": ["a", "b"]})


def judge(scores):
    """Verdicts so that output ``o`` gets ``scores[o][repeat]``; None gives an invalid reply."""

    def analyze(request):
        score = scores[request.context["output"]][request.repeat]
        if score is None:
            return "no json"
        words = ["yes"] * int(10 * score) + ["no"] * (10 - int(10 * score))
        return {"results": [{"statement": n, "result": word, "reason": "r"} for n, word in enumerate(words, 1)]}

    return FakeJudge({"preprocess": {"statements": list("abcdefghij")}, "analyze": analyze, "generate_reason": {"reason": "r"}})


def test_self_check_steady_judge_agrees_wholly():
    found = sk.self_check(sk.score_relevancy, DF, judge=judge({"a": [1, 1, 1], "b": [0, 0, 0]})).loc["relevancy"]
    assert found[["rows", "repeats", "unscored", "identical", "mean_difference", "noise_sd", "icc"]].tolist() == [2, 3, 0, 1, 0, 0, 1]


def test_self_check_wavering_judge_by_hand():
    found = sk.self_check(sk.score_relevancy, DF, repeats=2, judge=judge({"a": [1, 0.8], "b": [0.2, 0.2]})).loc["relevancy"]
    # means .9 and .2; within mean square (.01 + .01) / 2 = .01; between 2 * (.35 ** 2 * 2) / 1 = .49... = .245 * 2
    assert found["identical"] == 0.5
    assert found["mean_difference"] == pytest.approx(0.1)
    assert found["noise_sd"] == pytest.approx(0.1)
    assert found["icc"] == pytest.approx((0.49 - 0.01) / (0.49 + 0.01))


def test_self_check_rows_with_one_score_are_counted_and_left_out():
    found = sk.self_check(sk.score_relevancy, DF, repeats=2, judge=judge({"a": [1, 1], "b": [0, None]})).loc["relevancy"]
    assert (found["unscored"], found["identical"]) == (1, 1.0)
    assert pd.isna(found["icc"])


def test_self_check_ignores_scores_of_an_earlier_run():
    scored = sk.score_text_difference(DF.assign(output=["q", "b"]))
    found = sk.self_check(sk.score_relevancy, scored, judge=judge({"q": [1, 1, 1], "b": [0, 0, 0]}))
    assert found.index.tolist() == ["relevancy"]


def test_self_check_one_repeat_raises():
    with pytest.raises(OptionRangeError):
        sk.self_check(sk.score_relevancy, DF, repeats=1, judge=judge({}))


def test_self_check_code_scorer_raises():
    with pytest.raises(ArgumentTypeError, match="takes no repeats="):
        sk.self_check(sk.score_text_difference, DF)


def test_self_check_row_without_an_input_counts_as_unscored():
    df = pd.DataFrame({"input": ["q", "q", None], "output": ["a", "b", "c"]})
    found = sk.self_check(sk.score_relevancy, df, judge=judge({"a": [1, 1, 1], "b": [0, 0, 0]}))
    assert found.loc["relevancy", ["rows", "unscored"]].tolist() == [3, 1]


def test_self_check_scorer_value_of_code_raises():
    scorer = sk.Scorer("s", needs=("output",), generate_score=lambda rows: rows["output"].str.len())
    with pytest.raises(ArgumentTypeError):
        sk.self_check(scorer, DF)
