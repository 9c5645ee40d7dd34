"""The check of a sentence against the passage it cites."""

import pytest

from vademecum.answer.support import Passage, objection

PASSAGE = Passage(
    """The cache keeps up to 10000 entries in 30 MB. Set `cache_size` in `/etc/proxy.conf` to change
that; the Proxy must be restarted before it counts. Entries do not expire by themselves.

- `--no-verify` skips the checks of TLS.
- Version v1.6.3 cannot read the old format, but v1.6.4 can.""",
    "Proxy > The cache",
)

SUPPORTED = [
    "The cache keeps up to 10,000 entries in 30MB.",
    "The Proxy must be restarted before a change of `cache_size` counts.",
    "Entries of the cache do not expire by themselves.",
    "To skip the checks of TLS, set `--no-verify`.",
    "Version v1.6.3 cannot read the old format.",
    "Change `cache_size` in `/etc/proxy.conf`.",
]
UNSUPPORTED = {
    "a number": "The cache keeps up to 20000 entries in 30 MB.",
    "part of a number": "The cache keeps up to 1000 entries in 30 MB.",
    "a version": "Version v1.6.5 can read the old format.",
    "an identifier": "Set `cache_limit` in `/etc/proxy.conf` to change that.",
    "a path": "Set `cache_size` in `/etc/server.conf` to change that.",
    "a flag": "To skip the checks of TLS, set `--insecure`.",
    "a name": "The cache keeps up to 10000 entries in Redis.",
    "an acronym": "To skip the checks of SSH, set `--no-verify`.",
    "who acts": "Clients keep up to 10000 entries in the cache.",
    "another word in one place": "Version v1.6.3 cannot print the old format, but v1.6.4 can.",
    "other words": "The cache compresses all of its entries with a fast algorithm.",
    "denied": "The Proxy must not be restarted before it counts.",
    "affirmed": "Entries expire by themselves.",
    "an opposite": "The Proxy must be restarted after it counts.",
    "nothing": "It is so.",
}


@pytest.mark.parametrize("sentence", SUPPORTED)
def test_it_says_so(sentence: str) -> None:
    assert objection(sentence, PASSAGE) is None


@pytest.mark.parametrize("sentence", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_it_does_not_say_so(sentence: str) -> None:
    assert objection(sentence, PASSAGE)


def test_the_objection_names_what_is_missing() -> None:
    said = objection(UNSUPPORTED["an identifier"], PASSAGE)
    assert said == "the source does not mention cache_limit"


def test_words_from_all_over_a_passage_are_no_support() -> None:
    filler = " ".join(f"Paragraph {n} tells of other things." for n in "abcdefgh")
    far = Passage(f"The gate opens at dawn. {filler} Guards sleep in towers of stone.")
    assert objection("The gate opens at dawn.", far) is None
    assert objection("Guards open towers at dawn.", far)


@pytest.mark.parametrize("sentence", ["", "???", "。", "`", "\N{GRINNING FACE}", "a" * 5000])
def test_odd_sentences_are_not_supported(sentence: str) -> None:
    assert objection(sentence, PASSAGE)
    assert objection("The cache keeps entries.", Passage(sentence))
