"""ScoreStore with many writers, broken databases and wrong places: nothing is lost or doubled, and every failure is a StoreError."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from scorekit.errors import ArgumentTypeError, OptionRangeError, StoreError, UnknownOptionError
from scorekit.monitor import database, forks, schema
from scorekit.monitor.store import ScoreStore


def frame(count=20, score=0.5):
    return pd.DataFrame({"input": "Hi?", "output": [f"answer {number}" for number in range(count)], "tone_score": score})


WRITER = """
import os, sys, threading
import pandas as pd
from scorekit.monitor.store import ScoreStore
url, name, threads, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = ScoreStore(url)
errors = []
def write(number):
    try:
        for part in range(rounds):
            df = pd.DataFrame({"output": [f"{number} {part} {row}" for row in range(10)], "tone_score": 0.5})
            assert store.append(df, run=f"{name}-{number}-{part}") == 10
            # every writer stores these, in its own order
            store.append(df.assign(output="same").sample(frac=1), run=f"shared-{part}", existing="keep")
            os.write(1, f"{name}-{number}-{part}\\n".encode())  # in one go
    except BaseException as error:
        errors.append(repr(error))
workers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
for worker in workers: worker.start()
for worker in workers: worker.join()
sys.exit("; ".join(errors) or 0)
"""


def written_by(processes, threads, rounds, url):
    """Start processes that write at once, and return the runs that they reported."""
    command = [sys.executable, "-c", WRITER, url]
    started = [
        subprocess.Popen([*command, f"p{number}", str(threads), str(rounds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(processes)
    ]
    outputs = [process.communicate(timeout=100) for process in started]
    assert [(process.returncode, error) for process, (_, error) in zip(started, outputs, strict=True)] == [(0, "")] * processes
    return sorted(line for output, _ in outputs for line in output.split())


# --- many at once


def test_eight_threads_of_four_processes_open_and_append_at_once(tmp_path):
    place = tmp_path / "new" / "scores.db"
    reported = written_by(4, 8, 4, str(place))
    found = ScoreStore(place).read()
    assert reported == sorted(f"p{process}-{thread}-{part}" for process in range(4) for thread in range(8) for part in range(4))
    assert found.groupby("run").size().to_dict() == {**dict.fromkeys(reported, 10), **{f"shared-{part}": 10 for part in range(4)}}
    assert not found.duplicated(["run", "row"]).any()


def test_processes_open_and_append_at_once_in_postgresql(postgres_url):
    reported = written_by(3, 4, 4, postgres_url)
    found = ScoreStore(postgres_url).read()
    assert found.groupby("run").size().to_dict() == {**dict.fromkeys(reported, 10), **{f"shared-{part}": 10 for part in range(4)}}


def test_threads_that_store_the_same_rows_store_them_once(store):
    df = frame(300)
    with ThreadPoolExecutor(8) as pool:
        new = list(pool.map(lambda number: store.append(df.sample(frac=1, random_state=number), run="v1"), range(16)))
    assert (sum(new), store.count()) == (300, 300)


def test_threads_that_replace_the_same_rows_leave_one_result_each(store):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store.append(frame(200, number).sample(frac=1), run="v1", existing="replace"), range(16)))
    assert store.count() == 200
    assert store.read()["tone_score"].isin(range(16)).all()


def test_kill_loses_nothing_that_was_reported_and_leaves_no_half(tmp_path):
    place = tmp_path / "scores.db"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(place), "p", "4", "1000"], stdout=subprocess.PIPE, text=True)
    reported = [process.stdout.readline().strip() for _ in range(40)]
    process.send_signal(signal.SIGKILL)
    reported += process.stdout.read().split()
    process.wait()
    process.stdout.close()
    sizes = ScoreStore(place).read().groupby("run").size()
    assert set(reported) <= set(sizes.index)
    assert set(sizes) == {10}


def test_forked_children_store_while_the_parent_does(store):
    store.append(frame(), run="first")
    stop = threading.Event()
    writers = [threading.Thread(target=_write_until, args=(store, stop, number)) for number in range(2)]
    for writer in writers:
        writer.start()
    statuses = []
    for number in range(20):
        if (child := os.fork()) == 0:
            code = 1
            try:
                code = 0 if store.append(frame(), run=f"child-{number}") == 20 and len(store.read(run="first")) == 20 else 2
            finally:
                os._exit(code)
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    stop.set()
    for writer in writers:
        writer.join()
    assert statuses == [0] * 20
    sizes = store.read().groupby("run").size()
    assert set(sizes) == {20}
    assert {f"child-{number}" for number in range(20)} < set(sizes.index)


def in_child(work):
    """Do something in a forked child; return what it returned, or "error: " and its message."""
    here, there = os.pipe()
    if (child := os.fork()) == 0:
        try:
            said = str(work())
        except Exception as error:  # noqa: BLE001
            said = f"error: {error}"
        os.write(there, said.encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here) as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return said


def test_child_keeps_what_it_stores_when_the_parent_closes_the_store(tmp_path):
    store = ScoreStore(tmp_path / "scores.db")
    store.append(frame(), run="parent")
    (stored, told), (closed, go_on) = os.pipe(), os.pipe()

    def work():
        store.append(frame(), run="child-1")
        os.write(told, b"x")
        os.read(closed, 1)
        return store.append(frame(), run="child-2")

    def close():
        os.read(stored, 1)
        store.count()
        store.close()
        os.write(go_on, b"x")

    closer = threading.Thread(target=close)
    closer.start()
    assert in_child(work) == "20"
    closer.join()
    assert store.runs()["run"].tolist() == ["parent", "child-1", "child-2"]
    for descriptor in (stored, told, closed, go_on):
        os.close(descriptor)


def test_fork_waits_for_an_append(tmp_path):
    store = ScoreStore(tmp_path / "scores.db")
    store.append(frame(), run="first")
    writer = threading.Thread(target=lambda: [store.append(frame(3000), run=f"{part}") for part in range(10)])
    writer.start()
    assert [in_child(partial(store.append, frame(), run=f"child-{number}")) for number in range(5)] == ["20"] * 5
    writer.join()
    assert store.count() == 20 + 30_000 + 5 * 20


def test_file_that_was_in_use_too_long_is_refused_in_the_child(tmp_path, monkeypatch):
    monkeypatch.setattr(forks, "FORK_S", 0.05)
    store, other = ScoreStore(tmp_path / "scores.db"), ScoreStore(tmp_path / "other.db")
    with store.database().writing() as db:
        db.exec_driver_sql("DELETE FROM scorekit_scores")
        assert "another thread was working with the file when the process was forked" in in_child(store.count)
        assert in_child(lambda: other.append(frame(), run="v1")) == "20"
    assert store.append(frame(), run="v1") == 20
    assert in_child(store.count) == "20"


def test_fork_does_not_wait_for_a_writer_that_waits_itself(tmp_path):
    store = ScoreStore(tmp_path / "scores.db")
    store.append(frame(), run="v1")
    holder = sqlite3.connect(tmp_path / "scores.db", isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    writer = threading.Thread(target=store.append, args=(frame(),), kwargs={"run": "v2"})
    writer.start()
    assert [in_child(lambda: "forked") for _ in range(5)] == ["forked"] * 5
    holder.execute("ROLLBACK")
    holder.close()
    writer.join()
    assert in_child(store.count) == "40"


def _write_until(store, stop, number):
    part = 0
    while not stop.is_set():
        part += 1
        store.append(frame(), run=f"parent-{number}-{part}")


# --- what the file is


def test_file_is_made_for_its_owner_alone_with_its_folder(tmp_path):
    place = tmp_path / "some" / "place?#%41 é.db"
    store = ScoreStore(place)
    store.append(frame(), run="v1")
    assert {stat.S_IMODE(file.stat().st_mode) for file in place.parent.iterdir()} == {0o600}
    assert ScoreStore(store.url) == store
    assert ScoreStore(store.url).count() == 20
    assert place.exists()


def test_file_is_in_wal_mode_and_written_through(tmp_path):
    store = ScoreStore(tmp_path / "scores.db")
    with store.database().writing() as db:
        found = [db.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("journal_mode", "synchronous", "busy_timeout")]
    assert found == ["wal", 2, 30_000]


def test_relative_path_stays_where_it_was_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = ScoreStore()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.append(frame(), run="v1")
    assert (tmp_path / "scores.db").exists()
    assert store == ScoreStore(tmp_path / "scores.db")


def test_table_can_be_read_without_scorekit(tmp_path):
    store = ScoreStore(tmp_path / "scores.db")
    store.append(frame(1), run="v1", entity_id="bot", created_at="2026-01-02T03:04:05Z")
    with sqlite3.connect(tmp_path / "scores.db") as db:
        columns = "run_id, scorer, source, entity_id, row, input, output, score, created_at"
        (row,) = db.execute(f"SELECT {columns} FROM scorekit_scores").fetchall()
    db.close()
    assert row == ("v1", "tone", "TEST", "bot", "0", '"Hi?"', '"answer 0"', 0.5, "2026-01-02T03:04:05.000000Z")


def test_file_that_was_removed_is_made_anew(tmp_path):
    store = ScoreStore(tmp_path / "scores.db")
    store.append(frame(), run="v1")
    for file in tmp_path.glob("scores.db*"):
        file.unlink()
    assert store.append(frame(), run="v2") == 20
    assert ScoreStore(tmp_path / "scores.db").runs()["run"].tolist() == ["v2"]


def test_file_that_is_full_stores_nothing_of_a_frame_and_goes_on_later(tmp_path):
    import sqlalchemy as sa

    store = ScoreStore(tmp_path / "scores.db")
    store.append(frame(), run="v1")
    limit = {"pages": 12}
    sa.event.listen(store.database()._engine, "checkout", lambda db, *_: db.execute(f"PRAGMA max_page_count = {limit['pages']}"))
    with pytest.raises(StoreError, match="database or disk is full"):
        store.append(frame(2000), run="v2")
    assert store.count() == 20
    limit["pages"] = 2**30
    assert store.append(frame(2000), run="v2") == 2000


def test_file_that_is_no_database_raises(tmp_path):
    (tmp_path / "scores.db").write_bytes(b"this is no database " * 500)
    store = ScoreStore(tmp_path / "scores.db")
    for use in (store.read, store.runs, store.count, store.size, lambda: store.append(frame(), run="v1"), lambda: store.delete(run="v1")):
        with pytest.raises(StoreError, match=r"The store sqlite:////.*scores.db cannot be used: file is not a database\."):
            use()
    assert (tmp_path / "scores.db").read_bytes()[:4] == b"this"


def test_folder_that_is_none_raises(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be used"):
        ScoreStore(tmp_path / "file" / "scores.db").count()
    with pytest.raises(StoreError, match="unable to open database file"):
        ScoreStore(tmp_path).count()


def test_file_that_may_only_be_read_is_read_and_not_written():
    folder = Path(tempfile.mkdtemp())
    store = ScoreStore(folder / "scores.db")
    store.append(frame(), run="v1")
    store.close()
    folder.chmod(0o777)
    (folder / "scores.db").chmod(0o444)
    if (child := os.fork()) == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            assert len(store.read()) == 20
            with pytest.raises(StoreError, match="attempt to write a readonly database"):
                store.append(frame(), run="v2")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.count() == 20


def test_writer_that_holds_the_file_too_long_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "BUSY_S", 0.2)
    store = ScoreStore(tmp_path / "scores.db")
    store.append(frame(), run="v1")
    other = sqlite3.connect(tmp_path / "scores.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="database is locked"):
        store.append(frame(), run="v2")
    assert len(store.read()) == 20
    other.execute("ROLLBACK")
    other.close()
    assert store.append(frame(), run="v2") == 20


# --- tables


def test_table_of_somebody_else_raises_and_stays(store):
    with store.database().writing() as db:
        db.exec_driver_sql("DROP TABLE scorekit_schema")
        db.exec_driver_sql("DROP TABLE scorekit_scores")
        db.exec_driver_sql("CREATE TABLE scorekit_scores (a TEXT)")
    store.close()
    with pytest.raises(StoreError, match=r"has a table 'scorekit_scores' that scorekit did not make\. Choose another database\."):
        store.append(frame(), run="v1")


def test_table_with_other_columns_raises(store):
    with store.database().writing() as db:
        db.exec_driver_sql("DROP TABLE scorekit_scores")
        db.exec_driver_sql("CREATE TABLE scorekit_scores (a TEXT)")
    store.close()
    with pytest.raises(StoreError, match="cannot be used"):
        store.read()


def test_store_of_a_newer_scorekit_raises(store):
    store.append(frame(), run="v1")
    with store.database().writing() as db:
        db.exec_driver_sql("UPDATE scorekit_schema SET version = 99")
    store.close()
    with pytest.raises(StoreError, match=r"made by a newer scorekit: its tables have version 99, this one knows 1\. Upgrade scorekit\."):
        store.read()


def _with_tags(db):
    db.exec_driver_sql("ALTER TABLE scorekit_scores ADD COLUMN tags TEXT")


def _with_tag_index(db):
    db.exec_driver_sql("CREATE INDEX scorekit_scores_by_tags ON scorekit_scores (tags)")


def test_old_store_is_brought_forward_with_its_rows(store, monkeypatch):
    store.append(frame(), run="v1")
    before = store.read()
    store.close()
    monkeypatch.setattr(database, "MIGRATIONS", (*schema.MIGRATIONS, _with_tags, _with_tag_index))
    pd.testing.assert_frame_equal(store.read(), before)
    with store.database().writing() as db:
        assert db.exec_driver_sql("SELECT version FROM scorekit_schema").scalar_one() == 3
        assert db.exec_driver_sql("UPDATE scorekit_scores SET tags = 'x'").rowcount == 20
    assert store.append(frame(), run="v2") == 20


def test_step_that_fails_leaves_the_store_as_it_was(store, monkeypatch):
    store.append(frame(), run="v1")
    store.close()
    monkeypatch.setattr(database, "MIGRATIONS", (*schema.MIGRATIONS, _with_tags, lambda db: db.exec_driver_sql("SELECT nonsense")))
    with pytest.raises(StoreError, match="nonsense"):
        store.read()
    monkeypatch.setattr(database, "MIGRATIONS", (*schema.MIGRATIONS, _with_tags))
    assert len(store.read()) == 20


def test_threads_bring_a_store_forward_once(store, monkeypatch):
    store.append(frame(), run="v1")
    store.close()
    monkeypatch.setattr(database, "MIGRATIONS", (*schema.MIGRATIONS, _with_tags, _with_tag_index))
    databases = [database.Database(store.url) for _ in range(8)]

    def opened(one):
        with one.reading() as db:
            return db.exec_driver_sql("SELECT version FROM scorekit_schema").scalar_one()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(opened, databases)) == [3] * 8
    for one in databases:
        one.close()


@pytest.mark.parametrize("made", [True, False])
def test_first_use_waits_for_a_writer_that_takes_its_time(tmp_path, made, monkeypatch):
    store = ScoreStore(tmp_path / "scores.db")
    with store.database().writing():
        pass
    store.close()
    if not made:
        (tmp_path / "scores.db").unlink()
    monkeypatch.setattr(database, "MIGRATIONS", (*schema.MIGRATIONS, _with_tags))
    other = sqlite3.connect(tmp_path / "scores.db", isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: len(store.read()))
        with pytest.raises(TimeoutError):
            reading.result(timeout=1.0)  # ten times as long as one attempt waits
        other.execute("COMMIT")
        other.close()
        assert reading.result(timeout=30) == 0


# --- places


@pytest.mark.parametrize(
    ("place", "error", "match"),
    [
        (5, ArgumentTypeError, "url must be a path, or a URL such as 'postgresql://user:password@host/database', not int"),
        ("mysql://me:secret@host/db", UnknownOptionError, "'mysql' is not known; choose one of 'sqlite', 'postgresql'"),
        ("postgresql+psycopg2://me:secret@host/db", UnknownOptionError, "'postgresql\\+psycopg2' is not known"),
        ("sqlite+aiosqlite:///scores.db", UnknownOptionError, "'sqlite\\+aiosqlite' is not known"),
        ("sqlite://", OptionRangeError, "a database in memory ends with its connection"),
        ("sqlite:///:memory:", OptionRangeError, "a file such as 'sqlite:///scores.db'"),
        (":memory:", OptionRangeError, "a file such as 'sqlite:///scores.db'"),
        ("", OptionRangeError, "a file such as 'sqlite:///scores.db'"),
        ("sqlite:///file:scores.db?mode=memory&uri=true", OptionRangeError, "the path of the SQLite file alone"),
        ("postgresql://me:secret@host:port/db", OptionRangeError, "url cannot be read; it must look like 'postgresql://user:password@host/database'"),
    ],
)  # fmt: skip
def test_wrong_place_raises_when_the_store_is_made(place, error, match):
    with pytest.raises(error, match=match) as caught:
        ScoreStore(place)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("days", "error"), [(0, OptionRangeError), (-1, OptionRangeError), (float("nan"), OptionRangeError), ("9", ArgumentTypeError), (True, ArgumentTypeError)]
)  # fmt: skip
def test_wrong_age_raises_when_the_store_is_made(days, error):
    with pytest.raises(error, match="max_age_days"):
        ScoreStore("scores.db", max_age_days=days)


def test_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"needs the driver 'psycopg': pip install 'scorekit\[postgres\]'"):
        ScoreStore("postgresql://me:secret@127.0.0.1:9/x").count()


# --- PostgreSQL


def test_server_that_is_not_there_raises_without_the_password():
    with pytest.raises(StoreError, match=r"The store postgresql\+psycopg://me:\*\*\*@127.0.0.1:9/x cannot be used: .*refused") as caught:
        ScoreStore("postgresql://me:se%40cret@127.0.0.1:9/x").append(frame(), run="v1")
    assert "se@cret" not in str(caught.value)
    assert "se%40cret" not in str(caught.value)


def test_database_that_is_not_there_raises(postgres_url):
    with pytest.raises(StoreError, match='database "nowhere" does not exist'):
        ScoreStore(postgres_url.replace("/postgres?", "/nowhere?")).count()


def test_user_who_may_not_write_reads_and_cannot_append(postgres_url):
    store = ScoreStore(postgres_url)
    store.append(frame(), run="v1")
    with store.database().writing() as db:
        name = db.exec_driver_sql("SELECT current_schema()").scalar_one()
        db.exec_driver_sql(f"CREATE ROLE reader_{name} LOGIN")
        db.exec_driver_sql(f"GRANT USAGE ON SCHEMA {name} TO reader_{name}")
        db.exec_driver_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO reader_{name}")
    reader = ScoreStore(postgres_url.replace("//postgres", f"//reader_{name}"))
    assert len(reader.read()) == 20
    with pytest.raises(StoreError, match="permission denied for table scorekit_scores"):
        reader.append(frame(), run="v2")
    reader.close()
    with store.database().writing() as db:
        db.exec_driver_sql(f"DROP OWNED BY reader_{name}")
        db.exec_driver_sql(f"DROP ROLE reader_{name}")


def test_connections_that_the_server_ended_are_made_anew(postgres_url):
    store = ScoreStore(postgres_url)
    store.append(frame(), run="v1")
    with store.database().reading() as db:
        mine = db.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with ScoreStore(postgres_url + "&application_name=other").database().writing() as db:
        assert db.exec_driver_sql(f"SELECT pg_terminate_backend({mine})").scalar_one()
    assert store.append(frame(), run="v2") == 20


def test_connection_that_ends_within_a_transaction_changes_nothing(postgres_url):
    store = ScoreStore(postgres_url)
    store.append(frame(), run="v1")

    def interrupted():
        with store.database().writing() as db:
            db.exec_driver_sql("DELETE FROM scorekit_scores")
            db.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(StoreError, match="cannot be used"):
        interrupted()
    assert store.count() == 20


def test_statement_that_takes_too_long_is_ended(postgres_url, monkeypatch):
    monkeypatch.setattr(database, "STATEMENT_S", 1)
    store = ScoreStore(postgres_url)
    store.append(frame(), run="v1")
    with ScoreStore(postgres_url + "&application_name=other").database().writing() as other:
        other.exec_driver_sql("LOCK TABLE scorekit_scores")
        with pytest.raises(StoreError, match="statement timeout"):
            store.append(frame(), run="v2")
    assert store.append(frame(), run="v2") == 20


def test_table_that_was_dropped_raises_until_the_store_is_opened_again(postgres_url):
    store = ScoreStore(postgres_url)
    store.append(frame(), run="v1")
    with store.database().writing() as db:
        db.exec_driver_sql("DROP TABLE scorekit_scores, scorekit_schema")
    with pytest.raises(StoreError, match='relation "scorekit_scores" does not exist'):
        store.append(frame(), run="v2")
    store.close()
    assert store.append(frame(), run="v2") == 20
