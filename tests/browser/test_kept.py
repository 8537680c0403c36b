"""What is written down outlives the kernel with ``save=``."""

from browser.jupyter import expect, wait_for

VIEW = """
import scorekit as sk
from browser.frames import plain
view = sk.explore(plain(), tags=["wrong fact"], save="kept.jsonl")
view
"""


def test_typed_note_label_and_tag_survive_a_kernel_restart(notebook, server):
    cells = (VIEW, "print(view.data.loc[20, ['label', 'note', 'tags']].tolist())")
    view = notebook.show(*cells)
    view.locator(".sk").focus()
    for key in ("j", "f", "1", "n"):
        notebook.page.keyboard.press(key)
    notebook.page.keyboard.type("says 1912, it was 1905 — “wrong”\nsecond line")
    file = server.folder / "kept.jsonl"
    wait_for(lambda: file.exists() and "second line" in file.read_text(encoding="utf-8"), "the note on disk, with the cursor still in it")
    expect(view.locator(".sk-mark").nth(1)).to_have_text("fail +1")
    expect(view.locator(".sk-saturation")).to_contain_text("1 row read (0 pass, 1 fail, 0 unsure).")
    expect(view.locator(".sk-saturation")).to_contain_text("Kept in kept.jsonl.")
    kept = "['fail', 'says 1912, it was 1905 — “wrong”\\nsecond line', '[\"wrong fact\"]']\n"
    assert notebook.run(1) == kept
    notebook.restart()
    notebook.fill("print('view' in dir())", *cells)
    assert notebook.run(0) == "False\n"
    notebook.run(1)
    again = notebook.output(1)
    again.locator(".sk").press("j")
    expect(again.get_by_label("note", exact=True)).to_have_value("says 1912, it was 1905 — “wrong”\nsecond line")
    assert notebook.run(2) == kept
