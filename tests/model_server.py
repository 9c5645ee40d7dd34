"""Anthropic's, OpenAI's and Ollama's chat interfaces on this machine, over a real socket.

Behind them stands no model but `reply`, a function of the test's. Requests are checked as the
vendors do; test_model_server.py asks each interface with its vendor's own client.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-0123456789"
MODEL = "claude-haiku-5-5"
PATHS = {"/v1/messages": "anthropic", "/v1/chat/completions": "openai", "/api/chat": "ollama"}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a model would have been told."""

    vendor: str
    model: str
    system: str
    text: str
    """Of the last message."""
    schema: dict[str, Any] | None
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A status to answer; `status` 0 closes the connection half-way through an answer."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "the model is overloaded"


class Refused(Exception):
    """Raised by `reply`: the model declines."""


@dataclass
class ModelServer:
    """`failures` are answered first, one for each request."""

    reply: Callable[[Asked], str] = lambda asked: "Yes."
    tokens_in: int = 100
    tokens_out: int = 20
    stop: str = "end"
    """`end`, or `length` for a completion that was cut off."""
    delay: float = 0.0
    asked: list[Asked] = field(default_factory=list)
    failures: deque[Failure] = field(default_factory=deque)
    most_at_once: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._at_once = 0
        self._lock = threading.Lock()
        self.start()

    def start(self) -> None:
        """Listen, on the port of the last time where there was one."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> "Answered":
        vendor = PATHS.get(path)
        if vendor is None:
            return 404, {}, _error("anthropic", "not_found_error", f"no such path: {path}")
        given = headers.get("authorization")
        if vendor == "anthropic":
            given = headers.get("x-api-key", given)
        if vendor != "ollama" and given not in (KEY, f"Bearer {KEY}"):
            return 401, {}, _error(vendor, "authentication_error", f"invalid key {given}")
        if wrong := _mistake(vendor, body, headers):
            return 400, {}, _error(vendor, "invalid_request_error", wrong)
        asked = _asked(vendor, headers, body)
        with self._lock:
            self.asked.append(asked)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            time.sleep(self.delay)
            if self.failures:
                failure = self.failures.popleft()
                error = _error(vendor, "overloaded_error", failure.message)
                return failure.status, failure.headers, error
            try:
                said, stop = self.reply(asked), self.stop
            except Refused:
                said, stop = "", "refused"
            tokens = (self.tokens_in, self.tokens_out)
            return 200, {}, _completion(vendor, asked, said, stop, *tokens)
        finally:
            with self._lock:
                self._at_once -= 1


Answered = tuple[int, dict[str, str], dict[str, Any]]


def _handler(models: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, extra, value = models.answer(self.path.partition("?")[0], headers, body)
            data = json.dumps(value).encode()
            with suppress(BrokenPipeError, ConnectionResetError):
                self.send_response(status or 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                for name, text in extra.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(data if status else data[: len(data) // 2])
            if not status:
                self.close_connection = True

        def log_message(self, *_: object) -> None: ...

    return Handler


def _mistake(vendor: str, body: dict[str, Any], headers: dict[str, str]) -> str | None:
    needed = {"anthropic": {"model", "max_tokens", "messages"}}.get(vendor, {"model", "messages"})
    if missing := needed - body.keys():
        return f"{min(missing)}: Field required"
    if vendor == "anthropic":
        if "anthropic-version" not in headers:
            return "anthropic-version: header is required"
        known = {"max_tokens", "messages", "model", "system", "output_config", "stream"}
        if unknown := body.keys() - known:
            return f"{min(unknown)}: Extra inputs are not permitted"
        if any(one["role"] not in ("user", "assistant") for one in body["messages"]):
            return "messages: Unexpected role"
    if not body["messages"]:
        return "messages: at least one message is required"
    if vendor == "openai" and {"max_tokens", "max_completion_tokens"} <= body.keys():
        return "'max_tokens' and 'max_completion_tokens' cannot both be given"
    if vendor != "ollama" and (schema := _schema(vendor, body)) is not None:
        return _loose(schema)
    return None


def _loose(schema: Any) -> str | None:
    """What the vendors' strict schemas refuse."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            return "schema: additionalProperties must be false for object type"
        if schema.get("type") == "object" and set(schema["required"]) != set(schema["properties"]):
            return "schema: every property must be required"
        if bad := {"minLength", "maxLength", "maxItems", "minimum", "maximum"} & schema.keys():
            return f"schema: {min(bad)} is not supported"
        return next((wrong for value in schema.values() if (wrong := _loose(value))), None)
    if isinstance(schema, list):
        return next((wrong for value in schema if (wrong := _loose(value))), None)
    return None


def _schema(vendor: str, body: dict[str, Any]) -> dict[str, Any] | None:
    if vendor == "anthropic":
        return body.get("output_config", {}).get("format", {}).get("schema")
    if vendor == "openai":
        return body.get("response_format", {}).get("json_schema", {}).get("schema")
    return body.get("format")


def _asked(vendor: str, headers: dict[str, str], body: dict[str, Any]) -> Asked:
    messages = [one for one in body["messages"] if one["role"] != "system"]
    systems = [str(body.get("system", ""))]
    systems += [one["content"] for one in body["messages"] if one["role"] == "system"]
    return Asked(
        vendor=vendor,
        model=body["model"],
        system="\n".join(filter(None, systems)),
        text=messages[-1]["content"],
        schema=_schema(vendor, body),
        body=body,
        headers=headers,
    )


def _error(vendor: str, kind: str, message: str) -> dict[str, Any]:
    if vendor == "ollama":
        return {"error": message}
    error = {"type": kind, "message": message}
    if vendor == "openai":
        return {"error": error | {"param": None, "code": None}}
    return {"type": "error", "error": error}


def _completion(
    vendor: str, asked: Asked, said: str, stop: str, tokens_in: int, tokens_out: int
) -> dict[str, Any]:
    if vendor == "anthropic":
        reasons = {"end": "end_turn", "length": "max_tokens", "refused": "refusal"}
        # A model that thinks says so in a block of its own.
        blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}]
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": [*blocks, {"type": "text", "text": said}] if said else [],
            "stop_reason": reasons[stop],
            "stop_sequence": None,
            "usage": {
                "input_tokens": tokens_in - 10,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 10,
                "output_tokens": tokens_out,
            },
        }
    if vendor == "openai":
        reasons = {"end": "stop", "length": "length", "refused": "stop"}
        refusal = "I cannot help with that." if stop == "refused" else None
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": asked.model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": said or None, "refusal": refusal},
                    "logprobs": None,
                    "finish_reason": reasons[stop],
                }
            ],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            },
        }
    return {
        "model": asked.model,
        "created_at": "2026-11-21T12:00:00Z",
        "message": {"role": "assistant", "content": said},
        "done": True,
        "done_reason": "length" if stop == "length" else "stop",
        "total_duration": 1000,
        "prompt_eval_count": tokens_in,
        "eval_count": tokens_out,
    }
