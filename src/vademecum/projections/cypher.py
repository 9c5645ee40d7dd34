"""The named queries in Cypher: `CYPHER["name"]` is the text after `// name: name`."""

import re
from importlib.resources import files

_NAME = re.compile(r"^// name: (\w+)$", re.MULTILINE)


def _load() -> dict[str, str]:
    text = files(__package__).joinpath("queries.cypher").read_text(encoding="utf-8")
    _, *parts = _NAME.split(text)
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


CYPHER = _load()
