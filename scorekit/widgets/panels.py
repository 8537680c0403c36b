"""One panel of `figure_scores`: the bins, bands, means and title of one score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from scorekit.columns import BANDS, HIGHER_IS_BETTER
from scorekit.widgets.looks import BAR, DASHES, FAINT, GRID, INK, PALETTE, Group, escaped, faint, in_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

Mode = Literal["plain", "overlay", "multiples"]

WORST, MIDDLE, BEST = (0xFB, 0xE6, 0xD8), (0xF5, 0xF4, 0xEC), (0xDB, 0xEA, 0xF4)
OUTSIDE: Final = "#b3541e"

LIKENESS: Final = frozenset({"text_difference"})
"""The shipped scores that measure how alike two texts are, which is neither good nor bad."""

TWO_DIGITS: Final = 10
"""Up to this scale means are written with two digits."""

ROOM: Final = {"plain": 1.42, "overlay": 1.36, "multiples": 1.62}
"""How much higher than the tallest bar a panel is: room for the bands' labels and the mean's."""


class Binned(NamedTuple):
    """What is drawn of one score in one group."""

    counts: NDArray[np.int64]
    below: int
    above: int
    scored: int
    unscored: int
    mean: float

    def unit(self, mode: Mode) -> float:
        """Return how high one row is: 1, or its share in per cent where groups are compared."""
        return 1.0 if mode == "plain" else 100 / max(self.scored, 1)

    def tallest(self, mode: Mode) -> float:
        """Return the height of the tallest bar."""
        return float(max(*self.counts, self.below, self.above)) * self.unit(mode)


def bin_scores(values: NDArray[np.float64], scale: float, bins: int) -> Binned:
    """Return how many scores lie in each of ``bins`` equal parts of 0 to ``scale``, and how many lie outside or are missing.

    Examples
    --------
    >>> bin_scores(np.array([0.3, 0.7, 1.0, -0.1, np.nan]), 1.0, 10).counts.tolist()
    [0, 0, 0, 1, 0, 0, 0, 1, 0, 1]
    """
    there = values[~np.isnan(values)]
    inside = there[(there >= 0) & (there <= scale)]
    # 0.29 * 100 is 28.999...: without the small step a score on the border of two bins could fall into the lower one.
    places = np.minimum(np.floor(inside / scale * bins + 1e-9).astype(np.int64), bins - 1)
    with np.errstate(invalid="ignore"):
        mean = float(there.mean()) if len(there) else float("nan")
    counts = np.bincount(places, minlength=bins).astype(np.int64)
    return Binned(counts, int((there < 0).sum()), int((there > scale).sum()), len(there), len(values) - len(there), mean)


class Panel:
    """One pair of axes: where it stands in the figure and what it shares with its neighbours."""

    def __init__(self, figure: go.Figure, row: int, column: int, *, rows: int, scale: float, bins: int, mode: Mode) -> None:
        """Remember the place; of small multiples only the top ones label the bands, and only the bottom ones the axis."""
        self.figure, self.scale, self.bins, self.mode = figure, scale, bins, mode
        self.where = {"row": row, "col": column}
        self.first = row == column == 1
        self.left = column == 1
        self.top = mode != "multiples" or row == 1
        self.bottom = mode != "multiples" or row == rows
        self.width = scale / bins

    def draw(self, name: str, groups: Sequence[Group], binned: Sequence[Binned], tallest: float, *, lower: bool) -> None:
        """Draw one score: its bands, its bins in every group, its means and its title."""
        self._bands(name, lower=lower)
        for place, (group, data) in enumerate(zip(groups, binned, strict=True)):
            if self.mode == "overlay":
                self._steps(data, group, place)
            else:
                self._bars(data, group)
            self._outside(data, group, place, len(groups))
            self._mean(data, tallest, place)
        if not any(data.scored for data in binned):
            self._write("no scored rows", x=0.5, xref="x domain", y=0.45, yref="y domain", font={"size": 13, "color": FAINT})
        self._title(name, groups, binned, lower=lower)
        self._axes(name, binned, tallest)

    def _bands(self, name: str, *, lower: bool) -> None:
        """Shade the bands that have a width and write their labels into the room above the bars."""
        wide = _wide_bands(name)
        for place, (low, high, label) in enumerate(wide):
            share = place / max(len(wide) - 1, 1)
            start, end = max(low, 0.0) * self.scale, high * self.scale
            self._shape("rect", start, end, 1, yref="y domain", fillcolor=_tint(1 - share if lower else share), line_width=0, layer="below")
            if self.top:
                words = label.replace(" ", "<br>", 1)
                self._write(words, x=(start + end) / 2, y=0.985, yref="y domain", yanchor="top", font={"size": 11, "color": FAINT})

    def _bars(self, data: Binned, group: Group) -> None:
        """Draw the bins as bars."""
        import plotly.graph_objects as go

        trace = go.Bar(
            x=(np.arange(self.bins) + 0.5) * self.width,
            y=data.counts * data.unit(self.mode) if self.mode != "plain" else data.counts,
            width=self.width * 0.92,
            marker={"color": BAR, "line_width": 0},
            name=group.label,
            customdata=self._spans(data),
            hovertemplate="%{customdata[0]}: %{customdata[1]} rows<extra></extra>",
            showlegend=False,
        )
        self.figure.add_trace(trace, **self.where)

    def _steps(self, data: Binned, group: Group, place: int) -> None:
        """Draw the bins as a stepped outline, so that groups can lie over one another."""
        import plotly.graph_objects as go

        spans, heights = self._spans(data), data.counts * data.unit(self.mode)
        trace = go.Scatter(
            x=np.arange(self.bins + 1) * self.width,
            y=[*heights, heights[-1]],
            mode="lines",
            line={"shape": "hv", "color": PALETTE[place], "width": 2.2, "dash": DASHES[place]},
            fill="tozeroy",
            fillcolor=_faded(PALETTE[place]),
            name=group.label,
            legendgroup=str(place),
            showlegend=self.first,
            customdata=[*spans, spans[-1]],
            hovertemplate="%{customdata[0]}: %{y:.1f} % (%{customdata[1]} rows)",
        )
        self.figure.add_trace(trace, **self.where)

    def _spans(self, data: Binned) -> list[tuple[str, int]]:
        """Return what hovering over each bin says."""
        return [(f"{i * self.width:.4g} to {(i + 1) * self.width:.4g}", int(count)) for i, count in enumerate(data.counts)]

    def _outside(self, data: Binned, group: Group, place: int, of: int) -> None:
        """Draw the scores outside the scale as hatched bars beside it."""
        import plotly.graph_objects as go

        color = PALETTE[place] if self.mode == "overlay" else OUTSIDE
        sides = [(-2 * self.width, data.below, "below 0"), (self.scale + self.width, data.above, f"above {self.scale:g}")]
        for left, count, words in sides:
            if not count:
                continue
            trace = go.Bar(
                x=[left + (place + 0.5) * self.width / of],
                y=[count * data.unit(self.mode)],
                width=[self.width / of],
                marker={"color": "white", "line": {"color": color, "width": 1.5}, "pattern": {"shape": "/", "fgcolor": color, "size": 5}},
                name=group.label,
                hovertemplate=f"{words}: {count:,} rows<extra></extra>",
                legendgroup=str(place),
                showlegend=False,
            )
            self.figure.add_trace(trace, **self.where)

    def _mean(self, data: Binned, tallest: float, place: int) -> None:
        """Mark the mean by a line up to just below the bands' labels."""
        if not np.isfinite(data.mean):
            return
        overlaid = self.mode == "overlay"
        color, end = PALETTE[place] if overlaid else INK, tallest * 1.1
        self._shape(
            "line", data.mean, data.mean, end, yref="y", line={"color": color, "width": 1.6, "dash": DASHES[place] if overlaid else "solid"}
        )
        if not overlaid:
            near: dict[str, Any] = {"xanchor": "left", "xshift": 3} if data.mean < 0.7 * self.scale else {"xanchor": "right", "xshift": -3}
            text = f"mean {_number(data.mean, self.scale)}"
            self._write(
                text, x=data.mean, y=end, yanchor="middle", font={"size": 12, "color": color}, bgcolor="rgba(255,255,255,0.7)", **near
            )

    def _title(self, name: str, groups: Sequence[Group], binned: Sequence[Binned], *, lower: bool) -> None:
        """Write the score's name, its direction, and how many rows are and are not in the picture."""
        below, above = sum(data.below for data in binned), sum(data.above for data in binned)
        outside = [f"{n:,} {where}" for n, where in ((below, "below 0"), (above, f"above {self.scale:g}")) if n]
        counts = ", ".join([f"{sum(d.scored for d in binned):,} scored", f"{sum(d.unscored for d in binned):,} unscored", *outside])
        direction = _direction(name, self.scale, lower=lower)
        head = f'<span style="font-size:15px"><b>{escaped(name)}</b></span>  {faint(direction)}'.rstrip()
        if self.mode == "multiples":
            line = f"<b>{groups[0].label if groups else ''}</b>  {faint(counts)}"
            text = f"{head}<br>{line}" if self.top else line
        else:
            text = f"{head}<br>{faint(counts)}"
        if self.mode == "overlay":
            means = [(group.label, _number(data.mean, self.scale)) for group, data in zip(groups, binned, strict=True)]
            colored = [f'<span style="color:{PALETTE[i]}">{label} <b>{mean}</b></span>' for i, (label, mean) in enumerate(means)]
            lines = ["   ".join(colored[i] for i in line) for line in in_lines([f"{label} 0.00" for label, _ in means])]
            text += "".join(f"<br>{line}" for line in lines)
        place = {"x": 0, "xref": "x domain", "xanchor": "left", "y": 1, "yref": "y domain", "yanchor": "bottom"}
        self._write(text, yshift=4, align="left", font={"size": 13}, **place)

    def _axes(self, name: str, binned: Sequence[Binned], tallest: float) -> None:
        """Fix both axes: room above the bars for labels, room beside the scale for what lies outside."""
        below, above = any(data.below for data in binned), any(data.above for data in binned)
        margin = 0.012 * self.scale
        ticks = {share * self.scale: f"{share * self.scale:g}" for share in (0.0, 0.25, 0.5, 0.75, 1.0)}
        ticks |= {end * self.scale: f"{end * self.scale:g}<br>{label}" for end, label in _exact_bands(name)}
        ticks |= {-1.5 * self.width: "&lt;0"} if below else {}
        ticks |= {self.scale + 1.5 * self.width: f"&gt;{self.scale:g}"} if above else {}
        self.figure.update_xaxes(
            range=[-2.4 * self.width if below else -margin, self.scale + (2.4 * self.width if above else margin)],
            tickvals=list(ticks),
            ticktext=list(ticks.values()),
            showticklabels=self.bottom or below or above,
            tickangle=0,
            showgrid=False,
            zeroline=False,
            ticks="outside",
            tickcolor=GRID,
            **self.where,
        )
        words = ("rows" if self.mode == "plain" else "share of rows") if self.left else ""
        self.figure.update_yaxes(
            range=[0, tallest * ROOM[self.mode]],
            title={"text": words, "font": {"size": 12, "color": FAINT}},
            ticksuffix="" if self.mode == "plain" else " %",
            showticklabels=any(data.scored for data in binned),
            gridcolor=GRID,
            zeroline=False,
            nticks=5,
            **self.where,
        )

    def _shape(self, kind: str, start: float, end: float, top: float, **looks: Any) -> None:
        """Draw a rectangle or a line that stands on the axis."""
        self.figure.add_shape(type=kind, x0=start, x1=end, y0=0, y1=top, xref="x", exclude_empty_subplots=False, **looks, **self.where)

    def _write(self, text: str, **place: Any) -> None:
        """Write a text into the panel; it is escaped already."""
        self.figure.add_annotation(
            text=text, showarrow=False, exclude_empty_subplots=False, **{"xref": "x", "yref": "y", **place}, **self.where
        )


def _direction(name: str, scale: float, *, lower: bool) -> str:
    """Return what a high score means; nothing for a score whose meaning nobody told.

    Examples
    --------
    >>> _direction("text_difference", 100.0, lower=False)
    '100 = identical'
    """
    if lower:
        return "lower is better"
    if name in LIKENESS:
        return f"{scale:g} = identical"
    return "higher is better" if name in HIGHER_IS_BETTER else ""


def _wide_bands(name: str) -> list[tuple[float, float, str]]:
    """Return a score's bands that have a width: low, high, label, worst first."""
    exact = _exact_bands(name)
    wide = [cut for cut in BANDS.get(name, ()) if cut not in exact]
    highs = [*(low for low, _ in wide[1:]), 1.0][: len(wide)]
    return [(low, high, label) for (low, label), high in zip(wide, highs, strict=True)]


def _exact_bands(name: str) -> list[tuple[float, str]]:
    """Return a score's bands that hold exactly 0 or exactly 1."""
    cuts = BANDS.get(name, ())
    return [(low, label) for i, (low, label) in enumerate(cuts) if low == 1 or (i + 1 < len(cuts) and cuts[i + 1][0] == low)]


def _tint(share: float) -> str:
    """Return the shade of a band: 0 the worst, 1 the best."""
    first = share * 2 <= 1
    low, high, part = (WORST, MIDDLE, share * 2) if first else (MIDDLE, BEST, share * 2 - 1)
    return "rgb({:.0f},{:.0f},{:.0f})".format(*(a + (b - a) * part for a, b in zip(low, high, strict=True)))


def _faded(color: str) -> str:
    """Return a colour that lets what lies behind it shine through."""
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.10)"


def _number(value: float, scale: float) -> str:
    """Return a score with as many digits as its scale needs."""
    return "none" if np.isnan(value) else f"{value:.2f}" if scale <= TWO_DIGITS else f"{value:.1f}"
