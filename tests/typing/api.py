"""A program that only mypy reads: the public interface as a user writes it."""

from functools import partial

import pandas as pd
import plotly.graph_objects as go
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
scored = sk.score_toxicity(df, judge=judge, statements="sentences", reason="verdicts")
scored = sk.score_faithfulness(df, context="documents", judge="openai/gpt-5-mini", language="ja", scale=5)
scored = sk.score_hallucination(df, output="answer", judge=judge, repeats=3, usage=True, keep_prompts=True)
example = ({"input": "Hi?", "output": "Hello."}, {"polite": 1.0, "reason": "A greeting."})
gentle: sk.Prompt = sk.Prompt("Is this polite?\n{{ output }}", reply=Politeness).with_examples(example)
scored = sk.score_relevancy(df, prompts={"analyze": gentle}, judge=judge)
before: pd.DataFrame = sk.estimate(df, sk.score_relevancy, judge=judge)
trust: pd.DataFrame = sk.self_check(partial(sk.score_toxicity, scale=2.0), df, rows=20, repeats=3, judge=judge)
spent: pd.DataFrame = judge.usage()
seen: tuple[sk.StepRun, ...] = one.trace
found: sk.Agreement = sk.agreement(scored, score="relevancy_score", human="label", threshold=0.5)
wrong: pd.DataFrame = scored[found.rows("fail", "pass")]
more: pd.Series = found.labels_needed(0.1)
view: sk.Explorer = sk.explore(scored, order="informative", save="labels.jsonl", agreement=found)
labelled: pd.DataFrame = view.data
matrix: go.Figure = sk.figure_agreement(found)
sk.export_html(view, "rows.html")
sk.playground(sk.score_relevancy, df, judge=judge)
compared: sk.Comparison = sk.compare(scored, variant="variant", item="id", baseline="short", cluster="topic")
needed: pd.DataFrame = compared.items_needed(power=0.8, difference=0.05)
differences: go.Figure = sk.figure_compare(compared)
pairs: sk.SideBySide = sk.side_by_side(compared, save="votes.jsonl")
sk.export_html(pairs, "pairs.html")
long: pd.DataFrame = sk.generate(df, prompts={"short": "Briefly: {{ input }}"}, model=judge, item="id", repeats=2)
result: sk.EvalResult = sk.run_evals(["q"], target=str.upper, scorers=[sk.score_tone], thresholds={"tone": {"min": 0.5}})
preferred: pd.DataFrame = sk.score_preference(df, output_a="old", output_b="new", judge=judge)
bias: float = sk.position_bias(preferred).first
store = sk.ScoreStore("scores.db", max_age_days=90)
new: int = store.append(scored, run="v2", entity_type="agent", entity_id="support", created_at="2026-11-30")
kept: pd.DataFrame = store.read(scorer=["relevancy", "tone"], since="2026-11-01", limit=100)
gone: int = store.delete(run="v1")


@sk.live(
    scorers={"relevancy": sk.sampled(sk.score_relevancy, rate=0.5), "tone": sk.score_tone},
    store=store,
    when=lambda call: call.error is None,
)
def agent(question: str, *, user: str = "nobody") -> str:
    with sk.live.step("retrieve", input=question) as step:
        step.output = question
    return question


@sk.live(scorers={"tone": sk.score_tone}, store=store, worker="process", full="block")
async def streaming(question: str) -> str:
    return question


answered: str = agent("Why?", user="somebody")
agent(1)  # type: ignore[arg-type]  # a decorated function keeps its types
flushed: bool = sk.live.flush(1.0)
dropped: int = sk.live.stats().dropped
drifted: pd.DataFrame = sk.trend(kept, by="day", reference=7)
over_time: go.Figure = sk.figure_trend(kept, by="hour")
later: pd.DataFrame = sk.score_stored(store, sk.score_tone, where={"run": "v2"})
distribution: go.Figure = sk.figure_scores(scored, by="variant", bins=10)
verdicts: go.Figure = sk.figure_statements(scored, "relevancy", by=["variant", "language"])
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
sk.score_toxicity(df, statements="words")  # type: ignore[arg-type]
sk.score_faithfulness(df, "context")  # type: ignore[call-arg]  # options are keyword-only
sk.score_relevancy(df, prompts={"analyze": "Is this polite?"})  # type: ignore[dict-item]  # a Prompt, not its text
