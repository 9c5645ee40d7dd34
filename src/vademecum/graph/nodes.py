"""The kinds of nodes, with their properties. An id follows from what identifies the node.

Fields that are learned (how often used, how relevant) are filled when a node is read, and ignored
when it is written: nobody states them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Literal, Self, get_type_hints
from uuid import UUID, uuid5

from vademecum.errors import BadInput
from vademecum.graph.versions import Ecosystem, ecosystem_of, order
from vademecum.types import EntityId

NAMESPACE = UUID("6f6c2c0a-6e4b-5d0e-9d3f-1f4c4a1c7d58")
"""Of the ids of this graph; drawn once, and never to be changed."""

Category = Literal["api", "tutorial", "reference", "guide"]
FetchMethod = Literal["cache", "api", "web_scrape", "environment"]
Outcome = Literal["success", "failure", "misled", "unknown"]


LEARNED = {"learned": True}


class Node:
    """What every kind has: its identity, its id, and the properties that are stored."""

    __slots__ = ()
    identity: ClassVar[tuple[str, ...]]
    versions: ClassVar[tuple[str, ...]] = ()
    """Fields that hold versions: each is stored with the text it sorts by, `<field>_order`."""

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def id(self) -> EntityId:
        parts = [self.kind, *(str(getattr(self, name)) for name in self.identity)]
        return EntityId(uuid5(NAMESPACE, "\0".join(parts)))

    @property
    def name(self) -> str:
        """What the node is looked up by."""
        return str(getattr(self, self.identity[-1]))

    @property
    def project(self) -> str:
        """Whose node it is; '' is knowledge that all projects share."""
        return ""

    @property
    def ordered_by(self) -> Ecosystem:
        """Whose order its versions follow."""
        own: Ecosystem = getattr(self, "ecosystem", "")
        return own or ecosystem_of(getattr(self, "language", ""))

    @property
    def digest(self) -> str:
        """SHA-256 of what it says, hexadecimal. Dates are left out: looking again moves them."""
        own: str = getattr(self, "content_hash", "")
        if own:
            return own
        dates = {f.name for f in fields(self) if isinstance(getattr(self, f.name), datetime)}  # type: ignore[arg-type]
        said = {key: value for key, value in self.properties().items() if key not in dates}
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()

    def properties(self) -> dict[str, Any]:
        """What is stored: JSON values, without empty ones."""
        found: dict[str, Any] = {}
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if each.metadata.get("learned") or value is None or value in ("", (), {}):
                continue
            found[each.name] = value.isoformat() if isinstance(value, datetime) else value
        for name in self.versions:
            key = order(getattr(self, name) or "", self.ordered_by)
            if key is not None:
                found[f"{name}_order"] = key
        return found

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Self:
        """The node of stored properties; what this version does not know is left out."""
        return cls(
            **{
                name: _read(properties[name], type_)
                for name, type_ in _hints(cls.__name__).items()
                if properties.get(name) is not None
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalDoc(Node):
    """A document from outside: a page, a readme, an answer. Its text is in a file."""

    identity: ClassVar[tuple[str, ...]] = ("source", "source_url", "version")
    versions: ClassVar[tuple[str, ...]] = ("version",)

    source: str
    """A name of `graph.sources`, given by the adapter that fetched it."""
    source_url: str
    title: str
    content_hash: str
    """SHA-256 of the content, hexadecimal."""
    summary: str = ""
    content_snippet: str = ""
    """The first 1000 characters, or a key excerpt."""
    last_updated: datetime
    """When it was fetched."""
    version: str = ""
    language: str = ""
    category: Category = "reference"
    fetch_method: FetchMethod = "web_scrape"
    ecosystem: Ecosystem = ""
    package: str = ""
    """The package it documents, as its ecosystem names it."""
    last_accessed: datetime | None = field(default=None, compare=False, metadata=LEARNED)
    access_count: int = field(default=0, compare=False, metadata=LEARNED)
    relevance_score: float = field(default=0.0, compare=False, metadata=LEARNED)

    @property
    def name(self) -> str:
        return self.title


@dataclass(frozen=True, slots=True, kw_only=True)
class APIReference(Node):
    """A function, method or class of one version of a package."""

    identity: ClassVar[tuple[str, ...]] = (
        "ecosystem",
        "package",
        "version",
        "namespace",
        "function_name",
    )
    versions: ClassVar[tuple[str, ...]] = (
        "version",
        "version_introduced",
        "deprecated_in",
        "removed_in",
    )

    namespace: str = ""
    """`azure.storage.blob`; a top-level module has none."""
    function_name: str
    """`BlobServiceClient.create_container`"""
    ecosystem: Ecosystem = ""
    package: str = ""
    """The package as its ecosystem names it; that of the standard library is `python`."""
    version: str = ""
    """Of the package that this was read from; "" holds for every version."""
    language: str = ""
    signature: str = ""
    parameters: tuple[Mapping[str, Any], ...] = ()
    return_type: str = ""
    description: str = ""
    example_code: str = ""
    common_patterns: tuple[str, ...] = ()
    gotchas: tuple[str, ...] = ()
    version_introduced: str = ""
    deprecated_in: str | None = None
    removed_in: str | None = None
    deprecation: str = ""
    """The sentence that says it is deprecated or removed."""
    source_doc_id: str = ""

    @property
    def name(self) -> str:
        return f"{self.namespace}.{self.function_name}" if self.namespace else self.function_name


@dataclass(frozen=True, slots=True, kw_only=True)
class BestPractice(Node):
    identity: ClassVar[tuple[str, ...]] = ("domain", "title")
    versions: ClassVar[tuple[str, ...]] = ("min_version", "deprecated_in")

    title: str
    domain: str
    """`authentication`, `async`, `security`"""
    description: str = ""
    when_to_use: str = ""
    when_not_to_use: str = ""
    example_code: str = ""
    anti_patterns: tuple[str, ...] = ()
    related_apis: tuple[str, ...] = ()
    confidence_score: float = 0.0
    """0 to 1, from the credibility of its sources."""
    source_count: int = 0
    last_validated: datetime | None = None
    language: str = ""
    ecosystem: Ecosystem = ""
    """Whose versions the following two are: of the framework it applies to."""
    min_version: str = ""
    deprecated_in: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeExample(Node):
    identity: ClassVar[tuple[str, ...]] = ("source_url", "content_hash", "title")

    title: str
    language: str
    code: str
    content_hash: str
    """SHA-256 of the code, hexadecimal."""
    framework: str = ""
    explanation: str = ""
    use_case: str = ""
    difficulty: Literal["beginner", "intermediate", "advanced", ""] = ""
    execution_time_ms: int | None = None
    dependencies: tuple[str, ...] = ()
    works_with_version: str = ""
    upvotes: int | None = None
    source_url: str = ""
    source: str = ""
    """A name of `graph.sources`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Node):
    """Where knowledge is from. Trust is its own; pages cannot claim it."""

    identity: ClassVar[tuple[str, ...]] = ("key",)

    key: str
    """A name of `graph.sources`: `microsoft_learn`."""
    title: str
    """`Microsoft Learn`"""
    trust_score: float
    last_verified: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Language(Node):
    identity: ClassVar[tuple[str, ...]] = ("language", "version")
    versions: ClassVar[tuple[str, ...]] = ("version",)

    language: str
    """`Python`"""
    version: str = ""

    @property
    def name(self) -> str:
        return self.language


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework(Node):
    identity: ClassVar[tuple[str, ...]] = ("ecosystem", "package", "version")
    versions: ClassVar[tuple[str, ...]] = ("version",)

    package: str
    """`fastapi`, as its ecosystem names it."""
    ecosystem: Ecosystem = "pypi"
    version: str = ""
    released: datetime | None = None
    withdrawn: str = ""
    """`Yanked: …`, or `Deprecated: …`, as its registry says."""

    @property
    def name(self) -> str:
        return self.package


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile(Node):
    """A file of a project's own code."""

    identity: ClassVar[tuple[str, ...]] = ("in_project", "path")

    in_project: str
    path: str
    """Relative to the project's root, with `/`."""
    language: str = ""
    content_hash: str = ""

    @property
    def project(self) -> str:
        return self.in_project


@dataclass(frozen=True, slots=True, kw_only=True)
class Function(Node):
    """A function or method of a project's own code."""

    identity: ClassVar[tuple[str, ...]] = ("in_project", "path", "qualified_name")

    in_project: str
    path: str
    qualified_name: str
    """Within its file: `Client.send`."""
    signature: str = ""
    line_number: int | None = None
    end_line_number: int | None = None

    @property
    def project(self) -> str:
        return self.in_project


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPattern(Node):
    """A kind of failure: its exception and its message, without what differs each time."""

    identity: ClassVar[tuple[str, ...]] = ("language", "pattern")

    pattern: str
    language: str = ""
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Node):
    """What an agent decided, and can say what informed it."""

    identity: ClassVar[tuple[str, ...]] = ("in_project", "agent_id", "text")

    in_project: str
    agent_id: str
    text: str
    decided_at: datetime | None = None

    @property
    def project(self) -> str:
        return self.in_project


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeUsage(Node):
    """One use of a piece of knowledge by an agent, and what came of it."""

    identity: ClassVar[tuple[str, ...]] = ("in_project", "agent_id", "doc_id", "use")

    in_project: str
    agent_id: str
    doc_id: str
    use: str
    """Names this use: a session, a task, or drawn."""
    outcome: Outcome
    timestamp: datetime
    task: str = ""

    @property
    def project(self) -> str:
        return self.in_project


KINDS: dict[str, type[Node]] = {
    kind.__name__: kind
    for kind in (
        ExternalDoc,
        APIReference,
        BestPractice,
        CodeExample,
        Source,
        Language,
        Framework,
        CodeFile,
        Function,
        ErrorPattern,
        Decision,
        KnowledgeUsage,
    )
}


def kind_named(name: str) -> type[Node]:
    """The class of a kind. Raises BadInput."""
    if name not in KINDS:
        raise BadInput(f"there is no kind {name!r} of node", hint=f"Kinds: {', '.join(KINDS)}.")
    return KINDS[name]


@cache
def _hints(name: str) -> dict[str, Any]:
    kind: Any = KINDS[name]
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _read(value: Any, type_: Any) -> Any:
    if isinstance(value, str) and "datetime" in str(type_):
        return datetime.fromisoformat(value)
    return tuple(value) if isinstance(value, list) else value
