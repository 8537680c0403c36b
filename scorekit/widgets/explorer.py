"""explore: brush a score, read the rows, write down what is wrong with each; all of it comes back as columns."""

from __future__ import annotations

import html
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anywidget
import numpy as np
import pandas as pd
import traitlets

from scorekit.analysis.summary import as_names, summarize
from scorekit.columns import LOWER_IS_BETTER, joined, require, require_frame
from scorekit.errors import ArgumentTypeError, ScorekitError, UnknownOptionError
from scorekit.widgets.marks import COLUMNS, LABELS, Marks, row_keys
from scorekit.widgets.page import table_html
from scorekit.widgets.rows import BINS, ORDERS, PAGE, Order, Rows, checked_filters

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from scorekit.analysis.agreement import Agreement

HERE: Final = Path(__file__).parent
WRITES_REACH: Final = pd.__version__.startswith(("0.", "1.", "2."))
"""Whether a caller who writes into the frame later would change the view: before pandas 3, unless it is copied."""


def explore(
    df: pd.DataFrame,
    /,
    *,
    scores: str | Sequence[str] | None = None,
    by: Hashable | Sequence[Hashable] | None = None,
    input: Hashable = "input",  # noqa: A002  (the column's name is the keyword)
    output: Hashable = "output",
    context: Hashable = "context",
    order: Order = "worst",
    tags: Iterable[str] = (),
    save: str | os.PathLike[str] | None = None,
    agreement: Agreement | Callable[[pd.DataFrame], Agreement] | None = None,
    lower_is_better: Collection[str] = LOWER_IS_BETTER,
    seed: int = 0,
) -> Explorer:
    """Return a view of a scored frame in which to brush the scores, read the rows and write down what is wrong.

    Parameters
    ----------
    df
        A scored frame; never changed.
    scores
        Names of scorers to show; None takes all. The first one decides what is worst.
    by
        Columns to filter by; None takes columns of texts or booleans with 2 to 12 different values.
    input, output, context
        Which columns hold the texts that are read; those that the frame does not have are left out.
    order
        What is read first. ``"worst"``: by the first score, the worst first, rows without a score last. ``"random"``: shuffled by ``seed``: read in this
        order where a share of all rows is to be estimated. ``"informative"``: the rows of which the judge is least sure (uncertainty sampling):
        the largest spread over repeats, then the largest share of unsure verdicts, then the score nearest the middle of its scale.
        ``"frame"``: as they stand.
    tags
        Failure modes that are known already: the digits 1 to 9 stand for the first nine; more are typed in the view.
    save
        A JSONL file in which every label, note and tag is written down as it is made; a view that is opened on the same rows and file later
        has them again. Rows are known by their input, output and context, so their order, index and scores may change.
    agreement
        What `scorekit.agreement` found on this frame, or a function from the labelled frame to it (``functools.partial(agreement,
        score="relevancy_score", human="label", threshold=0.5)``), which is called anew whenever a label changes. A click on a cell of its
        matrix opens the rows.
    lower_is_better
        Names of the scores that are worse when higher.
    seed
        Of the order ``"random"``.

    Returns
    -------
    Explorer
        Show it as the last line of a cell. ``.selected`` is the frame of the rows that the filters leave, ``.data`` the whole frame, both with
        the columns ``label``, ``note`` (string) and ``tags`` (JSON lists, see `read_steps`), NA where nothing is written down.

    Raises
    ------
    MissingColumnError, ArgumentTypeError, OptionRangeError, UnknownOptionError
        When the frame has no score, or not a column that is named; when an option is of the wrong kind or cannot be used.

    Notes
    -----
    Keys, while the view has the focus (click on it): ``j`` and ``k`` next and previous row, ``1`` to ``9`` tags, ``p``, ``f``, ``u`` pass, fail,
    unsure, ``n`` the note (Escape leaves it), ``t`` a new tag, ``z`` undo, ``/`` search. The notebook gets none of them.

    Examples
    --------
    >>> df = pd.DataFrame({"input": ["q", "r"], "output": ["a", "b"], "tone_score": [0.9, 0.2]})
    >>> view = explore(df, tags=["too long"])
    >>> view.filters = {"scores": {"tone": (0.0, 0.5)}}
    >>> view.selected["output"].tolist()
    ['b']
    """
    frame = require_frame(df, "explore")
    if order not in ORDERS:
        raise UnknownOptionError.from_value("order", order, ORDERS)
    roles = {"input": input, "output": output, "context": context}
    for role, column in roles.items():
        if column in frame.columns or column != role:
            require(frame, column, "explore", role)
    rows = Rows(
        frame.copy(deep=WRITES_REACH),
        scores=scores,
        by=by,
        roles=roles,
        lower_is_better=frozenset(as_names("lower_is_better", lower_is_better)),
    )
    keys = row_keys(frame, [frame[column] for column in rows.roles.values()])
    return Explorer(rows, Marks.of(frame, keys, tags=tags, save=save), order=order, agreement=agreement, seed=seed)


class Explorer(anywidget.AnyWidget):
    """The view that `explore` returns.

    Attributes
    ----------
    filters : dict
        What is filtered, to read and to set: any of ``{"scores": {name: (low, high)}, "errors": {name: code or "any"}, "groups": {column: value},
        "label": "pass", "fail", "unsure" or "none", "tag": name, "text": words, "cell": (human label, score's label)}``.
    order : str
        As in `explore`, to read and to set.
    row : int
        The position in the frame of the row that is read, to read and to set; -1 where no row is left.
    agreement : Agreement or None
        Of the frame with the labels as they are, where `explore` was given a function for it.
    rows, marks : Rows, Marks
        The frame as it is read, and what is written down about it.
    setup, shown, detail, marked : dict
        What the browser gets: what never changes, the filters and a page of rows, the row that is read, and the marks as a whole.
    """

    _esm: ClassVar[Any] = HERE / "explorer.js"
    _css: ClassVar[Any] = HERE / "explorer.css"

    filters = traitlets.Dict()
    order = traitlets.Enum(ORDERS, default_value="worst")
    row = traitlets.Int(-1)
    setup = traitlets.Dict().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)
    detail = traitlets.Dict().tag(sync=True)
    marked = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        rows: Rows,
        marks: Marks,
        *,
        order: Order = "worst",
        agreement: Agreement | Callable[[pd.DataFrame], Agreement] | None = None,
        seed: int = 0,
    ) -> None:
        """Take what is shown; `explore` makes it."""
        self.rows, self.marks, self.seed = rows, marks, seed
        self._agree = agreement if callable(agreement) else None
        self.agreement: Agreement | None = None if callable(agreement) else agreement
        self._problem = ""
        self._asked = 0
        self._page = 0
        super().__init__(order=order)
        self._agree_again()
        self.setup = {
            "scores": [
                {"name": scale.name, "low": scale.low, "high": scale.high, "lower": scale.lower_is_better} for scale in rows.scales.values()
            ],
            "bins": BINS,
            "page": PAGE,
            "groups": {column: list(Counter(values.tolist())) for column, values in rows.groups.items()},
            "errors": rows.error_codes(),
            "orders": list(ORDERS),
            "labels": list(LABELS),
            "texts": list(rows.roles),
            "readonly": False,
        }
        self.observe(self._on_order, names=["order"])
        self.observe(self._on_filters, names=["filters"])
        self.observe(self._on_row, names=["row"])
        self.on_msg(self._on_message)
        self._sort()
        self._select()
        self._open_first()
        self._show_marks()

    @property
    def selected(self) -> pd.DataFrame:
        """The rows that the filters leave, in the frame's order, with ``label``, ``note`` and ``tags``."""
        return self.data[self._mask()]

    @property
    def data(self) -> pd.DataFrame:
        """The whole frame with the columns ``label``, ``note`` and ``tags``."""
        frame = self.rows.df
        return joined(frame, frame.drop(columns=[name for name in COLUMNS if name in frame.columns]), [self.marks.columns()])

    @property
    def tag_counts(self) -> pd.DataFrame:
        """How many rows have each tag: ``tag`` (string), ``rows`` (int64), ``share`` of the rows read (float64), most first."""
        return self.marks.counts()

    @property
    def saturation(self) -> pd.Series[int]:
        """How many tags came up for the first time in each ten rows read; it nears 0 when reading on shows nothing new."""
        new = self.marks.saturation()
        return pd.Series(new, index=pd.RangeIndex(1, len(new) + 1, name="ten_rows"), name="new_tags", dtype="int64")

    def clear(self) -> None:
        """Take all filters away."""
        self.filters = {}

    def rename_tag(self, old: str, new: str) -> None:
        """Rename a tag in every row; where ``new`` is a tag already, the two become one. It can be undone.

        Raises
        ------
        UnknownOptionError
            When there is no tag ``old``.
        """
        self.marks.rename(old, new)
        self._marks_changed()

    def undo(self) -> None:
        """Take back the last label, note or tag, and open its row."""
        position = self.marks.undo()
        if position is not None:
            self.row = position
            self._marks_changed()

    # --- what is observed

    @traitlets.validate("filters")
    def _valid_filters(self, proposal: dict[str, Any]) -> dict[str, Any]:
        return checked_filters(proposal["value"], self.rows, has_matrix=self.agreement is not None)

    @traitlets.validate("row")
    def _valid_row(self, proposal: dict[str, Any]) -> int:
        row = int(proposal["value"])
        if not -1 <= row < len(self.rows):
            raise UnknownOptionError.from_value("row", row, [f"0 to {len(self.rows) - 1}"])
        return row

    def _on_order(self, _: object) -> None:
        self._sort()
        self._select()
        self._open_first()

    def _on_filters(self, _: object) -> None:
        self._select()
        if self.row < 0 or not self._kept_mask[self.row]:
            self._open_first()
        else:
            self._page = self._place() // PAGE
            self._show()

    def _on_row(self, _: object) -> None:
        if self.row >= 0 and self._kept_mask[self.row]:
            self._page = self._place() // PAGE
        self._show()
        self._show_row()

    def _on_message(self, _: object, message: dict[str, Any], __: object) -> None:
        """Do what the view in the browser asks for; what cannot be done is told there."""
        self._asked = int(message.get("asked", self._asked))
        self._problem = ""
        try:
            self._do(message)
        except (ScorekitError, OSError) as error:
            self._problem = str(error)
            self._show_marks()
        self._show()

    def _do(self, message: dict[str, Any]) -> None:
        """Do one thing that the view in the browser asks for."""
        do = message.get("do")
        position = int(message.get("position", self.row))
        if do == "filters":
            self.filters = message["filters"]
        elif do == "order":
            self.order = message["order"]
        elif do == "page":
            self._page = max(0, min(int(message["page"]), (len(self._kept) - 1) // PAGE))
        elif do == "open":
            self.row = position
        elif do == "step":
            self._step(int(message["by"]))
        elif do == "undo":
            self.undo()
        elif position >= 0 and do in ("label", "tag", "note"):
            {"label": self.marks.label, "tag": self.marks.tag, "note": self.marks.note}[do](position, message[do])
            self._marks_changed()

    # --- what follows from it

    def _sort(self) -> None:
        """Put all rows in the order of reading."""
        self._ordered = self.rows.order(self.order, self.rows.names[0], self.seed)
        self._rank: NDArray[np.intp] = np.empty(len(self._ordered), dtype=np.intp)
        self._rank[self._ordered] = np.arange(len(self._ordered))

    def _mask(self) -> NDArray[np.bool_]:
        """Return which rows the filters leave."""
        filters: dict[str, Any] = dict(self.filters)
        count = len(self.rows)
        marks = [self.marks[position] for position in range(count)] if {"label", "tag"} & filters.keys() else []
        mask = self.rows.mask(filters, labels=[mark.label for mark in marks], tags=[mark.tags for mark in marks])
        if "cell" in filters and self.agreement is not None:
            mask &= self.agreement.rows(*filters["cell"])
        return mask

    def _select(self) -> None:
        """Find the rows that the filters leave."""
        self._kept_mask = self._mask()
        self._kept = self._ordered[self._kept_mask[self._ordered]]
        self._page = min(self._page, max(0, (len(self._kept) - 1) // PAGE))

    def _open_first(self) -> None:
        """Open the first row that is left."""
        self._page = 0
        first = int(self._kept[0]) if len(self._kept) else -1
        if first == self.row:
            self._show()
            self._show_row()
        else:
            self.row = first

    def _place(self) -> int:
        """Return where among the rows left the row stands that is read, or would stand."""
        return int(np.searchsorted(self._rank[self._kept], self._rank[self.row])) if self.row >= 0 else 0

    def _step(self, by: int) -> None:
        """Open the next or the previous row; a row that a label has taken out of the filter leaves its place to the next."""
        if not len(self._kept):
            return
        place = self._place()
        there = place < len(self._kept) and self._kept[place] == self.row
        place = place + by if there or by < 0 else place
        self.row = int(self._kept[max(0, min(place, len(self._kept) - 1))])

    def _marks_changed(self) -> None:
        """Follow a label, a note or a tag."""
        self._agree_again()
        if {"label", "tag", "cell"} & self.filters.keys():
            self._select()
        self._show()
        self._show_row()
        self._show_marks()

    def _agree_again(self) -> None:
        """Compare score and labels anew, where a function to do so was given; too few labels leave no matrix."""
        if self._agree is not None:
            try:
                self.agreement = self._agree(self.data)
            except ScorekitError:
                self.agreement = None

    # --- what the browser gets

    def _show(self) -> None:
        """Send what is filtered and one page of rows."""
        start = self._page * PAGE
        positions = self._kept[start : start + PAGE].tolist()
        lines = [{**self.rows.line(position), **_told(self.marks, position)} for position in positions]
        self.shown = {
            "asked": self._asked,
            "filters": dict(self.filters),
            "order": self.order,
            "total": len(self.rows),
            "kept": len(self._kept),
            "place": self._place(),
            "page": self._page,
            "row": self.row,
            "histograms": self.rows.histograms(self._kept_mask),
            "lines": lines,
            "problem": self._problem,
        }

    def _show_row(self) -> None:
        """Send the row that is read."""
        self.detail = {} if self.row < 0 else {**self.rows.detail(self.row), **_told(self.marks, self.row)}

    def _show_marks(self) -> None:
        """Send the tags, what was read, and the agreement."""
        marks = self.marks
        labels = Counter(marks[position].label for position in marks.read)
        self.marked = {
            **summary_of(marks),
            "labels": {label: labels[label] for label in LABELS},
            "matrix": None if self.agreement is None else _matrix(self.agreement),
            "problem": self._problem,
        }

    # --- where no browser shows it

    def __repr__(self) -> str:
        """Say what the view holds."""
        read = self.marks.read
        labels = Counter(self.marks[position].label or "no label" for position in read)
        told = ", ".join(f"{count} {label}" for label, count in labels.items())
        return f"Explorer: {len(self._kept):,} of {len(self.rows):,} rows; {len(read)} read{f' ({told})' if told else ''}"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the view, and a plain summary for where there is no front end that draws it."""
        found = super()._repr_mimebundle_(**kwargs)
        bundle, metadata = found if isinstance(found, tuple) else (found or {}, {})
        summary = summarize(self.rows.df, scores=self.rows.names)
        shown = [summary] if self.tag_counts.empty else [summary, self.tag_counts]
        text = "\n\n".join([repr(self), *(frame.to_string(index=False) for frame in shown)])
        page = "".join([f"<p>{html.escape(repr(self))}</p>", *(table_html(frame) for frame in shown)])
        return {**bundle, "text/plain": text, "text/html": page}, metadata


def summary_of(marks: Marks) -> dict[str, Any]:
    """Return what a view shows of the marks as a whole."""
    counts = dict(zip(*(marks.counts()[name].tolist() for name in ("tag", "rows")), strict=True))
    return {
        "tags": [{"tag": tag, "rows": int(counts[tag])} for tag in marks.tags],
        "read": len(marks.read),
        "saturation": marks.saturation(),
        "undo": marks.can_undo,
        "save": None if marks.save is None else marks.save.name,
        "strangers": marks.strangers,
    }


def _told(marks: Marks, position: int) -> dict[str, Any]:
    """Return a row's mark for the view."""
    mark = marks[position]
    return {"label": mark.label, "note": mark.note, "tags": list(mark.tags)}


def _matrix(found: Agreement) -> dict[str, Any]:
    """Return a confusion matrix for the view."""
    return {
        "human": found.human,
        "score": found.score,
        "rows": [str(label) for label in found.matrix.index],
        "columns": [str(label) for label in found.matrix.columns],
        "counts": found.matrix.to_numpy(dtype=int).tolist(),
        "remarks": list(found.remarks[:2]),
    }


def check_view(view: object, who: str) -> Explorer:
    """Return a view, and raise an `ArgumentTypeError` where it is none."""
    if isinstance(view, Explorer):
        return view
    raise ArgumentTypeError.from_value(f"{who}: the first argument", view, "a scored DataFrame, or what explore(df) returned")
