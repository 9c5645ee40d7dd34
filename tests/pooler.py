"""What stands between us and a server: a proxy that can be cut, and PgBouncer."""

import asyncio
import contextlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")


class Proxy:
    """A TCP port that leads to the Unix socket of a server, for as long as it is let.

    It runs in a thread with a loop of its own, so that tests may block.
    """

    def __init__(self, server: str) -> None:
        parts = conninfo_to_dict(server)
        self._target = f"{parts['host']}/.s.PGSQL.{parts.get('port', 5432)}"
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._listening: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever)
        self.port = 0

    def start(self) -> None:
        self._thread.start()
        self.listen()

    def stop(self) -> None:
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def listen(self) -> None:
        """Take connections, on the same port as before."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def cut(self) -> None:
        """Drop every connection and refuse others."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    def drop(self) -> None:
        """Drop every connection, and take others."""
        asyncio.run_coroutine_threadsafe(self._drop(), self._loop).result(10)

    async def _listen(self) -> None:
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def _cut(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        await self._drop()

    async def _drop(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()
        while self._open:
            await asyncio.sleep(0.005)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_unix_connection(self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, server_writer}
        await asyncio.gather(_pass_on(reader, server_writer), _pass_on(server_reader, writer))
        for end in (writer, server_writer):
            end.transport.abort()
            self._open.discard(end)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while received := await reader.read(65536):
            writer.write(received)
            await writer.drain()
    writer.transport.abort()


@contextmanager
def proxied(server: str) -> Iterator[Proxy]:
    """A proxy before the server of a connection string."""
    proxy = Proxy(server)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()


@contextmanager
def pgbouncer(server: str, folder: Path) -> Iterator[int]:
    """The port of a PgBouncer in transaction mode before the server, for every database of it."""
    assert PGBOUNCER is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # It may not run as root, and another user may not pass the socket's authentication.
    with proxied(server) as proxy:
        settings = folder / "pgbouncer.ini"
        user = conninfo_to_dict(server).get("user", "postgres")
        settings.write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={proxy.port} user={user}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            "auth_type = any\npool_mode = transaction\nmax_client_conn = 500\n"
            "default_pool_size = 20\nserver_idle_timeout = 5\nserver_login_retry = 1\n"
        )
        with (folder / "pgbouncer.log").open("wb") as log:
            process = subprocess.Popen([PGBOUNCER, "-u", "nobody", settings], stderr=log)
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.kill()
            process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(500):
        assert process.poll() is None, "pgbouncer ended"
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.02)
    raise AssertionError("pgbouncer does not listen")


def by_port(url: str, port: int) -> str:
    """The same database by another way."""
    return psycopg.conninfo.make_conninfo(url, host="127.0.0.1", port=port)
