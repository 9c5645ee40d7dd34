"""PyPI: a package's versions, what is yanked, its addresses and readme, and its sdist's changelog.

The JSON API (docs.pypi.org/api/json) first; then the index (PEP 691), which mirrors have, too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from vademecum.errors import UnreadableSource
from vademecum.graph.sources.adapter import address, fresh_for
from vademecum.graph.sources.places import Places
from vademecum.graph.sources.registry import Package, Registry, Release, moment, newest_first
from vademecum.graph.sources.replies import JSON, Replies, Reply, Route
from vademecum.ingest.read import Wanted

SIMPLE = Wanted(
    accept="application/vnd.pypi.simple.v1+json",
    types=frozenset({"application/vnd.pypi.simple.v1+json"}),
)
_SDIST = re.compile(r"\.(?:tar\.gz|tgz|zip)$")
_NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$")


class PyPI(Registry):
    name = "pypi"
    ecosystem = "pypi"
    filter = "every version that is listed; yanked ones are said to be"

    def __init__(self, places: Places) -> None:
        self._base = places.pypi

    async def package(self, name: str, version: str, replies: Replies) -> tuple[Package, Reply]:
        if not _NAME.match(name):
            raise UnreadableSource(name, "it is no name of a package")
        name = canonicalize_name(name)
        reply = await replies.first(
            Route(url=address(self._base, f"pypi/{name}/json"), wanted=JSON),
            Route(url=address(self._base, f"simple/{name}/"), wanted=SIMPLE),
            fresh_for=fresh_for(self.name),
        )
        if reply.route.wanted is SIMPLE or "info" not in reply.json():
            return _of_index(reply.json(), name, version, self._base, reply), reply
        whole = reply.json()
        package = _of_json(whole, whole["info"], version, self._base, reply)
        if package.version != str(whole["info"].get("version")):
            package = await self._older(whole, package, replies, reply)
        return package, reply

    async def _older(
        self, whole: Mapping[str, Any], package: Package, replies: Replies, reply: Reply
    ) -> Package:
        """Another version's readme and addresses are in a reply of their own, which not every
        index has: then the archive's readme stands for it."""
        try:
            own = await replies.get(
                address(self._base, f"pypi/{package.name}/{package.version}/json"),
                fresh_for=fresh_for(self.name),
                wanted=JSON,
            )
        except UnreadableSource:
            return replace(package, readme=None, needs="")
        return _of_json(whole, own.json()["info"], package.version, self._base, reply)


def _of_json(
    whole: Mapping[str, Any], info: Mapping[str, Any], version: str, base: str, reply: Reply
) -> Package:
    name = canonicalize_name(str(info.get("name") or ""))
    files: Mapping[str, list[Mapping[str, Any]]] = whole.get("releases") or {}
    releases = _releases(files, "upload_time_iso_8601")
    newest = str(whole["info"].get("version") or "")
    chosen = _chosen(version, newest, [one.version for one in releases], reply.url)
    sdist = _sdist(files.get(chosen, ()), "packagetype")
    urls = {str(key): str(value) for key, value in (info.get("project_urls") or {}).items()}
    if info.get("home_page"):
        urls.setdefault("Homepage", str(info["home_page"]))
    readme = str(info.get("description") or "")
    return Package(
        name=name,
        ecosystem="pypi",
        version=chosen,
        newest=newest,
        page=f"{base}/project/{name}/{chosen}/",
        summary=str(info.get("summary") or ""),
        needs=f"Python {info['requires_python']}" if info.get("requires_python") else "",
        urls=urls,
        releases=releases,
        readme=("README", readme, str(info.get("description_content_type") or "text/x-rst"))
        if readme.strip() not in ("", "UNKNOWN")
        else None,
        archive=str(sdist["url"]) if sdist else "",
        archive_digest=_digest(sdist, "digests"),
    )


def _of_index(
    index: Mapping[str, Any], name: str, version: str, base: str, reply: Reply
) -> Package:
    """A package by PEP 691's index, which says less."""
    by_version: dict[str, list[Mapping[str, Any]]] = {}
    own = re.escape(name).replace(r"\-", "[-_.]")
    pattern = re.compile(rf"^{own}-([^-]+?)(?:-.*\.whl|\.tar\.gz|\.zip|\.tgz)$", re.IGNORECASE)
    for file in index.get("files") or ():
        found = pattern.match(str(file.get("filename")))
        if found:
            by_version.setdefault(found[1], []).append(file)
    releases = _releases(by_version, "upload-time")
    usable = [one.version for one in releases if one.withdrawn is None and _is_final(one.version)]
    newest = usable[0] if usable else (releases[0].version if releases else "")
    chosen = _chosen(version, newest, list(by_version), reply.url)
    sdist = _sdist(by_version.get(chosen, ()), None)
    needs = next((f["requires-python"] for f in by_version[chosen] if f.get("requires-python")), "")
    return Package(
        name=name,
        ecosystem="pypi",
        version=chosen,
        newest=newest,
        page=f"{base}/project/{name}/{chosen}/",
        needs=f"Python {needs}" if needs else "",
        releases=releases,
        archive=str(sdist["url"]) if sdist else "",
        archive_digest=_digest(sdist, "hashes"),
    )


def _releases(
    by_version: Mapping[str, Sequence[Mapping[str, Any]]], uploaded: str
) -> list[Release]:
    """The versions that have files; `uploaded` is the key of a file's time."""
    releases = [
        Release(version=version, released=moment(files[0].get(uploaded)), withdrawn=_yanked(files))
        for version, files in by_version.items()
        if files
    ]
    return newest_first(releases, "pypi")


def _chosen(version: str, newest: str, known: list[str], url: str) -> str:
    if not version:
        return newest
    for one in known:
        if one == version or _same(one, version):
            return one
    near = ", ".join(known[:5])
    raise UnreadableSource(url, f"it lists no version {version} (the newest are {near})")


def _same(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _is_final(version: str) -> bool:
    try:
        return not Version(version).is_prerelease
    except InvalidVersion:
        return False


def _yanked(files: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a version is yanked; only where all its files are."""
    reasons = [file.get("yanked_reason") or file.get("yanked") for file in files]
    if not all(reasons) or not all(file.get("yanked") for file in files):
        return None
    return next((" ".join(one.split()) for one in reasons if isinstance(one, str)), "")


def _sdist(files: Any, kind: str | None) -> Mapping[str, Any] | None:
    for file in files:
        if kind is not None and file.get(kind) != "sdist":
            continue
        if _SDIST.search(str(file.get("filename"))):
            found: Mapping[str, Any] = file
            return found
    return None


def _digest(file: Mapping[str, Any] | None, key: str) -> tuple[str, str] | None:
    digest = (file or {}).get(key, {}).get("sha256")
    return ("sha256", str(digest)) if digest else None
