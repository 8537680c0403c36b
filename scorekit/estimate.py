"""estimate: what a scorer would ask of a judge, counted before anything is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pandas as pd

from scorekit.columns import require_frame
from scorekit.errors import ArgumentTypeError
from scorekit.judge.client import Judge
from scorekit.judge.replies import Answer, Reason, Request, Statements, Verdicts
from scorekit.judge.settings import sent_model
from scorekit.judge.usage import prices
from scorekit.run import parameters_of, unwrapped
from scorekit.scorer import Scorer
from scorekit.sentences import split_sentences
from scorekit.texts import TEXT

if TYPE_CHECKING:
    from pydantic import BaseModel

    from scorekit.run import ScorerLike
    from scorekit.scorer import JudgeLike

ASCII_PER_TOKEN, OTHER_PER_TOKEN, TOKENS_PER_MESSAGE = 4.0, 1.5, 4
"""Rough sizes of a token: 4 characters of English, 1.5 of other scripts; each message has a few tokens of frame."""

A_SENTENCE = "It names the main point of the answer and says how far that meets what was asked for."
LIST_ITEMS = 3


def estimate(df: pd.DataFrame, /, scorer: ScorerLike, *, judge: JudgeLike | None = None) -> pd.DataFrame:
    """Return how many calls and about how many tokens a scorer would take, without making a call.

    The steps run with invented replies: statements are cut by the sentence splitter, every verdict has a reason of one sentence. Equal requests
    count once, as they are sent once. Replies that are in the cache already, retries and re-asks do not count.

    Parameters
    ----------
    df
        The rows that would be scored.
    scorer
        A judged scorer: a public function, a partial of one, or a `Scorer`.
    judge
        Whose price to take, where the scorer has no judge bound.

    Returns
    -------
    pandas.DataFrame
        One row per judged step and one ``total``, index ``step``: ``calls`` (int64), ``input_tokens``, ``output_tokens`` (float64, within some
        30 % for English, more elsewhere), ``cost_usd`` (float64, NaN where the model's price is not known or genai-prices is not installed).

    Raises
    ------
    ArgumentTypeError
        When the scorer takes no judge.

    Examples
    --------
    >>> from scorekit import score_relevancy
    >>> df = pd.DataFrame({"input": ["Why is the sky blue?"], "output": ["Air scatters blue light. The sea is blue too."]})
    >>> estimate(df, score_relevancy)["calls"].to_dict()
    {'relevancy.preprocess': 1, 'relevancy.analyze': 1, 'relevancy.generate_reason': 1, 'total': 3}
    """
    require_frame(df, "estimate")
    function, settings = unwrapped(scorer)
    bound = settings.get("judge", getattr(function, "judge", None))
    if not (function.prompts if isinstance(function, Scorer) else "judge" in parameters_of(function)):
        msg = "estimate counts calls to a judge, but this scorer takes no judge: it costs none."
        raise ArgumentTypeError(msg)
    ledger = _Ledger()
    scorer(df, judge=ledger)
    rows = {step: (len(texts), *ledger.tokens[step]) for step, texts in ledger.asked.items()}
    counted = pd.DataFrame.from_dict(rows, orient="index", columns=["calls", "input_tokens", "output_tokens"])
    counted.loc["total"] = counted.sum()
    counted = counted.astype({"calls": "int64", "input_tokens": "float64", "output_tokens": "float64"}).rename_axis("step")
    price = _price(judge if judge is not None else bound)
    return counted.assign(cost_usd=[price(*tokens) for tokens in counted[["input_tokens", "output_tokens"]].itertuples(index=False)])


@dataclass
class _Ledger:
    """A judge that answers with invented replies, and counts."""

    label: str = "estimate"
    asked: dict[str, set[int]] = field(default_factory=dict)
    tokens: dict[str, tuple[float, float]] = field(default_factory=dict)

    def submit(
        self, requests: Sequence[Request], *, rank: int = 0, on_answer: Callable[[int, Answer], None] | None = None
    ) -> Future[list[Answer]]:
        """Count each distinct request, and answer all."""
        del rank
        answers = [Answer(value=self._count(request)) for request in requests]
        for index, answer in enumerate(answers):
            if on_answer is not None:
                on_answer(index, answer)
        future: Future[list[Answer]] = Future()
        future.set_result(answers)
        return future

    def _count(self, request: Request) -> BaseModel:
        """Count a request unless an equal one was counted; return the invented reply."""
        text = "".join(message["content"] for message in request.messages)
        reply = _invented(request)
        seen = self.asked.setdefault(request.step, set())
        if hash((text, request.repeat)) not in seen:
            seen.add(hash((text, request.repeat)))
            given, taken = self.tokens.get(request.step, (0.0, 0.0))
            given += tokens_in(text) + TOKENS_PER_MESSAGE * len(request.messages)
            self.tokens[request.step] = (given, taken + tokens_in(reply.model_dump_json()))
        return reply


def tokens_in(text: str) -> float:
    """Return about how many tokens a text has; tokenizers differ, so this knows English from other scripts and no more.

    Examples
    --------
    >>> tokens_in("Water boils.")
    3.0
    """
    ascii_characters = len(text.encode("ascii", errors="ignore"))
    return ascii_characters / ASCII_PER_TOKEN + (len(text) - ascii_characters) / OTHER_PER_TOKEN


def _invented(request: Request) -> BaseModel:
    """Return a reply of the size that a judge's would have."""
    model, row = request.reply, request.context
    if issubclass(model, Statements):
        found = split_sentences(pd.Series([row.get("output", "")], dtype=TEXT))[0]
        return model.model_construct(statements=found)
    if issubclass(model, Verdicts):
        count = len(row.get("statements", ()))
        verdicts = [{"statement": n, "result": "yes", "reason": A_SENTENCE} for n in range(1, count + 1)]
        return model.model_validate({"results": verdicts}, context={})
    if issubclass(model, Reason):
        return model.model_construct(reason=f"{A_SENTENCE} {A_SENTENCE}")
    schema = model.model_json_schema()
    fields = {name: _instance(part, schema) for name, part in schema.get("properties", {}).items()}
    try:
        return model.model_validate(fields, context=dict(row))
    except ValueError:
        return model.model_construct(**fields)


def _instance(part: dict[str, Any], root: dict[str, Any]) -> Any:
    """Return a value of a JSON schema."""
    if "$ref" in part:
        return _instance(root["$defs"][part["$ref"].rsplit("/", 1)[-1]], root)
    if "const" in part:
        return part["const"]
    if "enum" in part:
        return part["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if key in part:
            return _instance(part[key][0], root)
    kind = part.get("type")
    if kind == "object":
        return {name: _instance(inner, root) for name, inner in part.get("properties", {}).items()}
    if kind == "array":
        return [_instance(part.get("items", {"type": "string"}), root)] * max(LIST_ITEMS, part.get("minItems", 0))
    if kind in ("integer", "number"):
        return part.get("minimum", part.get("maximum", 1))
    return {"boolean": True, "null": None}.get(str(kind), A_SENTENCE)


def _price(judge: JudgeLike | None) -> Callable[[float, float], float]:
    """Return the function from tokens to US dollars for the judge's model; NaN where the price is not known."""
    found = Judge(judge) if isinstance(judge, str) else judge
    if not isinstance(found, Judge):
        return lambda _given, _taken: float("nan")
    known = prices(sent_model(found.model, found.endpoint()), found.endpoint())
    return lambda given, taken: known.cost_usd(given, 0.0, taken)
