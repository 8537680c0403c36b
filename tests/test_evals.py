"""run_evals: what is called with what, what is scored, and the verdict."""

import asyncio
import json
import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit.columns import ERROR_CODES
from scorekit.errors import (
    ArgumentTypeError,
    ColumnConflictError,
    JudgeSetupError,
    MissingColumnError,
    OptionRangeError,
    ScorerDefinitionError,
    UnknownOptionError,
)
from scorekit.evals.run_evals import run_evals
from scorekit.testing import FakeJudge

ITEMS = [{"input": "a", "ground_truth": "A"}, {"input": "b", "ground_truth": "B"}, {"input": "c", "ground_truth": "D"}]
EQUAL = partial(sk.score_text_difference, input="ground_truth", name="equal")
REPLIES = {
    "preprocess": {"statements": ["s"]},
    "analyze": {"results": [{"statement": 1, "result": "yes", "reason": "r"}]},
    "generate_reason": {"reason": "why"},
}


def is_upper(df):
    return df.assign(upper_score=df["output"].str.isupper().astype(int))


def never(text):
    pytest.fail("called")


def filled(column):
    return column.fillna("-").tolist()


# --- data and targets


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(["a", "b"], id="texts"),
        pytest.param(iter(["a", "b"]), id="iterator"),
        pytest.param([{"input": "a"}, {"input": "b"}], id="records"),
        pytest.param(pd.DataFrame({"input": ["a", "b"]}), id="frame"),
        pytest.param(pd.Series(["a", "b"]), id="series"),
    ],
)
def test_data_of_every_kind_is_read(data):
    result = run_evals(data, str.upper, [is_upper])
    assert result.frame[["input", "output", "upper_score"]].to_dict("list") == {
        "input": ["a", "b"],
        "output": ["A", "B"],
        "upper_score": [1.0, 1.0],
    }


def test_frame_keeps_index_columns_dtypes_and_attrs_and_is_not_changed():
    df = pd.DataFrame({"n": pd.array([1, 2], dtype="Int8"), "input": ["a", "b"]}, index=["x", "x"])
    df.attrs["origin"] = "here"
    before = df.copy(deep=True)
    frame = run_evals(df, str.upper, [is_upper]).frame
    assert frame.columns.tolist() == ["n", "input", "output", "error", "reason", "seconds", "upper_score"]
    pd.testing.assert_frame_equal(frame[["n", "input"]], before)
    pd.testing.assert_frame_equal(df, before)
    assert (frame.index.tolist(), frame.attrs) == (["x", "x"], {"origin": "here"})
    assert frame[["output", "error", "reason", "seconds"]].dtypes.astype(str).tolist() == ["string", "string", "string", "float64"]


def with_item(text, item):
    return f"{text}{item['n']}{type(item['n']).__name__}"


class Agent:
    def __call__(self, text, *, shout=False):
        return f"agent {text}"

    def answer(self, text, item):
        return f"method {item['input']}"

    async def later(self, text):
        return f"later {text}"


@pytest.mark.parametrize(
    ("target", "output"),
    [
        (with_item, "a4int"),
        (lambda text, item=None: f"{text}{item}", "aNone"),
        (lambda *texts: "".join(texts), "a"),
        (str.upper, "A"),
        (Agent(), "agent a"),
        (Agent().answer, "method a"),
        (Agent().later, "later a"),
        (partial(with_item, item={"n": "bound"}), "aboundstr"),
    ],
)
def test_target_is_called_with_the_input_and_with_the_item_where_it_needs_two(target, output):
    df = pd.DataFrame({"input": ["a"], "n": np.array([4])})
    assert run_evals(df, target, [is_upper]).frame["output"].tolist() == [output]


def test_target_gets_an_input_that_is_no_text_as_it_is():
    messages = [{"role": "user", "content": "Hi"}]
    result = run_evals([{"chat": messages}], lambda chat: chat[0]["content"] + "!", [is_upper], input="chat")
    assert result.frame["output"].tolist() == ["Hi!"]


def test_messages_that_come_back_are_kept_as_json_that_scorers_read():
    def agent(text):
        return [{"role": "user", "content": text}, {"role": "assistant", "content": text.upper(), "tool_calls": [{"name": "up"}]}]

    frame = run_evals(ITEMS, agent, [EQUAL]).frame
    assert json.loads(frame["output"][0])[1] == {"role": "assistant", "content": "A", "tool_calls": [{"name": "up"}]}
    assert frame["equal_score"].tolist() == [1.0, 1.0, 0.0]


def test_async_targets_run_side_by_side_in_a_running_loop_too():
    open_calls, most = 0, 0

    async def agent(text):
        nonlocal open_calls, most
        open_calls += 1
        most = max(most, open_calls)
        await asyncio.sleep(0.05)
        open_calls -= 1
        return text

    async def cell():
        return run_evals([str(number) for number in range(12)], agent, [is_upper], concurrency=3)

    assert asyncio.run(cell()).frame["output"].tolist() == [str(number) for number in range(12)]
    assert most == 3


def test_sync_targets_run_in_as_many_threads_as_asked_for():
    together = threading.Barrier(5, timeout=30)
    result = run_evals(list("abcde"), lambda text: f"{text}{together.wait()}", [is_upper], concurrency=5)
    assert result.frame["error"].isna().all()


def test_several_targets_give_a_row_an_item_and_target():
    df = pd.DataFrame({"input": ["a", "b"]}, index=["x", "y"])
    result = run_evals(df, {"up": str.upper, "same": str.strip}, [is_upper], thresholds={"upper": 0.9}, gates=[is_upper])
    assert result.frame[["input", "item", "target", "output", "upper_score"]].to_dict("list") == {
        "input": ["a", "a", "b", "b"],
        "item": ["x", "x", "y", "y"],
        "target": ["up", "same", "up", "same"],
        "output": ["A", "a", "B", "b"],
        "upper_score": [1.0, 0.0, 1.0, 0.0],
    }
    assert result.scores[["score", "target", "mean"]].values.tolist() == [["upper", "up", 1.0], ["upper", "same", 0.0]]
    assert result.summary[["target", "items", "failed", "verdict"]].values.tolist() == [["up", 2, 0, "passed"], ["same", 2, 0, "failed"]]
    assert result.gates[["gate", "target", "passed"]].values.tolist() == [["upper", "up", True], ["upper", "same", False]]
    assert result.thresholds[["score", "target", "mean", "passed"]].values.tolist() == [
        ["upper", "up", 1.0, True],
        ["upper", "same", 0.0, False],
    ]
    assert result.verdict == "failed"


def test_several_targets_take_a_column_of_ids():
    frame = run_evals(pd.DataFrame({"id": [1, 2], "input": ["a", "b"]}), {"up": str.upper}, [is_upper], item="id").frame
    assert frame.columns.tolist()[:4] == ["id", "input", "target", "output"]


# --- failing items


def fails(text):
    if text == "b":
        raise ValueError("no\nsuch tool")
    return None if text == "c" else text.upper()


def test_item_that_fails_is_an_error_row_and_its_scorers_are_not_run():
    seen = []

    def watching(df):
        seen.extend(df["output"])
        return is_upper(df)

    frame = run_evals(ITEMS, fails, [watching, EQUAL]).frame
    assert filled(frame["output"]) == ["A", "-", "-"]
    assert filled(frame["error"]) == ["-", "target_error", "not_text"]
    assert filled(frame["reason"]) == [
        "-",
        "The target raised ValueError: no such tool",
        "The target returned NoneType, neither text nor chat messages.",
    ]
    assert seen == ["A"]
    assert frame["upper_score"].fillna(-1).tolist() == [1.0, -1.0, -1.0]
    assert filled(frame["equal_error"]) == filled(frame["error"])
    assert filled(frame["equal_reason"])[1:] == filled(frame["reason"])[1:]
    assert set(frame["error"].dropna()) <= set(ERROR_CODES)


@pytest.mark.parametrize("value", [5, {"text": "x"}, [], ["x"], b"x", [{"role": "assistant", "content": {1, 2}}]])
def test_target_that_returns_something_else_is_an_error_row(value):
    assert run_evals(["a"], lambda text: value, [is_upper]).frame["error"].tolist() == ["not_text"]


def test_lone_surrogates_in_outputs_and_exceptions_become_replacement_characters():
    def agent(text):
        if text == "b":
            raise ValueError("\ud800")
        return f"\udfff {text}"

    frame = run_evals(ITEMS[:2], agent, [EQUAL]).frame
    assert filled(frame["output"]) == ["\ufffd a", "-"]
    assert filled(frame["equal_reason"])[1] == "The target raised ValueError: \ufffd"


def test_exception_whose_message_cannot_be_had_is_an_error_row():
    class OddError(Exception):
        def __str__(self):
            raise RuntimeError

    def agent(text):
        raise OddError

    assert run_evals(["a"], agent, [is_upper]).frame["reason"].tolist() == ["The target raised OddError"]


def test_item_without_an_input_is_not_called():
    frame = run_evals([{"input": None}, {"input": "a"}], str.upper, [is_upper]).frame
    assert filled(frame["error"]) == ["missing_input", "-"]
    assert filled(frame["reason"]) == ["The input is missing.", "-"]


def test_run_in_which_every_item_fails_has_all_columns_and_dtypes():
    judge = FakeJudge(REPLIES)
    scorers = [sk.score_relevancy, EQUAL, is_upper]
    good = run_evals(ITEMS, str.upper, scorers, judge=judge).frame
    asked = len(judge.requests)
    result = run_evals(ITEMS, lambda text: 1 / 0, scorers, judge=judge, thresholds={"relevancy": 0})
    pd.testing.assert_series_equal(result.frame.dtypes, good.dtypes)
    assert result.frame["relevancy_error"].tolist() == ["target_error"] * 3
    assert result.scores[["score", "n", "unscored"]].values.tolist() == [["relevancy", 0, 3], ["equal", 0, 3], ["upper", 0, 3]]
    assert (result.verdict, len(judge.requests)) == ("scored", asked)


def test_slow_item_holds_up_no_other():
    others_done = threading.Event()

    def agent(text):
        if text == "slow":
            assert others_done.wait(30), "the others were never told about"
        return text

    told = []

    def on_item(item, output, results):
        told.append(item["input"])
        if len(told) == 5:
            others_done.set()

    run_evals(["slow", *"abcde"], agent, [partial(sk.score_relevancy, judge=FakeJudge(REPLIES))], on_item_complete=on_item, concurrency=2)
    assert (sorted(told[:5]), told[5]) == (list("abcde"), "slow")


def test_slow_judge_holds_up_no_later_batch():
    first_told = threading.Event()

    def reply(request):
        if "slow" in request.messages[1]["content"]:
            assert first_told.wait(30)
        return REPLIES[request.step.split(".")[1]]

    told = []

    def on_item(item, output, results):
        told.append(item["input"])
        first_told.set()

    def agent(text):
        if text != "slow":
            judging.wait(30)
        return text

    judging = threading.Event()
    judge = FakeJudge(lambda request: judging.set() or reply(request))
    run_evals(["slow", "quick"], agent, [sk.score_relevancy], judge=judge, on_item_complete=on_item)
    assert told == ["quick", "slow"]


# --- telling about items


def test_on_item_complete_is_told_every_item_once_with_its_results():
    told = {}
    judge = FakeJudge(REPLIES)
    thread = threading.get_ident()

    def on_item(item, output, results):
        assert threading.get_ident() == thread
        assert item["input"] not in told
        told[item["input"]] = (item, output, results)

    result = run_evals(ITEMS, fails, [sk.score_relevancy, EQUAL], judge=judge, on_item_complete=on_item)
    assert sorted(told) == ["a", "b", "c"]
    item, output, results = told["a"]
    assert (item, output) == ({"input": "a", "ground_truth": "A"}, "A")
    assert (results["relevancy"].score, results["relevancy"].reason, results["relevancy"].judge) == (1.0, "why", "fake")
    assert results["relevancy"].steps["statements"] == ["s"]
    assert (results["equal"].score, results["equal"].steps["changes"]) == (1.0, 0.0)
    _, output, results = told["b"]
    assert output is None
    assert [(one.score != one.score, one.error, one.reason) for one in results.values()] == [
        (True, "target_error", "The target raised ValueError: no such tool")
    ] * 2
    assert result.frame["relevancy_score"].fillna(-1).tolist() == [1.0, -1.0, -1.0]


def test_on_item_complete_gets_what_the_target_gave():
    answer = [{"role": "assistant", "content": "x"}]
    given = []
    run_evals(["a"], lambda text: answer, [is_upper], on_item_complete=lambda item, output, results: given.append(output))
    assert given[0] is answer


def test_on_item_complete_names_the_target():
    told = []
    targets = {"up": str.upper, "same": str.strip}
    run_evals(["a"], targets, [is_upper], on_item_complete=lambda item, *_: told.append(item), concurrency=1)
    assert told == [{"input": "a", "item": 0, "target": "up"}, {"input": "a", "item": 0, "target": "same"}]


def test_on_item_complete_that_raises_stops_the_run_with_what_is_done():
    def on_item(item, output, results):
        if item["input"] == "b":
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        run_evals(ITEMS, str.upper, [EQUAL], on_item_complete=on_item, concurrency=1)
    assert len(caught.value.partial) == 3
    assert caught.value.partial["equal_score"][0] == 1.0


# --- gates, thresholds, verdict


def score_of(values, name="x"):
    """A scorer that gives each output the score written in ``values``."""

    def scorer(df):
        return df.assign(**{f"{name}_score": [values[text] for text in df["output"]] if len(df) else pd.Series(dtype="float64")})

    return scorer


def verdict(values, **options):
    return run_evals(list("abc"), str.strip, [score_of(dict(zip("abc", values, strict=True)))], **options).verdict


@pytest.mark.parametrize(
    ("values", "threshold", "expected"),
    [
        ([1.0, 0.5, 0.0], 0.5, "passed"),
        ([1.0, 0.5, 0.0], 0.51, "scored"),
        ([1.0, 0.5, 0.0], {"min": 0.5}, "passed"),
        ([1.0, 0.5, 0.0], {"max": 0.5}, "passed"),
        ([1.0, 0.5, 0.0], {"max": 0.49}, "scored"),
        ([1.0, 0.5, 0.0], {"min": 0.2, "max": 0.8}, "passed"),
        ([1.0, 1.0, 1.0], {"min": 0.2, "max": 0.8}, "scored"),
        ([0.8, None, None], 0.8, "passed"),
        ([None, None, None], 0, "scored"),
    ],
)
def test_threshold_is_met_by_the_mean_of_the_scored_rows(values, threshold, expected):
    assert verdict(values, thresholds={"x": threshold}) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 1.0, 1.0], "passed"),
        ([1.0, 0.999, 1.0], "failed"),
        ([1.0, None, 1.0], "passed"),
        ([None, None, None], "failed"),
        ([2, 1, 1], "passed"),
    ],
)
def test_gate_is_passed_by_every_row_that_has_a_score(values, expected):
    gate = score_of(dict(zip("abc", values, strict=True)))
    assert run_evals(list("abc"), str.strip, gates=[gate]).verdict == expected


def test_missed_gate_outweighs_thresholds_and_both_are_told():
    values = {"a": 1.0, "b": 0.0, "c": 0.0}
    scorer = score_of(values)
    result = run_evals(list("abc"), str.strip, [scorer], gates=[scorer], thresholds={"x_score": 0.1})
    assert result.verdict == "failed"
    assert result.gates.to_dict("list") == {"gate": ["x"], "n": [3], "failures": [0], "missed": [2], "passed": [False]}
    assert result.thresholds.fillna(-1).to_dict("list") == {
        "score": ["x"],
        "mean": [1 / 3],
        "min": [0.1],
        "max": [-1.0],
        "n": [3],
        "failures": [0],
        "passed": [True],
    }


def test_no_gates_and_no_thresholds_give_no_verdict():
    result = run_evals(list("abc"), str.strip, [is_upper])
    assert (result.verdict, len(result.gates), len(result.thresholds)) == (None, 0, 0)
    assert result.summary["verdict"].isna().tolist() == [True]


@pytest.mark.parametrize(("threshold", "expected"), [(0.4, "passed"), (0.3, "scored"), ({"min": 0.3}, "passed")])
def test_threshold_of_a_score_that_is_worse_when_higher_is_the_most(threshold, expected):
    scorer = score_of({"a": 0.2, "b": 0.4, "c": 0.6}, name="toxicity")
    assert run_evals(list("abc"), str.strip, [scorer], thresholds={"toxicity": threshold}).verdict == expected
    assert run_evals(list("abc"), str.strip, [scorer], thresholds={"toxicity": 0.4}, lower_is_better=()).verdict == "passed"
    own = score_of({"a": 0.2, "b": 0.4, "c": 0.6}, name="risk")
    assert run_evals(list("abc"), str.strip, [own], thresholds={"risk": threshold}, lower_is_better=["risk"]).verdict == expected


@pytest.mark.parametrize(("worst", "expected"), [(0.0, "passed"), (0.1, "failed")])
def test_gate_of_a_score_that_is_worse_when_higher_wants_zero(worst, expected):
    gate = score_of({"a": 0.0, "b": worst}, name="bias")
    assert run_evals(list("ab"), str.strip, gates=[gate]).verdict == expected


def test_failed_item_passes_no_gate_and_no_threshold():
    good = score_of({"a": 1.0})
    gated = run_evals(["a", "b"], lambda text: text if text == "a" else None, gates=[good])
    assert (gated.gates["failures"].tolist(), gated.verdict) == ([1], "failed")
    tracked = run_evals(["a", "b"], lambda text: text if text == "a" else None, [good], thresholds={"x": 0.5})
    assert (tracked.thresholds["failures"].tolist(), tracked.verdict) == ([1], "scored")


def test_failed_judge_passes_no_threshold_but_a_row_that_cannot_be_scored_does():
    def reply(request):
        if "down" in request.messages[1]["content"]:
            return "not json"
        statements = [] if "???" in request.messages[1]["content"] else ["s"]
        return {"statements": statements} if request.step.endswith("preprocess") else REPLIES[request.step.split(".")[1]]

    def run(data):
        return run_evals(data, str.strip, [sk.score_relevancy], judge=FakeJudge(reply), thresholds={"relevancy": 0.5})

    assert run(["a", "???", " "]).frame["relevancy_error"].fillna("-").tolist() == ["-", "not_scorable", "-"]
    assert run(["a", "???"]).verdict == "passed"
    down = run(["a", "down"])
    assert down.frame["relevancy_error"].fillna("-").tolist() == ["-", "reply_invalid"]
    assert (down.thresholds["failures"].tolist(), down.verdict) == ([1], "scored")


def test_item_without_input_counts_for_neither_side():
    result = run_evals([{"input": "a"}, {"input": None}], str.strip, gates=[score_of({"a": 1.0})])
    assert (result.verdict, result.summary[["items", "failed", "errors"]].values.tolist()) == ("passed", [[2, 1, "missing_input: 1"]])


def test_scores_have_interval_n_and_unscored():
    result = run_evals(ITEMS, fails, [EQUAL, score_of({"A": 0.5})])
    assert result.scores[["score", "mean", "n", "unscored", "errors"]].values.tolist() == [
        ["equal", 1.0, 1, 2, "not_text: 1, target_error: 1"],
        ["x", 0.5, 1, 2, ""],
    ]
    assert {"ci_low", "ci_high"} <= set(result.scores.columns)


def test_result_prints_the_verdict_and_what_it_rests_on():
    result = run_evals(ITEMS, {"up": str.upper, "bad": fails}, [EQUAL], gates=[is_upper], thresholds={"equal": 0.9})
    assert repr(result).splitlines() == [
        "EvalResult: failed",
        "  up: 3 items, 0 failed",
        "  bad: 3 items, 2 failed",
        "  bad: missed the gate upper: 0 of 1 rows; target or judge failed in 2 rows",
        "  up: missed the threshold equal: mean 0.667, min 0.9",
        "  bad: missed the threshold equal: mean 1, min 0.9; target or judge failed in 2 rows",
        "  up: equal 0.667 (n=3, unscored 0, 95 % 0.00 to 1.00)",
        "  bad: equal 1 (n=1, unscored 2)",
        "  up: upper 1 (n=3, unscored 0)",
        "  bad: upper 1 (n=1, unscored 2)",
    ]


# --- scorers


def test_scorers_are_those_of_score():
    judge = FakeJudge(REPLIES)
    scorers = [sk.score_tone, sk.score_relevancy, is_upper, partial(sk.score_text_difference, ratio="difflib")]
    frame = run_evals(ITEMS, str.upper, scorers, judge=judge).frame
    expected = sk.score(frame[["input", "ground_truth", "output"]], scorers, judge=judge)
    pd.testing.assert_frame_equal(frame.drop(columns=["error", "reason", "seconds"]), expected, check_dtype=False)


def test_items_that_come_while_a_batch_is_scored_are_the_next_batch():
    all_called = threading.Event()
    sizes = []

    def agent(text):
        if text == "599":
            all_called.set()
        return text

    def slow(df):
        if len(df):
            sizes.append(len(df))
            assert all_called.wait(30)
        return is_upper(df)

    frame = run_evals([str(number) for number in range(600)], agent, [slow]).frame
    assert frame["upper_score"].tolist() == [0.0] * 600
    assert (sizes[1], sum(sizes)) == (256, 600)


def test_columns_and_input_are_mapped_for_scorers_too():
    judge = FakeJudge(REPLIES)
    data = [{"question": "a", "docs": "d", "input": "not this"}]
    run_evals(data, str.upper, [sk.score_faithfulness, sk.score_relevancy], judge=judge, input="question", context="docs")
    asked = "\n".join(request.messages[1]["content"] for request in judge.requests)
    assert "<context>\n1. d\n</context>" in asked
    assert "<input>\na\n</input>" in asked
    assert "not this" not in asked


def test_earlier_scores_of_the_same_scorer_are_replaced():
    data = sk.score_text_difference(pd.DataFrame({"input": ["a"], "output": ["zzz"]})).drop(columns="output")
    frame = run_evals(data, str.strip, [sk.score_text_difference]).frame
    assert frame["text_difference_score"].tolist() == [1.0]
    assert frame.columns.is_unique


def test_scorer_that_writes_no_numbers_raises_with_the_outputs():
    def worded(df):
        return df.assign(word_score=["good" if len(df) else None] * len(df))

    with pytest.raises(ScorerDefinitionError, match="must write numbers into 'word_score'") as caught:
        run_evals(["a", "b"], str.upper, [worded])
    assert caught.value.partial["output"].isin(["A", "B"]).any()


def test_scorer_with_a_bug_raises_with_the_outputs():
    def broken(df):
        if len(df):
            raise ZeroDivisionError
        return is_upper(df)

    with pytest.raises(ZeroDivisionError) as caught:
        run_evals(["a"], str.upper, [EQUAL, broken][1:])
    assert caught.value.partial["output"].tolist() == ["A"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_keyboard_interrupt_of_a_target_stops_and_keeps_what_is_done(kind):
    def agent(text):
        if text == "b":
            raise KeyboardInterrupt
        return text.upper()

    async def later(text):
        return agent(text)

    data = [{"input": text, "ground_truth": text.upper()} for text in "abc"]
    told = []
    with pytest.raises(KeyboardInterrupt, match=r"Stopped: 1 of 3 items were called, \d are done with\.") as caught:
        run_evals(data, agent if kind == "sync" else later, [EQUAL], concurrency=1, on_item_complete=lambda item, *_: told.append(item))
    partial_frame = caught.value.partial
    assert filled(partial_frame["error"]) == ["-", "cancelled", "cancelled"]
    assert filled(partial_frame["equal_error"])[1:] == ["cancelled", "cancelled"]
    assert partial_frame["output"][0] == "A"


def test_progress_counts_calls_and_scores(capsys, monkeypatch):
    monkeypatch.setattr("scorekit.progress.SILENT_S", 0.0)
    run_evals(ITEMS, fails, [EQUAL, partial(sk.score_relevancy, judge=FakeJudge(REPLIES))])
    assert "9/9" in capsys.readouterr().err
    run_evals(ITEMS, fails, [EQUAL], progress=False)
    assert capsys.readouterr().err == ""


# --- what is wrong before any call

WRONG = {
    "no items": (([], never, [is_upper]), {}, OptionRangeError, r"data=\[\] is out of range: it must be one item at least"),
    "no rows": ((pd.DataFrame({"input": []}), never, [is_upper]), {}, OptionRangeError, "one item at least"),
    "no scorers": ((["a"], never), {}, ArgumentTypeError, "needs at least one scorer or gate"),
    "text": (("abc", never, [is_upper]), {}, ArgumentTypeError, "data must be a frame, a list of records"),
    "record": (({"input": "a"}, never, [is_upper]), {}, ArgumentTypeError, "data must be a frame"),
    "numbers": (([1], never, [is_upper]), {}, ArgumentTypeError, "Each item of data must be a text or a record such as .*, not int"),
    "missing": ((["a", None], never, [is_upper]), {}, ArgumentTypeError, "not NoneType"),
    "mixed": ((["a", {"input": "b"}], never, [is_upper]), {}, ArgumentTypeError, "data mixes texts and records"),
    "no input": (([{"question": "a"}], never, [is_upper]), {}, MissingColumnError, "run_evals needs a column 'input'.*Did you mean input='question'"),
    "target": ((["a"], "agent", [is_upper]), {}, ArgumentTypeError, "target must be a function from an input to the output, not str"),
    "judge": ((["a"], FakeJudge({}), [is_upper]), {}, ArgumentTypeError, "For a Judge, call generate"),
    "class": ((["a"], str, [is_upper]), {}, ArgumentTypeError, "target must be a function"),
    "arguments": ((["a"], lambda a, b, c: a, [is_upper]), {}, ArgumentTypeError, "it needs 3 arguments"),
    "keywords": ((["a"], lambda a, *, user: a, [is_upper]), {}, ArgumentTypeError, "it needs user.*functools.partial"),
    "no targets": ((["a"], {}, [is_upper]), {}, OptionRangeError, "one at least by name"),
    "target name": ((["a"], {1: never}, [is_upper]), {}, ArgumentTypeError, "The name of a target must be text"),
    "scorer": ((["a"], never, ["relevancy"]), {}, ArgumentTypeError, "Pass functions such as score_relevancy"),
    "scorers": ((["a"], never, "relevancy"), {}, ArgumentTypeError, "scorers must be a list of scorers"),
    "no score": ((["a"], never, [lambda df: df.assign(x=1)]), {}, ScorerDefinitionError, "added no column that ends in '_score'"),
    "needed column": ((["a"], never, [sk.score_faithfulness]), {"judge": FakeJudge({})}, MissingColumnError, "needs a column 'context'"),
    "no judge": ((["a"], never, [sk.score_toxicity]), {}, JudgeSetupError, "needs a judge"),
    "one name": ((["a"], never, [sk.score_tone]), {"gates": [sk.Scorer("tone", ("output",), len)]}, ColumnConflictError, "Give one of them another name="),
    "output": (([{"input": "a", "output": "b"}], never, [is_upper]), {}, ColumnConflictError, "run_evals would write 'output'"),
    "ids": ((pd.DataFrame({"input": ["a", "b"]}, index=[1, 1]), {"x": never}, [is_upper]), {}, ArgumentTypeError, "cannot tell items apart"),
    "item": (([{"input": "a", "id": 1}, {"input": "b", "id": 1}], never, [is_upper]), {"item": "id"}, ArgumentTypeError, "item='id' has '1' more than once"),
    "unknown threshold": ((["a"], never, [is_upper]), {"thresholds": {"uper": 1}}, UnknownOptionError, "Did you mean 'upper'"),
    "threshold": ((["a"], never, [is_upper]), {"thresholds": {"upper": "high"}}, ArgumentTypeError, r"thresholds\['upper'\] must be a number"),
    "end": ((["a"], never, [is_upper]), {"thresholds": {"upper": {"least": 1}}}, UnknownOptionError, "choose one of 'min', 'max'"),
    "no end": ((["a"], never, [is_upper]), {"thresholds": {"upper": {}}}, OptionRangeError, "one end at least"),
    "nan": ((["a"], never, [is_upper]), {"thresholds": {"upper": float("nan")}}, OptionRangeError, "a number, or"),
    "ends": ((["a"], never, [is_upper]), {"thresholds": {"upper": {"min": 1, "max": 0}}}, OptionRangeError, "min not above max"),
    "two": ((["a"], never, [is_upper]), {"thresholds": {"upper": 1, "upper_score": 0}}, OptionRangeError, "two for the score 'upper'"),
    "thresholds": ((["a"], never, [is_upper]), {"thresholds": [0.5]}, ArgumentTypeError, "thresholds must be a mapping"),
    "concurrency": ((["a"], never, [is_upper]), {"concurrency": 0}, OptionRangeError, "concurrency=0"),
    "async callback": ((["a"], never, [is_upper]), {"on_item_complete": Agent().later}, ArgumentTypeError, "on_item_complete must be a plain function"),
    "unread": ((["a"], never, [is_upper]), {"contxt": "docs"}, ArgumentTypeError, "run_evals has no argument 'contxt'"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "options", "error", "words"), WRONG.values(), ids=WRONG)
def test_wrong_call_raises_before_the_target_is_called(arguments, options, error, words):
    with pytest.raises(error, match=words):
        run_evals(*arguments, **options)
