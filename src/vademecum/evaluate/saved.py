"""Saved evaluations: the questions, and at which ranks each mode met what they expect.

Ranks and not means are kept, so that a later evaluation can be compared question by question.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vademecum.errors import BadInput
from vademecum.evaluate.gold import Question, fields, question_of
from vademecum.evaluate.metrics import Met
from vademecum.evaluate.pipeline import Evaluation

KIND = "vademecum evaluation"
"""Tells such a file from others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedEvaluation:
    """An evaluation as it was when it was saved."""

    collection: str
    questions: Sequence[Question]
    modes: Mapping[str, Sequence[Sequence[Met]]]
    """By mode, for each question the ranks of its expectations."""


def saved_lines(evaluation: Evaluation) -> list[str]:
    """The file: one JSON document, a question a line."""
    head = json.dumps({"kind": KIND, "collection": evaluation.collection})[1:-1]
    rows = []
    for number, question in enumerate(evaluation.questions):
        row = {
            **fields(question),
            "ranks": {
                result.mode: [one.rank for one in result.met[number]] for result in evaluation.modes
            },
        }
        rows.append(json.dumps(row, ensure_ascii=False))
    return [f'{{{head}, "questions": [\n', ",\n".join(rows), "\n]}\n"]


def read_saved(path: Path) -> SavedEvaluation | None:
    """None where the file is something else. Raises BadInput where it is broken."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except ValueError:
        return None
    if not isinstance(value, dict) or value.get("kind") != KIND:
        return None
    try:
        rows = value["questions"]
        questions = [question_of(row) for row in rows]
        modes = {
            mode: [
                [
                    Met(rank=rank, rel=expected.rel)
                    for rank, expected in zip(row["ranks"][mode], question.expect, strict=True)
                ]
                for row, question in zip(rows, questions, strict=True)
            ]
            for mode in rows[0]["ranks"]
        }
        return SavedEvaluation(collection=value["collection"], questions=questions, modes=modes)
    except (KeyError, TypeError, ValueError, IndexError):
        raise BadInput(
            f"{path} is a saved evaluation that somebody changed",
            hint="Make it again: `vade eval GOLD --save FILE`.",
        ) from None
