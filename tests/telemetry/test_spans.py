"""Spans, as a collector receives them over a real socket."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from psycopg.conninfo import make_conninfo

from conftest import Vade
from ollama_server import OllamaServer
from pooler import proxied
from vademecum.app import App
from vademecum.settings import Settings
from vademecum.types import Query


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Collect)
        self.experiments: set[str | None] = set()
        self.spans: dict[str, dict[str, object]] = {}


class _Collect(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        import gzip

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        self.server.experiments.add(self.headers["x-mlflow-experiment-id"])
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.server.spans[span.name] = {
                        pair.key: getattr(pair.value, str(pair.value.WhichOneof("value")))
                        for pair in span.attributes
                    }
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    thread = threading.Thread(target=server.serve_forever, args=[0.02])
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


async def test_store_search_and_embed_are_traced(
    collector: Collector,
    settings: Settings,
    write: Callable[[dict[str, str | bytes]], Path],
) -> None:
    folder = write({"a.md": "# Graph\n\nBuild the graph."})
    url = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    async with App.open(replace(settings, traces_url=url, traces_experiment="7")) as app:
        await app.ingest.store(collection="docs", file=folder / "a.md")
        await app.search(Query(text="graph", collection="docs"))
    assert collector.experiments == {"7"}
    assert set(collector.spans) == {"postgresql.store", "postgresql.search", "local.embed"}
    stored, found = collector.spans["postgresql.store"], collector.spans["postgresql.search"]
    assert (stored["path"], stored["action"]) == ("a.md", "inserted")
    assert (found["query"], found["results_count"]) == ("graph", 1)
    assert 0 < float(str(found["top_similarity"])) <= 1
    embedded = collector.spans["local.embed"]
    assert (embedded["model"], embedded["chunk_count"]) == ("all-MiniLM-L6-v2", 1)
    assert int(str(embedded["tokens_processed"])) >= 1
    assert all(float(str(span["latency_ms"])) > 0 for span in collector.spans.values())


async def test_embedding_by_ollama_is_traced_by_its_name(
    collector: Collector, settings: Settings, write: Callable[[dict[str, str | bytes]], Path]
) -> None:
    folder = write({"a.md": "# Graph\n\nBuild the graph."})
    ollama = OllamaServer()
    asked = replace(
        settings,
        traces_url=f"http://127.0.0.1:{collector.server_port}/v1/traces",
        embedder="ollama:nomic-embed-text",
        ollama_url=ollama.url,
    )
    try:
        async with App.open(asked) as app:
            await app.ingest.store(collection="docs", file=folder / "a.md")
    finally:
        ollama.stop()
    embedded = collector.spans["ollama.embed"]
    assert (embedded["model"], embedded["chunk_count"]) == ("nomic-embed-text", 1)
    assert int(str(embedded["tokens_processed"])) >= 1
    assert float(str(embedded["latency_ms"])) > 0


def test_off_imports_nothing() -> None:
    code = "import sys, vademecum.app; print([m for m in sys.modules if 'opentelemetry' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_on_neon_spans_have_its_name(
    collector: Collector,
    server: str,
    settings: Settings,
    database_url: str,
    write: Callable[[dict[str, str | bytes]], Path],
) -> None:
    folder = write({"a.md": "# Graph\n\nBuild the graph."})
    traces = f"http://127.0.0.1:{collector.server_port}/v1/traces"
    with proxied(server) as proxy:
        host = {"host": "ep-x-pooler.eu.aws.neon.tech", "hostaddr": "127.0.0.1"}
        url = make_conninfo(database_url, **host, port=proxy.port)
        asked = replace(settings, database_url=url, traces_url=traces, embedder="none")
        async with App.open(asked) as app:
            await app.ingest.store(collection="docs", file=folder / "a.md")
            await app.search(Query(text="graph", collection="docs"))
            await app.cache.check("https://example.org/a")
    assert {"neon.store", "neon.search", "neon.cache_check"} <= set(collector.spans)
    assert collector.spans["neon.cache_check"]["outcome"] == "miss"
    assert collector.spans["neon.cache_check"]["url"] == "https://example.org/a"


def test_a_dead_collector_is_not_heard_of(vade: Vade) -> None:
    with socket.socket() as nobody:  # bound, and not listening
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1/traces"
        done = vade("check-url", "https://example.org/a", "--json", VADE_TRACES_URL=url)
    assert done.stderr == ""
    assert '"miss"' in done.stdout
