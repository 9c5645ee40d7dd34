"""Settings: one frozen value, read once from the environment; unknown ones are refused.

Nothing here touches the disk or the network.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from vademecum.errors import BadSetting

DATABASE_VARIABLES = ("VADE_DATABASE_URL", "PRJ_NEON_DATABASE_URL", "DATABASE__URL")
"""Where a connection string may stand, first one wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the environment variable VADE_<NAME>."""

    home: Path
    """Folder of everything kept on this machine: the embedded database and the model cache."""
    database_url: str | None = None
    """Any PostgreSQL; None is the embedded one under `home`."""
    collection: str | None = None
    """The collection that commands use where none is named."""
    embedder: str = "local:all-MiniLM-L6-v2"
    """`provider:model` of new collections, or `none` for lexical search only."""
    threads: int = 0
    """Threads of the local embedder; 0 is one for each core."""
    max_file_bytes: int = 32 * 1024 * 1024
    """Larger files and pages are reported and skipped."""
    idle_minutes: int = 15
    """The embedded database stops after so long without a client."""


def load_settings(
    environment: Mapping[str, str] | None = None, *, database_url: str | None = None
) -> Settings:
    """The settings of this process. An explicit `database_url` goes before the environment.

    Raises BadSetting for an unknown VADE_ variable or a value that cannot be read.
    """
    environment = os.environ if environment is None else environment
    types = {field.name: field.type for field in fields(Settings)}
    values: dict[str, object] = {"home": Path.home() / ".vademecum"}
    for variable, text in environment.items():
        if not variable.startswith("VADE_"):
            continue
        name = variable.removeprefix("VADE_").lower()
        if name not in types:
            raise BadSetting(
                f"{variable} is not a setting",
                hint="Settings are " + ", ".join(f"VADE_{n.upper()}" for n in types) + ".",
            )
        if text:
            values[name] = _parse(variable, text, types[name])
    for variable in DATABASE_VARIABLES:
        if environment.get(variable):
            values["database_url"] = environment[variable]
            break
    if database_url:
        values["database_url"] = database_url
    return Settings(**values)  # type: ignore[arg-type]


def _parse(variable: str, text: str, type_: object) -> object:
    if type_ is Path:
        return Path(text).expanduser().absolute()
    if type_ is int:
        if not text.isdecimal():
            raise BadSetting(f"{variable} must be a whole number, not {text!r}")
        return int(text)
    return text
