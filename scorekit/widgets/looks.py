"""What the figures share: colours, escaped labels, groups of rows, titles."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from scorekit.analysis.summary import group_rows
from scorekit.columns import require

if TYPE_CHECKING:
    import numpy as np
    import plotly.graph_objects as go
    from numpy.typing import NDArray

PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#b04e8a")
"""Okabe and Ito's colours, told apart with any colour vision (the last a little darker, for thin lines on white)."""
DASHES: Final = ("solid", "dash", "dot", "dashdot")
INK, FAINT, GRID = "#24292f", "#5b6470", "#e4e7eb"
BAR, OUTSIDE = "#44688f", "#b3541e"
WORST, MIDDLE, BEST = (0xFB, 0xE6, 0xD8), (0xF5, 0xF4, 0xEC), (0xDB, 0xEA, 0xF4)
FONT: Final = "Inter, 'Helvetica Neue', Arial, 'Noto Sans', 'Noto Sans CJK JP', sans-serif"
LABEL_CHARACTERS: Final = 48


class _Group(NamedTuple):
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


def _groups(df: pd.DataFrame, by: str | Sequence[str] | None, who: str) -> list[_Group]:
    """Return the groups of rows with their labels."""
    keys = [] if by is None else [by] if isinstance(by, str) else list(by)
    columns = [require(df, key, who, "by") for key in keys]
    found = group_rows(columns, len(df))
    return [_Group(" · ".join(_cell(column.iloc[positions[0]]) for column in columns), positions) for positions in found]


def _cell(value: object) -> str:
    """Return one cell of a group's key as a label."""
    return "(missing)" if pd.api.types.is_scalar(value) and pd.isna(value) else escaped(value) or "(empty)"


def _largest(groups: list[_Group], most: int) -> list[_Group]:
    """Return the largest groups, in their order."""
    if len(groups) <= most:
        return groups
    kept = sorted(range(len(groups)), key=lambda i: (-len(groups[i].positions), i))[:most]
    return [groups[i] for i in sorted(kept)]


def _joined_names(by: str | Sequence[str]) -> str:
    """Return the names of the grouping columns as a label."""
    return escaped(by) if isinstance(by, str) else ", ".join(escaped(key) for key in by)


def _tint(share: float) -> str:
    """Return the shade of a band: 0 the worst, 1 the best."""
    low, high, part = (WORST, MIDDLE, share * 2) if share <= 0.5 else (MIDDLE, BEST, share * 2 - 1)
    return "rgb({:.0f},{:.0f},{:.0f})".format(*(a + (b - a) * part for a, b in zip(low, high, strict=True)))


def _faded(color: str) -> str:
    """Return a colour that lets what lies behind it shine through."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.10)"


def _number(value: float, scale: float) -> str:
    """Return a score with as many digits as its scale needs."""
    return "none" if np.isnan(value) else f"{value:.2f}" if scale <= 10 else f"{value:.1f}"


MARGIN_TOP, MARGIN_BOTTOM = 132, 60


def _finish(figure: go.Figure, title: str, subtitle: str, height: int) -> None:
    """Give a figure its title and its common looks."""
    text = f'<b>{title}</b><br><span style="font-size:13px;color:{FAINT}">{subtitle}</span>'
    figure.update_layout(
        template="plotly_white",
        font={"family": FONT, "color": INK, "size": 12},
        title={"text": text, "x": 0, "xref": "paper", "y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 18}, "font": {"size": 19}},
        height=height,
        margin={"l": 64, "r": 44, "t": MARGIN_TOP, "b": MARGIN_BOTTOM},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yref": "container", "yanchor": "top", "font": {"size": 13}},
        hoverlabel={"namelength": -1},
    )
