"""Texts that would run as markup are shown as texts, wherever in a frame they stand: in the view, in its exported page, in the playground."""

import pytest

import scorekit as sk
from browser.frames import BAD, WORSE, hostile
from browser.jupyter import expect

HACKED = "() => window.hacked === undefined"
MARKUP = "img, script, iframe, object, [onerror]"

VIEW = """
from functools import partial
import scorekit as sk
from browser.frames import BAD, hostile
view = sk.explore(hostile(), order="frame", tags=[BAD + "3"], save=BAD + ".jsonl",
                  agreement=partial(sk.agreement, score=BAD + "y_score", human="label", threshold=0.35, labels={BAD: "fail"}))
view
"""


PANEL = """
import scorekit as sk
from browser.frames import WORSE, hostile
panel = sk.playground(sk.score_text_difference, hostile().rename(columns={"output": WORSE}), output=WORSE)
panel
"""


def test_markup_runs_when_it_is_not_escaped(browser):
    """The control of the tests below: they would see it run."""
    page = browser.new_page()
    page.set_content(f"<div>{WORSE}</div>")
    page.wait_for_function("() => window.hacked === 1")
    assert page.locator(MARKUP).count() == 1
    page.close()


def read_everything(page, view):
    """Open each row and each fold of the view, and try every filter."""
    view.locator(".sk").focus()
    for place in range(4):
        expect(view.locator(".sk-place")).to_have_text(f"{place + 1} of 4")
        closed = view.locator(".sk-detail details:not([open]) > summary")
        while closed.count():
            closed.first.click()
        view.locator(".sk").focus()
        page.keyboard.press("j")
    for select in view.locator(".sk-bar select:visible").all():
        options = select.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
        kept = select.input_value()
        for option in options[1:]:
            select.select_option(option)
        select.select_option(kept)
    expect(view.locator(".sk-count")).to_have_text("4 rows")


def test_hostile_frame_shows_as_text_in_the_view(notebook):
    view = notebook.show(VIEW, "print(len(view.selected))")
    expect(view.locator(".sk-name").first).to_have_text(WORSE)
    expect(view.locator(".sk-line").first).to_contain_text(f"{WORSE} → {WORSE}")
    expect(view.locator(".sk-chip")).to_contain_text([f"{BAD}3", BAD, f"{BAD}2"])
    expect(view.locator(".sk-note")).to_have_value(WORSE)
    expect(view.locator(".sk-verdict").first).to_contain_text(WORSE)
    expect(view.locator(".sk-saturation")).to_contain_text(f"Kept in {BAD}.jsonl")
    expect(view.locator(".sk-bar option").get_by_text(BAD, exact=True).first).to_be_attached()
    expect(view.locator("figcaption b").last).to_have_text(f"{BAD}y")
    expect(view.locator("caption")).to_contain_text(f"{BAD}y_score")
    read_everything(notebook.page, view)
    view.locator(".sk").press("t")
    notebook.page.keyboard.type(f"{BAD}9")
    notebook.page.keyboard.press("Enter")
    expect(view.locator(".sk-chip").last).to_contain_text(f"{BAD}9")
    assert notebook.run(1) == "4\n"
    assert view.locator(MARKUP).count() == 0
    assert notebook.page.evaluate(HACKED)


@pytest.mark.filterwarnings("ignore::scorekit.LocalJudgeWarning")
def test_hostile_frame_shows_as_text_in_the_exported_page(offline, tmp_path):
    page = sk.export_html(sk.explore(hostile(), order="frame"), tmp_path / "view.html", title=WORSE)
    offline.goto(page.as_uri())
    expect(offline.locator("h1")).to_have_text(WORSE)
    expect(offline.locator(".sk-name").first).to_have_text(WORSE)
    read_everything(offline, offline.locator("main"))
    assert offline.locator(f"main :is({MARKUP})").count() == 0
    assert offline.evaluate(HACKED)


def test_hostile_frame_shows_as_text_where_there_are_no_widgets(browser):
    """What a front end without widgets shows of a view: its text/html."""
    page = browser.new_page()
    page.set_content(sk.explore(hostile())._repr_mimebundle_()[0]["text/html"])
    expect(page.get_by_text(f"{BAD}y").first).to_be_visible()
    assert page.locator(MARKUP).count() == 0
    assert page.evaluate(HACKED)
    page.close()


def test_hostile_texts_show_as_texts_in_the_playground(notebook):
    panel = notebook.show(PANEL)
    expect(panel.locator("textarea").first).to_have_value(WORSE)
    panel.locator("textarea").last.fill(f"{WORSE} and more")
    panel.locator("textarea").last.press("Tab")
    panel.locator("button.mod-primary").click()
    expect(panel.locator(".sk-step")).to_have_count(3)
    expect(panel).to_contain_text(BAD)
    assert panel.locator(MARKUP).count() == 0
    assert notebook.page.evaluate(HACKED)
