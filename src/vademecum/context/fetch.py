"""What a task names and the graph does not know, looked up at the sources where asked to."""

import re
from collections.abc import Sequence
from pathlib import Path

from vademecum.context.errors import Failure
from vademecum.errors import VadeError
from vademecum.graph.fetching import Sources
from vademecum.graph.sources.adapter import Subject

MOST = 2
"""APIs of one task that are looked up; whoever asks is waiting."""
_FILE = re.compile(
    r"\.(?:py|pyi|js|jsx|mjs|ts|tsx|md|rst|txt|toml|ya?ml|json|lock|cfg|ini|html|css|sql|sh|env)$"
)


def missing(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """Names of APIs that are not known: qualified ones that are no names of files."""
    return [name for name in names if "." in name and name not in known and not _FILE.search(name)][
        :MOST
    ]


async def fetch(
    sources: Sources, names: Sequence[str], failure: Failure | None, path: Path | None
) -> list[str]:
    """Look up APIs and what solves an error; what could not be had, and why."""
    from vademecum.graph.project import JAVASCRIPT  # and with it the parsers

    language = "javascript" if path is not None and path.suffix in JAVASCRIPT else "python"
    subjects = [Subject(kind="api", name=name, language=language) for name in names]
    if failure is not None:
        subjects.append(Subject(kind="error", name=failure.pattern, language=failure.language))
    notices: list[str] = []
    for subject in subjects:
        try:
            report = await sources.fetch(subject)
        except VadeError as error:
            notices.append(f"{subject.name}: {error}")
            continue
        notices += [f"{one.source}: {one.reason}" for one in report.failed]
    return notices
