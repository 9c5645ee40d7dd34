"""What the engines get: the same chunks, vectors and questions, as files in a folder."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vademecum.inference.embedder import Embedder
from vademecum.inference.open import open_embedder

SEED = 7
WORDS = (6, 10)
"""Words of a question, from and to."""
WARM_UP = 20
COLLECTION = "benchmark"

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.M | re.S)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_'-]*")
_NO_PROSE = re.compile(r"\s*(?:[#|>]|    )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A chunk as the other engines get it."""

    id: str
    path: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Some words in the order in which a chunk has them."""

    text: str
    chunk_id: str


class Handover:
    """A folder of the data; `vectors[i]` is that of the first window of the i-th passage."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def about(self) -> dict[str, Any]:
        """Counts, and where our own database is; empty until all else is written."""
        file = self.folder / "about.json"
        about: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
        return about

    @property
    def questions(self) -> tuple[list[Question], list[Question]]:
        """Those to warm up with, and those to measure."""
        read = json.loads((self.folder / "questions.json").read_text())
        questions = [Question(**one) for one in read]
        return questions[:WARM_UP], questions[WARM_UP:]

    def embedder(self) -> Embedder:
        """What the vectors were made with."""
        about = self.about
        embedder = open_embedder(about["embedder"], home=Path(about["home"]))
        assert embedder is not None
        return embedder

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = np.load(self.folder / "vectors.npy")
        return vectors

    def passages(self) -> Iterator[Passage]:
        with (self.folder / "chunks.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                yield Passage(**json.loads(line))

    def write(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        with (self.folder / "chunks.jsonl").open("w", encoding="utf-8") as file:
            for passage in passages:
                file.write(json.dumps(asdict(passage)) + "\n")
        np.save(self.folder / "vectors.npy", vectors)

    def write_about(self, about: dict[str, Any]) -> None:
        (self.folder / "about.json").write_text(json.dumps(about))

    def write_questions(self, count: int) -> None:
        """So many to measure, and before them those to warm up with."""
        questions = sample(list(self.passages()), WARM_UP + count)
        (self.folder / "questions.json").write_text(json.dumps([asdict(one) for one in questions]))


def sample(passages: Sequence[Passage], count: int) -> list[Question]:
    """Questions from the prose of random passages, the same for the same passages."""
    chance = random.Random(SEED)
    questions: list[Question] = []
    for passage in chance.sample(passages, len(passages)):
        if len(questions) == count:
            break
        size = chance.randint(*WORDS)
        lines = [words for words in prose(passage.text) if len(words) >= size]
        if lines:
            words = chance.choice(lines)
            start = chance.randint(0, len(words) - size)
            text = " ".join(words[start : start + size])
            questions.append(Question(text=text, chunk_id=passage.id))
    return questions


def prose(text: str) -> list[list[str]]:
    """The words of each line that is neither code nor a heading, a table or a quotation."""
    plain = _LINK.sub(r"\1", _FENCE.sub("", text))
    lines = (line for line in plain.splitlines() if not _NO_PROSE.match(line))
    return [_WORD.findall(line) for line in lines]
