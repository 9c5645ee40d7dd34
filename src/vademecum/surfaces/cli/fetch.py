"""The group fetch: what sources outside know of an API, a package, an error or a topic."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vademecum.errors import BadInput
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import counted, note, options, print_json, run, text_of

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.graph.fetching import FetchReport
    from vademecum.graph.sources.adapter import Subject

_FROM = click.option(
    "--from", "only", multiple=True, metavar="SOURCE", help="Only this source; may be repeated."
)
_LANGUAGE = click.option(
    "--language", default="python", show_default=True, metavar="NAME", help="Its language."
)


@click.group(
    "fetch",
    epilog="""
\b
Examples:
  vade fetch sources
  vade fetch api requests.get
  vade fetch package requests==2.31.0
  vade fetch package left-pad --language javascript
  vade fetch error traceback.txt --package requests
  vade fetch topic "retries with asyncio"

What is fresh is taken as it was kept; else the source's API is asked, then its page; what is old is
used, and said to be, where nobody answers. Private addresses are refused and hosts have their
pauses; where sources are is said in `sources.toml` (docs/graph.md).
""",
)
def fetch_command() -> None:
    """Fetch what sources outside know, into the graph."""


@fetch_command.command("sources", short_help="List the sources and what holds for each.")
@options
def sources(settings: Settings, as_json: bool) -> None:
    """List the sources: what each is asked for, its tier, trust, freshness and filter."""

    async def work(app: "App") -> Any:
        return app.sources.overview()

    found = run(settings, work)
    if as_json:
        print_json({"sources": found})
        return
    for one in found:
        trusts = ", ".join(f"{trust:.2f}" for trust in one.trust)
        click.echo(f"{one.name}: {', '.join(one.kinds)}")
        click.echo(
            f"    {one.tier}, trust {trusts}; fresh for {one.fresh_days} days, looked at again"
            f" after {one.refresh_days}"
        )
        click.echo(f"    takes {one.filter}")


@fetch_command.command(
    "api",
    short_help="The reference of an API.",
    epilog="""
\b
Examples:
  vade fetch api requests.get
  vade fetch api asyncio.run --version 3.12
  vade fetch api yaml.safe_load --package pyyaml
""",
)
@click.argument("name")
@_LANGUAGE
@click.option("--package", default="", metavar="NAME", help="Default: that which is installed.")
@click.option("--version", default="", metavar="V", help="Of the package.")
@_FROM
@options
def api(
    settings: Settings,
    as_json: bool,
    name: str,
    language: str,
    package: str,
    version: str,
    only: tuple[str, ...],
) -> None:
    """Fetch the reference of an API, and of what its page documents beside it.

    The package and version are those of the environment here (.venv) where NAME is of it.
    """
    from vademecum.graph.sources.adapter import Subject

    name = name.strip().removesuffix("()")
    language = language.lower()
    if language == "python" and not package:
        package, installed = _installed(name)
        version = version or installed
    subject = Subject(kind="api", name=name, language=language, package=package, version=version)

    async def work(app: "App") -> Any:
        report = await app.sources.fetch(subject, only=only, progress=_progress(as_json))
        listed = [api for one in report.documents for api in one.apis]
        names = [one for one in listed if one == name or one.endswith(f".{name}")]
        return report, await app.context.find_api(names[0] if names else name)

    report, apis = run(settings, work)
    _tell(report, as_json, apis=apis)


@fetch_command.command(
    "package",
    short_help="A package's versions, readme and changelog.",
    epilog="""
\b
Examples:
  vade fetch package requests
  vade fetch package requests==2.31.0
  vade fetch package left-pad@1.3.0 --language javascript
""",
)
@click.argument("name")
@_LANGUAGE
@_FROM
@options
def package(
    settings: Settings, as_json: bool, name: str, language: str, only: tuple[str, ...]
) -> None:
    """Fetch a package's versions, what is withdrawn, readme, changelog and examples."""
    from vademecum.graph.sources.adapter import Subject

    name, version = _with_version(name.strip(), language.lower())
    subject = Subject(kind="package", name=name, language=language.lower(), version=version)
    _tell(run(settings, _work(subject, only, as_json)), as_json)


@fetch_command.command(
    "error",
    short_help="What solved an error elsewhere.",
    epilog="""
\b
Examples:
  vade fetch error traceback.txt
  pytest 2>&1 | vade fetch error - --package requests
  vade fetch error traceback.txt --repository psf/requests --from github

What is found solves the error from then on: `vade context TASK --error FILE` tells it.
""",
)
@click.argument("file", type=click.File())
@click.option("--package", default="", metavar="NAME", help="Whose repository is asked, too.")
@click.option("--repository", default="", metavar="OWNER/NAME", help="On GitHub.")
@_FROM
@options
def error(
    settings: Settings,
    as_json: bool,
    file: Any,
    package: str,
    repository: str,
    only: tuple[str, ...],
) -> None:
    """Fetch what solved an error: accepted answers, and issues that maintainers answered.

    FILE holds a traceback; - is stdin.
    """
    from vademecum.context.errors import subject_of

    subject = subject_of(text_of(file), package=package, repository=repository)
    _tell(run(settings, _work(subject, only, as_json)), as_json)


@fetch_command.command(
    "topic",
    short_help="Documentation and tutorials about a topic.",
    epilog="""
\b
Examples:
  vade fetch topic "retries with asyncio"
  vade fetch topic "css grid" --language css
  vade fetch topic "managed identity" --language azure
""",
)
@click.argument("text")
@_LANGUAGE
@click.option("--repository", default="", metavar="OWNER/NAME", help="On GitHub.")
@_FROM
@options
def topic(
    settings: Settings,
    as_json: bool,
    text: str,
    language: str,
    repository: str,
    only: tuple[str, ...],
) -> None:
    """Fetch documents about a topic: documentation, tutorials, answers and issues."""
    from vademecum.graph.sources.adapter import Subject

    subject = Subject(kind="topic", name=text, language=language.lower(), repository=repository)
    _tell(run(settings, _work(subject, only, as_json)), as_json)


def _work(subject: "Subject", only: tuple[str, ...], as_json: bool) -> Callable[["App"], Any]:
    return lambda app: app.sources.fetch(subject, only=only, progress=_progress(as_json))


def _progress(as_json: bool) -> Callable[[str], None]:
    return (lambda text: None) if as_json else (lambda text: note(f"{text} …"))


def _tell(report: "FetchReport", as_json: bool, *, apis: Any = ()) -> None:
    """Print what was found; exit code 1 where nothing was."""
    if as_json:
        print_json({"report": report, "apis": apis} if apis else {"report": report})
    else:
        for one in apis:
            _tell_api(one)
        for one in report.documents:
            version = f" {one.version}" if one.version and one.version not in one.title else ""
            click.echo(f"{one.title}{version}  ({one.source}, {one.change}, {one.how})")
            click.echo(f"    {one.source_url}")
            counts = [
                counted(number, word)
                for number, word in (
                    (len(one.apis), "API"),
                    (one.examples, "example"),
                    (one.practices, "practice"),
                    (one.deprecated, "newly deprecated API"),
                )
                if number
            ]
            click.echo(f"    id: {one.id}" + (f"  ({', '.join(counts)})" if counts else ""))
            if one.reason:
                click.echo(f"    as of {one.fetched_at:%Y-%m-%d}, since {one.reason}")
    for notice in report.notices:
        note(notice)
    for failed in report.failed:
        note(f"{failed.source}: {failed.reason}")
    if not report.searchable:
        note("Not searchable yet: `vade serve`, `vade worker` or `vade process-queue` goes on.")
    if not report.documents:
        if not as_json:
            click.echo("Nothing was found.")
        raise click.exceptions.Exit(1)


def _tell_api(one: Any) -> None:
    origin = ", ".join(part for part in (one.source, one.version) if part)
    click.echo(f"{one.title}  [{origin}]")
    if one.warning:
        click.echo(f"  WARNING: {one.warning}")
    for line in one.text.splitlines():
        click.echo(f"  {line}".rstrip())
    if one.url:
        click.echo(f"  {one.url}")
    if one.example:
        click.echo("  Example:")
        for line in one.example.splitlines()[:20]:
            click.echo(f"    {line}")
    click.echo("")


def _with_version(name: str, language: str) -> tuple[str, str]:
    """`requests==2.31`, `left-pad@1.3.0`: the name and the version."""
    mark = "@" if language in ("javascript", "typescript") else "=="
    head, found, version = name[1:].partition(mark)  # a scope begins with @, too
    if found and not version.strip():
        raise BadInput(f"{name} names no version", hint=f"For the newest: {name[:1] + head}")
    return (name[:1] + head, version.strip()) if found else (name, "")


def _installed(name: str) -> tuple[str, str]:
    """The package and version that a name is of in the environment here; '' where it is not."""
    import sys

    from vademecum.graph.sources import environment

    if name.partition(".")[0] in sys.stdlib_module_names:
        return "", ""
    try:
        owner = environment.find(Path.cwd()).package_of(name)
    except BadInput:
        return "", ""
    return (owner.name, owner.version) if owner is not None else ("", "")
