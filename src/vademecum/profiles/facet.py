"""Facets: what a profile knows of each document beside its text, and where it is from."""

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from vademecum.errors import ProfileViolation

FacetType = Literal["keyword", "integer", "level", "boolean", "date"]
Value = str | int | bool

MAX_KEYWORD = 200
"""Characters of a keyword: longer ones are prose, and no index would hold them."""
MAX_INTEGER = 2**53
"""Beyond it JSON numbers are not exact everywhere."""
_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facet:
    """One declared facet. Its sources are asked in this order: front matter, path, classifier,
    default."""

    name: str
    type: FacetType
    values: tuple[str, ...] = ()
    """All that a keyword may be; for a level in their order, lowest first."""
    minimum: int | None = None
    maximum: int | None = None
    required: bool = False
    many: bool = False
    """Whether a document may have several."""
    default: Value | None = None
    front_matter: tuple[str, ...] = ()
    """Keys, the first that is there counts; `a.b` is b within a."""
    path: re.Pattern[str] | None = None
    """Its first group is the value."""
    aliases: Mapping[str, str]
    classifier: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Values, each with the pattern of texts that have it; the first found counts."""

    @property
    def numeric(self) -> bool:
        return self.type == "integer"

    def described(self) -> str:
        """The type, and what is allowed of it, for a person."""
        match self.type:
            case "level":
                return " < ".join(self.values)
            case "keyword":
                return " | ".join(self.values) or "any text"
            case "integer":
                low = "" if self.minimum is None else f" from {self.minimum}"
                high = "" if self.maximum is None else f" to {self.maximum}"
                return f"integer{low}{high}"
            case "boolean":
                return "true | false"
            case "date":
                return "date YYYY-MM-DD"
            case _:
                assert_never(self.type)

    def value(self, raw: object) -> Value:
        """What a raw value stands for. Raises ValueError that says what is allowed."""
        value = self.parsed(raw)
        if isinstance(value, int) and not isinstance(value, bool):
            low = -MAX_INTEGER if self.minimum is None else self.minimum
            high = MAX_INTEGER if self.maximum is None else self.maximum
            if not low <= value <= high:
                raise ValueError(f"{self.name} must be {low} to {high}, not {value}")
        return value

    def parsed(self, raw: object) -> Value:
        """As `value`, but whatever its size. Raises ValueError."""
        text = " ".join(str(raw).split())
        text = self.aliases.get(text, text)
        match self.type:
            case "keyword" | "level":
                return self._keyword(text, raw)
            case "integer":
                if isinstance(raw, bool) or not re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
                    raise ValueError(f"{self.name} must be a whole number, not {text!r}")
                return int(text)
            case "boolean":
                if text.lower() not in _TRUTH:
                    raise ValueError(f"{self.name} must be true or false, not {text!r}")
                return _TRUTH[text.lower()]
            case "date":
                try:
                    return datetime.date.fromisoformat(text[:10]).isoformat()
                except ValueError:
                    raise ValueError(
                        f"{self.name} must be a date YYYY-MM-DD, not {text!r}"
                    ) from None
            case _:
                assert_never(self.type)

    def _keyword(self, text: str, raw: object) -> str:
        if isinstance(raw, list | dict):
            raise ValueError(f"{self.name} must be one value, not {raw!r}")
        if self.values:
            known = {value.casefold(): value for value in self.values}
            if text.casefold() not in known:
                raise ValueError(
                    f"{self.name} must be one of {', '.join(self.values)}, not {text!r}"
                )
            return known[text.casefold()]
        if len(text) > MAX_KEYWORD:
            raise ValueError(f"{self.name} must not be longer than {MAX_KEYWORD} characters")
        return text

    def of(
        self, path: str, metadata: Mapping[str, object], text: str
    ) -> Value | list[Value] | None:
        """The facet of a document; None where no source knows it. Raises ValueError."""
        raw = self._raw(path, metadata, text)
        if raw is None:
            return self.default
        if self.many:
            found = [self.value(one) for one in (raw if isinstance(raw, list) else [raw])]
            return list(dict.fromkeys(found)) or self.default
        return self.value(raw)

    def _raw(self, path: str, metadata: Mapping[str, object], text: str) -> object:
        for key in self.front_matter:
            if (declared := _within(metadata, key)) not in (None, ""):
                return declared
        if self.path is not None and (match := self.path.search(path)):
            return match[1] if self.path.groups else match[0]
        return next((value for value, pattern in self.classifier if pattern.search(text)), None)

    def missing(self) -> str:
        """Why a required facet is not there, and where it could be."""
        sought = [f"no `{key}` in the front matter" for key in self.front_matter]
        if self.path is not None:
            sought.append(f"the path does not match {self.path.pattern!r}")
        if self.classifier:
            sought.append("the classifier does not know the text")
        return f"{self.name} is missing ({self.described()}): {', '.join(sought)}"


def facets_of(
    facets: Sequence[Facet],
    *,
    profile: str,
    path: str,
    metadata: Mapping[str, object],
    text: str,
) -> dict[str, Value | list[Value]]:
    """All facets of a document, those that it has. Raises ProfileViolation with every reason."""
    found: dict[str, Value | list[Value]] = {}
    reasons = []
    for facet in facets:
        try:
            value = facet.of(path, metadata, text)
        except ValueError as error:
            reasons.append(str(error))
            continue
        if value is not None:
            found[facet.name] = value
        elif facet.required:
            reasons.append(facet.missing())
    if reasons:
        if "front_matter_error" in metadata:
            reasons.append(f"the front matter is broken: {metadata['front_matter_error']}")
        raise ProfileViolation(profile, reasons)
    return found


def _within(metadata: Mapping[str, object], key: str) -> object:
    """The value of a dotted key; one that is there as it stands goes first."""
    if key in metadata:
        return metadata[key]
    value: object = metadata
    for part in key.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value
