"""What a reader writes down about rows: a label, a note and failure-mode tags, with undo, kept on disk as they are made."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from scorekit.columns import to_json
from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


@dataclass
class Marks:
    """The marks of a frame's rows, by position; every change is written to ``save`` before it counts.

    Attributes
    ----------
    keys
        One name a row, by which the file knows it again; see `row_keys`.
    save
        The file, or None. It is JSONL, one line a change, only ever added to; the last line of a row holds.
    tags
        Every tag there is, in the order in which they came up: the digits 1 to 9 stand for the first nine.
    strangers
        How many rows of the file are not in the frame; their lines stay in the file.
    """

    keys: Sequence[str]
    save: Path | None = None
    tags: list[str] = field(default_factory=list)
    strangers: int = 0
    _marks: dict[int, Mark] = field(default_factory=dict)
    _read: list[int] = field(default_factory=list)
    _past: list[dict[int, Mark]] = field(default_factory=list)
    _noting: int | None = None

    @classmethod
    def of(cls, df: pd.DataFrame, keys: Sequence[str], *, tags: Iterable[str] = (), save: str | os.PathLike[str] | None = None) -> Marks:
        """Begin with what the frame's own columns ``label``, ``note`` and ``tags`` say, then with what the file says.

        Raises
        ------
        OptionRangeError
            When the folder of ``save`` is not there, or ``save`` is a folder or holds something else.
        """
        marks = cls(keys, None if save is None else _file(save), list(dict.fromkeys(_tag(tag) for tag in tags)))
        for position, mark in _in_frame(df).items():
            marks._keep(position, mark)
        if marks.save is not None and marks.save.exists():
            marks._load(marks.save)
        return marks

    def __getitem__(self, position: int) -> Mark:
        """Return a row's mark; an empty one where nothing is written down."""
        return self._marks.get(position, Mark())

    @property
    def read(self) -> list[int]:
        """The rows that have a mark, in the order in which they got their first."""
        return [position for position in self._read if self[position]]

    @property
    def can_undo(self) -> bool:
        """Return whether there is a change to take back."""
        return bool(self._past)

    def label(self, position: int, label: str | None) -> None:
        """Set a row's label; the one that it has already is taken away.

        Raises
        ------
        UnknownOptionError
            When it is not one of `LABELS`.
        """
        if label is not None and label not in LABELS:
            raise UnknownOptionError.from_value("label", label, LABELS)
        self._change({position: replace(self[position], label=None if label == self[position].label else label)})

    def note(self, position: int, note: str) -> None:
        """Set a row's note. What is typed in one go is one change to take back."""
        mark = replace(self[position], note=without_surrogates(note))
        if mark != self[position]:
            going_on = self._noting == position and bool(self._past)
            self._change({position: mark}, remembered=not going_on)
            self._noting = position

    def tag(self, position: int, tag: str) -> None:
        """Give a row a tag, or take it away where the row has it; a new tag joins the others."""
        tag = _tag(tag)
        held = self[position].tags
        tags = tuple(other for other in held if other != tag) if tag in held else (*held, tag)
        self._change({position: replace(self[position], tags=tags)})

    def rename(self, old: str, new: str) -> None:
        """Rename a tag in every row; where the new name is a tag already the two become one. This is one change to take back."""
        new = _tag(new)
        if old not in self.tags:
            raise UnknownOptionError.from_value("tag", old, self.tags)
        changed = {
            position: replace(mark, tags=tuple(dict.fromkeys(new if tag == old else tag for tag in mark.tags)))
            for position, mark in self._marks.items()
            if old in mark.tags
        }
        self.tags = list(dict.fromkeys(new if tag == old else tag for tag in self.tags))
        if changed:
            self._change(changed)

    def undo(self) -> int | None:
        """Take back the last change; return a row that it was about, or None where there was none."""
        if not self._past:
            return None
        before = self._past.pop()
        self._noting = None
        self._write(before)
        return next(iter(before))

    def counts(self) -> pd.DataFrame:
        """Return how many rows have each tag: columns ``tag`` (string), ``rows`` (int64) and ``share`` of the rows read (float64), most first."""
        held = Counter(tag for mark in self._marks.values() for tag in mark.tags)
        rows = [held[tag] for tag in self.tags]
        read = max(len(self.read), 1)
        found = pd.DataFrame(
            {
                "tag": pd.Series(self.tags, dtype="string"),
                "rows": np.array(rows, dtype=np.int64),
                "share": np.array(rows, dtype=float) / read,
            }
        )
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
        count = len(self.keys)
        cells: dict[str, list[str | None]] = {name: [None] * count for name in COLUMNS}
        for position, mark in self._marks.items():
            cells["label"][position] = mark.label
            cells["note"][position] = mark.note or None
            cells["tags"][position] = to_json(list(mark.tags)) if mark.tags else None
        return pd.DataFrame({name: pd.array(values, dtype="string") for name, values in cells.items()}, index=range(count))

    def _change(self, changed: dict[int, Mark], *, remembered: bool = True) -> None:
        """Write a change, and remember what was there before."""
        before = {position: self[position] for position in changed}
        self._write(changed)
        self._noting = None
        if remembered:
            self._past.append(before)

    def _write(self, changed: dict[int, Mark]) -> None:
        """Write marks to the file first, then to memory: what is shown as kept is kept."""
        if self.save is not None:
            _append(self.save, [_line(self.keys[position], mark) for position, mark in changed.items()])
        for position, mark in changed.items():
            self._keep(position, mark)

    def _keep(self, position: int, mark: Mark) -> None:
        """Take a mark into memory."""
        if position not in self._marks:
            self._read.append(position)
        self._marks[position] = mark
        self.tags.extend(tag for tag in mark.tags if tag not in self.tags)

    def _load(self, path: Path) -> None:
        """Read the file's lines; one that was cut short by a sudden death is passed over."""
        places = {key: position for position, key in enumerate(self.keys)}
        strangers, last = set(), {}
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines()):
            try:
                told = json.loads(line)
                key, mark = told["row"], Mark(told.get("label"), told.get("note") or "", tuple(told.get("tags") or ()))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                if number == 0:
                    raise OptionRangeError.from_value(
                        "save", str(path), "a file of labels that a view has written, or a new file"
                    ) from error
                continue
            if key in places:
                last[places[key]] = mark
            else:
                strangers.add(key)
        for position, mark in last.items():  # the last line of a row holds: tags that were renamed do not come back
            self._keep(position, mark)
        self.strangers = len(strangers)


def row_keys(df: pd.DataFrame, columns: Sequence[pd.Series[Any]]) -> list[str]:
    """Return a name for each row by which a file knows it again, whatever the order, the index or the scores of the frame then are.

    It is a digest of the row's cells in ``columns``, with a number behind it where an earlier row has the same.

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
        text = "\x1f".join(cell if isinstance(cell, str) else repr(cell) for cell in row)
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
        seen[key] += 1
        keys.append(key if seen[key] == 1 else f"{key}-{seen[key]}")
    return keys


def _in_frame(df: pd.DataFrame) -> dict[int, Mark]:
    """Return the marks that a frame's own columns hold."""
    there = {name: df[name] for name in COLUMNS if int((df.columns == name).sum()) == 1}
    if not there:
        return {}
    found: dict[int, Mark] = {}
    rows = zip(*(column.astype(object).where(column.notna(), None) for column in there.values()), strict=True)
    for position, row in enumerate(rows):
        cells = dict(zip(there, row, strict=True))
        label, note = cells.get("label"), cells.get("note")
        mark = Mark(None if label is None else str(label), "" if note is None else str(note), _tags_in(cells.get("tags")))
        if mark:
            found[position] = mark
    return found


def _tags_in(cell: Any) -> tuple[str, ...]:
    """Return the tags that a cell holds: a list, the JSON of one, or a single tag."""
    if isinstance(cell, str) and cell.lstrip()[:1] == "[":
        try:
            cell = json.loads(cell)
        except ValueError:
            return (cell,)
    if isinstance(cell, (list, tuple, np.ndarray)):
        return tuple(dict.fromkeys(str(tag) for tag in cell))
    return (str(cell),) if cell is not None and str(cell).strip() else ()


def _tag(tag: object) -> str:
    """Return a tag's name: one line of text.

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        When it is no text, empty, or too long for a tag.
    """
    if not isinstance(tag, str):
        raise ArgumentTypeError.from_value("tag", tag, "a text")
    name = " ".join(without_surrogates(tag).split())
    if not 0 < len(name) <= TAG_CHARACTERS:
        raise OptionRangeError.from_value(
            "tag", name[:TAG_CHARACTERS], f"a text of 1 to {TAG_CHARACTERS} characters; longer thoughts go into the note"
        )
    return name


def _file(save: object) -> Path:
    """Return the file to keep marks in."""
    if not isinstance(save, (str, os.PathLike)):
        raise ArgumentTypeError.from_value("save", save, "the path of a file")
    path = Path(save).expanduser().absolute()
    if path.is_dir():
        raise OptionRangeError.from_value("save", str(save), "a file, not a folder")
    if not path.parent.is_dir():
        raise OptionRangeError.from_value("save", str(save), f"in a folder that is there; make {str(path.parent)!r} first")
    return path


def _line(key: str, mark: Mark) -> str:
    """Return a change as a line of the file."""
    told = {
        "row": key,
        "label": mark.label,
        "note": mark.note,
        "tags": list(mark.tags),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return json.dumps(told, ensure_ascii=True) + "\n"


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
