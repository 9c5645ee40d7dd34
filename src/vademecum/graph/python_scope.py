"""Scopes of Python code: what names stand for in them, and where values are from.

Both are told as the expressions of `graph.code`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

_NO_CLASS = frozenset(
    (
        "str", "int", "float", "bool", "bytes", "list", "dict", "set", "tuple", "object", "None",
        "Any", "type",
    )
)  # fmt: skip
_CONTAINERS = frozenset(
    (
        "list", "List", "dict", "Dict", "set", "Set", "tuple", "Tuple", "Sequence", "Iterable",
        "Iterator", "Mapping", "Callable", "type", "Type", "Union", "Literal", "AsyncIterator",
        "Generator", "AsyncGenerator", "Collection", "frozenset",
    )
)  # fmt: skip


@dataclass(slots=True)
class Scope:
    """Names of a block of code. A name bound to None is known to be something else."""

    path: str
    """Full name of what the block is of."""
    kind: Literal["module", "class", "function"]
    above: "Scope | None"
    names: dict[str, str | None] = field(default_factory=dict)
    receiver: str = ""
    """Of a method: what its first parameter is called."""

    def find(self, name: str) -> str | None:
        """The expression of a name."""
        for scope in self._outwards():
            if name in scope.names and (scope is self or scope.kind != "class"):
                return scope.names[name]
        return None

    def owner(self, name: str) -> str | None:
        """The class whose instance the name, `self`, is here."""
        for scope in self._outwards():
            if scope.receiver == name and scope.above is not None:
                return scope.above.path
        return None

    def class_around(self) -> str | None:
        return next((scope.path for scope in self._outwards() if scope.kind == "class"), None)

    def _outwards(self) -> Iterator["Scope"]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.above

    def value(self, node: ast.expr | None) -> str | None:
        """The expression of a value; None where the file does not show where it is from."""
        match node:
            case ast.Name(id=name):
                return self.find(name)
            case ast.Attribute(value=value, attr=attr):
                base = self.value(value)
                return f"{base}.{attr}" if base else None
            case ast.Call(func=ast.Name(id="super"), args=[]):
                owner = self.class_around()
                return f"{owner}.__super__()" if owner else None
            case ast.Call(func=ast.Name(id="cast"), args=[annotation, _]):
                return self.instance(annotation)
            case ast.Call(func=func):
                base = self.value(func)
                return f"{base}()" if base else None
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self.value(value)
            case ast.Subscript(value=value):
                base = self.value(value)
                return f"{base}[]" if base else None
            case ast.BinOp(left=left, op=ast.Div()):
                base = self.value(left)
                return f"{base}.__truediv__()" if base else None
            case ast.BoolOp(op=ast.Or(), values=values):
                return next((v for v in map(self.value, values) if v), None)
            case ast.IfExp(body=body, orelse=other):
                return self.value(body) or self.value(other)
        return None

    def instance(self, annotation: ast.expr | None) -> str | None:
        """The expression of a value that is annotated so."""
        match annotation:
            case ast.Constant(value=str(text)):
                try:
                    return self.instance(ast.parse(text, mode="eval").body)
                except SyntaxError:
                    return None
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                sides = [one for one in (left, right) if not is_none(one)]
                return self.instance(sides[0]) if len(sides) == 1 else None
            case ast.Subscript(value=outer, slice=inner):
                last = outer.id if isinstance(outer, ast.Name) else getattr(outer, "attr", "")
                if last in ("Optional", "Annotated", "ClassVar", "Final"):
                    return self.instance(inner.elts[0] if isinstance(inner, ast.Tuple) else inner)
                if last in _CONTAINERS:
                    return None
                return self.instance(outer)
            case ast.Name() | ast.Attribute():
                if isinstance(annotation, ast.Name) and annotation.id in _NO_CLASS:
                    return None
                if isinstance(annotation, ast.Name) and annotation.id == "Self":
                    owner = self.class_around()
                    return f"{owner}()" if owner else None
                value = self.value(annotation)
                # Declared, not made: it may be of a class below.
                return f"{value}{{}}" if value else None
        return None


def own_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """What stands in a function's body, that of functions and classes inside left out."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
