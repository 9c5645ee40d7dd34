"""What deprecation notices say: since and until which version, and what to use instead."""

import re

_VERSION = r"v?(\d+(?:\.\d+)*(?:\.?(?:a|b|rc|dev|post)\d*)?)"
_SINCE = re.compile(
    r"deprecated\s+(?:since|in|as of|from|with)\s+(?:version\s+|release\s+)?"
    rf"(?:[A-Za-z][\w.-]*\s+)?{_VERSION}"
    rf"|(?:since|as of)\s+(?:version\s+|release\s+)?(?:[A-Z][\w.-]*\s+)?{_VERSION}"
    rf"|^\s*(?:in\s+)?(?:version\s+)?{_VERSION}\s*:?\s.*deprecated",
    re.IGNORECASE | re.DOTALL,
)
_UNTIL = re.compile(
    r"(?:removed|removal|dropped|deleted|disabled|an error|an exception|unsupported|"
    r"not be supported|stop working|no longer (?:work|be supported|be available|accepted))"
    rf"[^.\n]{{0,40}}?\b(?:in|with|by|as of|from|until|since|for|after)\s+(?:the\s+)?"
    rf"(?:version\s+|release\s+|v(?:ersion)?\.?\s*)?(?:[A-Z][\w-]*\s+)?(?:version\s+)?{_VERSION}"
    rf"|\b(?:[A-Z]\w+\s+)?{_VERSION}\s+will\s+(?:remove|drop|no longer)"
    rf"|\bin\s+(?:version\s+|release\s+)?(?:[A-Z]\w+\s+)?{_VERSION},?\s+(?!and\b|but\b|or\b)\S+\s+will\s+(?:be\s+removed|raise|become)",
    re.IGNORECASE,
)
_NAME = (  # what stands before, the name with its call or subscript, what stands behind
    r"(`{0,2}(?::[\w:]+:)?`{0,2}['\"]?~?\.?)"
    r"([A-Za-z_][\w.]*(?:\([^()\n]{0,60}\)|\[[^\]\n]{0,40}\])?)"
    r"(['\"]?`{0,2}(?:\s+instead\b)?)"
)
_REPLACEMENT = re.compile(
    rf"(?:\b(?:please\s+)?use\s+(?:the\s+)?(?:new\s+|function\s+|method\s+|class\s+|parameter\s+|argument\s+)*{_NAME}"
    rf"|\breplaced\s+(?:by|with)\s+(?:the\s+)?{_NAME}|\bin\s+favou?r\s+of\s+(?:the\s+)?(?:new\s+)?{_NAME}"
    rf"|\brenamed\s+(?:to|as)\s+{_NAME}|\bmoved\s+to\s+{_NAME}|\bswitch\s+to\s+{_NAME}|\binstead\s+use\s+{_NAME}"
    rf"|\bprefer\s+{_NAME}|\bmigrate\s+to\s+{_NAME}|\bcall\s+{_NAME}\s+instead)",
    re.IGNORECASE,
)
_PARAMETER = re.compile(
    r"\b(?:the\s+)?(?:parameter|argument|keyword|option|kwarg|param)s?(?:\s+argument)?\s+[`'\"*]{1,2}(\w+)[`'\"*]"
    r"|[`'\"*]{1,2}(\w+)[`'\"*]{1,2}\s+(?:keyword\s+)?(?:parameter|argument|keyword|option|kwarg|param)\b",
    re.IGNORECASE,
)
# Words that follow "use" without naming a thing to use.
_NO_NAME = frozenset(
    """a an the this that it its of is are was in on at to for by with instead only your our
    their any another other one some more new case not and or if when from as being be version
    you explicit either both these those something different direct directly""".split()  # noqa: SIM905
)
_REMOVED_IN = re.compile(
    r"RemovedIn([A-Za-z]*?)_?v?(\d+(?:_\d+)*)(?:Pending|Deprecation)?(?:Warning)?$"
)
_SINCE_CLASS = re.compile(r"DeprecatedSince(\d+)$")
_CATEGORY = re.compile(r"Deprecat|RemovedIn|FutureWarning|^Pandas\d+(Pending)?Warning$")


def since_in(text: str) -> str | None:
    """The version that a notice says it holds from."""
    return _first(_SINCE, text)


def until_in(text: str) -> str | None:
    """The version that a notice says will be the first without it."""
    return _first(_UNTIL, text)


def replacement_in(text: str) -> str | None:
    """The name that a notice says to use instead."""
    for match in _REPLACEMENT.finditer(text):
        groups = match.groups()
        before, name, after = next(
            groups[n : n + 3] for n in range(0, len(groups), 3) if groups[n + 1]
        )
        name = name.rstrip(".")
        if name.lower() in _NO_NAME:
            continue
        # A bare word is a name only where the sentence or its form says so.
        if before or after.strip() or re.search(r"[._(]|[a-z][A-Z]", name):
            return str(name)
    return None


def parameter_in(text: str) -> str | None:
    """The parameter that a notice is about, where it is about one."""
    return _first(_PARAMETER, text)


def category_says(name: str) -> tuple[bool, str | None, str | None]:
    """Of the class of a warning: whether it is of deprecation, and since and until when."""
    last = name.rpartition(".")[2]
    if not _CATEGORY.search(last):
        return False, None, None
    if match := _REMOVED_IN.search(last):
        return True, None, _digits(match[2])
    if match := _SINCE_CLASS.search(last):
        return True, f"{match[1][0]}.{match[1][1:]}".rstrip("."), None
    return True, None, None


def sentence(text: str, limit: int = 400) -> str:
    """A notice on one line, at most so many characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1].rstrip()}…"


def _digits(text: str) -> str:
    """`60` is 6.0, as Django and others name their warnings; `3_1` is 3.1, `9` is 9."""
    if "_" in text:
        return text.replace("_", ".")
    return f"{text[:-1]}.{text[-1]}" if len(text) > 1 else text


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return next((group for group in match.groups() if group), None) if match else None
