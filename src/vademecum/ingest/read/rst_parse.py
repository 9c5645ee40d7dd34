"""docutils, told to read one text and nothing else: no files, no raw markup, no warnings."""

import copy
import re
import threading
from functools import cache
from typing import Any, ClassVar, cast

from docutils import frontend, nodes
from docutils.parsers.rst import Directive, Parser, directives, roles, states
from docutils.parsers.rst.languages import en as english
from docutils.readers.standalone import Reader
from docutils.utils import SystemMessage, new_document

from vademecum.ingest.read.content import word_set

_SETTINGS: dict[str, Any] = {
    "_disable_config": True,
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
    "input_encoding": "unicode",
    "line_length_limit": 1_000_000,
    "doctitle_xform": False,
    "sectsubtitle_xform": False,
    "docinfo_xform": True,
    "syntax_highlight": "none",
    "pep_references": False,
    "smart_quotes": False,
    "traceback": True,
    "id_prefix": "",
}
_LOCK = threading.Lock()  # docutils keeps its roles and directives in module globals
_DIRECTIVES: frozenset[str] = frozenset(vars(directives)["_directive_registry"])
_DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+?)::", re.M)
_ROLE = re.compile(r":([\w:+.-]+):`|`:([\w:+.-]+):(?=\W|$)", re.M)


def parse(text: str) -> nodes.document | None:
    """The doctree, None if docutils fails on the text."""
    with _LOCK:
        _learn(text)
        try:
            return _parsed(text)
        except (SystemMessage, RecursionError, ValueError, AttributeError, TypeError, LookupError):
            return None
        except AssertionError:
            return None


def _parsed(text: str) -> nodes.document:
    """As `docutils.core.publish_doctree`, which reads its settings anew for every text."""
    parser, reader = Parser(), cast("Any", Reader())
    document = new_document("<string>", copy.copy(_settings()))
    parser.parse(text, document)
    document.current_source = document.current_line = None
    document.transformer.populate_from_components((reader, parser))
    document.transformer.apply_transforms()
    return document


@cache
def _settings() -> Any:
    settings = frontend.get_default_settings(Parser, Reader)
    for name, value in _SETTINGS.items():
        setattr(settings, name, value)
    return settings


def _learn(text: str) -> None:
    """Teach docutils the directives and roles of this text that only Sphinx or a plugin knows."""
    for name in {match[1].lower() for match in _DIRECTIVE.finditer(text)}:
        if not _built_in_directive(name):
            directives.register_directive(name, _directive_for(name))
    for match in _ROLE.finditer(text):
        name = (match[1] or match[2]).lower()
        if not _built_in_role(name):
            roles.register_local_role(name, cast("Any", _role))


def _built_in_directive(name: str) -> bool:
    # docutils has poorer namesakes of some that Sphinx extends.
    return name in _DIRECTIVES and (name == "role" or _directive_for(name) is _Kept)


def _built_in_role(name: str) -> bool:
    return name in english.roles


class _AnyOption(dict[str, Any]):
    """An option specification that knows every option."""

    def __missing__(self, key: str) -> Any:
        return directives.unchanged

    def __bool__(self) -> bool:
        return True


class _Kept(Directive):
    """A directive of unknown meaning: its argument and content are text."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption()

    def argument(self) -> str:
        return "\n".join(self.arguments).strip()

    def parsed(self) -> list[nodes.Node]:
        box = nodes.container()
        box.document = self.state.document
        # Headings are allowed in some directives of Sphinx, so ask for titles as well.
        self.state.nested_parse(self.content, self.content_offset, box, match_titles=False)
        return list(box.children)

    def inline(self, text: str) -> list[nodes.Node]:
        found, messages = self.state.inline_text(text, self.lineno)
        return [*found, *messages]

    def run(self) -> list[nodes.Node]:
        before: list[nodes.Node] = []
        if self.argument():
            strong = nodes.strong("", "", *self.inline(" ".join(self.argument().split())))
            before.append(nodes.paragraph("", "", strong))
        return [*before, *self.parsed()]


class _Code(_Kept):
    def run(self) -> list[nodes.Node]:
        code = "\n".join(self.content)
        block = nodes.literal_block(code, code)
        block["language"] = self.argument().split("\n")[0].strip()
        caption = self.options.get("caption")
        if caption:
            return [nodes.paragraph("", "", nodes.strong("", str(caption))), block]
        return [block]


class _Dropped(_Kept):
    def run(self) -> list[nodes.Node]:
        return []


_STYLE = re.compile("[a-z][a-z0-9 _-]*")


class _Signature(_Kept):
    """Describes functions, options and the like: each line of the argument is one."""

    def run(self) -> list[nodes.Node]:
        if self.name == "class" and not self.content and _STYLE.fullmatch(self.argument()):
            return []  # docutils' own directive of this name
        described = nodes.container(classes=["vade-api"])
        for line in self.argument().replace("\\\n", " ").split("\n"):
            if line.strip():
                text = " ".join(line.split())
                described += nodes.inline(line, text, classes=["vade-signature"])
        described += self.parsed()
        return [described]


class _Version(_Kept):
    words: ClassVar[dict[str, str]] = {
        "versionadded": "New in version",
        "versionchanged": "Changed in version",
        "deprecated": "Deprecated since version",
        "deprecated-removed": "Deprecated since version",
        "versionremoved": "Removed in version",
    }

    def run(self) -> list[nodes.Node]:
        version, rest = [*self.argument().split(None, 1), "", ""][:2]
        first = nodes.paragraph("", f"{self.words[self.name.lower()]} {version}")
        parsed = self.parsed()
        if rest.strip():
            first += [nodes.Text(": "), *self.inline(" ".join(rest.split()))]
        elif parsed and isinstance(parsed[0], nodes.paragraph):
            first += [nodes.Text(": "), *parsed.pop(0).children]
        return [first, *parsed]


class _Contents(_Kept):
    """A table of contents in words: one item for each entry that has a title."""

    def run(self) -> list[nodes.Node]:
        listing = nodes.bullet_list()
        for line in self.content:
            entry = line.strip()
            if entry and not entry.startswith(":"):
                words = re.sub(r"\s*<[^>]*>$", "", entry)
                listing += nodes.list_item("", nodes.paragraph("", words))
        return [listing] if listing.children else []


class _SeeAlso(_Kept):
    def run(self) -> list[nodes.Node]:
        title = nodes.paragraph(
            "", "", nodes.strong("", self.name.replace("also", " also").capitalize())
        )
        if self.argument():
            title += [nodes.Text(" "), *self.inline(self.argument())]
        return [title, *self.parsed()]


_CODE = word_set(
    """
    code code-block sourcecode doctest testcode testoutput testsetup prompt ipython
    productionlist graphviz mermaid uml literalinclude jinja command-output program-output
    digraph asciinema
    """
)
_DROPPED = word_set(
    """
    highlight index module currentmodule tabularcolumns default-domain program sectionauthor
    codeauthor moduleauthor testcleanup cssclass rst-class py:module py:currentmodule js:module
    sidebar-links contributors highlightlang audit-event-table namespace
    """
)
_OBJECTS = word_set(
    """
    function method class attribute data exception staticmethod classmethod decorator
    decoratormethod coroutinefunction coroutinemethod abstractmethod awaitablefunction
    awaitablemethod property describe object option cmdoption envvar macro member type var
    struct enum enumerator union opcode pdbcommand setting templatetag templatefilter
    fieldlookup django-admin django-admin-option confval autoclass autofunction automethod
    autoexception automodule autoattribute autodata 2to3fixer directive role cfunction ctype
    cvar cmember cmacro signature
    """
)


def _directive_for(name: str) -> type[_Kept]:
    bare = name.rpartition(":")[2]
    if name in _DROPPED:
        return _Dropped
    if bare in _CODE or (bare in ("example", "run") and bare != name):  # as in `click:example`
        return _Code
    if bare in _OBJECTS:
        return _Signature
    if bare in _Version.words:
        return _Version
    if bare == "toctree":
        return _Contents
    if bare in ("seealso", "todo"):
        return _SeeAlso
    return _Kept


_CODE_ROLES = word_set(
    """
    func meth class mod attr data const exc obj file samp command program option envvar kbd
    keyword token macro type member var regexp makevar mimetype setting ttag tfilter lookup
    djadmin confval opcode source dir rst directive role cpp expr texpr pdbcmd ctype cfunc
    """
)
_TARGETED = re.compile(r"^(.*?)\s*(?<!\\)<([^<>]*)>$", re.S)


def _role(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: states.Inliner | None,
    options: Any = None,
    content: Any = None,
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """The words of a role that is not docutils' own; names of code are code."""
    bare = name.lower().rpartition(":")[2]
    targeted = _TARGETED.match(text)
    words = nodes.unescape(targeted[1] if targeted and targeted[1] else text).lstrip("~!")
    if bare not in _CODE_ROLES:
        return [nodes.inline(rawtext, words.replace("-->", "→"))], []
    if bare in ("func", "meth", "cfunc") and not targeted and not words.endswith(")"):
        words += "()"
    if bare in ("samp", "file"):
        words = words.replace("{", "").replace("}", "")
    return [nodes.literal(rawtext, words)], []
