"""How long a page is fresh, by what its server says, within bounds."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

HEURISTIC = 0.1
"""Of the time since the last change, where the server says nothing else: RFC 9111, 4.2.2."""


def lifetime(
    headers: Mapping[str, str],
    now: datetime,
    *,
    least: timedelta,
    most: timedelta,
    default: timedelta,
) -> timedelta:
    """From now on, by Cache-Control, Expires or the time since the last change."""
    control = headers.get("cache-control", "").lower()
    if re.search(r"\bno-cache\b|\bmust-understand\b", control):
        return least
    if match := re.search(r"\b(?:s-maxage|max-age)\s*=\s*\"?(\d{1,10})", control):
        age = headers.get("age", "0")
        said = timedelta(seconds=int(match[1]) - (int(age) if age.isdecimal() else 0))
    elif expires := _date(headers.get("expires")):
        said = expires - (_date(headers.get("date")) or now)
    elif changed := _date(headers.get("last-modified")):
        said = (now - changed) * HEURISTIC
    else:
        said = default
    return min(max(said, least), most)


def _date(value: str | None) -> datetime | None:
    if not value:
        return None
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return datetime(1970, 1, 1, tzinfo=UTC)  # "Expires: 0" means at once
    return date if date.tzinfo else date.replace(tzinfo=UTC)
