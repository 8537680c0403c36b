"""sk.live around async generators: what passes through, when the run is current, and how each end is recorded."""

import asyncio
import gc
import inspect

import pytest
from live_rows import outputs, stored

import scorekit as sk
from scorekit.monitor.calls import CURRENT


async def async_words(text):
    for word in text.split():
        await asyncio.sleep(0)
        yield word + " "


async def collected(stream):
    return [part async for part in stream]


def test_async_generator_stays_an_async_generator_function(live):
    assert inspect.isasyncgenfunction(live()(async_words))


def test_async_generator_of_texts_is_recorded_as_the_joined_text(live, store):
    assert asyncio.run(collected(live()(async_words)("a b"))) == ["a ", "b "]
    assert outputs(store) == ["a b "]


def test_async_generator_asend_athrow_and_aclose_reach_the_function(live, store):
    @live()
    async def talk(first):
        heard = [first]
        try:
            while True:
                try:
                    heard.append((yield list(heard)))
                except KeyError as error:
                    heard.append(error)
        finally:
            await asyncio.sleep(0)
            heard.append("closed")
            ends.append(heard)

    ends = []
    error = KeyError("k")

    async def main():
        gen = talk("a")
        assert await anext(gen) == ["a"]
        assert await gen.asend("b") == ["a", "b"]
        assert await gen.athrow(error) == ["a", "b", error]
        await gen.aclose()

    asyncio.run(main())
    assert ends == [["a", "b", error, "closed"]]
    (row,) = stored(store).to_dict("records")
    assert row["complete"] is False
    assert row["output"][:2] == [["a"], ["a", "b"]]


def test_async_generator_exception_is_the_very_object(live, store):
    error = ValueError("v")

    @live()
    async def agent(question):
        yield "a"
        raise error

    with pytest.raises(ValueError, match="v") as caught:
        asyncio.run(collected(agent("q")))
    assert caught.value is error
    assert error.__context__ is None
    assert stored(store)["size_error"].tolist() == ["target_error"]


def test_async_generator_that_is_cancelled_leaves_no_row(live):
    @live()
    async def agent(question):
        yield "a"
        await asyncio.sleep(60)

    async def main():
        task = asyncio.create_task(collected(agent("q")))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (sk.live.stats().calls, sk.live.stats().picked) == (1, 0)


def breaking(live, closed):
    """An async generator that awaits when it is closed, as a stream over a connection does."""

    @live()
    async def agent(question):
        try:
            yield "a"
            yield "b"
        finally:
            await asyncio.sleep(0.01)
            closed.append(question)

    return agent


def test_async_generator_that_is_left_early_is_closed_by_the_loop(live, store):
    closed = []
    agent = breaking(live, closed)

    async def main():
        async for _ in agent("q"):
            break
        await asyncio.sleep(0.1)
        assert closed == ["q"]

    asyncio.run(main())
    assert stored(store)[["output", "complete"]].to_dict("records") == [{"output": "a", "complete": False}]


@pytest.mark.parametrize("attempt", range(5))
def test_async_generator_that_is_open_when_the_loop_ends_is_closed_without_complaint(live, store, attempt, caplog):
    closed, kept = [], []
    agent = breaking(live, closed)

    async def main():
        for number in range(4):
            kept.append(agent(str(number)))
            await anext(kept[-1])

    asyncio.run(main())
    assert sorted(closed) == ["0", "1", "2", "3"]
    assert caplog.records == []
    assert outputs(store) == ["a"] * 4


@pytest.mark.parametrize("attempt", range(3))
def test_async_generator_that_is_forgotten_in_a_cycle_is_closed_by_the_loop(live, store, attempt, caplog):
    closed = []
    agent = breaking(live, closed)

    async def main():
        gen = agent("q")
        await anext(gen)
        cycle = [gen]
        cycle.append(cycle)
        del gen, cycle
        gc.collect()
        await asyncio.sleep(0.1)
        assert closed == ["q"]

    asyncio.run(main())
    assert caplog.records == []
    assert outputs(store) == ["a"]


def test_async_generator_without_a_loop_is_closed_when_it_is_collected(live, store):
    @live()
    async def agent(question):
        yield "a"
        yield "b"

    gen = agent("q")
    with pytest.raises(StopIteration):
        gen.asend(None).send(None)
    del gen
    gc.collect()
    assert outputs(store) == ["a"]


def test_async_generator_run_is_current_only_while_the_function_runs(live, store):
    @live(run_id="question")
    async def agent(question):
        yield CURRENT.get().run_id
        await asyncio.sleep(0.001)
        yield CURRENT.get().run_id

    async def main():
        first, second = agent("a"), agent("b")
        found = []
        for gen in (first, second, first, second):
            found += [await anext(gen), CURRENT.get()]
        return found + [part for gen in (first, second) async for part in gen]

    assert asyncio.run(main()) == ["a", None, "b", None] * 2
    assert len(stored(store)) == 2


def test_async_generator_with_room_to_wait_for_is_recorded(live, store):
    agent = live(full="block", capacity=1, block_timeout_s=60)(async_words)

    async def main():
        return await asyncio.gather(*(collected(agent(str(number))) for number in range(5)))

    asyncio.run(main())
    assert sorted(outputs(store)) == ["0 ", "1 ", "2 ", "3 ", "4 "]
