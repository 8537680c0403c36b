"""What `live` and its steps are told, read once: everything that is wrong raises here, when a function is decorated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.evals.targets import refuse_async
from scorekit.monitor.calls import LiveCall
from scorekit.monitor.channel import Attached
from scorekit.monitor.keys import LONGEST
from scorekit.monitor.sampling import Sampled, check_name
from scorekit.monitor.taps import Hooks
from scorekit.run import Job, ScorerLike

if TYPE_CHECKING:
    from scorekit.monitor.arguments import Parameters
    from scorekit.monitor.taps import Source

Scorers = Mapping[str, ScorerLike | Sampled]
Hook = Callable[[LiveCall], Any]
NameOrHook = str | Hook


def read_scorers(scorers: object, what: str) -> tuple[Attached, ...]:
    """Return the scorers of a mapping; one that is not `Sampled` is asked about every call.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        For anything but a mapping from names that can name columns to scorers, and for an empty one.
    """
    example = f"Write {what}={{'tone': score_tone}}."
    if not isinstance(scorers, Mapping):
        raise ArgumentTypeError.from_value(what, scorers, "a mapping from names to scorers", example)
    if not scorers:
        raise OptionRangeError.from_value(what, {}, "one scorer at least")
    found = []
    for key, scorer in scorers.items():
        if not isinstance(key, str):
            raise ArgumentTypeError.from_value(f"A key of {what}", key, "text", example)
        if not key.isidentifier() or len(key) > LONGEST:
            raise OptionRangeError.from_value(f"A key of {what}", key, "a name for columns: letters, digits and underscores")
        if not callable(scorer) and not isinstance(scorer, Sampled):
            hint = "Pass functions such as score_tone, or sampled(score_tone, rate=0.5)."
            raise ArgumentTypeError.from_value(f"{what}[{key!r}]", scorer, "a callable from a frame to a frame", hint)
        each = scorer if isinstance(scorer, Sampled) else Sampled(scorer, 1.0)
        found.append(Attached(str.__str__(key), each.scorer, each.rate, each.version))
    return tuple(found)


def rehearse(scorers: tuple[Attached, ...]) -> None:
    """Call the scorers of a step on no rows, as attaching them will: what is wrong for every row raises now."""
    for attached in scorers:
        Job.of(attached.scorer, {"progress": False}).rehearse(
            pd.DataFrame({name: pd.Series([], dtype=object) for name in ("input", "output", "context")})
        )


def read_hooks(
    parameters: Parameters,
    *,
    input: NameOrHook | None = None,  # noqa: A002  (what it gives)
    output: Hook | None = None,
    context: NameOrHook | None = None,
    when: Hook | None = None,
    metadata: Hook | None = None,
    run_id: NameOrHook | None = None,
    trace_id: NameOrHook | None = None,
) -> Hooks:
    """Return where things of a function's calls come from, by the stated rule where nothing is said.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError
        For what is neither a function of the call nor, where a name may stand, the name of a parameter.
    """
    for option, hook in (("output", output), ("when", when), ("metadata", metadata)):
        refuse_async(hook, option)
    step = context if isinstance(context, str) and not parameters.has(context) else None
    if step is not None:
        check_name("context", step)
    return Hooks(
        input=parameters.input() if input is None else _source(parameters, "input", input),
        output=output,
        context=None if step is not None else parameters.find("context") if context is None else _source(parameters, "context", context),
        context_step=step,
        when=when,
        metadata=metadata,
        run_id=_source(parameters, "run_id", run_id),
        trace_id=_source(parameters, "trace_id", trace_id),
    )


def _source(parameters: Parameters, option: str, value: NameOrHook | None) -> Source:
    """Return the parameter that a name names, or the hook."""
    if isinstance(value, str):
        return parameters.require(option, value)
    if value is not None and not callable(value):
        raise ArgumentTypeError.from_value(option, value, "the name of a parameter, or a function of the call")
    refuse_async(value, option)
    return value
