"""What a side-by-side view shows of a comparison: which pairs its filters leave, their numbers, and one pair with its texts compared word by word."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from cydifflib import SequenceMatcher

from scorekit.analysis.paired import describe_differences
from scorekit.errors import ArgumentTypeError, UnknownOptionError
from scorekit.texts import is_missing, without_surrogates
from scorekit.widgets.rows import CELL_CHARACTERS, LINE_CHARACTERS, Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scorekit.analysis.comparison import Comparison

POINTS: Final = 5_000
"""The scatter draws so many pairs at most, a random choice, and says so."""

SIDES: Final = ("baseline", "variant")
OUTCOMES: Final = ("win", "tie", "loss")
FILTERS: Final = ("brush", "outcome", "text", "vote")
ORDERS: Final = ("losses", "wins", "largest", "frame")
RESAMPLES: Final = 2_000

_WORD = re.compile(r"\s+|\w+|[^\w\s]")


class Pairs:
    """The pairs of one score and one variant of a comparison.

    Parameters
    ----------
    found
        What `compare` returned.
    score, variant
        Which score, and which variant beside the baseline.
    """

    def __init__(self, found: Comparison, score: str, variant: Any) -> None:
        """Pick the pairs that have a difference."""
        self.found, self.score, self.variant = found, score, variant
        rows = found.rows
        chosen = (rows["variant"] == variant).to_numpy(dtype=bool, na_value=False) & rows[f"{score}_delta"].notna().to_numpy()
        self.places = np.flatnonzero(chosen)
        self.rows = rows.iloc[self.places]
        self.baseline, self.scores, self.delta = (self.rows[f"{score}_{part}"].to_numpy(dtype=np.float64) for part in (*SIDES, "delta"))
        self.outcome = self.rows[f"{score}_outcome"].to_numpy(dtype=object)
        everything = np.concatenate([self.baseline, self.scores, [0.0, 1.0]])
        self.low, self.high = float(everything.min()), float(everything.max())

    def __len__(self) -> int:
        """Return how many pairs there are."""
        return len(self.places)

    @cached_property
    def points(self) -> NDArray[np.intp]:
        """The pairs that the scatter draws, by their number."""
        count = len(self)
        return np.arange(count) if count <= POINTS else np.sort(np.random.default_rng(0).permutation(count)[:POINTS])

    @cached_property
    def _folded(self) -> NDArray[np.object_]:
        """The searched texts of each pair, in one and without case."""
        found = np.full(len(self), "", dtype=object)
        for column in ("input", "output_baseline", "output_variant"):
            found = found + "\n" + np.array([_text(cell).casefold() for cell in self.rows[column].astype(object)], dtype=object)
        return found

    @cached_property
    def _frame(self) -> Rows:
        """The frame that was compared, read as the explorer reads it, for statements and steps."""
        return Rows(self.found.frame, scores=list(self.found.scores), by=[], roles={}, who="side_by_side")

    def mask(self, filters: Mapping[str, Any], votes: NDArray[np.object_]) -> NDArray[np.bool_]:
        """Return which pairs the filters leave, by their number."""
        kept = np.ones(len(self), dtype=bool)
        if "brush" in filters:
            low, high, bottom, top = filters["brush"]
            kept &= (self.baseline >= low) & (self.baseline <= high) & (self.scores >= bottom) & (self.scores <= top)
        if "outcome" in filters:
            kept &= self.outcome == filters["outcome"]
        if "vote" in filters:
            kept &= votes == (None if filters["vote"] == "none" else filters["vote"])
        if "text" in filters:
            words = filters["text"].casefold()
            kept &= np.fromiter((words in text for text in self._folded), dtype=bool, count=len(self))
        return kept

    def order(self, order: str) -> NDArray[np.intp]:
        """Return the pairs' numbers in the order of reading."""
        gain = -self.delta if self.found.better[self.score] == "lower" else self.delta
        keys = {"losses": gain, "wins": -gain, "largest": -np.abs(gain)}
        return np.argsort(keys[order], kind="stable") if order in keys else np.arange(len(self))

    def numbers(self, kept: NDArray[np.bool_]) -> dict[str, Any]:
        """Return what the kept pairs say: wins, ties, losses, the mean difference and its interval, made as `compare` makes it."""
        outcomes = self.outcome[kept]
        clusters = None
        if self.found.cluster:
            clusters = self.rows.groupby(list(self.found.cluster), dropna=False, sort=False).ngroup().to_numpy()[kept]
        told = describe_differences(self.delta[kept], clusters, confidence=self.found.confidence, resamples=RESAMPLES)
        return {
            "n": told.n,
            **{f"{name}s" if name != "loss" else "losses": int((outcomes == name).sum()) for name in OUTCOMES},
            "mean": _number(told.mean),
            "low": _number(told.low),
            "high": _number(told.high),
        }

    def line(self, number: int) -> dict[str, Any]:
        """Return a pair as one line of the list."""
        row = self.rows.iloc[number]
        item = " · ".join(without_surrogates(str(self.rows[column].iloc[number])) for column in self.found.item)
        return {
            "position": number,
            "name": item[:LINE_CHARACTERS],
            "baseline": float(self.baseline[number]),
            "variant": float(self.scores[number]),
            "delta": float(self.delta[number]),
            "outcome": str(self.outcome[number]),
            "input": " ".join(_text(row["input"])[: 4 * LINE_CHARACTERS].split())[:LINE_CHARACTERS],
        }

    def detail(self, number: int) -> dict[str, Any]:
        """Return everything about one pair: both outputs with what differs, and every score's result on both sides."""
        row = self.rows.iloc[number]
        outputs = [_text(row[f"output_{side}"]) for side in SIDES]
        results = {side: self._frame.detail(int(row[f"position_{side}"]))["results"] for side in SIDES}
        return {
            **self.line(number),
            "input": _capped(_text(row["input"])),
            "outputs": dict(zip(SIDES, word_diff(*(_capped(text) for text in outputs)), strict=True)),
            "results": results,
        }


def word_diff(first: str, second: str) -> tuple[list[list[Any]], list[list[Any]]]:
    """Return both texts in pieces, each with whether the other text lacks it.

    Examples
    --------
    >>> word_diff("Boil the egg.", "Fry the egg.")
    ([['Boil', True], [' the egg.', False]], [['Fry', True], [' the egg.', False]])
    """
    words = [_WORD.findall(text) for text in (first, second)]
    sides: tuple[list[list[Any]], list[list[Any]]] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        for side, piece in ((sides[0], words[0][a:b]), (sides[1], words[1][c:d])):
            if piece:
                side.append(["".join(piece), kind != "equal"])
    return sides


def checked_filters(filters: Any) -> dict[str, Any]:
    """Return filters that pairs can be filtered by; empty ones left out.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError
        When it is no mapping, names what is not there, or the brush is not four numbers.
    """
    if not isinstance(filters, Mapping):
        raise ArgumentTypeError.from_value("filters", filters, "a dict such as {'outcome': 'loss'}")
    found: dict[str, Any] = {}
    for key, value in filters.items():
        if key not in FILTERS:
            raise UnknownOptionError.from_value("filters", key, FILTERS)
        if value is None or value == "":
            continue
        if key == "outcome" and value not in OUTCOMES:
            raise UnknownOptionError.from_value("filters['outcome']", value, OUTCOMES)
        if key == "brush":
            try:
                low, high, bottom, top = (float(end) for end in value)
            except (TypeError, ValueError) as error:
                raise ArgumentTypeError.from_value(
                    "filters['brush']", value, "four numbers: low and high of the baseline, then of the variant"
                ) from error
            found[key] = [min(low, high), max(low, high), min(bottom, top), max(bottom, top)]
        else:
            found[key] = str(value)
    return found


def _text(value: Any) -> str:
    """Return a cell's text; an empty one where it is missing."""
    return "" if is_missing(value) else without_surrogates(value if isinstance(value, str) else str(value))


def _capped(text: str) -> str:
    """Return a text as far as the view shows it."""
    return text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}\n… {len(text) - CELL_CHARACTERS:,} more characters"


def _number(value: float) -> float | None:
    """Return a number that JSON has; None for NaN."""
    return float(value) if np.isfinite(value) else None
