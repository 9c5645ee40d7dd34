"""The cache of the web, as clients use it: look before a fetch, tell after it, read on.

check:        address --look up--> page --fresh? else look again--> passages for the prompt
page_fetched: address --queue--> our own fetch --judge--> document --worker--> searchable
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from vademecum.access import require_all
from vademecum.cache import check, events, fetched, pages, queue, reading
from vademecum.cache.check import REVALIDATE_SECONDS
from vademecum.cache.outside import Outside
from vademecum.cache.refresh import RefreshReport, refresh
from vademecum.cache.report import Report, report
from vademecum.cache.rules import Rule
from vademecum.cache.serve import CacheResult, Outcome
from vademecum.cache.state import CacheState
from vademecum.cache.store import Fetched
from vademecum.types import Document


class Cache:
    """Every method names the project it acts for; None is no project in particular."""

    def __init__(self, state: CacheState) -> None:
        self.state = state

    @property
    def outside(self) -> Outside:
        """Its manners and rules, for knowledge that is kept elsewhere."""
        return Outside(self.state)

    def trial(self, project: str, rule: Rule) -> "Cache":
        """The same cache with one more rule, whose project keeps its pages to itself; nothing of
        it counts in the report."""
        return Cache(self.state.trial(project, rule))

    def collection_name(self, project: str | None) -> str:
        """Where the pages of a project are stored."""
        return pages.collection_name(self.state, project)

    async def check(
        self,
        url: str,
        *,
        prompt: str | None = None,
        project: str | None = None,
        budget_tokens: int | None = None,
        revalidate_seconds: float = REVALIDATE_SECONDS,
        seconds: float | None = None,
    ) -> CacheResult:
        """What is to be read of a page, if it is stored. Raises BadInput, DatabaseUnavailable.

        `seconds` is all the time the caller has; looking again at the page takes what is left.
        """
        return await check.check(
            self.state,
            url,
            prompt=prompt,
            project=project,
            budget_tokens=budget_tokens,
            revalidate_seconds=revalidate_seconds,
            seconds=seconds,
        )

    async def read_page(
        self,
        url: str,
        section: str | None = None,
        offset: int = 0,
        budget_tokens: int | None = None,
        project: str | None = None,
    ) -> CacheResult:
        """A stored page from a section's heading, or from an offset in characters, on.

        Raises BadInput where the page is not stored or has no such section.
        """
        return await reading.read_page(self.state, url, section, offset, budget_tokens, project)

    async def page_fetched(
        self,
        url: str,
        *,
        prompt: str | None = None,
        result: str | None = None,
        project: str | None = None,
    ) -> Outcome:
        """A client fetched a page: queue our own fetch, and keep what its model made of it.

        Answers `miss` where a fetch is queued, `hit` where the page is fresh, `pass` where it is
        not to be stored.
        """
        # The connections at hand may be dead, and what is told is told once.
        return await self.state.database.retry(
            lambda: fetched.page_fetched(
                self.state, url, prompt=prompt, result=result, project=project
            ),
            tries=2,
        )

    async def searched(
        self, query: str, results: Sequence[Mapping[str, object]], project: str | None = None
    ) -> int:
        """Keep what a web search found (title, url, snippet each) as sources; how many."""
        return await self.state.database.retry(
            lambda: fetched.searched(self.state, query, results, project), tries=2
        )

    async def store_page(
        self, url: str, *, content: str | None = None, project: str | None = None
    ) -> Fetched:
        """Fetch and store a page at once; with `content`, that instead of a fetch.

        Raises FetchRefused, NotCacheable, UnreadableSource.
        """
        return await fetched.store_page(self.state, url, content=content, project=project)

    async def read_now(self, url: str) -> Document:
        """What a page says at this moment, fetched with the cache's manners and rules; not stored.

        Raises FetchRefused, UnreadableSource.
        """
        return await fetched.read_now(self.state, url)

    async def fetch_due(self, *, limit: int | None = None, wait: bool = False) -> int:
        """Do the fetches that are due, several hosts at a time; how many were done.

        With `wait`, also those that are to be tried again within a few seconds. Cancelled, it
        puts back those it has not done.
        """
        return await queue.fetch_due(self.state, limit=limit, wait=wait)

    async def fetch_if_due(self) -> int:
        """As `fetch_due`, after one look whether there is anything to do."""
        return await queue.fetch_if_due(self.state)

    async def due(self) -> int:
        """Fetches that wait."""
        return await queue.due(self.state)

    async def refresh(
        self,
        older_than: timedelta = timedelta(0),
        *,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> RefreshReport:
        """Look again at every page not verified for so long, conditionally; a page that cannot be
        had keeps its old content."""
        return await refresh(self.state, older_than, progress)

    async def report(self, last: timedelta) -> Report:
        """The measurement plan over the last so long."""
        require_all("read")
        await events.written(self.state)
        until = datetime.now(UTC)
        async with self.state.database.connection() as connection:
            return await report(connection, until - last, until)

    def searched_pages(self, collection: str, results: int, latency_ms: float) -> None:
        """Note a search of stored pages, when there is time; other collections are not ours."""
        if pages.is_of_pages(collection):
            events.note_search(self.state, results, latency_ms)

    async def close(self) -> None:
        """Write what is still to be noted."""
        await events.written(self.state)
