"""The settings of a judge: frozen, hashable, without any key, and what the environment adds to them."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from scorekit.errors import ArgumentTypeError, JudgeSetupError, OptionRangeError
from scorekit.judge.cache import CacheSetting, ReplyCache

DEFAULT_MODEL: Final = "openai/gpt-5-mini"
"""The judge where a key or a base URL is set and no model is named."""

OPENAI_URL: Final = "https://api.openai.com/v1"


class FrozenMapping(Mapping[str, Any]):
    """A mapping of JSON values that can be hashed; its values may be secrets, so its repr shows the names alone."""

    __slots__ = ("_data", "_text")

    def __init__(self, data: Mapping[str, Any]) -> None:
        """Take a copy by way of JSON."""
        self._text = json.dumps(dict(data), sort_keys=True, separators=(",", ":"))
        self._data: dict[str, Any] = json.loads(self._text)

    def __getitem__(self, name: str) -> Any:
        """Return a value."""
        return self._data[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._data)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._data)

    def __hash__(self) -> int:
        """Hash by content."""
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        """Compare by content."""
        return self._text == other._text if isinstance(other, FrozenMapping) else NotImplemented

    def __repr__(self) -> str:
        """Show the names without the values."""
        return f"<{', '.join(self._data) or 'nothing'}>"


@dataclass(frozen=True, init=False, repr=False)
class JudgeSettings:
    """What a `Judge` is made of; see there for what each setting means."""

    model: str
    base_url: str | None
    key_env: str
    concurrency: int
    timeout_s: float
    row_timeout_s: float
    retries: int
    temperature: float | None
    seed: int | None
    cache: ReplyCache
    requests_per_minute: float | None
    tokens_per_minute: float | None
    max_tokens: float | None
    max_cost_usd: float | None
    extra_body: FrozenMapping
    headers: FrozenMapping
    client: Any

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        base_url: str | None = None,
        key_env: str = "OPENAI_API_KEY",
        concurrency: int = 32,
        timeout_s: float = 60.0,
        row_timeout_s: float = 180.0,
        retries: int = 5,
        temperature: float | None = 0.0,
        seed: int | None = 0,
        cache: CacheSetting | ReplyCache = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        max_tokens: float | None = None,
        max_cost_usd: float | None = None,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        client: Callable[[], Any] | Any = None,
    ) -> None:
        """Check and freeze the settings; nothing is opened."""
        if not isinstance(model, str):
            raise ArgumentTypeError.from_value("model", model, "text such as 'openai/gpt-5-mini'")
        if not model.strip():
            raise OptionRangeError.from_value("model", model, "the name of a model")
        values = {
            "model": model,
            "base_url": base_url if base_url is None else _checked_url(base_url),
            "key_env": key_env,
            "concurrency": int(_number("concurrency", concurrency, least=1)),
            "timeout_s": _number("timeout_s", timeout_s, above=0),
            "row_timeout_s": _number("row_timeout_s", row_timeout_s, above=0),
            "retries": int(_number("retries", retries, least=0)),
            "temperature": None if temperature is None else _number("temperature", temperature, least=0),
            "seed": None if seed is None else int(_number("seed", seed)),
            "cache": cache if isinstance(cache, ReplyCache) else ReplyCache(cache),
            "requests_per_minute": _limit("requests_per_minute", requests_per_minute),
            "tokens_per_minute": _limit("tokens_per_minute", tokens_per_minute),
            "max_tokens": _limit("max_tokens", max_tokens),
            "max_cost_usd": _limit("max_cost_usd", max_cost_usd),
            "extra_body": _frozen("extra_body", extra_body),
            "headers": _frozen("headers", headers),
            "client": client,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Show the settings that are not the default, without secrets."""
        shown = [repr(self.model)]
        default = JudgeSettings(self.model)
        for field in fields(self):
            value = getattr(self, field.name)
            if value == getattr(default, field.name):
                continue
            if field.name == "base_url":
                value = without_credentials(value)
            shown.append(f"{field.name}={f'<{type(value).__name__}>' if field.name == 'client' else repr(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to pickle an open client."""
        if self.client is not None and not callable(self.client):
            kind = type(self.client).__name__
            msg = (
                f"A judge with client=<{kind} object> cannot be pickled: its connections belong to this process. Pass a function of a "
                f"module that makes the client instead: Judge(..., client=make_client)."
            )
            raise ArgumentTypeError(msg)
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take the settings back."""
        for name, value in state.items():
            object.__setattr__(self, name, value)

    @property
    def label(self) -> str:
        """The judge's name in result columns: the model as given."""
        return self.model

    def endpoint(self) -> str:
        """Return the address that requests go to: ``base_url``, else OPENAI_BASE_URL, else OpenAI's."""
        return (self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL).rstrip("/")

    def key(self) -> str | None:
        """Return the key from the environment; None where none is needed.

        Raises
        ------
        JudgeSetupError
            Where requests would go to OpenAI and the environment has no key.
        """
        key = os.environ.get(self.key_env) or None
        if key is None and not (self.base_url or os.environ.get("OPENAI_BASE_URL")):
            msg = (
                f"The judge {self.model!r} needs a key: the environment variable {self.key_env} is not set. Set it, name another one with "
                f"key_env=, pass base_url= for a local endpoint (Ollama, vLLM), or use the rough judge 'local'."
            )
            raise JudgeSetupError(msg)
        return key


def sent_model(model: str, endpoint: str) -> str:
    """Return the model's id as the endpoint knows it: OpenAI's own does not know the prefix ``openai/``."""
    return model.removeprefix("openai/") if urlsplit(endpoint).hostname == "api.openai.com" else model


def without_credentials(url: str) -> str:
    """Return an address without user, password, query and fragment, which may be secret."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def redacted(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Return a message of an endpoint without keys: those that we know, and what looks like one."""
    for secret in secrets:
        if len(secret) >= 4:  # noqa: PLR2004  (shorter "keys" such as "x" are placeholders)
            text = text.replace(secret, "***")
    return re.sub(r"\b(?:sk|pk|rk)-[\w*-]{4,}|(?<=Bearer )[\w.*~+/-]{4,}", "***", text)


def _checked_url(url: object) -> str:
    if not isinstance(url, str):
        raise ArgumentTypeError.from_value("base_url", url, "an address such as 'http://localhost:11434/v1'")
    if urlsplit(url).scheme not in ("http", "https"):
        raise OptionRangeError.from_value("base_url", without_credentials(url), "an address that begins with http:// or https://")
    return url


def _number(name: str, value: object, *, least: float | None = None, above: float | None = None) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentTypeError.from_value(name, value, "a number")
    if math.isnan(value) or (least is not None and value < least) or (above is not None and value <= above):
        wanted = "a number" if least is above is None else f"at least {least}" if least is not None else f"above {above}"
        raise OptionRangeError.from_value(name, value, wanted)
    return value


def _limit(name: str, value: object) -> float | None:
    return None if value is None else _number(name, value, above=0)


def _frozen(name: str, value: object) -> FrozenMapping:
    if isinstance(value, FrozenMapping):
        return value
    if value is not None and not isinstance(value, Mapping):
        raise ArgumentTypeError.from_value(name, value, "a mapping of names to JSON values")
    try:
        return FrozenMapping(value or {})
    except (TypeError, ValueError) as error:
        msg = f"{name} must hold JSON values: {error}"
        raise ArgumentTypeError(msg) from None
