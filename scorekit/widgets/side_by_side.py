"""side_by_side: the pairs behind a comparison, both outputs with what differs, and a vote on which is better."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import numpy as np
import pandas as pd
import traitlets

from scorekit.analysis.comparison import Comparison
from scorekit.analysis.summary import group_rows
from scorekit.errors import ArgumentTypeError, ColumnConflictError, ScorekitError, UnknownOptionError
from scorekit.texts import without_surrogates
from scorekit.widgets.assets import script, style
from scorekit.widgets.marks import Marks
from scorekit.widgets.pairs import ORDERS, VOTES, Pairs, checked_filters
from scorekit.widgets.rows import PAGE

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray


def side_by_side(
    found: Comparison,
    /,
    *,
    score: str | None = None,
    variant: object = None,
    order: str = "losses",
    save: str | os.PathLike[str] | None = None,
) -> SideBySide:
    """Return a view of the pairs behind a comparison.

    Parameters
    ----------
    found
        What `compare` returned.
    score, variant
        Which score and which variant to begin with; the first by default. The view has a choice of all.
    order
        What is read first: ``"losses"`` (the items that lose most), ``"wins"``, ``"largest"`` (differences either way) or ``"frame"``.
    save
        A JSONL file in which every vote is written down as it is made, as `explore` keeps labels.

    Returns
    -------
    SideBySide
        A scatter of the variant's score against the baseline's, with a brush; the items by difference; both outputs with the words that differ, both
        reasons and statements. Wins, ties, losses and the interval are those of the pairs that are left. ``.selected`` and ``.data`` are rows of
        ``found.rows`` with the column ``vote`` (string: ``"baseline"``, ``"variant"``, ``"tie"``, NA without one).

    Raises
    ------
    ArgumentTypeError, UnknownOptionError, OptionRangeError, ColumnConflictError
        When ``found`` is no comparison; when there is no such score, variant or order; when ``save`` cannot be written; when the items have a column
        ``vote`` already.

    Notes
    -----
    Keys, while the view has the focus: ``j`` and ``k`` next and previous, ``b`` the baseline is better, ``v`` the variant is, ``t`` a tie, ``z`` undo,
    ``/`` search.

    Examples
    --------
    >>> from scorekit import compare
    >>> df = pd.DataFrame({
    ...     "id": ["q1", "q2", "q1", "q2"],
    ...     "prompt": ["short", "short", "long", "long"],
    ...     "output": ["a", "b", "c", "d"],
    ...     "relevancy_score": [0.5, 0.0, 1.0, 0.0],
    ... })
    >>> view = side_by_side(compare(df, variant="prompt", item="id"))
    >>> view.filters = {"outcome": "win"}
    >>> view.selected["id"].tolist()
    ['q1']
    """
    if not isinstance(found, Comparison):
        raise ArgumentTypeError.from_value("side_by_side: the first argument", found, "what compare(df, ...) returned")
    name = found.scores[0] if score is None else score if score in found.scores else str(score).removesuffix("_score")
    if name not in found.scores:
        raise UnknownOptionError.from_value("score", score, found.scores)
    if variant is not None and variant not in found.variants:
        raise UnknownOptionError.from_value("variant", variant, found.variants)
    if order not in ORDERS:
        raise UnknownOptionError.from_value("order", order, ORDERS)
    known = [found.rows[column] for column in (*found.item, "variant", "output_baseline", "output_variant")]
    if "vote" in found.rows.columns:
        msg = "side_by_side writes the votes into a column 'vote', and the comparison has one of the frame's by that name. Rename it before compare(df, ...)."
        raise ColumnConflictError(msg)
    # Without the columns: an item's own "label" is no vote.
    marks = Marks.of(found.rows[[]], known, labels=VOTES, save=save)
    return SideBySide(found, marks, score=name, variant=found.variants[0] if variant is None else variant, order=order)


class SideBySide(anywidget.AnyWidget):
    """The view that `side_by_side` returns.

    Attributes
    ----------
    filters : dict
        What is filtered, to read and to set: any of ``{"brush": (low, high of the baseline, low, high of the variant), "outcome": "win", "tie" or
        "loss", "vote": a vote or "none", "text": words}``.
    score, variant, order : str
        As in `side_by_side`, to read and to set.
    row : int
        The number among the pairs of the one that is read; -1 where none is left.
    """

    _esm: ClassVar[Any] = script("side_by_side.js")
    _css: ClassVar[Any] = style()

    filters = traitlets.Dict()
    score = traitlets.Unicode()
    variant = traitlets.Any()
    order = traitlets.Enum(ORDERS, default_value="losses")
    row = traitlets.Int(-1)
    setup = traitlets.Dict().tag(sync=True)
    scatter = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)

    pairs: Pairs
    _kept: NDArray[np.intp]

    def __init__(self, found: Comparison, marks: Marks, *, score: str, variant: object, order: str) -> None:
        """Take what is shown; `side_by_side` makes it."""
        self.found, self.marks = found, marks
        self._asked, self._page, self._problem = 0, 0, ""
        self._items = group_rows([found.rows[column] for column in found.item], len(found.rows)).codes
        super().__init__(score=score, variant=variant, order=order)
        self.setup = {
            "scores": list(found.scores),
            "variants": [without_surrogates(str(variant)) for variant in found.variants],
            "pairs": self._counts(),
            "baseline": without_surrogates(str(found.baseline)),
            "orders": list(ORDERS),
            "votes": list(VOTES),
            "page": PAGE,
            "readonly": False,
        }
        self.observe(self._on_pairs, names=["score", "variant"])
        self.observe(self._on_order, names=["order", "filters"])
        self.observe(self._on_row, names=["row"])
        self.on_msg(self._on_message)
        self._on_pairs(None)

    @property
    def data(self) -> pd.DataFrame:
        """The rows of the comparison with the column ``vote``."""
        return self.found.rows.assign(vote=self.marks.columns()["label"].array)

    @property
    def selected(self) -> pd.DataFrame:
        """The pairs that the filters leave, with the column ``vote``."""
        return self.data.iloc[self.pairs.places[self._mask()]]

    @property
    def votes(self) -> pd.Series[int]:
        """How often each side was voted the better one, over all scores and variants of the comparison."""
        counts = Counter(self.marks[place].label for place in self.marks.read)
        return pd.Series([counts[vote] for vote in VOTES], index=list(VOTES), name="pairs", dtype="int64")

    def clear(self) -> None:
        """Take all filters away."""
        self.filters = {}

    def undo(self) -> None:
        """Take back the last vote, and open its pair where it is one of this score and variant."""
        back = self.marks.undo()
        if back is not None and self._number(back) >= 0:
            self.row = self._number(back)
        self._vote_changed()

    # --- what is observed

    @traitlets.validate("filters")
    def _valid_filters(self, proposal: dict[str, Any]) -> dict[str, Any]:
        return checked_filters(proposal["value"], self.pairs.low, self.pairs.high)

    @traitlets.validate("score")
    def _valid_score(self, proposal: dict[str, Any]) -> str:
        if proposal["value"] not in self.found.scores:
            raise UnknownOptionError.from_value("score", proposal["value"], self.found.scores)
        return str(proposal["value"])

    @traitlets.validate("variant")
    def _valid_variant(self, proposal: dict[str, Any]) -> Any:
        value = proposal["value"]
        if value in self.found.variants:
            return self.found.variants[self.found.variants.index(value)]
        by_text = {without_surrogates(str(variant)): variant for variant in self.found.variants}  # as the browser names them
        if not isinstance(value, str) or value not in by_text:
            raise UnknownOptionError.from_value("variant", value, by_text)
        return by_text[value]

    @traitlets.validate("row")
    def _valid_row(self, proposal: dict[str, Any]) -> int:
        row = int(proposal["value"])
        if not -1 <= row < len(self.pairs):
            raise UnknownOptionError.from_value("row", row, [f"-1 to {len(self.pairs) - 1}"])
        return row

    def _on_pairs(self, _: object) -> None:
        """Follow another score or variant: the same item stays open where it has a pair there too."""
        item = self._items[self.pairs.places[self.row]] if self.row >= 0 else -1
        self.pairs = pairs = Pairs(self.found, self.score, self.variant)
        points = pairs.points
        with self.hold_sync():
            self.scatter = {
                "low": pairs.low,
                "high": pairs.high,
                "total": len(pairs),
                "positions": points.tolist(),
                "x": pairs.baseline[points].tolist(),
                "y": pairs.scores[points].tolist(),
                "outcomes": pairs.outcome[points].tolist(),
            }
            with self.hold_trait_notifications():  # until filters, row and what follows from them are those of the new pairs
                self.filters = {key: value for key, value in self.filters.items() if key != "brush"}
                self.row = next(iter(np.flatnonzero(self._items[pairs.places] == item).tolist()), -1)
                self._select()
            self._on_order(None)

    def _number(self, place: int) -> int:
        """Return the number of the pair at a place in the comparison's rows; -1 where it has none."""
        at = int(np.searchsorted(self.pairs.places, place))
        return at if at < len(self.pairs) and self.pairs.places[at] == place else -1

    def _on_order(self, _: object) -> None:
        """Follow another order or filter."""
        self._select()
        if self._place(self.row) < 0:
            self._page = 0
            self._open(int(self._kept[0]) if len(self._kept) else -1)
        else:
            self._open(self.row)

    def _on_row(self, _: object) -> None:
        place = self._place(self.row)
        self._page = place // PAGE if place >= 0 else self._page
        self._show()
        self._show_row()

    def _on_message(self, _: object, message: dict[str, Any], __: object) -> None:
        """Do what the view in the browser asks for, and answer in one message; what cannot be done is told there."""
        self._asked = int(message.get("asked", self._asked))
        self._problem = ""
        with self.hold_sync():
            try:
                self._do(message)
            except (ScorekitError, OSError) as error:
                self._problem = without_surrogates(str(error))
            finally:
                self._show()

    def _do(self, message: dict[str, Any]) -> None:
        """Do one thing that the view in the browser asks for."""
        do = message.get("do")
        if do in ("filters", "order", "score", "variant"):
            setattr(self, do, message[do])
        elif do == "page":
            self._page = max(0, min(int(message["page"]), (len(self._kept) - 1) // PAGE))
        elif do == "open":
            self.row = int(message["position"])
        elif do == "step" and len(self._kept):
            place = self._step_from(int(message["by"]))
            self.row = int(self._kept[max(0, min(place, len(self._kept) - 1))])
        elif do == "vote" and self.row >= 0:
            self.marks.label(int(self.pairs.places[self.row]), message["vote"])
            self._vote_changed()
        elif do == "undo":
            self.undo()

    # --- what follows from it

    def _counts(self) -> dict[str, dict[str, int]]:
        """Return how many pairs each score and variant has."""
        rows = self.found.rows
        own = {variant: (rows["variant"] == variant).to_numpy(dtype=bool, na_value=False) for variant in self.found.variants}
        there = {score: rows[f"{score}_delta"].notna().to_numpy() for score in self.found.scores}
        return {
            score: {without_surrogates(str(variant)): int((own[variant] & there[score]).sum()) for variant in self.found.variants}
            for score in self.found.scores
        }

    def _mask(self) -> NDArray[np.bool_]:
        """Return which pairs the filters leave."""
        mask = self.pairs.mask(self.filters)
        if "vote" in self.filters:
            mask &= self.marks.mask(label=self.filters["vote"])[self.pairs.places]
        return mask

    def _select(self) -> None:
        """Find the pairs that the filters leave, and their numbers."""
        mask = self._mask()
        self._order: NDArray[np.intp] = self.pairs.order(self.order)
        self._kept = self._order[mask[self._order]]
        self._place_of: NDArray[np.intp] = np.full(len(self.pairs), -1, dtype=np.intp)
        self._place_of[self._kept] = np.arange(len(self._kept))
        self._numbers = self.pairs.numbers(mask)
        self._page = min(self._page, max(0, (len(self._kept) - 1) // PAGE))

    def _place(self, row: int) -> int:
        """Return where a pair stands among those that are left; -1 where it does not."""
        return int(self._place_of[row]) if row >= 0 else -1

    def _step_from(self, by: int) -> int:
        """Return the place of the next pair; one that a vote has taken out of the filter leaves its place to the next."""
        place = self._place(self.row)
        if place >= 0 or self.row < 0:
            return place + by
        rank = np.empty(len(self.pairs), dtype=np.intp)
        rank[self._order] = np.arange(len(self.pairs))
        return int(np.searchsorted(rank[self._kept], rank[self.row])) + by - (by > 0)

    def _vote_changed(self) -> None:
        """Follow a vote: it may take its pair out of the filter, or into it; the pair stays open."""
        if "vote" in self.filters:
            self._select()
        self._show_row()

    def _open(self, row: int) -> None:
        """Open a pair, and show it where it was open already."""
        if row == self.row:
            self._on_row(None)
        else:
            self.row = row

    def _show(self) -> None:
        """Send what is filtered, its numbers and one page of pairs."""
        start = self._page * PAGE
        lines = [
            {**self.pairs.line(number), "vote": self.marks[int(self.pairs.places[number])].label}
            for number in self._kept[start : start + PAGE].tolist()
        ]
        self.shown = {
            "asked": self._asked,
            "filters": dict(self.filters),
            "score": self.score,
            "variant": without_surrogates(str(self.variant)),
            "better": self.found.better[self.score],
            "order": self.order,
            "total": len(self.pairs),
            "kept": len(self._kept),
            "place": self._place(self.row),
            "page": self._page,
            "row": self.row,
            "numbers": self._numbers,
            "votes": {vote: int(count) for vote, count in self.votes.items()},
            "undo": self.marks.can_undo,
            "save": None if self.marks.save is None else without_surrogates(self.marks.save.name),
            "lines": lines,
            "problem": self._problem,
        }

    def _show_row(self) -> None:
        """Send the pair that is read."""
        vote = self.marks[int(self.pairs.places[self.row])].label if self.row >= 0 else None
        self.detail = {} if self.row < 0 else {**self.pairs.detail(self.row), "vote": vote}

    # --- where no browser shows it

    def __repr__(self) -> str:
        """Say what the view holds."""
        told = self._numbers
        outcomes = f"{told['wins']} wins, {told['ties']} ties, {told['losses']} losses"
        return f"SideBySide: {self.score} of {self.variant} against {self.found.baseline}, {len(self._kept):,} of {len(self.pairs):,} pairs: {outcomes}"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the view, and the comparison's own summary for where there is no front end that draws it."""
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        text = f"{without_surrogates(repr(self))}\n\n{self.found!r}"
        page = f"<p>{html.escape(without_surrogates(repr(self)))}</p>{self.found._repr_html_()}"
        return {**bundle, "text/plain": text, "text/html": page}, metadata
