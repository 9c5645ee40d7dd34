"""Ollama's HTTP interface over a real socket, without a model behind it.

Vectors depend on the text as those of `FakeEmbedder` do. Like the real server it counts for itself
and answers 400 to what it cannot read whole, 404 to a model it does not have.
"""

import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

DIGEST = "0a109f422b47e3a30ba2b10eca18548e944e8a23073ee3f3e947efcf3c45e59f"


class OllamaServer:
    """`asked` holds the inputs of every request; `failures` are statuses to answer first."""

    def __init__(self, *, model: str = "nomic-embed-text", dimensions: int = 768) -> None:
        self.model, self.dimensions = model, dimensions
        self.context = 2048
        self.words = 2048
        """More words than this are too long."""
        self.asked: list[list[str]] = []
        self.failures: deque[int] = deque()
        self.poison: str | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen, on the port of the last time where there was one."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self, {})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.answer(self, json.loads(body))

            def log_message(self, *arguments: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.02])
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler, request: dict[str, object]) -> None:
        status, content = self._content(handler.path, request)
        data = json.dumps(content).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def _content(self, path: str, request: dict[str, object]) -> tuple[int, dict[str, object]]:
        if path == "/api/tags":
            name = f"{self.model}:latest"
            return 200, {"models": [{"name": name, "model": name, "digest": DIGEST}]}
        name = str(request.get("model"))
        if name.removesuffix(":latest") != self.model:
            return 404, {"error": f'model "{name}" not found, try pulling it first'}
        if path == "/api/show":
            return 200, {
                "details": {"family": "nomic-bert"},
                "model_info": {
                    "general.architecture": "nomic-bert",
                    "nomic-bert.embedding_length": self.dimensions,
                    "nomic-bert.context_length": self.context,
                },
            }
        if path != "/api/embed":
            return 404, {"error": "404 page not found"}
        given = request["input"]
        inputs = given if isinstance(given, list) else [given]
        self.asked.append(inputs)
        if self.failures:
            return self.failures.popleft(), {"error": "the runner has stopped"}
        if self.poison is not None and any(self.poison in text for text in inputs):
            return 400, {"error": "invalid input"}
        if any(len(text.split()) > self.words for text in inputs):
            return 400, {"error": "the input length exceeds the context length"}
        return 200, {
            "model": name,
            "embeddings": [self.vector(text).tolist() for text in inputs],
            "total_duration": 1000,
            "load_duration": 10,
            "prompt_eval_count": sum(len(text.split()) for text in inputs),
        }

    def vector(self, text: str) -> np.ndarray:
        """Not of unit length, as a legacy server's may be."""
        total = np.full(self.dimensions, 1e-3)
        for word in text.lower().split():
            seed = int.from_bytes(word.encode()[:8].ljust(8), "little")
            total += np.random.default_rng(seed).standard_normal(self.dimensions)
        return total.astype(np.float32)
