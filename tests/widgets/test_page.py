"""The one-file page: everything in it, nothing fetched, every text escaped."""

import re

import pandas as pd
import pytest

from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.widgets.figures import figure_scores
from scorekit.widgets.page import write_page

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


def test_write_page_into_a_missing_folder_raises(tmp_path):
    with pytest.raises(OptionRangeError, match=r"p\.html' is out of range: it must be in a folder that is there; make '.*none' first"):
        write_page(tmp_path / "none" / "p.html", {"Text": "a"}, title="T")


def test_write_page_onto_a_folder_raises(tmp_path):
    with pytest.raises(OptionRangeError, match="must be a file, not a folder"):
        write_page(tmp_path, {"Text": "a"}, title="T")


@pytest.mark.parametrize(
    ("path", "sections", "title", "words"),
    [
        ("p.html", {1: "a"}, "T", "Each heading in sections must be a text, not int"),
        ("p.html", ["a"], "T", "sections must be a dict of headings and what stands under them, not list"),
        ("p.html", {"a": "a"}, 5, "title must be a text, not int"),
        (5, {"a": "a"}, "T", "path must be the path of a file, not int"),
    ],
)
def test_write_page_argument_of_another_kind_raises_and_writes_nothing(tmp_path, monkeypatch, path, sections, title, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentTypeError, match=words):
        write_page(path, sections, title=title)
    assert list(tmp_path.iterdir()) == []


def test_write_page_figures_fill_the_window_and_scroll_when_they_need_more(tmp_path):
    df = pd.DataFrame({"g": list("abcd"), "x_score": 0.5, "y_score": 0.5})
    sections = {"one": figure_scores(df), "two": figure_scores(df, by="g")}
    page = write_page(tmp_path / "p.html", sections, title="T").read_text(encoding="utf-8")
    assert '<div class="card"><div style="min-width: 0px">' in page
    assert '<div class="card"><div style="min-width: 540px">' in page
    assert page.count('"responsive": true') == 2


def test_write_page_long_texts_are_clipped_with_dots_and_open_on_focus(tmp_path):
    page = write_page(tmp_path / "p.html", {"Table": pd.DataFrame({"text": ["word " * 20]})}, title="T").read_text(encoding="utf-8")
    assert '<td class="long"><div tabindex="0">word word' in page
    assert "-webkit-line-clamp: 9" in page
    assert "td.long div:focus { display: block; }" in page
