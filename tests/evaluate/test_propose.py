"""`vade eval init`: proposed questions do not repeat their sources, and are the same each time."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from vademecum.evaluate.gold import read_gold
from vademecum.evaluate.propose import MAX_SHARED
from vademecum.search.terms import STOP_WORDS, terms

Vade = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[[dict[str, str | bytes]], Path]

SECTIONS = {
    "Deleting expired certificates": "Remove a certificate when it has run out. The command asks "
    "before it erases anything, and a record of what was erased is kept in the journal for a year.",
    "Starting the backup service": "Begin with an empty disk. The service copies every file at "
    "night, compresses the copies, and reports by mail when a copy could not be written in full.",
    "Choosing a storage region": "Pick the place that is nearest to most of your users. Moving the "
    "data later takes hours, costs money, and stops all writes until the whole move has finished.",
    "Repairing a broken index": "An index that was damaged answers too little. Build it again from "
    "the documents; readers see the old one until the new one is complete and has been checked.",
    "Limiting memory of workers": "Each worker may use a share of the machine. When it wants more "
    "it is stopped, its job goes back to the queue, and the next worker takes the job up again.",
    "Inviting other people": "Send them a link by mail. A guest may read everything in the project "
    "and change nothing, until an owner of the project says otherwise on the page of members.",
}
OTHER = (
    "Erase old credentials. Remove outdated permits. Launch the copying programme, begin saving, "
    "select an area, pick a zone, fix a damaged catalogue, mend what failed, restrict the capacity "
    "of processes, bound the use, ask colleagues to join, welcome more users to the team at once."
)


ENGLISH: dict[str, str | bytes] = {
    f"guide/{number}.md": f"# Handbook of the archive\n\n## {heading}\n\n{text}\n"
    for number, (heading, text) in enumerate(SECTIONS.items())
} | {f"other/{number}.md": f"# Other\n\n{OTHER}\n" for number in range(2)}


@pytest.fixture
def indexed(vade: Vade, write: Write) -> Vade:
    done = vade("bulk-index", write(ENGLISH), "-c", "docs")
    assert done.returncode == 0, done.stderr
    return vade


def test_proposals_say_it_in_other_words(indexed: Vade, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"

    done = indexed("eval", "init", "-c", "docs", "-o", gold)

    assert done.returncode == 0, done.stderr
    assert f"vade eval {gold} -c docs" in done.stdout
    questions = read_gold(gold)
    notes = [json.loads(line)["note"] for line in gold.read_text().splitlines()]
    assert len(questions) >= 3
    for question, note in zip(questions, notes, strict=True):
        (expected,) = question.expect
        assert expected.path_contains is not None
        number = int(expected.path_contains.removeprefix("guide/").removesuffix(".md"))
        heading, text = list(SECTIONS.items())[number]
        assert note.startswith(f"Handbook of the archive > {heading}: ")
        asked = set(terms(question.query)) - STOP_WORDS
        held = asked & set(terms(f"Handbook of the archive {heading} {text}"))
        assert len(held) <= MAX_SHARED * len(asked)
    assert indexed("eval", gold, "-c", "docs").returncode == 0


def test_a_seed_gives_the_same_questions_and_another_gives_others(
    indexed: Vade, tmp_path: Path
) -> None:
    def proposed(seed: int) -> str:
        gold = tmp_path / "gold.jsonl"
        done = indexed(
            *("eval", "init", "-c", "docs", "--count", "2", "--force", "-o", gold),
            *("--seed", str(seed)),
        )
        assert done.returncode == 0, done.stderr
        return gold.read_text()

    assert proposed(0) == proposed(0)
    assert len({proposed(seed) for seed in range(4)}) > 1


def test_an_edited_file_is_not_overwritten(indexed: Vade, tmp_path: Path) -> None:
    gold = tmp_path / "gold.jsonl"
    gold.write_text("mine")

    done = indexed("eval", "init", "-c", "docs", "-o", gold)

    assert done.returncode == 2
    assert "exists already" in done.stderr
    assert "--force" in done.stderr
    assert gold.read_text() == "mine"


def test_without_an_embedder_there_are_no_other_words(
    vade: Vade, write: Write, tmp_path: Path
) -> None:
    vade("bulk-index", write({"a.md": "# A\n\nText."}), "-c", "docs", VADE_EMBEDDER="none")

    done = vade("eval", "init", "-c", "docs", "-o", tmp_path / "gold.jsonl")

    assert done.returncode == 2
    assert "vade reindex -c docs" in done.stderr
    assert not (tmp_path / "gold.jsonl").exists()


FRENCH = {
    "Supprimer les certificats expirés": "Retirez un certificat dès que sa date est passée. La "
    "commande demande une confirmation avant d'effacer quoi que ce soit, et une trace de ce qui a "
    "été effacé reste dans le journal pendant un an.",
    "Démarrer le service de sauvegarde": "Commencez avec un disque vide. Le service copie chaque "
    "fichier pendant la nuit, compresse les copies et prévient par courriel quand une copie n'a "
    "pas pu être écrite en entier.",
}


FRENCH_FILES: dict[str, str | bytes] = {
    f"manuel/{number}.md": f"# Manuel\n\n## {heading}\n\n{text}\n"
    for number, (heading, text) in enumerate(FRENCH.items())
}


def test_documents_in_another_language_are_left_out(
    vade: Vade, write: Write, tmp_path: Path
) -> None:
    def proposed(files: dict[str, str | bytes]) -> tuple[str, str]:
        gold = tmp_path / "gold.jsonl"
        assert vade("bulk-index", write(files), "-c", "docs").returncode == 0
        done = vade("eval", "init", "-c", "docs", "--force", "-o", gold)
        assert done.returncode == 0, done.stderr
        return done.stderr, gold.read_text()

    said, alone = proposed(ENGLISH)
    said_of_both, both = proposed(ENGLISH | FRENCH_FILES)

    assert "guide/" in alone
    assert "guide/" in both
    assert "manuel/" not in both
    assert "2 documents in fr" in said_of_both
    assert "in fr" not in said


def test_of_another_language_alone_the_command_says_what_it_can_do(
    vade: Vade, write: Write, tmp_path: Path
) -> None:
    assert vade("bulk-index", write(FRENCH_FILES), "-c", "docs").returncode == 0

    done = vade("eval", "init", "-c", "docs", "-o", tmp_path / "gold.jsonl")

    assert done.returncode == 2
    assert "2 documents in fr" in done.stderr
    assert "--own-words" in done.stderr
    assert not (tmp_path / "gold.jsonl").exists()


def test_in_their_own_words_sections_of_any_language_are_drawn_without_an_embedder(
    vade: Vade, write: Write, tmp_path: Path
) -> None:
    vade("bulk-index", write(FRENCH_FILES), "-c", "docs", VADE_EMBEDDER="none")
    gold = tmp_path / "gold.jsonl"

    done = vade(*("eval", "init", "-c", "docs", "--own-words", "-o", gold), VADE_EMBEDDER="none")

    assert done.returncode == 0, done.stderr
    assert "Put each in your own words" in done.stdout
    assert {one.query for one in read_gold(gold)} == set(FRENCH)
    assert vade("eval", gold, "-c", "docs", VADE_EMBEDDER="none").returncode == 0
