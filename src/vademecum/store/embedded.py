"""The embedded database: PostgreSQL and pgvector from a wheel, under `home/database`.

Whoever needs it starts it and all share it; nobody has to stop it. Who holds which lock, and the
watcher that stops an unused server, are told in `embedded_watch`; its files are made by
`embedded_cluster`, and belong to whom `embedded_user` says.
"""

import asyncio
import logging
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

from vademecum.errors import EmbeddedDatabaseFailed
from vademecum.store import embedded_cluster as files
from vademecum.store import embedded_watch as watch
from vademecum.store.embedded_program import installed_program
from vademecum.store.embedded_user import name_of

START_LIMIT = 30 * 60.0
"""Seconds that a recovery may take. The server goes on after that; only we stop waiting."""
ORPHAN_PATIENCE = 3.0
"""Seconds that backends of a killed server get to end by themselves."""

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedStatus:
    """What there is to know about the server without waking it."""

    running: bool
    ready: bool
    """It accepts connections; a server that is running but not ready recovers from a crash."""
    watched: bool
    """The process that stops an unused server is there."""
    pid: int | None
    folder: Path
    socket_folder: Path | None
    log: Path
    version: str | None
    started_at: datetime | None
    size_bytes: int


class EmbeddedDatabase:
    """The server of one home. Using it keeps it alive as long as this process lives."""

    def __init__(
        self,
        home: Path,
        idle_minutes: float = 15,
        *,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self.home = home.absolute()
        self.folder = self.home / "database"
        self.cluster = self.folder / watch.CLUSTER
        self.log = self.folder / watch.LOG
        self._idle_seconds = idle_minutes * 60
        self._progress = progress
        self._client: int | None = None

    async def start(self) -> str:
        """See to it that the server accepts connections; how to connect, for libpq.

        Fast if it runs already. Raises EmbeddedDatabaseFailed.
        """
        try:
            if not (self._join() and await self._accepts()):
                await self._start_or_wait()
            self._see_to_watcher()
            return self._connection()
        except BaseException as error:
            self.release()
            if isinstance(error, OSError):
                raise _failure(error, self.folder) from error
            raise

    async def stop(self) -> bool:
        """Stop the server, whoever uses it, and wait for its end; False if it was not running."""
        try:
            if not self.folder.is_dir():
                return False
            async with self._start_lock():
                return await _to_its_end(watch.shut_down, self.folder)
        except OSError as error:
            raise _failure(error, self.folder) from error
        finally:
            self.release()

    def release(self) -> None:
        """Use the server no more: from now on it may be stopped for idleness."""
        if self._client is not None:
            os.close(self._client)
            self._client = None

    async def status(self) -> EmbeddedStatus:
        """Never starts anything and creates nothing."""
        try:
            ready = await self._accepts()
            return await asyncio.to_thread(self._describe, ready)
        except OSError as error:
            raise _failure(error, self.folder) from error

    def _describe(self, ready: bool) -> EmbeddedStatus:
        running = self.folder.is_dir() and watch.alive(self.folder)
        postmaster = watch.read_postmaster(self.cluster) if running else None
        return EmbeddedStatus(
            running=running,
            ready=running and ready,
            watched=self.folder.is_dir() and _is_held(self.folder / watch.WATCHER),
            pid=postmaster.pid if postmaster else None,
            folder=self.folder,
            socket_folder=postmaster.socket_folder if postmaster else None,
            log=self.log,
            version=_version() if running else None,
            started_at=datetime.fromtimestamp(postmaster.started, UTC) if postmaster else None,
            size_bytes=_size(self.cluster),
        )

    def _join(self) -> bool:
        """Be known as a client; False while the server is being stopped for idleness."""
        path = self.folder / watch.CLIENTS
        try:
            if self._client is not None and not _same(self._client, path):
                self.release()  # the folder was removed and made anew
            if self._client is None:
                self._client = watch.take(path, shared=True)
            if self._client is None:
                return False
            os.utime(self._client)  # one that comes and goes between two looks counts too
        except FileNotFoundError:
            return False
        return True

    async def _start_or_wait(self) -> None:
        files.make_folders(self.folder)
        async with self._start_lock():
            # The watcher locks out clients only while it holds the start lock, which is ours.
            if not self._join():
                raise FileNotFoundError(f"{self.folder} was removed")
            if await self._settled():
                return
            if not _has_files(self.cluster):
                self._say("creating the database")
                await files.make_cluster(self.folder)
            files.check_version(self.cluster)
            for _ in range(20):
                written = await self._launch()
                if await self._settled():
                    return
                text = _tail(self.log, written)
                # Left by a server without our lock: gone when its last process is.
                if "pre-existing shared memory block" not in text:
                    break
                await asyncio.sleep(1)
            raise EmbeddedDatabaseFailed(
                f"the database does not start:\n{files.last_lines(text)}",
                hint=files.hint_for(text, self.folder),
            )

    async def _launch(self) -> int:
        """Start the server; where its part of the log begins."""
        lock = await self._taken(self.folder / watch.SERVER)
        try:
            watch.bound_log(self.log)
            written = self.log.stat().st_size if self.log.exists() else 0
            await _to_its_end(files.start_server, self.folder, lock, self.log)
        finally:
            os.close(lock)
        return written

    async def _settled(self) -> bool:
        """Wait until the server accepts connections (True) or no process of it is left."""
        began = told = looked = time.monotonic()
        pause = 0.005
        while True:
            if await self._accepts():
                return True
            if not watch.alive(self.folder):
                return False
            now = time.monotonic()
            if now - began > START_LIMIT:
                raise EmbeddedDatabaseFailed(
                    f"the database is not ready after {START_LIMIT / 60:.0f} minutes",
                    hint=f"It goes on recovering; see {self.log} and try again later.",
                )
            if now - told > 5:
                told = now
                self._say(f"the database is not ready yet ({now - began:.0f} s): {self._doing()}")
            if now - began > ORPHAN_PATIENCE and now - looked > 1:
                looked = now
                await _to_its_end(self._clear_obstacles, now - began)
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, 0.25)

    def _clear_obstacles(self, waited: float) -> None:
        """End what cannot become a server: backends without one, one without its socket."""
        ours = watch.processes(self.cluster)
        if not ours and waited > 60:
            raise EmbeddedDatabaseFailed(
                f"{self.folder} is in use by processes that cannot be seen from here",
                hint="Does another container use this folder? Stop the database there.",
            )
        postmaster = watch.read_postmaster(self.cluster)
        if ours and not any(watch.is_postmaster(line) for line in ours.values()):
            hard = waited > 2 * ORPHAN_PATIENCE
            watch.send(self.cluster, signal.SIGKILL if hard else signal.SIGQUIT)
        elif postmaster and postmaster.state == "ready" and not watch.listens(self.cluster):
            watch.shut_down(self.folder)  # its socket was removed

    def _doing(self) -> str:
        postmaster = watch.read_postmaster(self.cluster)
        state = postmaster.state if postmaster else ""
        return "it stops" if state == "stopping" else "it starts or recovers from a crash"

    async def _accepts(self) -> bool:
        """Ask as a client would: after a crash `ready` in its file may be out of date."""
        postmaster = watch.read_postmaster(self.cluster)
        if postmaster is None or postmaster.state != "ready":
            return False
        with socket.socket(socket.AF_UNIX) as client:
            client.setblocking(False)
            try:
                client.connect(watch.socket_path(postmaster))
                if watch.peer(client) not in (0, postmaster.pid):
                    return False
                answer = await asyncio.wait_for(_greet(client), 5)
            except BlockingIOError:
                return True  # so many clients that its queue is full
            except (OSError, TimeoutError):
                return False
        if answer[:1] == b"E" and b"C28" in answer:
            reason = answer.partition(b"\0M")[2].partition(b"\0")[0].decode("utf-8", "replace")
            raise EmbeddedDatabaseFailed(
                f"the database refuses this user: {reason}",
                hint=(
                    "Stop it with `vade db stop`; its next start lets you in."
                    if name_of(os.geteuid())
                    else files.NAMELESS
                ),
            )
        return answer[:1] == b"R" or b"C53300\0" in answer

    def _connection(self) -> str:
        postmaster = watch.read_postmaster(self.cluster)
        if postmaster is None:
            raise EmbeddedDatabaseFailed("the database was stopped while it started")
        host = str(postmaster.socket_folder).replace("\\", "\\\\").replace("'", "\\'")
        return f"host='{host}' port=5432 user={files.ROLE} dbname=postgres"

    def _see_to_watcher(self) -> None:
        lock = watch.take(self.folder / watch.WATCHER)
        if lock is None:
            return
        try:
            if not sys.executable:
                logger.warning(
                    "no Python to run the watcher: stop the database with `vade db stop`"
                )
                return
            files.start_watcher(self.folder, self._idle_seconds, watch.__file__, lock)
        finally:
            os.close(lock)

    @asynccontextmanager
    async def _start_lock(self) -> AsyncIterator[None]:
        lock = await self._taken(self.folder / watch.START)
        try:
            yield
        finally:
            os.close(lock)

    async def _taken(self, path: Path) -> int:
        told = time.monotonic()
        while (lock := watch.take(path)) is None:
            if time.monotonic() - told > 5:
                told = time.monotonic()
                self._say("waiting for another process that starts or stops the database")
            await asyncio.sleep(0.02)
        return lock

    def _say(self, message: str) -> None:
        logger.info(message)
        if self._progress is not None:
            self._progress(message)


async def _to_its_end(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call it in a thread. If we are cancelled it still ends before our locks are let go."""
    call = asyncio.ensure_future(asyncio.to_thread(function, *arguments, **named))
    try:
        return await asyncio.shield(call)
    finally:
        await asyncio.wait([call])


async def _greet(client: socket.socket) -> bytes:
    """Log in and out. The answer is read to its end, else the server logs a lost connection."""
    loop = asyncio.get_running_loop()
    body = b"user\0%b\0database\0postgres\0\0" % files.ROLE.encode()
    await loop.sock_sendall(client, struct.pack("!ii", len(body) + 8, 3 << 16) + body)
    answer = b""
    while part := await loop.sock_recv(client, 4096):
        answer += part
        if answer.endswith(b"Z\0\0\0\5I"):
            await loop.sock_sendall(client, b"X\0\0\0\4")
            break
    return answer


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _is_held(path: Path) -> bool:
    lock = watch.take(path)
    if lock is not None:
        os.close(lock)
    return lock is None


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


def _size(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(path, name).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def _version() -> str:
    program = installed_program() / "bin" / "postgres"
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.split()[-1]


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(min(start, size), size - 64 * 1024))
        return file.read().decode("utf-8", "replace")


def _failure(error: OSError, folder: Path) -> EmbeddedDatabaseFailed:
    return EmbeddedDatabaseFailed(
        f"the embedded database failed: {error}", hint=files.hint_for(str(error), folder)
    )
