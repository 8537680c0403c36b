"""One panel of `figure_scores`: bins, bands, means and the title of one score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from scorekit.columns import BANDS

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from numpy.typing import NDArray

class _Binned(NamedTuple):
    """One score in one group: what is drawn of it."""

    counts: NDArray[np.int64]
    below: int
    above: int
    scored: int
    unscored: int
    mean: float


class _Panel:
    """One pair of axes of `figure_scores`."""

    def __init__(self, figure: go.Figure, row: int, column: int, scale: float, bins: int, *, top: bool, last: bool) -> None:
        """Remember where to draw; ``top`` panels carry the bands' labels, ``last`` ones those of the ends."""
        self.figure, self.scale, self.bins, self.top, self.last = figure, scale, bins, top, last
        self.where = {"row": row, "col": column}
        self.first = row == column == 1
        self.width = scale / bins

    def draw(self, name: str, groups: Sequence[_Group], frame: pd.DataFrame, *, grouped: bool, multiples: bool, lower: bool) -> None:
        """Draw one score: its bands, its bins in every group, its means and its title."""
        values = read_score(frame, name)
        binned = [bin_scores(values[group.positions], self.scale, self.bins) for group in groups]
        tallest = 0.0
        self._bands(name, lower=lower)
        for place, (group, data) in enumerate(zip(groups, binned, strict=True)):
            unit = 100 / max(data.scored, 1) if grouped else 1
            heights = data.counts * unit if grouped else data.counts
            overlaid = grouped and not multiples
            color = PALETTE[place % len(PALETTE)] if overlaid else BAR
            trace = self._steps if overlaid else self._bars
            trace(heights, data, group, color, place)
            self._outside(data, unit, group, color if overlaid else OUTSIDE, place, len(groups) if overlaid else 1, grouped=grouped)
            tallest = max(tallest, *(np.array([*data.counts, data.below, data.above]) * unit))
        tallest = tallest or 1.0
        for place, data in enumerate(binned):
            self._mean(data, tallest, PALETTE[place] if grouped and not multiples else INK, DASHES[place], labelled=len(groups) == 1)
        if not any(data.scored for data in binned):
            self._write("no scored rows", x=0.5, xref="x domain", y=0.45, yref="y domain", font={"size": 13, "color": FAINT})
        self._title(name, groups, binned, grouped=grouped, multiples=multiples, lower=lower)
        self._axes(name, binned, tallest, grouped=grouped, counted=not grouped)

    def _bands(self, name: str, *, lower: bool) -> None:
        """Shade the bands that have a width and write their labels into the room above the bars."""
        wide = _wide_bands(name)
        for place, (low, high, label) in enumerate(wide):
            share = place / max(len(wide) - 1, 1)
            box = {"x0": max(low, 0.0) * self.scale, "x1": high * self.scale, "y0": 0, "y1": 1}
            fill = _tint(1 - share if lower else share)
            self.figure.add_shape(
                type="rect", **box, xref="x", yref="y domain", fillcolor=fill, line_width=0, layer="below", exclude_empty_subplots=False, **self.where
            )
            if self.top:
                words = label.replace(" ", "<br>", 1)
                middle = (max(low, 0.0) + high) / 2 * self.scale
                self._write(words, x=middle, y=0.985, yref="y domain", yanchor="top", font={"size": 11, "color": FAINT})

    def _bars(self, heights: NDArray[Any], data: _Binned, group: _Group, color: str, _place: int) -> None:
        """Draw the bins as bars."""
        import plotly.graph_objects as go

        middles = (np.arange(self.bins) + 0.5) * self.width
        trace = go.Bar(
            x=middles,
            y=heights,
            width=self.width * 0.92,
            marker={"color": color, "line_width": 0},
            name=group.label,
            customdata=self._spans(data),
            hovertemplate="%{customdata[0]}: %{customdata[1]} rows<extra></extra>",
            showlegend=False,
        )
        self.figure.add_trace(trace, **self.where)

    def _steps(self, heights: NDArray[Any], data: _Binned, group: _Group, color: str, place: int) -> None:
        """Draw the bins as a stepped outline, so that groups can lie over one another."""
        import plotly.graph_objects as go

        spans = self._spans(data)
        trace = go.Scatter(
            x=np.arange(self.bins + 1) * self.width,
            y=[*heights, heights[-1]],
            mode="lines",
            line={"shape": "hv", "color": color, "width": 2.2, "dash": DASHES[place]},
            fill="tozeroy",
            fillcolor=_faded(color),
            name=group.label,
            legendgroup=str(place),
            showlegend=self.first,
            customdata=[*spans, spans[-1]],
            hovertemplate="%{customdata[0]}: %{y:.1f} % (%{customdata[1]} rows)",
        )
        self.figure.add_trace(trace, **self.where)

    def _spans(self, data: _Binned) -> list[tuple[str, int]]:
        """Return what hovering over each bin says."""
        return [(f"{i * self.width:.4g} to {(i + 1) * self.width:.4g}", int(count)) for i, count in enumerate(data.counts)]

    def _outside(self, data: _Binned, unit: float, group: _Group, color: str, place: int, of: int, *, grouped: bool) -> None:
        """Draw the scores outside the scale as hatched bars beside it."""
        import plotly.graph_objects as go

        sides = [(-2 * self.width, data.below, "below 0"), (self.scale + self.width, data.above, f"above {self.scale:g}")]
        for left, count, words in sides:
            if count:
                unit_text = " % of the scored rows" if grouped else " rows"
                trace = go.Bar(
                    x=[left + (place + 0.5) * self.width / of],
                    y=[count * unit],
                    width=[self.width / of],
                    marker={"color": "white", "line": {"color": color, "width": 1.5}, "pattern": {"shape": "/", "fgcolor": color, "size": 5}},
                    name=group.label,
                    hovertemplate=f"{words}: %{{y:.4g}}{unit_text}<extra></extra>",
                    showlegend=False,
                )
                self.figure.add_trace(trace, **self.where)

    def _mean(self, data: _Binned, tallest: float, color: str, dash: str, *, labelled: bool) -> None:
        """Mark the mean by a line up to just below the bands' labels."""
        if not data.scored or not np.isfinite(data.mean):
            return
        line = {"color": color, "width": 1.6, "dash": "dash" if labelled else dash}
        end = tallest * 1.1
        box = {"x0": data.mean, "x1": data.mean, "y0": 0, "y1": end}
        self.figure.add_shape(type="line", **box, line=line, xref="x", yref="y", exclude_empty_subplots=False, **self.where)
        if labelled:
            left = data.mean > self.scale * 0.85
            near = {"xanchor": "right" if left else "left", "xshift": -4 if left else 4}
            text = f"mean {_number(data.mean, self.scale)}"
            self._write(text, x=data.mean, y=end, yref="y", yanchor="middle", font={"size": 12, "color": color}, bgcolor="rgba(255,255,255,0.7)", **near)

    def _title(self, name: str, groups: Sequence[_Group], binned: Sequence[_Binned], *, grouped: bool, multiples: bool, lower: bool) -> None:
        """Write the score's name, its direction, and how many rows are and are not in the picture."""
        direction = "lower is better" if lower else "higher is better"
        counts = f"{sum(d.scored for d in binned):,} scored, {sum(d.unscored for d in binned):,} unscored"
        below, above = sum(d.below for d in binned), sum(d.above for d in binned)
        outside = [f"{n:,} {where}" for n, where in ((below, "below 0"), (above, f"above {self.scale:g}")) if n]
        counts = ", ".join([counts, *outside])
        grey = f'<span style="color:{FAINT};font-size:12px">'
        if multiples:
            head = f"<b>{groups[0].label if groups else ''}</b>  {grey}{counts}</span>"
            if self.top:
                head = f'<span style="font-size:15px"><b>{escaped(name)}</b></span>  {grey}{direction}</span><br>{head}'
        else:
            head = f'<span style="font-size:15px"><b>{escaped(name)}</b></span>  {grey}{direction}; {counts}</span>'
            if grouped:
                means = [
                    f'<span style="color:{PALETTE[i]}">{group.label} <b>{_number(data.mean, self.scale)}</b></span>'
                    for i, (group, data) in enumerate(zip(groups, binned, strict=True))
                ]
                head += f"<br>{grey}means:</span>  " + "   ".join(means)
        self._write(head, x=0, xref="x domain", xanchor="left", y=1, yref="y domain", yanchor="bottom", yshift=4, align="left", font={"size": 13})

    def _axes(self, name: str, binned: Sequence[_Binned], tallest: float, *, grouped: bool, counted: bool) -> None:
        """Fix both axes: room above the bars for labels, room beside the scale for what lies outside."""
        low = -2.4 * self.width if any(d.below for d in binned) else -0.012 * self.scale
        high = self.scale + (2.4 * self.width if any(d.above for d in binned) else 0.012 * self.scale)
        ticks = {round(share * self.scale, 10): f"{share * self.scale:g}" for share in (0, 0.25, 0.5, 0.75, 1)}
        if self.last:
            ticks |= {end * self.scale: f"{end * self.scale:g}<br>{label}" for end, label in _exact_bands(name)}
        if any(d.below for d in binned):
            ticks[-1.5 * self.width] = "<0"
        if any(d.above for d in binned):
            ticks[self.scale + 1.5 * self.width] = f">{self.scale:g}"
        texts = [text if "<br>" in text else text.replace("<", "&lt;").replace(">", "&gt;") for text in ticks.values()]
        self.figure.update_xaxes(
            range=[low, high], tickvals=list(ticks), ticktext=texts, showgrid=False, zeroline=False, ticks="outside", tickcolor=GRID, **self.where
        )
        room = 1.42 if self.top else 1.22
        title = {"text": "rows" if counted else "share of rows", "font": {"size": 12, "color": FAINT}}
        self.figure.update_yaxes(
            range=[0, tallest * room], title=title, rangemode="tozero", gridcolor=GRID, zeroline=False, nticks=5, ticksuffix=" %" if grouped else "",
            **self.where,
        )  # fmt: skip

    def _write(self, text: str, **place: Any) -> None:
        """Write a text into the panel; ``text`` is escaped already."""
        self.figure.add_annotation(text=text, showarrow=False, exclude_empty_subplots=False, **{"xref": "x", **place}, **self.where)


def bin_scores(values: NDArray[np.float64], scale: float, bins: int) -> _Binned:
    """Return how many scores lie in each of ``bins`` equal parts of 0 to ``scale``, and how many lie outside or are missing.

    Examples
    --------
    >>> bin_scores(np.array([0.3, 0.7, 1.0, -0.1, np.nan]), 1.0, 10).counts.tolist()
    [0, 0, 0, 1, 0, 0, 0, 1, 0, 1]
    """
    there = values[~np.isnan(values)]
    inside = there[(there >= 0) & (there <= scale)]
    # 0.7 / 0.1 is 6.999...: without the small step a score on the border of two bins would fall into the lower one.
    places = np.minimum(np.floor(inside / scale * bins + 1e-9).astype(np.int64), bins - 1)
    with np.errstate(invalid="ignore"):
        mean = float(there.mean()) if len(there) else float("nan")
    counts = np.bincount(places, minlength=bins).astype(np.int64)
    return _Binned(counts, int((there < 0).sum()), int((there > scale).sum()), len(there), len(values) - len(there), mean)


def _wide_bands(name: str) -> list[tuple[float, float, str]]:
    """Return a score's bands that have a width: low, high, label, worst first."""
    cuts = BANDS.get(name, ())
    wide = [(low, label) for i, (low, label) in enumerate(cuts) if low < 1 and not (i + 1 < len(cuts) and cuts[i + 1][0] == low)]
    highs = [*(low for low, _ in wide[1:]), 1.0][: len(wide)]
    return [(low, high, label) for (low, label), high in zip(wide, highs, strict=True)]


def _exact_bands(name: str) -> list[tuple[float, str]]:
    """Return a score's bands that hold exactly 0 or exactly 1."""
    cuts = BANDS.get(name, ())
    return [(low, label) for i, (low, label) in enumerate(cuts) if low == 1 or (i + 1 < len(cuts) and cuts[i + 1][0] == low)]


