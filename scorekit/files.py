"""Tables in files: read so that nothing is coerced, scored, and written back with every other cell as it was."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

import numpy as np
import pandas as pd

from scorekit.errors import ArgumentTypeError, ScorekitError, UnknownOptionError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

ENDINGS: Final = (".csv", ".jsonl", ".parquet")


class TableFileError(ScorekitError, OSError):
    """A file cannot be read as a table, or not be written."""


@dataclass(frozen=True)
class Table:
    """What a file held.

    Attributes
    ----------
    frame
        The rows. CSV: every cell text, an empty one ``""``. JSONL: Python values as JSON spells them, None where a line lacks the key.
        Parquet: as pandas reads it, the index on a fresh range.
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


def write_table(table: Table, scored: pd.DataFrame, names: Sequence[str], ending: str, target: IO[bytes]) -> None:
    """Write the scored rows: columns that were in the file as they were, the scorers' columns after them.

    Parameters
    ----------
    table
        What was read.
    scored
        Its frame after scoring: the same rows in the same order.
    names
        The scorers, whose columns are taken from ``scored`` even where the file had them.
    ending
        ``.csv``: nested cells become JSON text. ``.jsonl``: a missing score becomes null. ``.parquet``: in columns of mixed kinds
        the cells that are not text become JSON text.
    target
        An open binary file.
    """
    fresh = [c for c in scored.columns if c not in table.frame.columns or str(c).startswith(tuple(f"{name}_" for name in names))]
    if ending == ".csv":
        _flat(scored).to_csv(target, index=False, encoding="utf-8", errors="backslashreplace", lineterminator="\n")
    elif ending == ".jsonl":
        kept = set(scored.columns) - set(fresh)
        added = scored[fresh].astype(object).to_dict("records")
        for old, new in zip(_records(table), added, strict=True):
            line = {key: value for key, value in old.items() if key in kept}
            line |= {str(key): _json_value(value) for key, value in new.items()}
            target.write(_json_line(line).encode())
    else:
        _write_parquet(table, scored, fresh, target)


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
    if final.exists() and not final.is_file():  # a device or a pipe takes what it gets
        with final.open("wb") as stream:
            yield stream
        return
    beside = final.with_name(f".{final.name}.{os.getpid()}.tmp")
    try:
        handle = beside.open("xb")
    except OSError as error:
        msg = f"Cannot write {path}: {error.strerror or error}."
        raise TableFileError(msg) from error
    try:
        with handle:
            yield handle
        beside.replace(final)
    finally:
        beside.unlink(missing_ok=True)


def _read_csv(path: Path) -> Table:
    """Read every cell as text. The header is read as a row, so that a doubled name stays doubled and no column becomes an index."""
    try:
        cells = pd.read_csv(path, header=None, dtype=str, keep_default_na=False, na_filter=False, encoding="utf-8-sig")
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
            if not isinstance(record, dict):
                msg = f"Cannot read {path}: line {number} holds a {type(record).__name__}; each line must be an object {{...}}."
                raise TableFileError(msg)
            records.append(record)
    keys = dict.fromkeys(key for record in records for key in record)
    columns = {key: _objects([record.get(key) for record in records]) for key in keys}
    return Table(pd.DataFrame(columns, index=range(len(records))), records=records)


def _read_parquet(path: Path) -> Table:
    """Read the table as the file has it."""
    parquet = _parquet()
    import pyarrow as pa

    try:
        arrow = parquet.read_table(path)
    except pa.ArrowInvalid as error:
        msg = f"Cannot read {path} as Parquet: {error}."
        raise TableFileError(msg) from error
    return Table(arrow.to_pandas(ignore_metadata=True), arrow=arrow)


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
    if not table.frame.columns.is_unique:
        msg = "The CSV has two columns of one name, which a JSON object cannot have. Rename one, or write CSV."
        raise ArgumentTypeError(msg)
    return iter(cast("list[dict[str, Any]]", table.frame.to_dict("records")))


def _json_line(line: Mapping[str, Any]) -> str:
    """Return one line; with lone surrogates, which UTF-8 cannot carry, in ASCII."""
    text = json.dumps(line, ensure_ascii=False, default=str)
    return (text if text.isascii() or text.encode(errors="ignore").decode() == text else json.dumps(line, default=str)) + "\n"


def _json_value(value: Any) -> Any:
    """Return a result cell as JSON has it: null for a missing one."""
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value.item() if isinstance(value, np.generic) else value


def _flat(df: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with nested cells as JSON text."""
    flat = [df.iloc[:, i].map(_flat_cell) if pd.api.types.is_object_dtype(df.dtypes.iloc[i]) else df.iloc[:, i] for i in range(df.shape[1])]
    return pd.concat(flat, axis=1) if flat else df


def _flat_cell(cell: Any) -> Any:
    """Return JSON text for a list, dict or array."""
    if isinstance(cell, np.ndarray):
        cell = cell.tolist()
    return json.dumps(cell, ensure_ascii=False, default=_array) if isinstance(cell, (list, dict)) else cell


def _array(value: Any) -> Any:
    """Return an array inside a nested cell as a list, anything else as text."""
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)


def _write_parquet(table: Table, scored: pd.DataFrame, fresh: Sequence[str], target: IO[bytes]) -> None:
    """Write the file's own columns as they were and the scorers' after them."""
    parquet = _parquet()
    import pyarrow as pa

    kept = [column for column in scored.columns if column not in fresh]
    if table.arrow is not None:
        arrow = table.arrow.select(kept)
    else:
        arrow = pa.table({column: _arrow_column(table.frame[column].tolist()) for column in kept})
    for column in fresh:
        arrow = arrow.append_column(column, _result_column(scored[column]))
    parquet.write_table(arrow, target)


def _result_column(cells: pd.Series[Any]) -> pa.Array:
    """Return a result column as an arrow array: floats, or texts with null where one is missing."""
    import pyarrow as pa

    if pd.api.types.is_numeric_dtype(cells.dtype):
        return pa.array(cells, from_pandas=True)
    return _arrow_column([None if pd.isna(cell) else cell for cell in cells])


def _arrow_column(values: list[Any]) -> pa.Array:
    """Return values as an arrow array; as JSON text where their kinds do not go together."""
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        texts = [value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
        return pa.array([text if text is None else text.encode(errors="backslashreplace").decode() for text in texts], type=pa.string())
