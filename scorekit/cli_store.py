"""``scorekit store``: what a store of scores holds, its rows on the screen or in a file, and old rows removed."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from scorekit.columns import owned_columns, score_names
from scorekit.errors import OptionRangeError, StoreError
from scorekit.files import Table, file_ending, replacing, require_writable, write_table
from scorekit.monitor.store import ScoreStore
from scorekit.monitor.writer import send_spilled, spill_path, waiting_in_spill
from scorekit.terminal import aligned, printable
from scorekit.texts import is_missing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

DEFAULT_STORE: Final = "scores.db"
FILTERS: Final = ("scorer", "run", "entity", "source", "since", "until", "error")
SHORT, REASON = 24, 80
"""How many characters of a name and of a reason a line shows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their arguments."""
    actions = parser.add_subparsers(required=True, metavar="ACTION")

    ls = actions.add_parser("ls", help="list the runs (those of live scoring by function): rows, scorers, what was not scored, and when")
    _add_store(ls)
    _add_filters(ls)
    ls.set_defaults(action=_ls)

    read = actions.add_parser("read", help="print the newest rows: when, run, scores and reasons")
    _add_store(read)
    _add_filters(read)
    read.add_argument("-n", "--rows", type=int, default=20, metavar="N", help="how many rows (default: %(default)s)")
    read.set_defaults(action=_read)

    export = actions.add_parser("export", help="write the rows to a .csv, .jsonl or .parquet file, as a scored frame")
    export.add_argument("out", metavar="OUT", help="the file to write")
    _add_store(export)
    _add_filters(export)
    export.set_defaults(action=_export)

    send = actions.add_parser("send", help="store what live scoring left in the local spill file while the store could not be reached")
    _add_store(send, existing=False)
    send.set_defaults(action=_send)

    prune = actions.add_parser("prune", help="remove old rows")
    prune.add_argument("--older-than", type=float, required=True, metavar="DAYS", help="remove what was created longer ago, such as 90")
    prune.add_argument("--dry-run", action="store_true", help="say how many rows that would be, and remove nothing")
    _add_store(prune)
    _add_filters(prune, left_out=("since", "until"))
    prune.set_defaults(action=_prune)


def run_action(arguments: argparse.Namespace) -> str:
    """Do what was asked and return the text for standard output.

    Raises
    ------
    StoreError
        Where there is no such store, or its database fails.
    """
    action: Callable[[ScoreStore, argparse.Namespace], str] = arguments.action
    store = ScoreStore(arguments.store)
    if arguments.existing:
        _require_file(store)
    return action(store, arguments)


def _add_store(parser: argparse.ArgumentParser, *, existing: bool = True) -> None:
    """Add the option that names the store, which must exist where it is only read."""
    parser.set_defaults(existing=existing)
    parser.add_argument(
        "--store",
        default=os.environ.get("SCOREKIT_STORE", DEFAULT_STORE),
        metavar="URL",
        help=f"a file, or a URL such as postgresql://... (default: SCOREKIT_STORE, else {DEFAULT_STORE})",
    )


def _add_filters(parser: argparse.ArgumentParser, left_out: tuple[str, ...] = ()) -> None:
    """Add the options that pick rows; each may be given several times, times apart."""
    texts = {
        "scorer": "rows of a scorer, such as relevancy",
        "run": "rows of a run",
        "entity": "rows of a function or step, by its name",
        "source": "LIVE or TEST",
        "since": "rows created at this time or later, such as 2026-11-30 or 2026-11-30T12:00+01:00 (without a zone: UTC)",
        "until": "rows created before this time",
        "error": "rows with an error code, such as scorer_error",
    }
    for name, text in texts.items():
        if name not in left_out:
            several: dict[str, Any] = {} if name in ("since", "until") else {"action": "append"}
            parser.add_argument(f"--{name}", dest=f"only_{name}", metavar=name.upper(), help=text, **several)


def _require_file(store: ScoreStore) -> None:
    """Raise where the store is a file that is not there: none is made by looking."""
    if store.path is not None and not store.path.exists():
        waiting = waiting_in_spill(store)
        more = (
            f" {waiting:,} rows of live scoring wait for it: scorekit store send."
            if waiting
            else " Name it with --store, or in SCOREKIT_STORE."
        )
        msg = f"There is no store {str(store.path)!r}.{more}"
        raise StoreError(msg)


def _filters(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the filters that were given."""
    return {name: value for name in FILTERS if (value := getattr(arguments, f"only_{name}", None)) is not None}


def _ls(store: ScoreStore, arguments: argparse.Namespace) -> str:
    """List the runs."""
    runs = store.runs(**_filters(arguments))
    waiting = waiting_in_spill(store)
    note = f"\n{waiting:,} more wait in {spill_path(store)}: scorekit store send." if waiting else ""
    if runs.empty:
        return f"{printable(store.name)} holds no such rows.{note}"
    runs["runs"] = 1
    live = runs["source"].eq("LIVE").fillna(value=False)
    shown = pd.concat([_together(runs[live]), runs[~live]])
    rows = [
        [
            _short(run["run"]) if run["runs"] == 1 else f"{run['runs']:,} runs",
            run["source"],
            _short(run["entity_id"]),
            run["scorers"],
            f"{run['rows']:,}",
            f"{run['results']:,}",
            f"{run['unscored']:,}",
            _time(run["first"]),
            _time(run["last"]),
        ]
        for run in shown.sort_values("first", kind="stable").to_dict("records")
    ]
    names = ["run", "source", "entity", "scorers", "rows", "results", "unscored", "first", "last (UTC)"]
    return aligned(names, rows, right={"rows", "results", "unscored"}) + note


def _send(store: ScoreStore, _: argparse.Namespace) -> str:
    """Store what waits in the spill file."""
    return f"{send_spilled(store):,} rows were waiting in {spill_path(store)}, and are stored now."


def _together(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one line for all live runs of an entity: each call is a run."""
    parts: dict[Any, Any] = {
        "run": "first",
        "runs": "sum",
        "rows": "sum",
        "results": "sum",
        "unscored": "sum",
        "first": "min",
        "last": "max",
        "scorers": _united,
    }
    return runs.groupby(["source", "entity_type", "entity_id"], sort=False, dropna=False).agg(parts).reset_index()


def _united(cells: pd.Series[str]) -> str:
    """Return the names of all lists of names."""
    return ", ".join(sorted({name for cell in cells.unique() for name in cell.split(", ")}))


def _read(store: ScoreStore, arguments: argparse.Namespace) -> str:
    """Print the newest rows, the newest last."""
    if arguments.rows < 1:
        raise OptionRangeError.from_value("--rows", arguments.rows, "1 or more")
    frame = store.read(**_filters(arguments), limit=arguments.rows)
    rows = []
    for row in frame.to_dict("records"):
        for name in score_names(frame):
            score, error, reason = (row[f"{name}_{part}"] for part in ("score", "error", "reason"))
            if is_missing(score) and is_missing(error):
                continue  # another scorer's row
            told = _text(error) if is_missing(score) else f"{score:.3f}"
            rows.append([_time(row["created_at"]), _short(row["run"]), _short(row["entity_id"]), name, told, _text(reason)[:REASON]])
    if not rows:
        return f"{printable(store.name)} holds no such rows."
    return aligned(["created (UTC)", "run", "entity", "scorer", "score", "reason"], rows)


def _export(store: ScoreStore, arguments: argparse.Namespace) -> str:
    """Write the rows to a file."""
    ending = file_ending(arguments.out)
    require_writable(Table(pd.DataFrame()), ending)
    with replacing(arguments.out) as target:
        frame = store.read(**_filters(arguments))
        frame["created_at"] = frame["created_at"].map(lambda time: time.isoformat()).astype(object)
        written = {column for name in score_names(frame) for column in owned_columns(frame, name)}
        own = [column for column in frame.columns if column not in written]
        cells = {str(column): [None if is_missing(cell) else cell for cell in frame[column].astype(object)] for column in own}
        records = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        write_table(Table(pd.DataFrame(cells, dtype=object), records=records), frame, written, ending, target)
    return f"{len(frame):,} rows written to {arguments.out}"


def _prune(store: ScoreStore, arguments: argparse.Namespace) -> str:
    """Remove old rows."""
    if not arguments.older_than > 0:
        raise OptionRangeError.from_value("--older-than", arguments.older_than, "above 0")
    try:
        until = datetime.now(UTC) - timedelta(days=arguments.older_than)
    except OverflowError as error:
        raise OptionRangeError.from_value("--older-than", arguments.older_than, "a number of days that the calendar has") from error
    filters = {**_filters(arguments), "until": until}
    if arguments.dry_run:
        return f"{store.count(**filters):,} results were created before {_time(pd.Timestamp(until))} UTC; nothing was removed."
    return f"{store.delete(**filters):,} results removed, created before {_time(pd.Timestamp(until))} UTC."


def _text(cell: object) -> str:
    """Return a cell as text, an empty one where it is missing."""
    return "" if is_missing(cell) else printable(cell)


def _short(cell: object) -> str:
    """Return a name, cut to what a line has room for."""
    text = _text(cell)
    return text if len(text) <= SHORT else text[: SHORT - 1] + "…"


def _time(moment: pd.Timestamp) -> str:
    """Return a time as a line shows it."""
    return moment.strftime("%Y-%m-%d %H:%M:%S")
