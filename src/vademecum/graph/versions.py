"""Versions as text that sorts as their ecosystem orders them: "3.9" before "3.12".

The text compares byte by byte, so that PostgreSQL and Neo4j order versions as we do. Numbers carry
their length before them; what may end early ends with `!`, which is below every other character.
"""

import re
from typing import Literal

from packaging.version import InvalidVersion
from packaging.version import Version as PythonVersion
from semver import Version as Semver

Ecosystem = Literal["pypi", "npm", ""]
"""Who orders the versions: PEP 440 for pypi, Semantic Versioning for npm; "" is not known."""

_OF_LANGUAGE: dict[str, Ecosystem] = {
    "python": "pypi",
    "javascript": "npm",
    "typescript": "npm",
    "node": "npm",
    "node.js": "npm",
}
_WITH_NAME = re.compile(r"^[A-Za-z][A-Za-z.+#]*\s+(?=v?\d)")


def ecosystem_of(language: str) -> Ecosystem:
    """The ecosystem of a programming language; "" for one that is not known."""
    return _OF_LANGUAGE.get(language.lower(), "")


def order(version: str, ecosystem: Ecosystem) -> str | None:
    """Text by which the version sorts; None where it is no version of the ecosystem.

    A name before the number ("Python 3.12") does not count. Without an ecosystem: PEP 440.
    """
    number = _WITH_NAME.sub("", version.strip())
    if not number:
        return None
    try:
        return _semver(number) if ecosystem == "npm" else _pep440(number)
    except (InvalidVersion, ValueError, TypeError):
        return None


def _pep440(text: str) -> str:
    """After `packaging.version._cmpkey`, with the same infinities."""
    version = PythonVersion(text)
    release = list(version.release)
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if version.pre is not None:
        pre = version.pre[0] + _number(version.pre[1])
    elif version.post is None and version.dev is not None:
        pre = "0"  # before every pre-release
    else:
        pre = "z"
    post = "0" if version.post is None else "1" + _number(version.post)
    dev = "1" if version.dev is None else "0" + _number(version.dev)
    local = "".join(
        "1" + _number(int(part)) if part.isdecimal() else f"0{part}!"
        for part in (version.local or "").split(".")
        if part
    )
    numbers = "".join(_number(part) for part in release)
    return f"{_number(version.epoch)}{numbers}!{pre}{post}{dev}{local}"


def _semver(text: str) -> str:
    version = Semver.parse(text.removeprefix("v"), optional_minor_and_patch=True)
    core = "".join(_number(part) for part in (version.major, version.minor, version.patch))
    if version.prerelease is None:
        return core + "z"
    parts = "".join(
        "0" + _number(int(part)) if part.isdecimal() else f"1{part}!"
        for part in version.prerelease.split(".")
    )
    return f"{core}0{parts}!"


def _number(value: int) -> str:
    digits = str(value)
    if len(digits) > 99:
        raise ValueError("a number of a version has at most 99 digits")
    return f"{len(digits):02d}{digits}"
