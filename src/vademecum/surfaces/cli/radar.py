"""radar."""

import json
import sys
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING

import click

from vademecum.errors import BadInput, VadeError
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import counted, note, options, print_json, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vademecum.graph.changelog import Changelog
    from vademecum.graph.radar import Finding
    from vademecum.graph.watch import RadarReport

MAX_SENTENCE = 240
"""Characters of what a library says that are printed; --json has all of it."""


@click.command(
    "radar",
    epilog="""
\b
Examples:
  vade radar .
  vade radar ~/project --python ~/project/.venv
  vade radar . --sarif radar.sarif --fail-on removed
  vade radar . --json | jq '.findings[].file'

The installed packages are read, never imported: decorators, docstrings and warnings that say that
something is deprecated, and names that are no longer there; beside them changelogs that
`vade fetch package NAME` fetched. Nothing is fetched, unless --fetch is given, and no database is
made. Packages of npm that the lock file calls deprecated are found where they are imported.

\b
Exit codes: 0 nothing found, 1 something of --fail-on or graver was found, 2 wrong usage.
Lines that expect the failure (inside `try`, or after a question for the version) do not count.
""",
)
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option(
    "--python",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The interpreter or environment to read; default: .venv of the project.",
)
@click.option(
    "--fetch",
    is_flag=True,
    help="Fetch locked versions that are not installed from the package index, and read those.",
)
@click.option(
    "--sarif", metavar="FILE", type=click.Path(path_type=Path), help="Also write SARIF 2.1.0."
)
@click.option(
    "--fail-on",
    type=click.Choice(["removed", "deprecated", "never"]),
    default="deprecated",
    show_default=True,
    help="What makes the exit code 1.",
)
@options
def radar_command(
    settings: Settings,
    as_json: bool,
    path: Path,
    python: Path | None,
    fetch: bool,
    sarif: Path | None,
    fail_on: str,
) -> None:
    """Show which lines use what their libraries deprecate or have removed."""
    from vademecum.graph.radar import worst
    from vademecum.graph.watch import radar

    changelogs, problems = _changelogs(settings)
    with click.progressbar(
        length=100,
        label="reading",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
        item_show_func=lambda text: text,
    ) as bar:
        report = radar(
            path,
            home=settings.home / "graph" / "libraries",
            python=python,
            fetch=fetch,
            changelogs=changelogs,
            progress=lambda done, total: bar.update(max(0, done * 100 // total - bar.pos)),
            notice=lambda text: bar.update(0, text),
        )
    if sarif is not None:
        _write_sarif(report, sarif)
    for text in [*problems, *report.notices]:
        note(text)
    if as_json:
        print_json(report)
    else:
        _print(report)
        if sarif is not None:
            click.echo(f"SARIF is in {sarif}")
    gravest = worst(report.findings)
    if (
        gravest is not None
        and fail_on != "never"
        and (fail_on != "removed" or gravest == "removed")
    ):
        sys.exit(1)


def _changelogs(settings: Settings) -> tuple["Mapping[str, Sequence[Changelog]]", list[str]]:
    """What was fetched into the database, and why it could not be read; a home without one is
    left so."""
    if settings.database_url is None and not (settings.home / "database").is_dir():
        return {}, []
    try:
        return run(settings, lambda app: app.sources.changelogs()), []
    except VadeError as error:
        return {}, [f"without fetched changelogs: {error}"]


def _write_sarif(report: "RadarReport", path: Path) -> None:
    from vademecum.graph.sarif import sarif

    root = Path(report.root).resolve().as_uri() + "/"
    text = json.dumps(sarif(report.findings, root_uri=root), ensure_ascii=False, indent=2)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise BadInput(
            f"cannot write {path}: {error.strerror}", hint="Name another file with --sarif."
        ) from None


def _print(report: "RadarReport") -> None:
    told: set[str] = set()
    for one in report.findings:
        _print_finding(one, told)
    for skipped in report.skipped:
        note(f"skipped {skipped.relative}: {skipped.reason}")
    found = len(report.findings)
    looked_at = (
        f"{counted(report.lines, 'line')} in {counted(report.files, 'file')} against"
        f" {counted(len(report.packages), 'library')}"
    )
    told_of = counted(found, "finding") if found else "No findings"
    click.echo(f"{told_of}: {looked_at}, {report.seconds:.1f} s")


def _print_finding(one: "Finding", told: set[str]) -> None:
    """A finding; what the library says of it the first time only, after that it is in `told`."""
    thing = f"{one.api}({one.parameter}=)" if one.parameter else one.api
    state = {"removed": "removed", "deprecated": "deprecated", "parameter": "deprecated argument"}
    colour = "red" if one.rule == "removed" else "yellow"
    click.secho(f"{one.file}:{one.line}:{one.column}", bold=True, nl=False)
    click.secho(f"  {state[one.rule]}", fg=colour, nl=False)
    click.echo(
        f"  {thing}  ({one.package} {one.version}){'  expected by the code' if one.guarded else ''}"
    )
    click.echo(f"    {one.context}")
    when = [f"since {one.since}"] if one.since else []
    if one.until:
        when.append(f"until {one.until}{', which is reached' if one.overdue else ''}")
    if one.replacement:
        when.append(f"use {one.replacement}")
    if when:
        click.echo(f"    {'; '.join(when)}")
    if one.sentence not in told:
        told.add(one.sentence)
        sentence = shorten(one.sentence, MAX_SENTENCE, placeholder=" …")
        where = f"  [{one.evidence}]" if one.evidence else ""
        click.echo(f"    “{sentence}”{where}")
    click.echo()
