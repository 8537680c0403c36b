"""Rows of text for a terminal: each on one line, aligned, and without the characters that a terminal would obey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

TEXT_CHARACTERS: Final = 300
"""Answers need more room here than ``errors.shown`` leaves them in a message."""


def printable(value: object) -> str:
    r"""Return a text on one line, without the control characters that a terminal would obey.

    Examples
    --------
    >>> printable("two\nlines \x1b[2J")
    'two lines [2J'
    """
    return "".join(c for c in " ".join(str(value).split()) if c.isprintable())


def one_line(value: object, most: int = TEXT_CHARACTERS) -> str:
    """Return a row's text on one line, of at most so many characters.

    Examples
    --------
    >>> one_line("a  long text", 6)
    'a lon…'
    """
    text = printable(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def aligned(names: Sequence[object], rows: Iterable[Sequence[object]], right: Collection[str] = ()) -> str:
    """Return a table as lines of text, the columns of ``right`` flush right.

    Examples
    --------
    >>> print(aligned(["score", "n"], [["tone", 12], ["relevancy", 3]], right={"n"}))
    score       n
    tone       12
    relevancy   3
    """
    cells = [[one_line(cell) for cell in row] for row in (names, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = [">" if name in right else "<" for name in names]
    return "\n".join(
        "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)).rstrip() for row in cells
    )


def apart(number: float, bound: float) -> str:
    """Return a number with three decimals, or with as many as tell it from a bound.

    Examples
    --------
    >>> apart(0.5, 0.7), apart(0.69996, 0.7)
    ('0.500', '0.69996')
    """
    texts = (f"{number:.{digits}f}" for digits in range(3, 12))
    return next((text for text in texts if float(text) != bound), repr(number))
