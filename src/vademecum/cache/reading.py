"""Reading on in a stored page: from a heading, or from an offset in characters."""

import time

from vademecum.cache import pages, serve
from vademecum.cache.address import normalise
from vademecum.cache.events import note
from vademecum.cache.judge import label_instructions
from vademecum.cache.passages import tokens
from vademecum.cache.serve import CacheResult, checked_budget
from vademecum.cache.state import CacheState
from vademecum.errors import BadInput
from vademecum.ingest.sections import sections


async def read_page(
    state: CacheState,
    url: str,
    section: str | None = None,
    offset: int = 0,
    budget_tokens: int | None = None,
    project: str | None = None,
) -> CacheResult:
    """A stored page from a section's heading, or from an offset in characters, on.

    Raises BadInput where the page is not stored or has no such section.
    """
    started = time.perf_counter()
    address = normalise(url)
    page = await pages.stored(state, address, project)
    if page is None:
        raise BadInput(
            f"{address} is not stored", hint=f"Store it with `vade store-page {address}`."
        )
    text, title = page.text or "", page.title or ""
    budget = checked_budget(budget_tokens, state.rules.of(address).budget)
    if section is not None:
        offset = _section_start(text, title, section)
    if not 0 <= offset <= len(text):
        raise BadInput(f"the offset must be from 0 to {len(text)}, not {offset}")
    end = _cut(text, offset, budget)
    what = f"Characters {offset} to {end} of {len(text)}"
    opening = serve.opening(page, "hit", "", what)
    more = "" if end >= len(text) else f"\n\n[The page goes on at offset {end}.]"
    served = f"{opening}\n\n{label_instructions(text[offset:end])}{more}"
    result = CacheResult(
        outcome="hit",
        url=page.url,
        text=served,
        tokens=tokens(served),
        tokens_native=0,
        latency_ms=(time.perf_counter() - started) * 1000,
    )
    note(state, "read", "hit", result, project)
    return result


def _section_start(text: str, title: str, section: str) -> int:
    wanted = " ".join(section.split()).casefold()
    found = [part for part in sections(text, title) if part.heading_path]
    for exact in (True, False):
        for part in found:
            names = (
                part.heading_path[-1].casefold(),
                part.section_id,
                " > ".join(part.heading_path).casefold(),
            )
            if wanted in names or (not exact and wanted in names[0]):
                return part.start
    known = ", ".join(part.heading_path[-1] for part in found[:20])
    raise BadInput(f"the page has no section {section!r}", hint=f"Sections are: {known}.")


def _cut(text: str, start: int, budget: int) -> int:
    """Where to stop so that a stretch fits, at the end of a line if there is one near."""
    piece = text[start : start + 4 * budget].encode()[: 4 * budget].decode(errors="ignore")
    end = start + len(piece)
    if end >= len(text):
        return len(text)
    line = text.rfind("\n", start + len(piece) * 3 // 4, end)
    return line + 1 if line > 0 else end
