"""VADER's compound of many texts, exactly as vaderSentiment computes it, without the work that it does over and over.

vaderSentiment looks at every word of a text for every word that carries sentiment, and at every character for emoji. Here each distinct
word is looked up once, and rules are applied only where a word before asks for one. The lexicon, the emoji, the rules for idioms, "least"
and punctuation are the package's own, called; what is written anew are the loops between them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from vaderSentiment.vaderSentiment import (
    BOOSTER_DICT,
    C_INCR,
    N_SCALAR,
    NEGATE,
    SPECIAL_CASES,
    SentimentIntensityAnalyzer,
    SentiText,
    normalize,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

KNOWN_WORDS: Final = 50_000
"""How many distinct words are kept at most; then the memory starts afresh."""

LONGEST_KNOWN: Final = 64
"""Longer words are not kept: they hardly come again, and may be whole files."""

REACH: Final = 3
"""How many words before a word can change its sentiment."""

_FADING: Final = (1.0, 0.95, 0.9)
_PHRASES: Final = tuple(phrase for phrase in (*SPECIAL_CASES, *BOOSTER_DICT) if " " in phrase)
_PHRASE_WORDS: Final = frozenset(word for phrase in _PHRASES for word in phrase.split()) - {"the", "to", "of", "for"}
"""Words that show that a phrase may be near: every phrase has one, and one that begins with a sentiment word begins with such a word."""


class Word:
    """What VADER's rules ask about a word.

    Attributes
    ----------
    text, lower
        The word without punctuation around it, as written and in lower case.
    valence
        Its sentiment; None where it carries none.
    boost
        What it adds to a sentiment after it.
    negates, so_or_this, in_phrase, shouted
        Whether it turns a sentiment after it around; is "so" or "this"; may be of a phrase; is written in capitals.
    unusual
        Whether any rule but its own valence may apply on its account to a word after it.
    """

    __slots__ = ("boost", "in_phrase", "lower", "negates", "shouted", "so_or_this", "text", "unusual", "valence")

    def __init__(self, raw: str, lexicon: dict[str, float]) -> None:
        """Ask everything once."""
        self.text: str = SentiText._strip_punc_if_word(raw)  # noqa: SLF001  (the same stripping by construction)
        self.lower = self.text.lower()
        self.boost: float = BOOSTER_DICT.get(self.lower, 0.0)
        self.valence = None if self.boost else lexicon.get(self.lower)
        self.negates = self.lower in NEGATE or "n't" in self.lower
        self.so_or_this = self.lower in ("so", "this")
        self.in_phrase = self.lower in _PHRASE_WORDS
        self.shouted = self.text.isupper()
        self.unusual = bool(self.boost) or self.negates or self.so_or_this or self.in_phrase or self.lower in ("no", "least")


class Vocabulary(dict[str, Word]):
    """Words by how they are written, each made when first met."""

    def __init__(self, lexicon: dict[str, float]) -> None:
        """Begin with no words."""
        super().__init__()
        self.lexicon = lexicon

    def __missing__(self, raw: str) -> Word:
        """Make a word and keep it."""
        word = Word(raw, self.lexicon)
        if len(raw) <= LONGEST_KNOWN:
            if len(self) >= KNOWN_WORDS:
                self.clear()
            self[raw] = word
        return word


class Vader:
    """The analyzer; built once a process by `vader_sentiment`, since reading the lexicons takes some 40 ms."""

    def __init__(self) -> None:
        """Read the lexicons."""
        self.package = SentimentIntensityAnalyzer()
        self.vocabulary = Vocabulary(self.package.lexicon)
        self.emoji = frozenset(emoji for emoji in self.package.emojis if len(emoji) == 1)

    def sentiment(self, text: str) -> tuple[float, int]:
        """Return the compound of a text, and how many of its words have a part in it."""
        if not text.isascii() and not self.emoji.isdisjoint(text):
            text = self._with_emoji_described(text)
        words = list(map(self.vocabulary.__getitem__, text.split()))
        carriers = [i for i, word in enumerate(words) if word.valence is not None]
        if not carriers:
            return 0.0, 0
        unusual = [word.unusual for word in words]
        shouting: bool | None = None  # whether some words, but not all, are in capitals
        places, values = [], []
        for i in carriers:
            word = words[i]
            value = word.valence
            if word.shouted or True in unusual[i - REACH if i > REACH else 0 : i + 1]:
                if shouting is None:
                    shouting = 0 < [near.shouted for near in words].count(True) < len(words)
                value = self._in_place(words, i, shouting=shouting)
            if value:
                places.append(i)
                values.append(value)
        if values and "but" in (lowered := [word.lower for word in words]):
            _weigh_around(lowered.index("but"), places, values)
        total = float(sum(values))
        if total > 0:
            total += self.package._punctuation_emphasis(text)  # noqa: SLF001
        elif total < 0:
            total -= self.package._punctuation_emphasis(text)  # noqa: SLF001
        return round(normalize(total), 4), len(values)

    def _with_emoji_described(self, text: str) -> str:
        """Return the text with its emoji in words, each set off from what is before it."""
        pieces, previous = [], " "
        for character in text:
            description = self.package.emojis.get(character, character)
            pieces.append(" " + description if character in self.emoji and previous != " " else description)
            previous = character
        return "".join(pieces)

    def _in_place(self, words: Sequence[Word], i: int, *, shouting: bool) -> float:
        """Return the sentiment of the word at ``i``, as the words around it make it."""
        word, following = words[i], words[i + 1].lower if i + 1 < len(words) else ""
        if following == "of" and word.lower == "kind":
            return 0.0
        before = words[i - REACH if i > REACH else 0 : i][::-1]
        value = word.valence or 0.0
        if _after_no([near.lower for near in before]):
            value *= N_SCALAR
        elif word.lower == "no" and following in self.package.lexicon:
            value = 0.0
        if shouting and word.shouted:
            value += C_INCR if value > 0 else -C_INCR
        value = _modified(value, before, shouting=shouting)
        if len(before) == REACH and before[-1].valence is None and (word.in_phrase or any([near.in_phrase for near in before])):  # noqa: C419
            window = [near.text for near in words[i - REACH : i + REACH]]
            value = self.package._special_idioms_check(value, window, REACH)  # noqa: SLF001
        if before and before[0].lower == "least":
            window = [near.text for near in words[i - 2 if i > 2 else 0 : i + 1]]  # noqa: PLR2004
            value = self.package._least_check(value, window, len(window) - 1)  # noqa: SLF001
        return value


def _after_no(before: Sequence[str]) -> bool:
    """Return whether a "no" among the words before, nearest first, turns a sentiment around."""
    return "no" in before and ("no" in before[:2] or before[0] in ("or", "nor"))


def _modified(value: float, before: Sequence[Word], *, shouting: bool) -> float:
    """Return a sentiment as the boosters and negations among the words before, nearest first, change it."""
    for distance, near in enumerate(before):
        if near.valence is not None:
            continue
        if near.boost:
            step = -near.boost if value < 0 else near.boost
            if shouting and near.shouted:
                step += C_INCR if value > 0 else -C_INCR
            value += step * _FADING[distance]
        if near.negates or (distance == REACH - 1 and before[0].so_or_this):
            value *= _negation(before, distance)
    return value


def _negation(before: Sequence[Word], distance: int) -> float:
    """Return the factor that a word before, nearest first, puts on a sentiment: a negation, or "so" and "this" in the nearer places."""
    near = before[distance]
    if distance:
        between = before[:distance]
        if (distance == REACH - 1 and between[0].so_or_this) or (near.lower == "never" and any(word.so_or_this for word in between)):
            return 1.25
        if near.lower == "without" and any(word.lower == "doubt" for word in between):
            return 1.0
    return N_SCALAR if near.negates else 1.0


def _weigh_around(but: int, places: Sequence[int], values: list[float]) -> None:
    """Halve the sentiments before a "but" and raise those after it by half, in place.

    The package looks for each value's place by the value, so of equal ones the first is weighed again and again; so it is here.
    """
    for value in values:
        first = values.index(value)
        values[first] = value * (0.5 if places[first] < but else 1.5)


@cache
def _analyzer() -> Vader:
    """Return this process's analyzer."""
    return Vader()


def vader_sentiment(text: str) -> tuple[float, int]:
    """Return VADER's compound of a text, -1 to 1, and how many of its words have a part in it.

    Parameters
    ----------
    text
        Any text.

    Returns
    -------
    tuple
        Exactly ``SentimentIntensityAnalyzer().polarity_scores(text)["compound"]``, and the number of words with a sentiment other than 0.

    References
    ----------
    C. J. Hutto and E. Gilbert (2014), VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text. ICWSM-14.

    Examples
    --------
    >>> vader_sentiment("The food was not very good, but the staff was great!")
    (0.7295, 2)
    >>> vader_sentiment("The food was served at eight.")
    (0.0, 0)
    """
    return _analyzer().sentiment(text)
