"""The background: what happens to a call from the moment it is handed over until it is committed."""

import json
import os
import threading
import time
from functools import partial

import pandas as pd
import pytest
from live_scorers import LENGTH, deadly, hanging, leaving, raising, silent, slow, where, worded
from loopback import Reply as Answer
from pydantic import BaseModel

import scorekit as sk
from scorekit.errors import ArgumentTypeError, MissingColumnError, ScorerDefinitionError
from scorekit.monitor import worker
from scorekit.monitor.channel import Attached, Channel, Item
from scorekit.monitor.store import ScoreStore
from scorekit.monitor.writer import spill_path


def channel(store, scorers, **settings):
    attached = tuple(Attached(key, scorer, 1.0, None) for key, scorer in scorers.items())
    return Channel("agent", "support", attached, store, **settings)


def item(number, output="an answer", *, picked=(0,), failure=None):
    return Item(
        picked, f"run-{number}", f"row-{number}", None, 1_700_000_000_000_000 + number, f"question {number}", output, None, None, failure
    )


@pytest.fixture
def store(tmp_path):
    return ScoreStore(tmp_path / "scores.db")


def scores(store, name):
    frame = store.read(scorer=name)
    return dict(zip(frame["run"], frame[f"{name}_score"], strict=True))


def errors(store, name):
    frame = store.read(scorer=name)
    return {run: error for run, error in zip(frame["run"], frame[f"{name}_error"], strict=True) if not pd.isna(error)}


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_offer_stores_the_call_with_its_score(store, kind):
    opened = worker.attach(channel(store, {"size": LENGTH}, worker=kind))
    assert opened.offer(item(1, "four"))
    assert worker.flush(60)
    row = store.read().iloc[0]
    found = [row[name] for name in ("run", "row", "source", "entity_type", "entity_id", "input", "output", "size_score")]
    assert found == ["run-1", "row-1", "LIVE", "agent", "support", "question 1", "four", 4.0]
    assert row["created_at"] == pd.Timestamp(1_700_000_000_000_001, unit="us", tz="UTC")


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_every_row_is_stored_once(store, kind):
    opened = worker.attach(channel(store, {"size": LENGTH, "change": sk.score_text_difference}, worker=kind))
    for number in range(500):
        assert opened.offer(item(number, "x" * (number % 7), picked=(0, 1) if number % 2 else (1,)))
    assert worker.flush(60)
    assert store.count() == 750
    assert scores(store, "size") == {f"run-{number}": float(number % 7) for number in range(1, 500, 2)}
    stats = worker.stats()
    assert (stats.scored, stats.stored, stats.waiting, stats.spilled, stats.lost) == (750, 750, 0, 0, 0)


@pytest.mark.parametrize(
    ("scorer", "columns"),
    [
        (sk.score_tone, {"mood_difference", "mood_error", "mood_reason", "mood_score"}),
        (partial(sk.score_tone, name="feeling"), {"mood_difference", "mood_error", "mood_reason", "mood_score"}),
        (LENGTH, {"mood_error", "mood_reason", "mood_score"}),
        (slow, {"mood_error", "mood_reason", "mood_score"}),
    ],
    ids=["function", "partial", "Scorer", "callable"],
)
def test_key_names_the_columns_whatever_the_scorer_is(store, scorer, columns):
    worker.attach(channel(store, {"mood": scorer})).offer(item(1))
    assert worker.flush(30)
    named = {column for column in store.read().columns if column.startswith("mood_")}
    assert columns <= named
    assert not {column for column in store.read().columns if column.startswith(("tone_", "feeling_", "length_", "slow_"))}


def test_call_that_raised_is_kept_as_target_error(store):
    worker.attach(channel(store, {"size": LENGTH})).offer(item(1, None, failure="ValueError: no such tool"))
    assert worker.flush(30)
    row = store.read().iloc[0]
    assert (row["size_error"], row["size_reason"]) == ("target_error", "The function raised ValueError: no such tool")
    assert pd.isna(row["size_score"])
    assert row["input"] == "question 1"


def test_scorer_that_raises_costs_the_other_rows_of_the_batch_nothing(store):
    opened = worker.attach(channel(store, {"raising": raising}))
    for number in range(50):
        opened.offer(item(number, "raise" if number == 17 else "fine"))
    assert worker.flush(30)
    assert scores(store, "raising") | {"run-17": None} == {f"run-{number}": 4.0 for number in range(50)} | {"run-17": None}
    assert errors(store, "raising") == {"run-17": "scorer_error"}
    assert store.read(error="scorer_error")["raising_reason"].tolist() == ["The scorer raised ValueError: this output says raise"]
    assert worker.stats().failed == 1


@pytest.mark.parametrize(
    ("name", "scorer", "bad", "reason"),
    [
        ("leaving", leaving, "leave", "The scorer raised SystemExit: 3"),
        (
            "worded",
            worded,
            "word",
            "The scorer raised ScorerDefinitionError: The scorer worded must write numbers into 'worded_score', but wrote",
        ),
    ],
)
def test_scorer_that_leaves_or_writes_words_costs_that_row_alone(store, name, scorer, bad, reason):
    opened = worker.attach(channel(store, {name: scorer}))
    for number in range(9):
        opened.offer(item(number, bad if number == 4 else "fine"))
    assert worker.flush(30)
    assert errors(store, name) == {"run-4": "scorer_error"}
    assert store.read(error="scorer_error")[f"{name}_reason"].iloc[0].startswith(reason)
    assert {run for run, score in scores(store, name).items() if score == 1.0} == {f"run-{number}" for number in range(9)} - {"run-4"}


def test_judge_that_never_answers_ends_as_a_time_out_and_keeps_no_other_scorer_waiting(store, loopback):
    class Reply(BaseModel):
        answers: bool

    loopback.when("Is it an answer", Answer(hang=True))
    asked = sk.Scorer(
        "asked",
        needs=("output",),
        judge=sk.Judge("m", base_url=loopback.url, cache=False, timeout_s=1.0, row_timeout_s=3.0, retries=0),
        analyze=sk.Prompt("Is it an answer? {{ output }}", reply=Reply),
        generate_score=lambda rows: rows["answers"],
    )
    opened = worker.attach(channel(store, {"size": LENGTH, "asked": asked}))
    opened.offer(item(1, "four", picked=(0, 1)))
    for _ in range(100):
        worker.flush(0.0)
        if store.count(scorer="size"):
            break
        time.sleep(0.02)
    assert scores(store, "size") == {"run-1": 4.0}
    assert worker.flush(60)
    assert errors(store, "asked") == {"run-1": "judge_timeout"}


def test_flush_waits_for_what_was_before_it_alone(store):
    opened = worker.attach(channel(store, {"size": LENGTH}))
    stop = threading.Event()

    def traffic():
        number = 1000
        while not stop.wait(0.005):
            opened.offer(item(number))
            number += 1

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        opened.offer(item(1))
        assert worker.flush(30)
    finally:
        stop.set()
        thread.join()
    assert "run-1" in scores(store, "size")


def test_spilled_rows_of_two_stores_are_counted_together(tmp_path):
    (tmp_path / "no").write_text("no folder")
    for name, kind, count in (("a", "thread", 5), ("b", "process", 7)):
        opened = worker.attach(channel(ScoreStore(tmp_path / "no" / f"{name}.db"), {"size": LENGTH}, worker=kind))
        for number in range(count):
            opened.offer(item(number))
    assert not worker.flush(6)
    assert worker.stats().spilled == 12


def test_scorer_that_gives_no_score_and_no_reason_gets_an_error_code(store):
    worker.attach(channel(store, {"silent": silent})).offer(item(1))
    assert worker.flush(30)
    assert errors(store, "silent") == {"run-1": "not_scorable"}
    assert store.read()["silent_reason"].tolist() == ["The scorer gave no score."]


def test_text_that_is_no_text_gets_the_scorers_own_error(store):
    worker.attach(channel(store, {"size": LENGTH})).offer(item(1, b'{"answer": 42}'))
    assert worker.flush(30)
    assert errors(store, "size") == {"run-1": "not_text"}
    assert store.read()["output"].tolist() == [{"answer": 42}]


def test_attach_refuses_a_scorer_that_needs_what_no_call_has(store):
    needy = sk.Scorer("needy", needs=("ground_truth",), generate_score=lambda rows: rows["ground_truth"].str.len())
    with pytest.raises(MissingColumnError, match="needs a column 'ground_truth'"):
        worker.attach(channel(store, {"needy": needy}))


def test_attach_refuses_a_scorer_of_two_scores(store):
    with pytest.raises(ScorerDefinitionError, match="must write one score, but it writes 'a_score', 'b_score'"):
        worker.attach(channel(store, {"both": lambda df: df.assign(a_score=1.0, b_score=1.0)}))


def test_attach_refuses_for_another_process_what_cannot_be_sent(store):
    def unsendable(df, made=(part for part in "ab")):
        return df.assign(unsendable_score=1.0)

    with pytest.raises(ArgumentTypeError, match="they cannot be sent"):
        worker.attach(channel(store, {"unsendable": unsendable}, worker="process"))


def test_full_channel_drops_and_counts(store):
    opened = worker.attach(channel(store, {"hanging": hanging}, capacity=3))
    assert [opened.offer(item(number)) for number in range(5)] == [True, True, True, False, False]
    assert worker.stats().dropped == 2
    assert worker.stats().waiting == 3


def test_full_channel_that_blocks_waits_for_room(store):
    opened = worker.attach(channel(store, {"slow": slow}, capacity=2, full="block", block_timeout_s=30.0))
    assert all(opened.offer(item(number)) for number in range(8))
    assert worker.flush(30)
    assert (store.count(), worker.stats().dropped) == (8, 0)


def test_full_channel_that_blocks_gives_up_after_its_time(store):
    opened = worker.attach(channel(store, {"hanging": hanging}, capacity=1, full="block", block_timeout_s=0.05))
    assert [opened.offer(item(number)) for number in range(2)] == [True, False]
    assert worker.stats().dropped == 1


def test_scorer_that_hangs_keeps_no_judged_scorer_waiting(store, loopback):
    judge = sk.Judge("m", base_url=loopback.url, cache=False)
    loopback.when("Is it an answer", Answer(content=json.dumps({"answers": True})))

    class Reply(BaseModel):
        answers: bool

    asked = sk.Scorer(
        "asked",
        needs=("output",),
        judge=judge,
        analyze=sk.Prompt("Is it an answer? {{ output }}", reply=Reply),
        generate_score=lambda rows: rows["answers"],
    )
    opened = worker.attach(channel(store, {"hanging": hanging, "asked": asked}))
    opened.offer(item(1, picked=(0, 1)))
    assert not worker.flush(5)
    assert scores(store, "asked") == {"run-1": 1.0}


def test_close_keeps_what_a_hanging_scorer_left_to_be_scored_later(store):
    opened = worker.attach(channel(store, {"size": LENGTH, "hanging": hanging}))
    for number in range(3):
        opened.offer(item(number, "four", picked=(0, 1)))
    worker.close(1.0)
    again = worker.attach(channel(store, {"size": LENGTH}))
    assert not again.offer(item(9))
    spilled = ScoreStore(spill_path(store)).read(scorer="hanging")
    assert spilled["hanging_error"].tolist() == ["cancelled"] * 3
    assert spilled["output"].tolist() == ["four"] * 3


def test_store_that_is_down_spills_and_is_sent_the_rest_in_order(tmp_path):
    folder = tmp_path / "later"
    folder.write_text("a file where the store's folder should be")
    store = ScoreStore(folder / "scores.db")
    opened = worker.attach(channel(store, {"size": LENGTH}))
    for number in range(20):
        opened.offer(item(number, "four"))
    assert not worker.flush(3)
    assert worker.stats().spilled == 20
    assert worker.stats().waiting == 0
    assert worker.stats().store_errors >= 1
    folder.unlink()
    for number in range(20, 40):
        opened.offer(item(number, "four"))
    assert worker.flush(60)
    assert [row.run_id for row in store.first(100)] == [f"run-{number}" for number in range(40)]
    assert (worker.stats().stored, worker.stats().spilled) == (40, 0)
    assert ScoreStore(spill_path(store)).count() == 0


def test_rows_that_an_earlier_process_spilled_are_sent_first(store, tmp_path):
    blocked = ScoreStore(tmp_path / "other.db")
    worker.attach(channel(blocked, {"size": LENGTH})).offer(item(1, "four"))
    assert worker.flush(30)
    ScoreStore(spill_path(store)).insert(blocked.first(1), existing="keep")
    worker.attach(channel(store, {"size": LENGTH})).offer(item(2, "four"))
    assert worker.flush(30)
    assert [row.run_id for row in store.first(10)] == ["run-1", "run-2"]


def test_rows_wait_in_memory_where_the_spill_file_cannot_be_written_either(tmp_path, monkeypatch):
    folder, spill = tmp_path / "later", tmp_path / "spill"
    folder.write_text("no folder")
    spill.write_text("no folder")
    monkeypatch.setenv("SCOREKIT_SPILL", str(spill))
    store = ScoreStore(folder / "scores.db")
    opened = worker.attach(channel(store, {"size": LENGTH}, capacity=5))
    assert [opened.offer(item(number, "four")) for number in range(5)] == [True] * 5
    assert not worker.flush(2)
    assert worker.stats().waiting == 5
    assert not opened.offer(item(5))
    folder.unlink()
    assert worker.flush(60)
    assert scores(store, "size") == {f"run-{number}": 4.0 for number in range(5)}


def test_scorer_in_another_process_runs_there(store):
    opened = worker.attach(channel(store, {"where": where}, worker="process"))
    opened.offer(item(1))
    assert worker.flush(60)
    assert scores(store, "where") != {"run-1": float(os.getpid())}


def test_function_of_a_test_goes_to_another_process_by_value(store):
    shift = 3.0
    local = sk.Scorer("local", needs=("output",), generate_score=lambda rows: rows["output"].str.len() + shift)
    worker.attach(channel(store, {"local": local}, worker="process")).offer(item(1, "four"))
    assert worker.flush(60)
    assert scores(store, "local") == {"run-1": 7.0}


def test_call_that_ends_the_other_process_costs_no_other_call(store):
    opened = worker.attach(channel(store, {"deadly": deadly}, worker="process"))
    for number in range(5):
        opened.offer(item(number, "die" if number == 2 else "live"))
    assert worker.flush(120)
    assert errors(store, "deadly") == {"run-2": "scorer_error"}
    assert {run for run, score in scores(store, "deadly").items() if score == 1.0} == {"run-0", "run-1", "run-3", "run-4"}


def test_other_process_that_is_killed_loses_and_doubles_nothing(store):
    opened = worker.attach(channel(store, {"slow": slow}, worker="process"))
    for number in range(300):
        opened.offer(item(number))
    for _ in range(600):
        if worker.stats().stored:
            break
        time.sleep(0.05)
    os.kill(worker.worker_pid(), 9)
    for number in range(300, 320):
        opened.offer(item(number))
    assert worker.flush(120)
    assert sorted(scores(store, "slow")) == sorted(f"run-{number}" for number in range(320))
    assert store.count() == worker.stats().stored == 320


def test_other_process_that_cannot_start_leaves_the_work_to_a_thread(store, monkeypatch, tmp_path):
    monkeypatch.setattr("scorekit.monitor.launched.get_executable", lambda: str(tmp_path / "no-python"))
    opened = worker.attach(channel(store, {"where": where}, worker="process"))
    opened.offer(item(1))
    assert worker.flush(60)
    assert scores(store, "where") == {"run-1": float(os.getpid())}


def test_scorer_that_the_other_process_cannot_load_runs_in_a_thread(store, tmp_path, monkeypatch):
    import importlib
    import sys

    (tmp_path / "vanishing.py").write_text("def vanishing(df):\n    return df.assign(vanishing_score=1.0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    scorer = importlib.import_module("vanishing").vanishing
    (tmp_path / "vanishing.py").unlink()
    opened = worker.attach(channel(store, {"vanishing": scorer}, worker="process"))
    sys.path.remove(str(tmp_path))
    opened.offer(item(1))
    assert worker.flush(60)
    assert scores(store, "vanishing") == {"run-1": 1.0}
