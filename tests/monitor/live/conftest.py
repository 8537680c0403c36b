"""What tests of `live` get: a store in a file, the decorator with a scorer, and a check that no run stays current."""

import functools

import pytest
from live_scorers import LENGTH

import scorekit as sk
from scorekit.monitor.calls import CURRENT


@pytest.fixture
def store(tmp_path):
    found = sk.ScoreStore(tmp_path / "scores.db")
    yield found
    found.close()


@pytest.fixture
def live(store):
    return functools.partial(sk.live, scorers={"size": LENGTH}, store=store)


@pytest.fixture(autouse=True)
def nothing_stays_current():
    yield
    assert CURRENT.get() is None
