"""The tools of the MCP server for work on a project: what to know, what to keep, what helped."""

from uuid import UUID

from mcp.server import MCPServer
from mcp_types import CallToolResult

from vademecum.context.outside import Outside
from vademecum.graph.sources.adapter import Subject
from vademecum.surfaces.mcp_results import ALWAYS, SIZED, Opened, problem, result, told

AGENT = "mcp"
"""Whose use it is where an agent gives no name."""


def add_tools(server: MCPServer, opened: Opened) -> None:
    @server.tool(meta=ALWAYS)
    @told
    async def get_context(
        task: str,
        project: str,
        error: str = "",
        user: str = "",
        budget: int = 1500,
        fetch: bool = False,
    ) -> CallToolResult:
        """What to know before you start on a task in a project. Call it first.

        Notes of the project come first and go before everything else; references from outside are
        advisory, each with its source, version and `id` for record_outcome. project: the name of
        the repository's folder. error: a traceback that you are to fix. user: the address of the
        user you act for. budget: tokens, at most. fetch: look up APIs that the task names and are
        not known, and the error; it takes seconds.
        """
        app = await opened()
        found = await app.context.build(
            task, project=project, error=error, user=user, budget=budget, fetch=fetch
        )
        value: dict[str, object] = {
            "context": found.markdown,
            "outside": {
                "looked": found.decision.look_outside,
                "because": found.decision.reason,
            },
            "references": [{"id": str(one.id), "title": one.title} for one in found.outside],
        }
        if found.notices:
            value["notices"] = found.notices
        if not found.markdown:
            value["next"] = "Nothing is known of this. Save a note when you have learned something."
        return result(value, found.markdown or "Nothing is known of this.")

    @server.tool(meta=SIZED)
    @told
    async def find_api(name: str, project: str = "", fetch: bool = False) -> CallToolResult:
        """The exact API of a library: signature, version, deprecation, example, source.

        name: qualified as it is imported, such as `httpx.Client.get`. Known are libraries of
        projects that were linked, and what was fetched from documentation. fetch: look a Python
        API up there now, where it is not known.
        """
        app = await opened()
        found = await app.context.find_api(name, project=project)
        failed: list[str] = []
        if fetch and not found:
            subject = Subject(kind="api", name=name.strip().removesuffix("()"), language="python")
            report = await app.sources.fetch(subject)
            failed = [f"{one.source}: {one.reason}" for one in report.failed]
            found = await app.context.find_api(name, project=project)
        value: dict[str, object] = {"apis": [_fields(one) for one in found]}
        if failed:
            value["notices"] = failed
        if not found:
            value["next"] = (
                "Qualify the name fully, call again with fetch, or have `vade link DIR` run."
            )
        lines = [f"- `{one.title}` ({one.version}) {one.warning}\n  {one.text}" for one in found]
        return result(value, "\n".join(lines) or "No such API is known.")

    @server.tool(meta=SIZED)
    @told
    async def save_note(
        project: str,
        content: str,
        title: str = "",
        type: str = "learning",  # noqa: A002 - the word that agents know it by
        tags: list[str] | None = None,
        importance: int = 5,
        evidence: list[str] | None = None,
        agent: str = AGENT,
    ) -> CallToolResult:
        """Keep one lasting thing about a project: a decision, a convention, a lesson.

        type: pattern, decision, convention, learning or context. importance: 1 to 10; from 5 on it
        is told by get_context. evidence: files with lines, commits, addresses. For the solution of
        an error use type pattern, tag error_solution, and begin with the error's last line. A note
        that contradicts older ones of its type replaces them; `replaced` says which and why.
        """
        app = await opened()
        saved = await app.notes.save(
            project,
            content,
            title=title,
            type=type,
            tags=tags or (),
            importance=importance,
            evidence=evidence or (),
            agent=agent,
        )
        value: dict[str, object] = {"id": str(saved.note.id), "confirmed": saved.confirmed}
        if saved.replaced:
            value["replaced"] = [
                {"id": str(one.id), "title": one.title, "why": one.why} for one in saved.replaced
            ]
        told_of = "".join(f" It replaces {one.title!r}: {one.why}." for one in saved.replaced)
        return result(value, ("Known already." if saved.confirmed else "Saved.") + told_of)

    @server.tool(meta=SIZED)
    @told
    async def record_outcome(
        id: str,  # noqa: A002 - the name it has in the results of get_context
        outcome: str,
        project: str,
        agent: str = AGENT,
        task: str = "",
        decision: str = "",
        error: str = "",
    ) -> CallToolResult:
        """Say whether a reference that you were given helped. What helps is shown first later.

        outcome: success, failure, misled (what it says was wrong) or unknown. decision: what you
        decided because of it. error: the traceback that it solved.
        """
        try:
            number = UUID(id)
        except ValueError:
            return problem("The id must be one that get_context or find_api returned.")
        app = await opened()
        scored = await app.context.record(
            number,
            outcome=outcome,
            agent=agent,
            project=project,
            task=task,
            decision=decision,
            error=error,
        )
        relevance = None if scored is None else round(scored.relevance.relevance, 3)
        return result({"recorded": True, "relevance": relevance}, "Recorded.")


def _fields(one: Outside) -> dict[str, object]:
    fields = {
        "id": str(one.id),
        "api": one.title,
        "version": one.version,
        "source": one.source,
        "url": one.url,
        "text": one.text,
        "warning": one.warning,
        "example": one.example[:1500],
    }
    return {key: value for key, value in fields.items() if value}
