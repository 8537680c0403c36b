"""Labels, notes and tags: what each change does, that undo takes it back, and that the file has it before the call returns."""

import errno
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scorekit.errors import ArgumentTypeError, ColumnConflictError, OptionRangeError, UnknownOptionError
from scorekit.widgets.marks import Mark, Marks, row_keys

SURROGATE = "\ud800"


def frame(count=5, **columns):
    return pd.DataFrame(
        {"input": [f"q{i}" for i in range(count)]} | {name: pd.Series(cells, dtype=object) for name, cells in columns.items()}
    )


def marks_of(df=None, **options):
    df = frame() if df is None else df
    return Marks.of(df, [df["input"]], **options)


def told(path):
    """The lines of a file, without their time."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{name: value for name, value in line.items() if name != "at"} for line in lines]


# --- labels


def test_label_is_set_and_replaced_and_the_same_again_takes_it_away():
    marks = marks_of()
    marks.label(1, "fail")
    assert marks[1] == Mark("fail")
    marks.label(1, "pass")
    assert marks[1] == Mark("pass")
    marks.label(1, "pass")
    assert marks[1] == Mark()
    assert marks.read == []


def test_label_none_takes_it_away():
    marks = marks_of()
    marks.label(1, "unsure")
    marks.label(1, None)
    assert marks[1].label is None


def test_label_that_is_none_raises_and_changes_nothing():
    marks = marks_of()
    with pytest.raises(UnknownOptionError, match="label='good' is not known; choose one of 'pass', 'fail', 'unsure'"):
        marks.label(1, "good")
    assert (marks[1], marks.can_undo) == (Mark(), False)


@pytest.mark.parametrize("position", [-1, 5, 10**9])
def test_mark_of_a_row_that_is_not_there_raises(position):
    marks = marks_of()
    for change in (lambda: marks.label(position, "pass"), lambda: marks.note(position, "x"), lambda: marks.tag(position, "x")):
        with pytest.raises(OptionRangeError, match="is out of range: it must be that of a row, 0 to 4"):
            change()
    assert marks.columns().isna().all().all()
    assert marks.tags == []


# --- notes


def test_note_typed_in_one_go_is_one_change_to_take_back():
    marks = marks_of()
    marks.note(2, "first")
    marks.end_note()
    for typed in ("first w", "first wo", "first wor", "first words"):
        marks.note(2, typed)
    assert marks.undo() == 2
    assert marks[2].note == "first"
    assert marks.undo() == 2
    assert marks[2].note == ""
    assert marks.undo() is None


def test_note_of_another_row_and_after_another_change_is_a_change_of_its_own():
    marks = marks_of()
    marks.note(0, "a")
    marks.note(1, "b")
    marks.note(0, "ac")
    marks.label(0, "fail")
    marks.note(0, "acd")
    undone = [(marks.undo(), marks[0].note, marks[1].note) for _ in range(5)]
    assert undone == [(0, "ac", "b"), (0, "ac", "b"), (0, "a", "b"), (1, "a", ""), (0, "", "")]


def test_note_after_an_undo_is_a_change_of_its_own():
    marks = marks_of()
    marks.note(0, "a")
    marks.undo()
    marks.note(0, "b")
    assert marks.undo() == 0
    assert marks[0].note == ""


def test_note_that_is_the_same_is_no_change():
    marks = marks_of()
    marks.note(0, "")
    assert not marks.can_undo


def test_note_keeps_every_text_but_lone_surrogates():
    marks = marks_of()
    marks.note(0, f"</script>\x00\u2028\n é{SURROGATE}")
    assert marks[0].note == "</script>\x00\u2028\n é\ufffd"


def test_note_that_is_no_text_raises():
    with pytest.raises(ArgumentTypeError, match="note must be a text, not NoneType"):
        marks_of().note(0, None)


# --- tags


def test_tag_is_given_and_taken_away_and_a_new_one_joins_the_others():
    marks = marks_of(tags=["a"])
    marks.tag(0, "b")
    marks.tag(0, "a")
    assert (marks[0].tags, marks.tags) == (("b", "a"), ["a", "b"])
    marks.tag(0, "b")
    assert (marks[0].tags, marks.tags) == (("a",), ["a", "b"])


def test_tag_is_one_line_without_spaces_around_it():
    marks = marks_of()
    marks.tag(0, f"  too \n\t long{SURROGATE} ")
    assert marks[0].tags == ("too long\ufffd",)
    marks.tag(0, f"too long{SURROGATE}")
    assert marks[0].tags == ()


@pytest.mark.parametrize("tag", ["", " \n", "x" * 61])
def test_tag_that_is_empty_or_too_long_raises(tag):
    marks = marks_of()
    with pytest.raises(OptionRangeError, match="it must be a text of 1 to 60 characters; longer thoughts go into the note"):
        marks.tag(0, tag)
    with pytest.raises(OptionRangeError, match="1 to 60"):
        marks_of(tags=[tag])
    assert marks.tags == []


def test_tag_that_is_no_text_raises():
    with pytest.raises(ArgumentTypeError, match="tag must be a text, not int"):
        marks_of().tag(0, 5)
    with pytest.raises(ArgumentTypeError, match="Each name in tags must be a text, not int"):
        marks_of(tags=[5])


def test_tags_given_as_one_text_are_one_tag():
    assert marks_of(tags="too long").tags == ["too long"]
    assert marks_of(tags=["a", "b", " a "]).tags == ["a", "b"]


def test_tag_of_the_frame_that_is_longer_than_one_may_type_can_be_taken_away():
    long = "x" * 61
    marks = marks_of(frame(tags=[[long]] + [None] * 4))
    marks.tag(0, long)
    assert marks[0].tags == ()
    marks.tag(1, long)
    assert marks[1].tags == (long,)


def test_undo_of_a_new_tag_takes_it_from_the_tags_there_are():
    marks = marks_of(tags=["a"])
    marks.tag(0, "typo")
    assert marks.undo() == 0
    assert marks.tags == ["a"]


def test_rename_changes_every_row_and_keeps_the_digit():
    marks = marks_of(tags=["a", "b", "c"])
    for position in (0, 2):
        marks.tag(position, "b")
    marks.tag(2, "a")
    assert marks.rename("b", " too  long ") == "too long"
    assert marks.tags == ["a", "too long", "c"]
    assert (marks[0].tags, marks[2].tags) == (("too long",), ("too long", "a"))


def test_rename_to_a_tag_that_is_there_makes_one_of_two_and_undo_two_of_one():
    marks = marks_of(tags=["a", "b", "c"])
    marks.tag(0, "a")
    marks.tag(0, "c")
    marks.tag(1, "c")
    marks.rename("c", "a")
    assert (marks[0].tags, marks[1].tags, marks.tags) == (("a",), ("a",), ["a", "b"])
    assert marks.undo() is None  # it was about two rows
    assert (marks[0].tags, marks[1].tags, marks.tags) == (("a", "c"), ("c",), ["a", "b", "c"])
    assert marks.undo() == 1


def test_rename_of_a_tag_that_no_row_has_can_be_taken_back():
    marks = marks_of(tags=["a", "b"])
    marks.rename("a", "c")
    assert marks.tags == ["c", "b"]
    assert marks.can_undo
    marks.undo()
    assert (marks.tags, marks.can_undo) == (["a", "b"], False)


def test_rename_to_itself_is_no_change():
    marks = marks_of(tags=["a"])
    assert marks.rename("a", "a ") == "a"
    assert not marks.can_undo


def test_rename_of_an_unknown_tag_or_to_none_raises():
    marks = marks_of(tags=["too long"])
    with pytest.raises(UnknownOptionError, match="tag='to long' is not known; choose one of 'too long'. Did you mean 'too long'"):
        marks.rename("to long", "x")
    with pytest.raises(OptionRangeError, match="1 to 60"):
        marks.rename("too long", " ")


# --- what follows from the marks


def test_mask_is_of_rows_with_a_label_without_one_and_with_a_tag():
    marks = marks_of()
    marks.label(0, "fail")
    marks.label(2, "pass")
    marks.tag(2, "a")
    marks.tag(3, "a")
    masks = [
        {},
        {"label": "fail"},
        {"label": "none"},
        {"tag": "a"},
        {"label": "pass", "tag": "a"},
        {"label": "none", "tag": "a"},
        {"label": "unsure"},
    ]
    assert [np.flatnonzero(marks.mask(**wanted)).tolist() for wanted in masks] == [[0, 1, 2, 3, 4], [0], [1, 3, 4], [2, 3], [2], [3], []]


def test_read_is_in_the_order_of_first_marks_without_rows_that_have_none_any_more():
    marks = marks_of()
    for position in (3, 0, 4):
        marks.label(position, "fail")
    marks.note(3, "again")
    assert marks.read == [3, 0, 4]
    marks.label(0, "fail")
    assert marks.read == [3, 4]
    marks.undo()
    assert marks.read == [3, 0, 4]


def test_counts_are_the_most_held_first_with_their_share_of_the_rows_read():
    marks = marks_of(tags=["none", "a", "b"])
    for position, tags in enumerate(["a", "ab", "ba", ""]):
        marks.label(position, "fail")
        for tag in tags:
            marks.tag(position, tag)
    counts = marks.counts()
    assert counts.to_dict("list") == {"tag": ["a", "b", "none"], "rows": [3, 2, 0], "share": [0.75, 0.5, 0.0]}
    assert [str(dtype) for dtype in counts.dtypes] == ["string", "int64", "float64"]


def test_counts_of_nothing_have_their_dtypes():
    assert [str(dtype) for dtype in marks_of().counts().dtypes] == ["string", "int64", "float64"]
    assert len(marks_of().counts()) == 0


def test_saturation_counts_new_tags_in_each_ten_rows_read():
    marks = marks_of(frame(30))
    # The rows are read from the last to the first: ten with a, b and c among them, ten with nothing new but d, two with e and f.
    tens = ["a", "a", "b", "", "ab", "", "c", "a", "", "b"], ["c", "", "", "d", "d", "", "ad", "", "", "b"], ["ef", "e"]
    for place, tags in enumerate(tags for ten in tens for tags in ten):
        marks.label(29 - place, "fail")
        for tag in tags:
            marks.tag(29 - place, tag)
    assert marks.saturation() == [3, 1, 2]


def test_saturation_of_nothing_and_of_ten_rows():
    marks = marks_of(frame(10))
    assert marks.saturation() == []
    for position in range(10):
        marks.label(position, "pass")
    assert marks.saturation() == [0]


def test_columns_are_strings_in_the_frames_order_with_tags_as_json():
    marks = marks_of()
    marks.tag(3, "é")
    marks.tag(3, 'say "a"')
    marks.label(1, "fail")
    marks.note(1, "n")
    columns = marks.columns()
    assert columns.dtypes.astype(str).tolist() == ["string"] * 3
    assert columns["label"].tolist() == [pd.NA, "fail", pd.NA, pd.NA, pd.NA]
    assert columns["note"].tolist() == [pd.NA, "n", pd.NA, pd.NA, pd.NA]
    assert columns["tags"].dropna().to_dict() == {3: '["é", "say \\"a\\""]'}


# --- what the frame came with


@pytest.mark.parametrize(
    ("cell", "tags"),
    [
        (["a", "b"], ("a", "b")),
        (("a", "a", "b"), ("a", "b")),
        (np.array(["a", "b"], dtype=object), ("a", "b")),
        ('["a", "b"]', ("a", "b")),
        (' ["a"]', ("a",)),
        ("a", ("a",)),
        ("  two \n words ", ("two words",)),
        ("a, b", ("a, b",)),
        ("[odd", ("[odd",)),
        ("[" * 100_000, ("[" * 100_000,)),
        (["a", None, "", np.nan, 5], ("a", "5")),
        ([f"{SURROGATE}!"], ("\ufffd!",)),
        ([], ()),
        ("[]", ()),
        ("", ()),
        (" ", ()),
        (None, ()),
        (np.nan, ()),
        (pd.NA, ()),
    ],
)
def test_frames_tags_are_read_in_every_form(cell, tags):
    cells = pd.Series([None] * 5, dtype=object)
    cells[1] = cell
    marks = Marks.of(frame().assign(tags=cells), [])
    assert (marks[1].tags, marks.tags) == (tags, list(tags))


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (pd.Series(["pass", "meh", None, "", "fail"], dtype="string"), ["pass", "meh", None, None, "fail"]),
        (pd.Series(["pass", "fail", None, "pass", "fail"], dtype="category"), ["pass", "fail", None, "pass", "fail"]),
        (pd.Series([True, False, True, True, False]), ["True", "False", "True", "True", "False"]),
        (pd.Series([1, 0, 1, 1, 0]), ["1", "0", "1", "1", "0"]),
        (pd.Series([1, 0, None, 1, 0], dtype="Int64"), ["1", "0", None, "1", "0"]),
        (pd.Series([np.nan] * 5), [None] * 5),
        (pd.Series([f"a{SURROGATE}", None, None, None, None], dtype=object), ["a\ufffd", None, None, None, None]),
    ],
)
def test_frames_labels_are_read_in_every_dtype(cells, labels):
    marks = Marks.of(frame().assign(label=cells), [])
    assert [marks[position].label for position in range(5)] == labels


def test_frames_notes_and_doubled_index_labels_are_read_by_position():
    df = frame(note=["a", None, "c", np.nan, ""]).set_axis([7, 7, 7, 1, 1])
    marks = Marks.of(df, [])
    assert [marks[position].note for position in range(5)] == ["a", "", "c", "", ""]
    assert marks.read == [0, 2]


@pytest.mark.parametrize("name", ["label", "note", "tags"])
def test_frame_with_two_columns_of_one_kind_of_mark_raises(name):
    df = frame(**{name: ["a"] * 5})
    with pytest.raises(ColumnConflictError, match=f"'{name}', but the frame has 2 columns of that name"):
        marks_of(pd.concat([df, df[[name]]], axis=1))


# --- by what the file knows a row


def keys_of(*columns):
    series = [pd.Series(cells, dtype=object) for cells in columns]
    return row_keys(pd.DataFrame(index=range(len(series[0]))), series)


def test_row_keys_follow_the_row_whatever_its_place_and_index():
    df = pd.DataFrame({"input": ["a", "b", "c"], "output": ["x", "y", "z"]})
    keys = row_keys(df, [df["input"], df["output"]])
    turned = df.iloc[[2, 0, 1]].set_axis([5, 5, 5])
    assert row_keys(turned, [turned["input"], turned["output"]]) == [keys[2], keys[0], keys[1]]
    assert len(set(keys)) == 3


def test_row_keys_number_equal_rows():
    keys = keys_of(["a", "b", "a", "a"])
    assert [key.removeprefix(keys[0]) for key in keys if key.startswith(keys[0])] == ["", "-2", "-3"]
    assert len(set(keys)) == 4


@pytest.mark.parametrize(
    "cells", [(None, np.nan, pd.NA, ""), (["a", 1], ("a", 1), np.array(["a", 1], dtype=object), '["a", 1]'), (5, np.int64(5), "5")]
)
def test_row_keys_are_the_same_for_what_files_do_not_tell_apart(cells):
    assert len({keys_of([cell])[0] for cell in cells}) == 1


@pytest.mark.parametrize(
    ("first", "second"), [(("a", "bc"), ("ab", "c")), (("a\x1f", "b"), ("a", "\x1fb")), (("a", ""), ("", "a")), (("a",), ("a", ""))]
)
def test_row_keys_of_other_cells_are_others(first, second):
    assert keys_of(*([cell] for cell in first)) != keys_of(*([cell] for cell in second))


def test_row_keys_tell_long_arrays_and_lone_surrogates_apart():
    long = np.arange(2000)
    other = long.copy()
    other[1000] = -1
    assert len({keys_of([cell])[0] for cell in (long, other, f"a{SURROGATE}", "a\udfff", "a\ufffd", object)}) == 6


# --- the file


def test_file_has_each_change_when_the_call_returns(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks = marks_of(save=path)
    assert not path.exists()
    key = marks.keys[2]
    marks.label(2, "fail")
    marks.note(2, "x")
    marks.tag(2, "a")
    marks.rename("a", "b")
    marks.undo()
    empty = {"row": key, "label": "fail", "note": "", "tags": [], "all_tags": []}
    assert told(path) == [
        empty,
        empty | {"note": "x"},
        empty | {"note": "x", "tags": ["a"], "all_tags": ["a"]},
        empty | {"note": "x", "tags": ["b"], "all_tags": ["b"]},
        empty | {"note": "x", "tags": ["a"], "all_tags": ["a"]},
    ]
    path.read_bytes().decode("ascii")


def test_file_opened_again_has_the_same_marks_order_and_digits(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks = marks_of(save=path, tags=["given"])
    marks.label(3, "fail")
    marks.tag(1, "first")
    marks.tag(3, "second")
    marks.note(0, f"é{SURROGATE}")
    again = marks_of(save=path, tags=["given"])
    pd.testing.assert_frame_equal(again.columns(), marks.columns())
    assert again.read == marks.read == [3, 1, 0]
    assert again.tags == marks.tags == ["given", "first", "second"]
    assert (again.can_undo, again.strangers) == (False, 0)


def test_file_digits_survive_renames_undone_tags_and_tags_without_rows(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks = marks_of(save=path)
    for tag in ("a", "b", "c"):
        marks.tag(0, tag)
    marks.tag(0, "c")
    marks.rename("a", "z")
    marks.rename("c", "y")
    marks.tag(1, "typo")
    marks.undo()
    assert marks_of(save=path).tags == marks.tags == ["z", "b", "y"]
    marks.rename("y", "x")  # no row has it
    assert marks_of(save=path).tags == marks.tags == ["z", "b", "x"]
    marks.undo()
    assert marks_of(save=path).tags == marks.tags == ["z", "b", "y"]


def test_file_knows_rows_again_in_another_order_rescored_and_with_another_index(tmp_path):
    path = tmp_path / "labels.jsonl"
    df = frame().assign(tone_score=0.1)
    marks = marks_of(df, save=path)
    marks.label(1, "fail")
    marks.note(4, "n")
    turned = df.iloc[::-1].assign(tone_score=0.9).set_axis(list("edcba"))
    again = marks_of(turned, save=path)
    assert again.columns()["label"].tolist() == [pd.NA, pd.NA, pd.NA, "fail", pd.NA]
    assert again.columns()["note"].tolist() == ["n", pd.NA, pd.NA, pd.NA, pd.NA]
    assert again.read == [3, 0]


def test_file_keeps_equal_rows_apart(tmp_path):
    path = tmp_path / "labels.jsonl"
    df = pd.DataFrame({"input": ["a", "b", "a", "a"]})
    marks_of(df, save=path).label(2, "fail")
    assert marks_of(df, save=path).columns()["label"].tolist() == [pd.NA, pd.NA, "fail", pd.NA]


def test_file_wins_over_what_the_frame_came_with(tmp_path):
    path = tmp_path / "labels.jsonl"
    df = frame(label=["pass", "pass", None, None, None])
    marks_of(df, save=path).label(0, "pass")
    assert marks_of(df, save=path).columns()["label"].tolist() == [pd.NA, "pass", pd.NA, pd.NA, pd.NA]


def test_file_of_two_views_has_what_both_wrote_and_the_last_of_a_row(tmp_path):
    path = tmp_path / "labels.jsonl"
    one, two = marks_of(save=path), marks_of(save=path)
    one.label(0, "fail")
    two.label(1, "pass")
    two.tag(2, "two")
    one.tag(2, "one")
    again = marks_of(save=path)
    assert again.columns()["label"].tolist() == ["fail", "pass", pd.NA, pd.NA, pd.NA]
    assert again[2].tags == ("one",)


def test_file_rows_that_are_not_in_the_frame_are_counted_and_stay(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks = marks_of(frame(5), save=path)
    for position in (0, 3, 4):
        marks.label(position, "fail")
    marks.note(4, "x")
    marks.label(3, "fail")  # taken away again
    few = marks_of(frame(2), save=path)
    assert (few.strangers, few.read) == (1, [0])
    few.label(1, "pass")
    assert marks_of(frame(5), save=path).read == [0, 4, 1]


def test_file_cut_at_any_byte_of_its_last_line_is_read_and_written_on(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks = marks_of(save=path)
    marks.label(0, "fail")
    whole = path.read_bytes()
    marks.note(1, "é")
    both = path.read_bytes()
    for end in range(len(whole), len(both) + 1):
        path.write_bytes(both[:end])
        again = marks_of(save=path)
        last = end >= len(both) - 1  # the line is whole without its end, too
        assert (again.read, again[1].note) == (([0, 1], "é") if last else ([0], "")), end
        again.label(2, "pass")
        assert marks_of(save=path).read == ([0, 1, 2] if last else [0, 2]), end


def test_file_cut_at_any_byte_of_its_only_line_is_read_and_written_on(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks_of(save=path).label(0, "fail")
    whole = path.read_bytes()
    for end in range(len(whole) - 1):
        path.write_bytes(whole[:end])
        again = marks_of(save=path)
        assert again.read == [], end
        again.label(2, "pass")
        assert marks_of(save=path).read == [2], end


def test_file_with_lines_that_are_not_ours_among_ours_is_read(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks_of(save=path).label(0, "fail")
    line = path.read_text(encoding="utf-8")
    odd = [
        "",
        "\x00\x00",
        "[" * 100_000,
        '{"row": 1}',
        "5",
        line.replace('"fail"', "5").strip(),
        line.replace("[]", '"ab"').strip(),
        '"row"',
    ]
    path.write_text("\n".join([*odd, line]), encoding="utf-8")
    assert marks_of(save=path).columns()["label"].tolist() == ["fail", *[pd.NA] * 4]


def test_file_that_an_editor_has_given_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "labels.jsonl"
    marks_of(save=path).label(0, "fail")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert marks_of(save=path).read == [0]


@pytest.mark.parametrize(
    "content",
    [
        b"input,output\nq,a\n",
        b'{"row": 1, "label": "pass"}\n',
        b'{\n "row": "a"\n}\n',
        b'{"input": "q", "output": "a"}\n{"input": "r", "output": "b"}\n',
        b"[]",
        b"{}\n",
        b"PAR1\x00\xff\xfe\x01\n\x02",
        b"My notes",
    ],
)
def test_file_of_something_else_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(
        OptionRangeError, match=r"save='.*other' is out of range: it must be a file of labels that a view has written, or a new file"
    ):
        marks_of(save=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"\n", b" \n\n"])
def test_file_that_is_empty_is_a_new_one(tmp_path, content):
    path = tmp_path / "labels.jsonl"
    path.write_bytes(content)
    marks_of(save=path).label(0, "fail")
    assert marks_of(save=path).read == [0]


def test_file_that_cannot_be_one_is_refused(tmp_path):
    with pytest.raises(OptionRangeError, match="it must be a file, not a folder or a device"):
        marks_of(save=tmp_path)
    with pytest.raises(OptionRangeError, match="it must be a file, not a folder or a device"):
        marks_of(save=os.devnull)
    with pytest.raises(OptionRangeError, match="it must be in a folder that is there; make '.*none' first"):
        marks_of(save=tmp_path / "none" / "labels.jsonl")
    with pytest.raises(ArgumentTypeError, match="save must be the path of a file, not int"):
        marks_of(save=5)


def test_file_is_the_same_one_after_the_working_folder_changes(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    marks = marks_of(save="labels.jsonl")
    monkeypatch.chdir(tmp_path / "b")
    marks.label(0, "fail")
    assert (tmp_path / "a" / "labels.jsonl").exists()
    assert list((tmp_path / "b").iterdir()) == []


def state_of(marks):
    return ([marks[position] for position in range(marks.count)], list(marks.tags), marks.read, marks.saturation())


def test_file_that_cannot_be_written_leaves_the_marks_as_they_were(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    marks = marks_of(save=folder / "labels.jsonl", tags=["a"])
    marks.tag(0, "a")
    before = state_of(marks)
    shutil.rmtree(folder)
    for change in (
        lambda: marks.label(1, "fail"),
        lambda: marks.note(1, "x"),
        lambda: marks.tag(1, "new"),
        lambda: marks.rename("a", "b"),
        marks.undo,
    ):
        with pytest.raises(FileNotFoundError):
            change()
        assert state_of(marks) == before
    folder.mkdir()
    assert marks.undo() == 0
    assert state_of(marks)[2] == []
    assert marks.undo() is None


def test_full_disk_leaves_the_mark_untaken_and_the_next_one_is_kept(tmp_path, monkeypatch):
    path = tmp_path / "labels.jsonl"
    marks = marks_of(save=path)
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OSError, match="No space left on device"):
            marks.label(0, "fail")
    assert (marks[0], marks.can_undo) == (Mark(), False)
    marks.label(0, "pass")
    assert marks_of(save=path)[0] == Mark("pass")


# --- laws

TAGS = st.sampled_from(["a", "b", "c", "d"])
ROW = st.integers(0, 3)
CHANGE = st.one_of(
    st.tuples(st.just("label"), ROW, st.sampled_from(["pass", "fail", "unsure", None])),
    st.tuples(st.just("note"), ROW, st.sampled_from(["", "x", "xy", "z\n\x00é"])),
    st.tuples(st.just("tag"), ROW, TAGS),
    st.tuples(st.just("rename"), TAGS, TAGS),
    st.tuples(st.just("end_note")),
)
UNDO = st.tuples(st.just("undo"))


def do(marks, change):
    name, *arguments = change
    if name == "rename" and arguments[0] not in marks.tags:
        return
    getattr(marks, name)(*arguments)


LABELLED = frame(4, label=["pass", None, None, "meh"], tags=[None, ["b"], None, ["c", "a"]])


@settings(deadline=None)
@given(st.lists(CHANGE, max_size=14), st.sampled_from([frame(4), LABELLED]))
def test_undo_goes_back_through_the_states_there_were_to_the_first(changes, df):
    marks = marks_of(df)
    states = [state_of(marks)]
    for change in changes:
        do(marks, change)
        states.append(state_of(marks))
    while marks.can_undo:
        marks.undo()
        while states and states[-1] != state_of(marks):
            states.pop()
        assert states, "a state that there never was"
    assert state_of(marks) == state_of(marks_of(df))


@settings(deadline=None)
@given(st.lists(st.one_of(CHANGE, UNDO), max_size=14))
def test_undo_of_all_after_any_changes_and_undos_restores_the_beginning(changes):
    marks = marks_of(LABELLED)
    for change in changes:
        do(marks, change)
    while marks.can_undo:
        marks.undo()
    assert state_of(marks) == state_of(marks_of(LABELLED))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.one_of(CHANGE, UNDO), max_size=14), st.sampled_from([frame(4), LABELLED]))
def test_file_gives_the_same_marks_order_and_digits_again(tmp_path, changes, df):
    path = tmp_path / "labels.jsonl"
    path.unlink(missing_ok=True)
    marks = marks_of(df, save=path)
    for change in changes:
        do(marks, change)
    again = marks_of(df, save=path)
    held, tags, read, saturation = state_of(marks)
    given = marks_of(df).tags
    assert state_of(again) == (held, [*given, *(tag for tag in tags if tag not in given)], read, saturation)
