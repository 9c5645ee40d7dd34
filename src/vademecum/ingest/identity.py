"""Names that follow from content: the same text in the same place always has the same id."""

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from uuid import UUID, uuid5

from vademecum.types import ChunkId

NAMESPACE = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")


def content_hash(text: str) -> str:
    """SHA-256 of the text, hexadecimal."""
    # A lone surrogate is no valid UTF-8, but it must not stop a whole folder.
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def parent_id(identity: str) -> UUID:
    """The id that all chunks of one document share."""
    return uuid5(NAMESPACE, f"{identity}:parent")


def chunk_id(identity: str, digest: str, repetition: int = 0) -> ChunkId:
    """The id of a chunk; `repetition` counts equal texts before it in the same document."""
    suffix = f":{repetition}" if repetition else ""
    return ChunkId(uuid5(NAMESPACE, f"{identity}:{digest[:16]}{suffix}"))


def chunk_ids(identity: str, digests: Iterable[str]) -> list[ChunkId]:
    """The ids of a document's chunks, in reading order, no two alike."""
    seen: Counter[str] = Counter()
    ids = []
    for digest in digests:
        # Counted by what goes into the id, so that even equal prefixes cannot collide.
        ids.append(chunk_id(identity, digest, seen[digest[:16]]))
        seen[digest[:16]] += 1
    return ids
