"""How two texts match, character by character: the blocks that ``difflib.SequenceMatcher`` finds, counted.

This file is also the program of the helper processes of `scorekit.scorers.matching_pool`. It is run by its path, so it imports nothing of
scorekit and nothing heavy: a helper is ready after some 50 ms.
"""

from __future__ import annotations

import pickle
import sys
from array import array
from typing import TYPE_CHECKING, BinaryIO

from cydifflib import SequenceMatcher

if TYPE_CHECKING:
    from collections.abc import Iterable


def count_matches(pairs: Iterable[tuple[str, str]]) -> tuple[array[int], array[int]]:
    """Return for each pair the number of edited spans, and the number of characters in matching blocks.

    They are what ``SequenceMatcher(None, a, b, autojunk=False)`` says: spans are its opcodes other than "equal".

    Parameters
    ----------
    pairs
        Texts ``(a, b)``.

    Returns
    -------
    tuple of array
        Edited spans and matched characters, as 64-bit integers.

    Examples
    --------
    >>> count_matches([("Hello world! How are you?", "Hello there! How is it going?"), ("a", "a"), ("", "b")])
    (array('q', [5, 0, 1]), array('q', [16, 1, 0]))
    """
    spans, matched = array("q"), array("q")
    for a, b in pairs:
        if a == b:
            spans.append(0)
            matched.append(len(a))
            continue
        edits = characters = i = j = 0
        for a_start, b_start, size in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks():
            edits += a_start > i or b_start > j  # a gap before a block is one opcode; the last block is empty and ends both texts
            i, j = a_start + size, b_start + size
            characters += size
        spans.append(edits)
        matched.append(characters)
    return spans, matched


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests, each a pickled list of pairs, until there are no more; a reply is the two arrays' bytes."""
    while True:
        try:
            pairs = pickle.load(requests)  # noqa: S301  (from the process that started this one, through its own pipe)
        except EOFError:
            return
        replies.writelines(counts.tobytes() for counts in count_matches(pairs))
        replies.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
