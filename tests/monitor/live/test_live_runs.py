"""live.run, and which calls share a run."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from live_rows import stored
from live_scorers import LENGTH

import scorekit as sk
from scorekit.monitor.calls import CURRENT
from scorekit.monitor.sampling import share_of


def echo(question):
    return question


def test_run_gives_its_id_to_calls_and_steps_inside(live, store):
    @live()
    def agent(question):
        with sk.live.step("s", scorers={"found": LENGTH}) as step:
            step.output = "s"
        return "a"

    with sk.live.run("r-1") as run_id:
        agent("q")
        agent("q")
    agent("q")
    frame = stored(store)
    assert run_id == "r-1"
    assert frame["run"].tolist()[:4] == ["r-1"] * 4
    assert "r-1" not in frame["run"].tolist()[4:]


def test_run_inside_a_call_gives_its_id_while_steps_stay_with_the_call(live, store):
    inner = live()(echo)

    @live(run_id="question", metadata=lambda call: {"steps": list(call.steps)})
    def agent(question):
        with sk.live.run("r-2"), sk.live.step("s", scorers={"found": LENGTH}) as step:
            step.output = inner("i")
        return inner("j")

    agent("r-1")
    frame = stored(store)
    assert frame[["output", "entity_id", "run"]].to_numpy().tolist() == [
        ["i", "echo", "r-2"],
        ["i", "s", "r-2"],
        ["j", "echo", "r-1"],
        ["j", "agent", "r-1"],
    ]
    assert frame["steps"].tolist()[-1] == ["s"]


def test_run_id_of_a_function_goes_before_the_run_around_it(live, store):
    with sk.live.run("r-1"):
        live(run_id="question")(echo)("r-2")
    assert stored(store)["run"].tolist() == ["r-2"]


def test_run_object_may_be_opened_twice_and_in_itself(live, store):
    run = sk.live.run("r")
    agent = live()(echo)
    with run:
        with run:
            agent("q")
        agent("q")
    with run:
        agent("q")
    agent("q")
    assert (stored(store)["run"] == "r").tolist() == [True, True, True, False]


def test_run_object_may_be_open_in_several_threads(live, store):
    run = sk.live.run("r")
    agent = live()(echo)
    inside, leave = threading.Barrier(2), threading.Barrier(2)

    def work(_):
        with run:
            inside.wait(10)
            agent("q")
        leave.wait(10)
        agent("later")
        return CURRENT.get()

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, range(2))) == [None, None]
    frame = stored(store)
    assert set(frame.loc[frame["output"] == "q", "run"]) == {"r"}
    assert "r" not in set(frame.loc[frame["output"] == "later", "run"])


@pytest.mark.parametrize("bad", [None, "", 0.5, "x" * 513])
def test_run_id_that_cannot_be_kept_is_counted_and_a_fresh_one_taken(live, store, bad):
    with sk.live.run(bad) as run_id:
        live()(echo)("q")
    assert len(run_id) == 32
    assert stored(store)["run"].tolist() == [run_id]
    assert sk.live.stats().hook_errors == 1


def test_run_ids_with_surrogates_are_sampled_and_kept(live, store):
    agent = live(scorers={"size": sk.sampled(LENGTH, 0.5)}, run_id="question")(echo)
    ids = [f"\ud800\0'; DROP TABLE scorekit_scores; --<b>{number}" for number in range(40)]
    for run_id in ids:
        agent(run_id)
    frame = stored(store)
    assert frame["run"].tolist() == [run_id for run_id in ids if share_of(run_id) < 0.5]
    assert frame["input"].tolist() == frame["run"].tolist()


def test_nested_calls_of_equal_rates_are_picked_together(live, store):
    rated = {"size": sk.sampled(LENGTH, 0.5)}
    inner = live(scorers=rated, name="inner")(echo)
    outer = live(scorers=rated, name="outer")(inner)
    for number in range(40):
        outer(str(number))
    frame = stored(store)
    runs = frame.groupby("entity_id")["run"].apply(set)
    assert runs["inner"] == runs["outer"]
    assert 0 < len(runs["inner"]) < 40


def test_threads_have_runs_of_their_own(live, store):
    inner = live(name="inner")(echo)

    @live(name="outer")
    def outer(question):
        return inner(question)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(outer, map(str, range(200)))) == [str(number) for number in range(200)]
    frame = stored(store)
    pairs = frame.pivot_table(index="run", columns="entity_id", values="output", aggfunc="first")
    assert pairs.shape == (200, 2)
    assert (pairs["inner"] == pairs["outer"]).all()
    assert not pd.isna(frame["size_score"]).any()
