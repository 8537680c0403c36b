"""Faithfulness: are the output's claims supported by the context?"""

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

JUDGE = """A model's output was broken into the numbered claims below. Judge for each claim whether the context supports it.

Answer one of three words:
- "yes": the context says it, or it follows from what the context says.
- "no": the context says otherwise.
- "unsure": the context neither supports it nor says otherwise.

The context alone counts: what you know from elsewhere does not, and a claim may be true and still be "unsure". Where a claim is hedged
("may", "perhaps"), judge what it says with the hedge. Numbers, dates and names must agree; rounding that the claim admits to is fine.

{{ context }}

{{ statements }}

"""

EXPLAIN = """An output was scored for faithfulness: the share of its claims that the given context supports. The score is {{ score }} out of {{ scale }}.
A claim with the verdict "yes" counts 1, every other claim 0.

{{ context }}

{{ statements }}

{{ results }}

"""


FAITHFULNESS = statementwise("faithfulness", ("output", "context"), split=SPLIT_CLAIMS, judge=JUDGE, explain=EXPLAIN)


def score_faithfulness(
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
    name: str = "faithfulness",
    judge: JudgeLike | None = None,
    repeats: int = 1,
    keep_prompts: bool = False,
    usage: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Return the frame with a score of how far the context supports each output.

    The output is broken into claims, each is judged against the context (yes: supported, no: contradicted, unsure: neither), and the score is
    ``yes / claims * scale``. Higher is better. An empty output scores 0; an output in which no claim is found is ``not_scorable``.

    Parameters
    ----------
    df
        Rows with an output and its context. Never changed.
    output, context
        The columns that hold them. A context is a text, a list of texts (or of mappings with a text), or the JSON of such a list.
    scale
        The score of a row whose claims are all supported; 0 or more.
    statements, reason, language, prompts, name, judge, repeats, keep_prompts, usage, progress
        As in `score_relevancy`. There is no stand-in without a judge.

    Returns
    -------
    pandas.DataFrame
        The same rows, order and index, with ``faithfulness_score`` (float64, 0 to ``scale``; NaN = not scored), ``_reason``, ``_error``, ``_judge``
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
    The measure is faithfulness of Mastra's scorers. There the score divides by the verdicts returned; here a different count is invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> from scorekit.testing import FakeJudge
    >>> judge = FakeJudge({"analyze": {"results": [{"statement": 1, "result": "yes", "reason": "Said so."}]}})
    >>> df = pd.DataFrame({"output": ["Water boils at 100 °C."], "context": [["At sea level water boils at 100 °C."]]})
    >>> score_faithfulness(df, statements="sentences", reason="verdicts", judge=judge)["faithfulness_score"].tolist()
    [1.0]
    """
    options = {"scale": checked_scale(scale), "language": language}
    scorer = adapted(replace(FAITHFULNESS, name=name, options=options), statements, reason, prompts)
    return scorer(
        df, output=output, context=context, judge=judge, repeats=repeats, keep_prompts=keep_prompts, usage=usage, progress=progress
    )
