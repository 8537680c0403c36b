"""ScoreStore in SQLite and in PostgreSQL: what is stored comes back, once."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

import scorekit as sk
from scorekit.errors import (
    ArgumentTypeError,
    ColumnConflictError,
    MissingColumnError,
    OptionRangeError,
    StoreError,
    UnknownOptionError,
)
from scorekit.monitor.rows import encode
from scorekit.monitor.store import ScoreStore

T0 = pd.Timestamp("2026-01-02T03:04:05.678901Z")


def objects(cells):
    """A column of objects as they are."""
    return pd.Series(np.fromiter(cells, dtype=object, count=len(cells)))


def scored(count=3, **columns):
    """A small scored frame."""
    frame = {
        "input": "Hi?", "output": [f"Hello {number}." for number in range(count)], "tone_score": 0.5, "tone_reason": "fine", "tone_error": None,
    }  # fmt: skip
    return pd.DataFrame({**frame, **columns}, index=[f"q{number}" for number in range(count)])


def encoded(count=3, **columns):
    keys = {
        "run": "r", "row": [f"q{number}" for number in range(count)], "source": "LIVE", "entity_type": "agent", "entity_id": "bot",
        "trace_id": None, "created_at": T0,
    }  # fmt: skip
    return encode(scored(count, **columns).assign(**keys), scorers=["tone"], versions={"tone": "1"})


def cells(column):
    """A column's cells, None where one is missing."""
    return [None if cell is pd.NA or cell is pd.NaT or (isinstance(cell, float) and math.isnan(cell)) else cell for cell in column]


def same(first, second):
    """Whether two frames have the same columns, cells and dtypes."""
    return first.dtypes.to_dict() == second.dtypes.to_dict() and all(cells(first[name]) == cells(second[name]) for name in first)


# --- append and read


def test_append_stores_each_row_and_scorer(store):
    df = sk.load_dataset("smollm_answers").head(10)
    df = sk.score(df, [sk.score_tone, sk.score_text_difference], progress=False)
    assert store.append(df, run="v1") == 20
    assert (store.count(), len(store.read())) == (20, 10)


def test_read_gives_the_columns_that_the_scorers_wrote(store):
    df = sk.score(sk.load_dataset("smollm_answers").head(10), [sk.score_tone, sk.score_text_difference], progress=False)
    store.append(df, run="v1", entity_type="agent", entity_id="bot", trace_id="t", created_at=T0)
    found = store.read()
    assert list(found.columns[:9]) == ["run", "row", "source", "entity_type", "entity_id", "trace_id", "created_at", "input", "output"]
    assert sorted(found.columns[9:]) == sorted(set(df.columns) - {"input", "output"})
    assert all(cells(found[name]) == cells(df[name]) for name in df.columns)
    assert found[found.columns[:6]].drop_duplicates().loc[0].tolist() == ["v1", "0", "TEST", "agent", "bot", "t"]
    assert found["created_at"].unique().tolist() == [T0]
    assert {str(found[name].dtype) for name in ("tone_score", "tone_difference")} == {"float64"}
    assert {str(found[name].dtype) for name in ("run", "input", "variant", "tone_reason", "tone_error", "trace_id")} == {"string"}
    assert found.index.tolist() == list(range(10))


def test_read_of_nothing_gives_the_key_columns(store):
    found = store.read(run="nobody")
    assert len(found) == 0
    assert found.dtypes.astype(str).to_dict() == {
        "run": "string", "row": "string", "source": "string", "entity_type": "string", "entity_id": "string", "trace_id": "string",
        "created_at": "datetime64[us, UTC]", "input": "string", "output": "string",
    }  # fmt: skip


def test_append_of_no_rows_stores_nothing(store):
    assert store.append(scored(0), run="v1") == 0
    assert store.count() == 0


def test_append_does_not_change_the_frame(store):
    df = scored(3, n=[1, 2, 3])
    before = df.copy(deep=True)
    store.append(df, run="v1")
    pd.testing.assert_frame_equal(df, before)


def test_unscored_rows_keep_their_error_and_reason(store):
    df = scored(2, tone_score=[np.nan, 0.5], tone_error=["judge_timeout", None], tone_reason=["too slow", "fine"])
    store.append(df, run="v1")
    found = store.read()
    assert cells(found["tone_score"]) == [None, 0.5]
    assert cells(found["tone_error"]) == ["judge_timeout", None]


def test_scorer_of_a_users_own_needs_a_score_alone(store):
    store.append(pd.DataFrame({"output": ["a", "b"], "size_score": [1, 2]}), run="v1")
    found = store.read()
    assert found["size_score"].tolist() == [1.0, 2.0]
    assert cells(found["size_error"]) == [None, None]
    assert cells(found["input"]) == [None, None]


def test_append_takes_the_named_scorers_alone(store):
    df = sk.score(pd.DataFrame({"input": ["a"], "output": ["b"]}), [sk.score_tone, sk.score_text_difference], progress=False)
    assert store.append(df, run="v1", scorers="tone") == 1
    assert [name for name in store.read().columns if name.endswith("_score")] == ["tone_score"]
    assert [name for name in store.read().columns if name.startswith("text_difference")] == []


def test_scorers_come_back_in_the_order_of_the_frame(store):
    store.append(scored(3, zeta_score=1.0, alpha_score=0.0), run="v1")
    assert [name for name in store.read().columns if name.endswith("_score")] == ["tone_score", "zeta_score", "alpha_score"]


def test_rows_come_back_in_the_order_of_the_frame(store):
    count = 12_000
    df = pd.DataFrame({"output": "x", "size_score": np.arange(count, dtype=float)}, index=np.arange(count)[::-1])
    store.append(df, run="v1")
    assert store.read()["size_score"].tolist() == list(map(float, range(count)))


def test_columns_of_cells_are_named(store):
    df = scored().rename(columns={"input": "question", "output": "answer"}).assign(docs=objects([["a", "b"], ["c"], None]).tolist())
    store.append(df, run="v1", input="question", output="answer", context="docs")
    found = store.read()
    assert found["input"].tolist() == ["Hi?"] * 3
    assert cells(found["context"]) == [["a", "b"], ["c"], None]
    assert not {"question", "answer", "docs"} & set(found.columns)


def test_metadata_is_chosen(store):
    store.append(scored(3, variant="a", seed=1), run="v1", metadata=["variant"])
    store.append(scored(3, variant="a", seed=1), run="v2", metadata=[])
    assert cells(store.read(run="v1")["variant"]) == ["a"] * 3
    assert "seed" not in store.read().columns
    assert "variant" not in store.read(run="v2").columns


def test_column_that_is_missing_throughout_comes_back(store):
    store.append(scored(2, note=None, ratio=np.nan), run="v1")
    found = store.read()
    assert found[["note", "ratio"]].isna().all(axis=None)
    assert str(found["ratio"].dtype) == "float64"


def test_metadata_of_another_run_is_missing(store):
    store.append(scored(1, a=1), run="v1", created_at=T0)
    store.append(scored(1, b=True), run="v2")
    found = store.read()
    assert cells(found["a"]) == [1, None]
    assert cells(found["b"]) == [None, True]
    assert found[["a", "b"]].dtypes.astype(str).tolist() == ["Int64", "boolean"]


def test_metadata_that_has_the_name_of_a_scorers_column_is_kept_apart(store):
    store.append(scored(1), run="v1", created_at=T0)
    store.append(pd.DataFrame({"output": ["x"], "tone_score": ["loud"], "size_score": [1.0]}), run="v2")
    found = store.read()
    assert cells(found["tone_score"]) == [0.5, None]
    assert cells(found["metadata_tone_score"]) == [None, "loud"]


def test_scorer_that_was_added_later_stands_beside_the_first(store):
    df = pd.DataFrame({"input": ["I love it.", "b"], "output": ["I hate it.", "c"]})
    store.append(df.pipe(sk.score_tone), run="v1", created_at=T0)
    store.append(df.iloc[1:].pipe(sk.score_text_difference), run="v1", created_at=T0 + pd.Timedelta("1h"))
    found = store.read()
    assert len(found) == 2
    assert found["tone_score"].notna().all()
    assert found["text_difference_score"].isna().tolist() == [True, False]
    assert found["created_at"].unique().tolist() == [T0]


def test_later_results_in_another_order_stand_at_their_rows(store):
    store.append(pd.DataFrame({"output": ["a", "b", "c"], "x_score": [1.0, 2.0, 3.0]}), run="v1", created_at=T0)
    store.append(pd.DataFrame({"y_score": [3.0, 1.0, 2.0]}, index=[2, 0, 1]), run="v1", created_at=T0 + pd.Timedelta("1s"))
    found = store.read()
    assert found["x_score"].tolist() == found["y_score"].tolist() == [1.0, 2.0, 3.0]


def test_what_a_later_result_lacks_is_taken_from_an_earlier_one(store):
    store.append(scored(1, variant="a"), run="v1", created_at=T0)
    store.append(pd.DataFrame({"size_score": [1.0], "note": ["n"]}, index=["q0"]), run="v1", created_at=T0 + pd.Timedelta("1s"))
    found = store.read()
    assert found[["input", "variant", "note"]].loc[0].tolist() == ["Hi?", "a", "n"]


def test_summarize_compare_and_explore_take_what_is_read(store):
    df = sk.load_dataset("smollm_answers").head(30)
    for variant in ("v1", "v2"):
        store.append(df.sample(frac=1, random_state=1).pipe(sk.score_text_difference), run=variant)
    found = store.read()
    assert sk.summarize(found, by="run")["n"].tolist() == [30, 30]
    compared = sk.compare(found, variant="run", item="row", score="text_difference_score")
    assert len(compared.rows) == 30
    sk.explore(found)


# --- rows and labels


def test_labels_that_repeat_get_a_number(store):
    df = pd.DataFrame({"size_score": [1.0, 2.0, 3.0, 4.0, 5.0]}, index=["a", "a", "a#2", "a", "b"])
    assert store.append(df, run="v1") == 5
    assert store.read()["row"].tolist() == ["a", "a#3", "a#2", "a#4", "b"]
    assert store.append(df, run="v1") == 0


def test_labels_of_any_kind_name_rows(store):
    frame = pd.DataFrame({"size_score": [1.0]})
    labels = [
        pd.Index([5]), pd.Index([0.5]), pd.DatetimeIndex(["2026-01-02"]), pd.Index([None], dtype=object),
        pd.MultiIndex.from_tuples([("x", 1)]), pd.Index(["a\\b\0"]),
    ]  # fmt: skip
    rows = []
    for number, label in enumerate(labels):
        store.append(frame.set_axis(label), run=str(number))
        rows += store.read(run=str(number))["row"].tolist()
    assert rows == ["5", "0.5", "2026-01-02 00:00:00", "None", '["x", 1]', "a\\b\0"]


# --- again


def test_append_again_is_a_no_op(store):
    df = scored(3, n=[1, 2, 3], x=[0.5, np.nan, 2.0])
    assert [store.append(df, run="v1") for _ in range(3)] == [3, 0, 0]
    assert store.count() == 3


def test_append_of_another_result_raises_and_stores_nothing(store):
    store.append(scored(3), run="v1")
    with pytest.raises(StoreError, match=r"1 of 4 results are in the store already.*the row 'q1' of 'tone' in the run 'v1'.*another run="):
        store.append(scored(4, tone_score=[0.5, 0.75, 0.5, 0.5]), run="v1")
    assert store.count() == 3
    assert store.read()["tone_score"].tolist() == [0.5] * 3


@pytest.mark.parametrize("change", [{"tone_reason": "other"}, {"output": "other"}, {"tone_error": "x"}, {"extra": 1}, {"context": "c"}])
def test_each_part_of_a_result_makes_another(store, change):
    store.append(scored(), run="v1")
    with pytest.raises(StoreError, match="3 of 3 results"):
        store.append(scored(**change), run="v1")


def test_time_and_version_make_no_other_result(store):
    store.append(scored(), run="v1", created_at=T0, version="1")
    assert store.append(scored(), run="v1", version="2") == 0
    assert store.read()["created_at"].unique().tolist() == [T0]


def test_existing_keep_keeps_the_first(store):
    store.append(scored(2), run="v1")
    assert store.append(scored(3, tone_score=0.75), run="v1", existing="keep") == 1
    assert store.read()["tone_score"].tolist() == [0.5, 0.5, 0.75]


def test_existing_replace_keeps_the_last(store):
    store.append(scored(2, note="old"), run="v1", created_at=T0)
    assert store.append(scored(3, tone_score=0.75, context="c"), run="v1", created_at=T0, existing="replace") == 1
    found = store.read()
    assert found["tone_score"].tolist() == [0.75] * 3
    assert found["context"].tolist() == ["c"] * 3
    assert "note" not in found.columns


def test_another_run_or_scorer_is_another_result(store):
    store.append(scored(), run="v1")
    assert store.append(scored(tone_score=0.75), run="v2") == 3
    assert store.append(scored().rename(columns=lambda name: name.replace("tone", "pitch")), run="v1") == 3


def test_names_that_join_to_one_text_are_not_one_result(store):
    for run, scorer, row in (("a", "b", "c"), ("a\0b", "c", ""), ("a", "b\0c", ""), ("", "a", "b")):
        frame = pd.DataFrame({f"{scorer}_score": [1.0]}, index=[row])
        if run:
            assert store.append(frame, run=run) == 1


def test_what_was_read_is_stored_again_as_a_no_op(store):
    df = sk.score(sk.load_dataset("smollm_answers").head(5), [sk.score_tone, sk.score_text_difference], progress=False)
    store.append(df, run="v1", entity_id="bot")
    store.append(scored(2, n=[1, 2], when=pd.Timestamp("2026-01-02", tz="Asia/Tokyo"), x=[1.0, np.nan]), run="v2", source="LIVE")
    store.append(scored(2, n=[0.5, 2.0], flags=objects([[1], {"$time": None}]).tolist()), run="v3", trace_id="t")
    before = store.read()
    assert store.append(before) == 0
    assert same(store.read(), before)


def test_what_was_read_is_stored_in_another_store(store, tmp_path):
    store.append(scored(2, n=[1, 2], size_score=[1.0, 2.0]), run="v1", entity_type="agent")
    store.append(scored(3, tone_score=[0.5, np.nan, 0.5], tone_error=[None, "judge_timeout", None]), run="v2", source="LIVE")
    other = ScoreStore(tmp_path / "other.db")
    assert other.append(store.read()) == 7
    assert same(other.read(), store.read())
    other.close()


def test_what_was_read_is_stored_under_another_run(store):
    store.append(scored(), run="v1", created_at=T0)
    assert store.append(store.read(), run="copy", entity_id="bot") == 3
    found = store.read(run="copy")
    assert found[["run", "entity_id", "created_at"]].drop_duplicates().to_numpy().tolist() == [["copy", "bot", T0]]


# --- arguments


def test_run_is_needed(store):
    with pytest.raises(ArgumentTypeError, match="run= must be a text, not NoneType. Such as run='v2'."):
        store.append(scored())
    with pytest.raises(OptionRangeError, match="run='' is out of range"):
        store.append(scored(), run="")


@pytest.mark.parametrize("name", ["run", "entity_type", "entity_id", "trace_id"])
def test_key_of_more_than_512_characters_raises(store, name):
    with pytest.raises(OptionRangeError, match="at most 512 characters"):
        store.append(scored(), **{"run": "v1", name: "x" * 513})
    assert store.append(scored(), **{"run": "v1", name: "\ud800" * 512}) == 3


def test_some_of_the_key_columns_raise(store):
    with pytest.raises(ColumnConflictError, match=r"the frame has 'run', 'source' too\. Rename them\."):
        store.append(scored(run="a", source="web"), run="v1")


def test_frame_without_scores_raises(store):
    with pytest.raises(MissingColumnError, match=r"append needs a column '<scorer>_score'; the frame has 'output'"):
        store.append(pd.DataFrame({"output": ["a"]}), run="v1")
    with pytest.raises(MissingColumnError, match=r"append needs a column 'tune_score'.*Did you mean 'tone_score'\?"):
        store.append(scored(), run="v1", scorers=["tune"])


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"existing": "skip"}, UnknownOptionError, "existing='skip' is not known; choose one of 'raise', 'keep', 'replace'"),
        ({"source": "live"}, UnknownOptionError, "source='live' is not known.*Did you mean 'LIVE'"),
        ({"created_at": "yesterday"}, ArgumentTypeError, "created_at must be a datetime or an ISO text .* it is yesterday"),
        ({"created_at": 5}, ArgumentTypeError, "created_at must be a datetime or an ISO text"),
        ({"created_at": pd.NaT}, ArgumentTypeError, "created_at must be a datetime"),
        ({"entity_id": 5}, ArgumentTypeError, "entity_id= must be a text, not int"),
        ({"version": 5}, ArgumentTypeError, "version must be a text, or a mapping"),
        ({"metadata": ["nobody"]}, MissingColumnError, "metadata= needs a column 'nobody'"),
        ({"scorers": [5]}, ArgumentTypeError, "scorers must be names"),
    ],
)
def test_wrong_argument_raises_before_anything_is_stored(store, arguments, error, match):
    with pytest.raises(error, match=match):
        store.append(scored(), **{"run": "v1", **arguments})
    assert store.count() == 0


def test_column_that_is_there_twice_raises(store):
    twice = scored(note="a")
    twice.insert(0, "note", "b", allow_duplicates=True)
    with pytest.raises(ColumnConflictError, match="more than one that is called 'note'"):
        store.append(twice, run="v1")
    with pytest.raises(ColumnConflictError, match="called '5'"):
        store.append(scored().assign(**{"5": 1}).rename(columns=str).assign(x=1).rename(columns={"x": 5}), run="v1")


def test_scores_that_are_no_numbers_raise(store):
    with pytest.raises(ArgumentTypeError, match="keeps scores as numbers, but the column 'tone_score' holds something else"):
        store.append(scored(tone_score="good"), run="v1", scorers="tone")
    assert store.append(scored(tone_score=objects([0.5, None, True]).tolist()), run="v1", scorers="tone") == 3
    assert cells(store.read()["tone_score"]) == [0.5, None, 1.0]


def test_not_a_frame_raises(store):
    with pytest.raises(ArgumentTypeError, match="append: the first argument must be a pandas DataFrame, not list"):
        store.append([], run="v1")


def test_version_is_scorekits_own_for_shipped_measures(store):
    store.append(scored(size_score=1.0), run="v1")
    assert {row.scorer: row.scorer_version for row in store.first(9)} == {"tone": sk.__version__, "size": None}
    store.append(scored(size_score=1.0), run="v2", version={"size": "7"})
    assert {row.scorer: row.scorer_version for row in store.first(99) if row.run_id == "v2"} == {"tone": sk.__version__, "size": "7"}


# --- filters


@pytest.fixture
def filled(store):
    """A store with runs v1 and v2 at midnight and noon."""
    store.append(scored(2), run="v1", created_at="2026-01-02", entity_type="agent", entity_id="a", source="LIVE")
    store.append(
        scored(3, tone_score=[np.nan, 0.5, np.nan], tone_error=["judge_timeout", None, "not_scorable"], size_score=1.0),
        run="v2", created_at="2026-01-02T12:00:00+00:00", entity_type="step", entity_id="b",
    )  # fmt: skip
    return store


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ({}, 5),
        ({"run": "v1"}, 2),
        ({"run": ["v1", "v2", "v3"]}, 5),
        ({"run": []}, 0),
        ({"scorer": "size"}, 3),
        ({"scorer": {"size", "tone"}}, 5),
        ({"entity": "b"}, 3),
        ({"entity_type": "agent"}, 2),
        ({"source": "LIVE"}, 2),
        ({"error": "judge_timeout"}, 1),
        ({"error": ("judge_timeout", "not_scorable")}, 2),
        ({"since": "2026-01-02T12:00"}, 3),
        ({"until": "2026-01-02T12:00"}, 2),
        ({"since": "2026-01-02T13:00+01:00"}, 3),
        ({"since": pd.Timestamp("2026-01-02", tz="Asia/Tokyo"), "until": pd.Timestamp("2026-01-02T00:00:00.000001")}, 2),
        ({"since": np.datetime64("2026-01-03")}, 0),
        ({"run": "v2", "scorer": "tone", "error": "not_scorable"}, 1),
        ({"limit": 4}, 4),
        ({"limit": 1, "run": "v1"}, 1),
        ({"run": "v1' OR '1'='1"}, 0),
    ],
    ids=str,
)
def test_read_filters(filled, filters, rows):
    assert len(filled.read(**filters)) == rows


def test_filter_gives_the_results_that_it_picks_alone(filled):
    assert list(filled.read(scorer="size").filter(like="_score").columns) == ["size_score"]


def test_limit_gives_the_newest_rows_in_order(filled):
    assert filled.read(limit=4)[["run", "row"]].to_numpy().tolist() == [["v1", "q1"], ["v2", "q0"], ["v2", "q1"], ["v2", "q2"]]


@pytest.mark.parametrize(
    ("filters", "error", "match"),
    [
        ({"run": 5}, ArgumentTypeError, "run must be a text or a list of texts, not int"),
        ({"scorer": ["tone", None]}, ArgumentTypeError, "scorer must be a text or a list of texts, not NoneType"),
        ({"source": "PROD"}, UnknownOptionError, "source='PROD' is not known"),
        ({"since": 5}, ArgumentTypeError, "since must be a datetime or an ISO text"),
        ({"until": "tomorrow"}, ArgumentTypeError, "until must be a datetime or an ISO text"),
        ({"limit": 0}, OptionRangeError, "limit=0"),
        ({"limit": "all"}, ArgumentTypeError, "limit must be a whole number"),
    ],
)
def test_wrong_filter_raises(store, filters, error, match):
    with pytest.raises(error, match=match):
        store.read(**filters)


def test_runs_are_listed_in_the_order_of_their_first_results(filled):
    filled.append(scored(1), run="v1", entity_id="c", created_at="2026-02-01", existing="replace")
    found = filled.runs()
    assert found.drop(columns=["first", "last"]).astype(object).to_numpy().tolist() == [
        ["v1", "LIVE, TEST", "agent", "a, c", "tone", 2, 2, 0],
        ["v2", "TEST", "step", "b", "size, tone", 3, 6, 2],
    ]
    assert found["first"].tolist() == [pd.Timestamp("2026-01-02", tz="UTC"), pd.Timestamp("2026-01-02T12:00", tz="UTC")]
    assert found["last"].tolist() == [pd.Timestamp("2026-02-01", tz="UTC"), pd.Timestamp("2026-01-02T12:00", tz="UTC")]


def test_runs_of_an_empty_store_are_none(store):
    found = store.runs()
    assert len(found) == 0
    assert found.dtypes.astype(str).tolist() == ["string"] * 5 + ["int64"] * 3 + ["datetime64[us, UTC]"] * 2


# --- delete, age, size


def test_delete_removes_what_the_filters_pick(filled):
    assert filled.delete(run="v2", scorer="tone") == 3
    assert filled.runs()["scorers"].tolist() == ["tone", "size"]
    assert filled.delete(until="2026-01-02T12:00") == 2
    assert filled.count() == 3


def test_delete_without_a_filter_raises(filled):
    with pytest.raises(ArgumentTypeError, match="delete needs a filter.*everything=True"):
        filled.delete()
    assert filled.delete(everything=True) == 8
    assert filled.count() == 0


def test_rows_that_are_too_old_are_deleted_when_the_store_is_opened(store):
    now = pd.Timestamp.now("UTC")
    store.append(scored(2), run="old", created_at=now - pd.Timedelta(days=10))
    store.append(scored(3), run="new", created_at=now - pd.Timedelta(days=8))
    aged = ScoreStore(store.url, max_age_days=9)
    assert aged.read()["run"].unique().tolist() == ["new"]
    assert store.count() == 3


def test_age_is_looked_at_once_an_hour(store, monkeypatch):
    aged = ScoreStore(store.url, max_age_days=9)
    old = pd.Timestamp.now("UTC") - pd.Timedelta(days=10)
    aged.append(scored(2), run="old", created_at=old)
    aged.append(scored(2), run="older", created_at=old)
    assert aged.count() == 4
    aged.database().pruned[9] -= 3601
    assert aged.count() == 4
    aged.append(scored(1), run="new")
    assert aged.runs()["run"].tolist() == ["new"]


def test_size_counts_rows_and_bytes(store):
    assert store.size().rows == 0
    store.append(scored(2000), run="v1")
    assert store.size().rows == 2000
    assert 200_000 < store.size().bytes < 4_000_000


# --- the store as a value


def test_store_is_a_value():
    store = ScoreStore("/data/scores.db", max_age_days=3)
    assert pickle.loads(pickle.dumps(store)) == store == ScoreStore("sqlite:////data/scores.db", max_age_days=3)
    assert hash(store) == hash(pickle.loads(pickle.dumps(store)))
    assert repr(store) == "ScoreStore('sqlite:////data/scores.db', max_age_days=3)"


def test_store_shows_no_password():
    store = ScoreStore("postgres://me:se%40cret@db.example:5432/scores?sslmode=require")
    assert repr(store) == "ScoreStore('postgresql+psycopg://me:***@db.example:5432/scores?sslmode=require')"
    assert store.name == "postgresql+psycopg://me:***@db.example:5432/scores?sslmode=require"
    assert pickle.loads(pickle.dumps(store)).url == "postgresql+psycopg://me:se%40cret@db.example:5432/scores?sslmode=require"


# --- encoded rows: what the background uses


def test_insert_gives_first_in_the_order_of_arrival(store):
    rows = encoded(9)[::-1] if store.url.startswith("sqlite") else encoded(9)
    assert store.insert(rows) == 9
    assert store.first(4) == rows[:4]
    assert store.insert([]) == 0


def test_insert_of_another_result_raises_and_stores_nothing(store):
    store.insert(encoded())
    assert store.insert(encoded()) == 0
    with pytest.raises(StoreError, match="3 of 4 results are in the store already"):
        store.insert(encoded(4, tone_score=0.75))
    assert store.count() == 3


def test_insert_keeps_or_replaces(store):
    store.insert(encoded())
    assert store.insert(encoded(4, tone_score=0.75), existing="keep") == 1
    assert sorted(row.score for row in store.first(9)) == [0.5, 0.5, 0.5, 0.75]
    assert store.insert(encoded(5, tone_score=0.25), existing="replace") == 1
    assert [row.score for row in store.first(9)] == [0.25] * 5


def test_row_that_is_given_twice_is_there_once(store):
    first, other = encoded(1), encoded(1, tone_score=0.75)
    assert store.insert([*first, *first, *other], existing="keep") == 1
    assert [row.score for row in store.first(9)] == [0.5]
    assert store.insert([*first, *other], existing="replace") == 0
    assert [row.score for row in store.first(9)] == [0.75]


def test_remove_removes_these_alone(store):
    rows = encoded()
    store.insert(rows)
    store.remove([rows[0].id, rows[2].id, "nobody' OR 1=1", '{"'])
    assert store.first(9) == [rows[1]]
    store.remove([])
    assert store.count() == 1


def test_mappings_are_metadata(store):
    frame = scored(3).assign(run="r", row=["a", "b", "c"], source="LIVE", entity_type=None, entity_id=None, trace_id=None, created_at=T0)
    rows = encode(frame, scorers=["tone"], versions={}, mappings=[{"user": 5, "$number": "nan"}, None, {"tags": ["x"], "run": "mine"}])
    store.insert(rows)
    found = store.read()
    assert cells(found["user"]) == [5, None, None]
    assert cells(found["$number"]) == ["nan", None, None]
    assert cells(found["tags"]) == [None, None, ["x"]]
    assert cells(found["metadata_run"]) == [None, None, "mine"]
    assert found["run"].tolist() == ["r"] * 3
