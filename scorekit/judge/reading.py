"""A judge's raw text to a checked reply: the ladder of readings, and the JSON schema that is asked for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from pydantic import BaseModel, ValidationError

from scorekit.texts import without_surrogates

MOST_VALUES = 40
"""How many places of a text are tried as the beginning of a JSON value."""

_THOUGHT = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_THOUGHT_BEGIN = re.compile(r"\A\s*<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_FENCE = re.compile(r"```[ \t]*[\w+-]*[ \t]*\r?\n(.*)```", re.DOTALL)
_BEGIN = re.compile(r"[{\[]")
_MAYBE_NOT_FINITE = re.compile(r"\b(?:nan|inf(?:inity)?)\b|\d[eE]\+?\d{3}|\d{300}", re.IGNORECASE)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_BARE_NOT_FINITE = re.compile(r"[:,\[]\s*[-+]?(?:nan|inf(?:inity)?)\s*[,\]}]", re.IGNORECASE)


class Reading(NamedTuple):
    """A reply that passed.

    Attributes
    ----------
    value
        The checked reply.
    text
        The JSON text that gave it: validating it again gives an equal value.
    """

    value: BaseModel
    text: str


class ReplyInvalidError(ValueError):
    """A text holds no reply of the form asked for; the message says what was wrong, for the judge and for people."""


def read_reply(text: str | None, model: type[BaseModel], context: Mapping[str, Any] | None = None) -> Reading:
    r"""Return the reply that a judge's text holds.

    Tried in order, the first that passes wins: the whole text as JSON; the text behind a reasoning block; a fenced block; each
    complete JSON value; the first value after light repair (quotes, commas, Python literals). A value that breaks off is never
    completed: half a list of verdicts is no list of verdicts.

    Parameters
    ----------
    text
        What the judge said.
    model
        The pydantic model of the reply.
    context
        Handed to the model's validators.

    Returns
    -------
    Reading
        The value, and the JSON text that gave it.

    Raises
    ------
    ReplyInvalidError
        Where nothing in the text passes. Of several failures the one of the first JSON value found is told.

    Examples
    --------
    >>> from pydantic import BaseModel
    >>> class Polite(BaseModel):
    ...     polite: float
    >>> read_reply('Sure!\n```json\n{"polite": 1}\n``` See [1].', Polite).value
    Polite(polite=1.0)
    """
    if text is None or not text.strip("\ufeff \t\r\n"):
        msg = "the reply was empty"
        raise ReplyInvalidError(msg)
    text = without_surrogates(text)
    odd = _MAYBE_NOT_FINITE.search(text) is not None
    if not odd:
        try:
            return Reading(model.model_validate_json(text, context=context), text)
        except ValidationError:
            pass
    told: str | None = None
    for value in _values(text):
        written = without_surrogates(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        try:
            reading = Reading(model.model_validate_json(written, context=context), written)
        except ValidationError as error:
            told = told or _told(error)
        else:
            if odd and _has_no_number(reading.value.model_dump()):
                told = "numbers must be finite"
                break  # repair would make another number of it
            return reading
    raise ReplyInvalidError(told or _why_no_json(text))


def strict_schema(model: type[BaseModel]) -> tuple[dict[str, Any], bool]:
    """Return a model's JSON schema in the form that endpoints enforce, and whether it can be enforced strictly.

    Objects take no other properties and require all of theirs, all the way down; titles and defaults are left out. A model with
    free-form mappings cannot be enforced strictly: its schema comes back as it is.

    Examples
    --------
    >>> from pydantic import BaseModel
    >>> class Polite(BaseModel):
    ...     polite: float
    >>> strict_schema(Polite)
    ({'properties': {'polite': {'type': 'number'}}, 'required': ['polite'], 'type': 'object', 'additionalProperties': False}, True)
    """
    schema = model.model_json_schema()
    strict = not _has_free_mapping(schema)
    return _tightened(schema, schema, strict=strict), strict


@lru_cache(maxsize=256)
def response_format(model: type[BaseModel]) -> dict[str, Any]:
    """Return the ``response_format`` that asks for a model's schema; not to be changed."""
    schema, strict = strict_schema(model)
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", model.__name__)[:64] or "reply"
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": strict}}


@lru_cache(maxsize=256)
def schema_text(model: type[BaseModel]) -> str:
    """Return a model's schema as canonical JSON: part of the cache key, and shown to models that take no schema."""
    return json.dumps(strict_schema(model)[0], sort_keys=True, separators=(",", ":"))


def _values(text: str) -> Iterator[Any]:
    """Give the JSON values that a text may mean, the most literal reading first."""
    text = _without_thoughts(text.strip("\ufeff \t\r\n"))
    fenced = _FENCE.search(text)
    bodies = [text, fenced[1].strip()] if fenced else [text]
    for body in bodies:
        try:
            yield json.loads(body, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
    yield from _complete_values(text)
    for body in reversed(bodies):
        begin = _BEGIN.search(body)
        if begin is not None and not _breaks_off(body[begin.start() :]):
            yield from _repaired(body[begin.start() :])


def _without_thoughts(text: str) -> str:
    """Drop a reasoning block; what is behind the last closing tag counts, and an unclosed block leaves nothing."""
    text = _THOUGHT.sub("", text)
    if (ends := list(_THOUGHT_END.finditer(text))) and not text.lstrip().startswith(("{", "[", "```")):
        text = text[ends[-1].end() :]
    return "" if _THOUGHT_BEGIN.match(text) else text


def _complete_values(text: str) -> Iterator[Any]:
    """Give each complete JSON object or array in a text, from the left."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    position, tried = 0, 0
    while tried < MOST_VALUES and (begin := _BEGIN.search(text, position)) is not None:
        tried += 1
        try:
            value, position = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            if _breaks_off(text[begin.start() :]):
                return  # what follows lies inside a value that was cut
            position = begin.end()
        else:
            yield value


def _repaired(text: str) -> Iterator[Any]:
    """Give the value that a well-kept repair library reads, where it is an object or an array.

    It makes a text, or nothing, of a bare NaN, and which one depends on its version: such a text is not repaired.
    """
    import json_repair

    if _has_bare_not_finite(text):
        return
    try:
        value = json_repair.loads(text, skip_json_loads=True)
        json.dumps(value, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return
    if isinstance(value, (dict, list)) and value:
        yield value


def _breaks_off(text: str) -> bool:
    """Return whether a text that begins with a bracket ends before that bracket is closed."""
    depth, quote, escaped = 0, "", False
    for character in text:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character == '"':
            quote = character
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth <= 0:
                return False
    return True


def _has_bare_not_finite(text: str) -> bool:
    """Return whether NaN or an infinity stands outside the quoted texts, where a value should."""
    return _MAYBE_NOT_FINITE.search(text) is not None and _BARE_NOT_FINITE.search(_QUOTED.sub('""', text)) is not None


def _has_no_number(value: Any) -> bool:
    """Return whether NaN or an infinity stands where a number should: pydantic reads them from texts such as ``"nan"``."""
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(map(_has_no_number, value.values()))
    return isinstance(value, (list, tuple)) and any(map(_has_no_number, value))


def _refuse(constant: str) -> NoReturn:
    """Refuse NaN and infinities, which JSON does not have."""
    raise ValueError(constant)


def _told(error: ValidationError) -> str:
    """Return what was wrong with a reply, for the judge and for people: at most three places."""
    lines = []
    for found in error.errors(include_url=False)[:3]:
        where = ".".join(str(part) for part in found["loc"])
        value = found["input"]
        shown = "" if isinstance(value, (dict, list, BaseModel)) or found["type"] == "missing" else f" (got {_short(repr(value))})"
        lines.append(f"{where}: {found['msg']}{shown}" if where else f"{found['msg']}{shown}")
    more = error.error_count() - len(lines)
    return "; ".join(lines) + (f"; and {more} more" if more > 0 else "")


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _why_no_json(text: str) -> str:
    """Say why a text holds no JSON value at all."""
    if _THOUGHT_BEGIN.match(text) and not _without_thoughts(text.strip()).strip():
        return "the reply holds reasoning only, no JSON object"
    body = _without_thoughts(text)
    begin = _BEGIN.search(body)
    if begin is None:
        return "the reply holds no JSON object"
    if _has_bare_not_finite(body):
        return "numbers must be finite"
    return "the JSON breaks off before its end" if _breaks_off(body[begin.start() :]) else "the reply is not valid JSON"


def _has_free_mapping(schema: Any) -> bool:
    """Return whether a schema has an object whose keys are not known beforehand."""
    if isinstance(schema, list):
        return any(map(_has_free_mapping, schema))
    if not isinstance(schema, dict):
        return False
    free = schema.get("type") == "object" and ("properties" not in schema or schema.get("additionalProperties", False) is not False)
    empty_model = schema.get("type") == "object" and schema.get("properties") == {}
    return (free and not empty_model) or any(map(_has_free_mapping, schema.values()))


def _tightened(schema: Any, root: dict[str, Any], *, strict: bool, inside: frozenset[str] = frozenset()) -> Any:
    """Return a schema with every object closed, every property required, and references with neighbours written out."""

    def again(part: Any) -> Any:
        return _tightened(part, root, strict=strict, inside=inside)

    if isinstance(schema, list):
        return [again(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if reference is not None and len(schema) > 1:  # endpoints refuse a reference beside a description
        if reference in inside:
            return {"$ref": reference}
        target: Any = root
        for part in str(reference).lstrip("#/").split("/"):
            target = target[part]
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _tightened({**target, **rest}, root, strict=strict, inside=inside | {reference})
    closed: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):  # names of fields, which may be "title" or "default"
            closed[key] = {name: again(field) for name, field in value.items()}
        elif not (key == "default" or (key == "title" and isinstance(value, str))):
            closed[key] = again(value)
    if strict and closed.get("type") == "object":
        closed["required"] = list(closed.get("properties", {}))
        closed["additionalProperties"] = False
    return closed
