"""The local judge: relevancy without a key, a network or a language model.

``LocalJudge`` takes a judge's place; a scorer given it runs each Prompt's stand-in (``Prompt.local``) over the whole column instead of
asking. The stand-ins here split an output into statements, judge by a sentence encoder and shared words how near each statement is to the
question, and say so in plain words. They see whether a statement is about the subject, hardly whether it answers, never whether it is true.
"""

from __future__ import annotations

import inspect
import re
import threading
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pandas as pd

from scorekit.errors import shown
from scorekit.judge.encoder import UNSURE_FROM, YES_FROM, nearness, relevance
from scorekit.languages import guess_language
from scorekit.sentences import split_sentences

SHOWN_WORDS: Final = 4
"""How many shared words a reason names."""

_lock = threading.Lock()
_was_shown = threading.Event()

_SPACE = re.compile(r"\s+")
_NOT_CONTENT = re.compile(r"[\W_]+")
_ERROR = re.compile(
    r"\s*(?:[\w.]{0,60}(?:Error|Exception)\s*:|(?:fatal )?error(?: code)?(?:\s+\w{1,20}){0,2}\s*:|error\s+\d|traceback \(most recent"
    r"|http[ /]*[45]\d\d\b|[45]\d\d\s+(?:internal|bad|not found|service|gateway|unauthori|forbidden|too many)"
    r"|an (?:unexpected |internal )?error (?:has )?occurred|something went wrong\b|request (?:timed out|failed)|エラー)",
    re.IGNORECASE,
)
_ABOUT_ERRORS = re.compile(r"error|exception|traceback|\b[45]\d\d\b|エラー", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:I|we)\b.{0,80}\b(?:can(?:no|['’]|\sno)t|unable to|not able to|won['’]t)\s+"
    r"(?:help|assist|answer|provide|share|comply|fulfil|do that|discuss)"
    r"|(?:お手伝い|お答え|回答|対応)(?:することが|は)?でき(?:ません|かね)",
    re.IGNORECASE | re.DOTALL,
)
_SHORT_WORDS: Final = 3
_SHORT_BYTES: Final = 24  # in UTF-8: about 24 Latin letters or 8 Japanese characters
_REPEAT_CHARACTERS: Final = 10


class LocalJudgeWarning(UserWarning):
    """Scores come from the local judge although nobody chose it."""


@dataclass(frozen=True)
class LocalJudge:
    """A judge that needs no key and no network, and is rough.

    Pass it to a scorer whose prompts have local stand-ins; others say before any row that they cannot run locally. It judges whether
    each statement is about the question's subject: a statement about the subject that does not answer is often called "yes", a correct
    answer in quite other words "no". Agreement with labels: ``python benchmarks/local_judge.py``.

    Attributes
    ----------
    label
        What the column ``<name>_judge`` says: ``"local"``.

    Examples
    --------
    >>> LocalJudge()
    LocalJudge()
    >>> LocalJudge().label
    'local'
    """

    label: ClassVar[str] = "local"


def warn_rough() -> None:
    """Warn, once a process, that scores come from the local judge because no other was found.

    Python's own "once per location" would not do: whenever any library changes the warning filters, as ``warnings.catch_warnings`` does,
    it forgets what it has shown, so a notebook would warn in cell after cell. Where a filter makes the warning an error, each call raises.
    """
    with _lock:
        if _was_shown.is_set():
            return
        warnings.warn(
            "No judge was given, and no key or endpoint was found (SCOREKIT_JUDGE, OPENAI_API_KEY, OPENAI_BASE_URL): scores come from the "
            "local judge, which is rough. It judges whether each statement is about the question's subject, not whether it answers the "
            "question or is true. Pass judge=LocalJudge() to choose it and silence this.",
            LocalJudgeWarning,
            stacklevel=_level_of_caller(),
        )
        _was_shown.set()


def forget_warning() -> None:
    """Let ``warn_rough`` warn again; for tests."""
    _was_shown.clear()


def _level_of_caller() -> int:
    """Return the stacklevel, seen from the calling function, of the first frame outside scorekit and pandas."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("scorekit.", "pandas.")):
        frame, level = frame.f_back, level + 1
    return max(level, 1)


def split_statements(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the statements of each output: its sentences, list items, headings, tables and blocks of code.

    Parameters
    ----------
    rows
        Column ``output``: text without missing values.

    Returns
    -------
    pandas.DataFrame
        Column ``statements``, lists of str, on the index of ``rows``.

    Examples
    --------
    >>> split_statements(pd.DataFrame({"output": ["Boil it. Wait!", ""]}))["statements"].tolist()
    [['Boil it.', 'Wait!'], []]
    """
    return pd.DataFrame({"statements": pd.Series(split_sentences(rows["output"]), rows.index, dtype=object)})


def match_statements(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a verdict on each statement: is it about what the input asks?

    "no" for an empty input, an error message or a repetition of the question; at most "unsure" for a refusal; at least "unsure" for a few
    words that are the whole output ("Paris."), which are too little to tell. Otherwise by nearness: 0.5 P(same subject) + P(answer).

    Parameters
    ----------
    rows
        Columns ``input`` (text without missing values) and ``statements`` (lists of str).

    Returns
    -------
    pandas.DataFrame
        Column ``results``, on the index of ``rows``: lists of ``{"statement": number from 1, "result": "yes" | "unsure" | "no",
        "reason": str}``.

    Examples
    --------
    >>> rows = pd.DataFrame({"input": ["How do I boil an egg?"], "statements": [["Boil the egg for six minutes.", "Rome is in Italy."]]})
    >>> for result in match_statements(rows)["results"][0]:
    ...     print(result["statement"], result["result"], result["reason"])
    1 yes Shares "boil", "egg" with the question; subject similarity 0.50.
    2 no Off the subject: shares no word with the question; subject similarity 0.00.
    """
    asked = rows["input"].tolist()
    said = rows["statements"].tolist()
    spoken = [bool(question.strip()) for question in asked]
    languages = [
        (guess_language(question, default="") or guess_language(" ".join(statements))) if filled and statements else ""
        for question, statements, filled in zip(asked, said, spoken, strict=True)
    ]
    pairs = [
        (question, statement, language)
        for question, statements, language, filled in zip(asked, said, languages, spoken, strict=True)
        if filled
        for statement in statements
    ]
    near = nearness([pair[0] for pair in pairs], [pair[1] for pair in pairs], [pair[2] for pair in pairs])
    found = iter(zip(relevance(near), near.cosine, near.shared, strict=True))
    results: list[list[dict[str, Any]]] = []
    for question, statements, filled in zip(asked, said, spoken, strict=True):
        verdicts = [
            _verdict(question, statement, *next(found), alone=len(statements) == 1) if filled else ("no", "The input is empty.")
            for statement in statements
        ]
        results.append([{"statement": i, "result": result, "reason": reason} for i, (result, reason) in enumerate(verdicts, start=1)])
    return pd.DataFrame({"results": pd.Series(results, rows.index, dtype=object)})


def explain(rows: pd.DataFrame, *, scale: float = 1.0) -> pd.DataFrame:
    """Return one or two sentences on each score.

    Parameters
    ----------
    rows
        Columns ``score``, ``statements`` and ``results``.
    scale
        What the score was multiplied by.

    Returns
    -------
    pandas.DataFrame
        Column ``reason``, text, on the index of ``rows``.

    Examples
    --------
    >>> rows = pd.DataFrame({"score": [0.5], "statements": [["Boil it.", "Rome is in Italy."]],
    ...     "results": [[{"statement": 1, "result": "yes", "reason": ""}, {"statement": 2, "result": "no", "reason": ""}]]})
    >>> explain(rows)["reason"][0]
    '1 of 2 statements is about the question; not about it: “Rome is in Italy.”. Score 0.5 of 1 by the local judge, which is rough.'
    """
    reasons = [
        _explanation(score, statements, results, scale)
        for score, statements, results in zip(rows["score"], rows["statements"], rows["results"], strict=True)
    ]
    return pd.DataFrame({"reason": pd.Series(reasons, rows.index, dtype=object)})


def _verdict(question: str, statement: str, relevant: float, cosine: float, shared: list[str], *, alone: bool) -> tuple[str, str]:
    """Return one statement's result and reason."""
    if _ERROR.match(statement) and not _ABOUT_ERRORS.search(question):
        return "no", "An error message, not an answer."
    if _repeats(question, statement):
        return "no", "Only repeats the question."
    result = "yes" if relevant >= YES_FROM else "unsure" if relevant >= UNSURE_FROM else "no"
    words = ", ".join(f'"{shown(word)}"' for word in shared[:SHOWN_WORDS])
    more = " and more" if len(shared) > SHOWN_WORDS else ""
    grounds = f"hares {words or 'no word'}{more} with the question; subject similarity {max(cosine, 0.0):.2f}."
    if result != "no" and _REFUSAL.search(statement):
        return "unsure", f"Declines to answer; s{grounds}"
    if result == "yes":
        return result, f"S{grounds}"
    if result == "unsure":
        return result, f"Near the subject, perhaps no answer: s{grounds}"
    if alone and len(statement.split()) <= _SHORT_WORDS and len(statement.encode("utf-8", "replace")) <= _SHORT_BYTES:
        return "unsure", f"So few words do not show their subject: s{grounds}"
    return result, f"Off the subject: s{grounds}"


def _repeats(question: str, statement: str) -> bool:
    bare = _NOT_CONTENT.sub("", statement).casefold()
    return len(bare) >= _REPEAT_CHARACTERS and bare in _NOT_CONTENT.sub("", question).casefold()


def _explanation(score: float, statements: list[str], results: list[dict[str, Any]], scale: float) -> str:
    """Return one row's reason."""
    said = [result["result"] for result in results]
    count, unsure, off = (said.count(word) for word in ("yes", "unsure", "no"))
    first = f"“{shown(_SPACE.sub(' ', statements[results[said.index('no')]['statement'] - 1]))}”" if off else ""
    if len(said) == 1:
        told = (
            f"The one statement is not about the question: {first}"
            if off
            else f"The one statement {'may be' if unsure else 'is'} about the question"
        )
    else:
        parts = [f"{count} of {len(said)} statements {'is' if count == 1 else 'are'} about the question"]
        parts += [f"{unsure} may be"] if unsure else []
        parts += [f"not about it: {first}{f' and {off - 1} more' if off > 1 else ''}"] if off else []
        told = "; ".join(parts)
    return f"{told}. Score {score:.2g} of {scale:g} by the local judge, which is rough."
