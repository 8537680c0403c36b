"""One HTML file with figures and tables that opens anywhere, without a network."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.widgets.looks import LEAST_WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterable

    import plotly.graph_objects as go

POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline' blob:; worker-src blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
"""What the page may do: run and show what is in it. Nothing is fetched, whatever a row's text says."""

LONG_CHARACTERS: Final = 60
"""A cell with more gets a column that is wide enough to read."""

STYLE: Final = """
:root { color-scheme: light; }
body { margin: 0; background: #f6f7f8; color: #24292f; }
body { font: 16px/1.55 Inter, "Helvetica Neue", Arial, "Noto Sans", "Noto Sans CJK JP", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 24px 80px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 8px; }
h2 { font-size: 20px; margin: 44px 0 12px; }
h1, h2 { overflow-wrap: anywhere; }
p { max-width: 75ch; margin: 0 0 12px; white-space: pre-line; overflow-wrap: anywhere; }
.card { background: #fff; border: 1px solid #e1e4e8; border-radius: 8px; padding: 8px 12px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; line-height: 1.45; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: #5b6470; padding: 8px 12px; border-bottom: 2px solid #e1e4e8; white-space: nowrap; }
td { padding: 8px 12px; border-bottom: 1px solid #eef0f2; vertical-align: top; white-space: pre-wrap; overflow-wrap: break-word; }
td:not(.number) { min-width: 7ch; }
td.long { min-width: 24ch; }
td.long div { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 9; line-clamp: 9; overflow: hidden; overflow-wrap: anywhere; }
td.long div:focus { display: block; }
th.number, td.number { text-align: right; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
@media print { body { background: #fff; } td.long div { display: block; } .card { break-inside: avoid; } }
@media (max-width: 640px) { main { padding: 24px 12px 48px; } h1 { font-size: 24px; } .card { padding: 6px; } th, td { padding: 6px 8px; } }
"""


def write_page(path: str | os.PathLike[str], sections: Mapping[str, go.Figure | pd.DataFrame | str], *, title: str) -> Path:
    """Write figures, tables and texts into one HTML file and return its path.

    Parameters
    ----------
    path
        The file to write; replaced when it is there.
    sections
        Heading -> a plotly figure, a frame (its columns, not its index, become a table) or a text, in the order of the page.
    title
        The page's heading.

    Returns
    -------
    pathlib.Path
        The file: about 5 MB where there is a figure, for plotly.js is embedded once; a few kB otherwise. It opens without a network: a
        content security policy forbids the page to fetch anything. Every text is escaped. Figures are as wide as the window; a table, or a
        figure that needs more room, scrolls inside its box; a long text in a cell ends with "…" until it is clicked.

    Raises
    ------
    ArgumentTypeError
        When a section is of another kind, or ``path``, ``title`` or a heading is.
    OptionRangeError
        When the folder to write into is not there, or ``path`` is a folder. Nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> page = write_page(Path(folder.name) / "page.html", {"Scores": pd.DataFrame({"text": ["<b>"], "score": [0.5]})}, title="Two & two")
    >>> '<td>&lt;b&gt;</td><td class="number">0.50</td>' in page.read_text(encoding="utf-8")
    True
    >>> folder.cleanup()
    """
    target = _checked(path, sections, title)
    parts = [f"<h2>{html.escape(heading)}</h2>\n{_section(heading, content)}" for heading, content in sections.items()]
    body = "\n".join(parts)
    drawn = any(not isinstance(content, (pd.DataFrame, str)) for content in sections.values())
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{html.escape(title)}</title>
<style>{STYLE}</style>
{_plotly_script() if drawn else ""}
</head>
<body>
<main>
<h1>{html.escape(title)}</h1>
{body}
</main>
</body>
</html>
"""
    # A lone surrogate from a row has no UTF-8.
    target.write_text(page, encoding="utf-8", errors="replace", newline="\n")
    return target


def _checked(path: object, sections: object, title: object) -> Path:
    """Return the path to write if all of a page's arguments can be used."""
    if not isinstance(sections, Mapping):
        raise ArgumentTypeError.from_value("sections", sections, "a dict of headings and what stands under them")
    for heading in sections:
        if not isinstance(heading, str):
            raise ArgumentTypeError.from_value("Each heading in sections", heading, "a text")
    return checked_path(path, title)


def checked_path(path: object, title: object) -> Path:
    """Return the path of a page to write if it can be written under that title."""
    if not isinstance(title, str):
        raise ArgumentTypeError.from_value("title", title, "a text")
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError.from_value("path", path, "the path of a file")
    target = Path(path)
    if target.is_dir():
        raise OptionRangeError.from_value("path", str(path), "a file, not a folder")
    if not target.parent.is_dir():
        raise OptionRangeError.from_value("path", str(path), f"in a folder that is there; make {str(target.parent)!r} first")
    return target


def _section(heading: str, content: Any) -> str:
    """Return one section as HTML."""
    if isinstance(content, str):
        return f"<p>{html.escape(content)}</p>"
    if isinstance(content, pd.DataFrame):
        return f'<div class="card">{table_html(content)}</div>'
    if hasattr(content, "to_html") and hasattr(content, "layout"):
        config = {"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
        drawn: str = content.to_html(full_html=False, include_plotlyjs=False, include_mathjax=False, config=config)
        return f'<div class="card"><div style="min-width: {_least_width(content)}px">{drawn}</div></div>'
    raise ArgumentTypeError.from_value(f"the section {heading!r}", content, "a plotly figure, a DataFrame or a text")


def _least_width(figure: Any) -> int:
    """Return below which width a figure is scrolled sideways instead of squeezed; 0 for one that does not say."""
    known = figure.layout.meta
    least = known.get(LEAST_WIDTH, 0) if isinstance(known, dict) else 0
    return least if isinstance(least, int) else 0


def _plotly_script() -> str:
    """Return plotly.js as a script element."""
    from plotly.offline import get_plotlyjs

    return f"<script>{get_plotlyjs()}</script>"


def table_html(df: pd.DataFrame) -> str:
    """Return a frame as an HTML table; every text in it escaped."""
    numbers = [pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype) for dtype in df.dtypes]
    heads = "".join(
        f"<th{_class(number=number)}>{html.escape(str(column))}</th>" for column, number in zip(df.columns, numbers, strict=True)
    )
    body = "\n".join(f"<tr>{_row(cells, numbers)}</tr>" for cells in df.itertuples(index=False, name=None))
    return f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _row(cells: Iterable[object], numbers: Iterable[bool]) -> str:
    """Return the cells of one row."""
    return "".join(_cell(_shown(cell), number=number) for cell, number in zip(cells, numbers, strict=True))


def _cell(text: str, *, number: bool) -> str:
    """Return one cell; a long text ends with "…" until it is clicked or has the focus."""
    if len(text) > LONG_CHARACTERS:
        return f'<td class="long"><div tabindex="0">{html.escape(text)}</div></td>'
    return f"<td{_class(number=number)}>{html.escape(text)}</td>"


def _shown(cell: Any) -> str:
    """Return a cell's text: floats with two digits, nothing for a missing one."""
    if isinstance(cell, float):
        return "" if pd.isna(cell) else f"{cell:.2f}"
    return "" if pd.api.types.is_scalar(cell) and pd.isna(cell) else str(cell)


def _class(*, number: bool) -> str:
    """Return the class attribute of a cell."""
    return ' class="number"' if number else ""
