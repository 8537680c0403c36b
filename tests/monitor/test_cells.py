"""Cells as ASCII JSON text: what goes in comes out, in either database."""

import dataclasses
import datetime as dt
import decimal
import enum
import math
import zoneinfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from scorekit.monitor.cells import (
    decode_cell,
    decode_cells,
    encode_cell,
    encode_cells,
    escape,
    plain_column,
    plain_texts,
    text_column,
    typed,
    unescape,
)

TEXTS = st.text(st.characters(), max_size=20)  # lone surrogates among them
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS | st.sampled_from(["$number", "$time", "$text", "$$x", "zone"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


class Color(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


class Message(BaseModel):
    role: str
    when: dt.datetime


@dataclasses.dataclass
class Point:
    x: float
    tags: tuple[str, ...]


class Rude:
    def __str__(self):
        raise ValueError("no")


def objects(cells):
    """A column of objects, lists among them too, which pandas leaves as they are."""
    return pd.Series(np.fromiter(cells, dtype=object, count=len(cells)))


# --- laws


@given(VALUES)
def test_cell_that_json_can_carry_comes_back(value):
    text = encode_cell(value)
    assert decode_cell(text) == value
    assert text is None or (text.isascii() and "\0" not in text)


@given(st.lists(VALUES, max_size=6))
def test_column_is_encoded_like_its_cells(values):
    texts = encode_cells(objects(values))
    assert texts == [encode_cell(value) for value in values]
    assert decode_cells(texts) == values


@given(TEXTS)
def test_plain_text_comes_back(text):
    escaped = escape(text)
    assert unescape(escaped) == text
    assert "\0" not in escaped
    escaped.encode()


@given(st.lists(TEXTS | st.none(), max_size=6))
def test_column_of_plain_texts_comes_back(texts):
    found = plain_column(plain_texts(pd.Series(texts, dtype=object)))
    assert [None if pd.isna(cell) else cell for cell in found] == texts


def test_ordinary_plain_text_stays_as_it_is():
    assert escape("Robert'); DROP TABLE scorekit_scores;-- 日本 😀 \n\t") == "Robert'); DROP TABLE scorekit_scores;-- 日本 😀 \n\t"


# --- single cells


@pytest.mark.parametrize("value", [None, pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT", "s")])
def test_missing_cell_has_no_text(value):
    assert encode_cell(value) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '{"$number": "nan"}'),
        (math.inf, '{"$number": "inf"}'),
        (np.float32("-inf"), '{"$number": "-inf"}'),
        ([np.float64("nan"), 1.0], '[{"$number": "nan"}, 1.0]'),
        (np.int64(5), "5"),
        (np.bool_(True), "true"),
        (np.longdouble(0.5), "0.5"),
        (Size.BIG, "3"),
        (Color.RED, '"red"'),
        (np.str_("x"), '"x"'),
        ((1, (2, [3])), "[1, [2, [3]]]"),
        (np.array([[1, 2], [3, 4]]), "[[1, 2], [3, 4]]"),
        (np.array(7), "7"),
        ({3, 1, 2}, "[1, 2, 3]"),
        (frozenset({"b", "a"}), '["a", "b"]'),
        ({1: "a", None: 2, False: 3.5, (1, 2): 4, np.int64(6): 5}, '{"1": "a", "null": 2, "false": 3.5, "(1, 2)": 4, "6": 5}'),
        (Message(role="user", when=dt.datetime(2026, 1, 2, tzinfo=dt.UTC)), '{"role": "user", "when": "2026-01-02T00:00:00Z"}'),
        ([Point(0.5, ("a",))], '[{"x": 0.5, "tags": ["a"]}]'),
        (decimal.Decimal("1.10"), '"1.10"'),
        (dt.date(2026, 1, 2), '"2026-01-02"'),
        (np.timedelta64(5, "s"), '"5 seconds"'),
        (b"raw", "\"b'raw'\""),
        (Rude(), '"<Rude that cannot be shown>"'),
        ([Rude(), 1], '["<Rude that cannot be shown>", 1]'),
        ([pd.NA, pd.NaT, None], "[null, null, null]"),
        ({"$number": "nan"}, '{"$$number": "nan"}'),
        ({"$$": [{"$time": 1}]}, '{"$$$": [{"$$time": 1}]}'),
        ("é\0\ud800", '"\\u00e9\\u0000\\ud800"'),
        ("\ud83d\ude00", '{"$text": "\\\\d83d\\\\de00"}'),
        ("😀", '"\\ud83d\\ude00"'),
    ],
)
def test_cell_has_this_text(value, text):
    assert encode_cell(value) == text


def test_surrogates_side_by_side_are_not_made_into_one_character():
    for value in ("\ud83d\ude00", ["a", "\ud83d\ude00"], {"k": "\ud83d\ude00😀"}, {"\ud83d\ude00": 1, "$text:a": 2}):
        assert decode_cell(encode_cell(value)) == value
    assert encode_cells(pd.Series(["\ud83d\ude00", "a"], dtype=object)) == ['{"$text": "\\\\d83d\\\\de00"}', '"a"']


def test_list_that_holds_itself_becomes_text():
    value = [1]
    value.append(value)
    text = encode_cell(value)
    assert text.isascii()
    assert decode_cell(text)[0] == 1


def test_value_of_a_thousand_levels_becomes_text_below_a_hundred():
    value = "deep"
    for _ in range(3000):
        value = [value]
    found = decode_cell(encode_cell(value))
    for _ in range(100):
        (found,) = found
    assert isinstance(found, str)


def test_number_of_five_thousand_digits_is_kept_as_a_remark():
    assert encode_cell([10**5000, 1]) == '["<int that cannot be shown>", 1]'
    assert encode_cell(10**5000) == '"<int that cannot be shown>"'


def test_text_that_is_no_json_stands_for_itself():
    assert decode_cells(['"a"', "not json", "1, 2", None, "[" * 5000]) == ["a", "not json", "1, 2", None, "[" * 5000]


# --- times


@pytest.mark.parametrize(
    "time",
    [
        pd.Timestamp("2026-03-29T01:30:00", tz="Europe/Berlin"),
        pd.Timestamp("2026-10-25T01:30:00Z").tz_convert("Europe/Berlin"),
        pd.Timestamp("2026-01-02T03:04:05.678901"),
        pd.Timestamp("2026-01-02T03:04:05.678901234Z"),
        pd.Timestamp("1900-01-01T00:00:00+05:30"),
        pd.Timestamp(dt.datetime(1, 1, 1)),  # noqa: DTZ001  (a naive one)
        pd.Timestamp(dt.datetime(9999, 12, 31, tzinfo=dt.UTC)),
    ],
)
def test_time_comes_back_with_its_zone(time):
    found = decode_cell(encode_cell(time))
    assert found == time
    assert found.utcoffset() == time.utcoffset()
    assert getattr(found.tz, "key", None) == getattr(time.tz, "key", None)


def test_datetime_and_numpys_time_come_back_as_timestamps():
    assert decode_cell(encode_cell(dt.datetime(2026, 1, 2, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo")))) == pd.Timestamp(
        "2026-01-02", tz="Asia/Tokyo"
    )
    assert decode_cell(encode_cell(np.datetime64("2026-01-02T03"))) == pd.Timestamp("2026-01-02T03")


def test_zone_that_this_machine_does_not_know_keeps_its_offset():
    found = decode_cell('{"$time": "2026-01-02T03:04:05+01:00", "zone": "Mars/Olympus"}')
    assert (found, found.utcoffset()) == (pd.Timestamp("2026-01-02T02:04:05Z"), dt.timedelta(hours=1))


# --- columns


@pytest.mark.parametrize(
    ("column", "dtype"),
    [
        (pd.Series([1, 2], dtype="int64"), "int64"),
        (pd.Series([1, 2], dtype="uint8"), "int64"),
        (pd.Series([1, None], dtype="Int64"), "Int64"),
        (pd.Series([1.0, np.nan, np.inf, -np.inf]), "float64"),
        (pd.Series([np.nan, np.nan]), "float64"),
        (pd.Series([1.5, None], dtype="Float64"), "float64"),
        (pd.Series([0.5, 2.0], dtype="float32"), "float64"),
        (pd.Series([True, False]), "bool"),
        (pd.Series([True, None], dtype="boolean"), "boolean"),
        (pd.Series(["a", None], dtype="string"), "string"),
        (pd.Series(["a", None], dtype=object), "string"),
        (pd.Series(["a", np.nan], dtype=object), "string"),
        (pd.Series(["b", None, "a"], dtype="category"), "string"),
        (pd.Series([3, 1], dtype="category"), "int64"),
        (pd.Series(pd.to_datetime(["2026-01-02", None])), "datetime64[us]"),
        (pd.Series(pd.to_datetime(["2026-01-02T03:04:05.000000001"])), "datetime64[ns]"),
        (pd.Series(pd.to_datetime(["2026-01-02", "2026-07-02"])).dt.tz_localize("Europe/Berlin"), "datetime64[us, Europe/Berlin]"),
        (pd.Series(pd.to_datetime(["2026-01-02"], utc=True)), "datetime64[us, UTC]"),
    ],
    ids=str,
)
def test_column_comes_back_with_its_cells_and_a_dtype(column, dtype):
    found = typed(decode_cells(encode_cells(column)))
    assert str(found.dtype) == dtype
    assert [None if pd.isna(cell) else cell for cell in found] == [None if pd.isna(cell) else cell for cell in column]


@pytest.mark.parametrize(
    "cells",
    [
        ["a", 1, None, [1, 2], {"k": "v"}],
        [[{"role": "user", "content": "Hi"}], None],
        [[1, 2], [3, 4]],
        [[{"role": "user"}], [{"role": "user"}]],
        [True, 2],
        [2**63, 1],
        [2**53 + 1, 0.5],
        ["a", 1.5, math.inf],
        [pd.Timestamp("2026-01-02", tz="UTC"), pd.Timestamp("2026-01-02", tz="Asia/Tokyo")],
        [pd.Timestamp("2026-01-02"), "a"],
    ],
    ids=str,
)
def test_column_of_several_kinds_comes_back_as_objects(cells):
    found = typed(decode_cells(encode_cells(objects(cells))))
    assert found.dtype == object
    assert found.tolist() == cells
    assert [type(cell) for cell in found] == [type(cell) for cell in cells]


def test_times_too_far_apart_for_nanoseconds_come_back_as_objects():
    cells = [pd.Timestamp("0001-01-01"), pd.Timestamp("2026-01-02T03:04:05.000000001")]
    assert typed(decode_cells([encode_cell(cell) for cell in cells])).tolist() == cells


def test_column_without_values_is_of_texts():
    assert str(typed([None, None]).dtype) == "string"
    assert str(typed([]).dtype) == "string"


def test_texts_with_lone_surrogates_make_a_string_column():
    assert text_column(["\ud800", None]).tolist() == ["\ud800", pd.NA]
    assert text_column(["\ud800"]).dtype == "string"
