"""The figure of a trend: every score's mean with its interval over time or runs, what has drifted, and how many rows each bucket has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.conclusions import p_text
from scorekit.analysis.summary import as_names, directions
from scorekit.analysis.trend import find_trend
from scorekit.widgets.looks import BAR, FAINT, GRID, INK, PALETTE, cell_label, escaped, faint, finish, in_lines

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Hashable, Mapping, Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

    from scorekit.analysis.trend import By, Trend

    Floats = NDArray[np.float64]

MEANS, COUNTS, GAP, BETWEEN = 200, 56, 14, 104
"""Height of the means, of the counts under them, of what is between these two, and of what is between scores, in pixels."""

TURNED: Final = 34
"""How much more room the names of runs need where they are turned, in pixels."""

MOST_BUCKETS: Final = 2000
"""So many buckets are drawn at most, the last ones."""

FEW: Final = 60
"""Up to so many buckets each mean has a marker and a bar of its own; more are a line in a band."""

MANY, COARSER = 100, {"hour": "by='day'", "day": "by='week'"}
"""Where more buckets than this are tested, the figure names a coarser division, of which Holm's correction asks less."""

LEAST_SPAN: Final = 5
"""An axis has room for so many buckets at least, so that a single one does not fill it."""

MOST_DAYS: Final = 8
"""Up to so many days, or weeks, each is named on the axis."""

MOST_TICKS, MOST_LEVEL, TICK_CHARACTERS = 12, 4, 14
"""How many runs are named, how many of them are so without being turned, and how long a name may be."""

SUBTITLE_CHARACTERS: Final = 700
LEGEND_SIGN: Final = 6
HOUR: Final = 3_600_000
LENGTHS: Final = {"hour": HOUR, "day": 24 * HOUR, "week": 7 * 24 * HOUR, "run": 1}
"""How long a bucket is on its axis; times are in milliseconds."""

DRIFTS: Final[Mapping[str, tuple[str, str]]] = {
    "worse": ("x", PALETTE[1]),
    "better": ("diamond", PALETTE[0]),
    "higher": ("triangle-up", PALETTE[2]),
    "lower": ("triangle-down", PALETTE[3]),
}
"""Shape and colour of a drifted bucket's mark; the last two are of scores of which it is not known what is better."""

SHADE: Final = "#eceff4"
BAND: Final = "rgba(68,104,143,0.22)"
UNSCORED: Final = "#8a5a00"
SCORED: Final = {"color": "#a9bccf", "line_width": 0}
PLAIN: Final = {"color": UNSCORED, "line_width": 0}
HATCHED: Final = {
    "color": "white",
    "line": {"color": UNSCORED, "width": 1},
    "pattern": {"shape": "/", "fgcolor": UNSCORED, "size": 4, "solidity": 0.4},
}


def figure_trend(
    df: pd.DataFrame,
    /,
    *,
    by: By = "day",
    scores: str | Sequence[str] | None = None,
    time: Hashable = "created_at",
    reference: object = None,
    confidence: float = 0.95,
    zone: str | dt.tzinfo = "UTC",
    lower_is_better: Collection[str] = (),
    higher_is_better: Collection[str] = (),
) -> go.Figure:
    """Return the trend of every score as a plotly figure.

    Parameters
    ----------
    df
        A scored frame with a column of times, such as `ScoreStore.read` gives; not changed.
    by, scores, time, reference, confidence, zone
        As in `scorekit.trend`, which tells how drift is tested.
    lower_is_better, higher_is_better
        Names of scores by their direction, beside the shipped ones. Of other scores a drift is called higher or lower, not worse or better.

    Returns
    -------
    plotly.graph_objects.Figure
        Per score, above: the mean of every bucket with its interval, the reference window shaded and its mean dashed, and drifted buckets marked in a shape and
        a colour of their own. Below: how many rows were scored and, on top of them, how many were not. The line breaks where there are no rows. It holds
        the last 2,000 buckets at most, and the title says so; the tests are of all. Hovering tells the numbers of a bucket.

    Raises
    ------
    MissingColumnError, ColumnConflictError, ArgumentTypeError, OptionRangeError, UnknownOptionError
        As `scorekit.trend` does; and when a score is said to be better both ways.

    Examples
    --------
    >>> days = pd.date_range("2026-03-01", periods=4, freq="D").repeat(3)
    >>> df = pd.DataFrame({"created_at": days, "tone_score": [0.8, 0.9, 0.7, 0.9, 0.8, 0.8, 0.7, 0.9, 0.8, 0.1, 0.2, 0.2]})
    >>> drawn = {trace.name: trace for trace in figure_trend(df).data}
    >>> drawn["mean"].y.round(2).tolist(), drawn["worse"].y.round(2).tolist(), drawn["scored"].y.tolist()
    ([0.8, 0.83, 0.8, 0.17], [0.17], [3.0, 3.0, 3.0, 3.0])
    """
    found = find_trend(df, by=by, scores=scores, time=time, reference=reference, confidence=confidence, zone=zone)
    better = directions(
        found.scores, as_names("lower_is_better", lower_is_better), as_names("higher_is_better", higher_is_better), "figure_trend"
    )
    axis = Axis.of(found, by)
    panels = [Panel.of(found, name, axis, better[name]) for name in found.scores]
    figure, inside, bottom = _grid(len(panels), axis)
    for number, panel in enumerate(panels):
        _draw_means(figure, panel, axis, 2 * number + 1)
        _draw_counts(figure, panel, axis, 2 * number + 2)
    legend = _draw_legend(figure, panels, few=axis.few)
    subtitle = escaped(" ".join(_subtitle(found, axis, confidence)), SUBTITLE_CHARACTERS)
    finish(figure, f"Trend by {by}", subtitle, inside=inside, above=58, legend=legend, bottom=bottom)
    figure.update_layout(barmode="stack", hovermode="closest", margin_l=60, margin_r=56, showlegend=legend > 0, legend_traceorder="normal")
    return figure


class Axis(NamedTuple):
    """Where the buckets of all scores stand, in their order; those before ``first`` are not drawn."""

    by: str
    zone: str
    first: int
    spots: NDArray[np.int64]
    widths: Floats
    gaps: NDArray[np.bool_]
    ticks: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, found: Trend, by: str) -> Axis:
        """Return the axis of a trend. Times stand where the clocks show them; the second of two equal hours stands half an hour later."""
        labels = found.labels.iloc[: found.known]
        first = max(found.known - MOST_BUCKETS, 0)
        widths = np.full(found.known, LENGTHS[by] * (0.84 if found.known - first <= FEW else 1.0))
        if by == "run":
            names = tuple(cell_label(label) for label in labels)
            ticks = tuple(_shortened(label) for label in labels)
            return cls(by, "", first, np.arange(found.known), widths, np.zeros(found.known, dtype=np.bool_), ticks, names)
        clocks, instants = (pd.DatetimeIndex(times).as_unit("ms").asi8 for times in (labels.dt.tz_localize(None), labels))
        again = np.asarray(pd.Index(clocks).duplicated())
        widths[again | np.append(again[1:], False)] /= 2
        form = {"hour": "%Y-%m-%d %H:%M %Z", "day": "%Y-%m-%d", "week": "week of %Y-%m-%d"}[by]
        names = tuple(escaped(name) for name in labels.dt.strftime(form))
        # By instants, so that the hour that clocks skip leaves no gap.
        gaps = np.diff(instants, prepend=instants[:1]) > 1.5 * LENGTHS[by]
        return cls(by, str(labels.dt.tz), first, clocks + again * HOUR // 2, widths, gaps, (), names)

    def on(self, places: Any) -> Any:
        """Return places on the axis as plotly takes them: datetimes, or numbers of runs."""
        return places if self.by == "run" else np.asarray(places).astype("M8[ms]")

    @property
    def few(self) -> bool:
        """Return whether each bucket has room for a marker and a bar of its own."""
        return len(self.spots) - self.first <= FEW

    def words(self, number: int) -> str:
        """Return so many buckets in words."""
        return f"{number:,} {self.by}{'' if number == 1 else 's'}"


def _shortened(label: object) -> str:
    """Return the name of a run, escaped and shortened in its middle: names often differ at the end.

    Examples
    --------
    >>> _shortened("nightly-2026-03-05")
    'nightly…-03-05'
    """
    text = " ".join(str(label).split())
    half = TICK_CHARACTERS // 2
    return cell_label(label) if len(text) <= TICK_CHARACTERS else escaped(f"{text[:half]}…{text[1 - half :]}")


class Panel(NamedTuple):
    """One score: its rows of the trend that are drawn, their places on the axis, what hovering tells, and what is written over it."""

    name: str
    better: str
    table: pd.DataFrame
    places: NDArray[np.intp]
    kinds: NDArray[np.object_]
    counted: list[str]
    hover: list[str]
    told: str
    center: float

    @classmethod
    def of(cls, found: Trend, name: str, axis: Axis, better: str) -> Panel:
        """Return the panel of a score."""
        own = (found.table["score"] == name).to_numpy(dtype=np.bool_) & (found.places < found.known)
        whole = found.table[own]
        centers = (whole["mean"] - whole["difference"])[np.isfinite(whole["difference"])]
        drawn = own & (found.places >= axis.first)
        table, places = found.table[drawn], found.places[drawn]
        center = float(centers.iloc[0]) if len(centers) else float("nan")
        rows = table.to_dict("records")
        counted = [f"<b>{axis.names[place]}</b><br>{_counted(row)}" for row, place in zip(rows, places, strict=True)]
        kinds = _kinds(table, better)
        hover = [f"{text}<br>{_compared(row, center, kind)}" for text, row, kind in zip(counted, rows, kinds, strict=True)]
        return cls(name, better, table, places, kinds, counted, hover, _told(whole, found.places[own], axis, better), center)

    def numbers(self, column: str) -> Floats:
        """Return a column of numbers."""
        return self.table[column].to_numpy(dtype=np.float64)


def _kinds(table: pd.DataFrame, better: str) -> NDArray[np.object_]:
    """Return what each bucket's drift is called; empty where it has not drifted."""
    up, down = {"higher": ("better", "worse"), "lower": ("worse", "better"), "": ("higher", "lower")}[better]
    kinds = np.where(table["difference"] > 0, up, down).astype(object)
    kinds[~table["drift"].to_numpy(dtype=np.bool_)] = ""
    return kinds


def _counted(row: Mapping[Hashable, Any]) -> str:
    """Return how many rows of a bucket have a score, how many have none, and why; escaped."""
    return f"{row['n']:,} scored, {row['unscored']:,} unscored" + (f" ({escaped(row['errors'])})" if row["errors"] else "")


def _compared(row: Mapping[Hashable, Any], center: float, kind: str) -> str:
    """Return the mean of a bucket, its difference to that of the reference window, and what the test says."""
    ends = "" if np.isnan(row["ci_low"]) else f" ({row['ci_low']:.3g} to {row['ci_high']:.3g})"
    lines = [f"mean {row['mean']:.3g}{ends}" if row["n"] else "no mean"]
    if row["reference"]:
        lines.append("in the reference window")
    elif np.isfinite(row["difference"]):
        lines.append(f"{row['difference']:+.3g} to the reference mean of {center:.3g}")
    if not np.isnan(row["p"]):
        result = f"drifted, {kind}" if kind else "no drift shown"
        lines.append(f"p {p_text(row['p'])}, with Holm's correction {p_text(row['p_holm'])}: {result}")
    return "<br>".join(lines)


def _told(table: pd.DataFrame, places: NDArray[np.intp], axis: Axis, better: str) -> str:
    """Return how many buckets of a score drifted, of all that were compared."""
    if not table["n"].any():
        return "no scored rows" if len(table) else "no rows"
    outside, tested = int((~table["reference"]).sum()), int(table["p"].notna().sum())
    if not outside:
        return f"{axis.words(len(table))}, all in the reference window: nothing to compare yet"
    if not table.loc[table["reference"], "n"].sum():
        return "no scored rows in the reference window: nothing to compare with"
    if not tested:
        return f"nothing to compare: too few scored rows in {axis.words(outside)} or in the reference window"
    kinds = _kinds(table, better)
    drifted = np.flatnonzero(kinds != "")
    few = f"; {outside - tested:,} more with too few rows" if tested < outside else ""
    each = ", ".join(f"{count:,} {kind}" for kind in DRIFTS if (count := int((kinds == kind).sum())))
    result = f"{each} (first: {axis.names[places[drifted[0]]]})" if len(drifted) else "none drifted"
    return f"{axis.words(tested)} compared: {result}{few}"


def _subtitle(found: Trend, axis: Axis, confidence: float) -> list[str]:
    """Return sentences on what is drawn."""
    table, lost = found.table, found.places >= found.known
    rows, missing = (
        int(part.groupby("score")[["n", "unscored"]].sum().sum(axis=1).max()) if len(part) else 0 for part in (table, table[lost])
    )
    texts = [f"{rows:,} rows in {axis.words(found.known)}{f' ({axis.zone})' if axis.zone else ''}."]
    if axis.first:
        texts.append(f"The last {MOST_BUCKETS:,} are drawn; the tests are of all.")
    if missing:
        texts.append(f"{missing:,} rows without a {'run' if axis.by == 'run' else 'time'} are not drawn.")
    texts.append(f"{'Bars' if axis.few else 'Band'}: {confidence * 100:g} % interval. Shaded: the reference window, its mean dashed.")
    if table["p"].notna().any():
        texts.append(f"Drifted: p below {1 - confidence:.2g} against it, by Welch's and Student's t tests with Holm's correction.")
    if axis.by in COARSER and table.groupby("score")["p"].count().max() > MANY:
        texts.append(f"Of so many {axis.by}s only large shifts show: {COARSER[axis.by]} finds smaller ones.")
    return texts


def _grid(scores: int, axis: Axis) -> tuple[go.Figure, int, int]:
    """Return a figure of empty panels, two for each score, how many pixels high they are together, and the room under the last."""
    from plotly.subplots import make_subplots

    turned = TURNED if axis.by == "run" and len(axis.spots) - axis.first > MOST_LEVEL else 0
    pitch = MEANS + GAP + COUNTS + BETWEEN + turned
    inside = scores * pitch - BETWEEN - turned
    figure = make_subplots(rows=2 * scores, cols=1)
    for number in range(scores):
        for row, top, height in ((1, 0, MEANS), (2, MEANS + GAP, COUNTS)):
            start = number * pitch + top
            domain = [max(1 - (start + height) / inside, 0), 1 - start / inside]
            figure.update_yaxes(domain=domain, row=2 * number + row, col=1)
    drawn = axis.spots[axis.first :]
    length = LENGTHS[axis.by]
    low, high = (int(drawn.min()), int(drawn.max())) if len(drawn) else (0, 0)
    margin = max(0.7 * length, (LEAST_SPAN * length - (high - low)) / 2)
    looks: dict[str, Any] = {"range": list(axis.on([low - margin, high + margin])), "showgrid": False, "zeroline": False}
    if axis.by == "run":
        named = np.unique(np.linspace(axis.first, len(axis.spots) - 1, min(MOST_TICKS, len(drawn))).round().astype(np.int64))
        looks |= {"tickvals": named, "ticktext": [axis.ticks[place] for place in named], "tickangle": -35 if turned else 0}
    else:
        looks |= {"type": "date", "tickangle": 0}
        if len(drawn) and high - low <= MOST_DAYS * length:
            # Left to itself plotly marks noon between two days.
            looks |= {"tick0": str(axis.on(low)), "dtick": length} if axis.by != "hour" else {}
    figure.update_xaxes(ticks="outside", ticklen=4, tickcolor=GRID, **looks)
    for number in range(scores):
        figure.update_xaxes(showticklabels=False, ticks="", row=2 * number + 1, col=1)
    if not len(drawn):
        figure.update_xaxes(showticklabels=False, ticks="")
    for row in range(2, 2 * scores + 1):
        figure.update_xaxes(matches="x", row=row, col=1)
    return figure, inside, 56 + turned


def _draw_means(figure: go.Figure, panel: Panel, axis: Axis, row: int) -> None:
    """Draw the means of a score with their intervals, the reference window, and the marks of what drifted."""
    import plotly.graph_objects as go

    where = {"row": row, "col": 1}
    at, mean, low, high = axis.spots[panel.places], *(panel.numbers(key) for key in ("mean", "ci_low", "ci_high"))
    _shade(figure, panel, axis, row)
    # Missing buckets and those of other scores alone break the line.
    breaks = np.diff(panel.places, prepend=panel.places[:1]) > 1
    breaks |= axis.gaps[panel.places]
    lines = _broken(breaks, at.astype(np.float64), mean)
    if not axis.few:
        figure.add_trace(_band(breaks, at, low, high, axis), **where)
    line = go.Scatter(
        x=axis.on(lines[0]),
        y=lines[1],
        mode="lines",
        name="line",
        line={"color": BAR, "width": 1.6 if axis.few else 1.2},
        hoverinfo="skip",
        showlegend=False,
    )
    figure.add_trace(line, **where)
    bars = {"array": high - mean, "arrayminus": mean - low, "color": BAR, "thickness": 1.4, "width": 3} if axis.few else None
    looks: dict[str, Any] = {"mode": "markers", "hoverinfo": "text", "showlegend": False}
    dots = {"color": BAR, "size": 7 if axis.few else 2}
    figure.add_trace(go.Scatter(x=axis.on(at), y=mean, name="mean", marker=dots, error_y=bars, hovertext=panel.hover, **looks), **where)
    for kind, (symbol, color) in DRIFTS.items():
        mine = np.flatnonzero(panel.kinds == kind)
        if len(mine):
            mark = {
                "symbol": symbol,
                "color": color,
                "size": 12 if axis.few else 8,
                "line": {"color": "white", "width": 1 if axis.few else 0.5},
            }
            texts = [panel.hover[place] for place in mine]
            figure.add_trace(go.Scatter(x=axis.on(at[mine]), y=mean[mine], name=kind, marker=mark, hovertext=texts, **looks), **where)
    bottom, top = _reach(mean, low, high, panel.center)
    figure.update_yaxes(range=[bottom, top], gridcolor=GRID, zeroline=False, nticks=6, title=_axis_title("mean"), **where)
    direction = f"  {faint(f'{panel.better} is better')}" if panel.better else ""
    head = f'<span style="font-size:15px"><b>{escaped(panel.name)}</b></span>{direction}'
    _write(
        figure, f"{head}<br>{faint(panel.told)}", row, x=0, y=1, xref="x domain", xanchor="left", yanchor="bottom", yshift=6, align="left"
    )


def _draw_counts(figure: go.Figure, panel: Panel, axis: Axis, row: int) -> None:
    """Draw how many rows of each bucket are scored and, on top of them, how many are not."""
    import plotly.graph_objects as go

    at, widths = axis.on(axis.spots[panel.places]), axis.widths[panel.places]
    for name, column, marker in (("scored", "n", SCORED), ("unscored", "unscored", HATCHED if axis.few else PLAIN)):
        counts = panel.numbers(column)
        if name == "scored" or counts.any():
            bar = go.Bar(
                x=at, y=counts, width=widths, name=name, marker=marker, hovertext=panel.counted, hoverinfo="text", showlegend=False
            )
            figure.add_trace(bar, row=row, col=1)
    tallest = float((panel.numbers("n") + panel.numbers("unscored")).max(initial=0.0)) or 1.0
    figure.update_yaxes(
        range=[0, 1.08 * tallest], gridcolor=GRID, zeroline=False, nticks=3, rangemode="tozero", title=_axis_title("rows"), row=row, col=1
    )


def _axis_title(text: str) -> dict[str, Any]:
    """Return the title of an upright axis."""
    return {"text": text, "font": {"size": 12, "color": FAINT}, "standoff": 4}


def _shade(figure: go.Figure, panel: Panel, axis: Axis, row: int) -> None:
    """Shade the reference window in both panels of a score, and draw its mean over the whole width."""
    inside = panel.places[panel.table["reference"].to_numpy(dtype=np.bool_)]
    half = LENGTHS[axis.by] / 2 if axis.by == "run" else LENGTHS[axis.by] // 2
    for number, part in enumerate(np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1) if len(inside) else []):
        ends = axis.on(axis.spots[part[[0, -1]]] + np.array([-half, half])).astype("O" if axis.by == "run" else "U").tolist()
        for panel_row in (row, row + 1):
            box: dict[str, Any] = {"type": "rect", "x0": ends[0], "x1": ends[1], "y0": 0, "y1": 1, "yref": "y domain"}
            figure.add_shape(fillcolor=SHADE, line_width=0, layer="below", exclude_empty_subplots=False, row=panel_row, col=1, **box)
        if not number:
            near: dict[str, Any] = {"x": ends[0], "xref": "x", "xanchor": "left", "xshift": 2, "y": 1, "yanchor": "top", "yshift": -1}
            _write(figure, faint("reference", 11), row, **near)
    if np.isfinite(panel.center):
        dash = {"color": INK, "width": 1.3, "dash": "dash"}
        line: dict[str, Any] = {"type": "line", "x0": 0, "x1": 1, "xref": "x domain", "y0": panel.center, "y1": panel.center}
        figure.add_shape(line=dash, exclude_empty_subplots=False, row=row, col=1, **line)
        _write(
            figure, f"{panel.center:.3g}", row, x=1, xref="x domain", xanchor="left", xshift=4, y=panel.center, yref="y", yanchor="middle"
        )


def _broken(breaks: NDArray[np.bool_], *columns: Floats) -> list[Floats]:
    """Return columns with a NaN before each place where the line breaks.

    Examples
    --------
    >>> [column.tolist() for column in _broken(np.array([False, True]), np.array([1.0, 4.0]), np.array([0.5, 0.6]))]
    [[1.0, 4.0, 4.0], [0.5, nan, 0.6]]
    """
    at = np.flatnonzero(breaks)
    return [np.insert(columns[0], at, columns[0][at]), *(np.insert(column, at, np.nan) for column in columns[1:])]


def _band(breaks: NDArray[np.bool_], at: NDArray[np.int64], low: Floats, high: Floats, axis: Axis) -> go.Scatter:
    """Return the intervals as areas, one for each stretch without a break."""
    import plotly.graph_objects as go

    known = ~np.isnan(low)
    starts = known & (breaks | ~np.append(False, known[:-1]))
    stretches = np.split(np.flatnonzero(known), np.flatnonzero(starts[known])[1:]) if known.any() else []
    x = np.concatenate([np.concatenate([at[part], at[part[::-1]], at[part[-1:]]]) for part in stretches]) if stretches else at[:0]
    y = np.concatenate([np.concatenate([high[part], low[part[::-1]], [np.nan]]) for part in stretches]) if stretches else high[:0]
    # The line keeps the interval of a bucket that stands alone visible.
    looks: dict[str, Any] = {"fill": "toself", "fillcolor": BAND, "line": {"color": BAND, "width": 1}}
    return go.Scatter(x=axis.on(x), y=y, mode="lines", name="interval", hoverinfo="skip", showlegend=False, **looks)


def _reach(mean: Floats, low: Floats, high: Floats, center: float) -> tuple[float, float]:
    """Return from where to where the axis of the means goes: over all means, and over intervals that are not far wider than these differ.

    Examples
    --------
    >>> mean, low, high = np.array([0.4, 0.6, 0.5]), np.array([0.3, 0.5, -5.0]), np.array([0.5, 0.7, 6.0])
    >>> [round(end, 2) for end in _reach(mean, low, high, 0.5)]
    [-0.08, 1.13]
    """
    points = np.append(mean, center)
    points = points[np.isfinite(points)]
    if not len(points):
        return 0.0, 1.0
    bottom, top = float(points.min()), float(points.max())
    known = np.isfinite(low) & np.isfinite(high)
    if known.any():
        room = max(2 * (top - bottom), float(np.median((high - low)[known])))
        bottom = max(min(bottom, float(low[known].min())), bottom - room)
        top = min(max(top, float(high[known].max())), top + room)
    margin = 0.08 * ((top - bottom) or max(abs(top), 1.0))
    return bottom - margin, top + 1.6 * margin


def _draw_legend(figure: go.Figure, panels: Sequence[Panel], *, few: bool) -> int:
    """Add an entry for every kind of mark that is drawn, and return how many lines they need on a narrow screen."""
    import plotly.graph_objects as go

    kinds = [kind for kind in DRIFTS if any((panel.kinds == kind).any() for panel in panels)]
    names = [f"drifted: {kind}" for kind in kinds]
    for kind, name in zip(kinds, names, strict=True):
        symbol, color = DRIFTS[kind]
        mark = {"symbol": symbol, "color": color, "size": 11}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=mark, hoverinfo="skip"), row=1, col=1)
    if any(panel.table["unscored"].any() for panel in panels):
        names.append("rows without a score")
        figure.add_trace(go.Bar(x=[None], y=[None], name=names[-1], marker=HATCHED if few else PLAIN, hoverinfo="skip"), row=1, col=1)
    return len(in_lines([f"{name}{' ' * LEGEND_SIGN}" for name in names]))


def _write(figure: go.Figure, text: str, row: int, **place: Any) -> None:
    """Write a text into a panel; it is escaped already."""
    looks: dict[str, Any] = {"yref": "y domain", "font": {"size": 13, "color": INK}, **place}
    figure.add_annotation(text=text, showarrow=False, exclude_empty_subplots=False, row=row, col=1, **looks)
