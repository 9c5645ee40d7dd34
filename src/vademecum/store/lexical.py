"""The lexical index: for each term the chunks that hold it, with what BM25 wants to know of them.

Chunks of a collection are numbered in the order they are written. What is written together is a
segment, a range of numbers; a term has one row of packed postings for each segment. Newer segments
are merged as they grow in number, so that a query reads few rows; chunks that are gone are listed
with their segment until it is merged (after Lucene's segments; the tables are explained in
migrations/0023_postings.sql).
"""

from collections import OrderedDict
from collections.abc import Collection as Ids
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, groupby
from operator import itemgetter
from struct import Struct

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg import sql

from vademecum.ranking import PACKED, Ranking, unpacked
from vademecum.store import embeddings
from vademecum.store.arrays import Numbers, packed_each
from vademecum.store.db import Connection
from vademecum.store.sql import SQL
from vademecum.types import ChunkId, CollectionId, DocumentId, SpaceId, Vector

POSTING = np.dtype(
    [("number", ">i4"), ("document", ">i4"), ("frequency", ">i2"), ("length", ">i2")]
)
"""An entry of a term's row: a chunk that holds it."""
NUMBER = np.dtype(">i4")
"""Of a chunk that is gone."""
SEGMENT = Struct(">iiii16s")
"""The fields of a Segment."""
NUMBERED_CHUNKS = """
SELECT string_agg({packed}, ''::bytea ORDER BY number),
       string_agg(sequence, '\\x00000000'::bytea ORDER BY number),
       string_agg(int4send(length(sequence) / 4), ''::bytea ORDER BY number)
  FROM (SELECT t.number, t.document_id, t.chunk_id, {similarity} AS similarity,
               CASE WHEN %(sequences)s THEN t.sequence END AS sequence
          FROM chunk_terms t
         WHERE t.collection_id = %(collection)s AND t.number = ANY (%(numbers)s)) AS numbered
"""
SIMILARITY = (
    "(SELECT 1 - min(e.embedding <=> %(vector)s) FROM {table} e WHERE e.chunk_id = t.chunk_id)"
)
MOST = 32767
"""The largest frequency and length that an entry holds; more count as so many."""
FAN_IN = 32
"""While more is to come: a query may then read up to so many segments for each time that their
sizes multiply by it, and a chunk is merged as often."""
MOST_KEPT = 10_000_000
"""Entries kept in memory by who reads them: 160 MB, with what a search made of them. Measured on
458 011 chunks: a search reads five words anew with half as many, four with these and three with
twice as many, and takes 15, 13 and 12 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """The terms of one chunk with their frequencies; `length` is their sum."""

    chunk_id: ChunkId
    document_id: DocumentId
    frequencies: Mapping[str, int]
    sequence: Sequence[str]
    """Terms of title and text in order, stop words left out: what stands beside what."""

    @property
    def length(self) -> int:
        return sum(self.frequencies.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term of a collection, and how many of its chunks hold it."""

    id: int
    term: str
    chunk_count: int


@dataclass(frozen=True, slots=True)
class Segment:
    """Chunks that were written, or merged, together."""

    first: int
    after: int
    chunks: int
    left: int
    """Of the chunks, those that still are."""
    key: bytes = b""
    """Of what was written or merged then, and of nothing else ever."""

    @property
    def gone(self) -> int:
        return self.chunks - self.left


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Of a collection."""

    chunk_count: int
    average_length: float
    next_number: int
    """What is written later has this number, or a larger one."""
    segments: Sequence[Segment]
    """In the order of their numbers."""


class Lexicon:
    """Term ids of collections. They never change, so they are kept in memory."""

    def __init__(self) -> None:
        self._ids: dict[CollectionId, dict[str, int]] = {}

    async def ids(
        self, connection: Connection, collection: CollectionId, terms: Ids[str]
    ) -> dict[str, int]:
        """The id of each term; new terms get one. Call outside a transaction: what is kept
        here must be durable."""
        known = self._ids.setdefault(collection, {})
        # Adding tells those that are new: mostly nothing is left to look up then.
        for statement in (SQL["add_terms"], SQL["term_ids"]):
            if missing := " ".join(term for term in terms if term not in known):
                values = {"collection": collection, "terms": missing}
                cursor = await connection.execute(statement, values)
                known.update(await cursor.fetchall())
        return known


async def insert(
    connection: Connection,
    collection: CollectionId,
    rows: Sequence[Postings],
    ids: Mapping[str, int],
) -> None:
    """Postings of new chunks, a segment; call inside the transaction that writes the chunks."""
    if not rows:
        return
    cursor = await connection.execute(
        SQL["number_chunks"], {"collection": collection, "chunks": len(rows)}
    )
    numbered = await cursor.fetchone()
    assert numbered is not None
    first = int(numbered[0])
    lengths = [len(row.frequencies) for row in rows]
    found = np.array([ids[term] for row in rows for term in row.frequencies], np.int32)
    counts = np.array([times for row in rows for times in row.frequencies.values()], np.int64)
    order = np.lexsort((found, np.repeat(np.arange(len(rows)), lengths)))
    columns = zip(
        count(first),
        rows,
        packed_each(found[order], lengths, "int4"),
        packed_each(np.minimum(counts[order], MOST), lengths, "int2"),
        strict=False,
    )
    async with connection.cursor() as cursor, cursor.copy(SQL["copy_chunk_terms"]) as copy:
        copy.set_types(["uuid", "int4", "int4", "int4", "int4", "bytea", "bytea", "bytea"])
        for number, row, term_ids, frequencies in columns:
            sequence = np.array([ids[term] for term in row.sequence], "<i4").tobytes()
            await copy.write_row(
                (
                    row.chunk_id,
                    row.document_id,
                    collection,
                    number,
                    row.length,
                    term_ids,
                    frequencies,
                    sequence,
                )
            )
    values = {"collection": collection, "first": first, "after": first + len(rows)}
    await connection.execute(SQL["pack_postings"], values)
    await connection.execute(SQL["add_segment"], values)


async def delete(connection: Connection, chunks: Ids[ChunkId]) -> None:
    await connection.execute(SQL["delete_chunk_terms"], {"chunks": list(chunks)})


async def lock(connection: Connection, collection: CollectionId) -> None:
    """Let other writers of the collection's chunks wait until the transaction ends."""
    await connection.execute(SQL["lock_lexical_statistics"], {"collection": collection})


async def merge(connection: Connection, collection: CollectionId, *, fan_in: int = 1) -> bool:
    """Make one segment of the newest ones, where these are too many; whether it had to.

    Searches go on meanwhile, other writers of the collection wait. `fan_in` is as for `to_merge`.
    """
    async with connection.transaction():
        await lock(connection, collection)
        due = to_merge(await segments(connection, collection), fan_in=fan_in)
        if not due:
            return False
        first, after = due[0].first, due[-1].after
        values = {"collection": collection, "first": first, "after": after}
        if any(segment.gone for segment in due):
            await connection.execute(SQL["drop_segments"], values)
            await connection.execute(SQL["pack_postings"], values)
        else:
            await connection.execute(SQL["join_segments"], values)
        await connection.execute(SQL["add_segment"], values)
    return True


async def segments(connection: Connection, collection: CollectionId) -> list[Segment]:
    """In the order of their numbers."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(SQL["segments"], {"collection": collection})
    [(packed,)] = await cursor.fetchall()
    return _segments(packed or b"")


def _segments(packed: bytes) -> list[Segment]:
    return [Segment(*fields) for fields in SEGMENT.iter_unpack(packed)]


async def dropped(
    connection: Connection, collection: CollectionId
) -> dict[bytes, NDArray[np.int32]]:
    """The numbers of the chunks that are gone, by the keys of their segments."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(SQL["dropped_chunks"], {"collection": collection})
    return {
        key: np.frombuffer(gone, NUMBER).astype(np.int32) for key, gone in await cursor.fetchall()
    }


def to_merge(segments: Sequence[Segment], *, fan_in: int = 1) -> Sequence[Segment]:
    """The newest segments, from the first on of which so many are no larger than all newer ones
    together, or of whose chunks half are gone.

    With 1, what remains are at most log2(n) segments, and a chunk is merged about as often (the
    logarithmic method, Bentley & Saxe 1980); with more, fewer merges leave more segments, and so
    many are always left.
    """
    start, newer = len(segments), 0
    crowded = len(segments) > fan_in
    for place in reversed(range(len(segments))):
        segment = segments[place]
        outgrown = crowded and fan_in * segment.left <= newer
        if outgrown or 2 * segment.left <= segment.chunks:
            start = place
        newer += segment.left
    return segments[start:]


@dataclass(slots=True, kw_only=True)
class Entries:
    """A term's chunks of one segment, ascending; arrays of shape (chunks,)."""

    numbers: NDArray[np.int32]
    documents: NDArray[np.int32]
    frequencies: NDArray[np.int16]
    lengths: NDArray[np.int16]
    weighed: tuple[float, NDArray[np.float32]] | None = None
    """What a search made of frequencies and lengths, and for which average length: kept with
    them, since it is the same until something is written."""

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, wanted: NDArray[np.bool_]) -> "Entries":
        return Entries(
            numbers=self.numbers[wanted],
            documents=self.documents[wanted],
            frequencies=self.frequencies[wanted],
            lengths=self.lengths[wanted],
            weighed=self.weighed and (self.weighed[0], self.weighed[1][wanted]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A term of a collection, with what each segment has of it."""

    term: Term
    entries: Sequence[Entries]
    """Without chunks that are gone."""

    def within(self, passing: NDArray[np.bool_]) -> "Held":
        """Of some documents only, as `ranking.let_through` says which."""
        beyond = len(passing) - 1
        return Held(
            term=self.term,
            entries=[
                part.where(passing[np.minimum(part.documents, beyond)]) for part in self.entries
            ],
        )


class KeptEntries:
    """Entries that were read lately, so that a common word is not read anew for every query.

    They are those of a segment that never changes, and the server says with each query which
    segments there are; so what is kept is never out of date.
    """

    def __init__(self, *, most: int = MOST_KEPT) -> None:
        """`most` is how many entries are kept; what was not asked for longest goes first."""
        self._most = most
        self._size = 0
        self._kept: OrderedDict[tuple[CollectionId, str], dict[bytes, Entries]] = OrderedDict()

    def of(self, collection: CollectionId, terms: Iterable[str]) -> dict[str, dict[bytes, Entries]]:
        """What there is of the terms, by the keys of segments."""
        kept = {term: self._kept.get((collection, term)) for term in terms}
        return {term: entries for term, entries in kept.items() if entries}

    def keep(self, collection: CollectionId, term: str, entries: dict[bytes, Entries]) -> None:
        """All of a term, by the keys of its segments; what there was of others is forgotten."""
        before = self._kept.pop((collection, term), {})
        self._kept[collection, term] = entries
        if entries.keys() == before.keys():
            return
        self._size += _size(entries) - _size(before)
        while self._size > self._most:
            _, oldest = self._kept.popitem(last=False)
            self._size -= _size(oldest)


def _size(entries: Mapping[bytes, Entries]) -> int:
    return sum(map(len, entries.values()))


async def postings(
    connection: Connection, collection: CollectionId, terms: Ids[str], kept: KeptEntries
) -> tuple[Statistics, list[Held]] | None:
    """Those of the terms that the collection holds, rarest first; None where there is none."""
    before = kept.of(collection, terms)
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        SQL["postings"],
        {
            "collection": collection,
            "terms": " ".join(terms),
            "kept": "\n".join(f"{t} {key.hex()}" for t, kept in before.items() for key in kept),
        },
    )
    rows = await cursor.fetchall()
    if not rows:
        return None
    held = []
    for term, of_term in groupby(rows, key=itemgetter(0)):
        parts = list(of_term)
        entries = {
            key: before[term][key] if packed is None else _unpacked(packed)
            for _, _, key, _, packed, *_ in parts
        }
        kept.keep(collection, term, entries)
        present = [
            _without(entries[key], dropped) if dropped else entries[key]
            for _, _, key, dropped, *_ in parts
        ]
        if holding := sum(map(len, present)):
            number = parts[0][1]
            held.append(Held(term=Term(id=number, term=term, chunk_count=holding), entries=present))
    if not held:
        return None
    held.sort(key=lambda one: (one.term.chunk_count, one.term.term))
    chunk_count, average_length, next_number, segments = rows[0][5:]
    statistics = Statistics(
        chunk_count=chunk_count,
        average_length=average_length,
        next_number=next_number,
        segments=_segments(segments),
    )
    return statistics, held


def _unpacked(packed: bytes) -> Entries:
    found = np.frombuffer(packed, POSTING)
    return Entries(
        numbers=found["number"].astype(np.int32),
        documents=found["document"].astype(np.int32),
        frequencies=found["frequency"].astype(np.int16),
        lengths=found["length"].astype(np.int16),
    )


def _without(entries: Entries, dropped: bytes) -> Entries:
    return entries.where(~np.isin(entries.numbers, np.frombuffer(dropped, NUMBER)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """Chunks by their numbers, ascending; of those asked for, the ones that exist."""

    found: Ranking
    """The score is the cosine similarity of the best window; 0 without vectors."""
    sequences: NDArray[np.int32]
    """Ids of the terms of each in order, and a 0 between two chunks or after each; empty where
    they were not asked for."""
    lengths: NDArray[np.int32]
    """How many terms each sequence has; empty likewise."""


async def chunks_of(
    connection: Connection,
    collection: CollectionId,
    numbers: NDArray[np.int64],
    *,
    sequences: bool,
    near: tuple[SpaceId, Vector] | None,
) -> Numbered:
    """Those of the chunks that exist, with the sequence of terms and the similarity to a vector of
    a space where they are wanted."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(
        _numbered_chunks(embeddings.table(near[0]) if near else None),
        {"collection": collection, "numbers": Numbers(numbers), "sequences": sequences}
        | ({"vector": HalfVector(near[1])} if near else {}),
    )
    row = await cursor.fetchone()
    assert row is not None
    return Numbered(
        found=unpacked(row[0]),
        sequences=np.frombuffer(row[1] or b"", "<i4").astype(np.int32),
        lengths=np.frombuffer(row[2] or b"", ">i4").astype(np.int32),
    )


@cache
def _numbered_chunks(table: str | None) -> bytes:
    similarity = sql.SQL(SIMILARITY if table else "0").format(table=sql.Identifier(table or ""))
    packed = PACKED.format(
        number="number",
        document="document_id",
        score="coalesce(similarity, 0)",
        chunk="chunk_id",
    )
    return sql.SQL(NUMBERED_CHUNKS).format(similarity=similarity, packed=sql.SQL(packed)).as_bytes()


async def numbers_of(connection: Connection, chunks: Ids[ChunkId]) -> dict[ChunkId, int]:
    """The numbers of those of the chunks that exist."""
    cursor = connection.cursor(binary=True)
    await cursor.execute(SQL["numbers_of_chunks"], {"chunks": list(chunks)})
    return dict(await cursor.fetchall())
