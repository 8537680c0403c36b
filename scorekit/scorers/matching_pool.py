"""`count_matches` on all cores, where there is enough to do.

The work starts in this process. Its pace in the first moments says how long the rest would take; helper processes are started only where
that is worth it. A helper is a plain ``python matching.py`` with a pipe, not a ``multiprocessing`` child: it never imports the caller's
``__main__`` (a script without a guard is not run twice; a notebook and a REPL have none to import), it is not forked (threads may
be running), and it imports neither scorekit nor pandas. Where none can be started, or one dies, this process does its share.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from scorekit.scorers import matching
from scorekit.scorers.matching import count_matches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Pairs = Sequence[tuple[str, str]]
    Helper = subprocess.Popen[bytes]

PROBE_S = 0.2
"""How long this process works alone, to learn the pace."""

WORTH_S = 0.5
"""Helpers start where the rest would take this process longer than that: ten times what starting them takes."""

CHUNK_S = 0.2
"""How long a helper works on one request, at most, where pairs are small enough."""

PROBE_PAIRS = 16
"""How many pairs lie between two looks at the clock."""


def count_matches_on_all_cores(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what `count_matches` does, as NumPy arrays, on as many cores as are free to use and worth it.

    Parameters
    ----------
    pairs
        Texts ``(a, b)``.

    Returns
    -------
    tuple of numpy.ndarray
        Edited spans and matched characters (int64), in the order of the pairs, the same numbers however many processes counted.
    """
    counts = np.zeros((2, len(pairs)), dtype=np.int64)
    start, done = perf_counter(), 0
    while done < len(pairs) and (done == 0 or perf_counter() - start < PROBE_S):
        first, done = done, min(done + PROBE_PAIRS, len(pairs))
        _count_here(pairs, first, done, counts)
    if done < len(pairs):
        work = np.fromiter(((len(a) + 1) * (len(b) + 1) for a, b in pairs), dtype=np.float64, count=len(pairs))
        seconds = work[done:] * ((perf_counter() - start) / work[:done].sum())
        chunks = _chunks(seconds, done)
        helpers = min(usable_cores(), len(chunks)) if seconds.sum() > WORTH_S and may_start_helpers() else 1
        if helpers > 1:
            _count_with_helpers(pairs, chunks, counts, helpers)
        for first, last in chunks:  # what no helper has taken
            _count_here(pairs, first, last, counts)
    return counts[0], counts[1]


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def may_start_helpers() -> bool:
    """Return whether helper processes make sense here.

    They do not in a child of ``multiprocessing`` (a Dask worker, say), whose parent has put the cores to use already, nor where
    ``sys.executable`` is a program other than Python, which would start anew.
    """
    is_python = Path(sys.executable or "").stem.lower().startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
    return is_python and multiprocessing.parent_process() is None


def _count_here(pairs: Pairs, first: int, last: int, counts: NDArray[np.int64]) -> None:
    """Count some pairs in this process."""
    for row, found in zip(counts, count_matches(pairs[first:last]), strict=True):
        row[first:last] = found


def _chunks(seconds: NDArray[np.float64], offset: int) -> deque[tuple[int, int]]:
    """Cut the pairs into runs of about the same time, longest first, as positions ``(first, last)`` after an offset."""
    size = min(CHUNK_S, float(seconds.sum()) / (8 * usable_cores()))
    number = (np.cumsum(seconds) / size).astype(np.int64)
    starts = np.flatnonzero(np.diff(number, prepend=-1))
    ends = np.append(starts[1:], len(seconds))
    longest = np.argsort(-np.add.reduceat(seconds, starts), kind="stable")
    return deque((int(starts[i]) + offset, int(ends[i]) + offset) for i in longest)


def _count_with_helpers(pairs: Pairs, chunks: deque[tuple[int, int]], counts: NDArray[np.int64], helpers: int) -> None:
    """Let helpers take chunks until none is left; a chunk whose helper died is put back for the caller."""
    running: list[Helper] = []
    with ThreadPoolExecutor(helpers, thread_name_prefix="scorekit-matching") as threads:
        try:
            futures = [threads.submit(_drive_helper, pairs, chunks, counts, running) for _ in range(helpers)]
            while wait(futures, timeout=PROBE_S).not_done:
                pass  # wakes up now and then, so that Ctrl-C is heard on every platform
            for future in futures:
                future.result()
        except BaseException:
            chunks.clear()
            for helper in running:
                helper.kill()
            raise


def _drive_helper(pairs: Pairs, chunks: deque[tuple[int, int]], counts: NDArray[np.int64], running: list[Helper]) -> None:
    """Start one helper and send it chunks, one after the other."""
    chunk: tuple[int, int] | None = None
    try:
        with _start_helper() as helper:
            running.append(helper)
            assert helper.stdin is not None  # noqa: S101  (both are pipes)
            assert helper.stdout is not None  # noqa: S101
            while chunks:
                try:
                    chunk = first, last = chunks.popleft()
                except IndexError:  # another thread was faster
                    break
                helper.stdin.write(pickle.dumps(pairs[first:last], protocol=pickle.HIGHEST_PROTOCOL))
                helper.stdin.flush()
                reply = helper.stdout.read(16 * (last - first))
                if len(reply) < 16 * (last - first):  # the helper has died
                    break
                counts[:, first:last] = np.frombuffer(reply, dtype=np.int64).reshape(2, -1)
                chunk = None
    except OSError:
        return
    finally:
        if chunk is not None:
            chunks.append(chunk)


def _start_helper() -> Helper:
    """Start a process that runs `matching.serve` and finds the packages that this one finds."""
    paths = [path for path in sys.path if path]
    return subprocess.Popen(
        [sys.executable, "-P", str(matching.__file__)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        start_new_session=True,
    )
