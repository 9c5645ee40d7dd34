"""Code examples and best practices that stand in a page, each with the place and words it rests on.

Rules, no model: an example is a block of code; a practice is a sentence that gives advice. What a
page says of its own worth does not count, trust is its source's.
"""

import ast
import doctest
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from vademecum.graph.nodes import (
    APIReference,
    BestPractice,
    CodeExample,
    ExternalDoc,
    Framework,
    Node,
)
from vademecum.graph.relations import Relation
from vademecum.graph.sources import trust
from vademecum.ingest.sections import sections

MOST = 40
"""Examples, and practices, of one page."""
_FENCE = re.compile(
    r"^(?P<indent>[ ]*)(?P<fence>`{3,}|~{3,})[ ]*(?P<language>[\w+#.-]*)[^\n]*\n"
    r"(?P<code>.*?)\n?^(?P=indent)(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_NO_CODE = frozenset(["text", "txt", "console", "output", "none", "plaintext", "diff", "log"])
_LONGEST, _SHORTEST = 6_000, 20
_SENTENCE = re.compile(r"(?<=[.!])\s+(?=[A-Z`*\"(])")
_IMPERATIVE = re.compile(
    r"^(?:\W*(?:warning|caution|important|tip|note|danger|hint|attention)\W+)?"
    r"(?:always|never|avoid|prefer|do not|don['’]t|make sure|be sure to|be careful|remember to|"
    r"consider using|ensure)\b",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\b(?:(?:best|good) practice (?:is|will be|would be|for|to)|bad practice|anti-?pattern|"
    r"(?:is|are) "
    r"(?:strongly |highly |generally )?(?:recommended|discouraged|encouraged|preferred)|"
    r"we (?:strongly )?recommend|you should (?:always|never|not|avoid|prefer|use)|"
    r"(?:you|your \w+|code|applications?|programs?|callers?|users?) (?:should|must) "
    r"(?:always|never)|"
    r"should be (?:avoided|preferred)|(?:is|are) not recommended|recommended (?:way|approach))\b",
    re.IGNORECASE,
)
_BY_ITSELF = re.compile(
    # What it speaks of stands elsewhere,
    r"\b(?:this|these|those|that) (?:function|method|module|class|attribute|setting|package|"
    r"cases?|parameter|option|argument|property|field|flag|behaviou?r|approach|feature|way|is|are)"
    r"\b|"
    r"\b(?:the )?(?:above|following|former|latter|below)\b|^(?:they|it|this|these|those|that)\b|"
    r"^.{0,25}\b(?:us(?:e|ing)|pass(?:ing)?|call(?:ing)?|make sure|ensure|with|of) "
    r"(?:it|they|them|this|that)\b|^the (?:middleware|function|method|module|class|package|"
    r"setting|option|attribute|parameter)\b|"
    r"\binstead\W*$|\binstead (?:which|that|as|if|when)\b|\bthe (?:other|native|old|new|same|"
    r"returned|resulting|given) \w|\b(?:these|those) \w|^any other\b|\bunless otherwise\b|"
    r"\bof which (?:is|are)\b|\b(?:need|want) (?:it|them)\b|foo\b|\bfoo|"
    # it is a step of something, no advice, or describes what is or what an option does,
    r"\b(?:make sure|ensure) (?:that )?(?:your|you have|you['’]ve)\b|\b(?:is|are) deprecated\b|"
    r"\b(?:is|are) preferred(?: when(?:ever)? possible)?\W*$|"
    # or is told to who works on the project itself.
    r"\b(?:tickets?|pull requests?|commit messages?|patch(?:es)?|test suite|core developers?|"
    r"clean tree|contribut(?:e|or|ors|ing|ions?))\b|"
    r"\bdon['’]t worry\b|\byou(?:['’]ve| have) followed\b|^always \w+ed\b|^\(",
    re.IGNORECASE,
)
_NO_ADVICE = re.compile(
    r"/(?:internals|contribut\w+|devguide|hacking|releases?|release[-_]notes|whatsnew|changelog|"
    r"tutorial\d+)\b",
    re.IGNORECASE,
)
"""Addresses of pages for a project's contributors, of what changed, and of steps to follow."""
_DO_NOT = re.compile(r"^(?:do not|don['’]t)\b", re.IGNORECASE)
_REASONED = re.compile(
    r"\b(?:you|your|because|since|otherwise|when|if|unless|without|from)\b|;|—|–", re.IGNORECASE
)
"""What tells advice from the description of an option, "Do not print the files"."""
_AGAINST = re.compile(
    r"\b(?:never|avoid(?:ed)?|do not|don['’]t|should not|not recommended|discouraged|bad practice|"
    r"anti-?pattern)\b",
    re.IGNORECASE,
)
_WHEN = re.compile(
    r"\b((?:when|if|whenever|unless|while|before|after) [^.;]{8,160})", re.IGNORECASE
)
_DOMAINS = (
    (
        "authentication",
        r"\b(?:log ?in|authenticat\w+|oauth\w*|passwords?|credentials?|sessions?)\b",
    ),
    (
        "security",
        r"\b(?:secur\w+|secrets?|tokens?|untrusted|inject\w*|eval|pickle|certificates?|tls|ssl|"
        r"encrypt\w*|csrf|xss|sanitiz\w+|malicious|attack\w*|vulnerab\w+)\b",
    ),
    ("async", r"\b(?:async\w*|await\w*|event loop|coroutines?|promises?)\b"),
    (
        "concurrency",
        r"\b(?:threads?|thread-safe|locks?|deadlock\w*|race conditions?|process pool)\b",
    ),
    ("errors", r"\b(?:exceptions?|errors?|timeouts?|retr(?:y|ies)|failures?|rais(?:e|es|ing))\b"),
    (
        "performance",
        r"\b(?:performance|slow|fast(?:er)?|memory|cach\w+|efficien\w+|pool(?:ing|s)?)\b",
    ),
    ("testing", r"\b(?:tests?|testing|mock\w*|fixtures?)\b"),
)
_DOMAIN = [(name, re.compile(words, re.IGNORECASE)) for name, words in _DOMAINS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What was found, with relations to where it stands and to what it is about."""

    node: Node
    relations: tuple[Relation, ...]


def examples(
    doc: ExternalDoc,
    text: str,
    apis: Sequence[APIReference] = (),
    *,
    upvotes: int | None = None,
) -> list[Extracted]:
    """The blocks of code of a page, in its order."""
    found: list[Extracted] = []
    seen: set[str] = set()
    for section, start, end in _parts(text):
        for match in _FENCE.finditer(text, start, end):
            language = match["language"].lower() or doc.language
            code = _plain(_undent(match["code"], len(match["indent"])), language)
            digest = hashlib.sha256(code.encode()).hexdigest()
            if language in _NO_CODE or digest in seen or not _is_example(code):
                continue
            seen.add(digest)
            before = _last_paragraph(text[start : match.start()])
            named = section[-1] if section else doc.title
            node = CodeExample(
                title=f"{doc.title}: {named}" if named != doc.title else named,
                language=language,
                code=code,
                content_hash=digest,
                explanation=before[:1000],
                dependencies=tuple(imports(code)) if language.startswith("py") else (),
                works_with_version=f"{doc.package} {doc.version}".strip() if doc.version else "",
                upvotes=upvotes,
                source_url=doc.source_url,
                source=doc.source,
            )
            where = _stands(node, doc, section, code.splitlines()[0])
            shown = [
                Relation(kind="DEMONSTRATES", start=node, end=api)
                for api in apis
                if shows(code, api)
            ]
            found.append(Extracted(node=node, relations=(where, *shown)))
            if len(found) == MOST:
                return found
    return found


def practices(
    doc: ExternalDoc, text: str, apis: Sequence[APIReference] = (), *, now: datetime
) -> list[Extracted]:
    """The sentences of a page that give advice, in its order."""
    found: dict[str, Extracted] = {}
    if _NO_ADVICE.search(doc.source_url):
        return []
    for section, start, end in _parts(text):
        for sentence in _sentences(_FENCE.sub("\n\n", text[start:end])):
            if not _is_advice(sentence):
                continue
            if not 5 <= len(sentence.split()) <= 60 or sentence.endswith(("?", ":")):
                continue
            plain = re.sub(r"[*`]", "", sentence)
            about = [api for api in apis if _names(sentence, api)]
            against = bool(_AGAINST.search(plain))
            condition = _WHEN.search(plain)
            when = condition[1].rstrip(" .") if condition else ""
            node = BestPractice(
                title=plain if len(plain) <= 120 else f"{plain[:119].rsplit(' ', 1)[0]}…",
                domain=_domain(f"{plain} {' '.join(section)}"),
                description=plain,
                when_to_use="" if against else when,
                when_not_to_use=when if against else "",
                anti_patterns=(plain,) if against else (),
                related_apis=tuple(api.name for api in about),
                confidence_score=trust(doc.source),
                source_count=1,
                last_validated=now,
                language=doc.language,
                ecosystem=doc.ecosystem,
            )
            relations = [_stands(node, doc, section, sentence)]
            relations += [Relation(kind="REFERENCES", start=node, end=api) for api in about]
            if doc.package:
                framework = Framework(
                    ecosystem=doc.ecosystem, package=doc.package, version=doc.version
                )
                relations.append(Relation(kind="APPLIES_TO", start=node, end=framework))
            found.setdefault(str(node.id), Extracted(node=node, relations=tuple(relations)))
            if len(found) == MOST:
                break
    return list(found.values())


def _is_advice(sentence: str) -> bool:
    """Whether it tells what to do, and can be understood by itself."""
    if not (_IMPERATIVE.search(sentence) or _ADVICE.search(sentence)):
        return False
    if _BY_ITSELF.search(sentence):
        return False
    return not _DO_NOT.search(sentence) or bool(_REASONED.search(sentence))


def imports(code: str) -> list[str]:
    """The top-level modules that Python code imports, without those of the standard library."""
    import sys

    found = re.findall(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", code, re.MULTILINE)
    return [name for name in dict.fromkeys(found) if name not in sys.stdlib_module_names]


def compiles(code: str) -> bool:
    """Whether code is Python that can be compiled."""
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def shows(code: str, api: APIReference) -> bool:
    """Whether code calls an API by a name that tells it apart."""
    last = re.escape(api.function_name.rpartition(".")[2])
    if re.search(rf"(?<![\w.]){re.escape(api.name)}\b", code):
        return True
    top = api.namespace.partition(".")[0]
    imported = top and re.search(rf"^\W*(?:from|import)\s+{re.escape(top)}\b", code, re.MULTILINE)
    return bool(imported and re.search(rf"\b{last}\s*\(", code))


def _parts(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    for section in sections(text):
        yield section.heading_path, section.body, section.end


def _stands(
    node: BestPractice | CodeExample, doc: ExternalDoc, section: tuple[str, ...], words: str
) -> Relation:
    return Relation(
        kind="DOCUMENTED_IN",
        start=node,
        end=doc,
        properties={"section": " > ".join(section), "evidence": words[:400]},
    )


def _undent(code: str, width: int) -> str:
    lines = code.splitlines()
    return "\n".join(line[width:] if not line[:width].strip() else line for line in lines)


def _plain(code: str, language: str) -> str:
    """Code without the prompts and the output of a session."""
    if ">>> " not in code or not (language.startswith("py") or language in ("", "default")):
        return code.strip("\n")
    try:
        parts = doctest.DocTestParser().get_examples(code)
    except ValueError:
        return code.strip("\n")
    return "".join(part.source for part in parts).strip("\n")


def _is_example(code: str) -> bool:
    if not _SHORTEST <= len(code) <= _LONGEST:
        return False
    return bool(re.search(r"[(={]", code))


def _last_paragraph(text: str) -> str:
    parts = [part.strip() for part in re.split(r"\n\s*\n", _FENCE.sub("", text)) if part.strip()]
    return " ".join(parts[-1].split()) if parts else ""


def _sentences(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.)\s)", text):
        if paragraph.lstrip().startswith(("#", "|", "<", "!")):
            continue
        flat = re.sub(r"^\s*(?:[-*+]|\d+\.|>)\s+", "", " ".join(paragraph.split()))
        for sentence in _SENTENCE.split(flat):
            yield sentence.strip()


def _names(sentence: str, api: APIReference) -> bool:
    return any(
        re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", sentence)
        for name in (api.name, api.function_name)
        if len(name) > 3
    )


def _domain(text: str) -> str:
    return next((name for name, words in _DOMAIN if words.search(text)), "general")
