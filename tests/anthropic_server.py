"""The Messages API on this machine, over a real socket, with a model that follows a script.

Checked with the vendor's own client in test_anthropic_server.py.
"""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A turn in which the model asks for a tool."""

    name: str
    input: dict[str, Any]


Turn = str | ToolCall


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """What the model is told of a tool."""

    text: str
    is_error: bool


@dataclass(frozen=True, kw_only=True)
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def tools(self) -> set[str]:
        return {tool["name"] for tool in self.body.get("tools", [])}

    @property
    def tool_results(self) -> list[ToolResult]:
        """All that the conversation holds, in order."""
        return [
            ToolResult(text=_text(block.get("content")), is_error=bool(block.get("is_error")))
            for message in self.body["messages"]
            for block in _blocks(message["content"])
            if block["type"] == "tool_result"
        ]


@dataclass
class MessagesServer:
    """Answers a conversation with the turn of the script that comes after its tool results.

    A request that offers none of the script's tools is a client's side call, such as the digest of
    a fetched page, and is answered with `aside`.
    """

    script: Sequence[Turn]
    aside: str = "A side remark."
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> "MessagesServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def tool_results(self) -> list[ToolResult]:
        """Those of the longest conversation so far."""
        return max((asked.tool_results for asked in self.requests), key=len, default=[])

    def turn(self, asked: Request) -> Turn:
        wanted = {turn.name for turn in self.script if isinstance(turn, ToolCall)}
        if not wanted & asked.tools:
            return self.aside
        return self.script[min(len(asked.tool_results), len(self.script) - 1)]


def _handler(messages: MessagesServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            path = self.path.partition("?")[0]
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Request(path=path, headers=headers, body=body)
            with suppress(BrokenPipeError, ConnectionResetError):
                if path == "/v1/messages/count_tokens":
                    self.answer(200, {"input_tokens": _tokens(body)})
                elif path != "/v1/messages":
                    self.fail(404, "not_found_error", f"no such path: {path}")
                elif missing := {"model", "max_tokens", "messages"} - body.keys():
                    self.fail(400, "invalid_request_error", f"{min(missing)}: Field required")
                else:
                    messages.requests.append(asked)
                    message = _message(asked, messages.turn(asked), len(messages.requests))
                    if body.get("stream"):
                        self.stream(message)
                    else:
                        self.answer(200, message)

        def do_GET(self) -> None:
            self.fail(404, "not_found_error", f"no such path: {self.path}")

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def fail(self, status: int, kind: str, message: str) -> None:
            self.answer(status, {"type": "error", "error": {"type": kind, "message": message}})

        def answer(self, status: int, value: dict[str, Any]) -> None:
            self.send(status, "application/json", json.dumps(value).encode())

        def stream(self, message: dict[str, Any]) -> None:
            events = "".join(
                f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                for event in _events(message)
            )
            self.send(200, "text/event-stream; charset=utf-8", events.encode())

        def send(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("request-id", "req_0")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _message(asked: Request, turn: Turn, number: int) -> dict[str, Any]:
    if isinstance(turn, ToolCall):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": turn.name}
        block |= {"input": turn.input}  # type: ignore[dict-item]
    else:
        block = {"type": "text", "text": turn}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": [block],
        "stop_reason": "tool_use" if isinstance(turn, ToolCall) else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": _tokens(asked.body), "output_tokens": 1},
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    opened = message | {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": opened}
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            empty: Block = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            empty = block | {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _tokens(body: dict[str, Any]) -> int:
    """Not a tokenizer's count: clients only add these up."""
    return len(json.dumps(body)) // 4


def _blocks(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _text(content: str | list[Block] | None) -> str:
    return "".join(block.get("text", "") for block in _blocks(content or ""))
