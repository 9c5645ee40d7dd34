"""The HTTP API from Python: a thin client, whose answers are the types that the server makes.

from vademecum.client import Client

with Client("http://127.0.0.1:8233", key) as vade:
    for hit in vade.search("how do I rotate the keys", collection="handbook").results:
        print(hit.path, hit.score)
"""

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx
from pydantic import TypeAdapter

from vademecum.access import Scope
from vademecum.answer.facade import AnswerResult
from vademecum.app import Status
from vademecum.cache.serve import CacheResult
from vademecum.context.outside import Outside
from vademecum.context.stale import Stale
from vademecum.errors import ServerProblem, VadeError
from vademecum.evaluate.gold import Question
from vademecum.evaluate.move import Move
from vademecum.graph.describe import Described
from vademecum.graph.facade import GraphCounts, RelevantDocument
from vademecum.graph.fetching import FetchReport, SourceOverview
from vademecum.graph.link import LinkReport
from vademecum.graph.sources.adapter import SubjectKind
from vademecum.graph.watch import RadarReport
from vademecum.ingest.report import StoreReport
from vademecum.ingest.runs import RunDetails
from vademecum.memory.exchange import MemoryUpdate
from vademecum.memory.facade import Memory
from vademecum.mirror.facade import MirrorState, Rebuilt
from vademecum.mirror.promote import LEAST_RECALL, Promotion
from vademecum.mirror.verify import Verification
from vademecum.search.book import BookQuery, BookResponse
from vademecum.search.facade import SearchResult
from vademecum.search.shelf import ChunkInContext, DocumentList, Lesson
from vademecum.store.collections import CollectionOverview
from vademecum.store.jobs import OpenJobs
from vademecum.store.keys import Key
from vademecum.store.reading import DocumentOverview, IngestionTotals
from vademecum.store.runs import Run, RunMode
from vademecum.types import Boost, Mode

Result = TypeVar("Result")
Progress = Callable[[str, Mapping[str, Any]], None]
"""Told of long work: an event, `progress` or `notice`, and what it says."""


class Client:
    """A connection to a server. Every method raises ServerProblem, and httpx.TransportError where
    the server does not answer."""

    def __init__(self, url: str, key: str, *, seconds: float = 30.0) -> None:
        """`url` is the server's, `key` an API key or the home's token; `seconds` is how long an
        answer is waited for."""
        self._http = httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=seconds
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    # --- searching --------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        collection: str,
        mode: Mode = "hybrid",
        limit: int = 8,
        threshold: float | None = None,
        keyword: str | None = None,
        filters: Sequence[str] = (),
        boost: Sequence[Boost] = (),
    ) -> SearchResult:
        """The passages of a collection that answer a query, best first."""
        return self._post(
            SearchResult,
            "/search",
            query=query,
            collection=collection,
            mode=mode,
            limit=limit,
            threshold=threshold,
            keyword=keyword,
            filters=list(filters),
            boost=list(boost),
        )

    def answer(
        self, question: str, *, collection: str, filters: Sequence[str] = ()
    ) -> AnswerResult:
        """An answer in the sources' own words, with citations."""
        return self._post(
            AnswerResult,
            "/answer",
            question=question,
            collection=collection,
            filters=list(filters),
        )

    def search_book(self, asked: BookQuery) -> BookResponse:
        """The passages of a course for a reader of this tier and level."""
        return self._post(
            BookResponse, "/books/search", **TypeAdapter(BookQuery).dump_python(asked, mode="json")
        )

    # --- reading ----------------------------------------------------------------------------

    def collections(self) -> list[CollectionOverview]:
        """Those that the key may know of."""
        return self._get(list[CollectionOverview], "/collections")

    def collection(self, name: str) -> CollectionOverview:
        return self._get(CollectionOverview, _path("collections", name))

    def state(self, collection: str) -> IngestionTotals:
        """How much is recorded, and when all of it was last gone over."""
        return self._get(IngestionTotals, _path("collections", collection, "state"))

    def documents(
        self, collection: str, *, filters: Sequence[str] = ()
    ) -> Iterator[DocumentOverview]:
        """Every document of a collection, by path."""
        after: str | None = None
        while True:
            page = self._get(
                DocumentList,
                _path("collections", collection, "documents"),
                filter=list(filters),
                after=after,
                limit=1000,
            )
            yield from page.documents
            if (after := page.next) is None:
                return

    def document(self, collection: str, path: str, *, section: str | None = None) -> str:
        """A document as Markdown, or one section of it, by the path and section id of a hit."""
        wanted = _given({"path": path, "section": section})
        return self._asked("GET", _path("collections", collection, "document"), params=wanted).text

    def lesson(self, collection: str, parent: UUID) -> Lesson:
        """All chunks of one parent, in order."""
        return self._get(Lesson, _path("collections", collection, "lessons", str(parent)))

    def chunk(self, collection: str, chunk: UUID, *, context: int = 0) -> ChunkInContext:
        """A chunk, with so many before and after it."""
        return self._get(
            ChunkInContext,
            _path("collections", collection, "chunks", str(chunk)),
            context=context,
        )

    # --- writing ----------------------------------------------------------------------------

    def store_page(self, url: str, *, collection: str) -> StoreReport:
        """Fetch and store a page; it is searchable when a worker has done its job."""
        return self._post(StoreReport, _path("collections", collection, "pages"), url=url)

    def delete_collection(self, name: str) -> None:
        self._asked("DELETE", _path("collections", name))

    # --- vector indexes ---------------------------------------------------------------------

    def indexes(self, collection: str) -> list[MirrorState]:
        """The stores that the collection's vectors are in beside PostgreSQL."""
        return self._get(list[MirrorState], _path("collections", collection, "indexes"))

    def verify_indexes(self, collection: str, store: str | None = None) -> list[Verification]:
        """Each index, or one, compared with what PostgreSQL holds."""
        route = _path("collections", collection, "indexes", "verify")
        return self._work(list[Verification], route, store=store)

    def rebuild_indexes(
        self,
        collection: str,
        store: str | None = None,
        *,
        everything: bool = False,
        progress: Progress = lambda event, told: None,
    ) -> list[Rebuilt]:
        """Repair what differs, or with `everything` fill the index anew."""
        route = _path("collections", collection, "indexes", "rebuild")
        return self._work(
            list[Rebuilt], route, progress=progress, store=store, everything=everything
        )

    def promote(
        self,
        collection: str,
        to: str,
        *,
        questions: Sequence[Question] | None = None,
        queries: int = 100,
        recall: float = LEAST_RECALL,
        progress: Progress = lambda event, told: None,
    ) -> Promotion:
        """Fill a store, and search the collection there if it answers as well."""
        return self._work(
            Promotion,
            _path("collections", collection, "promote"),
            progress=progress,
            to=to,
            questions=_lines(questions),
            queries=queries,
            recall=recall,
        )

    def drop_index(self, collection: str, store: str) -> None:
        self._asked("DELETE", _path("collections", collection, "indexes", store))

    # --- another embedder -------------------------------------------------------------------

    def start_move(
        self,
        collection: str,
        embedder: str,
        *,
        questions: Sequence[Question] | None = None,
        unchecked: bool = False,
    ) -> Run:
        """Begin a move to another embedder; `move` shows how it was judged."""
        return self._post(
            Run,
            _path("collections", collection, "move"),
            embedder=embedder,
            questions=_lines(questions),
            unchecked=unchecked,
        )

    def move(self, collection: str) -> Move | None:
        """The last move of a collection."""
        return self._get(Move | None, _path("collections", collection, "move"))  # type: ignore[arg-type]

    def compare_move(self, collection: str, questions: Sequence[Question] | None = None) -> Move:
        """Compare both embedders once more, and swap if the new one finds no less."""
        route = _path("collections", collection, "move", "compare")
        return self._work(Move, route, questions=_lines(questions))

    def accept_move(self, collection: str) -> Move:
        return self._post(Move, _path("collections", collection, "move", "accept"))

    def abandon_move(self, collection: str) -> Run:
        """Stay with the present embedder."""
        return _read(Run, self._asked("DELETE", _path("collections", collection, "move")))

    # --- keys -------------------------------------------------------------------------------

    def create_key(
        self,
        name: str,
        *,
        scopes: Sequence[Scope] = ("read",),
        collections: Sequence[str] | None = None,
        rate: float | None = None,
        days: int | None = None,
        user: str | None = None,
    ) -> str:
        """The secret of a new key, which is not shown again."""
        made = self._post(
            dict[str, str],
            "/keys",
            name=name,
            scopes=list(scopes),
            collections=None if collections is None else list(collections),
            rate=rate,
            days=days,
            user=user,
        )
        return made["key"]

    def api_keys(self) -> list[Key]:
        return self._get(list[Key], "/keys")

    def revoke_key(self, name: str) -> None:
        self._asked("DELETE", _path("keys", name))

    # --- runs -------------------------------------------------------------------------------

    def start_run(
        self,
        collection: str,
        *,
        folder: str | None = None,
        profile: str | None = None,
        mode: RunMode = "incremental",
    ) -> Run:
        """Queue a run; `folder` is one of the server's, without it chunks are made again."""
        return self._post(
            Run, "/runs", collection=collection, folder=folder, profile=profile, mode=mode
        )

    def runs(self, collection: str | None = None, *, limit: int = 50) -> list[Run]:
        """The newest first."""
        return self._get(list[Run], "/runs", collection=collection, limit=limit)

    def run(self, number: int) -> RunDetails:
        return self._get(RunDetails, f"/runs/{number}")

    def cancel_run(self, number: int) -> Run:
        return self._post(Run, f"/runs/{number}/cancel")

    def resume_run(self, number: int) -> Run:
        return self._post(Run, f"/runs/{number}/resume")

    def follow_run(self, number: int) -> Generator[Run, None, None]:
        """The run whenever it has changed, until it has ended."""
        yield from self._events(f"/runs/{number}/events")

    def events(self, collection: str | None = None) -> Generator[Run, None, None]:
        """Every run whenever it has changed, without an end; close it to stop."""
        yield from self._events("/events", collection=collection)

    # --- the cache of the web ---------------------------------------------------------------

    def check_page(
        self,
        url: str,
        *,
        prompt: str | None = None,
        project: str | None = None,
        budget_tokens: int | None = None,
    ) -> CacheResult:
        """What is to be read of a stored page; outcome `miss` where there is none."""
        return self._post(
            CacheResult,
            "/cache/check",
            url=url,
            prompt=prompt,
            project=project,
            budget_tokens=budget_tokens,
        )

    def read_page(
        self,
        url: str,
        *,
        section: str | None = None,
        offset: int = 0,
        project: str | None = None,
    ) -> CacheResult:
        """A stored page from a heading, or from an offset, on."""
        return self._post(
            CacheResult, "/cache/read", url=url, section=section, offset=offset, project=project
        )

    # --- memory -----------------------------------------------------------------------------

    def memory(self, user: str, *, project: str = "") -> Memory:
        """The narrative of a user."""
        return self._post(Memory, "/memory/show", user=user, project=project)

    def remember(self, user: str, fact: str, *, project: str = "") -> MemoryUpdate:
        return self._post(MemoryUpdate, "/memory/remember", user=user, fact=fact, project=project)

    # --- notes, context, what is stale --------------------------------------------------------

    def context(
        self,
        task: str,
        *,
        project: str,
        error: str = "",
        user: str = "",
        budget: int = 1500,
        fetch: bool = False,
    ) -> dict[str, Any]:
        """What an agent should know for a task: `markdown`, and what it was made of. With `fetch`
        what the task names and is not known is looked up first."""
        return self._long(
            dict[str, Any],
            "/context",
            task=task,
            project=project,
            error=error,
            user=user,
            budget=budget,
            fetch=fetch,
        )

    def find_api(self, name: str, *, project: str = "") -> list[Outside]:
        """The references of an API, by its qualified name."""
        return self._post(dict[str, list[Outside]], "/apis/find", name=name, project=project)[
            "apis"
        ]

    def stale(self, collection: str | None = None) -> list[Stale]:
        """What may no longer hold, since what it rests on has changed or is gone."""
        return self._get(dict[str, list[Stale]], "/stale", collection=collection)["stale"]

    def refresh_stale(self, collection: str | None = None) -> list[Stale]:
        """Ask stale answers and make stale summaries again; those that could be."""
        body = {"collection": collection}
        answer = self._long(dict[str, Any], "/stale/refresh", **body)
        return TypeAdapter(list[Stale]).validate_python(answer["refreshed"])

    # --- the graph ----------------------------------------------------------------------------

    def sources(self) -> list[SourceOverview]:
        """What can be looked up where."""
        return self._get(dict[str, list[SourceOverview]], "/sources")["sources"]

    def fetch(
        self,
        kind: SubjectKind,
        name: str = "",
        *,
        error: str = "",
        language: str = "python",
        package: str = "",
        version: str = "",
        repository: str = "",
        sources: Sequence[str] = (),
        progress: Progress = lambda event, told: None,
    ) -> FetchReport:
        """Look an API, a package, a topic or an error (its text as `error`) up outside."""
        return self._work(
            FetchReport,
            "/fetch",
            progress=progress,
            kind=kind,
            name=name,
            error=error,
            language=language,
            package=package,
            version=version,
            repository=repository,
            sources=list(sources),
        )

    def query_graph(self, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
        """The rows of a named query, in its order."""
        body = {"name": name, "parameters": parameters}
        return self._post(dict[str, list[dict[str, Any]]], "/graph/query", **body)["rows"]

    def graph(self, project: str = "") -> GraphCounts:
        """How many nodes and relations of each kind there are."""
        return self._get(GraphCounts, "/graph/status", project=project)

    def nodes(self, name: str, *, kind: str | None = None, project: str = "") -> list[Described]:
        """Nodes by their id or name, with their relations and scores."""
        wanted = {"name": name, "kind": kind, "project": project}
        return self._get(dict[str, list[Described]], "/graph/nodes", **wanted)["nodes"]

    def relevant(
        self, text: str, *, language: str = "", package: str = "", limit: int = 5
    ) -> list[RelevantDocument]:
        """Documents for a task, the most relevant first."""
        return self._post(
            dict[str, list[RelevantDocument]],
            "/graph/relevant",
            text=text,
            language=language,
            package=package,
            limit=limit,
        )["documents"]

    def link(self, folder: str, *, project: str | None = None, force: bool = False) -> LinkReport:
        """Tie the code of a folder of the server's machine to the libraries it uses."""
        return self._long(LinkReport, "/link", folder=folder, project=project, force=force)

    def radar(self, folder: str, *, fetch: bool = False) -> RadarReport:
        """The lines of such a folder's code that use what is deprecated or removed."""
        return self._long(RadarReport, "/radar", folder=folder, fetch=fetch)

    # --- the server -------------------------------------------------------------------------

    def status(self, collection: str | None = None) -> Status:
        return self._get(Status, "/status", collection=collection)

    def jobs(self, collection: str | None = None) -> OpenJobs:
        """What the queue holds."""
        return self._get(OpenJobs, "/jobs", collection=collection)

    # --- inside -----------------------------------------------------------------------------

    def _get(self, kind: type[Result], route: str, /, **wanted: Any) -> Result:
        return _read(kind, self._asked("GET", route, params=_given(wanted)))

    def _post(self, kind: type[Result], route: str, /, **body: Any) -> Result:
        return _read(kind, self._asked("POST", route, json=_given(body)))

    def _long(self, kind: type[Result], route: str, /, **body: Any) -> Result:
        """Of work that may take longer than an answer is waited for otherwise."""
        return _read(kind, self._asked("POST", route, json=_given(body), timeout=None))

    def _asked(self, method: str, path: str, **how: Any) -> httpx.Response:
        answer = self._http.request(method, path, **how)
        if not answer.is_success:
            raise _problem(answer)
        return answer

    def _work(
        self,
        kind: type[Result],
        route: str,
        /,
        *,
        progress: Progress = lambda event, told: None,
        **body: Any,
    ) -> Result:
        """What long work ends with; `progress` is told meanwhile."""
        with self._http.stream("POST", route, json=_given(body)) as answer:
            for event, value in _told(answer):
                if event == "done":
                    return TypeAdapter(kind).validate_json(value)
                if event == "error":
                    raise _refused(json.loads(value))
                progress(event, json.loads(value))
        raise ServerProblem(502, "the server stopped before the work was done", kind="about:blank")

    def _events(self, route: str, /, **wanted: Any) -> Generator[Run, None, None]:
        with self._http.stream("GET", route, params=_given(wanted)) as answer:
            for event, value in _told(answer):
                if event == "run":
                    yield TypeAdapter(Run).validate_json(value)
                elif event == "error":
                    raise VadeError(value)


def _told(answer: httpx.Response) -> Iterator[tuple[str, str]]:
    """The events of a stream, each with its data. Raises ServerProblem."""
    if not answer.is_success:
        answer.read()
        raise _problem(answer)
    event = ""
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            event = value
        elif name == "data":
            yield event, value


def _lines(questions: Sequence[Question] | None) -> list[dict[str, Any]] | None:
    """Questions as a request has them."""
    if questions is None:
        return None
    return [
        {"query": one.query, "expect": [asdict(expected) for expected in one.expect]}
        for one in questions
    ]


def _problem(answer: httpx.Response) -> ServerProblem:
    try:
        told = answer.json()
    except ValueError:
        told = None
    told = told if isinstance(told, dict) else {}
    after = answer.headers.get("retry-after", "")
    said = {"status": answer.status_code, "detail": answer.reason_phrase} | told
    return _refused(said, retry_after=float(after) if after.isdecimal() else None)


def _refused(told: Mapping[str, Any], *, retry_after: float | None = None) -> ServerProblem:
    return ServerProblem(
        int(told["status"]),
        str(told["detail"]),
        kind=str(told.get("type", "about:blank")).removeprefix("urn:vademecum:"),
        hint=told.get("hint"),
        retry_after=retry_after,
    )


def _read(kind: type[Result], answer: httpx.Response) -> Result:
    return TypeAdapter(kind).validate_json(answer.content)


def _given(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wanted.items() if value is not None}


def _path(*parts: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in parts)
