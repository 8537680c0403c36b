"""What a call was given and what it gave, as it is at that moment: text as it is, anything else as ASCII JSON, which later changes do not reach."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from scorekit.monitor.channel import Cell

SHOWN: Final = 1000
"""How many characters are kept of the ``repr`` of an object that JSON cannot hold."""

MOST_NUMBERS: Final = 10_000
"""The longest array whose numbers are kept; they are written one by one while the caller waits."""

MOST_VALUES, MOST_OBJECTS = 200_000, 2_000
"""How many values a cell holds, and how many of them objects that JSON does not know; one with more is described."""

TOO_MUCH: Final = "<more than a cell holds>"
DEEPEST: Final = 100
"""How many levels of lists and mappings are kept."""


def cell_of(value: Any) -> Cell:
    r"""Return a value as it is now: text as it is, None where it is missing, else its ASCII JSON as bytes. Never raises an `Exception`.

    Lists, mappings, numbers and texts stay what they are; numpy's and pydantic's, dataclasses, enumerations, tuples and sets become the like;
    times, decimals, paths and UUIDs become text. Another object becomes ``{"type": ..., "repr": ...}`` with 1,000 characters of its ``repr``.
    It is never iterated over: what an iterator would give belongs to the caller.

    Examples
    --------
    >>> cell_of("text"), cell_of(None)
    ('text', None)
    >>> cell_of([{"role": "user", "content": "日"}])
    b'[{"role": "user", "content": "\\u65e5"}]'
    >>> cell_of(object)
    b'{"type": "type", "repr": "<class \'object\'>"}'
    """
    if type(value) is str or value is None:
        return value
    try:
        if isinstance(value, str):
            return str.__str__(value)  # a member of an enumeration of texts stands for its value
    except Exception:  # noqa: BLE001  (a proxy whose ``__class__`` raises)
        return _written(_described(value))
    if value is pd.NA or value is pd.NaT:
        return None
    return json_of(value)


def json_of(value: Any) -> bytes:
    """Return a value as ASCII JSON; see `cell_of`."""
    try:
        return _written(_careful(value, (), Budget()))
    except OverflowError:  # its ``repr`` would be as large
        return _written({"type": _type_name(value), "repr": TOO_MUCH})
    except Exception:  # noqa: BLE001  (too deep for JSON, or a stranger's object that raises what it likes)
        return _written(_described(value))


def _written(value: Any) -> bytes:
    """Return plain values as ASCII JSON."""
    return _JSON.encode(value).encode("ascii")


class Budget:
    """How many values a cell may still hold: lists that hold one another, and objects that make others when looked at, would never end."""

    def __init__(self) -> None:
        """Begin with the most."""
        self._values, self._objects = MOST_VALUES, MOST_OBJECTS

    def take(self, values: int) -> None:
        """Use some of it.

        Raises
        ------
        OverflowError
            Where it is used up.
        """
        self._values -= values
        if self._values < 0:
            raise OverflowError

    def take_object(self) -> None:
        """Use it for an object that JSON does not know."""
        self._objects -= 1
        if self._objects < 0:
            raise OverflowError


def _careful(value: Any, inside: tuple[int, ...], budget: Budget) -> Any:
    """Return a value so that JSON can hold it, whatever is in it; ``inside`` are the ids of what is around it."""
    kind = type(value)
    if kind is str or kind is int or kind is float or kind is bool or value is None:
        return value
    if id(value) in inside or len(inside) >= DEEPEST:
        return {"type": _type_name(value), "repr": "..."}
    if isinstance(value, (bool, int, float, str)):
        return value
    inside = (*inside, id(value))
    if isinstance(value, Mapping):
        budget.take(len(value))
        return {_key(key): _careful(item, inside, budget) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        budget.take(len(value))
        return [_careful(item, inside, budget) for item in value]
    budget.take_object()
    return _careful(_plain(value), inside, budget)


def _key(key: Any) -> Any:
    """Return a mapping's key as JSON can hold it."""
    return key if key is None or isinstance(key, (str, bool, int, float)) else str(key)


_WAYS: Final[tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...]] = (
    ((np.datetime64, np.timedelta64), lambda value: None if np.isnat(value) else str(value)),
    (np.generic, lambda value: value.item()),
    (np.ndarray, lambda value: value.tolist() if value.size <= MOST_NUMBERS else _described(value)),
    ((datetime, date, time), lambda value: None if value is pd.NaT else value.isoformat()),
    (Enum, lambda value: value.value),
    ((Decimal, PurePath, UUID, timedelta), str),
    ((set, frozenset), lambda value: sorted(value, key=repr)),
    (Mapping, dict),
)
"""Kinds of values that JSON does not know, and what they become."""


def _plain(value: Any) -> Any:
    """Return what JSON holds in place of an object that it does not know."""
    try:
        if value is pd.NA:
            return None
        for kinds, way in _WAYS:
            if isinstance(value, kinds):
                return way(value)
        if not isinstance(value, type):
            if hasattr(type(value), "model_dump"):
                return value.model_dump(mode="json")
            if is_dataclass(value):
                return {field.name: getattr(value, field.name) for field in fields(value)}
    except Exception:  # noqa: BLE001  (a stranger's object may raise whatever it likes where it is looked at)
        return _described(value)
    return _described(value)


def _type_name(value: Any) -> str:
    """Return the name of a value's type, with its module."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _described(value: Any) -> dict[str, str]:
    """Return a value's type and the beginning of its ``repr``."""
    try:
        shown = repr(value[:SHOWN] if isinstance(value, (bytes, bytearray)) else value)[:SHOWN]
    except Exception as error:  # noqa: BLE001
        shown = f"<its repr raises {type(error).__name__}>"
    return {"type": _type_name(value), "repr": shown}


_JSON: Final = json.JSONEncoder(default=_plain)


class Parts:
    """What a generator gave so far.

    Parameters
    ----------
    values
        Keep the parts for hooks.
    cells
        Keep what each part is at the moment, for the store.
    """

    __slots__ = ("_cells", "_values")

    def __init__(self, *, values: bool, cells: bool) -> None:
        """Begin with none."""
        self._values: list[Any] | None = [] if values else None
        self._cells: list[Cell] | None = [] if cells else None

    def add(self, part: Any) -> None:
        """Keep a part."""
        if self._values is not None:
            self._values.append(part)
        if self._cells is not None:
            self._cells.append(cell_of(part))

    def result(self) -> Any:
        """Return the joined text where all parts are texts, else the list of them; None where they are not kept."""
        if self._values is None or not all(isinstance(part, str) for part in self._values):
            return self._values
        return "".join(self._values)

    def cell(self) -> Cell:
        """Return the same as it was; None where it is not kept."""
        if self._cells is None:
            return None
        texts = [cell for cell in self._cells if isinstance(cell, str)]
        if len(texts) == len(self._cells):
            return "".join(texts)
        return b"[" + b", ".join([cell if isinstance(cell, bytes) else json_of(cell) for cell in self._cells]) + b"]"
