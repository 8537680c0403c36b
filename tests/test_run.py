"""score over several scorers, and run_one."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, ScorerDefinitionError
from scorekit.testing import FakeJudge

DF = pd.DataFrame({"input": ["I love it.", None], "output": ["I like it.", "b"]}, index=[4, 4])
REPLIES = {
    "preprocess": {"statements": ["s"]},
    "analyze": {"results": [{"statement": 1, "result": "yes", "reason": "r"}]},
    "generate_reason": {"reason": "why"},
}


def upper(df):
    return df.assign(upper_score=df["output"].str.isupper().astype(float))


def test_score_adds_each_scorer_s_columns_in_order():
    scored = sk.score(DF, [sk.score_text_difference, upper, partial(sk.score_relevancy, judge=FakeJudge(REPLIES))])
    assert [column for column in scored.columns if column.endswith("_score")] == ["text_difference_score", "upper_score", "relevancy_score"]
    assert scored.index.tolist() == [4, 4]
    assert scored["relevancy_score"].fillna(-1).tolist() == [1.0, -1.0]


def test_score_equals_piping_one_by_one():
    judge = FakeJudge(REPLIES)
    together = sk.score(DF, [sk.score_tone, sk.score_text_difference, sk.score_relevancy], judge=judge)
    piped = DF.pipe(sk.score_tone).pipe(sk.score_text_difference).pipe(sk.score_relevancy, judge=judge)
    pd.testing.assert_frame_equal(together, piped)


def test_score_again_writes_the_same_frame():
    scorers = [sk.score_tone, sk.score_text_difference]
    once = sk.score(DF, scorers)
    pd.testing.assert_frame_equal(sk.score(once, scorers), once)


def test_score_passes_the_judge_only_where_it_is_unbound():
    bound, given = FakeJudge(REPLIES, label="bound"), FakeJudge(REPLIES, label="given")
    scored = sk.score(DF, [partial(sk.score_relevancy, judge=bound), partial(sk.score_relevancy, name="second")], judge=given)
    assert scored["relevancy_judge"].iloc[0] == "bound"
    assert scored["second_judge"].iloc[0] == "given"


def test_score_two_scorers_of_one_name_raise_before_any_request():
    judge = FakeJudge(REPLIES)
    with pytest.raises(ColumnConflictError, match="Give one of them another name="):
        sk.score(DF, [sk.score_relevancy, sk.score_relevancy], judge=judge)
    assert judge.requests == []


def test_score_two_scorers_of_one_name_raise_on_a_scored_frame_too():
    once = sk.score(DF, [sk.score_tone])
    with pytest.raises(ColumnConflictError, match="score_tone and score_tone"):
        sk.score(once, [sk.score_tone, partial(sk.score_tone, lexicon="afinn")])


def test_score_missing_column_raises_before_any_request():
    judge = FakeJudge(REPLIES)
    with pytest.raises(MissingColumnError):
        sk.score(DF.drop(columns="input"), [sk.score_relevancy], judge=judge)
    assert judge.requests == []


def test_score_callable_without_a_score_column_raises():
    with pytest.raises(ScorerDefinitionError, match="added no column that ends in '_score'"):
        sk.score(DF, [lambda df: df.assign(x=1)])


def test_score_callable_that_drops_rows_raises():
    def dropping(df):
        return df.assign(a_score=1.0).iloc[:1]

    with pytest.raises(ScorerDefinitionError, match="returned 1 rows for 2"):
        sk.score(DF, [dropping])


@pytest.mark.parametrize("scorers", [[], ["relevancy"], [None]])
def test_score_without_callables_raises(scorers):
    with pytest.raises(ArgumentTypeError):
        sk.score(DF, scorers)


def test_score_bug_in_one_scorer_keeps_the_others_in_partial():
    def broken(df):
        if len(df):
            raise ZeroDivisionError
        return df.assign(broken_score=1.0)

    with pytest.raises(ZeroDivisionError) as caught:
        sk.score(DF, [sk.score_text_difference, broken])
    assert "text_difference_score" in caught.value.partial.columns


def test_score_exception_of_a_judged_scorer_keeps_code_scores_in_partial():
    judge = FakeJudge(lambda request: RuntimeError("judge broke"))
    with pytest.raises(RuntimeError, match="judge broke") as caught:
        sk.score(DF, [sk.score_text_difference, sk.score_relevancy], judge=judge)
    assert caught.value.partial["text_difference_score"].notna().tolist() == [True, False]
    assert caught.value.partial["relevancy_error"].tolist() == ["cancelled", "missing_input"]


def test_score_empty_frame_gives_final_columns():
    scorers = [sk.score_tone, sk.score_text_difference, partial(sk.score_relevancy, judge=FakeJudge(REPLIES))]
    assert sk.score(DF.iloc[:0], scorers).dtypes.equals(sk.score(DF, scorers).dtypes)


def test_score_progress_bar_counts_every_row_once(capsys, monkeypatch):
    monkeypatch.setattr("scorekit.progress.SILENT_S", 0.0)
    sk.score(DF, [sk.score_text_difference, partial(sk.score_relevancy, judge=FakeJudge(REPLIES))])
    assert "4/4" in capsys.readouterr().err


def test_score_progress_can_be_turned_off(capsys, monkeypatch):
    monkeypatch.setattr("scorekit.progress.SILENT_S", 0.0)
    sk.score(DF, [sk.score_text_difference], progress=False)
    monkeypatch.setenv("SCOREKIT_PROGRESS", "0")
    sk.score(DF, [sk.score_text_difference])
    assert capsys.readouterr().err == ""


def test_run_one_gives_score_steps_and_prompts():
    result = sk.run_one(sk.score_relevancy, judge=FakeJudge(REPLIES), input="q", output="a")
    assert (result.score, result.reason, result.error, result.judge) == (1.0, "why", None, "fake")
    assert result.steps["statements"] == ["s"]
    assert result.steps["results"] == [{"statement": 1, "result": "yes", "reason": "r"}]
    assert sorted(result.prompts) == ["analyze", "generate_reason", "preprocess"]


def test_run_one_messages_are_read_like_cells():
    result = sk.run_one(sk.score_text_difference, input=[{"role": "user", "content": "a"}], output=[{"role": "assistant", "content": "a"}])
    assert result.score == 1.0


def test_run_one_missing_text_has_an_error_and_no_score():
    result = sk.run_one(sk.score_text_difference, input="a", output=None)
    assert np.isnan(result.score)
    assert (result.error, result.reason) == ("missing_input", "The output is missing.")


def test_run_one_ids_differ():
    first, second = (sk.run_one(sk.score_text_difference, input="a", output="b").run_id for _ in range(2))
    assert first != second


def test_score_maps_columns_for_every_scorer_that_reads_them():
    df = DF.rename(columns={"input": "q", "output": "a"})
    has_x = sk.Scorer("has_x", needs=("output",), generate_score=lambda rows: rows["output"].str.contains("x"))
    scored = sk.score(df, [sk.score_text_difference, has_x, partial(sk.score_relevancy, judge=FakeJudge(REPLIES))], input="q", output="a")
    assert [column for column in scored.columns if column.endswith("_score")] == ["text_difference_score", "has_x_score", "relevancy_score"]


def test_score_column_that_no_scorer_reads_raises():
    with pytest.raises(ArgumentTypeError, match="score has no argument 'lexicon'"):
        sk.score(DF, [sk.score_text_difference], lexicon="afinn")
