"""What a view shows of a scored frame: which rows its filters leave, the bins, one page of rows and one row in full. Plain values out."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pandas as pd

from scorekit.analysis.summary import column_labels, pick, read_score, select_scores
from scorekit.columns import LOWER_IS_BETTER, owned_columns
from scorekit.errors import ArgumentTypeError, UnknownOptionError, shown
from scorekit.texts import is_missing, without_surrogates

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

LINE_CHARACTERS: Final = 160
CELL_CHARACTERS: Final = 20_000
"""The view shows so many characters of one cell and says how many it leaves out; the frame keeps them all."""

ROLES: Final = ("input", "output", "context")
FILTERS: Final = ("scores", "errors", "groups", "label", "tag", "text", "cell")


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
        """Return each score's bin, from 0; -1 where there is no score."""
        width = (self.high - self.low) / BINS
        there = np.isfinite(values)
        # 0.29 * 100 is 28.999...: without the small step a score on the border of two bins could fall into the lower one.
        places = np.floor((np.where(there, values, self.low) - self.low) / width + 1e-9)
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
        Columns to filter by; None takes columns of texts or booleans with at most 12 values.
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
        self.names = select_scores(df, scores, who)
        self.values = {name: read_score(df, name) for name in self.names}
        self.scales = {name: _scale(name, values, name in lower_is_better) for name, values in self.values.items()}
        self.bins = {name: scale.bins(self.values[name]) for name, scale in self.scales.items()}
        self.roles = {role: column for role, column in (roles or {role: role for role in ROLES}).items() if column in df.columns}
        self._owned = {column for name in self.names for column in owned_columns(df, name)}
        labels = column_labels(df, by) if by is not None else self._groupable()
        self.groups = {str(label): _as_texts(pick(df, label, who, "by")) for label in labels}
        self.errors = {name: df[f"{name}_error"].astype(object) for name in self.names if f"{name}_error" in df.columns}

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.df)

    def _groupable(self) -> list[Hashable]:
        """Return the columns that tell few kinds of rows apart."""
        skipped = {*self._owned, *self.roles.values(), "label", "note", "tags"}
        found: list[Hashable] = []
        for place, column in enumerate(self.df.columns):
            if column in skipped or int((self.df.columns == column).sum()) > 1:
                continue
            cells = self.df.iloc[:, place]
            if cells.dtype == object and pd.api.types.infer_dtype(cells.iloc[:1000], skipna=True) not in ("string", "boolean"):
                continue
            plain = cells.dtype == object or pd.api.types.is_bool_dtype(cells.dtype) or pd.api.types.is_string_dtype(cells.dtype)
            if not (plain or isinstance(cells.dtype, pd.CategoricalDtype)):
                continue
            try:
                count = cells.nunique()
            except TypeError:  # lists among the cells
                continue
            if 1 < count <= MOST_GROUPS and cells.dropna().drop_duplicates().astype(str).str.len().max() <= GROUP_CHARACTERS:
                found.append(column)
        return found

    @cached_property
    def _folded(self) -> NDArray[np.object_]:
        """The searched texts of each row, in one and without case."""
        columns = [self.df[column] for column in self.roles.values()] or [self.df[column] for column in self._texts()]
        found = np.full(len(self.df), "", dtype=object)
        for column in columns:
            found = found + "\n" + np.array([_text(cell).casefold() for cell in column.astype(object)], dtype=object)
        return found

    def _texts(self) -> list[Hashable]:
        """Return the columns of texts that no scorer wrote."""
        return [column for column in self.df.columns if column not in self._owned and pd.api.types.is_string_dtype(self.df[column].dtype)]

    def mask(self, filters: Mapping[str, Any], *, labels: Sequence[str | None], tags: Sequence[tuple[str, ...]]) -> NDArray[np.bool_]:
        """Return which rows the filters leave.

        Parameters
        ----------
        filters
            As `checked_filters` returns them.
        labels, tags
            What is written down about each row.
        """
        kept = np.ones(len(self.df), dtype=bool)
        for name, (low, high) in filters.get("scores", {}).items():
            with np.errstate(invalid="ignore"):
                kept &= (self.values[name] >= low) & (self.values[name] <= high)
        for name, code in filters.get("errors", {}).items():
            cells = self.errors[name]
            kept &= (cells.notna() if code == "any" else cells.eq(code).fillna(False)).to_numpy(dtype=bool)
        for column, wanted in filters.get("groups", {}).items():
            kept &= self.groups[column] == wanted
        if "label" in filters:
            wanted = None if filters["label"] == "none" else filters["label"]
            kept &= np.fromiter((label == wanted for label in labels), dtype=bool, count=len(kept))
        if "tag" in filters:
            kept &= np.fromiter((filters["tag"] in held for held in tags), dtype=bool, count=len(kept))
        if filters.get("text"):
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
        missing = np.isnan(values)
        if order == "worst":
            first = -values if scale.lower_is_better else values
            return np.lexsort((np.arange(count), np.where(missing, np.inf, first)))
        from_middle = np.abs(values - (scale.low + scale.high) / 2)
        spread, unsure = self._numbers(f"{by}_spread"), self._unsure_share(by)
        keys = (np.argsort(shuffled), np.where(missing, np.inf, from_middle), -unsure, -spread)
        return np.lexsort(keys)

    def _numbers(self, column: str) -> NDArray[np.float64]:
        """Return a column of numbers, 0 where the frame has none."""
        if column not in self.df.columns:
            return np.zeros(len(self.df))
        found: NDArray[np.float64] = np.nan_to_num(self.df[column].to_numpy(dtype=np.float64, na_value=np.nan))
        return found

    def _unsure_share(self, name: str) -> NDArray[np.float64]:
        """Return the share of each row's verdicts that are unsure."""
        total: NDArray[np.float64] = sum(
            (self._numbers(f"{name}_{verdict}") for verdict in ("yes", "unsure", "no")), start=np.zeros(len(self.df))
        )
        share: NDArray[np.float64] = self._numbers(f"{name}_unsure") / np.maximum(total, 1.0)
        return share

    def histograms(self, kept: NDArray[np.bool_]) -> dict[str, dict[str, Any]]:
        """Return each score's counts by bin, of all rows and of the kept ones, with the kept ones' mean and how many have no score."""
        found = {}
        for name, bins in self.bins.items():
            scored = bins >= 0
            both = scored & kept
            found[name] = {
                "all": np.bincount(bins[scored], minlength=BINS).tolist(),
                "kept": np.bincount(bins[both], minlength=BINS).tolist(),
                "mean": float(self.values[name][both].mean()) if both.any() else None,
                "scored": int(both.sum()),
                "unscored": int(kept.sum() - both.sum()),
            }
        return found

    def error_codes(self) -> dict[str, dict[str, int]]:
        """Return how many rows have each error code, by scorer; scorers without errors are left out."""
        counts = {name: {str(code): int(n) for code, n in cells.dropna().value_counts().items()} for name, cells in self.errors.items()}
        return {name: codes for name, codes in counts.items() if codes}

    def line(self, position: int) -> dict[str, Any]:
        """Return a row as one line of a table: its place, its scores, and how its input and output begin."""
        scores = {name: None if np.isnan(values[position]) else float(values[position]) for name, values in self.values.items()}
        errors = {name: _none_or_text(self.errors[name].iloc[position]) for name in self.errors}
        texts = {role: _first_line(self._cell(column, position)) for role, column in self.roles.items() if role != "context"}
        return {"position": position, "name": self.row_name(position), "scores": scores, "errors": errors, "texts": texts}

    def row_name(self, position: int) -> str:
        """Return what a row is called: its index label."""
        return shown(without_surrogates(str(self.df.index[position])))

    def detail(self, position: int) -> dict[str, Any]:
        """Return everything about one row: its texts, each scorer's result with statements, verdicts and steps, and its other cells."""
        texts = {role: _capped(self._cell(column, position)) for role, column in self.roles.items()}
        others = [column for column in self.df.columns if column not in self._owned and column not in self.roles.values()]
        cells = {str(column): _capped(self._cell(column, position)) for column in others if column not in ("label", "note", "tags")}
        results = [self._result(name, position) for name in self.names]
        return {**self.line(position), "texts": texts, "cells": cells, "results": results}

    def _result(self, name: str, position: int) -> dict[str, Any]:
        """Return one scorer's result of a row."""
        parts = {str(column).removeprefix(f"{name}_"): self._cell(column, position) for column in owned_columns(self.df, name)}
        score = self.values[name][position]
        statements, verdicts = _listed(parts.pop("statements", None)), _listed(parts.pop("results", None))
        prompts = {
            part.removesuffix("_prompt"): _capped(value)
            for part, value in parts.items()
            if part.endswith("_prompt") and not is_missing(value)
        }
        fixed = ("score", "reason", "error", "judge")
        steps = {part: _capped(value) for part, value in parts.items() if part not in fixed and not part.endswith("_prompt")}
        return {
            "name": name,
            "lower": self.scales[name].lower_is_better,
            "score": None if np.isnan(score) else float(score),
            **{part: _none_or_text(parts.get(part)) for part in ("reason", "error", "judge")},
            "statements": _judged(statements, verdicts),
            "steps": {part: value for part, value in steps.items() if value is not None},
            "prompts": prompts,
        }

    def _cell(self, column: Hashable, position: int) -> Any:
        """Return a cell; of columns of one name the first's."""
        place = np.flatnonzero(self.df.columns == column)[0]
        return self.df.iloc[position, int(place)]


def checked_filters(filters: Any, rows: Rows, *, has_matrix: bool = False) -> dict[str, Any]:
    """Return filters that the rows can be filtered by; empty ones left out.

    Parameters
    ----------
    filters
        Any of ``{"scores": {name: (low, high)}, "errors": {name: code or "any"}, "groups": {column: value}, "label": "fail" or "none",
        "tag": name, "text": words, "cell": (judge's label, human's label)}``.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError
        When it is no such mapping, or names what is not there.
    """
    if not isinstance(filters, Mapping):
        raise ArgumentTypeError.from_value("filters", filters, "a dict such as {'scores': {'relevancy': (0, 0.5)}}")
    found: dict[str, Any] = {}
    for key, value in filters.items():
        if key not in FILTERS or (key == "cell" and not has_matrix):
            raise UnknownOptionError.from_value("filters", key, FILTERS)
        if value is None or value in ({}, ""):
            continue
        if key in ("scores", "errors", "groups"):
            known: Any = {"scores": rows.values, "errors": rows.errors, "groups": rows.groups}[key]
            if not isinstance(value, Mapping):
                raise ArgumentTypeError.from_value(f"filters[{key!r}]", value, "a dict")
            for name in value:
                if name not in known:
                    raise UnknownOptionError.from_value(f"filters[{key!r}]", name, known)
            found[key] = {name: _span(wanted) if key == "scores" else str(wanted) for name, wanted in value.items()}
        elif key == "cell":
            found[key] = [str(label) for label in value]
        else:
            found[key] = str(value)
    return found


def _span(span: Any) -> list[float]:
    """Return the two ends of a brush, the lower one first."""
    try:
        low, high = sorted(float(end) for end in span)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError.from_value("A range of scores", span, "two numbers, such as (0, 0.5)") from error
    return [low, high]


def _scale(name: str, values: NDArray[np.float64], lower: bool) -> Scale:  # noqa: FBT001  (private)
    """Return where a score's bins lie."""
    finite = values[np.isfinite(values)]
    low, high = min(0.0, float(finite.min(initial=0.0))), max(1.0, float(finite.max(initial=1.0)))
    return Scale(name, low, high, lower)


def _as_texts(column: pd.Series[Any]) -> NDArray[np.object_]:
    """Return the cells of a column to filter by, as texts."""
    return np.array(["(missing)" if is_missing(cell) else shown(_text(cell)) for cell in column.astype(object)], dtype=object)


def _text(value: Any) -> str:
    """Return a cell's text; nested ones as JSON."""
    if isinstance(value, str):
        return without_surrogates(value)
    if is_missing(value):
        return ""
    if isinstance(value, (list, tuple, dict, np.ndarray)):
        try:
            return without_surrogates(
                json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, ensure_ascii=False, default=str, indent=1)
            )
        except (TypeError, ValueError, RecursionError):
            return without_surrogates(str(value))
    return without_surrogates(str(value))


def _none_or_text(value: Any) -> str | None:
    """Return a cell's text, None where it is missing."""
    return None if is_missing(value) else _capped(value)


def _capped(value: Any) -> str | None:
    """Return a cell's text as far as a view shows it; None where it is missing."""
    if is_missing(value):
        return None
    text = _text(value)
    if len(text) <= CELL_CHARACTERS:
        return text
    return f"{text[:CELL_CHARACTERS]}\n… {len(text) - CELL_CHARACTERS:,} more characters"


def _first_line(value: Any) -> str:
    """Return how a text begins, in one line."""
    text = " ".join(_text(value)[: 4 * LINE_CHARACTERS].split())
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


def _judged(statements: list[Any] | None, verdicts: list[Any] | None) -> list[dict[str, Any]]:
    """Return each statement with its verdict and the verdict's reason; None for what a row that failed half way does not have."""
    texts, told = statements or [], verdicts or []
    found = []
    for place in range(max(len(texts), len(told))):
        verdict = told[place] if place < len(told) and isinstance(told[place], dict) else {}
        text = texts[place] if place < len(texts) else ""
        found.append(
            {"text": _capped(text) or "", "result": _none_or_text(verdict.get("result")), "reason": _none_or_text(verdict.get("reason"))}
        )
    return found
