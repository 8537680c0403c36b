"""live.step: what lands in the call, what is scored, and that outside a live call a step does nothing but run."""

import asyncio
import functools
import inspect
import logging
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from live_rows import stored
from live_scorers import LENGTH

import scorekit as sk
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, UnknownOptionError
from scorekit.monitor.calls import CURRENT


def echo(question):
    return question


def interrupt():
    raise KeyboardInterrupt


def scaled(df, factor):
    return df.assign(scaled_score=factor * 1.0)


def steps_of(store):
    frame = stored(store)
    return frame[frame["entity_type"] == "step"].reset_index(drop=True)


# --- with statements


def test_step_output_lands_in_the_call(live):
    seen = []

    @live(metadata=lambda call: seen.append(call.steps))
    def agent(question):
        with sk.live.step("retrieve", input=question) as step:
            step.output = docs = ["d"]
        with sk.live.step("nothing"):
            pass
        seen.append(docs)
        return "a"

    agent("q")
    assert seen[1] == {"retrieve": ["d"], "nothing": None}
    assert seen[1]["retrieve"] is seen[0]


def test_step_with_scorers_is_scored_under_the_run_of_the_call(live, store):
    @live(run_id="question", trace_id=lambda call: "t")
    def agent(question):
        with sk.live.step("retrieve", input=[question], context="c", metadata={"k": 1}, scorers={"found": LENGTH}) as step:
            step.output = "four"
        return "a"

    agent("r")
    (row,) = steps_of(store).to_dict("records")
    assert (row["run"], row["trace_id"], row["entity_type"], row["entity_id"]) == ("r", "t", "step", "retrieve")
    assert (row["input"], row["output"], row["context"], row["k"], row["found_score"]) == (["r"], "four", "c", 1, 4)
    assert row["source"] == "LIVE"


def test_step_context_and_metadata_may_be_set_inside(live, store):
    @live()
    def agent(question):
        with sk.live.step("answer", scorers={"found": LENGTH}, output="default") as step:
            step.context = ["d"]
            step.metadata = {"hits": 2}

    agent("q")
    (row,) = steps_of(store).to_dict("records")
    assert (row["output"], row["context"], row["hits"]) == ("default", ["d"], 2)


def test_step_input_is_what_it_was_at_its_beginning(live, store):
    @live()
    def agent(messages):
        with sk.live.step("think", input=messages, scorers={"found": LENGTH}):
            messages.append("more")

    agent(["one"])
    assert steps_of(store)["input"].tolist() == [["one"]]


@pytest.mark.parametrize(
    ("when", "rows"), [(True, 1), (False, 0), (lambda call: call.result == "a", 1), (lambda call: call.error, 0), (None, 1)]
)
def test_step_when_is_a_truth_value_or_a_function_of_the_call(live, store, when, rows):
    @live()
    def agent(question):
        with sk.live.step("think", when=when, scorers={"found": LENGTH}) as step:
            step.output = "a"
        return "a"

    agent("q")
    assert len(steps_of(store)) == rows


def test_step_that_raises_passes_it_on_and_is_a_row_without_output(live, store):
    error = ValueError("v")

    @live(metadata=lambda call: {"steps": list(call.steps)})
    def agent(question):
        with sk.live.step("think", scorers={"found": LENGTH}) as step:
            step.output = "half"
            raise error

    with pytest.raises(ValueError, match="v") as caught:
        agent("q")
    assert caught.value is error
    frame = stored(store)
    assert frame["entity_id"].tolist() == ["think", "agent"]
    assert frame["found_error"].tolist()[0] == "target_error"
    assert frame["output"].isna().all()
    assert frame["steps"].tolist()[1] == []


def test_step_that_is_interrupted_leaves_no_row(live, store):
    @live()
    def agent(question):
        try:
            with sk.live.step("think", scorers={"found": LENGTH}):
                interrupt()
        except KeyboardInterrupt:
            return "a"

    agent("q")
    assert stored(store)["entity_id"].tolist() == ["agent"]


def test_step_is_sampled_by_the_run_of_its_call(live, store):
    @live(scorers={"size": sk.sampled(LENGTH, 0.5)}, run_id="question")
    def agent(question):
        with sk.live.step("think", scorers={"found": sk.sampled(LENGTH, 0.5), "always": LENGTH}) as step:
            step.output = "a"
        return "a"

    for number in range(40):
        agent(f"run-{number}")
    frame = stored(store)
    of_calls = set(frame.loc[frame["entity_type"] == "agent", "run"])
    assert set(frame.loc[frame["found_score"].notna(), "run"]) == of_calls
    assert 0 < len(of_calls) < 40
    assert frame["always_score"].notna().sum() == 40


def test_step_outside_any_call_does_nothing_but_run(live):
    with sk.live.step("think", input="q", scorers={"found": LENGTH}) as step:
        step.output = "a"
    assert step.output == "a"
    with sk.live.run("r"), sk.live.step("think", scorers={"found": LENGTH}) as step:
        step.output = "b"
    assert sk.live.flush(10)
    assert sk.live.stats().calls == 0


def test_step_inside_a_step_belongs_to_the_call(live, store):
    @live(metadata=lambda call: {"steps": list(call.steps)})
    def agent(question):
        with sk.live.step("outer") as outer:
            with sk.live.step("inner", scorers={"found": LENGTH}) as inner:
                inner.output = "i"
            outer.output = "o"
        return "a"

    agent("q")
    frame = stored(store)
    assert frame["steps"].tolist()[-1] == ["inner", "outer"]
    assert len(set(frame["run"])) == 1


def test_live_call_inside_a_step_joins_the_run_and_has_steps_of_its_own(live, store):
    @live(name="tool", metadata=lambda call: {"steps": list(call.steps)})
    def tool(question):
        with sk.live.step("in the tool"):
            return question.upper()

    @live(name="agent", metadata=lambda call: {"steps": list(call.steps)})
    def agent(question):
        with sk.live.step("use") as step:
            step.output = tool(question)
        return step.output

    assert agent("q") == "Q"
    frame = stored(store)
    assert dict(zip(frame["entity_id"], frame["steps"], strict=True)) == {"tool": ["in the tool"], "agent": ["use"]}
    assert len(set(frame["run"])) == 1


def test_step_async_with_is_the_same(live, store):
    @live(full="block", metadata=lambda call: {"steps": list(call.steps)})
    async def agent(question):
        async with sk.live.step("retrieve", input=question, scorers={"found": LENGTH}) as step:
            await asyncio.sleep(0)
            step.output = "four"
        with pytest.raises(ValueError, match="v"):
            async with sk.live.step("bad", scorers={"found": LENGTH}):
                raise ValueError("v")
        return "a"

    asyncio.run(agent("q"))
    frame = stored(store)
    assert frame[["entity_id", "output"]].fillna("none").to_numpy().tolist() == [["retrieve", "four"], ["bad", "none"], ["agent", "a"]]
    assert frame["steps"].tolist()[-1] == ["retrieve"]


def test_step_in_a_thread_belongs_to_the_call_where_its_context_is_taken_along(live):
    seen = []

    def work(name):
        with sk.live.step(name) as step:
            step.output = name

    @live(metadata=lambda call: seen.append(sorted(call.steps)))
    def agent(question):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(work, "alone").result()
            pool.submit(copy_context().run, work, "with").result()
        return "a"

    agent("q")
    assert seen == [["with"]]


def test_step_of_a_function_reuses_its_channel_although_scorers_are_made_anew(live, store):
    from scorekit.monitor import worker

    @live()
    def agent(question):
        scorers = {
            "found": functools.partial(LENGTH, progress=False),
            "mine": lambda df: df.assign(mine_score=1.0),
            "rated": sk.sampled(LENGTH, 1.0),
        }
        with sk.live.step("think", scorers=scorers) as step:
            step.output = question
        return question

    before = len(worker._channels)
    for number in range(10):
        agent(str(number))
    assert len(worker._channels) == before + 1
    assert (steps_of(store)["mine_score"] == 1.0).sum() == 10


def test_step_whose_scorers_are_others_each_time_is_given_up_before_it_fills_the_memory(live, monkeypatch, caplog):
    from scorekit.monitor import step_channels

    monkeypatch.setattr(step_channels, "MOST_STEPS", 3)

    @live()
    def agent(question):
        with sk.live.step("think", scorers={"found": functools.partial(scaled, factor=question)}) as step:
            step.output = "a"
        return "a"

    for number in range(6):
        agent(number)
    assert sk.live.stats().hook_errors == 3
    assert caplog.text.count("has had 3 steps with other scorers each") == 1


def test_step_with_wrong_scorers_does_not_end_the_function_and_is_said_once(live, store, caplog):
    @live()
    def agent(question):
        with sk.live.step("think", scorers={"found": functools.partial(sk.score_tone, output="answer")}) as step:
            step.output = "a"
        return "a"

    with caplog.at_level(logging.WARNING, logger="scorekit.live"):
        assert [agent("q"), agent("q")] == ["a", "a"]
    assert stored(store)["entity_id"].tolist() == ["agent", "agent"]
    assert caplog.text.count("The scorers of the step 'think' in 'agent' cannot be used.") == 1


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ({"name": 5}, ArgumentTypeError, "name must be text, not int."),
        ({"name": ""}, OptionRangeError, "name='' is out of range"),
        ({"name": "s", "scorers": {"a b": LENGTH}}, OptionRangeError, "A key of scorers='a b' is out of range"),
        ({"name": "s", "scorers": {}}, OptionRangeError, "scorers={} is out of range"),
    ],
)
def test_step_wrong_words_raise(words, error, message):
    with pytest.raises(error) as caught:
        sk.live.step(words.pop("name"), **words)
    assert str(caught.value).startswith(message)


# --- decorators


def test_step_decorator_gives_the_result_as_its_output(live, store):
    @sk.live.step("retrieve", scorers={"found": LENGTH}, context=lambda call: call.result, metadata=lambda call: {"seen": list(call.steps)})
    def retrieve(question, count=3):
        return f"{count} documents"

    @live(context="retrieve")
    def agent(question):
        with sk.live.step("before"):
            pass
        return retrieve(question)

    assert retrieve("alone") == "3 documents"
    agent("q")
    frame = stored(store)
    assert frame["entity_id"].tolist() == ["retrieve", "agent"]
    assert frame["input"].tolist() == ["q", "q"]
    assert frame["context"].tolist() == ["3 documents"] * 2
    assert frame["seen"].tolist()[0] == ["before", "retrieve"]


def test_step_decorator_on_every_kind_of_function(live, store):
    scorers = {"found": LENGTH}

    @sk.live.step("coroutine", scorers=scorers)
    async def coroutine(question):
        return question

    @sk.live.step("generator", scorers=scorers)
    def generator(question):
        yield question
        yield CURRENT.get().run_id

    @sk.live.step("stream", scorers=scorers)
    async def stream(question):
        yield question

    class Tool:
        @sk.live.step("method", scorers=scorers)
        def method(self, question):
            return question

        @sk.live.step("static", scorers=scorers)
        @staticmethod
        def static(question):
            return question

    @live(run_id="question", metadata=lambda call: dict(call.steps))
    async def agent(question):
        found = [await coroutine("c"), *generator("g"), *[part async for part in stream("s")], Tool().method("m"), Tool.static("t")]
        return " ".join(found)

    assert asyncio.run(agent("r")) == "c g r s m t"
    assert [inspect.iscoroutinefunction(coroutine), inspect.isgeneratorfunction(generator), inspect.isasyncgenfunction(stream)] == [
        True
    ] * 3
    frame = stored(store)
    found = dict(zip(frame["entity_id"], frame["output"], strict=True))
    assert found == {"coroutine": "c", "generator": "gr", "stream": "s", "method": "m", "static": "t", "agent": "c g r s m t"}
    kept = frame.iloc[-1]
    assert (kept["coroutine"], kept["generator"], kept["stream"]) == ("c", "gr", "s")


def test_step_decorator_wrong_hooks_and_scorers_raise_when_the_function_is_decorated():
    with pytest.raises(UnknownOptionError, match="input='q' is not known"):
        sk.live.step("s", input="q")(echo)
    with pytest.raises(ArgumentTypeError, match="output must be a plain function"):
        sk.live.step("s", output=["a"])(echo)
    with pytest.raises(MissingColumnError, match="needs a column 'answer'"):
        sk.live.step("s", scorers={"tone": functools.partial(sk.score_tone, output="answer")})(echo)
    with pytest.raises(ArgumentTypeError, match="live.step must be a function or method, not int"):
        sk.live.step("s")(5)


def test_step_decorator_that_raises_is_a_row_without_output(live, store):
    @sk.live.step("s", scorers={"found": LENGTH})
    def step(question):
        raise LookupError(question)

    @live()
    def agent(question):
        try:
            step(question)
        except LookupError:
            return "a"

    agent("q")
    (row,) = steps_of(store).to_dict("records")
    assert (row["found_error"], row["found_reason"]) == ("target_error", "The function raised LookupError: q")
