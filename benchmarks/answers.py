"""Answers to questions that have one and to questions that have none: are they told apart?

    uv run benchmarks/answers.py FOLDER [--set NAME …] [--database URL] [--questions N]

FOLDER is as for benchmarks/retrieval.py. Each set is asked
  own     its own questions: an answer is there;
  cross   the questions of the other sets: there is none;
  near    its own questions, the documents that answer them left out: other documents may still
          hold an answer, so that what is found here is no error for sure;
  made    questions about things that do not exist (made_up.py): there is none.
The rule that decides was fitted on one half of the questions; `held out` is the other. It fails if
a sentence does not stand verbatim in a chunk of the section that it cites, or an answer breaks
a limit.
"""

import argparse
import asyncio
import re
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from made_up import MADE_UP
from retrieval import FILES, RetrievalSet, read_set, write_corpus
from scratch import scratch_app
from vademecum.answer import extractive
from vademecum.answer.question import ask
from vademecum.app import App
from vademecum.store.lexical import KeptEntries
from vademecum.types import Answer, Query

MAX_SOURCES, MAX_QUOTATIONS = 4, 6
CROSS = 150
"""Questions of each other set."""
DEPTH = 60
"""Hits asked for where some of them are left out."""

_CITATION = re.compile(r"\s*\[source: ([^\n]+?)\](?=\n\n|\Z)")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question and what came of it."""

    kind: str
    held_out: bool
    found: bool
    quotations: int = 0
    sources: int = 0
    first_is_gold: bool = False
    gold: int = 0
    """Quotations from a document that answers the question."""
    milliseconds: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder of the sets")
    parser.add_argument("--set", dest="sets", action="append", help="only this one; repeatable")
    parser.add_argument("--database", metavar="URL", help="a server to make a database on")
    parser.add_argument("--questions", type=int, metavar="N", help="at most N of each set's own")
    parser.add_argument("--lexical", action="store_true", help="without an embedder")
    arguments = parser.parse_args()
    sets = {}
    for name in MADE_UP:
        folder = arguments.folder / name
        if absent := [file for file in FILES if not (folder / file).is_file()]:
            print(f"{name}: skipped, {folder} has no {', '.join(absent)}")
            continue
        sets[name] = read_set(folder)
    for name in arguments.sets or sets:
        if name in sets:
            asyncio.run(
                run_set(name, sets, arguments.database, arguments.questions, arguments.lexical)
            )


async def run_set(
    name: str,
    sets: Mapping[str, RetrievalSet],
    server: str | None,
    limit: int | None,
    lexical: bool,
) -> None:
    embedder = "none" if lexical else None
    async with scratch_app(server, embedder=embedder) as app:
        with tempfile.TemporaryDirectory(prefix="vade-bench-docs-") as folder:
            paths = write_corpus(Path(folder), sets[name].corpora[name])
            await app.ingest.bulk_index(Path(folder), collection=name)
        texts = await _texts(app, name)
        await app.answer("warm up", collection=name)
        asked = []
        for kind, origin, identity, text in _questions(name, sets, limit):
            gold = sets[name].judgments.get(identity, {}) if kind in ("own", "near") else {}
            named = {path for path, document in paths.items() if document in gold}
            asked.append(await _ask(app, name, kind, text, named, texts, f"{origin}{identity}"))
    _report(name, asked)


def _questions(
    name: str, sets: Mapping[str, RetrievalSet], limit: int | None
) -> Iterator[tuple[str, str, str, str]]:
    """Kind, set, id and text of each question to ask."""
    for question in sets[name].questions[:limit]:
        yield "own", name, question["id"], question["text"]
        yield "near", name, question["id"], question["text"]
    for other in sets.keys() - {name}:
        questions = sets[other].questions
        for question in questions[:: max(1, len(questions) // CROSS)][:CROSS]:
            yield "cross", other, question["id"], question["text"]
    for text in MADE_UP[name]:
        yield "made", name, text, text


async def _ask(
    app: App,
    name: str,
    kind: str,
    text: str,
    gold: set[str],
    texts: Mapping[str, Sequence[str]],
    identity: str,
) -> Asked:
    started = time.perf_counter()
    if kind == "near":
        answer = await _answer_without(app, name, text, gold)
    else:
        result = await app.answer(text, collection=name)
        answer = Answer(
            question=text, found=result.found, answer=result.answer, sources=result.sources
        )
    milliseconds = (time.perf_counter() - started) * 1000
    cited = _checked(answer, texts) if answer.found else []
    from_gold = [reference.split("/", 1)[1].rsplit("#", 1)[0] in gold for reference in cited]
    return Asked(
        kind=kind,
        held_out=zlib.crc32(identity.encode()) % 2 == 1,
        found=answer.found,
        quotations=len(cited),
        sources=len(set(cited)),
        first_is_gold=bool(from_gold and from_gold[0]),
        gold=sum(from_gold),
        milliseconds=milliseconds,
    )


async def _answer_without(app: App, name: str, text: str, gold: set[str]) -> Answer:
    result = await app.search(Query(text=text, collection=name, limit=DEPTH))
    hits = [hit for hit in result.results if hit.path not in gold][: extractive.MAX_HITS]
    target = await app.collection(name)
    async with app.database.connection() as connection:
        question = await ask(connection, target.id, text, KeptEntries())
    embedder = app.embedders.searching(target) if result.mode == "hybrid" else None
    return await extractive.answer(question, hits, embedder)


def _checked(answer: Answer, texts: Mapping[str, Sequence[str]]) -> list[str]:
    """The citations of an answer, one for each quotation; ends the program if one is not true."""
    cited = []
    position = 0
    for match in _CITATION.finditer(answer.answer):
        quotation = answer.answer[position : match.start()].strip("\n")
        position = match.end()
        if not any(quotation in text for text in texts.get(match[1], ())):
            raise SystemExit(f"{answer.question}\nnot verbatim in {match[1]}:\n{quotation}")
        cited.append(match[1])
    listed = {source.reference for source in answer.sources}
    if position != len(answer.answer) or set(cited) != listed:
        raise SystemExit(f"{answer.question}\ncitations and sources differ:\n{answer.answer}")
    if len(cited) > MAX_QUOTATIONS or len(listed) > MAX_SOURCES:
        raise SystemExit(f"{answer.question}\ntoo long:\n{answer.answer}")
    return cited


async def _texts(app: App, name: str) -> Mapping[str, Sequence[str]]:
    """The chunks of each section, by its reference, straight from the database."""
    texts = defaultdict(list)
    async with app.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT d.path, c.section_id, c.content FROM document_chunks c"
            " JOIN crawled_documents d ON d.id = c.document_id"
        )
        for path, section, text in await cursor.fetchall():
            texts[f"{name}/{path}#{section}"].append(text)
    return texts


def _report(name: str, asked: Sequence[Asked]) -> None:
    print(f"{name}: every quotation is verbatim in its section")
    for kind in ("own", "cross", "near", "made"):
        rates = []
        for members in (
            [one for one in asked if one.kind == kind],
            [one for one in asked if one.kind == kind and one.held_out],
        ):
            wrong = np.mean([one.found == (kind != "own") for one in members])
            rates.append(f"{wrong:6.1%} of {len(members)}")
        what = "said not found" if kind == "own" else "said found"
        print(f"  {kind:6} {what:15} {rates[0]}, held out {rates[1]}")
    own = [one for one in asked if one.kind == "own" and one.found]
    print(
        f"  of answers to own questions: {np.mean([one.gold > 0 for one in own]):.1%} cite a "
        f"judged document, {np.mean([one.first_is_gold for one in own]):.1%} first; "
        f"{sum(one.gold for one in own) / sum(one.quotations for one in own):.1%} of quotations; "
        f"{np.mean([one.quotations for one in own]):.1f} quotations of "
        f"{np.mean([one.sources for one in own]):.1f} sections"
    )
    times = [one.milliseconds for one in asked if one.kind != "near"]
    p50, p95 = np.percentile(times, [50, 95])
    print(f"  question to answer: p50 {p50:.0f} ms, p95 {p95:.0f} ms\n", flush=True)


if __name__ == "__main__":
    main()
