"""Which project a command is about."""

from pathlib import Path

import click

PROJECT = click.option(
    "-p", "--project", metavar="NAME", help="Default: the folder of the repository we are in."
)


def project_name(given: str | None) -> str:
    """The name given, else that of the folder of the repository around us, else of our folder."""
    if given:
        return given
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / ".git").exists():
            return folder.name
    return here.name or "root"
