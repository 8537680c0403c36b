"""Preference: which of two outputs serves the person who asked better, judged in both orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import pandas as pd
from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from scorekit.judge.prompts import Prompt
from scorekit.judge.replies import verdict_word
from scorekit.scorer import Scorer
from scorekit.texts import TEXT

if TYPE_CHECKING:
    from scorekit.scorer import JudgeLike

WORDS: Final = ("A", "B", "tie")

COMPARE = """Two answers to the same request are shown. Decide which one serves the person who asked better.

Judge what the answers say: whether it is what was asked for, correct, complete, clear, and no longer than it need be.
- The order in which they are shown, their length and their style by themselves count for nothing.
- Say "tie" where neither is better, or where both fail alike.
{%- if criteria %}
- What counts here: {{ criteria }}
{%- endif %}

The request:
{{ input }}

"""

REPLY = """
Reply as {"reason": "...", "verdict": "A"}: first why, in one or two sentences that speak of answer A and answer B\
{% if language %}, in the language "{{ language }}"{% endif %}; then "A", "B" or "tie"."""

ANSWERS = """Answer A:
{{{{ "\\n" ~ {first} ~ "\\n" }}}}

Answer B:
{{{{ "\\n" ~ {second} ~ "\\n" }}}}
"""
"""What a template makes of a value stands between tags that do not say which column it is from: the judge must not see which output is which."""


def _template(first: str, second: str) -> str:
    """Return the prompt that shows one column as answer A and the other as answer B."""
    return COMPARE + ANSWERS.format(first=first, second=second) + REPLY


def _verdict(first: str, second: str) -> Callable[[object], str]:
    """Return the reading of a verdict where one output was shown as answer A and another as answer B."""

    def read(said: object) -> str:
        word = verdict_word(said)
        if word not in ("a", "b", "tie"):
            msg = 'the verdict must be "A", "B" or "tie"'
            raise ValueError(msg)
        return {"a": first, "b": second}.get(str(word), "tie")

    return read


_WORD_SCHEMA = WithJsonSchema({"enum": list(WORDS), "type": "string"})


# The judge sees these two as one and the same: it is shown the aliases and the docstrings, and must not learn which order it has before it.
class Comparison(BaseModel):
    """A comparison of answer A and answer B."""

    first_reason: str = Field(alias="reason", description="Why, in one or two sentences.")
    first_order: Annotated[str, BeforeValidator(_verdict("a", "b")), _WORD_SCHEMA] = Field(alias="verdict")


class SwappedComparison(BaseModel):
    """A comparison of answer A and answer B."""

    second_reason: str = Field(alias="reason", description="Why, in one or two sentences.")
    second_order: Annotated[str, BeforeValidator(_verdict("b", "a")), _WORD_SCHEMA] = Field(alias="verdict")


def are_different(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows have two outputs that differ."""
    return rows["output_a"] != rows["output_b"]


def winner(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the score and the winner: the output that won in both orders; a tie where the orders disagree, and where both outputs are the same."""
    agreed = (rows["first_order"] == rows["second_order"]).fillna(value=False)
    words = rows["first_order"].where(agreed, "tie")
    return pd.DataFrame(
        {"score": words.map({"a": 1.0, "tie": 0.5, "b": 0.0}).astype("float64"), "winner": words.astype(TEXT)}, index=rows.index
    )


def explain(rows: pd.DataFrame) -> pd.Series[str]:
    """Return a reason made of the two verdicts and the judge's own reasons."""
    columns = ("first_order", "first_reason", "second_order", "second_reason")
    return pd.Series([_told(*cells) for cells in zip(*(rows[name] for name in columns), strict=True)], index=rows.index, dtype=TEXT)


def _told(first: Any, first_reason: Any, second: Any, second_reason: Any) -> str:
    """Return one row's reason."""
    if pd.isna(first) or pd.isna(second):
        return "The two outputs are the same."
    if first != second:
        shown = f"with a shown first: {_called(first)} ({first_reason}) With b shown first: {_called(second)} ({second_reason})"
        return f"The two orders disagree, so it is a tie; {shown}"
    return f"{_called(first).capitalize()} in both orders; a shown first as answer A: {first_reason}"


def _called(verdict: str) -> str:
    """Return a verdict in words."""
    return "a tie" if verdict == "tie" else f"output {verdict} is better"


PREFERENCE = Scorer(
    "preference",
    needs=("input", "output_a", "output_b"),
    preprocess=Prompt(
        _template("output_a", "output_b"),
        reply=Comparison,
        when=are_different,
        otherwise={"first_reason": None, "first_order": None},
    ),
    analyze=Prompt(
        _template("output_b", "output_a"),
        reply=SwappedComparison,
        when=are_different,
        otherwise={"second_reason": None, "second_order": None},
    ),
    generate_score=winner,
    generate_reason=explain,
    fields={"winner": str},
    options={"criteria": None, "language": None},
)


def score_preference(
    df: pd.DataFrame,
    /,
    *,
    input: str = "input",  # noqa: A002  (the column's name is the keyword)
    output_a: str = "output_a",
    output_b: str = "output_b",
    criteria: str | None = None,
    language: str | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    name: str = "preference",
    judge: JudgeLike | None = None,
    repeats: int = 1,
    keep_prompts: bool = False,
    usage: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Return the frame with a judge's preference between two outputs of each row.

    The judge sees the two as answer A and answer B, without their columns' names, and is asked twice, the second time in the other order. An output wins
    that is preferred in both orders: 1 for ``output_a``, 0 for ``output_b``; anything else is a tie, 0.5, as judges prefer what is shown first (or last)
    more often than chance. `position_bias` tells how often the place decided.

    Parameters
    ----------
    df
        Rows with an input and two outputs; texts or lists of messages. Never changed.
    input, output_a, output_b
        The columns that hold them.
    criteria
        What counts, in words of yours, added to the prompt: ``"Prefer the answer that a child understands."``
    language
        Of the judge's reasons, such as ``"ja"``; None leaves it to the judge.
    prompts
        Prompts of your own for ``preprocess`` (the first order) and ``analyze`` (the second), with the replies ``Comparison`` and ``SwappedComparison``
        of `scorekit.scorers.preference`, which read the verdict and say which output it means.
    name, judge, repeats, keep_prompts, usage, progress
        As in `score_relevancy`. There is no stand-in without a judge.

    Returns
    -------
    pandas.DataFrame
        The same rows, order and index, with ``preference_score`` (float64: 1, 0.5 or 0; NaN = not scored), ``_reason``, ``_error``, ``_judge`` (string),
        ``_winner`` (string: ``a``, ``b`` or ``tie``), ``_first_order`` and ``_second_order`` (string: the verdict with a shown first and with b shown
        first, as ``a``, ``b`` or ``tie``) and ``_first_reason``, ``_second_reason`` (string, the judge's words). Two equal outputs are a tie that nobody
        is asked about: their orders are missing.

    Raises
    ------
    MissingColumnError, ScorerDefinitionError, UnknownOptionError, JudgeSetupError
        Before any request.

    Notes
    -----
    Cost: two calls a row; none where the outputs are equal.

    References
    ----------
    Pairwise comparison with swapped positions: Zheng et al., Judging LLM-as-a-judge with MT-Bench and Chatbot Arena, NeurIPS 2023, which declares a win
    only where an output is preferred in both orders. Its prompt is not used here.

    Examples
    --------
    >>> import pandas as pd
    >>> from scorekit.testing import FakeJudge
    >>> judge = FakeJudge({
    ...     "preprocess": {"reason": "Answer A names the city.", "verdict": "A"},
    ...     "analyze": {"reason": "Answer B names the city.", "verdict": "B"},
    ... })
    >>> df = pd.DataFrame({"input": ["What is the capital of France?"], "output_a": ["Paris."], "output_b": ["A big city."]})
    >>> score_preference(df, judge=judge)[["preference_score", "preference_winner", "preference_second_order"]]
       preference_score preference_winner preference_second_order
    0               1.0                 a                       a
    """
    scorer = replace(PREFERENCE, name=name, options={"criteria": criteria, "language": language}).with_prompts(prompts or {})
    return scorer(
        df,
        input=input,
        output_a=output_a,
        output_b=output_b,
        judge=judge,
        repeats=repeats,
        keep_prompts=keep_prompts,
        usage=usage,
        progress=progress,
    )
