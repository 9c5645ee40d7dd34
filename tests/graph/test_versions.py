"""The text that versions sort by, against the libraries that define the order."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from packaging.version import Version as PythonVersion
from semver import Version as Semver

from vademecum.graph.versions import order

numbers = st.integers(0, 1200)


@st.composite
def python_versions(draw: st.DrawFn) -> str:
    text = ".".join(map(str, draw(st.lists(numbers, min_size=1, max_size=4))))
    if draw(st.booleans()):
        text = f"{draw(st.integers(0, 3))}!{text}"
    if draw(st.booleans()):
        text += draw(st.sampled_from(["a", "b", "rc"])) + str(draw(numbers))
    if draw(st.booleans()):
        text += f".post{draw(numbers)}"
    if draw(st.booleans()):
        text += f".dev{draw(numbers)}"
    if draw(st.booleans()):
        text += "+" + ".".join(
            draw(st.lists(st.text("a1z0", min_size=1, max_size=3), min_size=1, max_size=3))
        )
    return text


@st.composite
def semvers(draw: st.DrawFn) -> str:
    text = ".".join(str(draw(numbers)) for _ in range(3))
    if draw(st.booleans()):
        part = st.one_of(numbers.map(str), st.sampled_from(["a", "alpha", "b-1", "-", "z9"]))
        text += "-" + ".".join(draw(st.lists(part, min_size=1, max_size=3)))
    return text


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(python_versions(), python_versions())
def test_python_versions_sort_as_packaging_sorts_them(one: str, other: str) -> None:
    first, second = order(one, "pypi"), order(other, "pypi")
    assert first is not None
    assert second is not None
    wanted = PythonVersion(one), PythonVersion(other)

    assert (first < second, first == second) == (wanted[0] < wanted[1], wanted[0] == wanted[1])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(semvers(), semvers())
def test_npm_versions_sort_as_semver_sorts_them(one: str, other: str) -> None:
    first, second = order(one, "npm"), order(other, "npm")
    assert first is not None
    assert second is not None
    compared = Semver.parse(one).compare(other)

    assert (first < second, first == second) == (compared < 0, compared == 0)


def test_names_before_the_number_and_short_forms() -> None:
    assert order("Python 3.9", "pypi") < order("3.12", "pypi")  # type: ignore[operator]
    assert order("Node 20", "npm") == order("v20.0.0", "npm")
    assert order("3.12", "pypi") == order("3.12.0", "pypi")


def test_what_is_no_version_has_no_order() -> None:
    assert [order(text, "pypi") for text in ("", "latest", "3.x", "1" * 120)] == [None] * 4
    assert [order(text, "npm") for text in ("", "^1.2.3", "01.2.3", "x")] == [None] * 4
