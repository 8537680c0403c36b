"""One view of explore() shown in two outputs: both show the same, whichever is used."""

import pytest

from browser.jupyter import drag, expect

VIEW = """
import scorekit as sk
from browser.frames import plain
view = sk.explore(plain(), tags=["wrong fact", "dodges"])
view
"""


@pytest.fixture
def views(notebook):
    first = notebook.show(VIEW, "view", "print(len(view.selected), view.data['tags'].count())")
    notebook.run(1)
    second = notebook.output(1)
    expect(second.locator(".sk-count")).to_have_text("60 rows")
    return first, second


def test_two_outputs_follow_each_other_in_brushes_rows_and_tags(views, notebook):
    first, second = views
    for turn, (used, other) in enumerate([(first, second), (first, second), (second, first), (first, second), (second, first)]):
        drag(notebook.page, used.locator('[data-score="tone"]'), (0.002, 0.5), (0.1 * (turn + 1) + 0.01, 0.5))
        expect(other.locator(".sk-count")).to_have_text(f"{6 * (turn + 1)} of 60 rows")
        expect(used.locator(".sk-count")).to_have_text(f"{6 * (turn + 1)} of 60 rows")
    second.locator(".sk").press("j")
    expect(first.locator(".sk-place")).to_have_text("2 of 30")
    first.locator(".sk").press("2")
    expect(second.locator(".sk-chip").nth(1)).to_have_text("2dodges ×1")
    second.locator(".sk-clear").click()
    expect(first.locator(".sk-count")).to_have_text("60 rows")
    assert notebook.run(2) == "60 1\n"
