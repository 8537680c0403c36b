"""What a Scorer may be declared as: checked when it is made, so that nothing wrong waits for the first row."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from scorekit.errors import ScorerDefinitionError, nearest
from scorekit.judge.prompts import Prompt
from scorekit.pipeline import FieldKind, option_names

if TYPE_CHECKING:
    from scorekit.scorer import Scorer

STEPS = ("preprocess", "analyze", "generate_score", "generate_reason")
USAGE = ("input_tokens", "output_tokens", "seconds")
REPEATS = ("spread", "repeats")
RESERVED = frozenset(
    {"score", "error", "judge", "input", "output", "not_scorable", *USAGE, *REPEATS, *(f"{step}_prompt" for step in STEPS)}
)
CALL_ARGUMENTS = frozenset({"df", "judge", "repeats", "keep_prompts", "usage", "progress"})


def check_declaration(scorer: Scorer) -> None:
    """Raise a `ScorerDefinitionError` for a scorer that could not work."""
    _check_names(scorer)
    _check_fields(scorer)
    _check_options(scorer)
    _check_templates(scorer)


def kind_of(annotation: Any) -> FieldKind:
    """Return how a field of that type is kept."""
    while get_origin(annotation) is typing.Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) is Literal:
        kinds = {kind_of(type(value)) for value in get_args(annotation)}
        return kinds.pop() if len(kinds) == 1 else "json"
    if get_origin(annotation) in (typing.Union, types.UnionType):
        kinds = {kind_of(part) for part in get_args(annotation) if part is not type(None)}
        return kinds.pop() if len(kinds) == 1 else "json"
    if isinstance(annotation, type) and issubclass(annotation, (bool, int, float)):
        return "number"
    if isinstance(annotation, type) and (issubclass(annotation, str) or (issubclass(annotation, Enum) and _texts(annotation))):
        return "text"
    return "json"


def _texts(enumeration: type[Enum]) -> bool:
    """Return whether an enumeration holds texts alone."""
    return all(isinstance(member.value, str) for member in enumeration)


def _check_names(scorer: Scorer) -> None:
    """Refuse names that cannot become columns or keywords."""
    if not (isinstance(scorer.name, str) and scorer.name.isidentifier()):
        msg = f"A scorer's name must be an identifier such as 'has_link', not {scorer.name!r}: it is the prefix of its columns."
        raise ScorerDefinitionError(msg)
    if not scorer.needs or not all(isinstance(need, str) and need.isidentifier() for need in scorer.needs):
        msg = f"needs= must name the columns that the scorer {scorer.name!r} reads, such as ('input', 'output'), not {scorer.needs!r}."
        raise ScorerDefinitionError(msg)
    if both := sorted(set(scorer.needs) & set(scorer.options)):
        msg = f"The scorer {scorer.name!r} has an option {both[0]!r}, which is also a column that it needs; rename the option."
        raise ScorerDefinitionError(msg)
    clashes = sorted(set(scorer.needs) & CALL_ARGUMENTS)
    if clashes:
        msg = f"The scorer {scorer.name!r} cannot need a column called {clashes[0]!r}: the call has an argument of that name."
        raise ScorerDefinitionError(msg)
    if not callable(scorer.generate_score) or isinstance(scorer.generate_score, Prompt):
        msg = (
            f"generate_score of the scorer {scorer.name!r} must be a function over rows; ask the judge in analyze and read its fields here."
        )
        raise ScorerDefinitionError(msg)
    for step, work in scorer.steps:
        if not callable(work) and not isinstance(work, Prompt):
            msg = f"{step} of the scorer {scorer.name!r} must be a function or a Prompt, not {type(work).__name__}."
            raise ScorerDefinitionError(msg)


def _check_fields(scorer: Scorer) -> None:
    """Refuse fields whose names stand for something else, or whose type is none."""
    untyped = [
        name for name, annotation in scorer.fields.items() if not (isinstance(annotation, type) or get_origin(annotation) is not None)
    ]
    if untyped:
        msg = f"fields= of the scorer {scorer.name!r} must give {untyped[0]!r} a type such as float or str, not {scorer.fields[untyped[0]]!r}."
        raise ScorerDefinitionError(msg)
    replies = [(step, name) for step, prompt in scorer.prompts.items() for name in prompt.reply.model_fields]
    for where, name in [*replies, *(("fields=", name) for name in scorer.fields)]:
        if name in RESERVED or name in scorer.needs or name in scorer.options or (name == "reason" and where == "fields="):
            msg = f"The field {name!r} in {where} of the scorer {scorer.name!r} has a name that stands for something else; choose another."
            raise ScorerDefinitionError(msg)
    if "generate_reason" in scorer.prompts and "reason" not in scorer.prompts["generate_reason"].reply.model_fields:
        msg = f"The reply of generate_reason of the scorer {scorer.name!r} needs a field 'reason'."
        raise ScorerDefinitionError(msg)


def _check_options(scorer: Scorer) -> None:
    """Refuse options that no step takes, and arguments that no option fills."""
    taken: set[str] = set()
    for step, work in scorer.steps:
        if isinstance(work, Prompt):
            taken |= work.names()
        functions = [work.local] if isinstance(work, Prompt) else [work]
        for function in functions:
            if function is None:
                continue
            taken |= set(option_names(function))
            unfilled = [name for name in option_names(function) if name not in scorer.options and not _has_default(function, name)]
            if unfilled:
                msg = f"{step} of the scorer {scorer.name!r} takes {unfilled[0]!r}, but options= does not have it: {list(scorer.options)}."
                raise ScorerDefinitionError(msg)
    unused = [name for name, value in scorer.options.items() if name not in taken and value is not None]  # None is off
    if unused:
        near = nearest(unused[0], sorted(taken))
        hint = f" Did you mean {near!r}?" if near else ""
        msg = f"The scorer {scorer.name!r} has an option {unused[0]!r} that no step takes.{hint}"
        raise ScorerDefinitionError(msg)


def _has_default(function: Callable[..., Any], name: str) -> bool:
    """Return whether an argument may be left out."""
    return inspect.signature(function).parameters[name].default is not inspect.Parameter.empty


def _check_templates(scorer: Scorer) -> None:
    """Refuse a template that reads a name which nothing before it gives.

    Once a function step has run, its undeclared fields may be meant; then a wrong name shows when the step renders its first rows.
    """
    known = {*scorer.needs, *scorer.options}
    for step, work in scorer.steps:
        if not isinstance(work, Prompt):
            return
        unknown = sorted(work.names() - known)
        if unknown:
            near = nearest(unknown[0], sorted(known))
            hint = f" Did you mean {near!r}?" if near else ""
            msg = (
                f"The template of {step} of the scorer {scorer.name!r} reads {unknown[0]!r}, which no input, option or earlier step gives; "
                f"there are {sorted(known)}.{hint}"
            )
            raise ScorerDefinitionError(msg)
        known |= set(work.reply.model_fields)
