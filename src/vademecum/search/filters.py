"""Filters: `tier<=2`, `level=A2,B1`, `chapter=1,3..5`, `module=*`, to conditions on facets.

The grammar is the same on every surface; docs/profiles.md explains it.
"""

import datetime
import re
from collections.abc import Mapping, Sequence

from vademecum.errors import BadFilter
from vademecum.profiles.facet import Facet
from vademecum.profiles.profile import Profile
from vademecum.types import Condition

_FILTER = re.compile(r"\s*([A-Za-z_]\w*)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_VALUE = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*?))\s*(?:,|$)', re.DOTALL)
MAX_FILTERS = 50

Bound = str | int | None


def parse_filters(filters: Sequence[str], profile: Profile) -> list[Condition]:
    """What each filter asks for; all must hold. Raises BadFilter."""
    if len(filters) > MAX_FILTERS:
        raise BadFilter(filters[MAX_FILTERS], f"there are more than {MAX_FILTERS}")
    return [_condition(text, profile) for text in filters]


def met(condition: Condition, facets: Mapping[str, object]) -> bool:
    """Whether a document with these facets passes."""
    values = facets.get(condition.facet, [])
    listed = values if isinstance(values, list) else [values]
    passed = any(_accepted(condition, _stored(value)) for value in listed)
    return passed != condition.negated


def _accepted(condition: Condition, value: str | int) -> bool:
    if not condition.values and not condition.ranges:
        return True
    return value in condition.values or any(
        (low is None or value >= low) and (high is None or value <= high)  # type: ignore[operator]
        for low, high in condition.ranges
    )


def _condition(text: str, profile: Profile) -> Condition:
    match = _FILTER.fullmatch(text)
    if match is None:
        raise BadFilter(
            text,
            "it is not FACET=VALUE",
            hint="Write FACET=A,B (any of), FACET=1..5, FACET<=2 or FACET=* (has one).",
        )
    name, sign, rest = match.groups()
    facet = next((facet for facet in profile.facets if facet.name == name), None)
    if facet is None:
        raise BadFilter(text, f"profile {profile.name} has no facet {name!r}", hint=_known(profile))
    if not rest:
        raise BadFilter(text, f"it lacks a value; {facet.name} is {facet.described()}")
    try:
        if sign in ("=", "!="):
            return _any_of(facet, rest, negated=sign == "!=")
        return _compared(facet, sign, rest)
    except ValueError as error:
        raise BadFilter(text, str(error), hint=f"{facet.name}: {facet.described()}.") from None


def _any_of(facet: Facet, rest: str, *, negated: bool) -> Condition:
    values: list[str | int] = []
    ranges: list[tuple[Bound, Bound]] = []
    if rest != "*":
        for text, quoted in _split(rest):
            low, dots, high = text.partition("..")
            if dots and not quoted and facet.type not in ("keyword", "boolean"):
                within = _range(facet, low.strip(), high.strip())
                values += within[0]
                ranges += within[1]
            else:
                values.append(_stored(facet.value(text)))
    return Condition(
        facet=facet.name,
        values=tuple(values),
        ranges=tuple(ranges),
        numeric=facet.numeric,
        negated=negated,
    )


def _compared(facet: Facet, sign: str, rest: str) -> Condition:
    if facet.type in ("keyword", "boolean"):
        raise ValueError(f"{facet.name} has no order, so there is no {sign}")
    [(text, _), *more] = _split(rest)
    if more:
        raise ValueError(f"{sign} takes one value")
    bounds = (text, "") if sign[0] == ">" else ("", text)
    values, ranges = _range(facet, *bounds, within=len(sign) == 1)
    if facet.type == "level" and not values:
        raise ValueError(f"no {facet.name} is {sign} {text}")
    return Condition(
        facet=facet.name, values=tuple(values), ranges=tuple(ranges), numeric=facet.numeric
    )


def _range(
    facet: Facet, low: str, high: str, *, within: bool = False
) -> tuple[list[str | int], list[tuple[Bound, Bound]]]:
    """Levels as values, others as inclusive bounds; `within` leaves the bounds themselves out."""
    if not low and not high:
        raise ValueError("a range needs a bound")
    least, most = (facet.parsed(text) if text else None for text in (low, high))
    if facet.type == "level":
        first = facet.values.index(str(least)) + within if least is not None else 0
        last = facet.values.index(str(most)) - within if most is not None else len(facet.values) - 1
        if first > last and not within:
            raise ValueError(f"the range {low}..{high} is empty")
        return list(facet.values[first : last + 1]), []
    bounds = (_moved(least, within), _moved(most, -within))
    if least is not None and most is not None and least > most:  # type: ignore[operator]
        raise ValueError(f"the range {low}..{high} is empty")
    return [], [bounds]


def _moved(bound: object, by: int) -> Bound:
    """A bound so many steps further: an integer, or days."""
    if bound is None:
        return None
    if isinstance(bound, int):
        return bound + by
    day = datetime.date.fromisoformat(str(bound))
    if (by > 0 and day == datetime.date.max) or (by < 0 and day == datetime.date.min):
        raise ValueError(f"no date is beyond {bound}")
    return (day + datetime.timedelta(days=by)).isoformat()


def _split(rest: str) -> list[tuple[str, bool]]:
    """The values between commas, and whether each stood in quotes."""
    values: list[tuple[str, bool]] = []
    place = 0
    while place < len(rest) or rest[place - 1] == ",":
        match = _VALUE.match(rest, place)
        if match is None:
            raise ValueError("a value in quotes must end with a quote, and a comma follow it")
        quoted = match[1] is not None
        text = re.sub(r"\\(.)", r"\1", match[1]) if quoted else match[2]
        if not text:
            raise ValueError("there is an empty value")
        values.append((text, quoted))
        place = match.end()
        if place == len(rest) and rest[place - 1] != ",":
            break
    return values


def _stored(value: object) -> str | int:
    """A value in the form that it is compared in."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, int) else str(value)


def _known(profile: Profile) -> str:
    if not profile.facets:
        return "It declares none: index with a profile that does; see `vade profile list`."
    return "Facets: " + "; ".join(f"{f.name} ({f.described()})" for f in profile.facets) + "."
