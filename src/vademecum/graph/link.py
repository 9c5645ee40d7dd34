"""`vade link`: a project's code tied to the documentation and the APIs of the libraries it uses.

Each file is one statement of the graph, so linking can stop anywhere and go on later: what is
linked stays, what changed is linked anew, what is gone goes.
"""

import asyncio
import hashlib
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vademecum.access import require_all
from vademecum.errors import BadInput
from vademecum.graph import nodes
from vademecum.graph.api import Library
from vademecum.graph.changelog import Changelog
from vademecum.graph.code import CodeFile, Use
from vademecum.graph.facade import Graph
from vademecum.graph.libraries import READER, Libraries
from vademecum.graph.nodes import Language, Node
from vademecum.graph.packages import Packages
from vademecum.graph.project import Project, project_folder, read_project
from vademecum.graph.references import LIBRARY_SOURCE, References
from vademecum.graph.relations import Relation, compatible
from vademecum.graph.resolve import Resolver
from vademecum.graph.sources import environment
from vademecum.graph.watch import RadarReport, radar
from vademecum.ingest.read.files import Skipped

SOURCE = "link"
"""Who states the links of code; the key is the file's path."""
LINKER = 4
"""Of what is linked; raised when links made before would lack something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkReport:
    """What linking a project did, and what it could not read."""

    project: str
    files: int
    linked: int
    """Files whose links were made now."""
    unchanged: int
    removed: int
    """Files that are gone, with their links."""
    lines: int
    calls: int
    """Calls in the files linked now that lead to an API of a library."""
    imports: int
    unresolved: int
    """Calls into installed libraries of which the code does not show what they call."""
    libraries: dict[str, str]
    searchable: bool
    """Whether the documents of libraries are found by words already; else a worker has to come."""
    skipped: list[Skipped]
    notices: list[str]
    seconds: float


@dataclass(frozen=True, slots=True)
class _Linked:
    nodes: list[Node]
    relations: list[Relation]
    calls: int
    imports: int
    unresolved: int


class CodeLinks:
    """`app.code`. Every call names its project."""

    def __init__(
        self,
        graph: Graph,
        *,
        home: Path,
        changelogs: Callable[[], Awaitable[Mapping[str, Sequence[Changelog]]]],
        embed: Callable[[], Awaitable[bool]],
    ) -> None:
        """`home` keeps what was read of libraries, `changelogs` gives those that were fetched,
        `embed` makes their documents searchable."""
        self._graph = graph
        self._home = home
        self._changelogs = changelogs
        self._embed = embed

    async def link(
        self,
        root: Path,
        *,
        project: str | None = None,
        python: Path | None = None,
        force: bool = False,
        progress: Callable[[str, int, int], None] = lambda what, done, total: None,
        notice: Callable[[str], None] = lambda text: None,
    ) -> LinkReport:
        """Bring the links of a folder's code up to date.

        It is part of the repository around it, and so are the project's name and its paths. Under
        a name of its own, or where there is no repository, it is a project by itself.
        Raises BadInput, UnreadableSource.
        """
        require_all("admin")  # it reads what is on this machine
        started = time.perf_counter()
        if os.path.exists(root) and not os.path.isdir(root):  # false for what is no path at all
            raise BadInput(f"{root} is not a folder", hint="Link the folder of the project.")
        # Reading is work for a thread: a server answers others meanwhile.
        code, files = await asyncio.to_thread(
            _read, root, project, lambda done, total: progress("reading", done, total)
        )
        name = project or code.root.name
        below = code.below(root)
        found = _environment(files, root, python)
        changelogs = await self._changelogs()
        libraries = None
        if found is not None:
            libraries = Libraries(found, home=self._home, changelogs=changelogs, notice=notice)
        packages = Packages(root, changelogs=changelogs)
        get = libraries.get if libraries is not None else (lambda top: None)
        resolver = Resolver(code.definitions, code.modules, get)
        digests = _digests(code, libraries, packages)
        known = {} if force else await self._graph.digests(SOURCE, project=name)
        changed = [file for file in files if known.get(file.path) != digests[file.path]]
        references = References(libraries)
        calls = imports = unresolved = 0
        stated: set[str] = set()
        for number, file in enumerate(changed, 1):
            linked = await asyncio.to_thread(
                _link_file,
                file,
                name,
                code.hashes[file.path],
                resolver if file.language == "python" else packages,
                references,
            )
            read = {**(libraries.read if libraries is not None else {}), **packages.read}
            await self._state_libraries(read, changelogs, references, stated)
            await self._graph.state(
                SOURCE,
                file.path,
                project=name,
                nodes=linked.nodes,
                relations=linked.relations,
                digest=digests[file.path],
            )
            calls, imports = calls + linked.calls, imports + linked.imports
            unresolved += linked.unresolved
            progress("linking", number, len(changed))
        before = await self._graph.digests(SOURCE, project=name)
        gone = sorted(
            {path for path in before if path.startswith(below)} - {file.path for file in files}
        )
        if gone:
            await self._graph.retract(SOURCE, gone, project=name)
        # Also what a run that was stopped has left.
        searchable = await self._embed() if changed else True
        return LinkReport(
            project=name,
            files=len(files),
            linked=len(changed),
            unchanged=len(files) - len(changed),
            removed=len(gone),
            lines=sum(file.lines for file in files),
            calls=calls,
            imports=imports,
            unresolved=unresolved,
            libraries={
                n: one.version
                for n, one in sorted(
                    [*(libraries.used.items() if libraries else ()), *packages.used.items()]
                )
            },
            searchable=searchable,
            skipped=[one for one in code.skipped if one.relative.startswith(below)],
            notices=packages.problems,
            seconds=time.perf_counter() - started,
        )

    async def radar(
        self, root: Path, *, python: Path | None = None, fetch: bool = False
    ) -> RadarReport:
        """The lines of a folder's code that use what its libraries deprecate or no longer have,
        as they say themselves and as fetched changelogs do. Raises BadInput, UnreadableSource."""
        require_all("admin")  # it reads what is on this machine
        changelogs = await self._changelogs()
        return await asyncio.to_thread(
            radar, root, home=self._home, python=python, fetch=fetch, changelogs=changelogs
        )

    async def _state_libraries(
        self,
        read: Mapping[str, Library],
        changelogs: Mapping[str, Sequence[Changelog]],
        references: References,
        stated: set[str],
    ) -> None:
        """State the libraries that were read since, before files refer to them."""
        for key, library in read.items():
            if key in stated:
                continue
            stated.add(key)
            told = changelogs.get(key.rpartition("@")[0], ())
            digest = ".".join([str(LINKER), str(READER), *(one.digest[:16] for one in told)])
            if (await self._graph.digests(LIBRARY_SOURCE)).get(key) == digest:
                continue
            made = [references.node(library, name, api) for name, api in library.references()]
            document = references.document(library)
            relations = [
                Relation(kind="DOCUMENTED_IN", start=one, end=document)
                for one in made
                if document is not None and one.name.count(".") <= 1
            ]
            relations += list(references.replacements(library))
            if library.ecosystem == "stdlib":
                version = ".".join(library.version.split(".")[:2])
                relations += compatible(made, Language(language="Python", version=version))
            every: list[Node] = [*made, *([document] if document else [])]
            await self._graph.state(
                LIBRARY_SOURCE, key, nodes=every, relations=relations, digest=digest
            )


def _link_file(
    file: CodeFile,
    project: str,
    digest: str,
    resolver: Resolver | Packages,
    references: References,
) -> _Linked:
    """The nodes and relations of a file."""
    node = nodes.CodeFile(
        in_project=project, path=file.path, language=file.language, content_hash=digest
    )
    functions = {
        one.name: nodes.Function(
            in_project=project,
            path=file.path,
            qualified_name=one.name,
            line_number=one.line,
            end_line_number=one.end_line,
        )
        for one in file.functions
    }
    relations = [Relation(kind="DEFINED_IN", start=one, end=node) for one in functions.values()]
    calls = imports = unresolved = 0
    for use in file.uses:
        found = resolver.resolve(use.target)
        if use.kind == "import":
            library = resolver.library_of(use.target)
            document = references.document(library) if library else None
            if document is not None:
                imports += 1
                relations.append(_tie("EXPLAINS", document, node, use))
        elif use.kind == "call" and found is not None and found.api is not None:
            calls += 1
            api = references.of(found.library, found.path, found.api)
            relations.append(_tie("USED_IN", api, functions.get(use.function, node), use))
        elif use.kind == "call" and found is None and resolver.library_of(use.target):
            unresolved += 1
    return _Linked([node, *functions.values()], relations, calls, imports, unresolved)


def _tie(kind: str, start: Node, end: Node, use: Use) -> Relation:
    return Relation(
        kind=kind,
        start=start,
        end=end,
        key=f"{use.line}:{use.column}",
        properties={"line_number": use.line, "context": use.context},
    )


def _read(
    root: Path, project: str | None, progress: Callable[[int, int], None]
) -> tuple[Project, list[CodeFile]]:
    """The project that a folder belongs to, and those of its files that are in the folder.

    All of it is read: what a file means follows from modules elsewhere in the project.
    """
    folder = root.resolve()
    around = project_folder(folder)
    if project in (None, around.name) and around != folder:
        with suppress(BadInput):  # the repository has no code that it does not leave out
            code = read_project(around, progress=progress)
            below = code.below(folder)
            if files := [file for file in code.files if file.path.startswith(below)]:
                return code, files
    # By itself is also what the repository leaves out, such as the unpacked code of others.
    code = read_project(folder, progress=progress)
    return code, list(code.files)


def _environment(
    files: Sequence[CodeFile], root: Path, python: Path | None
) -> environment.Environment | None:
    """The environment; code without Python needs none."""
    if not any(file.language == "python" for file in files):
        return None
    return environment.find(root, python)


def _digests(code: Project, libraries: Libraries | None, packages: Packages) -> dict[str, str]:
    """By path, a digest of all that the links of a file follow from: itself, the definitions of
    the project's modules that it can reach, and the versions of the libraries."""
    by_module = {file.module: file for file in code.files}
    own = {
        file.module: hashlib.sha256(repr(sorted(file.definitions.items())).encode()).hexdigest()
        for file in code.files
    }
    near = {module: _modules_in(file, by_module) for module, file in by_module.items()}
    installed = libraries.environment.installed if libraries else {}
    versions = repr(sorted((name, one.version) for name, one in installed.items()))
    digests = {}
    for file in code.files:
        reached: set[str] = set()
        waiting = [file.module]
        while waiting:
            module = waiting.pop()
            if module not in reached:
                reached.add(module)
                waiting.extend(near.get(module, ()))
        parts = [code.hashes[file.path], str(LINKER), str(READER), versions]
        parts += [own[module] for module in sorted(reached)]
        if file.language != "python":
            parts += packages.versions(file)
        digests[file.path] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return digests


def _modules_in(file: CodeFile, modules: Mapping[str, CodeFile]) -> set[str]:
    """The project's modules that the expressions of a file lead through."""
    expressions = {use.target for use in file.uses}
    for one in file.definitions.values():
        expressions.update(e for e in (one.value, one.yields, one.decorated, *one.bases) if e)
    found = set()
    for expression in expressions:
        parts = re.split(r"[.({|\[]", expression)
        for length in range(len(parts), 0, -1):
            module = ".".join(parts[:length])
            if module in modules:
                found.add(module)
                break
    return found
