"""explore: brush a score, read the rows, write down what is wrong with each; all of it comes back as columns."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, ClassVar

import anywidget
import numpy as np
import pandas as pd
import traitlets

from scorekit.analysis.statistics import check_whole
from scorekit.analysis.summary import pick, summarize, worse_when_higher
from scorekit.columns import joined, require_frame
from scorekit.errors import ArgumentTypeError, ScorekitError, UnknownOptionError
from scorekit.pipeline import WRITES_REACH
from scorekit.texts import without_surrogates
from scorekit.widgets.assets import script, style
from scorekit.widgets.marks import COLUMNS, LABELS, Marks
from scorekit.widgets.matrix import Matrix
from scorekit.widgets.page import table_html
from scorekit.widgets.rows import BINS, ORDERS, PAGE, Order, Rows, checked_filters

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from scorekit.analysis.agreement import Agreement


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
    lower_is_better: Collection[str] = (),
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
        Columns to filter by, of at most 1,000 different values; None takes columns of texts or booleans with 2 to 12.
    input, output, context
        Which columns hold the texts that are read; those that the frame does not have are left out.
    order
        What is read first. ``"worst"``: by the first score, the worst first, rows without a score last. ``"random"``: shuffled by ``seed``: read in this
        order where a share of all rows is to be estimated. ``"informative"``: the rows of which the judge is least sure (uncertainty sampling):
        the largest spread over repeats, then the largest share of unsure verdicts, then the score nearest the middle of its scale; rows without a
        score last. ``"frame"``: as they stand.
    tags
        Failure modes that are known already: the digits 1 to 9 stand for the first nine; more are typed in the view.
    save
        A JSONL file in which every label, note and tag is written down as it is made; a view that is opened on the same rows and file later
        has them again. Rows are known by their input, output and context (by all cells that no scorer wrote where the frame has none of these), so
        their order, index and scores may change.
    agreement
        What `scorekit.agreement` found on this frame, or a function from the labelled frame to it (``functools.partial(agreement,
        score="relevancy_score", human="label", threshold=0.5)``), which is called anew whenever a label changes; as long as there are too few
        labels, the view says so. A click on a cell of its matrix opens the rows.
    lower_is_better
        Names of scores that are worse when higher, beside the shipped ones.
    seed
        Of the order ``"random"``.

    Returns
    -------
    Explorer
        Show it as the last line of a cell. ``.selected`` is the frame of the rows that the filters leave, ``.data`` the whole frame, both with
        the columns ``label``, ``note`` (string) and ``tags`` (JSON lists, see `read_steps`), NA where nothing is written down.

    Raises
    ------
    MissingColumnError, ColumnConflictError
        When the frame has no score, or not a column that is named; when a column that is read is there twice.
    ArgumentTypeError, OptionRangeError, UnknownOptionError
        When an option is of the wrong kind or cannot be used.

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
        if not isinstance(column, Hashable):
            raise ArgumentTypeError.from_value(role, column, "the name of a column")
        if column != role or role in frame.columns:
            pick(frame, column, "explore", role)
    rows = Rows(
        frame.copy(deep=WRITES_REACH),
        scores=scores,
        by=by,
        roles=roles,
        lower_is_better=worse_when_higher(lower_is_better),
    )
    return Explorer(
        rows,
        Marks.of(frame, rows.known_by, tags=tags, save=save),
        order=order,
        agreement=agreement,
        seed=check_whole("seed", seed, 0),
    )


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
    rows, marks : Rows, Marks
        The frame as it is read, and what is written down about it.
    setup, shown, detail, marked : dict
        What the browser gets: what never changes, the filters and a page of rows, the row that is read, and the marks as a whole.
    """

    _esm: ClassVar[Any] = script("explorer.js")
    _css: ClassVar[Any] = style()

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
        self._matrix = Matrix(agreement, len(rows))
        self._problem = ""
        self._asked = 0
        self._page = 0
        super().__init__(order=order)
        if self._matrix.compares:
            self._matrix.compare(self.data)
        self.setup = {
            "scores": [
                {"name": scale.name, "low": scale.low, "high": scale.high, "lower": scale.lower_is_better} for scale in rows.scales.values()
            ],
            "bins": BINS,
            "page": PAGE,
            "groups": rows.choices,
            "errors": rows.error_codes,
            "orders": list(ORDERS),
            "labels": list(LABELS),
            "texts": list(rows.roles),
            "readonly": False,
        }
        self.observe(self._on_order, names=["order"])
        self.observe(self._on_filters, names=["filters"])
        self.observe(self._on_row, names=["row"])
        self.on_msg(self._on_message)
        self._frame_mask = rows.mask({})
        self._sort()
        self._select()
        self._open_first()
        self._show_marks()

    @property
    def agreement(self) -> Agreement | None:
        """What score and labels agree in, with the labels as they are where `explore` was given a function; None where there is nothing to compare."""
        return self._matrix.agreement

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
        name = self.marks.rename(old, new)
        if self.filters.get("tag") == old:
            self.filters = {**self.filters, "tag": name}
        self._marks_changed()

    def undo(self) -> None:
        """Take back the last label, note or tag, and open its row."""
        position = self.marks.undo()
        if position is not None:
            self.row = position
        self._label_changed()

    # --- what is observed

    @traitlets.validate("filters")
    def _valid_filters(self, proposal: dict[str, Any]) -> dict[str, Any]:
        found = checked_filters(proposal["value"], self.rows)
        for key, value in found.items():
            self._check_marked(key, value)
        return found

    def _check_marked(self, key: str, value: Any) -> None:
        """Raise an `UnknownOptionError` where a filter asks for a label, a tag or a cell of the matrix that is not there."""
        if key == "label" and value not in ("none", *LABELS, self.filters.get("label")):
            known = dict.fromkeys(["none", *LABELS, *(self.marks[position].label or "none" for position in self.marks.read)])
            if value not in known:
                raise UnknownOptionError.from_value("filters['label']", value, known)
        elif key == "tag" and value not in self.marks.tags:
            raise UnknownOptionError.from_value("filters['tag']", value, self.marks.tags)
        elif key == "cell":
            self._matrix.mask(value)

    def _is_stale(self, key: str, value: Any) -> bool:
        """Return whether a filter asks for what is not there any more: a tag that was taken back, a cell that the matrix has lost."""
        try:
            self._check_marked(key, value)
        except UnknownOptionError:
            return True
        return False

    @traitlets.validate("row")
    def _valid_row(self, proposal: dict[str, Any]) -> int:
        row = int(proposal["value"])
        if not -1 <= row < len(self.rows):
            raise UnknownOptionError.from_value("row", row, [f"-1 to {len(self.rows) - 1}"])
        return row

    def _on_order(self, _: object) -> None:
        self._sort()
        self._select()
        self._open_first()

    def _on_filters(self, _: object) -> None:
        self._frame_mask = self.rows.mask(self.filters)
        self._select()
        if self._place() is None:
            self._open_first()
        else:
            self._turn_page()
            self._show()

    def _on_row(self, _: object) -> None:
        self.marks.end_note()
        self._turn_page()
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
                self._problem = str(error)
            finally:  # the browser waits for the answer
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
        elif position >= 0 and do == "label":
            self.marks.label(position, message["label"])
            self._label_changed()
        elif position >= 0 and do == "tag":
            self.marks.tag(position, message["tag"])
            self._marks_changed()
        elif position >= 0 and do == "note":
            self.marks.note(position, message["note"])
            self._marks_changed()

    # --- what follows from it

    def _sort(self) -> None:
        """Put all rows in the order of reading."""
        self._ordered = self.rows.order(self.order, self.rows.names[0], self.seed)
        self._rank: NDArray[np.intp] = np.empty(len(self._ordered), dtype=np.intp)
        self._rank[self._ordered] = np.arange(len(self._ordered))

    def _mask(self) -> NDArray[np.bool_]:
        """Return which rows the filters leave."""
        mask = self._frame_mask & self.marks.mask(label=self.filters.get("label"), tag=self.filters.get("tag"))
        if "cell" in self.filters:
            mask &= self._matrix.mask(self.filters["cell"])
        return mask

    def _select(self) -> None:
        """Find the rows that the filters leave, and what is told of them as a whole."""
        mask = self._mask()
        self._kept = self._ordered[mask[self._ordered]]
        self._kept_rank = self._rank[self._kept]
        self._histograms = self.rows.histograms(mask)
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

    def _at(self) -> int:
        """Return how many of the rows left come before the row that is read."""
        return int(np.searchsorted(self._kept_rank, self._rank[self.row]))

    def _place(self) -> int | None:
        """Return where among the rows left the row stands that is read; None where it is not among them."""
        if self.row < 0:
            return None
        at = self._at()
        return at if at < len(self._kept) and self._kept[at] == self.row else None

    def _turn_page(self) -> None:
        """Turn to the page of the row that is read, where it is on one."""
        place = self._place()
        if place is not None:
            self._page = place // PAGE

    def _step(self, by: int) -> None:
        """Open the next or the previous row; a row that a label has taken out of the filter leaves its place to the next."""
        if not len(self._kept):
            return
        place = self._place()
        if place is None:
            place = 0 if self.row < 0 else self._at() + by - (by > 0)
        else:
            place += by
        self.row = int(self._kept[max(0, min(place, len(self._kept) - 1))])

    def _label_changed(self) -> None:
        """Follow a label: compare score and labels anew where a function to do so was given."""
        if self._matrix.compares:
            self._matrix.follow(self.data)
        self._marks_changed()

    def _marks_changed(self) -> None:
        """Follow a label, a note or a tag."""
        self.filters = {key: value for key, value in self.filters.items() if not self._is_stale(key, value)}
        if {"label", "tag", "cell"} & self.filters.keys():
            self._select()
        self._show()
        self._show_row()
        self._show_marks()

    # --- what the browser gets

    def _show(self) -> None:
        """Send what is filtered and one page of rows."""
        start, place = self._page * PAGE, self._place()
        positions = self._kept[start : start + PAGE].tolist()
        lines = [{**self.rows.line(position), **_told(self.marks, position)} for position in positions]
        self.shown = {
            "asked": self._asked,
            "filters": dict(self.filters),
            "order": self.order,
            "total": len(self.rows),
            "kept": len(self._kept),
            "place": -1 if place is None else place,
            "page": self._page,
            "row": self.row,
            "histograms": self._histograms,
            "lines": lines,
            "problem": without_surrogates(self._problem),
        }

    def _show_row(self) -> None:
        """Send the row that is read."""
        self.detail = {} if self.row < 0 else {**self.rows.detail(self.row), **_told(self.marks, self.row)}

    def _show_marks(self) -> None:
        """Send the tags, what was read, and the agreement."""
        marks = self.marks
        read = marks.read
        labels = Counter(marks[position].label for position in read)
        self.marked = {
            "tags": [{"tag": tag, "rows": rows} for tag, rows in marks.held().items()],
            "read": len(read),
            "labels": {label: labels[label] for label in LABELS},
            "saturation": marks.saturation(),
            "undo": marks.can_undo,
            "save": None if marks.save is None else without_surrogates(marks.save.name),
            "strangers": marks.strangers,
            **self._matrix.shown(),
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
        bundle, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        with np.errstate(all="ignore"):  # scores of 1e308 have a mean, and no interval
            summary = summarize(self.rows.df, scores=self.rows.names)
        shown = [summary] if self.tag_counts.empty else [summary, self.tag_counts]
        text = "\n\n".join([repr(self), *(frame.to_string(index=False) for frame in shown)])
        page = "".join([f"<p>{html.escape(repr(self))}</p>", *(table_html(frame) for frame in shown)])
        return {**bundle, "text/plain": text, "text/html": page}, metadata


def _told(marks: Marks, position: int) -> dict[str, Any]:
    """Return a row's mark for the view."""
    mark = marks[position]
    return {"label": mark.label, "note": mark.note, "tags": list(mark.tags)}
