"""search, answer and read."""

from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.project import here
from vademecum.surfaces.cli.run import counted, note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.answer.facade import AnswerResult
    from vademecum.app import App
    from vademecum.search.facade import SearchResult
    from vademecum.types import ChunkId, Hit

BOOSTS = ("title", "heading", "topic", "file")
FILTER = click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="F",
    help="Only documents with these facets; may be repeated, all must hold.",
)


@click.command(
    "search",
    epilog="""
\b
Examples:
  vade search "rotate the signing keys"
  vade search pg_stat_activity --mode lexical -k 3
  vade search "memory limit" -c k8s --keyword pod --explain
  vade search "launch file" -c book --filter 'tier<=2' --filter level=A2,B1

Facets are declared by the profile of the collection, see `vade profile show course`. A filter is
FACET=VALUE,VALUE (any of them), FACET=1..5 (a range), FACET<=VALUE (also of a level: it or lower),
FACET=* (has one); != is the opposite.

--rerank needs a cross-encoder on this machine or a language model: docs/models.md.
""",
)
@click.argument("query")
@click.option("-c", "--collection", "--repo", metavar="NAME", help="The collection to search.")
@click.option(
    "-k", "--k", "limit", default=8, show_default=True, metavar="N", help="How many hits."
)
@click.option(
    "--mode",
    type=click.Choice(["hybrid", "dense", "lexical"]),
    default="hybrid",
    show_default=True,
    help="By meaning and by word, or one of them.",
)
@click.option("--hybrid", is_flag=True, help="The same as --mode hybrid, the default.")
@click.option("--metadata", is_flag=True, help="With --json: all that is known of each hit.")
@click.option("--threshold", type=float, metavar="T", help="Least cosine similarity of a hit.")
@click.option("--keyword", metavar="W", help="Only documents that hold these words.")
@FILTER
@click.option("--boost", metavar="FIELDS", help=f"Count matches in {', '.join(BOOSTS)} more.")
@click.option("--rerank", is_flag=True, help="Let a reranker order the best hits; VADE_RERANKER.")
@click.option("--explain", is_flag=True, help="Show what each retriever says of a hit.")
@options
def search_command(
    settings: Settings,
    as_json: bool,
    query: str,
    collection: str | None,
    limit: int,
    mode: str,
    hybrid: bool,
    metadata: bool,
    threshold: float | None,
    keyword: str | None,
    filters: tuple[str, ...],
    boost: str | None,
    rerank: bool,
    explain: bool,
) -> None:
    """Find the passages that answer a query."""
    if hybrid and mode != "hybrid":
        raise click.UsageError("Give either --hybrid or another --mode.")
    known: dict[ChunkId, dict[str, object]] = {}

    async def work(app: "App") -> "SearchResult":
        from vademecum.types import Query

        found = await app.search(
            Query(
                text=query,
                collection=await app.collection_name(collection),
                mode=mode,  # type: ignore[arg-type]
                limit=limit,
                threshold=threshold,
                keyword=keyword,
                filters=filters,
                boost=tuple(field.strip() for field in boost.split(",")) if boost else (),
                rerank=rerank,
            )
        )
        if metadata and found.results:
            ids = [hit.chunk_id for hit in found.results]
            known.update(await app.knowledge_bases.chunk_metadata(found.results[0].collection, ids))
        return found

    result = run(settings, work)
    for text in result.notices:
        note(text)
    if as_json:
        print_json(
            {
                "query": result.query,
                "mode": result.mode,
                "took_ms": round(result.took_ms, 2),
                "results": [
                    hit_fields(hit, explain=explain)
                    | ({"metadata": known.get(hit.chunk_id, {})} if metadata else {})
                    for hit in result.results
                ],
            }
            | ({"reranked_by": result.reranked_by} if result.reranked_by else {})
        )
        return
    for number, hit in enumerate(result.results, start=1):
        _print_hit(number, hit, explain=explain)
    found = counted(len(result.results), "hit") if result.results else "Nothing was found"
    by = f", reranked by {result.reranked_by}" if result.reranked_by else ""
    click.echo(f"{found} in {result.took_ms:.1f} ms ({result.mode}{by})")


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
        "facets": dict(hit.facets),
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
            place = f"rank {part.rank}" if part.rank else "not among its best"
            click.echo(
                f"   {part.retriever}: {place}, score {part.score:.3f}, share {part.share:.4f}"
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
  vade answer "What is a lease?" --model anthropic:claude-haiku-5-5
  vade answer "Which ports must be open?" -c handbook --keep

A language model writes the answer where one is named here or by VADE_MODEL; each of its sentences
is checked against the passage it cites, and dropped where that does not support it. docs/models.md
tells more.

--keep keeps an answer that is found as a note of the project; `vade stale` says when what it cites
has changed.
""",
)
@click.argument("question")
@click.option("-c", "--collection", "--repo", metavar="NAME", help="The collection to answer from.")
@FILTER
@click.option("--model", metavar="M", help="provider:model of a language model, or none.")
@click.option("--keep", is_flag=True, help="Keep the answer as a note of the project.")
@click.option("-p", "--project", metavar="NAME", help="With --keep. Default: as `vade note`.")
@options
def answer_command(
    settings: Settings,
    as_json: bool,
    question: str,
    collection: str | None,
    filters: tuple[str, ...],
    model: str | None,
    keep: bool,
    project: str | None,
) -> None:
    """Answer a question with sentences of the sources, each with its citation."""
    if project and not keep:
        raise click.UsageError("--project is for --keep.")
    keep_for = (project or here()) if keep else None

    async def work(app: "App") -> "AnswerResult":
        return await app.answer(
            question,
            collection=await app.collection_name(collection),
            filters=filters,
            model=model,
            keep_for=keep_for,
        )

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
            | (
                {"by": result.by, "dropped": list(result.dropped), "notices": result.notices}
                if model or settings.model
                else {}
            )
            | ({"kept": result.kept} if keep else {})
        )
        return
    click.echo(result.answer)
    if result.sources:
        click.secho("\nSources" if result.found else "\nNearest sections", bold=True)
    for source in result.sources:
        click.echo(f"  {source.reference}  {source.title}")
    if result.dropped:
        click.secho("\nDropped, since the sources do not support it", bold=True)
    for one in result.dropped:
        click.echo(f"  {one.sentence}\n    {one.reason}")
    if result.kept:
        click.echo(f"\nKept as note {result.kept} of {keep_for}")
    by = "" if result.by == "extractive" else f" by {result.by}"
    click.echo(f"\n{'Answered' if result.found else 'Searched'}{by} in {result.took_ms:.1f} ms")


@click.command(
    "read",
    epilog="""
\b
Examples:
  vade read handbook/ops/keys.md#rotation
  vade read handbook/ops/keys.md

A reference is what hits and citations show.
""",
)
@click.argument("reference")
@options
def read_command(settings: Settings, as_json: bool, reference: str) -> None:
    """Read a document, or a section of it, by its reference."""
    text = run(settings, lambda app: app.shelf.read_reference(reference))
    if as_json:
        print_json({"reference": reference, "text": text})
    else:
        click.echo(text)
