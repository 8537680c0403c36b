"""Tone consistency: whether two texts, or the sentences of one, carry the same sentiment."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd

from scorekit.errors import ArgumentTypeError, OptionRangeError, UnknownOptionError, shown
from scorekit.scorer import Scorer
from scorekit.scorers.afinn import afinn_sentiment
from scorekit.scorers.options import checked_scale
from scorekit.scorers.vader import vader_sentiment
from scorekit.texts import latin_share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

Lexicon = Literal["vader", "afinn"]
Mode = Literal["auto", "comparison", "stability"]

MODES: Final = ("auto", "comparison", "stability")
LEXICONS: Final[Mapping[str, Callable[[str], tuple[float, int]]]] = {"vader": vader_sentiment, "afinn": afinn_sentiment}

MOSTLY: Final = 0.5
"""A text with a smaller share of Latin letters than this is in another script."""

KNOWN_TEXTS: Final = 100_000
"""How many texts' sentiments are remembered at most."""

_SENTENCE: Final = re.compile(r"[^.!?]+[.!?]+")


def score_tone(
    df: pd.DataFrame,
    /,
    *,
    input: str = "input",  # noqa: A002  (the column's name everywhere)
    output: str = "output",
    lexicon: Lexicon = "vader",
    mode: Mode = "auto",
    reference: str | None = None,
    scale: float = 1.0,
    name: str = "tone",
    progress: bool = True,
) -> pd.DataFrame:
    """Score how well each output keeps the tone of its input, of a fixed text, or of itself from sentence to sentence.

    Parameters
    ----------
    df
        The rows; never changed.
    input, output
        The columns that hold the two texts. With ``reference=`` and with ``mode="stability"`` the input is not read and need not be there.
    lexicon
        Where sentiments come from; both are English. ``"vader"``: the compound of vaderSentiment, -1 to 1, the very same numbers; it knows
        negation, emphasis, capitals and emoji, but takes one that is followed by U+FE0F, as in ❤️, for an unknown word.
        ``"afinn"``: the mean AFINN-165 value of a text's tokens, -5 to 5; the published numbers, save that emoji count 0 (the npm
        package gives 767 of them a value).
    mode
        ``"comparison"`` compares the two texts' sentiments. ``"stability"`` looks at how the sentiment of the output varies over its
        sentences. ``"auto"`` compares, except that rows with an empty output get the stability of their input.
    reference
        A text that every output is compared with, in place of the input.
    scale
        Multiplies the score; at least 0.
    name
        Prefix of the added columns.
    progress
        Show a bar when it takes more than 2 seconds.

    Returns
    -------
    pandas.DataFrame
        The same rows in the same order with the same index; after the frame's own columns

        - ``tone_score`` (float64, 0 to ``scale``); NaN where a text is missing, or has mostly letters of another script than Latin
        - ``tone_reason`` (string): the fields in words
        - ``tone_error`` (string): NA where scored, else the error code
        - ``tone_response_sentiment``, ``tone_reference_sentiment`` (float64): as documented, the response is the *input* and the reference
          the *output*; with ``reference=`` the response is the output and the reference that text. NaN for stability
        - ``tone_difference`` (float64, from 0): how far apart the two are. NaN for stability
        - ``tone_avg_sentiment``, ``tone_sentiment_variance`` (float64): mean and population variance over the sentences. NaN for comparison
        - ``tone_response_scored_tokens``, ``tone_reference_scored_tokens`` (float64, whole numbers from 0): how many words carried
          sentiment; 0 of both makes a score of 1 say little. For stability the first counts the one text, the second is NaN

    Raises
    ------
    UnknownOptionError
        ``lexicon`` or ``mode`` is not one of its choices.
    OptionRangeError
        ``scale`` is negative or not finite; ``mode="stability"`` together with ``reference``; ``reference`` is not in Latin letters.
    ArgumentTypeError
        ``reference`` is no text, or ``scale`` no number.
    MissingColumnError
        The frame lacks a column.
    ColumnConflictError
        A column is there twice, or would be overwritten.

    Notes
    -----
    Costs no judge calls. With VADER a comparison scores ``1 - difference / 2`` and stability ``1 - variance``; with AFINN
    ``1 - difference`` and ``1 - variance``, at least 0. Sentences, with either lexicon, are the matches of ``[^.!?]+[.!?]+``: what follows
    the last full stop does not count; a text without any is one sentence. An empty text has sentiment 0 and is stable.

    References
    ----------
    The tone scorer of ``@mastra/evals``, whose documented values ``lexicon="afinn"`` gives. Changed: VADER by default, since AFINN knows no
    emphasis; emoji without a value in AFINN; texts in another script are not scored instead of called neutral. C. J. Hutto and E. Gilbert
    (2014), VADER. F. Å. Nielsen (2011), AFINN.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"input": ["I love this!", "It was fine."], "output": ["I hate this!", ""]})
    >>> scored = score_tone(df)
    >>> scored["tone_score"].tolist()
    [0.35949999999999993, 1.0]
    >>> scored["tone_reason"].tolist()[0]
    "The input's sentiment is +0.67, the output's -0.61: they differ by 1.28."
    >>> pair = {"input": ["This product is fantastic and amazing!"], "output": ["The product is excellent and wonderful!"]}
    >>> score_tone(pd.DataFrame(pair), lexicon="afinn")["tone_score"].item()
    0.8333333333333335
    >>> score_tone(df[["output"]], reference="We love it.")["tone_reference_sentiment"].tolist()
    [0.6369, 0.6369]
    """
    _check_options(lexicon, mode, reference, scale)
    alone = reference is not None or mode == "stability"
    scorer = replace(
        TONE,
        name=name,
        needs=("output",) if alone else TONE.needs,
        options={"lexicon": lexicon, "mode": mode, "reference": reference, "scale": scale},
    )
    return scorer(df, output=output, progress=progress) if alone else scorer(df, input=input, output=output, progress=progress)


def _check_options(lexicon: str, mode: str, reference: object, scale: float) -> None:
    """Refuse options that fit no row."""
    if lexicon not in tuple(LEXICONS):
        raise UnknownOptionError.from_value("lexicon", lexicon, LEXICONS)
    if mode not in MODES:
        raise UnknownOptionError.from_value("mode", mode, MODES)
    checked_scale(scale)
    if reference is None:
        return
    if not isinstance(reference, str):
        raise ArgumentTypeError.from_value("reference", reference, "one text", "Pass a column as input= to compare row by row.")
    if mode == "stability":
        raise OptionRangeError.from_value("mode", mode, "'auto' or 'comparison' where reference= is given: stability reads one text")
    if latin_share(pd.Series([reference], dtype=object))[0] < MOSTLY:
        raise OptionRangeError.from_value("reference", shown(reference), "mostly in Latin letters: both lexicons are English")


def check_scripts(rows: pd.DataFrame, *, mode: Mode, reference: str | None) -> pd.DataFrame:
    """Return ``not_scorable`` for rows of which a text that is read has mostly letters of another script than Latin."""
    stability = _stability(rows, mode, reference)
    response = _response(mode, reference)
    stops = np.full(len(rows), None, dtype=object)
    if response == "input":
        stops[(latin_share(rows["output"]) < MOSTLY) & ~stability] = _other_script("output")
    stops[latin_share(rows[response]) < MOSTLY] = _other_script(response)
    return pd.DataFrame({"not_scorable": pd.Series(stops, index=rows.index, dtype="string")})


def measure_sentiments(rows: pd.DataFrame, *, lexicon: Lexicon, mode: Mode, reference: str | None) -> pd.DataFrame:
    """Return the fields of tone; those of the other mode are NaN."""
    stability = _stability(rows, mode, reference)
    responses = rows[_response(mode, reference)].tolist()
    references = rows["output"].tolist() if reference is None else [reference] * len(rows)
    measured = _Measured(LEXICONS[lexicon])
    compared = np.full((len(rows), 4), np.nan)
    varied = np.full((len(rows), 2), np.nan)
    pairs = [measured[responses[i]] + measured[references[i]] for i in np.flatnonzero(~stability).tolist()]
    compared[~stability] = np.array(pairs, dtype=np.float64).reshape(-1, 4)
    for i in np.flatnonzero(stability).tolist():
        sentiments, tokens = zip(*map(measured.__getitem__, sentences(responses[i])), strict=True)
        mean = sum(sentiments) / len(sentiments)
        varied[i] = mean, sum((sentiment - mean) ** 2 for sentiment in sentiments) / len(sentiments)
        compared[i, 1] = sum(tokens)
    return pd.DataFrame(
        {
            "response_sentiment": compared[:, 0],
            "reference_sentiment": compared[:, 2],
            "difference": np.abs(compared[:, 0] - compared[:, 2]),
            "avg_sentiment": varied[:, 0],
            "sentiment_variance": varied[:, 1],
            "response_scored_tokens": compared[:, 1],
            "reference_scored_tokens": compared[:, 3],
        },
        index=rows.index,
    )


class _Measured(dict[str, tuple[float, int]]):
    """Sentiments and scored tokens by text, so that equal texts are measured once."""

    def __init__(self, measure: Callable[[str], tuple[float, int]]) -> None:
        """Begin with no texts."""
        super().__init__()
        self.measure = measure

    def __missing__(self, text: str) -> tuple[float, int]:
        """Measure a text and keep what it gave."""
        if len(self) >= KNOWN_TEXTS:
            self.clear()
        found = self[text] = self.measure(text)
        return found


def sentences(text: str) -> Sequence[str]:
    """Return the sentences that stability looks at: each run up to its full stops, or the whole text where there is none.

    Examples
    --------
    >>> sentences("Fine! Really?! And so on")
    ['Fine!', ' Really?!']
    """
    ends = max(text.rfind(mark) for mark in ".!?") + 1  # what follows the last mark is no sentence, and searching it would take its square
    return _SENTENCE.findall(text, 0, ends) or [text]


def consistency(rows: pd.DataFrame, *, lexicon: Lexicon, scale: float) -> pd.Series[float]:
    """Return the score: 1 less what the sentiments differ or vary."""
    if lexicon == "vader":
        score = 1 - (rows["difference"] / 2).fillna(rows["sentiment_variance"])
    else:
        score = (1 - rows["difference"].fillna(rows["sentiment_variance"])).clip(lower=0)
    return score * scale


def explain(rows: pd.DataFrame, *, mode: Mode, reference: str | None) -> pd.Series[str]:
    """Return the fields in words."""
    response = _response(mode, reference)
    other = "output" if reference is None else "reference"
    columns = ("response_sentiment", "reference_sentiment", "difference", "avg_sentiment", "sentiment_variance")
    tokens = rows[["response_scored_tokens", "reference_scored_tokens"]].fillna(0).sum(axis=1)
    fields = [*(rows[column].tolist() for column in columns), (tokens > 0).tolist()]
    return pd.Series([_reason(response, other, *values) for values in zip(*fields, strict=True)], index=rows.index, dtype=object)


def _reason(response: str, other: str, first: float, second: float, difference: float, mean: float, variance: float, carried: bool) -> str:  # noqa: FBT001
    """Say one row's fields."""
    if not math.isnan(variance):  # the row was scored for stability
        why = "The output is empty, so this is the stability of the input alone. " if response == "input" else ""
        if not carried:
            return f"{why}No word of the {response} carries sentiment, so there is none that could vary."
        return f"{why}The sentiment of the {response} averages {mean:+z.2f} over its sentences, with a variance of {variance:.2f}."
    if not carried:
        return f"No word of the {response} or the {other} carries sentiment, so there is none that could differ."
    return f"The {response}'s sentiment is {first:+z.2f}, the {other}'s {second:+z.2f}: they differ by {difference:.2f}."


def _response(mode: Mode, reference: str | None) -> Literal["input", "output"]:
    """Return which column is the response: the one that is read where only one is."""
    return "output" if reference is not None or mode == "stability" else "input"


def _stability(rows: pd.DataFrame, mode: Mode, reference: str | None) -> NDArray[np.bool_]:
    """Return which rows are scored for the stability of their response."""
    if reference is None and mode == "auto":
        return (rows["output"] == "").to_numpy(dtype=bool)
    return np.full(len(rows), mode == "stability")


def _other_script(column: str) -> str:
    """Say why a text cannot be scored."""
    return f"Most letters of the {column} are not Latin; the lexicons are English, so its tone cannot be told."


TONE: Final = Scorer(
    "tone",
    needs=("input", "output"),
    preprocess=check_scripts,
    analyze=measure_sentiments,
    generate_score=consistency,
    generate_reason=explain,
    fields=dict.fromkeys(
        (
            "response_sentiment",
            "reference_sentiment",
            "difference",
            "avg_sentiment",
            "sentiment_variance",
            "response_scored_tokens",
            "reference_scored_tokens",
        ),
        float,
    ),
    options={"lexicon": "vader", "mode": "auto", "reference": None, "scale": 1.0},
)
