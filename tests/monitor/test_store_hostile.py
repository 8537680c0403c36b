"""Whatever text or number a cell holds comes back from either database as it was, and does nothing there."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SQL = 'Robert\'); DROP TABLE scorekit_scores;-- " OR "1"="1'
HTML = "<script>alert('x')</script><img src=x onerror=alert(1)>&amp;"
TEXTS = [
    SQL,
    HTML,
    "a\0b",
    "\0",
    "\ud800",
    "a\udfff\ud83db",
    "\ud83d\ude00",
    "😀 日本語 العربية",
    "\\",
    "\\0 \\d800 \\\\ \\N \\u0000",
    "NULL",
    '{"a", NULL, "b"}',
    '","',
    "%s %(id)s ? :id $1 {} {{ x }} %",
    "\r\n\t\v\f\x01\x02\x1f\x7f\x85\u2028\ufeff\ufffe\uffff",
    "",
    " ",
    "null",
    "true",
    "1.0",
    '{"$number": "nan"}',
    "2026-01-02T03:04:05Z",
    "#2",
]


def objects(cells):
    return pd.Series(np.fromiter(cells, dtype=object, count=len(cells)), dtype=object)


def plain(cell):
    """A cell in which each missing value is None, and NaN is told from it."""
    if cell is pd.NA or cell is None or cell is pd.NaT:
        return None
    return "NaN" if isinstance(cell, float) and math.isnan(cell) else cell


def cells(column):
    return [plain(cell) for cell in column]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_text_in_every_field_comes_back(store, text):
    scorer = f"s{text}"
    column = objects([text, f"x{text}"])
    frame = {
        "input": column, "output": column, "context": column, f"meta{text}": column, f"{scorer}_score": [0.5, np.nan],
        f"{scorer}_reason": column, f"{scorer}_error": column, f"{scorer}_judge": column, f"{scorer}_field{text}": column,
        f"{scorer}_analyze_prompt": column,
    }  # fmt: skip
    df = pd.DataFrame(dict(enumerate(frame.values()))).set_axis(pd.Index(list(frame), dtype=object), axis=1)
    df = df.set_axis(pd.Index(column.tolist(), dtype=object), axis=0)
    run, entity = f"r{text}", f"e{text}"
    assert store.append(df, run=run, entity_type=f"t{text}", entity_id=entity, trace_id=text, version=text) == 2
    assert store.append(df, run=run, entity_type=f"t{text}", entity_id=entity, trace_id=text) == 0
    found = store.read(run=run, scorer=scorer, entity=entity, entity_type=f"t{text}", error=[text, f"x{text}"])
    assert [cells(found[name]) for name in frame] == [cells(df[name]) for name in frame]
    assert found["row"].tolist() == column.tolist()
    assert found[["run", "entity_type", "entity_id", "trace_id"]].to_numpy().tolist() == [[run, f"t{text}", entity, text]] * 2
    assert store.runs()[["run", "entity_id", "scorers"]].to_numpy().tolist() == [[run, entity, scorer]]
    assert store.append(found) == 0
    assert store.delete(run=run, scorer=scorer, error=text) == 1
    store.close()
    assert store.read()["input"].tolist() == [f"x{text}"]  # the other row is there, and the tables are


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(), max_size=8), min_size=1, max_size=5))
def test_any_text_comes_back(store, texts):
    store.delete(everything=True)
    column = objects(texts)
    df = pd.DataFrame({"input": column, "output": objects(texts[::-1]), "x_score": 1.0, "x_reason": column, "note": column})
    store.append(df.set_axis(pd.Index(texts, dtype=object), axis=0), run="r")
    found = store.read()
    assert [found[name].tolist() for name in ("input", "x_reason", "note")] == [texts] * 3
    assert found["output"].tolist() == texts[::-1]
    assert [row.split("#")[0] for row in found["row"]] == [text.split("#")[0] for text in texts]


@pytest.mark.parametrize("text", ["x" * 10_000_000, "日" * 3_400_000, "\0\\\"'\ud800" * 1_000_000], ids=["ascii", "japanese", "escapes"])
def test_output_of_ten_megabytes_comes_back(store, text):
    df = pd.DataFrame({"output": objects([text, "short", text]), "x_score": 1.0, "x_reason": objects([text, None, "short"])})
    store.append(df, run="r")
    found = store.read()
    assert [cell == expected for cell, expected in zip(found["output"], df["output"], strict=True)] == [True] * 3
    assert found["x_reason"][0] == text


def test_many_large_outputs_fit(store):
    df = pd.DataFrame({"output": [f"{number} " + "x" * 1_000_000 for number in range(60)], "x_score": 1.0})
    assert store.append(df, run="r") == 60
    assert store.read()["output"].str.split(" ").str[0].tolist() == list(map(str, range(60)))


def test_numbers_come_back(store):
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 1e16, 2**53 + 1.0, 1 / 3]
    df = pd.DataFrame({"output": "x", "x_score": numbers, "x_ratio": numbers, "weight": numbers, "mixed": objects([*numbers[:-1], "text"])})
    store.append(df, run="r")
    found = store.read()
    for name in ("x_score", "x_ratio", "weight"):
        assert str(found[name].dtype) == "float64"
        assert list(map(repr, found[name] + 0.0)) == list(map(repr, pd.Series(numbers) + 0.0))  # SQLite keeps no sign of a zero score
    assert list(map(repr, found["mixed"])) == list(map(repr, [*numbers[:-1], "text"]))


def test_metadata_of_every_kind_comes_back(store):
    values = {
        "messages": [[{"role": "user", "content": "Hi\0"}], [{"role": "assistant", "content": None, "tool_calls": [{"id": 1}]}]],
        "tags": [{"$number": "nan"}, {"$time": "x", "$$": 1, "zone": [math.nan, math.inf]}],
        "mixed": ["text", 5],
        "large": [2**100, -(2**64)],
        "empty": [[], {}],
        "nested": [[[[]]], {"a": {"b": [None, True]}}],
    }
    df = pd.DataFrame({"output": objects(values["messages"]), "x_score": 1.0, **{name: objects(column) for name, column in values.items()}})
    store.append(df, run="r")
    found = store.read()
    assert found["output"].tolist() == values["messages"]
    assert {name: repr(found[name].tolist()) for name in values} == {name: repr(column) for name, column in values.items()}
    assert store.append(found) == 0


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (pd.Series([1, None], dtype="Int64"), "Int64"),
        (pd.Series([True, None], dtype="boolean"), "boolean"),
        (pd.Series([True, False]), "bool"),
        (pd.Series([1, 2], dtype="int32"), "int64"),
        (pd.Series(["a", "b"], dtype="category"), "string"),
        (pd.Series(["a", None], dtype="string"), "string"),
        (pd.Series([1.5, None], dtype="float32"), "float64"),
        (pd.Series(pd.to_datetime(["2026-01-02T03:04:05.678901", None])), "datetime64[us]"),
        (pd.Series(pd.to_datetime(["2026-03-29T01:30", "2026-10-25T00:30"], utc=True)).dt.tz_convert("Europe/Berlin"), "datetime64[us, Europe/Berlin]"),
        (pd.Series(pd.to_datetime(["2026-01-02T03:04:05.678901234+05:30"] * 2)), "datetime64[ns, UTC+05:30]"),
        (pd.Series(pd.to_timedelta(["1h", "2h"])), "string"),
    ],
    ids=lambda value: str(getattr(value, "dtype", value)),
)  # fmt: skip
def test_column_of_each_dtype_comes_back(store, column, dtype):
    store.append(pd.DataFrame({"output": "x", "x_score": 1.0, "x_field": column, "meta": column}), run="r")
    found = store.read()
    for name in ("x_field", "meta"):
        assert str(found[name].dtype) == dtype
        expected = [None if pd.isna(cell) else str(cell) if dtype == "string" else cell for cell in column]
        assert [None if pd.isna(cell) else cell for cell in found[name]] == expected
    assert store.append(found) == 0


@pytest.mark.parametrize(
    ("given", "utc"),
    [
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z"),
        ("2026-01-02", "2026-01-02T00:00:00Z"),
        ("2026-01-02T03:04:05.678901+05:30", "2026-01-01T21:34:05.678901Z"),
        (pd.Timestamp("2026-10-25T00:30:00Z").tz_convert("Europe/Berlin"), "2026-10-25T00:30:00Z"),
        (pd.Timestamp("2026-10-25T01:30:00Z").tz_convert("Europe/Berlin"), "2026-10-25T01:30:00Z"),
        (pd.Timestamp("2026-01-02T03:04:05.678901999"), "2026-01-02T03:04:05.678901Z"),
        (pd.Timestamp("2026-01-02").to_pydatetime(), "2026-01-02T00:00:00Z"),
        (np.datetime64("2026-01-02T03"), "2026-01-02T03:00:00Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("0100-01-01T00:00:00Z", "0100-01-01T00:00:00Z"),
    ],
    ids=str,
)
def test_time_is_kept_in_utc_to_the_microsecond(store, given, utc):
    store.append(pd.DataFrame({"x_score": [1.0]}), run="r", created_at=given)
    (found,) = store.read()["created_at"]
    assert (found, found.tz) == (pd.Timestamp(utc), pd.Timestamp(utc).tz)
    assert store.first(1)[0].created_at[:19] == utc[:19]
    assert len(store.read(since=utc)) == 1
    assert len(store.read(until=utc)) == 0


def test_labels_of_several_levels_name_rows(store):
    index = pd.MultiIndex.from_tuples([("a", 1, True), ("a", 1, True), ("b\0", 2, "é")])
    store.append(pd.DataFrame({"x_score": [1.0, 2.0, 3.0]}, index=index), run="r")
    assert store.read()["row"].tolist() == ['["a", 1, true]', '["a", 1, true]#2', '["b\\u0000", 2, "\\u00e9"]']
