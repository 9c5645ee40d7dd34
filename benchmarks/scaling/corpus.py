"""Documents of any number of chunks, out of real passages and their vectors."""

import random
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engines.handover import Handover, Passage, Question, sample
from vademecum.app import App
from vademecum.inference.embedder import Embedder, Tokenizer
from vademecum.types import EmbeddingSpace, Vector

COLLECTION = "scale"
EMBEDDER = "bench:pool"
SECTIONS = 20
PARTS = 1000
SEED = 11
PROFILE = """
[chunks]
max_tokens = 512
overlap_tokens = 64
header = "{headings}"

[facets.part]
type = "integer"
minimum = 0
maximum = 999
front_matter = "part"
required = true
"""
_NAME = re.compile(r"\bpassage(\d+)\b")


class Pool:
    """Real passages with the vectors of their first windows, in a fixed random order."""

    def __init__(self, folder: Path) -> None:
        handover = Handover(folder)
        order = list(enumerate(handover.passages()))
        random.Random(SEED).shuffle(order)
        self.passages: Sequence[Passage] = [passage for _, passage in order]
        self._vectors = handover.vectors[[index for index, _ in order]]

    def __len__(self) -> int:
        return len(self.passages)

    def text(self, number: int) -> str:
        """The text of the chunk of this number, without headings."""
        if number < len(self):
            return _plain(self.passages[number].text)
        chance = random.Random(number)
        return "\n\n".join(chance.choice(self._paragraphs) for _ in range(3))

    def vector(self, number: int, window: int = 0) -> Vector:
        """Its vector; shape (dimensions,), of length one."""
        if number < len(self) and window == 0:
            vector: Vector = self._vectors[number]
            return vector
        chance = random.Random(f"{number} {window}")
        one, other = (self._vectors[chance.randrange(len(self))] for _ in range(2))
        share = chance.uniform(0.5, 1)
        between: Vector = share * one + (1 - share) * other
        return between / np.float32(np.linalg.norm(between))

    def questions(self, chunks: int, wanted: int) -> list[Question]:
        """Words of the first passages; `chunk_id` is the heading of the passage's section."""
        named = [
            Passage(id=f"passage{number}", path=one.path, title=one.title, text=_plain(one.text))
            for number, one in enumerate(self.passages[:chunks])
        ]
        return sample(named, wanted)

    def embedder(self, app: App) -> Embedder:
        """The real one, for questions."""
        found = app.embedders.named(app.settings.embedder)
        assert found is not None
        return found

    @cached_property
    def _paragraphs(self) -> list[str]:
        return [
            paragraph
            for passage in self.passages
            for paragraph in _plain(passage.text).split("\n\n")
            if 150 <= len(paragraph) <= 800
        ]


class PoolEmbedder:
    """Looks up the vectors of documents by the name of their section; embeds questions."""

    def __init__(self, app: App, pool: Pool) -> None:
        self._pool = pool
        self._real = pool.embedder(app)
        self.space = EmbeddingSpace(
            model="bench:pool", dimensions=self._real.space.dimensions, digest="pool"
        )
        self.max_tokens = self._real.max_tokens

    @property
    def tokenizer(self) -> Tokenizer:
        return self._real.tokenizer

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions)."""
        seen: dict[int, int] = {}
        vectors = np.empty((len(texts), self.space.dimensions), np.float32)
        for index, text in enumerate(texts):
            match = _NAME.search(text)
            number = int(match[1]) if match else 0
            window = seen[number] = seen.get(number, -1) + 1
            vectors[index] = self._pool.vector(number, window)
        return vectors

    async def embed_query(self, text: str) -> Vector:
        return await self._real.embed_query(text)


def write_documents(pool: Pool, folder: Path, chunks: int) -> tuple[int, Path]:
    """So many sections as files, in one folder for a thousand of them; their bytes, and the
    profile that they want."""
    folder.mkdir(parents=True)
    size = 0
    for number, text in _documents(pool, chunks):
        place = folder / f"{number // 1000:03}" / f"{number}.md"
        place.parent.mkdir(exist_ok=True)
        size += place.write_text(text, encoding="utf-8")
    profile = folder.parent / "scale.toml"
    profile.write_text(PROFILE)
    return size, profile


def parts(documents: int) -> list[int]:
    """The part of each document: equally many in each, neighbours in different ones."""
    places = list(range(documents))
    random.Random(SEED).shuffle(places)
    return [place * PARTS // documents for place in places]


def _documents(pool: Pool, chunks: int) -> Iterator[tuple[int, str]]:
    documents = -(-chunks // SECTIONS)
    part = parts(documents)
    for document in range(documents):
        numbers = range(document * SECTIONS, min((document + 1) * SECTIONS, chunks))
        sections = (f"## passage{number}\n\n{pool.text(number)}\n" for number in numbers)
        head = f"---\npart: {part[document]}\n---\n\n# Document {document}\n\n"
        yield document, head + "\n".join(sections)


def _plain(text: str) -> str:
    """Without headings of its own: a section is one chunk, if it is not too long."""
    return "\n".join(line.lstrip("#").strip() if line.startswith("#") else line
                     for line in text.splitlines())  # fmt: skip
