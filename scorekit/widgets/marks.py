"""What a reader writes down about rows: a label, a note and failure-mode tags, with undo, kept on disk as they are made."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.analysis.summary import as_names
from scorekit.columns import require, to_json
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.texts import is_missing, without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

LABELS: Final = ("pass", "fail", "unsure")
COLUMNS: Final = ("label", "note", "tags")
BLOCK: Final = 10
"""The saturation line counts new tags in blocks of so many rows read."""

TAG_CHARACTERS: Final = 60


@dataclass(frozen=True)
class Mark:
    """What is written down about one row.

    Attributes
    ----------
    label
        ``"pass"``, ``"fail"``, ``"unsure"``, whatever the frame came with, or None.
    note
        Free text; empty where there is none.
    tags
        Failure modes, in the order in which they were given.
    """

    label: str | None = None
    note: str = ""
    tags: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return whether anything is written down."""
        return self.label is not None or self.note != "" or self.tags != ()


EMPTY: Final = Mark()


class Change(NamedTuple):
    """What was written down about rows, and which tags there were, before a change."""

    marks: dict[int, Mark]
    tags: list[str]


@dataclass
class Marks:
    """The marks of a frame's rows, by position; every change is written to ``save`` before it counts.

    Attributes
    ----------
    count
        How many rows there are.
    save
        The file, or None. It is JSONL, one line a change, only ever added to; the last line of a row holds.
    keys
        One name a row, by which the file knows it again; see `row_keys`. Empty where there is no file.
    labels
        What a row can be labelled.
    tags
        Every tag there is, in the order in which they came up: the digits 1 to 9 stand for the first nine.
    strangers
        How many rows with a mark the file had that are not in the frame, when it was read; their lines stay in the file.
    """

    count: int
    save: Path | None = None
    keys: Sequence[str] = ()
    labels: tuple[str, ...] = LABELS
    tags: list[str] = field(default_factory=list)
    strangers: int = 0
    _marks: dict[int, Mark] = field(default_factory=dict)
    _past: list[Change] = field(default_factory=list)
    _noting: int | None = None

    @classmethod
    def of(
        cls,
        df: pd.DataFrame,
        known_by: Sequence[pd.Series[Any]],
        *,
        tags: str | Iterable[str] = (),
        save: str | os.PathLike[str] | None = None,
        labels: tuple[str, ...] = LABELS,
    ) -> Marks:
        """Begin with what the frame's own columns ``label``, ``note`` and ``tags`` say, then with what the file says.

        Parameters
        ----------
        df
            The frame; read, never changed.
        known_by
            The columns by which the file knows a row again.
        tags
            Tags that are known already.
        save
            A path; None keeps nothing.
        labels
            What a row can be labelled.

        Raises
        ------
        ArgumentTypeError, OptionRangeError
            When ``tags`` are no texts; when the folder of ``save`` is not there, or ``save`` is a folder or holds something else.
        ColumnConflictError
            When the frame has two columns ``label``, ``note`` or ``tags``.
        """
        marks = cls(len(df), labels=labels, tags=list(dict.fromkeys(_short(_tag(tag)) for tag in as_names("tags", tags))))
        marks._take(_in_frame(df))
        if save is not None:
            marks.save, marks.keys = _file(save), row_keys(df, known_by)
            if marks.save.exists():
                marks._load(marks.save)
        return marks

    def __getitem__(self, position: int) -> Mark:
        """Return a row's mark; an empty one where nothing is written down."""
        return self._marks.get(position, EMPTY)

    @property
    def read(self) -> list[int]:
        """The rows that have a mark, in the order in which they got their first."""
        return [position for position, mark in self._marks.items() if mark]

    @property
    def can_undo(self) -> bool:
        """Return whether there is a change to take back."""
        return bool(self._past)

    def mask(self, *, label: str | None = None, tag: str | None = None) -> NDArray[np.bool_]:
        """Return which rows have that label, ``"none"`` for those without one, and that tag; None takes any."""
        kept = np.ones(self.count, dtype=bool)
        if label == "none":
            kept[[position for position, mark in self._marks.items() if mark.label is not None]] = False
        elif label is not None:
            kept &= self._where(position for position, mark in self._marks.items() if mark.label == label)
        if tag is not None:
            kept &= self._where(position for position, mark in self._marks.items() if tag in mark.tags)
        return kept

    def _where(self, positions: Iterable[int]) -> NDArray[np.bool_]:
        """Return a mask of the rows at these positions."""
        mask = np.zeros(self.count, dtype=bool)
        mask[list(positions)] = True
        return mask

    def label(self, position: int, label: str | None) -> None:
        """Set a row's label; the one that it has already is taken away.

        Raises
        ------
        UnknownOptionError
            When it is not one of ``labels``.
        """
        if label is not None and label not in self.labels:
            raise UnknownOptionError.from_value("label", label, self.labels)
        self._change({position: replace(self[position], label=None if label == self[position].label else label)})

    def note(self, position: int, note: str) -> None:
        """Set a row's note. What is typed in one go, until `end_note`, is one change to take back."""
        if not isinstance(note, str):
            raise ArgumentTypeError.from_value("note", note, "a text")
        mark = replace(self[position], note=without_surrogates(note))
        if mark != self[position]:
            self._change({position: mark}, remembered=self._noting != position)
            self._noting = position

    def end_note(self) -> None:
        """Make the next letter of a note a change of its own."""
        self._noting = None

    def tag(self, position: int, tag: str) -> None:
        """Give a row a tag, or take it away where the row has it; a new tag joins the others."""
        tag = _tag(tag)
        held = self[position].tags
        if tag not in held and tag not in self.tags:
            tag = _short(tag)
        tags = tuple(other for other in held if other != tag) if tag in held else (*held, tag)
        self._change({position: replace(self[position], tags=tags)})

    def rename(self, old: str, new: str) -> str:
        """Rename a tag in every row, and return its name; where there is a tag of that name already the two become one. This is one change to take back.

        Raises
        ------
        UnknownOptionError
            When there is no tag ``old``.
        ArgumentTypeError, OptionRangeError
            When ``new`` is no text of 1 to 60 characters.
        """
        new = _short(_tag(new))
        if old not in self.tags:
            raise UnknownOptionError.from_value("tag", old, self.tags)
        if new == old:
            return new
        changed = {
            position: replace(mark, tags=tuple(dict.fromkeys(new if tag == old else tag for tag in mark.tags)))
            for position, mark in self._marks.items()
            if old in mark.tags
        }
        self._change(changed, tags=list(dict.fromkeys(new if tag == old else tag for tag in self.tags)))
        return new

    def undo(self) -> int | None:
        """Take back the last change; return the row that it was about, or None where there was none or it was about several."""
        if not self._past:
            return None
        before = self._past[-1]
        self._write(before.marks, before.tags)
        self._past.pop()
        self.end_note()
        return next(iter(before.marks)) if len(before.marks) == 1 else None

    def held(self) -> dict[str, int]:
        """Return how many rows have each tag, in the order of the tags."""
        counts = Counter(tag for mark in self._marks.values() for tag in mark.tags)
        return {tag: counts[tag] for tag in self.tags}

    def counts(self) -> pd.DataFrame:
        """Return how many rows have each tag: columns ``tag`` (string), ``rows`` (int64) and ``share`` of the rows read (float64), most first."""
        held = self.held()
        rows = np.array(list(held.values()), dtype=np.int64)
        found = pd.DataFrame({"tag": pd.Series(list(held), dtype="string"), "rows": rows, "share": rows / max(len(self.read), 1)})
        return found.sort_values("rows", ascending=False, kind="stable", ignore_index=True)

    def saturation(self) -> list[int]:
        """Return how many tags came up for the first time in each ten rows read; the last ten may be fewer."""
        seen: set[str] = set()
        new = []
        for place, position in enumerate(self.read):
            if place % BLOCK == 0:
                new.append(0)
            fresh = set(self[position].tags) - seen
            new[-1] += len(fresh)
            seen |= fresh
        return new

    def columns(self) -> pd.DataFrame:
        """Return the marks as columns ``label``, ``note`` and ``tags`` (JSON lists), all string and NA where there is none, in the frame's order."""
        cells = {name: np.full(self.count, None, dtype=object) for name in COLUMNS}
        for position, mark in self._marks.items():
            cells["label"][position] = mark.label
            cells["note"][position] = mark.note or None
            cells["tags"][position] = to_json(list(mark.tags)) if mark.tags else None
        return pd.DataFrame({name: pd.array(values, dtype="string") for name, values in cells.items()}, index=range(self.count))

    def _change(self, changed: dict[int, Mark], *, tags: list[str] | None = None, remembered: bool = True) -> None:
        """Write a change, and remember what was there before."""
        if unknown := [position for position in changed if not 0 <= position < self.count]:
            raise OptionRangeError.from_value("position", unknown[0], f"that of a row, 0 to {self.count - 1}")
        before = Change({position: self[position] for position in changed}, self.tags)
        self._write(changed, tags or list(dict.fromkeys([*self.tags, *(tag for mark in changed.values() for tag in mark.tags)])))
        self.end_note()
        if remembered:
            self._past.append(before)

    def _write(self, changed: dict[int, Mark], tags: list[str]) -> None:
        """Write marks to the file first, then to memory: what is shown as kept is kept."""
        if self.save is not None:
            lines = [_line(self.keys[position], mark, tags) for position, mark in changed.items()]
            _append(self.save, lines or [_line(None, EMPTY, tags)])
        self._marks |= changed  # a row stays where it is in the order of reading
        self.tags = tags

    def _take(self, marks: dict[int, Mark], tags: Iterable[str] = ()) -> None:
        """Take marks that are kept already into memory, and the tags that there are."""
        self._marks |= marks
        self.tags = list(dict.fromkeys([*self.tags, *tags, *(tag for mark in marks.values() for tag in mark.tags)]))

    def _load(self, path: Path) -> None:
        """Read the file's lines; one that was cut short by a sudden death is passed over."""
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        told = [found for line in text.splitlines() if (found := _told(line)) is not None]
        cut = "\n" not in text and (text.startswith(BEGINS) or BEGINS.startswith(text))
        if not told and text.strip() and not cut:
            raise OptionRangeError.from_value("save", str(path), "a file of labels that a view has written, or a new file")
        places = {key: position for position, key in enumerate(self.keys)}
        last = {key: mark for key, mark, _ in told if key is not None}  # in the order in which the rows came up, each with its last mark
        self._take({places[key]: mark for key, mark in last.items() if key in places}, told[-1][2] if told else ())
        self.strangers = sum(bool(mark) for key, mark in last.items() if key not in places)


def row_keys(df: pd.DataFrame, columns: Sequence[pd.Series[Any]]) -> list[str]:
    """Return a name for each row by which a file knows it again, whatever the order, the index or the scores of the frame then are.

    It is a digest of the row's cells in ``columns``, with a number behind it where an earlier row has the same. Missing cells and empty ones are
    the same, and so are a list and its JSON: files that frames are kept in do not tell them apart.

    Examples
    --------
    >>> df = pd.DataFrame({"input": ["a", "a", "b"]})
    >>> keys = row_keys(df, [df["input"]])
    >>> len(set(keys)), keys[1] == keys[0] + "-2"
    (3, True)
    """
    seen: Counter[str] = Counter()
    keys = []
    cells = zip(*(column.astype(object) for column in columns), strict=True) if columns else (() for _ in range(len(df)))
    for row in cells:
        texts = [cell if isinstance(cell, str) else _known(cell) for cell in row]
        # With their lengths, so that cells that hold the separator are not taken for others.
        text = "\x1f".join([*texts, *(str(len(text)) for text in texts)])
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}-{seen[key]}")
    return keys


def _known(cell: Any) -> str:
    """Return what a cell that is no text is known by."""
    if is_missing(cell):
        return ""
    try:
        return to_json(cell) or ""
    except (TypeError, ValueError, RecursionError):
        return repr(cell)


def _in_frame(df: pd.DataFrame) -> dict[int, Mark]:
    """Return the marks that a frame's own columns hold."""
    there = {name: require(df, name, "explore") for name in COLUMNS if name in df.columns}
    if not there:
        return {}
    found: dict[int, Mark] = {}
    for position, row in enumerate(zip(*(column.astype(object) for column in there.values()), strict=True)):
        cells = dict(zip(there, row, strict=True))
        mark = Mark(_plain(cells.get("label")) or None, _plain(cells.get("note")), _tags_in(cells.get("tags")))
        if mark:
            found[position] = mark
    return found


def _plain(cell: Any) -> str:
    """Return the text of a cell, empty where it is missing."""
    return "" if is_missing(cell) else without_surrogates(str(cell))


def _tags_in(cell: Any) -> tuple[str, ...]:
    """Return the tags that a cell holds: a list, the JSON of one, or a single tag."""
    if isinstance(cell, str) and cell.lstrip()[:1] == "[":
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            cell = [cell]
    if is_missing(cell):
        return ()
    cells = cell if isinstance(cell, (list, tuple, np.ndarray)) else [cell]
    return tuple(dict.fromkeys(name for tag in cells if (name := _one_line(_plain(tag)))))


def _tag(tag: object) -> str:
    """Return a tag's name: one line of text, and raise an `ArgumentTypeError` if it is no text."""
    if not isinstance(tag, str):
        raise ArgumentTypeError.from_value("tag", tag, "a text")
    return _one_line(without_surrogates(tag))


def _short(tag: str) -> str:
    """Return a new tag's name, and raise an `OptionRangeError` if it is empty or too long for one."""
    if not 0 < len(tag) <= TAG_CHARACTERS:
        raise OptionRangeError.from_value(
            "tag", tag[:TAG_CHARACTERS], f"a text of 1 to {TAG_CHARACTERS} characters; longer thoughts go into the note"
        )
    return tag


def _one_line(text: str) -> str:
    """Return a text in one line."""
    return " ".join(text.split())


def _file(save: object) -> Path:
    """Return the file to keep marks in."""
    if not isinstance(save, (str, os.PathLike)):
        raise ArgumentTypeError.from_value("save", save, "the path of a file")
    path = Path(save).expanduser().absolute()
    if path.exists() and not path.is_file():
        raise OptionRangeError.from_value("save", str(save), "a file, not a folder or a device")
    if not path.parent.is_dir():
        raise OptionRangeError.from_value("save", str(save), f"in a folder that is there; make {str(path.parent)!r} first")
    return path


def _line(key: str | None, mark: Mark, tags: list[str]) -> str:
    """Return a change as a line of the file; it has all tags, so that each keeps its digit. A change of tags alone has no row."""
    told = {
        "row": key,
        "label": mark.label,
        "note": mark.note,
        "tags": list(mark.tags),
        "all_tags": tags,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(told, ensure_ascii=True) + "\n"


BEGINS: Final = '{"row": '
"""How every line of the file begins."""


def _told(line: str) -> tuple[str | None, Mark, list[str]] | None:
    """Return the row, the mark and all tags that a line of the file tells, or None where it is none."""
    try:
        told = json.loads(line)
        key, label, note, tags, every = (told[name] for name in ("row", "label", "note", "tags", "all_tags"))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not (
        isinstance(note, str)
        and all(text is None or isinstance(text, str) for text in (key, label))
        and _is_texts(tags)
        and _is_texts(every)
    ):
        return None
    return key, Mark(label, note, tuple(tags)), every


def _is_texts(value: object) -> bool:
    """Return whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _append(path: Path, lines: list[str]) -> None:
    """Add lines to a file and have them on disk when this returns; a last line that was cut short is ended first."""
    with path.open("ab+") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                lines = ["\n", *lines]
        file.write("".join(lines).encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
