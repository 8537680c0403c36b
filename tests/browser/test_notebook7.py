"""explore() in Notebook 7, once: the view draws, and its keys stay in it."""

import pytest

from browser.conftest import SIZE
from browser.jupyter import Notebook, expect

PLATFORM = (
    "Cannot read properties of undefined (reading 'schema')",  # its notebook_core, while it loads its settings, with an empty notebook too
    "Command 'filebrowser:open-path' not registered.",  # it finds the folder that JupyterLab showed last, and has no file browser to show it in
)
"""What Notebook 7.6 itself throws."""

VIEW = """
import scorekit as sk
from browser.frames import plain
view = sk.explore(plain(), tags=["wrong fact"])
view
"""


@pytest.fixture
def notebook7(browser, server):
    opened = Notebook.open(browser, server, "seven", app="notebooks", viewport=SIZE)
    yield opened
    opened.page.close()
    assert [trouble for trouble in opened.troubles if not trouble.endswith(PLATFORM)] == []


def test_view_draws_in_notebook_7_and_j_and_a_digit_tag_the_next_row(notebook7):
    view = notebook7.show(VIEW, "print(view.data['tags'].dropna().to_dict())")
    expect(view.locator(".sk-count")).to_have_text("60 rows")
    before = notebook7.state()
    view.locator(".sk").focus()
    for key in ("a", "b", "d", "d", "j", "1"):
        notebook7.page.keyboard.press(key)
    expect(view.locator(".sk-chip")).to_have_text("1wrong fact ×1")
    assert notebook7.state() == before
    assert notebook7.run(1) == "{20: '[\"wrong fact\"]'}\n"
