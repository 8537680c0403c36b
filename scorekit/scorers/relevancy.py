"""Answer relevancy: do the statements of an output address what was asked?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from scorekit.judge.local import explain, match_statements, split_statements
from scorekit.judge.prompts import Prompt
from scorekit.judge.replies import Reason, Statements, Verdicts
from scorekit.scorer import Scorer
from scorekit.scorers.options import checked_number, checked_scale
from scorekit.scorers.statements import (
    EACH,
    EXPLANATION,
    SPLIT,
    ReasonFrom,
    StatementsFrom,
    adapted,
    count_verdicts,
    has_statements,
    has_text,
    share,
)

if TYPE_CHECKING:
    import pandas as pd

    from scorekit.scorer import JudgeLike

JUDGE = """A user gave the input below. A model's output was broken into the numbered statements below.
Judge for each statement whether it addresses what the input asks.

Answer one of three words:
- "yes": the statement answers the input or a part of it directly, or gives what is needed to understand that answer.
- "unsure": the statement is about the same matter, but it does not answer what was asked; or it is too vague to tell.
- "no": the statement has nothing to do with what was asked; or the input is empty; or the statement is an error message or only
  repeats the question.

Judge relevance only, never truth: a wrong answer that addresses the question directly is "yes". Judge every statement on its own.

{{ input }}

{{ statements }}

"""

EXPLAIN = """An output was scored for answer relevancy: the share of its statements that address the input, whether they are true or not. \
The score is {{ score }} out of {{ scale }}.
A statement with the verdict "yes" counts 1, "unsure" counts {{ uncertainty_weight }}, "no" counts 0.

{{ input }}

{{ statements }}

{{ results }}

"""


def share_of_yes(rows: pd.DataFrame, *, uncertainty_weight: float, scale: float) -> pd.DataFrame:
    """Return the score, the counts of each verdict, and which rows cannot be scored."""
    counts = count_verdicts(rows)
    return share(rows, counts, counts["yes"] + uncertainty_weight * counts["unsure"], scale)


RELEVANCY = Scorer(
    "relevancy",
    needs=("input", "output"),
    preprocess=Prompt(SPLIT, reply=Statements, when=has_text, otherwise={"statements": []}, local=split_statements),
    analyze=Prompt(JUDGE + EACH, reply=Verdicts, when=has_statements, otherwise={"results": []}, local=match_statements),
    generate_score=share_of_yes,
    generate_reason=Prompt(
        EXPLAIN + EXPLANATION, reply=Reason, when=has_statements, otherwise={"reason": "The output is empty."}, local=explain
    ),
    fields={"yes": float, "unsure": float, "no": float},
    options={"uncertainty_weight": 0.3, "scale": 1.0, "language": None},
)


def score_relevancy(
    df: pd.DataFrame,
    /,
    *,
    input: str = "input",  # noqa: A002  (the column's name is the keyword)
    output: str = "output",
    uncertainty_weight: float = 0.3,
    scale: float = 1.0,
    statements: StatementsFrom = "judge",
    reason: ReasonFrom = "judge",
    language: str | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    name: str = "relevancy",
    judge: JudgeLike | None = None,
    repeats: int = 1,
    keep_prompts: bool = False,
    usage: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Return the frame with a score of how far each output addresses its input.

    The output is broken into statements, each is judged yes, unsure or no, and the score is
    ``(yes + uncertainty_weight * unsure) / statements * scale``. It measures whether the statements address what was asked, never whether
    they are true. An empty output scores 0; an output in which no statement is found is ``not_scorable``.

    Parameters
    ----------
    df
        Rows with a question and an answer; texts or lists of messages. Never changed.
    input, output
        The columns that hold them.
    uncertainty_weight
        What a statement with the verdict "unsure" counts; 0 or more, usually at most 1.
    scale
        The score of a row whose statements all address the input; 0 or more.
    statements
        Who breaks the output into statements: the "judge" (one call), or "sentences": a splitter, without a call. Sentences are cut where the
        text has them, so one that says two things gets one verdict, and "it" stays "it".
    reason
        Who writes the reason: the "judge" (one call), or "verdicts": put together from the verdicts' own reasons, without a call. The score
        is the same.
    language
        The language of the reasons, as a name or a code such as "ja"; None leaves it to the judge. `LocalJudge` writes English.
    prompts
        Prompts in place of the shipped ones, by step: ``{"analyze": Prompt(...)}``. The shipped ones are ``RELEVANCY.prompts``.
    name
        Prefix of the added columns.
    judge
        A `Judge`, a model's name, or `LocalJudge()`, which is rough: it knows subjects, not answers. None takes the model in SCOREKIT_JUDGE, or the
        default model where OPENAI_API_KEY or OPENAI_BASE_URL is set, else `LocalJudge` with a warning.
    repeats
        Ask about each row this many times; the score is the mean, and ``relevancy_spread`` says how far the scores lie apart.
    keep_prompts, usage, progress
        As in `Scorer.__call__`: columns with the prompts asked; columns with tokens and seconds; a bar after 2 seconds.

    Returns
    -------
    pandas.DataFrame
        The same rows, order and index, with these columns added:

        - ``relevancy_score`` (float64, 0 to ``scale``; NaN = not scored), ``relevancy_reason``, ``relevancy_error`` (string, NA when scored),
          ``relevancy_judge`` (string);
        - ``relevancy_yes``, ``relevancy_unsure``, ``relevancy_no`` (float64): how many statements have that verdict;
        - ``relevancy_statements``, ``relevancy_results`` (string): JSON lists; see `read_steps` and `unnest`.

    Raises
    ------
    OptionRangeError, MissingColumnError, JudgeSetupError
        Before any request.

    Notes
    -----
    Cost: three calls a row (split, judge, explain), times ``repeats``; one with ``statements="sentences"`` and ``reason="verdicts"``; none with
    `LocalJudge`. One more where a reply is invalid and asked again.

    References
    ----------
    The measure is answer relevancy of Mastra's scorers (@mastra/evals). There the score divides by the verdicts that the judge returned; here a
    reply with more or fewer verdicts than statements is invalid, and scores are not rounded.

    Examples
    --------
    >>> import pandas as pd
    >>> from scorekit import LocalJudge
    >>> df = pd.DataFrame({"input": ["Why is the sky blue?"], "output": ["The sky is blue because air scatters blue light. Buy our shoes!"]})
    >>> score_relevancy(df, judge=LocalJudge())[["relevancy_score", "relevancy_yes", "relevancy_no"]]
       relevancy_score  relevancy_yes  relevancy_no
    0              0.5            1.0           1.0
    """
    options = {
        "uncertainty_weight": checked_number("uncertainty_weight", uncertainty_weight),
        "scale": checked_scale(scale),
        "language": language,
    }
    scorer = adapted(replace(RELEVANCY, name=name, options=options), statements, reason, prompts)
    return scorer(df, input=input, output=output, judge=judge, repeats=repeats, keep_prompts=keep_prompts, usage=usage, progress=progress)
