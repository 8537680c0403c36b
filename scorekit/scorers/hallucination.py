"""Hallucination: which of the output's claims does the context contradict or leave without support?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from scorekit.scorers.options import checked_scale
from scorekit.scorers.statements import SPLIT_CLAIMS, ReasonFrom, StatementsFrom, adapted, statementwise

if TYPE_CHECKING:
    import pandas as pd

    from scorekit.judge.prompts import Prompt
    from scorekit.scorer import JudgeLike

JUDGE = """A model's output was broken into the numbered claims below. Judge for each claim whether it is a hallucination: whether the context
contradicts it or does not support it.

Answer one of three words:
- "yes": a hallucination: the context says otherwise, or says nothing from which the claim follows.
- "no": the context says it, or it follows from what the context says.
- "unsure": the context is too unclear to tell.

The context alone counts: a claim that is true elsewhere but stands nowhere in the context is "yes". A claim that is hedged ("may", "perhaps")
is judged with its hedge. Numbers, dates and names must agree; a more exact figure than the context gives is "yes".

{{ context }}

{{ statements }}

"""

EXPLAIN = """An output was scored for hallucination: the share of its claims that the given context contradicts or does not support; 0 is best. \
The score is {{ score }} out of {{ scale }}.
A claim with the verdict "yes" (a hallucination) counts 1, every other claim 0.

{{ context }}

{{ statements }}

{{ results }}

"""


HALLUCINATION = statementwise("hallucination", ("output", "context"), split=SPLIT_CLAIMS, judge=JUDGE, explain=EXPLAIN)


def score_hallucination(
    df: pd.DataFrame,
    /,
    *,
    output: str = "output",
    context: str = "context",
    scale: float = 1.0,
    statements: StatementsFrom = "judge",
    reason: ReasonFrom = "judge",
    language: str | None = None,
    prompts: Mapping[str, Prompt] | None = None,
    name: str = "hallucination",
    judge: JudgeLike | None = None,
    repeats: int = 1,
    keep_prompts: bool = False,
    usage: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Return the frame with a score of how much of each output is hallucinated, as far as its context can tell.

    The output is broken into claims, each is judged against the context (yes: contradicted or without support, no: supported, unsure: the context
    is unclear), and the score is ``yes / claims * scale``. Lower is better. An empty output scores 0; an output in which no claim is found
    is ``not_scorable``.

    Parameters
    ----------
    df
        Rows with an output and its context. Never changed.
    output, context
        The columns that hold them. A context is a text, a list of texts (or of mappings with a text), or the JSON of such a list.
    scale
        The score of a row whose claims are all hallucinated; 0 or more.
    statements, reason, language, prompts, name, judge, repeats, keep_prompts, usage, progress
        As in `score_relevancy`. There is no stand-in without a judge.

    Returns
    -------
    pandas.DataFrame
        The same rows, order and index, with ``hallucination_score`` (float64, 0 to ``scale``; NaN = not scored), ``_reason``, ``_error``, ``_judge``
        (string), ``_yes``, ``_unsure``, ``_no`` (float64, counts), ``_statements`` and ``_results`` (string, JSON lists).

    Raises
    ------
    OptionRangeError, UnknownOptionError, MissingColumnError, JudgeSetupError
        Before any request.

    Notes
    -----
    Cost: three calls a row; one with ``statements="sentences"`` and ``reason="verdicts"``.

    References
    ----------
    The measure is hallucination of Mastra's scorers. There the score divides by the verdicts returned; here a different count is invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> from scorekit.testing import FakeJudge
    >>> judge = FakeJudge({"analyze": {"results": [{"statement": 1, "result": "yes", "reason": "It says 90."}]}})
    >>> df = pd.DataFrame({"output": ["Water boils at 100 °C."], "context": [["On that mountain water boils at 90 °C."]]})
    >>> score_hallucination(df, statements="sentences", reason="verdicts", judge=judge)["hallucination_score"].tolist()
    [1.0]
    """
    options = {"scale": checked_scale(scale), "language": language}
    scorer = adapted(replace(HALLUCINATION, name=name, options=options), statements, reason, prompts)
    return scorer(
        df, output=output, context=context, judge=judge, repeats=repeats, keep_prompts=keep_prompts, usage=usage, progress=progress
    )
