"""Rules of the cache, declared in `cache.toml` in the home folder.

private_projects = ["/home/me/secret"]

[defaults]
ttl = "1d"

[[rule]]
match = "docs.python.org/3/*"
ttl = "7d"
budget = 8000

[[rule]]
match = "*.example.com/account/*"
action = "pass"
"""

import re
import tomllib
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from vademecum.errors import BadSetting

Action = Literal["cache", "pass", "never-store"]

BUDGET = 6000
"""Tokens of a hit, where nothing else is said."""

VERBATIM_HOSTS = ("raw.githubusercontent.com", "gist.githubusercontent.com")
"""Hosts that answer plain text, which clients hand on as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What holds for the addresses that match; of several rules the first."""

    match: str = "*"
    action: Action = "cache"
    ttl: timedelta = timedelta(days=1)
    """How long a page is fresh whose server says nothing."""
    least_ttl: timedelta = timedelta(minutes=10)
    most_ttl: timedelta = timedelta(days=7)
    budget: int = BUDGET
    private_network: bool = False
    """Fetch it also where its host is in a private network."""
    verbatim: bool = False
    """What a client's fetch returns is the page itself and not a digest of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    defaults: Rule = field(default_factory=Rule)
    rules: tuple[Rule, ...] = ()
    private_projects: tuple[str, ...] = ()

    def of(self, url: str) -> Rule:
        """The rule of a normalised address."""
        parts = urlsplit(url)
        place = f"{parts.netloc}{parts.path}"
        for rule in self.rules:
            pattern = rule.match if "/" in rule.match else f"{rule.match}/*"
            if fnmatchcase(place, pattern):
                return rule
        if parts.hostname in VERBATIM_HOSTS:
            return replace(self.defaults, verbatim=True)
        return self.defaults

    def is_private(self, project: str | None) -> bool:
        return project is not None and any(
            fnmatchcase(project, pattern) for pattern in self.private_projects
        )


def load_rules(home: Path) -> Rules:
    """The rules of `cache.toml`; the defaults where there is none. Raises BadSetting."""
    path = home / "cache.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Rules()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSetting(f"{path} cannot be read: {error}") from error
    return parse_rules(text, name=str(path))


def parse_rules(text: str, *, name: str = "cache.toml") -> Rules:
    """Raises BadSetting that says what is wrong."""
    try:
        declared = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(f"{name}: {error}") from None
    if unknown := declared.keys() - {"defaults", "rule", "private_projects"}:
        raise BadSetting(f"{name}: unknown key {', '.join(sorted(unknown))}")
    private = declared.get("private_projects", [])
    rules = declared.get("rule", [])
    if not _texts(private) or not isinstance(rules, list):
        raise BadSetting(f"{name}: private_projects is a list of texts, and rules are [[rule]]")
    defaults = _rule(Rule(), declared.get("defaults", {}), name)
    return Rules(
        defaults=defaults,
        rules=tuple(_rule(defaults, rule, name) for rule in rules),
        private_projects=tuple(private),
    )


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _rule(base: Rule, declared: Any, name: str) -> Rule:
    if not isinstance(declared, dict):
        raise BadSetting(f"{name}: a rule is a table")
    values: dict[str, Any] = {}
    for key, value in declared.items():
        if key in ("ttl", "least_ttl", "most_ttl"):
            values[key] = duration(str(value), name=f"{name}: {key}")
        elif (key == "action" and value in get_args(Action)) or (
            (key == "match" and isinstance(value, str))
            or (key == "budget" and type(value) is int and value >= 200)
            or (key in ("private_network", "verbatim") and isinstance(value, bool))
        ):
            values[key] = value
        else:
            raise BadSetting(
                f"{name}: {key} = {value!r} is no rule",
                hint="Keys are match, action (cache, pass, never-store), ttl, least_ttl, most_ttl,"
                " budget (200 or more), private_network and verbatim (true or false).",
            )
    return replace(base, **values)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def duration(text: str, *, name: str = "the duration") -> timedelta:
    """`90s`, `30m`, `12h`, `7d`, `2w`. Raises BadSetting."""
    match = re.fullmatch(r"(\d{1,6})([smhdw])", text.strip())
    if match is None:
        raise BadSetting(f"{name} must be like 90s, 30m, 12h, 7d or 2w, not {text!r}")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])
