"""JavaScript and TypeScript files, read by tree-sitter: imports, requires, and what they lead to.

A package is the first part of an expression, as one word: `@scope/name/file` as it is imported.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from vademecum.graph.code import CodeFile, Definition, Function, Language, Use

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_CONTEXT = 200
MAX_DEPTH = 400
"""Of nested expressions; generated code may have more than Python's stack."""
_FUNCTIONS = frozenset(
    [
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function_declaration",
        "generator_function",
    ]
)
_PASSED = frozenset(
    [
        "parenthesized_expression",
        "await_expression",
        "non_null_expression",
        "as_expression",
        "satisfies_expression",
    ]
)
_TEST = re.compile(r"[^\w$]")


def read_javascript(path: str, text: str) -> CodeFile:
    """What a file defines and uses. What cannot be parsed of it is left out."""
    is_typescript = path.endswith(("ts", "tsx"))
    language: Language = "typescript" if is_typescript else "javascript"
    grammar = "tsx" if path.endswith("tsx") else "typescript" if is_typescript else "javascript"
    tree = parser(grammar).parse(text.encode("utf-8", "replace"))
    reader = _Reader(text)
    reader.read(tree.root_node)
    return CodeFile(
        path=path,
        language=language,
        module=path,
        lines=text.count("\n") + 1,
        functions=tuple(reader.functions),
        uses=tuple(sorted(reader.uses, key=lambda use: (use.line, use.column))),
        definitions=reader.definitions,
    )


@functools.cache
def parser(grammar: str) -> "Parser":
    from tree_sitter import Language as Grammar
    from tree_sitter import Parser

    if grammar == "javascript":
        import tree_sitter_javascript

        return Parser(Grammar(tree_sitter_javascript.language()))
    import tree_sitter_typescript

    make = (
        tree_sitter_typescript.language_tsx
        if grammar == "tsx"
        else tree_sitter_typescript.language_typescript
    )
    return Parser(Grammar(make()))


@dataclass(slots=True)
class _Scope:
    above: "_Scope | None"
    names: dict[str, str | None] = field(default_factory=dict)

    def find(self, name: str) -> str | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.above
        return None


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._scope = _Scope(None)
        self._function = ""
        self._depth = 0
        self.functions: list[Function] = []
        self.uses: list[Use] = []
        self.definitions: dict[str, Definition] = {}

    def read(self, root: "Node") -> None:
        # Imports are hoisted: they hold in the whole file, wherever they stand.
        for node in root.named_children:
            if node.type == "import_statement":
                self._import(node)
        for node in root.named_children:
            self._visit(node)

    def _visit(self, node: "Node") -> None:
        self._depth += 1
        if self._depth < MAX_DEPTH:
            self._visit_node(node)
        self._depth -= 1

    def _visit_node(self, node: "Node") -> None:
        kind = node.type
        if kind == "import_statement":
            return
        if kind in _FUNCTIONS:
            self._visit_function(node)
        elif kind in ("class_declaration", "class"):
            self._visit_class(node)
        elif kind == "variable_declarator":
            self._declare(node)
        elif kind == "assignment_expression":
            self._visit_children(node)
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            if left is not None and left.type == "identifier":
                self._scope.names[text_of(left)] = self._value(right)
        elif kind in ("call_expression", "new_expression"):
            self._visit_call(node)
        elif kind == "member_expression":
            target = self._value(node)
            if target:
                self._use("use", target, node)
            else:
                self._visit_children(node)
        elif kind in ("jsx_opening_element", "jsx_self_closing_element"):
            name = node.child_by_field_name("name")
            target = self._value(name)
            if target and name is not None:
                self._use("call", target, name, keywords=tuple(_attributes(node)))
            for child in node.named_children:
                if child != name:
                    self._visit(child)
        else:
            self._visit_children(node)

    def _visit_children(self, node: "Node") -> None:
        for child in node.named_children:
            self._visit(child)

    # --- names ------------------------------------------------------------------------------

    def _import(self, node: "Node") -> None:
        source = string_of(node.child_by_field_name("source"))
        if source is None:
            return
        self._use("import", source, node)
        for clause in node.named_children:
            if clause.type != "import_clause":
                continue
            for part in clause.named_children:
                if part.type == "identifier":
                    self._bind(text_of(part), source, "default")
                elif part.type == "namespace_import":
                    self._bind(text_of(part.named_children[-1]), source)
                elif part.type == "named_imports":
                    for one in part.named_children:
                        name, alias = (
                            one.child_by_field_name("name"),
                            one.child_by_field_name("alias"),
                        )
                        if name is not None:
                            self._bind(text_of(alias or name), source, text_of(name))

    def _bind(self, name: str, source: str, member: str = "") -> None:
        if source.startswith((".", "/")):
            self._scope.names[name] = None
            return
        self._scope.names[name] = f"{source}.{member}" if member else source

    def _declare(self, node: "Node") -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if value is not None:
            self._visit(value)
        if name is None:
            return
        source = self._value(value)
        if name.type == "identifier":
            self._scope.names[text_of(name)] = source or self._annotated(node)
        elif name.type == "object_pattern":
            for local, member in _destructured(name):
                self._scope.names[local] = f"{source}.{member}" if source else None
        else:
            for one in _identifiers(name):
                self._scope.names[one] = None

    def _annotated(self, node: "Node") -> str | None:
        """What a type annotation declares."""
        annotation = node.child_by_field_name("type")
        if annotation is None or not annotation.named_children:
            return None
        kind = annotation.named_children[0]
        if kind.type == "generic_type":
            kind = kind.named_children[0]
        value = self._value(kind)
        return f"{value}{{}}" if value else None

    # --- functions and classes --------------------------------------------------------------

    def _visit_function(self, node: "Node") -> None:
        name = _name_of(node)
        outer, function = self._scope, self._function
        if name:
            if node.type.endswith("declaration"):
                outer.names[name] = None
            self._function = f"{function}.{name}" if function else name
            self.functions.append(
                Function(
                    name=self._function,
                    line=node.start_point[0] + 1,
                    end_line=node.end_point[0] + 1,
                )
            )
        self._scope = _Scope(outer)
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        if parameters is not None:
            for one in _identifiers(parameters):
                self._scope.names[one] = None
            for one_node in parameters.named_children:
                pattern = one_node.child_by_field_name("pattern")
                if pattern is not None and pattern.type == "identifier":
                    self._scope.names[text_of(pattern)] = self._annotated(one_node)
                default = one_node.child_by_field_name("value") or one_node.child_by_field_name(
                    "right"
                )
                if default is not None:
                    self._visit(default)
        body = node.child_by_field_name("body")
        if body is not None:
            self._visit(body)
        self._scope, self._function = outer, function

    def _visit_class(self, node: "Node") -> None:
        name = node.child_by_field_name("name")
        function = self._function
        for child in node.named_children:
            if child.type == "class_heritage":
                self._visit_heritage(child)
        if name is not None:
            self._scope.names[text_of(name)] = None
            self._function = f"{function}.{text_of(name)}" if function else text_of(name)
        body = node.child_by_field_name("body")
        if body is not None:
            self._visit_children(body)
        self._function = function

    def _visit_heritage(self, node: "Node") -> None:
        for child in node.named_children:
            target = self._value(child)
            if target:
                self._use("use", target, child)
            else:
                self._visit_heritage(child)

    # --- expressions ------------------------------------------------------------------------

    def _visit_call(self, node: "Node") -> None:
        called = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        if called is None:
            return
        source = _required(called, arguments)
        if source is not None:
            self._use("import", source, node)
            return
        target = self._value(called)
        if target:
            given = arguments.named_children if arguments is not None else []
            last = called.child_by_field_name("property")
            self._use("call", target, called, place=last, positional=len(given))
        inside: Node | None = called
        while inside is not None and inside.type in ("member_expression", *_PASSED):
            inside = inside.child_by_field_name("object") or (
                inside.named_children[0] if inside.type in _PASSED else None
            )
        if inside is not None and inside.type != "identifier":
            self._visit(inside)
        if arguments is not None:
            self._visit_children(arguments)

    def _value(self, node: "Node | None") -> str | None:
        """The expression of a value; None where the file does not show where it is from."""
        if node is None:
            return None
        kind = node.type
        if kind in ("identifier", "type_identifier", "shorthand_property_identifier"):
            return self._scope.find(text_of(node))
        if kind in ("member_expression", "nested_type_identifier", "nested_identifier"):
            base = self._value(node.named_children[0])
            name = text_of(node.named_children[-1])
            return f"{base}.{name}" if base and not _TEST.search(name) else None
        if kind == "call_expression":
            called, arguments = (
                node.child_by_field_name("function"),
                node.child_by_field_name("arguments"),
            )
            source = _required(called, arguments)
            if source is not None:
                return None if source.startswith((".", "/")) else source
            base = self._value(called)
            return f"{base}()" if base else None
        if kind == "new_expression":
            base = self._value(node.child_by_field_name("constructor"))
            return f"{base}()" if base else None
        if kind in _PASSED and node.named_children:
            return self._value(node.named_children[0])
        return None

    def _use(
        self,
        kind: str,
        target: str,
        node: "Node",
        *,
        place: "Node | None" = None,
        keywords: tuple[str, ...] = (),
        positional: int = 0,
    ) -> None:
        row, column = (place or node).start_point
        self.uses.append(
            Use(
                kind=kind,  # type: ignore[arg-type]
                target=target,
                line=row + 1,
                column=column + 1,
                context=self._lines[row].strip()[:MAX_CONTEXT] if row < len(self._lines) else "",
                function=self._function,
                keywords=keywords,
                positional=positional,
            )
        )


def text_of(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


def string_of(node: "Node | None") -> str | None:
    if node is None or node.type != "string":
        return None
    return text_of(node)[1:-1]


def _required(called: "Node | None", arguments: "Node | None") -> str | None:
    """The package of `require("…")` and `import("…")`."""
    if called is None or arguments is None or len(arguments.named_children) != 1:
        return None
    if called.type == "import" or (called.type == "identifier" and text_of(called) == "require"):
        return string_of(arguments.named_children[0])
    return None


def _name_of(node: "Node") -> str:
    """Of a function: its own name, or that of what it is given to."""
    name = node.child_by_field_name("name")
    if name is not None:
        return text_of(name)
    parent = node.parent
    if parent is not None and parent.type == "variable_declarator":
        given = parent.child_by_field_name("name")
        if given is not None and given.type == "identifier":
            return text_of(given)
    return ""


def _destructured(pattern: "Node") -> Iterator[tuple[str, str]]:
    """Local names of `{a, b: c}` with the members they are taken from."""
    for one in pattern.named_children:
        if one.type == "shorthand_property_identifier_pattern":
            yield text_of(one), text_of(one)
        elif one.type == "pair_pattern":
            key, value = one.child_by_field_name("key"), one.child_by_field_name("value")
            if key is not None and value is not None and value.type == "identifier":
                yield text_of(value), text_of(key)


def _identifiers(node: "Node") -> Iterator[str]:
    """Every name that a pattern binds."""
    if node.type in ("identifier", "shorthand_property_identifier_pattern"):
        yield text_of(node)
    for child in node.named_children:
        if child.type not in ("type_annotation", "object_type"):
            yield from _identifiers(child)


def _attributes(node: "Node") -> Iterator[str]:
    for one in node.named_children:
        if one.type == "jsx_attribute" and one.named_children:
            yield text_of(one.named_children[0])
