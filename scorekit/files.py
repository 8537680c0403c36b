"""Tables in files: read so that nothing is coerced, scored, and written back with every other cell as it was."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import numpy as np
import pandas as pd

from scorekit.errors import ColumnConflictError, ScorekitError, UnknownOptionError, listed, shown
from scorekit.texts import is_missing, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import pyarrow as pa

ENDINGS: Final = (".csv", ".jsonl", ".parquet")
CRLF: Final = "\r\n"
MOST_LEVELS: Final = 30
"""Cells that are nested deeper go into Parquet as JSON text: a list takes up to three levels there, and readers stop at 100."""


class TableFileError(ScorekitError, OSError):
    """A file cannot be read as a table, or not be written."""


@dataclass(frozen=True)
class Table:
    """What a file held.

    Attributes
    ----------
    frame
        The rows. CSV: every cell text, an empty one ``""``. JSONL: Python values as JSON spells them, None where a line lacks the key; in
        the columns' names, which pandas encodes, U+FFFD stands for a lone surrogate.
        Parquet: as pandas reads it, but whole numbers with gaps stay whole; the index on a fresh range.
    records
        The lines of a JSONL file.
    arrow
        The table of a Parquet file.
    """

    frame: pd.DataFrame
    records: list[dict[str, Any]] | None = None
    arrow: pa.Table | None = None


def file_ending(path: str | os.PathLike[str]) -> str:
    """Return ``.csv``, ``.jsonl`` or ``.parquet``.

    Raises
    ------
    UnknownOptionError
        When the path ends in something else.
    """
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise UnknownOptionError.from_value(f"the ending of {shown(str(path))}", ending, ENDINGS)
    return ending


def read_table(path: str | os.PathLike[str]) -> Table:
    """Return the rows of a CSV, JSONL or Parquet file.

    Raises
    ------
    UnknownOptionError
        When the ending is none of the three.
    TableFileError
        When the file is not there, or is not what its ending says; the message names the line.
    """
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
    reader = readers[file_ending(path)]
    try:
        Path(path).open("rb").close()
        return reader(Path(path))
    except OSError as error:
        if isinstance(error, TableFileError):
            raise
        msg = f"Cannot read {path}: {error.strerror or error}."
        raise TableFileError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"Cannot read {path}: byte {error.start} is not UTF-8. Save the file as UTF-8 and try again."
        raise TableFileError(msg) from error


def require_writable(table: Table, ending: str) -> None:
    """Raise where the rows could not be written: before they are scored, since scores may cost money.

    Raises
    ------
    ColumnConflictError
        When two columns have one name and the file is to be JSONL or Parquet.
    TableFileError
        When the file is to be Parquet and pyarrow is not installed.
    """
    if ending == ".csv":
        return
    if ending == ".parquet":
        _parquet()
    twice = [name for name, count in Counter(table.frame.columns).items() if count > 1]
    if twice:
        msg = f"The file has two columns of one name ({listed(twice)}), which {ending} cannot hold. Rename one, or write a .csv file."
        raise ColumnConflictError(msg)


def write_table(table: Table, scored: pd.DataFrame, written: Collection[str], ending: str, target: IO[bytes]) -> None:
    """Write the scored rows: columns that were in the file as they were, the scorers' columns after them.

    Parameters
    ----------
    table
        What was read.
    scored
        Its frame after scoring: the same rows in the same order.
    written
        The columns that the scorers write: they are taken from ``scored`` even where the file had them. Every other column is the file's.
    ending
        ``.csv``: nested cells become JSON text. ``.jsonl``: a missing score becomes null. ``.parquet``: in columns of mixed kinds
        the cells that are not text become JSON text. A lone surrogate stays as it is in JSONL and becomes U+FFFD in the others.
    target
        An open binary file.

    Raises
    ------
    TableFileError
        When a cell is nested too deeply to be written.
    """
    fresh = [column for column in scored.columns if column in written or column not in table.frame.columns]
    kept = set(scored.columns) - set(fresh)
    writers = {".csv": _write_csv, ".jsonl": _write_jsonl, ".parquet": _write_parquet}
    try:
        writers[ending](table, kept, scored[fresh], target)
    except RecursionError as error:
        msg = "Cannot write the rows: a cell is nested too deeply."
        raise TableFileError(msg) from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file beside ``path`` that takes its place when the block ends well and vanishes when it does not.

    Raises
    ------
    TableFileError
        At once when nothing can be written there.
    """
    final = Path(path).resolve()
    if final.is_dir():
        msg = f"Cannot write {path}: it is a folder."
        raise TableFileError(msg)
    device = final.exists() and not final.is_file()  # a device or a pipe takes what it gets
    beside = final if device else final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        handle = beside.open("wb" if device else "xb")
    except OSError as error:
        msg = f"Cannot write {path}: {error.strerror or error}."
        raise TableFileError(msg) from error
    try:
        yield handle
        try:
            handle.close()
            if not device:
                beside.replace(final)
        except OSError as error:
            msg = f"Cannot write {path}: {error.strerror or error}."
            raise TableFileError(msg) from error
    finally:
        with suppress(OSError):  # on a full disk, closing fails as writing did
            handle.close()
        if not device:
            beside.unlink(missing_ok=True)


def _read_csv(path: Path) -> Table:
    """Read every cell as text. The header is read as a row, so that a doubled name stays doubled and no column becomes an index.

    A blank line is a row with an empty cell where there is one column; where there are more it is none.
    """
    as_text: dict[str, Any] = {"header": None, "dtype": str, "keep_default_na": False, "na_filter": False, "encoding": "utf-8-sig"}
    try:
        cells = pd.read_csv(path, **as_text)
        if cells.shape[1] == 1:
            lines = pd.read_csv(path, **as_text, names=[0], skip_blank_lines=False)
            cells = lines.iloc[(lines[0] == cells.iloc[0, 0]).argmax() :]
    except pd.errors.EmptyDataError as error:
        msg = f"Cannot read {path}: it is empty; a CSV begins with a line of column names."
        raise TableFileError(msg) from error
    except pd.errors.ParserError as error:
        msg = f"Cannot read {path} as CSV: {str(error).removeprefix('Error tokenizing data. C error: ').strip()}."
        raise TableFileError(msg) from error
    header = [str(name) for name in cells.iloc[0]]
    return Table(cells.iloc[1:].reset_index(drop=True).set_axis(header, axis=1))


def _read_jsonl(path: Path) -> Table:
    """Read one JSON object a line; nothing is converted."""
    records: list[dict[str, Any]] = []
    with path.open(encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except ValueError as error:
                msg = f"Cannot read {path}: line {number} is not JSON ({error})."
                raise TableFileError(msg) from error
            except RecursionError as error:
                msg = f"Cannot read {path}: line {number} is nested too deeply."
                raise TableFileError(msg) from error
            if not isinstance(record, dict):
                msg = f"Cannot read {path}: line {number} holds a {type(record).__name__}; each line must be an object {{...}}."
                raise TableFileError(msg)
            records.append(record)
    keys = dict.fromkeys(key for record in records for key in record)
    columns = {number: _objects([record.get(key) for record in records]) for number, key in enumerate(keys)}
    frame = pd.DataFrame(columns, index=range(len(records)))
    return Table(frame.set_axis(list(map(without_surrogates, keys)), axis=1), records=records)


def _read_parquet(path: Path) -> Table:
    """Read the table as the file has it."""
    parquet = _parquet()
    import pyarrow as pa

    try:
        with parquet.ParquetFile(path) as file:
            twice = [name for name, count in Counter(file.schema_arrow.names).items() if count > 1]
            if twice:
                msg = f"Cannot read {path}: it has two columns of one name ({listed(twice)}). Rename one."
                raise TableFileError(msg)
            arrow = file.read()
        return Table(arrow.to_pandas(ignore_metadata=True, integer_object_nulls=True), arrow=arrow)
    except pa.ArrowException as error:
        msg = f"Cannot read {path} as Parquet: {shown(' '.join(str(error).split()).rstrip('.'))}."
        raise TableFileError(msg) from error


def _parquet() -> Any:
    """Return pyarrow.parquet, or say how to get it."""
    try:
        from pyarrow import parquet
    except ImportError as error:
        msg = "Parquet files need pyarrow: pip install 'scorekit[parquet]'."
        raise TableFileError(msg) from error
    return parquet


def _objects(values: list[Any]) -> pd.Series[Any]:
    """Return values as they are: lists stay lists, whole numbers with gaps stay whole."""
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return pd.Series(cells, dtype=object)


def _records(table: Table) -> Iterator[Mapping[str, Any]]:
    """Return the file's rows as JSON objects."""
    if table.records is not None:
        return iter(table.records)
    if table.arrow is not None:
        return iter(table.arrow.to_pylist())
    return iter(cast("list[dict[str, Any]]", table.frame.to_dict("records")))


def _json_line(line: Mapping[str, Any]) -> str:
    """Return one line; with lone surrogates, which UTF-8 cannot carry, in ASCII."""
    text = json.dumps(line, ensure_ascii=False, default=str)
    return (text if text.isascii() or text.encode(errors="ignore").decode() == text else json.dumps(line, default=str)) + "\n"


def _json_value(value: Any) -> Any:
    """Return a result cell as JSON has it: null for a missing one."""
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value.item() if isinstance(value, np.generic) else value


class _CsvLines(io.TextIOBase):
    """Takes rows that end in CR LF, so that a cell with either is quoted, and writes them with LF, as UTF-8."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target

    def write(self, row: str) -> int:
        """Write one row."""
        return self._target.write(f"{without_surrogates(row.removesuffix(CRLF))}\n".encode())


def _write_csv(table: Table, kept: set[str], results: pd.DataFrame, target: IO[bytes]) -> None:
    """Write the file's own columns, nested cells as JSON text, and the results after them."""
    places = [place for place, column in enumerate(table.frame.columns) if column in kept]
    columns = [_flat(_own_column(table, place)) for place in places] + [results[column] for column in results.columns]
    lines = _CsvLines(target)
    csv.writer(lines, lineterminator=CRLF).writerow([*(table.frame.columns[place] for place in places), *results.columns])
    pd.DataFrame(dict(enumerate(columns))).to_csv(lines, index=False, header=False, lineterminator=CRLF)


def _own_column(table: Table, place: int) -> pd.Series[Any]:
    """Return a column of the file; nested cells of a Parquet file as Python values, since pandas would make whole numbers with gaps floats."""
    if table.arrow is not None and table.arrow.column(place).type.num_fields:
        return _objects(table.arrow.column(place).to_pylist())
    column: pd.Series[Any] = table.frame.iloc[:, place]
    return column


def _flat(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column with lists and objects as JSON text."""
    if not pd.api.types.is_object_dtype(column.dtype):
        return column
    nested = (list, dict)
    return _objects([json.dumps(cell, ensure_ascii=False, default=str) if isinstance(cell, nested) else cell for cell in column.tolist()])


def _write_jsonl(table: Table, kept: set[str], results: pd.DataFrame, target: IO[bytes]) -> None:
    """Write each row's own keys and the results after them."""
    gone = set(table.frame.columns) - kept
    added = {str(column): list(map(_json_value, results[column].tolist())) for column in results.columns}
    for place, record in enumerate(_records(table)):
        line = {key: value for key, value in record.items() if key not in gone}
        line |= {column: values[place] for column, values in added.items()}
        target.write(_json_line(line).encode())


def _write_parquet(table: Table, kept: set[str], results: pd.DataFrame, target: IO[bytes]) -> None:
    """Write the file's own columns as they were and the results after them."""
    parquet = _parquet()
    import pyarrow as pa

    own = [column for column in table.frame.columns if column in kept]
    added = {column: _result_column(results[column]) for column in results.columns}
    if table.arrow is not None:
        arrow = table.arrow.select(own)
        for column, array in added.items():
            arrow = arrow.append_column(column, array)
    elif table.records is not None:
        arrow = pa.table({column: _arrow_column(table.frame[column].tolist()) for column in own} | added)
    else:
        arrow = pa.table({column: pa.array(table.frame[column].tolist(), type=pa.string()) for column in own} | added)
    parquet.write_table(arrow, target)


def _result_column(cells: pd.Series[Any]) -> pa.Array:
    """Return a result column as an arrow array: floats, or texts with null where one is missing, also where all are."""
    import pyarrow as pa

    if pd.api.types.is_numeric_dtype(cells.dtype):
        return pa.array(cells, from_pandas=True)
    values = [None if is_missing(cell) else cell for cell in cells.tolist()]
    if all(value is None or isinstance(value, str) for value in values):
        return pa.array([value and without_surrogates(value) for value in values], type=pa.string())
    return _arrow_column(values)  # of an earlier run: this one did not come so far


def _arrow_column(values: list[Any]) -> pa.Array:
    """Return values as an arrow array; as JSON text where their kinds do not go together, or where Parquet cannot nest them."""
    import pyarrow as pa

    try:
        array = pa.array(values)
        if _fits_parquet(array.type):
            return array
    except UnicodeEncodeError:
        return _arrow_column([_encodable(value) for value in values])
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        pass
    texts = [value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    return pa.array([text and without_surrogates(text) for text in texts], type=pa.string())


def _fits_parquet(kind: pa.DataType, level: int = 0) -> bool:
    """Return whether Parquet can hold a type: it has no objects without keys, and what is nested too deeply is not read again."""
    import pyarrow as pa

    parts = [kind.field(i).type for i in range(kind.num_fields)]
    return level < MOST_LEVELS and (bool(parts) or not pa.types.is_struct(kind)) and all(_fits_parquet(part, level + 1) for part in parts)


def _encodable(value: Any) -> Any:
    """Return a JSON value without lone surrogates."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value
