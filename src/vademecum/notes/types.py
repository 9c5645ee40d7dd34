"""The types of notes, for whoever names one: nothing else is imported here."""

from typing import Literal, get_args

NoteType = Literal["pattern", "decision", "convention", "learning", "context"]
TYPES: tuple[NoteType, ...] = get_args(NoteType)
ANSWER = "answer"
"""The type of answers that are kept: the question is the title. Nobody writes one himself."""
