"""All that is held about a user, as text for people."""

from typing import Any


def as_text(held: dict[str, Any]) -> str:
    """What `MemoryCalls.export` answers: memories with their versions, then the interactions."""
    parts = [f"User {held['user']}"]
    for memory in held["memories"]:
        name = memory["project"] or "general"
        parts.append(f"# Memory: {name}, version {memory['version']}\n\n{memory['content']}")
        for one in memory["versions"]:
            parts.append(
                f"## Version {one['version']}, {one['created_at']}, {one['reason']}\n\n"
                f"{one['content']}"
            )
    parts.append("# Interactions\n")
    parts += [
        f"{entry['created_at']}  {entry['agent'] or '-'}  {entry['outcome']}  {entry['project']}"
        for entry in held["interactions"]
    ]
    return "\n\n".join(parts)
