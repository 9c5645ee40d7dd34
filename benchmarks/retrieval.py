"""Retrieval quality on sets with judgments: each mode against plain fusion, by the real search.

    uv run benchmarks/retrieval.py FOLDER [--set NAME …] [--database URL]

FOLDER has a folder for each set, with corpus.jsonl {"id", "title", "text", "path"?},
queries.jsonl {"id", "text"} and qrels.tsv (query, document, relevance). Documents become files, and
these an index, as `vade bulk-index` makes it. A set whose documents name a `conversation` becomes
a collection for each, and a question is asked in its own.

Besides the modes it shows reciprocal rank fusion, k 60, of what the lexical and the dense mode
found: of their hits, and of their documents, as one gets by fusing their TREC runs. And plain BM25
of another library (bm25s, k1 1.2, b 0.75) over the same chunks with their titles and headings, and
with our words: a document counts as its best chunk.
"""

import argparse
import asyncio
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import bm25s
import numpy as np

from scratch import scratch_app
from vademecum.app import App
from vademecum.evaluate.metrics import Measures, Met, bootstrap, measure
from vademecum.evaluate.pipeline import MODES
from vademecum.evaluate.trec import descending, documents
from vademecum.evaluate.trec import field as trec_field
from vademecum.search.lexical import K1, B
from vademecum.search.pipeline import MAX_LIMIT
from vademecum.search.terms import query_terms, terms
from vademecum.types import Hit, Mode, Query

FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
RRF_K = 60
K = 8
CHUNKS = """
SELECT d.path, k.title, k.heading_path, k.content
  FROM document_chunks k JOIN crawled_documents d ON d.id = k.document_id
 WHERE k.collection_id = %s ORDER BY d.path, k.chunk_index
"""


@dataclass(kw_only=True)
class RetrievalSet:
    """Questions with judgments, and the documents they are about, by collection."""

    name: str
    corpora: Mapping[str, Sequence[Mapping[str, Any]]]
    questions: Sequence[Mapping[str, Any]]
    judgments: Mapping[str, Mapping[str, float]]


@dataclass(kw_only=True)
class Ranked:
    """What one way to search made of the questions: document ids for each, best first."""

    rankings: dict[str, list[str]] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    unlike: int = 0
    """Questions whose first hits depend on how many are asked for: what is measured here is a
    search for many hits."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder of the sets")
    parser.add_argument("--set", dest="sets", action="append", help="only this one; repeatable")
    parser.add_argument("--database", metavar="URL", help="a server to make a database on")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="also write TREC runs there")
    parser.add_argument("--groups", action="store_true", help="nDCG@10 by `group` of the queries")
    arguments = parser.parse_args()
    names = arguments.sets or sorted(
        path.name for path in arguments.folder.glob("*") if path.is_dir()
    )
    if not names:
        print(f"{arguments.folder}: no sets there, nothing measured")
    for name in names:
        folder = arguments.folder / name
        if absent := [file for file in FILES if not (folder / file).is_file()]:
            print(f"{name}: skipped, {folder} has no {', '.join(absent)}\n")
            continue
        retrieval_set = read_set(folder)
        asyncio.run(
            run_set(retrieval_set, arguments.database, runs=arguments.runs, groups=arguments.groups)
        )


def read_set(folder: Path) -> RetrievalSet:
    corpora: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for document in _json_lines(folder / "corpus.jsonl"):
        corpora[document.get("conversation", folder.name)].append(document)
    judgments: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, judged, relevance = line.split("\t")
        if float(relevance) > 0:
            judgments[query][judged] = float(relevance)
    questions = _json_lines(folder / "queries.jsonl")
    return RetrievalSet(
        name=folder.name,
        corpora=corpora,
        # As trec_eval has it, a question without a relevant document says nothing.
        questions=[question for question in questions if judgments.get(question["id"])],
        judgments=judgments,
    )


async def run_set(
    retrieval_set: RetrievalSet, server: str | None, *, runs: Path | None, groups: bool
) -> None:
    async with scratch_app(server) as app:
        started = time.perf_counter()
        identities: dict[str, str] = {}
        chunks = 0
        for name, corpus in retrieval_set.corpora.items():
            with tempfile.TemporaryDirectory(prefix="vade-bench-docs-") as folder:
                paths = write_corpus(Path(folder), corpus)
                report = await app.ingest.bulk_index(Path(folder), collection=name)
            for failure in report.failed:
                print(f"  not indexed: {failure.path}: {failure.error}")
            identities |= {f"{name}/{path}": identity for path, identity in paths.items()}
            chunks += report.chunks
        seconds = time.perf_counter() - started
        print(
            f"{retrieval_set.name}: {len(identities)} documents, {chunks} chunks, indexed in "
            f"{seconds:.0f} s; {len(retrieval_set.questions)} questions, "
            f"{len(retrieval_set.corpora)} collection(s)",
            flush=True,
        )
        found = {
            "BM25": await plain_bm25(app, retrieval_set, identities),
            **await ask(app, retrieval_set, identities),
        }
    measures = {way: measured(retrieval_set, ranked) for way, ranked in found.items()}
    report_set(found, measures)
    if groups:
        report_groups(retrieval_set, measures)
    if runs is not None:
        runs.mkdir(parents=True, exist_ok=True)
        for way, ranked in found.items():
            slug = re.sub(r"\W+", "-", way)
            write_trec(runs / f"{retrieval_set.name}.{slug}.trec", ranked, tag=slug)


def write_corpus(folder: Path, corpus: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """A file for each document; the ids of the documents by path."""
    identities = {}
    for document in corpus:
        name = document.get("path")
        text = document["text"]
        if name is None:
            name = quote(document["id"], safe="") + ".md"
            title = document.get("title", "")
            text = f"# {title}\n\n{text}" if title.strip() else text
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        identities[name] = document["id"]
    return identities


async def plain_bm25(
    app: App, retrieval_set: RetrievalSet, identities: Mapping[str, str]
) -> Ranked:
    indexes = {}
    for name in retrieval_set.corpora:
        async with app.database.connection() as connection:
            cursor = await connection.execute(CHUNKS, [(await app.collection(name)).id])
            rows = await cursor.fetchall()
        texts = [
            terms("\n".join(dict.fromkeys([title, *headings, text])))
            for _, title, headings, text in rows
        ]
        index = bm25s.BM25(method="lucene", k1=K1, b=B)
        index.index(texts, show_progress=False)
        indexes[name] = index, [identities[f"{name}/{path}"] for path, *_ in rows]
    ranked = Ranked()
    for question in retrieval_set.questions:
        index, of_chunks = indexes[question.get("conversation", retrieval_set.name)]
        scores = index.get_scores(list(query_terms(question["text"]).elements()))
        held = [chunk for chunk in np.argsort(-scores, kind="stable") if scores[chunk] > 0]
        ranked.rankings[question["id"]] = list(dict.fromkeys(of_chunks[chunk] for chunk in held))
    return ranked


async def ask(
    app: App, retrieval_set: RetrievalSet, identities: Mapping[str, str]
) -> dict[str, Ranked]:
    """All questions in all modes, and the two plain fusions of what the modes found."""
    hits: dict[Mode, dict[str, Sequence[Hit]]] = {mode: {} for mode in MODES}
    found = {mode: Ranked() for mode in MODES}
    for mode in MODES:
        for number, question in enumerate(retrieval_set.questions):
            collection = question.get("conversation", retrieval_set.name)
            if number == 0:  # the model is loaded by the first search
                await app.search(Query(text=question["text"], collection=collection, mode=mode))
            query = Query(text=question["text"], collection=collection, mode=mode, limit=K)
            started = time.perf_counter()
            shallow = await app.search(query)
            found[mode].milliseconds.append((time.perf_counter() - started) * 1000)
            deep = Query(text=question["text"], collection=collection, mode=mode, limit=MAX_LIMIT)
            result = await app.search(deep)
            if result.mode != mode:
                raise SystemExit(f"{mode} search is not to be had: {' '.join(result.notices)}")
            hits[mode][question["id"]] = result.results
            found[mode].unlike += [hit.chunk_id for hit in shallow.results] != [
                hit.chunk_id for hit in result.results[:K]
            ]
    return {
        "lexical": _named(found["lexical"], hits["lexical"], identities),
        "dense": _named(found["dense"], hits["dense"], identities),
        "RRF 60 of hits": _fused(hits, identities, lambda hit: (hit.path, hit.section_id)),
        "RRF 60 of documents": _fused(hits, identities, lambda hit: hit.path),
        "hybrid": _named(found["hybrid"], hits["hybrid"], identities),
    }


def _named(
    ranked: Ranked, hits: Mapping[str, Sequence[Hit]], identities: Mapping[str, str]
) -> Ranked:
    ranked.rankings = {
        question: [identities[f"{hit.collection}/{hit.path}"] for hit in documents(found)]
        for question, found in hits.items()
    }
    return ranked


def _fused(
    hits: Mapping[Mode, Mapping[str, Sequence[Hit]]],
    identities: Mapping[str, str],
    key: Callable[[Hit], Hashable],
) -> Ranked:
    """Cormack, Clarke & Büttcher 2009, over whatever `key` tells apart; its own few lines, since
    a reference must not change with what it is a reference for.
    """
    ranked = Ranked()
    for question in hits["lexical"]:
        scores: dict[Hashable, float] = defaultdict(float)
        first: dict[Hashable, Hit] = {}
        for mode in ("lexical", "dense"):
            distinct = dict.fromkeys(key(hit) for hit in hits[mode][question])
            for rank, one in enumerate(distinct, start=1):
                scores[one] += 1 / (RRF_K + rank)
            for hit in hits[mode][question]:
                first.setdefault(key(hit), hit)
        best = sorted(scores, key=lambda one: (-scores[one], str(one)))
        ranked.rankings[question] = [
            identities[f"{hit.collection}/{hit.path}"]
            for hit in documents(first[one] for one in best)
        ]
    return ranked


def measured(retrieval_set: RetrievalSet, ranked: Ranked) -> list[Measures]:
    values = []
    for question in retrieval_set.questions:
        ranks = {
            document: rank for rank, document in enumerate(ranked.rankings[question["id"]], start=1)
        }
        met = [
            Met(rank=ranks.get(document), rel=relevance)
            for document, relevance in retrieval_set.judgments[question["id"]].items()
        ]
        values.append(measure(met, k=K))
    return values


def report_set(found: Mapping[str, Ranked], measures: Mapping[str, Sequence[Measures]]) -> None:
    print(f"  {'':20} {'nDCG@10':24} {'recall@10':>9} {'MRR':>6} {'p50 ms':>7} {'p95 ms':>7}")
    for way, values in measures.items():
        ndcg = bootstrap([one.ndcg for one in values])
        recall = np.mean([one.recall for one in values])
        mrr = np.mean([one.reciprocal_rank for one in values])
        times = ["", ""]
        if found[way].milliseconds:
            times = [f"{np.percentile(found[way].milliseconds, p):.1f}" for p in (50, 95)]
        print(
            f"  {way:20} {ndcg.mean:.4f} [{ndcg.low:.4f}, {ndcg.high:.4f}]  "
            f"{recall:9.4f} {mrr:6.4f} {times[0]:>7} {times[1]:>7}"
        )
    for way, ranked in found.items():
        if ranked.unlike:
            print(f"  {way}: {ranked.unlike} questions get other first {K} hits if asked for {K}")
        if way == "hybrid":
            continue
        difference = bootstrap(
            [
                mine.ndcg - theirs.ndcg
                for mine, theirs in zip(measures["hybrid"], measures[way], strict=True)
            ]
        )
        print(
            f"  hybrid - {way:20} {difference.mean:+.4f} "
            f"[{difference.low:+.4f}, {difference.high:+.4f}]"
        )
    print(flush=True)


def report_groups(retrieval_set: RetrievalSet, measures: Mapping[str, Sequence[Measures]]) -> None:
    places: dict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(retrieval_set.questions):
        places[str(question.get("group") or question.get("category") or "all")].append(place)
    for group, members in places.items():
        row = "  ".join(
            f"{way} {np.mean([values[place].ndcg for place in members]):.4f}"
            for way, values in measures.items()
        )
        print(f"  {group} ({len(members)}): {row}")
    print(flush=True)


def write_trec(path: Path, ranked: Ranked, *, tag: str) -> None:
    """Document ids, not paths, so that it goes with the set's own judgments."""
    with path.open("w", encoding="utf-8") as file:
        for question, ranking in ranked.rankings.items():
            scores = descending([1 / rank for rank in range(1, len(ranking) + 1)])
            for rank, (document, score) in enumerate(zip(ranking, scores, strict=True), start=1):
                file.write(
                    f"{trec_field(question)} Q0 {trec_field(document)} {rank} {score} {tag}\n"
                )


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


if __name__ == "__main__":
    main()
