"""The values that pass between the calls of a function and the background that scores them; all of them pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from scorekit.monitor.store import ScoreStore
    from scorekit.run import ScorerLike

Worker = Literal["thread", "process"]
Full = Literal["drop", "block"]

Cell = str | bytes | None
"""What a call gave, as it was then: text; the ASCII JSON of anything else, as bytes; None where there is nothing."""


class Item(NamedTuple):
    """One call that was picked, on its way to be scored.

    Attributes
    ----------
    picked
        Positions in `Channel.scorers` of the scorers that sampling picked.
    run, row, trace
        The run's id; an id of this call that no other has, under which its rows are stored; the trace's id or None.
    created
        When the call ended: microseconds since 1970, UTC.
    input, output, context
        The cells.
    metadata
        A mapping as ASCII JSON, or None.
    failure
        What the function raised, ``"ValueError: no such tool"``; None where it returned.
    """

    picked: tuple[int, ...]
    run: str
    row: str
    trace: str | None
    created: int
    input: Cell
    output: Cell
    context: Cell
    metadata: bytes | None
    failure: str | None


@dataclass(frozen=True)
class Attached:
    """A scorer of a function: the key that names its columns, the scorer, how often it is picked, and its version or None."""

    key: str
    scorer: ScorerLike
    rate: float
    version: str | None


@dataclass(frozen=True)
class Channel:
    """What is scored of one function or step, and how: a value, made when it is decorated.

    Attributes
    ----------
    entity_type, entity_id
        ``"agent"`` or ``"step"``, and the function's or step's name.
    scorers
        In the order of the mapping.
    store
        Where the results go.
    worker
        ``"thread"``: a thread of this process; ``"process"``: a process of its own, so that no scorer holds this interpreter.
    capacity
        How many rows (a row is one scorer on one call) may be on their way at a time.
    full
        What a call does when so many are: ``"drop"`` (its scores are given up, and counted) or ``"block"`` (it waits for room, ``block_timeout_s`` at
        most, then drops).
    """

    entity_type: str
    entity_id: str
    scorers: tuple[Attached, ...]
    store: ScoreStore
    worker: Worker = "thread"
    capacity: int = 10_000
    full: Full = "drop"
    block_timeout_s: float = 1.0


class Open(Protocol):
    """An attached channel."""

    @property
    def channel(self) -> Channel:
        """What was attached."""

    def offer(self, item: Item) -> bool:
        """Hand over a call; False where it was dropped. Never raises."""

    async def offer_async(self, item: Item) -> bool:
        """Hand over a call; where it must wait for room the loop runs on."""


@dataclass(frozen=True)
class LiveStats:
    """What live scoring has done in this process since it began. A row is one scorer's result on one call.

    Attributes
    ----------
    calls
        Calls of decorated functions and scored steps.
    raised
        Of those, calls that raised an `Exception`; they are kept as ``target_error`` where they were picked.
    abandoned
        Calls that were cancelled, or ended by ctrl-C or ``sys.exit``; they leave no row.
    skipped
        Calls that ``when=`` turned down.
    picked
        Rows that sampling picked.
    dropped
        Picked rows that were given up because too many waited.
    waiting
        Rows on their way: neither stored nor spilled yet.
    scored
        Rows with a result, be it a score or an error code.
    failed
        Of those, rows whose scorer raised: ``scorer_error``.
    stored
        Rows that are in the store, committed.
    spilled
        Rows that wait in the local spill file, because the store could not be written; those of other processes of the machine too.
    lost
        Rows that could be written nowhere.
    hook_errors
        Exceptions of ``input=``, ``when=`` and the other hooks.
    store_errors
        Attempts to write to the store that failed.
    """

    calls: int = 0
    raised: int = 0
    abandoned: int = 0
    skipped: int = 0
    picked: int = 0
    dropped: int = 0
    waiting: int = 0
    scored: int = 0
    failed: int = 0
    stored: int = 0
    spilled: int = 0
    lost: int = 0
    hook_errors: int = 0
    store_errors: int = 0
