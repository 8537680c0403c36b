"""Cells to text: which cells hold text, what a list of messages says, and which script a text is written in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXT = pd.StringDtype("python")
"""The dtype of texts inside a run: unlike pyarrow's strings it carries lone surrogates."""

Side = Literal["input", "output"]
"""Which message of a conversation a cell stands for: the first of the user, or the last of the assistant with text."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_LATIN = re.compile(r"[A-Za-zªºÀ-ÖØ-öø-ɏḀ-ỿⱠ-ⱿＡ-Ｚａ-ｚ]")
_LETTER = re.compile(r"[^\W\d_]")


class Cells(NamedTuple):
    """A column read as text.

    Attributes
    ----------
    texts
        ``string`` dtype, on a fresh index; NA where there is an error.
    errors
        One error code a row, or None: ``missing_input``, ``not_text`` or ``not_scorable``. Object array.
    reasons
        Why, for people, or None. Object array.
    """

    texts: pd.Series[str]
    errors: NDArray[np.object_]
    reasons: NDArray[np.object_]


def read_texts(column: pd.Series[Any], name: str, side: Side = "output") -> Cells:
    """Read a column's cells as text.

    A string is text, the empty one too, except that the JSON of a list of messages is read like the list. None, NaN, NaT and ``pd.NA`` are
    missing. A list of messages gives the first user message (``side="input"``) or the last assistant message with text
    (``side="output"``). Anything else is not text.

    Parameters
    ----------
    column
        Any dtype; not changed.
    name
        How messages for people call the column.
    side
        Which message of a conversation counts.

    Returns
    -------
    Cells
        As long as the column, in its order.

    Examples
    --------
    >>> cells = read_texts(pd.Series(["a", None, 5, [{"role": "assistant", "content": "b"}]]), "output")
    >>> cells.texts.tolist()
    ['a', <NA>, <NA>, 'b']
    >>> cells.errors.tolist()
    [None, 'missing_input', 'not_text', None]
    """
    values = column.astype(object).to_numpy(dtype=object)
    errors: NDArray[np.object_] = np.full(len(values), None, dtype=object)
    reasons = errors.copy()
    kind = pd.api.types.infer_dtype(values, skipna=True)
    if kind in ("string", "empty"):
        missing = pd.isna(values)
        plain = values.copy()
        plain[missing] = None
        for i in np.flatnonzero([type(text) is not str and text is not None for text in plain]):
            plain[i] = str.__str__(plain[i])  # a member of an enumeration of texts stands for its value
        if missing.any():
            errors[missing], reasons[missing] = "missing_input", f"The {name} is missing."
        odd = np.flatnonzero([text is not None and '"role"' in text for text in plain])
    else:
        plain, odd = values.copy(), np.flatnonzero([type(value) is not str or '"role"' in value for value in values])
    for i in odd:
        plain[i], errors[i], reasons[i] = _read_cell(values[i], name, side)
    return Cells(pd.Series(plain, dtype=TEXT), errors, reasons)


def _read_cell(value: Any, name: str, side: Side) -> tuple[str | None, str | None, str | None]:
    """Return a cell's text, or None with an error code and why."""
    if isinstance(value, str):
        messages = _messages_in_json(value)
        if messages is None:
            return str.__str__(value), None, None
        value = messages
    if is_missing(value):
        return None, "missing_input", f"The {name} is missing."
    messages = as_messages(value)
    if messages is None:
        return None, "not_text", f"The {name} is not text but {_described(value)}."
    if not messages:
        return None, "not_scorable", f"The {name} is an empty list of messages."
    text = message_text(messages, side)
    if text is None:
        who = "user" if side == "input" else "assistant"
        hint = f" (a column whose name ends in 'input' reads the user's message, {name!r} the assistant's)" if side == "output" else ""
        count = f"{len(messages)} message{'' if len(messages) == 1 else 's'}"
        return None, "not_scorable", f"The {name} holds {count}, but none of the {who} with text{hint}."
    return text, None, None


def read_contexts(column: pd.Series[Any], name: str) -> Cells:
    """Read a column's cells as lists of pieces of context.

    A text is one piece, except that the JSON of a list is read like the list. A list, tuple or array holds texts, or mappings with a text under
    ``text``, ``content`` or ``page_content``. No piece at all is ``not_scorable``.

    Returns
    -------
    Cells
        Its ``texts`` is an object column of lists of str.

    Examples
    --------
    >>> cells = read_contexts(pd.Series(["One.", ["One.", {"text": "Two."}], '["One.", "Two."]', []]), "context")
    >>> cells.texts.tolist()
    [['One.'], ['One.', 'Two.'], ['One.', 'Two.'], None]
    >>> cells.errors.tolist()
    [None, None, None, 'not_scorable']
    """
    values = column.astype(object).to_numpy(dtype=object)
    pieces, errors, reasons = (np.full(len(values), None, dtype=object) for _ in range(3))
    for i, value in enumerate(values):
        pieces[i], errors[i], reasons[i] = _read_pieces(value, name)
    return Cells(pd.Series(pieces, dtype=object), errors, reasons)


def _read_pieces(value: Any, name: str) -> tuple[list[str] | None, str | None, str | None]:
    """Return a cell's pieces of context, or None with an error code and why."""
    if is_missing(value):
        return None, "missing_input", f"The {name} is missing."
    if isinstance(value, str):
        found = _list_in_json(value)
        value = [value] if found is None else found
    if isinstance(value, np.ndarray) and value.ndim:
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        return None, "not_text", f"The {name} is neither text nor a list of texts but {_described(value)}."
    pieces = [_piece_text(piece) for piece in value]
    odd = next((piece for piece, text in zip(value, pieces, strict=True) if text is None), None)
    if None in pieces:
        return None, "not_text", f"The {name} holds a piece that is not text but {_described(odd)}."
    if not pieces:
        return None, "not_scorable", f"The {name} is an empty list."
    return [piece for piece in pieces if piece is not None], None, None


def _piece_text(piece: object) -> str | None:
    """Return the text of one piece of context, or None."""
    if isinstance(piece, Mapping):
        piece = next((piece[key] for key in ("text", "content", "page_content") if key in piece), None)
    return str.__str__(piece) if isinstance(piece, str) else None


def _list_in_json(text: str) -> list[Any] | None:
    """Return the list of texts or mappings that a text spells in JSON, or None where it is any other text."""
    stripped = text.strip()
    if not (stripped[:1] == "[" and stripped[-1:] == "]"):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return value if all(isinstance(piece, (str, Mapping)) for piece in value) else None


def is_missing(value: object) -> bool:
    """Return whether a cell is None, NaN, NaT or ``pd.NA``; never asks a list or an array for its truth."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    if isinstance(value, (float, complex, Decimal, np.floating, np.complexfloating, np.datetime64, np.timedelta64)):
        return bool(value != value)  # noqa: PLR0124  (NaN and NaT alone differ from themselves)
    return False


ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
"""The roles of chat messages; a mapping with another ``role`` is some other record."""


def as_messages(value: object) -> list[Mapping[str, Any]] | None:
    """Return a cell's messages, or None where it holds none: a list, tuple or array of mappings with a role, or one such mapping."""
    if isinstance(value, Mapping):
        value = [value]
    if isinstance(value, np.ndarray) and value.ndim:
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)) or not all(map(_is_message, value)):
        return None
    return list(value)


def _is_message(value: object) -> bool:
    """Return whether a value is a chat message: a mapping with one of the roles, and something said."""
    said = isinstance(value, Mapping) and any(key in value for key in ("content", "parts", "tool_calls"))
    return said and isinstance(value, Mapping) and isinstance(value.get("role"), str) and value["role"] in ROLES


def message_text(messages: Sequence[Mapping[str, Any]], side: Side) -> str | None:
    """Return the text of the first user message (``input``) or of the last assistant message with text (``output``), or None.

    An assistant message whose content is an empty string counts as text where no other holds any.
    """
    who = "user" if side == "input" else "assistant"
    texts = [text for message in messages if message["role"] == who and (text := _content_text(message)) is not None]
    filled = [text for text in texts if text.strip()]
    found = filled or texts
    if not found:
        return None
    return found[0] if side == "input" else found[-1]


def _content_text(message: Mapping[str, Any]) -> str | None:
    """Return a message's text: its content, or the text parts of its content or ``parts``; None where it holds none."""
    candidates = [message.get("content"), message.get("parts")]
    content = message.get("content")
    if isinstance(content, Mapping):
        candidates += [content.get("content"), content.get("parts")]
    texts = [text for candidate in candidates if (text := _part_text(candidate)) is not None]
    return next((text for text in texts if text.strip()), texts[0] if texts else None)


def _part_text(content: object) -> str | None:
    """Return the text of a content: a string, or the joined texts of a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, np.ndarray) and content.ndim:
        content = content.tolist()
    if isinstance(content, Sequence) and not isinstance(content, bytes):
        texts = [part if isinstance(part, str) else part.get("text") for part in content if isinstance(part, (str, Mapping))]
        found = [text for text in texts if isinstance(text, str)]
        return "\n".join(found) if found else None
    return None


def _messages_in_json(text: str) -> list[Mapping[str, Any]] | None:
    """Return the list of messages that a text spells in JSON, or None where it is any other text."""
    stripped = text.strip()
    if not (stripped[:1] == "[" and stripped[-1:] == "]" and '"role"' in stripped):
        return None
    try:
        return as_messages(json.loads(stripped)) or None
    except (ValueError, RecursionError):
        return None


def _described(value: object) -> str:
    """Name a cell's kind in words a person knows."""
    if isinstance(value, Mapping):
        return f"a mapping with the keys {sorted(map(str, value))[:5]}"
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim):
        return f"a {type(value).__name__} of {len(value)} item{'' if len(value) == 1 else 's'} that are no chat messages"
    article = "an" if type(value).__name__[:1] in "aeiou" else "a"
    return f"{article} {type(value).__name__}"


def without_surrogates(text: str) -> str:
    r"""Return the text with each lone surrogate, which no encoding can carry, replaced by U+FFFD.

    Examples
    --------
    >>> without_surrogates("a\ud800b")
    'a\ufffdb'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def latin_share(texts: pd.Series[str]) -> NDArray[np.float64]:
    """Return the share of each text's letters that are of the Latin script, 0 to 1; NaN where it has no letters.

    Examples
    --------
    >>> latin_share(pd.Series(["Hello", "こんにちは", "42"], dtype="string")).tolist()
    [1.0, 0.0, nan]
    """
    shares = np.full(len(texts), np.nan)
    for i, text in enumerate(texts.tolist()):
        if text.isascii():
            shares[i] = 1.0 if any(map(str.isalpha, text)) else np.nan
        elif letters := len(_LETTER.findall(text)):
            shares[i] = len(_LATIN.findall(text)) / letters
    return shares
