"""report: how the cache does, against its measurement plan."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.cache.report import Report


@click.command(
    "report",
    epilog="""
\b
Examples:
  vade report
  vade report --last 24h --html report.html
  vade report --json
""",
)
@click.option(
    "--last", default="7d", metavar="D", help="The period: 30m, 24h, 7d.", show_default=True
)
@click.option("--html", metavar="FILE", help="Also write a page with pictures over time.")
@options
def report_command(settings: Settings, as_json: bool, last: str, html: str | None) -> None:
    """Show the cache's metrics, their targets and the verdicts."""

    async def work(app: "App") -> "Report":
        from vademecum.cache.rules import duration

        return await app.cache.report(duration(last, name="--last"))

    found = run(settings, work)
    if html is not None:
        from vademecum.surfaces.report_page import page

        try:
            Path(html).write_text(page(found), encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{html} cannot be written: {error.strerror}") from error
        note(f"Written to {html}.")
    if as_json:
        print_json(found)
        return
    rows = [("metric", "target", "measured", "verdict")]
    rows += [(m.name, m.target, m.measured, m.verdict) for m in found.metrics]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)))
