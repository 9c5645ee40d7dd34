"""What is told of work: while it goes on, and in the end."""

from collections.abc import Callable
from dataclasses import dataclass

from vademecum.ingest.pipeline import Failure
from vademecum.types import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a drain is: documents and chunks done, documents left."""

    done: int = 0
    failed: int = 0
    chunks: int = 0
    embedded: int = 0
    reused: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Whom to tell how long work is going."""

    read: Callable[[int, int], None] = lambda done, total: None
    """Files looked at, of how many."""
    worked: Callable[[Progress], None] = lambda progress: None
    notice: Callable[[str], None] = lambda text: None
    """Something the user should know, that is no failure."""


QUIET = Listener()


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """What an ingest stored and made searchable, and what it could not. A document counts once:
    one that is stored and violates its profile, say, has only failed."""

    collection: str
    inserted: int
    updated: int
    unchanged: int
    deleted: int
    failed: list[Failure]
    chunks: int
    """Chunks of the documents made searchable now: embedded and reused."""
    embedded: int
    reused: int
    pending: int
    """Documents stored and not yet searchable."""
    seconds: float
    run: int
    """The row that it is kept in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """What storing one file or page did."""

    collection: str
    path: str
    action: Change
    pending: int
    error: str | None = None
    """Why it is not searchable and will not be, such as a violation of the profile."""
