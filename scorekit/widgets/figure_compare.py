"""The figure of a comparison: every item's difference with the mean and its interval, and slopes from the baseline to each variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.comparison import Comparison
from scorekit.analysis.conclusions import between, conclusion, p_text, tally
from scorekit.analysis.summary import as_names, group_rows
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.widgets.looks import FAINT, GRID, INK, PALETTE, cell_label, escaped, faint, finish, labels_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_POINTS: Final = 5000
MOST_SLOPES: Final = 150
MOST_STRIPS: Final = 12
MOST_PANELS: Final = 4

STRIP, SLOPES, GAP = 92, 190, 84
"""Height of a strip of dots, of the slopes, and of what is written between panels, in pixels."""

MIDDLE, HALF = 0.7, 0.22
"""Where in its strip the dots lie, and how far up and down they reach."""

TIE: Final = "#9aa1a9"
AIMED: Final = {"win": ("better", PALETTE[0]), "tie": ("tie", TIE), "loss": ("worse", PALETTE[1])}
AIMLESS: Final = {"win": ("higher", PALETTE[2]), "tie": ("tie", TIE), "loss": ("lower", PALETTE[3])}
"""What each outcome is called, and its colour: of scores with a direction, and of those without, whose colours must not look good or bad."""

DIRECTIONS: Final = {"higher": "higher is better", "lower": "lower is better", "": "neither high nor low is known to be better"}
BINS: Final = 48
TWO_DIGITS: Final = 10
"""Where scores reach no further than this, means are written with two digits."""

SUBTITLE_CHARACTERS: Final = 400
NAME_CHARACTERS, TICK_CHARACTERS = 28, 12
TIGHT: Final = 3
"""So many panels side by side leave room for the variants' names alone."""


class Strip(NamedTuple):
    """One comparison: its row of the summary, its label (escaped), and the places in ``.rows`` of the pairs that are drawn."""

    row: dict[Any, Any]
    label: str
    drawn: NDArray[np.intp]


def figure_compare(result: Comparison, /, *, score: str | Sequence[str] | None = None) -> go.Figure:
    """Return a comparison as a plotly figure.

    Parameters
    ----------
    result
        What `scorekit.compare` returned.
    score
        Names of the scores to draw; by default all that were compared.

    Returns
    -------
    plotly.graph_objects.Figure
        Per score, above: a strip for every variant and group (12 at most) with a dot per item at its difference to the baseline, blue where it wins,
        orange where it loses, grey where it ties; the diamond and its bar are the mean and its interval. Below: for every variant (4 at most) a line per item
        from the baseline's score to the variant's, and the means' in black. It holds at most 5,000 dots, and 150 lines per panel, chosen at random; the title
        says so. Means and intervals are always those of all pairs.

    Raises
    ------
    ArgumentTypeError
        When it is given anything else.
    UnknownOptionError
        When a score was not compared.

    Examples
    --------
    >>> import pandas as pd
    >>> from scorekit.analysis.compare import compare
    >>> df = pd.DataFrame({"id": [1, 2, 3] * 2, "prompt": ["a"] * 3 + ["b"] * 3, "tone_score": [0.5, 0.2, 0.9, 0.7, 0.1, 0.9]})
    >>> figure = figure_compare(compare(df, variant="prompt", item="id"))
    >>> [(trace.name, trace.x.round(2).tolist()) for trace in figure.data[:3]]
    [('better', [0.2]), ('tie', [0.0]), ('worse', [-0.1])]
    """
    if not isinstance(result, Comparison):
        raise ArgumentTypeError.from_value("figure_compare: the first argument", result, "what compare returned")
    names = _chosen(result, score)
    from plotly.subplots import make_subplots

    variants = result.variants[:MOST_PANELS]
    strips = {name: _strips(result, name, len(names)) for name in names}
    heights = [height for name in names for height in (max(len(strips[name]), 1) * STRIP, SLOPES)]
    inside = sum(heights) + GAP * (len(heights) - 1)
    width = len(variants)
    wide: list[dict[str, int] | None] = [{"colspan": width}, *[None] * (width - 1)]
    narrow: list[dict[str, int] | None] = [{} for _ in variants]
    figure = make_subplots(
        rows=len(heights),
        cols=width,
        specs=[row for _ in names for row in (wide, narrow)],
        row_heights=heights,
        vertical_spacing=GAP / inside,
        horizontal_spacing=0.05 if width > 1 else 0,
    )
    for number, name in enumerate(names):
        _draw_strips(figure, result, name, strips[name], 2 * number + 1)
        _draw_slopes(figure, result, name, 2 * number + 2)
    against = _name(result.baseline)
    what = _name(variants[0]) if len(result.variants) == 1 else f"{len(result.variants)} variants"
    _draw_legend(figure, [result.better[name] for name in names])
    finish(figure, f"{what} against {against}", _subtitle(result, strips), inside=inside, above=44, legend=1, bottom=52)
    figure.update_layout(showlegend=True, margin_l=48)
    return figure


def _chosen(result: Comparison, score: str | Sequence[str] | None) -> list[str]:
    """Return the names of the scores to draw."""
    if score is None:
        return list(result.scores)
    names = [name if name in result.scores else name.removesuffix("_score") for name in as_names("score", score)]
    if strange := [name for name in names if name not in result.scores]:
        raise UnknownOptionError.from_value("score", strange[0], result.scores)
    if not names:
        raise OptionRangeError.from_value("score", score, "at least one name, or None for all")
    return list(dict.fromkeys(names))


def _strips(result: Comparison, name: str, scores: int) -> list[Strip]:
    """Return the strips of one score: of its comparisons those with the most pairs, in their order."""
    own = np.flatnonzero((result.summary["score"] == name).to_numpy(dtype=bool))
    pairs = result.summary["n_pairs"].to_numpy()[own]
    kept = own[np.sort(np.argsort(-pairs, kind="stable")[:MOST_STRIPS])]
    labels = ["variant", *result.by]
    both = [pd.concat([result.summary[label].iloc[kept], result.rows[label]], ignore_index=True) for label in labels]
    codes = group_rows(both, len(both[0])).codes
    there = result.rows[f"{name}_delta"].notna().to_numpy(dtype=bool)
    most = MOST_POINTS // (scores * min(len(own), MOST_STRIPS))
    cells = zip(*(result.summary[label].iloc[kept].array for label in labels), strict=True)
    texts = [" · ".join(_name(value) for value in row) for row in cells]
    return [
        Strip(result.summary.iloc[place].to_dict(), text, _some(np.flatnonzero(there & (codes[len(kept) :] == codes[number])), most))
        for number, (place, text) in enumerate(zip(kept, texts, strict=True))
    ]


def _name(value: Any, most: int = NAME_CHARACTERS) -> str:
    """Return a label, escaped and shortened in its middle: the names of variants often differ at the end.

    Examples
    --------
    >>> _name("a long prompt, version 2", 12)
    'a long…ion 2'
    """
    text = " ".join(str(value).split())
    return cell_label(value) if len(text) <= most else escaped(f"{text[: most // 2]}…{text[len(text) - (most - 1) // 2 :]}")


def _some(places: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Return some of many places, chosen at random and the same ones every time."""
    return places if len(places) <= most else np.sort(np.random.default_rng(0).choice(places, most, replace=False))


def _subtitle(result: Comparison, strips: Mapping[str, Sequence[Strip]]) -> str:
    """Return what is drawn and, of a single comparison, what can be concluded."""
    flat = [strip for part in strips.values() for strip in part]
    drawn, pairs = sum(len(strip.drawn) for strip in flat), sum(strip.row["n_pairs"] for strip in flat)
    texts = [conclusion(result, 0)] if len(result.summary) == 1 else []
    texts.append(f"Dots are items; diamond and bar the mean and its {result.confidence * 100:g} % interval.")
    if drawn < pairs:
        texts.append(f"{drawn:,} of {pairs:,} differences are drawn, chosen at random; means and intervals are of all.")
    own = result.summary["score"].isin(list(strips))
    if (hidden := int(own.sum()) - len(flat)) > 0:
        texts.append(f"{hidden:,} smaller comparisons are not drawn.")
    if (more := len(result.variants) - MOST_PANELS) > 0:
        texts.append(f"Slopes are of the first {MOST_PANELS} variants; {more} more have none.")
    return escaped(" ".join(texts), SUBTITLE_CHARACTERS)


def _draw_legend(figure: go.Figure, directions: Sequence[str]) -> None:
    """Add an entry per outcome, with a dot of its colour."""
    import plotly.graph_objects as go

    kinds = [kind for kind, used in ((AIMED, any(directions)), (AIMLESS, not all(directions))) if used]
    for word, color in dict(entry for kind in kinds for entry in kind.values()).items():
        looks: dict[str, Any] = {"color": color, "size": 8, "line_width": 0}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=word, marker=looks, hoverinfo="skip"), row=1, col=1)


def _outcomes(better: str) -> dict[str, tuple[str, str]]:
    """Return what the outcomes of a score are called, and their colours."""
    return AIMED if better else AIMLESS


def _draw_strips(figure: go.Figure, result: Comparison, name: str, strips: Sequence[Strip], row: int) -> None:
    """Draw the differences of one score: dots by outcome, means with intervals, and a label over each strip."""
    import plotly.graph_objects as go

    deltas = result.rows[f"{name}_delta"].to_numpy()
    outcomes = result.rows[f"{name}_outcome"].to_numpy(dtype=object)
    drawn = np.concatenate([strip.drawn for strip in strips])
    ends = [0.0, *deltas[drawn], *(strip.row[key] for strip in strips for key in ("ci_low", "ci_high", "difference"))]
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    heights = [number + MIDDLE + HALF * _jitter(deltas[strip.drawn], low, high) for number, strip in enumerate(strips)]
    at = np.concatenate(heights)
    for outcome, (word, color) in _outcomes(result.better[name]).items():
        mine = outcomes[drawn] == outcome
        trace = go.Scatter(
            x=deltas[drawn[mine]],
            y=at[mine],
            mode="markers",
            name=word,
            showlegend=False,
            marker={"color": color, "size": 5, "opacity": 0.6, "line_width": 0},
            customdata=_hover(result, name, drawn[mine]),
            hovertemplate="%{customdata[0]}: %{customdata[1]} to %{customdata[2]}, %{x:+.3g}<extra></extra>",
        )
        figure.add_trace(trace, row=row, col=1)
    known = [(number, strip.row) for number, strip in enumerate(strips) if strip.row["n_pairs"]]
    means = [found["difference"] for _, found in known]
    trace = go.Scatter(
        x=means,
        y=[number + MIDDLE for number, _ in known],
        mode="markers",
        name="mean",
        showlegend=False,
        marker={"symbol": "diamond", "color": "white", "size": 11, "line": {"color": INK, "width": 2}},
        error_x={
            "array": [found["ci_high"] - found["difference"] for _, found in known],
            "arrayminus": [found["difference"] - found["ci_low"] for _, found in known],
            "color": INK,
            "thickness": 2.5,
            "width": 6,
        },
        hovertemplate="mean %{x:.3g}<extra></extra>",
    )
    figure.add_trace(trace, row=row, col=1)
    rows = max(len(strips), 1)
    figure.add_shape(type="line", x0=0, x1=0, y0=0, y1=rows, line={"color": FAINT, "width": 1.2, "dash": "dot"}, row=row, col=1)
    for number, strip in enumerate(strips):
        told = _told(strip, result.better[name])
        _write(figure, told, row, y=number + 0.02, yref="y", yanchor="top", bgcolor="rgba(255,255,255,0.85)")
    against = _name(result.baseline)
    head = f'<span style="font-size:15px"><b>{escaped(name)}</b></span>  {faint(DIRECTIONS[result.better[name]])}'
    _write(figure, head, row, y=1, yanchor="bottom", yshift=8)
    margin = 0.04 * (high - low or 1)
    axis: dict[str, Any] = {"row": row, "col": 1, "zeroline": False}
    words = {"text": f"difference to {against}", "font": {"size": 12, "color": FAINT}, "standoff": 6}
    figure.update_xaxes(range=[low - margin, high + margin], title=words, gridcolor=GRID, nticks=9, **axis)
    figure.update_yaxes(range=[rows, 0], showticklabels=False, showgrid=False, **axis)


def _told(strip: Strip, better: str) -> str:
    """Return the label of a strip: who, the mean with its interval, and the items won and lost."""
    found = strip.row
    if not found["n_pairs"]:
        return f"<b>{strip.label}</b>  no pairs"
    bare = np.isnan(found["ci_low"])
    size = f"{found['difference']:+.3g}, no interval" if bare else between(found)
    p = "" if np.isnan(found["p_holm"]) else f"; p {p_text(found['p_holm'])}"
    counts = f"{tally(found, better)} of {found['n_pairs']:,}{p}"
    return f"<b>{strip.label}</b>  {size}<br>{faint(counts, 11)}"


def _hover(result: Comparison, name: str, places: NDArray[np.intp]) -> list[list[str]]:
    """Return what is shown of some rows: the item, and both scores."""
    items = labels_at([result.rows[label] for label in result.item], places)
    before, after = (result.rows[f"{name}_{side}"].to_numpy()[places] for side in ("baseline", "variant"))
    return [[item, f"{first:.3g}", f"{second:.3g}"] for item, first, second in zip(items, before, after, strict=True)]


def _jitter(values: Floats, low: float, high: float) -> Floats:
    """Return a height from -1 to 1 for every value, spread where values are dense, so that equal ones show as a column.

    Examples
    --------
    >>> _jitter(np.array([0.0, 0.0, 0.0, 0.9]), 0.0, 1.0).round(2).tolist()
    [0.0, -0.5, 0.5, 0.0]
    """
    bins = np.minimum(((values - low) / ((high - low) or 1.0) * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    order = np.argsort(bins, kind="stable")
    # The place of each value in its bin, in the order of van der Corput: 1/2, 1/4, 3/4, 1/8 ...
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    share, step = np.zeros(len(values)), 0.5
    left = rank + 1
    while left.any():
        share += (left & 1) * step
        left, step = left >> 1, step / 2
    return (2 * share - 1) * np.sqrt(counts[bins] / max(int(counts.max(initial=1)), 1))


def _draw_slopes(figure: go.Figure, result: Comparison, name: str, row: int) -> None:
    """Draw a line per item from the baseline's score to the variant's, one panel per variant."""
    before, after = (result.rows[f"{name}_{side}"].to_numpy() for side in ("baseline", "variant"))
    there = ~np.isnan(before) & ~np.isnan(after)
    low, high = _reach(np.concatenate([before[there], after[there]]))
    shift = 0.012 * (high - low)
    variants = result.variants[:MOST_PANELS]
    tight = len(variants) >= TIGHT
    for number, variant in enumerate(variants, start=1):
        pairs = np.flatnonzero(there & (result.rows["variant"] == variant).to_numpy(dtype=bool))
        drawn = _some(pairs, MOST_SLOPES)
        where = {"row": row, "col": number}
        _add_lines(figure, result, name, drawn, (before, after), shift, where)
        if len(pairs):
            digits = 2 if high - low <= TWO_DIGITS else 1
            means = float(before[pairs].mean()), float(after[pairs].mean())
            _add_means(figure, means, digits, where, start=number == 1 or not tight)
        of = f"{len(pairs):,}{'' if tight else ' pairs'}"
        _write(
            figure, faint(f"{len(drawn):,} of {of}" if len(drawn) < len(pairs) else of, 11), row, number, y=1, yanchor="bottom", yshift=4
        )
        first, last = (_name(label, TICK_CHARACTERS) for label in (result.baseline, variant))
        # Narrow panels name the baseline once, on a line of its own.
        ticks = [f"<br>{first}" if number == 1 else "", last] if tight else [first, last]
        axis: dict[str, Any] = {"zeroline": False, **where}
        figure.update_xaxes(range=[-0.5, 1.5], tickvals=[0, 1], ticktext=ticks, showgrid=False, tickangle=0, **axis)
        figure.update_yaxes(range=[low - 3 * shift, high + 3 * shift], gridcolor=GRID, nticks=5, showticklabels=number == 1, **axis)


def _add_lines(
    figure: go.Figure,
    result: Comparison,
    name: str,
    drawn: NDArray[np.intp],
    sides: tuple[Floats, Floats],
    shift: float,
    where: Mapping[str, int],
) -> None:
    """Draw the items' lines by outcome, each moved up or down a little so that equal ones show as a band."""
    import plotly.graph_objects as go

    outcomes = result.rows[f"{name}_outcome"].to_numpy(dtype=object)[drawn]
    moves = shift * _jitter(np.zeros(len(drawn)), 0.0, 1.0)
    for outcome, (word, color) in _outcomes(result.better[name]).items():
        mine = outcomes == outcome
        gaps = np.full(int(mine.sum()), np.nan)
        trace = go.Scatter(
            x=np.tile([0.0, 1.0, np.nan], len(gaps)),
            y=np.column_stack([*(side[drawn[mine]] + moves[mine] for side in sides), gaps]).ravel(),
            mode="lines",
            line={"color": color, "width": 1},
            opacity=0.4,
            name=word,
            showlegend=False,
            hoverinfo="skip",
        )
        figure.add_trace(trace, **where)


def _add_means(figure: go.Figure, means: tuple[float, float], digits: int, where: Mapping[str, int], *, start: bool) -> None:
    """Draw the means of both sides, with their numbers; that of the baseline where there is room."""
    import plotly.graph_objects as go

    trace = go.Scatter(
        x=[0, 1],
        y=means,
        mode="lines+markers",
        name="mean",
        showlegend=False,
        line={"color": INK, "width": 3},
        marker={"size": 7, "color": INK},
        hovertemplate=f"mean %{{y:.{digits}f}}<extra></extra>",
    )
    figure.add_trace(trace, **where)
    for place, anchor in ((0, "right"), (1, "left")) if start else ((1, "left"),):
        near: dict[str, Any] = {"x": place, "xref": "x", "y": means[place], "yref": "y", "xanchor": anchor, "xshift": 6 * (2 * place - 1)}
        _write(figure, f"<b>{means[place]:,.{digits}f}</b>", where["row"], where["col"], yanchor="middle", **near)


def _reach(scores: Floats) -> tuple[float, float]:
    """Return from where to where an axis of scores goes: 0 to 1 where all lie there.

    Examples
    --------
    >>> _reach(np.array([0.2, 0.9])), _reach(np.array([20.0, 90.0])), _reach(np.array([]))
    ((0.0, 1.0), (0.0, 90.0), (0.0, 1.0))
    """
    return min(0.0, float(scores.min(initial=0.0))), max(1.0, float(scores.max(initial=0.0)))


def _write(figure: go.Figure, text: str, row: int, column: int = 1, **place: Any) -> None:
    """Write a text into a panel; it is escaped already."""
    looks: dict[str, Any] = {"x": 0, "xref": "x domain", "yref": "y domain", "xanchor": "left", "align": "left"}
    looks["font"] = {"size": 13, "color": INK}
    figure.add_annotation(text=text, showarrow=False, row=row, col=column, **{**looks, **place})
