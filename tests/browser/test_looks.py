"""How explore()'s view looks: nothing is cut off at any width, texts can be read in light and dark, and the row that is read is in sight."""

import pytest

from browser.jupyter import expect, pale

VIEW = """
import scorekit as sk
from browser.frames import labelled
frame = labelled().assign(tags='["wrong fact", "dodges"]', note="says 1912")
view = sk.explore(frame, order="frame", agreement=sk.agreement(frame, score="tone_score", human="label", threshold=0.5))
view.filters = {"scores": {"tone": (0.0, 0.9)}}
view.row = 22
view
"""

WIDER = """(view) => { const edge = view.getBoundingClientRect().right;
  return [...view.querySelectorAll("*")].filter((one) => one.checkVisibility() && !one.closest(".sk-scroll table") && one.getBoundingClientRect().right > edge + 1).map((one) => one.className); }"""
"""What of a view reaches over its right edge."""


@pytest.fixture
def view(notebook):
    shown = notebook.show(VIEW).locator(".sk")
    expect(shown.locator(".sk-count")).to_have_text("53 of 60 rows")
    yield shown
    notebook.use_theme("Light")


@pytest.mark.parametrize("width", [1100, 760, 480, 320])
def test_nothing_reaches_over_the_edge_at_any_width(view, width):
    view.evaluate("(view, width) => { view.style.width = `${width}px`; }", width)
    assert view.evaluate("(view) => view.getBoundingClientRect().width") == width
    assert view.evaluate(WIDER) == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_every_text_has_enough_contrast(notebook, view, theme):
    notebook.use_theme(theme)
    assert pale(view) == {}


def test_control_pale_text_is_found(view):
    view.locator(".sk-count").evaluate("(one) => { one.style.color = '#999'; }")
    assert min(pale(view).values()) == 2.85


def test_row_that_is_read_is_in_sight_when_the_view_opens(view):
    expect(view.locator('.sk-list [aria-selected="true"] .sk-name')).to_have_text("22")
    expect(view.locator('.sk-list [aria-selected="true"]')).to_be_in_viewport(ratio=0.95)


def test_bars_and_brush_lie_where_the_mouse_finds_them(view):
    """The drawing is stretched to its place: a bin is a twentieth of the chart's width, whatever that is."""
    chart = view.locator('[data-score="tone"]')
    box = chart.bounding_box()
    brush = chart.locator(".sk-span").bounding_box()
    assert (brush["x"] - box["x"], brush["width"]) == (pytest.approx(0, abs=1.5), pytest.approx(0.9 * box["width"], abs=1.5))
    bars = chart.locator(".sk-all rect")
    expect(bars).to_have_count(20)
    last = bars.last.bounding_box()
    assert last["x"] + last["width"] == pytest.approx(box["x"] + box["width"], abs=2)
