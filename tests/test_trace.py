"""The trace of run_one: what each step asked, got and gave; and that noting it changes nothing."""

import json

import numpy as np
import pandas as pd
import pytest
from loopback import Reply

import scorekit as sk
from scorekit.scorers.relevancy import RELEVANCY
from scorekit.testing import FakeJudge
from scorekit.trace import TRACE

VERDICTS = {"results": [{"statement": 1, "result": "yes", "reason": "r"}]}
REPLIES = {"preprocess": '{"statements": ["s"]}', "analyze": VERDICTS, "generate_reason": {"reason": "why"}}
ALL_STEPS = ["preprocess", "analyze", "generate_score", "generate_reason"]


def relevancy(judge, **columns):
    return sk.run_one(sk.score_relevancy, judge=judge, **{"input": "q?", "output": "a.", **columns})


def test_trace_of_a_judged_row_has_prompts_replies_and_fields_of_each_step():
    trace = relevancy(FakeJudge(REPLIES)).trace
    assert [(run.scorer, run.step, run.kind, run.calls) for run in trace] == [
        ("relevancy", "preprocess", "judge", 1),
        ("relevancy", "analyze", "judge", 1),
        ("relevancy", "generate_score", "code", 0),
        ("relevancy", "generate_reason", "judge", 1),
    ]
    assert [run.fields for run in trace] == [
        {"statements": ["s"]},
        VERDICTS,
        {"yes": 1.0, "unsure": 0.0, "no": 0.0, "score": 1.0},
        {"reason": "why"},
    ]
    assert trace[0].reply == '{"statements": ["s"]}'
    assert [message["role"] for message in trace[0].messages] == ["system", "user"]
    assert "<output>\na.\n</output>" in trace[0].messages[1]["content"]
    assert (trace[2].messages, trace[2].reply) == ((), None)


def test_trace_prompts_are_those_of_the_result():
    result = relevancy(FakeJudge(REPLIES))
    told = {run.step: "\n\n".join(message["content"] for message in run.messages) for run in result.trace if run.messages}
    assert told == result.prompts


def test_trace_of_the_local_judge_has_stand_ins_and_asks_nothing():
    trace = relevancy("local", input="Why is the sky blue?", output="Air scatters blue light.").trace
    assert [(run.step, run.kind, run.messages) for run in trace] == [
        ("preprocess", "local", ()),
        ("analyze", "local", ()),
        ("generate_score", "code", ()),
        ("generate_reason", "local", ()),
    ]
    assert trace[0].fields == {"statements": ["Air scatters blue light."]}


@pytest.mark.parametrize("judge", [FakeJudge(REPLIES), "local"])
def test_trace_steps_that_need_no_call_are_skipped_and_give_their_stand_in_fields(judge):
    trace = relevancy(judge, output="").trace
    assert [(run.step, run.kind) for run in trace] == [
        ("preprocess", "skipped"),
        ("analyze", "skipped"),
        ("generate_score", "code"),
        ("generate_reason", "skipped"),
    ]
    assert trace[3].fields == {"reason": "The output is empty."}


def test_trace_row_that_a_code_step_stops_ends_with_why():
    (run,) = sk.run_one(sk.score_tone, input="Why?", output="ビールが好き").trace
    assert (run.step, run.kind, run.error) == ("preprocess", "code", "not_scorable")
    assert run.reason.startswith("Most letters of the output are not Latin")


def test_trace_row_without_a_number_for_a_score_ends_with_why():
    scorer = sk.Scorer("nothing", needs=("output",), generate_score=lambda rows: rows["output"].map({}).astype("float64"))
    (run,) = sk.run_one(scorer, output="a").trace
    assert (run.fields, run.error) == ({"score": None}, "not_scorable")


def test_trace_row_that_a_reply_stops_ends_with_the_raw_reply_and_the_error():
    trace = relevancy(FakeJudge({**REPLIES, "analyze": '{"results": []}'})).trace
    assert [(run.step, run.error) for run in trace] == [("preprocess", None), ("analyze", "reply_invalid")]
    assert (trace[1].fields, trace[1].reply) == ({}, '{"results": []}')
    assert "expected exactly one verdict for each of the 1 statements" in trace[1].reason


def test_trace_failed_explanation_has_its_error_and_the_row_keeps_its_score():
    result = relevancy(FakeJudge({**REPLIES, "generate_reason": "no JSON"}))
    assert (result.score, result.error) == (1.0, None)
    assert (result.trace[-1].step, result.trace[-1].error, result.trace[-1].fields) == ("generate_reason", "reply_invalid", {})


def test_trace_row_with_a_bad_input_has_no_steps():
    result = sk.run_one(sk.score_text_difference, input="a", output=None)
    assert (result.error, result.trace) == ("missing_input", ())


def test_trace_repeats_follow_one_another():
    trace = relevancy(FakeJudge(REPLIES), repeats=2).trace
    assert [(run.repeat, run.step) for run in trace] == [(repeat, step) for repeat in (0, 1) for step in ALL_STEPS]


def test_trace_counts_calls_and_tokens_and_knows_the_cache(loopback):
    loopback.when("Break the output", Reply('{"statements": ["s"]}'))
    loopback.when("Judge for each", Reply(json.dumps(VERDICTS)))
    judge = sk.Judge("m", base_url=loopback.url)
    first, second = relevancy(judge).trace, relevancy(judge).trace
    assert [(run.step, run.calls, run.output_tokens, run.cached) for run in first if run.kind == "judge"] == [
        ("preprocess", 1, 12.0, False),
        ("analyze", 1, 12.0, False),
        ("generate_reason", 1, 12.0, False),
    ]
    assert [(run.calls, run.output_tokens, run.seconds, run.cached) for run in second if run.kind == "judge"] == [(0, 0.0, 0.0, True)] * 3
    assert [run.fields for run in second] == [run.fields for run in first]
    assert second[0].reply == '{"statements": ["s"]}'


def broken(rows):
    if len(rows):
        raise ZeroDivisionError
    return rows["output"].str.len()


def interrupted(rows):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("step", "error"), [(broken, ZeroDivisionError), (interrupted, KeyboardInterrupt)])
def test_trace_of_what_had_run_is_carried_by_the_error(step, error):
    scorer = sk.Scorer("s", needs=("output",), analyze=lambda rows: rows["output"].str.upper().rename("upper"), generate_score=step)
    with pytest.raises(error) as caught:
        sk.run_one(scorer, output="a")
    assert [(run.step, run.fields) for run in caught.value.trace] == [("analyze", {"upper": "A"})]


def test_trace_of_a_callable_of_the_users_own_is_one_step():
    result = sk.run_one(lambda df: df.assign(long_score=float(len(df)), long_limit=5.0), output="a")
    (run,) = result.trace
    assert (run.scorer, run.step, run.kind, run.fields) == ("long", "scorer", "code", {"score": 1.0, "limit": 5.0})


def test_trace_of_a_callable_that_calls_a_scorer_is_that_scorers():
    trace = sk.run_one(lambda df: sk.score_text_difference(df), input="a", output="b").trace
    assert [(run.scorer, run.step) for run in trace] == [("text_difference", step) for step in ALL_STEPS[1:]]


def test_trace_record_is_not_changed_by_later_steps():
    def spoil(rows):
        rows["items"].iloc[0].append("late")
        return rows["items"].str.len()

    scorer = sk.Scorer("s", needs=("output",), analyze=lambda rows: rows["output"].str.split().rename("items"), generate_score=spoil)
    assert sk.run_one(scorer, output="a b").trace[0].fields == {"items": ["a", "b"]}


def test_trace_fields_are_plain_python():
    def fields(rows):
        return pd.DataFrame({"array": [np.array([1, 2])], "small": np.float32([0.5]), "text": pd.array([None], dtype="string")})

    scorer = sk.Scorer("s", needs=("output",), analyze=fields, generate_score=lambda rows: rows["small"])
    found = sk.run_one(scorer, output="a").trace[0].fields
    assert found == {"array": [1, 2], "small": 0.5, "text": None}
    assert [type(value) for value in found.values()] == [list, float, type(None)]


def test_trace_is_noted_for_run_one_alone_and_changes_no_column():
    df = pd.DataFrame({"input": ["q?", "q?", None], "output": ["a.", "", "c"]})
    plain = RELEVANCY(df, judge=FakeJudge(REPLIES), keep_prompts=True, usage=True)
    runs = []
    token = TRACE.set(runs)
    try:
        traced = RELEVANCY(df, judge=FakeJudge(REPLIES), keep_prompts=True, usage=True)
    finally:
        TRACE.reset(token)
    pd.testing.assert_frame_equal(traced, plain)
    assert [(run.step, run.kind) for run in runs[:2]] == [("preprocess", "judge"), ("preprocess", "skipped")]
    assert len(runs) == 8
    assert TRACE.get() is None


def test_trace_is_left_out_of_the_results_repr():
    assert "trace" not in repr(relevancy(FakeJudge(REPLIES)))
