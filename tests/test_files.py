"""Tables in files: every cell comes back as it was, and what a file cannot hold is refused with its reason."""

import io
import json
import math

import pandas as pd
import pytest

from scorekit.errors import ColumnConflictError
from scorekit.files import TableFileError, read_table, replacing, require_writable, write_table

BIG = 2**60 + 1


def written_bytes(table, results, ending, written=()):
    """What ``write_table`` writes for the table's frame with the result columns added."""
    scored = pd.concat([table.frame, pd.DataFrame(results, index=table.frame.index)], axis=1)
    stream = io.BytesIO()
    write_table(table, scored, written, ending, stream)
    return stream.getvalue()


def written_arrow(table, results, written=()):
    """The same as Parquet, read again."""
    parquet = pytest.importorskip("pyarrow.parquet")
    return parquet.read_table(io.BytesIO(written_bytes(table, results, ".parquet", written)))


def jsonl(folder, *records):
    path = folder / "t.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return read_table(path)


def csv(folder, text):
    path = folder / "t.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return read_table(path)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("output\nGood.\n\nfine\n", [["Good."], [""], ["fine"]]),
        ('output\r\nGood.\r\n\r\n""\r\n', [["Good."], [""], [""]]),
        ("\ufeff\n\noutput\na\n\n", [["a"], [""]]),
        ('output\n" "\n  \n"x\n\ny"\n', [[" "], ["  "], ["x\n\ny"]]),
        ("output\n", []),
        ("a,b\n,\n\n1,2\n\n", [["", ""], ["1", "2"]]),
    ],
)
def test_read_csv_blank_line_is_a_row_where_there_is_one_column(tmp_path, text, rows):
    table = csv(tmp_path, text)
    assert table.frame.to_numpy().tolist() == rows
    assert table.frame.index.tolist() == list(range(len(rows)))


def test_write_csv_quotes_every_kind_of_line_end(tmp_path):
    table = csv(tmp_path, 'output,"na\rme"\n"a\rb","c\r\nd"\n"e\nf","say ""x"", y"\n')
    assert written_bytes(table, {"s": [0.5, math.nan]}, ".csv") == (b'output,"na\rme",s\n"a\rb","c\r\nd",0.5\n"e\nf","say ""x"", y",\n')


def test_write_csv_then_read_gives_the_same_cells(tmp_path):
    cells = ["a\rb", "\r", "\n", "\r\n", 'q"', ",", "", " ", "'", "\u2028", "日本"]
    table = jsonl(tmp_path, *({"x": cell, "y": "z"} for cell in cells))
    assert csv(tmp_path, written_bytes(table, {}, ".csv").decode()).frame["x"].tolist() == cells


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_write_parquet_whole_numbers_with_gaps_stay_whole(tmp_path, ending):
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    numbers = pa.array([BIG, None], type=pa.int64())
    lists = pa.array([[BIG, None], None], type=pa.list_(pa.int64()))
    parquet.write_table(pa.table({"n": numbers, "lists": lists}), tmp_path / "t.parquet")
    out = written_bytes(read_table(tmp_path / "t.parquet"), {"s": [1.0, 0.5]}, ending)
    assert (
        out
        == {
            ".csv": b'n,lists,s\n1152921504606846977,"[1152921504606846977, null]",1.0\n,,0.5\n',
            ".jsonl": (
                b'{"n": 1152921504606846977, "lists": [1152921504606846977, null], "s": 1.0}\n{"n": null, "lists": null, "s": 0.5}\n'
            ),
        }[ending]
    )


def test_write_takes_only_written_columns_from_the_scored_frame(tmp_path):
    table = jsonl(tmp_path, {"x_score": 1, "x_mine": [1, 2]}, {"x_score": None, "x_mine": None})
    scored = pd.DataFrame({"x_score": [0.25, math.nan], "x_mine": ["wrong", "wrong"]})
    for ending, lines in {
        ".jsonl": b'{"x_mine": [1, 2], "x_score": 0.25}\n{"x_mine": null, "x_score": null}\n',
        ".csv": b'x_mine,x_score\n"[1, 2]",0.25\n,\n',
    }.items():
        stream = io.BytesIO()
        write_table(table, scored, {"x_score"}, ending, stream)
        assert stream.getvalue() == lines


def test_read_jsonl_nested_too_deeply_names_the_line(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": 1}\n{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(TableFileError, match="line 2 is nested too deeply"):
        read_table(tmp_path / "t.jsonl")


def test_write_cell_nested_too_deeply_is_an_error_of_the_file(tmp_path):
    table = jsonl(tmp_path, {"a": 1})
    for _ in range(100_000):
        table.records[0]["a"] = [table.records[0]["a"]]
    try:
        with pytest.raises(TableFileError, match="a cell is nested too deeply"):
            written_bytes(table, {}, ".jsonl")
    finally:
        while isinstance(table.records[0]["a"], list):  # one level after another, lest freeing it overflows the stack
            table.records[0]["a"] = table.records[0]["a"].pop()


def test_write_lone_surrogate_stays_in_jsonl_and_is_replaced_elsewhere(tmp_path):
    table = jsonl(tmp_path, {"a": "x\ud800", "b": ["\udfff", {"\ud801": 1}], "k\ud802": "日本"})
    assert written_bytes(table, {}, ".jsonl") == (b'{"a": "x\\ud800", "b": ["\\udfff", {"\\ud801": 1}], "k\\ud802": "\\u65e5\\u672c"}\n')
    assert written_bytes(table, {}, ".csv").decode() == 'a,b,k\ufffd\nx\ufffd,"[""\ufffd"", {""\ufffd"": 1}]",日本\n'
    table = jsonl(tmp_path, {"a": "x\ud800", "b": ["\udfff"], "k\ud802": "日本", "mixed": "\ud800"}, {"mixed": 1})
    assert written_arrow(table, {"r": pd.Series(["y\ud803", None], dtype=object)}, {"r"}).to_pylist() == [
        {"a": "x\ufffd", "b": ["\ufffd"], "k\ufffd": "日本", "mixed": "\ufffd", "r": "y\ufffd"},
        {"a": None, "b": None, "k\ufffd": None, "mixed": "1", "r": None},
    ]


def test_write_parquet_results_have_one_schema_whatever_is_missing(tmp_path):
    table = csv(tmp_path, "a\nx\n")
    some = written_arrow(table, {"s": [0.5], "r": pd.Series(["why"], dtype="string")})
    none = written_arrow(table, {"s": [math.nan], "r": pd.Series([None], dtype="string")})
    empty = written_arrow(csv(tmp_path, "a\n"), {"s": pd.Series(dtype="float64"), "r": pd.Series(dtype="string")})
    assert [str(kind) for kind in some.schema.types] == ["string", "double", "string"]
    assert some.schema == none.schema == empty.schema


def test_write_parquet_results_of_an_earlier_run_keep_their_kind(tmp_path):
    table = jsonl(tmp_path, {"x_score": 0.5, "x_reason": "r"}, {"x_score": None, "x_reason": None})
    assert written_arrow(table, {}, {"x_score", "x_reason"}).to_pylist() == [
        {"x_score": 0.5, "x_reason": "r"},
        {"x_score": None, "x_reason": None},
    ]


def test_write_parquet_what_it_cannot_nest_becomes_json_text(tmp_path):
    deep = json.loads("[" * 50 + "]" * 50)
    table = jsonl(tmp_path, {"empty": {}, "deep": deep, "within": [{"a": {}}], "fine": {"a": [1]}})
    assert written_arrow(table, {}).to_pylist() == [
        {"empty": "{}", "deep": "[" * 50 + "]" * 50, "within": '[{"a": {}}]', "fine": {"a": [1]}}
    ]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet"])
def test_require_writable_refuses_two_columns_of_one_name(tmp_path, ending):
    pytest.importorskip("pyarrow")
    table = csv(tmp_path, "a,b,a\n1,2,3\n")
    require_writable(table, ".csv")
    with pytest.raises(ColumnConflictError, match=rf"two columns of one name \('a'\), which {ending} cannot hold. Rename one"):
        require_writable(table, ending)


def test_read_parquet_with_two_columns_of_one_name_says_which(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]), tmp_path / "t.parquet")
    with pytest.raises(TableFileError) as caught:
        read_table(tmp_path / "t.parquet")
    assert str(caught.value) == f"Cannot read {tmp_path / 't.parquet'}: it has two columns of one name ('a'). Rename one."


def test_replacing_leaves_the_old_file_when_the_block_fails(tmp_path):
    (tmp_path / "o.csv").write_text("old")
    with pytest.raises(AttributeError), replacing(tmp_path / "o.csv") as stream:
        stream.write(b"new").no_such_thing()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("o.csv", "old")]


def test_replacing_full_disk_is_an_error_of_the_file(tmp_path):
    (tmp_path / "full.csv").symlink_to("/dev/full")
    with pytest.raises(TableFileError, match="full.csv: No space left on device"), replacing(tmp_path / "full.csv") as stream:
        stream.write(b"x")
