"""score_stored: rows that are in a store are scored where they are, once, and an interrupted call goes on."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from pydantic import BaseModel

import scorekit as sk
from scorekit.errors import ArgumentTypeError, MissingColumnError, OptionRangeError, ScorerDefinitionError, UnknownOptionError
from scorekit.monitor import score_stored as module
from scorekit.monitor.score_stored import score_stored
from scorekit.testing import FakeJudge

T0 = pd.Timestamp("2026-01-02T03:04:05Z")


class Reply(BaseModel):
    polite: bool


POLITE = sk.Scorer(
    name="polite",
    needs=("output",),
    analyze=sk.Prompt("Is this polite?\n{{ output }}", reply=Reply),
    generate_score=lambda rows: rows["polite"].astype(float),
    generate_reason=lambda rows: rows["polite"].map({1.0: "yes", 0.0: "no"}),
)


def said_yes():
    return FakeJudge({"analyze": {"polite": True}})


def size(df):
    return df.assign(size_score=df["output"].str.len().astype(float))


def texts(count, first=0):
    outputs = [f"answer {number}" for number in range(first, first + count)]
    return pd.DataFrame({"input": "Hi?", "output": outputs, "variant": "a"}).pipe(sk.score_tone)


def test_rows_are_scored_and_stored_under_their_keys(store):
    store.append(texts(5), run="v1", entity_type="agent", entity_id="bot", trace_id="t", source="LIVE", created_at=T0)
    before = store.read()
    found = score_stored(store, sk.score_text_difference)
    assert found["text_difference_score"].notna().all()
    pd.testing.assert_frame_equal(found[before.columns], before)
    pd.testing.assert_frame_equal(store.read(), found)
    assert store.count() == 10


def test_scores_are_what_the_scorer_gives_itself(store):
    store.append(texts(7), run="v1")
    expected = sk.score_text_difference(texts(7))
    pd.testing.assert_frame_equal(
        score_stored(store, sk.score_text_difference).filter(like="text_difference"), expected.filter(like="text_difference")
    )


def test_rows_stay_in_their_order_over_several_batches(store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 4)
    store.append(texts(11), run="v1", created_at=T0)
    store.append(texts(3, 11), run="v2", created_at=T0 + pd.Timedelta("1s"))
    found = score_stored(store, size)
    assert found["output"].tolist() == [f"answer {number}" for number in range(14)]
    assert found["size_score"].tolist() == found["output"].str.len().tolist()
    assert store.read()["output"].tolist() == found["output"].tolist()


def test_rows_that_were_scored_are_left_alone(store):
    store.append(texts(5), run="v1")
    score_stored(store, POLITE, judge=said_yes())
    store.append(texts(2, 5), run="v2")
    judge = said_yes()
    assert len(score_stored(store, POLITE, judge=judge)) == 7
    assert len(judge.requests) == 2
    assert store.count() == 14


def test_again_scores_all_anew_and_replaces(store):
    store.append(texts(5), run="v1")
    score_stored(store, POLITE, judge=said_yes())
    found = score_stored(store, POLITE, judge=FakeJudge({"analyze": {"polite": False}}), again=True)
    assert found["polite_score"].tolist() == [0.0] * 5
    assert (store.read()["polite_reason"].tolist(), store.count()) == (["no"] * 5, 10)


@pytest.mark.parametrize(
    ("code", "again"),
    [
        ("judge_timeout", True), ("judge_error", True), ("scorer_error", True), ("budget_reached", True), ("cancelled", True),
        ("not_scorable", False), ("reply_refused", False), ("target_error", False), ("missing_input", False),
    ],
)  # fmt: skip
def test_errors_that_may_pass_are_tried_again(store, code, again):
    df = texts(1).assign(polite_score=np.nan, polite_reason="why", polite_error=code, polite_judge=None)
    store.append(df, run="v1")
    judge = said_yes()
    found = score_stored(store, POLITE, judge=judge)
    assert len(judge.requests) == int(again)
    assert found["polite_error"].isna().tolist() == [again]
    assert store.count() == 2


def test_where_picks_the_rows(store):
    store.append(texts(5), run="v1", created_at=T0)
    store.append(texts(3), run="v2", created_at=T0 + pd.Timedelta("1h"))
    assert len(score_stored(store, size, where={"run": "v2"})) == 3
    assert store.read()["size_score"].notna().tolist() == [False] * 5 + [True] * 3
    assert len(score_stored(store, size, where={"until": T0 + pd.Timedelta("1s"), "limit": 2})) == 2
    assert store.read()["size_score"].notna().tolist() == [False] * 3 + [True] * 5


def test_rows_of_another_scorers_error_are_picked_and_keep_it(store):
    df = texts(3).assign(tone_score=[0.5, np.nan, 0.5], tone_error=[None, "not_scorable", None])
    store.append(df, run="v1")
    found = score_stored(store, size, where={"scorer": "tone", "error": "not_scorable"})
    assert found["output"].tolist() == ["answer 1"]
    assert found["tone_error"].tolist() == ["not_scorable"]
    assert store.read()["size_score"].notna().tolist() == [False, True, False]


def test_nothing_to_score_gives_no_rows(store):
    assert len(score_stored(store, size, where={"run": "nobody"})) == 0


def test_column_of_the_metadata_stands_for_an_input(store):
    store.append(texts(2).assign(question="answer 0"), run="v1")
    found = score_stored(store, partial(sk.score_text_difference, input="question"))
    assert found["text_difference_score"].tolist() == [1.0, pytest.approx(0.875)]


def test_metadata_and_context_go_with_the_new_results(store):
    store.append(texts(2).assign(context=["a", "b"]), run="v1")
    score_stored(store, size)
    found = store.read(scorer="size")
    assert found[["context", "variant"]].to_numpy().tolist() == [["a", "a"], ["b", "a"]]


def test_row_that_a_scorer_leaves_unscored_is_not_scored_again(store):
    calls = []

    def picky(df):
        calls.append(len(df))
        return df.assign(picky_score=np.nan)

    store.append(texts(3), run="v1")
    for _ in range(2):
        assert score_stored(store, picky)["picky_score"].isna().all()
    assert [count for count in calls if count] == [3]


def test_interrupted_call_keeps_what_was_done_and_goes_on(store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    store.append(texts(6), run="v1", created_at=T0)
    asked = []

    def reply(request):
        asked.append(request)
        if len(asked) == 5:
            raise KeyboardInterrupt
        return {"polite": True}

    with pytest.raises(KeyboardInterrupt):
        score_stored(store, POLITE, judge=FakeJudge(reply), progress=False)
    assert store.read()["polite_score"].notna().sum() == 4
    judge = said_yes()
    assert score_stored(store, POLITE, judge=judge)["polite_score"].tolist() == [1.0] * 6
    assert len(judge.requests) == 2


def test_scorer_that_raises_in_a_batch_keeps_the_batches_before(store, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    store.append(texts(6), run="v1", created_at=T0)

    def fragile(df):
        if "answer 4" in df["output"].tolist():
            raise ValueError("no answer 4")
        return size(df)

    with pytest.raises(ValueError, match="no answer 4"):
        score_stored(store, fragile)
    assert store.read()["size_score"].notna().tolist() == [True] * 4 + [False] * 2


def test_scorer_of_several_scores_is_done_when_all_are(store):
    def both(df):
        return df.assign(a_score=1.0, b_score=2.0)

    store.append(texts(2), run="v1")
    score_stored(store, lambda df: df.assign(a_score=0.0), where={"run": "v1"})
    found = score_stored(store, both)
    assert found[["a_score", "b_score"]].to_numpy().tolist() == [[1.0, 2.0]] * 2


def test_version_of_a_shipped_measure_is_kept(store):
    store.append(texts(1), run="v1")
    score_stored(store, sk.score_text_difference)
    score_stored(store, size)
    assert {row.scorer: row.scorer_version for row in store.first(9)} == {
        "tone": sk.__version__, "text_difference": sk.__version__, "size": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"where": {"runs": "v1"}}, UnknownOptionError, "a filter='runs' is not known; choose one of .*'run'.*Did you mean 'run'"),
        ({"where": {"run": 5}}, ArgumentTypeError, "run must be a text"),
        ({"where": {"limit": 0}}, OptionRangeError, "limit=0"),
        ({"scorer": "tone"}, ArgumentTypeError, "a scorer must be a callable"),
        ({"scorer": lambda df: df}, ScorerDefinitionError, "added no column that ends in '_score'"),
        ({"scorer": partial(sk.score_text_difference, input="question")}, MissingColumnError, "needs a column 'question'"),
    ],
)
def test_wrong_argument_raises_before_anything_is_scored(store, arguments, error, match):
    store.append(texts(1), run="v1")
    scorer = arguments.get("scorer", size)
    with pytest.raises(error, match=match):
        score_stored(store, scorer, where=arguments.get("where"))
    assert store.count() == 1


def test_not_a_store_raises():
    with pytest.raises(ArgumentTypeError, match="score_stored: the first argument must be a ScoreStore, not str"):
        score_stored("scores.db", size)


def test_calls_that_raised_stay_target_errors_and_are_put_to_no_scorer(store):
    frame = pd.DataFrame(
        {
            "input": ["a", "b"],
            "output": ["x", None],
            "size_score": [1.0, None],
            "size_reason": [None, "The function raised RuntimeError: down"],
            "size_error": [None, "target_error"],
        }
    )
    store.append(frame, run="r")
    seen = []

    def plain(df):
        seen.extend(df["output"].tolist())
        return df.assign(plain_score=df["output"].str.len().astype("float64"))

    scored = sk.score_stored(store, plain, progress=False)
    assert seen == ["x"]
    assert scored["plain_error"].fillna("").tolist() == ["", "target_error"]
    again = sk.score_stored(store, partial(sk.score_text_difference, name="size"), again=True, progress=False)
    assert again["size_reason"].tolist()[1] == "The function raised RuntimeError: down"
