"""side_by_side: the pairs behind a comparison, both outputs with what differs, and a vote on which is better."""

from __future__ import annotations

import html
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anywidget
import numpy as np
import pandas as pd
import traitlets

from scorekit.analysis.comparison import Comparison
from scorekit.errors import ArgumentTypeError, ScorekitError, UnknownOptionError
from scorekit.texts import without_surrogates
from scorekit.widgets.assets import script, style
from scorekit.widgets.marks import Marks
from scorekit.widgets.pairs import ORDERS, SIDES, Pairs, checked_filters
from scorekit.widgets.rows import PAGE

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

VOTES: Final = (*SIDES, "tie")


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
    ArgumentTypeError, UnknownOptionError, OptionRangeError
        When ``found`` is no comparison; when there is no such score, variant or order; when ``save`` cannot be written.

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
    marks = Marks.of(found.rows, known, labels=VOTES, save=save)
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

    def __init__(self, found: Comparison, marks: Marks, *, score: str, variant: object, order: str) -> None:
        """Take what is shown; `side_by_side` makes it."""
        self.found, self.marks = found, marks
        self._asked, self._page, self._problem = 0, 0, ""
        super().__init__(score=score, variant=variant, order=order)
        self.setup = {
            "scores": list(found.scores),
            "variants": [without_surrogates(str(variant)) for variant in found.variants],
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
        return self.data.iloc[self.pairs.places[self.pairs.mask(self.filters, self._votes())]]

    @property
    def votes(self) -> pd.Series[int]:
        """How often each side was voted the better one, over all scores and variants of the comparison."""
        counts = Counter(self.marks[place].label for place in self.marks.read)
        return pd.Series([counts[vote] for vote in VOTES], index=list(VOTES), name="pairs", dtype="int64")

    def clear(self) -> None:
        """Take all filters away."""
        self.filters = {}

    # --- what is observed

    @traitlets.validate("filters")
    def _valid_filters(self, proposal: dict[str, Any]) -> dict[str, Any]:
        return checked_filters(proposal["value"])

    @traitlets.validate("score")
    def _valid_score(self, proposal: dict[str, Any]) -> str:
        if proposal["value"] not in self.found.scores:
            raise UnknownOptionError.from_value("score", proposal["value"], self.found.scores)
        return str(proposal["value"])

    @traitlets.validate("variant")
    def _valid_variant(self, proposal: dict[str, Any]) -> Any:
        by_text = {str(variant): variant for variant in self.found.variants}
        if str(proposal["value"]) not in by_text:
            raise UnknownOptionError.from_value("variant", proposal["value"], by_text)
        return by_text[str(proposal["value"])]

    @traitlets.validate("row")
    def _valid_row(self, proposal: dict[str, Any]) -> int:
        row = int(proposal["value"])
        if not -1 <= row < len(self.pairs):
            raise UnknownOptionError.from_value("row", row, [f"-1 to {len(self.pairs) - 1}"])
        return row

    def _on_pairs(self, _: object) -> None:
        """Follow another score or variant."""
        self.pairs = pairs = Pairs(self.found, self.score, self.variant)
        points = pairs.points
        self.scatter = {
            "low": pairs.low,
            "high": pairs.high,
            "total": len(pairs),
            "positions": points.tolist(),
            "x": pairs.baseline[points].tolist(),
            "y": pairs.scores[points].tolist(),
            "outcomes": pairs.outcome[points].tolist(),
        }
        with self.hold_trait_notifications():
            self.filters = {key: value for key, value in self.filters.items() if key != "brush"}
        self._on_order(None)

    def _on_order(self, _: object) -> None:
        """Follow another order or filter."""
        self._select()
        if self.row < 0 or self.row not in self._place_of:
            self._open(int(self._kept[0]) if len(self._kept) else -1)
        else:
            self._open(self.row)

    def _on_row(self, _: object) -> None:
        self._page = self._place_of.get(self.row, self._page * PAGE) // PAGE
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
            place = self._place_of.get(self.row, -1) + int(message["by"])
            self.row = int(self._kept[max(0, min(place, len(self._kept) - 1))])
        elif do == "vote" and self.row >= 0:
            self.marks.label(int(self.pairs.places[self.row]), message["vote"])
            self._show_row()
        elif do == "undo":
            back = self.marks.undo()
            if back is not None and back in self.pairs.places:
                self.row = int(np.flatnonzero(self.pairs.places == back)[0])
            self._show_row()

    # --- what follows from it

    def _votes(self) -> NDArray[np.object_]:
        """Return the vote on each pair; None without one."""
        return np.array([self.marks[int(place)].label for place in self.pairs.places], dtype=object)

    def _select(self) -> None:
        """Find the pairs that the filters leave, and their numbers."""
        mask = self.pairs.mask(self.filters, self._votes())
        order = self.pairs.order(self.order)
        self._kept = order[mask[order]]
        self._place_of = {int(number): place for place, number in enumerate(self._kept)}
        self._numbers = self.pairs.numbers(mask)
        self._page = min(self._page, max(0, (len(self._kept) - 1) // PAGE))

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
            "place": self._place_of.get(self.row, -1),
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
