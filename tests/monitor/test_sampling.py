"""Sampling: the golden shares, what a rate may be, and which scorers are picked."""

import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scorekit as sk
from scorekit.errors import ArgumentTypeError, OptionRangeError
from scorekit.monitor.sampling import Picks, share_of

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "sampling.json").read_text(encoding="utf-8"))["rows"]
RATES = (0, 0.1, 0.5, 0.9, 1)


@pytest.mark.parametrize("row", GOLDEN, ids=[row["id"] for row in GOLDEN])
def test_share_of_golden_ids_is_that_of_mastra(row):
    assert share_of(row["id"]) == row["u"]


@pytest.mark.parametrize("row", GOLDEN, ids=[row["id"] for row in GOLDEN])
def test_picks_of_golden_ids_are_those_of_mastra(row):
    picked = Picks(RATES).of(row["id"])
    assert [int(place in picked) for place in range(len(RATES))] == row["sampled_at_0_0.1_0.5_0.9_1"]


@given(st.text())
def test_share_of_any_text_is_at_least_zero_and_below_one(run_id):
    assert 0 <= share_of(run_id) < 1


def test_share_of_lone_surrogates_differ_by_the_surrogate():
    assert share_of("\ud800") != share_of("\ud801")


@given(st.lists(st.floats(0, 1), max_size=6), st.text())
def test_picks_are_the_scorers_whose_rate_is_above_the_share(rates, run_id):
    assert Picks(rates).of(run_id) == tuple(place for place, rate in enumerate(rates) if share_of(run_id) < rate)


def test_picks_of_equal_rates_pick_the_same_runs():
    assert {Picks([0.3, 0.3]).of(f"run-{number}") for number in range(200)} == {(), (0, 1)}


def test_picks_rate_zero_picks_never_and_one_always():
    assert {Picks([0, 1]).of(f"run-{number}") for number in range(200)} == {(1,)}


@pytest.mark.parametrize("rate", [1.0000001, -0.1, math.nan, math.inf, -math.inf, 2, np.float32(1.5), 10**400])
def test_sampled_rate_out_of_range_raises_at_once(rate):
    with pytest.raises(OptionRangeError, match=r"rate=.* is out of range: it must be a number from 0 \(never\) to 1 \(always\)"):
        sk.sampled(sk.score_tone, rate=rate)


@pytest.mark.parametrize("rate", [True, False, np.True_, "0.5", None, Decimal("0.5"), 0.5j, [0.5]])
def test_sampled_rate_that_is_no_number_raises_at_once(rate):
    with pytest.raises(ArgumentTypeError, match="rate must be a number, not "):
        sk.sampled(sk.score_tone, rate=rate)


@pytest.mark.parametrize(("rate", "kept"), [(0, 0.0), (1, 1.0), (np.float64(0.25), 0.25), (np.int64(1), 1.0), (Fraction(1, 4), 0.25)])
def test_sampled_rate_becomes_a_float(rate, kept):
    found = sk.sampled(sk.score_tone, rate=rate).rate
    assert (type(found), found) == (float, kept)


def test_sampled_is_a_value_that_compares_and_pickles():
    one = sk.sampled(sk.score_tone, 0.5, version="2")
    assert one == sk.Sampled(sk.score_tone, 0.5, "2")
    assert pickle.loads(pickle.dumps(one)) == one


def test_sampled_of_a_sampled_scorer_raises():
    with pytest.raises(ArgumentTypeError, match="Say the rate once"):
        sk.sampled(sk.sampled(sk.score_tone, 0.5), 0.5)


def test_sampled_scorer_that_cannot_be_called_raises():
    with pytest.raises(ArgumentTypeError, match="a callable from a frame to a frame, not str"):
        sk.sampled("tone", 0.5)


@pytest.mark.parametrize(("version", "error"), [(2, ArgumentTypeError), ("", OptionRangeError), ("v" * 513, OptionRangeError)])
def test_sampled_version_that_is_no_short_text_raises(version, error):
    with pytest.raises(error, match="version"):
        sk.sampled(sk.score_tone, 0.5, version=version)
