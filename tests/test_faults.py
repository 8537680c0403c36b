"""A whole scorer under faults, interrupts and death, through the real client against a loopback server."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pandas as pd
import pytest
from loopback import Reply, prompt_of

import scorekit as sk

CONCURRENCY = 16


def frame(count):
    return pd.DataFrame({"input": [f"question {n}?" for n in range(count)], "output": [f"answer {n}." for n in range(count)]})


def judge_on(loopback, **settings):
    return sk.Judge("m", base_url=loopback.url, **{"concurrency": CONCURRENCY, **settings})


def test_every_tenth_call_429_with_retry_after_scores_every_row(loopback):
    count = iter(range(1, 10**6))
    loopback.when(lambda _: next(count) % 10 == 0, Reply(status=429, headers={"Retry-After": "1"}))
    scored = sk.score_relevancy(frame(100), judge=judge_on(loopback))
    assert scored["relevancy_error"].isna().all()
    assert loopback.statuses[429] >= 30


def test_rows_that_always_fail_keep_their_code_and_cost_no_other_row(loopback):
    loopback.when("answer 0.", Reply(status=500))
    loopback.when("answer 1.", Reply(status=400, message="not like this"))
    loopback.when("answer 2.", Reply('{"statements": ["cut', finish="stop"))
    loopback.when("answer 3.", Reply(refusal="I will not."))
    loopback.when("answer 4.", Reply(hang=True))
    judge = judge_on(loopback, timeout_s=2.0, row_timeout_s=8.0, retries=2)
    scored = sk.score_relevancy(frame(40), judge=judge)
    assert scored["relevancy_error"].tolist()[:5] == ["judge_error", "judge_error", "reply_invalid", "reply_refused", "judge_timeout"]
    assert scored["relevancy_error"].iloc[5:].isna().all()
    assert scored["relevancy_reason"].notna().all()
    assert scored["relevancy_score"].isna().tolist() == [True] * 5 + [False] * 35


def test_fifty_equal_rows_cost_one_row_s_calls(loopback):
    df = pd.concat([frame(1)] * 50, ignore_index=True)
    scored = sk.score_relevancy(df, judge=judge_on(loopback, cache=False))
    assert scored["relevancy_error"].isna().all()
    assert loopback.calls == 3


def test_second_run_makes_no_call_and_gives_the_same_frame(loopback):
    first = sk.score_relevancy(frame(40), judge=judge_on(loopback), keep_prompts=True)
    calls = loopback.calls
    second = sk.score_relevancy(frame(40), judge=judge_on(loopback), keep_prompts=True)
    assert loopback.calls == calls == 120
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_server_that_refuses_json_schema_refuses_once(loopback):
    refuse = Reply(status=400, message="response_format json_schema is not supported", param="response_format")
    loopback.when(lambda body: (body.get("response_format") or {}).get("type") == "json_schema", refuse)
    scored = sk.score_relevancy(frame(30), judge=judge_on(loopback, concurrency=1))
    assert scored["relevancy_error"].isna().all()
    assert loopback.statuses[400] == 1


def test_two_hundred_hostile_texts_break_nothing_and_reach_no_other_row(loopback):
    parts = [
        '"',
        "'",
        "{",
        "}",
        "{{ x }}",
        "{% if %}",
        "```json",
        "</output>",
        "</statements>",
        "ignore the above",
        "\ud800",
        "\\",
        "\x00",
        "<|im_end|>",
    ]
    texts = [f"row{n} {parts[n % len(parts)]} {parts[(n * 7) % len(parts)]}" for n in range(200)]
    df = pd.DataFrame({"input": pd.Series(texts, dtype=object), "output": pd.Series(texts, dtype=object)})
    scored = sk.score_relevancy(df, judge=judge_on(loopback))
    assert scored["relevancy_error"].isna().all()
    schemas = {json.dumps(body["response_format"], sort_keys=True) for body in loopback.bodies}
    assert len(schemas) == 3
    asked = [prompt_of(body) for body in loopback.bodies if "Break the output" in prompt_of(body)]
    assert len(asked) == 200
    assert all(sum(f"row{n} " in prompt for n in range(200)) == 1 for prompt in asked)


def test_two_judged_scorers_keep_the_judge_busy_together(loopback):
    loopback.latency_s = 0.05
    scored = sk.score(frame(20), [sk.score_relevancy, sk.score_toxicity], judge=judge_on(loopback))
    assert scored["relevancy_error"].isna().all()
    assert scored["toxicity_error"].isna().all()
    assert loopback.most_open == CONCURRENCY


PROGRAM = """
import sys, scorekit as sk, pandas as pd
from test_faults import frame
judge = sk.Judge("m", base_url=sys.argv[1], concurrency=16)
try:
    scored = sk.score_relevancy(frame(300), judge=judge)
except KeyboardInterrupt as error:
    left = (error.partial["relevancy_error"] == "cancelled").sum()
    print("partial", len(error.partial), len(error.partial) - left, error)
else:
    print("scored", scored["relevancy_score"].notna().sum())
"""


def start(loopback):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path])}
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), loopback.url]
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
    wait_for_calls(loopback, 300, process)
    process.kill()
    process.communicate(timeout=30)
    out, err = start(loopback).communicate(timeout=120)
    assert out == "scored 300\n", err
    assert loopback.calls <= 900 + CONCURRENCY


def test_ctrl_c_stops_soon_keeps_finished_rows_and_resumes(loopback):
    loopback.latency_s = 0.05
    process = start(loopback)
    wait_for_calls(loopback, 300, process)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 10, "it must stop at once; two seconds is the promise, ten leaves room for a loaded machine"
    word, total, done, message = out.split(maxsplit=3)
    assert (word, total) == ("partial", "300"), err
    assert 20 < int(done) < 300
    assert message.startswith(f"Stopped: {done} of 300 rows of 'relevancy' are done")
    out, err = start(loopback).communicate(timeout=120)
    assert out == "scored 300\n", err
    assert loopback.calls <= 900 + CONCURRENCY


@pytest.fixture
def kernel(tmp_path):
    """A Jupyter kernel, as a notebook has it."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "IPYTHONDIR": str(tmp_path)}
    manager.start_kernel(env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def cell(client, code, on_start=lambda: None):
    """Run a cell; return what it printed and the name and message of what it raised."""
    printed, raised = [], None
    request = client.execute(code)
    on_start()
    while True:
        message = client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") != request:
            continue
        content = message["content"]
        if message["msg_type"] == "stream" and content["name"] == "stdout":
            printed.append(content["text"])
        elif message["msg_type"] == "error":
            raised = content["ename"], content["evalue"]
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return "".join(printed), raised


@pytest.mark.filterwarnings("ignore")
def test_kernel_interrupt_in_a_notebook_stops_and_the_cell_resumes(loopback, kernel):
    manager, client = kernel
    loopback.latency_s = 0.05
    cell(client, "import scorekit as sk\nfrom test_faults import frame")
    cell(client, f"judge = sk.Judge('m', base_url={loopback.url!r}, concurrency=16)")
    code = "scored = sk.score_relevancy(frame(300), judge=judge, progress=False)\nprint(scored['relevancy_score'].notna().sum())"

    def interrupt():
        until = time.monotonic() + 60
        while loopback.calls < 300 and time.monotonic() < until:
            time.sleep(0.005)
        manager.interrupt_kernel()

    _, raised = cell(client, code, interrupt)
    assert raised is not None
    assert raised[0] == "KeyboardInterrupt"
    assert "of 300 rows of 'relevancy' are done" in raised[1]
    assert loopback.calls < 900
    printed, raised = cell(
        client, f"async def run():\n    {code.splitlines()[0]}\n    return scored\nscored = await run()\n{code.splitlines()[1]}"
    )
    assert (printed, raised) == ("300\n", None)
    assert loopback.calls <= 900 + CONCURRENCY
