"""Calls while they run: what hooks see of one, and the run that it belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextvars import ContextVar
from random import Random
from time import time_ns
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from scorekit.monitor.keys import LONGEST
from scorekit.monitor.snapshots import cell_of

if TYPE_CHECKING:
    from scorekit.monitor.arguments import Parameters
    from scorekit.monitor.channel import Cell, Open
    from scorekit.monitor.snapshots import Parts
    from scorekit.monitor.step_channels import StepChannels

LATER: Final = ("result", "error", "steps", "seconds")
"""What a `LiveCall` has only when the function has ended."""


class LiveCall:
    """One call of a decorated function or step, as the hooks of `live` see it.

    Attributes
    ----------
    run_id, trace_id
        The run's id, and the trace's or None. A ``run_id=`` hook is asked for the first and so cannot read it.
    entity_type, entity_id
        ``"agent"`` or ``"step"``, and the function's or step's name.
    args, kwargs
        What the function was called with. The function may change them: ``input=`` and ``context=`` hooks are therefore asked before it runs.
    result
        What it returned; of a generator the joined text where all parts are texts, else the list of the parts. None where it raised.
    error
        The exception that it raised, or None.
    steps
        The outputs of the steps inside, by name; of a step that ran several times the last. A step has those of the call around it.
    seconds
        How long it ran; of a generator, from its first part to its end.

    The last four are there when the function has ended. A hook that reads one of them before is asked again then.
    """

    __slots__ = (
        "_arguments",
        "_parameters",
        "args",
        "entity_id",
        "entity_type",
        "error",
        "kwargs",
        "result",
        "run_id",
        "seconds",
        "steps",
        "trace_id",
    )

    entity_type: str
    entity_id: str
    run_id: str
    trace_id: str | None
    result: Any
    error: Exception | None
    steps: dict[str, Any]
    seconds: float

    def __init__(self, entity_type: str, entity_id: str, parameters: Parameters, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note what is known when the call begins."""
        self.entity_type = entity_type
        self.entity_id = entity_id
        self.args = args
        self.kwargs = kwargs
        self._parameters = parameters
        self._arguments: dict[str, Any] | None = None

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments by the names of the parameters, defaults included."""
        if self._arguments is None:
            self._arguments = self._parameters.bind(self.args, self.kwargs)
        return self._arguments

    def __getattr__(self, name: str) -> Any:
        """Say what is not there yet; Python asks here for what is missing."""
        when = "when the function has ended" if name in LATER else "once the run is known" if name in ("run_id", "trace_id") else None
        msg = f"LiveCall has no attribute {name!r}." if when is None else f"call.{name} is there only {when}."
        raise AttributeError(msg)

    def __repr__(self) -> str:
        """Show which call it is."""
        return f"LiveCall({self.entity_type} {self.entity_id!r}, run {getattr(self, 'run_id', None)!r})"


class Pending:
    """The kind of `PENDING`."""


PENDING: Final = Pending()
"""Stands for a cell whose hook could not be asked before the function ran."""


class Running:
    """A call that runs: what is current while it does, so that calls and steps inside find it.

    Tasks and threads that a call leaves behind may keep it for ever, so `close` lets go of all that is large.

    Attributes
    ----------
    run_id, trace_id
        Of the run.
    open
        Where an item goes; None where none will.
    step_channels
        Where items of the steps inside go.
    picked
        Positions of the scorers that sampling picked.
    call
        What hooks see; None where nobody will ask.
    input, context
        Cells, taken before the function ran.
    metadata
        What the item says beside what the hook gives.
    steps
        Outputs of steps; None where nobody will ask, and once the call has ended.
    context_step
        The step whose output is the context.
    plain
        Whether it was taken plainly, for no hook to see.
    parts
        What a generator gave; None where nobody will ask.
    """

    __slots__ = (
        "_before",
        "_scope",
        "began",
        "call",
        "context",
        "context_step",
        "input",
        "metadata",
        "open",
        "outer",
        "parts",
        "picked",
        "plain",
        "run_id",
        "step_channels",
        "steps",
        "trace_id",
    )

    def __init__(self, run_id: str, trace_id: str | None, outer: Scope | None, picked: tuple[int, ...], opened: Open | None) -> None:
        """Begin with nothing taken."""
        self.run_id = run_id
        self.trace_id = trace_id
        self.outer: Scope | None = outer
        self.picked = picked
        self.open = opened
        self.step_channels: StepChannels | None = None
        self.call: LiveCall | None = None
        self.steps: dict[str, Any] | None = None
        self.parts: Parts | None = None
        self.context_step: str | None = None
        self.plain = False
        self._scope: Scope | None = None  # where it is not this call itself
        self._before: Scope | None = None

    @property
    def running(self) -> Running | None:
        """The call that steps inside belong to: this one."""
        return self

    def prepare(self, call: LiveCall, began: float) -> None:
        """Make ready to take something."""
        self.call = call
        call.run_id, call.trace_id = self.run_id, self.trace_id
        self.steps = {}
        self.input: Cell | Pending = None
        self.context: Cell | Pending = None
        self.metadata: Mapping[str, Any] | None = None
        self.began = began

    def take_plainly(self, source: Any, context: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Take the arguments that are scored, of a call of which no hook asks anything."""
        self.input = None if source is None else cell_of(source.read(args, kwargs))
        self.context = None if context is None else cell_of(context.read(args, kwargs))
        self.metadata = None
        self.plain = True

    def enter(self) -> None:
        """Make it current."""
        CURRENT.set(self)

    def leave(self) -> None:
        """Make current what was; nothing where this is not current, as in the thread that collects a forgotten coroutine."""
        if CURRENT.get() is self:
            CURRENT.set(self.outer)
        self.outer = None  # or a task that starts the next of its kind would keep a chain of all

    def resume(self) -> None:
        """Before a generator goes on: make current what was current inside it when it paused."""
        self._before = CURRENT.get()
        CURRENT.set(self._scope or self)

    def pause(self) -> None:
        """When a generator has paused: make current what is current around it."""
        scope = CURRENT.get()
        if scope is not None and scope.running is self:
            self._scope = None if scope is self else scope
            CURRENT.set(self._before)
        self._before = None

    def land(self, step: str, output: Any) -> None:
        """Take a step's output."""
        if self.steps is None:
            return
        self.steps[step] = output
        if self.picked and self.context_step == step:
            self.context = cell_of(output)

    def close(self) -> None:
        """Let go of what was taken."""
        self.call = self.steps = self.parts = self.input = self.context = self.metadata = None
        self.picked = ()


class RunningStep(Running):
    """A step that runs: never current, since steps and calls inside belong to the call around it."""

    __slots__ = ()

    def enter(self) -> None:
        """Change nothing."""

    leave = resume = pause = enter


class NamedRun:
    """A run that is open by ``live.run``; steps inside belong to the call around it, if there is one."""

    __slots__ = ("outer", "run_id", "running", "trace_id")

    def __init__(self, run_id: str, outer: Scope | None) -> None:
        """Keep the trace of what is around it."""
        self.run_id = run_id
        self.trace_id: str | None = None if outer is None else outer.trace_id
        self.outer: Scope | None = outer
        self.running: Running | None = None if outer is None else outer.running


Scope = Running | NamedRun

CURRENT: ContextVar[Scope | None] = ContextVar("scorekit_live", default=None)
"""The innermost call or run around the code that runs."""

IDLE: Final = RunningStep("", None, None, (), None)
"""Stands for a call of which nothing is taken."""


_RANDOM: Final = Random()  # noqa: S311  (ids must differ, not be secret)
"""Seeded by the system, again in a forked child; to ask the system for each id would give the interpreter to another thread each time."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_RANDOM.seed)


def fresh_id() -> str:
    """Return a new id: 128 random bits in hexadecimal.

    Examples
    --------
    >>> len(fresh_id()), fresh_id() == fresh_id()
    (32, False)
    """
    return f"{_RANDOM.getrandbits(128) ^ time_ns():032x}"  # the time, since copies of a running machine share the state


def usable_id(value: object) -> str | None:
    """Return an id as the store keeps it: a text, or that of a whole number or UUID; None where this is none.

    Examples
    --------
    >>> usable_id("run-1"), usable_id(7), usable_id(""), usable_id(0.5)
    ('run-1', '7', None, None)
    """
    if isinstance(value, (int, UUID)) and not isinstance(value, bool):
        value = str(value)
    return str.__str__(value) if isinstance(value, str) and 0 < len(value) <= LONGEST else None
