"""The views of `explore` and `side_by_side` as one HTML file each, that opens without a network and changes nothing."""

from __future__ import annotations

import html
import json
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.analysis.statistics import check_whole
from scorekit.errors import ArgumentTypeError, listed
from scorekit.texts import without_surrogates
from scorekit.widgets.assets import script, style
from scorekit.widgets.explorer import Explorer, explore
from scorekit.widgets.page import POLICY, STYLE, checked_path
from scorekit.widgets.pairs import Pairs
from scorekit.widgets.rows import ORDERS
from scorekit.widgets.side_by_side import SideBySide

if TYPE_CHECKING:
    import os
    from pathlib import Path

START: Final = """
const payload = JSON.parse(document.getElementById("payload").textContent);
const view = document.getElementById("view");
%s(%s(payload), view);
view.firstChild.classList.add("sk-page");
"""


def export_html(
    view: Explorer | SideBySide | pd.DataFrame,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    most_rows: int = 5_000,
    **options: Any,
) -> Path:
    """Write a view into one HTML file, read-only, and return its path.

    Parameters
    ----------
    view
        What `explore` or `side_by_side` returned, with its filters, order, labels and votes as they are; or a scored frame.
    path
        The file to write; replaced when it is there.
    title
        The page's heading; by default "Error analysis", or "Comparison of variants".
    most_rows
        Rows written at most, the first in the order of reading; the page says how many were left out. Filters that leave a row out do not: they
        are the page's too, and can be taken away there.
    **options
        With a frame: options of `explore`, such as ``by=`` or ``order=``.

    Returns
    -------
    pathlib.Path
        The file. It opens without a network: a content security policy forbids the page to fetch anything. Texts of rows are data in it, never markup.

    Raises
    ------
    ArgumentTypeError
        When ``view`` is neither, or with options beside a view.
    OptionRangeError
        When the folder of ``path`` is not there, or ``most_rows`` is below 1.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> df = pd.DataFrame({"input": ["<b>q</b>"], "output": ["a"], "tone_score": [0.9]})
    >>> page = export_html(df, folder.name + "/view.html", title="Tone")
    >>> "<b>q</b>" in page.read_text(encoding="utf-8")
    False
    >>> folder.cleanup()
    """
    if options and not isinstance(view, pd.DataFrame):
        msg = f"export_html: {listed(options)} go with a frame, and the first argument is none; give them to explore(df) instead."
        raise ArgumentTypeError(msg)
    shown = explore(view, **options) if isinstance(view, pd.DataFrame) else view
    most = check_whole("most_rows", most_rows, 1)
    title = title if title is not None else "Comparison of variants" if isinstance(shown, SideBySide) else "Error analysis"
    target = checked_path(path, title)
    if isinstance(shown, Explorer):
        payload, total, code, start = static_payload(shown, most), len(shown.rows), "explorer.js", START % ("mount", "staticModel")
    elif isinstance(shown, SideBySide):
        payload, total, code, start = (
            static_pairs(shown, most),
            len(shown.found.rows),
            "side_by_side.js",
            START % ("mountPairs", "staticPairs"),
        )
    else:
        raise ArgumentTypeError.from_value(
            "export_html: the first argument", view, "a scored DataFrame, or what explore or side_by_side returned"
        )
    count = len(payload["rows"])
    left_out = "" if count == total else f"<p>The first {count:,} of {total:,} rows in the order of reading.</p>"
    program = script(code).split("export default", maxsplit=1)[0]
    # "<" is the only character that could end the script element or begin a comment in it.
    data = json.dumps(payload, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c")
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{html.escape(title)}</title>
<style>{STYLE}{PAGE_STYLE}{style()}</style>
</head>
<body>
<main class="wide">
<h1>{html.escape(title)}</h1>
{left_out}
<div id="view"></div>
</main>
<script id="payload" type="application/json">{data}</script>
<script type="module">{program}{start}</script>
</body>
</html>
"""
    target.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    return target


PAGE_STYLE: Final = """
:root { color-scheme: light dark; }
main.wide { max-width: 1400px; }
@media (prefers-color-scheme: dark) { body { background: #14171b; color: #e3e7eb; } }
"""


def static_payload(view: Explorer, most: int) -> dict[str, Any]:
    """Return what a page needs to show a view without Python: every row in full, in its own numbering from 0."""
    rows, marks = view.rows, view.marks
    order = rows.order(view.order, rows.names[0], view.seed)
    kept = np.sort(order[:most])
    number = {int(position): place for place, position in enumerate(kept)}
    found = []
    for position in kept.tolist():
        detail = rows.detail(position)
        mark = marks[position]
        told = {"label": mark.label, "note": mark.note, "tags": list(mark.tags)}
        groups = {column: values[position] for column, values in rows.groups.items()}
        found.append({**detail, **told, "position": number[position], "groups": groups, "cell": None})
    if view.agreement is not None:
        labels = ("missing", "unsure", *view.agreement.classes)
        for human, score in product(labels, labels):
            for position in np.flatnonzero(view.agreement.rows(human, score)).tolist():
                if position in number:
                    found[number[position]]["cell"] = [without_surrogates(human), without_surrogates(score)]
    orders = {name: [number[int(at)] for at in rows.order(name, rows.names[0], view.seed) if int(at) in number] for name in ORDERS}
    return {
        "setup": {**view.setup, "readonly": True},
        "rows": found,
        "bins": {name: bins[kept].tolist() for name, bins in rows.bins.items()},
        "orders": orders,
        "start": {"filters": dict(view.filters), "order": view.order},
        "marked": {**view.marked, "save": None, "strangers": 0},
    }


def static_pairs(view: SideBySide, most: int) -> dict[str, Any]:
    """Return what a page needs to show pairs without Python: every item and compared variant in full, in its own numbering from 0."""
    found = view.found
    order = view.pairs.places[view.pairs.order(view.order)]
    kept = np.sort(np.concatenate([order, np.setdiff1d(np.arange(len(found.rows)), order)])[:most])
    number = {int(place): new for new, place in enumerate(kept)}
    rows: list[dict[str, Any]] = [{} for _ in kept]
    intervals: dict[str, dict[str, Any]] = {}
    span: dict[str, list[float]] = {}
    for score, variant in product(found.scores, found.variants):
        pairs = Pairs(found, score, variant)
        name = without_surrogates(str(variant))
        span[score] = [min(pairs.low, span.get(score, [0.0])[0]), max(pairs.high, span.get(score, [0.0, 1.0])[1])]
        numbers = pairs.numbers(np.ones(len(pairs), dtype=bool))
        intervals.setdefault(score, {})[name] = [numbers["low"], numbers["high"]]
        for at, place in enumerate(pairs.places.tolist()):
            if place in number:
                row = rows[number[place]]
                line = pairs.line(at)
                row["scores"] = {**row.get("scores", {}), score: {part: line[part] for part in ("baseline", "variant", "delta", "outcome")}}
                if "of" not in row:
                    row |= {**pairs.detail(at), "position": number[place], "of": name, "vote": view.marks[place].label}
    rows = [
        row or {"position": place, "of": None, "scores": {}, "input": "", "outputs": {"baseline": [], "variant": []}}
        for place, row in enumerate(rows)
    ]
    start = {"filters": dict(view.filters), "score": view.score, "variant": without_surrogates(str(view.variant)), "order": view.order}
    return {
        "setup": {**view.setup, "readonly": True},
        "rows": rows,
        "span": span,
        "intervals": intervals,
        "better": found.better,
        "start": start,
    }
