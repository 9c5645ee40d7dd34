"""profile: list, show, check."""

from pathlib import Path

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import options, print_json


@click.group("profile")
def profile_command() -> None:
    """Profiles: how the documents of a collection are split, and what they can be filtered by."""


@profile_command.command("list")
@options
def list_profiles(settings: Settings, as_json: bool) -> None:
    """List the profiles that come with Vademecum, and their facets."""
    from vademecum.profiles.profile import load_profile, profile_names

    profiles = [load_profile(name) for name in profile_names()]
    if as_json:
        print_json({p.name: {f.name: f.described() for f in p.facets} for p in profiles})
        return
    for profile in profiles:
        click.secho(profile.name, bold=True)
        chunks = profile.chunks
        click.echo(f"  chunks of {chunks.max_tokens} tokens, {chunks.overlap_tokens} shared")
        for facet in profile.facets:
            required = ", required" if facet.required else ""
            click.echo(f"  {facet.name}: {facet.described()}{required}")


@profile_command.command(
    "show",
    epilog="""
\b
Example:
  vade profile show course > my-book.toml
""",
)
@click.argument("name")
@options
def show_profile(settings: Settings, as_json: bool, name: str) -> None:
    """Print the declaration of a profile, as a start for one's own."""
    from vademecum.profiles.profile import declaration

    text = declaration(name)
    if as_json:
        print_json({"name": name, "declaration": text})
    else:
        click.echo(text, nl=False)


@profile_command.command(
    "check",
    epilog="""
\b
Example:
  vade profile check my-book.toml && vade bulk-index ./book --profile my-book.toml
""",
)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@options
def check_profile(settings: Settings, as_json: bool, file: Path) -> None:
    """Say what is wrong with a profile in TOML, by line."""
    from vademecum.errors import BadProfile
    from vademecum.profiles.profile import load_profile, read_profile

    try:
        name, text = read_profile(file)
    except BadProfile as error:
        if as_json:
            mistakes = [{"line": line, "mistake": told} for line, told in error.mistakes]
            print_json({"file": str(file), "mistakes": mistakes})
        else:
            click.echo(str(error), err=True)
        raise click.exceptions.Exit(error.exit_code) from None
    if as_json:
        print_json({"file": str(file), "mistakes": []})
        return
    facets = load_profile(name, text).facets
    click.echo(f"{file}: good, {len(facets)} facets")
    for facet in facets:
        click.echo(f"  {facet.name}: {facet.described()}{', required' if facet.required else ''}")
