"""How fast explore() is in a browser, beside the obvious alternative there: ``python benchmarks/explore.py`` (pip install '.[test]', apt-get install chromium).

A real JupyterLab in headless Chromium, a kernel and a notebook for each line. Times are taken in the browser: from the run of the cell, the key or the
move of the mouse to the change of the page, the way to Python and back included. The alternative is one plotly FigureWidget with the same scores,
binned by numpy, a subplot each, and a callback that shows the first 25 rows of what is brushed. Its first view has the import of plotly in it, as it has
for whoever uses it; hovering is switched off in it, because a hover's message overwrites a brush's that is not sent yet, and brushes got lost.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from browser.jupyter import OPEN_MS, Notebook, Server, chromium, missing, serve

if lacking := missing():
    sys.exit(f"benchmarks/explore.py needs a browser: {lacking}")

from playwright.sync_api import Error as PlaywrightError

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

SIZES: Final = (10_000, 100_000)
TIMES: Final = 15
SETTLE_MS: Final = 500
LOST_MS: Final = 10_000
"""A brush of which nothing came back for so long never reached Python."""

SIZE: Final = {"width": 1300, "height": 1100}
AIMS: Final = {
    "first view, s": None,
    "sent at start, MB": 6.0,
    "plotly bundles": 0.0,
    "brush to table, s": 0.5,
    "brushes lost": 0.0,
    "next row, s": 0.15,
    "tag, s": 0.15,
}

FRAME: Final = """
import warnings
import scorekit as sk
warnings.simplefilter("ignore")
scorers = [sk.score_relevancy, sk.score_tone, sk.score_text_difference]
scored = sk.score(sk.load_dataset("smollm_answers"), scorers, judge=sk.LocalJudge(), progress=False)
df = scored.sample({rows}, replace=True, random_state=0, ignore_index=True)
"""
EXPLORE: Final = 'view = sk.explore(df, tags=["wrong fact", "dodges"])\nview'
PLOTLY: Final = """
import ipywidgets
import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

names = ["relevancy", "tone", "text_difference"]
edges = np.linspace(0, 1, 21)
figure = go.FigureWidget(make_subplots(rows=1, cols=3, subplot_titles=names))
for place, name in enumerate(names, 1):
    counts, _ = np.histogram(df[name + "_score"].dropna(), edges)
    figure.add_bar(x=(edges[:-1] + edges[1:]) / 2, y=counts, width=np.diff(edges), row=1, col=place)
figure.update_layout(dragmode="select", selectdirection="h", hovermode=False, height=260, width=900, showlegend=False)
table = ipywidgets.HTML("<div class='rows'></div>")

def brushed(trace, points, selector):
    low, high = selector.xrange
    kept = df[df["relevancy_score"].between(low, high)]
    table.value = f"<div class='rows'>{len(kept)} rows from {low} to {high}{kept[['input', 'output', 'relevancy_score']].head(25).to_html()}</div>"

figure.data[0].on_selection(brushed)
ipywidgets.VBox([figure, table])
"""

DRAW: Final = """async ([place, selector, count]) => {
  const app = window.jupyterapp, notebook = app.shell.currentWidget.content;
  notebook.deselectAll();
  notebook.activeCellIndex = place;
  const drawn = new Promise((resolve) => {
    const look = () => { if (document.querySelectorAll(selector).length >= count) { observer.disconnect(); requestAnimationFrame(() => resolve(performance.now())); } };
    const observer = new MutationObserver(look);
    observer.observe(document.body, { childList: true, subtree: true });
  });
  const began = performance.now();
  app.commands.execute("notebook:run-cell");
  return (await drawn - began) / 1000; }"""
"""Run a cell; seconds until so many elements are there and the browser is about to paint them."""

LISTEN: Final = """([selector, type]) => {
  window.taken = undefined;
  let began = null;
  window.addEventListener(type, () => { began = performance.now(); }, { capture: true, once: true });
  const observer = new MutationObserver(() => { if (began !== null) { observer.disconnect(); window.taken = (performance.now() - began) / 1000; } });
  observer.observe(document.querySelector(selector), { childList: true, subtree: true, characterData: true, attributes: true }); }"""
"""Take the time from the next event of a type to the change of an element."""


class Timed:
    """A notebook whose first cell makes the frame and whose second is measured.

    Parameters
    ----------
    browser, server
        Where it is opened.
    rows
        Of the frame.
    code
        Of the second cell.
    """

    def __init__(self, browser: Browser, server: Server, rows: int, code: str) -> None:
        """Open the notebook and make the frame."""
        self.notebook = Notebook.open(browser, server, "benchmark", viewport=SIZE)
        self.page = self.notebook.page
        self.page.set_default_timeout(OPEN_MS)
        self.notebook.fill(FRAME.format(rows=rows), code)
        self.notebook.run(0)
        self.notebook.heard.clear()

    def draw(self, selector: str, count: int = 1) -> dict[str, float]:
        """Run the second cell; return what its first view costs."""
        seconds: float = self.page.evaluate(DRAW, [1, selector, count])
        self.notebook.wait()
        return {
            "first view, s": seconds,
            "sent at start, MB": sum(self.notebook.heard) / 1e6,
            "plotly bundles": float(self.notebook.bundles),
        }

    def brushes(self, box: Locator, changes: str) -> dict[str, float]:
        """Return what brushes cost; from the left and from the right in turn, so that none begins on plotly's outline of the last one."""
        times = []
        for place in range(TIMES):
            width = 0.1 + 0.3 * place / TIMES
            self.page.wait_for_timeout(SETTLE_MS)
            times.append(self.brush(box, changes, *((0.02, 0.02 + width) if place % 2 else (0.98, 0.98 - width))))
        kept = [seconds for seconds in times if seconds is not None]
        return {"brush to table, s": median(kept), "brushes lost": float(len(times) - len(kept))}

    def brush(self, box: Locator, changes: str, start: float, end: float) -> float | None:
        """Press the mouse in a box and move it; return the seconds until an element changes, None where it does not.

        They count from the move for explore(), which follows the mouse, and from letting go for plotly, which tells nothing before.
        """
        follows = changes.startswith(".sk")
        found: Any = box.bounding_box()
        (left, right), y = (found["x"] + found["width"] * share for share in (start, end)), found["y"] + found["height"] / 2
        self.page.mouse.move(left, y)
        self.page.mouse.down()
        if not follows:
            self.page.mouse.move(right, y, steps=5)
        self.page.evaluate(LISTEN, [changes, "pointermove" if follows else "pointerup"])
        if follows:
            self.page.mouse.move(right, y)
        self.page.mouse.up()
        try:
            return self.measured()
        except PlaywrightError:
            return None

    def press(self, key: str, changes: str) -> float:
        """Press a key; return the seconds until an element changes."""
        self.page.evaluate(LISTEN, [changes, "keydown"])
        self.page.keyboard.press(key)
        return self.measured()

    def measured(self) -> float:
        """Return the time that was taken."""
        self.page.wait_for_function("() => window.taken !== undefined", timeout=LOST_MS)
        seconds: float = self.page.evaluate("() => window.taken")
        self.notebook.wait()
        return seconds

    def close(self) -> None:
        """Close the page and end the kernel."""
        self.page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown(); }")
        self.page.close()


def explore(browser: Browser, server: Server, rows: int) -> dict[str, float]:
    """Return the figures of explore()."""
    timed = Timed(browser, server, rows, EXPLORE)
    found = timed.draw(".sk .sk-list tbody", 25)
    found |= timed.brushes(timed.page.locator(".sk-svg").first, ".sk-list table")
    found["next row, s"] = median(timed.press("j", ".sk-detail") for _ in range(TIMES))
    found["tag, s"] = median(timed.press("1", ".sk-chips") for _ in range(TIMES))
    timed.close()
    return found


def plotly(browser: Browser, server: Server, rows: int) -> dict[str, float]:
    """Return the figures of the alternative."""
    timed = Timed(browser, server, rows, PLOTLY)
    found = timed.draw(".js-plotly-plot .nsewdrag", 3)
    found |= timed.brushes(timed.page.locator(".js-plotly-plot .nsewdrag").first, ".widget-html:has(.rows)")
    timed.close()
    return found


def cell(name: str, value: float | None, *, aimed: bool = False) -> str:
    """Return a figure, with "!" where its aim is missed."""
    if value is None:
        return "-"
    told = f"{value:.0f}" if name in ("plotly bundles", "brushes lost") else f"{value:.2f}" if name.endswith("MB") else f"{value:.3f}"
    aim = AIMS[name]
    return f"{told} !" if aimed and aim is not None and value > aim else told


def main() -> None:
    """Measure and print the table."""
    with serve() as server, chromium() as browser:
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of {TIMES}\n", flush=True)
        print(f"| rows | | explore() | aim | FigureWidget |\n|{'---|' * 5}")
        for rows in SIZES:
            ours, peer = explore(browser, server, rows), plotly(browser, server, rows)
            for name, aim in AIMS.items():
                at_most = "" if aim is None else f"at most {aim:g}"
                print(
                    f"| {rows:,} | {name} | {cell(name, ours[name], aimed=True)} | {at_most} | {cell(name, peer.get(name))} |", flush=True
                )
        print(f"\nload {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
