"""What an installed package of npm offers, read from its declarations (`.d.ts`) by tree-sitter.

node_modules/NAME --types of package.json, or @types/NAME--> files --exports--> Library

Paths are `NAME.export` and `NAME.Class.member`; what `export =` gives is the package itself.
Nothing is run.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vademecum.graph import deprecation
from vademecum.graph.api import Api, Deprecation, Kind, Library, Parameter
from vademecum.graph.javascript_code import parser, string_of, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_FILES = 400
"""Declaration files of one package that are read."""
MAX_BYTES = 4 * 1024 * 1024
_KINDS: dict[str, Kind] = {
    "class_declaration": "class",
    "abstract_class_declaration": "class",
    "interface_declaration": "class",
    "function_signature": "function",
    "function_declaration": "function",
    "generator_function_declaration": "function",
    "type_alias_declaration": "attribute",
    "enum_declaration": "class",
    "internal_module": "module",
    "module": "module",
    "variable_declarator": "attribute",
    "method_signature": "function",
    "abstract_method_signature": "function",
    "method_definition": "function",
    "property_signature": "attribute",
    "public_field_definition": "attribute",
}
_BODIES = ("program", "class_body", "interface_body", "object_type", "statement_block")
_TAG = re.compile(r"^\s*\*?\s?@(\w+)\s*(.*)$")
_WORDS = re.compile(r"\{@link(?:code|plain)?\s+([^}|\s]+)[^}]*\}")


def find_package(root: Path, name: str) -> Path | None:
    """The folder of an installed package, in this folder or one above it."""
    for folder in (root, *root.parents):
        found = folder / "node_modules" / name
        if (found / "package.json").is_file():
            return found
        if (folder / ".git").exists():
            return None
    return None


def read_package(folder: Path, name: str) -> Library:
    """All that a package's declarations export. Raises OSError, ValueError where its description
    cannot be read."""
    described = _described(folder)
    reader = _Reader(folder, name)
    entry = _entry(folder, described)
    if entry is None:
        typed = folder.parents[name.count("/")] / "@types" / name.lstrip("@").replace("/", "__")
        if (typed / "package.json").is_file():
            reader.root = typed
            entry = _entry(typed, _described(typed))
    if entry is not None:
        reader.export(entry, name)
    return Library(
        name=name,
        version=str(described.get("version") or ""),
        ecosystem="npm",
        apis={name: Api(path=name, kind="module")} | reader.apis,
    )


def version_of(folder: Path | None) -> str:
    """As its description says; '' where it cannot be read."""
    try:
        return str(_described(folder).get("version") or "") if folder is not None else ""
    except (OSError, ValueError):
        return ""


def _described(folder: Path) -> dict[str, Any]:
    value = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"{folder / 'package.json'} is no description of a package")
    return value


def _entry(folder: Path, described: dict[str, Any]) -> Path | None:
    """The file of declarations that an import of the package gets."""
    named = [described.get("types"), described.get("typings")]
    exports = described.get("exports")
    if isinstance(exports, dict):
        named += _types(exports.get(".", exports))
    main = described.get("main")
    if isinstance(main, str):
        named.append(re.sub(r"\.[cm]?js$", "", main) + ".d.ts")
    for one in [*named, "index.d.ts"]:
        if isinstance(one, str):
            found = _file(folder, folder / one)
            if found is not None:
                return found
    return None


def _types(conditions: Any) -> list[Any]:
    if isinstance(conditions, dict):
        own = [conditions["types"]] if "types" in conditions else []
        return own + [one for value in conditions.values() for one in _types(value)]
    return []


def _file(root: Path, path: Path) -> Path | None:
    """A file of declarations, inside the package, by how it is imported."""
    base = re.sub(r"\.(?:d\.)?[cm]?[jt]s$", "", str(path))
    for one in (path, *(Path(base + end) for end in (".d.ts", ".d.mts", ".d.cts", "/index.d.ts"))):
        if one.name.endswith((".d.ts", ".d.mts", ".d.cts")) and one.is_file():
            return one if one.resolve().is_relative_to(root.resolve()) else None
    return None


class _Reader:
    """Follows exports through the files of one package."""

    def __init__(self, root: Path, package: str) -> None:
        self.root = root
        self.apis: dict[str, Api] = {}
        self._package = package
        self._files: dict[Path, _File | None] = {}
        self._exported: set[tuple[Path, str]] = set()

    def export(self, path: Path, prefix: str) -> None:
        """Make what a file exports known under a prefix."""
        if (path, prefix) in self._exported or (file := self._read(path)) is None:
            return
        self._exported.add((path, prefix))
        for exported, local in file.exports.items():
            if exported == "=":
                self._define(file, local, prefix)
            else:
                self._define(file, local, f"{prefix}.{exported}")
        for exported, source, name in file.passed:
            target = self._near(path, source)
            if target is None:
                continue
            if name == "*" and exported:
                inside = f"{prefix}.{exported}"
                self.apis.setdefault(inside, Api(path=inside, kind="module"))
                self.export(target, inside)
            elif name == "*":
                self.export(target, prefix)
            elif (other := self._read(target)) is not None:
                self._pass(target, other, name, f"{prefix}.{exported}")

    def _pass(self, path: Path, file: "_File", name: str, public: str, depth: int = 0) -> None:
        """One name of another file, which may itself have it from another one."""
        if name in file.exports:
            self._define(file, file.exports[name], public)
            return
        for exported, source, inner in file.passed:
            target = self._near(path, source)
            if depth > 10 or target is None or (other := self._read(target)) is None:
                continue
            if exported == name and inner != "*":
                self._pass(target, other, inner, public, depth + 1)
            elif inner == "*" and not exported:
                self._pass(target, other, name, public, depth + 1)

    def _define(self, file: "_File", local: str, public: str) -> None:
        for end, nodes in file.declared.get(local, {}).items():
            path = f"{public}{end}"
            if path not in self.apis:
                self.apis[path] = _api(path, nodes, self._name_of(file.path), self._package)
        if local in file.imported:
            source, name = file.imported[local]
            target = self._near(file.path, source)
            if target is not None and (other := self._read(target)) is not None:
                self._pass(target, other, name, public)

    def _name_of(self, path: Path) -> str:
        return f"{self._package}/{path.relative_to(self.root.resolve()).as_posix()}"

    def _near(self, path: Path, source: str) -> Path | None:
        if not source.startswith("."):
            return None
        return _file(self.root, (path.parent / source))

    def _read(self, path: Path) -> "_File | None":
        path = path.resolve()
        if path not in self._files:
            self._files[path] = None
            if len(self._files) <= MAX_FILES and path.stat().st_size <= MAX_BYTES:
                self._files[path] = _File(path)
        return self._files[path]


class _File:
    """The declarations of a file, by the names they have in it, and what it exports."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.declared: dict[str, dict[str, list[Node]]] = {}
        """Local name to its declarations: '' is its own, `.member` those of its members."""
        self.exports: dict[str, str] = {}
        """Public to local name; `=` is the whole module."""
        self.passed: list[tuple[str, str, str]] = []
        """Public name ('' for all), the file it is from, its name there (`*` for all)."""
        self.imported: dict[str, tuple[str, str]] = {}
        tree = parser("typescript").parse(path.read_bytes())
        for node in tree.root_node.named_children:
            self._statement(node)

    def _statement(self, node: "Node") -> None:
        if node.type == "ambient_declaration":
            for child in node.named_children:
                self._declare(child)
        elif node.type == "import_statement":
            self._import(node)
        elif node.type == "export_statement":
            self._export(node)
        else:
            self._declare(node)

    def _declare(self, node: "Node", prefix: str = "") -> list[str]:
        """Note a declaration and its members; the names that it declares."""
        if node.type in ("lexical_declaration", "variable_declaration"):
            return [name for one in node.named_children for name in self._declare(one, prefix)]
        if node.type == "expression_statement" and node.named_children:  # `namespace x {}`
            return self._declare(node.named_children[0], prefix)
        name = node.child_by_field_name("name")
        if node.type not in _KINDS or name is None or name.type == "string":
            return []
        local = text_of(name)
        top, _, inside = f"{prefix}.{local}".lstrip(".").partition(".")
        self.declared.setdefault(top, {}).setdefault(f".{inside}" if inside else "", []).append(
            node
        )
        body = node.child_by_field_name("body")
        for member in body.named_children if body is not None else ():
            if node.type in ("internal_module", "module"):
                inner = member.child_by_field_name("declaration") or member
                self._declare(inner, f"{prefix}.{local}")
            elif member.type in _KINDS:
                self._declare(member, f"{prefix}.{local}")
        return [local]

    def _import(self, node: "Node") -> None:
        source = string_of(node.child_by_field_name("source"))
        for part in _descendants(node, "import_specifier"):
            name, alias = part.child_by_field_name("name"), part.child_by_field_name("alias")
            if source and name is not None:
                self.imported[text_of(alias or name)] = (source, text_of(name))

    def _export(self, node: "Node") -> None:
        source = string_of(node.child_by_field_name("source"))
        declaration = node.child_by_field_name("declaration")
        words = {child.type for child in node.children}
        if declaration is not None:
            inner = (
                declaration.named_children
                if declaration.type == "ambient_declaration"
                else [declaration]
            )
            for one in inner:
                for declared in self._declare(one):
                    self.exports["default" if "default" in words else declared] = declared
        elif source and "*" in words:
            self.passed.append(("", source, "*"))
        elif source and (spaces := list(_descendants(node, "namespace_export"))):
            self.passed.append((text_of(spaces[0].named_children[0]), source, "*"))
        elif given := node.child_by_field_name("value"):
            self.exports["default"] = text_of(given)
        elif "=" in words:
            self.exports["="] = text_of(node.named_children[-1])
        for part in _descendants(node, "export_specifier"):
            name, alias = part.child_by_field_name("name"), part.child_by_field_name("alias")
            if name is None:
                continue
            if source:
                self.passed.append((text_of(alias or name), source, text_of(name)))
            else:
                self.exports[text_of(alias or name)] = text_of(name)


def _api(path: str, nodes: "list[Node]", file: str, package: str) -> Api:
    node = nodes[0]
    said = [_deprecation(one, file) for one in nodes]
    text = _comment(node)
    kind = _KINDS[node.type]
    parameters = node.child_by_field_name("parameters")
    returns = node.child_by_field_name("return_type") or node.child_by_field_name("type")
    signature = " ".join(text_of(node).split()) if kind == "function" else ""
    return Api(
        path=path,
        kind=kind,
        signature=signature[:500],
        parameters=tuple(_parameters(parameters)) if parameters is not None else (),
        returns=text_of(returns).lstrip(": ") if returns is not None else None,
        returns_path=_named(returns, package),
        bases=tuple(_bases(node, package)),
        description=_description(text),
        examples=tuple(_tags(text, "example")),
        version_added=next(iter(_tags(text, "since")), None),
        # Of overloads that are not all deprecated a call does not show which is meant.
        deprecations=tuple(one for one in said[:1] if one is not None) if all(said) else (),
        file=file,
        line=node.start_point[0] + 1,
    )


def _named(annotation: "Node | None", package: str) -> str | None:
    """The path of the one type that an annotation names."""
    if annotation is None or not annotation.named_children:
        return None
    kind = annotation.named_children[0]
    if kind.type == "generic_type":
        kind = kind.named_children[0]
    if kind.type == "this_type":
        return None
    return f"{package}.{text_of(kind)}" if kind.type == "type_identifier" else None


def _bases(node: "Node", package: str) -> Iterator[str]:
    for child in node.named_children:
        if child.type in ("class_heritage", "extends_type_clause", "extends_clause"):
            yield from _bases(child, package)
        elif node.type not in _KINDS and child.type in ("identifier", "type_identifier"):
            yield f"{package}.{text_of(child)}"
        elif node.type not in _KINDS and child.type == "generic_type":
            yield f"{package}.{text_of(child.named_children[0])}"


def _deprecation(node: "Node", file: str) -> Deprecation | None:
    text = _comment(node)
    said = list(_tags(text, "deprecated", empty=True))
    if not said:
        return None
    words = _WORDS.sub(r"`\1`", said[0])
    sentence = deprecation.sentence(f"@deprecated {words}".strip())
    return Deprecation(
        since=deprecation.since_in(f"deprecated {words}"),
        until=deprecation.until_in(words),
        replacement=deprecation.replacement_in(words),
        sentence=sentence,
        evidence="docstring",
        file=file,
        line=node.start_point[0] + 1,
    )


def _comment(node: "Node") -> str:
    """The documentation comment before a declaration, without its marks."""
    one: Node | None = node
    while one is not None and one.type not in _BODIES:
        before = one.prev_named_sibling
        if before is not None:
            text = text_of(before) if before.type == "comment" else ""
            return text[3:-2] if text.startswith("/**") else ""
        one = one.parent
    return ""


def _tags(text: str, name: str, *, empty: bool = False) -> Iterator[str]:
    """What stands behind each tag of a name."""
    found: list[str] | None = None
    for line in [*text.splitlines(), " * @end"]:
        tag = _TAG.match(line)
        if tag is not None:
            if found is not None and (empty or " ".join(found).strip()):
                yield "\n".join(found).strip() if name == "example" else " ".join(found).strip()
            found = [tag[2]] if tag[1] == name else None
        elif found is not None:
            found.append(re.sub(r"^\s*\*? ?", "", line))


def _description(text: str) -> str:
    lines = [re.sub(r"^\s*\*? ?", "", line) for line in text.splitlines()]
    kept = []
    for line in lines:
        if line.startswith("@"):
            break
        kept.append(line)
    return "\n".join(kept).strip()


def _parameters(node: "Node") -> Iterator[Parameter]:
    for one in node.named_children:
        pattern, annotation = (
            one.child_by_field_name("pattern"),
            one.child_by_field_name("type"),
        )
        if pattern is not None:
            yield Parameter(
                name=text_of(pattern),
                kind="positional only",
                annotation=text_of(annotation).lstrip(": ") if annotation is not None else None,
            )


def _descendants(node: "Node", kind: str) -> Iterator["Node"]:
    for child in node.named_children:
        if child.type == kind:
            yield child
        elif child.type in ("import_clause", "named_imports", "export_clause"):
            yield from _descendants(child, kind)
