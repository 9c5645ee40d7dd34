"""Packages of npm that their lock file calls deprecated, at the lines that import them."""

from collections.abc import Iterable, Iterator, Mapping

from vademecum.graph.code import CodeFile
from vademecum.graph.locks import Locked
from vademecum.graph.radar import Finding


def package_of(target: str) -> str:
    """The package of what is imported: `@scope/name/file` is of `@scope/name`."""
    parts = target.split("/")
    return "/".join(parts[:2] if target.startswith("@") else parts[:1])


def scan_imports(files: Iterable[CodeFile], pins: Mapping[str, Locked]) -> Iterator[Finding]:
    """A finding for every import of a deprecated package, in the order of the files."""
    for file in files:
        if file.language == "python":
            continue
        for use in file.uses:
            pin = pins.get(f"npm:{package_of(use.target)}") if use.kind == "import" else None
            if pin is None or not pin.deprecated:
                continue
            yield Finding(
                rule="deprecated",
                file=file.path,
                line=use.line,
                column=use.column,
                context=use.context,
                function=use.function,
                api=pin.name,
                parameter="",
                package=pin.name,
                ecosystem="npm",
                version=pin.version,
                since=None,
                until=None,
                replacement=None,  # the sentence says it, in words
                sentence=pin.deprecated,
                evidence=pin.file,
                guarded=False,
            )


def not_imported(files: Iterable[CodeFile], pins: Mapping[str, Locked]) -> list[str]:
    """What is locked and deprecated, and comes in through other packages only."""
    imported = {
        package_of(use.target)
        for file in files
        if file.language != "python"
        for use in file.uses
        if use.kind == "import"
    }
    return [
        f"{pin.name} {pin.version} is deprecated, and other packages use it: {pin.deprecated}"
        for pin in pins.values()
        if pin.ecosystem == "npm" and pin.deprecated and pin.name not in imported
    ]
