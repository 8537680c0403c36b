"""What the figures share: colours, escaped labels, groups of rows, titles."""

from __future__ import annotations

import html
import textwrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.summary import Groups, column_labels, pick

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#b04e8a")
"""Okabe and Ito's colours, told apart with any colour vision (the last a little darker, for thin lines on white)."""

DASHES: Final = ("solid", "dash", "dot", "dashdot")
INK: Final = "#24292f"
FAINT: Final = "#5b6470"
GRID: Final = "#e4e7eb"
BAR: Final = "#44688f"
FONT: Final = "Inter, 'Helvetica Neue', Arial, 'Noto Sans', 'Noto Sans CJK JP', sans-serif"
LABEL_CHARACTERS: Final = 48
MARGIN_BOTTOM: Final = 60
LEGEND_LINE: Final = 22
LINE_CHARACTERS, TITLE_CHARACTERS = 46, 34
"""What a line holds on a screen 420 pixels wide."""

LEAST_WIDTH: Final = "scorekit_least_width"
"""The key in a figure's ``layout.meta`` under which a page finds how wide it must be at least."""


class Group(NamedTuple):
    """Rows drawn together: their label (escaped) and their positions."""

    label: str
    positions: NDArray[np.intp]


def escaped(value: object, most: int = LABEL_CHARACTERS) -> str:
    """Return a value as plain text for a plotly label: one line, shortened, nothing in it read as HTML or TeX.

    Examples
    --------
    >>> escaped("<b>a & b</b>")
    '&lt;b&gt;a &amp; b&lt;/b&gt;'
    """
    text = " ".join(str(value).split())
    text = text if len(text) <= most else text[: most - 1] + "…"
    # plotly hands a label with two dollar signs to MathJax where a notebook has loaded it.
    return html.escape(text, quote=False).replace("$", "&#36;")


def faint(text: str, size: int = 12) -> str:
    """Return an escaped text in the colour of what is read second."""
    return f'<span style="color:{FAINT};font-size:{size}px">{text}</span>'


def option_columns(df: pd.DataFrame, given: object, who: str, keyword: str) -> list[pd.Series[Any]]:
    """Return the columns that ``by`` or ``label`` names."""
    return [pick(df, label, who, keyword) for label in column_labels(df, given)]


def labels_at(columns: Sequence[pd.Series[Any]], rows: NDArray[np.intp]) -> list[str]:
    """Return the label of each of some rows, made of its cells in ``columns``; empty ones without columns."""
    if not columns:
        return [""] * len(rows)
    # A Series would give Python's floats, in which a float32 of 0.1 reads 0.10000000149011612; its array gives its own.
    cells = zip(*(column.iloc[rows].array for column in columns), strict=True)
    return [" · ".join(map(cell_label, row)) for row in cells]


def largest(groups: Groups, columns: Sequence[pd.Series[Any]], most: int) -> list[Group]:
    """Return the largest groups, in their order, with the labels that ``columns`` give them."""
    sizes = np.bincount(groups.codes, minlength=groups.total)
    kept = np.sort(np.argsort(-sizes, kind="stable")[:most])
    order, ends = np.argsort(groups.codes, kind="stable"), np.cumsum(sizes)
    labels = labels_at(columns, groups.first[kept])
    return [Group(label, order[ends[i] - sizes[i] : ends[i]]) for label, i in zip(labels, kept, strict=True)]


def cell_label(value: Any) -> str:
    """Return one cell as a label."""
    return "(missing)" if pd.api.types.is_scalar(value) and pd.isna(value) else escaped(value) or "(empty)"


def joined_names(labels: Iterable[Hashable]) -> str:
    """Return the names of the grouping columns as a label."""
    return ", ".join(map(escaped, labels))


def wrapped(text: str, characters: int = LINE_CHARACTERS) -> list[str]:
    """Return an escaped text without tags in lines that a narrow screen has room for."""
    return textwrap.wrap(text, characters, break_long_words=False, break_on_hyphens=False)


def in_lines(texts: Sequence[str], characters: int = LINE_CHARACTERS) -> list[list[int]]:
    """Return which of some short texts share a line on a narrow screen.

    Examples
    --------
    >>> in_lines(["a" * 30, "b" * 30, "c"])
    [[0], [1, 2]]
    """
    lines: list[list[int]] = []
    room = 0
    for i, text in enumerate(texts):
        width = len(html.unescape(text)) + 4
        if not lines or width > room:
            lines.append([])
            room = characters + 4
        lines[-1].append(i)
        room -= width
    return lines


def finish(
    figure: go.Figure, title: str, subtitle: str, *, inside: int, above: int, legend: int = 0, bottom: int = MARGIN_BOTTOM, least: int = 0
) -> None:
    """Give a figure its title, its height and its common looks; its width is that of the page it stands in.

    Parameters
    ----------
    figure
        The figure; changed.
    title, subtitle
        Escaped texts without tags; the subtitle is broken into lines that a narrow screen has room for.
    inside, above, bottom
        Height of the panels together, of what is written between the title and the first panel, and of what is under the last, in pixels.
    legend
        How many lines the legend needs on a narrow screen.
    least
        Below this width, in pixels, the figure cannot be read: a page that has less scrolls it sideways.
    """
    lines = [*wrapped(title, TITLE_CHARACTERS)]
    under = wrapped(subtitle)
    # The buttons that plotly shows while the pointer is over a figure take the first 32 pixels.
    head = 36 + 18 * (len(lines) + len(under))
    top = head + LEGEND_LINE * legend + above
    height = top + inside + bottom
    text = "<br>".join([*(f'<span style="font-size:18px"><b>{line}</b></span>' for line in lines), *(faint(line, 13) for line in under)])
    figure.update_layout(
        template="plotly_white",
        font={"family": FONT, "color": INK, "size": 12},
        title={"text": text, "x": 0, "xref": "container", "pad": {"l": 8}, "font": {"size": 14}, **_from_top(40, height)},
        height=height,
        autosize=True,
        margin={"l": 56, "r": 40, "t": top, "b": bottom},
        legend={"orientation": "h", "x": 0, "xref": "container", "xanchor": "left", "font": {"size": 13}, **_from_top(head, height)},
        hoverlabel={"namelength": -1},
        meta={LEAST_WIDTH: least},
    )


def _from_top(pixels: int, height: int) -> dict[str, Any]:
    """Return a place so many pixels below a figure's upper edge."""
    return {"y": 1 - pixels / height, "yref": "container", "yanchor": "top"}
