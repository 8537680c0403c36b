"""The page of export_html(), opened from the disk by a browser without a network: it filters and opens rows by itself, and asks nobody."""

import pytest

import scorekit as sk
from browser.frames import labelled, plain
from browser.jupyter import drag, expect, pale, watch


@pytest.fixture
def page(offline):
    """A page without a network, which must ask for nothing but the file, and write no error."""
    asked, troubles = [], []
    watch(offline, troubles)
    offline.on("request", lambda request: asked.append(request.url))
    yield offline
    assert asked == [offline.url]
    assert offline.url.startswith("file://")
    assert troubles == []


def open_page(page, tmp_path, view, **options):
    page.goto(sk.export_html(view, tmp_path / "view.html", **options).as_uri())
    return page.locator(".sk")


def rows(view):
    return view.locator(".sk-list tbody .sk-name")


def test_page_shows_what_the_view_had_and_takes_no_labels(page, tmp_path):
    view = sk.explore(plain(), tags=["wrong fact"])
    view.filters = {"scores": {"tone": (0.9, 1.0)}}
    shown = open_page(page, tmp_path, view, title="Tone of answers")
    expect(page.locator("h1")).to_have_text("Tone of answers")
    expect(rows(shown)).to_have_text(["18", "38", "19", "39"])
    assert shown.locator("textarea, .sk-choose, .sk-newtag").count() == 0
    shown.locator(".sk-clear").click()
    expect(shown.locator(".sk-count")).to_have_text("60 rows")


def test_brush_search_groups_errors_and_order_work_offline(page, tmp_path):
    shown = open_page(page, tmp_path, plain())
    drag(page, shown.locator('[data-score="tone"]'), (0.002, 0.5), (0.26, 0.5))
    expect(rows(shown)).to_have_text(["0", "20", "40", "1", "21", "41", "2", "22", "42", "3", "23", "43", "4", "24", "44"])
    shown.get_by_label("search the texts").fill("Answer 2")
    expect(rows(shown)).to_have_text(["20", "21", "2", "22", "23", "24"])
    shown.get_by_label("variant").select_option("b")
    expect(rows(shown)).to_have_text(["21", "24"])
    shown.locator(".sk-clear").click()
    shown.get_by_label("tone errors").select_option("missing_input")
    expect(rows(shown)).to_have_text(["58", "59"])
    shown.locator(".sk-clear").click()
    shown.get_by_label("read", exact=True).select_option("frame")
    expect(rows(shown).nth(1)).to_have_text("1")


def test_keys_open_rows_with_their_statements(page, tmp_path):
    shown = open_page(page, tmp_path, plain(), order="frame")
    shown.focus()
    for key in ("j", "j", "k", "j"):
        page.keyboard.press(key)
    expect(shown.locator(".sk-place")).to_have_text("3 of 60")
    expect(shown.locator(".sk-detail")).to_contain_text("reason of 2")
    expect(shown.locator(".sk-verdict")).to_have_text(["✓ yes", "? unsure", "✗ no"])
    page.keyboard.press("1")
    page.keyboard.press("f")
    expect(shown.locator(".sk-place")).to_have_text("3 of 60")


def test_labels_notes_tags_and_the_matrix_are_in_the_page(page, tmp_path):
    frame = labelled().assign(note=None, tags=None)
    frame.loc[0, ["note", "tags"]] = ["says 1912", '["wrong fact"]']
    view = sk.explore(frame, order="frame", agreement=sk.agreement(frame, score="tone_score", human="label", threshold=0.5))
    shown = open_page(page, tmp_path, view)
    expect(shown.locator(".sk-written")).to_have_text("failwrong factsays 1912")
    expect(shown.locator(".sk-cell")).to_have_text(["10", "10", "10", "10"])
    shown.locator(".sk-cell").first.click()
    expect(shown.locator(".sk-count")).to_have_text("10 of 60 rows")
    page.keyboard.press("j")
    expect(shown.locator(".sk-place")).to_have_text("2 of 10")


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(29, 33, 38)")])
def test_page_is_light_or_dark_as_the_system_is_and_readable_in_both(page, tmp_path, scheme, paper):
    page.emulate_media(color_scheme=scheme)
    shown = open_page(page, tmp_path, plain().assign(label="fail"))
    assert shown.evaluate("(e) => getComputedStyle(e).backgroundColor") == paper
    assert pale(page.locator("body")) == {}
