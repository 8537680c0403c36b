"""generate: every item under every variant, from templates to the long frame."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pandas as pd
import pytest
from loopback import Reply, prompt_of

import scorekit as sk
from scorekit.columns import ERROR_CODES
from scorekit.errors import (
    ArgumentTypeError,
    ColumnConflictError,
    JudgeSetupError,
    MissingColumnError,
    OptionRangeError,
    ScorerDefinitionError,
)
from scorekit.evals.generate import generate
from scorekit.evals.variants import read_variants, render_all
from scorekit.testing import FakeJudge

DF = pd.DataFrame({"id": ["q1", "q2"], "input": ["Why?", "Who?"], "n": [1, 2]}, index=[10, 20])
BOTH = {"plain": "{{ input }}", "brief": "In a word: {{ input }}"}


def echo(prompt):
    return f"<{prompt}>"


def rendered(template, **cells):
    df = pd.DataFrame({name: pd.Series([value], dtype=object) for name, value in cells.items()})
    return render_all(read_variants({"v": template}, df), df)[0]


# --- the long frame


def test_generate_gives_a_row_per_item_and_variant_with_the_items_own_columns():
    long = generate(DF, prompts=BOTH, model=echo, item="id")
    assert long.columns.tolist()[3:] == [
        "variant", "rendered_prompt", "output", "finish_reason", "input_tokens", "output_tokens", "seconds", "error", "reason",
    ]  # fmt: skip
    assert long.loc[:, :"output"].to_dict("list") == {
        "id": ["q1", "q1", "q2", "q2"],
        "input": ["Why?", "Why?", "Who?", "Who?"],
        "n": [1, 1, 2, 2],
        "variant": ["plain", "brief", "plain", "brief"],
        "rendered_prompt": ["Why?", "In a word: Why?", "Who?", "In a word: Who?"],
        "output": ["<Why?>", "<In a word: Why?>", "<Who?>", "<In a word: Who?>"],
    }
    assert long[["finish_reason", "input_tokens", "output_tokens", "error", "reason"]].isna().all(axis=None)
    assert long.index.tolist() == [0, 1, 2, 3]
    assert long["seconds"].ge(0).all()


def test_generate_without_item_numbers_items_by_the_index_labels():
    assert generate(DF, prompts=BOTH, model=echo)["item"].tolist() == [10, 10, 20, 20]


def test_generate_leaves_the_frame_as_it_was():
    before = DF.copy(deep=True)
    generate(DF, prompts=BOTH, model=echo)
    pd.testing.assert_frame_equal(DF, before)


@pytest.mark.parametrize("model", [echo, FakeJudge(lambda request: "ok")], ids=["function", "judge"])
@pytest.mark.parametrize("repeats", [1, 2])
def test_generate_of_no_rows_gives_the_final_columns_and_asks_nothing(model, repeats):
    df = DF.astype({"n": "Int8", "id": "category"})
    full = generate(df, prompts=BOTH, model=model, repeats=repeats)
    asked = len(getattr(model, "requests", []))
    empty = generate(df.iloc[:0], prompts=BOTH, model=model, repeats=repeats)
    pd.testing.assert_series_equal(empty.dtypes, full.dtypes)
    assert (len(empty), len(getattr(model, "requests", []))) == (0, asked)
    assert full[["id", "n"]].dtypes.astype(str).tolist() == ["category", "Int8"]


def test_generate_with_repeats_numbers_them_and_asks_each():
    judge = FakeJudge(lambda request: f"take {request.repeat}")
    long = generate(DF.iloc[:1], prompts=BOTH, model=judge, repeats=2)
    assert long[["variant", "repeat", "output"]].to_dict("list") == {
        "variant": ["plain", "plain", "brief", "brief"],
        "repeat": [0, 1, 0, 1],
        "output": ["take 0", "take 1", "take 0", "take 1"],
    }
    assert len(judge.requests) == 4


def test_generate_of_two_items_without_a_word_between_them_scores_like_any_frame():
    long = generate(DF, prompts=BOTH, model=echo, item="id")
    scored = sk.score_text_difference(long)
    assert sk.summarize(scored, by="variant")["n"].tolist() == [2, 2]


def test_generate_keeps_attrs():
    df = DF.copy()
    df.attrs["origin"] = "here"
    assert generate(df, prompts=BOTH, model=echo).attrs == {"origin": "here"}


# --- templates


def test_template_values_are_plain_and_never_read_as_template():
    assert rendered("Q: {{ input }}", input="{{ 7 * 7 }} {% if %} </input>") == "Q: {{ 7 * 7 }} {% if %} </input>"


def test_template_keeps_its_last_line_break_and_replaces_lone_surrogates():
    assert rendered("{{ input }}\ud800\n", input="a\udfffb") == "a\ufffdb\ufffd\n"


def test_template_sees_python_values():
    text = "{{ n + 1 }} {{ tags | join('-') }} {{ meta.title }} {% for x in range(2) %}{{ x }}{% endfor %}"
    assert rendered(text, n=np.int64(4), tags=np.array(["a", "b"], dtype=object), meta={"title": "T"}) == "5 a-b T 01"


def test_template_of_messages_renders_each_content():
    messages = [{"role": "system", "content": "Be {{ mood }}."}, {"role": "user", "content": "{{ input }}"}]
    assert rendered(messages, mood="kind", input="Hi") == (
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
    )


def test_messages_are_sent_as_they_are_and_shown_as_json_that_scorers_read(loopback):
    prompts = {"chat": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "{{ input }}"}]}
    long = generate(DF.iloc[:1], prompts=prompts, model=sk.Judge("m", base_url=loopback.url))
    assert loopback.bodies[0]["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}]
    assert long["rendered_prompt"][0] == '[{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Why?"}]'
    scored = sk.score_text_difference(long.assign(output="Why?").drop(columns="input"), input="rendered_prompt")
    assert scored["text_difference_score"].tolist() == [1.0]


def test_template_function_gets_the_row_as_python_values_and_may_return_messages():
    seen = []

    def chat(row):
        seen.append(row)
        return [{"role": "user", "content": row["input"]}]

    df = pd.DataFrame({"input": ["a"], "n": [1], "m": [None]})
    long = generate(df, prompts={"f": chat}, model=lambda messages: messages[0]["content"] + "!")
    assert long["output"].tolist() == ["a!"]
    assert seen == [{"input": "a", "n": 1, "m": None}]
    assert type(seen[0]["n"]) is int


def test_template_that_prints_a_missing_cell_asks_nothing_for_that_row():
    df = pd.DataFrame({"input": ["a", None], "context": [None, "c"]})
    asked = []
    long = generate(
        df, prompts={"v": "{% if context %}{{ context }}: {% endif %}{{ input }}"}, model=lambda text: asked.append(text) or text
    )
    assert long["output"].fillna("-").tolist() == ["a", "-"]
    assert long["error"].fillna("-").tolist() == ["-", "missing_input"]
    assert long["reason"][1] == "The prompt reads the input, which is missing."
    assert asked == ["a"]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("template", ["{{ x }}", "{{ x | upper }}", "{{ x.y }}", "{% for y in x %}{% endfor %}", "{{ x + 'a' }}"])
def test_template_never_prints_a_missing_cell(missing, template):
    assert rendered(template, x=missing, z="there").reason == "The prompt reads the x, which is missing."


def test_template_can_test_for_a_missing_cell():
    assert rendered("{{ x is defined }} {{ x | default('none') }} {{ 'yes' if x else 'no' }}", x=None) == "False none no"


def test_template_that_reads_what_one_row_does_not_have_costs_that_row_alone():
    df = pd.DataFrame({"meta": [{"title": "T"}, {}]})
    long = generate(df, prompts={"v": "{{ meta.title }}"}, model=echo)
    assert long["output"].fillna("-").tolist() == ["<T>", "-"]
    assert long["reason"][1] == "The prompt 'v' reads what this row does not have: 'dict object' has no attribute 'title'."


def test_template_is_sandboxed():
    from jinja2.exceptions import SecurityError

    with pytest.raises(SecurityError):
        rendered("{{ input.__class__.__mro__ }}", input="a")


# --- what is wrong for all rows


class Never:
    """A judge that must not be asked."""

    label = "never"

    def submit(self, requests, *, rank=0, on_answer=None):
        pytest.fail("asked")


WRONG = {
    "unknown name": ({"a": "{{ inputs }}"}, MissingColumnError, "The prompt 'a' needs a column 'inputs'; .*Did you mean 'input'"),
    "no variant": ({}, OptionRangeError, "one variant at least"),
    "no mapping": ("{{ input }}", ArgumentTypeError, "prompts must be a mapping from names to templates, not str"),
    "unnamed": ({"": "a"}, ArgumentTypeError, "The name of a variant must be text"),
    "twice": ({"a": "x", "a ": "y"}, OptionRangeError, "Two variants have the same name, 'a' and 'a '"),
    "syntax": ({"a": "{{ input"}, ScorerDefinitionError, "The prompt 'a' cannot be parsed, line 1"),
    "filter": ({"a": "{{ input | uper }}"}, ScorerDefinitionError, "No filter named 'uper'"),
    "template": ({"a": 5}, ArgumentTypeError, r"prompts\['a'\] must be text or a list of messages"),
    "role": ({"a": [{"role": "boss", "content": "x"}]}, ArgumentTypeError, "each message must be a mapping with a role and a content"),
    "parts": ({"a": [{"role": "user", "content": ["x"]}]}, ArgumentTypeError, "a content is text"),
    "returned": ({"a": lambda row: None}, ArgumentTypeError, "What the prompt 'a' returns must be text or a list of messages"),
    "bug": ({"a": lambda row: row["x"]}, KeyError, "x"),
    "no row fits": ({"a": "{{ n.title }}"}, ScorerDefinitionError, "The prompt 'a' cannot be rendered for any row"),
}


@pytest.mark.parametrize(("prompts", "error", "words"), WRONG.values(), ids=WRONG)
def test_generate_with_a_wrong_prompt_raises_before_any_request(prompts, error, words):
    with pytest.raises(error, match=words):
        generate(DF, prompts=prompts, model=Never())


def test_prompt_that_raises_says_which_and_where():
    with pytest.raises(ZeroDivisionError) as caught:
        generate(DF, prompts={"a": "x", "b": lambda row: 1 // (row["n"] - 2) and "text"}, model=Never())
    assert caught.value.__notes__ == ["(raised by the prompt 'b' in row 1, counted from 0)"]


@pytest.mark.parametrize("column", ["variant", "rendered_prompt", "output", "error", "item"])
def test_generate_with_a_column_of_its_own_name_raises_before_any_request(column):
    with pytest.raises(ColumnConflictError, match=f"generate would write '{column}', which the frame already has"):
        generate(DF.assign(**{column: 1}), prompts=BOTH, model=Never())


def test_generate_template_over_a_doubled_column_raises():
    with pytest.raises(ColumnConflictError, match="the frame has 2 columns of that name"):
        generate(pd.concat([DF, DF[["input"]]], axis=1), prompts=BOTH, model=Never())


@pytest.mark.parametrize(
    ("df", "item", "words"),
    [
        (DF.assign(id="q1"), "id", "item='id' has 'q1' more than once"),
        (DF.assign(id=["q1", None]), "id", "1 rows have none"),
        (DF.set_axis([1, 1]), None, "the index has '1' more than once.*reset_index"),
        (DF.set_index(["id", "n"]), None, "has 2 levels"),
        (DF.assign(id=[[1], [2]]), "id", "cannot tell items apart: unhashable"),
    ],
)
def test_generate_with_items_that_cannot_be_told_apart_raises(df, item, words):
    with pytest.raises(ArgumentTypeError, match=words):
        generate(df, prompts=BOTH, model=Never(), item=item)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"model": 5}, ArgumentTypeError, "model must be a Judge, the name of a model, or a function"),
        ({"model": sk.Judge}, ArgumentTypeError, "model must be a Judge"),
        ({"model": "local"}, JudgeSetupError, "generate needs a language model, which the local judge is not"),
        ({}, JudgeSetupError, "set OPENAI_API_KEY"),
        ({"model": "openai/gpt-5-mini"}, JudgeSetupError, "needs a key"),
        ({"model": Never(), "repeats": 0}, OptionRangeError, "repeats=0 is out of range"),
        ({"model": Never(), "concurrency": 2}, ArgumentTypeError, "set that of a judge where it is made"),
        ({"model": echo, "concurrency": 0}, OptionRangeError, "concurrency=0"),
        ({"model": Never(), "item": "ids"}, MissingColumnError, "Did you mean item='id'"),
    ],
)
def test_generate_with_a_wrong_option_raises_before_any_request(options, error, words):
    with pytest.raises(error, match=words):
        generate(DF, prompts=BOTH, **options)


# --- functions


def test_function_that_raises_or_gives_no_text_costs_its_own_rows_alone():
    def model(prompt):
        if "Why" in prompt:
            raise ValueError("no\n such \ud800 tool")
        return None if prompt == "Who?" else prompt

    long = generate(DF, prompts=BOTH, model=model)
    assert long["error"].fillna("-").tolist() == ["target_error", "target_error", "not_text", "-"]
    assert long["reason"].fillna("-").tolist() == [
        "The function raised ValueError: no such \ufffd tool",
        "The function raised ValueError: no such \ufffd tool",
        "The function returned NoneType, not text.",
        "-",
    ]
    assert long["output"].fillna("-").tolist() == ["-", "-", "-", "In a word: Who?"]


@pytest.mark.parametrize("inside", ["plain", "running loop"])
def test_async_function_is_awaited_a_few_at_a_time(inside):
    open_calls, most = 0, 0

    async def model(prompt):
        nonlocal open_calls, most
        open_calls += 1
        most = max(most, open_calls)
        await asyncio.sleep(0.02)
        open_calls -= 1
        return prompt

    df = pd.DataFrame({"input": [f"q{number}" for number in range(20)]})

    async def cell():
        return generate(df, prompts={"v": "{{ input }}"}, model=model, concurrency=3)

    long = asyncio.run(cell()) if inside == "running loop" else generate(df, prompts={"v": "{{ input }}"}, model=model, concurrency=3)
    assert long["output"].tolist() == df["input"].tolist()
    assert most == 3


def test_function_runs_in_as_many_threads_as_asked_for():
    together = threading.Barrier(4, timeout=30)
    df = pd.DataFrame({"input": list("abcd")})
    long = generate(df, prompts={"v": "{{ input }}"}, model=lambda text: f"{text}{together.wait()}", concurrency=4)
    assert long["error"].isna().all()


def test_function_is_called_once_for_equal_prompts_of_a_repeat():
    asked = []
    generate(
        DF.assign(input="same"), prompts={"a": "{{ input }}", "b": "{{ input }}"}, model=lambda text: asked.append(text) or text, repeats=2
    )
    assert asked == ["same", "same"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_function_that_raises_keyboard_interrupt_stops_and_keeps_what_is_done(kind):
    def model(prompt):
        if prompt == "q2":
            raise KeyboardInterrupt
        return prompt

    async def later(prompt):
        return model(prompt)

    df = pd.DataFrame({"input": [f"q{number}" for number in range(5)]})
    with pytest.raises(KeyboardInterrupt, match=r"Stopped: 2 of 5 rows are done. They are in error.partial\.") as caught:
        generate(df, prompts={"v": "{{ input }}"}, model=model if kind == "sync" else later, concurrency=1)
    assert caught.value.partial["error"].fillna("-").tolist() == ["-", "-", "cancelled", "cancelled", "cancelled"]
    assert generate(df.iloc[:1], prompts={"v": "{{ input }}"}, model=later)["output"].tolist() == ["q0"]


def test_function_sees_the_caller_s_context_variables():
    from contextvars import ContextVar

    user: ContextVar[str] = ContextVar("user", default="nobody")
    user.set("me")

    async def model(prompt):
        return user.get()

    assert generate(DF, prompts=BOTH, model=model)["output"].unique().tolist() == ["me"]
    assert generate(DF, prompts=BOTH, model=lambda prompt: user.get())["output"].unique().tolist() == ["me"]


def test_progress_counts_every_row_once(capsys, monkeypatch):
    monkeypatch.setattr("scorekit.progress.SILENT_S", 0.0)
    df = pd.DataFrame({"input": ["a", "a", None]})
    generate(df, prompts={"v": "{{ input }}"}, model=echo)
    assert "3/3" in capsys.readouterr().err
    generate(df, prompts={"v": "{{ input }}"}, model=echo, progress=False)
    assert capsys.readouterr().err == ""


# --- a judge behind HTTP


def judge_on(loopback, **settings):
    return sk.Judge("m", base_url=loopback.url, **settings)


def items(count):
    return pd.DataFrame({"input": [f"question {number}?" for number in range(count)]})


def test_outputs_and_usage_come_from_the_endpoint(loopback):
    loopback.when("question 0?", Reply("Because.", finish="length"))
    loopback.when("question 1?", Reply("So.", usage=False))
    long = generate(items(2), prompts={"v": "{{ input }} " + "x" * 40}, model=judge_on(loopback))
    assert long["output"].tolist() == ["Because.", "So."]
    assert long["finish_reason"].tolist() == ["length", "stop"]
    assert long[["input_tokens", "output_tokens"]].fillna(-1).values.tolist() == [[13.0, 12.0], [-1.0, -1.0]]
    assert long["seconds"].gt(0).all()


def test_second_run_makes_no_call_and_gives_the_same_frame(loopback):
    first = generate(items(20), prompts=BOTH, model=judge_on(loopback), repeats=2)
    assert loopback.calls == 80
    second = generate(items(20), prompts=BOTH, model=judge_on(loopback), repeats=2)
    assert loopback.calls == 80
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_equal_prompts_of_two_variants_are_asked_once_without_a_cache_too(loopback):
    prompts = {"a": "{{ input }}", "b": "{{ input }}", "c": [{"role": "user", "content": "{{ input }}"}]}
    long = generate(items(100), prompts=prompts, model=judge_on(loopback, cache=False, concurrency=4))
    assert loopback.calls == 100
    assert long["error"].isna().all()


def test_repeats_are_asked_each_with_its_seed(loopback):
    generate(items(1), prompts={"a": "{{ input }}", "b": "{{ input }}"}, model=judge_on(loopback, seed=5, temperature=0.7), repeats=3)
    assert sorted((body["seed"], body["temperature"]) for body in loopback.bodies) == [(5, 0.7), (6, 0.7), (7, 0.7)]


def test_rows_that_fail_get_their_code_and_cost_no_other_row(loopback):
    loopback.when("question 0?", Reply(status=500))
    loopback.when("question 1?", Reply(status=400, message="not like this"))
    loopback.when("question 2?", Reply(None))
    loopback.when("question 3?", Reply(refusal="I will not."))
    loopback.when("question 4?", Reply(hang=True))
    loopback.when("question 5?", Reply("", finish="length"))
    loopback.when("question 6?", Reply("half", finish="content_filter"))
    loopback.when("question 7?", Reply(status=400, code="context_length_exceeded"))
    judge = judge_on(loopback, timeout_s=2.0, row_timeout_s=8.0, retries=1)
    long = generate(items(30), prompts={"v": "{{ input }}"}, model=judge)
    assert long["error"].tolist()[:8] == [
        "judge_error", "judge_error", "reply_invalid", "reply_refused", "judge_timeout", "reply_truncated", "reply_refused", "input_too_long",
    ]  # fmt: skip
    assert long["reason"].notna().tolist() == [True] * 8 + [False] * 22
    assert long["output"].isna().tolist() == [True] * 8 + [False] * 22
    assert set(long["error"].dropna()) <= set(ERROR_CODES)


def test_every_third_call_429_answers_every_row(loopback):
    count = iter(range(1, 10**6))
    loopback.when(lambda _: next(count) % 3 == 0, Reply(status=429, headers={"Retry-After": "0.05"}))
    long = generate(items(40), prompts=BOTH, model=judge_on(loopback))
    assert long["error"].isna().all()
    assert (loopback.statuses[200], loopback.statuses[429] >= 26) == (80, True)


def test_budget_ends_with_its_code(loopback):
    long = generate(items(40), prompts={"v": "{{ input }}"}, model=judge_on(loopback, max_tokens=400, concurrency=1))
    assert long["error"].isna().sum() == loopback.calls
    assert 0 < loopback.calls < 40
    assert set(long["error"].dropna()) == {"budget_reached"}


def test_hostile_texts_stay_texts_and_reach_no_other_row(loopback):
    parts = [
        '"',
        "{{ input }}",
        "{% for x in y %}",
        "{# note #}",
        "\ud800",
        "\\",
        "\x00",
        "<|im_end|>",
        "</input>",
        "```",
        "%s",
        "{0}",
        "\u2028",
    ]
    texts = [f"row{number} {parts[number % len(parts)]} {parts[number * 7 % len(parts)]}" for number in range(100)]
    df = pd.DataFrame({"input": pd.Series(texts, dtype=object)})
    loopback.when("row", lambda body: Reply(prompt_of(body)))
    long = generate(df, prompts={"v": "Say: {{ input }}"}, model=judge_on(loopback))
    assert long["error"].isna().all()
    assert long["output"].tolist() == [f"Say: {text}".replace("\ud800", "\ufffd") for text in texts]
    assert long["rendered_prompt"].tolist() == long["output"].tolist()


def test_usage_is_counted_by_variant(loopback):
    judge = judge_on(loopback)
    generate(items(3), prompts=BOTH, model=judge)
    assert judge.usage()[["step", "calls"]].values.tolist() == [["generate.brief", 3], ["generate.plain", 3]]


def test_exception_of_a_judge_keeps_what_is_done():
    def reply(request):
        return RuntimeError("broke") if "79" in request.messages[0]["content"] else "ok"

    with pytest.raises(RuntimeError, match="broke") as caught:
        generate(items(100), prompts={"v": "{{ input }}"}, model=FakeJudge(reply))
    assert caught.value.partial["error"].fillna("-").tolist() == ["-"] * 79 + ["cancelled"] * 21


PROGRAM = """
import asyncio, sys, scorekit as sk
from scorekit.evals.generate import generate
from test_generate import items
judge = sk.Judge("m", base_url=sys.argv[1], concurrency=8)
async def cell():
    return generate(items(150), prompts={"a": "{{ input }}", "b": "B {{ input }}"}, model=judge)
try:
    long = asyncio.run(cell())
except KeyboardInterrupt as error:
    print("partial", len(error.partial), (error.partial["error"].isna()).sum(), error)
else:
    print("answered", long["output"].notna().sum())
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
    wait_for_calls(loopback, 100, process)
    process.kill()
    process.communicate(timeout=30)
    out, err = start(loopback).communicate(timeout=120)
    assert out == "answered 300\n", err
    assert loopback.calls <= 300 + 8


def test_ctrl_c_in_a_running_loop_keeps_finished_rows_and_resumes(loopback):
    loopback.latency_s = 0.05
    process = start(loopback)
    wait_for_calls(loopback, 100, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    word, total, done, message = out.split(maxsplit=3)
    assert (word, total) == ("partial", "300"), err
    assert 50 < int(done) < 300
    assert message.startswith(f"Stopped: {done} of 300 rows are done.")
    out, err = start(loopback).communicate(timeout=120)
    assert out == "answered 300\n", err
    assert loopback.calls <= 300 + 8
