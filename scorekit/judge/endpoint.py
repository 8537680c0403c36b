"""One HTTP call to an OpenAI-compatible endpoint: the client, the answer's parts, and what each failure means."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

from scorekit.errors import ArgumentTypeError
from scorekit.judge.pace import retry_after_s
from scorekit.judge.settings import JudgeSettings, redacted, without_credentials

if TYPE_CHECKING:
    from openai import AsyncOpenAI

FailureKind = Literal["rate", "server", "timeout", "connection", "everyone", "form", "too_long", "refused", "other"]
"""What a failure means: wait and retry (rate), retry (server, timeout, connection), no request can succeed (everyone), the endpoint may
lack a feature (form), the row's own (too_long, refused, other)."""

RETRIED: Final = frozenset({"rate", "server", "timeout", "connection"})

_TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:context|input|prompt|sequence)|(?:prompt|input|request) (?:is )?too (?:long|large)|"
    r"too many (?:input |prompt )?tokens|exceeds? the (?:maximum|available|model'?s?) (?:number of tokens|context|token|input)|"
    r"string_above_max_length",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"content[ _-]?(?:filter|policy|management)|invalid_prompt|safety[ _]system|responsible ?ai", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)


class Failure(Exception):  # noqa: N818  (a value that travels, told to people as a row's reason)
    """A call without a usable answer."""

    def __init__(
        self, kind: FailureKind, reason: str, *, status: int | None = None, retry_after: float | None = None, about: str = ""
    ) -> None:
        """Take what it means and a reason for people, which has no secrets; ``about`` is what the endpoint names as the cause."""
        super().__init__(reason)
        self.kind: FailureKind = kind
        self.reason = reason
        self.status = status
        self.retry_after_s = retry_after
        self.about = about

    @property
    def code(self) -> str:
        """The error code of a row that fails so."""
        return {"timeout": "judge_timeout", "too_long": "input_too_long", "refused": "reply_refused"}.get(self.kind, "judge_error")


@dataclass(slots=True)
class Completion:
    """What a judge said, and what it cost."""

    text: str | None
    refusal: str | None
    finish: str
    input_tokens: float
    cheap_input_tokens: float
    output_tokens: float
    counted: bool
    seconds: float = 0.0


class Endpoint:
    """An endpoint with its open connections; made and used on the background loop."""

    def __init__(self, settings: JudgeSettings, url: str, key: str | None, client: AsyncOpenAI | None) -> None:
        """Take a ready client, or make one at the first call."""
        self.shown = without_credentials(url)
        self._settings = settings
        self._url = url
        self._key = key
        self._ready = client
        self._client: Any = None
        self._connecting: asyncio.Future[AsyncOpenAI] | None = None
        self._raw: Any = None
        self._secrets = tuple(str(value) for value in settings.headers.values()) + ((key,) if key else ())

    async def post(self, body: dict[str, Any], timeout_s: float) -> Completion:
        """Send one chat completion, once `ready`; raise `Failure` where there is none."""
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._client.post("/chat/completions", cast_to=self._raw, body=body)
        except TimeoutError:
            raise Failure("timeout", f"No answer from {self.shown} within {timeout_s:.3g} s.") from None
        except Exception as error:
            raise self._failure(error) from error
        return self._completion(response.content)

    async def close(self) -> None:
        """Close the connections of a client that we made."""
        if self._ready is None and self._client is not None:
            await self._client.close()

    async def ready(self) -> None:
        """Make the client at the first call; in a thread, since openai takes a second to load."""
        if self._client is None:
            if self._connecting is None:
                self._connecting = asyncio.get_running_loop().run_in_executor(None, self._connect)
            self._client = await asyncio.shield(self._connecting)

    def _connect(self) -> AsyncOpenAI:
        """Make the client: openai's own retries off, our deadline instead of its time-out."""
        import httpx2
        from openai import AsyncOpenAI, DefaultAioHttpClient

        self._raw = httpx2.Response
        if self._ready is not None:
            return self._ready
        return AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._url,
            max_retries=0,
            timeout=None,
            default_headers={name: str(value) for name, value in self._settings.headers.items()} or None,
            http_client=DefaultAioHttpClient(timeout=None),
        )

    def _failure(self, error: Exception) -> Failure:
        """Say what an exception of the client means."""
        import openai

        if isinstance(error, openai.APIStatusError):
            return self._status_failure(error.status_code, error.body, error.response.headers)
        if not isinstance(error, openai.APIError) and isinstance(error, (openai.OpenAIError, ValueError, TypeError)):
            kind: FailureKind = "everyone" if isinstance(error, openai.OpenAIError) else "other"
            return Failure(kind, redacted(f"The request could not be made: {type(error).__name__}: {error}"[:300], self._secrets))
        if isinstance(error, openai.APITimeoutError) and _timed_out(error):
            return Failure("timeout", f"No answer from {self.shown} in time.")
        cause = _root(error)
        detail = redacted(f"{type(cause).__name__}: {cause}"[:200], self._secrets)
        return Failure("connection", f"No connection to {self.shown} ({detail}).")

    def _status_failure(self, status: int, body: object, headers: Any = None) -> Failure:
        """Say what an HTTP status means."""
        details = body.get("error", body) if isinstance(body, dict) else body
        fields = details if isinstance(details, dict) else {}
        message = str(fields.get("message") or (details if isinstance(details, str) else "") or "").strip()
        code = str(fields.get("code") or "")
        about = " ".join(str(fields.get(name) or "") for name in ("param", "code", "type"))
        phrase = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else ""
        said = redacted(" ".join(message.split())[:200], self._secrets)
        reason = f"HTTP {status}{f' {phrase}' if phrase else ''} from {self.shown}{f': {said}' if said else '.'}"
        everything = f"{message} {about}"
        kind: FailureKind
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            kind = "everyone" if _QUOTA.search(everything) else "rate"
        elif status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT) or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            kind = "server"
        elif status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            kind = "everyone"
        elif status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE or code == "context_length_exceeded" or _TOO_LONG.search(everything):
            kind = "too_long"
        elif _REFUSED.search(everything):
            kind = "refused"
        else:
            kind = "form" if status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY) else "other"
        return Failure(kind, reason, status=status, retry_after=retry_after_s(headers), about=everything.lower())

    def _completion(self, content: bytes) -> Completion:
        """Take the answer apart; some gateways send errors, or pages, with status 200."""
        try:
            data = json.loads(content)
            if not isinstance(data, dict):
                raise TypeError  # noqa: TRY301  (told below)
            if data.get("error") and not data.get("choices"):
                error = data["error"]
                status = error.get("code") if isinstance(error, dict) else None
                raise self._status_failure(status if isinstance(status, int) and status >= HTTPStatus.BAD_REQUEST else 502, data)
            choice = data["choices"][0]
            message = choice.get("message") or {}
            usage = data.get("usage") or {}
            details = usage.get("prompt_tokens_details") or {}
            return Completion(
                text=_joined(message.get("content")),
                refusal=message.get("refusal") or None,
                finish=str(choice.get("finish_reason") or ""),
                input_tokens=float(usage.get("prompt_tokens") or 0),
                cheap_input_tokens=float(details.get("cached_tokens") or 0),
                output_tokens=float(usage.get("completion_tokens") or 0),
                counted=bool(usage),
            )
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            shown = redacted(content[:80].decode(errors="replace"), self._secrets)
            raise Failure("server", f"{self.shown} sent no chat completion but {shown!r}.") from None


def ready_client(settings: JudgeSettings) -> AsyncOpenAI | None:
    """Return the client that the user brings, with openai's own retries off; None where we make one."""
    if settings.client is None:
        return None
    client = settings.client() if callable(settings.client) else settings.client
    if not callable(getattr(client, "post", None)) or not hasattr(client, "base_url"):
        raise ArgumentTypeError.from_value("client", client, "an openai.AsyncOpenAI (or AsyncAzureOpenAI), or a function that makes one")
    headers = {name: str(value) for name, value in settings.headers.items()} or None
    ready: AsyncOpenAI = client.with_options(max_retries=0, default_headers=headers) if hasattr(client, "with_options") else client
    return ready


def _joined(content: Any) -> str | None:
    """Return a message's text; some endpoints send it in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if content is None or isinstance(content, str) else json.dumps(content)


def _root(error: BaseException) -> BaseException:
    """Return the first cause of an exception."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _timed_out(error: BaseException) -> bool:
    """Return whether a time-out is behind an exception: openai calls lost connections of its aiohttp transport time-outs as well."""
    cause: BaseException | None = error.__cause__
    while cause is not None:
        if isinstance(cause, TimeoutError):
            return True
        if cause.__cause__ is None:
            return type(cause).__module__.startswith("httpx") and "Timeout" in type(cause).__name__
        cause = cause.__cause__
    return True
