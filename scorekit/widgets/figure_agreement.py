"""The figure of an agreement: the matrix with counts and shares, and TPR, TNR and Youden's J over the threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from scorekit.analysis.agreement import Agreement
from scorekit.errors import ArgumentTypeError
from scorekit.widgets.looks import DASHES, FAINT, GRID, INK, PALETTE, escaped, faint, finish

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from scorekit.analysis.verdicts import Codes

CELL, CURVE, GAP = 58, 240, 116
"""Height of a row of the matrix, of the curve, and of what is written between them, in pixels."""

MANY: Final = 6
"""With more classes than this a cell shows its count alone, in a lower row."""

AGREED, DISPUTED = "#8fbbe0", "#f2b48c"
"""Colours of cells that hold all rows of their label; dark text is readable on both."""

SUBTITLE_CHARACTERS: Final = 400
MOST_POINTS: Final = 2000

ROOM: Final = 0.3
"""The share of the axis that a mark's name needs beside its line on a narrow screen."""

LINES: Final = (("tpr", "TPR", 2.0), ("tnr", "TNR", 2.0), ("j", "J", 3.0))


def figure_agreement(result: Agreement) -> go.Figure:
    """Return an agreement as a plotly figure.

    Parameters
    ----------
    result
        What `scorekit.agreement` returned.

    Returns
    -------
    plotly.graph_objects.Figure
        Above, the matrix: in every cell the rows and their share of the rows with that human label; blue where label and score agree, orange where not.
        Below, where the score is a number: TPR, TNR and J = TPR + TNR - 1 over the threshold, with the threshold used and the best one marked. It
        holds counts and the curve (2,000 points at most), never rows.

    Raises
    ------
    ArgumentTypeError
        When it is given anything else.

    Examples
    --------
    >>> import pandas as pd
    >>> from scorekit.analysis.agreement import agreement
    >>> df = pd.DataFrame({"relevancy_score": [0.9, 0.8, 0.7, 0.2], "label": ["yes", "yes", "no", "no"]})
    >>> figure = figure_agreement(agreement(df, score="relevancy", human="label"))
    >>> figure.data[0].text.tolist()
    [['2<br>100 %', '0<br>0 %'], ['1<br>50 %', '1<br>50 %']]
    """
    if not isinstance(result, Agreement):
        raise ArgumentTypeError.from_value("figure_agreement: the first argument", result, "what agreement returned")
    from plotly.subplots import make_subplots

    classes = len(result.classes)
    matrix = max(classes * (CELL if classes <= MANY else CELL // 2), 2 * CELL)
    drawn = len(result.curve) > 0
    inside = matrix + (GAP + CURVE if drawn else 0)
    looks: dict[str, Any] = {"row_heights": [matrix, CURVE], "vertical_spacing": GAP / inside} if drawn else {}
    figure = make_subplots(rows=2 if drawn else 1, cols=1, **looks)
    _draw_matrix(figure, result)
    if drawn:
        _draw_curve(figure, result)
    counts = ", ".join(f"{count:,} {name}" for name, count in result.counts.items() if count)
    title = f"{escaped(result.score)} and {escaped(result.human)}"
    subtitle = escaped(f"{result.remarks[0]} Rows: {counts}.", SUBTITLE_CHARACTERS)
    finish(figure, title, subtitle, inside=inside, above=44, bottom=64)
    figure.update_layout(showlegend=False, margin_l=84)
    return figure


def _draw_matrix(figure: go.Figure, result: Agreement) -> None:
    """Draw the matrix, its first class in the upper left corner."""
    import plotly.graph_objects as go

    counts = result.matrix.to_numpy()
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros(counts.shape), where=totals > 0)
    names = [escaped(name) for name in result.classes]
    few = len(names) <= MANY
    text = [
        [f"{count:,}" + (f"<br>{share * 100:.0f} %" if few and total else "") for count, share in zip(row, row_shares, strict=True)]
        for row, row_shares, total in zip(counts.tolist(), shares.tolist(), totals[:, 0].tolist(), strict=True)
    ]
    human, score = escaped(result.human), escaped(result.score)
    hover = [
        [
            f"{human}: {own}, {score}: {given}<br>{count:,} rows, {share * 100:.1f} % of the {total:,} rows that {human} calls {own}"
            for given, count, share in zip(names, row, row_shares, strict=True)
        ]
        for own, row, row_shares, total in zip(names, counts.tolist(), shares.tolist(), totals[:, 0].tolist(), strict=True)
    ]
    at = np.arange(len(names))
    trace = go.Heatmap(
        x=at,
        y=at,
        z=np.where(np.eye(len(names), dtype=bool), shares, -shares),
        zmin=-1,
        zmax=1,
        colorscale=[[0, DISPUTED], [0.5, "#ffffff"], [1, AGREED]],
        showscale=False,
        xgap=3,
        ygap=3,
        text=np.array(text, dtype=object),
        texttemplate="%{text}",
        textfont={"size": 14 if few else 11, "color": INK},
        hovertext=np.array(hover, dtype=object),
        hovertemplate="%{hovertext}<extra></extra>",
    )
    figure.add_trace(trace, row=1, col=1)
    ends: dict[str, Any] = {"tickvals": at, "ticktext": names, "showgrid": False, "zeroline": False, "row": 1, "col": 1}
    figure.update_xaxes(title={"text": f"{score}{_rule(result)}", "font": {"size": 12, "color": FAINT}, "standoff": 6}, tickangle=0, **ends)
    figure.update_yaxes(autorange="reversed", ticks="outside", ticklen=4, tickcolor="white", automargin=True, **ends)
    metrics = result.table.set_index("metric")["value"]
    written = [
        f"{name} <b>{metrics[metric]:.2f}</b>" for metric, name in (("accuracy", "accuracy"), ("kappa", "kappa")) if metrics.notna()[metric]
    ]
    _write(figure, f'<span style="font-size:15px"><b>{human}</b></span>  {faint("in rows")}   {"   ".join(written)}', 1)


def _draw_curve(figure: go.Figure, result: Agreement) -> None:
    """Draw TPR, TNR and J as steps, and mark the threshold used and the best one."""
    import plotly.graph_objects as go

    curve = _thinned(result)
    low, high = min(0.0, float(curve["threshold"].min())), max(1.0, float(curve["threshold"].max()))
    known = not curve["j"].isna().all()
    # Below every score all rows pass, or, of a score that is better when lower, none does.
    ends = {"tpr": (0.0, 1.0), "tnr": (1.0, 0.0), "j": (0.0, 0.0)}
    written = []
    for place, (column, name, width) in enumerate(LINES):
        values = curve[column].to_numpy()
        if np.isnan(values).all():
            continue
        first, last = ends[column] if result.lower_is_better else ends[column][::-1]
        trace = go.Scatter(
            x=[low, *curve["threshold"], high],
            y=[first, *values, last],
            mode="lines",
            name=name,
            # A threshold between two scores decides as the upper one does; of lower-is-better scores, as the lower one.
            line={"shape": "hv" if result.lower_is_better else "vh", "color": PALETTE[place], "width": width, "dash": DASHES[place]},
            hovertemplate=f"{name} %{{y:.2f}} at %{{x:.3g}}<extra></extra>",
        )
        figure.add_trace(trace, row=2, col=1)
        used = float(curve.loc[curve["threshold"] == result.threshold, column].iloc[0])
        written.append(f'<span style="color:{PALETTE[place]}">{name} <b>{used:.2f}</b></span>')
    floor = min(0.0, float(curve["j"].min())) if known else 0.0
    used, best = result.threshold, result.best_threshold
    if known and best != used:
        _mark(figure, used, f"used {used:.3g}", (low, high), left=best > used)
        _mark(figure, best, f"best {best:.3g}: J {curve['j'].max():.2f}", (low, high), left=best < used, above=True)
    else:
        _mark(figure, used, f"used {used:.3g}{', the best' if known else ''}", (low, high), left=used > (low + high) / 2)
    margin = 0.012 * (high - low)
    axis: dict[str, Any] = {"row": 2, "col": 1, "zeroline": False}
    figure.update_xaxes(
        range=[low - margin, high + margin],
        title={
            "text": f"threshold (a score at or {'below' if result.lower_is_better else 'above'} it passes)",
            "font": {"size": 12, "color": FAINT},
            "standoff": 6,
        },
        showgrid=False,
        ticks="outside",
        tickcolor=GRID,
        **axis,
    )
    figure.update_yaxes(range=[floor - 0.02, 1.3], tickvals=np.arange(np.floor(floor * 4), 5) / 4, gridcolor=GRID, **axis)
    head = '<span style="font-size:15px"><b>Threshold</b></span>'
    _write(figure, f"{head}  {faint(f'at {result.threshold:.3g}:')} {'   '.join(written)}", 2)


def _thinned(result: Agreement) -> pd.DataFrame:
    """Return the curve at `MOST_POINTS` places at most, the threshold used and the best one among them."""
    curve = result.curve
    if len(curve) <= MOST_POINTS:
        return curve
    kept: Codes = np.unique(np.linspace(0, len(curve) - 1, MOST_POINTS - 2).round().astype(np.int64))
    marked = np.flatnonzero(curve["threshold"].isin([result.threshold, result.best_threshold]))
    return curve.iloc[np.union1d(kept, marked)]


def _mark(figure: go.Figure, at: float, text: str, ends: tuple[float, float], *, left: bool, above: bool = False) -> None:
    """Mark a threshold by a line with its name above the curve, left of the line or right of it where there is room."""
    top = 1.22 if above else 1.1
    color, dash = (FAINT, "dash") if above else (INK, "solid")
    figure.add_shape(type="line", x0=at, x1=at, y0=0, y1=top, line={"color": color, "width": 1.6, "dash": dash}, row=2, col=1)
    share = (at - ends[0]) / (ends[1] - ends[0])
    turned = share > ROOM if left else share > 1 - ROOM
    near: dict[str, Any] = {"xanchor": "right", "xshift": -3} if turned else {"xanchor": "left", "xshift": 3}
    looks: dict[str, Any] = {"font": {"size": 12, "color": color}, "bgcolor": "rgba(255,255,255,0.7)", "yanchor": "middle", **near}
    figure.add_annotation(text=text, x=at, y=top, showarrow=False, row=2, col=1, **looks)


def _write(figure: go.Figure, text: str, row: int) -> None:
    """Write a panel's title; it is escaped already."""
    place: dict[str, Any] = {"x": 0, "xref": "x domain", "xanchor": "left", "y": 1, "yref": "y domain", "yanchor": "bottom", "yshift": 6}
    figure.add_annotation(text=text, showarrow=False, align="left", font={"size": 13}, row=row, col=1, **place)


def _rule(result: Agreement) -> str:
    """Return when a row passes, for the matrix; nothing where the score is a label."""
    return "" if np.isnan(result.threshold) else f" (pass: at or {'below' if result.lower_is_better else 'above'} {result.threshold:.3g})"
