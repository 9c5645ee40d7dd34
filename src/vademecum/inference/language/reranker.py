"""Reranking by a language model: it grades the passages of a shortlist in one call."""

from collections.abc import Sequence

from vademecum.errors import LanguageModelRefused
from vademecum.inference.language.model import LanguageModel, Message, Prompt, Schema
from vademecum.prompts import prompt

MAX_PASSAGE = 1200
"""Characters of a passage that are graded."""
MAX_COMPLETION = 2000
UNGRADED = -1.0
SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "grades": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"passage": {"type": "integer"}, "grade": {"type": "integer"}},
                "required": ["passage", "grade"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["grades"],
    "additionalProperties": False,
}


class LanguageReranker:
    """The Reranker of a language model."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """Grades from 0 to 10; what the model left out is below. Raises LanguageModelFailed."""
        texts = [text[:MAX_PASSAGE].replace("</passage", "< /passage") for text in passages]
        shown = [
            f'<passage number="{number}">\n{text}\n</passage>'
            for number, text in enumerate(texts, start=1)
        ]
        completion = await self._model.complete(
            Prompt(
                purpose="rerank",
                system=prompt("rerank"),
                messages=[Message(role="user", text="\n\n".join([*shown, f"Query: {query}"]))],
                max_tokens=MAX_COMPLETION,
                schema=SCHEMA,
            )
        )
        grades = completion.object().get("grades")
        found = [UNGRADED] * len(passages)
        for entry in grades if isinstance(grades, list) else []:
            number, grade = (
                (entry.get("passage"), entry.get("grade"))
                if isinstance(entry, dict)
                else (None, None)
            )
            if isinstance(number, int) and isinstance(grade, int) and 1 <= number <= len(found):
                found[number - 1] = float(min(max(grade, 0), 10))
        if not any(score > UNGRADED for score in found):
            raise LanguageModelRefused(f"{self.name} graded none of the passages")
        return found
