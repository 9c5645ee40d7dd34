"""Where knowledge may be from, how far it is trusted, and how soon it is looked at again.

Adapters name the source of what they fetch; nothing that a page says about itself counts.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

Tier = Literal["official_docs", "tutorials", "community", "library_specific"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    title: str
    trust: float
    tier: Tier


SOURCES: dict[str, SourceKind] = {
    "microsoft_learn": SourceKind(title="Microsoft Learn", trust=0.95, tier="official_docs"),
    "python_docs": SourceKind(title="Python documentation", trust=0.95, tier="official_docs"),
    "mdn": SourceKind(title="MDN Web Docs", trust=0.95, tier="official_docs"),
    "real_python": SourceKind(title="Real Python", trust=0.85, tier="tutorials"),
    "official_tutorials": SourceKind(title="Official tutorials", trust=0.85, tier="tutorials"),
    "stackoverflow_accepted": SourceKind(title="Stack Overflow", trust=0.75, tier="community"),
    "github_maintainer": SourceKind(title="GitHub issues", trust=0.80, tier="community"),
    "reddit_highvote": SourceKind(title="Reddit", trust=0.60, tier="community"),
    "blog_unknown": SourceKind(title="A blog", trust=0.40, tier="tutorials"),
    "forum_post": SourceKind(title="A forum", trust=0.35, tier="community"),
    # What is read from the installed package itself, and what its authors publish.
    "environment": SourceKind(title="Installed package", trust=0.95, tier="library_specific"),
    "library_docs": SourceKind(title="Library documentation", trust=0.90, tier="official_docs"),
    "pypi": SourceKind(title="PyPI", trust=0.90, tier="library_specific"),
    "npm": SourceKind(title="npm", trust=0.90, tier="library_specific"),
}

UNKNOWN_TRUST = 0.5
REFRESH: dict[Tier, timedelta] = {
    "official_docs": timedelta(days=30),
    "tutorials": timedelta(days=90),
    "community": timedelta(days=7),
    "library_specific": timedelta(days=14),
}
UNKNOWN_REFRESH = timedelta(days=30)


def trust(source: str) -> float:
    """From 0 to 1."""
    known = SOURCES.get(source)
    return known.trust if known else UNKNOWN_TRUST


def refresh_after(source: str) -> timedelta:
    known = SOURCES.get(source)
    return REFRESH[known.tier] if known else UNKNOWN_REFRESH
