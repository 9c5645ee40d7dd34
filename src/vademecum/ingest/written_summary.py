"""Six bullets that a language model writes on the scaffold of `summary6`, each of them checked.

A bullet that is too long, or is no plain line, is replaced by the extractive one.
"""

import re
from collections.abc import Sequence

from vademecum.errors import LanguageModelRefused
from vademecum.inference.language.model import LanguageModel, Message, Prompt, Schema
from vademecum.ingest.summary import MAX_BULLET, SCAFFOLD
from vademecum.prompts import prompt

VERSION = 1
"""Raise it with the prompt: summaries of other versions are written anew."""
MAX_TEXT = 24_000
"""Characters of a page that the model is given, some 6000 tokens; of a longer one the beginning,
and the headings of the rest."""
MAX_COMPLETION = 3000
"""Tokens, of which six bullets take a tenth: models think in them too."""
MIN_WORDS = 2

KEYS = ("purpose", "entities", "commands", "constraints", "examples", "apply")
SCHEMA: Schema = {
    "type": "object",
    "properties": {key: {"type": "string"} for key in KEYS},
    "required": list(KEYS),
    "additionalProperties": False,
}

_HEADING = re.compile(r"^#{1,6}[ \t]+.+$", re.M)
_MARKUP = re.compile(r"\A(?:[-*+>#|]|\d{1,2}[.)])\s|\*\*|```|\A\{|\A\[")


def writer_of(model: LanguageModel) -> str:
    """What the ledger keeps of who wrote a summary: the same writes the same page once."""
    return f"{model.name} {VERSION}"


async def written_summary(
    model: LanguageModel, title: str, text: str, extractive: Sequence[str]
) -> tuple[str, ...]:
    """Six bullets in the scaffold's order; where one is not as it should be, the extractive one.

    Raises LanguageModelFailed, also where none of them is as it should be.
    """
    completion = await model.complete(
        Prompt(
            purpose="summary",
            system=prompt("summary"),
            messages=[Message(role="user", text=_page(title, text))],
            max_tokens=MAX_COMPLETION,
            schema=SCHEMA,
        )
    )
    said = completion.object()
    bullets = [checked(label, said.get(key)) for label, key in zip(SCAFFOLD, KEYS, strict=True)]
    if not any(bullets):
        raise LanguageModelRefused("the model wrote no bullet of the form it was asked for")
    return tuple(own or other for own, other in zip(bullets, extractive, strict=True))


def checked(label: str, body: object) -> str | None:
    """`label — body`, if that is one plain line within the limit of a bullet."""
    if not isinstance(body, str) or "\n" in body.strip() or _MARKUP.search(body.strip()):
        return None
    plain = re.sub(rf"\A{re.escape(label)}\s*[:—-]\s*", "", body.strip(), flags=re.IGNORECASE)
    line = f"{label} — {' '.join(plain.split())}"
    if len(line) > MAX_BULLET or len(plain.split()) < MIN_WORDS or not plain.isprintable():
        return None
    return line


def _page(title: str, text: str) -> str:
    shown = text[:MAX_TEXT]
    if rest := _HEADING.findall(text[MAX_TEXT:]):
        shown = f"{shown}\n\n[…]\n\n" + "\n".join(rest)[: MAX_TEXT // 4]
    shown = re.sub(r"</(?=page)", "< /", shown, flags=re.IGNORECASE)
    return f"<page>\n{title}\n\n{shown}\n</page>"
