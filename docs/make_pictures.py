"""Makes the README's pictures from the shipped data, in headless Chromium: ``python docs/make_pictures.py`` (apt-get install chromium)."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import scorekit as sk

HERE = Path(__file__).parent


def photograph(figure, path, width):
    """Write a figure as PNG."""
    height = figure.layout.height
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        figure.write_html(page, config={"displayModeBar": False}, default_width=f"{width}px", default_height=f"{height}px")
        chromium = [
            shutil.which("chromium"),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=8000",
        ]
        size = f"--window-size={width + 16},{height + 16}"
        subprocess.run([*chromium, size, f"--screenshot={path}", page.as_uri()], check=True, capture_output=True)


df = sk.load_dataset("smollm_answers")
scored = sk.score(df, [sk.score_relevancy, sk.score_tone, sk.score_text_difference], judge=sk.LocalJudge())
photograph(sk.figure_scores(scored, by="variant"), HERE / "figure_scores.png", 960)
photograph(sk.figure_statements(scored, "relevancy", by="kind"), HERE / "figure_statements.png", 960)
