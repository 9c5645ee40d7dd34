"""Which encoding undeclared bytes are in, told by the letters that would come out.

General detectors like to see Hungarian in French and Greek in Russian. A document read wrongly
is worse than one that is reported, so only a decoding whose letters are those of a language counts.
"""

import re

from vademecum.ingest.read.content import word_set

_TYPOGRAPHY = frozenset("’‘“”„–—…•«»‹›°©®™€£§·´×±²³½¼¾µ¿¡ªº¶\xa0\xad")
_CENTRAL = (
    "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ",
)  # fmt: skip
_LATIN = {
    "cp1252": ("àâæçèéêëîïôœùûüÿ", "äöüßé", "áéíóúñü", "àèéìíîòóùú", "ãáâàçéêíõóôúü",
               "åäöæøéü", "áæéíðóöþúý", "éëïóöüèê"),
    "cp1250": _CENTRAL,
    "iso8859-2": _CENTRAL,
    "cp1254": ("çğıİöşüâî",),
    "cp1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
}  # fmt: skip
"""The letters beyond ASCII of the languages that each encoding was made for."""

_FREQUENT = {
    "cp1251": "оеаинтсрвлкмдпуяі",
    "koi8-r": "оеаинтсрвлкмдпуя",
    "cp866": "оеаинтсрвлкмдпуя",
    "iso8859-5": "оеаинтсрвлкмдпуя",
    "cp1253": "αοιετσνηυρπκμλςάόίέή",
    "iso8859-7": "αοιετσνηυρπκμλςάόίέή",
    "cp1255": "יוהלרבתמאשנ",
    "cp1256": "ايلمنوتربةعدس",
}
"""The commonest letters of other scripts; lower case, so a decoding that swaps case loses."""

_EAST_ASIAN = sorted(word_set("cp932 euc_jp gb18030 big5 cp949"))
_ASCII = bytes(range(128))
_ASCII_LETTERS = bytes(byte for byte in _ASCII if chr(byte).isalpha())
_LETTER_SHARE = 0.97
_FREQUENT_SHARE = 0.6
_MAX_CHAOS = 0.1
_HALF_WIDTH = re.compile("[\uff61-\uff9f]")
# A sign or a capital in the middle of a word is a letter read wrongly.
_WRONG_IN_WORD = re.compile("(?<=[a-z])[¡-¿×÷†‡‰„À-ÖØ-ÞŒŠŸŽĄĆĘŁŃŚŹŻČĎĚŇŘŤŮ](?=[a-z])")


def guess(data: bytes) -> str | None:
    """The encoding of a text that is not UTF-8, None where it cannot be told."""
    high = len(data.translate(None, _ASCII))
    letters = len(data) - len(data.translate(None, _ASCII_LETTERS))
    if letters >= high:
        return _latin(data, high / (letters + high))
    return _other_script(data) or _east_asian(data)


def _latin(data: bytes, density: float) -> str | None:
    for encoding, alphabets in _LATIN.items():
        text = _decoded(data, encoding)
        if text is None:
            continue
        beyond = [char for char in text if char > "\x7f" and char not in _TYPOGRAPHY]
        if len(_WRONG_IN_WORD.findall(text)) > (1 - _LETTER_SHARE) * len(beyond):
            continue
        if any(_share(beyond, alphabet + alphabet.upper()) for alphabet in alphabets):
            return encoding
        # English with names from everywhere.
        if encoding == "cp1252" and density < 0.08 and _share(beyond, _ANY_WESTERN):
            return encoding
    return None


_ANY_WESTERN = "".join(_LATIN["cp1252"]) + "".join(_LATIN["cp1252"]).upper()


def _share(chars: list[str], alphabet: str) -> bool:
    return sum(char in alphabet for char in chars) >= _LETTER_SHARE * len(chars)


def _other_script(data: bytes) -> str | None:
    best, found = _FREQUENT_SHARE, None
    for encoding, frequent in _FREQUENT.items():
        text = _decoded(data, encoding)
        beyond = [char for char in text or "" if char > "\x7f" and char not in _TYPOGRAPHY]
        share = sum(char in frequent for char in beyond) / len(beyond) if beyond else 0.0
        if share > best:
            best, found = share, encoding
    return found


def _east_asian(data: bytes) -> str | None:
    import charset_normalizer

    match = charset_normalizer.from_bytes(data, cp_isolation=_EAST_ASIAN).best()
    if match is None or match.chaos > _MAX_CHAOS:
        return None
    text = str(match)
    if len(_HALF_WIDTH.findall(text)) > 0.1 * len(text):
        return None
    return str(match.encoding)


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None
