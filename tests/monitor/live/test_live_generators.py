"""sk.live around generators: what passes through, when the run is current, and how each end is recorded."""

import asyncio
import contextlib
import contextvars
import gc
import inspect
import subprocess
import sys
import threading
import traceback

import pytest
from live_rows import outputs, stored
from live_scorers import LENGTH

import scorekit as sk
from scorekit.monitor.calls import CURRENT


def words(text):
    for word in text.split():
        yield word + " "
    return "end"


# --- what passes through


def test_generator_stays_a_generator_function(live):
    found = live()(words)
    assert inspect.isgeneratorfunction(found)
    assert inspect.isgenerator(found("a"))
    assert (found("a").__name__, found("a").__qualname__) == ("words", "words")


def test_generator_of_texts_is_recorded_as_the_joined_text(live, store):
    assert list(live()(words)("a b c")) == ["a ", "b ", "c "]
    row = stored(store).iloc[0]
    assert (row["input"], row["output"], row["size_score"]) == ("a b c", "a b c ", 6)
    assert "complete" not in row


def test_generator_return_value_goes_through(live):
    def outer():
        return (yield from live()(words)("a"))

    gen = outer()
    assert next(gen) == "a "
    with pytest.raises(StopIteration) as stop:
        next(gen)
    assert stop.value.value == "end"


def test_generator_of_other_parts_is_recorded_as_their_list_as_they_were(live, store):
    @live()
    def agent(question):
        state = {"text": ""}
        for letter in question:
            state["text"] += letter
            yield state
        yield None
        yield "done"

    list(agent("ab"))
    assert outputs(store) == [[{"text": "a"}, {"text": "ab"}, None, "done"]]


def test_generator_without_parts_is_recorded_as_empty_text(live, store):
    assert list(live()(words)("")) == []
    assert outputs(store) == [""]


def test_generator_result_that_hooks_see_is_the_text_or_the_parts(live, store):
    seen = []
    list(live(metadata=lambda call: seen.append(call.result))(words)("a b"))
    part = object()

    @live(output=lambda call: f"{len(call.result)} parts", metadata=lambda call: seen.append(call.result))
    def agent(question):
        yield part
        yield "text"

    list(agent("q"))
    assert seen == ["a b ", [part, "text"]]
    assert outputs(store) == ["a b ", "2 parts"]


class Recorder:
    """What a generator's inside is sent and thrown, as a generator that answers to all of it."""

    @staticmethod
    def talk(first):
        heard = [first]
        try:
            while True:
                try:
                    heard.append((yield list(heard)))
                except KeyError as error:
                    heard.append(error)
        finally:
            heard.append("closed")


def test_generator_send_and_throw_reach_the_function(live):
    talk = live()(Recorder.talk)("a")
    error = KeyError("k")
    assert next(talk) == ["a"]
    assert talk.send("b") == ["a", "b"]
    assert talk.throw(error) == ["a", "b", error]
    talk.close()


def test_generator_thrown_exception_that_is_not_caught_comes_back_itself(live, store):
    talk = live()(Recorder.talk)("a")
    next(talk)
    error = ValueError("v")
    with pytest.raises(ValueError, match="v") as caught:
        talk.throw(error)
    assert caught.value is error
    assert error.__context__ is None
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names == ["test_generator_thrown_exception_that_is_not_caught_comes_back_itself", "around", "talk"]
    assert stored(store)["size_error"].tolist() == ["target_error"]


def test_generator_exception_raised_after_a_caught_throw_has_no_context(live):
    @live()
    def agent(question):
        with contextlib.suppress(KeyError):
            yield 1
        yield 2
        raise ValueError

    gen = agent("q")
    next(gen)
    gen.throw(KeyError("k"))
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        next(gen)
    assert caught.value.__context__ is None


def test_generator_stop_iteration_thrown_in_becomes_a_runtime_error(live):
    gen = live()(words)("a b")
    next(gen)
    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        gen.throw(StopIteration("s"))


def test_generator_that_ignores_close_raises_as_without_it(live, store):
    @live()
    def agent(question):
        with contextlib.suppress(GeneratorExit):
            yield "a"
        yield "b"

    gen = agent("q")
    next(gen)
    with pytest.raises(RuntimeError, match="generator ignored GeneratorExit"):
        gen.close()
    gen.close()
    assert outputs(store) == ["ab"]


def test_generator_that_is_delegated_to_by_yield_from(live, store):
    agent = live()(words)

    def outer():
        yield "before "
        yield from agent("a b")

    assert list(outer()) == ["before ", "a ", "b "]
    assert outputs(store) == ["a b "]


def test_generator_wrong_arguments_raise_at_the_first_part(live):
    gen = live()(words)()
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        next(gen)


# --- how it ends


def test_generator_closed_early_is_recorded_with_what_it_gave(live, store):
    gen = live(metadata=lambda call: {"model": "m"})(words)("a b c")
    assert next(gen) == "a "
    gen.close()
    (row,) = stored(store).to_dict("records")
    assert (row["output"], row["complete"], row["model"]) == ("a ", False, "m")
    assert row["size_score"] == 2


def test_generator_that_returns_when_it_is_closed_is_recorded_as_incomplete(live, store):
    @live()
    def agent(question):
        with contextlib.suppress(GeneratorExit):
            yield "a"
            yield "b"

    gen = agent("q")
    next(gen)
    gen.close()
    assert stored(store)[["output", "complete"]].to_dict("records") == [{"output": "a", "complete": False}]


def test_generator_that_is_forgotten_is_recorded_when_it_is_collected(live, store):
    for part in live()(words)("a b c"):
        assert part == "a "
        break
    gc.collect()
    assert stored(store)[["output", "complete"]].to_dict("records") == [{"output": "a ", "complete": False}]


def test_generator_that_is_forgotten_in_a_cycle_is_recorded_when_it_is_collected(live, store):
    gen = live()(words)("a b c")
    next(gen)
    cycle = [gen]
    cycle.append(cycle)
    del gen, cycle
    with sk.live.run("another"):
        gc.collect()
        assert CURRENT.get().run_id == "another"
    assert outputs(store) == ["a "]


def test_generator_that_never_begins_is_not_recorded(live):
    gen = live()(words)("a")
    gen.close()
    del gen
    assert sk.live.stats().calls == 0


def test_generator_that_raises_is_a_row_without_output(live, store):
    @live()
    def agent(question):
        yield "a"
        raise ValueError(question)

    gen = agent("q")
    next(gen)
    with pytest.raises(ValueError, match="q"):
        next(gen)
    (row,) = stored(store).to_dict("records")
    assert (row["input"], row["size_error"], row["size_reason"]) == ("q", "target_error", "The function raised ValueError: q")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_generator_that_is_interrupted_leaves_no_row(live, kind):
    gen = live()(words)("a b")
    next(gen)
    with pytest.raises(kind):
        gen.throw(kind())
    assert sk.live.flush(10)
    assert (sk.live.stats().calls, sk.live.stats().picked) == (1, 0)


def test_generator_parts_are_not_kept_where_nobody_asks(live):
    import weakref

    class Large(str):
        __slots__ = ("__weakref__",)

    @live(scorers={"size": sk.sampled(LENGTH, 0)})
    def agent(question):
        for _ in range(3):
            yield Large("x")

    alive = [weakref.ref(part) for part in agent("q")]
    assert [ref() for ref in alive[:2]] == [None, None]


def test_generator_of_parts_of_ten_megabytes_is_stored_whole(live, store):
    part = "é" * 10_000_000

    @live()
    def agent(question):
        yield part
        yield part

    assert all(each is part for each in agent("q"))
    row = stored(store).iloc[0]
    assert row["output"] == part + part
    assert row["size_score"] == 20_000_000


def test_generator_that_is_suspended_when_the_interpreter_ends_says_nothing(tmp_path):
    code = """
import sys
import scorekit as sk
from live_scorers import LENGTH
@sk.live(scorers={"size": LENGTH}, store=sk.ScoreStore(sys.argv[1]))
def agent(question):
    try:
        yield "a"
        yield "b"
    finally:
        print("closed")
gen = agent("q")
next(gen)
"""
    words = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "scores.db")]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd="tests", timeout=60)
    assert (done.stdout, done.stderr) == ("closed\n", "")


# --- when the run is current


def test_generator_run_is_current_only_while_the_function_runs(live, store):
    @live(run_id="question")
    def agent(question):
        yield CURRENT.get().run_id
        yield CURRENT.get().run_id

    first, second = agent("a"), agent("b")
    assert [next(first), CURRENT.get(), next(second), next(first), CURRENT.get(), next(second)] == ["a", None, "b", "a", None, "b"]
    first.close()
    second.close()


def test_generator_consumer_keeps_its_own_run(live, store):
    inner = live()(words)
    plain = live()(lambda question: question)
    with sk.live.run("consumer"):
        for part in inner("a b"):
            plain(part)
    frame = stored(store)
    assert set(frame["run"]) == {"consumer"}
    assert len(frame) == 3


def test_generator_nested_calls_and_steps_belong_to_it_on_both_sides_of_a_pause(live, store):
    plain = live()(lambda question: question)

    @live(run_id="question", metadata=lambda call: {"steps": list(call.steps)})
    def agent(question):
        plain("1")
        with sk.live.step("first"):
            yield "a"
        with sk.live.run("inner"):
            yield "b"
            plain("2")
        plain("3")
        with sk.live.step("second"):
            yield "c"

    for _ in agent("r"):
        plain("outside")
    frame = stored(store)
    runs = dict(zip(frame["output"], frame["run"], strict=True))
    assert (runs["1"], runs["2"], runs["3"], runs["abc"]) == ("r", "inner", "r", "r")
    assert runs["outside"] not in ("r", "inner")
    assert frame["steps"].dropna().tolist() == [["first", "second"]]


def test_generator_that_goes_on_in_another_thread_and_context(live, store):
    plain = live()(lambda question: question)

    @live(run_id="question")
    def agent(question):
        with sk.live.run("inner"):
            yield plain("1")
            yield plain("2")
        yield plain("3")

    gen = agent("r")
    got = [next(gen)]
    for _ in range(2):
        thread = threading.Thread(target=contextvars.Context().run, args=(lambda: got.append(next(gen)),))
        thread.start()
        thread.join()
    assert list(gen) == []
    frame = stored(store)
    assert dict(zip(frame["output"], frame["run"], strict=True)) == {"1": "inner", "2": "inner", "3": "r", "123": "r"}
