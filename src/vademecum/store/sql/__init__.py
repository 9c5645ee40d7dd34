"""Named queries: `SQL["name"]` is the text after `-- name: name` in one of the files here."""

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def _load() -> dict[str, str]:
    queries: dict[str, str] = {}
    for file in sorted(files(__package__).iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[::2], parts[1::2], strict=True):
            if name in queries:
                raise ValueError(f"two queries are named {name}")
            queries[name] = text.strip()
    return queries


SQL = _load()
