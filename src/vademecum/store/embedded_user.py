"""Who runs the embedded server: we ourselves, or for root another user of the cluster's own."""

import hashlib
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vademecum.errors import EmbeddedDatabaseFailed

PRIVATE_IDS = range(61184, 65520)
"""User ids that belong to nobody for long: systemd hands them out to passing services."""


class User(NamedTuple):
    uid: int
    gid: int


def server_user(cluster: Path) -> User | None:
    """Who runs the server; None is ourselves. The owner of the cluster, once there is one."""
    ours, there = os.geteuid(), cluster.exists()
    found = (cluster if there else cluster.parent).stat()
    if ours == 0 and found.st_uid != 0:
        return User(found.st_uid, found.st_gid)
    if there and (ours == 0 or found.st_uid != ours):
        whose = name_of(found.st_uid) or f"user {found.st_uid}"
        raise EmbeddedDatabaseFailed(
            f"{cluster} belongs to {whose}, and no server of ours can run as that user",
            hint="Give it back with chown to the user who made it, or choose another VADE_HOME.",
        )
    return None


def name_of(uid: int) -> str | None:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return None


def private_user(sample: Path, name: str) -> User:
    """A user id of this cluster's own, so that no other service can read it.

    A container may lack most ids; there an existing system user has to do.
    """
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
    first = int.from_bytes(digest[:4]) % len(PRIVATE_IDS)
    candidates = [PRIVATE_IDS[(first + step) % len(PRIVATE_IDS)] for step in range(100)]
    free = next(uid for uid in candidates if name_of(uid) is None)
    for user in (User(free, free), *_system_users()):
        try:
            os.chown(sample, user.uid, user.gid)
        except OSError:
            continue
        return user
    raise EmbeddedDatabaseFailed(
        "PostgreSQL does not run as root, and this root may not act as another user",
        hint="Run Vademecum as an ordinary user, or set VADE_DATABASE_URL to a server.",
    )


def _system_users() -> Iterator[User]:
    for name in ("nobody", "daemon", "bin"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        yield User(entry.pw_uid, entry.pw_gid)


def named(user: User) -> User:
    """This user, or one that has a name: initdb insists on that, the server does not."""
    return user if name_of(user.uid) is not None else next(_system_users(), user)
