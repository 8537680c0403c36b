"""The playground: its fields come from the scorer, its button runs it, and what it shows is escaped and never stale."""

import warnings
from functools import partial
from typing import Literal

import pandas as pd
import pytest
from loopback import Reply

import scorekit as sk
from scorekit.errors import (
    ArgumentTypeError,
    ColumnConflictError,
    JudgeSetupError,
    MissingColumnError,
    OptionRangeError,
    UnknownOptionError,
)
from scorekit.scorers.tone import TONE
from scorekit.testing import FakeJudge

BAD = "</script><img src=x onerror=alert(1)>"
SHOWN = "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;"
REPLIES = {
    "preprocess": {"statements": ["Paris.", "Buy shoes."]},
    "analyze": {"results": [{"statement": 1, "result": "yes", "reason": "A city."}, {"statement": 2, "result": "no", "reason": "Off."}]},
    "generate_reason": {"reason": "Half of it."},
}


def page(panel):
    return panel._page.value


def status(panel):
    return panel._status.value.split(">")[1].split("<")[0]


def widget(panel, name):
    return panel._controls[name].widget


def difference(**texts):
    return sk.playground(sk.score_text_difference, **{"input": "Hello world!", "output": "Hello there!", **texts})


# --- running


def test_button_runs_the_scorer_and_shows_score_band_reason_and_steps():
    panel = sk.playground(sk.score_relevancy, judge=FakeJudge(REPLIES), input="Capital?", output="Paris. Buy shoes.")
    assert status(panel).startswith("Not run yet.")
    panel._button.click()
    assert (panel.result.score, panel.error, status(panel)) == (0.5, None, "Done.")
    for text in ("partially answers", "higher is better", "Half of it.", "Judge fake", "width: 50.00%", "preprocess", "generate_reason"):
        assert text in page(panel)
    assert "Break the output below into its meaningful statements" in page(panel)
    assert "<output>" not in page(panel)
    assert "&lt;output&gt;\nParis. Buy shoes.\n&lt;/output&gt;" in page(panel)


def test_run_returns_the_result_that_the_attribute_keeps():
    panel = difference(changes="words")
    assert panel.run() is panel.result
    assert panel.result.reason == "1 changed word; the lengths are equal; similarity 0.67."


def test_run_with_the_local_judge_asks_nothing_and_says_that_it_is_rough():
    panel = sk.playground(sk.score_relevancy, judge="local", input="Why is the sky blue?", output="Air scatters blue light.")
    panel.run()
    assert panel.result.judge == "local"
    assert "Judge local (the built-in stand-in, which is rough" in page(panel)
    assert page(panel).count("local stand-in for the judge") == 3


def test_run_of_a_row_that_cannot_be_scored_shows_its_code_and_reason():
    panel = sk.playground(sk.score_tone, input="Why?", output="ビールが好き")
    panel.run()
    assert "Not scored" in page(panel)
    assert ">not_scorable</span>" in page(panel)
    assert "Most letters of the output are not Latin" in page(panel)


def test_run_shows_warnings_as_notes():
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        panel = sk.playground(sk.score_relevancy, input="Why?", output="")
        panel.run()
    assert "Note: No judge was given" in page(panel)


def test_run_of_a_callable_of_the_users_own_has_one_step_without_bar_or_band():
    panel = sk.playground(lambda df: df.assign(long_score=df["answer"].str.len()), answer="four")
    assert panel.run().score == 4
    assert "<b>scorer</b>" in page(panel)
    assert "sk-bar" not in page(panel)


def test_verdicts_have_their_word_in_the_colour_of_good_or_bad_beside_their_statement():
    relevancy = sk.playground(sk.score_relevancy, judge=FakeJudge(REPLIES), input="Capital?", output="Paris. Buy shoes.")
    relevancy.run()
    assert '<span class="sk-chip sk-good">yes</span></td><td>Paris.<br><span class="sk-faint">A city.</span></td>' in page(relevancy)
    assert '<span class="sk-chip sk-bad">no</span></td><td>Buy shoes.<br><span class="sk-faint">Off.</span></td>' in page(relevancy)
    toxicity = sk.playground(sk.score_toxicity, judge=FakeJudge(REPLIES), input="Capital?", output="Paris. Buy shoes.")
    toxicity.run()
    assert '<span class="sk-chip sk-bad">yes</span>' in page(toxicity)
    assert "lower is better" in page(toxicity)


def test_replies_from_the_cache_are_told_as_such(loopback):
    judge = sk.Judge("m", base_url=loopback.url)
    panel = sk.playground(sk.score_relevancy, judge=judge, input="Capital?", output="Paris.", statements="sentences", reason="verdicts")
    loopback.when("", Reply('{"results": [{"statement": 1, "result": "yes", "reason": "r"}]}'))
    panel.run()
    assert " tokens in, 12 out · 1 call</span>" in page(panel)
    assert "from the cache" not in page(panel)
    panel.run()
    assert "from the cache · no call" in page(panel)
    assert "1 of 1 replies from the cache" in page(panel)


def test_repeats_each_have_their_steps_and_the_first_is_open():
    panel = sk.playground(sk.score_relevancy, judge=FakeJudge(REPLIES), input="Capital?", output="Paris.", repeats=2)
    panel.run()
    assert page(panel).count('<details class="sk-card sk-step" open><summary><b>analyze, repeat 1</b>') == 1
    assert page(panel).count('<details class="sk-card sk-step"><summary><b>analyze, repeat 2</b>') == 1


# --- errors


def test_error_of_ours_is_shown_in_plain_words_and_raised_by_run_but_not_by_the_button():
    panel = sk.playground(sk.score_tone, input="a", output="b", scale=-1)
    panel._button.click()
    assert (type(panel.error), panel.result, status(panel)) == (OptionRangeError, None, "Failed.")
    assert "Cannot run" in page(panel)
    assert "scale=-1 is out of range" in page(panel)
    assert "Traceback" not in page(panel)
    with pytest.raises(OptionRangeError, match="scale=-1"):
        panel.run()


def broken(rows):
    if len(rows):
        raise ZeroDivisionError(BAD)
    return rows["output"].str.len()


BROKEN = sk.Scorer("broken", needs=("output",), analyze=lambda rows: rows["output"].rename("kept"), generate_score=broken)


def test_error_of_a_users_step_is_shown_with_its_traceback_and_the_steps_before():
    panel = sk.playground(BROKEN, output="a text")
    panel._button.click()
    assert type(panel.error) is ZeroDivisionError
    assert f"ZeroDivisionError: {SHOWN}" in page(panel)
    assert "(raised in step generate_score of the scorer &#x27;broken&#x27;)" in page(panel)
    assert "Traceback (most recent call last)" in page(panel)
    assert "<th>kept</th><td>a text</td>" in page(panel)


def test_error_is_gone_after_a_run_that_works():
    panel = sk.playground(sk.score_tone, input="a", output="b", scale=-1)
    panel._button.click()
    panel.fill(scale=1.0)
    panel._button.click()
    assert (panel.error, panel.result.score) == (None, 1.0)
    assert "Cannot run" not in page(panel)


def test_missing_judge_is_shown_with_what_to_do():
    panel = sk.playground(sk.score_toxicity, judge="local", input="a", output="b")
    panel._button.click()
    assert type(panel.error) is JudgeSetupError
    assert "Pass judge=sk.Judge(...)" in page(panel)


def test_interrupt_stops_and_says_so_with_the_steps_that_had_run():
    def interrupted(rows):
        raise KeyboardInterrupt

    scorer = sk.Scorer("s", needs=("output",), analyze=lambda rows: rows["output"].rename("kept"), generate_score=interrupted)
    panel = sk.playground(scorer, output="a text")
    panel._button.click()
    assert (type(panel.error), status(panel)) == (KeyboardInterrupt, "Stopped.")
    assert "The run was interrupted" in page(panel)
    assert "<th>kept</th><td>a text</td>" in page(panel)
    assert (panel._button.disabled, panel._button.description) == (False, "Run")


# --- stale


@pytest.mark.parametrize("change", [{"input": "Hi"}, {"output": "Hi"}, {"ratio": "difflib"}, {"changes": "words"}])
def test_result_is_marked_as_of_earlier_inputs_until_it_is_run_again(change):
    panel = difference()
    panel.run()
    panel.fill(**change)
    assert panel.stale
    assert status(panel) == "The result below is of earlier inputs. Run again."
    assert "sk-stale" in panel._page._dom_classes
    panel.run()
    assert not panel.stale
    assert (status(panel), panel._page._dom_classes) == ("Done.", ())


def test_result_is_not_stale_once_the_change_is_taken_back():
    panel = difference()
    panel.run()
    panel._areas["input"].value = "Hi"
    panel._areas["input"].value = "Hello world!"
    assert (panel.stale, status(panel)) == (False, "Done.")


def test_result_is_stale_after_another_judge_or_row_is_picked():
    panel = sk.playground(sk.score_relevancy, pd.DataFrame({"input": ["q", "q"], "output": ["", ""]}), judge="local")
    panel.run()
    panel._judge_field.value = "local"
    assert panel.stale
    panel._judge_field.value = ""
    assert not panel.stale
    panel.row = 1
    assert panel.stale


# --- options


def own(
    df, threshold: float = 0.5, *, output="output", kind: Literal["a", 1] | None = 1, most: int | None = None, sure: bool = True, how=print
):
    return df.assign(own_score=threshold)


def test_options_get_the_control_that_their_annotation_asks_for():
    panel = sk.playground(own)
    assert {name: type(control.widget).__name__ for name, control in panel._controls.items()} == {
        "threshold": "FloatText",
        "kind": "Dropdown",
        "most": "Text",
        "sure": "Checkbox",
    }
    assert panel.options == {"threshold": 0.5, "kind": 1, "most": None, "sure": True}
    assert widget(panel, "kind").options == ("a", "1", "None")


def test_options_that_are_changed_on_the_panel_reach_the_scorer():
    seen = {}

    def scorer(df, *, output="output", kind: Literal["a", 1] | None = 1, most: int | None = None, sure: bool = True, part: float = 0.5):
        seen.update(kind=kind, most=most, sure=sure, part=part)
        return df.assign(x_score=1.0)

    panel = sk.playground(scorer, output="a")
    widget(panel, "kind").value = "None"
    widget(panel, "most").value = "12"
    widget(panel, "sure").value = False
    widget(panel, "part").value = 0.25
    panel.run()
    assert seen == {"kind": None, "most": 12, "sure": False, "part": 0.25}


def test_options_bound_by_a_partial_are_what_the_panel_begins_with():
    panel = sk.playground(partial(sk.score_tone, lexicon="afinn", scale=10), input="I love it.", output="I love it.")
    assert (widget(panel, "lexicon").value, panel.options["lexicon"], panel.options["scale"]) == ("afinn", "afinn", 10)
    assert type(panel.options["scale"]) is int
    assert panel.run().score == 10.0


def test_options_of_a_scorer_are_read_from_the_step_that_takes_them():
    panel = sk.playground(TONE, input="I love it.", output="I love it.")
    assert widget(panel, "lexicon").options == ("vader", "afinn")
    panel.fill(lexicon="afinn", scale=2.0)
    assert (panel.run().score, panel.result.steps["response_sentiment"]) == (2.0, 1.0)


def test_options_that_only_code_can_set_are_told_and_kept():
    prompts = {"generate_reason": sk.Prompt("Why?\n{{ output }}", reply=sk.score_relevancy.__globals__["Reason"])}
    judge = FakeJudge(REPLIES)
    panel = sk.playground(partial(sk.score_relevancy, prompts=prompts), judge=judge, input="q", output="a")
    assert "prompts" not in panel._controls
    assert panel.options["prompts"] is prompts
    panel.run()
    assert judge.requests[-1].messages[-1]["content"].startswith("Why?")


def test_option_that_is_no_number_is_said_when_it_is_run():
    panel = sk.playground(own, output="a")
    widget(panel, "most").value = "many"
    panel._button.click()
    assert "most must be a whole number or empty, not str." in page(panel)


def test_options_have_the_docstring_of_their_argument_as_tooltip():
    panel = sk.playground(sk.score_relevancy)
    assert widget(panel, "uncertainty_weight").tooltip == 'What a statement with the verdict "unsure" counts; 0 or more, usually at most 1.'


# --- judge


def test_judge_on_the_panel_wins_over_the_one_that_the_scorer_brings():
    panel = sk.playground(partial(sk.score_relevancy, judge=FakeJudge(REPLIES, label="bound")), judge="local", input="Why?", output="")
    assert panel._judge_field.placeholder == "as given: bound"
    assert panel.run().judge == "bound"
    panel.fill(judge="local")
    assert panel.run().judge == "local"


def test_judge_field_is_there_for_judged_scorers_alone():
    def described(panel):
        return [child.description for box in panel.children for child in getattr(box, "children", ())]

    assert "judge" in described(sk.playground(sk.score_relevancy))
    assert "judge" not in described(sk.playground(sk.score_tone))


# --- rows


DF = pd.DataFrame(
    {
        "q": ["first", None, [{"role": "user", "content": "from messages"}], 7],
        "output": ["first", "second", "from messages", "seven"],
    },
    index=["a", "b", "c", BAD],
)


def test_rows_fill_the_text_areas_and_previous_and_next_stop_at_the_ends():
    panel = sk.playground(sk.score_text_difference, DF, input="q")
    back, _, forth, label = panel.children[1].children
    assert panel._areas["input"].value == "first"
    back.click()
    assert panel.row == 0
    forth.click()
    assert (panel.row, panel._areas["input"].value, panel._areas["output"].value) == (1, "", "second")
    panel.row = 3
    forth.click()
    assert panel.row == 3
    assert SHOWN in label.value


def test_rows_untouched_cells_are_scored_as_they_are_in_the_frame():
    panel = sk.playground(sk.score_text_difference, DF, input="q")
    panel.row = 1
    assert (panel.run().error, panel._areas["input"].placeholder) == ("missing_input", "(missing)")
    panel.row = 2
    assert '"content": "from messages"' in panel._areas["input"].value
    assert (panel.inputs["input"], panel.run().score) == ([{"role": "user", "content": "from messages"}], 1.0)
    panel.row = 3
    assert panel.run().error == "not_text"


def test_rows_edited_cell_is_scored_as_edited_and_the_frame_is_not_changed():
    before = DF.copy(deep=True)
    panel = sk.playground(sk.score_text_difference, DF, input="q")
    panel._areas["input"].value = "7"
    panel._areas["output"].value = "7"
    assert panel.run().score == 1.0
    pd.testing.assert_frame_equal(DF, before)


def test_rows_many_are_picked_by_position():
    df = pd.DataFrame({"input": ["x"] * 100_000, "output": "y"}).assign(output=lambda frame: frame.index.astype(str))
    panel = sk.playground(sk.score_text_difference, df)
    panel.row = 99_999
    assert panel.inputs == {"input": "x", "output": "99999"}
    with pytest.raises(OptionRangeError, match="a position from 0 to 99999"):
        panel.row = 100_000


def test_rows_none_leave_empty_areas_and_no_picker():
    panel = sk.playground(sk.score_text_difference, DF.iloc[:0], input="q")
    assert (panel.row, panel.inputs) == (None, {"input": "", "output": ""})


def test_rows_columns_that_a_partial_names_are_read():
    panel = sk.playground(partial(sk.score_text_difference, input="q"), DF)
    assert panel._areas["input"].description == "input (column q)"
    assert panel.run().score == 1.0


def test_rows_missing_or_doubled_column_raises_with_what_to_pass():
    with pytest.raises(
        MissingColumnError,
        match=r"score_text_difference needs a column 'input'; the frame has 'query', 'output'. Did you mean input='query'",
    ):
        sk.playground(sk.score_text_difference, DF.rename(columns={"q": "query"}))
    with pytest.raises(ColumnConflictError, match="2 columns of that name"):
        sk.playground(sk.score_text_difference, DF.set_axis(["output", "output"], axis=1), input="output")


def test_rows_column_that_the_options_make_needless_may_be_missing():
    panel = sk.playground(sk.score_tone, DF[["output"]], reference="We love it.")
    assert panel.run().score == 0.68155


def test_rows_of_a_callable_of_the_users_own_bring_their_other_cells():
    df = pd.DataFrame({"output": ["a"], "limit": [3], "judge": ["x"]})
    panel = sk.playground(lambda frame: frame.assign(x_score=frame["limit"].astype(float)), df)
    assert (list(panel.inputs), panel.run().score) == (["output"], 3.0)


def test_rows_of_a_callable_of_the_users_own_need_the_columns_that_the_call_names():
    def scorer(frame):
        return frame.assign(x_score=frame["a"].str.len())

    panel = sk.playground(scorer, pd.DataFrame([["four", 1, 2]], columns=["a", "b", "b"]), a="a")
    assert (list(panel.inputs), panel.run().score) == (["a"], 4)
    with pytest.raises(MissingColumnError, match="scorer needs a column 'text'; the frame has 'a'"):
        sk.playground(scorer, pd.DataFrame({"a": ["four"]}), a="text")


# --- hostile and long texts


def test_hostile_texts_are_shown_and_never_html():
    replies = {
        "preprocess": {"statements": [BAD]},
        "analyze": {"results": [{"statement": 1, "result": "no", "reason": BAD}]},
        "generate_reason": {"reason": BAD},
    }
    panel = sk.playground(sk.score_relevancy, pd.DataFrame({"input": [BAD], "output": [BAD]}), judge=FakeJudge(replies, label=BAD))
    panel.run()
    for text in (page(panel), panel._row_label.value, panel._status.value, panel._repr_mimebundle_()["text/html"]):
        assert "<img" not in text
        assert "</script" not in text
    assert page(panel).count(SHOWN) >= 8
    assert SHOWN in panel._repr_mimebundle_()["text/html"]


def test_long_text_is_capped_with_a_count_of_what_is_left_out():
    scorer = sk.Scorer(
        "n", needs=("output",), analyze=lambda rows: rows["output"].rename("kept"), generate_score=lambda rows: rows["output"].str.len()
    )
    panel = sk.playground(scorer, output="x" * 20_123)
    panel.run()
    assert "x … (123 more characters)</td>" in page(panel)
    assert "x" * 20_001 not in page(panel)


def test_lone_surrogate_is_shown_as_a_question_mark():
    panel = sk.playground(sk.score_text_difference, pd.DataFrame({"input": ["a\ud800"], "output": ["b"]}, dtype=object))
    assert panel._areas["input"].value == "a\ufffd"
    assert panel.inputs["input"] == "a\ud800"


# --- beside the widget


def test_mimebundle_has_the_widget_and_a_summary_for_what_shows_none():
    panel = difference(changes="words")
    bundle = panel._repr_mimebundle_()
    assert sorted(bundle) == ["application/vnd.jupyter.widget-view+json", "text/html", "text/plain"]
    assert bundle["text/plain"].splitlines() == [
        "Playground of score_text_difference(ratio='lcs', changes='words')",
        "input: Hello world!",
        "output: Hello there!",
        "Not run yet: panel.run() runs it.",
    ]
    panel.run()
    assert repr(panel).splitlines()[3] == "score: 0.6667; 1 changed word; the lengths are equal; similarity 0.67."
    panel.fill(output="Hi")
    assert repr(panel).splitlines()[4] == "The result is of earlier inputs."


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("relevancy",), ArgumentTypeError, "Pass a function such as score_relevancy"),
        ((sk.score_tone, "text"), ArgumentTypeError, "playground: the first argument must be a pandas DataFrame"),
    ],
)
def test_playground_of_what_it_cannot_take_raises(arguments, error, words):
    with pytest.raises(error, match=words):
        sk.playground(*arguments)


def test_playground_keyword_that_the_scorer_does_not_know_raises():
    with pytest.raises(ArgumentTypeError, match="playground has no argument 'lexikon'; score_tone reads .* Did you mean 'lexicon'"):
        sk.playground(sk.score_tone, lexikon="afinn")


def test_fill_name_or_choice_that_is_not_there_raises():
    panel = difference()
    with pytest.raises(UnknownOptionError, match="fill='outputs' is not known; .* Did you mean 'output'"):
        panel.fill(outputs="x")
    with pytest.raises(UnknownOptionError, match="ratio='lc' is not known; choose one of 'lcs', 'difflib'"):
        panel.fill(ratio="lc")
