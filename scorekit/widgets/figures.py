"""Figures of scored frames: pure functions from a frame to a plotly figure. plotly is imported when one is drawn."""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.summary import group_rows, read_score, select_scores
from scorekit.columns import BANDS, LOWER_IS_BETTER, require, require_frame
from scorekit.errors import OptionRangeError, UnknownOptionError

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray

Layout = Literal["auto", "overlay", "multiples"]
LAYOUTS: Final = ("auto", "overlay", "multiples")
OVERLAID_GROUPS: Final = 4
"""As many groups as can still be told apart in one panel."""

def figure_scores(
    df: pd.DataFrame,
    /,
    *,
    scores: str | Sequence[str] | None = None,
    by: str | Sequence[str] | None = None,
    scale: float = 1.0,
    bins: int = 20,
    layout: Layout = "auto",
    most_groups: int = 12,
    lower_is_better: Collection[str] = LOWER_IS_BETTER,
) -> go.Figure:
    """Return the distribution of every score as a plotly figure.

    Parameters
    ----------
    df
        A scored frame; not changed.
    scores
        Names of scorers, such as ``"relevancy"``; by default every scorer that has scored the frame.
    by
        A column, or several, whose values make groups to compare, such as ``"variant"``.
    scale
        What the scores were multiplied by, above 0; the bins reach from 0 to it.
    bins
        How many bins, from 2 to 200. Each holds its lower end, the last one both ends.
    layout
        With ``by``: ``"overlay"`` draws the groups (4 at most) over one another, a panel per score; ``"multiples"`` draws a panel per score and
        group; ``"auto"`` overlays up to 3 groups.
    most_groups
        Groups drawn at most, the largest first; the title says how many were left out.
    lower_is_better
        Names of the scores that are worse when higher.

    Returns
    -------
    plotly.graph_objects.Figure
        It holds bin counts, never rows. With ``by``, heights are shares of a group's scored rows. A panel's title counts the rows without a
        score, and scores outside 0 to ``scale``, which stand in a bar of their own beside the scale. Bands are shaded for the shipped scores;
        those that hold exactly 0 or exactly the scale are written under these ends.

    Raises
    ------
    MissingColumnError, ArgumentTypeError
        When a score or a column of ``by`` is not there, or holds no numbers.
    OptionRangeError, UnknownOptionError
        When ``scale``, ``bins``, ``most_groups`` or ``layout`` cannot be drawn.

    Examples
    --------
    >>> figure = figure_scores(pd.DataFrame({"tone_score": [0.2, 0.9, 1.0, None]}), bins=5)
    >>> list(figure.data[0].y)
    [0, 1, 0, 0, 2]
    """
    frame = require_frame(df, "figure_scores")
    if not (scale > 0 and np.isfinite(scale)):
        raise OptionRangeError.from_value("scale", scale, "finite and above 0")
    if not 2 <= bins <= 200:
        raise OptionRangeError.from_value("bins", bins, "from 2 to 200")
    if most_groups < 1:
        raise OptionRangeError.from_value("most_groups", most_groups, "1 or more")
    if layout not in LAYOUTS:
        raise UnknownOptionError.from_value("layout", layout, LAYOUTS)
    names = select_scores(frame, scores, "figure_scores")
    found = _groups(frame, by, "figure_scores")
    groups = _largest(found, most_groups)
    if layout == "overlay" and len(groups) > OVERLAID_GROUPS:
        wanted = f"'multiples' for {len(groups)} groups, of which 4 at most can be told apart in one panel"
        raise OptionRangeError.from_value("layout", layout, wanted)
    multiples = by is not None and (layout == "multiples" or (layout == "auto" and len(groups) > 3))
    panels = [[name] for name in names] if not multiples else [list(names)] * max(len(groups), 1)
    figure, height = _grid(len(panels), len(panels[0]), tight=multiples)
    for row, cells in enumerate(panels, start=1):
        for column, name in enumerate(cells, start=1):
            drawn = groups[row - 1 : row] if multiples else groups
            shape = _Panel(figure, row, column, scale, bins, top=not multiples or row == 1, last=not multiples or row == len(panels))
            shape.draw(name, drawn, frame, grouped=by is not None, multiples=multiples, lower=name in lower_is_better)
    subtitle = f"{len(frame):,} rows"
    if by is not None:
        left_out = f", the largest of {len(found)}" if len(groups) < len(found) else ""
        subtitle += f" in {len(groups)} groups by {_joined_names(by)}{left_out}; heights are shares of a group's scored rows"
    _finish(figure, "Scores" if by is None else f"Scores by {_joined_names(by)}", subtitle, height)
    figure.update_layout(barmode="overlay", bargap=0, showlegend=by is not None and not multiples)
    return figure


def _grid(rows: int, columns: int, *, tight: bool) -> tuple[go.Figure, int]:
    """Return a figure of empty panels and its height in pixels."""
    from plotly.subplots import make_subplots

    panel, gap = (150, 46) if tight else (210, 92)
    inside = rows * panel + (rows - 1) * gap
    figure = make_subplots(rows=rows, cols=columns, vertical_spacing=gap / inside if rows > 1 else 0, horizontal_spacing=0.06 if columns > 1 else 0)
    return figure, inside + MARGIN_TOP + MARGIN_BOTTOM


