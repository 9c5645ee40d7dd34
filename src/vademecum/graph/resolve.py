"""What an expression means: followed through the project's own code into the libraries it uses."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from vademecum.graph.api import Api, Library
from vademecum.graph.code import Definition

MAX_STEPS = 40
"""Of following one name through others; a longer way is a circle."""
_STEP = re.compile(r"\.?(<?\w+>?)|(\(\))|(\[\])|(\{\})|\||(.)")
_LEFT_OUT = re.compile(r"\.(tests|conftest|test_\w+|_vendor|_vendored|vendored|vendor)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a use means in a library. `api` is None where the library has no such name."""

    library: Library
    path: str
    api: Api | None
    owner: str = ""
    """Of an absent name: the module or class that would have it."""


@dataclass(frozen=True, slots=True)
class _Thing:
    kind: Literal["module", "class", "instance", "function", "callable"]
    path: str
    library: Library | None
    """None for the project itself."""
    api: Api | None = None
    receiver: str = ""
    """Of a method: the class it was reached by, which `Self` means."""
    declared: bool = False
    """Of an instance: whether an annotation says so, and it may be of a class below."""


class _Absent(Exception):
    """A library that is known whole has no such name."""

    def __init__(self, found: Found) -> None:
        self.found = found


class Resolver:
    """Follows expressions. `library` gives the library of a top-level module, or None."""

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        modules: frozenset[str],
        library: Callable[[str], Library | None],
    ) -> None:
        self._definitions = definitions
        self._modules = modules
        self._library = library
        self._known: dict[str, Found | None] = {}
        self._things: dict[str, _Thing | None] = {}
        self._depth = 0

    def resolve(self, expression: str) -> Found | None:
        """The API of a library that an expression means; None where it is none, or unknown."""
        if expression not in self._known:
            self._depth = 0
            try:
                thing = self._follow(expression)
            except _Absent as absent:
                self._known[expression] = absent.found
            else:
                self._known[expression] = (
                    Found(library=thing.library, path=thing.path, api=thing.api)
                    if thing is not None and thing.library is not None and thing.api is not None
                    else None
                )
        return self._known[expression]

    def library_of(self, expression: str) -> Library | None:
        """The library that an expression begins in; None for the project's own and unknown ones."""
        top = re.split(r"[.(\[{|]", expression, maxsplit=1)[0]
        return None if top in self._modules else self._library(top)

    def above(self, found: Found) -> Iterator[Api]:
        """The classes above a class of a library, nearest first."""
        if found.api is not None and found.api.kind == "class":
            start = _Thing("class", found.path, found.library, found.api)
            for one in self._classes(start):
                if one is not None and one.api is not None and one.path != found.path:
                    yield one.api

    # --- steps ------------------------------------------------------------------------------

    def _follow(self, expression: str) -> _Thing | None:
        """The thing that an expression leads to."""
        if expression in self._things:
            return self._things[expression]
        self._depth += 1
        if self._depth > MAX_STEPS:
            return None
        self._things[expression] = None  # an expression that leads back to itself means nothing
        thing = self._follow_steps(expression)
        self._things[expression] = thing
        self._depth -= 1
        return thing

    def _follow_steps(self, expression: str) -> _Thing | None:
        steps = list(_STEP.findall(expression))
        thing: _Thing | None = None
        for number, (name, called, subscripted, declared, odd) in enumerate(steps):
            if odd:
                return None
            if number == 0:
                thing = self._start(name)
            elif thing is None:
                return None
            elif name:
                thing = self._value_of(self._attribute(thing, name), last=number == len(steps) - 1)
            elif called:
                thing = self._call(self._value_of(thing))
            elif declared:
                thing = self._declared(self._value_of(thing))
            elif subscripted:
                thing = thing if thing.kind in ("class", "function") else None
        return thing

    def _start(self, name: str) -> _Thing | None:
        if name in self._modules:
            return _Thing("module", name, None)
        library = self._library(name)
        if library is None:
            return None
        return _Thing("module", name, library, library.apis.get(name))

    def _value_of(self, thing: _Thing | None, *, last: bool = False) -> _Thing | None:
        """An attribute of a library stands for what it holds, unless it is the end."""
        if last or thing is None or thing.api is None or thing.api.kind != "attribute":
            return thing
        return self._held(thing)

    def _attribute(self, thing: _Thing, name: str) -> _Thing | None:
        if thing.kind == "module":
            if thing.library is None:
                return self._project_name(f"{thing.path}.{name}")
            return self._library_name(thing.library, f"{thing.path}.{name}")
        if thing.kind in ("class", "instance"):
            return self._member(thing, name)
        if thing.kind == "function" and name in ("__enter__", "__aenter__"):
            return thing
        return None

    def _project_name(self, path: str) -> _Thing | None:
        defined = self._definitions.get(path)
        if defined is None or (defined.kind == "value" and path in self._modules):
            return _Thing("module", path, None) if path in self._modules else None
        if defined.kind == "class":
            return _Thing("class", path, None)
        if defined.kind == "function":
            if defined.decorated and (made := self._quietly(defined.decorated)) is not None:
                return made
            return _Thing("function", path, None)
        return self._follow(defined.value) if defined.value else None

    def _quietly(self, expression: str) -> _Thing | None:
        try:
            return self._follow(expression)
        except _Absent:
            return None

    def _library_name(self, library: Library, path: str) -> _Thing | None:
        for _ in range(MAX_STEPS):
            if path in library.aliases and path not in library.apis:
                target = library.aliases[path]
                other = self._library(target.partition(".")[0])
                if other is None:
                    return None
                if target == path:
                    return None
                library, path = other, target
                continue
            api = library.apis.get(path)
            if api is not None:
                kind = "instance" if api.kind == "attribute" else api.kind
                return _Thing(kind, path, library, api)
            # A name whose owner is itself known by another name: `a.b.c` where `a.b` is an alias.
            head, _, last = path.rpartition(".")
            if head in library.aliases:
                path = f"{library.aliases[head]}.{last}"
                other = self._library(path.partition(".")[0])
                if other is None:
                    return None
                library = other
                continue
            break
        holder = library.apis.get(path.rpartition(".")[0])
        if (
            holder is not None
            and holder.kind == "module"
            and not holder.dynamic
            and holder.file.endswith(".py")
            and not path.rpartition(".")[2].startswith("__")
            and not _LEFT_OUT.search(path)
            # The standard library makes many of its names at run time.
            and library.ecosystem != "stdlib"
        ):
            raise _Absent(Found(library=library, path=path, api=None, owner=holder.path))
        return None

    def _member(self, thing: _Thing, name: str) -> _Thing | None:
        """A member of a class or of an instance of it, or of the classes above."""
        is_whole = True
        last: _Thing | None = None
        for owner in self._classes(thing):
            if owner is None:
                is_whole = False
                continue
            last = owner
            path = f"{owner.path}.{name}"
            if owner.library is None:
                if path in self._definitions:
                    return self._project_name(path)
                continue
            if path in owner.library.apis or path in owner.library.aliases:
                found = self._library_name(owner.library, path)
                if found is None:
                    return None
                return _Thing(found.kind, found.path, found.library, found.api, thing.path)
            is_whole = is_whole and owner.api is not None and not owner.api.dynamic
        first = next((one for one in self._classes(thing) if one is not None), None)
        if (
            is_whole
            and not thing.declared
            and first is not None
            and first.library is not None
            and last is not None
        ):
            if first.library.ecosystem == "stdlib":
                return None
            whole = first.api is not None and first.api.file.endswith(".py")
            if whole and not name.startswith("_"):
                path = f"{first.path}.{name}"
                raise _Absent(Found(library=first.library, path=path, api=None, owner=first.path))
        return None

    def _classes(self, thing: _Thing) -> Iterator[_Thing | None]:
        """The class of a thing and those above it, depth first; None for one that is unknown."""
        seen: set[str] = set()
        waiting: list[_Thing | None] = [self._class_of(thing)]
        while waiting:
            one = waiting.pop(0)
            if one is None:
                yield None
                continue
            if one.path in seen:
                continue
            seen.add(one.path)
            if not (one.library is None and one.path.endswith(".__super__")):
                yield one
            waiting[:0] = list(self._bases(one))

    def _class_of(self, thing: _Thing) -> _Thing | None:
        if thing.library is None:
            return _Thing("class", thing.path, None)
        api = thing.library.apis.get(thing.path)
        return (
            _Thing("class", thing.path, thing.library, api) if api and api.kind == "class" else None
        )

    def _bases(self, one: _Thing) -> Iterator[_Thing | None]:
        if one.library is None:
            defined = self._definitions.get(one.path)
            for base in defined.bases if defined else ():
                yield self._as_class(self._quietly(base.removesuffix("[]")))
        elif one.api is not None:
            for path in one.api.bases:
                if path in ("object", "builtins.object"):
                    continue
                yield self._as_class(self._quietly(path))

    def _as_class(self, thing: _Thing | None) -> _Thing | None:
        return thing if thing is not None and thing.kind == "class" else None

    def _call(self, thing: _Thing | None) -> _Thing | None:
        """What calling a thing gives."""
        if thing is None:
            return None
        if thing.kind == "class":
            return _Thing("instance", thing.path, thing.library)
        if thing.kind == "callable":
            return self._instance_of(thing.path)
        if thing.kind == "instance":
            try:
                return self._call(self._member(thing, "__call__"))
            except _Absent:
                return None
        if thing.kind != "function":
            return None
        if thing.library is None:
            defined = self._definitions.get(thing.path)
            if defined is None:
                return None
            if defined.yields:
                return self._follow(defined.yields)
            return self._follow(defined.value) if defined.value else None
        last = thing.path.rpartition(".")[2]
        api = thing.api
        if api is None:
            return None
        if (
            last in ("__enter__", "__aenter__", "__new__", "__truediv__")
            and (api.returns_path or "Self") == "Self"
        ):
            return self._receiver(thing)
        return self._given(thing, api.returns_path)

    def _held(self, thing: _Thing) -> _Thing | None:
        """What an attribute or a property holds."""
        assert thing.api is not None
        return self._given(thing, thing.api.returns_path)

    def _given(self, thing: _Thing, path: str | None) -> _Thing | None:
        if path is None:
            return None
        if path == "Self":
            return self._receiver(thing)
        if path.startswith("="):
            return self._quietly(path[1:])
        if path.startswith("call:"):
            return _Thing("callable", path.removeprefix("call:"), thing.library)
        if path.endswith("()"):
            return self._quietly(path)
        return self._instance_of(path)

    def _instance_of(self, path: str) -> _Thing | None:
        return self._declared(self._quietly(path))

    def _declared(self, found: _Thing | None) -> _Thing | None:
        if found is None or found.kind != "class":
            return None
        return _Thing("instance", found.path, found.library, declared=True)

    def _receiver(self, thing: _Thing) -> _Thing | None:
        owner = thing.receiver or thing.path.rpartition(".")[0]
        if owner in self._definitions:
            return _Thing("instance", owner, None)
        return self._instance_of(owner)
