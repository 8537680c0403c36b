"""run_evals under faults, interrupts and death, through the real client against a loopback server."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial

import pandas as pd
import pytest
from loopback import Reply, prompt_of

import scorekit as sk
from scorekit.evals.generate import generate
from scorekit.evals.run_evals import run_evals
from scorekit.judge.replies import Request, Text

COUNT = 40


def data(count=COUNT):
    return [{"id": number, "input": f"question {number}?"} for number in range(count)]


def judge_on(loopback, **settings):
    return sk.Judge("m", base_url=loopback.url, **{"concurrency": 16, **settings})


def application(loopback, **settings):
    """An application of its own: what it asks goes to another model of the same server, uncached as most are."""
    judge = sk.Judge("app", base_url=loopback.url, **{"cache": False, "retries": 0, "timeout_s": 3.0, "row_timeout_s": 20.0, **settings})

    def ask(question):
        answer = judge.ask([Request(({"role": "user", "content": f"Answer: {question}"},), Text)])[0]
        if answer.error:
            raise RuntimeError(f"{answer.error}: {answer.reason}")
        return answer.value.text

    return ask


def judged_calls(loopback):
    return sum(body["model"] == "m" for body in loopback.bodies)


def of_application(text):
    return lambda body: body["model"] == "app" and text in prompt_of(body)


def make_it_hard(loopback):
    """Every third call of the application is a 429; four items fail in four ways; two are slow."""
    count = iter(range(1, 10**6))
    loopback.when(lambda body: body["model"] == "app" and next(count) % 3 == 0, Reply(status=429, headers={"Retry-After": "0.02"}))
    loopback.when(of_application("question 3?"), Reply(status=500))
    loopback.when(of_application("question 4?"), Reply(hang=True))
    loopback.when(of_application("question 5?"), Reply(refusal="I will not."))
    loopback.when(of_application("question 6?"), Reply(""))
    loopback.when(of_application("question 7?"), Reply("Late.", delay_s=0.5))
    loopback.when(of_application("question"), lambda body: Reply(f"An answer to {prompt_of(body)}"))


def test_every_item_of_a_faulty_target_is_accounted_for_and_the_same_call_costs_no_judge_call(loopback):
    make_it_hard(loopback)
    told = []
    run = partial(run_evals, data(), application(loopback), [sk.score_relevancy, sk.score_tone], judge=judge_on(loopback))
    first = run(on_item_complete=lambda item, output, results: told.append((item["id"], output, results["relevancy"].error)))
    calls = judged_calls(loopback)
    assert first.frame["error"].fillna("-").value_counts().to_dict() == {"-": COUNT - 3, "target_error": 3}
    assert [reason.split(":")[1].strip() for reason in first.frame.loc[[3, 4, 5], "reason"]] == [
        "judge_error",
        "judge_timeout",
        "reply_refused",
    ]
    assert first.frame.loc[[6, 7], ["output", "relevancy_score"]].values.tolist() == [["", 0.0], ["Late.", 1.0]]
    assert first.frame.loc[8, "output"] == "An answer to Answer: question 8?"
    assert first.frame["relevancy_error"].equals(first.frame["error"])
    assert sorted(number for number, _, _ in told) == list(range(COUNT))
    assert {number for number, output, error in told if output is None and error == "target_error"} == {3, 4, 5}
    assert calls == 3 * (COUNT - 4)
    second = run()
    assert judged_calls(loopback) == calls
    columns = [column for column in first.frame.columns if column not in ("seconds", "reason", "relevancy_reason", "tone_reason")]
    pd.testing.assert_frame_equal(first.frame[columns], second.frame[columns], check_exact=True)


def test_faults_of_the_judge_cost_their_rows_alone(loopback):
    loopback.when("question 1?", Reply(status=500))
    loopback.when("question 2?", Reply(hang=True))
    count = iter(range(1, 10**6))
    loopback.when(lambda _: next(count) % 4 == 0, Reply(status=429, headers={"Retry-After": "0.02"}))
    judge = judge_on(loopback, timeout_s=2.0, row_timeout_s=8.0, retries=1)
    result = run_evals(data(), lambda question: f"Because, {question}", [sk.score_relevancy], judge=judge, thresholds={"relevancy": 0.5})
    assert result.frame["relevancy_error"].fillna("-").tolist() == ["-", "judge_error", "judge_timeout", *["-"] * (COUNT - 3)]
    assert result.frame["output"].notna().all()
    assert (result.verdict, result.thresholds["failures"].tolist()) == ("scored", [2])


def test_judge_of_batches_is_kept_busy_together(loopback):
    loopback.latency_s = 0.05

    async def agent(question):
        await asyncio.sleep(0.001)
        return question

    run_evals(data(80), agent, [sk.score_relevancy, sk.score_toxicity], judge=judge_on(loopback), concurrency=40)
    assert loopback.most_open == 16


@pytest.mark.parametrize("kind", ["generate", "ask_async", "score"])
def test_target_may_ask_judges_inside(loopback, kind):
    loopback.when(lambda body: body["model"] == "app" and "response_format" not in body, lambda body: Reply(prompt_of(body).upper()))
    judge = sk.Judge("app", base_url=loopback.url)

    def with_generate(question):
        return generate(pd.DataFrame({"input": [question]}), prompts={"v": "{{ input }}"}, model=judge)["output"][0]

    async def with_ask(question):
        answers = await judge.ask_async([Request(({"role": "user", "content": question},), Text)])
        return answers[0].value.text

    def with_score(question):
        return f"{sk.run_one(sk.score_relevancy, judge=judge, input=question, output='Yes.').score}"

    target = {"generate": with_generate, "ask_async": with_ask, "score": with_score}[kind]
    result = run_evals(data(6), target, [sk.score_relevancy], judge=judge_on(loopback))
    expected = ["1.0"] * 6 if kind == "score" else [f"QUESTION {number}?" for number in range(6)]
    assert result.frame["output"].tolist() == expected
    assert result.frame["relevancy_score"].tolist() == [1.0] * 6


def test_generated_variants_are_scored_and_compared_in_one_go(loopback):
    loopback.when("In a word", Reply("Yes."))
    long = generate(pd.DataFrame(data(5)), prompts={"a": "{{ input }}", "b": "In a word: {{ input }}"}, model=judge_on(loopback), item="id")
    scored = sk.score_relevancy(long, judge=judge_on(loopback))
    assert sk.summarize(scored, by="variant")[["variant", "n"]].values.tolist() == [["a", 5], ["b", 5]]


PROGRAM = """
import asyncio, sys, time, scorekit as sk
from scorekit.evals.run_evals import run_evals
from test_evals_faults import data
judge = sk.Judge("m", base_url=sys.argv[1], concurrency=8)
def agent(question):
    if question == "question 7?" and sys.argv[2] == "hangs":
        time.sleep(3600)
    return f"Because, {question}"
async def cell():
    return run_evals(data(150), agent, [sk.score_relevancy, sk.score_tone], judge=judge)
try:
    result = asyncio.run(cell())
except KeyboardInterrupt as error:
    frame = error.partial
    print("partial", len(frame), frame["relevancy_score"].notna().sum(), frame["error"].notna().sum(), error)
else:
    print("scored", result.frame["relevancy_score"].notna().sum())
"""


def start(loopback, agent="returns"):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path])}
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), loopback.url, agent]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for_calls(loopback, calls, process):
    until = time.monotonic() + 60
    while loopback.calls < calls:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until
        time.sleep(0.005)


def test_kill_9_then_again_pays_for_little_twice(loopback):
    loopback.latency_s = 0.05
    process = start(loopback)
    wait_for_calls(loopback, 150, process)
    process.kill()
    process.communicate(timeout=30)
    out, err = start(loopback).communicate(timeout=120)
    assert out == "scored 150\n", err
    assert loopback.calls <= 450 + 8


def test_ctrl_c_in_a_running_loop_with_a_target_that_hangs_keeps_what_is_done_and_resumes(loopback):
    loopback.latency_s = 0.05
    process = start(loopback, "hangs")
    wait_for_calls(loopback, 200, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    word, total, scored, failed, message = out.split(maxsplit=4)
    assert (word, total) == ("partial", "150"), err
    assert 0 < int(scored) < 150
    assert int(failed) >= 1
    assert message.startswith("Stopped: "), err
    assert err == ""
    out, err = start(loopback).communicate(timeout=120)
    assert out == "scored 150\n", err
    assert loopback.calls <= 450 + 8
