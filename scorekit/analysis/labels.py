"""Labels that people and judges give: cells of any type read as the same few classes, or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pandas as pd

from scorekit.errors import ArgumentTypeError, ColumnConflictError, OptionRangeError, UnknownOptionError, listed, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MISSING: Final = -1
UNSURE: Final = -2
"""Codes of cells that hold no class."""

PASS_WORDS: Final = ("pass", "passed", "yes", "y", "true", "t", "1", "good", "correct", "right", "accept", "accepted", "acceptable", "👍")
FAIL_WORDS: Final = (
    "fail",
    "failed",
    "no",
    "n",
    "false",
    "f",
    "0",
    "bad",
    "incorrect",
    "wrong",
    "reject",
    "rejected",
    "unacceptable",
    "👎",
)
UNSURE_WORDS: Final = ("unsure", "not sure", "unclear", "uncertain", "undecided", "maybe", "don't know", "can't tell", "cannot tell", "?")
MISSING_WORDS: Final = ("", "nan", "na", "n/a", "none", "null", "<na>")
"""What cells say, in lower case; the first word of each stands for the rest."""

_MEANINGS: Final = {word: words[0] for words in (PASS_WORDS, FAIL_WORDS, UNSURE_WORDS, MISSING_WORDS) for word in words}
_WHOLE: Final = re.compile(r"([+-]?\d+)\.0*")

Meanings = Mapping[str, str]
"""A caller's own words: spelling -> the class that it means."""


class Labels(NamedTuple):
    """A column of labels: its different spellings, and which of them each row has (or `MISSING`, or `UNSURE`)."""

    column: str
    words: tuple[str, ...]
    codes: NDArray[np.int64]


class Classes(NamedTuple):
    """Columns of labels brought to the same classes: their names, and a code per row of each column."""

    names: tuple[str, ...]
    codes: list[NDArray[np.int64]]

    @property
    def binary(self) -> bool:
        """Return whether the classes are pass and fail."""
        return self.names == BINARY


BINARY: Final = ("pass", "fail")


def spelled(cell: Any) -> str:
    """Return how a label is spelled for comparison: 1, 1.0, "1" and "1.0" alike, True like "true", "Yes " like "yes".

    Examples
    --------
    >>> spelled(1.0), spelled(True), spelled(" Not  sure")
    ('1', 'true', 'not sure')
    """
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell)).lower()
    if isinstance(cell, Real):
        number: Any = cell
        return str(int(number)) if isinstance(cell, Integral) or float(number).is_integer() else str(float(number))
    text = " ".join(str(cell).split()).casefold()
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def read_meanings(labels: Mapping[Any, str | None] | None) -> Meanings:
    """Return the caller's own words by their spelling; None as a meaning is a missing label, and what is said of 1 is said of True too.

    Raises
    ------
    ArgumentTypeError
        When it is no mapping to texts.
    ColumnConflictError
        When one spelling means two things.

    Examples
    --------
    >>> read_meanings({"OK": "pass", 2: None})
    {'ok': 'pass', '2': ''}
    """
    if labels is None:
        return {}
    if not isinstance(labels, Mapping):
        raise ArgumentTypeError.from_value(
            "labels", labels, "a mapping from labels to what they mean", "For example labels={'ok': 'pass'}."
        )
    found: dict[str, str] = {}
    for label, meaning in labels.items():
        if meaning is not None and not isinstance(meaning, (str, bool)):
            raise ArgumentTypeError.from_value(
                f"labels: the meaning of {label!r}", meaning, "a text such as 'pass', 'fail' or 'unsure', or None"
            )
        word, means = spelled(label), "" if meaning is None else spelled(meaning)
        if found.setdefault(word, means) != means:
            msg = f"labels says that {word!r} means both {found[word]!r} and {means!r}; labels that differ only in case or type are one."
            raise ColumnConflictError(msg)
    for number, truth in (("1", "true"), ("0", "false")):
        # Python takes 1 for True, and so does whoever maps one of them: to read the other the usual way would turn its meaning round.
        if number in found or truth in found:
            found = {number: found.get(truth, ""), truth: found.get(number, "")} | found
    return found


def read_labels(column: pd.Series[Any], meanings: Meanings, who: str) -> Labels:
    """Return a column of labels of any dtype.

    Raises
    ------
    ArgumentTypeError
        When cells are no labels (lists, dicts).

    Examples
    --------
    >>> read_labels(pd.Series(["Yes", True, None, "unsure", 1]), {}, "agreement")
    Labels(column='None', words=('1', 'true', 'yes'), codes=array([ 2,  1, -1, -2,  0]))
    """
    try:
        # As objects one by one, because pandas takes True for 1 where it looks for different values.
        cells = column.astype(object).to_numpy()
        there = column.notna().to_numpy(dtype=bool)
        kinds = np.array([isinstance(cell, (bool, np.bool_)) for cell in cells], dtype=bool)
        codes = pd.factorize(cells)[0] * 2 + kinds
    except TypeError as error:
        msg = f"{who}: the column {column.name!r} must hold labels such as 'pass' and 'fail'; it has cells that are none ({error})."
        raise ArgumentTypeError(msg) from error
    different, first, place = np.unique(np.where(there, codes, MISSING), return_index=True, return_inverse=True)
    texts = ["" if code == MISSING else spelled(cells[row]) for code, row in zip(different, first, strict=True)]
    words = [meanings.get(text, text) for text in texts]
    numbers: dict[str, int] = {word: {"": MISSING, UNSURE_WORDS[0]: UNSURE}.get(_MEANINGS.get(word, word), 0) for word in words}
    kept = sorted(word for word, number in numbers.items() if number == 0)
    numbers |= {word: number for number, word in enumerate(kept)}
    return Labels(str(column.name), tuple(kept), np.array([numbers[word] for word in words], dtype=np.int64)[place.reshape(-1)])


def match_classes(columns: Sequence[Labels], who: str, *, binary: bool = False, unsure: bool = False) -> Classes:
    """Return columns of labels as the same classes.

    Parameters
    ----------
    columns
        The labels.
    who
        Who asks, for messages.
    binary
        Whether only pass and fail will do.
    unsure
        Whether unsure is a class.

    Returns
    -------
    Classes
        Pass and fail where every word means one of these; otherwise every word is a class, except that words of one meaning ("yes", "true") are
        one where both occur. Pass and fail come first, then numbers by size, then words; unsure comes last.

    Raises
    ------
    UnknownOptionError
        When ``binary`` and a word is not known to mean pass or fail.

    Examples
    --------
    >>> human = read_labels(pd.Series(["yes", "no", "partly"]), {}, "agreement")
    >>> judge = read_labels(pd.Series([True, "no", "no"]), {}, "agreement")
    >>> match_classes([human, judge], "agreement")
    Classes(names=('pass', 'no', 'partly'), codes=[array([0, 1, 2]), array([0, 1, 1])])
    """
    words = sorted({word for column in columns for word in column.words})
    unknown = [word for word in words if word not in _MEANINGS]
    if binary and unknown:
        whose = listed(dict.fromkeys(column.column for column in columns if set(column.words) & set(unknown)))
        example = f"labels={{{shown(unknown[0])!r}: 'pass'}}"
        msg = (
            f"{who} does not know whether {listed(map(shown, unknown))} in {whose} means pass or fail. Say it with {example} (or 'fail', 'unsure', None "
            f"for no label). Known without being told: {listed(PASS_WORDS[:8])}; {listed(FAIL_WORDS[:8])}; {listed(UNSURE_WORDS[:4])}."
        )
        raise UnknownOptionError(msg)
    if not unknown and not unsure:
        names = list(BINARY)
        classes = {word: _MEANINGS[word] for word in words}
    else:
        meant = [_MEANINGS.get(word, word) for word in words]
        classes = {word: meaning if meant.count(meaning) > 1 else word for word, meaning in zip(words, meant, strict=True)}
        names = sorted(set(classes.values()), key=_rank) + ([UNSURE_WORDS[0]] if unsure else [])
    place = {name: number for number, name in enumerate(names)}
    found = []
    for column in columns:
        # The two codes that are no class are the last elements of the table, where negative indices find them.
        table = [place[classes[word]] for word in column.words] + [len(names) - 1 if unsure else UNSURE, MISSING]
        found.append(np.array(table, dtype=np.int64)[column.codes])
    return Classes(tuple(names), found)


def _rank(word: str) -> tuple[int, float, str]:
    """Return where a class comes: pass, fail, numbers by size, words."""
    try:
        return 2, float(word), word
    except ValueError:
        return {BINARY[0]: 0, BINARY[1]: 1}.get(_MEANINGS.get(word, word), 3), 0.0, word


def settle_unsure(codes: NDArray[np.int64], unsure: str, names: Sequence[str]) -> NDArray[np.int64]:
    """Return codes in which unsure cells are what ``unsure`` says: "pass", "fail", or left as they are.

    Raises
    ------
    OptionRangeError
        When it names a class that there is not.
    """
    if unsure in ("exclude", "class"):
        return codes
    if unsure not in names:
        wanted = f"'exclude' or 'class' where the labels are not pass and fail but {listed(names)}"
        raise OptionRangeError.from_value("unsure", unsure, wanted)
    return np.where(codes == UNSURE, list(names).index(unsure), codes)
