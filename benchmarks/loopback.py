"""An OpenAI-compatible judge on 127.0.0.1 for load: ``python benchmarks/loopback.py --port 8901 --latency 0.05``.

It answers any JSON schema, tool or function with a small instance and everything else with a line of text. ``--tail 0.05`` lets that share of
replies take ``--slow`` seconds (which ones depends on the prompt, not on the order). GET /_stats gives the number of calls and how
many were open at once.
"""

import argparse
import asyncio
import json
import zlib

from aiohttp import web


def instance(schema, root, name=""):
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        return instance(target, root, name)
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    if "anyOf" in schema:
        return instance(schema["anyOf"][0], root, name)
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return {key: instance(field, root, key) for key, field in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {"type": "string"}), root, name)]
    return {"integer": 1, "number": 1.0, "boolean": True}.get(kind, "The answer addresses the question.")


def message_for(body):
    functions = [tool["function"] for tool in body.get("tools") or []] + (body.get("functions") or [])
    if functions:
        function = functions[0]
        call = {"name": function["name"], "arguments": json.dumps(instance(function["parameters"], function["parameters"]))}
        return {"role": "assistant", "content": None, "tool_calls": [{"id": "call", "type": "function", "function": call}]}
    wanted = body.get("response_format") or {}
    if wanted.get("type") == "json_schema":
        schema = wanted["json_schema"]["schema"]
        return {"role": "assistant", "content": json.dumps(instance(schema, schema))}
    return {"role": "assistant", "content": "The answer addresses the question."}


class Server:
    def __init__(self, latency, tail, slow):
        self.latency, self.tail, self.slow = latency, tail, slow
        self.calls = self.open = self.most_open = 0

    async def chat(self, request):
        raw = await request.read()
        body = json.loads(raw)
        self.calls += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        late = self.tail and zlib.crc32(raw) % 10_000 < self.tail * 10_000
        await asyncio.sleep(self.slow if late else self.latency)
        self.open -= 1
        choice = {"index": 0, "message": message_for(body), "finish_reason": "stop", "logprobs": None}
        usage = {"prompt_tokens": len(raw) // 4, "completion_tokens": 12, "total_tokens": len(raw) // 4 + 12}
        return web.json_response(
            {"id": "c", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice], "usage": usage}
        )

    async def stats(self, _):
        return web.json_response({"calls": self.calls, "most_open": self.most_open})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8901)
    parser.add_argument("--latency", type=float, default=0.05)
    parser.add_argument("--tail", type=float, default=0.0)
    parser.add_argument("--slow", type=float, default=1.0)
    options = parser.parse_args()
    server = Server(options.latency, options.tail, options.slow)
    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/v1/chat/completions", server.chat)
    app.router.add_get("/_stats", server.stats)
    web.run_app(app, host="127.0.0.1", port=options.port, access_log=None, print=None)


if __name__ == "__main__":
    main()
