"""The keys of a stored result: which run and row it is of, where it comes from, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.columns import require
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError, shown
from scorekit.monitor.cells import encode_cell, escape, plain_texts, unescape

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEYS: Final = ("run", "row", "source", "entity_type", "entity_id", "trace_id", "created_at")
"""The columns of a stored frame that say which row it is, and where it comes from."""
NEEDED: Final = ("run", "row", "source")
SOURCES: Final = ("LIVE", "TEST")
LONGEST: Final = 512
"""Characters of what the database finds rows by: its indexes have limits."""

Keys = dict[str, Sequence[str | None]]
"""The key columns as the table has them."""


def read_keys(df: pd.DataFrame, given: Mapping[str, Any] | None = None) -> Keys:
    """Return the keys that a frame has in its columns, as one that was read does; what is given stands for a column.

    Raises
    ------
    MissingColumnError, ArgumentTypeError, OptionRangeError, UnknownOptionError
        When a column is missing, or a cell is no key.
    """
    given = given or {}
    keys: Keys = {name: plain_texts(require(df, name, "The store")) for name in KEYS[:-1] if name not in given}
    for name in set(NEEDED) & set(keys):
        if None in keys[name]:
            msg = f"The column {name!r} must have a text in each row that is to be stored; row {keys[name].index(None)} (counted from 0) has none."
            raise ArgumentTypeError(msg)
    if "created_at" not in given:
        keys["created_at"] = stamps(require(df, "created_at", "The store"))
    return _checked(keys | {name: [value] * len(df) for name, value in _given(given).items()})


def make_keys(df: pd.DataFrame, given: Mapping[str, Any]) -> Keys:
    """Return the keys of a user's frame: the labels of its index name the rows, the rest is given."""
    keys: Keys = {name: [value] * len(df) for name, value in _given(given).items()}
    return _checked({**keys, "row": labels(df.index)})


def _given(given: Mapping[str, Any]) -> dict[str, str | None]:
    """Return what was given for all rows, as the table has it."""
    for name, value in given.items():
        if name != "created_at" and not (isinstance(value, str) or (value is None and name not in NEEDED)):
            raise ArgumentTypeError.from_value(f"{name}=", value, "a text", "Such as run='v2'." if name == "run" else "")
        if name in NEEDED and value == "":
            raise OptionRangeError.from_value(name, value, "a text that is not empty")
    texts = {name: None if value is None else escape(value) for name, value in given.items() if name != "created_at"}
    return texts | ({"created_at": stamp(given["created_at"], "created_at")} if "created_at" in given else {})


def _checked(keys: Keys) -> Keys:
    """Return keys that the table can have, in its order, or raise."""
    for name in ("run", "entity_type", "entity_id", "trace_id"):
        for text in set(keys[name]):
            if text is not None and len(text) > LONGEST and len(unescape(text)) > LONGEST:
                raise OptionRangeError.from_value(name, shown(text), f"at most {LONGEST} characters")
    for source in set(keys["source"]) - set(SOURCES):
        raise UnknownOptionError.from_value("source", source, SOURCES)
    return {name: keys[name] for name in KEYS}


def labels(index: pd.Index[Any]) -> list[str]:
    """Return the labels of an index as texts that differ: one that is there already gets a number.

    Examples
    --------
    >>> labels(pd.Index(["a", "a", 5])), labels(pd.MultiIndex.from_tuples([("x", 1)]))
    (['a', 'a#2', '5'], ['["x", 1]'])
    """
    if isinstance(index, pd.MultiIndex):
        texts = [str(encode_cell(label)) for label in index.tolist()]
    else:
        texts = [escape(str(label)) for label in index.tolist()]
    taken = set(texts)
    if len(taken) == len(texts):
        return texts
    seen: dict[str, int] = {}
    found = []
    for text in texts:
        number = seen[text] = seen.get(text, 0) + 1
        name = text
        while number > 1 and (name := f"{text}#{number}") in taken:
            number = seen[text] = number + 1
        taken.add(name)
        found.append(name)
    return found


def stamp(value: Any, name: str) -> str:
    """Return one time as the table keeps it: ISO text in UTC, to the microsecond, that sorts; None is now, a time without a zone is UTC.

    Examples
    --------
    >>> stamp("2026-01-02T03:04:05+01:00", "since")
    '2026-01-02T02:04:05.000000Z'
    """
    if value is None:
        value = datetime.now(UTC)
    if not isinstance(value, (str, date, np.datetime64)):
        raise ArgumentTypeError.from_value(name, value, "a datetime or an ISO text such as '2026-01-31'")
    try:
        time = _as_datetime(value)
        utc = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        msg = f"{name} must be a datetime or an ISO text such as '2026-01-31T12:00+01:00', of the years 1 to 9999; it is {shown(value)}."
        raise ArgumentTypeError(msg) from error
    return f"{utc.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _as_datetime(value: Any) -> datetime:
    """Return Python's datetime of a time."""
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if pd.isna(value):
        raise ValueError("a time is missing")
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime(warn=False)
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)


def stamps(values: pd.Series[Any]) -> list[str]:
    """Return the times of a column as the table keeps them."""
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        return [stamp(value, str(values.name)) for value in values.tolist()]
    utc = values.dt.tz_convert(None) if isinstance(values.dtype, pd.DatetimeTZDtype) else values
    found = utc.to_numpy().astype("datetime64[us]")
    if not ((found >= _FIRST) & (found < _LAST)).all():  # NaT is neither
        msg = f"{values.name} must have a time of the years 1 to 9999 in each row."
        raise ArgumentTypeError(msg)
    return [f"{text}Z" for text in np.datetime_as_string(found, unit="us").tolist()]


_FIRST: Final = np.datetime64("0001-01-01")
_LAST: Final = np.datetime64("10000-01-01")


def times(values: Sequence[Any]) -> NDArray[np.datetime64]:
    """Return times of the table, ISO texts or microseconds since 1970, as an array."""
    if values and isinstance(values[0], str):
        return np.array([value[:-1] for value in values], dtype="datetime64[us]")
    return np.array(values, dtype=np.int64).view("datetime64[us]")


def as_column(values: NDArray[np.datetime64]) -> pd.Series[Any]:
    """Return times as a column in UTC."""
    column: pd.Series[Any] = pd.Series(values).dt.tz_localize("UTC")
    return column
