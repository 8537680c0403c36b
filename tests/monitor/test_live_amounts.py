"""Live scoring in earnest: a hundred thousand calls, and exactly the rows that the rule of sampling picks."""

import hashlib
import os
import re
from pathlib import Path

import pytest
from live_scorers import LENGTH

import scorekit as sk
from scorekit.monitor import worker

COUNT = 100_000
RATE = 0.1


def share(run):
    """The rule of golden/sampling.json, written out again."""
    return int.from_bytes(hashlib.sha256(run.encode()).digest()[:6], "big") / 2**48


def peak(pid):
    """Return the most memory that a process has had, in MB."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("kind", ["thread", "process"])
def test_hundred_thousand_calls_store_exactly_what_the_rule_picks_and_memory_stays_flat(store, kind):
    @sk.live(
        scorers={"size": sk.sampled(LENGTH, rate=RATE)}, store=store, worker=kind, run_id="question", full="block", block_timeout_s=120
    )
    def agent(question):
        return "x" * (len(question) % 9)

    peaks = []
    for first, last in ((0, 30_000), (30_000, COUNT)):
        for number in range(first, last):
            agent(f"run-{number}")
        assert sk.live.flush(240), sk.live.stats()
        peaks.append((peak(os.getpid()), peak(worker.worker_pid() or os.getpid())))
    picked = {f"run-{number}" for number in range(COUNT) if share(f"run-{number}") < RATE}
    frame = store.read(scorer="size")
    assert len(frame) == len(picked)
    assert set(frame["run"]) == picked
    assert (frame["size_score"] == frame["run"].str.len() % 9).all()
    stats = sk.live.stats()
    assert (stats.calls, stats.picked, stats.stored, stats.dropped, stats.lost) == (COUNT, len(picked), len(picked), 0, 0)
    assert max(last - early for last, early in zip(peaks[1], peaks[0], strict=True)) < 15, peaks  # of both processes, 70,000 calls later
    assert (worker.worker_pid() is None) == (kind == "thread")
