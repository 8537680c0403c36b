"""The measures against a context, and toxicity: what they read and ask."""

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import JudgeSetupError
from scorekit.testing import FakeJudge, check_scorer

REPLIES = {
    "preprocess": {"statements": ["a", "b", "c"]},
    "analyze": {
        "results": [
            {"statement": 1, "result": "yes", "reason": "r"},
            {"statement": 2, "result": "unsure", "reason": "r"},
            {"statement": 3, "result": "no", "reason": "r"},
        ]
    },
    "generate_reason": {"reason": "why"},
}
SCORERS = {"faithfulness": sk.score_faithfulness, "hallucination": sk.score_hallucination, "toxicity": sk.score_toxicity}


@pytest.mark.parametrize("name", SCORERS)
def test_score_is_the_share_of_yes(name):
    df = pd.DataFrame({"input": ["q"], "output": ["o"], "context": ["c"]})
    scored = SCORERS[name](df, judge=FakeJudge(REPLIES))
    assert scored[f"{name}_score"].tolist() == [1 / 3]
    assert scored[[f"{name}_yes", f"{name}_unsure", f"{name}_no"]].values.tolist() == [[1.0, 1.0, 1.0]]


@pytest.mark.parametrize("name", SCORERS)
def test_empty_output_scores_zero_without_a_call(name):
    judge = FakeJudge(REPLIES)
    scored = SCORERS[name](pd.DataFrame({"input": ["q"], "output": [""], "context": ["c"]}), judge=judge)
    assert scored[f"{name}_score"].tolist() == [0.0]
    assert judge.requests == []


@pytest.mark.parametrize("name", SCORERS)
def test_no_judge_says_so_before_any_request(name):
    with pytest.raises(JudgeSetupError, match=f"The scorer '{name}' needs a judge"):
        SCORERS[name](pd.DataFrame({"input": ["q"], "output": ["o"], "context": ["c"]}))


@pytest.mark.parametrize(
    ("cell", "lines"),
    [
        ("One.", "1. One."),
        (["One.", "Two."], "1. One.\n2. Two."),
        ('["One.", "Two."]', "1. One.\n2. Two."),
        (np.array(["One.", "Two."], dtype=object), "1. One.\n2. Two."),
        ([{"page_content": "One."}, {"text": "Two."}], "1. One.\n2. Two."),
        ("[1] is a note", "1. [1] is a note"),
    ],
)
def test_context_of_every_kind_is_read_as_pieces(cell, lines):
    judge = FakeJudge(REPLIES)
    cells = np.empty(1, dtype=object)
    cells[0] = cell
    sk.score_faithfulness(pd.DataFrame({"output": ["o"], "docs": cells}), context="docs", judge=judge)
    assert f"<context>\n{lines}\n</context>" in judge.requests[1].messages[1]["content"]


@pytest.mark.parametrize(
    ("cell", "code"), [(None, "missing_input"), ([], "not_scorable"), (5, "not_text"), ([1], "not_text"), ({"a": 1}, "not_text")]
)
def test_context_that_is_none_gets_a_code(cell, code):
    cells = np.empty(1, dtype=object)
    cells[0] = cell
    scored = sk.score_faithfulness(pd.DataFrame({"output": ["o"], "context": cells}), judge=FakeJudge(REPLIES))
    assert scored["faithfulness_error"].tolist() == [code]


@pytest.mark.parametrize("name", SCORERS)
def test_scorer_keeps_its_promises(name):
    def scorer(df):
        return SCORERS[name](df, judge=FakeJudge(REPLIES))

    odd = pd.DataFrame({"input": ["q", "q", None], "output": ["a", None, ""], "context": ["c", "c", "c"]}, index=[2, 2, 1])
    check_scorer(scorer, odd, pickles=False)
