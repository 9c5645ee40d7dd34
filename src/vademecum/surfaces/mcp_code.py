"""The tools of the MCP server for code: what of it is affected, its links, its graph.

Folders are those of the machine that the server runs on, and ask for admin.
"""

import json
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp_types import CallToolResult

from vademecum.graph.queries import QUERIES
from vademecum.graph.radar import Finding
from vademecum.surfaces.mcp_results import SIZED, Opened, result, told, within


def add_tools(server: MCPServer, opened: Opened) -> None:
    @server.tool(meta=SIZED)
    @told
    async def check_deprecations(folder: str, fetch: bool = False) -> CallToolResult:
        """Which lines of a project use what their libraries deprecate or no longer have.

        Each with version, replacement and the library's own sentence. Call it before an upgrade, or
        when code that worked fails. fetch: also read locked versions that are not installed.
        """
        app = await opened()
        report = await app.code.radar(Path(folder), fetch=fetch)
        findings = within([_fields(one) for one in report.findings])
        value: dict[str, object] = {"findings": findings, "found": len(report.findings)}
        if report.notices:
            value["notices"] = report.notices[:20]
        lines = [f"- `{one['at']}` {one['rule']}: {one['api']}" for one in findings]
        return result(value, "\n".join(lines) or "Nothing of it is deprecated.")

    @server.tool(meta=SIZED)
    @told
    async def link_code(folder: str, project: str | None = None) -> CallToolResult:
        """Tie a project's code to the libraries it uses, so that find_api, get_context and
        query_graph know them. Only what changed since is read again.

        project: its name; if left out, that of the repository around the folder, else the
        folder's.
        """
        app = await opened()
        report = await app.code.link(Path(folder), project=project)
        value: dict[str, object] = {
            "project": report.project,
            "files_linked": report.linked,
            "files_unchanged": report.unchanged,
            "calls": report.calls,
            "libraries": report.libraries,
        }
        return result(value, f"{report.linked} files of {report.project} were linked.")

    @server.tool(
        meta=SIZED,
        description="Ask the graph of code, APIs and documents one of its named queries.\n\n"
        + "\n".join(
            f"{name}({', '.join([*one.required, *(f'{key}?' for key in one.optional or ())])}):"
            f" {one.summary}."
            for name, one in QUERIES.items()
        ),
    )
    @told
    async def query_graph(name: str, parameters: dict[str, Any] | None = None) -> CallToolResult:
        app = await opened()
        rows = await app.graph.query(name, **(parameters or {}))
        said = [{k: v for k, v in row.items() if v not in (None, "", [], {})} for row in rows]
        shown = within(json.loads(json.dumps(said, default=str)))
        value: dict[str, object] = {"rows": shown, "found": len(rows)}
        return result(value, json.dumps(shown, ensure_ascii=False, indent=1))


def _fields(one: Finding) -> dict[str, object]:
    fields = {
        "at": f"{one.file}:{one.line}",
        "rule": one.rule,
        "api": f"{one.api}({one.parameter}=)" if one.parameter else one.api,
        "version": f"{one.package} {one.version}",
        "since": one.since,
        "until": one.until,
        "use": one.replacement,
        "sentence": one.sentence,
        "expected_by_the_code": one.guarded,
    }
    return {key: value for key, value in fields.items() if value}
