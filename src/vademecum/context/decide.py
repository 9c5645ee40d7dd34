"""Whether a task needs knowledge from outside: the document's rules, each decision explained."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

ENOUGH = 3
"""Notes about the task that suffice."""
_ASKS = re.compile(
    r"\b(?:docs?|documentation|reference manual|api reference|changelog|release notes"
    r"|migration guide|look (?:it )?up|official(?:ly)?|according to|best practices?"
    r"|recommended way|how do(?:es)? .{1,60} work)\b",
    re.IGNORECASE,
)
_REFACTORING = re.compile(
    r"\b(?:refactor\w*|renam(?:e|ing)|extract(?:ing)?|inline|reformat\w*|format(?:ting)?"
    r"|clean(?:ing)? up|tidy|dedupl\w*|move|split|reorgani[sz]\w*|simplif\w*|typos?|comments?"
    r"|docstrings?|dead code|unused)\b",
    re.IGNORECASE,
)
_ADDS = re.compile(
    r"\b(?:add|implement|integrat\w*|migrat\w*|upgrad\w*|replace .{1,40} (?:with|by)|switch to"
    r"|support|introduc\w*|port|call|connect)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether to look outside, by which rule, and for what."""

    look_outside: bool
    rule: str
    """`explicit_request`, `unsolved_error`, `solved_error`, `enough_notes`, `refactoring`,
    `new_apis` or `nothing_new`."""
    reason: str
    """One sentence that says why."""
    topics: tuple[str, ...] = ()
    """APIs and libraries that are new to the project."""


def should_query_external(
    task: str,
    *,
    notes: int,
    new_apis: Sequence[str] = (),
    failure: str = "",
    solved: bool = False,
) -> Decision:
    """Decide for a task.

    `notes` counts those about it; `new_apis` are the APIs at hand that the project has not used;
    `failure` is an error's pattern, `solved` whether notes hold its solution. What the user asks
    for goes before all; an error goes before what notes say of the task.
    """
    topics = tuple(new_apis)
    if asked := _ASKS.search(task):
        return _decision(True, "explicit_request", f"the task asks for it: {asked[0]!r}", topics)
    if failure and solved:
        return _decision(False, "solved_error", f"a note holds the solution of {failure!r}")
    if failure:
        return _decision(True, "unsolved_error", f"no note solves {failure!r}", topics)
    if notes >= ENOUGH:
        return _decision(False, "enough_notes", f"{notes} notes are about the task")
    named = _REFACTORING.search(task)
    if named and not _ADDS.search(task):
        return _decision(False, "refactoring", f"{named[0]!r} brings in nothing new")
    if topics:
        listed = ", ".join(topics[:5])
        return _decision(True, "new_apis", f"new to the project: {listed}", topics)
    return _decision(False, "nothing_new", "no API at hand is new, and no error is given")


def _decision(look: bool, rule: str, reason: str, topics: tuple[str, ...] = ()) -> Decision:
    return Decision(look_outside=look, rule=rule, reason=reason, topics=topics)
