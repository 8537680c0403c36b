"""What a side-by-side view shows of a comparison: which pairs its filters leave, their numbers, and one pair with its texts compared word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from os.path import commonprefix
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from cydifflib import SequenceMatcher

from scorekit.analysis.paired import SAME, bca_intervals
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.texts import is_missing, without_surrogates
from scorekit.widgets.rows import CELL_CHARACTERS, LINE_CHARACTERS, Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from scorekit.analysis.comparison import Comparison

    Floats = NDArray[np.float64]

POINTS: Final = 5_000
"""The scatter draws so many pairs at most, a random choice, and says so."""

SIDES: Final = ("baseline", "variant")
VOTES: Final = (*SIDES, "tie")
OUTCOMES: Final = ("win", "tie", "loss")
FILTERS: Final = ("brush", "outcome", "text", "vote")
ORDERS: Final = ("losses", "wins", "largest", "frame")
RESAMPLES: Final = 2_000
MOST_MEETINGS: Final = 300_000
"""So many pairs of equal words are looked at in two texts: more, as in 10,000 times "a b", would take minutes or more to line up."""

MANY: Final = 200
"""In texts of so many words, a word that makes up more than a hundredth of them tells nothing of where it belongs, as `difflib` has it."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(rf"\s*(?:[{_CJK}]|[^\W{_CJK}]+|[^\w\s])|\s+")
"""A word with the space before it, so that words stay the landmarks; of scripts without spaces, a character."""

_FRAMES: WeakKeyDictionary[Comparison, Rows] = WeakKeyDictionary()
"""The frames that were compared, as `Rows` reads them: once for all scores and variants."""


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
        self._last: tuple[NDArray[np.bool_], dict[str, Any]] | None = None

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
        columns = [self.rows[column].astype(object) for column in ("input", "output_baseline", "output_variant")]
        texts = ["\n".join([_text(cell) for cell in row]).casefold() for row in zip(*columns, strict=True)]
        return np.array(texts, dtype=object)

    @cached_property
    def _clusters(self) -> NDArray[np.intp] | None:
        """The number of each pair's cluster; a pair without one is a cluster of its own."""
        if not self.found.cluster:
            return None
        columns = [self.rows[column] for column in self.found.cluster]
        codes = self.rows.groupby(columns, dropna=False, observed=True).ngroup().to_numpy(dtype=np.intp)
        alone = np.all([column.isna().to_numpy(dtype=bool) for column in columns], axis=0)
        return np.where(alone, len(self) + np.arange(len(self)), codes)

    @cached_property
    def _shown(self) -> dict[str, NDArray[Any]]:
        """The cells that are shown of each pair, by column: a row of a frame of many dtypes is slow to take out."""
        columns = ("input", *(f"{part}_{side}" for side in SIDES for part in ("output", "rows", "position")))
        return {column: self.rows[column].to_numpy(dtype=object) for column in columns}

    @cached_property
    def _items(self) -> list[NDArray[Any]]:
        """The cells that name each pair's item."""
        return [self.rows[column].to_numpy(dtype=object) for column in self.found.item]

    @property
    def _frame(self) -> Rows:
        """The frame that was compared, read as the explorer reads it, for statements and steps."""
        if self.found not in _FRAMES:
            lower = frozenset(name for name, better in self.found.better.items() if better == "lower")
            scores = list(self.found.scores)
            _FRAMES[self.found] = Rows(self.found.frame, scores=scores, by=[], roles={}, lower_is_better=lower, who="side_by_side")
        return _FRAMES[self.found]

    def mask(self, filters: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return which pairs the filters ``brush``, ``outcome`` and ``text`` leave, by their number."""
        kept = np.ones(len(self), dtype=bool)
        if "brush" in filters:
            low, high, bottom, top = filters["brush"]
            kept &= (self.baseline >= low) & (self.baseline <= high) & (self.scores >= bottom) & (self.scores <= top)
        if "outcome" in filters:
            kept &= self.outcome == filters["outcome"]
        if "text" in filters:
            words = filters["text"].casefold()
            places = np.flatnonzero(kept)  # the search is the slowest filter, so it sees what the others left
            kept[places] = np.fromiter((words in text for text in self._folded[places]), dtype=bool, count=len(places))
        return kept

    def order(self, order: str) -> NDArray[np.intp]:
        """Return the pairs' numbers in the order of reading."""
        gain = -self.delta if self.found.better[self.score] == "lower" else self.delta
        keys = {"losses": gain, "wins": -gain, "largest": -np.abs(gain)}
        return np.argsort(keys[order], kind="stable") if order in keys else np.arange(len(self))

    def numbers(self, kept: NDArray[np.bool_]) -> dict[str, Any]:
        """Return what the kept pairs say: wins, ties, losses, the mean difference and its interval.

        Of all pairs the interval is that of the comparison's summary, which has no row over all groups; of a part, and with groups, it is what
        `scorekit.analysis.paired.describe_differences` makes of ``RESAMPLES`` resamples, without the sign flips that it makes for p.
        """
        if self._last is not None and np.array_equal(self._last[0], kept):
            return self._last[1]  # another order, or a vote
        outcomes, deltas = self.outcome[kept], self.delta[kept]
        if kept.all() and not self.found.by:
            summary = self.found.summary
            own = (summary["score"] == self.score) & (summary["variant"] == self.variant).to_numpy(dtype=bool, na_value=False)
            low, high = summary.loc[own, ["ci_low", "ci_high"]].iloc[0]
        else:
            low, high = self._interval(deltas, None if self._clusters is None else self._clusters[kept])
        told = {
            "n": len(deltas),
            **{f"{name}s" if name != "loss" else "losses": int((outcomes == name).sum()) for name in OUTCOMES},
            "mean": _number(deltas.mean() if len(deltas) and np.ptp(deltas) else deltas[0]) if len(deltas) else None,
            "low": _number(low),
            "high": _number(high),
        }
        self._last = kept, told
        return told

    def _interval(self, deltas: Floats, clusters: NDArray[np.intp] | None) -> tuple[float, float]:
        """Return the interval of a mean difference; NaN where there is none."""
        sums, sizes = deltas, np.ones(len(deltas))
        if clusters is not None:
            units = np.unique(clusters, return_inverse=True)[1]
            sizes = np.bincount(units).astype(np.float64)
            sums = np.bincount(units, deltas, len(sizes)).astype(np.float64)
        means = sums / sizes
        if len(means) < 2 or np.ptp(means) <= SAME * np.abs(means).max():  # noqa: PLR2004
            return float("nan"), float("nan")
        low, high = bca_intervals(sums[:, None], sizes[:, None], confidence=self.found.confidence, resamples=RESAMPLES)[0]
        return float(low), float(high)

    def name(self, number: int) -> str:
        """Return what a pair's item is called."""
        return " · ".join(without_surrogates(str(cells[number])) for cells in self._items)[:LINE_CHARACTERS]

    def line(self, number: int) -> dict[str, Any]:
        """Return a pair as one line of the list."""
        return {
            "position": number,
            "name": self.name(number),
            "baseline": float(self.baseline[number]),
            "variant": float(self.scores[number]),
            "delta": float(self.delta[number]),
            "outcome": str(self.outcome[number]),
            "input": " ".join(_text(self._shown["input"][number])[: 4 * LINE_CHARACTERS].split())[:LINE_CHARACTERS],
        }

    def detail(self, number: int) -> dict[str, Any]:
        """Return everything about one pair: both outputs with what differs, and every score's result on both sides."""
        cells = {column: values[number] for column, values in self._shown.items()}
        outputs = [_capped(_text(cells[f"output_{side}"])) for side in SIDES]
        return {
            **self.line(number),
            "input": _capped(_text(cells["input"])),
            "outputs": dict(zip(SIDES, word_diff(*outputs), strict=True)),
            "results": {side: self._frame.detail(int(cells[f"position_{side}"]))["results"] for side in SIDES},
            "repeats": {side: int(cells[f"rows_{side}"]) for side in SIDES},
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
    for same, spans in _aligned(*words):
        pieces = ["".join(text[start:end]) for text, (start, end) in zip(words, spans, strict=True)]
        both = commonprefix(pieces)  # noqa: RUF071  (of texts, not of paths)
        space = len(both) - len(both.lstrip())  # the space before two different words is equal
        for side, piece in zip(sides, pieces, strict=True):
            _add(side, piece[:space], differs=False)
            _add(side, piece[space:], differs=not same)
    return sides


def _add(pieces: list[list[Any]], text: str, *, differs: bool) -> None:
    """Add a piece of text, to the last one where that differs or not alike."""
    if text and pieces and pieces[-1][1] is differs:
        pieces[-1][0] += text
    elif text:
        pieces.append([text, differs])


Aligned = tuple[bool, tuple[tuple[int, int], tuple[int, int]]]
"""Whether two stretches of words are equal, and where they begin and end."""


def _aligned(first: list[str], second: list[str]) -> Iterator[Aligned]:
    """Return stretches of both texts that are equal or not, in order. What equal ends leave is not lined up where that would take too long."""
    shorter = min(len(first), len(second))
    start = next((place for place in range(shorter) if first[place] != second[place]), shorter)
    ends = next((place for place in range(shorter - start) if first[-1 - place] != second[-1 - place]), shorter - start)
    yield True, ((0, start), (0, start))
    a, b = first[start : len(first) - ends], second[start : len(second) - ends]
    counts, there = Counter(a), Counter(b)
    crowd = len(b) // 100 + 1 if len(b) >= MANY else len(b)
    meetings, rare = (sum(count * counts[word] for word, count in there.items() if count <= most) for most in (len(b), crowd))
    if rare > MOST_MEETINGS:
        yield False, ((start, start + len(a)), (start, start + len(b)))
    else:
        for kind, *spans in SequenceMatcher(None, a, b, autojunk=meetings > MOST_MEETINGS).get_opcodes():
            low, high, bottom, top = (start + place for place in spans)
            yield kind == "equal", ((low, high), (bottom, top))
    yield True, ((len(first) - ends, len(first)), (len(second) - ends, len(second)))


def checked_filters(filters: Any, low: float = 0.0, high: float = 1.0) -> dict[str, Any]:
    """Return filters that pairs can be filtered by; empty ones left out.

    Parameters
    ----------
    filters
        Any of ``brush``, ``outcome``, ``vote`` and ``text``.
    low, high
        The ends of the scores, for a brush with an infinite end, which JSON cannot carry.

    Raises
    ------
    ArgumentTypeError, UnknownOptionError
        When it is no mapping, names what is not there, or the brush is not four numbers.
    """
    if not isinstance(filters, Mapping):
        raise ArgumentTypeError.from_value("filters", filters, "a dict such as {'outcome': 'loss'}")
    known = {"outcome": OUTCOMES, "vote": (*VOTES, "none")}
    found: dict[str, Any] = {}
    for key, value in filters.items():
        if key not in FILTERS:
            raise UnknownOptionError.from_value("filters", key, FILTERS)
        if value is None or (isinstance(value, str) and value == ""):
            continue
        if key in known and value not in known[key]:
            raise UnknownOptionError.from_value(f"filters[{key!r}]", value, known[key])
        found[key] = _brush(value, low, high) if key == "brush" else without_surrogates(str(value))
    return found


def _brush(value: Any, least: float, most: float) -> list[float]:
    """Return the ends of a brush, each lower one first."""
    wanted = "four numbers: low and high of the baseline, then of the variant"
    try:
        low, high, bottom, top = (float(end) for end in value)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError.from_value("filters['brush']", value, wanted) from error
    ends = [*sorted((low, high)), *sorted((bottom, top))]
    if np.isnan(ends).any():
        raise OptionRangeError.from_value("filters['brush']", value, wanted)
    return [least if end == -np.inf else most if end == np.inf else end for end in ends]


def _text(value: Any) -> str:
    """Return a cell's text; an empty one where it is missing."""
    return "" if is_missing(value) else without_surrogates(value if isinstance(value, str) else str(value))


def _capped(text: str) -> str:
    """Return a text as far as the view shows it."""
    return text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}\n… {len(text) - CELL_CHARACTERS:,} more characters"


def _number(value: float) -> float | None:
    """Return a number that JSON has; None for NaN."""
    return float(value) if np.isfinite(value) else None
