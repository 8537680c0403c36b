"""What live scoring adds to a call, and what it costs a small web application: ``python benchmarks/live.py``.

Latency: 1,000 calls a second for ten seconds, the bare function and the decorated one in turn, in a process of its own per line. Every call is picked and
scored by ``score_tone`` and ``score_text_difference``; "down" is a PostgreSQL URL where nobody listens. "instant" returns a text at once; "busy" computes in
Python for 0.2 ms first, so that the interpreter may be taken from it. Added: the quantile of the decorated calls less that of the bare ones.

Application: an ASGI application on uvicorn (``pip install uvicorn``), whose handler waits 25 ms as for a model; eight clients on loopback ask one after
the other. Requests a second, without live scoring and with it (``worker="process"``), in turn.

A value beyond its aim is marked with "!". Run it alone: the machine's other work shows in every line.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEXT = "The capital of France is Paris, a large and lively city on the river Seine. It is great to visit in spring. " * 3
NOBODY = "postgresql://nobody:secret@127.0.0.1:9/none"
AIMS = {"thread": 6000.0, "process": 1000.0}
MEDIAN_AIM = 50.0
SHARE_AIM = 0.95


def instant(question: str) -> str:
    return TEXT


def busy(question: str) -> str:
    total = 0
    for number in range(4000):
        total += number
    return TEXT if total else ""


# --- in a process of its own


def latency(kind, worker, url, seconds):
    import scorekit as sk

    bare = {"instant": instant, "busy": busy}[kind]
    store = sk.ScoreStore(url)
    live = sk.live(scorers={"tone": sk.score_tone, "change": sk.score_text_difference}, store=store, worker=worker)(bare)
    clock = time.perf_counter_ns
    for number in range(200):  # the background starts, code is loaded
        live(f"What is the capital of France, number {number}?")
    time.sleep(5.0)
    taken = {"bare": [], "live": []}
    start = time.perf_counter()
    for number in range(int(1000 * seconds)):
        while (left := start + number / 1000 - time.perf_counter()) > 0:
            time.sleep(left)
        question = f"What is the capital of France, number {number}?"
        for name, function in (("bare", bare), ("live", live)) if number % 2 else (("live", live), ("bare", bare)):
            began = clock()
            function(question)
            taken[name].append(clock() - began)
    took = time.perf_counter() - start
    stats = sk.live.stats()
    flushed = sk.live.flush(60) if "postgres" not in url else False
    found = {name: [value / 1000 for value in statistics.quantiles(values, n=1000)] for name, values in taken.items()}
    return {
        "median": found["live"][499] - found["bare"][499],
        "p99": found["live"][989] - found["bare"][989],
        "p999": found["live"][998] - found["bare"][998],
        "bare": found["bare"][499],
        "rate": int(1000 * seconds) / took,
        "scored": stats.scored,
        "dropped": stats.dropped,
        "spilled": stats.spilled,
        "flushed": flushed,
    }


def application(url):
    """The ASGI application; live scoring where there is a URL."""
    import scorekit as sk

    async def answer(question: str) -> str:
        await asyncio.sleep(0.025)
        return TEXT

    if url:
        scorers = {"tone": sk.score_tone, "change": sk.score_text_difference}
        answer = sk.live(scorers=scorers, store=sk.ScoreStore(url), worker="process")(answer)

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        text = await answer(scope["query_string"].decode())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(text)).encode())]})
        await send({"type": "http.response.body", "body": text.encode()})

    return app


def serve(url, port):
    import uvicorn

    uvicorn.run(application(url), host="127.0.0.1", port=port, log_level="warning", access_log=False)


# --- the driver


def in_a_process(*words, folder):
    environment = {**os.environ, "SCOREKIT_SPILL": str(Path(folder) / "spill"), "SCOREKIT_CACHE": "off"}
    done = subprocess.run([sys.executable, __file__, *map(str, words)], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


async def client(port, until, number):
    """Ask again and again over one connection; return how many answers came."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    try:
        while time.perf_counter() < until:
            writer.write(f"GET /?question-{number}-{count} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line.split(b":")[1]) for line in head.lower().splitlines() if line.startswith(b"content-length"))
            await reader.readexactly(length)
            count += 1
    finally:
        writer.close()
    return count


async def load(port, seconds, clients):
    until = time.perf_counter() + seconds
    began = time.perf_counter()
    counts = await asyncio.gather(*(client(port, until, number) for number in range(clients)))
    return sum(counts) / (time.perf_counter() - began)


def throughput(url, folder, seconds, clients=8):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "SCOREKIT_SPILL": str(Path(folder) / "spill")}
    process = subprocess.Popen([sys.executable, __file__, "--serve", str(port), "--url", url], env=environment)
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        asyncio.run(load(port, 5.0, clients))  # the other process starts
        return asyncio.run(load(port, seconds, clients))
    finally:
        process.terminate()
        process.wait()


def print_latency(folder, seconds):
    print(
        f"{'worker':8} {'store':7} {'function':8} {'bare us':>8} {'+median us':>11} {'+p99 us':>10} {'+p99.9 us':>10} {'calls/s':>8} {'rows':>7} {'dropped':>8}"
    )
    for worker, aim in AIMS.items():
        for store in ("up", "down"):
            for kind in ("instant", "busy"):
                url = f"sqlite:///{folder}/{worker}-{kind}.db" if store == "up" else NOBODY
                found = in_a_process("--latency", kind, "--worker", worker, "--url", url, "--seconds", seconds, folder=folder)
                marks = ["!" if found["median"] > MEDIAN_AIM else " ", "!" if found["p99"] > aim else " "]
                print(
                    f"{worker:8} {store:7} {kind:8} {found['bare']:8.1f} {found['median']:10.1f}{marks[0]} {found['p99']:9.1f}{marks[1]} "
                    f"{found['p999']:10.1f} {found['rate']:8.0f} {found['scored']:7} {found['dropped']:8}",
                    flush=True,
                )


def print_application(folder, seconds, rounds):
    found = {"without": [], "with": []}
    for number in range(rounds):
        for name in ("without", "with") if number % 2 else ("with", "without"):
            url = "" if name == "without" else f"sqlite:///{folder}/app-{number}.db"
            found[name].append(throughput(url, folder, seconds))
    without, with_it = (statistics.median(found[name]) for name in ("without", "with"))
    share = with_it / without
    print(
        f"\napplication: {without:.0f} requests/s without live scoring, {with_it:.0f} with: {share:.3f}{'!' if share < SHARE_AIM else ''} (aim {SHARE_AIM})"
    )
    print("  " + "; ".join(f"{name}: {', '.join(f'{value:.0f}' for value in values)}" for name, values in found.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("latency", "application"))
    parser.add_argument("--latency", help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--url", default="", help=argparse.SUPPRESS)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.latency:
        print(json.dumps(latency(arguments.latency, arguments.worker, arguments.url, arguments.seconds)), flush=True)
        return
    if arguments.serve:
        serve(arguments.url, arguments.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        if arguments.only != "application":
            print_latency(folder, arguments.seconds)
        if arguments.only != "latency":
            print_application(folder, arguments.seconds, arguments.rounds)


if __name__ == "__main__":
    main()
