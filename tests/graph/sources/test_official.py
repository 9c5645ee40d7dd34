"""MDN and Microsoft Learn over a real socket, in the formats of their APIs."""

import json

import pytest

from graph.sources.host import Host
from vademecum.app import App
from vademecum.graph.nodes import APIReference
from vademecum.graph.sources.adapter import Subject
from vademecum.graph.sources.mdn import plain_name

MAP = "/en-US/docs/Web/JavaScript/Reference/Global_Objects/Array/map"
AT = Subject(kind="api", name="Array.map", language="javascript")


def page(title: str, summary: str, *sections: tuple[str | None, str]) -> dict[str, object]:
    """A page as MDN builds it: the type `Doc` of `@mdn/rari`."""
    prose = [
        {"type": "prose", "value": {"id": None, "title": name, "isH3": False, "content": text}}
        for name, text in sections
    ]
    table = {"type": "browser_compatibility", "value": {"title": "Compat", "query": "a.b"}}
    return {
        "doc": {
            "body": [*prose, table],
            "title": title,
            "summary": summary,
            "mdn_url": MAP,
            "locale": "en-US",
            "modified": "2026-07-20T10:00:00.000Z",
        },
        "url": MAP,
    }


ARRAY = page(
    "Array.prototype.map()",
    "The map() method creates a new array &amp; fills it.",
    (None, "<p>The <code>map()</code> method creates a new array.</p>"),
    (
        "Syntax",
        '<pre class="brush: js-nolint"><code>map(callbackFn)\nmap(fn, thisArg)</code></pre>',
    ),
    ("Return value", "<p>A new array.</p>"),
    ("Examples", '<pre class="brush: js"><code>const roots = [1, 4].map(Math.sqrt);</code></pre>'),
    ("Notes", "<p>Avoid mapping an array only for what the callback does besides.</p>"),
)


@pytest.fixture
def mdn(host: Host) -> Host:
    listed = [
        {"title": "Map.prototype.get()", "url": f"{MAP}/get"},
        {"title": "Array.prototype.map()", "url": MAP},
    ]
    data = json.dumps(listed).encode()
    host.put("/mdn/en-US/search-index.json", data, "application/json")
    host.put(f"/mdn{MAP}/index.json", ARRAY)
    return host


async def test_a_reference_of_mdn(app: App, mdn: Host) -> None:
    report = await app.sources.fetch(AT)
    [document] = report.documents
    [api] = await app.graph.find(APIReference, ["Array.prototype.map"])
    [told] = await app.context.find_api("Array.prototype.map")

    assert document.source_url == f"{mdn.url}/mdn{MAP}"
    assert (document.source, document.practices) == ("mdn", 1)
    assert api.signature == "map(callbackFn)\nmap(fn, thisArg)"
    assert api.return_type == "A new array."
    assert api.description == "The map() method creates a new array & fills it."
    assert api.example_code == "const roots = [1, 4].map(Math.sqrt);"
    assert told.source == "MDN Web Docs"


async def test_where_the_index_is_away_the_search_answers_and_then_the_page(
    app: App, mdn: Host
) -> None:
    del mdn.pages["/mdn/en-US/search-index.json"], mdn.pages[f"/mdn{MAP}/index.json"]
    found = {"documents": [{"mdn_url": MAP, "title": "Array.prototype.map()", "summary": "x"}]}
    mdn.put("/mdn/api/v1/search", found)
    words = "<p>The map method creates a new array with what the callback gives for each.</p>"
    mdn.put(f"/mdn{MAP}", f"<html><title>Array.prototype.map()</title><main>{words * 5}</main>")
    report = await app.sources.fetch(AT)

    assert report.documents[0].source_url == f"{mdn.url}/mdn{MAP}"
    assert [path for path in mdn.asked if path.startswith("/mdn/en-US/docs")] == [
        f"/mdn{MAP}/index.json",
        f"/mdn{MAP}",
    ]


async def test_what_mdn_deprecates_is_told(app: App, mdn: Host) -> None:
    notice = '<div class="notecard deprecated"><p><strong>Deprecated:</strong> Use slice.</p></div>'
    old = page(
        "String.prototype.substr()",
        "Gives a part.",
        (None, f"{notice}<p>Gives a part of a string.</p>"),
        ("Syntax", "<pre><code>substr(start)</code></pre>"),
    )
    mdn.pages["/mdn/en-US/search-index.json"] = lambda asked: (404, {}, b"")
    path = "/en-US/docs/substr"
    found = {"documents": [{"mdn_url": path, "title": "String.prototype.substr()"}]}
    mdn.put("/mdn/api/v1/search", found)
    mdn.put(f"/mdn{path}/index.json", old)
    await app.sources.fetch(Subject(kind="api", name="String.substr", language="javascript"))
    [told] = await app.context.find_api("String.prototype.substr")

    assert told.warning == "Deprecated: Use slice."


async def test_a_refresh_asks_for_the_json(app: App, mdn: Host) -> None:
    document = (await app.sources.fetch(AT)).documents[0]
    same = await app.graph.refresh(ids=[document.id])
    mdn.failing = (403, {"content-type": "text/html"}, b"no")
    failed = await app.graph.refresh(ids=[document.id])

    assert (same.unchanged, same.updated) == (1, 0)
    assert "it answered 403" in failed.failed[0][1]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Array.prototype.map()", "Array.prototype.map"),
        ("Window: fetch() method", "Window.fetch"),
        ("Element: click event", "Element.click"),
        ("Response: json() static method", "Response.json"),
        ("AbortController", "AbortController"),
    ],
)
def test_titles_of_mdn_as_names(title: str, name: str) -> None:
    assert plain_name(title) == name


# --- Microsoft Learn --------------------------------------------------------------------------

CREATE = """# BlobServiceClient.CreateBlobContainer Method

## Definition

Creates a new blob container under the account that the client was made for.

```csharp
public virtual Response<BlobContainerClient> CreateBlobContainer (string name);
```

Never put an account key into code; use a managed identity.
"""


@pytest.fixture
def learn(host: Host) -> Host:
    def result(path: str, title: str, at: str = host.url) -> dict[str, object]:
        return {
            "title": title,
            "url": f"{at}{path}",
            "description": "About it.",
            "lastUpdatedDate": "2026-06-01T00:00:00Z",
            "breadcrumbs": [],
        }

    results = [
        result("/en-us/answers/1", "How do I CreateBlobContainer?"),
        result(
            "/en-us/create", "BlobServiceClient.CreateBlobContainer", "https://elsewhere.example"
        ),
        result("/en-us/create", "BlobServiceClient.CreateBlobContainer Method"),
        result("/en-us/blobs", "Introduction to blobs"),
    ]
    host.put("/learn/api/search", {"results": results, "count": len(results)})
    host.put("/en-us/create", CREATE, "text/markdown")
    host.put("/en-us/blobs", "# Blobs\n\nWhat blobs are, and what they are for.", "text/markdown")
    return host


async def test_a_reference_of_microsoft_learn(app: App, learn: Host) -> None:
    name = "BlobServiceClient.CreateBlobContainer"
    report = await app.sources.fetch(Subject(kind="api", name=name, language="csharp"))
    [document] = report.documents
    [api] = await app.graph.find(APIReference, [name])

    assert (document.source_url, document.practices) == (f"{learn.url}/en-us/create", 1)
    assert api.signature.startswith("public virtual Response<BlobContainerClient> CreateBlob")
    assert api.description.startswith("Creates a new blob container")
    assert "%24top=10" in learn.asked[0]


async def test_a_topic_of_microsoft_learn_is_documentation_only(app: App, learn: Host) -> None:
    subject = Subject(kind="topic", name="blob containers", language="azure")
    report = await app.sources.fetch(subject, only=["microsoft-learn"])

    assert [one.source_url for one in report.documents] == [
        f"{learn.url}/en-us/create",
        f"{learn.url}/en-us/blobs",
    ]
