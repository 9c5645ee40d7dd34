"""How far long work is, on stderr: one line that moves on a terminal, a line now and then else."""

import sys
import time

import click

from vademecum.ingest.report import Listener, Progress
from vademecum.surfaces.cli.run import counted

SECONDS_BETWEEN_LINES = 10.0


class ProgressLine:
    """Prints progress until `end`, which leaves the line as it is."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._last = time.monotonic()
        self._shown = False
        self._started = time.monotonic()
        self._reading = self._indexed = ""

    def listener(self) -> Listener:
        return Listener(read=self._read, worked=self._worked, notice=self._notice)

    def end(self) -> None:
        if self._shown and self._terminal:
            click.echo("\r\033[K", nl=False, err=True)
        self._shown = False

    def _read(self, done: int, total: int) -> None:
        self._reading = f"reading {done} of {total} files" if done < total else ""
        self._show()

    def _worked(self, progress: Progress) -> None:
        seconds = time.monotonic() - self._started
        self._indexed = (
            f"indexed {progress.done} of {progress.done + progress.left} documents, "
            f"{counted(progress.chunks, 'chunk')}, {seconds:.0f} s"
        )
        self._show()

    def _notice(self, text: str) -> None:
        self.end()
        click.echo(text, err=True)

    def _show(self) -> None:
        if self._quiet:
            return
        text = ", ".join(filter(None, (self._reading, self._indexed)))
        now = time.monotonic()
        if self._terminal:
            click.echo(f"\r\033[K{text}", nl=False, err=True)
            self._shown = True
        elif now - self._last >= SECONDS_BETWEEN_LINES:
            click.echo(text, err=True)
            self._last = now
