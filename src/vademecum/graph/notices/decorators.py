"""Deprecations by decorators, whatever library they are of: their words say what they mean."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from vademecum.graph import deprecation
from vademecum.graph.api import Deprecation
from vademecum.graph.notices.texts import VERSION, deprecation_in, dotted, text_of, version_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_SAYS_SO = re.compile(
    r"deprecat|(?:rename|delete)_parameter|\bmoved_\d|became_legacy", re.IGNORECASE
)
_OF_PARAMETERS = re.compile(r"arg|param|keyword|positional", re.IGNORECASE)
_SINCE_WORDS = ("since", "version", "deprecated_in", "ver", "deprecated_version", "deprecated")
_UNTIL_WORDS = (
    "removed_in", "removal", "remove", "until", "remove_in", "removal_version", "remove_version",
    "removed", "removal_in", "remove_by",
)  # fmt: skip
_INSTEAD_WORDS = (
    "alternative", "replacement", "instead", "alternate", "new", "new_name", "new_arg_name",
    "use_instead", "alternative_import", "replace_with",
)  # fmt: skip
_OLD_WORDS = ("old_arg_name", "old_name", "old_arg", "old", "arg_name", "arg", "name")
_MESSAGE_WORDS = (
    "reason", "message", "msg", "details", "addendum", "text", "extra", "info", "obj_desc",
)  # fmt: skip


def of_decorators(
    node: FunctionNode | ast.ClassDef, constants: Mapping[str, str], parameters: set[str]
) -> Iterator[Deprecation]:
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = dotted(call.func if call else decorator)
        last = name.rpartition(".")[2]
        if not _SAYS_SO.search(name):
            continue
        if re.search(r"(?:make|setter|getter|is)_deprecated", last):
            continue
        if isinstance(node, ast.ClassDef):
            parameters = _init_parameters(node)
        yield from _from_decorator(decorator, call, last, constants, parameters)


def _from_decorator(
    decorator: ast.expr,
    call: ast.Call | None,
    last: str,
    constants: Mapping[str, str],
    parameters: set[str],
) -> Iterator[Deprecation]:
    positional = [text_of(a, constants) or version_of(a) for a in call.args] if call else []
    words = {k.arg: k.value for k in call.keywords if k.arg} if call else {}
    named = {key: text_of(value, constants) or version_of(value) for key, value in words.items()}
    of_parameters = bool(_OF_PARAMETERS.search(last))
    if of_parameters and (several := list(_each(words, constants, decorator.lineno))):
        yield from several
        return
    versions = [text for text in positional if VERSION.match(text)]
    texts = [text for text in positional if text and not VERSION.match(text)]
    subject = ""
    if of_parameters:
        old = [named[key] for key in _OLD_WORDS if named.get(key)]
        plain = [text for text in texts if text.isidentifier()]
        names = [*old, *(t for t in (*texts, *named.values()) if t in parameters), *plain[:1]]
        if not names:
            return
        subject = names[0]
        texts = [text for text in texts if text != subject]
    message = next((named[k] for k in _MESSAGE_WORDS if named.get(k)), "")
    message = message or next((text for text in texts if " " in text), "")
    said = message if message else f"@{ast.unparse(decorator)}"
    yield Deprecation(
        subject=subject,
        since=_named(named, _SINCE_WORDS)
        or next(iter(versions), None)
        or deprecation.since_in(message),
        until=_named(named, _UNTIL_WORDS) or deprecation.until_in(message),
        replacement=next((named[k] for k in _INSTEAD_WORDS if named.get(k)), None)
        or next((t for t in texts if " " not in t and re.match(r"^[\w.]+$", t)), None)
        or deprecation.replacement_in(message),
        sentence=deprecation.sentence(said),
        evidence="decorator",
        line=decorator.lineno,
    )


def _each(
    words: Mapping[str, ast.expr], constants: Mapping[str, str], line: int
) -> Iterator[Deprecation]:
    """The parameters that are named each with its own version: `name=("1.4", "why")`."""
    for name, value in words.items():
        if isinstance(value, ast.Tuple) and len(value.elts) >= 2:
            parts = [text_of(one, constants) for one in value.elts]
            said = next((part for part in reversed(parts) if part), name)
            yield replace(
                deprecation_in(said, "decorator", line),
                subject=name,
                since=parts[0] if VERSION.match(parts[0]) else None,
            )


def _named(named: Mapping[str, str], keys: Sequence[str]) -> str | None:
    return next((named[key] for key in keys if VERSION.match(named.get(key, ""))), None)


def _init_parameters(node: ast.ClassDef) -> set[str]:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return {a.arg for a in ast.walk(statement.args) if isinstance(a, ast.arg)}
    return set()
