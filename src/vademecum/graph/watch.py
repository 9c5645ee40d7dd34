"""`vade radar`: a project's code joined with what its libraries say. No database is needed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vademecum.graph.libraries import Libraries
from vademecum.graph.locks import Locked, locked
from vademecum.graph.project import Project, imported, read_project
from vademecum.graph.radar import Finding, scan_uses
from vademecum.graph.resolve import Resolver
from vademecum.graph.sources import environment
from vademecum.ingest.read.files import Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class RadarReport:
    findings: list[Finding]
    root: str
    files: int
    lines: int
    packages: dict[str, str]
    """Libraries that were looked at, with their versions."""
    skipped: list[Skipped]
    notices: list[str]
    """What could not be looked at, and why."""
    seconds: float


def radar(
    root: Path,
    *,
    home: Path | None,
    python: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    notice: Callable[[str], None] = lambda text: None,
) -> RadarReport:
    """The findings of a project. `home` keeps what was read of libraries; None keeps nothing.

    Raises BadInput, UnreadableSource.
    """
    started = time.perf_counter()
    project = read_project(root, progress=progress)
    libraries = Libraries(environment.find(project.root, python), home=home, notice=notice)
    resolver = Resolver(project.definitions, project.modules, libraries.get)
    findings = scan_uses(project.files, resolver)
    pins, failed = locked(project.root)
    return RadarReport(
        findings=findings,
        root=str(project.root),
        files=len(project.files),
        lines=sum(file.lines for file in project.files),
        packages={name: one.version for name, one in sorted(libraries.used.items())},
        skipped=list(project.skipped),
        notices=[*failed, *_differences(project, libraries, pins)],
        seconds=time.perf_counter() - started,
    )


def _differences(project: Project, libraries: Libraries, pins: dict[str, Locked]) -> list[str]:
    """Where the environment is not what is locked, or lacks what is imported."""
    notices = []
    for name, library in sorted(libraries.used.items()):
        pin = pins.get(f"pypi:{name}")
        if pin is not None and library.ecosystem == "python" and pin.version != library.version:
            notices.append(
                f"{name}: {pin.file} has {pin.version}, installed is {library.version},"
                " which was looked at"
            )
    python = [file for file in project.files if file.language == "python"]
    missing = {
        top for top in imported(python) if top not in project.modules and libraries.get(top) is None
    }
    if missing:
        notices.append(f"not installed, not looked at: {', '.join(sorted(missing))}")
    return notices
