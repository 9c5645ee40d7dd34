"""search and answer."""

from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import AnswerResult, App, SearchResult
    from vademecum.types import Hit

BOOSTS = ("title", "heading", "topic", "file")


@click.command(
    "search",
    epilog="""
\b
Examples:
  vade search "rotate the signing keys"
  vade search pg_stat_activity --mode lexical -k 3
  vade search "memory limit" -c k8s --keyword pod --explain
""",
)
@click.argument("query")
@click.option("-c", "--collection", metavar="NAME", help="The collection to search.")
@click.option("-k", "limit", default=8, show_default=True, metavar="N", help="How many hits.")
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "dense", "lexical"]),
    default="hybrid",
    show_default=True,
    help="By meaning and by word, or one of them.",
)
@click.option("--threshold", type=float, metavar="T", help="Least cosine similarity of a hit.")
@click.option("--keyword", metavar="W", help="Only documents that hold these words.")
@click.option("--boost", metavar="FIELDS", help=f"Count matches in {', '.join(BOOSTS)} more.")
@click.option("--explain", is_flag=True, help="Show what each retriever says of a hit.")
@options
def search_command(
    settings: Settings,
    as_json: bool,
    query: str,
    collection: str | None,
    limit: int,
    mode: str,
    threshold: float | None,
    keyword: str | None,
    boost: str | None,
    explain: bool,
) -> None:
    """Find the passages that answer a query."""

    async def work(app: "App") -> "SearchResult":
        from vademecum.types import Query

        return await app.search(
            Query(
                text=query,
                collection=await app.collection_name(collection),
                mode=mode,  # type: ignore[arg-type]
                limit=limit,
                threshold=threshold,
                keyword=keyword,
                boost=tuple(field.strip() for field in boost.split(",")) if boost else (),
            )
        )

    result = run(settings, work)
    for text in result.notices:
        note(text)
    if as_json:
        print_json(
            {
                "query": result.query,
                "mode": result.mode,
                "took_ms": round(result.took_ms, 2),
                "results": [hit_fields(hit, explain=explain) for hit in result.results],
            }
        )
        return
    for number, hit in enumerate(result.results, start=1):
        _print_hit(number, hit, explain=explain)
    found = f"{len(result.results)} hits" if result.results else "Nothing was found"
    click.echo(f"{found} in {result.took_ms:.1f} ms ({result.mode})")


def hit_fields(hit: "Hit", *, explain: bool = False) -> dict[str, object]:
    """A hit as the JSON of every surface shows it."""
    fields: dict[str, object] = {
        "score": round(hit.score, 6),
        "title": hit.title,
        "collection": hit.collection,
        "path": hit.path,
        "url": hit.url,
        "heading_path": list(hit.heading_path),
        "section_id": hit.section_id,
        "chunk_id": str(hit.chunk_id),
        "text": hit.text,
        "snippet": hit.snippet,
        "reference": hit.reference,
    }
    if explain:
        fields["contributions"] = list(hit.contributions)
    return fields


def _print_hit(number: int, hit: "Hit", *, explain: bool) -> None:
    headings = " > ".join(dict.fromkeys((hit.title, *hit.heading_path)))
    click.secho(f"{number}. {headings}", bold=True)
    click.echo(f"   {hit.reference}  score {hit.score:.3f}")
    if explain:
        for part in hit.contributions:
            click.echo(
                f"   {part.retriever}: rank {part.rank}, score {part.score:.3f},"
                f" share {part.share:.4f}"
            )
    for line in hit.snippet.splitlines():
        click.echo(f"     {line}")
    click.echo()


@click.command(
    "answer",
    epilog="""
\b
Examples:
  vade answer "Which ports must be open?"
  vade answer "How do I rotate the signing keys?" -c handbook
  vade answer "What is a lease?" --json
""",
)
@click.argument("question")
@click.option("-c", "--collection", metavar="NAME", help="The collection to answer from.")
@options
def answer_command(
    settings: Settings, as_json: bool, question: str, collection: str | None
) -> None:
    """Answer a question with sentences of the sources, each with its citation."""

    async def work(app: "App") -> "AnswerResult":
        return await app.answer(question, collection=await app.collection_name(collection))

    result = run(settings, work)
    for text in result.notices:
        note(text)
    if as_json:
        print_json(
            {
                "question": result.question,
                "found": result.found,
                "answer": result.answer,
                "sources": list(result.sources),
                "took_ms": round(result.took_ms, 2),
            }
        )
        return
    click.echo(result.answer)
    if result.sources:
        click.secho("\nSources" if result.found else "\nNearest sections", bold=True)
    for source in result.sources:
        click.echo(f"  {source.reference}  {source.title}")
    click.echo(f"\n{'Answered' if result.found else 'Searched'} in {result.took_ms:.1f} ms")
