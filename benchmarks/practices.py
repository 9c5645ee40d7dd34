"""Practices that the rules find in documentation: how many are advice, of a sample judged by hand.

    python benchmarks/practices.py FOLDER … [--sample 60] [--print]

Pages of the folders are read as fetched ones are, in a fixed random order, until there are five
times as many practices as the sample is large; of those the sample is drawn with seed 11 and
compared with `judged/practices.txt`. Rules of judging: `right` is a sentence that tells a
programmer what to do or not to do, in general, and can be understood by itself; `wrong` is a
description, a rule of grammar or of a format, advice for the page's own contributors, what holds
for one step of an example only, or a sentence without its subject. --print shows the sample.
"""

import argparse
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from vademecum.errors import UnreadableSource
from vademecum.graph.extract import practices
from vademecum.graph.nodes import BestPractice, ExternalDoc
from vademecum.ingest.read import read_bytes

JUDGED = Path(__file__).parent / "judged" / "practices.txt"
SEED = 11


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--print", action="store_true", dest="show")
    arguments = parser.parse_args()
    chance = random.Random(SEED)
    paths = sorted(path for folder in arguments.folders for path in folder.rglob("*.html"))
    chance.shuffle(paths)
    found: list[str] = []
    pages = 0
    for path in paths:
        if len(found) >= arguments.sample * 5:
            break
        found += sentences(path)
        pages += 1
    found = list(dict.fromkeys(found))
    sample = chance.sample(found, min(arguments.sample, len(found)))
    lines = [line.partition(" ") for line in JUDGED.read_text().splitlines()]
    judged = {sentence: verdict for verdict, _, sentence in lines}
    verdicts = Counter(judged.get(sentence, "not judged") for sentence in sample)
    if arguments.show:
        for sentence in sample:
            print(f"{judged.get(sentence, '?')} {sentence}")
    print(f"{len(found)} practices in {pages} pages; of {len(sample)} drawn:", end=" ")
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))


def sentences(path: Path) -> list[str]:
    try:
        read = read_bytes(path.read_bytes(), name=path.name)
    except UnreadableSource:
        return []
    now = datetime.now(UTC)
    doc = ExternalDoc(
        source="python_docs",
        source_url=path.as_uri(),
        title=read.title,
        content_hash="",
        last_updated=now,
    )
    nodes = (one.node for one in practices(doc, read.text, [], now=now))
    return [" ".join(node.description.split()) for node in nodes if isinstance(node, BestPractice)]


if __name__ == "__main__":
    main()
