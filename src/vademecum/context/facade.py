"""What an agent is told for a task: `app.context`.

task --notes--> what the project knows ┐
     --user---> the narrative          ├--budget--> Markdown
     --decide--graph--> at most two    ┘
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from vademecum.access import require_all
from vademecum.context import fetch as fetching
from vademecum.context import outside
from vademecum.context.decide import Decision, should_query_external
from vademecum.context.errors import Failure, read_failure
from vademecum.context.outside import Outside
from vademecum.context.told import Context, fit
from vademecum.errors import BadInput, VadeError
from vademecum.graph.code import CodeFile
from vademecum.graph.facade import Graph
from vademecum.graph.fetching import Sources
from vademecum.graph.learning import Scored
from vademecum.graph.nodes import CodeFile as CodeFileNode
from vademecum.graph.nodes import Decision as DecisionNode
from vademecum.graph.nodes import ErrorPattern, Function
from vademecum.graph.relations import Relation
from vademecum.ingest.read.files import Skipped
from vademecum.memory.facade import MemoryCalls
from vademecum.notes.facade import TOLD, FoundNote, Notes, SavedNote
from vademecum.store.notes import Note
from vademecum.types import EntityId

MAX_NOTES = 3
MAX_OUTSIDE = 2
LEAST_SIMILARITY = 0.35
"""Cosine from which on a note is about the task; below, it must hold words of it, too."""
RELATED = 0.2
LEAST_OUTSIDE = 0.3
"""Cosine from which on a document from outside is about the task: below, it is one of the nearest
only because none is near."""
SOLUTION = "error_solution"
"""The tag of notes that solve an error."""
MAX_TASK = 10_000
MIN_BUDGET, MAX_BUDGET = 100, 20_000


class ContextCalls:
    """Works with less when a part is away: what is missing is told in `notices`."""

    def __init__(
        self,
        *,
        notes: Notes,
        memory: MemoryCalls,
        graph: Graph,
        sources: Sources,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._notes, self._memory, self._graph, self._now = notes, memory, graph, now
        self._sources = sources

    async def build(
        self,
        task: str,
        *,
        project: str,
        path: Path | None = None,
        error: str = "",
        user: str = "",
        budget: int = 1500,
        fetch: bool = False,
    ) -> Context:
        """The context of a task. `path` is a file at hand, `error` a traceback.

        With `fetch` what the task names and the graph does not know is looked up first, where the
        rules say to look outside. Raises BadInput.
        """
        require_all("read")
        if fetch:
            require_all("write")  # what is found is kept
        task = task.strip()
        if not task or len(task) > MAX_TASK:
            raise BadInput(
                "the task is empty" if not task else f"the task is longer than {MAX_TASK}"
            )
        if not MIN_BUDGET <= budget <= MAX_BUDGET:
            raise BadInput(f"the budget must be from {MIN_BUDGET} to {MAX_BUDGET} tokens")
        notices: list[str] = []
        failure = read_failure(error) if error else None
        if error and failure is None:
            notices.append("the error shows no exception that could be known again")
        found = await self._about(task, project, notices)
        solutions = await self._solutions(failure, project, notices)
        new, at_hand = await self._at_hand(task, path, project, notices)

        def decide(names: Sequence[str]) -> Decision:
            return should_query_external(
                task,
                notes=len(found),
                new_apis=names,
                failure=failure.pattern if failure else "",
                solved=bool(solutions),
            )

        unknown = fetching.missing(outside.names_in(task), at_hand) if fetch else []
        if fetch and decide([*new, *unknown]).look_outside:
            notices += await fetching.fetch(self._sources, unknown, failure, path)
            new, at_hand = await self._at_hand(task, path, project, notices)
        decision = decide(new)
        narrative = ""
        if user:
            narrative = (await self._memory.show(user)).content
        outside_items: list[Outside] = []
        if decision.look_outside:
            outside_items = await self._outside(task, failure, at_hand, new, project, notices)
        notes = [one.note for one in found if one.note.importance >= TOLD]
        return fit(
            Context(
                task=task,
                markdown="",
                notes=[n for n in notes if n not in solutions][:MAX_NOTES],
                solutions=solutions[:1],
                narrative=narrative,
                outside=outside_items,
                decision=decision,
                failure=failure,
                tokens=0,
                left_out=[],
                notices=notices,
            ),
            budget,
        )

    async def find_api(self, query: str, *, project: str = "", limit: int = 5) -> list[Outside]:
        """API references by their qualified names. Raises BadInput."""
        require_all("read")
        if not query.strip():
            raise BadInput("the query is empty")
        names = list(dict.fromkeys([query.strip().rstrip("()"), *outside.names_in(query)]))
        apis = await outside.known_apis(self._graph, names, project)
        return await outside.of_apis(self._graph, apis[:limit], now=self._now())

    async def solve(
        self, error: str, solution: str, *, project: str, agent: str = "", source: str = ""
    ) -> SavedNote:
        """Keep what solved an error, so that it is told when the error comes again."""
        failure = read_failure(error)
        if failure is None:
            raise BadInput(
                "the error shows no exception that could be known again",
                hint="Give the traceback, or its last line such as `ValueError: …`.",
            )
        return await self._notes.save(
            project,
            f"{failure.pattern}\n\n{solution.strip()}",
            title=f"Solution: {failure.pattern}"[:200],
            type="pattern",
            tags=[SOLUTION, failure.kind],
            importance=8,
            evidence=[source] if source else [],
            agent=agent,
        )

    async def record(
        self,
        number: UUID,
        *,
        outcome: str,
        agent: str,
        project: str,
        task: str = "",
        use: str | None = None,
        decision: str = "",
        error: str = "",
    ) -> Scored:
        """Note what came of a piece of knowledge: it moves the ranking. A *decision* that it
        informed, and an *error* that it solved, become relations of the graph. Raises BadInput.
        """
        require_all("write")
        failure = read_failure(error) if error else None
        if error and failure is None:
            raise BadInput("the error shows no exception that could be known again")
        scored = await self._graph.record_usage(
            number, agent_id=agent, outcome=outcome, project=project, use=use, task=task
        )
        known = (await self._graph.get([number], project=project))[EntityId(number)]
        relations = []
        if decision:
            made = DecisionNode(
                in_project=project, agent_id=agent, text=decision, decided_at=self._now()
            )
            relations.append(
                Relation(
                    kind="INFORMED_DECISION",
                    start=known,
                    end=made,
                    properties={"agent_id": agent},
                    rests_on=known,
                )
            )
        if failure is not None and outcome == "success":
            pattern = ErrorPattern(
                pattern=failure.pattern, language=failure.language, example=failure.message
            )
            relations.append(Relation(kind="SOLVES", start=known, end=pattern, rests_on=known))
        if relations:
            await self._graph.state(
                "agent",
                agent,
                project=project,
                nodes=[one.end for one in relations],
                relations=relations,
                replace=False,
            )
        return scored

    # --- parts ------------------------------------------------------------------------------

    async def _about(self, task: str, project: str, notices: list[str]) -> list[FoundNote]:
        """Notes that are about the task, best first."""
        try:
            found = await self._notes.search(project, task, limit=10)
        except BadInput:
            raise
        except VadeError as error:
            notices.append(f"notes: {error}")
            return []
        return [one for one in found if _is_about(one)]

    async def _solutions(
        self, failure: Failure | None, project: str, notices: list[str]
    ) -> list[Note]:
        if failure is None:
            return []
        try:
            found = await self._notes.search(
                project, failure.pattern, tags=[SOLUTION, failure.kind.lower()], limit=10
            )
        except VadeError as error:
            notices.append(f"notes: {error}")
            return []
        return [one.note for one in found if failure.pattern in one.note.content]

    async def _at_hand(
        self, task: str, path: Path | None, project: str, notices: list[str]
    ) -> tuple[list[str], list[str]]:
        """Names of APIs that are new to the project, and of all that are at hand."""
        names = outside.names_in(task)
        own: set[object] = set()
        if path is not None:
            read = _read_code(path)
            if isinstance(read, str):
                notices.append(read)
            else:
                names += [name for name in outside.names_of(read) if name not in names]
                own = await self._nodes_of(path, project)
        apis = await outside.known_apis(self._graph, names, project)
        used = await outside.uses(self._graph, apis, project)
        new = [api.name for api in apis if not used[api.name] - own]
        return new, [api.name for api in apis]

    async def _nodes_of(self, path: Path, project: str) -> set[object]:
        """The nodes of a file at hand: its own uses do not make an API known to the project."""
        suffix = path.resolve().as_posix()
        files = await self._graph.find(CodeFileNode, _tails(suffix), project=project)
        functions = [
            one for file in files for one in await self._graph.relations([file.id], project=project)
        ]
        return {file.id for file in files} | {
            row.start_id for row in functions if row.kind == "DEFINED_IN"
        }

    async def _outside(
        self,
        task: str,
        failure: Failure | None,
        at_hand: Sequence[str],
        new: Sequence[str],
        project: str,
        notices: list[str],
    ) -> list[Outside]:
        """At most two: what solves the error, APIs that are new, then documents by relevance."""
        now = self._now()
        items: list[Outside] = []
        try:
            if failure is not None:
                items += await self._for_failure(failure, project)
            apis = await outside.known_apis(self._graph, [*new, *at_hand], project)
            warned = [api for api in apis if api.deprecated_in]
            chosen = warned[:1] + [api for api in apis if api.name in new and api not in warned[:1]]
            told = await outside.of_apis(self._graph, chosen[:MAX_OUTSIDE], now=now)
            items += told[:1]
            text = failure.pattern if failure else task
            for one in await self._graph.relevant(text, limit=MAX_OUTSIDE):
                if one.scored.relevance.similarity >= LEAST_OUTSIDE:
                    items.append(outside.of_document(one.document, one.passage, now=now))
            items += told[1:]
        except VadeError as error:
            notices.append(f"graph: {error}")
        unique = {item.id: item for item in items}
        return list(unique.values())[:MAX_OUTSIDE]

    async def _for_failure(self, failure: Failure, project: str) -> list[Outside]:
        """What the graph states to solve the error."""
        patterns = await self._graph.find(ErrorPattern, [failure.pattern], project=project)
        rows = await self._graph.relations(
            [one.id for one in patterns], project=project, kinds=["SOLVES"], outgoing=False
        )
        nodes = await self._graph.get([row.start_id for row in rows], project=project)
        then = {row.start_id: row.properties.get("rests_on_hash") for row in rows}
        items = []
        for number, node in nodes.items():
            if not isinstance(node, Function):
                changed = then[number] not in (None, node.digest)
                warning = "it has changed since it solved this" if changed else ""
                items.append(outside.of_solution(node, warning=warning))
        return items


def _is_about(one: FoundNote) -> bool:
    if one.similarity is None:
        return one.lexical
    return one.similarity >= LEAST_SIMILARITY or (one.lexical and one.similarity >= RELATED)


def _read_code(path: Path) -> CodeFile | str:
    from vademecum.graph.project import JAVASCRIPT, PYTHON, read_file

    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if path.suffix not in (*PYTHON, *JAVASCRIPT):
        return f"{path} is no code that can be read"
    read = read_file(path, path.name, path.parent)
    if isinstance(read, Skipped):
        return f"{path}: {read.reason}"
    return read[0]


def _tails(path: str) -> list[str]:
    """The ways a file may be named relative to a folder above it."""
    parts = path.strip("/").split("/")
    return ["/".join(parts[start:]) for start in range(len(parts))]
