"""What a judge used: counters, prices, budgets."""

import math

import pytest
from loopback import Reply
from pydantic import BaseModel

from scorekit.errors import JudgeSetupError
from scorekit.judge.client import Judge
from scorekit.judge.replies import Request
from scorekit.judge.usage import Prices, prices


class Said(BaseModel):
    said: str


def questions(count, step="test.analyze", first=0):
    messages = [({"role": "user", "content": f"row {number} of {'many ' * 10}"},) for number in range(first, first + count)]
    return [Request(message, Said, step=step) for message in messages]


def test_usage_counts_calls_by_step(loopback):
    loopback.when("row 0 ", Reply(status=500, headers={"Retry-After": "0"}), times=1)
    loopback.when("row 1 ", Reply(refusal="no"))
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(10))
    judge.ask(questions(10))
    judge.ask(questions(5, "test.reason", first=100))
    usage = judge.usage()
    assert usage.drop(columns=["seconds", "cost_usd"]).to_dict("list") == {
        "model": ["m", "m"],
        "step": ["test.analyze", "test.reason"],
        "calls": [12, 5],
        "cached": [9, 0],
        "retried": [1, 0],
        "errors": [2, 0],
        "input_tokens": [11 * 14.0, 5 * 15.0],
        "output_tokens": [11 * 12.0, 5 * 12.0],
    }
    assert usage["seconds"].gt(0).all()
    assert usage["cost_usd"].isna().all()


def test_usage_before_any_request_has_the_same_dtypes(loopback):
    judge = Judge("m", base_url=loopback.url)
    empty = judge.usage()
    judge.ask(questions(1))
    assert (len(empty), empty.dtypes.to_dict()) == (0, judge.usage().dtypes.to_dict())


def test_reset_usage_begins_anew(loopback):
    judge = Judge("m", base_url=loopback.url)
    judge.ask(questions(3))
    judge.reset_usage()
    assert len(judge.usage()) == 0


def test_usage_is_shared_by_equal_judges_alone(loopback):
    Judge("m", base_url=loopback.url).ask(questions(3))
    assert Judge("m", base_url=loopback.url).usage()["calls"].tolist() == [3]
    assert len(Judge("m", base_url=loopback.url, seed=5).usage()) == 0


def test_prices_of_a_known_model_are_positive():
    price = prices("gpt-5-mini", "https://api.openai.com/v1")
    assert 0 < price.cheap_input < price.input < price.output < 1e-3


def test_prices_of_an_own_endpoint_are_unknown():
    assert all(math.isnan(value) for value in prices("gpt-5-mini", "http://127.0.0.1:9/v1"))


def test_cost_counts_cheap_input_tokens_at_their_price():
    assert Prices(2.0, 1.0, 5.0).cost_usd(10, 4, 1) == 6 * 2.0 + 4 * 1.0 + 5.0


def test_max_tokens_stops_cleanly_and_never_goes_beyond(loopback):
    loopback.latency_s = 0.01
    judge = Judge("m", base_url=loopback.url, max_tokens=2000, concurrency=8)
    answers = judge.ask(questions(200))
    codes = [answer.error for answer in answers]
    used = judge.usage()[["input_tokens", "output_tokens"]].to_numpy().sum()
    assert set(codes) == {None, "budget_reached"}
    assert 1900 <= used <= 2000
    assert codes.count(None) == loopback.calls
    assert answers[-1].reason.startswith("Not asked, to keep within max_tokens=2000: ")


def test_budget_that_is_reached_still_gives_cached_replies(loopback):
    Judge("m", base_url=loopback.url).ask(questions(50))
    judge = Judge("m", base_url=loopback.url, max_tokens=1)
    assert {answer.error for answer in judge.ask(questions(50))} == {None}
    assert judge.ask(questions(1, first=900))[0].error == "budget_reached"


def test_reset_usage_opens_the_budget_again(loopback):
    judge = Judge("m", base_url=loopback.url, max_tokens=300, concurrency=1)
    first = [answer.error for answer in judge.ask(questions(50))]
    judge.reset_usage()
    second = [answer.error for answer in judge.ask(questions(50))]
    assert 0 < first.count(None) < second.count(None) < 50


def test_max_cost_usd_without_a_known_price_raises_before_any_request(loopback):
    with pytest.raises(JudgeSetupError, match=r"max_cost_usd= needs the price of 'm'"):
        Judge("m", base_url=loopback.url, max_cost_usd=1).check_ready()


def test_max_cost_usd_stops_cleanly(loopback, monkeypatch):
    from scorekit.judge import client, engine

    for module in (client, engine):
        monkeypatch.setattr(module, "prices", lambda *_: Prices(0.0001, 0.00005, 0.001))
    judge = Judge("m", base_url=loopback.url, max_cost_usd=1.0, concurrency=4)
    answers = judge.ask(questions(200))
    assert answers[-1].error == "budget_reached"
    assert answers[-1].reason.startswith("Not asked, to keep within max_cost_usd=1: ")
    assert 0.8 < judge.usage()["cost_usd"].sum() <= 1.0
