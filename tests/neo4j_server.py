"""A real Neo4j Community server on loopback, from its artifacts in Maven Central.

`python tests/neo4j_server.py` fetches it (123 MB, once) and runs it until Ctrl-C. Needs `mvn` and
Java 17 or 21. The code is GPLv3: it runs as a process of its own, and is part of nothing we ship.
"""

import fcntl
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION = "5.26.30"
HOME = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "vademecum-tests"
START_SECONDS = 180
SMALL = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""It lives for minutes: compiling well costs more than it saves."""

POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>vademecum.tests</groupId><artifactId>neo4j-runner</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.neo4j</groupId><artifactId>neo4j</artifactId><version>{VERSION}</version>
  </dependency></dependencies>
</project>
"""

MAIN = """
import java.nio.file.Path;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;

class Neo4jServer {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[1]);
        var service = new DatabaseManagementServiceBuilder(Path.of(arguments[0]))
            .setConfig(BoltConnector.enabled, true)
            .setConfig(BoltConnector.listen_address, new SocketAddress("127.0.0.1", port))
            .setConfig(GraphDatabaseSettings.pagecache_memory, 64L << 20)
            .build();
        Runtime.getRuntime().addShutdownHook(new Thread(service::shutdown));
        System.out.println("started");
        System.in.read(); // ends with whoever started it
        System.exit(0);
    }
}
"""


class NoNeo4j(Exception):
    """It cannot be had here; the message says why."""


def fetch() -> Path:
    """The folder of the jars, fetched where they are not there. Raises NoNeo4j."""
    folder = HOME / f"neo4j-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes start at once
        if (folder / "fetched").exists():
            return folder
        maven = shutil.which("mvn")
        if maven is None:
            raise NoNeo4j("there is no mvn to fetch it with")
        (folder / "pom.xml").write_text(POM)
        (folder / "Neo4jServer.java").write_text(MAIN)
        command = [
            maven, "-q", "-B", "-f", folder / "pom.xml", "dependency:copy-dependencies",
            "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'lib'}",
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired:
            raise NoNeo4j("fetching it took more than ten minutes") from None
        if done.returncode:
            raise NoNeo4j(f"mvn could not fetch it: {(done.stdout + done.stderr)[-300:]}")
        (folder / "fetched").touch()
    return folder


def java() -> str:
    """Raises NoNeo4j."""
    found = shutil.which("java")
    if found is None:
        raise NoNeo4j("there is no java to run it with")
    said = subprocess.run([found, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    if version is None or int(version[1]) not in (17, 21):
        raise NoNeo4j(f"Neo4j {VERSION} runs on Java 17 and 21: {said.splitlines()[0]}")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def neo4j_server(data: Path, port: int | None = None) -> Iterator[str]:
    """The bolt address of a running server with its data in a folder. Raises NoNeo4j."""
    folder, runtime = fetch(), java()
    port = port or free_port()
    opens = [
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in ("java.nio", "java.io", "sun.nio.ch", "java.lang")
    ]
    log = data / "server.log"
    data.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        process = subprocess.Popen(
            [runtime, *SMALL, *opens, "-cp", f"{folder / 'lib'}/*",
             folder / "Neo4jServer.java", data / "neo4j", str(port)],
            stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while "started" not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise NoNeo4j(f"it did not start: {log.read_text()[-300:]}")
            time.sleep(0.2)
        yield f"bolt://127.0.0.1:{port}"
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, neo4j_server(Path(folder), 7687) as address:
        print(address, flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass
