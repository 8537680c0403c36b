"""A long frame read as pairs: which rows of an item and variant belong together, and which scores meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from scorekit.analysis.statistics import check_real
from scorekit.analysis.summary import Groups, column_labels, group_rows, judge_counts, pick
from scorekit.errors import ArgumentTypeError, ColumnConflictError, OptionRangeError, UnknownOptionError, listed, shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

WHO: Final = "compare"

MOST_VARIANTS: Final = 100
"""More variants than this are taken for a column named by mistake, such as that of the items."""

ROUNDING: Final = 1e-12
"""Scores closer than this share of them are equal: means of the same repeats can differ in the last digit."""

FATES: Final = ("pairs", "missing_baseline", "missing_variant", "unscored_baseline", "unscored_variant", "unscored_both")
"""What becomes of an item in a comparison; every item that either side has is one of these."""


class Arrangement(NamedTuple):
    """A frame by item and variant.

    Attributes
    ----------
    labels
        The variants, in order, with the dtype of their column.
    item, by, cluster
        The names of the columns that were given.
    cell
        Of every row the place of its item and variant in a table of items by variants, row by row; -1 where either is missing.
    rows, first
        That table: how many rows there are, and the position of the first of them (-1 where there is none).
    groups
        The groups of ``by``, with a code per item; their ``first`` is a position in the frame.
    clusters
        The cluster of each item; None where there are none.
    alone
        Whether an item has no cluster, and so is one of its own.
    left_out
        Rows without a variant and, of the others, without an item.
    """

    labels: pd.Series[Any]
    item: list[Hashable]
    by: list[Hashable]
    cluster: list[Hashable]
    cell: NDArray[np.int64]
    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    groups: Groups
    clusters: NDArray[np.int64] | None
    alone: NDArray[np.bool_]
    left_out: dict[str, int]

    def means(self, scores: Floats) -> Floats:
        """Return the mean score of every item and variant, NaN where no row of theirs is scored."""
        there = (self.cell >= 0) & ~np.isnan(scores)
        cells = self.cell[there]
        count = np.bincount(cells, minlength=self.rows.size)
        total = np.bincount(cells, scores[there], self.rows.size)
        found: Floats = np.divide(total, count, out=np.full(self.rows.size, np.nan), where=count > 0).reshape(self.rows.shape)
        return found

    @property
    def keys(self) -> list[Hashable]:
        """Return the names of the columns that belong to an item, each once."""
        return list(dict.fromkeys([*self.item, *self.by, *self.cluster]))

    @property
    def anywhere(self) -> NDArray[np.int64]:
        """Return the position of a row of each item."""
        found: NDArray[np.int64] = self.first[np.arange(len(self.first)), (self.rows > 0).argmax(axis=1)]
        return found

    def meeting(self, baseline: int, variant: int) -> Places:
        """Return the items that either of two variants has."""
        return np.flatnonzero((self.rows[:, baseline] > 0) | (self.rows[:, variant] > 0))


def arrange(df: pd.DataFrame, variant: Hashable, item: object, by: object, cluster: object) -> Arrangement:
    """Return a frame by item and variant.

    Raises
    ------
    MissingColumnError, ColumnConflictError
        When a column is not there, or twice; when one item has several values of ``by`` or ``cluster``.
    ArgumentTypeError, OptionRangeError
        When cells cannot be grouped; when the columns do not name two variants or more, or too many.
    """
    named, items, groups, clusters = (column_labels(df, given) for given in (variant, item, by, cluster))
    for option, given, columns in (("variant", variant, named), ("item", item, items)):
        if not columns or (option == "variant" and len(columns) > 1):
            wanted = "the name of one column" if option == "variant" else "the name of a column, or a list of such names"
            raise OptionRangeError.from_value(option, given, wanted)
    if both := [label for label in items if label in named]:
        msg = f"compare: {listed(both)} is given as the variant and as the item; an item is what all variants answer, such as the question's id."
        raise ColumnConflictError(msg)
    column = pick(df, named[0], WHO, "variant")
    item_columns = [pick(df, label, WHO, "item") for label in items]
    unnamed = column.isna().to_numpy(dtype=bool)
    lost = ~unnamed & np.any([part.isna().to_numpy(dtype=bool) for part in item_columns], axis=0)
    used = np.flatnonzero(~unnamed & ~lost)
    variants = group_rows([column.iloc[used]], len(used))
    labels = column.iloc[used[variants.first]].reset_index(drop=True)
    _check_variants(df, labels, named[0])
    whole = group_rows([part.iloc[used] for part in item_columns], len(used))
    # Items in the order of their first row, whatever the order of their keys.
    order = np.argsort(whole.first, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    codes, total = place[whole.codes], len(order)
    cell = np.full(len(df), -1, dtype=np.int64)
    cell[used] = codes * len(labels) + variants.codes
    rows = np.bincount(cell[used], minlength=total * len(labels)).reshape(total, len(labels)).astype(np.int64)
    first = np.full(rows.size, -1, dtype=np.int64)
    first[cell[used][::-1]] = used[::-1]
    grouped, belonging = (_of_items(df, names, used, codes, option) for names, option in ((groups, "by"), (clusters, "cluster")))
    alone, members = np.zeros(total, dtype=bool), None
    if clusters:
        homes = [pick(df, label, WHO, "cluster") for label in clusters]
        alone[codes] = np.all([part.iloc[used].isna().to_numpy(dtype=bool) for part in homes], axis=0)
        members = np.where(alone, belonging.total + np.arange(total), belonging.codes)
    left_out = {"without a variant": int(unnamed.sum()), "without an item": int(lost.sum())}
    return Arrangement(labels, items, groups, clusters, cell, rows, first.reshape(rows.shape), grouped, members, alone, left_out)


def _check_variants(df: pd.DataFrame, labels: pd.Series[Any], name: Hashable) -> None:
    """Raise where there are not two variants or more, or far too many."""
    if len(labels) > MOST_VARIANTS:
        msg = f"compare: variant={name!r} has {len(labels):,} different values ({MOST_VARIANTS} at most). Are variant= and item= swapped?"
        raise OptionRangeError(msg)
    if len(labels) == 1:
        msg = f"compare needs two variants or more; the column {name!r} has only {shown(str(labels[0]))!r}. Add the rows of another: pd.concat([a, b])."
        raise OptionRangeError(msg)
    if not len(labels):
        msg = f"compare needs two variants or more; none of {len(df):,} rows has both a variant and an item."
        raise OptionRangeError(msg)


def _of_items(df: pd.DataFrame, names: Sequence[Hashable], used: Places, items: NDArray[np.int64], option: str) -> Groups:
    """Return the groups that some columns make of the items, which must have one value each."""
    columns = [pick(df, label, WHO, option).iloc[used] for label in names]
    found = group_rows(columns, len(used))
    _, first = np.unique(items, return_index=True)
    own = found.codes[first]
    if (strange := np.flatnonzero(found.codes != own[items])).size:
        row = int(strange[0])
        there = int(first[items[row]])
        told = " and ".join(repr(shown(", ".join(str(column.iloc[place]) for column in columns))) for place in (there, row))
        msg = (
            f"compare: {option}={', '.join(map(repr, names))} must be the same in all rows of an item, and the item of row {int(used[row])} (counted from 0) "
            f"has {told}. Choose a column that belongs to the item, such as its topic."
        )
        raise ColumnConflictError(msg)
    return Groups(own, used[found.first] if columns else found.first)


def find_baseline(labels: pd.Series[Any], baseline: object) -> int:
    """Return the place of the baseline among the variants: the first where none is given.

    Raises
    ------
    UnknownOptionError
        When there is no such variant.
    """
    if baseline is None:
        return 0
    known = labels.tolist()
    matches = [place for place, label in enumerate(known) if type(label) is type(baseline) and label == baseline]
    matches = matches or [place for place, label in enumerate(known) if _equal(label, baseline)]
    if not matches:
        raise UnknownOptionError.from_value("baseline", baseline, known)
    return matches[0]


def _equal(first: object, second: object) -> bool:
    """Return whether two labels are equal, where comparing them says so in one word."""
    try:
        return bool(first == second)
    except (TypeError, ValueError):
        return False


def fates(rows: NDArray[np.int64], baseline: Floats, variant: Floats) -> NDArray[np.int64]:
    """Return what becomes of each item, as its place in `FATES`.

    Parameters
    ----------
    rows
        A row per item: how many rows the baseline and the variant have.
    baseline, variant
        Their scores.

    Examples
    --------
    >>> fates(np.array([[1, 1], [0, 1], [2, 1]]), np.array([0.5, np.nan, np.nan]), np.array([1.0, 1.0, 0.0])).tolist()
    [0, 1, 3]
    """
    bare, blank = np.isnan(baseline), np.isnan(variant)
    conditions = [rows[:, 0] == 0, rows[:, 1] == 0, bare & blank, bare, blank]
    return np.select(conditions, [1, 2, 5, 3, 4], 0).astype(np.int64)


def differences(baseline: Floats, variant: Floats) -> Floats:
    """Return variant less baseline, 0 where only rounding tells them apart.

    Examples
    --------
    >>> differences(np.array([0.1 + 0.2, 0.5]), np.array([0.3, 1.0])).tolist()
    [0.0, 0.5]
    """
    found = variant - baseline
    found[np.abs(found) <= ROUNDING * np.maximum(np.abs(baseline), np.abs(variant))] = 0.0
    return found


def judges_of(df: pd.DataFrame, name: str, scored: NDArray[np.bool_], *, mixed: bool) -> tuple[str, ...]:
    """Return who gave a scorer's scores, from the column ``<name>_judge`` where there is one.

    Raises
    ------
    ColumnConflictError
        When they are several, unless ``mixed`` allows it.
    """
    column, counts = f"{name}_judge", judge_counts(df, name, scored, WHO)
    names = tuple(map(str, counts.index))
    if len(names) > 1 and not mixed:
        found = ", ".join(f"{shown(judge)!r} ({count:,} rows)" for judge, count in counts.items())
        msg = (
            f"compare: the scores of {name!r} come from {len(names)} judges, {found}: a difference between judges would pass for one between variants. "
            f"Keep one, df[df[{column!r}] == {shown(names[0])!r}], or pass mixed_judges=True."
        )
        raise ColumnConflictError(msg)
    return names


def refuse_infinite(scores: Floats, name: str) -> None:
    """Raise where a score is infinite: no mean of differences holds it."""
    if np.isinf(scores).any():
        msg = f"compare: '{name}_score' holds infinite scores, whose differences have no mean. Replace them, or make them NaN (not scored)."
        raise OptionRangeError(msg)


def is_binary(values: Floats) -> bool:
    """Return whether scores are 0 and one other positive number alone; all 0 or all 1 are too.

    Examples
    --------
    >>> [is_binary(np.array(values)) for values in ([0.0, 100.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.0, 0.5, 1.0])]
    [True, True, False, False]
    """
    there = np.unique(values[~np.isnan(values)])
    more = there[there != 0]
    return bool(len(there)) and len(more) <= 1 and bool((more > 0).all()) and (len(there) > len(more) or more.tolist() == [1.0])


def read_margin(option: str, given: Any, names: Sequence[str]) -> dict[str, float]:
    """Return a number per score from one for all, or from a mapping by score; scores that it does not name get 0.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError, OptionRangeError
        When it is no number, names a score that is not compared, or is below 0 or not finite.
    """
    if not hasattr(given, "items"):
        given = dict.fromkeys(names, given)
    found = {}
    for key, value in given.items():
        if not isinstance(key, str):
            raise ArgumentTypeError.from_value(f"Each name in {option}", key, "a text")
        name = key if key in names else key.removesuffix("_score")
        if name not in names:
            raise UnknownOptionError.from_value(f"{option}: the score", key, names)
        number = check_real(option, value)
        if not 0 <= number < np.inf:
            raise OptionRangeError.from_value(option, value, "0 or more and finite, in units of the score")
        found[name] = number
    return {name: found.get(name, 0.0) for name in names}
