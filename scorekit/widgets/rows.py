"""What a view shows of a scored frame: which rows its filters leave, the bins, one page of rows and one row in full. Plain values out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from scorekit.analysis.summary import column_labels, pick, read_score, select_scores
from scorekit.columns import ERROR_CODES, LOWER_IS_BETTER, owned_columns, require
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError, shown
from scorekit.texts import is_missing, without_surrogates
from scorekit.widgets.marks import COLUMNS

if TYPE_CHECKING:
    from numpy.typing import NDArray

Order = Literal["worst", "random", "informative", "frame"]
ORDERS: Final[tuple[Order, ...]] = ("worst", "random", "informative", "frame")
BINS: Final = 20
PAGE: Final = 25
MOST_GROUPS: Final = 12
"""A column of texts with at most so many values is offered as a filter."""

GROUP_CHARACTERS: Final = 40
"""... and none of these is longer."""

MOST_CHOICES: Final = 1_000
"""A column that is named as a filter has at most so many values: more are no list to choose from."""

LINE_CHARACTERS: Final = 160
CELL_CHARACTERS: Final = 20_000
"""The view shows so many characters of one cell and says how many it leaves out; the frame keeps them all."""

ROLES: Final = ("input", "output", "context")
FILTERS: Final = ("scores", "errors", "groups", "label", "tag", "text", "cell")
PLAIN: Final = frozenset({"score", "reason", "error", "judge"})
"""The parts of a result that have a place of their own in the view; the others are statements, verdicts, step results and prompts."""


@dataclass(frozen=True)
class Scale:
    """Where the bins of one score lie.

    Attributes
    ----------
    name
        The scorer.
    low, high
        The ends: 0 and 1 where all scores lie there, else wide enough for all.
    lower_is_better
        Whether low scores are the good ones.
    """

    name: str
    low: float
    high: float
    lower_is_better: bool

    def bins(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return each score's bin, from 0; -1 where there is no score, or an infinite one."""
        there = np.isfinite(values)
        # Of halves, because the width of a scale from -1e308 to 1e308 is no float.
        share = (np.where(there, values, self.low) / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        # 0.29 * 100 is 28.999...: without the small step a score on the border of two bins could fall into the lower one.
        places = np.floor(share * BINS + 1e-9)
        return np.where(there, np.clip(places, 0, BINS - 1), -1).astype(np.int64)


class Rows:
    """A scored frame as a view reads it.

    Parameters
    ----------
    df
        A scored frame; read, never changed.
    scores
        Names of scorers; None takes all.
    by
        Columns to filter by; None takes columns of texts or booleans with 2 to 12 values.
    roles
        Which columns hold ``input``, ``output`` and ``context``.
    lower_is_better
        Names of the scores that are worse when higher.
    """

    def __init__(
        self,
        df: pd.DataFrame,
        *,
        scores: str | Sequence[str] | None = None,
        by: Hashable | Sequence[Hashable] | None = None,
        roles: Mapping[str, Hashable] | None = None,
        lower_is_better: frozenset[str] = LOWER_IS_BETTER,
        who: str = "explore",
    ) -> None:
        """Read what does not change: the scores, their bins and the columns to filter by."""
        self.df = df
        self._cells = [df.iloc[:, place].array for place in range(df.shape[1])]
        self._place: dict[Hashable, int] = {column: place for place, column in reversed(list(enumerate(df.columns)))}
        self.names = select_scores(df, scores, who)
        if unsendable := [name for name in self.names if without_surrogates(name) != name]:
            raise OptionRangeError.from_value("scores", unsendable[0], "without lone surrogates; rename the column")
        owned = {name: owned_columns(df, name) for name in self.names}
        for column in (column for columns in owned.values() for column in columns):
            require(df, column, who)
        self._parts = {
            name: {column.removeprefix(f"{name}_"): self._place[column] for column in columns} for name, columns in owned.items()
        }
        self.values = {name: read_score(df, name) for name in self.names}
        self.scales = {name: _scale(name, values, name in lower_is_better) for name, values in self.values.items()}
        self.bins = {name: scale.bins(self.values[name]) for name, scale in self.scales.items()}
        self.errors = {name: _as_texts(df.iloc[:, parts["error"]], None) for name, parts in self._parts.items() if "error" in parts}
        self.roles = {role: column for role, column in (roles or {role: role for role in ROLES}).items() if column in self._place}
        shown_apart = {*self.roles.values(), *COLUMNS, *(column for columns in owned.values() for column in columns)}
        self._others = [place for place, column in enumerate(df.columns) if column not in shown_apart]
        labels = column_labels(df, by) if by is not None else self._groupable()
        columns = [pick(df, label, who, "by") for label in labels]
        self.groups = dict(zip(_distinct(labels), (_as_texts(column, "(missing)") for column in columns), strict=True))
        self.choices = {name: list(dict.fromkeys(values.tolist())) for name, values in self.groups.items()}
        if many := [name for name, choices in self.choices.items() if len(choices) > MOST_CHOICES]:
            count = len(self.choices[many[0]])
            msg = f"{who}: by={many[0]!r} has {count:,} different values; a filter offers at most {MOST_CHOICES:,}. Make groups of them, or search."
            raise OptionRangeError(msg)

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.df)

    def _groupable(self) -> list[Hashable]:
        """Return the columns that tell few kinds of rows apart."""
        doubled = self.df.columns.duplicated(keep=False)
        return [self.df.columns[place] for place in self._others if not doubled[place] and _tells_groups(self.df.iloc[:, place])]

    @property
    def known_by(self) -> list[pd.Series[Any]]:
        """The columns by which a file knows a row again: those that are read, or all that no scorer and no reader wrote where there are none."""
        places = [self._place[column] for column in self.roles.values()] or self._others
        return [self.df.iloc[:, place] for place in places]

    @cached_property
    def _folded(self) -> NDArray[np.object_]:
        """The searched texts of each row, in one and without case."""
        columns = [column for column in self.known_by if self.roles or pd.api.types.is_string_dtype(column.dtype)]
        if not columns:
            return np.full(len(self.df), "", dtype=object)
        rows = zip(*(column.astype(object) for column in columns), strict=True)
        texts = ("\n".join([cell if isinstance(cell, str) else _text(cell) for cell in row]) for row in rows)
        return np.array([without_surrogates(text).casefold() for text in texts], dtype=object)

    def mask(self, filters: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which rows the filters leave that ask for what is in the frame: ``scores``, ``errors``, ``groups`` and ``text``.

        Parameters
        ----------
        filters
            As `checked_filters` returns them.
        """
        kept = np.ones(len(self.df), dtype=bool)
        for name, (low, high) in filters.get("scores", {}).items():
            kept &= (self.values[name] >= low) & (self.values[name] <= high)
        for name, code in filters.get("errors", {}).items():
            kept &= (self.errors[name] != None) if code == "any" else (self.errors[name] == code)  # noqa: E711  (cell by cell)
        for column, wanted in filters.get("groups", {}).items():
            kept &= self.groups[column] == wanted
        if "text" in filters:
            words = filters["text"].casefold()
            places = np.flatnonzero(kept)  # the search is the slowest filter, so it sees what the others left
            kept[places] = np.fromiter((words in text for text in self._folded[places]), dtype=bool, count=len(places))
        return kept

    def order(self, order: Order, by: str, seed: int = 0) -> NDArray[np.intp]:
        """Return all rows' positions in the order of reading; `scorekit.widgets.explorer.explore` tells what each order is."""
        count = len(self.df)
        if order == "frame":
            return np.arange(count)
        shuffled = np.random.default_rng(seed).permutation(count)
        if order == "random":
            return shuffled
        values, scale = self.values[by], self.scales[by]
        if order == "worst":
            return np.argsort(-values if scale.lower_is_better else values, kind="stable")  # NaN is sorted last
        with np.errstate(over="ignore"):
            from_middle = np.abs(values - (scale.low / 2 + scale.high / 2))
        return np.lexsort((np.argsort(shuffled), from_middle, -self._unsure_share(by), -self._numbers(by, "spread"), np.isnan(values)))

    def _numbers(self, name: str, part: str) -> NDArray[np.float64]:
        """Return a part of a result as numbers, 0 where there is none."""
        column = self.df.iloc[:, self._parts[name][part]] if part in self._parts[name] else None
        if column is None or not pd.api.types.is_numeric_dtype(column.dtype):
            return np.zeros(len(self.df))
        found: NDArray[np.float64] = np.nan_to_num(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return found

    def _unsure_share(self, name: str) -> NDArray[np.float64]:
        """Return the share of each row's verdicts that are unsure."""
        yes, unsure, no = (self._numbers(name, verdict) for verdict in ("yes", "unsure", "no"))
        with np.errstate(over="ignore"):
            share: NDArray[np.float64] = unsure / np.maximum(yes + unsure + no, 1.0)
        return share

    def histograms(self, kept: NDArray[np.bool_]) -> dict[str, dict[str, Any]]:
        """Return each score's counts by bin, of all rows and of the kept ones, with the kept ones' mean and how many have no score."""
        found = {}
        for name, bins in self.bins.items():
            both = kept & (bins >= 0)
            with np.errstate(over="ignore"):
                mean = self.values[name][both].mean() if both.any() else np.nan
            scored = int(both.sum())
            found[name] = {
                "all": self._counts[name],
                "kept": np.bincount(bins[both], minlength=BINS).tolist(),
                "mean": _finite(mean),
                "scored": scored,
                "unscored": int(kept.sum()) - scored,
            }
        return found

    @cached_property
    def _counts(self) -> dict[str, list[int]]:
        """Each score's counts by bin, of all rows."""
        return {name: np.bincount(bins[bins >= 0], minlength=BINS).tolist() for name, bins in self.bins.items()}

    @cached_property
    def error_codes(self) -> dict[str, dict[str, int]]:
        """How many rows have each error code, by scorer, the most frequent first; scorers without errors are left out."""
        counts = {name: Counter(code for code in codes.tolist() if code is not None) for name, codes in self.errors.items()}
        return {name: dict(codes.most_common()) for name, codes in counts.items() if codes}

    def line(self, position: int) -> dict[str, Any]:
        """Return a row as one line of a table: its place, its scores, and how its input and output begin."""
        return {
            "position": position,
            "name": self.row_name(position),
            "scores": {name: _finite(values[position]) for name, values in self.values.items()},
            "errors": {name: codes[position] for name, codes in self.errors.items()},
            "texts": {role: _first_line(self._cell(column, position)) for role, column in self.roles.items() if role != "context"},
        }

    def row_name(self, position: int) -> str:
        """Return what a row is called: its index label."""
        label = self.df.index[position]
        parts = label if isinstance(label, tuple) else (label,)
        return shown(without_surrogates(", ".join(map(str, parts))))

    def detail(self, position: int) -> dict[str, Any]:
        """Return everything about one row: its texts, each scorer's result with statements, verdicts and steps, and its other cells."""
        texts = {role: _capped(self._cell(column, position)) for role, column in self.roles.items()}
        names = _distinct([self.df.columns[place] for place in self._others])
        cells = {name: _capped(self._cells[place][position]) for name, place in zip(names, self._others, strict=True)}
        return {**self.line(position), "texts": texts, "cells": cells, "results": [self._result(name, position) for name in self.names]}

    def _result(self, name: str, position: int) -> dict[str, Any]:
        """Return one scorer's result of a row."""
        parts = {part: self._cells[place][position] for part, place in self._parts[name].items()}
        lists = {part: found for part in ("statements", "results") if (found := _listed(parts.get(part))) is not None}
        others = {without_surrogates(part): _capped(value) for part, value in parts.items() if part not in PLAIN and part not in lists}
        others = {part: value for part, value in others.items() if value is not None}
        return {
            "name": name,
            "lower": self.scales[name].lower_is_better,
            "score": _finite(self.values[name][position]),
            **{part: _capped(parts.get(part)) for part in ("reason", "error", "judge")},
            "statements": _judged(lists.get("statements", []), lists.get("results", [])),
            "steps": {part: value for part, value in others.items() if not part.endswith("_prompt")},
            "prompts": {part.removesuffix("_prompt"): value for part, value in others.items() if part.endswith("_prompt")},
        }

    def _cell(self, column: Hashable, position: int) -> Any:
        """Return a cell of a column that is read."""
        return self._cells[self._place[column]][position]


def checked_filters(filters: Mapping[str, Any], rows: Rows) -> dict[str, Any]:
    """Return filters as they are sent and as `Rows.mask` reads them; empty ones left out.

    Parameters
    ----------
    filters
        Any of ``{"scores": {name: (low, high)}, "errors": {name: code or "any"}, "groups": {column: value}, "label": "fail" or "none",
        "tag": name, "text": words, "cell": (human label, score's label)}``. Whether there is such a label, tag or cell is not checked here.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError
        When a filter is of the wrong kind, or names what is not there.
    """
    found: dict[str, Any] = {}
    for key, value in filters.items():
        if key not in FILTERS:
            raise UnknownOptionError.from_value("filters", key, FILTERS)
        if value is None or (isinstance(value, (str, Mapping)) and not value):
            continue
        if key in ("scores", "errors", "groups"):
            if not isinstance(value, Mapping):
                raise ArgumentTypeError.from_value(f"filters[{key!r}]", value, "a dict")
            found[key] = {str(name): _checked(key, str(name), wanted, rows) for name, wanted in value.items()}
        elif key == "cell":
            if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:  # noqa: PLR2004
                raise ArgumentTypeError.from_value(
                    "filters['cell']", value, "two labels, people's and the score's, such as ('fail', 'pass')"
                )
            found[key] = [str(label) for label in value]
        else:
            found[key] = without_surrogates(str(value))
    return found


def _checked(key: str, name: str, wanted: Any, rows: Rows) -> list[float] | str:
    """Return what one score, error column or group is filtered by."""
    known: Any = {"scores": rows.values, "errors": rows.errors, "groups": rows.groups}[key]
    if name not in known:
        raise UnknownOptionError.from_value(f"filters[{key!r}]", name, known)
    if key == "scores":
        return _span(wanted, rows.scales[name])
    text: str = _kind(wanted, "(missing)")
    choices = rows.choices[name] if key == "groups" else ["any", *dict.fromkeys([*rows.error_codes.get(name, ()), *ERROR_CODES])]
    if text not in choices:
        raise UnknownOptionError.from_value(f"filters[{key!r}][{name!r}]", text, choices)
    return text


def _span(span: Any, scale: Scale) -> list[float]:
    """Return the two ends of a brush, the lower one first; an infinite one becomes the end of the scale, which JSON can carry."""
    try:
        low, high = sorted(float(end) for end in span)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError.from_value("A range of scores", span, "two numbers, such as (0, 0.5)") from error
    if np.isnan(low) or np.isnan(high):
        raise OptionRangeError.from_value("A range of scores", span, "two numbers, such as (0, 0.5)")
    return [scale.low if low == -np.inf else low, scale.high if high == np.inf else high]


def _scale(name: str, values: NDArray[np.float64], lower: bool) -> Scale:  # noqa: FBT001  (private)
    """Return where a score's bins lie."""
    finite = values[np.isfinite(values)]
    low, high = min(0.0, float(finite.min(initial=0.0))), max(1.0, float(finite.max(initial=1.0)))
    return Scale(name, low, high, lower)


def _finite(value: Any) -> float | None:
    """Return a number that JSON can carry; None for NaN and infinities."""
    return float(value) if np.isfinite(value) else None


def _distinct(labels: Sequence[Hashable]) -> list[str]:
    """Return the names of columns as different texts."""
    names: dict[str, None] = {}
    for label in labels:
        plain = name = without_surrogates(str(label))
        number = 1
        while name in names:
            number += 1
            name = f"{plain} ({number})"
        names[name] = None
    return list(names)


def _tells_groups(cells: pd.Series[Any]) -> bool:
    """Return whether a column of texts or booleans has few values, all of them short."""
    if cells.dtype == object:
        plain = pd.api.types.infer_dtype(cells.iloc[:1000], skipna=True) in ("string", "boolean")
    else:
        plain = pd.api.types.is_string_dtype(cells.dtype) or pd.api.types.is_bool_dtype(cells.dtype)
    if not (plain or isinstance(cells.dtype, pd.CategoricalDtype)):
        return False
    try:
        if cells.iloc[:1000].nunique() > MOST_GROUPS or not 1 < cells.nunique() <= MOST_GROUPS:
            return False
    except TypeError:  # lists among the cells
        return False
    return all(len(_text(kind)) <= GROUP_CHARACTERS for kind in cells.dropna().unique())


def _as_texts(column: pd.Series[Any], missing: str | None) -> NDArray[np.object_]:
    """Return the cells of a column to filter by, as texts."""
    cells = column.astype(object).to_numpy(dtype=object)
    found = np.full(len(cells), missing, dtype=object)
    known: dict[str, str] = {}  # a column of few kinds has each of them cleaned once
    for place in np.flatnonzero(column.notna()).tolist():
        cell = cells[place]
        if type(cell) is not str:
            found[place] = _kind(cell, missing)
            continue
        if cell not in known:
            known[cell] = _kind(cell, missing)
        found[place] = known[cell]
    return found


def _kind(cell: Any, missing: Any) -> Any:
    """Return a cell to filter by as a text."""
    return missing if is_missing(cell) else shown(_text(cell))


def _text(value: Any) -> str:
    """Return a cell's text; nested ones as JSON."""
    if isinstance(value, str):
        return without_surrogates(str.__str__(value))
    if is_missing(value):
        return ""
    if isinstance(value, (list, tuple, dict, np.ndarray)):
        with suppress(TypeError, ValueError, RecursionError):
            value = json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, ensure_ascii=False, default=str, indent=1)
    return without_surrogates(str(value))


def _capped(value: Any) -> str | None:
    """Return a cell's text as far as a view shows it; None where it is missing."""
    if is_missing(value):
        return None
    text = value if isinstance(value, str) else _text(value)
    begins = _text(text[:CELL_CHARACTERS])  # cut first: a cell of 10 MB is cleaned as far as it is shown
    more = len(text) - CELL_CHARACTERS
    return begins if more <= 0 else f"{begins}\n… {more:,} more characters"


def _first_line(value: Any) -> str:
    """Return how a text begins, in one line."""
    begins = value[: 4 * LINE_CHARACTERS] if isinstance(value, str) else _text(value)[: 4 * LINE_CHARACTERS]
    text = " ".join(_text(begins).split())
    return text if len(text) <= LINE_CHARACTERS else f"{text[: LINE_CHARACTERS - 1]}…"


def _listed(value: Any) -> list[Any] | None:
    """Return the list that a cell spells in JSON, None where it spells none."""
    if not isinstance(value, str):
        return None
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _judged(statements: list[Any], verdicts: list[Any]) -> list[dict[str, Any]]:
    """Return each statement with its verdict and the verdict's reason; None for what a row that failed half way does not have."""
    found = []
    for text, told in zip_longest(statements, verdicts):
        verdict = told if isinstance(told, dict) else {}
        found.append({"text": _capped(text) or "", "result": _capped(verdict.get("result")), "reason": _capped(verdict.get("reason"))})
    return found
