"""What expressions of Python source say, as far as it stands there."""

import ast
import re
from collections.abc import Mapping, Sequence

from vademecum.graph import deprecation
from vademecum.graph.api import Deprecation, Evidence

VERSION = re.compile(r"^v?\d+(\.\d+)*(\.?(a|b|rc|dev|post)\d*)?$")


def text_of(node: ast.expr | None, constants: Mapping[str, str]) -> str:
    """The text of an expression as far as it stands in the source; what is filled in, as {name}."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(text_of(value, constants) for value in values)
        case ast.FormattedValue(value=value):
            return text_of(value, constants) or f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left, constants) + text_of(right, constants)
        case ast.BinOp(left=left, op=ast.Mod()):
            return text_of(left, constants)
        case ast.Call(func=ast.Attribute(value=value, attr="format" | "strip")):
            return text_of(value, constants)
        case ast.Call(func=ast.Name(id="_" | "gettext" | "dedent"), args=[only]):
            return text_of(only, constants)
        case ast.Name(id=name):
            return constants.get(name, "")
    return ""


def version_of(node: ast.expr) -> str:
    """A version that is written as a number or a tuple."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return "" if isinstance(node.value, bool) else str(node.value)
    return tuple_version(node) or ""


def tuple_version(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Tuple) and node.elts:
        parts = [one.value for one in node.elts if isinstance(one, ast.Constant)]
        return ".".join(str(part) for part in parts)
    return None


def dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}"
        case ast.Call(func=func):
            return dotted(func)
    return ""


def bound(body: Sequence[ast.stmt], known: Mapping[str, str]) -> dict[str, str]:
    """The names that a body binds to text."""
    found: dict[str, str] = {}
    for statement in body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Name) and isinstance(statement, ast.Assign):
            text = text_of(statement.value, {**known, **found})
            if text:
                found[target.id] = text
    return found


def deprecation_in(text: str, evidence: Evidence, line: int) -> Deprecation:
    """What a text that says so tells of a deprecation."""
    return Deprecation(
        since=deprecation.since_in(text),
        until=deprecation.until_in(text),
        replacement=deprecation.replacement_in(text),
        sentence=deprecation.sentence(text),
        evidence=evidence,
        line=line,
    )
