"""Targets and what they are given: data as a frame, how a target is called, and what it gives back as a cell."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from scorekit.columns import to_json
from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.evals.calls import Called, told
from scorekit.texts import TEXT, as_messages
from scorekit.trace import as_python

if TYPE_CHECKING:
    from collections.abc import Sequence

Target = Callable[..., Any]

INPUT_AND_ITEM = 2


def read_data(data: object, column: str) -> pd.DataFrame:
    """Return the items as a frame: a frame as it is, records as rows, texts as a column of inputs.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        When it is something else, or there is no item.
    """
    if not isinstance(data, pd.DataFrame):
        kinds = "a frame, a list of records such as {'input': '...'}, or a list of texts"
        if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
            raise ArgumentTypeError.from_value("data", data, kinds)
        items = list(data)
        if all(isinstance(item, str) for item in items):
            data = pd.DataFrame({column: pd.Series(items, dtype=TEXT)})
        elif all(isinstance(item, Mapping) for item in items):
            data = pd.DataFrame(items)
        else:
            odd = next((item for item in items if not isinstance(item, (str, Mapping))), None)
            if odd is None and not any(item is None for item in items):
                msg = "data mixes texts and records; make each text a record: {'input': '...'}."
                raise ArgumentTypeError(msg)
            raise ArgumentTypeError.from_value("Each item of data", odd, "a text or a record such as {'input': '...'}")
    if not len(data):
        raise OptionRangeError.from_value("data", [], "one item at least")
    return data


def read_targets(target: object) -> dict[str | None, Target]:
    """Return the targets by name; a single one has none.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        When one cannot be called, or there is none.
    """
    if not isinstance(target, Mapping):
        return {None: _checked_target("target", target)}
    if not target:
        raise OptionRangeError.from_value("target", {}, "a function, or one at least by name: {'new': my_agent}")
    for name in target:
        if not isinstance(name, str) or not name.strip():
            raise ArgumentTypeError.from_value("The name of a target", name, "text, and not empty")
    return {name: _checked_target(f"target[{name!r}]", function) for name, function in target.items()}


def _checked_target(what: str, function: object) -> Target:
    """Return a target; raise for what cannot be called with an input."""
    if not callable(function) or isinstance(function, type):
        hint = "For a Judge, call generate, or pass lambda text: judge.ask(...)." if hasattr(function, "submit") else ""
        raise ArgumentTypeError.from_value(what, function, "a function from an input to the output", hint)
    positional, keywords = _required(function)
    if positional > INPUT_AND_ITEM or keywords:
        needed = ", ".join(keywords) or f"{positional} arguments"
        msg = (
            f"{what} is called with the input, or with the input and the whole item as a dict, but it needs {needed}. "
            f"Bind the others: functools.partial(agent, ...), or lambda text, item: agent(text, item['context'], ...)."
        )
        raise ArgumentTypeError(msg)
    return function


def _required(function: Callable[..., Any]) -> tuple[int, list[str]]:
    """Return how many positional arguments a function needs, and which keywords."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1, []
    needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
    positional = sum(parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD) for parameter in needed)
    return positional, [parameter.name for parameter in needed if parameter.kind is parameter.KEYWORD_ONLY]


def call_target(function: Target, item: Mapping[str, Any], column: str) -> Any:
    """Call a target with an item's input, and with the whole item where it needs two arguments."""
    value = as_python(item[column])
    if _required(function)[0] == INPUT_AND_ITEM:
        return function(value, {name: as_python(cell) for name, cell in item.items()})
    return function(value)


def read_output(called: Called) -> tuple[str | None, str | None, str | None]:
    """Return a target's output as a cell, or None with an error code and why. What it raises to end the process is raised.

    Examples
    --------
    >>> read_output(Called(0, [{"role": "assistant", "content": "Hi."}]))
    ('[{"role": "assistant", "content": "Hi."}]', None, None)
    >>> read_output(Called(0, error=ValueError("no such tool")))
    (None, 'target_error', 'The target raised ValueError: no such tool')
    """
    if called.error is not None:
        if not isinstance(called.error, Exception):
            raise called.error
        return None, "target_error", f"The target raised {told(called.error)}"
    if isinstance(called.value, str):
        return str.__str__(called.value), None, None
    try:
        messages = as_messages(as_python(called.value))
        if messages:
            return to_json(messages), None, None
    except (TypeError, ValueError, RecursionError):  # JSON cannot hold what is in them
        pass
    return None, "not_text", f"The target returned {type(called.value).__name__}, neither text nor chat messages."


def refuse_async(function: Callable[..., Any] | None, what: str) -> None:
    """Raise for a function that would have to be awaited, or that is none."""
    if function is not None and (not callable(function) or inspect.iscoroutinefunction(function)):
        raise ArgumentTypeError.from_value(what, function, "a plain function, which is called in the caller's thread")


def as_scorers(scorers: object, what: str) -> Sequence[Any]:
    """Return scorers as a list; a single one is a list of one."""
    if callable(scorers):
        return [scorers]
    if isinstance(scorers, (str, bytes, Mapping)) or not isinstance(scorers, Iterable):
        raise ArgumentTypeError.from_value(what, scorers, "a list of scorers such as [score_relevancy]")
    return list(scorers)
