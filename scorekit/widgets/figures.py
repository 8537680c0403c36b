"""Figures of scored frames: pure functions from a frame to a plotly figure. plotly is imported when one is drawn."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from scorekit.analysis.statistics import check_real, check_whole
from scorekit.analysis.summary import Groups, column_labels, group_rows, read_score, select_scores, worse_when_higher
from scorekit.columns import HIGHER_IS_BETTER, require, require_frame
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, UnknownOptionError, listed
from scorekit.widgets.looks import FAINT, PALETTE, cell_label, escaped, finish, in_lines, joined_names, labels_at, largest, option_columns
from scorekit.widgets.panels import Mode, Panel, bin_scores

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Sequence

    import plotly.graph_objects as go
    from numpy.typing import NDArray

Layout = Literal["auto", "overlay", "multiples"]
LAYOUTS: Final = ("auto", "overlay", "multiples")
OVERLAID: Final = 3
"""Up to so many groups ``layout="auto"`` draws over one another."""

LEAST_BINS, MOST_BINS = 2, 200
VERDICTS: Final = ("yes", "unsure", "no")
UNSURE: Final = "#b9bec5"

MEANS_LINE: Final = 17
LEGEND_SIGN: Final = 6
"""How many characters wide the line before a legend's entry is."""

LABEL_PIXELS, LEAST_BARS = 7, 240
"""About how wide one character of a label is, and how wide the bars are at least, in pixels."""

PANEL_WIDTH: Final = 270
"""Panels side by side are at least so wide, in pixels."""


def figure_scores(
    df: pd.DataFrame,
    /,
    *,
    scores: str | Sequence[str] | None = None,
    by: Hashable | Sequence[Hashable] | None = None,
    scale: float = 1.0,
    bins: int = 20,
    layout: Layout = "auto",
    most_groups: int = 12,
    lower_is_better: Collection[str] = (),
) -> go.Figure:
    """Return the distribution of every score as a plotly figure.

    Parameters
    ----------
    df
        A scored frame; not changed.
    scores
        Names of scorers, such as ``"relevancy"``; by default every scorer that has scored the frame.
    by
        A column, or a list of several, whose values make groups to compare, such as ``"variant"``; an empty list is like None.
    scale
        What the scores were multiplied by, above 0; the bins reach from 0 to it.
    bins
        How many bins, from 2 to 200. Each holds its lower end, the last one both ends.
    layout
        With ``by``: ``"overlay"`` draws the groups (4 at most) over one another, a panel per score; ``"multiples"`` draws a panel per
        score and group; ``"auto"`` overlays up to 3 groups.
    most_groups
        Groups drawn at most, the largest first; the title says how many were left out.
    lower_is_better
        Names of scores that are worse when higher, beside the shipped ones. The titles tell the direction of these and of the shipped scores, of no others.

    Returns
    -------
    plotly.graph_objects.Figure
        It holds bin counts, never rows. With ``by``, heights are shares of a group's scored rows. A panel's title counts the rows without a
        score, and scores outside 0 to ``scale``, which stand in a bar of their own beside the scale. Bands are shaded for the shipped
        scores; those that hold exactly 0 or exactly the scale are written under these ends.

    Raises
    ------
    MissingColumnError, ArgumentTypeError
        When a score or a column of ``by`` is not there, or holds no numbers; when an option is of the wrong kind.
    OptionRangeError, UnknownOptionError
        When ``scores`` is empty, or ``scale``, ``bins``, ``most_groups`` or ``layout`` cannot be drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> figure = figure_scores(pd.DataFrame({"tone_score": [0.2, 0.9, 1.0, None]}), bins=5)
    >>> figure.data[0].y.tolist()
    [0, 1, 0, 0, 2]
    """
    frame = require_frame(df, "figure_scores")
    top = check_real("scale", scale)
    if not (top > 0 and np.isfinite(top)):
        raise OptionRangeError.from_value("scale", scale, "finite and above 0")
    bins = check_whole("bins", bins, LEAST_BINS, MOST_BINS)
    most_groups = check_whole("most_groups", most_groups, 1)
    if layout not in LAYOUTS:
        raise UnknownOptionError.from_value("layout", layout, LAYOUTS)
    worse = worse_when_higher(lower_is_better)
    names = select_scores(frame, scores, "figure_scores")
    keys = column_labels(frame, by)
    columns = option_columns(frame, by, "figure_scores", "by")
    found = group_rows(columns, len(frame))
    groups = largest(found, columns, most_groups)
    if layout == "overlay" and len(groups) > len(PALETTE):
        wanted = f"'multiples' for {len(groups)} groups: {len(PALETTE)} at most can be told apart in one panel"
        raise OptionRangeError.from_value("layout", layout, wanted)
    mode: Mode = (
        "plain" if not keys else "multiples" if layout == "multiples" or (layout == "auto" and len(groups) > OVERLAID) else "overlay"
    )
    binned = {name: [bin_scores(values[group.positions], top, bins) for group in groups] for name, values in _scores(frame, names)}
    rows = max(len(groups), 1) if mode == "multiples" else len(names)
    # In an overlay every panel's title tells the groups' means, in as many lines as their labels need.
    more = len(in_lines([f"{group.label} 0.00" for group in groups])) if mode == "overlay" else 0
    figure, inside = _grid(rows, len(names) if mode == "multiples" else 1, tight=mode == "multiples", title=MEANS_LINE * more)
    for i, (name, data) in enumerate(binned.items(), start=1):
        tallest = max((part.tallest(mode) for part in data), default=0.0) or 1.0
        for row in range(1, rows + 1) if mode == "multiples" else [i]:
            part = slice(row - 1, row) if mode == "multiples" else slice(None)
            panel = Panel(figure, row, i if mode == "multiples" else 1, rows=rows, scale=top, bins=bins, mode=mode)
            panel.draw(name, groups[part], data[part], tallest, lower=name in worse)
    subtitle = f"{len(frame):,} rows"
    if keys:
        which = (
            f"{found.total} groups by {joined_names(keys)}"
            if len(groups) == found.total
            else f"the {len(groups)} largest of {found.total} groups"
        )
        subtitle += f"; {which}; heights are shares of a group's scored rows"
    title = f"Scores by {joined_names(keys)}" if keys else "Scores"
    legend = len(in_lines([f"{group.label}{' ' * LEGEND_SIGN}" for group in groups])) if mode == "overlay" else 0
    least = len(names) * PANEL_WIDTH if mode == "multiples" and len(names) > 1 else 0
    finish(figure, title, subtitle, inside=inside, above=70 if mode == "multiples" else 56 + MEANS_LINE * more, legend=legend, least=least)
    figure.update_layout(barmode="overlay", bargap=0, showlegend=mode == "overlay")
    return figure


def _scores(df: pd.DataFrame, names: Sequence[str]) -> list[tuple[str, NDArray[np.float64]]]:
    """Return the scores of each scorer."""
    return [(name, read_score(df, name)) for name in names]


def figure_statements(
    df: pd.DataFrame,
    /,
    name: str = "relevancy",
    *,
    by: Hashable | Sequence[Hashable] | None = None,
    label: Hashable | Sequence[Hashable] | None = None,
    most: int = 40,
    lower_is_better: Collection[str] = (),
) -> go.Figure:
    """Return the verdicts on each row's statements, or each group's, as stacked bars.

    Parameters
    ----------
    df
        A scored frame; not changed.
    name
        A judged scorer that counts verdicts: its columns ``<name>_yes``, ``<name>_no`` and, where there is one, ``<name>_unsure`` are read.
    by
        A column, or a list of several: one bar per group, over the statements of all its rows together.
    label
        Without ``by``: a column, or a list of several, that name the rows, such as ``["id", "variant"]``; by default the index does.
    most
        Bars drawn at most, the worst first; the title says of how many.
    lower_is_better
        Names of scores for which "yes" is the bad verdict, beside the shipped ones. For scores that are neither among these nor shipped the figure does not say
        what is good: fewest "yes" come first.

    Returns
    -------
    plotly.graph_objects.Figure
        One bar per row or group, worst on top (an unsure verdict counts half), as shares of its statements; the counts are written into
        the bars and the number of statements behind the label. Rows without statements are counted in the title and not drawn.

    Raises
    ------
    MissingColumnError
        When the frame has no verdicts of that scorer, or not the column of ``by`` or ``label``.
    ArgumentTypeError
        When verdicts are not counted in numbers, or an option is of the wrong kind.
    OptionRangeError
        When ``most`` is below 1.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"relevancy_yes": [2.0, 0.0], "relevancy_unsure": [0.0, 1.0], "relevancy_no": [0.0, 3.0]}, index=["q1", "q2"])
    >>> figure = figure_statements(df)
    >>> list(figure.layout.yaxis.ticktext)
    ['q2  (4)', 'q1  (2)']
    """
    frame = require_frame(df, "figure_statements")
    most = check_whole("most", most, 1)
    if not isinstance(name, str):
        raise ArgumentTypeError.from_value("name", name, "a scorer's name")
    lower = name in worse_when_higher(lower_is_better)
    counts = _verdict_counts(frame, name)
    totals = np.sum(list(counts.values()), axis=0)
    bare = int((totals == 0).sum())
    keys = column_labels(frame, by)
    columns = option_columns(frame, by if keys else label, "figure_statements", "by" if keys else "label")
    groups = group_rows(columns, len(frame)) if keys else Groups(np.arange(len(frame)), np.arange(len(frame)))
    sums = {verdict: np.bincount(groups.codes, values, groups.total).astype(np.float64) for verdict, values in counts.items()}
    of = np.bincount(groups.codes, totals, groups.total).astype(np.float64)
    drawn = np.flatnonzero(of > 0)
    merit = (sums["yes"][drawn] + 0.5 * sums.get("unsure", np.zeros(len(of)))[drawn]) / of[drawn] * (-1 if lower else 1)
    worst = drawn[np.lexsort((-of[drawn], merit))][:most]
    labels = labels_at(columns, groups.first[worst]) if columns else _index_labels(frame.index[worst])
    figure = _stacked(sums, of, worst, labels, lower=lower)
    known = lower or name in HIGHER_IS_BETTER
    what = f"groups by {joined_names(keys)}" if keys else "rows"
    first = "worst" if known else "fewest yes"
    limit = (
        f"all {len(drawn):,} {what}"
        if len(worst) == len(drawn)
        else f"the {len(worst):,} {'worst of' if known else 'first of'} {len(drawn):,} {what}"
    )
    direction = f"a yes is {'bad' if lower else 'good'}; " if known else ""
    subtitle = f"{direction}{limit}, {first} first, an unsure counted half; number of statements in brackets"
    subtitle += f"; {bare:,} rows without statements are not drawn" if bare else ""
    least = LABEL_PIXELS * max((len(html.unescape(text)) for text in labels), default=0) + LEAST_BARS
    finish(figure, f"Verdicts of {escaped(name)}", subtitle, inside=max(len(worst), 3) * 22, above=16, legend=1, bottom=50, least=least)
    figure.update_layout(barmode="stack", bargap=0.22, margin_l=20, legend_traceorder="normal")
    return figure


def _verdict_counts(df: pd.DataFrame, name: str) -> dict[str, NDArray[np.float64]]:
    """Return how many statements of each row got each verdict; 0 where a row has none."""
    present = [verdict for verdict in VERDICTS if f"{name}_{verdict}" in df.columns]
    if not {"yes", "no"} <= set(present):
        counted = [str(column).removesuffix("_yes") for column in df.columns if str(column).endswith("_yes")]
        has = (
            f"has verdicts of {listed(counted)}"
            if counted
            else "has no verdicts; score it with a judged scorer first: df.pipe(sk.score_relevancy)"
        )
        msg = f"figure_statements needs the columns '{name}_yes' and '{name}_no'; the frame {has}."
        raise MissingColumnError(msg)
    columns = {verdict: require(df, f"{name}_{verdict}", "figure_statements") for verdict in present}
    return {verdict: _as_counts(column) for verdict, column in columns.items()}


def _as_counts(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Return a column of counts as floats, 0 where a row has none."""
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if not pd.api.types.is_numeric_dtype(column.dtype) and kind not in {"integer", "floating", "mixed-integer-float", "empty"}:
        msg = f"figure_statements: the column {column.name!r} must hold counts; it holds {kind}. Convert it with pd.to_numeric first."
        raise ArgumentTypeError(msg)
    return np.nan_to_num(np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=0.0), dtype=np.float64))


def _index_labels(index: pd.Index[Any]) -> list[str]:
    """Return a label for every row of an index."""
    return [" · ".join(map(cell_label, key)) if isinstance(key, tuple) else cell_label(key) for key in index]


def _stacked(
    sums: dict[str, NDArray[np.float64]], of: NDArray[np.float64], places: NDArray[np.intp], labels: list[str], *, lower: bool
) -> go.Figure:
    """Return one stacked bar per place, the first on top."""
    import plotly.graph_objects as go

    good, bad = PALETTE[0], PALETTE[1]
    colors = {"yes": bad if lower else good, "unsure": UNSURE, "no": good if lower else bad}
    figure = go.Figure()
    at = np.arange(len(places))
    for verdict, values in sums.items():
        counts = values[places]
        figure.add_bar(
            x=counts / of[places] * 100,
            y=at,
            orientation="h",
            name=verdict,
            marker={"color": colors[verdict], "line_width": 0},
            text=[f"{count:,.0f}" if count else "" for count in counts],
            textposition="inside",
            insidetextanchor="middle",
            textangle=0,
            textfont={"color": "#24292f" if verdict == "unsure" else "white", "size": 11},
            customdata=[[int(count), int(total)] for count, total in zip(counts, of[places], strict=True)],
            hovertemplate=f"{verdict}: %{{customdata[0]}} of %{{customdata[1]}} statements, %{{x:.0f}} %<extra></extra>",
        )
    ticks = [f"{text}  ({total:,.0f})" for text, total in zip(labels, of[places], strict=True)]
    # Rows are placed by number: on a category axis two rows of one label would become one bar.
    rows: dict[str, Any] = {"tickvals": at, "ticktext": ticks, "range": [max(len(places), 3) - 0.5, -0.5], "showgrid": False}
    rows |= {"automargin": True, "ticks": "outside", "ticklen": 6, "tickcolor": "white"}
    figure.update_yaxes(zeroline=False, **rows)
    figure.update_xaxes(
        range=[0, 100], ticksuffix=" %", title={"text": "share of statements", "font": {"size": 12, "color": FAINT}}, zeroline=False
    )
    return figure


def _grid(rows: int, columns: int, *, tight: bool, title: int) -> tuple[go.Figure, int]:
    """Return a figure of empty panels and how many pixels high they are together; titles get ``title`` pixels more than usual."""
    from plotly.subplots import make_subplots

    panel, gap = (150, 34) if tight else (210, 96 + title)
    inside = rows * panel + (rows - 1) * gap
    spacing = {"vertical_spacing": gap / inside if rows > 1 else 0, "horizontal_spacing": 0.06 if columns > 1 else 0}
    return make_subplots(rows=rows, cols=columns, **spacing), inside
