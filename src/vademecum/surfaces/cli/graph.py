"""The group graph: what it holds, what it answers, what is learned, and its projection."""

import json
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.project import PROJECT
from vademecum.surfaces.cli.run import counted, options, print_json, run, text_of

if TYPE_CHECKING:
    from vademecum.graph.refresh import RefreshReport

STORES = click.Choice(["postgresql", "neo4j"])
_TO = click.option("--to", default="neo4j", show_default=True, type=click.Choice(["neo4j"]))
_PROJECT = click.option(
    "--project", default="", metavar="NAME", help="Whose code; else what all projects share."
)


@click.group(
    "graph",
    epilog="""
\b
Examples:
  vade graph queries
  vade graph query usable_apis -p package=requests -p version=2.31
  vade graph top guide --language python
  vade graph record-outcome ID --agent coder --outcome success --decision "Retry three times."
""",
)
def graph_command() -> None:
    """Documents, APIs, code, and how they relate."""


@graph_command.command("status")
@_PROJECT
@options
def status(settings: Settings, as_json: bool, project: str) -> None:
    """Count what the graph holds."""
    found = run(settings, lambda app: app.graph.counts(project=project))
    if as_json:
        print_json(found)
        return
    for title, counts in (("entities", found.entities), ("relations", found.relations)):
        click.echo(f"{title}: {sum(counts.values())}")
        for kind, count in counts.items():
            click.echo(f"  {count:8}  {kind}")
    if not project and found.projects:
        click.echo("projects, each with --project:")
        for name, count in found.projects.items():
            click.echo(f"  {count:8}  {name}")


@graph_command.command("show")
@click.argument("name")
@click.option("--kind", metavar="KIND", help="Only nodes of this kind, such as APIReference.")
@_PROJECT
@options
def show(settings: Settings, as_json: bool, name: str, kind: str | None, project: str) -> None:
    """Show nodes by their id or name, with their relations and scores."""
    found = run(settings, lambda app: app.graph.describe(name, kind=kind, project=project))
    if as_json:
        print_json({"nodes": found})
        return
    if not found:
        raise BadInput(
            f"nothing in the graph is named {name!r}",
            hint="An API has a qualified name, a file its path; code needs its --project.",
        )
    for each in found:
        click.echo(f"{each.kind} {each.name}\n  id: {each.id}")
        for key, value in each.properties.items():
            if not key.endswith("_order"):
                click.echo(f"  {key}: {_short(value)}")
        if each.scored is not None:
            _tell_score(each.scored)
        for relation in each.relations:
            arrow = "->" if relation.outgoing else "<-"
            click.echo(
                f"  {arrow} {relation.kind} {relation.other_kind} {relation.other_name}"
                f"  ({relation.source}: {relation.stated_by})"
            )


@graph_command.command("queries")
@options
def queries(settings: Settings, as_json: bool) -> None:
    """List the named queries and their parameters."""
    from vademecum.graph.queries import QUERIES

    if as_json:
        print_json({"queries": QUERIES})
        return
    for name, query in QUERIES.items():
        optional = [f"[{each}]" for each in (query.optional or {})]
        click.echo(f"{name}  {' '.join([*query.required, *optional])}\n    {query.summary}")


@graph_command.command("query")
@click.argument("name")
@click.option("-p", "--parameter", "given", multiple=True, metavar="KEY=VALUE")
@click.option("--on", default="postgresql", show_default=True, type=STORES, help="Who answers.")
@options
def query(settings: Settings, as_json: bool, name: str, given: tuple[str, ...], on: str) -> None:
    """Run a named query."""
    parameters = dict(_pair(each) for each in given)
    rows = run(settings, lambda app: app.graph.query(name, on=on, **parameters))
    if as_json:
        print_json({"query": name, "parameters": parameters, "rows": rows})
    else:
        _table(rows)


@graph_command.command("top")
@click.argument("category", type=click.Choice(["api", "tutorial", "reference", "guide"]))
@click.option("--language", default="", metavar="NAME", help="Only of this language.")
@options
def top(settings: Settings, as_json: bool, category: str, language: str) -> None:
    """The best documents of a category, in a language or all."""
    rows = run(
        settings,
        lambda app: app.graph.query("top_documents", category=category, language=language),
    )
    print_json({"documents": rows}) if as_json else _table(rows)


@graph_command.command("relevant")
@click.argument("text")
@click.option("--language", default="", metavar="NAME")
@click.option("--package", default="", metavar="NAME")
@click.option("--category", default="", metavar="NAME")
@click.option("-k", "limit", default=5, show_default=True, type=click.IntRange(1, 100))
@options
def relevant(settings: Settings, as_json: bool, text: str, limit: int, **of: str) -> None:
    """Find documents for a task, and say why they rank as they do."""
    found = run(settings, lambda app: app.graph.relevant(text, limit=limit, **of))
    if as_json:
        print_json(
            {
                "text": text,
                "documents": [
                    {
                        "id": each.document.id,
                        "title": each.document.title,
                        "source": each.document.source,
                        "source_url": each.document.source_url,
                        "version": each.document.version,
                        "summary": each.document.summary,
                        "passage": each.passage,
                        "score": _score(each.scored),
                    }
                    for each in found
                ],
            }
        )
        return
    for each in found:
        click.echo(f"{each.document.title}  ({each.document.source}) {each.document.source_url}")
        click.echo(f"  id: {each.document.id}")
        _tell_score(each.scored)
    if not found:
        click.echo("Nothing was found.")


@graph_command.command("record-outcome")
@click.argument("id_", metavar="ID", type=click.UUID)
@click.option("--agent", required=True, metavar="NAME", help="Who used it.")
@click.option(
    "--outcome",
    type=click.Choice(["success", "failure", "misled", "unknown"]),
    required=True,
    help="What came of it; misled: what it says was wrong.",
)
@click.option("--use", metavar="NAME", help="Names this use, so that it counts once.")
@click.option("--task", default="", metavar="TEXT", help="What it was used for.")
@click.option("--decision", default="", metavar="TEXT", help="What was decided because of it.")
@click.option("--error", type=click.File(), metavar="FILE", help="The traceback that it solved.")
@PROJECT
@options
def record_outcome(settings: Settings, as_json: bool, id_: UUID, error: Any, **of: Any) -> None:
    """Record that an agent used a document, an API, an example or a practice, and whether it
    helped.

    The graph keeps what informed a decision, and what solved an error is told when that comes
    again.
    """
    text = text_of(error) if error else ""
    scored = run(settings, lambda app: app.context.record(id_, error=text, **of))
    if as_json:
        print_json({"id": scored.id, "score": _score(scored)})
    else:
        _tell_score(scored)


@graph_command.command("rescore")
@options
def rescore(settings: Settings, as_json: bool) -> None:
    """Score all documents anew, and make the top lists."""
    changed = run(settings, lambda app: app.graph.rescore())
    print_json({"changed": changed}) if as_json else click.echo(
        f"{counted(changed, 'score')} changed"
    )


@graph_command.command("changes")
@click.option("--id", "number", type=click.UUID, metavar="ID", help="Only of this document.")
@click.option("--since", type=click.DateTime(), help="Not before this time, UTC.")
@click.option("-n", "limit", default=50, show_default=True, type=click.IntRange(1, 10_000))
@options
def changes(
    settings: Settings, as_json: bool, number: UUID | None, since: datetime | None, limit: int
) -> None:
    """What changed of documents outside, the newest first."""
    from datetime import UTC

    from vademecum.graph.upkeep import ITSELF

    after = None if since is None else since.replace(tzinfo=UTC)
    found = run(settings, lambda app: app.graph.changes(number=number, since=after, limit=limit))
    if as_json:
        print_json({"changes": found})
        return
    for each in found:
        what, told = each.change, f"{each.name}  {each.detail}".rstrip()
        if each.entity_id == ITSELF:  # a turn, which tells what came of it as JSON
            what = what.removesuffix("_done")
            told = _turn(json.loads(each.detail)) if each.detail else "began"
        click.echo(f"{each.changed_at:%Y-%m-%d %H:%M}  {what.replace('_', ' '):17}  {told}")
    if not found:
        click.echo("Nothing changed.")


def _turn(did: dict[str, Any]) -> str:
    """What came of the daily maintenance, or of the weekly analysis, in a line."""
    if "refreshed" in did:
        return f"{_upkept(did['rescored'], did['content_removed'])}; {_refreshed(did['refreshed'])}"
    return (
        f"{counted(did['top'], 'document')} used most, {did['unused']} never used,"
        f" {counted(did['sources'], 'source')}, {counted(did['gaps'], 'gap')}"
    )


@graph_command.command("refresh")
@click.argument("ids", nargs=-1, type=click.UUID, metavar="[ID]...")
@click.option("--dry-run", is_flag=True, help="Only list what is to be looked at again.")
@click.option("--limit", default=500, show_default=True, type=click.IntRange(1, 100_000))
@options
def refresh(
    settings: Settings, as_json: bool, ids: tuple[UUID, ...], dry_run: bool, limit: int
) -> None:
    """Look again at documents that are stale and valued, or at those named.

    Stale is older than 30 days for official documentation, 90 for tutorials, 7 for answers of a
    community, 14 for packages. Exit code 1 where a fetch failed; the old text is kept then.
    """
    if dry_run:
        due = run(settings, lambda app: app.graph.due(limit=limit))
        print_json({"due": due}) if as_json else click.echo("\n".join(map(str, due)) or "None.")
        return
    found = run(
        settings,
        lambda app: app.graph.refresh(ids=ids or None, limit=limit, progress=_looked(as_json)),
    )
    print_json(found) if as_json else _tell_refresh(found)
    if found.failed:
        raise click.exceptions.Exit(1)


@graph_command.command("maintain")
@options
def maintain(settings: Settings, as_json: bool) -> None:
    """The daily maintenance: scores, top lists, refresh, texts that nobody reads.

    `vade serve` and `vade worker` do it once a day; it is safe to do twice, and to miss.
    """
    found = run(settings, lambda app: app.graph.maintain(_looked(as_json)))
    if as_json:
        print_json(found)
        return
    click.echo(_upkept(found.rescored, found.content_removed))
    _tell_refresh(found.refreshed)


@graph_command.command("analyse")
@options
def analyse(settings: Settings, as_json: bool) -> None:
    """The weekly analysis: documents used most and never, what sources are worth, gaps."""
    found = run(settings, lambda app: app.graph.analyse())
    if as_json:
        print_json(found)
        return
    for title, rows in (
        ("Used most", found.top),
        ("Never used", found.unused),
        ("Sources", found.sources),
        ("Gaps", found.gaps),
    ):
        click.echo(f"{title}:" if rows else f"{title}: none")
        if rows:
            _table(rows)


def _looked(as_json: bool) -> Any:
    return lambda done, total: (
        None if as_json else click.echo(f"{done} of {total} looked at", err=True)
    )


def _upkept(rescored: int, removed: int) -> str:
    return f"{counted(rescored, 'score')} changed, {counted(removed, 'unread text')} removed"


def _refreshed(found: dict[str, Any]) -> str:
    return (
        f"{counted(found['updated'], 'document')} changed, {found['unchanged']} did not,"
        f" {len(found['failed'])} could not be fetched; newly deprecated:"
        f" {counted(found['deprecated'], 'API')}"
    )


def _tell_refresh(found: "RefreshReport") -> None:
    click.echo(_refreshed(asdict(found)))
    for address, reason in found.failed:
        click.echo(f"  {address}: {reason}", err=True)


@graph_command.command("rebuild")
@_TO
@options
def rebuild(settings: Settings, as_json: bool, to: str) -> None:
    """Project the graph to Neo4j, and from now on every change; also repairs what differs there.

    Stopped half-way it goes on by itself in `vade serve`, `vade worker` or `vade graph project`.
    """
    told = run(settings, lambda app: app.projection.rebuild(_progress(as_json)))
    print_json({"to": to, "told": told}) if as_json else click.echo(f"{told} rows told to {to}")


@graph_command.command("project")
@_TO
@options
def project(settings: Settings, as_json: bool, to: str) -> None:
    """Tell Neo4j the changes that wait."""
    told = run(settings, lambda app: app.projection.work(_progress(as_json)))
    print_json({"to": to, "told": told}) if as_json else click.echo(f"{told} changes told to {to}")


@graph_command.command("stop")
@_TO
@options
def stop(settings: Settings, as_json: bool, to: str) -> None:
    """Project no more changes; what Neo4j holds stays there."""
    stopped = run(settings, lambda app: app.projection.stop())
    if as_json:
        print_json({"to": to, "stopped": stopped})
    else:
        click.echo("stopped" if stopped else f"the graph was not projected to {to}")


@graph_command.command("verify")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000))
@options
def verify(settings: Settings, as_json: bool, limit: int) -> None:
    """Compare Neo4j with PostgreSQL, every property of it. Exit code 1 where they differ."""
    found = run(settings, lambda app: app.projection.verify(limit=limit))
    if as_json:
        print_json(found)
    else:
        for each in found.differences:
            what = "relation" if each.is_relation else "node"
            detail = f": {each.detail}" if each.detail else ""
            click.echo(f"{each.what} {what} {each.kind} {each.name} ({each.id}){detail}")
        click.echo(
            f"{found.nodes} nodes and {found.relations} relations are the same,"
            f" {found.different} differ; {found.waiting} changes wait"
        )
        if found.different:
            click.echo("Run `vade graph rebuild --to neo4j` to repair them.", err=True)
    if found.different:
        raise click.exceptions.Exit(1)


def _progress(as_json: bool) -> Any:
    return lambda left: None if as_json else click.echo(f"{left} rows left", err=True)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise BadInput(f"{text!r} is not KEY=VALUE")
    return key, value


def _table(rows: list[dict[str, Any]]) -> None:
    if not rows:
        click.echo("Nothing was found.")
        return
    columns = [column for column in rows[0] if column != "id"]
    cells = [columns, *([_short(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[n]) for line in cells) for n in range(len(columns))]
    for line in cells:
        click.echo(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= 100 else text[:99] + "…"


def _score(scored: Any) -> dict[str, Any]:
    parts = scored.relevance
    return {
        "credibility": parts.credibility,
        "freshness": parts.freshness,
        "usage": parts.usage,
        "similarity": parts.similarity,
        "score": parts.score,
        "helpfulness": parts.helpfulness,
        "relevance": parts.relevance,
        "access_count": scored.access_count,
        "successes": scored.successes,
        "failures": scored.failures,
        "misled": scored.misled,
    }


def _tell_score(scored: Any) -> None:
    found = _score(scored)
    click.echo(
        "  relevance {relevance:.3f}: score {score:.3f} (credibility {credibility:.2f}, freshness"
        " {freshness:.2f}, usage {usage:.2f}, similarity {similarity:.2f}), helpfulness"
        " {helpfulness:.2f} ({used}, {successes} helped, {failures} failed, {misled}"
        " misled)".format(**found, used=counted(scored.access_count, "use"))
    )
