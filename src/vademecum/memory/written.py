"""A memory that a language model writes, and of it only what the gate lets through.

(memory, exchange) --ask--> four sections --judge--> kept, or asked once to be rewritten --judge-->
kept, generalised or dropped
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from vademecum.errors import LanguageModelRefused
from vademecum.inference.language.model import LanguageModel, Message, Prompt, Schema
from vademecum.memory import narrative
from vademecum.memory.normal import normalise, sentences
from vademecum.memory.privacy import Gated
from vademecum.prompts import prompt

MAX_SHOWN = 20_000
"""Characters of a message, and of a reply, that the model is shown: their beginning."""
MAX_COMPLETION = 4000
"""Tokens; four sections take a quarter, and models think in them too."""
SECTIONS = ("work_context", "interaction_patterns", "top_of_mind", "history")

SCHEMA: Schema = {
    "type": "object",
    "properties": {"changed": {"type": "boolean"}}
    | {name: {"type": "string"} for name in SECTIONS},
    "required": ["changed", *SECTIONS],
    "additionalProperties": False,
}
REWRITTEN: Schema = {
    "type": "object",
    "properties": {"sentences": {"type": "array", "items": {"type": "string"}}},
    "required": ["sentences"],
    "additionalProperties": False,
}

Judge = Callable[[str], Gated]


@dataclass(kw_only=True)
class Written:
    """A narrative of which every sentence has passed, and what had to go for that."""

    content: str = ""
    generalised: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


async def write(
    model: LanguageModel, judge: Judge, *, current: str, message: str, reply: str, agent: str
) -> Written | None:
    """The memory with what the exchange adds; None where that is nothing.

    Raises LanguageModelFailed; an answer of the wrong form is asked for once more.
    """
    told = {
        "memory": current,
        "exchange": {"user": message[:MAX_SHOWN], "agent": agent, "reply": reply[:MAX_SHOWN]},
    }
    asked = Prompt(
        purpose="memory",
        system=prompt("memory"),
        messages=[Message(role="user", text=json.dumps(told, ensure_ascii=False))],
        max_tokens=MAX_COMPLETION,
        schema=SCHEMA,
    )
    try:
        sections = await _sections(model, asked)
    except LanguageModelRefused:
        sections = await _sections(model, asked)
    if sections is None:
        return None
    return await _judged(model, judge, sections)


async def _sections(model: LanguageModel, asked: Prompt) -> list[list[str]] | None:
    """The sentences of each section. Raises LanguageModelFailed."""
    answer = (await model.complete(asked)).object()
    texts = [answer.get(name) for name in SECTIONS]
    if not isinstance(answer.get("changed"), bool) or not all(isinstance(t, str) for t in texts):
        raise LanguageModelRefused("the model did not answer in the form it was asked for")
    if not answer["changed"]:
        return None
    return [sentences(normalise(" ".join(str(text).split()))) for text in texts]


async def _judged(model: LanguageModel, judge: Judge, sections: Sequence[Sequence[str]]) -> Written:
    refused = [one for section in sections for one in section if not _clean(judge(one))]
    better = dict(zip(refused, await _rewritten(model, refused), strict=True)) if refused else {}
    written, lines = Written(), []
    for section in sections:
        kept: list[str] = []
        for sentence in section:
            passed = judge(better.get(sentence) or sentence)
            if sentence in better and not _clean(passed):
                passed = judge(sentence)
            written.generalised += passed.generalised
            for kind, count in passed.dropped.items():
                written.dropped[kind] = written.dropped.get(kind, 0) + count
            kept += [passed.text] if passed.text and passed.text not in kept else []
        lines.append(kept)
    written.content = narrative.compose(lines)
    return written


async def _rewritten(model: LanguageModel, refused: Sequence[str]) -> list[str]:
    """What the model makes of sentences that were refused; as they are where it fails to."""
    asked = Prompt(
        purpose="memory",
        system=prompt("memory_rewrite"),
        messages=[
            Message(role="user", text=json.dumps({"sentences": refused}, ensure_ascii=False))
        ],
        max_tokens=MAX_COMPLETION,
        schema=REWRITTEN,
    )
    try:
        texts = (await model.complete(asked)).object().get("sentences")
    except LanguageModelRefused:
        return list(refused)
    if not isinstance(texts, list) or len(texts) != len(refused):
        return list(refused)
    return [text if isinstance(text, str) else "" for text in texts]


def _clean(passed: Gated) -> bool:
    """Whether all of it passed as it was."""
    return bool(passed.text) and not passed.generalised and not passed.dropped
