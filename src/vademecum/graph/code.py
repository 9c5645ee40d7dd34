"""What is read of one file of code: its functions, what it defines, and where it uses what.

An *expression* says where a value is from, as far as the file shows it: `httpx.Client().get` is
the method `get` of what calling `httpx.Client` gives; `{}` stands for an instance that is only
declared, and `|` stands behind what a variable was given.
`graph.resolve` finds what it means.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

UseKind = Literal["import", "call", "use"]
Language = Literal["python", "javascript", "typescript"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """A place where a file imports, calls or names something."""

    kind: UseKind
    target: str
    """An expression."""
    line: int
    column: int
    context: str
    """The line of code, without its margin."""
    function: str
    """The function around it, `Class.method`, or '' at the top of the file."""
    keywords: tuple[str, ...] = ()
    positional: int = 0
    """How many arguments are given by position."""
    guarded: bool = False
    """Whether it is inside a `try` that expects it to fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    line: int
    end_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a file gives a name: a class, a function, or a value."""

    kind: Literal["class", "function", "value"]
    value: str | None = None
    """The expression of the value, or of what calling the function gives."""
    yields: str | None = None
    """What entering the result gives, of a context manager written as a generator."""
    decorated: str | None = None
    """The expression of what its decorator makes of a function."""
    bases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile:
    path: str
    """Relative to the project, with forward slashes."""
    language: Language
    module: str
    """As other files import it."""
    lines: int
    functions: tuple[Function, ...] = ()
    uses: tuple[Use, ...] = ()
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    """By full name, `package.module.Class.method`."""
    error: str | None = None
    """Why it could not be read; then all the rest is empty."""
