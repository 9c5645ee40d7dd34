"""A facet from its declaration in TOML."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import cast, get_args

from vademecum.profiles.facet import MAX_INTEGER, Facet, FacetType, Value
from vademecum.profiles.mistakes import Mistakes, Place

_KEYS = frozenset(
    {
        "type",
        "values",
        "minimum",
        "maximum",
        "required",
        "many",
        "default",
        "front_matter",
        "path",
        "aliases",
        "classifier",
    }
)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,49}")
TOPICS = "topics"
"""As a facet's `classifier`: the patterns of the profile's topics."""

Classifier = tuple[tuple[str, re.Pattern[str]], ...]


def declared_facets(declared: object, topics: Classifier, mistakes: Mistakes) -> tuple[Facet, ...]:
    """All facets; what is wrong with them goes to `mistakes`."""
    facets = []
    for name, one in mistakes.table(("facets",), declared).items():
        place: Place = ("facets", name)
        if not _NAME.fullmatch(name):
            mistakes.add(place, f"{name!r} cannot name a facet: use a-z, 0-9 and _, a letter first")
        elif facet := _facet(name, mistakes.table(place, one), topics, mistakes):
            facets.append(facet)
    return tuple(facets)


def _facet(
    name: str, declared: Mapping[str, object], topics: Classifier, mistakes: Mistakes
) -> Facet | None:
    place: Place = ("facets", name)
    mistakes.unknown(place, declared, _KEYS)
    type_ = declared.get("type")
    if type_ not in get_args(FacetType):
        mistakes.add(
            (*place, "type"), f"{name} needs a type, one of {', '.join(get_args(FacetType))}"
        )
        return None
    values = _texts(declared, place, "values", mistakes)
    if type_ == "level" and len(values) < 2:
        mistakes.add((*place, "values"), f"level {name} needs its values, lowest first")
    if values and type_ not in ("level", "keyword"):
        mistakes.add((*place, "values"), f"only a keyword and a level have values, no {type_}")
    if len({value.casefold() for value in values}) < len(values):
        mistakes.add((*place, "values"), f"values of {name} repeat")
    facet = Facet(
        name=name,
        type=cast(FacetType, type_),
        values=values,
        minimum=_bound(declared, place, "minimum", mistakes),
        maximum=_bound(declared, place, "maximum", mistakes),
        required=_flag(declared, place, "required", mistakes),
        many=_flag(declared, place, "many", mistakes),
        front_matter=_texts(declared, place, "front_matter", mistakes),
        path=mistakes.pattern((*place, "path"), declared["path"]) if "path" in declared else None,
        aliases={
            key: str(value)
            for key, value in mistakes.table(
                (*place, "aliases"), declared.get("aliases", {})
            ).items()
        },
        classifier=_classifier(declared.get("classifier", {}), place, topics, mistakes),
    )
    if facet.minimum is not None and facet.maximum is not None and facet.minimum > facet.maximum:
        mistakes.add((*place, "minimum"), f"minimum {facet.minimum} is above the maximum")
    _check_values(facet, place, mistakes)
    if not declared.keys() & {"front_matter", "path", "classifier", "default"}:
        mistakes.add(
            place, f"{name} needs a source: front_matter, path or classifier, or a default"
        )
    return _with_default(facet, declared, place, mistakes)


def _check_values(facet: Facet, place: Place, mistakes: Mistakes) -> None:
    """Aliases and classes must be values that the facet can have."""
    for key, value in facet.aliases.items():
        _value(facet, value, (*place, "aliases", key), mistakes)
    for value, _ in facet.classifier:
        _value(facet, value, (*place, "classifier", value), mistakes)


def _value(facet: Facet, raw: object, place: Place, mistakes: Mistakes) -> Value | None:
    try:
        return facet.value(raw)
    except ValueError as error:
        mistakes.add(place, str(error))
        return None


def _with_default(
    facet: Facet, declared: Mapping[str, object], place: Place, mistakes: Mistakes
) -> Facet:
    if "default" not in declared:
        return facet
    if facet.required:
        mistakes.add((*place, "default"), f"{facet.name} is required, so it needs no default")
    return replace(facet, default=_value(facet, declared["default"], (*place, "default"), mistakes))


def _texts(
    declared: Mapping[str, object], place: Place, key: str, mistakes: Mistakes
) -> tuple[str, ...]:
    value = declared.get(key, [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        mistakes.add((*place, key), f"{key} must be a text, or a list of texts")
        return ()
    return tuple(listed)


def _flag(declared: Mapping[str, object], place: Place, key: str, mistakes: Mistakes) -> bool:
    value = declared.get(key, False)
    if not isinstance(value, bool):
        mistakes.add((*place, key), f"{key} must be true or false")
    return value is True


def _bound(
    declared: Mapping[str, object], place: Place, key: str, mistakes: Mistakes
) -> int | None:
    value = declared.get(key)
    if value is None:
        return None
    if declared["type"] != "integer":
        mistakes.add((*place, key), f"only an integer has a {key}")
    elif not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_INTEGER:
        mistakes.add((*place, key), f"{key} must be a whole number")
    else:
        return value
    return None


def _classifier(
    declared: object, place: Place, topics: Classifier, mistakes: Mistakes
) -> Classifier:
    place = (*place, "classifier")
    if declared == TOPICS:
        if not topics:
            mistakes.add(place, "the profile has no [[topics]] to classify by")
        return topics
    patterns = [
        (value, mistakes.pattern((*place, value), pattern))
        for value, pattern in mistakes.table(place, declared).items()
    ]
    return tuple((value, pattern) for value, pattern in patterns if pattern is not None)
