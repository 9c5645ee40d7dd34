"""Real documents for benchmarks: the same ones, in the same order, at every run."""

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from vademecum.ingest.read import Found, scan

SEED = 20240601
MAX_BYTES = 32 * 1024 * 1024

_SAME_TEXT_AGAIN = "_sources"
"""Where Sphinx keeps what its pages were made from."""
_SAYS_NOTHING = {"html", "doc", "docs", "documentation"}


@dataclass(frozen=True, slots=True)
class Original:
    """A document where it is now, and its path in the corpus."""

    path: Path
    place: str


def find(folders: Sequence[Path]) -> list[Original]:
    """The documents of all folders in a fixed random order, so that any part has some of each."""
    labels: set[str] = set()
    found = []
    for folder in folders:
        label = _label(folder, labels)
        found += [
            Original(entry.path, f"{label}/{entry.relative}")
            for entry in scan(folder, max_bytes=MAX_BYTES)
            if isinstance(entry, Found) and _SAME_TEXT_AGAIN not in Path(entry.relative).parts
        ]
    found.sort(key=lambda original: original.place)
    random.Random(SEED).shuffle(found)
    return found


def copy(originals: Sequence[Original], corpus: Path) -> list[Path]:
    """Copy documents into a folder; where they are then."""
    copies = []
    for original in originals:
        place = corpus / original.place
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(place.name + ".part")
        shutil.copyfile(original.path, part)
        part.replace(place)
        copies.append(place)
    return copies


def copied(originals: Sequence[Original], corpus: Path) -> list[Path]:
    """Those that are copied already, of documents that were copied from the first one on."""
    places = (corpus / original.place for original in originals)
    return list(takewhile(Path.is_file, places))


def _label(folder: Path, taken: set[str]) -> str:
    """A short name of a folder, another one for each."""
    absolute = folder.absolute()
    name = absolute.parent.name if absolute.name.lower() in _SAYS_NOTHING else absolute.name
    label = name = name or "root"
    number = 1
    while label in taken:
        number += 1
        label = f"{name}-{number}"
    taken.add(label)
    return label
