"""What the figures share: colours, escaped labels, groups of rows, titles."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pandas as pd

from scorekit.analysis.summary import group_rows
from scorekit.columns import require

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
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


def row_groups(df: pd.DataFrame, by: str | Sequence[str] | None, who: str) -> list[Group]:
    """Return the groups of rows with their labels; all rows as one group without ``by``."""
    keys = [] if by is None else [by] if isinstance(by, str) else list(by)
    columns = [require(df, key, who, "by") for key in keys]
    return [
        Group(" · ".join(cell_label(column.iloc[positions[0]]) for column in columns), positions)
        for positions in group_rows(columns, len(df))
    ]


def cell_label(value: Any) -> str:
    """Return one cell as a label."""
    return "(missing)" if pd.api.types.is_scalar(value) and pd.isna(value) else escaped(value) or "(empty)"


def largest(groups: list[Group], most: int) -> list[Group]:
    """Return the largest groups, in their order."""
    kept = sorted(range(len(groups)), key=lambda i: (-len(groups[i].positions), i))[:most]
    return [groups[i] for i in sorted(kept)]


def joined_names(by: str | Sequence[str]) -> str:
    """Return the names of the grouping columns as a label."""
    return escaped(by) if isinstance(by, str) else ", ".join(escaped(key) for key in by)


def finish(figure: go.Figure, title: str, subtitle: str, *, inside: int, top: int, bottom: int = MARGIN_BOTTOM) -> None:
    """Give a figure its title (escaped already), its height around ``inside`` pixels of panels, and its common looks."""
    height = top + inside + bottom
    text = f"<b>{title}</b><br>{faint(subtitle, 13)}"
    edge = {"y": 1 - 24 / height, "yref": "container", "yanchor": "top"}
    figure.update_layout(
        template="plotly_white",
        font={"family": FONT, "color": INK, "size": 12},
        title={"text": text, "x": 0, "xref": "paper", "font": {"size": 19}, **edge},
        height=height,
        margin={"l": 64, "r": 44, "t": top, "b": bottom},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "font": {"size": 13}, **edge},
        hoverlabel={"namelength": -1},
    )
