"""estimate counts calls and tokens and asks nothing."""

from functools import partial

import pandas as pd
import pytest
from pydantic import BaseModel, Field

import scorekit as sk
from scorekit.errors import ArgumentTypeError

DF = pd.DataFrame({"input": ["q1", "q2", None], "output": ["One thing. Another thing.", "", "x"], "context": ["c"] * 3})


class Stars(BaseModel):
    stars: int = Field(ge=1, le=5)
    kind: str


def test_estimate_counts_calls_per_step():
    assert sk.estimate(DF, sk.score_relevancy)["calls"].to_dict() == {
        "relevancy.preprocess": 1,
        "relevancy.analyze": 1,
        "relevancy.generate_reason": 1,
        "total": 3,
    }


def test_estimate_equal_rows_count_once():
    df = pd.DataFrame({"input": ["q"] * 50, "output": ["One thing."] * 50})
    assert sk.estimate(df, sk.score_relevancy).loc["total", "calls"] == 3


def test_estimate_repeats_and_cheaper_steps_show():
    cheap = partial(sk.score_relevancy, statements="sentences", reason="verdicts")
    assert sk.estimate(DF, cheap).loc["total", "calls"] == 1
    assert sk.estimate(DF, partial(cheap, repeats=3)).loc["total", "calls"] == 3


def test_estimate_scorer_of_the_user_s_own():
    scorer = sk.Scorer(
        "stars",
        needs=("output",),
        analyze=sk.Prompt("Rate: {{ output }}", reply=Stars),
        generate_score=lambda rows: rows["stars"],
    )
    assert sk.estimate(DF, scorer).loc["total", "calls"] == 3


def test_estimate_tokens_are_near_what_the_endpoint_counts(loopback):
    judge = sk.Judge("m", base_url=loopback.url, cache=False)
    row = DF.iloc[:1]
    estimated = sk.estimate(row, sk.score_faithfulness).loc["faithfulness.preprocess", "input_tokens"]
    sk.score_faithfulness(row, judge=judge)
    counted = judge.usage().set_index("step").loc["faithfulness.preprocess", "input_tokens"]
    assert estimated == pytest.approx(counted, rel=0.1)


def test_estimate_code_scorer_says_it_costs_none():
    with pytest.raises(ArgumentTypeError, match="takes no judge: it costs none"):
        sk.estimate(DF, sk.score_text_difference)


def test_estimate_price_is_nan_for_an_unknown_model():
    assert sk.estimate(DF, sk.score_relevancy, judge=sk.Judge("own", base_url="http://127.0.0.1:9/v1"))["cost_usd"].isna().all()


def test_estimate_price_is_known_for_a_known_model():
    pytest.importorskip("genai_prices")
    costs = sk.estimate(DF, sk.score_relevancy, judge="openai/gpt-4o-mini")["cost_usd"]
    assert costs.loc["total"] == pytest.approx(costs.drop("total").sum())
    assert costs.loc["total"] > 0
