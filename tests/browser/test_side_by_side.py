"""side_by_side() in JupyterLab: what a click and a brush show, and that Python has the same; its keys; its exported page without a network."""

import json

import pandas as pd
import pytest

import scorekit as sk
from browser.frames import BAD, WORSE
from browser.jupyter import drag, expect, watch

VIEW = """
import scorekit as sk
from browser.test_side_by_side import prompts
view = sk.side_by_side(sk.compare(prompts(), variant="prompt", item="id"))
view
"""

TOLD = """
import json
from scorekit.analysis.paired import describe_differences
rows = view.selected
told = describe_differences(rows["tone_delta"], resamples=2000)
counts = {name: int((rows["tone_outcome"] == name).sum()) for name in ("win", "tie", "loss")}
print(json.dumps({**counts, "ids": rows["id"].tolist(), "mean": told.mean, "low": told.low, "high": told.high}))
"""

VOTES = 'print(view.data.set_index("id")["vote"].dropna().to_json())'
WIDE = 260  # of the scatter, in its own units, with a margin of 8 around the scores from 0 to 1


def prompts():
    """Return 20 items under two prompts: item i has 0.05 i under ``short``; under ``long`` 0.3 more, as much, or 0.3 less, in turn."""
    items = list(range(20))
    before = [0.05 * item for item in items]
    after = [min(1.0, max(0.0, score + (0.3, 0.0, -0.3)[item % 3])) for item, score in zip(items, before, strict=True)]
    return pd.DataFrame(
        {
            "id": [f"item {item}" for item in items] * 2,
            "prompt": ["short"] * 20 + ["long"] * 20,
            "input": [f"question {item}" for item in items] * 2,
            "output": [f"{side} answer to {item}" for side in ("short", "long") for item in items],
            "tone_score": [round(score, 2) for score in before + after],
            "tone_reason": [f"reason of {side} {item}" for side in ("short", "long") for item in items],
            "tone_statements": [json.dumps([f"statement of {side} {item}"]) for side in ("short", "long") for item in items],
            "tone_results": [json.dumps([{"statement": 1, "result": verdict, "reason": None}]) for verdict in ("no", "yes") for _ in items],
        }
    )


def hostile():
    """Return three items with markup in every text that a comparison can have."""
    texts = ["input", "output", "tone_reason", "tone_judge", "tone_a_prompt"]
    return pd.DataFrame(
        {
            "id": [WORSE, f"{WORSE}2", "q"] * 2,
            "prompt": [f"{WORSE}a"] * 3 + [f"{WORSE}b"] * 3,
            **dict.fromkeys(texts, WORSE),
            "tone_score": [0.1, 0.5, 0.9, 0.4, 0.5, 0.2],
            "tone_statements": json.dumps([WORSE]),
            "tone_results": json.dumps([{"statement": 1, "result": WORSE, "reason": WORSE}]),
            f"{BAD}_score": [0.1, 0.5, 0.9, 0.4, 0.5, 0.2],
        }
    )


def at(baseline, variant):
    """Where a point lies in the scatter, in shares of it from the upper left corner."""
    return (8 + baseline * (WIDE - 16)) / WIDE, 1 - (8 + variant * (WIDE - 16)) / WIDE


def click(page, view, baseline, variant):
    """Click on a point of the scatter."""
    box = view.locator(".sk-scatter")
    size = box.bounding_box()
    x, y = at(baseline, variant)
    box.click(position={"x": x * size["width"], "y": y * size["height"]})


def brush(page, view, baseline, variant):
    """Drag a brush over the scatter, from low to high."""
    drag(page, view.locator(".sk-scatter"), at(baseline[0], variant[0]), at(baseline[1], variant[1]))


def side(view, name):
    return view.locator(f'[data-side="{name}"]')


def shown_numbers(view):
    return view.locator(".sk-numbers")


def signed(value):
    return f"{value:+.2f}"


def item_names(view):
    return view.locator(".sk-listing tbody .sk-name")


@pytest.fixture
def view(notebook):
    shown = notebook.show(VIEW, TOLD, VOTES)
    expect(shown.locator(".sk-count")).to_have_text("20 pairs")
    return shown


@pytest.mark.parametrize(("item", "baseline", "variant"), [(6, 0.3, 0.6), (11, 0.55, 0.25), (13, 0.65, 0.65)])
def test_click_on_a_point_opens_its_two_outputs(view, notebook, item, baseline, variant):
    click(notebook.page, view, baseline, variant)
    for name, prompt, score in (("baseline", "short", baseline), ("variant", "long", variant)):
        expect(side(view, name).locator(".sk-sidehead")).to_have_text(f"{prompt} {score:.2f}")
        expect(side(view, name).locator(".sk-output")).to_have_text(f"{prompt} answer to {item}")
        expect(side(view, name).locator("mark")).to_have_text([prompt])
        expect(side(view, name).locator(".sk-reason")).to_have_text(f"reason of {prompt} {item}")
        expect(side(view, name).locator(".sk-statement")).to_contain_text(f"statement of {prompt} {item}")
    chosen = view.locator('[aria-selected="true"]')
    expect(chosen.locator(".sk-name")).to_have_text(f"item {item}")
    assert chosen.evaluate("(line) => getComputedStyle(line).boxShadow") != "none"
    expect(view.locator(".sk-asked")).to_have_text(f"question {item}")


def test_click_on_a_line_opens_its_pair(view):
    item_names(view).get_by_text("item 19", exact=True).click()
    expect(side(view, "variant").locator(".sk-output")).to_have_text("long answer to 19")


@pytest.mark.parametrize(("baseline", "variant"), [((0.18, 0.57), (0.13, 0.67)), ((0.0, 0.22), (0.0, 0.42))])
def test_brush_recomputes_the_numbers_as_python_has_them(view, notebook, baseline, variant):
    frame = prompts()
    before, after = frame["tone_score"].iloc[:20].to_numpy(), frame["tone_score"].iloc[20:].to_numpy()
    inside = (before > baseline[0] - 0.01) & (before < baseline[1]) & (after > variant[0] - 0.01) & (after < variant[1])
    wanted = [f"item {item}" for item in range(20) if inside[item]]
    assert 3 < len(wanted) < 20
    brush(notebook.page, view, (baseline[0] - 0.01, baseline[1]), (variant[0] - 0.01, variant[1]))
    expect(view.locator(".sk-count")).to_have_text(f"{len(wanted)} of 20 pairs")
    told = json.loads(notebook.run(1))
    assert told["ids"] == wanted
    expect(shown_numbers(view)).to_contain_text(f"{told['win']} wins, {told['tie']} ties, {told['loss']} losses")
    expect(shown_numbers(view)).to_contain_text(f"Mean difference {signed(told['mean'])} ({signed(told['low'])} to {signed(told['high'])})")
    view.locator(".sk-clear").click()
    expect(view.locator(".sk-count")).to_have_text("20 pairs")


def test_search_outcome_vote_and_order_choose_pairs(view, notebook):
    view.get_by_label("read", exact=True).select_option("frame")
    expect(item_names(view).first).to_have_text("item 0")
    view.get_by_label("outcome").select_option("loss")
    expect(item_names(view)).to_have_text([f"item {item}" for item in (2, 5, 8, 11, 14, 17)])
    view.get_by_label("search the texts").fill("ANSWER TO 1")
    expect(item_names(view)).to_have_text(["item 11", "item 14", "item 17"])
    view.locator(".sk").focus()
    notebook.page.keyboard.press("t")
    expect(view.locator('[data-vote="tie"]')).to_have_attribute("aria-pressed", "true")
    view.get_by_label("vote", exact=True).select_option("none")
    expect(item_names(view)).to_have_text(["item 14", "item 17"])


def test_keys_read_vote_and_undo(view, notebook):
    view.locator(".sk").focus()
    order = item_names(view).all_text_contents()
    for key in ("j", "j", "k", "b", "j", "v", "j", "t", "j", "t"):
        notebook.page.keyboard.press(key)
    expect(view.locator(".sk-saturation")).to_contain_text("Votes: 1 short, 1 long, 2 tie.")
    expect(view.locator(".sk-listing tbody tr:first-child td:last-child")).to_have_text(
        ["", "baseline", "variant", "tie", "tie", *[""] * 15]
    )
    notebook.page.keyboard.press("z")
    expect(view.locator(".sk-saturation")).to_contain_text("Votes: 1 short, 1 long, 1 tie.")
    expect(view.locator(".sk-place")).to_have_text("5 of 20")
    assert json.loads(notebook.run(2)) == {order[1]: "baseline", order[2]: "variant", order[3]: "tie"}


def test_vote_leaves_the_outputs_where_they_were_scrolled_to_and_the_next_pair_begins_at_its_top(notebook):
    view = notebook.show(VIEW.replace("prompts()", 'prompts().assign(output="line\\n" * 100)'))
    column = side(view, "variant")
    expect(column.locator(".sk-output")).to_contain_text("line")
    column.evaluate("(element) => { element.scrollTop = 300; }")
    view.locator(".sk").focus()
    notebook.page.keyboard.press("t")
    expect(view.locator('[data-vote="tie"]')).to_have_attribute("aria-pressed", "true")
    assert column.evaluate("(element) => element.scrollTop") == 300
    notebook.page.keyboard.press("j")
    expect(view.locator(".sk-place")).to_have_text("2 of 20")
    assert column.evaluate("(element) => element.scrollTop") == 0


KEYS = ("a", "b", "d", "d", "x", "c", "v", "m", "y", "r", "s", "h", "o", "i", "i", "0", "0", "j", "k", "t", "z", "Enter", "Shift+Enter", "ArrowDown", "Escape", " ")  # fmt: skip


def test_no_key_reaches_the_notebook_from_any_part_of_the_view(view, notebook):
    before = notebook.state()
    for part in (".sk", ".sk-button", ".sk-field select", ".sk-search", ".sk-vote"):
        view.locator(part).first.focus()
        for key in KEYS:
            notebook.page.keyboard.press(key)
    assert notebook.state() == before
    assert before["mode"] == "command"
    # The control: one in the notebook itself is carried out, and any before it would have been carried out first.
    notebook.page.locator(".jp-Cell .jp-InputPrompt").last.click()
    notebook.page.keyboard.press("b")
    expect(notebook.page.locator(".jp-Notebook .jp-Cell")).to_have_count(4)
    assert [cell for cell in notebook.state()["cells"] if cell[1]] == before["cells"]


MARKUP = "img, script, iframe, object, [onerror]"
HACKED = "() => window.hacked === undefined"

HOSTILE = """
import scorekit as sk
from browser.frames import BAD
from browser.test_side_by_side import hostile
view = sk.side_by_side(sk.compare(hostile(), variant="prompt", item="id"), save=BAD + ".jsonl")
view
"""


def read_hostile(page, view):
    """Open each pair and each fold, and choose each score."""
    expect(item_names(view).first).to_have_text("q")
    expect(item_names(view).nth(1)).to_have_text(f"{WORSE}2")
    for name in (f"{BAD}", "tone"):
        view.get_by_label("score", exact=True).select_option(name)
        expect(view.get_by_label("score", exact=True)).to_have_value(name)
    page.locator(".sk").focus()
    for place in range(3):
        expect(view.locator(".sk-place")).to_have_text(f"{place + 1} of 3")
        for name, prompt in (("baseline", f"{WORSE}a"), ("variant", f"{WORSE}b")):
            expect(side(view, name).locator(".sk-sidehead b")).to_have_text(prompt)
            expect(side(view, name).locator(".sk-output")).to_have_text(WORSE)
            expect(side(view, name).locator(".sk-verdict").first).to_contain_text(WORSE)
        page.keyboard.press("j")
    expect(view.locator(".sk-asked")).to_have_text(WORSE)
    assert view.locator(MARKUP).count() == 0
    assert page.evaluate(HACKED)


def test_hostile_texts_show_as_texts(notebook):
    view = notebook.show(HOSTILE)
    read_hostile(notebook.page, view)
    notebook.page.keyboard.press("t")
    expect(view.locator(".sk-saturation")).to_contain_text(f"Kept in {BAD}.jsonl")
    assert notebook.page.evaluate(HACKED)


# --- the exported page


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


def compared(frame=None):
    return sk.side_by_side(sk.compare(prompts() if frame is None else frame, variant="prompt", item="id"))


def open_page(page, tmp_path, view, **options):
    page.goto(sk.export_html(view, tmp_path / "view.html", **options).as_uri())
    return page.locator(".sk")


def test_page_brushes_clicks_and_steps_by_itself(page, tmp_path):
    view = compared()
    shown = open_page(page, tmp_path, view)
    summary = view.found.summary.iloc[0]
    expect(shown_numbers(shown)).to_contain_text(f"{summary['wins']} wins, {summary['ties']} ties, {summary['losses']} losses")
    expect(shown_numbers(shown)).to_contain_text(f"({signed(summary['ci_low'])} to {signed(summary['ci_high'])})")
    brush(page, shown, (0.17, 0.57), (0.12, 0.67))
    view.filters = {"brush": (0.17, 0.57, 0.12, 0.67)}
    told = view.shown["numbers"]
    expect(shown.locator(".sk-count")).to_have_text(f"{told['n']} of 20 pairs")
    expect(shown_numbers(shown)).to_contain_text(f"{told['wins']} wins, {told['ties']} ties, {told['losses']} losses")
    expect(shown_numbers(shown)).to_contain_text(f"Mean difference {signed(told['mean'])}")
    expect(item_names(shown)).to_have_text([line["name"] for line in view.shown["lines"]])
    item_names(shown).first.click()
    page.keyboard.press("j")
    expect(shown.locator(".sk-place")).to_have_text(f"2 of {told['n']}")
    expect(side(shown, "variant").locator(".sk-output")).to_have_text(
        f"long answer to {view.shown['lines'][1]['name'].removeprefix('item ')}"
    )
    page.keyboard.press("t")
    shown.locator(".sk-clear").click()
    expect(shown.locator(".sk-count")).to_have_text("20 pairs")
    click(page, shown, 0.55, 0.25)
    expect(side(shown, "baseline").locator(".sk-output")).to_have_text("short answer to 11")
    assert shown.locator(".sk-vote").count() == 0


def test_page_begins_with_the_view_s_brush(page, tmp_path):
    view = compared()
    view.filters = {"brush": (0.17, 0.57, 0.12, 0.67)}
    shown = open_page(page, tmp_path, view)
    expect(shown.locator(".sk-count")).to_have_text(f"{view.shown['kept']} of 20 pairs")
    expect(item_names(shown)).to_have_text([line["name"] for line in view.shown["lines"]])
    shown.locator(".sk-clear").click()
    expect(shown.locator(".sk-count")).to_have_text("20 pairs")


def test_page_of_a_part_of_the_rows_has_no_interval_of_all(page, tmp_path):
    shown = open_page(page, tmp_path, compared(), most_rows=4)
    expect(page.locator("main > p")).to_have_text("The first 4 of 20 rows in the order of reading.")
    expect(shown_numbers(shown)).to_contain_text("Mean difference -0.30")
    expect(shown_numbers(shown)).not_to_contain_text("(")


def test_page_switches_variants_and_keeps_the_item_open(page, tmp_path):
    third = prompts().iloc[20:].assign(prompt="third", output="third answer", tone_score=0.5)
    shown = open_page(page, tmp_path, compared(pd.concat([prompts(), third])))
    page.locator(".sk").focus()
    page.keyboard.press("j")
    name = shown.locator('[aria-selected="true"] .sk-name').text_content()
    shown.get_by_label("variant").select_option("third")
    expect(side(shown, "variant").locator(".sk-output")).to_have_text("third answer")
    expect(shown.locator('[aria-selected="true"] .sk-name')).to_have_text(name)


def test_page_shows_hostile_texts_as_texts(page, tmp_path):
    shown = open_page(page, tmp_path, compared(hostile()), title=WORSE)
    expect(page.locator("h1")).to_have_text(WORSE)
    read_hostile(page, shown)
