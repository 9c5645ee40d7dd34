"""An answer that a language model writes, of which only what the sources support is kept.

question + [Hit] --ask--> [Sentence] --check--> kept or dropped --arrange--> Answer

Each sentence names the passages it is from. One that names none of those it was given, or that its
passage does not support by the check of answer/support.py, is dropped, and the answer says so.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vademecum.answer.extractive import MAX_TOKENS, cited, not_found
from vademecum.answer.sentences import sentence_spans
from vademecum.answer.support import Passage, objection
from vademecum.errors import LanguageModelRefused
from vademecum.inference.embedder import Tokenizer
from vademecum.inference.language.model import Completion, LanguageModel, Message, Prompt, Schema
from vademecum.prompts import prompt
from vademecum.types import Answer, Dropped, Hit

PASSAGES = 8
"""Best hits that the model is shown."""
MAX_PASSAGE = 4000
"""Characters of one of them: a chunk of 1000 tokens."""
MAX_SENTENCES, MAX_SOURCES = 6, 4
MAX_COMPLETION = 4000
"""Tokens, of which six sentences take a tenth: models think in them too."""

SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "sentences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "passages": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["text", "passages"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["sentences"],
    "additionalProperties": False,
}

# Only we cite: a mark of the model's own would pass for a citation that was checked.
_MARK = re.compile(r"\s*\[\s*(?:source\s*:[^\]]*|\d+(?:\s*,\s*\d+)*)\s*\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the model says, and the hits it says it from."""

    text: str
    hits: tuple[Hit, ...]

    def __str__(self) -> str:
        citations = " ".join(f"[source: {hit.reference}]" for hit in self.hits)
        return f"{self.text} {citations}"


async def answer(
    question: str, hits: Sequence[Hit], model: LanguageModel, tokenizer: Tokenizer
) -> Answer:
    """Up to six sentences of up to four sources, each followed by its citations.

    Raises LanguageModelFailed.
    """
    shown = hits[:PASSAGES]
    if not shown:
        return not_found(question, hits, by=model.name)
    completion = await model.complete(
        Prompt(
            purpose="answer",
            system=prompt("answer"),
            messages=[Message(role="user", text=ask(question, shown))],
            max_tokens=MAX_COMPLETION,
            schema=SCHEMA,
        )
    )
    kept, dropped = check(said(completion, shown), tokenizer)
    if not kept:
        return not_found(question, hits, by=model.name, dropped=tuple(dropped))
    return Answer(
        question=question,
        found=True,
        answer=" ".join(map(str, kept)),
        sources=cited([hit for sentence in kept for hit in sentence.hits]),
        by=model.name,
        dropped=tuple(dropped),
    )


def ask(question: str, hits: Sequence[Hit]) -> str:
    """The passages, numbered from 1, and the question."""
    passages = (
        f'<passage number="{number}" from={json.dumps(_headings(hit), ensure_ascii=False)}>\n'
        f"{_inside(_shown(hit))}\n</passage>"
        for number, hit in enumerate(hits, start=1)
    )
    return "\n\n".join([*passages, f"Question: {question}"])


def _inside(text: str) -> str:
    """What a document says must not end its passage."""
    return re.sub(r"</(?=passage)", "< /", text, flags=re.IGNORECASE)


def said(completion: Completion, hits: Sequence[Hit]) -> Iterator[Sentence]:
    """The sentences of a completion, one by one, each with those of the hits that it names.

    Raises LanguageModelRefused for another form.
    """
    entries = completion.object().get("sentences")
    if not isinstance(entries, list):
        raise LanguageModelRefused("the model did not answer in the form it was asked for")
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("text"), str):
            raise LanguageModelRefused("the model did not answer in the form it was asked for")
        numbers = entry.get("passages")
        named = tuple(
            hits[number - 1]
            for number in dict.fromkeys(numbers if isinstance(numbers, list) else [])
            if isinstance(number, int) and 1 <= number <= len(hits)
        )
        text = " ".join(_MARK.sub("", entry["text"]).split())
        for first, last in sentence_spans(text, 0, len(text)):
            yield Sentence(text[first:last], named)


def check(
    sentences: Iterator[Sentence], tokenizer: Tokenizer
) -> tuple[list[Sentence], list[Dropped]]:
    """The sentences that their sources support, with those sources only; and the others, why."""
    kept: list[Sentence] = []
    dropped: list[Dropped] = []
    for sentence in sentences:
        supported, reason = supporting(sentence)
        if reason is None and len(kept) == MAX_SENTENCES:
            reason = "the answer is long enough"
        references = {hit.reference for one in [*kept, supported] for hit in one.hits}
        if reason is None and len(references) > MAX_SOURCES:
            reason = "the answer has enough sources"
        if reason is None and sum(tokenizer.counts([*map(str, kept), str(supported)])) > MAX_TOKENS:
            reason = "the answer is long enough"
        if reason is None:
            kept.append(supported)
        else:
            dropped.append(Dropped(sentence=sentence.text, reason=reason))
    return kept, dropped


def supporting(sentence: Sentence) -> tuple[Sentence, str | None]:
    """The sentence with those of its hits that support it, or all where only all together do; and
    why they do not."""
    if not sentence.hits:
        return sentence, "it names no passage that was found"
    objections = [(hit, objection(sentence.text, _passage([hit]))) for hit in sentence.hits]
    if alone := tuple(hit for hit, reason in objections if reason is None):
        return Sentence(sentence.text, alone[:2]), None
    if len(sentence.hits) > 1 and objection(sentence.text, _passage(sentence.hits)) is None:
        return sentence, None
    return sentence, objections[0][1]


def _passage(hits: Sequence[Hit]) -> Passage:
    return Passage("\n\n".join(map(_shown, hits)), " ".join(map(_headings, hits)))


def _shown(hit: Hit) -> str:
    return hit.text[:MAX_PASSAGE]


def _headings(hit: Hit) -> str:
    return " > ".join(dict.fromkeys((hit.title, *hit.heading_path)))
