"""The embedded server seen from outside: does it live, whose is it, stop it, stop it when unused.

Run by its path it is the watcher, a small process that outlives the command that started it
(`python -I -S embedded_watch.py FOLDER IDLE_SECONDS LOCK`). Hence the standard library only.

Four locks (flock) say who is there. The kernel releases them however a process dies, and they
hold between containers that share a folder, where process ids mean nothing:

    start.lock     exclusive, while a process starts or stops the server
    server.lock    exclusive, inherited by the server and all its children: held while one lives
    clients.lock   shared, by every process that uses the server; touched when one comes
    watcher.lock   exclusive, inherited by the watcher
"""

import contextlib
import fcntl
import hashlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

START, SERVER, CLIENTS, WATCHER = "start.lock", "server.lock", "clients.lock", "watcher.lock"
CLUSTER, LOG = "cluster", "server.log"
LOG_BYTES, LOG_KEPT = 8 * 1024 * 1024, 1024 * 1024
HAS_PROC = Path("/proc/self/cmdline").exists()


class Postmaster(NamedTuple):
    """What the server wrote about itself into postmaster.pid. It may be long dead."""

    pid: int
    started: int
    socket_folder: Path
    state: str
    """`starting`, `ready`, `stopping`; empty in the first milliseconds."""


def take(path: Path, *, shared: bool = False) -> int | None:
    """Lock a file, or None if another holds it. Closing the descriptor lets go."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        belong_like(path.parent, descriptor)
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def belong_like(folder: Path, made: Path | int) -> None:
    """What root makes in another user's folder is that user's, who would be locked out else."""
    if os.geteuid() == 0:
        owner = folder.stat()
        if owner.st_uid != 0:
            os.chown(made, owner.st_uid, owner.st_gid)


def read_postmaster(cluster: Path) -> Postmaster | None:
    try:
        lines = (cluster / "postmaster.pid").read_text("utf-8", "surrogateescape").splitlines()
        # A single-user session writes its id with a minus.
        pid, started = abs(int(lines[0])), int(lines[2])
    except (FileNotFoundError, NotADirectoryError, IndexError, ValueError):
        return None
    lines += [""] * (8 - len(lines))
    return Postmaster(pid, started, cluster / lines[4], lines[7].strip())


def marker(cluster: Path) -> str:
    """A word in the command line of every process of this cluster's server and of no other."""
    try:
        with (cluster / "global" / "pg_control").open("rb") as control:
            identity = control.read(8)  # the same in a copy of the cluster
    except FileNotFoundError:
        identity = b""
    place = cluster.stat()  # the same again once a folder is removed
    identity += struct.pack("=QQ", place.st_dev & 2**64 - 1, place.st_ino)
    return f"vade-{hashlib.blake2b(identity, digest_size=5).hexdigest()}"


def processes(cluster: Path) -> dict[int, str]:
    """Command lines of the server's processes. One that ended has none, even if not yet reaped."""
    word = marker(cluster)
    ends = ("=" + word, " " + word + ":")
    lines = _command_lines() if HAS_PROC else _command_lines_by_ps()
    return {pid: line for pid, line in lines.items() if any(f"{end} " in line for end in ends)}


def is_postmaster(command_line: str) -> bool:
    return "cluster_name=" in command_line


def _command_lines() -> dict[int, str]:
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                raw = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            found[int(folder.name)] = raw.replace(b"\0", b" ").decode("utf-8", "replace") + " "
    return found


def _command_lines_by_ps() -> dict[int, str]:
    answer = subprocess.run(
        ["ps", "-axww", "-o", "pid=,args="], capture_output=True, text=True, errors="replace"
    )
    rows = (line.split(None, 1) for line in answer.stdout.splitlines())
    return {int(row[0]): row[1] + " " for row in rows if len(row) == 2}


def socket_path(postmaster: Postmaster) -> str:
    return str(postmaster.socket_folder / ".s.PGSQL.5432")


def peer(connected: socket.socket) -> int:
    """The process id of the server that opened the socket; 0 where it cannot be known."""
    if hasattr(socket, "SO_PEERCRED"):
        answer = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("3i", answer)[0])
    if sys.platform == "darwin":
        return int(connected.getsockopt(0, 2))  # SOL_LOCAL, LOCAL_PEERPID
    return 0


def listens(cluster: Path) -> bool:
    """Whether the process of postmaster.pid is the one that has the socket open."""
    postmaster = read_postmaster(cluster)
    if postmaster is None:
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(socket_path(postmaster))
        except BlockingIOError:
            return True  # so busy that its queue is full
        except OSError:
            return False
        return peer(probe) in (0, postmaster.pid)


def alive(folder: Path) -> bool:
    """Whether any process of the server is left, be it an orphan of a killed server."""
    lock = take(folder / SERVER)
    if lock is None:
        return True
    try:
        return listens(folder / CLUSTER)  # started by hand, without our locks
    finally:
        os.close(lock)


def shut_down(folder: Path, patience: float = 30.0) -> bool:
    """Stop the server and wait for its last process; False if there was none.

    Call it with start.lock held. Raises TimeoutError if the server outlives everything.
    """
    if not alive(folder):
        return False
    postmaster = read_postmaster(folder / CLUSTER)
    for number, seconds in (
        (signal.SIGINT, patience),  # fast: roll back, write a checkpoint
        (signal.SIGQUIT, 10.0),  # immediate: the next start recovers
        (signal.SIGKILL, 10.0),
    ):
        send(folder / CLUSTER, number)
        if _gone(folder, seconds):
            _remove_socket_folder(folder / CLUSTER, postmaster)
            return True
    raise TimeoutError("the server does not stop")


def _remove_socket_folder(cluster: Path, postmaster: Postmaster | None) -> None:
    if postmaster is not None and postmaster.socket_folder != cluster:
        with contextlib.suppress(OSError):
            postmaster.socket_folder.rmdir()


def send(cluster: Path, number: signal.Signals) -> None:
    """Signal the server. Whatever is signalled has been recognised as ours just before."""
    ours = processes(cluster)
    targets = [pid for pid, line in ours.items() if is_postmaster(line)]
    postmaster = read_postmaster(cluster)
    if not targets and postmaster is not None and listens(cluster):
        targets = [postmaster.pid]
    if not targets or number == signal.SIGKILL:
        targets += [pid for pid in ours if pid not in targets]
    for pid in targets:
        _signal(cluster, pid, number)


def _signal(cluster: Path, pid: int, number: signal.Signals) -> None:
    try:
        if sys.platform != "linux":
            os.kill(pid, number)
            return
        handle = os.pidfd_open(pid)
        try:  # with the handle open the id cannot pass to another process, so look again
            if pid in processes(cluster) or listens(cluster):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except ProcessLookupError:
        pass


def _gone(folder: Path, seconds: float) -> bool:
    end = time.monotonic() + seconds
    pause = 0.005
    while alive(folder):
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)
    return True


def watch(folder: Path, idle_seconds: float, lock: int) -> None:
    """Stop the server once nobody has used it for so long; end when it is gone."""
    tick = min(30.0, max(0.1, idle_seconds / 4))
    used, touched = time.monotonic(), 0
    while True:
        _wait(folder / CLUSTER, tick)
        bound_log(folder / LOG)
        start = take(folder / START)
        if start is None:  # someone starts it or stops it
            used = time.monotonic()
            continue
        clients = take(folder / CLIENTS)
        try:
            before, touched = touched, (folder / CLIENTS).stat().st_mtime_ns
            in_use = clients is None or touched != before or _has_clients(folder / CLUSTER)
            if in_use:
                used = time.monotonic()
            idle = not in_use and time.monotonic() - used >= idle_seconds
            if not alive(folder) or (idle and shut_down(folder)):
                # Before start.lock: who gets that next must see that there is no watcher.
                os.close(lock)
                return
        finally:
            if clients is not None:
                os.close(clients)
            os.close(start)


def _wait(cluster: Path, seconds: float) -> None:
    """Sleep, but wake when the server dies."""
    postmaster = read_postmaster(cluster)
    if sys.platform == "linux" and postmaster is not None:
        try:
            handle = os.pidfd_open(postmaster.pid)
        except OSError:
            pass
        else:
            try:
                if select.select([handle], [], [], seconds)[0]:
                    time.sleep(0.1)
            finally:
                os.close(handle)
            return
    time.sleep(min(seconds, 1.0) if postmaster is None else seconds)


def _has_clients(cluster: Path) -> bool:
    """Whether someone is connected who holds no lock, such as psql."""
    return any("[local]" in line for line in processes(cluster).values())


def bound_log(log: Path) -> None:
    """Keep the log small. The server appends, so its file can be cut under it."""
    try:
        size = log.stat().st_size
        if size <= LOG_BYTES:
            return
        with log.open("rb") as old:
            old.seek(size - LOG_KEPT)
            kept = old.read(LOG_KEPT)
        older = log.with_suffix(".log.1")
        older.unlink(missing_ok=True)
        descriptor = os.open(older, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as new:
            belong_like(log.parent, descriptor)
            new.write(kept)
        os.truncate(log, 0)
    except OSError:
        return  # a full disk or a log that is gone: nothing that a watcher could mend


if __name__ == "__main__":
    try:
        watch(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
    except OSError:
        sys.exit(1)  # the folder is gone, or the server does not stop: its log tells
