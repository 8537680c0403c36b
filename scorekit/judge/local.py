"""The local judge: relevancy without a key, a network or a language model.

``LocalJudge`` takes a judge's place; a scorer given it runs each Prompt's stand-in (``Prompt.local``) over the whole column instead of
asking. The stand-ins here split an output into statements, judge by a sentence encoder and shared words how near each statement is to the
question and how much it adds, and say so in plain words. They see whether a statement is about the subject, hardly whether it answers, never
whether it is true.
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
from scorekit.judge.encoder import LIST_MARK, UNSURE_FROM, YES_FROM, Nearness, nearness, relevance
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
_LEADS_IN: Final = (":", "：")
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
    answer in quite other words "no".

    Agreement with the 375 statements of the half "held_out" of the dataset ``smollm_labels``, whose 25 questions it was not fitted on, labelled
    by an AI reader: accuracy 0.55, kappa 0.32 (word overlap 0.47, 0.19); AUC of "yes" against the rest 0.73, word overlap 0.62, difference 0.11
    with a 95 % interval of 0.04 to 0.20 over questions; AUC of "no" against the rest 0.87, word overlap 0.72. Verdicts by label:

    ======  ===  ======  ==
    label   yes  unsure  no
    ======  ===  ======  ==
    yes     112      15  11
    unsure   90      19  14
    no       20      17  77
    ======  ===  ======  ==

    Measured by ``python benchmarks/local_judge.py``.

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

    "no" for an empty input, an error message, a repetition of the question or of an earlier statement; at most "unsure" for a refusal and for
    a lead-in ("The steps are:"); at least "unsure" for a few words that are the whole output ("Paris."), which are too little to tell.
    Otherwise by nearness: 0.5 P(same subject) + P(answer).

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
    near = compare(rows)
    judged = iter(zip(relevance(near), _grounds(near), near.foreign, strict=True))
    results: list[list[dict[str, Any]]] = []
    for question, statements in zip(rows["input"], rows["statements"], strict=True):
        if question.strip():
            verdicts = [
                _verdict(question, statement, *next(judged), repeated=repeated, alone=len(statements) == 1)
                for statement, repeated in zip(statements, _repeated(statements), strict=True)
            ]
        else:
            verdicts = [("no", "The input is empty.")] * len(statements)
        results.append([{"statement": i, "result": result, "reason": reason} for i, (result, reason) in enumerate(verdicts, start=1)])
    return pd.DataFrame({"results": pd.Series(results, rows.index, dtype=object)})


def compare(rows: pd.DataFrame) -> Nearness:
    """Return how near each statement is to its row's input: one place a statement, row by row; rows with an empty input have none.

    Parameters
    ----------
    rows
        Columns ``input`` (text without missing values) and ``statements`` (lists of str).

    Examples
    --------
    >>> rows = pd.DataFrame({"input": ["How do I boil an egg?", " "], "statements": [["Boil the egg.", "Wait."], ["Hm."]]})
    >>> compare(rows).shared
    [['boil', 'egg'], []]
    """
    pairs = [
        (question, statement, language, output)
        for output, (question, statements) in enumerate(zip(rows["input"], rows["statements"], strict=True))
        if question.strip() and statements
        for language in [guess_language(question, default="") or guess_language(" ".join(statements))]
        for statement in statements
    ]
    return nearness([pair[0] for pair in pairs], [pair[1] for pair in pairs], [pair[2] for pair in pairs], [pair[3] for pair in pairs])


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


def _verdict(
    question: str, statement: str, relevant: float, grounds: str, foreign: object, *, repeated: bool, alone: bool
) -> tuple[str, str]:
    """Return one statement's result and reason."""
    if ruled := _ruled_out(question, statement, repeated=repeated):
        return "no", ruled
    result = "yes" if relevant >= YES_FROM else "unsure" if relevant >= UNSURE_FROM else "no"
    if result != "no" and _REFUSAL.search(statement):
        return "unsure", f"Declines to answer; s{grounds}"
    if result == "yes":
        leads_in = statement.rstrip().endswith(_LEADS_IN)
        return ("unsure", f"Leads up to what follows: s{grounds}") if leads_in else ("yes", f"S{grounds}")
    if result == "unsure":
        return result, f"Near the subject, {'but in another language' if foreign else 'perhaps no answer'}: s{grounds}"
    if alone and len(statement.split()) <= _SHORT_WORDS and len(statement.encode("utf-8", "replace")) <= _SHORT_BYTES:
        return "unsure", f"So few words do not show their subject: s{grounds}"
    return result, f"{'In another language than the question' if foreign else 'Off the subject'}: s{grounds}"


def _ruled_out(question: str, statement: str, *, repeated: bool) -> str:
    """Return why a statement is "no" however near it is, or ""."""
    if _ERROR.match(statement) and not _ABOUT_ERRORS.search(question):
        return "An error message, not an answer."
    if _repeats(question, statement):
        return "Only repeats the question."
    return "Repeats an earlier statement." if repeated else ""


def _grounds(near: Nearness) -> list[str]:
    """Return what each verdict rests on, without its first letter."""
    grounds = []
    for cosine, shared, novelty, item in zip(near.cosine, near.shared, near.novelty, near.item, strict=True):
        words = ", ".join(f'"{shown(word)}"' for word in shared[:SHOWN_WORDS])
        more = " and more" if len(shared) > SHOWN_WORDS else ""
        parts = [f"hares {words or 'no word'}{more} with the question", f"subject similarity {max(cosine, 0.0):.2f}"]
        parts += ["in a list near the subject"] if item > 0 and not shared else []
        parts += ["adds no new word"] if novelty == 0 else []
        grounds.append(f"{'; '.join(parts)}.")
    return grounds


def _repeated(statements: list[str]) -> list[bool]:
    """Return which statements say an earlier one again word for word, whatever their list numbers."""
    bare = [_NOT_CONTENT.sub("", LIST_MARK.sub("", statement, count=1)).casefold() for statement in statements]
    first: dict[str, int] = {}
    return [bool(words) and first.setdefault(words, i) < i for i, words in enumerate(bare)]


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
