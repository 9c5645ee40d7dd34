import ast
from textwrap import dedent

import pytest

from vademecum.graph import notices
from vademecum.graph.api import Deprecation
from vademecum.graph.deprecation import category_says, replacement_in, since_in, until_in


def said(source: str) -> list[Deprecation]:
    """What is said against the last definition of a source."""
    tree = ast.parse(dedent(source))
    constants = notices.constants_of(tree)
    node = tree.body[-1]
    if isinstance(node, ast.ClassDef):
        return notices.of_class(node, constants)
    assert isinstance(node, ast.FunctionDef)
    return notices.of_function(node, constants)


def facts(source: str) -> list[tuple[str, str | None, str | None, str | None, bool]]:
    return [(d.subject, d.since, d.until, d.replacement, d.conditional) for d in said(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('@deprecated("Use `g` instead.")\ndef f(): ...', ("", None, None, "g", False)),
        (
            '@deprecated(version="1.2", reason="Use g() instead")\ndef f(): ...',
            ("", "1.2", None, "g()", False),
        ),
        (
            '@_api.deprecated("3.8", alternative="other", removal="3.10")\ndef f(): ...',
            ("", "3.8", "3.10", "other", False),
        ),
        (
            '@deprecate_kwarg(old_arg_name="a", new_arg_name="b")\ndef f(a, b): ...',
            ("a", None, None, "b", False),
        ),
        (
            '@util.deprecated_params(x=("1.4", "The x is gone in 2.0."))\ndef f(x): ...',
            ("x", "1.4", None, None, False),
        ),
        (
            'def f():\n    """Do.\n\n    .. deprecated:: 2.1\n'
            '       Use :func:`g`. Will be removed in 3.0.\n    """',
            ("", "2.1", "3.0", "g", False),
        ),
        (
            'def f(x):\n    """Do.\n\n    :param x: It.\n\n'
            '        .. deprecated:: 2.1\n           Unused.\n    """',
            ("x", "2.1", None, None, False),
        ),
        ('def f():\n    """Deprecated: use `g`."""', ("", None, None, "g", False)),
        (
            "import warnings\ndef f():\n"
            "    warnings.warn('f is deprecated since 1.0', DeprecationWarning, stacklevel=2)",
            ("", "1.0", None, None, False),
        ),
        (
            "def f(x=None):\n    if x is not None:\n"
            "        warnings.warn('x is deprecated', DeprecationWarning)",
            ("x", None, None, None, False),
        ),
        (
            "def f(**kw):\n    if 'old' in kw:\n"
            "        warnings.warn(\"'old' is deprecated\", DeprecationWarning)",
            ("old", None, None, None, False),
        ),
        (
            "def f():\n    if state():\n"
            "        warnings.warn('f is deprecated here', FutureWarning)",
            ("", None, None, None, True),
        ),
        (
            "def f():\n    warnings.warn('f is old', RemovedInDjango60Warning)",
            ("", None, "6.0", None, False),
        ),
        (
            "TEXT = 'f is deprecated. '\n"
            "def f():\n    warnings.warn(TEXT + 'Use g().', DeprecationWarning)",
            ("", None, None, "g()", False),
        ),
        (
            "class A:\n    def __init__(self):\n"
            "        warnings.warn('A is deprecated', DeprecationWarning)",
            ("", None, None, None, False),
        ),
        (
            "def f():\n    warnings._deprecated('m.f', remove=(3, 14))",
            ("", None, "3.14", None, False),
        ),
    ],
)
def test_a_notice_is_found(
    source: str, expected: tuple[str, str | None, str | None, str | None, bool]
) -> None:
    assert facts(source) == [expected]


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    warnings.warn('slow', RuntimeWarning)",
        "def f():\n    def g():\n        warnings.warn('x', DeprecationWarning)\n    return g",
        "def f():\n    return 1\n    warnings.warn('f is deprecated', DeprecationWarning)",
        "def f():\n    warnings.warn('NaN was met', FutureWarning)",
        'def f():\n    """List all deprecated functions."""',
        "@cached\ndef f(): ...",
    ],
)
def test_no_notice_where_there_is_none(source: str) -> None:
    assert said(source) == []


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        ("Old.\n\n.. deprecated:: 2.3\n   Use `new`.", ["2.3"]),
        ("=====\nOld\n=====\n\n.. deprecated:: 2.3\n   Use `new`.", ["2.3"]),
        ("Types.\n\nBase\n----\n\n.. deprecated:: 2.3\n   The `Base` helper goes.", []),
        ("=====\nTypes\n=====\n\nSome.\n\nBase\n~~~~\n.. deprecated:: 2.3\n   Goes.", []),
    ],
)
def test_what_stands_under_a_heading_of_a_module_is_not_about_the_module(
    docstring: str, expected: list[str]
) -> None:
    tree = ast.parse(f'"""{docstring}\n"""')
    assert [one.since for one in notices.of_module(tree, {})] == expected


def test_a_class_is_deprecated_where_all_ways_to_make_it_are() -> None:
    one = """
        class Language:
            @overload
            @deprecated("int argument support is deprecated")
            def __init__(self, ptr: int) -> None: ...
            @overload
            {}
            def __init__(self, ptr: object) -> None: ...
    """
    assert facts(one.format("")) == []
    assert facts(one.format('@deprecated("Use `g` instead.")')) != []


def test_names_that_a_module_gives_with_a_warning() -> None:
    tree = ast.parse(
        dedent(
            """
            def __getattr__(name):
                if name in {"Old", "Older"}:
                    warnings.warn(f"{name} is deprecated, use New", DeprecationWarning)
                    return 1
                raise AttributeError(name)
            """
        )
    )
    found = notices.of_getattr(tree, {})
    assert sorted(found) == ["Old", "Older"]
    assert not found["Old"].conditional


@pytest.mark.parametrize(
    ("text", "since", "until", "instead"),
    [
        ("Deprecated since version 2.0, use `g` instead.", "2.0", None, "g"),
        ("x is deprecated and will be removed in Click 9.0.", None, "9.0", None),
        ("This will be removed in version 3.1. Please use :class:`~a.b.C`.", None, "3.1", "a.b.C"),
        ("It is deprecated in favor of `model_dump`.", None, None, "model_dump"),
        ("Renamed to new_name in 4.2.", None, None, "new_name"),
        ("Use feature detection.", None, None, None),
        ("You should use this only in tests.", None, None, None),
        ("deprecated as of 1.5", "1.5", None, None),
        ("It was deprecated in 1.2 and will be removed in 2.0", "1.2", "2.0", None),
        ("In version 3.0, it will raise an error.", None, "3.0", None),
    ],
)
def test_what_a_sentence_says(
    text: str, since: str | None, until: str | None, instead: str | None
) -> None:
    assert (since_in(text), until_in(text), replacement_in(text)) == (since, until, instead)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("DeprecationWarning", (True, None, None)),
        ("exc.RemovedIn20Warning", (True, None, "2.0")),
        ("RemovedInSphinx100Warning", (True, None, "10.0")),
        ("PydanticDeprecatedSince211", (True, "2.11", None)),
        ("UserWarning", (False, None, None)),
    ],
)
def test_what_a_category_says(name: str, says: tuple[bool, str | None, str | None]) -> None:
    assert category_says(name) == says
