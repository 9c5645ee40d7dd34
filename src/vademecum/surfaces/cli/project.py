"""Which project a command is about."""

from pathlib import Path

import click


def here() -> str:
    """The name of the folder of the repository around us, else of our folder."""
    from vademecum.graph.project import project_folder

    return project_folder(Path.cwd()).name or "root"


PROJECT = click.option(
    "-p",
    "--project",
    metavar="NAME",
    help="Default: the folder of the repository we are in.",
    callback=lambda context, option, given: given or here(),
)
"""The name given, else that of `here`."""
