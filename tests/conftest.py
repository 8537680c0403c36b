"""What every test gets: an environment without judges, a cache of its own, and a scripted judge on loopback."""

import os
import sys
from pathlib import Path

import pytest

from scorekit.judge.local import forget_warning

sys.path.insert(0, str(Path(__file__).parent))  # for `from loopback import ...`


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch, tmp_path):
    """No key, no endpoint and no settings of the machine; replies are kept in the test's own folder."""
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "SCOREKIT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SCOREKIT_CACHE", str(tmp_path / "replies.sqlite3"))
    forget_warning()


@pytest.fixture
def loopback():
    """A judge on 127.0.0.1 that answers as scripted; see loopback.py."""
    from loopback import Loopback

    with Loopback() as server:
        yield server
