"""What tests of the graph share: a library, its documents, and code that uses it."""

from dataclasses import replace
from datetime import UTC, datetime

from vademecum.graph.nodes import (
    APIReference,
    BestPractice,
    CodeExample,
    CodeFile,
    ErrorPattern,
    ExternalDoc,
    Framework,
    Function,
    Language,
    Node,
    Source,
)
from vademecum.graph.relations import Relation

PYTHON = Language(language="Python", version="3.12")
PYTHON_39 = Language(language="Python", version="3.9")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


def api(
    name: str, version: str = "2.31.0", *, package: str = "requests", **of: str
) -> APIReference:
    namespace, _, function = name.rpartition(".")
    return APIReference(
        ecosystem="pypi",
        package=package,
        version=version,
        language="Python",
        namespace=namespace,
        function_name=function,
        **of,  # type: ignore[arg-type]
    )


def doc(title: str, *, source: str = "python_docs", **of: object) -> ExternalDoc:
    made = ExternalDoc(
        source=source,
        source_url=f"https://docs.example/{title.replace(' ', '-').lower()}",
        title=title,
        content_hash="0" * 64,
        summary=f"About {title}.",
        last_updated=datetime(2026, 1, 2, tzinfo=UTC),
        language="Python",
    )
    return replace(made, **of)  # type: ignore[arg-type]


GET = replace(
    api("requests.get", version_introduced="0.2", signature="get(url, params=None, **kwargs)"),
    parameters=({"name": "url"}, {"name": "params", "default": "None"}),
)
FILE = CodeFile(in_project="shop", path="shop/client.py", language="python", content_hash="a")
FUNCTION = Function(in_project="shop", path="shop/client.py", qualified_name="fetch")
USED = Relation(
    kind="USED_IN",
    start=GET,
    end=FUNCTION,
    key="12",
    properties={"line_number": 12, "context": "x"},
)
DEFINED = Relation(kind="DEFINED_IN", start=FUNCTION, end=FILE)

OLD = api("lib.old", "2.0", package="lib", version_introduced="1.0", deprecated_in="1.9",
          deprecation="Use middle.")  # fmt: skip
MIDDLE = api("lib.middle", "2.0", package="lib", version_introduced="1.9", deprecated_in="1.10",
             removed_in="2.0", deprecation="Use new.")  # fmt: skip
NEW = api("lib.new", "2.0", package="lib", version_introduced="1.10")
NEW_10 = api("lib.new", "1.10", package="lib", version_introduced="1.10", signature="new(old)")
PRERELEASE = api("lib.coming", "2.0", package="lib", version_introduced="2.0rc1")
STDLIB = api("json.loads", "3.12", package="python", version_introduced="2.6")
TOMLLIB = api("tomllib.loads", "3.12", package="python", version_introduced="3.11")
ASYNCORE = api("asyncore.loop", "3.11", package="python", version_introduced="1.5",
               deprecated_in="3.6", removed_in="3.12")  # fmt: skip
GUIDE = doc("Requests guide", package="requests", category="guide")
ANSWER = doc("Timeouts answered", source="stackoverflow_accepted", category="guide")
PRACTICE = BestPractice(
    title="Set a timeout", domain="http", confidence_score=0.9, source_count=3, ecosystem="pypi",
    min_version="0.9", deprecated_in="0.100",
)  # fmt: skip
OLD_PRACTICE = BestPractice(
    title="Retry by hand", domain="http", confidence_score=0.7, ecosystem="pypi"
)
FASTAPI = Framework(package="fastapi")
EXAMPLE = CodeExample(
    title="With a timeout", language="Python", code="requests.get(u, timeout=3)",
    content_hash="1" * 64, source="stackoverflow_accepted", source_url="https://so.example/1",
)  # fmt: skip
ERROR = ErrorPattern(language="Python", pattern="ReadTimeout: *")
OVERFLOW = Source(key="stackoverflow_accepted", title="Stack Overflow", trust_score=0.75)

SHARED: list[Node] = [
    GET, OLD, MIDDLE, NEW, NEW_10, PRERELEASE, STDLIB, TOMLLIB, ASYNCORE, GUIDE, ANSWER, PRACTICE,
    OLD_PRACTICE, FASTAPI, EXAMPLE, ERROR, OVERFLOW, PYTHON, PYTHON_39,
]  # fmt: skip
KNOWN = [
    Relation(kind="REPLACED_BY", start=OLD, end=MIDDLE, properties={"in_version": "1.9"}),
    Relation(kind="REPLACED_BY", start=MIDDLE, end=NEW, properties={"in_version": "1.10"}),
    Relation(kind="VERSION_OF", start=NEW_10, end=NEW),
    Relation(kind="DOCUMENTED_IN", start=GET, end=GUIDE),
    Relation(kind="COMPATIBLE_WITH", start=GET, end=PYTHON_39, properties={"version": "3.9"}),
    Relation(kind="COMPATIBLE_WITH", start=STDLIB, end=PYTHON),
    Relation(kind="COMPATIBLE_WITH", start=TOMLLIB, end=PYTHON),
    Relation(kind="COMPATIBLE_WITH", start=ASYNCORE, end=PYTHON_39),
    Relation(kind="APPLIES_TO", start=PRACTICE, end=FASTAPI),
    Relation(kind="APPLIES_TO", start=OLD_PRACTICE, end=FASTAPI),
    Relation(
        kind="DEPRECATED_IN", start=OLD_PRACTICE, end=FASTAPI, properties={"version": "0.12"}
    ),
    Relation(kind="DEMONSTRATES", start=EXAMPLE, end=GET),
    Relation(kind="IMPLEMENTS", start=EXAMPLE, end=PRACTICE),
    Relation(kind="REFERENCES", start=PRACTICE, end=GET),
    Relation(kind="SOLVES", start=EXAMPLE, end=ERROR),
    Relation(kind="RELATED_TO", start=GUIDE, end=ANSWER),
    Relation(
        kind="SOURCED_FROM", start=EXAMPLE, end=OVERFLOW,
        properties={"answer_accepted": True, "upvotes": 150},
    ),
]  # fmt: skip
CODE = [
    DEFINED,
    USED,
    Relation(kind="EXPLAINS", start=GUIDE, end=FILE, properties={"line_number": 1}),
    Relation(kind="APPLIED_IN", start=PRACTICE, end=FILE),
    Relation(kind="SIMILAR_TO", start=EXAMPLE, end=FUNCTION),
    Relation(kind="OCCURS_IN", start=ERROR, end=FUNCTION, properties={"line_number": 13}),
]
