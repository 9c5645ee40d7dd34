"""Deprecation notices in Python source: decorators, directives of docstrings, and warnings."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import cleandoc

from vademecum.graph import deprecation
from vademecum.graph.api import Deprecation, Evidence

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_VERSION_LIKE = re.compile(r"^v?\d+(\.\d+)*(\.?(a|b|rc|dev|post)\d*)?$")
_DIRECTIVE = re.compile(
    r"^(?P<indent>[ \t]*)\.\. (?P<name>deprecated|deprecated-removed|versionremoved|versionadded)::"
    r"[ \t]*(?P<rest>.*)$",
    re.MULTILINE,
)
_OWNER = re.compile(
    r"^\s*(?::param(?:eter)?\s+(?:[\w.\[\], |]+\s+)?(\w+)\s*:|\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:)"
)
_HEADING = re.compile(r"^\S.*\n([=~^#*\"'+`-])\1{2,}[ \t]*$", re.MULTILINE)
_OPENS_DEPRECATED = re.compile(r"^\W{0,3}deprecated\b", re.IGNORECASE)
_WARNING_CALL = re.compile(r"deprecat", re.IGNORECASE)
_SAYS_SO = re.compile(
    r"deprecat|(?:rename|delete)_parameter|\bmoved_\d|became_legacy", re.IGNORECASE
)
_ENDS = re.compile(r"deprecat|remov|no longer|will (?:change|raise|be)", re.IGNORECASE)
_OF_PARAMETERS = re.compile(r"arg|param|keyword|positional", re.IGNORECASE)
_SINCE_WORDS = ("since", "version", "deprecated_in", "ver", "deprecated_version", "deprecated")
_UNTIL_WORDS = (
    "removed_in",
    "removal",
    "remove",
    "until",
    "remove_in",
    "removal_version",
    "remove_version",
    "removed",
    "removal_in",
    "remove_by",
)
_INSTEAD_WORDS = (
    "alternative",
    "replacement",
    "instead",
    "alternate",
    "new",
    "new_name",
    "new_arg_name",
    "use_instead",
    "alternative_import",
    "replace_with",
)
_OLD_WORDS = ("old_arg_name", "old_name", "old_arg", "old", "arg_name", "arg", "name")
_MESSAGE_WORDS = (
    "reason",
    "message",
    "msg",
    "details",
    "addendum",
    "text",
    "extra",
    "info",
    "obj_desc",
)


def of_function(node: FunctionNode, constants: Mapping[str, str]) -> list[Deprecation]:
    """All that a function's decorators, docstring and warnings say against it."""
    if node.name == "__getattr__":
        return []  # It speaks of the names it gives, see `of_getattr`.
    parameters = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    found = [*_of_decorators(node, constants, parameters)]
    found += of_docstring(ast.get_docstring(node, clean=False) or "", node.lineno, parameters)
    found += _of_warnings(node.body, constants, parameters, takes_any=node.args.kwarg is not None)
    return _without_repetition(found)


def of_class(node: ast.ClassDef, constants: Mapping[str, str]) -> list[Deprecation]:
    """What is said against a class; a warning that each instance gives is one against it."""
    found = [*_of_decorators(node, constants, set())]
    found += of_docstring(ast.get_docstring(node, clean=False) or "", node.lineno, set())
    for name in ("__init__", "__new__"):
        # What is said of `__init__` itself is said of making instances; of overloads only where
        # all of them say so, since a call does not show which is meant.
        made = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == name]
        overloads = [one for one in made if _is_overload(one)]
        said = [of_function(one, constants) for one in made if one not in overloads]
        told = [of_function(one, constants) for one in overloads]
        if all(told):
            said += told
        found += [one for each in said for one in each if not one.conditional]
    return _without_repetition(found)


def _is_overload(node: ast.FunctionDef) -> bool:
    return any(_dotted(one).rpartition(".")[2] == "overload" for one in node.decorator_list)


def of_module(node: ast.Module, constants: Mapping[str, str]) -> list[Deprecation]:
    """What a module says against itself when it is imported, or in its docstring."""
    opening = _before_topics(cleandoc(ast.get_docstring(node, clean=False) or ""))
    found = of_docstring(opening, 1, set())
    found += [one for one in _of_warnings(node.body, constants, set()) if not one.conditional]
    return _without_repetition(found)


def _before_topics(text: str) -> str:
    """A module's docstring up to the first heading that text stands before: what follows is about
    a topic, often one of the module's names, and not about the module."""
    end = 0
    for heading in _HEADING.finditer(text):
        if re.search(r"\w", text[end : heading.start()]):
            return text[: heading.start()]
        end = heading.end()
    return text


def of_getattr(node: ast.Module, constants: Mapping[str, str]) -> dict[str, Deprecation]:
    """The names that a module's `__getattr__` gives with a warning."""
    found: dict[str, Deprecation] = {}
    for function in node.body:
        if not (isinstance(function, ast.FunctionDef) and function.name == "__getattr__"):
            continue
        for branch in (b for b in ast.walk(function) if isinstance(b, ast.If)):
            said = _of_warnings(branch.body, constants, set())
            for name in _compared_names(branch.test) if said else ():
                found.setdefault(name, replace(said[0], conditional=False, subject=""))
    return found


def constants_of(node: ast.Module) -> dict[str, str]:
    """Module-level names that are bound to text."""
    return _bound(node.body, {})


def _bound(body: Sequence[ast.stmt], known: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement in body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(target, ast.Name) and isinstance(statement, ast.Assign):
            text = _text(statement.value, {**known, **found})
            if text:
                found[target.id] = text
    return found


def of_docstring(text: str, line: int, parameters: set[str]) -> list[Deprecation]:
    """The directives of a docstring, and a docstring that begins with "Deprecated"."""
    text = cleandoc(text)
    found = []
    for match in _DIRECTIVE.finditer(text):
        name = match["name"]
        if name == "versionadded":
            continue
        block = _block(text, match)
        version, _, rest = block.partition(" ")
        version = version.rstrip(":.")
        until = None
        if not _VERSION_LIKE.match(version):
            version, rest = deprecation.since_in(block) or "", block
        if name == "deprecated-removed":
            until, _, rest = rest.partition(" ")
        if name == "versionremoved":
            until, version = version, ""
        subject = _directive_subject(text, match, parameters)
        if subject is None:
            subject = _parameter(rest, parameters)
        found.append(
            Deprecation(
                subject=subject,
                since=version or None,
                until=until or deprecation.until_in(rest),
                replacement=deprecation.replacement_in(rest),
                sentence=deprecation.sentence(f".. {name}:: {block}"),
                evidence="directive",
                line=line,
                conditional=subject == "" and bool(match["indent"]),
            )
        )
    if not found and _OPENS_DEPRECATED.match(text):
        opening = text.partition("\n\n")[0]
        found.append(_from_text(opening, "docstring", line))
    return found


def version_added(text: str) -> str | None:
    """The version of a docstring's `versionadded`, where it stands for the whole."""
    for match in _DIRECTIVE.finditer(cleandoc(text)):
        if match["name"] == "versionadded" and not match["indent"]:
            version = match["rest"].split(" ")[0].rstrip(":.")
            return version if _VERSION_LIKE.match(version) else None
    return None


def _block(text: str, match: re.Match[str]) -> str:
    """The directive's text: the rest of its line and the lines indented below it."""
    lines = [match["rest"]]
    for line in text[match.end() :].splitlines()[1:]:
        if line.strip() and len(line) - len(line.lstrip()) <= len(match["indent"]):
            break
        if not line.strip() and len(" ".join(lines).split()) > 1:
            break
        lines.append(line)
    return " ".join(" ".join(lines).split())


def _directive_subject(text: str, match: re.Match[str], parameters: set[str]) -> str | None:
    """The parameter under whose description the directive stands; None at the margin."""
    depth = len(match["indent"])
    if not depth:
        return None
    for line in reversed(text[: match.start()].splitlines()):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent < depth:
            owner = _OWNER.match(line)
            name = (owner[1] or owner[2]) if owner else line.split()[0].rstrip(":,")
            return name if name in parameters else ""
    return ""


def _of_decorators(
    node: FunctionNode | ast.ClassDef, constants: Mapping[str, str], parameters: set[str]
) -> Iterator[Deprecation]:
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        name = _dotted(call.func if call else decorator)
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
    positional = [_text(a, constants) or _version_text(a) for a in call.args] if call else []
    words = {k.arg: k.value for k in call.keywords if k.arg} if call else {}
    named = {key: _text(value, constants) or _version_text(value) for key, value in words.items()}
    of_parameters = bool(_OF_PARAMETERS.search(last))
    several = False
    for key, value in words.items():  # deprecated_params(name=("1.4", "why"))
        if of_parameters and isinstance(value, ast.Tuple) and len(value.elts) >= 2:
            parts = [_text(one, constants) for one in value.elts]
            yield replace(
                _from_text(
                    next((p for p in reversed(parts) if p), key), "decorator", decorator.lineno
                ),
                subject=key,
                since=parts[0] if parts and _VERSION_LIKE.match(parts[0]) else None,
            )
            several = True
    if several:
        return
    versions = [text for text in positional if _VERSION_LIKE.match(text)]
    texts = [text for text in positional if text and not _VERSION_LIKE.match(text)]
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


def _named(named: Mapping[str, str], keys: Sequence[str]) -> str | None:
    return next((named[key] for key in keys if _VERSION_LIKE.match(named.get(key, ""))), None)


def _init_parameters(node: ast.ClassDef) -> set[str]:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return {a.arg for a in ast.walk(statement.args) if isinstance(a, ast.arg)}
    return set()


def _of_warnings(
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
    constants = {**constants, **_bound(body, constants)}
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
            found += _of_warnings(
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
    name = _dotted(call.func)
    last = name.rpartition(".")[2]
    words = {k.arg: k.value for k in call.keywords if k.arg}
    if name == "warnings._deprecated":
        thing, until = _text(call.args[0], constants), _tuple_version(words.get("remove"))
        return Deprecation(
            until=until,
            sentence=deprecation.sentence(
                f"{thing!r} is deprecated and slated for removal in Python {until}"
            ),
            evidence="warning",
            line=call.lineno,
        )
    if last in ("warn", "warn_explicit", "warn_external", "_warn"):
        given = [words[k] for k in ("category",) if k in words] + call.args[1:]
        message = call.args[0] if call.args else words.get("message")
        if isinstance(message, ast.Call):  # warn(SomeDeprecation("why"))
            given.append(message.func)
            message = message.args[0] if message.args else None
        said = [deprecation.category_says(_dotted(one)) for one in given]
        kind = next((one for one in said if one[0]), None)
        if kind is None or message is None:
            return None
        text = _text(message, constants) or ast.unparse(message)
        if _dotted(given[0]).endswith("FutureWarning") and not _ENDS.search(text):
            return None
        one = _from_text(text, "warning", call.lineno)
        return replace(one, since=one.since or kind[1], until=one.until or kind[2])
    if _WARNING_CALL.search(last) and re.search(r"warn|^deprecat(ed|e|ion)$", last) and call.args:
        texts = [_text(one, constants) for one in (*call.args, *words.values())]
        message_text = max((t for t in texts if " " in t), key=len, default="")
        if not message_text and last == "deprecate":  # deprecate("old", 10, "new")
            message_text = ast.unparse(call)
        if message_text:
            one = _from_text(message_text, "warning", call.lineno)
            version = next((t for t in texts if _VERSION_LIKE.match(t)), None)
            return replace(one, since=one.since or version)
    return None


def _from_text(text: str, evidence: Evidence, line: int) -> Deprecation:
    return Deprecation(
        since=deprecation.since_in(text),
        until=deprecation.until_in(text),
        replacement=deprecation.replacement_in(text),
        sentence=deprecation.sentence(text),
        evidence=evidence,
        line=line,
    )


def _parameter(text: str, parameters: set[str]) -> str:
    name = deprecation.parameter_in(text)
    return name if name in parameters else ""


def _compared_names(test: ast.expr) -> list[str]:
    """The names that `name == "X"` or `name in {"X", "Y"}` compares with."""
    match test:
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value=str(name))]):
            return [name]
        case ast.Compare(
            ops=[ast.In()], comparators=[ast.Tuple() | ast.List() | ast.Set() as many]
        ):
            return [
                one.value
                for one in many.elts
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            ]
        case ast.BoolOp(values=values):
            return [name for value in values for name in _compared_names(value)]
    return []


def _text(node: ast.expr | None, constants: Mapping[str, str]) -> str:
    """The text of an expression as far as it stands in the source; what is filled in, as {name}."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(value, constants) for value in values)
        case ast.FormattedValue(value=value):
            return _text(value, constants) or f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, constants) + _text(right, constants)
        case ast.BinOp(left=left, op=ast.Mod()):
            return _text(left, constants)
        case ast.Call(func=ast.Attribute(value=value, attr="format" | "strip")):
            return _text(value, constants)
        case ast.Call(func=ast.Name(id="_" | "gettext" | "dedent"), args=[only]):
            return _text(only, constants)
        case ast.Name(id=name):
            return constants.get(name, "")
    return ""


def _version_text(node: ast.expr) -> str:
    """A version that is written as a number or a tuple."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return "" if isinstance(node.value, bool) else str(node.value)
    return _tuple_version(node) or ""


def _tuple_version(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Tuple) and node.elts:
        parts = [one.value for one in node.elts if isinstance(one, ast.Constant)]
        return ".".join(str(part) for part in parts)
    return None


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{_dotted(value)}.{attr}"
        case ast.Call(func=func):
            return _dotted(func)
    return ""


def _without_repetition(found: list[Deprecation]) -> list[Deprecation]:
    """One notice for each subject: the first, with what the others add to it."""
    merged: dict[tuple[str, bool], Deprecation] = {}
    for one in found:
        key = (one.subject, one.conditional)
        known = merged.get(key)
        if known is None:
            merged[key] = one
            continue
        merged[key] = replace(
            known,
            since=known.since or one.since,
            until=known.until or one.until,
            replacement=known.replacement or one.replacement,
        )
    # What holds for every use holds for those under a condition.
    return [
        one for (subject, some), one in merged.items() if not (some and (subject, False) in merged)
    ]
