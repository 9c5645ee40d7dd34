"""Environments as installers leave them, made of the sources that a test gives."""

import hashlib
from pathlib import Path
from textwrap import dedent


def install(venv: Path, name: str, version: str, files: dict[str, str], **metadata: str) -> None:
    """Put a distribution into an environment, which is made where it is new."""
    site = venv / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    (venv / "pyvenv.cfg").write_text(f"home = {venv}/bin\nversion = 3.11.7\n")
    record = []
    for path, text in files.items():
        target = site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(dedent(text))
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        record.append(f"{path},sha256={digest},{target.stat().st_size}")
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}"]
    lines += [
        f"{key.replace('_', '-')}: {value}" for key, value in metadata.items() if key != "readme"
    ]
    (info / "METADATA").write_text("\n".join(lines) + "\n\n" + metadata.get("readme", ""))
    (info / "RECORD").write_text("\n".join(record) + "\n")


def project(root: Path, files: dict[str, str]) -> Path:
    """A project's files."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(dedent(text))
    return root
