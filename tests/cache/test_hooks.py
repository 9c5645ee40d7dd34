"""The cache through the hooks: a page goes round, and a slow server costs no more than the cap."""

import time
from typing import Any

from psycopg import sql

from cache.site import Site, send
from vademecum.app import App
from vademecum.surfaces.hooks import after_tool, before_tool

TEXT = "<p>The oil is kept in the cellar, in barrels of forty litres.</p>" * 3


def asked(url: str, **tool: Any) -> dict[str, Any]:
    return {"tool_name": "WebFetch", "tool_input": {"url": url, "prompt": "the oil"}, **tool}


async def test_a_page_goes_round(web: App, site: Site) -> None:
    site.pages["/lamp"] = f"<h1>The lamp</h1>{TEXT}"
    url = site.url("/lamp")
    assert await before_tool(web.cache, asked(url)) is None
    await after_tool(web.cache, asked(url, tool_response={"code": 404, "result": "gone"}))
    assert await web.cache.fetch_if_due() == 0
    await after_tool(web.cache, asked(url, tool_response={"code": 200, "result": "An oil lamp."}))
    assert await web.cache.fetch_if_due() == 1
    said = await before_tool(web.cache, asked(url))
    assert said is not None
    assert "cellar" in said["hookSpecificOutput"]["permissionDecisionReason"]


async def test_a_server_that_is_slow_is_not_waited_for_past_the_cap(web: App, site: Site) -> None:
    site.pages["/lamp"] = f"<h1>The lamp</h1>{TEXT}"
    await web.cache.store_page(site.url("/lamp"))
    async with web.database.connection() as connection:
        await connection.execute(sql.SQL("UPDATE web_pages SET expires_at = now()"))

    def slow(request: Any) -> None:
        time.sleep(5)
        send(request, 200, b"<p>late</p>")

    site.answers["/lamp"] = slow
    for seconds in (0.2, 0.05):  # the second leaves no time to ask at all
        found = await web.cache.check(site.url("/lamp"), seconds=seconds, revalidate_seconds=60)
        assert found.outcome == "stale"
        assert "did not answer in time" in found.text
