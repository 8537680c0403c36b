"""Keys in explore()'s view: they read and label rows, and none of them reaches the notebook, where single letters are commands."""

import json

import pytest

from browser.jupyter import drag, expect

VIEW = """
import scorekit as sk
from browser.frames import plain
view = sk.explore(plain(), tags=["wrong fact", "dodges"])
view
"""
MARKS = 'print(view.data.loc[view.data[["label", "note", "tags"]].notna().any(axis=1), ["label", "note", "tags"]].to_json(orient="index"))'
FOCUS = "() => document.activeElement.closest('.sk') !== null"


@pytest.fixture
def view(notebook):
    shown = notebook.show(VIEW, MARKS, "other = 1")
    shown.locator(".sk").focus()
    return shown


def press(notebook, *keys):
    for key in keys:
        notebook.page.keyboard.press(key)


def test_j_and_k_open_the_next_and_the_previous_row(view, notebook):
    place, detail = view.locator(".sk-place"), view.locator(".sk-detail")
    press(notebook, "j", "j")
    expect(place).to_have_text("3 of 60")
    expect(detail).to_contain_text("question 40")
    press(notebook, "k")
    expect(place).to_have_text("2 of 60")
    expect(detail).to_contain_text("question 20")
    press(notebook, "k", "k", "k")
    expect(place).to_have_text("1 of 60")


def test_j_turns_the_page_when_its_last_row_is_left(view, notebook):
    press(notebook, *["j"] * 25)
    expect(view.locator(".sk-place")).to_have_text("26 of 60")
    expect(view.locator(".sk-pages")).to_contain_text("page 2 of 3")
    expect(view.locator('.sk-list [aria-selected="true"] .sk-name')).to_have_text("28")


def test_digits_labels_and_undo_write_to_the_row_that_is_read(view, notebook):
    press(notebook, "1", "f", "j", "2", "1", "p", "j", "u", "j", "2", "2", "j", "f", "z", "j")
    expect(view.locator(".sk-place")).to_have_text("6 of 60")
    expect(view.locator(".sk-saturation")).to_contain_text("3 rows read (1 pass, 1 fail, 1 unsure).")
    assert notebook.run(1) == (
        '{"0":{"label":"fail","note":null,"tags":"[\\"wrong fact\\"]"},"20":{"label":"pass","note":null,"tags":"[\\"dodges\\", \\"wrong fact\\"]"},'
        '"40":{"label":"unsure","note":null,"tags":null}}\n'
    )


def test_n_goes_to_the_note_and_escape_leaves_it(view, notebook):
    press(notebook, "n")
    notebook.page.keyboard.type("jumps 1 pd")
    press(notebook, "Enter")
    notebook.page.keyboard.type("z")
    press(notebook, "Escape", "j", "f")
    expect(view.locator(".sk-saturation")).to_contain_text("2 rows read")
    assert notebook.run(1) == '{"0":{"label":null,"note":"jumps 1 pd\\nz","tags":null},"20":{"label":"fail","note":null,"tags":null}}\n'


def test_t_types_a_new_tag_which_gets_the_next_digit(view, notebook):
    press(notebook, "t")
    notebook.page.keyboard.type("too long")
    press(notebook, "Enter")
    expect(view.locator(".sk-chip")).to_have_text(["1wrong fact ×0", "2dodges ×0", "3too long ×1"])
    press(notebook, "j", "3")
    expect(view.locator(".sk-chip").nth(2)).to_have_text("3too long ×2")
    assert notebook.run(1).count("too long") == 2


def test_slash_searches_and_letters_typed_there_are_no_commands(view, notebook):
    press(notebook, "/")
    notebook.page.keyboard.type("answer 5")
    expect(view.locator(".sk-count")).to_have_text("11 of 60 rows")
    press(notebook, "Escape", "j")
    expect(view.locator(".sk-place")).to_have_text("2 of 11")
    assert notebook.run(1) == "{}\n"


NOTEBOOK_KEYS = ("a", "b", "d", "d", "x", "c", "v", "m", "y", "r", "s", "h", "o", "i", "i", "0", "0", "Enter", "Shift+Enter", "Control+Enter",
                 "Alt+Enter", "Shift+J", "Shift+M", "ArrowDown", "ArrowUp", "Escape", " ")  # fmt: skip


def insert_a_cell(notebook):
    """Press "b" in the notebook itself, below the last of its three cells."""
    notebook.page.locator(".jp-Cell .jp-InputPrompt").last.click()
    press(notebook, "b")
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(4)


def test_no_key_reaches_the_notebook_from_any_part_of_the_view(view, notebook):
    before = notebook.state()
    for part in (".sk", ".sk-button", ".sk-detail", ".sk-scroll", ".sk-field select", ".sk-note", ".sk-newtag", ".sk-search", ".sk-end"):
        view.locator(part).first.focus()
        press(notebook, *NOTEBOOK_KEYS)
    assert notebook.state() == before
    assert before["mode"] == "command"
    insert_a_cell(notebook)  # had one of them got there, it would have been carried out before this one
    assert [cell for cell in notebook.state()["cells"] if cell[1]] == before["cells"]


def test_the_same_keys_outside_the_view_do_change_the_notebook(view, notebook):
    """The control of the test above: it would see a leak."""
    insert_a_cell(notebook)
    press(notebook, "d", "d")
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(3)


def test_keys_are_heard_after_every_click(view, notebook):
    """A button that is drawn anew, or that the click disables, must not take the focus out of the view with it."""
    place = view.locator(".sk-place")
    view.locator(".sk-chip").first.click()
    expect(view.locator(".sk-chip").first).to_have_attribute("aria-pressed", "true")
    press(notebook, "j")
    expect(place).to_have_text("2 of 60")
    drag(notebook.page, view.locator('[data-score="tone"]'), (0.002, 0.5), (0.26, 0.5))
    expect(place).to_have_text("2 of 15")
    view.locator(".sk-clear").click()
    expect(place).to_have_text("2 of 60")
    press(notebook, "j")
    expect(place).to_have_text("3 of 60")
    view.get_by_title("Last page").click()
    expect(view.get_by_title("Last page")).to_be_disabled()
    press(notebook, "j")
    expect(place).to_have_text("4 of 60")
    view.get_by_role("button", name="Undo").click()
    expect(view.get_by_role("button", name="Undo")).to_be_disabled()
    expect(place).to_have_text("1 of 60")
    press(notebook, "j")
    expect(place).to_have_text("2 of 60")
    view.locator(".sk-list tbody").nth(4).click()
    expect(place).to_have_text("5 of 60")
    press(notebook, "k")
    expect(place).to_have_text("4 of 60")


def test_chip_keeps_the_focus_so_that_it_can_be_pressed_again(view, notebook):
    chip = view.locator(".sk-chip").nth(1)
    chip.focus()
    press(notebook, "Enter")
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(chip).to_be_focused()
    press(notebook, "Enter")
    expect(chip).to_have_attribute("aria-pressed", "false")


PRESSED = (
    "1", "2", "12", "", "3", "1", "", "23", "1", "1", "2", "", "123", "3", "3", "", "21", "1", "2", "3",
)  # fmt: skip
"""The digits pressed in each of the 20 rows."""


def test_keyboard_alone_tags_twenty_rows_each_its_own(notebook):
    shown = notebook.show(VIEW.replace('"dodges"', '"dodges", "too long"'), 'print(view.data["tags"].dropna().to_json())')
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('notebook:enter-command-mode')")
    before = notebook.state()
    for _ in range(10):
        press(notebook, "Tab")
        if notebook.page.evaluate("() => document.activeElement.matches('.sk')"):
            break
    expect(shown.locator(".sk")).to_be_focused()
    for digits in PRESSED:
        press(notebook, *digits, "j")
    expect(shown.locator(".sk-place")).to_have_text("21 of 60")
    assert notebook.state() == before
    order = [0, 20, 40, 1, 21, 41, 2, 22, 42, 3, 23, 43, 4, 24, 44, 5, 25, 45, 6, 26]
    names = ["wrong fact", "dodges", "too long"]
    wanted = {str(row): [names[int(digit) - 1] for digit in digits] for row, digits in zip(order, PRESSED, strict=True) if digits}
    assert {row: json.loads(tags) for row, tags in json.loads(notebook.run(1)).items()} == wanted
