"""The tools of the MCP server for knowledge bases: search them, answer from them, read on."""

from collections.abc import Sequence

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult

from vademecum.surfaces.mcp_results import (
    ALWAYS,
    MAX_CHARACTERS,
    SIZED,
    Opened,
    problem,
    result,
    size,
    told,
)
from vademecum.types import Hit, Query

MAX_PASSAGE = 2400
"""Characters of one passage; the rest of its section is read by its reference."""
MAX_PAGE_TOKENS = 8000
"""Of a part of a stored page."""
MAX_PART = 30_000
"""Characters of a part of a document."""


def add_tools(server: MCPServer, opened: Opened) -> None:
    @server.tool(meta=SIZED)
    @told
    async def list_knowledge_bases() -> CallToolResult:
        """The knowledge bases there are, with what they hold and when they last changed."""
        app = await opened()
        found = [
            {
                "repository": one.name,
                "documents": one.documents,
                "chunks": one.chunks,
                "not_yet_searchable": one.pending + one.processing,
                "last_updated": one.updated_at.isoformat(timespec="seconds")
                if one.updated_at
                else None,
            }
            for one in await app.list_collections()
        ]
        lines = [f"- **{f['repository']}**: {f['documents']} documents" for f in found]
        return result(
            {"knowledge_bases": found}, "\n".join(lines) or "No knowledge base is indexed yet."
        )

    @server.tool(meta=ALWAYS)
    @told
    async def search_knowledge(
        query: str,
        ctx: Context,
        repository: str | None = None,
        k: int = 8,
        hybrid: bool = True,
        keyword: str | None = None,
        filters: list[str] | None = None,
        rerank: bool = False,
        page: int = 1,
    ) -> CallToolResult:
        """Find passages by meaning and by word. Use it before you fetch from the web.

        repository: one knowledge base; may be left out where there is only one.
        keyword: only documents that hold these words. hybrid=false searches by words alone.
        filters: facets that must hold, such as "tier<=2" or "level=A2,B1".
        rerank: read the best again with a model, where one is configured; takes longer.
        page: the next k passages.
        """
        app = await opened()
        if not 1 <= k <= 20 or not 1 <= page <= 5:
            return problem("k must be from 1 to 20 and page from 1 to 5.")
        await ctx.report_progress(0, 1, "searching")
        found = await app.search(
            Query(
                text=query,
                collection=await app.collection_name(repository),
                mode="hybrid" if hybrid else "lexical",
                limit=k * page,
                keyword=keyword,
                filters=tuple(filters or ()),
                rerank=rerank,
            )
        )
        await ctx.report_progress(1, 1, "done")
        hits = found.results[k * (page - 1) :]
        passages = _passages(hits)
        value: dict[str, object] = {"passages": passages}
        if found.notices:
            value["notices"] = found.notices
        if not passages:
            value["next"] = "Nothing matched. Try other words, or another repository."
        elif len(found.results) == k * page and page < 5:
            value["more"] = f"page={page + 1}"
        lines = [f"1. **{h.title}** `{h.reference}`\n   {h.snippet}" for h in hits]
        return result(value, "\n".join(lines) or "Nothing was found.")

    @server.tool(meta=ALWAYS)
    @told
    async def answer_knowledge(
        query: str,
        ctx: Context,
        repository: str | None = None,
        k: int = 8,
        filters: list[str] | None = None,
        keep_for: str | None = None,
    ) -> CallToolResult:
        """Answer a question with sentences of the sources, each cited, or say that they hold none.

        k: how many sections may be named as sources, at most.
        filters: facets that must hold, such as "tier<=2" or "level=A2,B1".
        keep_for: a project that keeps the answer; get_context tells it, and warns once it is stale.
        """
        app = await opened()
        if not 1 <= k <= 20:
            return problem("k must be from 1 to 20.")
        await ctx.report_progress(0, 1, "reading")
        found = await app.answer(
            query,
            collection=await app.collection_name(repository),
            filters=tuple(filters or ()),
            keep_for=keep_for,
        )
        await ctx.report_progress(1, 1, "done")
        value: dict[str, object] = {
            "found": found.found,
            "answer": found.answer,
            "sources": [{"ref": s.reference, "title": s.title} for s in found.sources[:k]],
        }
        if found.notices:
            value["notices"] = found.notices
        if not found.found:
            value["next"] = "Search with other words, or fetch from the web."
        return result(value, found.answer)

    @server.tool(meta=SIZED)
    @told
    async def get_repository_stats(repository: str | None = None) -> CallToolResult:
        """What one knowledge base, or each, holds, what is still to be done and what failed."""
        app = await opened()
        status = await app.status(repository)
        value = {
            "repositories": [
                {
                    "repository": one.name,
                    "profile": one.profile,
                    "embedder": one.embedder,
                    "documents": one.documents,
                    "chunks": one.chunks,
                    "waiting": one.pending + one.processing,
                    "failed": one.failed,
                }
                for one in status.collections
            ],
            "failures": [f"{one.path}: {one.error}" for one in status.failed[:20]],
        }
        lines = [
            f"- **{one.name}**: {one.documents} documents, {one.chunks} chunks, {one.failed} failed"
            for one in status.collections
        ]
        return result(value, "\n".join(lines) or "No knowledge base is indexed yet.")

    @server.tool(meta=SIZED)
    @told
    async def list_recent_updates(repository: str | None = None, n: int = 20) -> CallToolResult:
        """The documents of a knowledge base that changed last, newest first. n: at most 100."""
        app = await opened()
        name = await app.collection_name(repository)
        updates = [
            {
                "path": one.path,
                "title": one.title,
                "updated": one.updated_at.isoformat(timespec="seconds"),
            }
            for one in await app.knowledge_bases.recent_updates(name, limit=min(n, 100))
        ]
        lines = [f"- {one['updated']} `{one['path']}` {one['title']}" for one in updates]
        return result({"repository": name, "updates": updates}, "\n".join(lines) or "None.")

    @server.tool(meta=SIZED)
    @told
    async def read_page(
        url: str, section: str | None = None, offset: int = 0, project: str | None = None
    ) -> CallToolResult:
        """Read on in what you have seen only a part of: a stored web page, or a document.

        url: of the page, or the `ref` of a passage; a ref without its # part is the whole document.
        section: the heading of a page to begin at. offset: or so many characters; a result names
        the next. project: its folder, where the page was stored for one project.
        """
        app = await opened()
        if not url.startswith(("http://", "https://")):
            return _part(await app.shelf.read_reference(url), offset)
        page = await app.cache.read_page(url, section, offset, MAX_PAGE_TOKENS, project)
        return result({"page": page.text}, page.text)


def _passages(hits: Sequence[Hit]) -> list[dict[str, object]]:
    """As many as a result may hold."""
    passages: list[dict[str, object]] = []
    for hit in hits:
        passage: dict[str, object] = {
            "ref": hit.reference,
            "title": hit.title,
            "section": " > ".join(hit.heading_path),
            "text": hit.text[:MAX_PASSAGE],
        }
        if len(hit.text) > MAX_PASSAGE:
            passage["text"] = f"{hit.text[:MAX_PASSAGE]}… [read_page(url=ref) has the rest]"
        if size([*passages, passage]) > MAX_CHARACTERS:
            break
        passages.append(passage)
    return passages


def _part(text: str, offset: int) -> CallToolResult:
    """A part of a document, and where the next one begins."""
    if not 0 <= offset <= len(text):
        return problem(f"offset must be from 0 to {len(text)}.")
    part = text[offset : offset + MAX_PART]
    value: dict[str, object] = {"page": part}
    if offset + MAX_PART < len(text):
        value["more"] = f"offset={offset + MAX_PART}"
    return result(value, part)
