"""What the statement-wise measures share: an output is broken into statements, each gets a verdict, and the verdicts are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pandas as pd

from scorekit.errors import UnknownOptionError, shown
from scorekit.judge.local import split_statements
from scorekit.judge.prompts import Prompt
from scorekit.judge.replies import Reason, Statements, Verdicts
from scorekit.scorer import Scorer
from scorekit.texts import TEXT

StatementsFrom = Literal["judge", "sentences"]
ReasonFrom = Literal["judge", "verdicts"]

SPLIT = """Break the output below into its meaningful statements, in their order.

A statement is one thing that the output says: a claim, an instruction, a piece of advice, a question put back to the user.
- Use the output's own words and language. Add nothing. Leave nothing out that says something.
- Keep each statement understandable on its own: where it says "it" or "this", put in what is meant.
- Split a sentence that says two separate things; join fragments that say one thing only together.
- A heading, a greeting or a list number that says nothing by itself is no statement of its own.
- A single word, a number or an error message is one statement.
- Output without any content has no statements.

{{ output }}

Reply as {"statements": ["...", ...]}."""

SPLIT_CLAIMS = """Break the output below into the claims that it makes, in their order.

A claim is one thing that the output says to be so, and that could be checked against a source.
- Use the output's own words and language. Add nothing, and judge nothing: wrong claims are claims.
- Keep each claim understandable on its own: where it says "it" or "this", put in what is meant. Keep hedges such as "may" or "about".
- Split a sentence that claims two separate things.
- Questions, greetings, instructions, offers of help and remarks about the answer itself are no claims.
- Output that claims nothing has no claims.

{{ output }}

Reply as {"statements": ["...", ...]}."""

EACH = """There are {{ statements | length }} statements. Give exactly one verdict for each, with its number and a reason of a few words\
{% if language %}, written in the language "{{ language }}"{% endif %}, as
{"results": [{"statement": 1, "result": "yes", "reason": "..."}, ...]}."""

EXPLANATION = """Explain the score to the person who improves the prompt, in one or two sentences\
{% if language %}, in the language "{{ language }}"{% endif %}: name what it rests on, by content and not by number. \
Do not give the score another value.

Reply as {"reason": "..."}."""

NO_STATEMENT = "No statement was found in the output."
SHOWN_VERDICTS = 3


def has_text(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return which outputs hold anything but white space."""
    return rows["output"].str.strip() != ""


def has_statements(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows have a statement to judge."""
    return rows["statements"].map(len) > 0


def count_verdicts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return how many statements of each row have the verdict yes, unsure and no: three float64 columns."""
    words = [[verdict["result"] for verdict in verdicts] for verdicts in rows["results"]]
    counts = {word: [float(said.count(word)) for said in words] for word in ("yes", "unsure", "no")}
    return pd.DataFrame(counts, index=rows.index, dtype="float64")


def share(rows: pd.DataFrame, counts: pd.DataFrame, counted: pd.Series[float], scale: float) -> pd.DataFrame:
    """Return the counts, the score ``counted / statements * scale``, and which rows cannot be scored.

    An empty output scores 0: nothing was said. Another output without statements is not scorable.
    """
    statements = counts.sum(axis=1)
    empty = ~has_text(rows)
    not_found = pd.Series(NO_STATEMENT, rows.index, dtype=TEXT)
    return counts.assign(
        score=(counted / statements.where(statements > 0) * scale).mask(empty, 0.0),
        not_scorable=not_found.where((statements == 0) & ~empty),
    )


def share_of_yes(rows: pd.DataFrame, *, scale: float) -> pd.DataFrame:
    """Return the score ``yes / statements * scale``, the counts of each verdict, and which rows cannot be scored."""
    counts = count_verdicts(rows)
    return share(rows, counts, counts["yes"], scale)


def statementwise(name: str, needs: tuple[str, ...], *, split: str, judge: str, explain: str) -> Scorer:
    """Return a measure that is the share of statements with the verdict yes, from its three prompts."""
    return Scorer(
        name,
        needs=needs,
        preprocess=Prompt(split, reply=Statements, when=has_text, otherwise={"statements": []}),
        analyze=Prompt(judge + EACH, reply=Verdicts, when=has_statements, otherwise={"results": []}),
        generate_score=share_of_yes,
        generate_reason=Prompt(explain + EXPLANATION, reply=Reason, when=has_statements, otherwise={"reason": "The output is empty."}),
        fields={"yes": float, "unsure": float, "no": float},
        options={"scale": 1.0, "language": None},
    )


def reason_from_verdicts(rows: pd.DataFrame) -> pd.Series[str]:
    """Return a reason made of the verdicts' own: the counts, then the first statements whose verdict is not the most common."""
    reasons = []
    for statements, results in zip(rows["statements"], rows["results"], strict=True):
        if not results:
            reasons.append("The output is empty.")
            continue
        said = [verdict["result"] for verdict in results]
        counts = ", ".join(f"{said.count(word)} {word}" for word in ("yes", "unsure", "no") if word in said)
        common = max(("yes", "no", "unsure"), key=said.count)
        odd = [verdict for verdict in results if verdict["result"] != common] or results
        told = "; ".join(
            f"{verdict['result']}: “{shown(statements[verdict['statement'] - 1])}” ({verdict['reason'].rstrip('.')})"
            for verdict in odd[:SHOWN_VERDICTS]
        )
        reasons.append(f"{len(results)} statement{'s' if len(results) > 1 else ''}: {counts}. {told}.")
    return pd.Series(reasons, index=rows.index, dtype=TEXT)


def adapted(scorer: Scorer, statements: StatementsFrom, reason: ReasonFrom, prompts: Mapping[str, Prompt] | None) -> Scorer:
    """Return the scorer with cheaper steps, or with prompts of the user's own.

    Raises
    ------
    UnknownOptionError
        For another value of ``statements`` or ``reason``, or a step in ``prompts`` that asks nothing.
    """
    if statements not in ("judge", "sentences"):
        raise UnknownOptionError.from_value("statements", statements, ("judge", "sentences"))
    if reason not in ("judge", "verdicts"):
        raise UnknownOptionError.from_value("reason", reason, ("judge", "verdicts"))
    if statements == "sentences":
        scorer = replace(scorer, preprocess=split_statements, fields={"statements": list, **scorer.fields})
    if reason == "verdicts":
        scorer = replace(scorer, generate_reason=reason_from_verdicts)
    return scorer.with_prompts(prompts or {})
