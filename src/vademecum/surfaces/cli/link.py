"""link."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import counted, note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.graph.link import LinkReport


@click.command(
    "link",
    epilog="""
\b
Examples:
  vade link .
  vade link ~/project --python ~/project/.venv
  vade link ~/project/src
  vade link ~/project/plugins/tax -p tax --json

A folder in a repository is part of it: only its files are linked, and the project is named after
the repository, where `vade context` and `vade note` look. With -p NAME it is a project of its own.
Files that did not change since are left as they are; links of removed code go. The installed
packages are read, never imported.
""",
)
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("-p", "--project", metavar="NAME", help="Its name; default: that of the repository.")
@click.option(
    "--python",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The interpreter or environment to read; default: .venv of the project.",
)
@click.option("--force", is_flag=True, help="Link unchanged files, too.")
@options
def link_command(
    settings: Settings,
    as_json: bool,
    path: Path,
    project: str | None,
    python: Path | None,
    force: bool,
) -> None:
    """Tie a project's code to the documentation and the APIs of the libraries it uses."""

    async def work(app: "App") -> "LinkReport":
        shown = [0]

        def progress(what: str, done: int, total: int) -> None:
            percent = done * 100 // total
            if sys.stderr.isatty() and (percent != shown[0] or done == total):
                shown[0] = percent
                click.echo(f"\r\033[K{what} {done} of {total} files", nl=done == total, err=True)

        return await app.code.link(
            path,
            project=project,
            python=python,
            force=force,
            progress=progress,
            notice=note,
        )

    report = run(settings, work)
    for text in report.notices:
        note(text)
    for skipped in report.skipped:
        note(f"skipped {skipped.relative}: {skipped.reason}")
    if not report.searchable:
        note("Documents of libraries are not searchable yet: `vade process-queue` goes on.")
    if as_json:
        print_json(report)
        return
    click.echo(
        f"{report.project}: {counted(report.linked, 'file')} linked, {report.unchanged} unchanged,"
        f" {report.removed} removed ({counted(report.lines, 'line')}, {report.seconds:.1f} s)"
    )
    if report.linked:
        click.echo(
            f"{counted(report.calls, 'call')} and {counted(report.imports, 'import')} lead to"
            f" {counted(len(report.libraries), 'library')}; of {counted(report.unresolved, 'call')}"
            " the code does not show the target"
        )
