"""promote, and index: verify, rebuild, drop."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import COLLECTION, note, options, print_json, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from vademecum.app import App
    from vademecum.mirror.facade import MirrorState, Rebuilt
    from vademecum.mirror.promote import Promotion
    from vademecum.mirror.verify import Verification

STORE = click.argument("store", required=False, metavar="[STORE]")


@click.command(
    "promote",
    epilog="""
\b
Examples:
  vade promote -c handbook --to qdrant
  vade promote -c handbook --to qdrant --gold questions.jsonl
  vade promote -c handbook --to pgvector

The store is filled while searches go on where they are. Then both answer the same queries, those of
the gold file or else those last searched for and headings, beside an exact look at every vector;
only if the store finds as much is it searched from then on. `--to pgvector` goes back at once.
Interrupted, the same command goes on. Exit code 1: the answers were not good enough, and nothing
was switched.
""",
)
@COLLECTION
@click.option("--to", "store", required=True, metavar="STORE", help="qdrant, pinecone or pgvector.")
@click.option(
    "--gold",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Questions with known answers; see `vade eval --help`.",
)
@click.option(
    "--queries",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    metavar="N",
    help="So many queries to compare answers on, without a gold file.",
)
@click.option(
    "--recall", type=click.FloatRange(0, 1), default=0.95, show_default=True, metavar="R",
    help="Least share of the ten nearest chunks that the store must find.",
)  # fmt: skip
@options
def promote_command(
    settings: Settings,
    as_json: bool,
    collection: str | None,
    store: str,
    gold: Path | None,
    queries: int,
    recall: float,
) -> None:
    """Search a collection in another vector store, once that answers as well."""
    from vademecum.evaluate.gold import read_gold

    questions = read_gold(gold) if gold is not None else []

    async def work(app: "App") -> "Promotion":
        return await app.mirrors.promote(
            await app.collection_name(collection),
            store,
            questions=questions,
            queries=queries,
            least_recall=recall,
            notice=note,
            progress=_told(quiet=as_json),
        )

    done = run(settings, work)
    if as_json:
        print_json(done)
    else:
        _print_promotion(done)
    sys.exit(0 if done.switched else 1)


def _told(*, quiet: bool) -> "Callable[[int], None]":
    def told(chunks: int) -> None:
        if not quiet:
            click.echo(f"told of {chunks} chunks", err=True)

    return told


def _print_promotion(done: "Promotion") -> None:
    if done.shadow is not None:
        seen = done.shadow
        click.echo(f"told of {done.told} chunks; {seen.queries} queries asked of both")
        rows = [("", "recall@10", "nDCG@10", "median")]
        for name, found, gain, took in (
            ("now", seen.recall_now, seen.ndcg_now, seen.p50_now_ms),
            (done.store, seen.recall_then, seen.ndcg_then, seen.p50_then_ms),
        ):
            quality = f"{gain:.3f}" if gain is not None else "-"
            rows.append((name, f"{found:.3f}", quality, f"{took:.1f} ms"))
        for first, *others in rows:
            click.echo(f"{first:10}" + "".join(f"{text:>12}" for text in others))
    if done.switched:
        click.echo(f"{done.collection} is searched in {done.store}")
    else:
        click.echo(f"not switched: {done.reason}")


@click.group(
    "index",
    epilog="""
\b
Examples:
  vade index status -c handbook
  vade index verify -c handbook
  vade index rebuild -c handbook qdrant
  vade index drop -c handbook qdrant
""",
)
def index_command() -> None:
    """Verify, rebuild and drop the vector indexes of a collection.

    PostgreSQL itself (pgvector) always is one; `vade promote` adds others.
    """


@index_command.command("status")
@COLLECTION
@options
def status_command(settings: Settings, as_json: bool, collection: str | None) -> None:
    """Show where a collection's vectors are, and what waits to be told."""

    async def work(app: "App") -> "tuple[str, list[MirrorState]]":
        name = await app.collection_name(collection)
        return name, await app.mirrors.states(name)

    name, states = run(settings, work)
    if as_json:
        print_json({"collection": name, "stores": states})
        return
    serving = any(state.state == "serving" for state in states)
    click.echo(f"pgvector  {'kept beside' if serving else 'serving'}")
    for state in states:
        click.echo(
            f"{state.store}  {state.state}, {state.waiting} chunks wait"
            f"  ({state.place}, {state.tenant})"
        )


@index_command.command("verify")
@COLLECTION
@STORE
@options
def verify_command(
    settings: Settings, as_json: bool, collection: str | None, store: str | None
) -> None:
    """Compare ids and hashes with PostgreSQL, and name the difference; exit code 1 if there is one.

    Of PostgreSQL itself: whether each chunk has all its vectors, and the text they were made of.
    """

    async def work(app: "App") -> "list[Verification]":
        return await app.mirrors.verify(await app.collection_name(collection), store)

    found = run(settings, work)
    if as_json:
        print_json(
            {
                "collection": found[0].collection if found else collection,
                "indexes": [
                    {name: getattr(one, name) for name in _SHOWN} | {"ok": one.ok} for one in found
                ],
            }
        )
    for one in () if as_json else found:
        _print_verification(one)
    sys.exit(0 if all(one.ok for one in found) else 1)


_SHOWN = ("store", "entries", "missing", "extra", "changed", "waiting", "named")


def _print_verification(found: "Verification") -> None:
    waiting = f", {found.waiting} chunks wait" if found.waiting else ""
    if found.ok:
        click.echo(f"{found.store}  {found.entries} entries, all as they should be{waiting}")
        return
    click.echo(
        f"{found.store}  {found.entries} entries: {found.missing} missing, "
        f"{found.extra} too many, {found.changed} changed{waiting}"
    )
    for wrong in found.named:
        click.echo(f"  {wrong.kind:8} {wrong.reference or 'unknown'}  {wrong.chunk_id}")
    click.echo(f"  `vade index rebuild -c {found.collection} {found.store}` repairs it")


@index_command.command("rebuild")
@COLLECTION
@STORE
@click.option("--all", "everything", is_flag=True, help="Empty the index first and fill it anew.")
@options
def rebuild_command(
    settings: Settings,
    as_json: bool,
    collection: str | None,
    store: str | None,
    everything: bool,
) -> None:
    """Repair what `verify` finds; with --all, fill the index anew."""

    async def work(app: "App") -> "list[Rebuilt]":
        name = await app.collection_name(collection)
        done = await app.mirrors.rebuild(
            name, store, everything=everything, progress=_told(quiet=as_json)
        )
        await app.process_queue()
        return done

    done = run(settings, work)
    if as_json:
        print_json({"indexes": done})
        return
    for one in done:
        unit = "documents" if one.store == "pgvector" else "chunks"
        click.echo(f"{one.store}  {one.repaired} {unit} repaired")


@index_command.command("drop")
@COLLECTION
@click.argument("store", metavar="STORE")
@click.option("--yes", is_flag=True, help="Do not ask.")
@options
def drop_command(
    settings: Settings, as_json: bool, collection: str | None, store: str, yes: bool
) -> None:
    """Have a store forget a collection, which is searched in PostgreSQL from then on."""
    if not yes:
        click.confirm(f"Remove the collection from {store}?", abort=True)

    async def work(app: "App") -> str:
        name = await app.collection_name(collection)
        await app.mirrors.drop(name, store)
        return name

    name = run(settings, work)
    if as_json:
        print_json({"dropped": store, "collection": name})
    else:
        click.echo(f"{store} has forgotten {name}")
