"""The language of a text, told offline from its letters."""

import re

MIN_LETTERS = 40
"""Less tells no language."""
READ = 4000
"""Characters that are looked at."""

_NOT_PROSE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`|https?://\S+", re.M | re.S)


def language(text: str) -> str:
    """ISO 639-1 code; empty where there is too little text to tell."""
    prose = _NOT_PROSE.sub(" ", text[: READ * 4])[:READ]
    if sum(character.isalpha() for character in prose) < MIN_LETTERS:
        return ""
    from py3langid import classify

    return str(classify(prose)[0])
