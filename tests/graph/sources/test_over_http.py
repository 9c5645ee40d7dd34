"""Fetching, the graph, links and radar through a server's process, by the client."""

from pathlib import Path

import pytest

from graph.environments import install, project
from graph.sources.host import Host
from graph.sources.test_registries import pypi
from surfaces.serving import served
from vademecum.client import Client
from vademecum.errors import ServerProblem
from vademecum.surfaces.http.instance import token

__all__ = ["pypi"]  # a fixture


def test_the_client_fetches_links_and_looks(
    house: Path, database_url: str, pypi: Host, tmp_path: Path
) -> None:
    root = project(tmp_path / "code", {"app.py": "import shoplib\n\nshoplib.old()\n"})
    library = {"shoplib/__init__.py": "def old():\n    pass\n\ndef new():\n    pass\n"}
    install(root / ".venv", "shop-lib", "2.0", library)
    told: list[str] = []
    with (
        served(house, database_url, VADE_EMBEDDER="none") as running,
        Client(running.address.url, token(house)) as vade,
    ):
        reading = vade.create_key("reader", scopes=["read"])
        names = [one.name for one in vade.sources()]
        before = vade.radar(str(root))
        report = vade.fetch(
            "package", "shop-lib", progress=lambda event, what: told.append(what["text"])
        )
        after = vade.radar(str(root))
        linked = vade.link(str(root), project="shop")
        uses = vade.query_graph("api_uses", project="shop", name="shoplib.old")
        [node] = vade.nodes("shoplib.old", kind="APIReference")
        [api] = vade.find_api("shoplib.old")
        found = vade.relevant("changes of shop-lib", limit=1)
        context = vade.context("call `shoplib.new`", project="shop", fetch=True)
        with Client(running.address.url, reading) as reader:
            for call in (
                lambda: reader.fetch("package", "shop-lib"),
                lambda: reader.context("x", project="shop", fetch=True),
                lambda: reader.link(str(root)),
                lambda: reader.radar(str(root)),
            ):
                with pytest.raises(ServerProblem) as refused:
                    call()
                assert refused.value.status == 403
        with pytest.raises(ServerProblem, match="no exception that could be known again"):
            vade.fetch("error", error="it broke")
        with pytest.raises(ServerProblem, match="no source takes a topic of python among pypi"):
            vade.fetch("topic", "retries", sources=["pypi"])

    assert "pypi" in names
    assert before.findings == []
    assert [one.title for one in report.documents] == ["shop-lib 2.0", "shop-lib 2.0 CHANGES.md"]
    assert told[0] == "asking pypi"
    assert [(one.line, one.replacement) for one in after.findings] == [(3, "new()")]
    assert (linked.project, linked.calls) == ("shop", 1)
    assert [row["line_number"] for row in uses] == [3]
    assert node.properties["deprecation"] == after.findings[0].sentence
    assert "deprecated in 2.0" in api.warning
    assert [one.document.title for one in found] == ["shop-lib 2.0 CHANGES.md"]
    assert "markdown" in context
