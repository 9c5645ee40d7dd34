"""What a docstring of Python says of an API: its description and its examples."""

from textwrap import dedent

MAX_DESCRIPTION = 1000
"""Characters of a description; the rest is in the library's own documentation."""
MAX_EXAMPLES = 2
MAX_EXAMPLE = 1500


def description(text: str) -> str:
    """What it opens with, up to its first example, parameter or directive."""
    lines: list[str] = []
    for line in text.strip().splitlines():
        if not line.strip() and lines and len(" ".join(lines)) > 60:
            break
        if line.lstrip().startswith((".. ", ">>> ", ":param", "Args:", "Parameters")):
            break
        lines.append(line.strip())
    return " ".join(" ".join(lines).split())[:MAX_DESCRIPTION]


def examples(text: str) -> tuple[str, ...]:
    """Doctests and code blocks of a docstring."""
    found: list[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines) and len(found) < MAX_EXAMPLES:
        line = lines[at].strip()
        if line.startswith(">>> "):
            end = at
            while end < len(lines) and lines[end].strip():
                end += 1
            found.append("\n".join(one.strip() for one in lines[at:end]))
            at = end
        elif line.startswith("```"):
            end = next(
                (n for n in range(at + 1, len(lines)) if lines[n].strip().startswith("```")),
                len(lines),
            )
            found.append("\n".join(lines[at + 1 : end]))
            at = end
        elif line.startswith((".. code-block::", ".. code::", ".. sourcecode::")):
            indent = len(lines[at]) - len(lines[at].lstrip())
            end = at + 1
            while end < len(lines) and (
                not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent
            ):
                end += 1
            body = [one for one in lines[at + 1 : end] if not one.strip().startswith(":")]
            found.append(dedent("\n".join(body)).strip("\n"))
            at = end - 1
        at += 1
    return tuple(one[:MAX_EXAMPLE] for one in found if one.strip())
