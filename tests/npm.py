"""Packages of npm that tests talk to, installed once into a cache folder of the user's."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vademecum-tests"


def installed(package: str, version: str, *options: str) -> Path:
    """The folder that has it under node_modules. Skips the test where it cannot be had."""
    folder = CACHE / f"{package.rpartition('/')[2]}-{version}"
    npm = shutil.which("npm")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            if npm is None:
                pytest.skip(f"{package} cannot be installed: there is no npm")
            arguments = [npm, "install", "--no-audit", "--no-fund", "--fetch-retries=0", *options]
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                done = subprocess.run(
                    [*arguments, f"{package}@{version}", "--prefix", folder],
                    capture_output=True,
                    text=True,
                    timeout=300,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                pytest.skip(f"{package} cannot be installed: npm took longer than 300 s")
            if done.returncode != 0:
                pytest.skip(f"{package} cannot be installed: {done.stderr.strip()[-300:]}")
            (folder / "complete").touch()
    return folder
