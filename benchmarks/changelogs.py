"""Notices of real changelogs, resolved in older versions of their packages: how many are right.

    python benchmarks/changelogs.py [--print]

For each package the newest changelog is fetched as `vade fetch package` does, and an older version
is installed beside it with `uv`; what the changelog calls deprecated or removed, of names that the
older version has, is compared with `judged/changelogs.txt`, in which each was judged by hand
against the changelog: `right` where it says so of this very API, else `wrong`. --print shows all
with their sentences, for judging. Needs the package index.
"""

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from scratch import scratch_app
from vademecum.graph import changelog
from vademecum.graph.changelog import Changelog, Notice
from vademecum.graph.sources.adapter import Subject
from vademecum.graph.sources.python_api import read_library
from vademecum.graph.told import names_of

OLDER = {
    "aiohttp": "3.6.3",
    "attrs": "22.1.0",
    "click": "8.0.4",
    "cryptography": "38.0.4",
    "flask": "2.0.3",
    "httpx": "0.13.3",
    "marshmallow": "3.13.0",
    "pydantic": "1.10.15",
    "structlog": "21.5.0",
    "urllib3": "1.26.18",
    "werkzeug": "2.0.3",
}
JUDGED = Path(__file__).parent / "judged" / "changelogs.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--print", action="store_true", dest="show")
    arguments = parser.parse_args()
    judged = dict(line.rsplit(" ", 1) for line in JUDGED.read_text().splitlines() if line)
    verdicts: Counter[str] = Counter()
    said = 0
    fetched = asyncio.run(fetch())
    for package, version in OLDER.items():
        found, resolved = read(package, version, fetched.get(f"pypi:{package}", ()))
        said += found
        for name, notice in sorted(resolved.items()):
            key = f"{package} {name}"
            verdicts[judged.get(key, "not judged")] += 1
            if arguments.show:
                print(f"{key}  since {notice.since} until {notice.until}\n    {notice.sentence}")
    total = sum(verdicts.values())
    print(
        f"{said} names in notices of {len(OLDER)} packages, {total} of them APIs of the older ones"
    )
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))


async def fetch() -> dict[str, list[Changelog]]:
    async with scratch_app(embedder="none") as app:
        (app.settings.home / "cache.toml").write_text("[defaults]\nprivate_network = true\n")
        for package in OLDER:
            subject = Subject(kind="package", name=package, language="python")
            for failed in (await app.sources.fetch(subject, only=["pypi"])).failed:
                print(f"{package}: {failed.reason}", file=sys.stderr)
        return {key: list(listed) for key, listed in (await app.sources.changelogs()).items()}


def read(
    package: str, version: str, changelogs: list[Changelog] | tuple[()]
) -> tuple[int, dict[str, Notice]]:
    uv = shutil.which("uv") or str(Path(".uv/bin/uv").resolve())
    with tempfile.TemporaryDirectory() as folder:
        install = [uv, "pip", "install", "-q", "--no-deps", "--target", folder]
        subprocess.run([*install, f"{package}=={version}"], check=True)
        tops = [one.parent.name for one in Path(folder).glob("*/__init__.py")]
        library = read_library(package, version, tops, [Path(folder)])
    _, names = names_of(library)
    found = [changelog.notices(one.text) for one in changelogs]
    resolved: dict[str, Notice] = {}
    for notices in found:
        for name, notice in changelog.resolved(notices, names).items():
            if not changelog.is_back(notice, version, "pypi"):
                resolved.setdefault(name, notice)
    return sum(map(len, found)), resolved


if __name__ == "__main__":
    main()
