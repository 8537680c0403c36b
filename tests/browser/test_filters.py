"""Brushes, fields and orders of explore() in JupyterLab: the table, the count and ``view.selected`` follow each of them."""

import pytest

from browser.jupyter import drag, expect

VIEW = """
import scorekit as sk
from browser.frames import plain
view = sk.explore(plain(), tags=["wrong fact", "dodges"])
view
"""
SELECTED = "print(len(view.selected), sorted(view.selected.index)[:5])"


@pytest.fixture
def view(notebook):
    return notebook.show(VIEW, SELECTED)


def rows(view):
    """The rows in the table, by the names that it shows."""
    return view.locator(".sk-list tbody .sk-name")


def test_view_shows_all_rows_worst_first(view, notebook):
    expect(view.locator(".sk-count")).to_have_text("60 rows")
    expect(rows(view)).to_have_count(25)
    assert rows(view).all_inner_texts()[:6] == ["0", "20", "40", "1", "21", "41"]
    assert notebook.run(1) == "60 [0, 1, 2, 3, 4]\n"


def test_view_is_sent_in_less_than_a_tenth_of_a_megabyte_and_without_plotly(notebook):
    notebook.heard.clear()
    view = notebook.show(VIEW)
    expect(view.locator(".sk-count")).to_have_text("60 rows")
    assert 10_000 < sum(notebook.heard) < 100_000
    assert notebook.bundles == 0


def test_brush_filters_table_count_and_selected(view, notebook):
    drag(notebook.page, view.locator('[data-score="tone"]'), (0.002, 0.5), (0.26, 0.6))
    expect(view.locator(".sk-count")).to_have_text("15 of 60 rows")
    expect(rows(view)).to_have_text(["0", "20", "40", "1", "21", "41", "2", "22", "42", "3", "23", "43", "4", "24", "44"])
    assert notebook.run(1) == "15 [0, 1, 2, 3, 4]\n"


def test_brush_drawn_from_right_to_left_is_the_same(view, notebook):
    drag(notebook.page, view.locator('[data-score="tone"]'), (0.26, 0.5), (0.002, 0.6))
    expect(view.locator(".sk-count")).to_have_text("15 of 60 rows")


def test_second_brush_filters_what_the_first_left_and_its_cross_takes_it_away(view, notebook):
    drag(notebook.page, view.locator('[data-score="tone"]'), (0.002, 0.5), (0.26, 0.5))
    expect(view.locator(".sk-count")).to_have_text("15 of 60 rows")
    drag(notebook.page, view.locator('[data-score="relevancy"]'), (0.9, 0.5), (0.999, 0.5))
    expect(rows(view)).to_have_text(["4", "24", "44"])
    view.get_by_title("Take the brush of tone away").click()
    expect(view.locator(".sk-count")).to_have_text("12 of 60 rows")
    assert notebook.run(1) == "12 [4, 9, 14, 19, 24]\n"


def test_click_on_a_bin_opens_its_rows(view, notebook):
    drag(notebook.page, view.locator('[data-score="tone"]'), (3.5 / 20, 0.5))
    expect(rows(view)).to_have_text(["3", "23", "43"])
    assert notebook.run(1) == "3 [3, 23, 43]\n"


def test_from_and_to_set_the_brush_by_number(view, notebook):
    start, end = view.get_by_label("tone from"), view.get_by_label("tone to")
    start.fill("0.9")
    start.press("Tab")
    expect(rows(view)).to_have_text(["18", "38", "19", "39"])
    end.fill("0.95")
    end.press("Tab")
    expect(rows(view)).to_have_text(["18", "38"])
    assert notebook.run(1) == "2 [18, 38]\n"


def test_group_error_search_and_label_filter_each_and_clear_restores(view, notebook):
    count = view.locator(".sk-count")
    view.get_by_label("variant").select_option("b")
    expect(count).to_have_text("20 of 60 rows")
    view.get_by_label("tone errors").select_option("any")
    expect(rows(view)).to_have_text(["57"])
    view.get_by_label("variant").select_option("")
    expect(rows(view)).to_have_text(["57", "58", "59"])
    view.get_by_label("tone errors").select_option("missing_input")
    expect(rows(view)).to_have_text(["58", "59"])
    assert notebook.run(1) == "2 [58, 59]\n"
    view.locator(".sk-clear").click()
    expect(count).to_have_text("60 rows")
    view.get_by_label("search the texts").fill("ANSWER 5")
    expect(count).to_have_text("11 of 60 rows")
    assert notebook.run(1) == "11 [5, 50, 51, 52, 53]\n"
    view.locator(".sk-clear").click()
    expect(count).to_have_text("60 rows")
    expect(view.get_by_label("search the texts")).to_have_value("")
    expect(view.get_by_label("variant")).to_have_value("")
    expect(view.locator(".sk-span").first).to_have_attribute("width", "0")
    assert notebook.run(1) == "60 [0, 1, 2, 3, 4]\n"


def test_filters_set_at_once_are_both_kept(view, notebook):
    """The second is set before the kernel has answered the first."""
    both = """(fields) => { for (const [field, value] of [[fields[0], "b"], [fields[1], "any"]]) {
        field.value = value; field.dispatchEvent(new Event("change", { bubbles: true })); } }"""
    fields = [view.get_by_label(name).element_handle() for name in ("variant", "tone errors")]
    notebook.page.evaluate(both, fields)
    expect(rows(view)).to_have_text(["57"])


def test_label_and_tag_filter_follow_what_is_written_down(view, notebook):
    view.get_by_label("label", exact=True).select_option("none")
    view.locator(".sk").press("f")
    expect(view.locator(".sk-count")).to_have_text("59 of 60 rows")
    view.locator(".sk-clear").click()
    expect(view.locator(".sk-count")).to_have_text("60 rows")
    view.locator(".sk").press("2")
    view.get_by_label("tag", exact=True).select_option("dodges")
    expect(rows(view)).to_have_text(["0"])
    assert notebook.run(1) == "1 [0]\n"


def test_order_sorts_the_table_anew_and_opens_its_first_row(view, notebook):
    order = view.get_by_label("read", exact=True)
    order.select_option("frame")
    expect(rows(view).first).to_have_text("0")
    expect(rows(view).nth(1)).to_have_text("1")
    order.select_option("informative")
    expect(rows(view).first).not_to_have_text("0")
    named = rows(view).first.inner_text()
    expect(view.locator(".sk-detail")).to_contain_text(f"question {named}")
    assert notebook.run(1) == "60 [0, 1, 2, 3, 4]\n"


def test_pages_show_the_rows_in_turn(view):
    view.get_by_title("Next page").click()
    expect(rows(view).first).to_have_text("28")
    view.get_by_title("Last page").click()
    expect(rows(view)).to_have_count(10)
    expect(rows(view).last).to_have_text("59")
    expect(view.get_by_title("Last page")).to_be_disabled()
    view.get_by_title("First page").click()
    expect(rows(view).first).to_have_text("0")


def test_row_in_full_has_texts_statements_in_words_and_their_reasons(view):
    rows(view).nth(3).click()
    detail = view.locator(".sk-detail")
    expect(detail.locator(".sk-block").first).to_have_text("inputquestion 1")
    expect(detail.locator(".sk-verdict")).to_have_text(["✓ yes", "? unsure", "✗ no"])
    expect(detail.locator(".sk-statement .sk-text")).to_have_text(["statement 1 of 1", "statement 2 of 1", "statement 3 of 1"])
    expect(detail.locator(".sk-statement .sk-faint")).to_have_text(["because yes", "because unsure", "because no"])
    colours = [one.evaluate("(e) => getComputedStyle(e).borderLeftColor") for one in detail.locator(".sk-statement").all()]
    assert len(set(colours)) == 3


def test_filters_set_in_python_show_in_the_view(notebook):
    view = notebook.show(VIEW, 'view.filters = {"scores": {"tone": (0.9, 1.0)}, "groups": {"variant": "a"}}\nview.order = "frame"')
    notebook.run(1)
    expect(rows(view)).to_have_text(["19", "38"])
