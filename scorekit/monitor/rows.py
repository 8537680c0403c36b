"""A scored frame as rows of the table of scores, and such rows as a frame."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain, compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.columns import owned_columns, require, score_names
from scorekit.errors import ArgumentTypeError, ColumnConflictError, MissingColumnError, listed
from scorekit.monitor.cells import (
    NAN,
    decode_cells,
    encode_cells,
    escape,
    escape_key,
    object_array,
    plain_column,
    plain_texts,
    typed,
    unescape,
)
from scorekit.monitor.keys import KEYS, as_column, read_keys, times

if TYPE_CHECKING:
    from numpy.typing import NDArray

CELLS: Final = ("input", "output", "context")
PLAIN: Final = ("score", "reason", "error", "judge")
"""The columns of a scorer that are columns of the table, too; its others are step results or prompts."""

Texts = Sequence[str | None]


class EncodedRow(NamedTuple):
    """One result of one scorer as the table keeps it; see `scorekit.monitor.cells` for what the texts are."""

    id: str
    run_id: str
    scorer: str
    scorer_version: str | None
    source: str
    entity_type: str | None
    entity_id: str | None
    trace_id: str | None
    row: str
    position: int
    input: str | None
    output: str | None
    context: str | None
    score: float | None
    reason: str | None
    error: str | None
    judge: str | None
    steps: str | None
    prompts: str | None
    metadata: str | None
    created_at: str


def encode(
    scored: pd.DataFrame,
    *,
    scorers: Sequence[str],
    versions: Mapping[str, str | None],
    input: str = "input",  # noqa: A002  (the column that stands for the table's)
    output: str = "output",
    context: str = "context",
    mappings: Sequence[Mapping[str, Any] | None] | None = None,
) -> list[EncodedRow]:
    """Return the rows of the table that a scored frame makes: one a frame row and scorer, in this order.

    Parameters
    ----------
    scored
        With the key columns that ``ScoreStore.read`` gives (``scorekit.monitor.keys.KEYS``); not changed.
    scorers
        Names.
    versions
        Of the scorers, by name.
    input, output, context
        Columns, each taken where the frame has it.
    mappings
        The metadata, a mapping a row; None takes the columns that no scorer owns.

    Raises
    ------
    MissingColumnError, ColumnConflictError, ArgumentTypeError, OptionRangeError
        When a column is missing or there twice, or a key is no text or too long.
    """
    extra = encode_metadata(scored, (input, output, context), None) if mappings is None else _columns_of(mappings)
    shared = share(scored, read_keys(scored), (input, output, context), extra)
    parts = [encode_scorer(scored, name, versions.get(name), shared, (at, len(scorers))) for at, name in enumerate(scorers)]
    rows = [map(EncodedRow._make, zip(*part.values(), strict=True)) for part in parts]
    return [row for group in zip(*rows, strict=True) for row in group]


Encoded = dict[str, Sequence[Any]]
"""The fields of `EncodedRow` as columns."""


class Shared(NamedTuple):
    """What the rows of all scorers have in common, as columns: keys, cells and metadata as they are stored."""

    keys: Mapping[str, Texts]
    cells: Mapping[str, Texts]
    metadata: Texts


def share(scored: pd.DataFrame, keys: Mapping[str, Texts], cells: Sequence[str], extra: Mapping[str, Texts]) -> Shared:
    """Return what the rows of all scorers have in common.

    Parameters
    ----------
    scored
        The frame.
    keys
        As `scorekit.monitor.keys` gives them.
    cells
        The columns that stand for `CELLS`, each taken where the frame has it.
    extra
        The metadata as encoded columns.
    """
    count = len(scored)
    there = {part: name for part, name in zip(CELLS, cells, strict=True) if name in scored.columns}
    found = {part: encode_cells(_column(scored, there[part])) if part in there else [None] * count for part in CELLS}
    return Shared(keys, found, _objects(extra, count))


def encode_scorer(
    scored: pd.DataFrame, scorer: str, version: str | None, shared: Shared, place: tuple[int, int], *, sparse: bool = False
) -> Encoded:
    """Return one scorer's rows as columns.

    Parameters
    ----------
    scored, shared
        The frame, and what its rows have in common.
    scorer, version
        Whose results.
    place
        Which of how many scorers: the positions of their rows take turns.
    sparse
        Leave out rows that say nothing of this scorer (no score, reason or error), as in a frame that was read with scorers of other rows.
    """
    count, keys, name = len(scored), shared.keys, escape(scorer)
    owned = owned_columns(scored, scorer)
    scores = _scores(_column(scored, f"{scorer}_score"))
    texts = {part: plain_texts(scored[f"{scorer}_{part}"]) if f"{scorer}_{part}" in owned else [None] * count for part in PLAIN[1:]}
    fields: dict[str, Texts] = {}
    prompts: dict[str, Texts] = {}
    for column in owned:
        part = column.removeprefix(f"{scorer}_")
        if part not in PLAIN:
            (prompts if part.endswith("_prompt") else fields)[part] = encode_cells(_column(scored, column))
    columns: Encoded = {
        "id": [result_id(run, name, row) for run, row in zip(keys["run"], keys["row"], strict=True)],
        "run_id": keys["run"],
        "scorer": [name] * count,
        "scorer_version": [None if version is None else escape(version)] * count,
        **{part: keys[part] for part in ("source", "entity_type", "entity_id", "trace_id", "row")},
        "position": range(place[0], count * place[1], place[1]),
        **shared.cells,
        "score": scores,
        **texts,
        "steps": _objects(fields, count),
        "prompts": _objects(prompts, count),
        "metadata": shared.metadata,
        "created_at": keys["created_at"],
    }
    if not sparse:
        return columns
    says = [any(part is not None for part in parts) for parts in zip(scores, texts["reason"], texts["error"], strict=True)]
    return {column: list(compress(cells, says)) for column, cells in columns.items()}


def _scores(column: pd.Series[Any]) -> list[float | None]:
    """Return a column of scores, None where there is none."""
    try:
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan).tolist()
    except (TypeError, ValueError) as error:
        msg = f"The store keeps scores as numbers, but the column {column.name!r} holds something else: {error}."
        raise ArgumentTypeError(msg) from error
    return [None if number != number else number for number in numbers]  # noqa: PLR0124  (NaN alone differs from itself)


def result_id(run: str | None, scorer: str, row: str | None) -> str:
    """Return the id of a result, from the escaped names of its run, scorer and row; none of them has a NUL."""
    return sha256(f"{run}\0{scorer}\0{row}".encode()).hexdigest()[:32]


def _column(df: pd.DataFrame, name: Any) -> pd.Series[Any]:
    """Return the one column of that name."""
    return require(df, name, "The store")


def encode_metadata(df: pd.DataFrame, cells: Sequence[str], wanted: Sequence[Any] | None) -> dict[str, Texts]:
    """Return the columns that are neither keys nor cells and that no scorer owns, or those that are wanted, encoded."""
    owned = {column for name in score_names(df) for column in owned_columns(df, name)}
    names = list(wanted) if wanted is not None else [name for name in df.columns if name not in (*KEYS, *cells) and name not in owned]
    if missing := [name for name in names if name not in df.columns]:
        raise MissingColumnError.from_columns("metadata=", str(missing[0]), df.columns)
    texts = [str(name) for name in names]
    if twice := sorted({text for text in texts if texts.count(text) > 1}):
        msg = f"The store keeps columns by their names, but the frame has more than one that is called {listed(twice)}. Rename or drop all but one."
        raise ColumnConflictError(msg)
    return {text: encode_cells(_column(df, name)) for text, name in zip(texts, names, strict=True)}


def _columns_of(mappings: Sequence[Mapping[str, Any] | None]) -> dict[str, Texts]:
    """Return mappings as columns of encoded cells."""
    names = dict.fromkeys(str(name) for mapping in mappings for name in mapping or ())
    return {
        name: encode_cells(pd.Series(object_array([(mapping or {}).get(name) for mapping in mappings]), dtype=object)) for name in names
    }


def _objects(columns: Mapping[str, Texts], count: int) -> Texts:
    """Return encoded columns as a JSON object a row, without what is missing; a column that is missing throughout is kept as null."""
    if not columns:
        return [None] * count
    parts = []
    for name, cells in columns.items():
        lead = f"{json.dumps(escape_key(name))}: "
        void = "" if any(cell is not None for cell in cells) else f"{lead}null, "
        parts.append([void if cell is None else f"{lead}{cell}, " for cell in cells])
    return [f"{{{row[:-2]}}}" for row in map("".join, zip(*parts, strict=True))]


SAID: Final = tuple(
    name for name in EncodedRow._fields if name not in ("run_id", "scorer", "scorer_version", "row", "position", "created_at")
)
"""A result's id and what it says, whenever it was said and by which version."""
_JSON: Final = frozenset({*CELLS, "steps", "prompts", "metadata"})
_NO_NUMBER: Final = json.loads(NAN)


def same_result(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Return whether two results, each the columns `SAID`, say the same: 2.0 is 2, and what is missing need not be named."""
    pairs = zip(SAID, first, second, strict=True)
    return all(one == other or (name in _JSON and _meaning(one) == _meaning(other)) for name, one, other in pairs)


def _meaning(text: str | None) -> Any:
    """Return the JSON of a cell, without what is missing; None where nothing is left."""
    value = None if text is None else json.loads(text)
    if not isinstance(value, dict):
        return value
    return {name: item for name, item in value.items() if item is not None and _NO_NUMBER not in (item, value)} or None


READ: Final = (*EncodedRow._fields[1:3], *EncodedRow._fields[4:])
"""What `decode` reads of the table, in this order; ``created_at`` as ISO text or as microseconds since 1970."""
OWN: Final = (*PLAIN, "steps", "prompts")
_CREATED, _POSITION = READ.index("created_at"), READ.index("position")

Columns = Mapping[str, Sequence[Any]]


def decode(rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Return rows of the table, each the columns `READ`, as a frame: a row per run and row, the scorers side by side, ordered by time and position."""
    created = times([row[_CREATED] for row in rows])
    order = np.lexsort((np.fromiter((row[_POSITION] for row in rows), dtype=np.int64, count=len(rows)), created))
    if (np.diff(order) != 1).any():
        rows, created = [rows[place] for place in order.tolist()], created[order]
    columns: Columns = dict(zip(READ, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(READ, ())
    places = _places(columns["run_id"], columns["row"])
    _, first = np.unique(places, return_index=True)
    total = len(first)
    frame: dict[str, pd.Series[Any]] = {}
    for name in KEYS[:-1]:
        texts = columns["run_id" if name == "run" else name]
        frame[name] = plain_column(texts if len(texts) == total else [texts[place] for place in first.tolist()])
    frame["created_at"] = as_column(created[first])
    for name in CELLS:
        cells = _filled(columns[name], places, total)
        if name != "context" or any(cell is not None for cell in cells):
            frame[name] = typed(decode_cells(cells))
    extra = _metadata_of(columns["metadata"], places, total)
    scores: dict[str, pd.Series[Any]] = {}
    scorers = np.array(columns["scorer"], dtype=object)
    for scorer in dict.fromkeys(columns["scorer"]):
        mine = np.flatnonzero(scorers == scorer)
        own = columns if len(mine) == len(rows) else {name: itemgetter(*mine, mine[0])(columns[name])[:-1] for name in OWN}
        scores |= _scorer_columns(unescape(scorer), own, places[mine], total)
    for name, column in extra.items():
        frame[f"metadata_{name}" if name in scores or name in frame or name in CELLS else name] = column
    return _framed(frame | scores, total)


def _framed(columns: Mapping[str, pd.Series[Any]], total: int) -> pd.DataFrame:
    """Return columns as a frame; names with lone surrogates are kept as objects, since pandas would hand them to Arrow."""
    frame = pd.DataFrame(dict(enumerate(columns.values())), index=range(total))
    try:
        return frame.set_axis(pd.Index(list(columns)), axis=1)
    except UnicodeEncodeError:
        return frame.set_axis(pd.Index(list(columns), dtype=object), axis=1)


def _places(runs: Sequence[str], rows: Sequence[str]) -> NDArray[np.intp]:
    """Return which frame row each result is of: frame rows are numbered as they appear."""
    pairs = list(zip(runs, rows, strict=True))
    if len(set(pairs)) == len(pairs):
        return np.arange(len(pairs))
    numbers: dict[tuple[str, str], int] = {}
    return np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs], dtype=np.intp)


def _filled(values: Sequence[Any], places: NDArray[np.intp], total: int) -> Sequence[Any]:
    """Return one value a place: the first that is there."""
    if len(values) == total:
        return values
    cells = object_array(values)
    there = np.flatnonzero(cells != None)[::-1]  # noqa: E711  (elementwise)
    found: NDArray[np.object_] = np.full(total, None, dtype=object)
    found[places[there]] = cells[there]  # of several the last one stays, which is the first, since they are turned round
    return list(found)


def _placed(values: Sequence[Any], places: NDArray[np.intp], total: int) -> Sequence[Any]:
    """Return values at their places, None elsewhere."""
    if len(values) == total and (np.diff(places) == 1).all():
        return values
    found: NDArray[np.object_] = np.full(total, None, dtype=object)
    found[places] = object_array(values)
    return list(found)


def _metadata_of(texts: Sequence[Any], places: NDArray[np.intp], total: int) -> dict[str, pd.Series[Any]]:
    """Return the metadata as columns; where the scorers of a row have different ones, the first that has a name counts."""
    firsts = _filled(texts, places, total)
    mappings = decode_cells(firsts)
    if len(texts) > total:
        others = [at for at, place in enumerate(places.tolist()) if texts[at] is not None and texts[at] != firsts[place]]
        for at, mapping in zip(others, decode_cells([texts[at] for at in others]), strict=True):
            place = places[at]
            mappings[place] = _mapping(mapping) | {name: value for name, value in _mapping(mappings[place]).items() if value is not None}
    return columns_of(mappings)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def columns_of(mappings: Sequence[Any]) -> dict[str, pd.Series[Any]]:
    """Return mappings as typed columns, in the order in which their names appear."""
    found: list[dict[str, Any]] = [mapping if type(mapping) is dict else {} for mapping in mappings]
    names = dict.fromkeys(chain.from_iterable(found))
    return {name: typed([mapping.get(name) for mapping in found]) for name in names}


def _scorer_columns(name: str, columns: Columns, places: NDArray[np.intp], total: int) -> dict[str, pd.Series[Any]]:
    """Return one scorer's columns."""
    score = np.full(total, np.nan)
    score[places] = np.array(columns["score"], dtype=np.float64)  # None is NaN
    found = {"score": pd.Series(score)}
    for part in PLAIN[1:]:
        if part != "judge" or any(text is not None for text in columns[part]):
            found[part] = plain_column(_placed(columns[part], places, total))
    for part in ("steps", "prompts"):
        found |= columns_of(_placed(decode_cells(columns[part]), places, total))
    return {f"{name}_{part}": column for part, column in found.items()}
