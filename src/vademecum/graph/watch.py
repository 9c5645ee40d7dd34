"""`vade radar`: a project's code joined with what its libraries say. No database is needed."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vademecum.errors import BadInput
from vademecum.graph import npm_notices
from vademecum.graph.changelog import Changelog
from vademecum.graph.libraries import Libraries
from vademecum.graph.locks import Locked, locked
from vademecum.graph.packages import Packages
from vademecum.graph.project import Project, imported, read_project
from vademecum.graph.radar import Finding, scan_uses
from vademecum.graph.resolve import Resolver
from vademecum.graph.sources import environment
from vademecum.graph.sources import locked as locked_versions
from vademecum.graph.sources.environment import Environment
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
    fetch: bool = False,
    changelogs: Mapping[str, Sequence[Changelog]] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    notice: Callable[[str], None] = lambda text: None,
) -> RadarReport:
    """The findings of a project. `home` keeps what was read of libraries; None keeps nothing.
    `changelogs` are those that were fetched, by `ecosystem:package`.

    With `fetch`, locked versions that are not installed are fetched from the package index into
    `home` and looked at instead of the installed ones. Raises BadInput, UnreadableSource.
    """
    started = time.perf_counter()
    project = read_project(root, progress=progress)
    pins, notices = locked(project.root)
    in_python = [file for file in project.files if file.language == "python"]
    in_scripts = [file for file in project.files if file.language != "python"]
    try:
        known = environment.find(project.root, python)
    except BadInput:
        if (in_python and not (fetch and pins)) or python is not None:
            raise
        known = locked_versions.nothing_installed(project.root)
    if fetch and home is not None:
        known, problems = _fetched(project, known, pins, home / "locked", notice)
        notices += problems
    libraries = Libraries(known, home=home, changelogs=changelogs, notice=notice)
    resolver = Resolver(project.definitions, project.modules, libraries.get)
    packages = Packages(project.root, changelogs=changelogs)
    findings = [
        *scan_uses(in_python, resolver),
        *scan_uses(in_scripts, packages),
        *npm_notices.scan_imports(project.files, pins),
    ]
    return RadarReport(
        findings=findings,
        root=str(project.root),
        files=len(project.files),
        lines=sum(file.lines for file in project.files),
        packages={
            name: one.version
            for name, one in sorted([*libraries.used.items(), *packages.used.items()])
        },
        skipped=list(project.skipped),
        notices=[
            *notices,
            *_differences(project, libraries, pins),
            *npm_notices.not_imported(project.files, pins),
            *packages.problems,
        ],
        seconds=time.perf_counter() - started,
    )


def _fetched(
    project: Project,
    known: Environment,
    pins: dict[str, Locked],
    home: Path,
    notice: Callable[[str], None],
) -> tuple[Environment, list[str]]:
    """The environment as it is locked, and what of it could not be had."""
    missing = locked_versions.wanted(known, _imported(project), pins)
    return locked_versions.with_locked(known, missing, home=home, notice=notice)


def _imported(project: Project) -> set[str]:
    """The first parts of imports that lead out of the project's Python code."""
    python = [file for file in project.files if file.language == "python"]
    return set(imported(python)) - project.modules


def _differences(project: Project, libraries: Libraries, pins: dict[str, Locked]) -> list[str]:
    """Where the environment is not what is locked, or lacks what is imported."""
    notices = []
    for name, library in sorted(libraries.used.items()):
        pin = pins.get(f"pypi:{name}")
        if pin is not None and library.ecosystem == "python" and pin.version != library.version:
            notices.append(
                f"{name}: {pin.file} has {pin.version}, installed is {library.version},"
                " which was looked at; --fetch looks at the locked one"
            )
    # A name that a folder or module of the project has may be found from another folder.
    own = {part for module in project.modules for part in module.split(".")}
    missing = {top for top in _imported(project) - own if libraries.get(top) is None}
    if missing:
        locked_ones = locked_versions.wanted(libraries.environment, missing, pins)
        hint = "; --fetch looks at the locked versions" if locked_ones else ""
        notices.append(f"not installed, not looked at: {', '.join(sorted(missing))}{hint}")
    return notices
