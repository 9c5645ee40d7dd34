"""Python files: imports and aliases followed, each use with where its receiver is from."""

import ast
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from vademecum.graph.code import CodeFile, Definition, Function, Use
from vademecum.graph.python_scope import Scope, is_none, own_nodes

MAX_CONTEXT = 200
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_KEEP = frozenset(
    (
        "staticmethod", "classmethod", "abstractmethod", "override", "overload", "wraps", "cache",
        "lru_cache", "final", "asynccontextmanager", "contextmanager", "property",
        "cached_property", "fixture", "singledispatch",
    )
)  # fmt: skip


def read_python(path: str, text: str, module: str) -> CodeFile:
    """What a Python file defines and uses. A file that is no Python has an `error`."""
    lines = text.splitlines()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        reader = _Reader(module, is_package=path.endswith("__init__.py"), lines=lines)
        reader.read(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = (
            f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        )
        return CodeFile(path=path, language="python", module=module, lines=len(lines), error=reason)
    return CodeFile(
        path=path,
        language="python",
        module=module,
        lines=len(lines),
        functions=tuple(reader.functions),
        uses=tuple(reader.uses),
        definitions=reader.definitions,
    )


class _Reader:
    def __init__(self, module: str, *, is_package: bool, lines: Sequence[str]) -> None:
        self._package = module if is_package else module.rpartition(".")[0]
        self._lines = lines
        self._scope = Scope(module, "module", None)
        self._function = ""
        self._guards = 0
        self._later: list[tuple[FunctionNode, Scope, str]] = []
        self.functions: list[Function] = []
        self.uses: list[Use] = []
        self.definitions: dict[str, Definition] = {}

    def read(self, tree: ast.Module) -> None:
        self._block(tree.body)
        # Bodies run when the module is whole, so they see all of its names.
        while self._later:
            node, scope, name = self._later.pop(0)
            self._scope, self._function, self._guards = scope, name, 0
            self._body(node)
        self.uses.sort(key=lambda use: (use.line, use.column))

    # --- statements -------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Import():
                self._import(node)
            case ast.ImportFrom():
                self._import_from(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define_function(node)
            case ast.ClassDef():
                self._define_class(node)
            case ast.Assign():
                self._walk(node.value)
                value = self._scope.value(node.value)
                for target in node.targets:
                    self._assign(target, value, node.value)
            case ast.AnnAssign():
                self._walk(node.annotation)
                value = None
                if node.value is not None:
                    self._walk(node.value)
                    value = self._scope.value(node.value)
                self._assign(node.target, self._scope.instance(node.annotation) or value, None)
            case ast.AugAssign():
                self._walk(node.value)
                self._assign(node.target, None, None)
            case ast.For() | ast.AsyncFor():
                self._walk(node.iter)
                self._assign(node.target, None, None)
                self._block(node.body)
                self._block(node.orelse)
            case ast.With() | ast.AsyncWith():
                self._with(node)
            case ast.Try() | ast.TryStar():
                self._try(node)
            case ast.If() | ast.While():
                self._walk(node.test)
                guarded = _asks_presence(node.test)
                self._guards += guarded
                self._block(node.body)
                self._block(node.orelse)
                self._guards -= guarded
            case ast.Match():
                self._match(node)
            case ast.Return(value=ast.expr() as value):
                self._walk(value)
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._walk(child)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        enter = "__aenter__" if isinstance(node, ast.AsyncWith) else "__enter__"
        for item in node.items:
            self._walk(item.context_expr)
            entered = self._scope.value(item.context_expr)
            if item.optional_vars is not None:
                value = f"{entered}.{enter}()" if entered else None
                self._assign(item.optional_vars, value, None)
        self._block(node.body)

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        expected = any(_expects_absence(one) for one in node.handlers)
        self._guards += expected
        self._block(node.body)
        self._guards -= expected
        before = dict(self._scope.names)
        for caught in node.handlers:
            if caught.type is not None:
                self._walk(caught.type)
            if caught.name:
                one = self._scope.value(caught.type) if caught.type else None
                self._scope.names[caught.name] = f"{one}()" if one else None
            self._guards += expected
            self._block(caught.body)
            self._guards -= expected
        if expected:  # `except ImportError: x = None` does not undo the import
            self._scope.names.update({k: v for k, v in before.items() if v is not None})
        self._block(node.orelse)
        self._block(node.finalbody)

    def _match(self, node: ast.Match) -> None:
        self._walk(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                if isinstance(part, ast.MatchClass):
                    self._walk(part.cls)
                elif isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
                    self._scope.names[part.name] = None
            if case.guard is not None:
                self._walk(case.guard)
            self._block(case.body)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._use("import", alias.name, node)
            if alias.asname:
                self._bind(alias.asname, alias.name)
            else:
                top = alias.name.partition(".")[0]
                self._bind(top, top)

    def _import_from(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            parts = self._package.split(".") if self._package else []
            parts = parts[: len(parts) - (node.level - 1)] if node.level > 1 else parts
            base = ".".join([*parts, *([node.module] if node.module else [])])
        for alias in node.names:
            if alias.name == "*":
                self._use("import", base, node)
                continue
            target = f"{base}.{alias.name}" if base else alias.name
            self._use("import", target, alias if hasattr(alias, "lineno") else node)
            self._bind(alias.asname or alias.name, target)

    def _bind(self, name: str, value: str | None) -> None:
        self._scope.names[name] = value
        if self._scope.kind in ("module", "class") and value:
            path = f"{self._scope.path}.{name}"
            if path != value:
                self.definitions.setdefault(path, Definition(kind="value", value=value))

    def _assign(self, target: ast.expr, value: str | None, node: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                # A name of another value: what the value is from was used where it was given.
                self._bind(name, f"{value}|" if value is not None and _is_name(value) else value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                values: Sequence[ast.expr | None] = [None] * len(parts)
                if isinstance(node, ast.Tuple) and len(node.elts) == len(parts):
                    values = node.elts
                for part, one in zip(parts, values, strict=True):
                    self._assign(part, self._scope.value(one) if one is not None else None, one)
            case ast.Attribute(value=ast.Name(id=receiver), attr=attr):
                owner = self._scope.owner(receiver)
                if owner and value:
                    found = Definition(kind="value", value=value)
                    self.definitions.setdefault(f"{owner}.{attr}", found)
                elif not owner:
                    self._walk(target.value)
            case ast.Starred(value=inner):
                self._assign(inner, None, None)
            case ast.Attribute() | ast.Subscript():
                for child in ast.iter_child_nodes(target):
                    if isinstance(child, ast.expr):
                        self._walk(child)

    # --- functions and classes --------------------------------------------------------------

    def _define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        decorators = [self._decorate(one) for one in node.decorator_list]
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self._walk(default)
        for argument in _all_arguments(arguments):
            if argument.annotation is not None:
                self._walk(argument.annotation)
        if node.returns is not None:
            self._walk(node.returns)
        scope = Scope(f"{self._scope.path}.{node.name}", "function", self._scope)
        name = self._qualified(node.name)
        self.functions.append(
            Function(name=name, line=node.lineno, end_line=node.end_lineno or node.lineno)
        )
        self._scope.names[node.name] = scope.path
        returns = self._scope.instance(node.returns) if node.returns is not None else None
        is_context = any(one and one.endswith("contextmanager") for one in decorators)
        is_property = any(
            one and one.rpartition(".")[2] in ("property", "cached_property") for one in decorators
        ) or any(isinstance(d, ast.Name) and d.id == "property" for d in node.decorator_list)
        changed = [one for one in decorators if one and not _keeps(one)]
        self.definitions[scope.path] = Definition(
            kind="value" if is_property else "function",
            value=None if is_context else returns,
            decorated=f"{changed[0]}()" if changed and not is_property and not is_context else None,
        )
        self._later.append((node, scope, name))

    def _decorate(self, node: ast.expr) -> str | None:
        self._walk(node)
        value = self._scope.value(node)
        if value and not isinstance(node, ast.Call):
            # A bare decorator is called, though no parentheses say so.
            self._uses_call(value, node)
        return value

    def _define_class(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self._decorate(decorator)
        for base in (*node.bases, *(k.value for k in node.keywords)):
            self._walk(base)
        bases = tuple(v for v in (self._scope.value(b) for b in node.bases) if v)
        path = f"{self._scope.path}.{node.name}"
        self._scope.names[node.name] = path
        self.definitions[path] = Definition(kind="class", bases=bases)
        self.definitions[f"{path}.__super__"] = Definition(kind="class", bases=bases)
        outer, function = self._scope, self._function
        self._scope = Scope(path, "class", outer)
        self._function = self._qualified(node.name)
        self._block(node.body)
        self._scope, self._function = outer, function

    def _body(self, node: FunctionNode) -> None:
        scope = self._scope
        arguments = _all_arguments(node.args)
        above = scope.above
        for argument in arguments:
            annotated = (
                self._scope.instance(argument.annotation)
                if argument.annotation is not None
                else None
            )
            scope.names[argument.arg] = annotated
        static = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
            isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list
        )
        if above is not None and above.kind == "class" and arguments and not static:
            first = arguments[0].arg
            is_class = first in ("cls", "klass")
            scope.names[first] = above.path if is_class else f"{above.path}()"
            scope.receiver = "" if is_class else first
        if isinstance(node, ast.Lambda):
            self._walk(node.body)
            return
        self._block(node.body)
        self._learn_result(node, scope)

    def _learn_result(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """What calling the function gives, where only its body says so."""
        known = self.definitions.get(scope.path)
        if known is None:
            return
        returned, yielded = _results(node)
        values = {self._scope.value(one) for one in returned}
        value = known.value or (values.pop() if len(values) == 1 else None)
        entered = {self._scope.value(one) for one in yielded}
        yields = entered.pop() if len(entered) == 1 else None
        self.definitions[scope.path] = replace(known, value=value, yields=yields)

    def _qualified(self, name: str) -> str:
        return f"{self._function}.{name}" if self._function else name

    # --- expressions ------------------------------------------------------------------------

    def _walk(self, node: ast.expr) -> None:
        """Note what an expression calls and names."""
        match node:
            case ast.Call():
                target = self._scope.value(node.func)
                if target is not None:
                    self._uses_call(target, node)
                self._receivers(node.func)
                for argument in (*node.args, *(k.value for k in node.keywords)):
                    self._walk(argument)
            case ast.Attribute() | ast.Name():
                target = self._scope.value(node)
                # A variable that holds a result is no use of what made it.
                if target is not None and _is_name(target) and isinstance(node.ctx, ast.Load):
                    self._use("use", target, node)
                self._receivers(node)
            case ast.Lambda():
                scope = Scope(f"{self._scope.path}.<lambda>", "function", self._scope)
                with self._within(scope):
                    self._body(node)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                with self._within(Scope(self._scope.path, "function", self._scope)):
                    for one in node.generators:
                        self._walk(one.iter)
                        self._assign(one.target, None, None)
                        for test in one.ifs:
                            self._walk(test)
                    for part in (
                        (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
                    ):
                        self._walk(part)
            case ast.NamedExpr():
                self._walk(node.value)
                self._assign(node.target, self._scope.value(node.value), None)
            case ast.Constant():
                return
            case _:
                for child in ast.iter_child_nodes(node):
                    if isinstance(child, ast.expr):
                        self._walk(child)

    def _receivers(self, node: ast.expr) -> None:
        """What stands before the last dot: calls in it count, its names are part of the target."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            self._walk(node)

    @contextmanager
    def _within(self, scope: Scope) -> Iterator[None]:
        outer, self._scope = self._scope, scope
        try:
            yield
        finally:
            self._scope = outer

    def _uses_call(self, target: str, node: ast.expr) -> None:
        keywords: tuple[str, ...] = ()
        positional = 0
        if isinstance(node, ast.Call):
            keywords = tuple(k.arg for k in node.keywords if k.arg)
            positional = sum(not isinstance(a, ast.Starred) for a in node.args)
        # A chain over several lines is where its last name stands.
        place = node.func if isinstance(node, ast.Call) else node
        line, column = place.lineno, place.col_offset
        if isinstance(place, ast.Attribute) and place.end_lineno and place.end_lineno != line:
            line, column = place.end_lineno, (place.end_col_offset or 0) - len(place.attr)
        self._use("call", target, node, at=(line, column), keywords=keywords, positional=positional)

    def _use(
        self,
        kind: str,
        target: str,
        node: ast.stmt | ast.expr | ast.alias,
        *,
        at: tuple[int, int] | None = None,
        keywords: tuple[str, ...] = (),
        positional: int = 0,
    ) -> None:
        line, column = at or (node.lineno, node.col_offset)
        self.uses.append(
            Use(
                kind=kind,  # type: ignore[arg-type]
                target=target,
                line=line,
                column=column + 1,
                context=self._lines[line - 1].strip()[:MAX_CONTEXT]
                if line <= len(self._lines)
                else "",
                function=self._function,
                keywords=keywords,
                positional=positional,
                guarded=self._guards > 0,
            )
        )


def _is_name(expression: str) -> bool:
    """Whether it is a name as it was imported or defined, not a result or a variable's value."""
    return not expression.endswith((")", "}", "|"))


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    extra = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *extra]


def _results(
    node: ast.FunctionDef | ast.AsyncFunctionDef,
) -> tuple[list[ast.expr], list[ast.expr]]:
    """What a function returns and yields."""
    returned: list[ast.expr] = []
    yielded: list[ast.expr] = []
    for one in own_nodes(node):
        if isinstance(one, ast.Return) and one.value is not None and not is_none(one.value):
            returned.append(one.value)
        if isinstance(one, ast.Yield) and one.value is not None:
            yielded.append(one.value)
    return returned, yielded


def _expects_absence(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    names = {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
    return bool(
        names & {"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "Exception"}
    )


def _asks_presence(test: ast.expr) -> bool:
    """Whether a condition asks for a version or for an attribute, so that both ways are right."""
    for one in ast.walk(test):
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and one.func.id == "hasattr"
        ):
            return True
        if isinstance(one, ast.Name | ast.Attribute):
            name = one.id if isinstance(one, ast.Name) else one.attr
            if "version" in name.lower():
                return True
    return False


def _keeps(decorator: str) -> bool:
    """Whether what is decorated is called as it is written."""
    name = decorator.rstrip("()").rpartition(".")[2]
    return name in _KEEP
