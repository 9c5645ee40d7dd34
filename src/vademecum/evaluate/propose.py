"""Questions proposed from a collection, in other words than those of its text.

[Passage] --phrase--> what it is about --reword--> the same with words that it does not use

A question that repeats its source is found by any search and tells nothing. So each word of the
phrase gives way to the nearest word, by the embedder, that the collection uses elsewhere and the
passage does not. What comes out is rough, and meant to be edited by a person.

Which words have others, and which are names, is known for English only; documents in another
language are left out. In their own words, which is their headings, passages of all languages can be
had: a frame for a person who then puts every question anew.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vademecum.evaluate.gold import Expectation, Question
from vademecum.inference.embedder import Embedder
from vademecum.ingest.language import language
from vademecum.memory.lexicon import ordinary
from vademecum.search.terms import STOP_WORDS, terms
from vademecum.store.chunks import StoredChunk

MAX_COUNT = 1000
DRAWN = 4000
"""Passages looked at."""
MAX_SHARED = 1 / 3
"""Of a question's terms, those that its passage may hold too."""
REWORDED = frozenset({"en", ""})
"""Languages whose words are known; and of very short documents none can be told."""
MIN_WORDS = 3
ENOUGH_WORDS = 4
"""Of a heading that is asked about without the ones above it."""
MAX_WORDS = 8
NEAR = 0.5
"""Least cosine of a word and the one in its place."""
SAME = 0.45
"""Least cosine of a phrase and the same in other words."""
LIKE_FORM = 0.08
"""What it adds to a cosine that two words end alike."""
CANDIDATES = 10
MANY = 500
"""Passages from which on a word that only one document has is taken to be a slip."""
VOCABULARY = 8000
"""Most frequent words that are looked at."""
MIN_PROSE = 20
"""Words of a passage that can be asked about."""
GIST = 160
"""Characters of the passage in a note."""

_WORD = re.compile(r"[^\W\d_]{3,}")
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.M | re.S)
_MARKUP = re.compile(
    r"\{\{.*?\}\}|<[^<>\n]{1,200}>|\]\([^)\n]*\)|^#+ .*$|`[^`\n]*`|https?://\S+", re.M
)
_GENERAL = frozenset(
    """
    appendix background begin conclusion content contents description details example examples faq
    further general information introduction learn link links more motivation next note notes
    objectives other overview prerequisite prerequisites reading reference references related
    resources section see steps summary synopsis topics tutorial usage what's
    aperçu aussi conclusion exemple exemples généralités prérequis présentation références résumé
    sommaire utilisation voir
    anhang beispiel beispiele einführung einleitung hinweis hinweise inhalt siehe übersicht
    verweise voraussetzungen zusammenfassung überblick
    conclusiones contenido ejemplo ejemplos introducción notas referencias requisitos resumen
    también uso véase
    """.split()  # noqa: SIM905
)
"""Headings of these words alone say nothing of what stands below."""
_OPPOSITES = (
    "failure/success fail/succeed enable/disable create/delete add/remove start/stop begin/end "
    "allow/deny grant/revoke first/last before/after minimum/maximum internal/external "
    "public/private input/output read/write open/close true/false ingress/egress client/server "
    "upgrade/downgrade attach/detach mount/unmount encode/decode encrypt/decrypt lock/unlock "
    "install/uninstall load/unload send/receive push/pull up/down increase/decrease old/new "
    "valid/invalid known/unknown local/remote static/dynamic possible/impossible hot/cold"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A question for a person to edit, and what of its passage it was made from."""

    question: Question
    note: str
    shared: float
    """The share of the question's terms that its passage holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    questions: Sequence[Proposal]
    left_out: Mapping[str, int]
    """How many documents were not asked about for their language, by ISO 639-1 code."""


async def propose(passages: Sequence[StoredChunk], embedder: Embedder, *, count: int) -> Proposals:
    """Up to `count` questions in the order of the passages, of as many documents as there are.

    The same passages give the same questions. Raises ModelUnavailable.
    """
    languages = _languages(passages)
    left_out = Counter(one for one in languages.values() if one not in REWORDED)
    passages = [one for one in passages if languages[one.document_id] in REWORDED]
    words = await _Words.of(passages, embedder)
    proposals: list[Proposal] = []
    asked: set[str] = set()
    for passage in _document_by_document(passages):
        if len(proposals) == count:
            break
        phrase = _phrase(passage)
        if phrase is None:
            continue
        query = await words.reword(phrase, _vocabulary(passage))
        if query is None or query in asked:
            continue
        asked.add(query)
        proposals.append(_proposal(len(proposals) + 1, query, passage))
    return Proposals(questions=proposals, left_out=left_out)


def in_own_words(passages: Sequence[StoredChunk], *, count: int) -> Proposals:
    """As `propose`, of passages in any language: their headings as they are, to be put anew."""
    drawn: dict[str, StoredChunk] = {}
    for passage in _document_by_document(passages):
        if headings := _headings(passage, MIN_WORDS):
            drawn.setdefault(" ".join(headings), passage)
    questions = [
        _proposal(number, query, passage)
        for number, (query, passage) in enumerate(list(drawn.items())[:count], start=1)
    ]
    return Proposals(questions=questions, left_out={})


def _languages(passages: Sequence[StoredChunk]) -> dict[int, str]:
    """Of each document, from all of it that was drawn; empty where there is too little to tell."""
    texts: dict[int, list[str]] = {}
    for passage in passages:
        texts.setdefault(passage.document_id, []).append(passage.text)
    return {document: language("\n\n".join(held)) for document, held in texts.items()}


def _proposal(number: int, query: str, passage: StoredChunk) -> Proposal:
    place = " > ".join(dict.fromkeys((passage.title, *passage.heading_path)))
    return Proposal(
        question=Question(
            id=f"p{number}",
            query=query,
            expect=(
                Expectation(
                    path_contains=passage.path, section_contains=passage.section_id or None
                ),
            ),
        ),
        note=f"{place}: {' '.join(_prose(passage.text).split())[:GIST]}…",
        shared=shared(query, passage),
    )


def shared(query: str, passage: StoredChunk) -> float:
    """The share of a query's terms that the passage, its title or its headings hold."""
    wanted = set(terms(query)) - STOP_WORDS
    return len(wanted & _vocabulary(passage)) / max(1, len(wanted))


def _document_by_document(passages: Sequence[StoredChunk]) -> Iterator[StoredChunk]:
    """One passage of each document before the second of any."""
    turn: Counter[int] = Counter()
    turns: list[tuple[int, int]] = []
    for place, passage in enumerate(passages):
        turns.append((turn[passage.document_id], place))
        turn[passage.document_id] += 1
    return (passages[place] for _, place in sorted(turns))


def _phrase(passage: StoredChunk) -> list[str] | None:
    """What the passage is about: its heading, with the title before it where it is short."""
    words: list[str] = []
    for heading in reversed(_headings(passage, ENOUGH_WORDS)):
        words = [*(word for word in _content(heading) if word not in words), *words]
    return words[-MAX_WORDS:] or None


def _headings(passage: StoredChunk, enough: int) -> list[str]:
    """The passage's heading, and before it those above until they have enough words.

    Empty where the passage has too little prose, or only a heading that says nothing.
    """
    if len(_WORD.findall(_prose(passage.text))) < MIN_PROSE:
        return []
    words: set[str] = set()
    headings: list[str] = []
    for heading in reversed(list(dict.fromkeys((passage.title, *passage.heading_path)))):
        content = _content(heading)
        if set(content) <= _GENERAL:
            if not words:
                return []
            continue
        words |= set(content)
        headings.insert(0, heading)
        if len(words) >= enough:
            break
    return headings if len(words) >= MIN_WORDS else []


def _content(text: str) -> list[str]:
    return [word for word in (w.casefold() for w in _WORD.findall(text)) if word not in STOP_WORDS]


def _prose(text: str) -> str:
    return _MARKUP.sub(" ", _FENCE.sub(" ", text))


def _vocabulary(passage: StoredChunk) -> set[str]:
    return set(terms(" ".join((passage.text, passage.title, *passage.heading_path, passage.path))))


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of the collection with their vectors, shape (words, dimensions)."""

    embedder: Embedder
    words: Sequence[str]
    vectors: NDArray[np.float32]
    places: dict[str, int]

    @classmethod
    async def of(cls, passages: Sequence[StoredChunk], embedder: Embedder) -> "_Words":
        documents: dict[str, set[int]] = {}
        for passage in passages:
            for word in set(_content(_prose(passage.text))):
                documents.setdefault(word, set()).add(passage.document_id)
        least = 2 if len(passages) >= MANY else 1
        frequent = sorted(
            (w for w, where in documents.items() if len(where) >= least and w in ordinary()),
            key=lambda word: (-len(documents[word]), word),
        )[:VOCABULARY]
        vectors = await embedder.embed(frequent) if frequent else np.zeros((0, 1), np.float32)
        places = {word: place for place, word in enumerate(frequent)}
        return cls(embedder, frequent, vectors, places)

    async def reword(self, phrase: Sequence[str], taken: set[str]) -> str | None:
        """The phrase with words whose terms are not `taken`; None where too little is left."""
        if not self.words:
            return None
        (meant,) = await self.embedder.embed([" ".join(phrase)])
        new = list(phrase)
        vectors = await self.embedder.embed(phrase)
        for place, word in enumerate(phrase):
            if word not in ordinary():
                continue  # the names of things have no other words
            others = self._near(word, vectors[place], taken | set(terms(" ".join(new))))
            if not others:
                continue
            tried = [" ".join([*new[:place], other, *new[place + 1 :]]) for other in others]
            fits = np.round((await self.embedder.embed(tried)) @ meant, 4)
            fits += [LIKE_FORM * (_form(other) == _form(word)) for other in others]
            new[place] = others[int(np.argmax(fits))]
        kept = _least_shared(new, taken)
        if len(kept) < MIN_WORDS:
            return None
        (said,) = await self.embedder.embed([" ".join(kept)])
        return " ".join(kept) if float(said @ meant) >= SAME else None

    def _near(self, word: str, vector: NDArray[np.float32], taken: set[str]) -> list[str]:
        near = np.round(self.vectors @ vector, 4)
        found: list[str] = []
        for place in np.argsort(-near, kind="stable"):
            other = self.words[place]
            if near[place] < NEAR or len(found) == CANDIDATES:
                break
            if not (set(terms(other)) & taken or _akin(word, other) or _opposite(word, other)):
                found.append(other)
        return found


def _least_shared(words: Sequence[str], taken: set[str]) -> list[str]:
    """Without so many of the words that are taken as there are too many, names last."""
    kept = list(words)
    while kept:
        held = [word for word in kept if set(terms(word)) & taken]
        if len(held) <= MAX_SHARED * len(kept):
            break
        kept.remove(next((word for word in reversed(held) if word in ordinary()), held[0]))
    return kept


def _form(word: str) -> str:
    """The ending that an inflected word has."""
    return next((end for end in ("ing", "ed", "s", "er", "ly", "tion") if word.endswith(end)), "")


def _akin(word: str, other: str) -> bool:
    """Whether the words are forms of one, or one is part of the other."""
    root = word[: max(4, len(word) - 3)]
    return root in other or other[: max(4, len(other) - 3)] in word


def _opposite(word: str, other: str) -> bool:
    """Embedders take opposites to be near."""
    pair = {_stem(word), _stem(other)}
    return any(pair == set(map(_stem, one.split("/"))) for one in _OPPOSITES.split())


def _stem(word: str) -> str:
    return terms(word)[0]
