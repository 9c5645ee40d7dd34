"""A primary and its read replica, by PostgreSQL's own streaming replication."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from vademecum.store.embedded_program import installed_program, program_for
from vademecum.store.embedded_user import User, named, private_user

DATABASE = "library"


class Server:
    """One of the two, on a Unix socket beside the folder of its data."""

    def __init__(self, folder: Path, port: int, user: User | None) -> None:
        self.folder = folder
        self._address = f"host={folder.parent} port={port} user=postgres"
        self._port = port
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"{self._address} dbname={DATABASE}"

    @property
    def own_url(self) -> str:
        """Of the database that every server has."""
        return f"{self._address} dbname=postgres"

    def run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [program_for(self._user) / "bin" / program, "-D", self.folder, *arguments],
            check=True, stdout=subprocess.DEVNULL, cwd="/", **_as(self._user),
        )  # fmt: skip

    def start(self) -> None:
        settings = {
            "listen_addresses": "", "unix_socket_directories": str(self.folder.parent),
            "port": self._port, "fsync": "off", "wal_level": "replica",
            "shared_buffers": "16MB", "dynamic_shared_memory_type": "mmap",
        }  # fmt: skip
        log = (self.folder.parent / f"{self.folder.name}.log").open("ab")
        self._process = subprocess.Popen(
            [
                program_for(self._user) / "bin" / "postgres", "-D", self.folder,
                *(f"--{name}={value}" for name, value in settings.items()),
            ],
            stdout=log, stderr=log, cwd="/", **_as(self._user),
        )  # fmt: skip
        log.close()
        for _ in range(600):
            try:
                psycopg.connect(self.own_url).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise TimeoutError(Path(log.name).read_text())

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            (self.folder / "postmaster.pid").unlink(missing_ok=True)

    def hang(self) -> None:
        """Let all its processes stand still."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        children = subprocess.run(
            ["pgrep", "-P", str(self._process.pid)], capture_output=True, text=True, check=True
        )
        for process in (self._process.pid, *map(int, children.stdout.split())):
            os.kill(process, number)

    def ask(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def replicated() -> Iterator[tuple[Server, Server]]:
    """The primary with an empty database, and a replica that follows it."""
    above = Path(tempfile.mkdtemp(prefix="vade-"))  # short: a socket's path has 107 bytes
    user = None
    if os.geteuid() == 0:
        user = named(private_user(above, str(above)))
        os.chown(above, user.uid, user.gid)
    primary = Server(above / "primary", 5432, user)
    replica = Server(above / "replica", 5433, user)
    try:
        primary.run("initdb", "-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions")
        primary.start()
        with psycopg.connect(primary.own_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}".encode())
        subprocess.run(
            [
                installed_program() / "bin" / "pg_basebackup", "-d", primary.own_url,
                "-D", replica.folder, "--write-recovery-conf",
                "--checkpoint=fast", "--no-sync",
            ],
            check=True,
        )  # fmt: skip
        if user is not None:
            for path in (replica.folder, *replica.folder.rglob("*")):
                os.chown(path, user.uid, user.gid)
        replica.start()
        yield primary, replica
    finally:
        replica.stop()
        primary.stop()
        shutil.rmtree(above, ignore_errors=True)


def _as(user: User | None) -> dict[str, object]:
    return {} if user is None else {"user": user.uid, "group": user.gid, "extra_groups": []}
