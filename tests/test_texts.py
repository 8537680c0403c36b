"""Cells to text: every kind of cell from CASES A.1, A.3, A.8 and A.12."""

from decimal import Decimal
from enum import Enum

import numpy as np
import pandas as pd
import pytest

from scorekit.texts import TEXT, latin_share, read_contexts, read_texts, without_surrogates

USER = {"role": "user", "content": "hi"}
PARTS = [{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}]
LIVE = [{"role": "assistant", "parts": [{"type": "text", "text": "a"}], "content": ""}]


@pytest.mark.parametrize(
    "cell", [None, float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT"), Decimal("NaN"), complex("nan")]
)
def test_read_texts_missing_cell_is_missing_input(cell):
    cells = read_texts(pd.Series(["a", cell], dtype=object), "output")
    assert cells.errors.tolist() == [None, "missing_input"]
    assert cells.reasons[1] == "The output is missing."


@pytest.mark.parametrize(
    "cell",
    [5, 2.5, True, b"bytes", {"text": "a"}, ["a", None], np.array(["a"]), np.array(5), pd.Timestamp(0), {"role": "nurse", "content": "x"}],
)
def test_read_texts_cell_of_another_kind_is_not_text(cell):
    values = np.empty(2, dtype=object)
    values[0], values[1] = "a", cell
    cells = read_texts(pd.Series(values), "output")
    assert cells.errors.tolist() == [None, "not_text"]
    assert cells.texts.isna().tolist() == [False, True]


def test_read_texts_mapping_is_never_written_out_as_text():
    reason = read_texts(pd.Series([{"text": "secret"}]), "output").reasons[0]
    assert reason == "The output is not text but a mapping with the keys ['text']."


def test_read_texts_empty_string_is_text():
    assert read_texts(pd.Series(["", " "]), "output").texts.tolist() == ["", " "]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["a", None], dtype=object),
        pd.Series(["a", None], dtype="string[python]"),
        pd.Series(["a", None], dtype="category"),
        pytest.param("pyarrow", id="string[pyarrow]"),
        pytest.param("arrow", id="ArrowDtype"),
    ],
)
def test_read_texts_every_dtype_reads_alike(column):
    if isinstance(column, str):
        pa = pytest.importorskip("pyarrow")
        column = pd.Series(["a", None], dtype="string[pyarrow]" if column == "pyarrow" else pd.ArrowDtype(pa.string()))
    cells = read_texts(column, "output")
    assert cells.texts.iloc[0] == "a"
    assert cells.errors.tolist() == [None, "missing_input"]
    assert cells.texts.dtype == TEXT


@pytest.mark.parametrize(
    ("cell", "side", "text"),
    [
        ([USER], "input", "hi"),
        ([USER, {"role": "user", "content": "second"}], "input", "hi"),
        (PARTS, "output", "a"),
        (LIVE, "output", "a"),
        (USER, "input", "hi"),
        (np.array([USER], dtype=object), "input", "hi"),
        ([USER, {"role": "assistant", "content": "x"}, {"role": "assistant", "content": ""}], "output", "x"),
        ([{"role": "assistant", "content": {"format": 2, "parts": [{"type": "text", "text": "deep"}]}}], "output", "deep"),
        ('[{"role": "user", "content": "from json"}]', "input", "from json"),
        (' [{"role": "assistant", "content": "x"}] ', "output", "x"),
    ],
)
def test_read_texts_messages_give_the_side_s_text(cell, side, text):
    values = np.empty(1, dtype=object)
    values[0] = cell
    assert read_texts(pd.Series(values), "x", side).texts.tolist() == [text]


@pytest.mark.parametrize(
    "cell", [[USER], [{"role": "assistant", "content": [{"type": "image"}]}], [], '[{"role": "user", "content": "q"}]']
)
def test_read_texts_messages_without_text_are_not_scorable(cell):
    values = np.empty(1, dtype=object)
    values[0] = cell
    assert read_texts(pd.Series(values), "output", "output").errors.tolist() == ["not_scorable"]


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]",
        "[see below]",
        '{"role": 3}',
        '[{"role"',
        "[" * 100_000 + '"role"' + "]" * 100_000,
        '{"name": "Ann", "role": "nurse"}',
        '[{"role": "Engineer", "name": "Ada"}]',
        '[{"role": "user", "name": "Ann"}]',
    ],
)
def test_read_texts_other_text_in_brackets_stays_text(text):
    assert read_texts(pd.Series([text]), "output").texts.tolist() == [text]


def test_without_surrogates_replaces_each_lone_surrogate():
    assert without_surrogates("a\ud800b\udfff") == "a�b�"


def test_latin_share_mixed_script_counts_letters_alone():
    shares = latin_share(pd.Series(["ab あい 12", "Straße, naïve!", "12 …", "ｆｕｌｌ"], dtype=TEXT))
    assert shares[:2].tolist() == [0.5, 1.0]
    assert np.isnan(shares[2])
    assert shares[3] == 1.0


class Mood(str, Enum):  # noqa: UP042  (StrEnum would say its value by itself)
    GOOD = "good"


@pytest.mark.parametrize("others", [[], [5]])
def test_read_texts_member_of_a_text_enumeration_is_its_value_whatever_stands_beside_it(others):
    assert read_texts(pd.Series([Mood.GOOD, *others], dtype=object), "output").texts.iloc[0] == "good"


def test_read_contexts_empty_json_list_is_not_scorable_like_an_empty_list():
    cells = read_contexts(pd.Series(["[]", []], dtype=object), "context")
    assert cells.errors.tolist() == ["not_scorable", "not_scorable"]
