"""Plain text replies through the real client: what is sent, what is kept, and which failures get which code."""

import pytest
from loopback import Reply
from pydantic import BaseModel

from scorekit.judge.client import Judge
from scorekit.judge.replies import Request, Text
from scorekit.testing import FakeJudge


class Said(BaseModel):
    said: str


def ask_for(text, **kwargs):
    return Request(({"role": "user", "content": text},), Text, step="generate.plain", **kwargs)


def test_text_is_asked_for_without_a_form(loopback):
    loopback.when("hello", Reply("Hello back. {not json"))
    answer = Judge("m", base_url=loopback.url).ask([ask_for("hello")])[0]
    assert (answer.value.text, answer.value.finish_reason, answer.text) == ("Hello back. {not json", "stop", "Hello back. {not json")
    assert loopback.bodies[0] == {"model": "m", "messages": [{"role": "user", "content": "hello"}], "temperature": 0.0, "seed": 0}


def test_text_that_was_cut_off_is_kept_with_its_finish_reason_after_one_call(loopback):
    loopback.when("hello", Reply("Hello ba", finish="length"))
    answer = Judge("m", base_url=loopback.url, extra_body={"max_tokens": 2}).ask([ask_for("hello")])[0]
    assert (answer.value.text, answer.value.finish_reason, answer.error) == ("Hello ba", "length", None)
    assert [body["max_tokens"] for body in loopback.bodies] == [2]


@pytest.mark.parametrize(
    ("reply", "text", "error", "reason"),
    [
        (Reply(""), "", None, None),
        (Reply(" \n"), " \n", None, None),
        (Reply(None), None, "reply_invalid", "The reply has no text (finish_reason 'stop')."),
        (Reply(None, finish="tool_calls"), None, "reply_invalid", "The reply has no text (finish_reason 'tool_calls')."),
        (Reply("", finish="length"), None, "reply_truncated", "The reply was cut off before it had any text."),
        (Reply("No.", refusal="I will not."), None, "reply_refused", "The model refused: I will not."),
        (Reply("Half", finish="content_filter"), None, "reply_refused", "The endpoint's content filter stopped the reply."),
        (Reply("a\ud800b"), "a\ufffdb", None, None),
    ],
)
def test_text_or_code_by_what_the_endpoint_says_after_one_call(loopback, reply, text, error, reason):
    loopback.when("hello", reply)
    answer = Judge("m", base_url=loopback.url).ask([ask_for("hello")])[0]
    assert (answer.value and answer.value.text, answer.error, answer.reason) == (text, error, reason)
    assert loopback.calls == 1


def test_text_from_the_cache_is_the_same_reply_and_costs_nothing(loopback):
    judge = Judge("m", base_url=loopback.url)
    first, second = judge.ask([ask_for("hello there")])[0], judge.ask([ask_for("hello there")])[0]
    assert first.value == second.value
    assert (first.value.input_tokens, first.value.output_tokens) == (2.0, 12.0)
    assert (second.cached, second.calls, second.input_tokens, second.text, loopback.calls) == (True, 0, 0.0, "ok", 1)


def test_text_of_an_endpoint_that_counts_no_tokens_has_none(loopback):
    loopback.when("hello", Reply("hi", usage=False))
    assert Judge("m", base_url=loopback.url).ask([ask_for("hello")])[0].value.input_tokens is None


def test_text_and_json_of_the_same_messages_are_two_questions(loopback):
    judge = Judge("m", base_url=loopback.url)
    messages = ({"role": "user", "content": "hello"},)
    text, json = judge.ask([Request(messages, Text), Request(messages, Said)])
    assert (text.value.text, json.value.said, loopback.calls) == ("ok", "hello", 2)


def test_text_asked_first_teaches_nothing_about_schemas(loopback):
    loopback.when(
        lambda body: "response_format" in body, Reply(status=400, message="response_format is not supported", param="response_format")
    )
    judge = Judge("m", base_url=loopback.url)
    assert judge.ask([ask_for("hello")])[0].error is None
    assert judge.ask([Request(({"role": "user", "content": "hello"},), Said)])[0].value.said.endswith("hello")
    assert judge.ask([ask_for("again")])[0].error is None
    assert "response_format" not in loopback.bodies[-1]
    assert loopback.bodies[-1]["messages"] == [{"role": "user", "content": "again"}]


def test_endpoint_that_takes_no_temperature_is_asked_for_text_without_it(loopback):
    loopback.when(lambda body: "temperature" in body, Reply(status=400, message="temperature does not support 0", param="temperature"))
    judge = Judge("m", base_url=loopback.url, concurrency=1)
    answers = judge.ask([ask_for(f"row {number}") for number in range(10)])
    assert [answer.error for answer in answers] == [None] * 10
    assert loopback.statuses == {200: 10, 400: 1}


def test_bad_request_for_text_is_never_asked_as_json(loopback):
    loopback.when("hello", Reply(status=400, message="bad row"))
    assert Judge("m", base_url=loopback.url).ask([ask_for("hello")])[0].error == "judge_error"
    assert [body for body in loopback.bodies if "response_format" in body or len(body["messages"]) > 1] == []


def test_failures_of_text_are_retried_and_coded_as_those_of_json(loopback):
    loopback.when("limited", Reply(status=429, headers={"Retry-After": "0.01"}), times=3)
    loopback.when("broken", Reply(status=500))
    loopback.when("slow", Reply(hang=True))
    loopback.when("huge", Reply(status=400, code="context_length_exceeded"))
    judge = Judge("m", base_url=loopback.url, retries=1, timeout_s=1.5, row_timeout_s=8)
    answers = judge.ask([ask_for("limited"), ask_for("broken"), ask_for("slow"), ask_for("huge")])
    assert [answer.error for answer in answers] == [None, "judge_error", "judge_timeout", "input_too_long"]
    assert (answers[0].calls, loopback.calls_with("broken")) == (4, 2)


def test_budget_stops_text_with_its_code(loopback):
    judge = Judge("m", base_url=loopback.url, max_tokens=100, concurrency=1)
    answers = judge.ask([ask_for(f"row {number}") for number in range(20)])
    assert {answer.error for answer in answers} == {"budget_reached"}
    assert loopback.calls == 0


def test_repeats_of_text_are_asked_each_with_its_seed_and_kept_apart(loopback):
    judge = Judge("m", base_url=loopback.url)
    for _ in range(2):
        judge.ask([ask_for("same", repeat=number) for number in range(3)])
    assert sorted(body["seed"] for body in loopback.bodies) == [0, 1, 2]


def test_fake_judge_says_scripted_text():
    judge = FakeJudge({"plain": lambda request: {"text": "cut", "finish_reason": "length"} if request.repeat else "whole"})
    values = [answer.value for answer in judge.submit([ask_for("a"), ask_for("a", repeat=1)]).result()]
    assert [(value.text, value.finish_reason) for value in values] == [("whole", "stop"), ("cut", "length")]
