"""The types of notes, for whoever names one: nothing else is imported here."""

from typing import Literal, get_args

Kind = Literal["pattern", "decision", "convention", "learning", "context"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ANSWER = "answer"
"""The type of answers that are kept: the question is the title. Nobody writes one himself."""
