"""The embedded server's files: the cluster, its settings, how it is started.

PostgreSQL refuses to run as root, so for root it runs as another user who owns the cluster and
nothing else. That user cannot pass root's private folders and they are not opened for it: the
server is started inside the cluster folder and knows it as /proc/self/cwd, which needs no way
through the parents.
"""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from vademecum.errors import EmbeddedDatabaseFailed
from vademecum.store.embedded_machine import settings_here
from vademecum.store.embedded_program import MAJOR, program_for
from vademecum.store.embedded_user import User, name_of, named, private_user, server_user
from vademecum.store.embedded_watch import CLUSTER, HAS_PROC, belong_like, marker

ROLE = "postgres"
NAMELESS = "This user id has no name here, and PostgreSQL wants one: add it to /etc/passwd."
SOCKET_BYTES = 107 if sys.platform == "linux" else 103
SOCKET_NAME = ".s.PGSQL.5432"


def make_folders(folder: Path) -> None:
    """Create the missing folders on this path for us alone. Those that exist stay as they are."""
    if folder.is_dir():
        return
    make_folders(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        belong_like(folder.parent, folder)


async def make_cluster(folder: Path) -> None:
    """Initialise the cluster beside its place and move it there whole."""
    new, maker, owner = _place_for_cluster(folder)
    try:
        await _initdb(new, maker)
        _put_in_place(new, owner, folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _place_for_cluster(folder: Path) -> tuple[Path, User | None, User | None]:
    """An empty folder, who fills it, and whose it will be; None is ourselves."""
    for leftover in folder.glob("cluster.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix="cluster.new-", dir=folder))
    if os.geteuid() != 0:
        return new, None, None
    try:
        owner = server_user(folder / CLUSTER) or private_user(new, str(folder.resolve()))
        maker = named(owner)
        os.chown(new, maker.uid, maker.gid)
    except BaseException:
        new.rmdir()
        raise
    return new, maker, owner


def _put_in_place(new: Path, owner: User | None, folder: Path) -> None:
    with (new / "postgresql.conf").open("a") as settings:
        settings.write("\ninclude_if_exists = 'vademecum.conf'\n")
        settings.flush()
        os.fsync(settings.fileno())
    if owner is not None:
        _give(new, owner)
    new.rename(folder / CLUSTER)
    _sync(folder)


async def _initdb(cluster: Path, user: User | None) -> None:
    # The collation is built in and so the same on every machine.
    arguments = ["-U", ROLE, "-A", "peer", "-E", "UTF8", "--locale=C", "--no-instructions"]
    arguments += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    # Shared memory that outlives a killed initdb would stay until the next boot; files go with it.
    arguments += ["-c", "dynamic_shared_memory_type=mmap"]
    if sys.platform == "linux":  # on a busy disk 2 s instead of 6 file by file
        arguments.append("--sync-method=syncfs")
    initdb = program_for(user) / "bin" / "initdb"
    process = await asyncio.create_subprocess_exec(
        initdb,
        "-D",
        data_argument(cluster, user),
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        **_as(user, cluster),  # type: ignore[arg-type]
    )
    try:
        output, _ = await process.communicate()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        text = output.decode("utf-8", "replace")
        raise EmbeddedDatabaseFailed(
            f"the database could not be created in {cluster.parent}:\n{last_lines(text)}",
            hint=hint_for(text, cluster.parent),
        )


def data_argument(cluster: Path, user: User | None) -> str:
    return "/proc/self/cwd" if user is not None and HAS_PROC else str(cluster)


def _as(user: User | None, cluster: Path) -> dict[str, object]:
    """Arguments of a subprocess: the user, in the cluster, and nothing of our environment."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
    common = {"cwd": cluster, "env": environment, "umask": 0o077, "start_new_session": True}
    if user is None:
        return common
    return common | {"user": user.uid, "group": user.gid, "extra_groups": []}


def _give(tree: Path, user: User) -> None:
    for path, _, files in os.walk(tree):
        os.chown(path, user.uid, user.gid)
        for name in files:
            os.chown(Path(path, name), user.uid, user.gid, follow_symlinks=False)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def check_version(cluster: Path) -> None:
    try:
        found = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedDatabaseFailed(
            f"{cluster} exists but holds no database", hint="Move that folder away."
        ) from None
    if found != MAJOR:
        raise EmbeddedDatabaseFailed(
            f"{cluster} was made by PostgreSQL {found}, and this Vademecum has {MAJOR}",
            hint=(
                "Go back to the version of Vademecum that made it, or move that folder away "
                "and index again."
            ),
        )


def start_server(folder: Path, lock: int, log: Path) -> None:
    """Write the settings and start the server detached from us; it inherits only the lock."""
    cluster = folder / CLUSTER
    user = server_user(cluster)
    sockets = _socket_folder(cluster, user)
    # We hold the lock, so what names a server here is stale. The server would ask instead whether
    # the process id in it is taken, and it may be: by a stranger, or by one not yet reaped.
    for stale in (cluster / "postmaster.pid", cluster / sockets / f"{SOCKET_NAME}.lock"):
        stale.unlink(missing_ok=True)
    _write_settings(cluster, user)
    fixed = {
        "listen_addresses": "",
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        "port": "5432",
        "cluster_name": marker(cluster),
    }
    arguments = [part for name, value in fixed.items() for part in ("-c", f"{name}={value}")]
    postgres = program_for(user) / "bin" / "postgres"
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        belong_like(folder, descriptor)
        detach(
            [str(postgres), "-D", data_argument(cluster, user), *arguments],
            output=descriptor,
            keep=lock,
            **_as(user, cluster),
        )
    finally:
        os.close(descriptor)


def start_watcher(folder: Path, idle_seconds: float, script: str, lock: int) -> None:
    detach(
        [sys.executable, "-I", "-S", script, str(folder), str(idle_seconds), str(lock)],
        output=subprocess.DEVNULL,
        keep=lock,
        cwd="/",
        start_new_session=True,
    )


def detach(command: list[str], *, output: int, keep: int, **options: object) -> None:
    """Run a program as nobody's child: it leaves no zombie with us and no pipe of ours open."""
    subprocess.run(
        ["/bin/sh", "-c", '"$@" &', "sh", *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=(keep,),
        check=True,
        **options,  # type: ignore[call-overload]
    )


def _socket_folder(cluster: Path, user: User | None) -> Path:
    """The cluster itself, told as `.`, unless clients could not name a socket there."""
    path = str(cluster / SOCKET_NAME)
    try:
        fits = len(path.encode()) <= SOCKET_BYTES and "," not in path  # libpq splits at commas
    except UnicodeEncodeError:
        fits = False
    if fits:
        return Path()
    owner = user or User(os.geteuid(), os.getegid())
    found = cluster.stat()
    folder = Path("/tmp", f"vade-{owner.uid}-{found.st_dev:x}-{found.st_ino:x}")  # noqa: S108
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        there = folder.lstat()
        private = stat.S_ISDIR(there.st_mode) and not there.st_mode & 0o077
        if not private or there.st_uid != owner.uid:  # someone lies in wait for our clients
            folder = Path(tempfile.mkdtemp(prefix=f"vade-{owner.uid}-", dir="/tmp"))
    if user is not None:
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    return folder


def _write_settings(cluster: Path, user: User | None) -> None:
    heading = "# Written by Vademecum at every start of the server; changes here are lost.\n"
    own = (
        "# Settings of your own go into postgresql.conf below the line that includes this file,\n"
        "# or through ALTER SYSTEM.\n"
    )
    values = settings_here()
    lines = "".join(f"{name} = '{value}'\n" for name, value in values.items())
    names = {name_of(uid) for uid in (0, os.geteuid(), cluster.stat().st_uid)} - {None}
    idents = "".join(f'vademecum "{name}" all\n' for name in names)
    for name, text in (
        ("vademecum.conf", heading + own + lines),
        # The kernel tells who connects; nobody else than these users can.
        ("pg_hba.conf", heading + "local all all peer map=vademecum\n"),
        ("pg_ident.conf", heading + idents),
    ):
        descriptor, new = tempfile.mkstemp(prefix=name, dir=cluster)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        if user is not None:
            os.chown(new, user.uid, user.gid)
        Path(new).rename(cluster / name)


def last_lines(text: str, count: int = 8) -> str:
    return "\n".join(line for line in text.strip().splitlines()[-count:])


def hint_for(text: str, place: Path) -> str:
    if "No space left" in text or "Disk quota exceeded" in text:
        return f"Free space on the disk that holds {place}."
    if "could not look up effective user ID" in text:
        return NAMELESS
    if "ermission denied" in text or "Read-only file system" in text:
        return f"Check who owns {place}, or choose another VADE_HOME."
    if "shared memory segment" in text or "could not create semaphores" in text:
        return "The system gives no more shared memory: stop other databases or raise its limits."
    return f"The server's log is {place / 'server.log'}; `vade doctor` tells more."
