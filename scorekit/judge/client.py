"""Judge: a language model behind an OpenAI-compatible endpoint, asked from any thread, script or notebook."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scorekit.errors import ArgumentTypeError, JudgeSetupError
from scorekit.judge.endpoint import ready_client
from scorekit.judge.engine import Engine
from scorekit.judge.loop import background, wait_any
from scorekit.judge.replies import Answer, Request
from scorekit.judge.settings import DEFAULT_MODEL, JudgeSettings, sent_model
from scorekit.judge.usage import prices, usage_frame

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Judge", "resolve_judge", "wait_any"]


@dataclass(frozen=True, init=False, repr=False)
class Judge(JudgeSettings):
    """A language model that answers questions about rows.

    A value: it is frozen, compares by its settings, prints without secrets and pickles. Clients, keys and locks are made when it asks,
    once a process and judge. Judges that are equal share their slots, their counters and the requests in flight.

    Parameters
    ----------
    model
        The model's name. ``"openai/gpt-5-mini"`` is the default; OpenAI itself is sent the name without ``openai/``, every other
        endpoint the name as given.
    base_url
        An OpenAI-compatible endpoint, such as ``"http://localhost:11434/v1"``. Default: OPENAI_BASE_URL, else OpenAI. With a base URL
        no key is needed; one that is there is sent.
    key_env
        The environment variable that holds the key.
    concurrency
        How many requests are open at once, 1 or more.
    timeout_s
        Seconds that one call may take; then it is sent again.
    row_timeout_s
        Seconds for all calls of one question and the waits between them; queueing does not count.
    retries
        How often a call is sent again after a lost connection, a time-out, or the statuses 408, 409 and 5xx. A 429 is retried until
        ``row_timeout_s``.
    temperature, seed
        Sent where the endpoint takes them; None sends none.
    cache
        Where replies are kept: see `ReplyCache`. ``judge.cache`` is that value: ``judge.cache.clear()``, ``.size()``, ``.path``.
    requests_per_minute, tokens_per_minute
        Limits that are kept without waiting for a 429; None for none.
    max_tokens, max_cost_usd
        A budget of this judge in this process: questions that would go beyond it get ``budget_reached``. `reset_usage` begins anew.
    extra_body
        Further fields of each request's body, such as ``{"reasoning_effort": "low"}``; they replace ours.
    headers
        Further HTTP headers.
    client
        An ``openai.AsyncOpenAI`` of your own, for Azure or a proxy, or a function that makes one (that pickles).

    Raises
    ------
    ArgumentTypeError, OptionRangeError
        For a setting of the wrong kind or out of range.

    Examples
    --------
    >>> Judge(base_url="http://localhost:11434/v1", model="llama3.2", headers={"X-Team": "secret"})
    Judge('llama3.2', base_url='http://localhost:11434/v1', headers=<X-Team>)
    """

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers, in order; blocks, in a running event loop too.

        Ctrl-C raises KeyboardInterrupt within a moment and takes back these requests alone.
        """
        if background().is_current_thread():
            msg = "judge.ask would wait for itself here: it was called from on_answer. Collect the answers and ask afterwards."
            raise RuntimeError(msg)
        future = self.submit(requests)
        try:
            while not wait_any([future]):
                pass
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def ask_async(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers, in order; for async code. Cancelling the task takes back these requests alone."""
        return await asyncio.wrap_future(self.submit(requests))

    def submit(
        self, requests: Sequence[Request], *, rank: int = 0, on_answer: Callable[[int, Answer], None] | None = None
    ) -> Future[list[Answer]]:
        """Start asking and return at once.

        Parameters
        ----------
        requests
            The questions. Equal ones are asked once.
        rank
            Questions of a smaller rank get free slots first.
        on_answer
            Called with each answer's index and the answer, on the background thread, as it arrives: must be quick and must not wait.

        Returns
        -------
        concurrent.futures.Future
            The answers in order. ``cancel()`` takes back what is not answered: open requests are closed. Wait with `wait_any`.

        Raises
        ------
        JudgeSetupError
            As `check_ready`.
        """
        asked = [requests] if isinstance(requests, Request) else list(requests)
        for request in asked:
            if not isinstance(request, Request):
                raise ArgumentTypeError.from_value("each of requests", request, "a Request")
        return self._engine().submit(asked, rank, on_answer)

    def check_ready(self) -> None:
        """Raise where no request could succeed; sends nothing.

        Raises
        ------
        JudgeSetupError
            Where a key or the cache that was asked for is missing, or ``max_cost_usd`` is set for a model whose price is not known.
        """
        self._engine()

    def usage(self) -> pd.DataFrame:
        """Return what this judge has used in this process.

        Returns
        -------
        DataFrame
            A row per model and step: ``calls`` (HTTP requests), ``cached`` (answers without a call), ``retried`` (calls beyond a
            question's first), ``errors`` (answers without a reply), ``input_tokens``, ``output_tokens``, ``seconds``, and ``cost_usd`` by
            the library genai-prices (NaN where it is not installed or does not know the model there).
        """
        return usage_frame((engine.usage, prices(engine.model, engine.url)) for engine in self._engines())

    def reset_usage(self) -> None:
        """Begin counting anew, budgets too."""
        for engine in self._engines():
            engine.usage.reset()
            engine.budget.reset()

    def _engines(self) -> list[Engine]:
        """Return this judge's engines; more than one where the environment has changed."""
        return [kept for kept in list(background().kept.values()) if isinstance(kept, Engine) and kept.settings == self]

    def _engine(self) -> Engine:
        """Return the engine for the settings and the environment as they are now."""
        here = background()
        client = None if self.client is None else here.keep(("client", self), lambda: ready_client(self))
        key = self.key() if client is None else None
        url = self.endpoint() if client is None else str(client.base_url).rstrip("/")
        if self.max_cost_usd is not None and math.isnan(prices(sent_model(self.model, url), url).output):
            msg = (
                f"max_cost_usd= needs the price of {self.model!r}, which is not known here. Install genai-prices "
                f"(pip install 'scorekit[prices]') or limit max_tokens= instead."
            )
            raise JudgeSetupError(msg)
        store = self.cache.open()
        return here.keep(("engine", self, url, key, id(store)), lambda: Engine(self, url, key, client, store, here))


def resolve_judge(judge: Any) -> Any:
    """Return the judge that an argument means.

    Parameters
    ----------
    judge
        A judge (anything with ``submit``, or a LocalJudge) is returned as it is; a model's name gives a `Judge`, ``"local"`` a LocalJudge.
        None reads the environment: the model in SCOREKIT_JUDGE; else the default model where OPENAI_API_KEY or OPENAI_BASE_URL is set;
        else a LocalJudge; the caller warns that it is rough where it is used.

    Raises
    ------
    ArgumentTypeError
        For anything else.
    """
    from scorekit.judge.local import LocalJudge

    if judge is None:
        judge = os.environ.get("SCOREKIT_JUDGE") or None
    if judge is None:
        if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
            return Judge(DEFAULT_MODEL)
        return LocalJudge()
    if isinstance(judge, str):
        return LocalJudge() if judge.strip().lower() == "local" else Judge(judge)
    if not isinstance(judge, type) and (isinstance(judge, LocalJudge) or callable(getattr(judge, "submit", None))):
        return judge
    raise ArgumentTypeError.from_value("judge", judge, "a Judge, the name of a model such as 'openai/gpt-5-mini', or 'local'")
