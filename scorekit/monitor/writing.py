"""Writing encoded rows: many at once, each id once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from scorekit.errors import StoreError, shown
from scorekit.monitor.cells import unescape
from scorekit.monitor.rows import SAID, Encoded, EncodedRow, same_result
from scorekit.monitor.schema import SCORES, scores_table

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

Existing = Literal["raise", "keep", "replace"]
EXISTING: Final = ("raise", "keep", "replace")

BATCH: Final = 5_000
"""How many rows or ids share a statement."""

HEAVY: Final = 2**24
"""How many characters share a statement, about."""

_TYPES: Final[Mapping[str, str]] = {"position": "bigint", "score": "float8", "created_at": "timestamptz"}
_OFTEN_COMMON: Final = frozenset(
    {"run_id", "scorer", "scorer_version", "source", "entity_type", "entity_id", "trace_id", "judge", "created_at"}
)
_KEEP: Final = "ON CONFLICT (id) DO NOTHING"
_REPLACE: Final = f"ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in EncodedRow._fields[1:])}"


def write(db: Connection, columns: Encoded, existing: Existing) -> int:
    """Insert rows; return how many have an id that was not there.

    Raises
    ------
    StoreError
        Where a row is there with another result, and ``existing`` is ``"raise"``; the transaction is to be rolled back.
    """
    ids = columns["id"]
    if not ids:
        return 0
    known = set(_known(db, ids)) if existing == "replace" else set()
    # The others are NULL by themselves.
    filled = {name: cells for name, cells in columns.items() if cells.count(None) < len(cells)}
    written = _write_postgres(db, filled, existing) if db.dialect.name == "postgresql" else _write_sqlite(db, filled, existing)
    if existing == "replace":
        return len(set(ids) - known)
    if written < len(ids) and existing == "raise":
        _refuse_others(db, columns)
    return written


def _write_sqlite(db: Connection, columns: Encoded, existing: Existing) -> int:
    """Write rows through the driver itself: SQLAlchemy would look at every row."""
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {SCORES} ({', '.join(columns)}) VALUES ({marks}) {_REPLACE if existing == 'replace' else _KEEP}"  # noqa: S608
    cursor = db.connection.cursor()
    try:
        cursor.executemany(statement, cast("Sequence[Any]", zip(*columns.values(), strict=True)))
        return int(cursor.rowcount)
    finally:
        cursor.close()


def _write_postgres(db: Connection, columns: Encoded, existing: Existing) -> int:
    """Write rows as arrays, ordered by id: processes that write the same rows must not wait for each other in a circle.

    The arrays are spelled here, a column at a time: psycopg would go through each cell, which takes three times as long. What all rows have in
    common goes once.
    """
    ids = columns["id"]
    places = range(len(ids)) if existing == "replace" else range(len(ids) - 1, -1, -1)
    once = sorted({ids[place]: place for place in places}.values(), key=ids.__getitem__)  # one statement cannot write a row twice
    common = {name: cells[0] for name, cells in columns.items() if name in _OFTEN_COMMON and cells.count(cells[0]) == len(cells)}
    own = {name: cells for name, cells in columns.items() if name not in common}
    types = {name: _TYPES.get(name, "text") for name in columns}
    picked = ", ".join([f"%s::{types[name]}" for name in common] + ["given.*"])
    arrays = ", ".join(f"%s::{types[name]}[]" for name in own)
    conflict = _REPLACE if existing == "replace" else _KEEP
    statement = f"INSERT INTO {SCORES} ({', '.join([*common, *own])}) SELECT {picked} FROM unnest({arrays}) AS given {conflict}"  # noqa: S608
    written = 0
    for batch in _lighter(once, own):
        take = itemgetter(*batch, batch[0])  # one more, so that there are two at least and it gives a tuple
        parameters = (*common.values(), *(_array(name, take(cells)[:-1]) for name, cells in own.items()))
        written += db.exec_driver_sql(statement, parameters).rowcount
    return written


def _lighter(places: Sequence[int], columns: Encoded) -> Iterator[list[int]]:
    """Cut rows into lists whose texts a statement can carry."""
    weights = np.zeros(len(columns["id"]), dtype=np.int64)
    for cells in columns.values():
        weights += np.fromiter((len(cell) if isinstance(cell, str) else 8 for cell in cells), dtype=np.int64, count=len(cells))
    for batch in batches(places):
        parts = np.cumsum(weights[batch]) // HEAVY
        for part in np.unique(parts):
            yield [batch[at] for at in np.flatnonzero(parts == part)]


def _array(name: str, cells: Sequence[Any]) -> str:
    """Return a column as PostgreSQL spells an array. A cell has no NUL: what begins with one marks the joints, and what is missing."""
    if name in ("position", "score"):
        return f"{{{','.join(['NULL' if cell is None else repr(cell) for cell in cells])}}}"
    body = "\0,".join(["\0N" if cell is None else cell for cell in cells])
    body = body.replace("\\", "\\\\").replace('"', '\\"').replace("\0,", '","')
    return f'{{"{body}"}}'.replace('"\0N"', "NULL")


def _refuse_others(db: Connection, columns: Encoded) -> None:
    """Raise where rows are there with another result."""
    ids = columns["id"]
    query = f"SELECT {', '.join(SAID)} FROM {SCORES}"  # noqa: S608
    others: list[str] = []
    for said in batches(zip(*(columns[name] for name in SAID), strict=True)):
        for among, parameters in _some(db, [row[0] for row in said]):
            there = {row[0]: tuple(row) for row in db.exec_driver_sql(f"{query} WHERE {among}", parameters)}
        others += [row[0] for row in said if row != there[row[0]] and not same_result(row, there[row[0]])]
    if not others:
        return
    run, scorer, row = (shown(unescape(columns[name][ids.index(others[0])])) for name in ("run_id", "scorer", "row"))
    msg = (
        f"{len(others)} of {len(ids)} results are in the store already, with another score, text or metadata; the first is the row {row!r} of {scorer!r} "
        f"in the run {run!r}. Nothing was stored. Pass another run=, or existing='replace' to have the new results, existing='keep' to keep the old."
    )
    raise StoreError(msg)


def _known(db: Connection, ids: Iterable[str]) -> Iterator[str]:
    """Give those ids that are there."""
    for among, parameters in _some(db, ids):
        yield from db.exec_driver_sql(f"SELECT id FROM {SCORES} WHERE {among}", parameters).scalars()  # noqa: S608


def remove(db: Connection, ids: Iterable[str]) -> None:
    """Delete those rows that are there."""
    for among, parameters in _some(db, ids):
        db.exec_driver_sql(f"DELETE FROM {SCORES} WHERE {among}", parameters)  # noqa: S608


def prune(db: Connection, where: Sequence[ColumnElement[bool]]) -> None:
    """Delete the rows that conditions on the time pick, scorer by scorer, since the index begins with the scorer."""
    import sqlalchemy as sa

    table = scores_table()
    db.execute(table.delete().where(table.c.scorer.in_(sa.select(table.c.scorer).distinct()), *where))


def _some(db: Connection, ids: Iterable[str]) -> Iterator[tuple[str, tuple[str]]]:
    """Give conditions that pick rows by id, a batch each, and their parameter."""
    for batch in batches(ids):
        if db.dialect.name == "postgresql":
            yield "id = ANY(%s::text[])", (_array("id", batch),)
        else:
            yield "id IN (SELECT value FROM json_each(?))", (json.dumps(batch),)


def batches(items: Iterable[Any], size: int = BATCH) -> Iterator[list[Any]]:
    """Cut items into lists, of as many as a statement takes unless said otherwise."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def as_columns(rows: Sequence[EncodedRow]) -> Encoded:
    """Return rows as columns."""
    return dict(zip(EncodedRow._fields, zip(*rows, strict=True), strict=True))
