"""The table of scores, and how each version of it is made out of the one before."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from scorekit.monitor.rows import EncodedRow

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table

SCORES: Final = "scorekit_scores"
SCHEMA: Final = "scorekit_schema"


def _version_1(db: Connection) -> None:
    """Make the tables."""
    stamp = "TIMESTAMPTZ" if db.dialect.name == "postgresql" else "TEXT"
    db.exec_driver_sql(f"CREATE TABLE {SCHEMA} (version INTEGER NOT NULL)")
    db.exec_driver_sql(f"INSERT INTO {SCHEMA} VALUES (0)")  # noqa: S608  (a constant)
    db.exec_driver_sql(
        f"CREATE TABLE {SCORES} (id TEXT NOT NULL PRIMARY KEY, run_id TEXT NOT NULL, scorer TEXT NOT NULL, scorer_version TEXT, "
        "source TEXT NOT NULL, entity_type TEXT, entity_id TEXT, trace_id TEXT, row TEXT NOT NULL, position BIGINT NOT NULL, "
        "input TEXT, output TEXT, context TEXT, score DOUBLE PRECISION, reason TEXT, error TEXT, judge TEXT, steps TEXT, prompts TEXT, "
        f"metadata TEXT, created_at {stamp} NOT NULL)"
    )
    db.exec_driver_sql(f"CREATE INDEX {SCORES}_by_scorer ON {SCORES} (scorer, created_at)")
    db.exec_driver_sql(f"CREATE INDEX {SCORES}_by_run ON {SCORES} (run_id)")


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_version_1,)
"""What makes each version of the tables out of the one before. A step is never changed once released; a new version is a new step."""


@cache
def scores_table() -> Table:
    """Return the table of scores as SQLAlchemy knows it."""
    import sqlalchemy as sa

    number: sa.Double[float] = sa.Double()
    types: dict[str, Any] = {"position": sa.BigInteger(), "score": number}
    return sa.Table(SCORES, sa.MetaData(), *(sa.Column(name, types.get(name, sa.Text())) for name in EncodedRow._fields))
