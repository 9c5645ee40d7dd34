"""The local embedder against its own graph in full precision: `uv run benchmarks/embedder.py`.

Real text that every machine has: Python's language reference. Both graphs are measured in turns
in the same run, so the ratio holds on a busy machine too.
"""

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
from numpy.typing import NDArray

from vademecum.inference.graph import build_graph, start_session
from vademecum.inference.local import LocalEmbedder, physical_cores
from vademecum.inference.weights import find_weights, read_weights
from vademecum.inference.wordpiece import LocalTokenizer

QUERIES = [
    "how does a for loop decide when to stop",
    "difference between is and ==",
    "what happens when an exception is not caught",
    "default value of a keyword argument",
]
FIRST_QUERY = """
import time
start = time.perf_counter()
import asyncio, resource, sys
from pathlib import Path
from vademecum.inference.local import LocalEmbedder
asyncio.run(LocalEmbedder(home=Path(sys.argv[1])).embed_query("hello"))
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


class FullPrecision(LocalEmbedder):
    """The same embedder with the graph that is not quantised."""

    def __init__(self, *, home: Path, threads: int) -> None:
        super().__init__(home=home, threads=threads)
        self._loaded = start_session(build_graph(read_weights(find_weights()), int8=False))


def passages(tokenizer: LocalTokenizer, tokens: int) -> list[str]:
    """The language reference in windows of at most `tokens` tokens."""
    windows = []
    for name in sorted(topics):
        text = topics[name]
        starts = tokenizer.starts(text)
        cuts = [*starts[::tokens], len(text)]
        windows += [text[first:after].rstrip() for first, after in pairwise(cuts)]
    return windows


async def throughput(
    embedder: LocalEmbedder, texts: list[str]
) -> tuple[float, float, NDArray[np.float32]]:
    """Seconds by the clock, seconds of processors, and the vectors."""
    start, processors = time.perf_counter(), time.process_time()
    vectors = await embedder.embed(texts)
    return time.perf_counter() - start, time.process_time() - processors, vectors


async def latencies(embedder: LocalEmbedder, count: int) -> NDArray[np.float64]:
    """Milliseconds of each of `count` queries."""
    taken = []
    for number in range(count):
        start = time.perf_counter()
        await embedder.embed_query(QUERIES[number % len(QUERIES)])
        taken.append(time.perf_counter() - start)
    return np.array(taken) * 1000


def megabytes(peak: float) -> float:
    """Of what getrusage calls ru_maxrss."""
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def fresh_process(home: Path) -> tuple[float, float]:
    """Milliseconds to the vector of a first query, imports included; megabytes at most."""
    command = [sys.executable, "-c", FIRST_QUERY, str(home)]
    output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    seconds, peak = output.split()
    return float(seconds) * 1000, megabytes(float(peak))


def milliseconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


async def main(options: argparse.Namespace, home: Path) -> None:
    cores = options.threads or physical_cores()
    int8 = LocalEmbedder(home=home, threads=cores)
    building, _ = fresh_process(home)
    starts = [fresh_process(home) for _ in range(5)]
    print(f"fresh process, imports to first query vector: {np.median(starts, axis=0)[0]:.0f} ms;")
    print(f"  {building:.0f} ms where the graph is built first; {starts[0][1]:.0f} MB at most")
    loading = milliseconds(int8._session)
    tokenizing = milliseconds(lambda: int8.tokenizer)
    print(f"session {loading:.0f} ms (onnxruntime's import with it), tokenizer {tokenizing:.0f} ms")

    queries = await latencies(int8, 1000)
    print(f"query: p50 {np.median(queries):.2f} ms, p95 {np.percentile(queries, 95):.2f} ms")

    texts = passages(int8.tokenizer, options.window)[: options.texts]
    tokens = sum(int8.tokenizer.counts(texts)) + 2 * len(texts)
    await int8.embed(texts[:20])
    full: LocalEmbedder | None = None
    results: dict[str, list[tuple[float, float, NDArray[np.float32]]]] = {"int8": [], "fp32": []}
    for turn in range(options.turns):
        results["int8"].append(await throughput(int8, texts))
        if turn == 0:
            peak = megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
            print(f"embedding takes {peak:.0f} MB at most")
        full = full or FullPrecision(home=home, threads=cores)
        results["fp32"].append(await throughput(full, texts))
    print(f"{len(texts)} passages, {tokens} tokens, {cores} threads, best of {options.turns}:")
    for name, runs in results.items():
        clock, processors = min(run[0] for run in runs), min(run[1] for run in runs)
        print(
            f"  {name}: {tokens / clock:.0f} tokens/s, "
            f"{tokens / processors:.0f} a second of one processor"
        )
    ratio = min(run[1] for run in results["fp32"]) / min(run[1] for run in results["int8"])
    cosines = (results["int8"][0][2] * results["fp32"][0][2]).sum(axis=1)
    print(f"  int8 takes 1/{ratio:.2f} of the processor time of fp32")
    print(f"  cosine to fp32: lowest {cosines.min():.4f}, mean {cosines.mean():.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=int, default=400, help="passages to embed")
    parser.add_argument("--window", type=int, default=200, help="tokens of a passage, at most 254")
    parser.add_argument("--turns", type=int, default=3, help="repetitions; the best one counts")
    parser.add_argument("--threads", type=int, default=0, help="0 is one for each core")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(parser.parse_args(), Path(folder)))
