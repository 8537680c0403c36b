"""The hooks of sk.live: what they see, when they are asked, and that what they raise costs the call nothing."""

import logging
from types import MappingProxyType

import pandas as pd
import pytest
from live_rows import inputs, outputs, stored
from live_scorers import LENGTH

import scorekit as sk


def raising(call):
    raise ZeroDivisionError


def echo(question, loud=False):
    return question


def test_hooks_see_the_call_when_it_has_ended(live):
    seen = []

    @live(name="agent", metadata=lambda call: seen.append(call))
    def agent(question, /, *rest, loud=False, **kwargs):
        with sk.live.step("think") as step:
            step.output = [question]
        return "a"

    agent("q", "r", extra=1)
    (call,) = seen
    assert (call.args, call.kwargs) == (("q", "r"), {"extra": 1})
    assert call.arguments == {"question": "q", "rest": ("r",), "loud": False, "kwargs": {"extra": 1}}
    assert (call.entity_type, call.entity_id, call.result, call.error) == ("agent", "agent", "a", None)
    assert call.steps == {"think": ["q"]}
    assert call.seconds > 0
    assert repr(call) == f"LiveCall(agent 'agent', run '{call.run_id}')"


def test_hooks_arguments_of_a_simple_function_have_defaults_in_the_functions_order(live):
    seen = []
    live(metadata=lambda call: seen.append(list(call.arguments.items())))(echo)(question="q")
    assert seen == [[("question", "q"), ("loud", False)]]


def test_hooks_arguments_that_do_not_fit_are_the_keywords(live):
    seen = []
    with pytest.raises(TypeError):
        live(metadata=lambda call: seen.append(call.arguments))(echo)("q", "r", "s", loud=True)
    assert seen == [{"loud": True}]


def test_hooks_give_input_output_context_and_metadata(live, store):
    @live(
        input=lambda call: call.arguments["request"]["question"],
        output=lambda call: call.result["answer"],
        context=lambda call: call.arguments["request"]["docs"],
        metadata=lambda call: MappingProxyType({"model": "m", "tokens": 3}),
    )
    def agent(request):
        return {"answer": "a"}

    agent({"question": "q", "docs": ["d"]})
    (row,) = stored(store).to_dict("records")
    assert (row["input"], row["output"], row["context"], row["model"], row["tokens"]) == ("q", "a", ["d"], "m", 3)


def test_hooks_odd_metadata_comes_back(live, store):
    odd = {"$number": "x", "none": float("nan"), "<b>'\"; DROP TABLE": "\ud800\0", "nested": {"$time": [1, None]}}
    live(metadata=lambda call: odd)(echo)("q")
    row = stored(store).iloc[0]
    assert {name: row[name] for name in odd if name != "none"} == {name: value for name, value in odd.items() if name != "none"}
    assert pd.isna(row["none"])


def test_hooks_input_and_context_are_asked_before_the_function_changes_its_arguments(live, store):
    @live(input=lambda call: call.arguments["messages"][-1], context=lambda call: call.arguments["messages"][0])
    def agent(messages):
        messages[:] = ["changed"]
        return "a"

    agent(["first", "last"])
    row = stored(store).iloc[0]
    assert (row["input"], row["context"]) == ("last", "first")


def test_hooks_input_and_context_that_read_the_result_are_asked_again_at_the_end(live, store):
    @live(
        input=lambda call: call.result["question"], context=lambda call: call.steps["retrieve"], output=lambda call: call.result["answer"]
    )
    def agent(number):
        with sk.live.step("retrieve") as step:
            step.output = ["d"]
        return {"question": "q", "answer": "a"}

    agent(1)
    row = stored(store).iloc[0]
    assert (row["input"], row["context"], row["output"]) == ("q", ["d"], "a")
    assert sk.live.stats().hook_errors == 0


def test_hooks_names_of_parameters_stand_for_them(live, store):
    @live(input="query", context="docs", run_id="request", trace_id="span")
    def agent(model, query, docs, request, span=None):
        return "a"

    agent("m", "q", ["d"], "r-1", span="t-1")
    agent("m", "q", ["d"], "r-2")
    frame = stored(store)
    assert frame["input"].tolist() == ["q", "q"]
    assert frame["context"].tolist() == [["d"], ["d"]]
    assert frame["run"].tolist() == ["r-1", "r-2"]
    assert frame["trace_id"].fillna("none").tolist() == ["t-1", "none"]


def test_hooks_name_of_a_keyword_that_only_kwargs_takes(live, store):
    live(input="query")(lambda **kwargs: "a")(model="m", query="q")
    assert inputs(store) == ["q"]


def test_hooks_context_that_names_no_parameter_is_the_last_output_of_that_step_as_it_was(live, store):
    @live(context="retrieve")
    def agent(question):
        for number in range(2):
            with sk.live.step("retrieve") as step:
                step.output = found = [f"d{number}"]
        found.append("changed later")
        return "a"

    agent("q")
    assert stored(store)["context"].tolist() == [["d1"]]


def test_hooks_context_of_a_step_that_did_not_run_is_none(live, store):
    live(context="retrieve")(echo)("q")
    assert "context" not in stored(store).columns


# --- when


def test_when_turns_down_calls_before_sampling_counts(live, store):
    agent = live(when=lambda call: call.arguments["loud"], scorers={"size": LENGTH, "half": sk.sampled(LENGTH, 0.0)})(echo)
    for loud in (True, False, True, False, False):
        agent(str(loud), loud=loud)
    assert outputs(store) == ["True", "True"]
    stats = sk.live.stats()
    assert (stats.calls, stats.skipped, stats.picked, stats.stored) == (5, 3, 2, 2)


def test_when_is_asked_about_calls_that_sampling_does_not_pick(live):
    seen = []
    agent = live(scorers={"size": sk.sampled(LENGTH, 0)}, when=lambda call: seen.append(call.result))(echo)
    agent("a")
    agent("b")
    assert seen == ["a", "b"]
    assert sk.live.stats().skipped == 2


def test_when_sees_what_the_function_raised(live, store):
    @live(when=lambda call: call.error is None)
    def agent(question):
        if question == "bad":
            raise ValueError
        return question

    agent("good")
    with pytest.raises(ValueError):  # noqa: PT011
        agent("bad")
    assert outputs(store) == ["good"]


def test_when_it_raises_nothing_is_scored(live, store):
    live(when=raising)(echo)("q")
    live()(echo)("later")
    assert outputs(store) == ["later"]
    assert (sk.live.stats().skipped, sk.live.stats().hook_errors) == (1, 1)


def test_when_gives_what_has_no_truth_nothing_is_scored(live):
    live(when=lambda call: pd.Series([1, 2]))(echo)("q")
    assert (sk.live.stats().skipped, sk.live.stats().hook_errors) == (1, 1)


# --- what hooks raise


@pytest.mark.parametrize("option", ["input", "output", "context", "metadata", "run_id", "trace_id"])
def test_hook_that_raises_costs_what_it_was_to_give_and_nothing_else(live, store, option):
    assert live(**{option: raising})(echo)("q") == "q"
    (row,) = stored(store).to_dict("records")
    assert sk.live.stats().hook_errors == 1
    kept = {"input": row["input"], "output": row["output"]}
    assert {name: value for name, value in kept.items() if name != option} == {name: "q" for name in kept if name != option}
    assert option not in kept or pd.isna(kept[option])


def test_hook_that_raises_is_logged_once_for_each_function_and_hook(live, caplog):
    agent = live(metadata=raising, output=raising)(echo)
    with caplog.at_level(logging.WARNING, logger="scorekit.live"):
        for _ in range(3):
            agent("q")
    told = [record for record in caplog.records if record.name == "scorekit.live"]
    assert [record.getMessage().split(" of ")[0] for record in told] == ["The hook output=", "The hook metadata="]
    assert all(record.exc_info and record.exc_info[0] is ZeroDivisionError for record in told)
    assert sk.live.stats().hook_errors == 6


def test_hook_that_interrupts_passes(live):
    def interrupting(call):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        live(metadata=interrupting)(echo)("q")


def test_hook_metadata_that_is_no_mapping_is_counted_and_left_out(live, store):
    live(metadata=lambda call: ["a"])(echo)("q")
    assert outputs(store) == ["q"]
    assert sk.live.stats().hook_errors == 1


@pytest.mark.parametrize("bad", ["", "x" * 513, True, b"run", 1.5])
def test_hook_run_id_that_cannot_be_kept_is_counted_and_a_fresh_one_taken(live, store, bad):
    with sk.live.run("outer"):
        live(run_id=lambda call: bad)(echo)("q")
    run = stored(store)["run"].iloc[0]
    assert len(run) == 32
    assert sk.live.stats().hook_errors == 1


@pytest.mark.parametrize("option", ["run_id", "trace_id"])
def test_hook_ids_that_are_none_are_as_without_the_hook(live, store, option):
    with sk.live.run("outer"):
        live(**{option: lambda call: None})(echo)("q")
    assert stored(store)["run"].tolist() == ["outer"]
    assert sk.live.stats().hook_errors == 0


def test_hook_run_id_that_reads_the_result_is_told_when_that_is_there(live, caplog):
    with caplog.at_level(logging.WARNING, logger="scorekit.live"):
        live(run_id=lambda call: call.result)(echo)("q")
    assert "call.result is there only when the function has ended." in caplog.text


def test_hook_run_id_of_512_characters_and_with_a_lone_surrogate_is_kept(live, store):
    odd = "\ud800" + "x" * 511
    live(run_id=lambda call: odd)(echo)("q")
    assert stored(store)["run"].tolist() == [odd]


def test_hook_output_is_not_asked_where_the_function_raised(live, store):
    @live(output=lambda call: call.result["answer"])
    def agent(question):
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        agent("q")
    assert stored(store)["size_error"].tolist() == ["target_error"]
    assert sk.live.stats().hook_errors == 0
