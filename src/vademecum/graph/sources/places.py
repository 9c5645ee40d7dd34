"""Where sources are: the public ones, or those that `sources.toml` in the home folder names.

pypi = "https://pypi.example.org"

[sphinx]
numpy = "https://numpy.org/doc/stable"

[[tutorials]]
feed = "https://realpython.com/atom.xml"
source = "real_python"
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from vademecum.errors import BadSetting, FetchRefused
from vademecum.graph.sources import SOURCES
from vademecum.ingest.read.web import check_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Tutorials:
    """A site of tutorials, by its feed or its sitemap."""

    url: str
    kind: Literal["feed", "sitemap"]
    source: str = "blog_unknown"
    """A name of `SOURCES`: what its tutorials are trusted as."""
    language: str = ""


TUTORIALS = (
    Tutorials(
        url="https://realpython.com/atom.xml",
        kind="feed",
        source="real_python",
        language="python",
    ),
    Tutorials(
        url="https://www.freecodecamp.org/news/rss/", kind="feed", source="official_tutorials"
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Addresses of APIs and sites, without a slash at the end."""

    pypi: str = "https://pypi.org"
    npm: str = "https://registry.npmjs.org"
    python: str = "https://docs.python.org/{version}"
    """Python's own documentation; `{version}` is `3.12`, or `3` for the newest."""
    mdn: str = "https://developer.mozilla.org"
    microsoft_learn: str = "https://learn.microsoft.com"
    stack_exchange: str = "https://api.stackexchange.com/2.3"
    github: str = "https://api.github.com"
    sphinx: Mapping[str, str] = field(default_factory=dict)
    """Packages with their Sphinx sites, where the registry does not name them."""
    tutorials: tuple[Tutorials, ...] = TUTORIALS


def load_places(home: Path) -> Places:
    """The places of `sources.toml`; the public ones where there is none. Raises BadSetting."""
    path = home / "sources.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Places()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{path} cannot be read: {error}") from error
    return parse_places(text, name=str(path))


def parse_places(text: str, *, name: str = "sources.toml") -> Places:
    """Raises BadSetting that says what is wrong."""
    try:
        declared = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{name}: {error}") from None
    known = [one.name for one in fields(Places)]
    values: dict[str, Any] = {}
    for key, value in declared.items():
        if key == "tutorials" and isinstance(value, list):
            values[key] = tuple(_tutorials(one, name) for one in value)
        elif key == "sphinx" and isinstance(value, dict):
            values[key] = {
                package.lower(): _address(site, f"{name}: sphinx.{package}")
                for package, site in value.items()
            }
        elif key in known and isinstance(value, str):
            values[key] = _address(value, f"{name}: {key}")
        else:
            raise BadSetting(
                f"{name}: {key} = {value!r} is no place", hint=f"Places are {', '.join(known)}."
            )
    return Places(**values)


def _tutorials(declared: Any, name: str) -> Tutorials:
    of = dict(declared) if isinstance(declared, dict) else {}
    kinds = [kind for kind in ("feed", "sitemap") if kind in of]
    if len(kinds) != 1 or set(of) - {"feed", "sitemap", "source", "language"}:
        raise BadSetting(
            f"{name}: tutorials have a feed or a sitemap, and may have a source and a language"
        )
    source = str(of.get("source", "blog_unknown"))
    if source not in SOURCES or SOURCES[source].tier != "tutorials":
        known = ", ".join(key for key, kind in SOURCES.items() if kind.tier == "tutorials")
        raise BadSetting(f"{name}: {source!r} is no source of tutorials", hint=f"Known: {known}.")
    return Tutorials(
        url=_address(of[kinds[0]], f"{name}: tutorials"),
        kind=kinds[0],  # type: ignore[arg-type]
        source=source,
        language=str(of.get("language", "")).lower(),
    )


def _address(value: object, name: str) -> str:
    try:
        check_url(str(value))
    except FetchRefused as error:
        raise BadSetting(f"{name}: {value!r}: {error.reason}") from None
    return str(value) if str(value).endswith((".xml", "/rss/")) else str(value).rstrip("/")
