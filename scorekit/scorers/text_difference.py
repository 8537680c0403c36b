"""Textual difference: how far the output is from the input, character by character."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd
from rapidfuzz import process
from rapidfuzz.distance import Indel

from scorekit.errors import UnknownOptionError
from scorekit.scorer import Scorer
from scorekit.scorers.matching_pool import count_matches_on_all_cores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Ratio = Literal["lcs", "difflib"]
Changes = Literal["spans", "words"]

RATIOS: Final = ("lcs", "difflib")
CHANGES: Final = ("spans", "words")

WORTH_THREADS: Final = 4e9
"""Cells of the distance tables from which on rapidfuzz's threads are worth starting: some 100 ms of work."""

_LENGTHS: Final = np.array(
    [
        f"the output is {'under 1' if percent == 0 else percent} % {word}" if word else "the lengths are equal"
        for word in ("shorter", "", "longer")
        for percent in range(101)
    ],
    dtype=object,
)
_SIMILARITIES: Final = np.array([*(f"{percent / 100:.2f}" for percent in range(100)), "above 0.99"], dtype=object)
_CHANGE_WORDS: Final = {"spans": ("edited span", "edited spans"), "words": ("changed word", "changed words")}


def score_text_difference(
    df: pd.DataFrame,
    /,
    *,
    input: str = "input",  # noqa: A002  (the column's name everywhere)
    output: str = "output",
    ratio: Ratio = "lcs",
    changes: Changes = "spans",
    name: str = "text_difference",
    progress: bool = True,
) -> pd.DataFrame:
    """Score how similar each output is to its input, as text: 1 where they are equal, 0 where they share nothing.

    Texts are compared in Unicode code points, case and white space included.

    Parameters
    ----------
    df
        The rows; never changed.
    input, output
        The columns that hold the two texts.
    ratio
        What the similarity is. ``"lcs"`` is ``2 * LCS / (len(a) + len(b))`` with the longest common subsequence: exact, symmetric, fast.
        ``"difflib"`` is ``SequenceMatcher(None, a, b, autojunk=False).ratio()``: at most that, not symmetric, slower.
    changes
        What is counted as a change. ``"spans"`` are the opcodes of that SequenceMatcher other than "equal". ``"words"`` are words of the
        longer text that find no partner among the words of the other, wherever they stand (texts that differ in white space alone
        count 1): use it for very long texts, where spans take time with the square of the length and more.
    name
        Prefix of the added columns.
    progress
        Show a bar when it takes more than 2 seconds.

    Returns
    -------
    pandas.DataFrame
        The same rows in the same order with the same index; after the frame's own columns

        - ``text_difference_score`` (float64, 0 to 1): the ratio; NaN where a text is missing
        - ``text_difference_reason`` (string): the fields in words; its percentage is ``length_diff``
        - ``text_difference_error`` (string): NA where scored, else the error code
        - ``text_difference_confidence`` (float64, 0 to 1): ``1 - length_diff``
        - ``text_difference_ratio`` (float64, 0 to 1)
        - ``text_difference_changes`` (float64, whole numbers from 0)
        - ``text_difference_length_diff`` (float64, 0 to 1): difference of the lengths / the greater length; 0 where both are empty

    Raises
    ------
    UnknownOptionError
        ``ratio`` or ``changes`` is not one of its choices.
    MissingColumnError
        The frame lacks a column.
    ColumnConflictError
        A column is there twice, or would be overwritten.

    Notes
    -----
    Costs no judge calls. Spans of large frames are counted on all cores, in helper processes that are started where the work left would
    take over half a second, and that import neither scorekit nor the caller's script.

    References
    ----------
    The textual difference scorer of ``@mastra/evals``, whose documented values these are. Changed: autojunk is never on (it scores a
    10,000-character text with 120 edited characters 0.14 instead of 0.99), texts are counted in code points instead of UTF-16 units, and
    the ratio is the true longest common subsequence instead of difflib's greedy one, unless asked for. rapidfuzz computes the first,
    cydifflib the other.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"input": ["Hello world! How are you?"], "output": ["Hello there! How is it going?"]})
    >>> scored = score_text_difference(df)
    >>> scored[["text_difference_score", "text_difference_confidence", "text_difference_changes"]].values.tolist()
    [[0.5925925925925926, 0.8620689655172413, 5.0]]
    >>> scored["text_difference_reason"].item()
    '5 edited spans; the output is 14 % longer; similarity 0.59.'
    >>> score_text_difference(df, changes="words")["text_difference_reason"].item()
    '4 changed words; the output is 14 % longer; similarity 0.59.'
    """
    if ratio not in RATIOS:
        raise UnknownOptionError.from_value("ratio", ratio, RATIOS)
    if changes not in CHANGES:
        raise UnknownOptionError.from_value("changes", changes, CHANGES)
    scorer = replace(TEXT_DIFFERENCE, name=name, options={"ratio_by": ratio, "changes_in": changes})
    return scorer(df, input=input, output=output, progress=progress)


def compare_texts(rows: pd.DataFrame, *, ratio_by: Ratio, changes_in: Changes) -> pd.DataFrame:
    """Return the fields of text difference; ``longer`` (-1, 0, 1) is for the reason."""
    inputs, outputs = rows["input"].tolist(), rows["output"].tolist()
    lengths, output_lengths = text_lengths(inputs), text_lengths(outputs)
    longest = np.maximum(lengths, output_lengths)
    length_diff = np.divide(np.abs(lengths - output_lengths), longest, out=np.zeros(len(rows)), where=longest > 0)
    total = lengths + output_lengths
    if ratio_by == "difflib" or changes_in == "spans":
        changed, matched = spans_and_matches(inputs, outputs)
    twice_common = 2 * matched if ratio_by == "difflib" else twice_lcs(inputs, outputs, lengths, output_lengths)
    if changes_in == "words":
        changed = word_changes(inputs, outputs)
    return pd.DataFrame(
        {
            "confidence": 1 - length_diff,
            "ratio": np.divide(twice_common, total, out=np.ones(len(rows)), where=total > 0),
            "changes": changed.astype(np.float64),
            "length_diff": length_diff,
            "longer": np.sign(output_lengths - lengths),
        },
        index=rows.index,
    )


def text_lengths(texts: Sequence[str]) -> NDArray[np.int64]:
    """Return the texts' lengths in code points."""
    return np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))


def twice_lcs(
    inputs: Sequence[str], outputs: Sequence[str], lengths: NDArray[np.int64], output_lengths: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return twice the length of the longest common subsequence: both lengths less the characters to take out and put in."""
    cells = float(lengths.astype(np.float64) @ output_lengths.astype(np.float64))
    workers = -1 if cells >= WORTH_THREADS else 1
    distances: NDArray[np.int64] = process.cpdist(inputs, outputs, scorer=Indel.distance, dtype=np.int64, workers=workers)
    return lengths + output_lengths - distances


def spans_and_matches(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of edited spans and of matched characters; equal pairs are compared once."""
    numbers: dict[tuple[str, str], int] = {}
    places = np.fromiter(
        (numbers.setdefault(pair, len(numbers)) for pair in zip(inputs, outputs, strict=True)), dtype=np.int64, count=len(inputs)
    )
    spans, matched = count_matches_on_all_cores(list(numbers))
    return spans[places], matched[places]


def word_changes(inputs: Sequence[str], outputs: Sequence[str]) -> NDArray[np.int64]:
    """Return how many words of the longer text have no partner in the other; 1 where white space alone differs.

    Words are what white space separates, U+FEFF included, as JavaScript has it.
    """
    return np.fromiter(map(_word_change, inputs, outputs), dtype=np.int64, count=len(inputs))


def _word_change(a: str, b: str) -> int:
    """Count the word changes of one pair."""
    if a == b:
        return 0
    a_words, b_words = _words(a), _words(b)
    if a_words == b_words:
        return 1
    left = Counter(a_words)
    common = 0
    for word in b_words:
        if count := left.get(word):
            left[word] = count - 1
            common += 1
    return max(len(a_words), len(b_words)) - common


def _words(text: str) -> list[str]:
    """Split a text at white space."""
    return (text.replace("\ufeff", " ") if "\ufeff" in text else text).split()


def similarity(rows: pd.DataFrame) -> pd.Series[float]:
    """Return the score: the ratio."""
    return rows["ratio"]


def explain(rows: pd.DataFrame, *, changes_in: Changes) -> pd.Series[str]:
    """Return the fields in words."""
    one, many = _CHANGE_WORDS[changes_in]
    percents = np.rint(100 * rows["length_diff"].to_numpy()).astype(np.int64)
    lengths = _LENGTHS[101 * (rows["longer"].to_numpy(dtype=np.int64) + 1) + percents].tolist()
    ratios = rows["ratio"].to_numpy()
    similarities = _SIMILARITIES[np.rint(100 * ratios).astype(np.int64)].tolist()
    counts = rows["changes"].to_numpy().astype(np.int64).tolist()
    return pd.Series(
        [
            "The texts are equal." if equal else f"{count} {one if count == 1 else many}; {length}; similarity {similar}."
            for equal, count, length, similar in zip((ratios == 1).tolist(), counts, lengths, similarities, strict=True)
        ],
        index=rows.index,
        dtype=object,
    )


TEXT_DIFFERENCE: Final = Scorer(
    "text_difference",
    needs=("input", "output"),
    analyze=compare_texts,
    generate_score=similarity,
    generate_reason=explain,
    fields={"confidence": float, "ratio": float, "changes": float, "length_diff": float},
    options={"ratio_by": "lcs", "changes_in": "spans"},
)
"""Its options are called otherwise than the function's arguments, since two of its fields have those names."""
