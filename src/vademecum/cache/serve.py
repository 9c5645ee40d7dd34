"""A stored page to what an agent reads: one opening sentence, what changed, and the page or the
passages of it that matter."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vademecum.cache.changes import Changes
from vademecum.cache.judge import label_instructions
from vademecum.cache.passages import OUTLINE_SHARE, Span, choose, outline, quoted, tokens
from vademecum.errors import BadInput
from vademecum.store.cache import StoredPage

Outcome = Literal["hit", "verified", "changed", "stale", "miss", "pass"]

CHANGES_SHARE = 0.3
"""Of the budget, at most, for what changed."""
MARGIN = 60
"""Tokens kept for labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheResult:
    """What a check answers. `text` is for the agent and empty on a miss or a pass."""

    outcome: Outcome
    url: str
    text: str = ""
    tokens: int = 0
    """Of `text`."""
    tokens_native: int = 0
    """Of the whole page, which a fetch without the cache has a model read."""
    latency_ms: float = 0.0
    reason: str = ""
    """Why it is not served, or not known to be fresh."""

    @property
    def served(self) -> bool:
        return self.outcome not in ("miss", "pass")


def checked_budget(wanted: int | None, rule: int) -> int:
    """What a caller wants, else the rule's. Raises BadInput for one too small to serve in."""
    budget = rule if wanted is None else wanted
    if budget < 200:
        raise BadInput(f"a budget of {budget} tokens is too small", hint="Give 200 or more.")
    return budget


def opening(page: StoredPage, outcome: Outcome, reason: str, what: str) -> str:
    """Where from, when fetched, when last verified: one sentence, facts only."""
    fetched = f"fetched {_time(page.fetched_at)}"
    checked = {
        "verified": f"verified unchanged with its server {_time(page.verified_at)}",
        "changed": "just fetched anew, since it had changed",
        "stale": f"last verified {_time(page.verified_at)} and possibly out of date ({reason})",
    }.get(outcome, f"last verified {_time(page.verified_at)}")
    title = f' "{page.title}"' if page.title else ""
    return f"{what} of{title} {page.url} from the local document cache: {fetched}, {checked}."


def whole(page: StoredPage, budget: int) -> str | None:
    """The whole page, if it fits."""
    text = page.text or ""
    if tokens(text) + MARGIN > budget:
        return None
    labelled = label_instructions(text)
    return labelled if tokens(labelled) + MARGIN <= budget else None


def passages(
    page: StoredPage, spans: Sequence[Span], scores: NDArray[np.float64], budget: int
) -> str:
    """The passages that matter, the outline of the rest, and how to read it."""
    text, title = page.text or "", page.title or ""
    rest = int(budget * OUTLINE_SHARE)
    # The outline is often shorter than its share; what it leaves is for passages.
    needed = min(rest, tokens(outline(text, title, [], rest)))
    how = (
        f'The page has {len(text)} characters. Read more of it with `vade read-page "{page.url}"'
        " --section HEADING` or `--offset N`, or the tool read_page."
    )
    room = budget - needed - tokens(how) - MARGIN
    while True:
        chosen = choose(spans, scores, text, room)
        body = label_instructions(quoted(text, title, chosen))
        headings = outline(text, title, chosen, rest)
        not_shown = f"\n\nNot shown:\n{headings}" if headings else ""
        answer = f"{body}\n\n---\n{how}{not_shown}"
        over = tokens(answer) - budget
        if over <= 0 or not chosen:
            return answer
        room -= over  # headings and labels take more than was kept for them


def changed_part(changed: Changes, since: datetime, budget: int) -> str:
    """What a project has not seen yet, as far as its share of the budget goes."""
    counts = f"{len(changed.added)} paragraphs added or changed, {changed.removed} gone"
    lines = [f"Changed since this project last read it on {_time(since)}: {counts}."]
    left = int(budget * CHANGES_SHARE) - tokens(lines[0])
    for number, paragraph in enumerate(changed.added):
        left -= tokens(paragraph) + 1
        if left < 0:
            lines.append(f"[… and {len(changed.added) - number} more]")
            break
        lines.append(label_instructions(paragraph))
    return "\n\n".join(lines) + "\n\n---\n"


def _time(when: datetime | None) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC" if when else "never"
