"""The agreement matrix in explore()'s view: a click on a cell opens its rows, and a new label counts at once."""

from browser.jupyter import expect

VIEW = """
from functools import partial
import scorekit as sk
from browser.frames import labelled
view = sk.explore(labelled(), order="frame", agreement=partial(sk.agreement, score="tone_score", human="label", threshold=0.5))
view
"""


HUMAN_FAIL_SCORE_PASS = 2
"""The place of the cell: the first row is of those whom people pass, the first column of those whom the score passes."""


def test_click_on_a_cell_opens_its_rows_and_a_second_click_all(notebook):
    view = notebook.show(VIEW, "print(view.filters, view.selected.index.tolist())")
    cells = view.locator(".sk-cell")
    expect(view.locator(".sk-matrix th")).to_have_text(["pass", "fail", "pass", "fail"])
    expect(cells).to_have_text(["10", "10", "10", "10"])
    cells.nth(HUMAN_FAIL_SCORE_PASS).click()
    expect(view.locator(".sk-count")).to_have_text("10 of 60 rows")
    expect(cells.nth(HUMAN_FAIL_SCORE_PASS)).to_have_attribute("aria-pressed", "true")
    assert notebook.run(1) == "{'cell': ['fail', 'pass']} [10, 11, 12, 13, 14, 15, 16, 17, 18, 19]\n"
    cells.nth(HUMAN_FAIL_SCORE_PASS).click()
    expect(view.locator(".sk-count")).to_have_text("60 rows")


def test_new_label_moves_its_row_to_another_cell_and_keys_are_heard_after_a_click_on_one(notebook):
    view = notebook.show(VIEW, "print(view.data.loc[10, 'label'], len(view.selected))")
    view.locator(".sk-cell").nth(HUMAN_FAIL_SCORE_PASS).click()
    expect(view.locator(".sk-count")).to_have_text("10 of 60 rows")
    notebook.page.keyboard.press("j")
    expect(view.locator(".sk-place")).to_have_text("2 of 10")
    notebook.page.keyboard.press("k")
    notebook.page.keyboard.press("p")
    expect(view.locator(".sk-cell")).to_have_text(["11", "10", "9", "10"])
    expect(view.locator(".sk-count")).to_have_text("9 of 60 rows")
    assert notebook.run(1) == "pass 9\n"
