"""The code of a project: which files there are, and what each defines and uses."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from vademecum.errors import BadInput
from vademecum.graph.code import CodeFile, Definition
from vademecum.graph.python_code import read_python
from vademecum.ingest.read.files import Skipped, scan

MAX_BYTES = 4 * 1024 * 1024
"""Of a file of code; a larger one is generated."""
PYTHON = (".py", ".pyi")
JAVASCRIPT = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
_NO_SOURCE = frozenset(("site-packages", "dist-packages", "dist", "build", "__pypackages__"))


@dataclass(frozen=True)
class Project:
    """All files of code under a folder, as they are read."""

    root: Path
    files: tuple[CodeFile, ...]
    hashes: dict[str, str]
    """SHA-256 by path."""
    skipped: tuple[Skipped, ...] = ()

    def below(self, folder: Path) -> str:
        """What the paths of the files in a folder of the project begin with; '' for all of it."""
        relative = folder.resolve().relative_to(self.root).as_posix()
        return "" if relative == "." else f"{relative}/"

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        return {name: one for file in self.files for name, one in file.definitions.items()}

    @cached_property
    def modules(self) -> frozenset[str]:
        """Importable names of the project's own modules and of the packages above them."""
        found: set[str] = set()
        for file in self.files:
            parts = file.module.split(".") if file.language == "python" else [file.module]
            found.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
        return frozenset(found)


def project_folder(folder: Path) -> Path:
    """The root of the repository that a folder is in, else the folder.

    A home folder under version control does not make one project of all that is in it.
    """
    for one in (folder, *folder.parents):
        if one == Path.home():
            break
        if os.path.exists(one / ".git"):  # false for what may not be looked at
            return one
    return folder


def read_project(
    root: Path, *, progress: Callable[[int, int], None] = lambda done, total: None
) -> Project:
    """Every file of code under a folder, or the one file. Raises BadInput, UnreadableSource."""
    if not os.path.exists(root):  # false for what is no path at all
        raise BadInput(f"there is no {root}")
    root = root.resolve()  # as files are named, whose modules follow from where they stand in it
    folder = root if root.is_dir() else root.parent
    only = None if root.is_dir() else root.name
    paths: list[tuple[Path, str]] = []
    skipped: list[Skipped] = []
    for one in scan(
        folder, max_bytes=MAX_BYTES, wanted=lambda name: _is_code(name) and only in (None, name)
    ):
        if isinstance(one, Skipped):
            if one.reason != "it is empty":
                skipped.append(one)
        elif not _NO_SOURCE & set(one.relative.split("/")[:-1]) and (
            only is None or one.relative == only
        ):
            paths.append((one.path, one.relative))
    if not paths:
        raise BadInput(
            f"{root} holds no code that can be read", hint="Python, JavaScript and TypeScript can."
        )
    files, hashes = [], {}
    for number, (path, relative) in enumerate(paths, 1):
        read = read_file(path, relative, folder)
        if isinstance(read, Skipped):
            skipped.append(read)
        else:
            files.append(read[0])
            hashes[relative] = read[1]
            if read[0].error:
                skipped.append(Skipped(relative=relative, reason=read[0].error))
        progress(number, len(paths))
    return Project(root=folder, files=tuple(files), hashes=hashes, skipped=tuple(skipped))


def read_file(path: Path, relative: str, root: Path) -> tuple[CodeFile, str] | Skipped:
    """A file as code, and its SHA-256."""
    import hashlib
    import tokenize

    try:
        raw = path.read_bytes()
        if path.suffix in PYTHON:
            with open(path, "rb") as stream:
                encoding, _ = tokenize.detect_encoding(stream.readline)
            text = raw.decode(encoding)
        else:
            text = raw.decode("utf-8")
    except OSError as error:
        return Skipped(relative=relative, reason=error.strerror or str(error))
    except (UnicodeDecodeError, SyntaxError, LookupError):
        return Skipped(relative=relative, reason="its encoding cannot be read")
    digest = hashlib.sha256(raw).hexdigest()
    if path.suffix in PYTHON:
        return read_python(relative, text, module_name(path, root)), digest
    from vademecum.graph.javascript_code import read_javascript

    return read_javascript(relative, text), digest


def module_name(path: Path, root: Path) -> str:
    """The name that others import a Python file by: from the first folder that is no package."""
    parts = [] if path.stem == "__init__" else [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        if folder == folder.parent:
            break
        folder = folder.parent
    if not parts or folder == path.parent:
        # No package: by its place under the root, or under one of its folders of sources.
        try:
            relative = path.parent.relative_to(root).parts
        except ValueError:
            relative = ()
        if relative[:1] in (("src",), ("lib",)):
            relative = relative[1:]
        parts = [*relative, *parts]
    return ".".join(parts) or path.parent.name


def _is_code(name: str) -> bool:
    lower = name.lower()
    return (
        os.path.splitext(lower)[1] in (*PYTHON, *JAVASCRIPT)
        and not lower.endswith((".min.js", ".d.ts", ".bundle.js"))
        and not lower.startswith(".")
    )


def imported(files: Iterable[CodeFile]) -> Iterator[str]:
    """The first part of every import."""
    for file in files:
        for use in file.uses:
            if use.kind == "import":
                yield use.target.partition(".")[0]
