"""How busy the judge keeps an endpoint beside the bare openai client, in one run: ``python benchmarks/judge.py``.

A server on 127.0.0.1 (loopback.py, a process of its own) answers after 50 ms. Each call of ours renders its prompt, is hashed, looked up,
sent, checked by pydantic and committed to an SQLite file; the bare client (``AsyncOpenAI().chat.completions.create`` under a semaphore)
sends the same messages and reads the text. Each run is a process of its own, one after the other, ours and the bare one in turn;
what is printed are medians over the runs. CPU is that of the whole run without imports and warm-up. A value below its aim is marked with "!".

``python benchmarks/judge.py --peers --peers-python /tmp/peers/bin/python`` prints instead how ours and other packages score the same rows with one
call a row. One command makes a place for them:
``python -m venv /tmp/peers && /tmp/peers/bin/pip install arize-phoenix-evals openevals autoevals openai langchain-openai pandas``.
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
import tracemalloc
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


def one_prompt_scorer(judge):
    """A Scorer that asks once a row."""
    from pydantic import BaseModel

    import scorekit as sk

    class Relevance(BaseModel):
        degree: float
        why: str

    return sk.Scorer(
        name="relevance",
        needs=("input", "output"),
        judge=judge,
        analyze=sk.Prompt(TEMPLATE, reply=Relevance),
        generate_score=lambda rows: rows["degree"],
        generate_reason=lambda rows: rows["why"],
    )


def run_frame(url, count, concurrency):
    """Score a frame by a Scorer of one prompt; return the peak that it adds, and the size of the result, in MB."""
    import gc

    import pandas as pd

    import scorekit as sk

    scorer = one_prompt_scorer(sk.Judge("m", base_url=url, concurrency=concurrency, cache=False))
    scorer(pd.DataFrame(rows(concurrency, 10**6)), progress=False)
    frame = pd.DataFrame(rows(count))
    gc.collect()
    before = peak_mb()
    scored = scorer(frame, progress=False)
    assert scored["relevance_error"].isna().all(), scored.iloc[0].to_dict()
    added = peak_mb() - before
    size = (scored.memory_usage(deep=True).sum() - frame.memory_usage(deep=True).sum()) / 2**20
    tracemalloc.start()
    scorer(frame, progress=False)
    traced = tracemalloc.get_traced_memory()[1] / 2**20
    return {"added": added, "result": float(size), "traced": traced}


# --- the peers: each scores rows by one call a row, as its documentation does it


PEER_PROMPT = "Does the answer address the question?\nQuestion: {input}\nAnswer: {output}"


def run_peer_scorekit(url, count, concurrency):
    """Our scorer as a user calls it, without the cache, which the others do not have."""
    import pandas as pd

    import scorekit as sk

    scorer = one_prompt_scorer(sk.Judge("m", base_url=url, concurrency=concurrency, cache=False))

    async def work(records):
        return int(scorer(pd.DataFrame(records), progress=False)["relevance_score"].notna().sum())

    return timed_peer(work, count, concurrency)


def run_peer_phoenix(url, count, concurrency):
    import pandas as pd
    from phoenix.evals import LLM, async_evaluate_dataframe, create_classifier

    # its own limit begins at a few requests a second and would be all that is measured
    llm = LLM(provider="openai", model="m", client="openai", base_url=url, api_key="none", initial_per_second_request_rate=10_000)
    judge = create_classifier(name="relevance", prompt_template=PEER_PROMPT, llm=llm, choices={"yes": 1.0, "no": 0.0})

    async def work(records):
        frame = pd.DataFrame(records)
        done = await async_evaluate_dataframe(dataframe=frame, evaluators=[judge], concurrency=concurrency, hide_tqdm_bar=True)
        return int(done["relevance_score"].notna().sum())

    return timed_peer(work, count, concurrency)


def run_peer_openevals(url, count, concurrency):
    from openai import AsyncOpenAI
    from openevals.llm import create_async_llm_as_judge

    prompt = PEER_PROMPT.replace("{input}", "{inputs}").replace("{output}", "{outputs}")
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    judge = create_async_llm_as_judge(prompt=prompt, judge=client, model="m", continuous=True)

    async def work(records):
        found = await gathered(lambda row: judge(inputs=row["input"], outputs=row["output"]), records, concurrency)
        return sum(one["score"] is not None for one in found)

    return timed_peer(work, count, concurrency)


def run_peer_autoevals(url, count, concurrency):
    from autoevals.llm import LLMClassifier
    from openai import AsyncOpenAI

    template = PEER_PROMPT.replace("{", "{{").replace("}", "}}")
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    judge = LLMClassifier("relevance", template, {"yes": 1, "no": 0}, model="m", use_cot=True, client=client)

    async def work(records):
        found = await gathered(lambda row: judge.eval_async(output=row["output"], input=row["input"]), records, concurrency)
        return sum(one.score is not None for one in found)

    return timed_peer(work, count, concurrency)


async def gathered(ask, records, concurrency):
    """What one writes around a function that judges one row."""
    gate = asyncio.Semaphore(concurrency)

    async def one(row):
        async with gate:
            return await ask(row)

    return await asyncio.gather(*map(one, records))


def timed_peer(work, count, concurrency):
    """Warm up, then score, in one event loop; return seconds, CPU and how many rows came back with a score."""

    async def main():
        await work(rows(concurrency, 10**6))
        wall, cpu = time.perf_counter(), time.process_time()
        scored = await work(rows(count))
        return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "scored": scored}

    return asyncio.run(main())


PEERS = {
    "scorekit": ("scorekit", run_peer_scorekit),
    "phoenix-evals": ("phoenix.evals", run_peer_phoenix),
    "openevals": ("openevals", run_peer_openevals),
    "autoevals": ("autoevals", run_peer_autoevals),
}


def peers(python, runs, count, concurrency=20, latency=0.05):
    print(f"\n{count} rows, one call a row, {latency * 1e3:.0f} ms server, {concurrency} at once, medians of {runs} runs each in turn")
    print(
        f"| | calls/s (limit {concurrency / latency:.0f}) | share of the limit | CPU ms a row | rows with a score |\n|---|---|---|---|---|"
    )
    found = {name: [] for name in PEERS}
    with server(latency) as url:
        for _ in range(runs):
            for name, (module, _) in PEERS.items():
                interpreter = sys.executable if name == "scorekit" else python
                there = subprocess.run([interpreter, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0
                if there:
                    found[name].append(in_process(f"peer {name}", url, count, concurrency, python=interpreter))
    for name, done in found.items():
        if not done:
            print(f"| {name} | not installed | | | |")
            continue
        seconds = median(done, "seconds")
        share = count * latency / concurrency / seconds
        print(
            f"| {name} | {count / seconds:.0f} | {share:.2f} | {median(done, 'cpu') / count * 1e3:.2f} | {min(run['scored'] for run in done)} |"
        )


def in_process(kind, *arguments, python=sys.executable):
    command = [python, __file__, "--run", kind, json.dumps(arguments)]
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


def slow_server(runs=3, count=1024, concurrency=64):
    """At a multiple of the concurrency, so that the last wave is as full as the others."""
    with server(1.0) as url:
        ours, bare = [], []
        for _ in range(runs):
            bare.append(in_process("bare", url, count, concurrency))
            ours.append(in_process("ours", url, count, concurrency))
    share, share_bare = (count / concurrency / median(found, "seconds") for found in (ours, bare))
    print(
        f"\n1 s server, {concurrency} at once, {count} rows, medians of {runs}: {count / median(ours, 'seconds'):.1f} calls/s, "
        f"{mark(f'{share:.3f}', share >= 0.95)} of the limit (aim 0.95); bare {share_bare:.3f}",
        flush=True,
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
        print("\nMemory of a Scorer of one prompt over a frame, cache off: what is added to the peak beside what the new columns hold")
        print("| rows | added MB | new columns MB | beyond them MB | KB a row beyond | traced by Python MB |\n|---|---|---|---|---|---|")
        for count in (1000, 20_000):
            run = in_process("frame", url, count, 64)
            beyond = run["added"] - run["result"]
            print(
                f"| {count} | {run['added']:.1f} | {run['result']:.1f} | {beyond:.1f} | {beyond * 1024 / count:.2f} | {run['traced']:.1f} |",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=None, help="default 1000, with --peers 200")
    parser.add_argument("--peers", action="store_true", help="compare with phoenix-evals, openevals and autoevals instead")
    parser.add_argument("--peers-python", default=sys.executable, help="the Python that has them")
    options = parser.parse_args()
    if options.run:
        work = {"ours": run_ours, "bare": run_bare, "scorer": run_scorer, "chains": run_chains, "frame": run_frame}
        work |= {f"peer {name}": run for name, (_, run) in PEERS.items()}
        print(json.dumps(work[options.run[0]](*json.loads(options.run[1]))))
        return
    if options.peers:
        peers(options.peers_python, options.runs, options.rows or 200)
        return
    throughput(options.runs, options.rows or 1000)
    slow_server()
    three_steps(options.runs)
    memory()


if __name__ == "__main__":
    main()
