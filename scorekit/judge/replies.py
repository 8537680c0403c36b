"""What a judge is asked and what comes back: the request, the answer, and the reply models of the shipped measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, ValidationInfo, model_validator

Message = Mapping[str, str]
"""One chat message: ``{"role": "system" | "user" | "assistant", "content": text}``."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question for a judge.

    Attributes
    ----------
    messages
        The chat messages, in order.
    reply
        The pydantic model that the reply must satisfy. `Text` asks for no form: whatever the model says is the reply.
    context
        The row's values by name, for the validators of ``reply`` (``info.context``): how many verdicts are due, for example.
    step
        Which step of which scorer asks, as ``"relevancy.analyze"``: usage is reported by it.
    repeat
        The number of this asking where the same question is asked several times: such requests are not shared and have their own seeds.
    """

    messages: tuple[Message, ...]
    reply: type[BaseModel]
    context: Mapping[str, Any] = field(default_factory=dict, compare=False)
    step: str = ""
    repeat: int = 0


@dataclass(slots=True)
class Answer:
    """What became of one request: a checked reply, or an error code and why.

    Attributes
    ----------
    value
        The reply, checked; None where there is an error.
    error
        One of ``scorekit.columns.ERROR_CODES``, or None.
    reason
        Why there is no reply, for people; at most a few hundred characters.
    text
        The last raw reply of the judge, where there was one.
    input_tokens, output_tokens
        Tokens that the endpoint counted over all tries; 0 for a reply from the cache.
    seconds
        Wall time of the calls, queueing not counted.
    calls
        How many HTTP requests were sent.
    cached
        True where the reply came from the cache or from an equal request in flight.
    """

    value: BaseModel | None = None
    error: str | None = None
    reason: str | None = None
    text: str | None = None
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    cached: bool = False


def verdict_word(said: object) -> object:
    """Trim, fold the case, and drop quotes around a verdict and its final full stop."""
    if not isinstance(said, str):
        return said
    return said.strip().strip("\"'`“”‘’").strip().removesuffix(".").strip().strip("\"'`“”‘’").strip().casefold()


VerdictWord = Annotated[Literal["yes", "unsure", "no"], BeforeValidator(verdict_word)]
"""``yes``, ``unsure`` or ``no``; ``"Yes."``, ``" YES "`` and ``'"yes"'`` are yes, any other word is an invalid reply."""


class Statements(BaseModel):
    """A text broken into statements."""

    statements: list[str] = Field(description="The statements, in the order of the text.")

    @model_validator(mode="after")
    def _without_blanks(self) -> Self:
        """Drop statements that hold no text: they cannot be judged and would count."""
        self.statements = [statement for statement in self.statements if statement.strip()]
        return self


class Verdict(BaseModel):
    """The verdict on one statement."""

    statement: int = Field(description="The number of the statement.")
    result: VerdictWord
    reason: str = Field(description="Why, in a few words.")


class Verdicts(BaseModel):
    """One verdict for each statement, each carrying the number of its statement."""

    results: list[Verdict] = Field(description="One verdict per statement, in the order of the statements.")

    @model_validator(mode="after")
    def _one_for_each(self, info: ValidationInfo) -> Self:
        """Refuse a reply whose verdicts are not exactly those of the statements asked about, then sort it by number."""
        statements = (info.context or {}).get("statements")
        if statements is not None:
            numbers = sorted(verdict.statement for verdict in self.results)
            if numbers != list(range(1, len(statements) + 1)):
                msg = (
                    f"expected exactly one verdict for each of the {len(statements)} statements, numbered 1 to {len(statements)}; "
                    f"got {len(numbers)} numbered {numbers[:40]}"
                )
                raise ValueError(msg)
        self.results.sort(key=lambda verdict: verdict.statement)
        return self


class Text(BaseModel):
    """A reply in plain text: asked for without a schema, and kept as it came.

    Attributes
    ----------
    text
        What was said; an empty text is one too.
    finish_reason
        Why it ended, as the endpoint says it: ``"stop"``, ``"length"`` for a text that was cut off; None where it does not say.
    input_tokens, output_tokens
        What the endpoint counted for the call that gave this text; None where it does not count. Kept with the reply, so the same from the cache.
    seconds
        How long that call took.
    """

    text: str
    finish_reason: str | None
    input_tokens: float | None
    output_tokens: float | None
    seconds: float


class Reason(BaseModel):
    """An explanation of a score."""

    reason: str = Field(description="One or two sentences that explain the score.")
