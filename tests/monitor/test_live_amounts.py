"""Live scoring in earnest: a hundred thousand calls, and exactly the rows that the rule of sampling picks."""

import hashlib
import resource

import pytest
from live_scorers import LENGTH

import scorekit as sk

COUNT = 100_000
RATE = 0.1


def share(run):
    """The rule of golden/sampling.json, written out again."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:6], "big") / 2**48


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_hundred_thousand_calls_store_exactly_what_the_rule_picks_and_memory_stays_flat(store, kind):
    @sk.live(
        scorers={"size": sk.sampled(LENGTH, rate=RATE)}, store=store, worker=kind, run_id="question", full="block", block_timeout_s=120
    )
    def agent(question):
        return "x" * (len(question) % 9)

    peaks = []
    for number in range(COUNT):
        agent(f"run-{number}")
        if number % 10_000 == 9_999:
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    assert sk.live.flush(240), sk.live.stats()
    picked = {f"run-{number}" for number in range(COUNT) if share(f"run-{number}") < RATE}
    frame = store.read(scorer="size")
    assert len(frame) == len(picked)
    assert set(frame["run"]) == picked
    assert (frame["size_score"] == frame["run"].str.len() % 9).all()
    stats = sk.live.stats()
    assert (stats.calls, stats.picked, stats.stored, stats.dropped, stats.lost) == (COUNT, len(picked), len(picked), 0, 0)
    assert peaks[-1] - peaks[2] < 15, peaks  # MB; 70,000 calls later
