"""check_scorer catches scorers that break a promise; FakeJudge answers from its script."""

from functools import partial

import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import UnknownOptionError
from scorekit.testing import FakeJudge, check_scorer

ODD = pd.DataFrame(
    {"input": ["I like it.", None, "", "日本語です。", "b"], "output": ["I hate it.", "b", "", 5, "b"], "context": ["c"] * 5},
    index=[7, 7, 1, 2, 3],
)
REPLIES = {
    "preprocess": {"statements": ["s", "t"]},
    "analyze": {"results": [{"statement": 1, "result": "yes", "reason": "r"}, {"statement": 2, "result": "no", "reason": "r"}]},
    "generate_reason": {"reason": "why"},
}


@pytest.mark.parametrize("scorer", [sk.score_tone, sk.score_text_difference, partial(sk.score_relevancy, judge=sk.LocalJudge())], ids=str)
def test_shipped_scorers_without_a_judge_keep_every_promise(scorer):
    check_scorer(scorer, ODD)


@pytest.mark.parametrize("scorer", [sk.score_relevancy, sk.score_toxicity, sk.score_faithfulness, sk.score_hallucination])
def test_shipped_judged_scorers_keep_every_promise(scorer):
    judge = FakeJudge(REPLIES)
    check_scorer(partial(scorer, judge=judge), ODD, judge=judge, pickles=False)


def result(df, score, error=None, dtype="float64"):
    columns = {"x_score": pd.Series(score, df.index, dtype=dtype), "x_reason": "r", "x_error": error}
    return df.assign(**columns).astype({"x_reason": "string", "x_error": "string"})


BROKEN = {
    "dtypes": (lambda df: df.assign(x_score=1), "must be float64; it is int64"),
    "no reason": (lambda df: df.assign(x_score=1.0), "'x_reason' must be string; it is missing"),
    "no code": (lambda df: result(df, float("nan")), "a code exactly where"),
    "both": (lambda df: result(df, 1.0, "not_scorable"), "a code exactly where"),
    "by position": (lambda df: result(df, [float(n) for n in range(len(df))]), "scored in two parts"),
    "none": (lambda df: df.copy(), "added no column <name>_score"),
}


@pytest.mark.parametrize(("scorer", "message"), BROKEN.values(), ids=BROKEN)
def test_check_scorer_catches(scorer, message):
    with pytest.raises(AssertionError, match=message):
        check_scorer(scorer, pd.DataFrame({"output": ["a", "b"]}), pickles=False)


def test_check_scorer_catches_one_that_changes_the_frame():
    def vandal(df):
        df["output"] = "x"
        return result(df, 1.0)

    with pytest.raises(AssertionError, match="the frame given to the scorer"):
        check_scorer(vandal, pd.DataFrame({"output": ["a", "b"]}), pickles=False)


def test_check_scorer_catches_one_that_asks_about_no_rows():
    judge = FakeJudge(lambda request: {})

    def asks(df):
        judge.requests.append(None)
        return result(df, 1.0)

    with pytest.raises(AssertionError, match="No rows must ask nothing"):
        check_scorer(asks, pd.DataFrame({"output": ["a", "b"]}), judge=judge, pickles=False)


def test_fake_judge_without_a_reply_for_a_step_names_what_it_has():
    with pytest.raises(UnknownOptionError, match=r"no reply for 'relevancy\.preprocess'; it has 'anlyze'"):
        sk.score_relevancy(ODD.iloc[:1], judge=FakeJudge({"anlyze": {}}))


def test_fake_judge_reply_that_does_not_fit_names_the_field():
    scored = sk.score_relevancy(ODD.iloc[:1], judge=FakeJudge({"preprocess": {}}))
    assert scored["relevancy_error"].tolist() == ["reply_invalid"]
    assert "statements: Field required" in scored["relevancy_reason"].iloc[0]
