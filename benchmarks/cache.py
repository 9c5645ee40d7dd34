"""What a hit of the cache is worth: the facts an agent still gets, and the tokens it costs.

    python benchmarks/cache.py [--pages 72] [--budgets 6000 3000 1500] [--embedder none]

Pages are the long ones of Debian's documentation packages, an equal share of each package in an
order that no one picked. Facts are taken from their HTML by three rules, one fact of each kind a
page, and only where the page says it once:

term     prompt: "What is TERM?", of a definition list; fact: the first sentence of its definition
heading  prompt: a heading as it is; fact: the first sentence of the paragraph below it
words    prompt: every other content word of a paragraph's first sentence; fact: its second one

A fact is recalled when its words stand in what is served, in their order. Beside it stand the whole
page, and as many tokens from its beginning.
"""

import argparse
import asyncio
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lxml import html as lxml_html

from scratch import scratch_app
from vademecum.app import App
from vademecum.cache.passages import tokens
from vademecum.search.terms import STOP_WORDS
from workload import RULES, Site, hash_of

KINDS = ("term", "heading", "words")
LONG = 6000
"""Tokens: shorter pages are served whole."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    url: str
    kind: str
    prompt: str
    fact: str


@dataclass(frozen=True, kw_only=True)
class Served:
    recalled: bool
    tokens: int
    page_tokens: int
    beginning: bool
    """Whether as many tokens from the page's beginning hold the fact."""
    latency_ms: float


def words(text: str) -> str:
    """The words of a text, whatever marks and targets of links stand between them."""
    read = re.sub(r"\]\((?:[^()\s]|\([^()\s]*\))*\)", "]", text.lower())
    return " ".join(re.findall(r"[^\W_]+", read))


def sentences(text: str) -> list[str]:
    found = re.split(r"(?<=[.!?])\s+(?=[A-Z(])", " ".join(text.split()))
    return [one for one in found if 6 <= len(one.split()) <= 40]


def candidates(tree: Any) -> Iterator[tuple[str, str, str]]:
    """Kind, prompt and fact, in the order of the page."""
    for element in tree.iter("dt", "h2", "h3", "h4", "p"):
        text = " ".join(element.text_content().split()).strip("¶# ")
        if element.tag == "dt":
            definition = element.getnext()
            said = [] if definition is None else sentences(definition.text_content())
            if said and 2 < len(text) < 100 and definition.tag == "dd":
                yield "term", f"What is {text}?", said[0]
        elif element.tag == "p":
            said = sentences(text)
            content = [w for w in words(said[0]).split() if w not in STOP_WORDS] if said else []
            if len(said) > 1 and len(content) >= 8:
                yield "words", " ".join(sorted(content[::2], key=hash_of)), said[1]
        else:
            below = element.getnext()
            said = sentences(below.text_content()) if below is not None and below.tag == "p" else []
            if said and 3 < len(text) < 90:
                yield "heading", text, said[0]


def pairs_of(url: str, body: bytes) -> list[Pair]:
    """One of each kind, chosen by a hash; none that the page says twice."""
    tree = lxml_html.fromstring(body)
    for noise in tree.xpath("//script|//style|//nav"):
        noise.drop_tree()
    whole = words(tree.text_content())
    by_kind: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for kind, prompt, fact in candidates(tree):
        if whole.count(words(fact)) == 1:
            by_kind[kind].append((prompt, fact))
    chosen = []
    for kind in KINDS:
        if by_kind[kind]:
            prompt, fact = min(by_kind[kind], key=lambda one: hash_of(one[1]))
            chosen.append(Pair(url=url, kind=kind, prompt=prompt, fact=fact))
    return chosen


def long_pages(folder: Path, count: int) -> list[Path]:
    by_package: dict[str, list[Path]] = defaultdict(list)
    for path in folder.rglob("*.html"):
        if path.is_file() and not path.is_symlink() and 60_000 < path.stat().st_size < 1_000_000:
            by_package[path.relative_to(folder).parts[0]].append(path)
    queues = [
        sorted(paths, key=lambda p: hash_of(str(p))) for _, paths in sorted(by_package.items())
    ]
    chosen: list[Path] = []
    while len(chosen) < count and any(queues):
        chosen += [queue.pop() for queue in queues if queue]
    return chosen[:count]


async def ask(app: App, pair: Pair, budget: int, text: str) -> Served:
    result = await app.cache.check(pair.url, prompt=pair.prompt, budget_tokens=budget)
    wanted = words(pair.fact)
    return Served(
        recalled=wanted in words(result.text),
        tokens=result.tokens,
        page_tokens=tokens(text),
        beginning=wanted in words(text.encode()[: 4 * result.tokens].decode(errors="ignore")),
        latency_ms=result.latency_ms,
    )


async def measure(app: App, pairs: list[Pair], budgets: list[int], show: bool) -> None:
    texts = {}
    for url in {pair.url for pair in pairs}:
        async with app.database.connection() as connection:
            cursor = await connection.execute(
                "SELECT content FROM crawled_documents WHERE url = %s", [url]
            )
            row = await cursor.fetchone()
        texts[url] = row[0] if row else ""
    pairs = [pair for pair in pairs if tokens(texts[pair.url]) > LONG]
    kept = [pair for pair in pairs if words(pair.fact) in words(texts[pair.url])]
    print(
        f"{len(pairs)} pairs on {len({p.url for p in pairs})} pages of"
        f" {statistics.mean(tokens(texts[p.url]) for p in pairs):.0f} tokens as Markdown (mean);"
        f" whole page: {len(kept) / len(pairs):.3f} of the facts, the others were lost in reading"
    )
    for pair in set(pairs) - set(kept) if show else ():
        print(f"  lost: {pair.fact!r} {pair.url}")
    print(f"{'budget':>7} {'recall':>7} " + " ".join(f"{kind:>8}" for kind in KINDS), end=" ")
    print(f"{'beginning':>10} {'tokens':>7} {'of page':>8} {'p50 ms':>7} {'p95 ms':>7}")
    for budget in budgets:
        served = [(pair, await ask(app, pair, budget, texts[pair.url])) for pair in kept]
        by_kind = [[one.recalled for pair, one in served if pair.kind == kind] for kind in KINDS]
        took = [one.latency_ms for _, one in served]
        share = sum(one.tokens for _, one in served) / sum(one.page_tokens for _, one in served)
        print(
            f"{budget:7} {statistics.mean(one.recalled for _, one in served):7.3f} "
            + " ".join(f"{statistics.mean(found):8.3f}" for found in by_kind)
            + f" {statistics.mean(one.beginning for _, one in served):10.3f}"
            f" {statistics.mean(one.tokens for _, one in served):7.0f} {share:8.1%}"
            f" {statistics.median(took):7.1f} {statistics.quantiles(took, n=20)[-1]:7.1f}",
            flush=True,
        )
        for pair, one in served if show else ():
            if not one.recalled:
                print(f"  {pair.kind}: {pair.prompt!r} -> {pair.fact!r}\n    {pair.url}")


async def main() -> None:
    parser = argparse.ArgumentParser(description="What a hit of the cache is worth.")
    parser.add_argument("--folder", type=Path, default=Path("/usr/share/doc"))
    parser.add_argument("--pages", type=int, default=72)
    parser.add_argument("--budgets", type=int, nargs="+", default=[LONG, 3000, 1500])
    parser.add_argument("--embedder", help="`none` for words only")
    parser.add_argument("--database", help="a PostgreSQL where a database may be made")
    parser.add_argument("--show", action="store_true", help="name the facts that are missed")
    arguments = parser.parse_args()
    site = Site(arguments.folder, long_pages(arguments.folder, arguments.pages))
    with ExitStack() as stack:
        urls = site.serve(stack)
        async with scratch_app(arguments.database, embedder=arguments.embedder) as app:
            (app.settings.home / "cache.toml").write_text(RULES.replace("0s", "1h"))
            pairs = [
                pair
                for url, body in zip(urls, site.pages.values(), strict=True)
                for pair in pairs_of(url, body)
            ]
            for url in urls:
                await app.cache.store_page(url)
            await app.process_queue()
            await measure(app, pairs, arguments.budgets, arguments.show)


if __name__ == "__main__":
    asyncio.run(main())
