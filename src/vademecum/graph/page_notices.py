"""What a page says of the deprecation of APIs: a notice beside the name of one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from vademecum.graph import deprecation
from vademecum.graph.nodes import APIReference

_NOTICE = re.compile(r"\bdeprecated\b|\bwill be removed\b|\bwas removed\b|\bremoved in\b", re.I)
_DEFINITION = re.compile(
    r"^(?:#{1,6}\s|(?:async\s+|class\s+|def\s+)?[\w.]+\([^\n]*\)\s*(?:->.*)?¶?$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageNotice:
    """An API that a page calls deprecated; since and until are versions where it names them."""

    api: APIReference
    since: str | None
    until: str | None
    replacement: str | None
    sentence: str


def notices(text: str, apis: Sequence[APIReference]) -> list[PageNotice]:
    """The first notice of each API: beside its name, or under its heading."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]
    names = [re.compile(rf"(?<![\w.]){_either(api)}(?!\w)") for api in apis]
    found = []
    for api, named in zip(apis, names, strict=True):
        last = api.function_name.rpartition(".")[2]
        own = False  # whether we stand under a heading or signature of this API
        for paragraph in paragraphs:
            head = paragraph.splitlines()[0]
            if _DEFINITION.match(head.replace("`", "").replace("\\", "")):
                own = bool(re.search(rf"(?<!\w){re.escape(last)}(?!\w)", head))
            said = _NOTICE.search(paragraph)
            if said is None or not (own or named.search(paragraph)):
                continue
            before = paragraph[: said.start()]
            if own and any(each.search(before) for each in names if each is not named):
                continue  # it compares itself with another
            if not own and _about_another(paragraph, named):
                continue
            found.append(
                PageNotice(
                    api=api,
                    since=deprecation.since_in(paragraph),
                    until=deprecation.until_in(paragraph),
                    replacement=deprecation.replacement_in(paragraph),
                    sentence=deprecation.sentence(paragraph),
                )
            )
            break
    return found


def _either(api: APIReference) -> str:
    """Its qualified name, or what it is called within its namespace where that is telling."""
    names = [re.escape(api.name)]
    if "." in api.function_name or len(api.function_name) > 3:
        names.append(re.escape(api.function_name))
    return f"(?:{'|'.join(names)})"


def _about_another(paragraph: str, named: re.Pattern[str]) -> bool:
    """Whether the API is only what is to be used instead."""
    instead = deprecation.replacement_in(paragraph)
    return instead is not None and bool(named.fullmatch(instead.removesuffix("()")))
