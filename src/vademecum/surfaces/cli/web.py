"""check-url, read-page, store-page and refresh: the cache of the web."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run
from vademecum.surfaces.cli.served import answer_of_server

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.cache.refresh import RefreshReport
    from vademecum.cache.serve import CacheResult

project_option = click.option("--project", metavar="NAME", help="The project that asks.")
budget_option = click.option(
    "--budget", type=int, metavar="TOKENS", help="Most tokens to print; 6000 if no rule says."
)


@click.command(
    "check-url",
    epilog="""
\b
Examples:
  vade check-url https://docs.python.org/3/library/asyncio.html
  vade check-url https://example.com/guide --prompt "which port" --json

\b
Prints the page, or CACHE_MISS where it is not stored.
""",
)
@click.argument("url")
@click.option("--prompt", metavar="P", help="What is wanted of the page.")
@project_option
@budget_option
@options
def check_url_command(
    settings: Settings,
    as_json: bool,
    url: str,
    prompt: str | None,
    project: str | None,
    budget: int | None,
) -> None:
    """Look for a page in the cache before fetching it."""

    async def work(app: "App") -> "CacheResult":
        return await app.cache.check(url, prompt=prompt, project=project, budget_tokens=budget)

    asked = {"url": url, "prompt": prompt, "project": project, "budget_tokens": budget}
    result = answer_of_server(settings, "/cache/check", asked) or asdict(run(settings, work))
    if as_json:
        print_json(result)
    elif result["outcome"] in ("miss", "pass"):
        click.echo("CACHE_MISS")
        note(f"{result['url']}: {result['reason']}")
    else:
        click.echo(result["text"])


@click.command(
    "read-page",
    epilog="""
\b
Examples:
  vade read-page https://example.com/guide --section "Installation"
  vade read-page https://example.com/guide --offset 24000
""",
)
@click.argument("url")
@click.option("--section", metavar="HEADING", help="Where to begin.")
@click.option("--offset", type=int, default=0, metavar="N", help="Or at so many characters.")
@project_option
@budget_option
@options
def read_page_command(
    settings: Settings,
    as_json: bool,
    url: str,
    section: str | None,
    offset: int,
    project: str | None,
    budget: int | None,
) -> None:
    """Read on in a stored page."""

    async def work(app: "App") -> "CacheResult":
        return await app.cache.read_page(
            url, section=section, offset=offset, budget_tokens=budget, project=project
        )

    asked = {
        "url": url,
        "section": section,
        "offset": offset,
        "project": project,
        "budget_tokens": budget,
    }
    result = answer_of_server(settings, "/cache/read", asked) or asdict(run(settings, work))
    if as_json:
        print_json(result)
    else:
        click.echo(result["text"])


@click.command(
    "store-page",
    epilog="""
\b
Examples:
  vade store-page https://example.com/guide
  vade store-page https://example.com/guide --content page.md
  some-command | vade store-page https://example.com/guide --content -
""",
)
@click.argument("url")
@click.option("--content", metavar="FILE", help="Markdown to store instead of a fetch; - is stdin.")
@project_option
@options
def store_page_command(
    settings: Settings, as_json: bool, url: str, content: str | None, project: str | None
) -> None:
    """Fetch a page and store it in the cache."""
    text = _content(content) if content is not None else None

    async def work(app: "App") -> str:
        stored = await app.cache.store_page(url, content=text, project=project)
        await app.process_queue()
        return stored

    stored = run(settings, work)
    if as_json:
        print_json({"url": url, "action": stored})
    else:
        click.echo(f"{url}: {stored}")


@click.command(
    "refresh",
    epilog="""
\b
Examples:
  vade refresh
  vade refresh --older-than 7d
""",
)
@click.option(
    "--older-than", default="0s", metavar="D", help="Only pages not verified for so long."
)
@options
def refresh_command(settings: Settings, as_json: bool, older_than: str) -> None:
    """Look again at every stored page, and update those that differ."""

    async def work(app: "App") -> "RefreshReport":
        from vademecum.cache.rules import duration

        report = await app.cache.refresh(duration(older_than, name="--older-than"))
        await app.process_queue()
        return report

    report = run(settings, work)
    if as_json:
        print_json(report)
    else:
        click.echo(f"{report.updated} updated, {report.unchanged} unchanged")
        for url, reason in report.failed:
            note(f"{url}: {reason}; its old content is kept")
    if report.failed:
        sys.exit(1)


def _content(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{name} cannot be read: {error}") from error
