"""Makes the README's pictures from the shipped data: ``python docs/make_pictures.py`` (pip install '.[test]', apt-get install chromium)."""

import sys
import tempfile
import warnings
from pathlib import Path

import scorekit as sk

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from browser.jupyter import Notebook, chromium, expect, missing, serve

HERE = Path(__file__).parent
FIGURE_WIDTH = 960
VIEW_WIDTH = 1100

SCORED = """
import warnings
import scorekit as sk
warnings.simplefilter("ignore")
answers, labels = sk.load_dataset("smollm_answers"), sk.load_dataset("smollm_labels")
scored = sk.score(answers, [sk.score_relevancy, sk.score_tone, sk.score_text_difference], judge=sk.LocalJudge(), progress=False)
read = scored.merge(labels[["id", "variant", "label", "failure", "note"]], on=["id", "variant"], how="left")
read["tags"] = read.pop("failure").str.replace("_", " ")
"""
EXPLORER = """
found = sk.agreement(read, score="relevancy_score", human="label", threshold=0.7)
view = sk.explore(read, by=["variant", "kind", "language"], agreement=found)
view.filters = {"scores": {"relevancy": (0.45, 0.6)}}
view.row = int(read.index[read["input"].str.contains("border Switzerland") & read["variant"].eq("short")][0])
view
"""
SIDE_BY_SIDE = """
two = scored[scored["variant"].isin(["short", "expert"])]
view = sk.side_by_side(sk.compare(two, variant="variant", item="id", score="relevancy", baseline="short"))
view.filters = {"brush": (0.3, 1.02, -0.02, 0.45)}
view
"""
PLAYGROUND = """
panel = sk.playground(sk.score_relevancy, judge=sk.LocalJudge(), input="Why is the sky blue?",
                      output="Air scatters blue light more than red light. Buy our shoes today!")
panel
"""


def photograph(browser, figure, path):
    """Write a figure as PNG."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figure.html"
        figure.write_html(
            file, config={"displayModeBar": False}, default_width=f"{FIGURE_WIDTH}px", default_height=f"{figure.layout.height}px"
        )
        page = browser.new_page(viewport={"width": FIGURE_WIDTH + 16, "height": figure.layout.height + 16})
        page.goto(file.as_uri())
        page.locator(".js-plotly-plot .nsewdrag").first.wait_for(state="attached")
        page.screenshot(path=path)
        page.close()


def photograph_views(notebook):
    """Write the views of a notebook as PNG, cropped to what the cell gives."""

    def take(shown, name, theme="Light"):
        notebook.use_theme(theme)
        shown.evaluate("(output, width) => { output.style.flex = 'none'; output.style.width = `${width}px`; }", VIEW_WIDTH)
        notebook.page.evaluate("async () => { document.activeElement.blur(); await document.fonts.ready; }")
        shown.screenshot(path=HERE / name, animations="disabled")

    view = notebook.show(SCORED + EXPLORER).filter(has=notebook.page.locator(".sk"))
    expect(view.locator(".sk-detail")).to_contain_text("border Switzerland")
    view.locator(".sk-detail").evaluate("(detail) => { detail.scrollTop = detail.querySelector('section').offsetTop - detail.offsetTop; }")
    take(view, "explorer.png")
    take(view, "explorer_dark.png", "Dark")
    pairs = notebook.show(SCORED + SIDE_BY_SIDE).filter(has=notebook.page.locator(".sk"))
    pairs.locator(".sk-listing tbody").nth(2).click()
    notebook.page.keyboard.press("v")
    expect(pairs.locator('[data-vote="variant"]')).to_have_attribute("aria-pressed", "true")
    notebook.page.mouse.move(0, 0)
    take(pairs, "side_by_side.png")
    panel = notebook.show(SCORED + PLAYGROUND).filter(has=notebook.page.locator(".sk-play"))
    panel.locator("button.mod-primary").click()
    expect(panel.locator(".sk-step")).to_have_count(4)
    take(panel, "playground.png")


def main():
    """Make all pictures."""
    if lacking := missing():
        sys.exit(f"docs/make_pictures.py needs a browser: {lacking}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sk.LocalJudgeWarning)
        df = sk.load_dataset("smollm_answers")
        scored = sk.score(df, [sk.score_relevancy, sk.score_tone, sk.score_text_difference], judge=sk.LocalJudge())
    with serve() as server, chromium() as browser:
        photograph(browser, sk.figure_scores(scored, by="variant"), HERE / "figure_scores.png")
        photograph(browser, sk.figure_statements(scored, "relevancy", by="kind"), HERE / "figure_statements.png")
        photograph_views(Notebook.open(browser, server, "pictures", viewport={"width": VIEW_WIDTH + 500, "height": 1600}))


if __name__ == "__main__":
    main()
