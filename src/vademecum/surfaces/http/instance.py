"""One server a home: the lock that says so, its tokens, and where it listens.

home/serve/lock         held by flock for the server's life; the kernel frees it, however it ends
home/serve/address      "host port pid cap_ms", written when ready, removed at a clean stop
home/serve/database     which database it serves, as a digest
home/serve/token        opens everything
home/serve/hook-token   opens only /hooks, so that it may stand in a client's settings
home/serve/hooks.log    why hooks had nothing to say
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from vademecum.errors import AlreadyServing, BadInput

LOG_BYTES = 256 * 1024
"""The log of hooks starts anew past this size, keeping one older file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server listens, and the milliseconds a hook may take."""

    host: str
    port: int
    pid: int
    cap_ms: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def folder(home: Path) -> Path:
    """The server's folder under the home, made where it is missing, for its owner only."""
    path = home / "serve"
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadInput(f"{path} cannot be made: {error.strerror}", hint="Set VADE_HOME.") from None
    return path


@contextmanager
def only_one(home: Path) -> Iterator[None]:
    """Hold the lock of this home. Raises AlreadyServing."""
    # Children do not inherit the descriptor (PEP 446), so none can hold the lock after us.
    lock = os.open(folder(home) / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyServing(str(home)) from None
        yield
    finally:
        os.close(lock)


def is_served(home: Path) -> bool:
    """Whether a server holds this home."""
    try:
        lock = os.open(home / "serve" / "lock", os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


@contextmanager
def announced(home: Path, address: Address, *, database: str | None = None) -> Iterator[None]:
    """Tell clients where the server is and what connection string it has, as long as it is
    there."""
    path = folder(home) / "address"
    path.with_name("database").write_text(_digest(database))
    fresh = path.with_suffix(".new")
    fresh.write_text(f"{address.host} {address.port} {address.pid} {address.cap_ms}\n")
    fresh.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def find(home: Path) -> Address | None:
    """The server of this home, if one is running."""
    if not is_served(home):
        return None
    try:
        host, port, pid, cap_ms = (home / "serve" / "address").read_text().split()
        return Address(host=host, port=int(port), pid=int(pid), cap_ms=int(cap_ms))
    except (OSError, ValueError):
        return None


def find_serving(home: Path, database: str | None) -> Address | None:
    """The server of this home, if one is running on the database of a connection string."""
    address = find(home)
    try:
        same = (home / "serve" / "database").read_text() == _digest(database)
    except OSError:
        return None
    return address if same else None


def _digest(database: str | None) -> str:
    return sha256((database or "embedded").encode()).hexdigest()


def token(home: Path, name: str = "token") -> str:
    """The secret of that name, made at its first use; readable by its owner only."""
    path = folder(home) / name
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
    secret = path.read_text().strip()
    if not secret:
        raise BadInput(f"{path} is empty", hint="Delete it: a token is then made anew.")
    return secret


def hook_log(home: Path) -> Path:
    """The log of hooks, begun anew where it has grown too long."""
    path = folder(home) / "hooks.log"
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_suffix(".log.old"))
    return path
