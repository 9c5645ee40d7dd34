"""The acceptance list of knowledge bases, on real ones: what holds is counted, what does not named.

    uv run benchmarks/acceptance.py [ROOT] [--pages 1000] [--questions 60] [--embedder none]

ROOT holds a folder for each knowledge base and is copied. Without it a knowledge base is made of
Markdown that this machine has anyway: the descriptions of the Python packages installed, again with
a number where they are too few. Questions are the headings of its sections. Exits with 1 where
something does not hold.
"""

import argparse
import asyncio
import json
import random
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

from scratch import scratch_app
from vademecum.app import App
from vademecum.ingest.knowledge_base import folders
from vademecum.types import Query

KEYS = frozenset(
    """kb_name namespace file_path file_name title heading_path section_id sql_topic language
    token_count sha256 last_modified keywords summary6 doc_title""".split()  # noqa: SIM905
)
STEPS = ("discovered", "chunked", "embedded", "upserted", "summary6")
MOST_TOKENS = 1000


def make(root: Path, pages: int) -> None:
    folder = root / "packages"
    folder.mkdir(parents=True)
    texts = []
    for file in sorted(Path(sysconfig.get_path("purelib")).glob("*.dist-info/METADATA")):
        body = file.read_text(encoding="utf-8", errors="replace").partition("\n\n")[2]
        if len(body) > 500:
            texts.append((file.parent.name.partition("-")[0], body))
    for number in range(pages):
        name, body = texts[number % len(texts)]
        again = number // len(texts)
        title = f"{name}, part {again}" if again else name
        text = body[again * 700 % max(1, len(body) // 2) :]
        (folder / f"{name}-{again}.md").write_text(f"# {title}\n\n{text}", encoding="utf-8")


def pages_of(folder: Path) -> list[Path]:
    return [
        path for path in folder.rglob("*.md") if path.name != "TASKS.md" and ".kb" not in path.parts
    ]


class Checks:
    """What was asked for, how often it held, and where it did not."""

    def __init__(self) -> None:
        self.failed = False

    def all(self, what: str, held: Iterable[bool]) -> None:
        found = list(held)
        self.failed |= not all(found)
        mark = "ok    " if all(found) else "FAILED"
        print(f"{mark} {what}: {sum(found)} of {len(found)}")


async def check(app: App, folder: Path, questions: int, checks: Checks) -> None:
    name = folder.name
    rows = [
        json.loads(line)
        for line in (folder / ".kb/status/status.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    paths = {path.relative_to(folder).as_posix() for path in pages_of(folder)}
    checks.all("every page is in the ledger", ({row["file_path"] for row in rows} == paths,))
    steps = STEPS if (await app.collection(name)).embedder != "none" else set(STEPS) - {"embedded"}
    checks.all("every step of it is done", (all(row[f"{s}_at"] for s in steps) for row in rows))
    tasks = (folder / "TASKS.md").read_text(encoding="utf-8").splitlines()[5:]
    shown = [[bool(cell.strip()) for cell in line.split("|")[-6:-1]] for line in tasks]
    checks.all(
        "TASKS.md says what the ledger says",
        (
            s == [bool(row[f"{step}_at"]) for step in STEPS]
            for s, row in zip(shown, rows, strict=True)
        ),
    )
    sidecars = list((folder / ".kb/summaries").rglob("*.summary6.md"))
    checks.all("every page has its summary", (len(sidecars) == len(paths),))
    async with app.database.connection() as connection:
        cursor = await connection.execute(
            "SELECT k.id, k.section_id, k.heading_path, k.title FROM document_chunks k"
            " JOIN collections c ON c.id = k.collection_id WHERE c.name = %s ORDER BY k.id",
            [name],
        )
        found = await cursor.fetchall()
    known = await app.knowledge_bases.chunk_metadata(name, [row[0] for row in found])
    checks.all("every chunk has every key", (set(one) >= KEYS for one in known.values()))
    bullets = [one["summary6"] for one in known.values()]
    checks.all(
        "six bullets of at most 200 characters",
        (
            isinstance(six, list) and len(six) == 6 and all(len(b) <= 200 for b in six)
            for six in bullets
        ),
    )
    counts = [one["token_count"] for one in known.values()]
    checks.all("chunks of at most 1000 tokens", (int(str(n)) <= MOST_TOKENS for n in counts))
    headings = sorted({" ".join((row[3], *row[2][-1:])) for row in found})
    asked = random.Random(0).sample(headings, min(questions, len(headings)))
    snippets, units, cited, silent = [], [], [], 0
    for question in asked:
        hits = (await app.search(Query(text=question, collection=name))).results
        snippets += [
            1 <= len(hit.snippet.splitlines()) <= 3 and bool(hit.title) and "#" in hit.reference
            for hit in hits
        ]
        answer = await app.answer(question, collection=name)
        if not answer.found:
            silent += 1
            continue
        parts = re.split(r"\[source: [^\]]+\]", answer.answer)
        units.append(1 <= len([part for part in parts if part.strip()]) <= 6)
        cited.append(1 <= len(answer.sources) <= 4)
    checks.all("hits have title, reference and a snippet of up to 3 lines", snippets)
    checks.all("answers of at most 6 sentences or blocks", units)
    checks.all("each from at most 4 sources", cited)
    print(f"       {silent} of {len(asked)} questions were not answered from the sources")


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--embedder")
    arguments = parser.parse_args()
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        if arguments.root:
            shutil.copytree(arguments.root, root)
        else:
            make(root, arguments.pages)
        async with scratch_app(embedder=arguments.embedder) as app:
            reports = await app.ingest.bulk_index_each(root)
            names = [one.name for one in await app.list_collections()]
            checks.all("a collection for each folder", (names == [p.name for p in folders(root)],))
            print(f"       {reports}")
            for one in folders(root):
                await check(app, one, arguments.questions, checks)
    sys.exit(checks.failed)


if __name__ == "__main__":
    asyncio.run(main())
