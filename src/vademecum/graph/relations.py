"""The kinds of relations: what they lead from and to, and what they may say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid5

from vademecum.errors import BadInput
from vademecum.graph.nodes import (
    NAMESPACE,
    APIReference,
    BestPractice,
    CodeExample,
    CodeFile,
    Decision,
    ErrorPattern,
    ExternalDoc,
    Framework,
    Function,
    KnowledgeUsage,
    Language,
    Node,
    Source,
)
from vademecum.graph.versions import order
from vademecum.types import RelationId

Ends = tuple[tuple[type[Node], ...], tuple[type[Node], ...]]
KNOWLEDGE = (ExternalDoc, APIReference, BestPractice, CodeExample)
CODE = (CodeFile, Function)
LINE = ("line_number", "context", "confidence", "evidence")

RELATIONS: dict[str, tuple[Ends, tuple[str, ...]]] = {
    # Knowledge and code.
    "EXPLAINS": (((ExternalDoc,), CODE), LINE),
    "USED_IN": (((APIReference,), CODE), LINE),
    "APPLIED_IN": (((BestPractice,), CODE), LINE),
    "SIMILAR_TO": (((CodeExample,), CODE), LINE),
    "DEFINED_IN": (((Function,), (CodeFile,)), ()),
    # Knowledge among itself.
    "DOCUMENTED_IN": (
        ((APIReference, BestPractice, CodeExample), (ExternalDoc,)),
        ("section", "evidence"),
    ),
    "REFERENCES": (((BestPractice,), (APIReference,)), ()),
    "DEMONSTRATES": (((CodeExample,), (APIReference,)), ()),
    "IMPLEMENTS": (((CodeExample,), (BestPractice,)), ()),
    "RELATED_TO": (((ExternalDoc,), (ExternalDoc,)), ()),
    "ALTERNATIVE_TO": (((APIReference,), (APIReference,)), ()),
    "CONFLICTS_WITH": (((BestPractice,), (BestPractice,)), ("evidence",)),
    # Versions.
    "VERSION_OF": (((APIReference,), (APIReference,)), ()),
    "SUPERSEDES": (((ExternalDoc,), (ExternalDoc,)), ()),
    "COMPATIBLE_WITH": (((APIReference,), (Language,)), ("version",)),
    "APPLIES_TO": (((BestPractice,), (Framework,)), ()),
    "DEPRECATED_IN": (((BestPractice,), (Framework,)), ("version", "evidence")),
    "REPLACED_BY": (((APIReference,), (APIReference,)), ("in_version", "evidence")),
    # Where it is from, what it was good for.
    "SOURCED_FROM": ((KNOWLEDGE, (Source,)), ("answer_accepted", "upvotes")),
    "USED": (((KnowledgeUsage,), KNOWLEDGE), ()),
    "INFORMED_DECISION": ((KNOWLEDGE, (Decision,)), ("agent_id", "confidence")),
    # Failures.
    "SOLVES": ((KNOWLEDGE, (ErrorPattern,)), ("confidence", "evidence")),
    "OCCURS_IN": (((ErrorPattern,), CODE), LINE),
}
"""Kind to its ends and the properties it may have."""

_VERSIONS = ("version", "in_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """`start` -kind-> `end`, as one source states it. Raises BadInput where it cannot be so.

    `key` tells relations of one kind between the same two nodes apart: a line number, say.
    `rests_on` is the knowledge that it was stated because of; when that changes, it is stale.
    """

    kind: str
    start: Node
    end: Node
    key: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    rests_on: Node | None = None

    def __post_init__(self) -> None:
        if self.kind not in RELATIONS:
            raise BadInput(
                f"there is no relation {self.kind!r}", hint=f"Relations: {', '.join(RELATIONS)}."
            )
        (starts, ends), allowed = RELATIONS[self.kind]
        if not isinstance(self.start, starts) or not isinstance(self.end, ends):
            wanted = ["|".join(kind.__name__ for kind in kinds) for kinds in (starts, ends)]
            raise BadInput(
                f"{self.kind} leads from {wanted[0]} to {wanted[1]},"
                f" not from {self.start.kind} to {self.end.kind}"
            )
        if unknown := set(self.properties) - set(allowed):
            raise BadInput(f"{self.kind} has no property {', '.join(sorted(unknown))}")

    def id(self, statement: tuple[str, str, str]) -> RelationId:
        """What it is in the statement (project, source, key) that makes it."""
        parts = (self.kind, str(self.start.id), str(self.end.id), self.key, *statement)
        return RelationId(uuid5(NAMESPACE, "\0".join(parts)))

    def stored(self) -> dict[str, Any]:
        """The properties that are stored, versions with the text they sort by."""
        found = {name: value for name, value in self.properties.items() if value is not None}
        for name in _VERSIONS:
            ecosystem = self.end.ordered_by or self.start.ordered_by
            if (key := order(str(found.get(name, "")), ecosystem)) is not None:
                found[f"{name}_order"] = key
        if self.rests_on is not None:
            found["rests_on"] = str(self.rests_on.id)
            found["rests_on_hash"] = self.rests_on.digest
        return found


def compatible(apis: Iterable[Node], language: Language) -> list[Relation]:
    """That APIs are there in a version of a language."""
    return [
        Relation(
            kind="COMPATIBLE_WITH",
            start=api,
            end=language,
            properties={"version": language.version},
        )
        for api in apis
    ]
