"""AFINN-165: the mean sentiment of a text's tokens, counted as the npm package ``sentiment`` counts."""

from __future__ import annotations

import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

WORD_LIST: Final = "AFINN-en-165.txt"

_NEGATORS: Final = frozenset({"cant", "can't", "dont", "don't", "doesnt", "doesn't", "not", "non", "wont", "won't", "isnt", "isn't"})
_TO_SPACE: Final = str.maketrans(dict.fromkeys('\n.,/#!?$%^&*;:{}=_`"~()', " "))
_SPACES: Final = re.compile(r"[\s\ufeff]{2,}")
_AROUND: Final = re.compile(r"\A[\s\ufeff]+|[\s\ufeff]+\Z")


@cache
def afinn_words() -> dict[str, int]:
    """Return the word list of the PyPI package ``afinn``: words and phrases with whole numbers from -5 to 5.

    The file is read without importing the package, which would compile its own pattern of all words.
    """
    found = find_spec("afinn")
    if found is None or found.origin is None:
        msg = "The package 'afinn' is not installed; install it with: pip install afinn"
        raise ModuleNotFoundError(msg, name="afinn")
    lines = (Path(found.origin).parent / "data" / WORD_LIST).read_text(encoding="utf-8").splitlines()
    entries = (line.rpartition("\t") for line in lines if line)
    return {word: int(value) for word, _, value in entries}


def afinn_tokens(text: str) -> list[str]:
    """Return a text's tokens: lower case, punctuation to spaces, split on single spaces; an empty text is one empty token.

    Examples
    --------
    >>> afinn_tokens("Don't panic: it's GOOD!")
    ["don't", 'panic', "it's", 'good']
    """
    spaced = _SPACES.sub(" ", text.lower().translate(_TO_SPACE))
    return _AROUND.sub("", spaced).split(" ")


def afinn_sentiment(text: str) -> tuple[float, int]:
    """Return the sum of the tokens' AFINN-165 values divided by the number of tokens, and how many tokens carry sentiment.

    A token directly after a negator ("not", "don't", ...) counts with the opposite sign. Phrases of the list never match, as in the npm
    package.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    tuple
        The mean, -5 to 5, and the number of tokens with a value other than 0.

    References
    ----------
    F. Å. Nielsen (2011), A new ANEW: Evaluation of a word list for sentiment analysis in microblogs. The tokens and the negators are
    those of the npm package ``sentiment`` 5; emoji, of which that gives 767 a value, count 0 here.

    Examples
    --------
    >>> afinn_sentiment("This product is fantastic and amazing!")
    (1.3333333333333333, 2)
    >>> afinn_sentiment("not good")
    (-1.5, 1)
    """
    values, tokens = afinn_words(), afinn_tokens(text)
    total = scored = 0
    for i, token in enumerate(tokens):
        if value := values.get(token):
            scored += 1
            total += -value if i and tokens[i - 1] in _NEGATORS else value
    return total / len(tokens), scored
