"""score over several scorers, and run_one."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, ScorerDefinitionError
from scorekit.scorers.relevancy import RELEVANCY
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


def test_score_again_with_names_that_begin_alike_writes_the_same_frame():
    scorers = [sk.score_tone, partial(sk.score_tone, name="tone_afinn", lexicon="afinn")]
    once = sk.score(DF, scorers)
    pd.testing.assert_frame_equal(sk.score(once, scorers), once)


def test_score_again_leaves_a_column_of_the_user_s_where_it_is():
    scored = sk.score(DF, [sk.score_tone]).assign(tone_notes=1, z=1)
    again = sk.score(scored, [sk.score_tone])
    assert list(again.columns[:4]) == ["input", "output", "tone_notes", "z"]
    assert list(again.columns[4:7]) == ["tone_score", "tone_reason", "tone_error"]


def test_score_again_with_a_function_of_the_user_s_writes_it_anew():
    once = sk.score(DF, [upper])
    changed = once.assign(output=["LOUD", "b"])
    assert sk.score(changed, [upper])["upper_score"].tolist() == [1.0, 0.0]


def test_score_function_that_reads_a_score_may_be_used():
    def half(df):
        return df.assign(half_score=df["upper_score"] / 2)

    assert sk.score(upper(DF), [half])["half_score"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "move",
    [
        lambda df: df.sort_values("output", ascending=False),
        lambda df: df.sort_values("output", ascending=False).reset_index(drop=True),
        lambda df: df.reset_index(drop=True).set_index(df.index[::-1] + 1),
    ],
)
def test_score_function_that_moves_rows_raises(move):
    df = pd.DataFrame({"input": ["x", "y"], "output": ["a", "b"]})
    with pytest.raises(ScorerDefinitionError, match="in another order or with another index"):
        sk.score(df, [lambda rows: move(rows).assign(my_score=1.0)])


def test_score_function_that_writes_into_its_frame_does_not_reach_the_caller_s():
    def vandal(df):
        df["my_score"] = 1.0
        return df

    df = DF.copy()
    assert "my_score" in sk.score(df, [vandal]).columns
    assert list(df.columns) == ["input", "output"]


def test_score_function_that_returns_fewer_columns_takes_none_away():
    scored = sk.score(DF.assign(id=[1, 2]), [lambda df: df[["output"]].assign(my_score=1.0)])
    assert list(scored.columns) == ["input", "output", "id", "my_score"]


def test_score_function_that_writes_other_columns_on_rows_raises_and_keeps_the_rest():
    def fickle(df):
        return df.assign(x_score=1.0) if len(df) else df.assign(my_score=1.0)

    with pytest.raises(ScorerDefinitionError, match="'my_score' on no rows, but not 'my_score' on 2") as caught:
        sk.score(DF, [sk.score_text_difference, fickle])
    assert "text_difference_score" in caught.value.partial.columns


def test_score_keeps_the_judge_that_a_scorer_brings():
    own, given = FakeJudge(REPLIES, label="own"), FakeJudge(REPLIES, label="given")
    scorer = replace(RELEVANCY, judge=own)
    assert sk.score(DF, [scorer], judge=given)["relevancy_judge"].iloc[0] == "own"


def test_score_repeats_reach_judged_scorers_alone():
    scored = sk.score(DF, [sk.score_tone, sk.score_relevancy], judge=FakeJudge(REPLIES), repeats=2)
    assert "relevancy_spread" in scored.columns
    assert "tone_spread" not in scored.columns


def test_score_frame_with_arrays_in_its_attrs_is_scored():
    df = DF.copy()
    df.attrs["vector"] = np.array([1, 2])
    assert sk.score(df, [sk.score_tone, sk.score_text_difference]).attrs["vector"].tolist() == [1, 2]


def test_score_warns_of_the_local_judge_at_the_caller_s_line():
    with pytest.warns(sk.LocalJudgeWarning) as warned:
        sk.score(DF, [sk.score_relevancy])
    assert [warning.filename for warning in warned] == [__file__]


def test_score_columns_that_are_numbers_can_be_named():
    df = pd.DataFrame({0: ["a"], 1: ["a"]})
    assert sk.score_text_difference(df, input=0, output=1)["text_difference_score"].tolist() == [1.0]


def test_run_one_options_reach_the_scorer():
    text = "This product is fantastic and amazing!"
    result = sk.run_one(sk.score_tone, input=text, output="The product is excellent and wonderful!", lexicon="afinn")
    assert result.score == pytest.approx(0.8333333333333335, abs=1e-12)


def test_run_one_reason_that_looks_like_json_stays_text():
    result = sk.run_one(sk.score_relevancy, judge=FakeJudge({**REPLIES, "generate_reason": {"reason": '["a"]'}}), input="q", output="a")
    assert result.reason == '["a"]'
