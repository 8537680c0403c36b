"""Items and the long frame: every item under every variant or target, one row each, with what tells the rows apart."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from scorekit.columns import joined, require
from scorekit.errors import ArgumentTypeError, ColumnConflictError, listed
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Layout:
    """Which row of the long frame is which item, under which name, and which time.

    Rows of one item are together, in the order of the names, the repeats of a name together.

    Attributes
    ----------
    df
        The items; a row each.
    ids
        What tells items apart, where the frame gets a column ``item`` for it; None where a column of its own does.
    key
        What the names are: ``"variant"`` or ``"target"``; None where there is one without a name, and then the frame keeps its index.
    names
        The names, in order.
    repeats
        How many rows an item has under each name.
    """

    df: pd.DataFrame
    ids: pd.Index[Any] | None
    key: str | None
    names: tuple[str, ...]
    repeats: int = 1

    @property
    def count(self) -> int:
        """How many rows the long frame has."""
        return len(self.df) * len(self.names) * self.repeats

    @property
    def positions(self) -> NDArray[np.intp]:
        """The item of each row, as its position."""
        return np.repeat(np.arange(len(self.df)), len(self.names) * self.repeats)

    def written(self) -> list[str]:
        """Return the columns that tell the rows apart."""
        return [
            *(["item"] if self.ids is not None else []),
            *([self.key] if self.key is not None else []),
            *(["repeat"] if self.repeats > 1 else []),
        ]

    def frame(self) -> pd.DataFrame:
        """Return the long frame: the items' own columns with their dtypes, then those that tell the rows apart."""
        if self.key is None:
            return self.df.copy(deep=False)
        positions = self.positions
        rows = self.df.iloc[positions].reset_index(drop=True)
        added: dict[str, Any] = {}
        if self.ids is not None:
            added["item"] = self.ids.take(positions).to_series(index=rows.index)
        names = np.tile(np.repeat(np.array(self.names, dtype=object), self.repeats), len(self.df))
        added[self.key] = pd.Series(names, dtype="string")
        if self.repeats > 1:
            added["repeat"] = np.tile(np.arange(self.repeats, dtype=np.int64), len(self.df) * len(self.names))
        return joined(rows, rows, [pd.DataFrame(added, index=rows.index)])

    def refuse_conflicts(self, columns: Sequence[str], who: str) -> None:
        """Raise where the long frame would have two columns of one name.

        Raises
        ------
        ColumnConflictError
            That names them.
        """
        taken = [column for column in [*self.written(), *columns] if column in self.df.columns]
        if not taken:
            return
        hint = " Pass item='item' if that column tells the items apart." if "item" in taken else ""
        msg = f"{who} would write {listed(taken)}, which the frame already has. Rename or drop the column first: df.drop(columns={taken}).{hint}"
        raise ColumnConflictError(msg)


def item_ids(df: pd.DataFrame, item: Hashable | None, who: str) -> pd.Index[Any] | None:
    """Return what tells the items apart where no column does: the index. Check the column, or the index, that is to.

    Raises
    ------
    MissingColumnError
        When there is no such column.
    ArgumentTypeError
        When ids are missing or there twice, or the index has levels.
    """
    if item is not None:
        column = require(df, item, who, "item")
        if column.isna().any():
            msg = f"{who}: item={item!r} tells the items apart, but {int(column.isna().sum())} rows have none."
            raise ArgumentTypeError(msg)
        _refuse_doubles(column, f"item={item!r}", "Pass a column of ids, or leave item= out to take the index.", who)
        return None
    if df.index.nlevels > 1:
        msg = f"{who} numbers items by the index, but this one has {df.index.nlevels} levels. Pass item= with a column of ids, or df.reset_index()."
        raise ArgumentTypeError(msg)
    _refuse_doubles(df.index.to_series(), "the index", "Pass item= with a column of ids, or df.reset_index(drop=True).", who)
    return df.index


def _refuse_doubles(ids: pd.Series[Any], what: str, hint: str, who: str) -> None:
    """Raise where an id is there twice."""
    try:
        distinct = ids.unique()
    except TypeError as error:
        msg = f"{who}: {what} cannot tell items apart: {error}. {hint}"
        raise ArgumentTypeError(msg) from error
    if len(distinct) < len(ids):
        msg = f"{who}: {what} has {listed(ids[ids.duplicated()].unique(), 3)} more than once, so it cannot tell items apart. {hint}"
        raise ArgumentTypeError(msg)


def text_column(values: Iterable[str | None]) -> pd.Series[str]:
    """Return texts as a string column; lone surrogates become U+FFFD, since Arrow and files cannot carry them."""
    column: pd.Series[str] = pd.Series([None if text is None else without_surrogates(text) for text in values], dtype="string")
    return column
