"""How busy the judge keeps an endpoint beside the bare openai client, in one run: ``python benchmarks/judge.py``.

A server on 127.0.0.1 (loopback.py, a process of its own) answers after 50 ms. Each call of ours renders its prompt, is hashed, looked up,
sent, checked by pydantic and committed to an SQLite file; the bare client (``AsyncOpenAI().chat.completions.create`` under a semaphore)
sends the same messages and reads the text. Each run is a process of its own, one after the other, ours and the bare one in turn;
what is printed are medians over the runs. CPU is that of the whole run without imports and warm-up. A value below its aim is marked with "!".
"""

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
TEMPLATE = "Does the answer address the question?\n{{ input }}\n{{ output }}"


def rows(count, offset=0):
    return [{"input": f"What is the number {n}?", "output": f"It is {n}. " * 10} for n in range(offset, offset + count)]


@contextmanager
def server(latency, tail=0.0):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(HERE / "loopback.py"), "--port", str(port), "--latency", str(latency), "--tail", str(tail)]
    process = subprocess.Popen(command)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(work):
    """Run, and return seconds and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


# --- what runs in a process of its own


def run_ours(url, count, concurrency):
    from pydantic import BaseModel

    from scorekit.judge.client import Judge
    from scorekit.judge.prompts import Prompt
    from scorekit.judge.replies import Request

    class Relevance(BaseModel):
        score: float
        reason: str

    prompt = Prompt(TEMPLATE, reply=Relevance)

    def ask(records):
        answers = judge.ask([Request(prompt.render(row, {}), Relevance, context=row, step="bench.analyze") for row in records])
        assert all(answer.error is None for answer in answers), answers[0]
        return answers

    with tempfile.TemporaryDirectory() as folder:
        judge = Judge("m", base_url=url, concurrency=concurrency, cache=f"{folder}/replies.sqlite3")
        ask(rows(concurrency, 10**6))  # connections, capabilities, compiled templates
        before = peak_mb()
        records, kept = rows(count), []
        seconds, cpu = measured(lambda: kept.extend(ask(records)))
        after = peak_mb()
        again, cpu_again = measured(lambda: ask(records))
        size = sum(len(answer.text) for answer in kept) / 2**20
    return {"seconds": seconds, "cpu": cpu, "before_mb": before, "after_mb": after, "again": again, "cpu_again": cpu_again, "text_mb": size}


def run_bare(url, count, concurrency):
    from openai import AsyncOpenAI

    async def main():
        client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
        semaphore = asyncio.Semaphore(concurrency)

        async def one(row):
            async with semaphore:
                text = TEMPLATE.replace("{{ input }}", row["input"]).replace("{{ output }}", row["output"])
                response = await client.chat.completions.create(
                    model="m", messages=[{"role": "system", "content": "You judge."}, {"role": "user", "content": text}], temperature=0.0
                )
                return response.choices[0].message.content

        await asyncio.gather(*(one(row) for row in rows(concurrency, 10**6)))
        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(one(row) for row in rows(count)))
        return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    return asyncio.run(main())


def run_scorer(url, count, concurrency):
    """Score rows by the three steps of score_relevancy."""
    import pandas as pd

    import scorekit as sk

    judge = sk.Judge("m", base_url=url, concurrency=concurrency, cache=False)
    sk.score_relevancy(pd.DataFrame(rows(8, 10**6)), judge=judge, progress=False)
    frame = pd.DataFrame(rows(count))
    scored = []
    seconds, cpu = measured(lambda: scored.append(sk.score_relevancy(frame, judge=judge, progress=False)))
    assert scored[0]["relevancy_error"].isna().all(), scored[0].loc[0].to_dict()
    return {"seconds": seconds, "cpu": cpu}


def run_chains(url, count, concurrency):
    """The same three steps, each row a chain of its own: what one would write by hand with the same judge."""
    from scorekit.judge.client import Judge
    from scorekit.judge.replies import Request
    from scorekit.scorers.relevancy import RELEVANCY

    judge = Judge("m", base_url=url, concurrency=concurrency, cache=False)
    options = dict(RELEVANCY.options)

    async def chain(row):
        row = {**row, "score": 1.0}
        for prompt in RELEVANCY.prompts.values():
            (answer,) = await judge.ask_async([Request(prompt.render(row, options), prompt.reply, context=row)])
            assert answer.error is None, answer
            row |= answer.value.model_dump(mode="json")

    async def main():
        await asyncio.gather(*(chain(row) for row in rows(8, 10**6)))
        wall, cpu = time.perf_counter(), time.process_time()
        gate = asyncio.Semaphore(concurrency)  # a row holds its place until it is done: earliest rows first

        async def gated(row):
            async with gate:
                await chain(row)

        await asyncio.gather(*(gated(row) for row in rows(count)))
        return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}

    return asyncio.run(main())


def in_process(kind, *arguments):
    command = [sys.executable, __file__, "--run", kind, json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.splitlines()[-1])


# --- the tables


def mark(value, good):
    return f"{value}{'' if good else ' !'}"


def median(found, name):
    return statistics.median(run[name] for run in found)


def throughput(runs, count):
    print(f"\n50 ms server, {count} one-call rows, medians of {runs} alternating runs")
    print("| at once | limit/s | bare/s | ours/s | ours : bare (aim) | bare CPU ms | ours CPU ms | CPU ours : bare (aim) |")
    print("|---|---|---|---|---|---|---|---|")
    with server(0.05) as url:
        for concurrency, aim in ((20, 1.15), (64, 1.8)):
            ours, bare = [], []
            for _ in range(runs):
                bare.append(in_process("bare", url, count, concurrency))
                ours.append(in_process("ours", url, count, concurrency))
            ratio = median(bare, "seconds") / median(ours, "seconds")
            cpu = median(ours, "cpu") / median(bare, "cpu")
            print(
                f"| {concurrency} | {concurrency / 0.05:.0f} | {count / median(bare, 'seconds'):.0f} | {count / median(ours, 'seconds'):.0f} "
                f"| {mark(f'{ratio:.2f}', ratio >= aim)} ({aim}) | {median(bare, 'cpu') / count * 1e3:.2f} "
                f"| {median(ours, 'cpu') / count * 1e3:.2f} | {mark(f'{cpu:.2f}', cpu <= 0.7)} (0.7) |",
                flush=True,
            )


def slow_server(count):
    with server(1.0) as url:
        run, bare = in_process("ours", url, count, 64), in_process("bare", url, count, 64)
    share = count / 64 / run["seconds"]
    print(
        f"\n1 s server, 64 at once, {count} rows: {count / run['seconds']:.1f} calls/s, {mark(f'{share:.3f}', share >= 0.95)} of the limit (aim 0.95); bare {count / 64 / bare['seconds']:.3f}"
    )


def three_steps(runs, count=200, concurrency=20):
    with server(0.05, tail=0.05) as url:
        ours, chains = [], []
        for _ in range(runs):
            chains.append(in_process("chains", url, count, concurrency))
            ours.append(in_process("scorer", url, count, concurrency))
    ratio = median(ours, "seconds") / median(chains, "seconds")
    print(
        f"\n{count} rows of score_relevancy, 3 calls a row, 50 ms server with 5 % of replies at 1 s, {concurrency} at once: "
        f"{median(ours, 'seconds'):.2f} s, as chains by row {median(chains, 'seconds'):.2f} s: {mark(f'{ratio:.2f}', ratio <= 1.15)} times (aim 1.15)",
        flush=True,
    )


def memory():
    print(
        "\nMemory, 2 ms server, 64 at once: what the run adds to the peak, results and requests included; and the same rows from the cache"
    )
    print("| rows | peak before MB | added MB | KB a row | again from the cache, rows/s | CPU ms a row |")
    print("|---|---|---|---|---|---|")
    with server(0.002) as url:
        for count in (1000, 20_000):
            run = in_process("ours", url, count, 64)
            added = run["after_mb"] - run["before_mb"]
            print(
                f"| {count} | {run['before_mb']:.0f} | {added:.1f} | {added * 1024 / count:.1f} "
                f"| {count / run['again']:.0f} | {run['cpu_again'] / count * 1e3:.2f} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    if options.run:
        work = {"ours": run_ours, "bare": run_bare, "scorer": run_scorer, "chains": run_chains}[options.run[0]]
        print(json.dumps(work(*json.loads(options.run[1]))))
        return
    throughput(options.runs, options.rows)
    slow_server(options.rows)
    three_steps(options.runs)
    memory()


if __name__ == "__main__":
    main()
