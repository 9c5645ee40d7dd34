"""Deprecations by warnings in code: of the thing itself, or of a parameter that is asked about."""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from vademecum.graph import deprecation
from vademecum.graph.api import Deprecation
from vademecum.graph.notices.texts import (
    VERSION,
    bound,
    deprecation_in,
    dotted,
    text_of,
    tuple_version,
)

_DEPRECATES = re.compile(r"deprecat", re.IGNORECASE)
_WARNS = re.compile(r"warn|^deprecat(ed|e|ion)$")
_ENDS = re.compile(r"deprecat|remov|no longer|will (?:change|raise|be)", re.IGNORECASE)


def of_warnings(
    body: Sequence[ast.stmt],
    constants: Mapping[str, str],
    parameters: set[str],
    *,
    takes_any: bool = False,
    test: ast.expr | None = None,
    renamed: dict[str, str] | None = None,
) -> list[Deprecation]:
    """The warnings of a body; those under a condition are of the parameter that it asks about."""
    found: list[Deprecation] = []
    constants = {**constants, **bound(body, constants)}
    renamed = renamed if renamed is not None else {}
    for statement in body:
        nested: list[tuple[Sequence[ast.stmt], ast.expr | None]] = []
        match statement:
            case ast.Expr(value=ast.Call() as call):
                if said := _warned(call, constants):
                    one = _under(said, test, {*parameters, *renamed}, takes_any)
                    found.append(replace(one, subject=renamed.get(one.subject, one.subject)))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if given := _taken(value):
                renamed[name] = given
            case ast.If():
                nested = [(statement.body, statement.test), (statement.orelse, statement.test)]
            case ast.Try():
                nested = [
                    (statement.body, test),
                    *((h.body, ast.Constant(None)) for h in statement.handlers),
                ]
            case ast.With() | ast.AsyncWith():
                nested = [(statement.body, test)]
            case ast.For() | ast.While() | ast.AsyncFor():
                nested = [(statement.body, ast.Constant(None))]
            case ast.Return() if test is None:
                break
        for inside, condition in nested:
            found += of_warnings(
                inside,
                constants,
                parameters,
                takes_any=takes_any,
                test=condition,
                renamed=renamed,
            )
    return found


def _taken(value: ast.expr) -> str:
    """The keyword that `kwargs.pop("x", …)` or `kwargs.get("x")` takes."""
    match value:
        case ast.Call(
            func=ast.Attribute(attr="pop" | "get"), args=[ast.Constant(value=str(name)), *_]
        ) if name.isidentifier():
            return name
    return ""


def _under(
    said: Deprecation, test: ast.expr | None, parameters: set[str], takes_any: bool
) -> Deprecation:
    if test is None:
        return said
    subject = _asked_about(test, parameters, takes_any)
    return replace(said, subject=subject, conditional=not subject)


def _asked_about(test: ast.expr, parameters: set[str], takes_any: bool) -> str:
    """The parameter whose being given the condition asks for."""
    match test:
        case ast.Name(id=name) if name in parameters:
            return name
        case ast.Compare(left=ast.Name(id=name), ops=[ast.IsNot() | ast.NotEq()]) if (
            name in parameters
        ):
            return name
        case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In()]) if takes_any:
            return name
        case ast.BoolOp(op=ast.And(), values=values):
            return next((n for v in values if (n := _asked_about(v, parameters, takes_any))), "")
    return ""


def _warned(call: ast.Call, constants: Mapping[str, str]) -> Deprecation | None:
    """The deprecation that a call warns of, if it does."""
    name = dotted(call.func)
    last = name.rpartition(".")[2]
    words = {k.arg: k.value for k in call.keywords if k.arg}
    if name == "warnings._deprecated":
        return _slated(call, words, constants)
    if last in ("warn", "warn_explicit", "warn_external", "_warn"):
        return _of_category(call, words, constants)
    if _DEPRECATES.search(last) and _WARNS.search(last) and call.args:
        return _of_own_function(call, words, constants)
    return None


def _slated(
    call: ast.Call, words: Mapping[str, ast.expr], constants: Mapping[str, str]
) -> Deprecation:
    """What the standard library's own function says, whose text is made when it is called."""
    thing, until = text_of(call.args[0], constants), tuple_version(words.get("remove"))
    return Deprecation(
        until=until,
        sentence=deprecation.sentence(
            f"{thing!r} is deprecated and slated for removal in Python {until}"
        ),
        evidence="warning",
        line=call.lineno,
    )


def _of_category(
    call: ast.Call, words: Mapping[str, ast.expr], constants: Mapping[str, str]
) -> Deprecation | None:
    """`warn(message, category)`, where the category says that it is about a deprecation."""
    given = [words[k] for k in ("category",) if k in words] + call.args[1:]
    message = call.args[0] if call.args else words.get("message")
    if isinstance(message, ast.Call):  # warn(SomeDeprecation("why"))
        given.append(message.func)
        message = message.args[0] if message.args else None
    said = [deprecation.category_says(dotted(one)) for one in given]
    kind = next((one for one in said if one[0]), None)
    if kind is None or message is None:
        return None
    text = text_of(message, constants) or ast.unparse(message)
    if dotted(given[0]).endswith("FutureWarning") and not _ENDS.search(text):
        return None
    one = deprecation_in(text, "warning", call.lineno)
    return replace(one, since=one.since or kind[1], until=one.until or kind[2])


def _of_own_function(
    call: ast.Call, words: Mapping[str, ast.expr], constants: Mapping[str, str]
) -> Deprecation | None:
    """`warn_deprecated(…)`, `deprecate(…)`: what a library made itself to warn with."""
    texts = [text_of(one, constants) for one in (*call.args, *words.values())]
    message = max((text for text in texts if " " in text), key=len, default="")
    if not message and dotted(call.func).rpartition(".")[2] == "deprecate":
        message = ast.unparse(call)  # deprecate("old", 10, "new")
    if not message:
        return None
    one = deprecation_in(message, "warning", call.lineno)
    version = next((text for text in texts if VERSION.match(text)), None)
    return replace(one, since=one.since or version)
