"""Deprecation notices in Python source: decorators, directives of docstrings, and warnings."""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from inspect import cleandoc

from vademecum.graph.api import Deprecation
from vademecum.graph.notices.decorators import FunctionNode, of_decorators
from vademecum.graph.notices.directives import of_docstring
from vademecum.graph.notices.texts import bound, dotted
from vademecum.graph.notices.warned import of_warnings

_HEADING = re.compile(r"^\S.*\n([=~^#*\"'+`-])\1{2,}[ \t]*$", re.MULTILINE)


def of_function(node: FunctionNode, constants: Mapping[str, str]) -> list[Deprecation]:
    """All that a function's decorators, docstring and warnings say against it."""
    if node.name == "__getattr__":
        return []  # It speaks of the names it gives, see `of_getattr`.
    parameters = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    found = [*of_decorators(node, constants, parameters)]
    found += of_docstring(ast.get_docstring(node, clean=False) or "", node.lineno, parameters)
    found += of_warnings(node.body, constants, parameters, takes_any=node.args.kwarg is not None)
    return _without_repetition(found)


def of_class(node: ast.ClassDef, constants: Mapping[str, str]) -> list[Deprecation]:
    """What is said against a class; a warning that each instance gives is one against it."""
    found = [*of_decorators(node, constants, set())]
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
    return any(dotted(one).rpartition(".")[2] == "overload" for one in node.decorator_list)


def of_module(node: ast.Module, constants: Mapping[str, str]) -> list[Deprecation]:
    """What a module says against itself when it is imported, or in its docstring."""
    opening = _before_topics(cleandoc(ast.get_docstring(node, clean=False) or ""))
    found = of_docstring(opening, 1, set())
    found += [one for one in of_warnings(node.body, constants, set()) if not one.conditional]
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
            said = of_warnings(branch.body, constants, set())
            for name in _compared_names(branch.test) if said else ():
                found.setdefault(name, replace(said[0], conditional=False, subject=""))
    return found


def constants_of(node: ast.Module) -> dict[str, str]:
    """Module-level names that are bound to text."""
    return bound(node.body, {})


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
