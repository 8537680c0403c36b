"""Where a function's arguments are found in a call, without binding all of them: a call that is scored must not cost more than a few microseconds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from scorekit.errors import UnknownOptionError

RECEIVERS: Final = ("self", "cls")
"""Names of a first parameter that is no input."""

_ANY: Final = inspect.Signature(
    [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL), inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)]
)


class Argument:
    """One parameter of a function: `read` finds its value in a call.

    Attributes
    ----------
    name
        The parameter's.
    """

    __slots__ = ("_default", "_kind", "_place", "_taken", "name")

    def __init__(self, parameter: inspect.Parameter, place: int, taken: frozenset[str] = frozenset()) -> None:
        """Note where it stands among those that are given by position, and which keywords are other parameters."""
        self.name = parameter.name
        self._kind = parameter.kind
        self._default = None if parameter.default is parameter.empty else parameter.default
        self._place = place
        self._taken = taken

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return its value; its default, or None, where the call does not give it.

        Of ``*args`` the list, of ``**kwargs`` the mapping, a single one by itself.
        """
        kind = self._kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            return _alone(list(args[self._place :]))
        if kind is inspect.Parameter.VAR_KEYWORD:
            others = {key: value for key, value in kwargs.items() if key not in self._taken}
            return next(iter(others.values())) if len(others) == 1 else others or None
        if kind is not inspect.Parameter.KEYWORD_ONLY and len(args) > self._place:
            return args[self._place]
        return self._default if kind is inspect.Parameter.POSITIONAL_ONLY else kwargs.get(self.name, self._default)


class Keyword:
    """A keyword that a function takes by ``**kwargs``; where a call does not give it, the first of some other arguments that it does give.

    Attributes
    ----------
    name
        The keyword.
    """

    __slots__ = ("_otherwise", "name")

    def __init__(self, name: str, *otherwise: Argument) -> None:
        """Note the name."""
        self.name = name
        self._otherwise = otherwise

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return its value, or that of what stands in for it, or None."""
        if self.name in kwargs:
            return kwargs[self.name]
        values = (argument.read(args, kwargs) for argument in self._otherwise)
        return next((value for value in values if value is not None), None)


class Value:
    """A value that is there already."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        """Keep it."""
        self.value = value

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:  # noqa: ARG002  (the same for every call)
        """Return it."""
        return self.value


Readable = Argument | Keyword | Value


class Parameters:
    """A function's parameters: which of them is the input, and where each is found.

    Parameters
    ----------
    function
        Anything callable. One that does not say what it takes is taken to take anything.

    Examples
    --------
    >>> def agent(self, question, /, *, context=None): ...
    >>> parameters = Parameters(agent)
    >>> parameters.input().name, parameters.find("context").read(("self", "Why?"), {"context": "Because."})
    ('question', 'Because.')
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Read the signature, of what a decorator wraps where it says so."""
        try:
            self._signature = inspect.signature(function)
        except (TypeError, ValueError):
            self._signature = _ANY
        parameters = self._signature.parameters.values()
        positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        taken = frozenset(each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY))
        self._found = {
            each.name: Argument(each, positional.index(each) if each in positional else len(positional), taken) for each in parameters
        }
        self._kinds = {each.name: each.kind for each in parameters}
        self._open = inspect.Parameter.VAR_KEYWORD in self._kinds.values()
        plain = set(self._kinds.values()) <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
        self._positional = [each.name for each in positional] if plain else None
        self._defaults = {each.name: each.default for each in parameters if each.default is not each.empty}

    def input(self) -> Readable | None:
        """Return the parameter ``input``, else the first that is not ``self`` or ``cls``; None where there is none.

        Of ``*args, **kwargs``, or ``**kwargs`` alone, it is the keyword ``input``, else what comes first by position, else the keywords.
        """
        names = list(self._found)
        if names and names[0] in RECEIVERS:
            del names[0]
        if "input" in names:
            return self._found["input"]
        if not names:
            return None
        first, kind = self._found[names[0]], self._kinds[names[0]]
        if not self._open or kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            return first
        if kind is inspect.Parameter.VAR_POSITIONAL:  # with **kwargs: a signature that says nothing
            first = Argument(inspect.Parameter(first.name, inspect.Parameter.POSITIONAL_ONLY), len(self._found) - len(names))
        return Keyword("input", first, self._found[names[-1]])

    def has(self, name: str) -> bool:
        """Return whether there is a parameter of that name."""
        return name in self._found

    def find(self, name: str) -> Readable | None:
        """Return a parameter, or a keyword of ``**kwargs``; None where the function cannot be given it."""
        return self._found.get(name) or (Keyword(name) if self._open else None)

    def require(self, option: str, name: str) -> Readable:
        """Return a parameter that an option names.

        Raises
        ------
        UnknownOptionError
            Where the function has none of that name.
        """
        found = self.find(name)
        if found is None:
            raise UnknownOptionError.from_value(option, name, self._found)
        return found

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by parameter, defaults included; only the keywords where they do not fit the function."""
        if self._positional is not None and len(args) <= len(self._positional):  # in a fifth of the time that `Signature.bind` takes
            found = {**self._defaults, **dict(zip(self._positional, args, strict=False)), **kwargs}
            if found.keys() == self._found.keys():
                return {name: found[name] for name in self._found}
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return dict(kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)


def _alone(values: list[Any]) -> Any:
    """Return the only value, None where there is none, or all."""
    return values[0] if len(values) == 1 else values or None
