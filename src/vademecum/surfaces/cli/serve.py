"""serve, worker, openapi, token."""

import asyncio
from typing import TYPE_CHECKING

import click

from vademecum.errors import BadInput, Interrupted
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json, run, stoppable

if TYPE_CHECKING:
    from vademecum.app import App


@click.command(
    "serve",
    epilog="""
\b
Examples:
  vade serve
  vade serve --port 0 --idle-exit 30
  vade serve --host 0.0.0.0 --expose --name vade.example.org
""",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=int, help="Default: VADE_PORT, 8233. 0 is any free port.")
@click.option("--expose", is_flag=True, help="Allow an address that other machines can reach.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A host name of the server.")
@click.option(
    "--workers", type=click.IntRange(0, 16), default=1, show_default=True, help="In this process."
)
@click.option(
    "--idle-exit",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="End after so long without a request or work.",
)
@options
def serve_command(
    settings: Settings,
    as_json: bool,
    host: str,
    port: int | None,
    expose: bool,
    names: tuple[str, ...],
    workers: int,
    idle_exit: float | None,
) -> None:
    """Serve the HTTP API and the hooks of agents, and work off jobs, until stopped.

    Listens on loopback, and every call needs the token that `vade token` prints. There is one
    server for each home.
    """
    try:
        with stoppable():
            _serve(settings, host, port, expose, names, workers, idle_exit)
    except Interrupted:  # before there was anything to stop
        note("stopped")
    if as_json:
        print_json({"stopped": True})


def _serve(
    settings: Settings,
    host: str,
    port: int | None,
    expose: bool,
    names: tuple[str, ...],
    workers: int,
    idle_exit: float | None,
) -> None:
    from vademecum.surfaces.http.serve import Serving, serve

    serving = Serving(
        host=host,
        port=settings.port if port is None else port,
        expose=expose,
        names=names,
        workers=workers,
        idle_exit=idle_exit,
    )
    asyncio.run(serve(settings, serving, notice=note))


@click.command(
    "worker",
    epilog="""
\b
Examples:
  vade worker
  vade --database postgresql://user@host/name worker
""",
)
@options
def worker_command(settings: Settings, as_json: bool) -> None:
    """Work off jobs as they come, until stopped; any number of workers, on any machine."""

    async def work(app: "App") -> None:
        from vademecum.ingest.report import Listener

        note(f"working for {app.database.shown}")
        await app.work(listener=Listener(notice=note))

    try:
        run(settings, work)
    except Interrupted:  # how a worker is meant to end
        note("stopped")
    if as_json:
        print_json({"stopped": True})


@click.command(
    "openapi",
    epilog="""
\b
Example:
  vade openapi > openapi.json
""",
)
@options
def openapi_command(settings: Settings, as_json: bool) -> None:
    """Print the description of the HTTP API as JSON."""
    from vademecum.surfaces.http.api import create_api

    print_json(create_api(None).openapi())


@click.command(
    "token",
    epilog="""
\b
Example:
  curl -H "Authorization: Bearer $(vade token)" http://127.0.0.1:8233/status
""",
)
@click.option("--hooks", is_flag=True, help="The one that opens only the hooks.")
@options
def token_command(settings: Settings, as_json: bool, hooks: bool) -> None:
    """Print the token that opens the HTTP API of this home, made at its first use."""
    from vademecum.surfaces.http.instance import token

    try:
        secret = token(settings.home, "hook-token" if hooks else "token")
    except OSError as error:
        raise BadInput(f"the token cannot be read: {error}") from None
    if as_json:
        print_json({"token": secret})
    else:
        click.echo(secret)
