"""One attached scorer at work: calls as a frame, its columns under the key's name, and rows for the store, whatever the scorer does."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.errors import ScorerDefinitionError, listed
from scorekit.evals.calls import told
from scorekit.monitor.rows import EncodedRow, encode
from scorekit.monitor.versions import own_version
from scorekit.run import Job, unwrapped
from scorekit.scorer import warn_if_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scorekit.monitor.channel import Cell, Channel, Item

CELLS: Final = ("input", "output", "context")
CANCELLED: Final = "The process ended before this was scored."
LOG: Final = logging.getLogger("scorekit.live")


class Scoring:
    """A scorer of a channel, rehearsed: what is wrong with it for every row has been raised.

    Attributes
    ----------
    key, store
        The name of its columns, and where its results go.
    slow
        Whether it asks a judge, or is another's function, which may wait for anything: it gets a lane of its own.
    """

    def __init__(self, channel: Channel, place: int) -> None:
        """Call the scorer on no rows.

        Raises
        ------
        MissingColumnError, JudgeSetupError, ScorerDefinitionError, ArgumentTypeError
            As the scorer itself; also where it writes no score, or several.
        """
        self._channel = channel
        self._attached = channel.scorers[place]
        self.key, self.store = self._attached.key, channel.store
        self._told = False
        self._job = Job.of(self._attached.scorer, {"progress": False})
        empty = pd.DataFrame({name: pd.Series([], dtype=object) for name in CELLS})
        try:
            self._job.rehearse(empty)
        except Exception as error:
            error.add_note(f"scorers[{self.key!r}] was called on a frame without rows, with the columns input, output and context.")
            raise
        scores = self._job.scores
        if len(scores) != 1:
            columns = listed([f"{name}_score" for name in scores])
            msg = f"scorers[{self._attached.key!r}] must write one score, but it writes {columns}. Attach each scorer by itself."
            raise ScorerDefinitionError(msg)
        self._own = scores[0]
        self._blank = self._named(self._job.call(empty)[self._job.columns])
        self.slow = self._job.judged or not self._job.ours
        if self._job.judged and not self._job.has_judge:
            warn_if_local()
        function, _ = unwrapped(self._attached.scorer)
        shipped = str(getattr(function, "__module__", "")).startswith("scorekit.scorers.")
        self._version = self._attached.version or (own_version() if shipped else None)

    def rows(self, items: Sequence[Item]) -> list[EncodedRow]:
        """Return the rows of some calls as the store keeps them, in their order.

        Rows of a batch on which the scorer raises are tried again in halves, so that one bad row costs no other its score.
        """
        frame = pd.DataFrame({name: _cells([getattr(item, name) for item in items]) for name in CELLS})
        good = np.flatnonzero([item.failure is None for item in items])
        parts = self._scored(frame.iloc[good].reset_index(drop=True)) if len(good) else []
        result = pd.concat(parts or [self._blank], ignore_index=True)
        if len(good) < len(items):
            result = result.set_axis(good).reindex(range(len(items)))
            lost = [place for place, item in enumerate(items) if item.failure is not None]
            mark(result, self.key, lost, "target_error", [f"The function raised {items[place].failure}" for place in lost])
        return self._encoded(items, frame, result)

    def cancelled(self, items: Sequence[Item], code: str = "cancelled", why: str = CANCELLED) -> list[EncodedRow]:
        """Return rows without a score for calls that are not scored any more, with their texts, so that they can be scored later."""
        frame = pd.DataFrame({name: _cells([getattr(item, name) for item in items]) for name in CELLS})
        result = self._blank.reindex(range(len(items)))
        mark(result, self.key, range(len(items)), code, [why] * len(items))
        return self._encoded(items, frame, result)

    def _scored(self, frame: pd.DataFrame) -> list[pd.DataFrame]:
        """Return the scorer's columns in parts."""
        try:
            self._job.run(frame)
            result = self._job.result
            if result is not None:
                return [self._named(result)]
        except BaseException as error:  # a scorer that ends its thread, as sys.exit does, would end that of all others
            if not self._told:
                self._told = True
                LOG.warning("The scorer %r of %r raised.", self._attached.key, self._channel.entity_id, exc_info=True)
            if len(frame) == 1:
                row = self._blank.reindex(range(1))
                mark(row, self.key, [0], "scorer_error", [f"The scorer raised {told(error)}"])
                return [row]
        half = len(frame) // 2
        pieces = (frame.iloc[:half], frame.iloc[half:])
        return [part for piece in pieces for part in self._scored(piece.reset_index(drop=True))]

    def _named(self, result: pd.DataFrame) -> pd.DataFrame:
        """Return the scorer's columns under the key's name."""
        key, own = self._attached.key, self._own
        names = [str(column) for column in result.columns]
        named = [key + name.removeprefix(own) if name.startswith(f"{own}_") else f"{key}_{name}" for name in names]
        return completed(result.set_axis(named, axis=1).reset_index(drop=True), key)

    def _encoded(self, items: Sequence[Item], frame: pd.DataFrame, result: pd.DataFrame) -> list[EncodedRow]:
        """Return the rows for the store."""
        channel, key = self._channel, self._attached.key
        keys = pd.DataFrame(
            {
                "run": [item.run for item in items],
                "row": [item.row for item in items],
                "source": "LIVE",
                "entity_type": channel.entity_type,
                "entity_id": channel.entity_id,
                "trace_id": [item.trace for item in items],
            },
            dtype=object,
        )
        created = np.array([item.created for item in items], dtype="datetime64[us]")
        keys["created_at"] = pd.Series(created).dt.tz_localize("UTC")
        kept = frame if frame["context"].notna().any() else frame.drop(columns="context")
        said = [_metadata(item) for item in items]
        return encode(pd.concat([keys, kept, result], axis=1), scorers=[key], versions={key: self._version}, mappings=said)


def completed(result: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a scorer's columns with reasons and errors: another's scorer need not give them, nor say why a row has no score.

    A stored row that says nothing would be taken for one that was never put to the scorer.
    """
    found = result.copy(deep=False)
    for part in ("reason", "error"):
        if f"{name}_{part}" not in found.columns:
            found[f"{name}_{part}"] = pd.Series(pd.NA, index=found.index, dtype="string")
    blank = np.flatnonzero(found[f"{name}_score"].isna() & found[f"{name}_error"].isna())
    if len(blank):
        mark(found, name, blank.tolist(), "not_scorable", ["The scorer gave no score."] * len(blank))
    return found


def mark(result: pd.DataFrame, name: str, places: Sequence[int], code: str, reasons: Sequence[str]) -> None:
    """Set a scorer's error and its reason at some places of its own frame."""
    for part, values in (("error", [code] * len(places)), ("reason", reasons)):
        cells = result[f"{name}_{part}"].astype(object).to_numpy(copy=True)
        cells[list(places)] = values
        result[f"{name}_{part}"] = pd.Series(cells, index=result.index, dtype="string")


def _cells(values: Sequence[Cell]) -> pd.Series[Any]:
    """Return a column of cells; JSON becomes the value that it spells."""
    return pd.Series([_value(value) if isinstance(value, bytes) else value for value in values], dtype=object)


def _metadata(item: Item) -> dict[str, Any] | None:
    """Return a call's metadata."""
    found = None if item.metadata is None else _value(item.metadata)
    return found if found is None or isinstance(found, dict) else {"metadata": found}


def _value(text: bytes) -> Any:
    """Return the value that JSON spells; its text where it is nested too deeply, or a number too long, for this interpreter."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode("ascii")
