"""API references of installed Python packages, read statically by griffe: nothing is imported."""

import ast
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import griffe

from vademecum.graph import notices
from vademecum.graph.api import Api, Deprecation, Kind, Library, Parameter
from vademecum.graph.notices.directives import of_docstring, version_added
from vademecum.graph.sources.python_docstring import description, examples
from vademecum.graph.sources.python_returns import class_of, path_of, returned_class

_NO_API = re.compile(r"(^|\.)(tests|conftest|test_\w+|_vendor|_vendored|vendored|vendor)(\.|$)")
_DYNAMIC = re.compile(r"\bglobals\(\)|sys\.modules\[|lazy_loader|lazy\.attach|\bexec\(")
_NOTICES = "vademecum_notices"
_PLAIN_DECORATORS = {
    "abc.abstractmethod", "classmethod", "contextlib.asynccontextmanager",
    "contextlib.contextmanager", "dataclasses.dataclass", "functools.cache", "functools.lru_cache",
    "staticmethod", "typing.final", "typing.override", "typing_extensions.deprecated",
    "typing_extensions.final", "typing_extensions.override", "warnings.deprecated",
}  # fmt: skip
"""What they decorate takes what it took before."""
_PLAIN_BASES = {"object", "abc.ABC", "typing.Generic"}

logging.getLogger("griffe").addHandler(logging.NullHandler())
logging.getLogger("griffe").propagate = False


def read_library(
    name: str,
    version: str,
    modules: Iterable[str],
    folders: Iterable[Path],
    *,
    stdlib: bool = False,
) -> Library:
    """The library that these modules make up; a module that cannot be read is left out."""
    search = [str(folder) for folder in folders]
    apis: dict[str, Api] = {}
    aliases: dict[str, str] = {}
    tops = list(dict.fromkeys(modules))
    for top in tops:
        said = _Notices()
        loader = griffe.GriffeLoader(
            search_paths=search,
            allow_inspection=False,
            extensions=griffe.Extensions(said),
            store_source=False,
        )
        _leave_out_tests(loader)
        _find_stubs(loader)
        try:
            loaded = loader.load(top, try_relative_path=False)
        except (
            ImportError,
            griffe.GriffeError,
            SyntaxError,
            OSError,
            RecursionError,
            ValueError,
            KeyError,
        ):
            apis.setdefault(top, Api(path=top, kind="module", dynamic=True))
            continue
        with suppress(Exception):  # What cannot be resolved stays an alias; the rest is as good.
            loader.resolve_aliases(implicit=True, external=None)
        if isinstance(loaded, griffe.Alias):
            continue
        modules_read = loader.modules_collection
        for api in _walk(loaded, aliases, search):
            apis[api.path] = api
        for module, functions in said.overloads.items():
            for function, overloads in functions.items():
                path = f"{module}.{function}"
                if module in apis and overloads and path not in apis and path not in aliases:
                    apis[path] = _of_overloads([_api(one, search) for one in overloads])
        _spread_dynamic(apis, modules_read.members)
        _expand_stars(apis, aliases, modules_read.members)
    return Library(
        name=name,
        version=version,
        ecosystem="stdlib" if stdlib else "python",
        apis=apis,
        aliases=aliases,
    )


def _spread_dynamic(apis: dict[str, Api], modules: Mapping[str, Any]) -> None:
    """A module that takes all names of a dynamic one is dynamic itself."""
    stars = {
        path: obj.extra[_NOTICES].get("stars", ())
        for path, obj in _modules(modules)
        if path in apis and obj.extra[_NOTICES].get("stars")
    }
    changed = True
    while changed:
        changed = False
        for path, targets in stars.items():
            if not apis[path].dynamic and any(t not in apis or apis[t].dynamic for t in targets):
                apis[path] = replace(apis[path], dynamic=True)
                changed = True


def _expand_stars(
    apis: Mapping[str, Api], aliases: dict[str, str], modules: Mapping[str, Any]
) -> None:
    """Names that a module has by a star import, where griffe left them out: it does so where a
    stub says other than the source."""
    read = {path: obj.extra[_NOTICES] for path, obj in _modules(modules) if path in apis}
    members: dict[str, set[str]] = {path: set() for path in read}
    for name in (*apis, *aliases):
        owner, _, last = name.rpartition(".")
        if owner in members:
            members[owner].add(last)
    changed = True
    while changed:
        changed = False
        for path, notes in read.items():
            for target in notes.get("stars", ()):
                listed = read.get(target, {}).get("all") or [
                    name for name in members.get(target, ()) if not name.startswith("_")
                ]
                for name in set(listed) & members.get(target, set()) - members[path]:
                    aliases[f"{path}.{name}"] = f"{target}.{name}"
                    members[path].add(name)
                    changed = True


def _modules(members: Mapping[str, Any]) -> Iterator[tuple[str, griffe.Module]]:
    for one in members.values():
        if isinstance(one, griffe.Module):
            yield one.path, one
            yield from _modules(one.members)


def _find_stubs(loader: griffe.GriffeLoader) -> None:
    """A module that is only a stub in one file is found, too."""
    find = loader.finder.find_package

    def find_package(name: str) -> Any:
        try:
            return find(name)
        except ModuleNotFoundError:
            for folder in loader.finder.search_paths:
                if (path := folder / f"{name}.pyi").is_file():
                    return griffe.Package(name, path, None)
            raise

    loader.finder.find_package = find_package  # type: ignore[assignment]


def _leave_out_tests(loader: griffe.GriffeLoader) -> None:
    every = loader.finder.submodules

    def submodules(module: griffe.Module) -> list[Any]:
        return [one for one in every(module) if not _NO_API.search(".".join(one[0]))]

    loader.finder.submodules = submodules  # type: ignore[method-assign]


class _Notices(griffe.Extension):
    """Keeps with each object what its source says against it."""

    def __init__(self) -> None:
        self._constants: dict[str, str] = {}
        self._sets = False
        """Whether the module sets attributes by name, perhaps those of its classes."""
        self.overloads: dict[str, dict[str, list[griffe.Function]]] = {}
        """Of each stub of a module: griffe drops those that the module's source does not have."""

    def on_module_instance(self, *, node: Any, mod: griffe.Module, agent: Any, **rest: Any) -> None:
        if not isinstance(node, ast.Module):
            return
        self._constants = notices.constants_of(node)
        source = getattr(agent, "code", "") or ""
        self._sets = "setattr(" in source
        mod.extra[_NOTICES]["found"] = notices.of_module(node, self._constants)
        mod.extra[_NOTICES]["getattr"] = notices.of_getattr(node, self._constants)
        mod.extra[_NOTICES]["stars"] = _stars(node, mod)
        mod.extra[_NOTICES]["all"] = _listed(node)
        mod.extra[_NOTICES]["dynamic"] = bool(_DYNAMIC.search(source))

    def on_module_members(self, *, mod: griffe.Module, **rest: Any) -> None:
        if isinstance(mod.filepath, Path) and mod.filepath.suffix == ".pyi":
            self.overloads[mod.path] = {name: list(each) for name, each in mod.overloads.items()}

    def on_instance(self, *, node: Any, obj: griffe.Object, agent: Any, **rest: Any) -> None:
        # Under a condition there may be several of the name, and stubs may leave things out.
        alone = isinstance(getattr(node, "parent", None), ast.Module | ast.ClassDef)
        obj.extra[_NOTICES]["alone"] = alone and str(agent.filepath).endswith(".py")
        if isinstance(node, ast.ClassDef):
            obj.extra[_NOTICES]["found"] = notices.of_class(node, self._constants)
            obj.extra[_NOTICES]["dynamic"] = self._sets or bool(node.keywords)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            obj.extra[_NOTICES]["found"] = notices.of_function(node, self._constants)
            if node.returns is None:
                obj.extra[_NOTICES]["returned"] = returned_class(node)


def _listed(node: ast.Module) -> list[str]:
    """The names of a module's `__all__`; none where they are not all written out."""
    found: list[str] = []
    for one in node.body:
        targets = one.targets if isinstance(one, ast.Assign) else []
        if isinstance(one, ast.AugAssign):
            targets = [one.target]
        if isinstance(one, ast.Assign | ast.AugAssign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in targets
        ):
            if not isinstance(one.value, ast.List | ast.Tuple):
                return []
            texts = (part for part in one.value.elts if isinstance(part, ast.Constant))
            found += [part.value for part in texts if isinstance(part.value, str)]
    return found


def _stars(node: ast.Module, module: griffe.Module) -> list[str]:
    """The modules that a module takes all names of."""
    package = module.path if module.is_init_module else module.path.rpartition(".")[0]
    found = []
    for one in ast.walk(node):
        if isinstance(one, ast.ImportFrom) and any(alias.name == "*" for alias in one.names):
            parts = package.split(".")
            above = ".".join(parts[: len(parts) - one.level + 1]) if one.level else ""
            found.append(".".join(part for part in (above, one.module or "") if part))
    return found


def _walk(obj: griffe.Object, aliases: dict[str, str], search: list[str]) -> Iterator[Api]:
    if _NO_API.search(obj.path) and obj.is_module:
        return
    yield _api(obj, search)
    if not (obj.is_module or obj.is_class):
        return
    said: Mapping[str, Deprecation] = (
        obj.extra[_NOTICES].get("getattr", {}) if obj.is_module else {}
    )
    for name, one in said.items():
        target = obj.members.get(name)
        if target is None:
            yield Api(
                path=f"{obj.path}.{name}",
                kind="attribute",
                deprecations=(_placed(one, obj, search),),
                file=_file(obj, search),
                line=one.line,
            )
    for name in _compiled(obj):
        if name not in obj.members:
            yield Api(path=f"{obj.path}.{name}", kind="module", dynamic=True)
    for name, member in obj.members.items():
        if "*" in name or "/" in name:
            continue
        if isinstance(member, griffe.Alias):
            aliases[f"{obj.path}.{name}"] = member.target_path
        elif isinstance(member, griffe.Object):
            yield from _walk(member, aliases, search)
    for name, overloads in getattr(obj, "overloads", {}).items():
        if name not in obj.members and overloads:  # a stub that has nothing else
            yield _of_overloads([_api(one, search) for one in overloads])


def _of_overloads(apis: list[Api]) -> Api:
    """Deprecated only where every overload is: a call does not show which is meant."""
    if all(one.deprecations for one in apis):
        return apis[-1]
    return replace(apis[-1], deprecations=())


def _compiled(obj: griffe.Object) -> list[str]:
    """The modules beside a package's own that have no source."""
    if not (obj.is_module and isinstance(obj.filepath, Path) and obj.filepath.stem == "__init__"):
        return []
    try:
        files = list(obj.filepath.parent.iterdir())
    except OSError:
        return []
    return [one.name.partition(".")[0] for one in files if one.suffix in (".so", ".pyd")]


def _api(obj: griffe.Object, search: list[str]) -> Api:
    found = obj.extra[_NOTICES].get("found", [])
    text = obj.docstring.value if obj.docstring else ""
    if obj.is_attribute and not found and text:
        found = of_docstring(text, obj.lineno or 0, set())
    file = _file(obj, search)
    base = Api(
        path=obj.path,
        kind=_kind(obj),
        description=description(text),
        examples=examples(text),
        version_added=version_added(text) if text else None,
        deprecations=tuple(_placed(one, obj, search) for one in found),
        file=file,
        line=obj.lineno or 0,
        dynamic=_is_dynamic(obj),
    )
    if isinstance(obj, griffe.Function):
        return replace(base, **_called(obj))
    if isinstance(obj, griffe.Class):
        init = obj.members.get("__init__")
        called = _called(init) if isinstance(init, griffe.Function) else {}
        called |= {"returns": None, "returns_path": None}
        called["exact"] = bool(called.get("exact")) and _is_plainly_made(obj)
        if "signature" in called:
            called["signature"] = f"{obj.name}{called['signature'].removeprefix('__init__')}"
        return replace(base, **called, bases=tuple(path_of(b) or str(b) for b in obj.bases))
    if isinstance(obj, griffe.Attribute):
        return replace(base, **_read(obj))
    return base


def _kind(obj: griffe.Object) -> Kind:
    if obj.is_module:
        return "module"
    if obj.is_class:
        return "class"
    return "function" if obj.is_function else "attribute"


def _called(function: griffe.Function) -> dict[str, Any]:
    try:
        signature = function.signature()
    except (AttributeError, TypeError):
        signature = f"{function.name}(…)"
    returns = function.annotation
    given = class_of(returns)
    if given is None and returns is None:
        given = _resolved(function, function.extra[_NOTICES].get("returned", ""))
    return {
        "signature": signature,
        "parameters": tuple(
            Parameter(
                name=one.name,
                kind=one.kind.value if one.kind else "",
                annotation=str(one.annotation) if one.annotation is not None else None,
                default=str(one.default) if one.default is not None else None,
            )
            for one in list(function.parameters)[_is_bound(function) :]
        ),
        "exact": _is_plain(function)
        and all(one.kind is not griffe.ParameterKind.var_keyword for one in function.parameters),
        "returns": str(returns) if returns is not None else None,
        "returns_path": given,
    }


def _is_bound(function: griffe.Function) -> bool:
    """Whether its first parameter is the object or the class that it is called on."""
    first = next(iter(function.parameters), None)
    in_class = isinstance(function.parent, griffe.Class)
    return in_class and first is not None and first.name in ("self", "cls")


def _is_plain(obj: griffe.Function | griffe.Class) -> bool:
    """Whether the name means what is written here, and nothing is put around it."""
    decorators = {one.callable_path for one in obj.decorators}
    return bool(obj.extra[_NOTICES].get("alone")) and decorators <= _PLAIN_DECORATORS


def _is_plainly_made(made: griffe.Class) -> bool:
    """Whether a call of the class is one of its `__init__`: no `__new__` and no metaclass."""
    bases = [one for one in made.bases if path_of(one) not in _PLAIN_BASES]
    above = made.resolved_bases
    return (
        _is_plain(made)
        and "__new__" not in made.members
        and not made.extra[_NOTICES].get("dynamic")
        and len(above) == len(bases)
        and all(isinstance(one, griffe.Class) and _is_plainly_made(one) for one in above)
    )


def _read(attribute: griffe.Attribute) -> dict[str, Any]:
    annotation = attribute.annotation
    path = class_of(annotation)
    value = attribute.value
    if path is None and isinstance(value, griffe.ExprCall) and (called := path_of(value.function)):
        path = f"{called}()"
    elif path is None and isinstance(value, griffe.ExprName | griffe.ExprAttribute):
        path = f"={path_of(value)}" if path_of(value) else None
    return {"returns": str(annotation) if annotation is not None else None, "returns_path": path}


def _resolved(function: griffe.Function, name: str) -> str | None:
    if name in ("", "Self"):
        return name or None
    try:
        return str(function.resolve(name))
    except griffe.GriffeError:  # a name that leads nowhere is one we do not know
        return None


def _is_dynamic(obj: griffe.Object) -> bool:
    if obj.extra[_NOTICES].get("dynamic"):
        return True
    names = obj.members
    return (
        any("*" in name for name in names) or "__getattr__" in names or "__getattribute__" in names
    )


def _placed(one: Deprecation, obj: griffe.Object, search: list[str]) -> Deprecation:
    return replace(one, file=_file(obj, search))


def _file(obj: griffe.Object, search: list[str]) -> str:
    try:
        path = obj.filepath
    except (griffe.GriffeError, ValueError, AttributeError):
        return ""
    first = path[0] if isinstance(path, list) else path
    text = str(first)
    for folder in search:
        if text.startswith(folder):
            return text[len(folder) :].lstrip("/\\")
    return text
