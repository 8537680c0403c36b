"""Cells: what is kept of a value, whatever it is."""

import json
import math
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from scorekit.monitor.snapshots import cell_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


class Answer(BaseModel):
    text: str
    when: datetime


@dataclass
class Node:
    name: str
    parent: Any = None


class Kind(StrEnum):
    GOOD = "good"


class Level(Enum):
    HIGH = 3


class Silent:
    def __repr__(self):
        raise ValueError


class Odd:
    def model_dump(self, mode):
        raise ValueError

    def __repr__(self):
        return "x" * 5000


@given(JSON)
def test_cell_of_json_values_reads_back_equal(value):
    cell = cell_of(value)
    if value is None or isinstance(value, str):
        assert cell == value
    else:
        assert json.loads(cell) == value


@given(JSON)
def test_cell_is_ascii_where_it_is_json(value):
    cell = cell_of(value)
    assert not isinstance(cell, bytes) or cell.isascii()


@pytest.mark.parametrize("text", ["", "a\0b", "\ud800", "日本", "x" * 10_000_000])
def test_cell_of_text_is_the_very_text(text):
    assert cell_of(text) is text


def test_cell_of_a_member_of_an_enumeration_of_texts_is_its_value():
    assert (cell_of(Kind.GOOD), type(cell_of(Kind.GOOD))) == ("good", str)


@pytest.mark.parametrize("missing", [None, pd.NA, pd.NaT])
def test_cell_of_what_is_missing_is_none(missing):
    assert cell_of(missing) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        ({3, 1, 2}, [1, 2, 3]),
        ({"a": {1: "b", None: "c"}}, {"a": {"1": "b", "null": "c"}}),
        ({("a", 1): "b"}, {"('a', 1)": "b"}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ([np.int64(1), np.float32(0.5), np.bool_(True), np.str_("s")], [1, 0.5, True, "s"]),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.datetime64("2026-01-02T03:04:05"), "2026-01-02T03:04:05"),
        ([np.datetime64("NaT"), pd.NaT, pd.NA], [None, None, None]),
        (pd.Timestamp("2026-01-02", tz="Europe/Berlin"), "2026-01-02T00:00:00+01:00"),
        ({"at": datetime(2026, 1, 2, tzinfo=UTC), "on": date(2026, 1, 2)}, {"at": "2026-01-02T00:00:00+00:00", "on": "2026-01-02"}),
        ([Decimal("1.50"), PurePosixPath("/a"), timedelta(seconds=1), uuid.UUID(int=7)], ["1.50", "/a", "0:00:01", str(uuid.UUID(int=7))]),
        ([Level.HIGH, Kind.GOOD], [3, "good"]),
        (Answer(text="a", when=datetime(2026, 1, 2, tzinfo=UTC)), {"text": "a", "when": "2026-01-02T00:00:00Z"}),
        ([Node("n", Node("p"))], [{"name": "n", "parent": {"name": "p", "parent": None}}]),
        (b"\xff" * 5, {"type": "bytes", "repr": "b'\\xff\\xff\\xff\\xff\\xff'"}),
        (1 + 2j, {"type": "complex", "repr": "(1+2j)"}),
        ([Silent()], [{"type": f"{__name__}.Silent", "repr": "<its repr raises ValueError>"}]),
        (Odd(), {"type": f"{__name__}.Odd", "repr": "x" * 1000}),
        (int, {"type": "type", "repr": "<class 'int'>"}),
        (10**5000, {"type": "int", "repr": "<its repr raises ValueError>"}),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_cell_of_other_values_is_what_people_expect(value, expected):
    assert json.loads(cell_of(value)) == expected


def test_cell_of_not_a_number_and_infinities_reads_back():
    found = json.loads(cell_of([math.nan, math.inf, -math.inf]))
    assert math.isnan(found[0])
    assert found[1:] == [math.inf, -math.inf]


def test_cell_of_a_list_that_holds_itself_ends():
    value = [1]
    value.append(value)
    assert json.loads(cell_of(value)) == [1, {"type": "list", "repr": "..."}]


def test_cell_of_objects_that_hold_one_another_ends():
    parent = Node("p")
    parent.parent = [Node("c", parent), Node("d", parent)]
    found = json.loads(cell_of(parent))
    assert [child["name"] for child in found["parent"]] == ["c", "d"]
    assert found["parent"][0]["parent"]["type"] == f"{__name__}.Node"


def test_cell_of_ten_thousand_levels_ends():
    value = []
    for _ in range(10_000):
        value = [value]
    assert cell_of(value).startswith(b"[[[[")


def test_cell_of_an_iterator_leaves_it_to_its_owner():
    parts = iter("ab")
    assert json.loads(cell_of(parts))["type"] == "str_ascii_iterator"
    assert list(parts) == ["a", "b"]


def test_cell_of_large_arrays_and_bytes_is_their_beginning():
    assert json.loads(cell_of(np.zeros(10_001)))["type"] == "numpy.ndarray"
    assert len(cell_of(b"x" * 50_000_000)) < 1100
    assert json.loads(cell_of(pd.DataFrame({"a": [1]})))["repr"] == "   a\n0  1"


def test_cell_is_not_changed_by_what_happens_later():
    value = {"a": [1]}
    cell = cell_of(value)
    value["a"].append(2)
    assert cell == b'{"a": [1]}'


def test_cell_of_objects_that_share_one_another_ends_with_a_budget():
    shared = []
    for _ in range(60):
        shared = [shared, shared]
    assert json.loads(cell_of(shared)) == {"type": "list", "repr": "<more than a cell holds>"}


def test_cell_of_an_object_that_cannot_be_looked_at_is_described():
    class Proxy:
        __class__ = property(lambda self: 1 / 0)

    assert json.loads(cell_of(Proxy()))["type"].endswith("Proxy")
