r"""Cells as ASCII JSON text, which every database keeps as it is, and plain texts without the characters that databases refuse.

What JSON lacks is a mapping with one of these keys; a key of the user's that begins with "$" gets another "$", so that it cannot pass for one:

- ``{"$number": "nan"}``, also ``"inf"`` and ``"-inf"``
- ``{"$time": "2026-01-02T03:04:05+01:00", "zone": "Europe/Berlin"}``; ``zone`` only where the time has a named one
- ``{"$text": "\\d83d\\de00"}``: a text with surrogates side by side, which JSON would take for one character, escaped as `escape` does; a key
  that has such ones is ``"$text:\\d83d\\de00"``
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.texts import TEXT, is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEEPEST: Final = 100
"""How many levels of lists and mappings are kept; what lies deeper becomes text."""

EXACT: Final = 2**53
"""Up to here a float holds every whole number."""

FEW: Final = 50
"""Where a column begins with no more different texts than this, each different one is made once."""

NAN: Final = '{"$number": "nan"}'
_NUMBERS: Final = {text: f'{{"$number": "{text}"}}' for text in ("nan", "inf", "-inf")}

_TEXT_KEY: Final = "$text:"
_JSON: Final = json.JSONEncoder(allow_nan=False)
_ODD: Final = re.compile("[\\\\\0\ud800-\udfff]")
_ESCAPE: Final = re.compile(r"\\(\\|0|d[89a-f][0-9a-f]{2})")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def escape(text: str) -> str:
    r"""Return a text that every database keeps: a backslash, a NUL and lone surrogates as backslash escapes, the rest as it is.

    Examples
    --------
    >>> print(escape("C:\\temp \0 \ud800"))
    C:\\temp \0 \d800
    """
    return _ODD.sub(_escaped, text) if _ODD.search(text) else text


def unescape(text: str) -> str:
    r"""Return what was escaped.

    Examples
    --------
    >>> unescape(escape("C:\\temp \0 \ud800")) == "C:\\temp \0 \ud800"
    True
    """
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    return {"\\": "\\\\", "\0": "\\0"}.get(character) or f"\\{ord(character):x}"


def _unescaped(found: re.Match[str]) -> str:
    sign = found[1]
    return {"\\": "\\", "0": "\0"}.get(sign) or chr(int(sign, 16))


def encode_cell(value: Any) -> str | None:
    r"""Return a value as ASCII JSON text; None where it is missing (None, ``pd.NA``, NaT).

    Numbers, texts, lists and mappings stay what they are, also as numpy's, pydantic's or a dataclass's; tuples and sets become lists; a NaN, an
    infinity and a time become tags. Anything else becomes its ``str``.

    Examples
    --------
    >>> encode_cell({"role": "user", "content": "日"})
    '{"role": "user", "content": "\\u65e5"}'
    >>> encode_cell([np.float64("nan"), (1, True)])
    '[{"$number": "nan"}, [1, true]]'
    """
    if type(value) is str and value.isascii():
        return quoted(value)
    try:
        text = _JSON.encode(value)
    except (TypeError, ValueError, RecursionError):
        text = '"$'
    # a text with surrogates, or a mapping that must not pass for a tag, wants a closer look
    if '"$' in text or "\\ud" in text or text.count("[") + text.count("{") > DEEPEST:
        text = _JSON.encode(_plain(value, DEEPEST))
    return None if text == "null" else text


def _plain(value: Any, left: int) -> Any:  # noqa: PLR0911  (one kind after the other)
    """Return a value as JSON can carry it, so many levels deep."""
    try:
        if left == 0:
            return _plain_text(str(value))
        if isinstance(value, Mapping):
            return {_plain_key(key): _plain(item, left - 1) for key, item in value.items()}
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return _plain(value[()], left)
        if isinstance(value, (list, tuple, np.ndarray)):
            return [_plain(item, left - 1) for item in value]
        if isinstance(value, (set, frozenset)):
            return sorted((_plain(item, left - 1) for item in value), key=_JSON.encode)
        if isinstance(value, type):
            return _plain_text(str(value))
        if hasattr(value, "model_dump"):
            return _plain(value.model_dump(mode="json"), left)
        if is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name), left - 1) for field in fields(value)}
        return _plain_scalar(value)
    except Exception:  # noqa: BLE001  (a stranger's object may raise whatever it likes where it is looked at)
        return f"<{type(value).__name__} that cannot be shown>"


def _plain_scalar(value: Any) -> Any:
    """Return a value that holds no others."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, str):
        return _plain_text(str.__str__(value))
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, np.timedelta64):  # for numpy an integer
        return None if np.isnat(value) else str(value)
    if isinstance(value, (int, np.integer)):
        repr(int(value))  # raises where it has more digits than Python writes
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else {"$number": str(float(value))}
    if isinstance(value, (datetime, np.datetime64)):
        return _plain_time(value)
    return _plain_text(str(value))


def _plain_text(text: str) -> str | dict[str, str]:
    return {"$text": escape(text)} if _has_pair(text) else text


def _plain_key(key: Any) -> Any:
    """Return a mapping's key as JSON can carry it."""
    if key is None or isinstance(key, (bool, int)):
        return key
    return escape_key(str.__str__(key) if isinstance(key, str) else str(key))


def escape_key(key: str) -> str:
    """Return a mapping's key that cannot pass for a tag's, nor its surrogates for one character."""
    if _has_pair(key):
        return f"{_TEXT_KEY}{escape(key)}"
    return f"${key}" if key.startswith("$") else key


def _unescape_key(key: str) -> str:
    if key.startswith(_TEXT_KEY):
        return unescape(key.removeprefix(_TEXT_KEY))
    return key[1:] if key.startswith("$$") else key


def _plain_time(value: datetime | np.datetime64) -> dict[str, str] | str | None:
    """Return a time as a tag."""
    try:
        time = pd.Timestamp(value)
    except (ValueError, OverflowError):
        return str(value)
    if pd.isna(time):
        return None
    name = getattr(time.tz, "key", None) or getattr(time.tz, "zone", None)
    return {"$time": time.isoformat()} | ({"zone": name} if isinstance(name, str) else {})


def decode_cell(text: str | None) -> Any:
    """Return the value of a cell's text; a text that is no JSON stands for itself.

    Examples
    --------
    >>> decode_cell('[{"$number": "inf"}, {"$$number": "inf"}]')
    [inf, {'$number': 'inf'}]
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
        return _revived(value) if '"$' in text else value
    except (ValueError, RecursionError):
        return text


def _revived(value: Any) -> Any:
    """Return a value with its tags made into what they stand for."""
    if isinstance(value, list):
        return [_revived(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if tag == "$number":
        return float(value[tag])
    if tag == "$text":
        return unescape(value[tag])
    if tag == "$time":
        return _revived_time(value[tag], value.get("zone"))
    return {_unescape_key(key): _revived(item) for key, item in value.items()}


def _revived_time(text: str, zone: str | None) -> pd.Timestamp:
    time = pd.Timestamp(text)
    time = time.as_unit("ns" if time.nanosecond else "us")
    try:
        return time if zone is None else time.tz_convert(zone)
    except (KeyError, ValueError):  # this machine does not know the zone; zoneinfo's error is a KeyError
        return time


def encode_cells(column: pd.Series[Any]) -> list[str | None]:
    """Return a column's cells as ASCII JSON text, None where one is missing.

    Examples
    --------
    >>> encode_cells(pd.Series(["a", None])), encode_cells(pd.Series([1.5, np.nan]))
    (['"a"', None], ['1.5', '{"$number": "nan"}'])
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = [*encode_cells(pd.Series(column.cat.categories)), None]  # the code of a missing one is -1
        return [texts[code] for code in column.cat.codes.tolist()]
    values = as_objects(column)
    kinds = set(map(type, values))
    missing = type(None) in kinds
    kinds.discard(type(None))
    if kinds == {str}:
        there = [value for value in values if value is not None] if missing else values
        if all(map(str.isascii, there)) or not any(map(_has_pair, there)):
            return [None if value is None else quoted(value) for value in values] if missing else list(map(quoted, values))
    if kinds == {float} or (kinds == {int} and column.dtype != object):
        return [None if value is None else _NUMBERS.get(text := repr(value), text) for value in values]
    return [None if value is None else encode_cell(value) for value in values]


def _has_pair(text: str) -> bool:
    """Return whether a text has surrogates side by side, which JSON would take for one character."""
    return not text.isascii() and _PAIR.search(text) is not None


def as_objects(column: pd.Series[Any]) -> list[Any]:
    """Return a column's cells as Python objects; None where a cell is missing, but for numpy's numbers and mixed columns, which keep their NaN."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufO":
        return column.tolist()
    if isinstance(column.dtype, pd.StringDtype):
        return list(column.to_numpy(dtype=object, na_value=None))  # type: ignore[call-overload]
    return column.astype(object).where(column.notna(), None).tolist()


def decode_cells(texts: Sequence[str | None]) -> list[Any]:
    """Return the values of many cells; see `decode_cell`.

    Examples
    --------
    >>> decode_cells(['"a"', None, "[1, 2]"])
    ['a', None, [1, 2]]
    """
    whole = f"[{','.join(['null' if text is None else text for text in texts])}]"
    try:
        values: list[Any] = json.loads(whole)
        if len(values) == len(texts):
            if '"$' in whole:
                return [_revived(value) if text is not None and '"$' in text else value for value, text in zip(values, texts, strict=True)]
            return values
    except (ValueError, RecursionError):
        pass
    return [decode_cell(text) for text in texts]


def typed(values: Sequence[Any]) -> pd.Series[Any]:
    """Return values as a column of the dtype that fits them.

    ``bool``, ``int64``, ``float64``, ``string`` or times of one zone; ``boolean`` and ``Int64`` where values are missing; object where they are of
    several kinds. Values that are all missing make a ``string`` column.

    Examples
    --------
    >>> [str(typed(values).dtype) for values in (["a", None], [1, 2], [1, None], [1, 2.5], [True, None], ["a", 1])]
    ['string', 'int64', 'Int64', 'float64', 'boolean', 'object']
    """
    kinds = set(map(type, values))
    missing = type(None) in kinds
    kinds.discard(type(None))
    if float in kinds and kinds <= {float, str} and all(type(value) is not float or math.isnan(value) for value in values) and str in kinds:
        return text_column([value if type(value) is str else None for value in values])
    if kinds <= {str}:
        return text_column(values)
    if kinds == {bool}:
        return pd.Series(values, dtype="boolean" if missing else "bool")
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pd.Series(values, dtype="Int64" if missing else "int64")
    if kinds == {float} or (kinds == {float, int} and all(type(value) is not int or abs(value) <= EXACT for value in values)):
        return pd.Series(values, dtype="float64")
    if kinds == {pd.Timestamp} and (times := _time_column(values)) is not None:
        return times
    return pd.Series(object_array(values), dtype=object)


def _time_column(values: Sequence[Any]) -> pd.Series[Any] | None:
    """Return times as a column of one zone; None where they are of several, or too far apart for nanoseconds."""
    there = [value for value in values if value is not None]
    zone, unit = there[0].tz, "ns" if any(value.nanosecond for value in there) else "us"
    if any(str(value.tz) != str(zone) for value in there):
        return None
    try:
        # numpy's times are in UTC
        times = [np.datetime64("NaT") if value is None else value.as_unit(unit).to_datetime64() for value in values]
    except (ValueError, OverflowError):
        return None
    column: pd.Series[Any] = pd.Series(np.array(times, dtype=f"M8[{unit}]"))
    return column if zone is None else column.dt.tz_localize("UTC").dt.tz_convert(zone)


def object_array(values: Sequence[Any]) -> NDArray[np.object_]:
    """Return an array of objects; lists among them are not taken for dimensions."""
    return np.fromiter(values, dtype=object, count=len(values))


def plain_texts(column: pd.Series[Any]) -> list[str | None]:
    """Return a column's cells as plain texts, escaped; None where one is missing."""
    values = as_objects(column)
    if not set(map(type, values)) <= {str, type(None)}:
        values = [None if is_missing(value) else str(value) for value in values]
    whole = "".join([value for value in values if value is not None])
    if "\\" in whole or "\0" in whole or not (whole.isascii() or _ODD.search(whole) is None):
        return [None if value is None else escape(value) for value in values]
    return values


def plain_column(texts: Iterable[str | None]) -> pd.Series[Any]:
    """Return plain texts, unescaped, as a column."""
    return text_column([unescape(text) if text is not None and "\\" in text else text for text in texts])


def text_column(values: Iterable[str | None]) -> pd.Series[Any]:
    """Return a ``string`` column; one with lone surrogates is kept by Python, since Arrow cannot."""
    texts = list(values)
    if len(set(texts[:1000])) <= FEW:
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        return pd.Series(_strings(list(places)).take(np.array([places[text] for text in texts], dtype=np.intp)))
    return pd.Series(_strings(texts))


def _strings(texts: Sequence[str | None]) -> Any:
    """Return an array of strings."""
    try:
        return pd.array(texts, dtype="string")
    except UnicodeEncodeError:
        return pd.array(texts, dtype=TEXT)
