"""Steps inside a live call: as a with statement, or as functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from scorekit.monitor.arguments import Parameters, Value
from scorekit.monitor.calls import CURRENT, IDLE, LiveCall, Running, RunningStep
from scorekit.monitor.options import read_hooks, read_scorers, rehearse
from scorekit.monitor.sampling import check_name
from scorekit.monitor.snapshots import cell_of
from scorekit.monitor.taps import Hooks, Tap
from scorekit.monitor.wrappers import decorated, wrapped

if TYPE_CHECKING:
    from types import TracebackType

    from scorekit.monitor.channel import Attached
    from scorekit.monitor.options import Scorers

Function = TypeVar("Function", bound=Callable[..., Any])


class Step:
    """A step of a live call: what ``live.step(...)`` gives, for a with statement or as a decorator.

    Attributes
    ----------
    output
        Set it inside the with statement: what the step gave.
    context, metadata
        Read when the with statement ends, so they may be set inside, too.
    """

    def __init__(
        self,
        name: str,
        *,
        scorers: Scorers | None,
        input: Any,  # noqa: A002  (what it is)
        output: Any,
        context: Any,
        when: Any,
        metadata: Any,
    ) -> None:
        """Check what holds for both uses."""
        self._name = check_name("name", name)
        self._scorers = () if scorers is None else read_scorers(scorers, "scorers")
        self._input, self._when = input, when
        self.output: Any = output
        self.context: Any = context
        self.metadata: Any = metadata
        self._around: Running | None = None
        self._tap: StepTap | None = None
        self._running: Running = IDLE

    def __call__(self, function: Function) -> Function:
        """Return the function as a step: its result is the step's output.

        Raises
        ------
        ArgumentTypeError, UnknownOptionError, MissingColumnError, JudgeSetupError
            For what is no function, wrong hooks, and scorers that are wrong for every row.
        """
        rehearse(self._scorers)

        def wrap(inner: Callable[..., Any]) -> Callable[..., Any]:
            parameters = Parameters(inner)
            hooks = read_hooks(
                parameters, input=self._input, output=self.output, context=self.context, when=self._when, metadata=self.metadata
            )
            return wrapped(inner, StepTap(self._name, parameters, self._scorers, hooks))

        found: Function = decorated(function, "live.step", wrap)
        return found

    def __enter__(self) -> Self:
        """Begin the step, if a live call runs."""
        scope = CURRENT.get()
        self._around = None if scope is None else scope.running
        if self._around is not None and self._scorers:
            when = self._when
            hooks = Hooks(input=Value(self._input), when=when if callable(when) or when is None else lambda _: when)
            self._tap = StepTap(self._name, _NO_PARAMETERS, self._scorers, hooks)
            self._running = self._tap.begin((), {})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the step; what was raised inside goes on."""
        tap, running = self._ended(error)
        if tap is not None:
            tap.finish(running, self.output, error if isinstance(error, Exception) else None)

    async def __aenter__(self) -> Self:
        """Begin the step, if a live call runs."""
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the step; where it must wait for room the loop runs on."""
        tap, running = self._ended(error)
        if tap is not None:
            await tap.finish_async(running, self.output, error if isinstance(error, Exception) else None)

    def _ended(self, error: BaseException | None) -> tuple[StepTap | None, Running]:
        """Let the output land; return what is to be finished, if the step is scored and was not cancelled."""
        around, tap, running = self._around, self._tap, self._running
        self._around, self._tap, self._running = None, None, IDLE
        if tap is None:
            if around is not None and error is None:
                around.land(self._name, self.output)
        elif error is not None and not isinstance(error, Exception):
            tap.abandon(running)
            tap = None
        elif running.picked:
            running.context = cell_of(self.context)
            running.metadata = self.metadata
        return tap, running


class StepTap(Tap):
    """What is taken of every call of a step.

    Parameters
    ----------
    name
        The step's.
    parameters, scorers, hooks
        As in `Tap`.
    """

    _lands = True

    def __init__(self, name: str, parameters: Parameters, scorers: tuple[Attached, ...], hooks: Hooks) -> None:
        """Count its calls where they are scored."""
        super().__init__("step", name, parameters, scorers, hooks)
        self._counts = bool(scorers)

    def _begun(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Running:
        scope = CURRENT.get()
        around = None if scope is None else scope.running
        if scope is None or around is None or not (self._scorers or around.steps is not None):
            return IDLE
        picked = self._picks.of(scope.run_id)
        opened = around.step_channels.opened(self.entity_id, self._scorers) if picked and around.step_channels is not None else None
        running = RunningStep(scope.run_id, scope.trace_id, scope, picked if opened is not None else (), opened)
        self._prepare(running, LiveCall(self.entity_type, self.entity_id, self._parameters, args, kwargs))
        return running

    def _land(self, running: Running, result: Any) -> None:
        around = None if running.outer is None else running.outer.running
        if around is not None:
            around.land(self.entity_id, result)

    def _steps(self, running: Running) -> dict[str, Any]:
        around = None if running.outer is None else running.outer.running
        return (around.steps if around is not None else None) or {}


def _nothing() -> None:
    """Take nothing."""


_NO_PARAMETERS = Parameters(_nothing)
