"""What judges cost: counters per model and step, prices, and budgets that stop cleanly."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

GUESSED_OUTPUT_TOKENS = 200.0
"""What a reply is taken to cost until the first one has come."""


@dataclass(slots=True)
class StepUsage:
    """What one step has used so far."""

    calls: int = 0
    cached: int = 0
    retried: int = 0
    errors: int = 0
    input_tokens: float = 0.0
    cheap_input_tokens: float = 0.0
    output_tokens: float = 0.0
    seconds: float = 0.0


class Usage:
    """The counters of one judge in this process, by step. Written on the loop alone, read from any thread."""

    def __init__(self, model: str) -> None:
        """Begin at zero."""
        self.model = model
        self.steps: dict[str, StepUsage] = {}

    def of(self, step: str) -> StepUsage:
        """Return a step's counters."""
        found = self.steps.get(step)
        if found is None:
            found = self.steps[step] = StepUsage()
        return found

    def reset(self) -> None:
        """Begin anew."""
        self.steps = {}


class Prices(NamedTuple):
    """US dollars per token; NaN where the price is not known."""

    input: float
    cheap_input: float
    output: float

    def cost_usd(self, input_tokens: float, cheap_input_tokens: float, output_tokens: float) -> float:
        """Return what tokens cost; ``cheap_input_tokens`` are those of ``input_tokens`` that the provider had cached."""
        dear = (input_tokens - cheap_input_tokens) * self.input + output_tokens * self.output
        return dear + (cheap_input_tokens * self.cheap_input if cheap_input_tokens else 0.0)


UNKNOWN = Prices(math.nan, math.nan, math.nan)


@lru_cache(maxsize=256)
def prices(model: str, endpoint: str) -> Prices:
    """Return a model's prices at an endpoint for short prompts, from the library genai-prices where it is installed.

    Examples
    --------
    >>> prices("my-own-model", "http://localhost:11434/v1")
    Prices(input=nan, cheap_input=nan, output=nan)
    """
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        return UNKNOWN

    def price(**tokens: int) -> float:
        return float(calc_price(Tokens(**tokens), model_ref=model, provider_api_url=f"{endpoint}/chat/completions").total_price)

    try:
        base = price(input_tokens=1000)
        cheap = price(input_tokens=1000, cache_read_tokens=1000)
        both = price(input_tokens=1000, output_tokens=1000)
    except (LookupError, ValueError):
        return UNKNOWN
    return Prices(base / 1000, cheap / 1000, (both - base) / 1000)


def usage_frame(parts: Iterable[tuple[Usage, Prices]]) -> pd.DataFrame:
    """Return the counters as a frame, a row per model and step, sorted.

    ``calls`` and the token columns count HTTP requests of every try; ``cached`` the answers that needed none; ``retried`` the calls
    beyond a request's first; ``errors`` the answers without a reply; ``cost_usd`` is NaN where the price is not known.
    """
    import pandas as pd

    rows = [
        (
            usage.model,
            step,
            used.calls,
            used.cached,
            used.retried,
            used.errors,
            used.input_tokens,
            used.output_tokens,
            used.seconds,
            price.cost_usd(used.input_tokens, used.cheap_input_tokens, used.output_tokens),
        )
        for usage, price in parts
        for step, used in list(usage.steps.items())
    ]
    dtypes = {
        **dict.fromkeys(("model", "step"), "string"),
        **dict.fromkeys(("calls", "cached", "retried", "errors"), "int64"),
        **dict.fromkeys(("input_tokens", "output_tokens", "seconds", "cost_usd"), "float64"),
    }
    frame = pd.DataFrame(rows, columns=list(dtypes)).astype(dtypes)
    return frame.sort_values(["model", "step"], ignore_index=True)


class Budget:
    """How much may still be spent: calls in flight count with what a call has cost on average.

    A call that does not fit waits while others are in flight, since they may cost less; when none is, it is refused.
    """

    def __init__(self, max_tokens: float | None, max_cost_usd: float | None, price: Prices) -> None:
        """Begin with nothing spent."""
        self._max_tokens = math.inf if max_tokens is None else max_tokens
        self._max_cost_usd = math.inf if max_cost_usd is None else max_cost_usd
        self._price = price
        self.limited = max_tokens is not None or max_cost_usd is not None
        self.reset()

    def reset(self) -> None:
        """Forget what was spent."""
        self.tokens = 0.0
        self.cost_usd = 0.0
        self._calls = 0
        self._output = 0.0
        self._open_calls = 0
        self._open_tokens = 0.0
        self._open_cost_usd = 0.0

    @property
    def mean_output(self) -> float:
        """The output tokens of a call on average."""
        return self._output / self._calls if self._calls else GUESSED_OUTPUT_TOKENS

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight."""
        return self._open_calls == 0

    def fits(self, input_tokens: float) -> bool:
        """Return whether one more call may be sent."""
        tokens, cost_usd = self._expected(input_tokens)
        return (
            self.tokens + self._open_tokens + tokens <= self._max_tokens
            and self.cost_usd + self._open_cost_usd + cost_usd <= self._max_cost_usd
        )

    def open(self, input_tokens: float) -> tuple[float, float]:
        """Reserve a call; hand the result back to `close`."""
        reserved = self._expected(input_tokens)
        self._open_calls += 1
        self._open_tokens += reserved[0]
        self._open_cost_usd += reserved[1]
        return reserved

    def close(self, reserved: tuple[float, float], used: tuple[float, float, float] | None) -> None:
        """Replace a reservation by what was used: input, cheap input and output tokens; None where the call failed."""
        self._open_calls -= 1
        self._open_tokens -= reserved[0]
        self._open_cost_usd -= reserved[1]
        if used is not None:
            self._calls += 1
            self._output += used[2]
            self.tokens += used[0] + used[2]
            if self._max_cost_usd < math.inf:
                self.cost_usd += self._price.cost_usd(*used)

    def told(self, input_tokens: float) -> str:
        """Say, for a row's reason, what was spent and what one more call would add."""
        tokens, cost_usd = self._expected(input_tokens)
        if self.tokens + tokens > self._max_tokens:
            return f"max_tokens={self._max_tokens:g}: {self.tokens:g} were used, and this call would take about {tokens:.0f} more."
        return f"max_cost_usd={self._max_cost_usd:g}: {self.cost_usd:.4g} were spent, and this call would cost about {cost_usd:.2g} more."

    def _expected(self, input_tokens: float) -> tuple[float, float]:
        output = self.mean_output
        cost_usd = self._price.cost_usd(input_tokens, 0, output) if self._max_cost_usd < math.inf else 0.0
        return input_tokens + output, cost_usd
