"""The classes that calls and attributes of Python give, by annotations and by what is returned."""

import ast
import re
from typing import Any

import griffe

from vademecum.graph.python_scope import own_nodes


def class_of(annotation: Any) -> str | None:
    """The path of the one class that an annotation means; None where it means no one class."""
    match annotation:
        case griffe.ExprName(name="Self"):
            return "Self"
        case griffe.ExprName() | griffe.ExprAttribute():
            path = path_of(annotation)
            return None if path in ("None", "typing.Any", "Any") else path
        case griffe.ExprBinOp(operator="|"):
            sides = [
                class_of(one) for one in (annotation.left, annotation.right) if str(one) != "None"
            ]
            return sides[0] if len(sides) == 1 else None
        case griffe.ExprSubscript():
            left = path_of(annotation.left) or ""
            last = left.rpartition(".")[2]
            inner = annotation.slice
            if last == "Optional":
                return class_of(inner)
            if last in ("Annotated", "ClassVar", "Final", "Required"):
                return class_of(inner.elements[0] if isinstance(inner, griffe.ExprTuple) else inner)
            if (
                last == "Callable"
                and isinstance(inner, griffe.ExprTuple)
                and len(inner.elements) == 2
            ):
                given = class_of(inner.elements[1])
                return f"call:{given}" if given else None
            if last in ("Awaitable", "Union", "Callable", "Literal", "type", "Type", "TypeGuard"):
                return class_of(inner) if last == "Awaitable" else None
            if last in ("Coroutine",) and isinstance(inner, griffe.ExprTuple):
                return class_of(inner.elements[-1])
            return left or None
    return None


def path_of(expression: Any) -> str | None:
    """The path that a name, with or without a subscript, leads to."""
    if isinstance(expression, griffe.ExprSubscript):
        expression = expression.left
    if not isinstance(expression, griffe.ExprName | griffe.ExprAttribute):
        return None
    try:
        return str(expression.canonical_path)
    except griffe.GriffeError:  # a name that leads nowhere is one we do not know
        return None


def returned_class(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The one class whose instances a function without annotation makes and returns; `Self` for
    its own; '' where there are several, or none that can be seen."""
    inner = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    found: set[str] = set()
    for one in own_nodes(node):
        if isinstance(one, ast.Return):
            match one.value:
                case ast.Call(func=ast.Name(id=name)) if name in inner:
                    found.add(returned_class(inner[name]))
                case ast.Call(func=ast.Name() | ast.Attribute() as func):
                    name = ast.unparse(func)
                    if re.fullmatch(r"(\w+\.)*_*[A-Z]\w*", name) and not name.startswith("self."):
                        found.add(name)
                case ast.Name(id="self"):
                    found.add("Self")
    found.discard("")
    return found.pop() if len(found) == 1 else ""
