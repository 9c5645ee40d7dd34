"""A context as an agent is told it: Markdown within its budget, what comes last left out first."""

from dataclasses import dataclass, field, replace

from vademecum.context.decide import Decision
from vademecum.context.errors import Failure
from vademecum.context.outside import Outside
from vademecum.store.notes import Note

CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What an agent is told, and why that."""

    task: str
    markdown: str
    notes: list[Note]
    solutions: list[Note]
    """Notes that solve the error at hand; told first."""
    narrative: str
    outside: list[Outside]
    decision: Decision
    failure: Failure | None
    tokens: int
    """At four characters a token."""
    left_out: list[str]
    """What the budget had no room for."""
    notices: list[str] = field(default_factory=list)
    """What could not be looked at, and why."""


def fit(context: Context, budget: int) -> Context:
    """The context as Markdown within the budget; what comes last goes first."""
    room = budget * CHARACTERS_PER_TOKEN
    blocks: list[str] = []
    left_out: list[str] = []
    heading = ""
    for title, name, text in _parts(context):
        block = text if title == heading else f"## {title}\n{text}"
        if len(block) > room:
            left_out.append(name)
            continue
        heading = title
        blocks.append(block)
        room -= len(block) + 1
    markdown = "\n".join(blocks)
    return replace(
        context,
        markdown=markdown,
        tokens=-(-len(markdown) // CHARACTERS_PER_TOKEN),
        left_out=left_out,
        outside=[item for item in context.outside if item.title not in left_out],
        notes=[note for note in context.notes if note.title not in left_out],
        narrative="" if "narrative" in left_out else context.narrative,
    )


def _parts(context: Context) -> list[tuple[str, str, str]]:
    """Heading, name and text of each part, the most important first."""
    parts = [
        ("Project-Specific Knowledge", note.title, _note(note))
        for note in (*context.solutions, *context.notes)
    ]
    if context.narrative:
        parts.append(("About the User", "narrative", context.narrative))
    parts += [("External Reference (Advisory)", one.title, _item(one)) for one in context.outside]
    return parts


def _note(note: Note) -> str:
    first = note.content.partition("\n")[0]
    repeated = note.title in note.content or note.title.endswith(first)
    text = f"- {note.content}" if repeated else f"- {note.title}: {note.content}"
    if note.evidence:
        text += f" ({'; '.join(note.evidence)})"
    if note.stale:
        text += f"\n  WARNING: it may no longer hold: {'; '.join(note.stale)}."
    return text


def _age(days: int | None) -> str:
    match days:
        case None:
            return ""
        case 0:
            return "read today"
        case 1:
            return "read yesterday"
    return f"read {days} days ago"


def _item(one: Outside) -> str:
    origin = ", ".join(part for part in (one.source, one.version, _age(one.age_days)) if part)
    lines = [f"- [{origin}] {one.title}"]
    if one.warning:
        lines.append(f"  WARNING: {one.warning}")
    lines += [f"  {line}" for line in one.text.splitlines()[:12]]
    if one.url:
        lines.append(f"  URL: {one.url}")
    if one.example:
        lines += [
            "  Example:",
            "  ```",
            *(f"  {row}" for row in one.example.splitlines()[:15]),
            "  ```",
        ]
    return "\n".join(lines)
