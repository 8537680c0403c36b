"""What is read of the table of scores: filters, rows, runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.monitor.cells import escape, plain_column
from scorekit.monitor.keys import SOURCES, as_column, stamp, times
from scorekit.monitor.rows import READ, EncodedRow
from scorekit.monitor.schema import SCORES, scores_table
from scorekit.monitor.writing import batches

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Select

Names = str | Iterable[str] | None
"""A value of a filter, or several; None lets all pass."""
Time = str | datetime | np.datetime64 | None

FILTERS: Final[Mapping[str, str]] = {
    "scorer": "scorer",
    "run": "run_id",
    "entity": "entity_id",
    "entity_type": "entity_type",
    "source": "source",
    "error": "error",
    "since": "created_at",
    "until": "created_at",
}
"""The filters, and which column each reads."""

Filters = dict[str, list[str]]
"""Filters by name: the values that pass, as the table has them; of ``since`` and ``until`` one time."""


def check_filters(**given: Any) -> Filters:
    """Return those filters that are not None.

    Raises
    ------
    UnknownOptionError, ArgumentTypeError
        When there is no such filter or source, or a value is no text or time.
    """
    found: Filters = {}
    for name, value in given.items():
        if name not in FILTERS:
            raise UnknownOptionError.from_value("a filter", name, FILTERS)
        if value is None:
            continue
        if name in ("since", "until"):
            found[name] = [stamp(value, name)]
            continue
        values = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
        for one in values:
            if not isinstance(one, str):
                raise ArgumentTypeError.from_value(name, one, "a text or a list of texts")
            if name == "source" and one not in SOURCES:
                raise UnknownOptionError.from_value(name, one, SOURCES)
        found[name] = [escape(one) for one in values]
    return found


def check_limit(limit: object) -> None:
    """Raise where a limit is no whole number from 1, nor None."""
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, Integral):
        raise ArgumentTypeError.from_value("limit", limit, "a whole number")
    if limit < 1:
        raise OptionRangeError.from_value("limit", limit, "1 or more")


def clauses(db: Connection, filters: Filters) -> list[ColumnElement[bool]]:
    """Return the conditions that filters make."""
    import sqlalchemy as sa

    table = scores_table()
    found: list[ColumnElement[bool]] = []
    for name, values in filters.items():
        column = table.c[FILTERS[name]]
        if name in ("since", "until"):
            time: ColumnElement[Any] = sa.literal(values[0])
            if db.dialect.name == "postgresql":
                time = sa.cast(time, sa.TIMESTAMP(timezone=True))
            found.append(column >= time if name == "since" else column < time)
        elif len(values) == 1:
            found.append(column == values[0])
        elif db.dialect.name == "postgresql":  # as one parameter: a statement takes some ten thousand
            found.append(column == sa.any_(sa.cast(values, sa.ARRAY(sa.Text))))
        else:
            found.append(column.in_(sa.select(sa.column("value")).select_from(sa.func.json_each(json.dumps(values)).table_valued("value"))))
    return found


def read_rows(db: Connection, where: Sequence[ColumnElement[bool]], limit: int | None = None) -> Sequence[Sequence[Any]]:
    """Return rows as `scorekit.monitor.rows.decode` reads them: all that the conditions pick, or those of the newest frame rows."""
    import sqlalchemy as sa

    columns = [_microseconds(db) if name == "created_at" else scores_table().c[name] for name in READ]
    return db.execute(_newest(sa.select(*columns).where(*where), where, limit)).fetchall()


def read_results(db: Connection, ids: Sequence[str]) -> list[Sequence[Any]]:
    """Return rows by id as `scorekit.monitor.rows.decode` reads them."""
    return [row for batch in batches(ids) for row in read_rows(db, [scores_table().c.id.in_(batch)])]


def errors_of(db: Connection, ids: Sequence[str]) -> dict[str, str | None]:
    """Return the errors of those results that are there, by id."""
    import sqlalchemy as sa

    table = scores_table()
    queries = (sa.select(table.c.id, table.c.error).where(table.c.id.in_(batch)) for batch in batches(ids))
    return {row.id: row.error for query in queries for row in db.execute(query)}


class Picked(NamedTuple):
    """A frame row of the table: its keys as the table has them, where it comes in its time, and the ids of its results."""

    run: str
    row: str
    position: int
    ids: tuple[str, ...]


def pick_rows(db: Connection, where: Sequence[ColumnElement[bool]], limit: int | None) -> list[Picked]:
    """Return the frame rows that conditions pick, ordered by time and position."""
    import sqlalchemy as sa

    table = scores_table()
    query = _newest(sa.select(table.c.run_id, table.c.row, table.c.position, table.c.id).where(*where), where, limit)
    found: dict[tuple[str, str], list[Any]] = {}
    for result in db.execute(query.order_by(table.c.created_at, table.c.position)):
        found.setdefault((result.run_id, result.row), []).append(result)
    return [Picked(run, row, results[0].position, tuple(result.id for result in results)) for (run, row), results in found.items()]


def _newest(query: Select[Any], where: Sequence[ColumnElement[bool]], limit: int | None) -> Select[Any]:
    """Return a query of results that gives those of the newest frame rows alone."""
    import sqlalchemy as sa

    if limit is None:
        return query
    table = scores_table()
    pair = (table.c.run_id, table.c.row)
    order = (sa.func.max(table.c.created_at).desc(), sa.func.max(table.c.position).desc())
    newest = sa.select(*pair).where(*where).group_by(*pair).order_by(*order).limit(limit).subquery()
    return query.join(newest, sa.and_(table.c.run_id == newest.c.run_id, table.c.row == newest.c.row))


def _microseconds(db: Connection) -> ColumnElement[Any]:
    """Return the time of a row: microseconds since 1970 in PostgreSQL, whose driver would make a datetime of each, else the text."""
    import sqlalchemy as sa

    created = scores_table().c.created_at
    return sa.cast(sa.extract("epoch", created) * 1_000_000, sa.BigInteger) if db.dialect.name == "postgresql" else created


def read_first(db: Connection, count: int) -> list[EncodedRow]:
    """Return the first rows in the order of arrival, in PostgreSQL in the order of their times."""
    import sqlalchemy as sa

    table = scores_table()
    sqlite = db.dialect.name == "sqlite"
    order = [sa.text("rowid")] if sqlite else [table.c.created_at, table.c.position, table.c.id]
    rows = [EncodedRow._make(row) for row in db.execute(sa.select(table).order_by(*order).limit(count))]
    return rows if sqlite else [row._replace(created_at=stamp(row.created_at, "created_at")) for row in rows]


def read_count(db: Connection, where: Sequence[ColumnElement[bool]]) -> int:
    """Return how many rows conditions pick."""
    import sqlalchemy as sa

    return int(db.execute(sa.select(sa.func.count()).select_from(scores_table()).where(*where)).scalar_one())


def read_bytes(db: Connection) -> int:
    """Return how much room the rows take, with their indexes."""
    if db.dialect.name == "postgresql":
        return int(db.exec_driver_sql(f"SELECT pg_total_relation_size('{SCORES}')").scalar_one())
    pages, size = (int(db.exec_driver_sql(f"PRAGMA {name}").scalar_one()) for name in ("page_count", "page_size"))
    return pages * size


def read_runs(db: Connection, where: Sequence[ColumnElement[bool]]) -> pd.DataFrame:
    """Return a row per run, of the rows that conditions pick."""
    import sqlalchemy as sa

    table = scores_table()
    groups = [table.c[name] for name in ("run_id", "source", "entity_type", "entity_id", "scorer")]
    created = _microseconds(db)
    counts = (sa.func.count(), sa.func.count(table.c.score), sa.func.min(created), sa.func.max(created))
    parts = db.execute(sa.select(*groups, *counts).where(*where).group_by(*groups)).fetchall()
    different = sa.func.count(table.c.row.distinct()).label("different")
    rows = {row.run_id: row.different for row in db.execute(sa.select(table.c.run_id, different).where(*where).group_by(table.c.run_id))}
    found: dict[str, list[Sequence[Any]]] = {}
    for part in sorted(parts, key=lambda part: (part[7], part[0])):
        found.setdefault(part[0], []).append(part)
    texts = {
        name: [", ".join(sorted({part[at] for part in mine if part[at] is not None})) or None for mine in found.values()]
        for at, name in enumerate(("run", "source", "entity_type", "entity_id", "scorers"))
    }
    columns: dict[str, Any] = {name: plain_column(cells) for name, cells in texts.items()}
    columns["rows"] = np.array([rows[run] for run in found], dtype=np.int64)
    columns["results"] = np.array([sum(part[5] for part in mine) for mine in found.values()], dtype=np.int64)
    columns["unscored"] = np.array([sum(part[5] - part[6] for part in mine) for mine in found.values()], dtype=np.int64)
    columns["first"] = as_column(times([mine[0][7] for mine in found.values()]))
    columns["last"] = as_column(times([max(part[8] for part in mine) for mine in found.values()]))
    return pd.DataFrame(columns)
