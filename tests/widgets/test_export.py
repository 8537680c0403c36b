"""The one-file page: everything in it, nothing fetched, every text escaped."""

import re

import pandas as pd
import pytest

from scorekit.errors import ArgumentTypeError
from scorekit.widgets.export import write_page
from scorekit.widgets.figures import figure_scores

BAD = "</script><img src=x onerror=alert(1)>"


def test_write_page_embeds_plotly_once_and_fetches_nothing(tmp_path):
    figure = figure_scores(pd.DataFrame({"tone_score": [0.1, 0.9]}))
    page = write_page(tmp_path / "p.html", {"One": figure, "Two": figure}, title="T").read_text(encoding="utf-8")
    assert page.count("plotly.js v") == 1
    assert page.count("Plotly.newPlot(") >= 2
    assert re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="?http', page) == []
    assert "default-src 'none'" in page


def test_write_page_without_figures_is_small(tmp_path):
    path = write_page(tmp_path / "p.html", {"Table": pd.DataFrame({"a": [1]})}, title="T")
    assert path.stat().st_size < 10_000


def test_write_page_escapes_every_text(tmp_path):
    figure = figure_scores(pd.DataFrame({"g": [BAD], "x_score": [0.5]}), by="g")
    table = pd.DataFrame({BAD: [BAD, None]})
    page = write_page(tmp_path / "p.html", {BAD: table, "text": BAD, "figure": figure}, title=BAD).read_text(encoding="utf-8")
    assert "<img" not in re.sub(r"<script>.*?</script>", "", page, count=1, flags=re.DOTALL)
    assert page.count("&lt;img src=x") >= 5


def test_write_page_tables_show_numbers_and_gaps(tmp_path):
    table = pd.DataFrame({"score": [0.123, None], "n": [1, 2], "text": pd.array(["a\n b", None], dtype="string")})
    page = write_page(tmp_path / "p.html", {"Table": table}, title="T").read_text(encoding="utf-8")
    assert '<td class="number">0.12</td><td class="number">1</td><td>a\n b</td>' in page
    assert '<td class="number"></td><td class="number">2</td><td></td>' in page


def test_write_page_lone_surrogate_becomes_a_question_mark(tmp_path):
    page = write_page(tmp_path / "p.html", {"Text": "a\ud800b"}, title="T").read_text(encoding="utf-8")
    assert "<p>a?b</p>" in page


def test_write_page_other_section_raises(tmp_path):
    with pytest.raises(ArgumentTypeError, match="'Numbers' must be a plotly figure, a DataFrame or a text, not list"):
        write_page(tmp_path / "p.html", {"Numbers": [1, 2]}, title="T")
