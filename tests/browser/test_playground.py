"""playground() in JupyterLab: the button runs the scorer, and each step is shown with what it gave."""

from browser.jupyter import expect

DIFFERENCE = """
import scorekit as sk
panel = sk.playground(sk.score_text_difference, input="Hello world!", output="Hello there!", changes="words")
panel
"""
RELEVANCY = """
import warnings
import scorekit as sk
warnings.simplefilter("ignore", sk.LocalJudgeWarning)
panel = sk.playground(sk.score_relevancy, judge=sk.LocalJudge(), input="Why is the sky blue?",
                      output="Air scatters blue light more than red light. Buy our shoes today!")
panel
"""
RESULT = "print(panel.result.score, panel.result.judge, panel.stale, panel.inputs['output'])"


def run(panel):
    panel.locator("button.mod-primary").click()


def test_scorer_without_a_judge_runs_and_shows_its_steps(notebook):
    panel = notebook.show(DIFFERENCE, RESULT)
    run(panel)
    expect(panel.locator(".sk-number")).to_have_text("0.6667")
    expect(panel.locator(".sk-step > summary > b")).to_have_text(["analyze", "generate_score", "generate_reason"])
    assert notebook.run(1) == "0.6666666666666666 None False Hello there!\n"


def test_edited_text_makes_the_result_stale_until_it_is_run_again(notebook):
    panel = notebook.show(DIFFERENCE, RESULT)
    run(panel)
    expect(panel.locator(".sk-number")).to_have_text("0.6667")
    panel.locator("textarea").last.fill("Hello world!")
    expect(panel.get_by_role("status")).to_contain_text("earlier inputs")
    run(panel)
    expect(panel.locator(".sk-number")).to_have_text("1")
    expect(panel.get_by_role("status")).not_to_contain_text("earlier inputs")
    assert notebook.run(1) == "1.0 None False Hello world!\n"


def test_judged_scorer_shows_what_it_asked_and_the_verdicts(notebook):
    panel = notebook.show(RELEVANCY, RESULT)
    run(panel)
    expect(panel.locator(".sk-number")).to_have_text("0.5")
    expect(panel.locator(".sk-step > summary > b")).to_have_text(["preprocess", "analyze", "generate_score", "generate_reason"])
    expect(panel.locator(".sk-step").nth(0)).to_contain_text("Buy our shoes today!")
    expect(panel.locator(".sk-step").nth(1).locator(".sk-chip")).to_have_text(["yes", "no"])
    assert notebook.run(1).startswith("0.5 local False Air scatters")


def test_keys_typed_into_the_panel_do_not_reach_the_notebook(notebook):
    panel = notebook.show(DIFFERENCE)
    before = notebook.state()
    panel.locator("textarea").first.fill("")
    for key in ("a", "b", "d", "d", "x", "Enter", "m"):
        notebook.page.keyboard.press(key)
    expect(panel.locator("textarea").first).to_have_value("abddx\nm")
    assert notebook.state() == before
