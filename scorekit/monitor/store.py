"""ScoreStore: every result of every scorer in one table of a database, SQLite or PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from scorekit.columns import require, require_frame, score_names
from scorekit.errors import (
    SYNONYMS,
    ArgumentTypeError,
    ColumnConflictError,
    MissingColumnError,
    OptionRangeError,
    StoreError,
    UnknownOptionError,
    listed,
    shown,
)
from scorekit.judge.loop import background
from scorekit.monitor.database import Database
from scorekit.monitor.keys import KEYS, LONGEST, make_keys, read_keys, stamp
from scorekit.monitor.places import file_of, hidden, normal_url
from scorekit.monitor.reading import (
    Names,
    Time,
    check_filters,
    check_limit,
    clauses,
    read_bytes,
    read_count,
    read_first,
    read_rows,
    read_runs,
)
from scorekit.monitor.rows import EncodedRow, decode, encode_metadata, encode_scorer, share
from scorekit.monitor.schema import scores_table
from scorekit.monitor.versions import versions_of
from scorekit.monitor.writing import EXISTING, Existing, as_columns, prune, remove, write

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

MOST_DAYS: Final = 36_500
"""The longest time for which rows are kept, where they are not kept for ever: a hundred years, well within the calendar."""

PRUNE_EVERY_S: Final = 3600.0
"""How often rows that are too old are looked for."""


class StoreSize(NamedTuple):
    """How much a store holds: rows of its table, and bytes where the database says."""

    rows: int
    bytes: int | None


@dataclass(frozen=True, repr=False)
class ScoreStore:
    """A database of scores: a value that pickles. The database opens at the first use, once a process; a forked child opens it anew.

    Each result is a row of the table ``scorekit_scores``: a scorer's score, reason, error and step results for a row of a run, beside the input,
    output and context. A run and row have one result of a scorer, so that storing it again after a crash doubles nothing.

    Parameters
    ----------
    url
        A file's path or ``"sqlite:///scores.db"`` (the default, made with access for its owner alone), or
        ``"postgresql://user:password@host/database"`` (``pip install 'scorekit[postgres]'``).
    max_age_days
        Rows that are older are deleted, when the store is opened and at most once an hour when something is stored. None, the default, keeps
        them for ever.

    Raises
    ------
    UnknownOptionError, OptionRangeError, ArgumentTypeError
        When made: another database, one in memory, or a URL that cannot be read.

    Notes
    -----
    Every method raises a `StoreError` where the database cannot be used. An SQLite file is in WAL mode, written through to the disk at each commit,
    and may be used by several threads and processes at once; it must lie on a local disk. A process may fork meanwhile: the child opens the file anew.

    The table can be read by other tools. ``input``, ``output``, ``context``, ``steps``, ``prompts`` and ``metadata`` are ASCII JSON text, so that every
    database keeps every text (``json_extract(output, '$')`` in SQLite, ``output::json #>> '{}'`` in PostgreSQL); in the other texts a backslash, a NUL
    and lone surrogates are backslash escapes. A NaN, an infinity or a time within JSON is a mapping such as ``{"$number": "nan"}``.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> from scorekit import score_text_difference, summarize
    >>> store = ScoreStore(tempfile.mkdtemp() + "/scores.db")
    >>> df = pd.DataFrame({"input": ["I love it.", "No."], "output": ["I love it.", "Yes."]})
    >>> store.append(df.pipe(score_text_difference), run="v1")
    2
    >>> stored = store.read(scorer="text_difference")
    >>> stored[["run", "row", "text_difference_score"]].round(2).values.tolist()
    [['v1', '0', 1.0], ['v1', '1', 0.29]]
    >>> summarize(stored, by="run")["n"].tolist()
    [2]
    """

    url: str = "sqlite:///scores.db"
    max_age_days: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        """Check the kind and the range; nothing is opened."""
        if not isinstance(self.url, (str, os.PathLike)):
            raise ArgumentTypeError.from_value("url", self.url, "a path, or a URL such as 'postgresql://user:password@host/database'")
        object.__setattr__(self, "url", normal_url(os.fsdecode(self.url)))
        age = self.max_age_days
        if age is not None and (isinstance(age, bool) or not isinstance(age, Real)):
            raise ArgumentTypeError.from_value("max_age_days", age, "a number of days, or None")
        if age is not None and not 0 < age <= MOST_DAYS:
            raise OptionRangeError.from_value("max_age_days", age, f"above 0, and at most {MOST_DAYS:,}; None keeps rows for ever")

    def __repr__(self) -> str:
        """Show the place, without a password."""
        age = "" if self.max_age_days is None else f", max_age_days={self.max_age_days}"
        return f"ScoreStore({hidden(self.url)!r}{age})"

    @property
    def path(self) -> Path | None:
        """The SQLite file; None for another database."""
        return file_of(self.url)

    @property
    def name(self) -> str:
        """The store for people: its URL without a password."""
        return hidden(self.url)

    def append(
        self,
        scored: pd.DataFrame,
        /,
        *,
        run: str | None = None,
        scorers: str | Sequence[str] | None = None,
        source: str = "TEST",
        entity_type: str | None = None,
        entity_id: str | None = None,
        trace_id: str | None = None,
        input: str | None = "input",  # noqa: A002  (the column that stands for it)
        output: str | None = "output",
        context: str | None = "context",
        version: str | Mapping[str, str | None] | None = None,
        created_at: Time = None,
        metadata: Sequence[Any] | None = None,
        existing: Existing = "raise",
    ) -> int:
        """Store a scored frame, in one transaction, and return how many results are new.

        Parameters
        ----------
        scored
            A scored frame; not changed. One that `read` gave can be stored again, here or elsewhere: its keys are in its columns then, and what is
            given here (``source`` aside) stands for a column.
        run
            A name for these rows together, such as ``"v2"``; at most 512 characters, as the next ones.
        scorers
            Names of scorers; by default every one that has scored the frame.
        source
            ``"TEST"`` or ``"LIVE"``.
        entity_type, entity_id, trace_id
            What was scored (``"agent"``, ``"support bot"``), and the trace that it belongs to.
        input, output, context
            Which columns hold them, each taken where the frame has it; None for none. A frame with a column ``question`` or ``answer`` instead must
            say what it is: what is stored without its texts can neither be read nor scored later.
        version
            Of the scorers: a text, or one by scorer. By default scorekit's own for the measures that it ships.
        created_at
            When the outputs were made: a datetime or ISO text, without a zone UTC. None is now.
        metadata
            Other columns to keep, by default all that no scorer owns; ``[]`` keeps none. They come back as columns.
        existing
            What happens where a run and row have a result of a scorer already. The same result is never stored twice, and no error. Another one
            raises (``"raise"``), is left out (``"keep"``), or takes its place (``"replace"``).

        Returns
        -------
        int
            How many results were not there. A result is a row of the frame and a scorer; the row is known by the text of its index label, and
            labels that are there again get a number, ``"q1#2"``.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError, MissingColumnError, ColumnConflictError
            Before anything is stored: the frame has no scores, no run is given, a column is missing, or has a name that `read` gives to the keys.
        StoreError
            Where there are other results already, or the database cannot be used; nothing is stored then.
        """
        require_frame(scored, "append")
        _check_existing(existing)
        names = _scorers(scored, scorers)
        keyed = [name for name in KEYS if name in scored.columns]
        given = {"run": run, "entity_type": entity_type, "entity_id": entity_id, "trace_id": trace_id, "created_at": created_at}
        if len(keyed) == len(KEYS):
            keys = read_keys(scored, {name: value for name, value in given.items() if value is not None})
        elif keyed:
            msg = f"append: the store has columns {listed(KEYS)} of its own, and the frame has {listed(keyed)} too. Rename them."
            raise ColumnConflictError(msg)
        else:
            keys = make_keys(scored, given | {"source": source})
        cells = _cells(scored, input, output, context)
        shared = share(scored, keys, cells, encode_metadata(scored, cells, metadata))
        versions = versions_of(names, version)
        parts = {
            name: encode_scorer(scored, name, versions[name], shared, (at, len(names)), sparse=bool(keyed)) for at, name in enumerate(names)
        }
        with self.database(stores=True).writing() as db:
            # in an order that all processes share, so that none waits for another in a circle
            return sum(write(db, parts[name], existing) for name in sorted(names))

    def read(
        self,
        *,
        scorer: Names = None,
        run: Names = None,
        entity: Names = None,
        entity_type: Names = None,
        source: Names = None,
        since: Time = None,
        until: Time = None,
        error: Names = None,
        limit: int | None = None,
    ) -> pd.DataFrame:
        """Return what is stored as a scored frame.

        Parameters
        ----------
        scorer, run, entity, entity_type, source, error
            Results of these alone; each a text or several. ``entity`` is the entity's id, ``error`` a code such as ``"judge_timeout"``.
        since, until
            ``since <= created_at < until``: datetimes or ISO texts, without a zone UTC.
        limit
            The newest rows alone, so many.

        Returns
        -------
        pandas.DataFrame
            A row per run and row, the scorers side by side, ordered by time, on a fresh index: ``run``, ``row``, ``source``, ``entity_type``,
            ``entity_id``, ``trace_id`` (string), ``created_at`` (datetime64[us, UTC]), ``input``, ``output``, ``context`` (where any row has one),
            the metadata, then the columns of each scorer as it wrote them: ``<name>_score`` (float64), ``<name>_reason``, ``<name>_error``
            (string), ``<name>_judge`` where any was judged, its fields and prompts. Texts are string, numbers float64 or int64, yes and no bool;
            Int64 and boolean where rows lack them; cells of several kinds, or lists, object.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError
            When a filter is no text or time, or the limit is below 1.
        StoreError
            Where the database cannot be used.
        """
        filters = check_filters(
            scorer=scorer, run=run, entity=entity, entity_type=entity_type, source=source, since=since, until=until, error=error
        )
        check_limit(limit)
        with self.database().reading() as db:
            rows = read_rows(db, clauses(db, filters), limit)
        return decode(rows)

    def runs(self, **filters: Any) -> pd.DataFrame:
        """Return what runs there are.

        Parameters
        ----------
        **filters
            As in `read`: of rows that pass them.

        Returns
        -------
        pandas.DataFrame
            A row per run, in the order of their first results: ``run``, ``source``, ``entity_type``, ``entity_id``, ``scorers`` (string; several are
            joined by ``", "``), ``rows`` (int64: as many as `read` gives), ``results`` (int64: one a row and scorer), ``unscored`` (int64: results
            without a score), ``first``, ``last`` (datetime64[us, UTC]).

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError
            When there is no such filter, or it is no text or time.
        StoreError
            Where the database cannot be used.
        """
        checked = check_filters(**filters)
        with self.database().reading() as db:
            return read_runs(db, clauses(db, checked))

    def delete(
        self,
        *,
        scorer: Names = None,
        run: Names = None,
        entity: Names = None,
        entity_type: Names = None,
        source: Names = None,
        since: Time = None,
        until: Time = None,
        error: Names = None,
        everything: bool = False,
    ) -> int:
        """Delete the results that all filters pick, and return how many they were.

        Parameters
        ----------
        scorer, run, entity, entity_type, source, since, until, error
            As in `read`.
        everything
            Needed to delete without any filter.

        Returns
        -------
        int
            Rows of the table: one a frame row and scorer.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError
            When no filter is given, or one is no text or time.
        StoreError
            Where the database cannot be used.
        """
        filters = check_filters(
            scorer=scorer, run=run, entity=entity, entity_type=entity_type, source=source, since=since, until=until, error=error
        )
        if not filters and not everything:
            msg = "delete needs a filter, such as run='v1' or until='2026-01-31'; everything=True deletes all results."
            raise ArgumentTypeError(msg)
        with self.database().writing() as db:
            return db.execute(scores_table().delete().where(*clauses(db, filters))).rowcount

    def size(self) -> StoreSize:
        """Return how many results there are, and the bytes of the database that they take.

        Raises
        ------
        StoreError
            Where the database cannot be used.
        """
        count = self.count()
        with self.database().reading() as db:
            return StoreSize(count, read_bytes(db))

    def close(self) -> None:
        """Close this process's connections; the next use opens them again."""
        self._connection().close()

    def insert(self, rows: Sequence[EncodedRow], *, existing: Existing = "raise") -> int:
        """Store encoded rows in one transaction, committed when this returns, and return how many were not there; see `append`.

        Raises
        ------
        StoreError
            As `append` does; nothing is stored then.
        """
        _check_existing(existing)
        if not rows:
            return 0
        with self.database(stores=True).writing() as db:
            return write(db, as_columns(rows), existing)

    def first(self, count: int) -> list[EncodedRow]:
        """Return the rows that arrived first in an SQLite file, in their order; in PostgreSQL the oldest.

        Raises
        ------
        StoreError
            Where the database cannot be used.
        """
        with self.database().reading() as db:
            return read_first(db, count)

    def remove(self, ids: Sequence[str]) -> None:
        """Delete rows by id; ids that are not there are none.

        Raises
        ------
        StoreError
            Where the database cannot be used.
        """
        with self.database().writing() as db:
            remove(db, ids)

    def count(self, **filters: Any) -> int:
        """Return how many results there are: rows of the table, one a frame row and scorer.

        Parameters
        ----------
        **filters
            As in `read`.

        Raises
        ------
        ArgumentTypeError, OptionRangeError, UnknownOptionError
            When there is no such filter, or it is no text or time.
        StoreError
            Where the database cannot be used.
        """
        checked = check_filters(**filters)
        with self.database().reading() as db:
            return read_count(db, clauses(db, checked))

    def database(self, *, stores: bool = False) -> Database:
        """Return the process's connection; delete rows that are too old where it is time to."""
        database = self._connection()
        if self.max_age_days is not None:
            last = database.pruned.get(self.max_age_days)
            if last is None or (stores and time.monotonic() - last > PRUNE_EVERY_S):
                until = stamp(datetime.now(UTC) - timedelta(days=self.max_age_days), "until")
                with contextlib.nullcontext() if stores else contextlib.suppress(StoreError):  # what cannot be written can still be read
                    with database.writing() as db:
                        prune(db, clauses(db, {"until": [until]}))
                    database.pruned[self.max_age_days] = time.monotonic()
        return database

    def _connection(self) -> Database:
        """Return the process's connection."""
        return background("store").keep(("store", self.url), lambda: Database(self.url))


def _cells(scored: pd.DataFrame, input: str | None, output: str | None, context: str | None) -> tuple[str, str, str]:  # noqa: A002
    """Return the columns that hold input, output and context; a name that no column has for one that is left out.

    Raises
    ------
    MissingColumnError
        When a column that was named is not there, or the frame has another name for what it should hold.
    """
    found = []
    for part, column in (("input", input), ("output", output), ("context", context)):
        if column is not None and column not in scored.columns:
            synonyms = [name for name in scored.columns if isinstance(name, str) and name.strip().casefold() in SYNONYMS[part]]
            if column != part or (synonyms and part != "context"):
                error = MissingColumnError.from_columns("append", column, scored.columns, part)
                error.args = (f"{error} Pass {part}=None to store none.",)
                raise error
        found.append(f"\0{part}" if column is None else column)  # no frame has such a column
    return found[0], found[1], found[2]


def _check_existing(existing: object) -> None:
    """Raise where it is not one of its choices."""
    if existing not in EXISTING:
        raise UnknownOptionError.from_value("existing", existing, EXISTING)


def _scorers(scored: pd.DataFrame, wanted: str | Sequence[str] | None) -> list[str]:
    """Return the names of the scorers whose results are to be stored."""
    names = score_names(scored) if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    if not names:
        raise MissingColumnError.from_columns("append", "<scorer>_score", scored.columns)
    for name in names:
        if not isinstance(name, str):
            raise ArgumentTypeError.from_value("scorers", name, "names such as 'relevancy'")
        require(scored, f"{name}_score", "append")
        if len(name) > LONGEST:
            raise OptionRangeError.from_value("scorers", shown(name), f"names of at most {LONGEST} characters")
    return list(dict.fromkeys(names))
