"""What every command shares: its options, how it runs, how it prints and how it fails."""

import asyncio
import functools
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, NoReturn, TypeVar
from uuid import UUID

import click

from vademecum.errors import BadInput, Interrupted, VadeError
from vademecum.settings import Settings, load_settings

if TYPE_CHECKING:
    from vademecum.app import App

Command = Callable[..., Any]
Result = TypeVar("Result")
COLLECTION = click.option(
    "-c", "--collection", "--repo", metavar="NAME", help="The collection to use."
)


def options(command: Command) -> Command:
    """--json and --database, and errors as one line on stderr with what to do about them."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
    @click.option("--database", metavar="URL", help="PostgreSQL instead of the embedded one.")
    @click.pass_context
    @functools.wraps(command)
    def wrapped(ctx: click.Context, /, database: str | None, **values: Any) -> None:
        as_json = bool(values["as_json"])
        try:
            command(settings=load_settings(database_url=database or ctx.obj), **values)
            sys.stdout.flush()
        except BrokenPipeError:
            _leave_closed_pipe()
        except VadeError as error:
            fail(error, as_json=as_json)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            # Ours to mend: shown in one line, and whole for whoever wants to report it.
            if os.environ.get("PYTHONDEVMODE") or sys.flags.dev_mode:
                raise
            unexpected = VadeError(
                f"unexpected {type(error).__name__}: {error}",
                hint="This is a bug. Run it again with PYTHONDEVMODE=1 for the details to report.",
            )
            fail(unexpected, as_json=as_json)

    return wrapped


def counted(number: int, word: str) -> str:
    """`1 document`, `2 documents`, `2 libraries`."""
    if number == 1:
        return f"1 {word}"
    return f"{number} {word[:-1]}ies" if word.endswith("y") else f"{number} {word}s"


def fail(error: VadeError, *, as_json: bool) -> NoReturn:
    """Print the error and leave with its exit code."""
    if as_json:
        print_json({"error": type(error).__name__, "message": str(error), "hint": error.hint})
    click.echo(f"vade: {error}", err=True)
    if error.hint:
        click.echo(f"      {error.hint}", err=True)
    sys.exit(error.exit_code)


def _leave_closed_pipe() -> NoReturn:
    """Whoever read our output has seen enough, as `head` does: end as other commands do."""
    # What is still in the buffer would be complained about at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def run(settings: Settings, work: Callable[["App"], Awaitable[Result]]) -> Result:
    """Open the app and do the work; Ctrl-C and SIGTERM end it in good order."""
    with stoppable():
        return asyncio.run(_run(settings, work))


@contextmanager
def stoppable() -> Iterator[None]:
    """Until the event loop listens to signals itself, they end the command by Interrupted."""

    def stop(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt  # a module that is being imported may catch any Exception

    def lost(raised: "sys.UnraisableHookArgs") -> None:
        """In a callback, such as the import system has, nobody can catch it: asked for again."""
        if isinstance(raised.exc_value, KeyboardInterrupt):
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM)).start()
        else:
            sys.__unraisablehook__(raised)

    sys.unraisablehook = lost
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted from None


async def _run(settings: Settings, work: Callable[["App"], Awaitable[Result]]) -> Result:
    from vademecum.app import App

    # A lost connection is told by the error it leads to, not by the driver on the side.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        async with App.open(settings, notice=note) as app:
            return await work(app)
    except asyncio.CancelledError:
        raise Interrupted from None


def note(text: str) -> None:
    """A word to the person at the terminal; never on stdout."""
    click.echo(text, err=True)


def text_of(file: IO[str]) -> str:
    """What is in a file that the user named, or on stdin. Raises BadInput."""
    try:
        return file.read()
    except UnicodeDecodeError:
        raise BadInput(
            f"{file.name} is not text in UTF-8", hint="Convert it, or name another file."
        ) from None


def print_json(value: object) -> None:
    click.echo(json.dumps(value, default=_plain, ensure_ascii=False, indent=2))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
