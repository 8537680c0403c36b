"""A program that only mypy reads: the public interface as a user writes it."""

from functools import partial

import pandas as pd
from pydantic import BaseModel

import scorekit as sk


class Politeness(BaseModel):
    polite: float
    reason: str


df: pd.DataFrame = sk.load_dataset("smollm_answers")
scored: pd.DataFrame = df.pipe(sk.score_relevancy)
scored = df.pipe(sk.score_tone, lexicon="afinn").pipe(sk.score_text_difference, input="question", output="answer")
judge = sk.Judge("openai/gpt-5-mini", concurrency=32)
scored = sk.score(df, [sk.score_relevancy, partial(sk.score_tone, lexicon="vader")], judge=judge, progress=True)
summary: pd.DataFrame = sk.summarize(scored, by="variant")
one: sk.ScoreResult = sk.run_one(sk.score_relevancy, input="...", output="...")
value: float = one.score
steps: pd.Series = sk.read_steps(scored, "relevancy_statements")
flat: pd.DataFrame = sk.unnest(scored, "relevancy")
labels: pd.Series = sk.bands(scored, "relevancy")
has_link = sk.Scorer(
    name="has_link",
    needs=("output",),
    generate_score=lambda rows: rows["output"].str.contains("http"),
    generate_reason=lambda rows: rows["score"].map({1.0: "Has a link.", 0.0: "No link."}),
)
polite = sk.Scorer(
    name="polite",
    needs=("output",),
    judge=judge,
    analyze=sk.Prompt("Is this polite?\n{{ output }}", reply=Politeness),
    generate_score=lambda rows: rows["polite"],
)
scored = has_link(df, output="answer")
scored = sk.score(df, [has_link, polite], judge=sk.LocalJudge())
sk.score_tone(df, lexicon="bing")  # type: ignore[arg-type]  # a lexicon that does not exist is refused by the types too
