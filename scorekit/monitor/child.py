"""The process that scores and stores for another: it reads calls from a pipe until that is closed, and reports what is done."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import signal
import threading
import time
from typing import IO, TYPE_CHECKING, Any, Final

from scorekit.monitor.background import ThreadBackground
from scorekit.monitor.counters import Counters, Tally
from scorekit.monitor.launched import write_whole
from scorekit.monitor.scoring import Scoring

if TYPE_CHECKING:
    from scorekit.monitor.channel import Channel, Item

CLOSING_S: Final = 3.0
"""How long it goes on after the pipe was closed."""

REPORT_S: Final = 0.2
"""How often it reports counts that change without a batch being done."""

NICE: Final = 10
"""By how much its priority is lower: the application goes first."""


class Batch:
    """Calls that were sent together; once all their rows are done with, the sender is told what became of them."""

    def __init__(self, number: int, rows: int, reports: Reports) -> None:
        """Expect so many rows."""
        self._number, self._left, self._reports = number, rows, reports
        self._sum = Tally()
        self._lock = threading.Lock()

    def release(self, tally: Tally) -> None:
        """Take note of rows that are done with."""
        with self._lock:
            self._left -= tally.rows
            for name in ("failed", "stored", "lost"):
                setattr(self._sum, name, getattr(self._sum, name) + getattr(tally, name))
            done = self._left == 0
        if done:
            self._reports.send("done", self._number, self._sum)


class Reports:
    """What goes back through the pipe, in order: each report carries the counts of that moment."""

    def __init__(self, end: int, background: ThreadBackground, counters: Counters) -> None:
        """Begin with a line that says that it runs."""
        self._end, self._background, self._counters = end, background, counters
        self._lock = threading.Lock()
        self._last: tuple[Any, ...] = ()
        self._write(("ready",))
        threading.Thread(target=self._run, name="scorekit-live-reports", daemon=True).start()

    def send(self, kind: str, *rest: Any) -> None:
        """Report something that is done."""
        with self._lock:
            self._last = self._counted()
            self._write((kind, *self._last, *rest))

    def refuse(self, number: int, why: str) -> None:
        """Say that a channel cannot be loaded."""
        with self._lock:
            self._write(("refused", number, why))

    def _counted(self) -> tuple[Any, ...]:
        """Return what this process has counted beside calls: what it sent from spill files, failed attempts; and what waits in those files."""
        stats = self._counters.stats()
        return {"stored": stats.stored, "lost": stats.lost, "store_errors": stats.store_errors}, self._background.spilled

    def _run(self) -> None:
        """Report counts that have changed."""
        while True:
            time.sleep(REPORT_S)
            if self._counted() != self._last:
                self.send("counts")

    def _write(self, message: tuple[Any, ...]) -> None:
        """Send a message; where nobody reads any more there is nobody to tell."""
        data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with contextlib.suppress(OSError):
            write_whole(self._end, data)


def main(calls: int, back: int) -> None:
    """Score what comes through one descriptor and report through another, until the first is closed."""
    for name in ("SIGINT", "SIGTERM"):  # the terminal and the supervisor signal whole groups; the parent says when to end
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(NICE)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    counters = Counters()
    background = ThreadBackground(counters)
    reports = Reports(back, background, counters)
    channels: dict[int, tuple[Scoring, ...]] = {}
    source: IO[bytes]
    with open(calls, "rb") as source, contextlib.suppress(EOFError, pickle.UnpicklingError):
        while True:
            kind, *rest = pickle.load(source)  # noqa: S301  (from our own parent)
            if kind == "channel":
                _open(background, channels, reports, *rest)
            elif kind == "hurry":
                background.hurry()
            else:
                _submit(background, channels, reports, *rest)
    background.close(CLOSING_S)


def _open(
    background: ThreadBackground,
    channels: dict[int, tuple[Scoring, ...]],
    reports: Reports,
    number: int,
    dumped: bytes,
) -> None:
    """Load a channel, or say why it cannot be loaded."""
    try:
        channel: Channel = pickle.loads(dumped)  # noqa: S301
        channels[number] = tuple(Scoring(channel, place) for place in range(len(channel.scorers)))
        background.writer(channel.store)
    except Exception as error:  # noqa: BLE001  (whatever the user's modules raise)
        reports.refuse(number, f"{type(error).__name__}: {error}")


def _submit(
    background: ThreadBackground,
    channels: dict[int, tuple[Scoring, ...]],
    reports: Reports,
    number: int,
    calls: list[tuple[int, Item, int]],
) -> None:
    """Hand the calls of a batch to the lanes; those of a refused channel are the sender's again."""
    known = [(channels[of], item, size) for of, item, size in calls if of in channels]
    batch = Batch(number, sum(len(item.picked) for _, item, _ in known), reports)
    for scorings, item, size in known:
        background.submit(batch, scorings, item, size)
