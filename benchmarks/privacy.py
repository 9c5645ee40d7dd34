"""The privacy gate alone, behind a writer that copies everything it is told.

    uv run benchmarks/privacy.py [--exchanges 10000] [--seed 1] [--presidio FILE] [--technical FILE]

Made-up exchanges in English and French hide secrets of every kind that is not allowed, plain and
evasive, among facts that are. A leak is a secret whose letters and digits stand in what passed.
Two sets of phrasings are reported apart: `known`, which the gate was written against, and
`held_out`, first written by one who had not read the gate. Everyday names (Smith, Stone) and days
and months stand in the gate's lists as well; rare names and places stand in none of them.
`--presidio` is a JSONL file with `text` and `spans`; `--technical` one with `text`, of which
plain prose sentences are taken.
"""

import argparse
import json
import random
import re
import time
from collections import Counter
from pathlib import Path

from made_up_secrets import Phrasings, bare
from vademecum.memory.names import learn
from vademecum.memory.privacy import gate

PHRASINGS = Path(__file__).parent / "phrasings"


def generated(phrasings: str, count: int, seed: int, show: int) -> None:
    r, made_up = random.Random(seed), Phrasings(PHRASINGS / f"{phrasings}.toml")
    total, leaks, ways = Counter[str](), Counter[str](), Counter[str]()
    kept = facts_total = roles_kept = roles_total = 0
    lost = Counter[str]()
    began = time.perf_counter()
    for _ in range(count):
        made = made_up.exchange(r)
        passed = gate(made.text, names=learn(made.text)).text
        for kind, way, value in made.secrets:
            total[kind] += 1
            if made_up.leaked(value, kind, passed):
                leaks[kind] += 1
                ways[f"{kind}/{way}"] += 1
                if sum(leaks.values()) <= show:
                    print(f"  leak: {kind}/{way} {value!r} in {passed!r}")
        roles_total += len(made.roles)
        roles_kept += sum(bare(role) in bare(passed) for role in made.roles)
        for fact in made.facts:
            facts_total += 1
            if bare(fact) in bare(passed):
                kept += 1
            else:
                lost[fact] += 1
    seconds = time.perf_counter() - began
    print(f"{phrasings}: {count} exchanges, seed {seed}, {seconds / count * 1000:.2f} ms each")
    for kind in total:
        print(f"  {kind:10} {leaks[kind]:5} leaks of {total[kind]}")
    print(f"  leak rate {sum(leaks.values()) / sum(total.values()):.4%} {dict(ways) or ''}")
    print(f"  allowed facts kept {kept / facts_total:.1%}; most lost {lost.most_common(6)}")
    print(f"  roles kept that stood in a sentence with a secret {roles_kept / roles_total:.1%}")


def presidio(path: Path) -> None:
    scope = {"PERSON": "names", "GPE": "places", "STREET_ADDRESS": "places", "DATE_TIME": "dates"}
    numbers = [
        "CREDIT_CARD",
        "PHONE_NUMBER",
        "US_SSN",
        "IBAN_CODE",
        "ZIP_CODE",
        "US_DRIVER_LICENSE",
        "IP_ADDRESS",
    ]
    scope |= dict.fromkeys(numbers, "numbers")
    total, leaks = Counter[str](), Counter[str]()
    for line in path.read_text().splitlines():
        row = json.loads(line)
        passed = bare(gate(row["text"]).text)
        for span in row["spans"]:
            kind = scope.get(span["type"], f"({span['type']}, not in scope)")
            total[kind] += 1
            leaks[kind] += bool(bare(span["value"])) and bare(span["value"]) in passed
    print("outside sample, recall")
    for kind, count in total.items():
        print(f"  {kind:32} {1 - leaks[kind] / count:.2%} of {count}")


def technical(path: Path) -> None:
    found = set()
    for line in path.read_text().splitlines():
        for paragraph in json.loads(line)["text"].split("\n\n"):
            plain = paragraph.strip()
            if re.match(r"[A-Z]", plain) and not re.search(r"[<>{}\[\]|`*_/=\d]", plain):
                parts = re.split(r"(?<=[.!?])\s+", " ".join(plain.split()))
                found |= {s for s in parts if 6 <= len(s.split()) <= 30}
    order = sorted(found)
    random.Random(5).shuffle(order)
    for name, half in (
        ("looked at", order[: len(order) // 2]),
        ("held out", order[len(order) // 2 :]),
    ):
        touched = sum(bool(g.dropped or g.generalised) for g in map(gate, half))
        print(f"technical sentences touched, {name} half: {touched / len(half):.2%} of {len(half)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--exchanges", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10, help="leaks to print")
    parser.add_argument("--presidio", type=Path)
    parser.add_argument("--technical", type=Path)
    options = parser.parse_args()
    for phrasings in ("known", "held_out", "blind"):
        generated(phrasings, options.exchanges, options.seed, options.show)
    for file, measure in ((options.presidio, presidio), (options.technical, technical)):
        if file is None or not file.exists():
            print(f"{measure.__name__}: skipped, no file")
        else:
            measure(file)
