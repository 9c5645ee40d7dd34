"""Remembered words are tokenised as the published tokenizer does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Reference

from vademecum.inference import wordpiece
from vademecum.inference.weights import find_weights
from vademecum.inference.wordpiece import LocalTokenizer

PUBLISHED = Reference().tokenizer
OURS = LocalTokenizer(find_weights())

# White space that the model keeps, and such that it drops; what is dropped within a word; accents
# that stand alone, and characters that become several.
ODD = (
    "\t\n\r\x0b\x0c\x1c\x85\xa0\u1680\u180e\u2009\u2028\u3000"
    "\u00ad\u200b\u0301\ufeff\x00\ufffdé日한Σς🙂ﬁİ"
)
texts = st.text(
    alphabet=st.one_of(st.sampled_from("aBc Z0 _-#.(" + ODD), st.characters(codec="utf-8"))
)


@settings(deadline=None)
@given(texts)
def test_any_text(text: str) -> None:
    expected = PUBLISHED.encode(text, add_special_tokens=False)
    if "[" not in text:  # which may begin what it takes for a special token
        assert OURS.ids([text]) == [expected.ids]
        assert OURS.starts(text) == [start for start, _ in expected.offsets]
        assert OURS.counts([text]) == [len(expected.ids)]


@settings(deadline=None)
@given(st.lists(texts.filter(lambda text: "[" not in text)))
def test_with_words_forgotten_on_the_way(several: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordpiece, "REMEMBERED", 3)
        for _ in range(2):
            assert OURS.ids(several) == [
                PUBLISHED.encode(text, add_special_tokens=False).ids for text in several
            ]
