"""What is taken of every call of one function or step: decided before it runs, gathered when it has ended, and never in its way."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from scorekit.errors import ArgumentTypeError, listed
from scorekit.evals.calls import told
from scorekit.monitor.arguments import Argument, Keyword, Parameters, Readable, Value
from scorekit.monitor.calls import CURRENT, IDLE, PENDING, LiveCall, Pending, Running, fresh_id, usable_id
from scorekit.monitor.channel import Item
from scorekit.monitor.keys import LONGEST
from scorekit.monitor.sampling import Picks
from scorekit.monitor.scoring import LOG
from scorekit.monitor.snapshots import Parts, cell_of, json_of
from scorekit.monitor.step_channels import StepChannels
from scorekit.monitor.worker import attach, count_call, note

if TYPE_CHECKING:
    from scorekit.monitor.channel import Attached, Cell, Channel, Open

Hook = Callable[[LiveCall], Any]
Source = Readable | Hook | None
"""Where something comes from: an argument, or what a hook gives."""

READABLE: Final = (Argument, Keyword, Value)


@dataclass(frozen=True)
class Hooks:
    """Where what is taken of a call comes from."""

    input: Source = None
    output: Hook | None = None
    context: Source = None
    context_step: str | None = None
    when: Hook | None = None
    metadata: Hook | None = None
    run_id: Source = None
    trace_id: Source = None


class Tap:
    """What is taken of every call of one function or step.

    Parameters
    ----------
    entity_type, entity_id
        As in `LiveCall`.
    parameters
        Of the function.
    scorers
        What it is scored with.
    hooks
        Where things come from.
    """

    def __init__(self, entity_type: str, entity_id: str, parameters: Parameters, scorers: tuple[Attached, ...], hooks: Hooks) -> None:
        """Work out what is the same for every call."""
        self.entity_type, self.entity_id = entity_type, entity_id
        self._parameters, self._hooks = parameters, hooks
        self._scorers = scorers
        self._picks = Picks([attached.rate for attached in scorers])
        sources = (hooks.when, hooks.output, hooks.metadata, hooks.input, hooks.context)
        self._asks_late = any(source is not None and not isinstance(source, READABLE) for source in sources)
        self._plain = not self._asks_late and hooks.context_step is None
        """Whether all that is taken is arguments and the result, which most calls are: nobody needs a `LiveCall` then."""
        self._told: set[str] = set()

    def begin(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Running:
        """Decide what is taken of a call that begins, and take what goes in. Never raises an `Exception`."""
        try:
            return self._begun(args, kwargs)
        except RecursionError:  # the stack is nearly full: the function comes first, and there is no room to say so
            return IDLE
        except Exception as error:  # noqa: BLE001
            self.failed("live", error)
            return IDLE

    def _begun(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Running:
        raise NotImplementedError

    def finish(self, running: Running, result: Any = None, error: Exception | None = None, *, complete: bool = True) -> None:
        """Gather what is taken of a call that has ended, and hand it over where it is to be scored. Never raises an `Exception`."""
        try:
            item = self._gathered(running, result, error, complete=complete)
            if item is not None and running.open is not None:
                running.open.offer(item)
        except RecursionError:
            return
        except Exception as problem:  # noqa: BLE001
            self.failed("live", problem)

    async def finish_async(self, running: Running, result: Any = None, error: Exception | None = None) -> None:
        """Do the same; where it must wait for room the loop runs on."""
        if running.open is None or running.open.channel.full == "drop":
            self.finish(running, result, error)  # which never waits
            return
        try:
            item = self._gathered(running, result, error, complete=True)
            if item is not None:
                await running.open.offer_async(item)
        except RecursionError:
            return
        except Exception as problem:  # noqa: BLE001  (the loop is another than asyncio's, say)
            self.failed("live", problem)

    def abandon(self, running: Running) -> None:
        """Take nothing of a call that was cancelled or interrupted."""
        try:
            if running is not IDLE and self._counts:
                note(calls=1, abandoned=1)
            running.close()
        except RecursionError:
            return

    def expect_parts(self, running: Running) -> None:
        """Make ready for the parts of a generator."""
        if running.call is not None or running.plain:
            running.parts = Parts(values=self._asks_late or self._lands, cells=bool(running.picked) and self._hooks.output is None)

    _counts = True
    """Whether calls are counted."""

    _lands = False
    """Whether the result is wanted by the call around it."""

    def _land(self, running: Running, result: Any) -> None:
        """Give the result to the call around it."""

    def _steps(self, running: Running) -> dict[str, Any]:
        """Return the outputs of steps that hooks see."""
        return running.steps or {}

    def _prepare(self, running: Running, call: LiveCall) -> None:
        """Take what goes in: functions change their arguments."""
        running.prepare(call, time.perf_counter())
        if running.picked:
            running.context_step = self._hooks.context_step
            if self._hooks.input is not None:
                running.input = self._early(self._hooks.input, call)
            if self._hooks.context is not None:
                running.context = self._early(self._hooks.context, call)

    def _gathered(self, running: Running, result: Any, error: Exception | None, *, complete: bool) -> Item | None:
        """Return a call that is to be scored, else None; count it."""
        call = running.call
        if error is not None and self._counts and running is not IDLE:
            note(raised=1)
        if running.plain and not sys.is_finalizing():
            return self._plain_item(running, result, error, complete=complete)
        if call is None or sys.is_finalizing():  # a generator that is collected last of all finds no background any more
            if running is not IDLE:
                note(calls=1)
            return None
        try:
            call.seconds = time.perf_counter() - running.began
            if running.parts is not None and error is None:
                result = running.parts.result()
            if error is None and self._lands:
                self._land(running, result)
            call.result, call.error, call.steps = result, error, self._steps(running)
            return self._item(running, call, complete=complete)
        finally:
            running.close()

    def _plain_item(self, running: Running, result: Any, error: Exception | None, *, complete: bool) -> Item:
        """Return a picked call of which no hook asks anything."""
        if self._counts:
            count_call(len(running.picked))
        output = None if error is not None else cell_of(result) if running.parts is None else running.parts.cell()
        item = Item(
            running.picked,
            running.run_id,
            fresh_id(),
            running.trace_id,
            time.time_ns() // 1000,
            cast("Cell", running.input),  # pending only where a hook was asked
            output,
            cast("Cell", running.context),
            None if complete else json_of({"complete": False}),
            None if error is None else told(error),
        )
        running.input = running.context = running.parts = None
        return item

    def _item(self, running: Running, call: LiveCall, *, complete: bool) -> Item | None:
        """Return a call that `when` lets pass and sampling picked, else None."""
        hooks, picked = self._hooks, running.picked
        if hooks.when is not None and not self._wanted(hooks.when, call):
            if self._counts:
                note(calls=1, skipped=1)
            return None
        if self._counts:
            count_call(len(picked))
        if not picked:
            return None
        if running.context_step is not None and call.error is None and running.context_step not in call.steps:
            self.failed("context", _no_step(running.context_step, call.steps))
        silent = complete and hooks.metadata is None and running.metadata is None
        return Item(
            picked=picked,
            run=running.run_id,
            row=fresh_id(),
            trace=running.trace_id,
            created=time.time_ns() // 1000,
            input=self._late("input", hooks.input, call) if isinstance(running.input, Pending) else running.input,
            output=None if call.error is not None else self._output(running, call),
            context=self._late("context", hooks.context, call) if isinstance(running.context, Pending) else running.context,
            metadata=None if silent else self._metadata(running, call, complete=complete),
            failure=None if call.error is None else told(call.error),
        )

    def _early(self, source: Readable | Hook, call: LiveCall) -> Cell | Pending:
        """Return a cell before the function runs; pending where its hook raises, since it may want what is not there yet."""
        if isinstance(source, READABLE):
            return cell_of(source.read(call.args, call.kwargs))
        try:
            return cell_of(source(call))
        except Exception:  # noqa: BLE001  (it is asked again)
            return PENDING

    def _late(self, option: str, source: Source, call: LiveCall) -> Cell:
        """Return a cell when the function has ended, whose hook raised before."""
        return cell_of(self._asked(option, source, call))

    def _output(self, running: Running, call: LiveCall) -> Cell:
        """Return the output's cell."""
        if self._hooks.output is not None:
            return cell_of(self._asked("output", self._hooks.output, call))
        return cell_of(call.result) if running.parts is None else running.parts.cell()

    def _metadata(self, running: Running, call: LiveCall, *, complete: bool) -> bytes | None:
        """Return the metadata: the hook's before ours."""
        found = {} if complete else {"complete": False}
        for mapping in (running.metadata, self._asked("metadata", self._hooks.metadata, call)):
            if isinstance(mapping, Mapping):
                found |= mapping
            elif mapping is not None:
                self.failed("metadata", ArgumentTypeError.from_value("metadata", mapping, "a mapping"))
        return json_of(found) if found else None

    def _wanted(self, when: Hook, call: LiveCall) -> bool:
        """Return whether `when` lets a call pass; one that raises lets none, since scoring may cost money or tell what it should not."""
        try:
            return bool(when(call))
        except Exception as error:  # noqa: BLE001
            self.failed("when", error)
            return False

    def _asked(self, option: str, source: Source, call: LiveCall) -> Any:
        """Return what a hook or an argument gives; None where there is none, or where it raises."""
        if source is None:
            return None
        try:
            return source.read(call.args, call.kwargs) if isinstance(source, READABLE) else source(call)
        except Exception as error:  # noqa: BLE001
            self.failed(option, error)
            return None

    def failed(self, option: str, error: Exception) -> None:
        """Count what went wrong beside a call; say it once for each hook."""
        with contextlib.suppress(Exception):
            note(hook_errors=1)
            if option not in self._told:
                self._told.add(option)
                what = "Live scoring" if option == "live" else f"The hook {option}="
                LOG.warning("%s of %r failed; more of the same is only counted, in live.stats().", what, self.entity_id, exc_info=error)


def _no_step(name: str, steps: Mapping[str, Any]) -> ArgumentTypeError:
    """Return what is wrong where a step that should give the context did not run."""
    ran = f"the steps that ran are {listed(steps)}" if steps else "no step ran"
    return ArgumentTypeError(f"context={name!r} names a step, but none of that name has run; {ran}.")


class FunctionTap(Tap):
    """What is taken of every call of a function that `live` decorates.

    Parameters
    ----------
    opened
        The attached channel.
    parameters, hooks
        As in `Tap`.
    """

    def __init__(self, opened: Open, parameters: Parameters, hooks: Hooks) -> None:
        """Read the rest from the channel."""
        channel = opened.channel
        super().__init__(channel.entity_type, channel.entity_id, parameters, channel.scorers, hooks)
        self._open = opened
        self._step_channels = StepChannels(channel)
        self._asks_ids = hooks.run_id is not None or hooks.trace_id is not None

    def __reduce__(self) -> tuple[Any, ...]:
        """Attach the channel again where a copy of the function arrives, by cloudpickle in a worker of Dask or Ray."""
        return _attached_again, (self._open.channel, self._parameters, self._hooks)

    def _begun(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Running:
        scope = CURRENT.get()
        run_id, trace_id = (None, None) if scope is None else (scope.run_id, scope.trace_id)
        call = None
        if self._asks_ids:
            call = LiveCall(self.entity_type, self.entity_id, self._parameters, args, kwargs)
            run_id = self._id("run_id", self._hooks.run_id, call, run_id, fresh=True)
            trace_id = self._id("trace_id", self._hooks.trace_id, call, trace_id, fresh=False)
        if run_id is None:
            run_id = fresh_id()
        picked = self._picks.of(run_id)
        running = Running(run_id, trace_id, scope, picked, self._open)
        running.step_channels = self._step_channels
        if picked and self._plain and call is None:
            running.take_plainly(self._hooks.input, self._hooks.context, args, kwargs)
        elif picked or self._hooks.when is not None:
            self._prepare(running, call or LiveCall(self.entity_type, self.entity_id, self._parameters, args, kwargs))
        return running

    def _id(self, option: str, source: Source, call: LiveCall, otherwise: str | None, *, fresh: bool) -> str | None:
        """Return the id that an option gives; another where it gives None or raises, or where it cannot be kept."""
        value = self._asked(option, source, call)
        if value is None:
            return otherwise
        found = usable_id(value)
        if found is None:
            self.failed(option, ArgumentTypeError.from_value(option, value, f"a text of 1 to {LONGEST} characters"))
            return fresh_id() if fresh else otherwise
        return found


def _attached_again(channel: Channel, parameters: Parameters, hooks: Hooks) -> FunctionTap:
    """Return the tap of a function that was pickled with it."""
    return FunctionTap(attach(channel), parameters, hooks)
