"""Packages of Python that tests talk to and that are too large for every environment: installed
once into a cache folder of the user's."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from npm import CACHE

UV = shutil.which("uv") or shutil.which(Path(__file__).parents[1] / ".uv" / "bin" / "uv")


def installed(package: str, version: str) -> Path:
    """The folder of a virtual environment that has it. Skips the test where it cannot be had."""
    folder = CACHE / f"{package}-{version}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            if UV is None:
                pytest.skip(f"{package} cannot be installed: there is no uv")
            shutil.rmtree(folder, ignore_errors=True)
            _run(package, [UV, "venv", "--quiet", "--python", sys.executable, folder])
            python = folder / "bin" / "python"
            _run(package, [UV, "pip", "install", "--python", python, f"{package}=={version}"])
            (folder / "complete").touch()
    return folder


def _run(package: str, command: "list[str | Path]") -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{package} cannot be installed: it took longer than 300 s")
    if done.returncode != 0:
        pytest.skip(f"{package} cannot be installed: {done.stderr.strip()[-300:]}")
