"""A scripted OpenAI-compatible judge on 127.0.0.1, in a thread of its own: replies and faults by predicate, and counters."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web


@dataclass
class Reply:
    """How the server answers: a completion (content, refusal, finish), an HTTP error (status), or a fault of the transport."""

    content: str | None = None
    refusal: str | None = None
    finish: str = "stop"
    status: int = 200
    message: str = "injected"
    code: str | None = None
    param: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    hang: bool = False
    drop: bool = False
    raw: str | None = None
    usage: bool = True


@dataclass
class _Rule:
    matches: Callable[[dict[str, Any]], bool]
    answer: Reply | Callable[[dict[str, Any]], Reply]
    times: float


class Loopback:
    """``with Loopback() as server``: ``server.url`` is the base URL; `when` scripts it; ``server.bodies`` are the requests so far."""

    def __init__(self, latency_s: float = 0.0) -> None:
        self.latency_s = latency_s
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.statuses: Counter[int] = Counter()
        self.open = 0
        self.most_open = 0
        self.dropped = 0
        self._rules: list[_Rule] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def when(
        self, match: str | Callable[[dict[str, Any]], bool], answer: Reply | Callable[[dict[str, Any]], Reply], times: float = float("inf")
    ) -> None:
        """Answer so where the prompt contains a text (or a predicate of the body says so); the first rule that matches counts."""
        matches = match if callable(match) else (lambda body: match in prompt_of(body))
        self._rules.append(_Rule(matches, answer, times))

    @property
    def calls(self) -> int:
        return len(self.bodies)

    def calls_with(self, text: str) -> int:
        return sum(text in prompt_of(body) for body in self.bodies)

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _start(self) -> str:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await self._site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _stop(self) -> None:
        await self._site.stop()
        for _ in range(10):  # connections that have just been accepted become known, so that they are closed too
            await asyncio.sleep(0)
        await self._runner.cleanup()
        for transport in list(self._loop._transports.values()):  # one with something left to write would keep its socket open
            transport.abort()
        for _ in range(3):
            await asyncio.sleep(0)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        self.headers.append(request.headers)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            reply = self._scripted(body)
            if reply.drop:
                assert request.transport is not None
                request.transport.close()
                self.dropped += 1
                return web.Response()
            await asyncio.sleep(3600 if reply.hang else reply.delay_s or self.latency_s)
            self.statuses[reply.status] += 1
            return _response(reply, body)
        except asyncio.CancelledError:
            self.dropped += 1
            raise
        finally:
            self.open -= 1

    def _scripted(self, body: dict[str, Any]) -> Reply:
        for rule in self._rules:
            if rule.times > 0 and rule.matches(body):
                rule.times -= 1
                return rule.answer(body) if callable(rule.answer) else rule.answer
        return Reply(instance_of(body))


def _response(reply: Reply, body: dict[str, Any]) -> web.Response:
    if reply.raw is not None:
        return web.Response(text=reply.raw, status=reply.status, headers=reply.headers)
    if reply.status != 200:
        error = {"message": reply.message, "type": "injected", "code": reply.code, "param": reply.param}
        return web.json_response({"error": error}, status=reply.status, headers=reply.headers)
    message = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
    data = {"id": "c", "object": "chat.completion", "created": 0, "model": body["model"]}
    data["choices"] = [{"index": 0, "message": message, "finish_reason": reply.finish, "logprobs": None}]
    if reply.usage:
        data["usage"] = {
            "prompt_tokens": len(prompt_of(body)) // 4,
            "completion_tokens": 12,
            "total_tokens": len(prompt_of(body)) // 4 + 12,
        }
    return web.json_response(data)


def prompt_of(body: dict[str, Any]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """The JSON schema that a request asks for, enforced or in words."""
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        return wanted["json_schema"]["schema"]
    words = "satisfies this JSON schema, and nothing else:\n"
    text = prompt_of(body)
    return json.JSONDecoder().raw_decode(text, text.index(words) + len(words))[0] if words in text else None


def instance_of(body: dict[str, Any]) -> str:
    """A small reply of the form asked for; texts repeat the end of the prompt, so that no row gets another's."""
    schema = schema_of(body)
    said = body["messages"][-1]["content"][-40:]
    return "ok" if schema is None else json.dumps(_instance(schema, schema, said))


def _instance(schema: dict[str, Any], root: dict[str, Any], said: str) -> Any:
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        return _instance(target, root, said)
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    if "anyOf" in schema:
        return _instance(schema["anyOf"][0], root, said)
    kind = schema.get("type")
    if kind == "object":
        return {name: _instance(field, root, said) for name, field in schema.get("properties", {}).items()}
    if kind == "array":
        return [_instance(schema.get("items", {"type": "string"}), root, said)]
    return {"integer": 1, "number": 1.0, "boolean": True, "null": None}.get(kind or "", said)
