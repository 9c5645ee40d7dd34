"""Addresses: what must hold for every one of them."""

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vademecum.cache.address import normalise
from vademecum.errors import FetchRefused

NAMES = st.text("abcXYZ0189-._~", min_size=1, max_size=8)
SEGMENTS = st.lists(st.text("abcXYZ09-._~% äß/", max_size=6), max_size=4)
PAIRS = st.lists(st.tuples(NAMES, st.text(max_size=6)), max_size=4)


def _url(segments: list[str], pairs: list[tuple[str, str]]) -> str:
    from urllib.parse import quote, urlencode

    path = "/" + "/".join(quote(segment, safe="") for segment in segments)
    return f"https://example.com{path}" + (f"?{urlencode(pairs)}" if pairs else "")


@given(SEGMENTS, PAIRS)
def test_normal_stays_normal(segments: list[str], pairs: list[tuple[str, str]]) -> None:
    once = normalise(_url(segments, pairs))
    assert normalise(once) == once
    assert not urlsplit(once).fragment


@given(SEGMENTS, PAIRS, st.randoms(use_true_random=False))
def test_order_case_port_fragment_and_tracking_do_not_matter(
    segments: list[str], pairs: list[tuple[str, str]], random: object
) -> None:
    shuffled = [*pairs, ("utm_source", "x"), ("fbclid", "y")]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = _url(segments, shuffled).replace("https://example.com", "HTTPS://Example.COM:443")
    assert normalise(f"{other}#part") == normalise(_url(segments, pairs))


@given(SEGMENTS, SEGMENTS, PAIRS)
def test_different_paths_stay_different(
    first: list[str], second: list[str], pairs: list[tuple[str, str]]
) -> None:
    dots = {".", ".."}
    if first != second and not dots & {*first, *second} and (first or [""]) != (second or [""]):
        assert normalise(_url(first, pairs)) != normalise(_url(second, pairs))


@given(st.text(max_size=40))
def test_anything_else_is_refused_and_nothing_breaks(text: str) -> None:
    try:
        found = normalise(text)
    except FetchRefused:
        return
    assert found.startswith(("http://", "https://"))


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("HTTP://Example.com:80", "http://example.com/"),
        ("https://example.com/a/../b/./c", "https://example.com/b/c"),
        ("https://example.com/%7Ea?b=2&a=1#x", "https://example.com/~a?a=1&b=2"),
        ("https://example.com/a%2Fb", "https://example.com/a%2Fb"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ],
)
def test_examples(url: str, normal: str) -> None:
    assert normalise(url) == normal
