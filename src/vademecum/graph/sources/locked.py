"""Locked versions that are not installed: fetched from the package index, read and never run.

Only built packages (wheels) are taken, so that nothing of them is executed. The installer on this
machine fetches them, so that its index, its proxy and its certificates count.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from vademecum.graph.locks import Locked
from vademecum.graph.sources import environment
from vademecum.graph.sources.environment import Environment

SECONDS = 120
"""That fetching one package may take."""


def nothing_installed(root: Path) -> Environment:
    """The environment of a project that has none: this interpreter's standard library alone."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Environment(
        root=root,
        python=version,
        folders=(),
        stdlib=environment.stdlib_of(Path(sys.base_prefix), version),
    )


def wanted(known: Environment, tops: Iterable[str], pins: Mapping[str, Locked]) -> list[Locked]:
    """The locked packages that imports lead to and that are not installed in that version."""
    found: dict[str, Locked] = {}
    for top in sorted(set(tops)):
        if known.is_stdlib(top):
            continue
        names = {
            one.name for path, one in known.owners.items() if path.partition(".")[0] == top
        } or {_named_alike(top, pins)}
        for name in names:
            pin = pins.get(f"pypi:{name}")
            here = known.installed.get(name)
            if pin is not None and (here is None or here.version != pin.version):
                found[name] = pin
    return list(found.values())


def _named_alike(top: str, pins: Mapping[str, Locked]) -> str:
    """The locked distribution that most likely gives a module; '' for none. What it really gives is
    seen once it is read."""
    plain = top.lower().replace("_", "-")
    likely = (plain, f"py{plain}", f"python-{plain}", f"{plain}-python", f"py-{plain}")
    return next((name for name in likely if f"pypi:{name}" in pins), "")


def with_locked(
    known: Environment,
    pins: Iterable[Locked],
    *,
    home: Path,
    notice: Callable[[str], None] = lambda text: None,
) -> tuple[Environment, list[str]]:
    """The environment with these versions before what is installed, and what could not be had."""
    folders, problems = [], []
    for pin in pins:
        notice(f"fetching {pin.name} {pin.version}")
        problem = _fetch(pin, known.python, home / f"{pin.name}-{pin.version}")
        if problem:
            problems.append(f"{pin.name} {pin.version} could not be fetched: {problem}")
        else:
            folders.append(home / f"{pin.name}-{pin.version}")
    return replace(known, folders=(*folders, *known.folders)), problems


def _fetch(pin: Locked, python: str, folder: Path) -> str:
    """Bring a package into a folder, whole or not at all; what went wrong, or ''."""
    if folder.is_dir():
        return ""
    installer = _installer()
    if not installer:
        return "neither uv nor pip is on this machine"
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        done = subprocess.run(
            [
                *installer,
                *("--no-deps", "--only-binary", ":all:", "--quiet"),
                *("--python-version", ".".join(python.split(".")[:2])),
                *("--target", str(fresh), f"{pin.name}=={pin.version}"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode != 0:
            return _last_line(done.stderr)
        if folder.is_dir():  # another one was quicker
            return ""
        os.rename(fresh, folder)
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS} s"
    except OSError as error:
        return str(error)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return ""


def _installer() -> list[str]:
    """uv, else pip: our interpreter's or that of the path. Empty where there is none."""
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--python", sys.executable]
    pip = [sys.executable, "-m", "pip"] if find_spec("pip") else [shutil.which("pip") or ""]
    return [*pip, "install", "--no-compile", "--disable-pip-version-check"] if pip[0] else []


def _last_line(text: str) -> str:
    lines = [
        re.sub(r"^(?:[^\w/]*)(?:error:)?\s*", "", line, flags=re.IGNORECASE)
        for line in text.splitlines()
    ]
    return next((line for line in reversed(lines) if line), "the installer did not say why")[:300]
