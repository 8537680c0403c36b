"""What every test gets: an environment without judges, a cache of its own, and a scripted judge on loopback."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from scorekit.judge.local import forget_warning
from scorekit.judge.loop import background

sys.path.insert(0, str(Path(__file__).parent))  # for `from loopback import ...`


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """No key, no endpoint and no settings of the machine; replies are kept in the test's own folder."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "SCOREKIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SCOREKIT_CACHE", str(tmp_path / "replies.sqlite3"))
    monkeypatch.setenv("SCOREKIT_SPILL", str(tmp_path / "spill"))
    forget_warning()


@pytest.fixture(autouse=True)
def closed_judges():
    """Close the judges of each test, and forget what their endpoints can do: the ports of earlier servers come round again."""
    yield
    here = background()
    for close in here.closers:
        asyncio.run_coroutine_threadsafe(close(), here.loop).result(10)
    here.closers.clear()
    for key in [key for key in here.kept if isinstance(key, tuple) and key[0] in ("engine", "capabilities")]:
        del here.kept[key]


@pytest.fixture(autouse=True)
def ended_live_scoring(clean_environment):
    """End the background of each test while its folders and settings are there, and begin the next one with none."""
    yield
    worker = sys.modules.get("scorekit.monitor.worker")
    if worker is not None:
        worker.reset()


@pytest.fixture
def loopback():
    """A judge on 127.0.0.1 that answers as scripted; see loopback.py."""
    from loopback import Loopback

    with Loopback() as server:
        yield server
