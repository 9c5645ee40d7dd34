"""npm: a package's versions, which are deprecated and why, its readme, and its tarball's changelog.

The whole document of a package first; of one that is too large the short form, which npm's own
client asks for and which has no readme.
"""

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from vademecum.errors import UnreadableSource
from vademecum.graph.sources.adapter import address, fresh_for
from vademecum.graph.sources.places import Places
from vademecum.graph.sources.registry import Package, Registry, Release, moment, newest_first
from vademecum.graph.sources.replies import JSON, Replies, Reply, Route
from vademecum.ingest.read import Wanted

SHORT = Wanted(
    accept="application/vnd.npm.install-v1+json",
    types=frozenset({"application/vnd.npm.install-v1+json", "application/json"}),
)
_NAME = re.compile(r"^(?:@[a-z0-9~-][a-z0-9._~-]*/)?[A-Za-z0-9~_-][A-Za-z0-9._~-]*$")


class Npm(Registry):
    name = "npm"
    ecosystem = "npm"
    filter = "every version that is listed; deprecated ones are said to be"

    def __init__(self, places: Places) -> None:
        self._base = places.npm

    async def package(self, name: str, version: str, replies: Replies) -> tuple[Package, Reply]:
        if not _NAME.match(name):
            raise UnreadableSource(name, "it is no name of a package")
        url = address(self._base, quote(name, safe="@"))
        reply = await replies.first(
            Route(url=url, wanted=JSON),
            Route(url=url, wanted=SHORT),
            fresh_for=fresh_for(self.name),
        )
        return _package(reply.json(), name, version, reply), reply


def _package(whole: Mapping[str, Any], name: str, version: str, reply: Reply) -> Package:
    versions: Mapping[str, Mapping[str, Any]] = whole.get("versions") or {}
    tags: Mapping[str, str] = whole.get("dist-tags") or {}
    newest = str(tags.get("latest") or "")
    chosen = tags.get(version, version) or newest
    if chosen not in versions:
        near = ", ".join(list(versions)[-5:])
        raise UnreadableSource(reply.url, f"it lists no version {chosen} (the last are {near})")
    one = versions[chosen]
    times: Mapping[str, Any] = whole.get("time") or {}
    releases = newest_first(
        [
            Release(version=each, released=moment(times.get(each)), withdrawn=_deprecated(info))
            for each, info in versions.items()
        ],
        "npm",
    )
    dist: Mapping[str, Any] = one.get("dist") or {}
    readme = str(whole.get("readme") or "")
    engines = one.get("engines")
    node = engines.get("node") if isinstance(engines, dict) else None
    return Package(
        name=name,
        ecosystem="npm",
        version=chosen,
        newest=newest,
        page=f"https://www.npmjs.com/package/{name}/v/{chosen}",
        summary=str(one.get("description") or whole.get("description") or ""),
        needs=f"Node.js {node}" if node else "",
        urls=_urls(one),
        releases=releases,
        # npm keeps one readme, that of the newest version.
        readme=("README.md", readme, "text/markdown") if readme.strip() else None,
        archive=str(dist.get("tarball") or ""),
        archive_digest=_digest(dist),
    )


def _deprecated(info: Mapping[str, Any]) -> str | None:
    said = info.get("deprecated")
    if not said:
        return None
    return " ".join(said.split()) if isinstance(said, str) else ""


def _urls(info: Mapping[str, Any]) -> dict[str, str]:
    repository = info.get("repository")
    if isinstance(repository, dict):
        repository = repository.get("url")
    bugs = info.get("bugs")
    if isinstance(bugs, dict):
        bugs = bugs.get("url")
    found = {"Homepage": info.get("homepage"), "Repository": repository, "Issues": bugs}
    return {label: str(url) for label, url in found.items() if url}


def _digest(dist: Mapping[str, Any]) -> tuple[str, str] | None:
    for one in str(dist.get("integrity") or "").split():
        algorithm, _, digest = one.partition("-")
        if algorithm in ("sha512", "sha384", "sha256"):
            try:
                return algorithm, base64.b64decode(digest, validate=True).hex()
            except ValueError:
                continue
    return ("sha1", str(dist["shasum"])) if dist.get("shasum") else None
