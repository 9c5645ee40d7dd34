"""The check of generated sentences against their sources: what does it let through, what not?

    uv run benchmarks/support.py FOLDER [--set NAME …] [--sentences N]

FOLDER is as for benchmarks/retrieval.py. Of sentences of each set and the passages they are from,
supported ones are the sentence itself (verbatim), with a tenth of its plain words left out
(shorter), in another order of its clauses (rearranged) and joined with a neighbour (joined).
Unsupported ones are sentences of the passage most like it in another document (elsewhere), and the
sentence with a number changed (number), an identifier or a name of another passage in place of its
own (name), its meaning denied or affirmed (negation), or one plain word in six replaced by words of
other passages (words). written.toml beside this file has sentences written about passages of these
sets as a language model writes them, supported and not.
"""

import argparse
import random
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from retrieval import FILES, read_set
from vademecum.answer import support
from vademecum.answer.sentences import sentence_spans
from vademecum.answer.support import Passage, objection
from vademecum.search.terms import STOP_WORDS, terms

PASSAGE_CHARACTERS = 1600
SETS = ("k8s-docs", "dtc-faq", "cranfield")
SUPPORTED = ("verbatim", "shorter", "rearranged", "joined", "written")
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
_PLAIN_WORD = re.compile(r"\b[a-z]{4,}\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.]*\w)")
_NAMED = re.compile(r"`[^`\s]+`|\b[a-z]+[A-Z]\w+\b|\b\w+_\w+\b|(?<=[a-z,] )[A-Z][a-z]{3,}\b")
_VERB = re.compile(r"\b(is|are|can|must|will|should|does|do|was|were|may)\b(?! not)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path, help="folder of the sets")
    parser.add_argument("--set", dest="sets", action="append", help="only this one; repeatable")
    parser.add_argument("--sentences", type=int, default=400, help="of each set")
    arguments = parser.parse_args()
    cases: dict[str, list[tuple[str, Passage]]] = defaultdict(list)
    for name in arguments.sets or SETS:
        folder = arguments.folder / name
        if absent := [file for file in FILES if not (folder / file).is_file()]:
            print(f"{name}: skipped, {folder} has no {', '.join(absent)}")
            continue
        documents = [one for corpus in read_set(folder).corpora.values() for one in corpus]
        texts = {one["id"]: (one.get("title", ""), one["text"]) for one in documents}
        for kind, sentence, passage in made(texts, random.Random(7), arguments.sentences):
            cases[kind].append((sentence, passage))
        for kind, sentence, passage in written(name, texts):
            cases[kind].append((sentence, passage))
    print(f"{'':14}{'sentences':>10}" + "".join(f"{t:>8}" for t in THRESHOLDS) + "   accepted")
    own = support.THRESHOLD
    reasons: Counter[str] = Counter()
    for kind, found in cases.items():
        shares = []
        for threshold in THRESHOLDS:
            support.THRESHOLD = threshold
            shares.append(sum(objection(*case) is None for case in found) / len(found))
        sign = "+" if kind in SUPPORTED else "-"
        print(f"{sign} {kind:12}{len(found):>10}" + "".join(f"{s:>8.3f}" for s in shares))
    support.THRESHOLD = own
    for kind in SUPPORTED:
        for case in cases[kind]:
            if reason := objection(*case):
                reasons[f"{kind}: {' '.join(reason.split()[:4])}"] += 1
    for reason, count in reasons.most_common():
        print(f"  {count:5} {reason}")


def made(
    texts: dict[str, tuple[str, str]], chance: random.Random, wanted: int
) -> Iterator[tuple[str, str, Passage]]:
    """Kind, sentence and passage, `wanted` sentences of different documents."""
    passages = [(doc, p) for doc, (title, text) in texts.items() for p in _passages(title, text)]
    vocabulary = [w for _, p in passages[:3000] for w in _PLAIN_WORD.findall(p.text)]
    names = [n for _, p in passages for n in _NAMED.findall(p.text)]
    words_of = {index: frozenset(terms(p.text)) for index, (_, p) in enumerate(passages[:4000])}
    chosen = chance.sample(range(min(len(passages), 4000)), min(len(passages), 4000))
    count = 0
    for index in chosen:
        document, passage = passages[index]
        sentences = _sentences(passage.text)
        if len(sentences) < 2:
            continue
        place = chance.randrange(len(sentences) - 1)
        sentence, following = sentences[place], sentences[place + 1]
        count += 1
        if count > wanted:
            return
        yield "verbatim", sentence, passage
        plain = [m for m in _PLAIN_WORD.finditer(sentence) if m[0] not in STOP_WORDS]
        yield "shorter", _without(sentence, chance.sample(plain, len(plain) // 10)), passage
        if ", " in sentence:
            first, _, second = sentence.rstrip(".").partition(", ")
            yield "rearranged", f"As described, {second} whenever {first}.", passage
        yield "joined", f"{sentence.rstrip('.')}, and also {following}", passage
        other = max(
            (i for i in words_of if passages[i][0] != document),
            key=lambda i: len(words_of[i] & words_of[index]) / len(words_of[i] | words_of[index]),
        )
        if elsewhere := [s for s in _sentences(passages[other][1].text) if s not in passage.text]:
            yield "elsewhere", chance.choice(elsewhere), passage
        if number := _NUMBER.search(sentence):
            new = str(int(number[0]) + chance.choice([1, 2, 10]))
            if not re.search(rf"\b{new}\b", passage.text):
                yield "number", sentence[: number.start()] + new + sentence[number.end() :], passage
        if named := _NAMED.search(sentence):
            new = chance.choice(names)
            if new.strip("`").lower() not in passage.text.lower():
                yield "name", sentence[: named.start()] + new + sentence[named.end() :], passage
        if " not " in sentence:
            yield "negation", sentence.replace(" not ", " ", 1), passage
        elif verb := _VERB.search(sentence):
            yield "negation", f"{sentence[: verb.end()]} not{sentence[verb.end() :]}", passage
        changed = sentence
        for word in chance.sample(plain, min(len(plain), max(1, len(plain) // 6))):
            changed = re.sub(rf"\b{word[0]}\b", chance.choice(vocabulary), changed)
        if plain and changed != sentence:
            yield "words", changed, passage


def written(name: str, texts: dict[str, tuple[str, str]]) -> Iterator[tuple[str, str, Passage]]:
    """Sentences by hand, each against the passage of its document that `at` stands in."""
    file = Path(__file__).with_name("written.toml")
    for case in tomllib.loads(file.read_text(encoding="utf-8")).get(name, []):
        title, text = texts[case["document"]]
        passage = next(p for p in _passages(title, text) if case["at"] in p.text)
        for sentence in case["supported"]:
            yield "written", sentence, passage
        for sentence in case["unsupported"]:
            yield "written wrong", sentence, passage


def _passages(title: str, text: str) -> Iterator[Passage]:
    held = ""
    for block in re.split(r"\n[ \t]*\n", text):
        if held and len(held) + len(block) > PASSAGE_CHARACTERS:
            yield Passage(held, title)
            held = ""
        held = f"{held}\n\n{block}" if held else block
    if held:
        yield Passage(held, title)


def _sentences(text: str) -> list[str]:
    found = []
    for block in re.split(r"\n[ \t]*\n", text):
        if re.match(r"[ \t]*(?:[-*+|>#{<`~]|\d+[.)])", block):
            continue
        flat = " ".join(block.split())
        found += [flat[a:b] for a, b in sentence_spans(flat, 0, len(flat))]
    return [s for s in found if s.endswith(".") and 8 <= len(s.split()) <= 40]


def _without(sentence: str, words: list[re.Match[str]]) -> str:
    for match in sorted(words, key=lambda m: -m.start()):
        sentence = sentence[: match.start()] + sentence[match.end() :]
    return " ".join(sentence.split())


if __name__ == "__main__":
    main()
