"""sk.live around async functions, and around plain ones whose work has only begun when they return."""

import asyncio
import functools
import gc
import inspect
import traceback
import types

import pytest
from live_rows import outputs, stored
from live_scorers import LENGTH

import scorekit as sk
from scorekit.monitor.calls import CURRENT


async def echo(question):
    await asyncio.sleep(0)
    return question


class Agent:
    async def answer(self, question):
        return question

    async def __call__(self, question):
        return question


def test_async_function_stays_a_coroutine_function(live):
    assert inspect.iscoroutinefunction(live()(echo))
    assert inspect.iscoroutinefunction(live()(Agent.answer))
    assert inspect.iscoroutinefunction(live()(Agent().answer))
    assert inspect.iscoroutinefunction(live()(Agent()))
    assert inspect.iscoroutinefunction(live()(functools.partial(echo)))


def test_async_function_becomes_a_row(live, store):
    assert asyncio.run(live()(echo)("four")) == "four"
    row = stored(store).iloc[0]
    assert (row["entity_id"], row["input"], row["output"], row["size_score"]) == ("echo", "four", "four", 4)


@pytest.mark.parametrize("function", [Agent().answer, Agent(), functools.partial(echo), functools.partial(Agent.answer, None)])
def test_async_callables_of_every_kind_become_rows(live, store, function):
    assert asyncio.run(live()(function)("q")) == "q"
    assert stored(store)[["input", "output"]].to_dict("records") == [{"input": "q", "output": "q"}]


def test_async_classmethod_and_staticmethod_objects(live, store):
    class Sub:
        of_class = live()(classmethod(Agent.answer))
        static = live()(staticmethod(echo))

    async def main():
        return [await Sub.of_class("a"), await Sub().static("b")]

    assert asyncio.run(main()) == ["a", "b"]
    assert outputs(store) == ["a", "b"]


def test_async_exception_is_the_very_object(live, store):
    error = ValueError("v")

    @live()
    async def agent(question):
        await asyncio.sleep(0)
        raise error

    async def main():
        with pytest.raises(ValueError, match="v") as caught:
            await agent("q")
        return caught.value

    assert asyncio.run(main()) is error
    assert error.__context__ is None
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)] == ["main", "around", "agent"]
    assert stored(store)["size_error"].tolist() == ["target_error"]


def test_async_call_that_is_cancelled_leaves_no_row(live):
    @live()
    async def agent(question):
        await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(agent("q"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (sk.live.stats().calls, sk.live.stats().picked) == (1, 0)


def test_async_call_that_times_out_by_itself_is_a_row(live, store):
    @live()
    async def agent(question):
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    async def main():
        with pytest.raises(TimeoutError):
            await agent("q")

    asyncio.run(main())
    assert stored(store)["size_reason"].tolist() == ["The function raised TimeoutError"]


def test_async_gathered_calls_are_runs_of_their_own(live, store):
    async def main():
        return await asyncio.gather(*(live()(echo)(str(number)) for number in range(20)))

    assert asyncio.run(main()) == [str(number) for number in range(20)]
    frame = stored(store)
    assert frame["run"].nunique() == 20
    assert sorted(frame["output"], key=int) == [str(number) for number in range(20)]


def test_async_tasks_that_a_call_starts_belong_to_its_run(live, store):
    inner = live()(echo)

    @live(run_id="question")
    async def agent(question):
        await asyncio.gather(inner("a"), inner("b"), asyncio.create_task(inner("c")))
        await asyncio.to_thread(live()(str.upper), "d")
        return "outer"

    async def main():
        await asyncio.gather(agent("r-1"), agent("r-2"))

    asyncio.run(main())
    frame = stored(store)
    assert frame.groupby("run")["output"].apply(sorted).to_dict() == {
        "r-1": ["D", "a", "b", "c", "outer"],
        "r-2": ["D", "a", "b", "c", "outer"],
    }


def test_async_task_that_outlives_its_call_belongs_to_its_run_and_keeps_nothing_large(live, store):
    import weakref

    class Large(list):
        pass

    seen = []
    inner = live()(echo)

    async def background(event):
        await event.wait()
        with sk.live.step("late") as step:
            step.output = "x"
        await inner("late")

    @live(run_id=lambda call: "r")
    async def agent(question, event):
        seen.append(weakref.ref(question))
        seen.append(asyncio.create_task(background(event)))
        return "early"

    async def main():
        event = asyncio.Event()
        await agent(Large(), event)
        gc.collect()
        assert seen[0]() is None
        event.set()
        await seen[1]

    asyncio.run(main())
    assert dict(stored(store)[["output", "run"]].itertuples(index=False)) == {"early": "r", "late": "r"}


def test_async_call_that_starts_the_next_of_its_kind_leaves_no_chain(live):
    scopes = []

    @live(scorers={"size": sk.sampled(LENGTH, 0)})
    async def turn(left):
        scopes.append(CURRENT.get())
        if left:
            tasks.append(asyncio.create_task(turn(left - 1)))

    tasks = []

    async def main():
        await turn(3)
        while tasks:
            await tasks.pop()

    asyncio.run(main())
    assert [scope.outer for scope in scopes] == [None] * 4


def test_async_coroutine_that_is_collected_elsewhere_changes_no_run_there(live):
    class Forever:
        def __await__(self):
            while True:
                yield

    @live()
    async def agent(question):
        await Forever()

    import contextvars

    coroutine = agent("q")
    contextvars.Context().run(coroutine.send, None)
    with sk.live.run("other"):
        coroutine.close()
        assert CURRENT.get().run_id == "other"


def test_async_call_that_waits_for_room_lets_the_loop_run_on(live, store):
    agent = live(full="block", capacity=1, block_timeout_s=60)(echo)
    ticks = []

    async def tick():
        while True:
            ticks.append(None)
            await asyncio.sleep(0.001)

    async def main():
        ticking = asyncio.create_task(tick())
        await asyncio.gather(*(agent(str(number)) for number in range(4)))
        ticking.cancel()

    asyncio.run(main())
    assert len(ticks) > 20
    assert sorted(outputs(store)) == ["0", "1", "2", "3"]


def test_async_call_that_finds_no_room_is_dropped_and_counted(live, store):
    agent = live(capacity=1)(echo)

    async def main():
        for number in range(5):
            await agent(str(number))

    asyncio.run(main())
    stats = sk.live.stats()
    assert stats.dropped >= 3
    assert len(stored(store)) + stats.dropped == 5


# --- plain functions whose work has only begun when they return


def test_plain_function_that_returns_a_coroutine_ends_when_that_does(live, store):
    agent = live(run_id="question")(lambda question: echo(question))
    coroutine = agent("r")
    assert asyncio.iscoroutine(coroutine)
    assert (coroutine.__name__, coroutine.__qualname__) == ("echo", "echo")
    assert asyncio.run(coroutine) == "r"
    assert stored(store)[["run", "output"]].to_dict("records") == [{"run": "r", "output": "r"}]


def test_plain_function_that_returns_a_generator_ends_when_that_does(live, store):
    inner = live()(str.upper)

    def words(text):
        for word in text.split():
            yield inner(word)

    assert list(live(run_id="question")(lambda question: words(question))("a b")) == ["A", "B"]
    frame = stored(store)
    assert frame["output"].tolist() == ["A", "B", "AB"]
    assert set(frame["run"]) == {"a b"}


def test_plain_function_that_returns_an_async_generator_ends_when_that_does(live, store):
    async def words(text):
        for word in text.split():
            yield word

    async def main():
        return [part async for part in live()(lambda question: words(question))("a b")]

    assert asyncio.run(main()) == ["a", "b"]
    assert outputs(store) == ["ab"]


def test_plain_function_that_returns_another_iterator_gives_it_untouched(live, store):
    parts = iter("ab")
    assert live()(lambda question: parts)("q") is parts
    assert list(parts) == ["a", "b"]
    assert outputs(store)[0]["type"] == "str_ascii_iterator"


def test_plain_function_that_returns_what_only_await_drives_gives_it_untouched(live):
    @types.coroutine
    def switch():
        yield
        return "done"

    async def main():
        return await live()(lambda question: switch())("q")

    assert asyncio.run(main()) == "done"


def test_function_made_a_coroutine_by_types_is_awaited(live, store):
    @live()
    @types.coroutine
    def agent(question):
        yield
        return question

    async def main():
        return await agent("q")

    assert asyncio.run(main()) == "q"
    assert outputs(store) == ["q"]
