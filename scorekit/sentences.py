"""Texts to statements: the pieces that a text is made of, each copied from it unchanged.

Two layers. Blocks first: fenced code, a table, a traceback, a heading and a list item each stay whole. Then sentences: whatever prose is
left goes through ``sentencex``, with a few repairs at the seams it finds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import sentencex

from scorekit.languages import guess_language
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    import pandas as pd

WINDOW_CHARACTERS: Final = 2_000
"""How much prose sentencex gets at once: where a script has no spaces its time grows with the square of the length."""

WRAP_COLUMNS: Final = 60
"""A line at least this long, without a final mark, is taken to go on in the next one (hard-wrapped prose)."""

_LINE = re.compile(r"[^\r\n\u2028\u2029]*(?:\r\n|[\r\n\u2028\u2029]|\Z)")
_CONTENT = re.compile(r"[^\W_]")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\r\n]*)")
_HEADING = re.compile(r"[ \t>]*(?:#{1,6}[ \t]|(\*\*|__)[^*_]+\1:?\s*\Z)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*\Z")
_ITEM = re.compile(
    r"[ \t>]*(?:(?:[-*+–]|\(?\d{1,3}[.)]|\(?[A-Za-z]\))[ \t\u3000]+|(?:[•‣◦\u00b7\u30fb①-⑳]|\d{1,3}[．、）])[ \t\u3000]*)(?=\S)"
)
_NEXT_ITEM_INSIDE = re.compile(r"[.!?:;][ \t]+\d{1,3}[.)][ \t]")
_TABLE_RULE = re.compile(r"[ \t>]*+\|?\s*+:?-++:?\s*+(?:\|\s*+:?-++:?\s*+)*+\|?\s*\Z")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\)")
_ERROR = re.compile(r"\s*(?:[\w.]{0,60}(?:Error|Exception)|ERROR|FATAL|Fatal error)\b[^.:\n]{0,40}:")
_UNBROKEN = re.compile(r"(?:https?://|www\.)[^\s<>「」、。）]+|`[^`\n]+`|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]+")
_CLOSING = re.compile(r"(?:\*{1,3}|_{1,3}|[\"'”’»)\]」』）】]+)(?=\s|\Z)")
_NUMBER_ONLY = re.compile(r"[\s(*_]*(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)][\s*_]*\Z")
_OPEN_END = re.compile(r"[^\s.!?…:;。！？：।؟۔]\s*\Z")
_FIRST = re.compile(r"\s*(\S?)")


def split_sentences(texts: pd.Series[str]) -> list[list[str]]:
    r"""Return each text's sentences and blocks, in order, each an unchanged piece of the text without white space around it.

    Fenced code, a table, a traceback or error line, a heading and a list item stay whole, and so do URLs, e-mail addresses and inline
    code. A number such as "1." stays with its item. A piece without any letter or digit is dropped.

    Parameters
    ----------
    texts
        Texts without missing values; any markup or language.

    Returns
    -------
    list of list of str
        One list a text.

    Examples
    --------
    >>> import pandas as pd
    >>> split_sentences(pd.Series(["Boil water, e.g. in a pot. Add salt!", "- one. two\n- three", "富士山です。高い！", "***"]))
    [['Boil water, e.g. in a pot.', 'Add salt!'], ['- one. two', '- three'], ['富士山です。', '高い！'], []]
    """
    return [_split(text) for text in texts.tolist()]


def _split(text: str) -> list[str]:
    # a lone surrogate and its stand-in are one character each, so places found in one text hold in the other
    clean = without_surrogates(text)
    language = guess_language(clean)
    pieces = []
    for start, end, is_prose in _blocks(clean):
        cuts = _cuts(clean[start:end], language) if is_prose else [0, end - start]
        pieces += [text[start + a : start + b].strip() for a, b in pairwise(cuts) if _CONTENT.search(clean, start + a, start + b)]
    return pieces


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield (start, end, is prose) of each block; together they are the whole text."""
    ends = [found.end() for found in _LINE.finditer(text) if found.group()]
    lines = [text[start:end] for start, end in pairwise([0, *ends])]
    at = 0
    while at < len(lines):
        start = ends[at - 1] if at else 0
        last, is_prose = _block_end(lines, at)
        yield start, ends[last], is_prose
        at = last + 1


def _block_end(lines: list[str], at: int) -> tuple[int, bool]:
    """Return the last line of the block that begins at a line, and whether the block is prose."""
    kind = _kind(lines, at)
    if kind == "fence":
        return _end_of_fence(lines, at), False
    if kind == "traceback":
        return _last_while(lines, at, lambda later: bool(lines[later].strip())), False
    if kind == "table":
        return _last_while(lines, at, lambda later: "|" in lines[later]), False
    if kind == "item":
        last = _last_while(lines, at, lambda later: lines[later][:1] in (" ", "\t") and _kind(lines, later) == "prose")
        return last, any(_NEXT_ITEM_INSIDE.search(lines[number]) for number in range(at, last + 1))
    if kind == "prose":
        return _last_while(lines, at, lambda later: _kind(lines, later) == "prose"), True
    return at, False


def _kind(lines: list[str], at: int) -> str:
    """Say what a line begins: fence, traceback, table, heading, error, item, prose or blank."""
    line = lines[at]
    after = lines[at + 1] if at + 1 < len(lines) else ""
    if not line.strip():
        return "blank"
    if (fence := _FENCE.match(line)) and not (fence[1][0] == "`" and "`" in fence[2]):
        return "fence"
    if _TRACEBACK.match(line):
        return "traceback"
    if "|" in line and "|" in after and _TABLE_RULE.match(after):
        return "table"
    if _HEADING.match(line) or (_UNDERLINE.match(after) and _OPEN_END.search(line)):
        return "heading"
    if _ERROR.match(line):
        return "error"
    return "item" if _ITEM.match(line) else "prose"


def _last_while(lines: list[str], at: int, goes_on: Callable[[int], bool]) -> int:
    """Return the last of the lines from ``at`` on that belong together."""
    later = at + 1
    while later < len(lines) and goes_on(later):
        later += 1
    return later - 1


def _end_of_fence(lines: list[str], at: int) -> int:
    """Return the line that closes a fence, or the last line where none does."""
    opening = _FENCE.match(lines[at])
    mark = opening[1] if opening else ""
    for later in range(at + 1, len(lines)):
        closing = _FENCE.match(lines[later])
        if closing and closing[1].startswith(mark) and not closing[2].strip():
            return later
    return len(lines) - 1


def _cuts(prose: str, language: str) -> list[int]:
    """Return where to cut prose into sentences: ascending places, 0 and the length among them."""
    unbroken = [found.span() for found in _UNBROKEN.finditer(prose)]
    starts = [start for start, _ in unbroken]
    cuts = [0]
    for place in sorted({*_sentence_ends(prose, language), *_line_ends(prose)}):
        before = bisect_left(starts, place) - 1  # the last that begins left of the place
        if before >= 0 and place < unbroken[before][1]:
            continue
        closing = _CLOSING.match(prose, place)
        end = closing.end() if closing else place
        inside_quote = prose[end - 1] in "」』" and prose[end : end + 1].strip() != ""
        if cuts[-1] < end < len(prose) and not inside_quote and not _NUMBER_ONLY.match(prose[cuts[-1] : end]):
            cuts.append(end)
    return [*cuts, len(prose)]


def _sentence_ends(prose: str, language: str) -> Iterator[int]:
    """Yield where sentencex ends a sentence, asked about one window of the prose after the other."""
    start = 0
    while start < len(prose):
        window = prose[start : start + WINDOW_CHARACTERS]
        goes_on = start + len(window) < len(prose)
        pieces = sentencex.segment(language, window)
        if goes_on and len(pieces) > 1:
            pieces.pop()  # the window may cut it short; it opens the next window
        elif goes_on and (space := window.rfind(" ")) > 0:
            pieces = [window[: space + 1]]
        for piece in pieces:
            start += len(piece)
            yield start


def _line_ends(prose: str) -> Iterator[int]:
    """Yield where a line of prose ends a sentence: unless it looks hard-wrapped."""
    ends = [found.end() for found in _LINE.finditer(prose) if found.group()]
    for start, end in pairwise([0, *ends]):
        after = _FIRST.match(prose, end)
        goes_on = end - start >= WRAP_COLUMNS or (after is not None and after[1].islower())
        if not (goes_on and _OPEN_END.search(prose, start, end)):
            yield end
