"""What a form for a scorer asks: the inputs that it needs and the options that it takes, read from its signature. No widgets here."""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin

import pandas as pd

from scorekit.columns import require
from scorekit.errors import ArgumentTypeError, MissingColumnError, listed, nearest
from scorekit.judge.prompts import Prompt
from scorekit.run import parameters_of, unwrapped
from scorekit.scorer import Scorer

if TYPE_CHECKING:
    from scorekit.run import ScorerLike

FieldKind = Literal["bool", "choice", "int", "float", "text"]

SET_ELSEWHERE: Final = frozenset({"judge", "progress", "keep_prompts", "usage", "name", "prompts"})
"""Arguments of scorers that a form does not ask for: they have a place of their own, change the columns, or are no text."""

USUAL_COLUMNS: Final = ("input", "output", "context", "ground_truth")
KINDS: Final[Mapping[frozenset[Any], FieldKind]] = {
    frozenset({bool}): "bool",
    frozenset({int}): "int",
    frozenset({float}): "float",
    frozenset({int, float}): "float",
    frozenset({str}): "text",
}
FIRST_VALUES: Final[Mapping[Any, Any]] = {bool: False, int: 0, float: 0.0, str: ""}
"""What an option begins with that has no default."""

_SECTION = re.compile(r"\n(\w[\w ]*)\n-{3,}\n")


@dataclass(frozen=True)
class OptionField:
    """One option of a scorer.

    Attributes
    ----------
    name, value
        Its name, and what it is to begin with.
    kind
        What it holds.
    optional
        Whether None is allowed.
    choices
        What may be chosen, where the kind is ``"choice"``.
    about
        What the scorer's docstring says about it.
    """

    name: str
    value: Any
    kind: FieldKind
    optional: bool = False
    choices: tuple[Any, ...] = ()
    about: str = ""

    def read(self, text: str) -> Any:
        """Return the value that a text stands for; an empty one for None where that is allowed.

        Raises
        ------
        ArgumentTypeError
            When it should be a number and is none.
        """
        if self.optional and not text.strip():
            return None
        if self.kind == "text":
            return text
        try:
            return int(text) if self.kind == "int" else float(text)
        except ValueError as error:
            wanted = "a whole number" if self.kind == "int" else "a number"
            raise ArgumentTypeError.from_value(self.name, text, f"{wanted}{' or empty' if self.optional else ''}") from error


@dataclass(frozen=True)
class ScorerForm:
    """A scorer, and what to ask before it can be run.

    Attributes
    ----------
    label
        What it is called: the function's name or the Scorer's.
    measure
        The prefix of its columns as shipped, such as ``"relevancy"``; "" where it is not known.
    about
        The first line of its docstring.
    needs
        The inputs that it reads; empty where the scorer does not say.
    columns
        Which column stands for an input, where a partial binds it.
    options
        What can be set.
    fixed
        What is bound and cannot be set by a form.
    judged
        Whether it takes a judge.
    judge
        The judge that it brings, if any.
    """

    label: str
    function: Callable[..., pd.DataFrame]
    measure: str = ""
    about: str = ""
    needs: tuple[str, ...] = ()
    columns: Mapping[str, Hashable] = field(default_factory=dict)
    options: tuple[OptionField, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    judged: bool = False
    judge: Any = None

    @classmethod
    def of(cls, scorer: ScorerLike) -> ScorerForm:
        """Read a public function, a partial, a Scorer, or a callable of the user's own.

        Raises
        ------
        ArgumentTypeError
            For anything else.

        Examples
        --------
        >>> from scorekit import score_text_difference
        >>> form = ScorerForm.of(partial(score_text_difference, input="question", changes="words"))
        >>> form.needs, dict(form.columns), [(option.name, option.value, option.choices) for option in form.options]
        (('input', 'output'), {'input': 'question'}, [('ratio', 'lcs', ('lcs', 'difflib')), ('changes', 'words', ('spans', 'words'))])
        """
        function, bound = unwrapped(scorer)
        if not callable(function):
            example = f"score_{scorer}" if isinstance(scorer, str) else "score_tone"
            hint = f"Pass a function such as {example}, a partial of one, or a Scorer."
            raise ArgumentTypeError.from_value("the scorer", scorer, "a callable from a frame to a frame", hint)
        if isinstance(function, Scorer):
            needs, measure, judged, about = function.needs, function.name, bool(function.prompts), ""
            asked = _options_of_scorer(function, bound)
        else:
            settings = _keywords(function)
            needs = tuple(name for name, parameter in settings.items() if parameter.default == name)
            judged, measure = "judge" in settings, settings["name"].default if "name" in settings else ""
            about = (inspect.getdoc(function) or "").split("\n\n")[0].strip() if inspect.isroutine(function) else ""
            asked = _options_of_function(function, settings, needs, bound)
        options = tuple(option for option in asked if option is not None)
        taken = {*needs, "judge", *(option.name for option in options)}
        return cls(
            str(getattr(function, "__name__", measure or type(function).__name__)),
            function,
            measure if isinstance(measure, str) else "",
            " ".join(about.split()),
            needs,
            {name: bound[name] for name in needs if name in bound},
            options,
            {name: value for name, value in bound.items() if name not in taken},
            judged,
            bound.get("judge", function.judge if isinstance(function, Scorer) else None),
        )

    def bound(self, options: Mapping[str, Any], judge: Any = None) -> ScorerLike:
        """Return the scorer with its options set, reading its inputs under their own names; ``judge`` wins over the one that it brings."""
        settings = {**self.fixed, **options}
        function: Any = self.function
        if isinstance(function, Scorer):
            own = {name: settings.pop(name) for name in function.options if name in settings}
            function = replace(function, options={**function.options, **own})
        judge = self.judge if judge is None else judge
        return partial(function, **settings, **({} if judge is None else {"judge": judge}))

    def check_columns(self, df: pd.DataFrame, columns: Mapping[str, Hashable]) -> None:
        """Raise where the frame lacks a column that the scorer reads with its options as they are, or has it twice.

        Raises
        ------
        MissingColumnError, ColumnConflictError
            As the scorer itself.
        """
        places = {need: columns.get(need, need) for need in self.needs}
        there = {need: require(df, column, self.label, need).iloc[:0] for need, column in places.items() if column in df.columns}
        try:
            self.bound({option.name: option.value for option in self.options})(pd.DataFrame(there))
        except MissingColumnError:
            for need, column in places.items():
                require(df, column, self.label, need)
        except Exception:  # noqa: BLE001  (no judge yet, for one: running it will tell)
            return

    def split(self, columns: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return which of some keywords are inputs and which are options.

        Raises
        ------
        ArgumentTypeError
            For a keyword that is neither.
        """
        known = {option.name for option in self.options}
        options = {name: value for name, value in columns.items() if name in known}
        inputs = {name: value for name, value in columns.items() if name not in known}
        if self.needs and (odd := [name for name in inputs if name not in self.needs]):
            near = nearest(odd[0], [*self.needs, *known])
            hint = f" Did you mean {near!r}?" if near else ""
            msg = f"playground has no argument {odd[0]!r}; {self.label} reads {listed(self.needs)} and takes {listed(known)}.{hint}"
            raise ArgumentTypeError(msg)
        return inputs, options


def _keywords(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments that a scorer takes by keyword: all but the frame, which is the first."""
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = list(parameters_of(function).items())
    return {name: parameter for name, parameter in found[1:] if parameter.kind in named}


def _options_of_function(
    function: Callable[..., Any], settings: Mapping[str, inspect.Parameter], needs: Collection[str], bound: Mapping[str, Any]
) -> list[OptionField | None]:
    """Return the options of a function, by its signature."""
    about = argument_texts(inspect.getdoc(function) or "")
    return [
        _field(name, bound.get(name, parameter.default), _hint(function, parameter), about.get(name, ""))
        for name, parameter in settings.items()
        if name not in SET_ELSEWHERE and name not in needs
    ]


def _options_of_scorer(scorer: Scorer, bound: Mapping[str, Any]) -> list[OptionField | None]:
    """Return the options of a Scorer: what they hold is said by the step that takes them, else by their value."""
    hints: dict[str, Any] = {}
    for _, work in scorer.steps:
        function = work.local if isinstance(work, Prompt) else work
        if function is not None:
            hints = {name: _hint(function, parameter) for name, parameter in parameters_of(function).items()} | hints
    found = [_field(name, bound.get(name, value), hints.get(name), "") for name, value in scorer.options.items()]
    repeats = OptionField("repeats", bound.get("repeats", 1), "int", about="Ask this many times; the score is the mean.")
    return [*found, repeats] if scorer.prompts else found


def _hint(function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Return the type that an argument is annotated with; None where there is none, or where it names what is known to type checkers alone."""
    if parameter.annotation is parameter.empty:
        return None

    def one() -> None:
        """Carry the annotation."""

    one.__annotations__ = {"it": parameter.annotation}
    try:
        return typing.get_type_hints(one, globalns=getattr(inspect.unwrap(function), "__globals__", {})).get("it")
    except Exception:  # noqa: BLE001  (an annotation may be any expression)
        return None


def _field(name: str, value: Any, hint: Any, about: str) -> OptionField | None:
    """Return how to ask for an option; None where its type, or the value that it has, is for code alone."""
    choices, kinds, optional = _parts(hint)
    if value is inspect.Parameter.empty:
        value = choices[0] if choices else None if optional else FIRST_VALUES.get(kinds[0] if kinds else str, "")
    if hint is None:
        kinds, optional = [str if value is None else type(value)], value is None
    if choices and not kinds:
        every = (*choices, None) if optional else choices
        return OptionField(name, value, "choice", choices=every, about=about) if value in every else None
    if kinds == [bool] and optional:
        return OptionField(name, value, "choice", choices=(None, False, True), about=about) if value in (None, False, True) else None
    kind = KINDS.get(frozenset(kinds))
    if choices or kind is None or not (_fits(value, kind) or (optional and value is None)):
        return None
    return OptionField(name, value, kind, optional, about=about)


def _parts(hint: Any) -> tuple[tuple[Any, ...], list[Any], bool]:
    """Return the literals of a type, its other parts, and whether None is one of them."""
    if get_origin(hint) is typing.Annotated:
        return _parts(get_args(hint)[0])
    if get_origin(hint) is Literal:
        values = get_args(hint)
        return tuple(value for value in values if value is not None), [], None in values
    if get_origin(hint) in (typing.Union, types.UnionType):
        found = [_parts(part) for part in get_args(hint)]
        choices = tuple(value for part in found for value in part[0])
        return choices, [kind for part in found for kind in part[1]], any(part[2] for part in found)
    return (), [] if hint in (None, type(None)) else [hint], hint is type(None)


def _fits(value: Any, kind: FieldKind) -> bool:
    """Return whether a value is one of its kind, and can be shown as such."""
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "text":
        return isinstance(value, str)
    number = isinstance(value, int if kind == "int" else (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def argument_texts(doc: str) -> dict[str, str]:
    r"""Return what a numpydoc docstring says about each argument.

    Examples
    --------
    >>> argument_texts("Score.\n\nParameters\n----------\na, b : int\n    Two\n    numbers.\n\nReturns\n-------\nint")
    {'a': 'Two numbers.', 'b': 'Two numbers.'}
    """
    parts = _SECTION.split(doc)
    text = dict(zip(parts[1::2], parts[2::2], strict=True)).get("Parameters", "")
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            lines = []
            found |= {name.strip(" *"): lines for name in line.split(":")[0].split(",")}
        elif line.strip():
            lines.append(line.strip())
    return {name: " ".join(lines) for name, lines in found.items()}
