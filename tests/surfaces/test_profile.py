"""Profiles and filters as a user meets them."""

import json
from collections.abc import Callable
from pathlib import Path

from conftest import Vade

Write = Callable[[dict[str, str | bytes]], Path]
LESSON = "---\nhardware_tier: {}\n---\n\n# Nodes\n\nA node is a process that computes.\n"


def test_a_file_that_violates_its_profile_is_named_and_the_rest_goes_on(
    vade: Vade, write: Write
) -> None:
    folder = write(
        {
            "module-1/chapter-1/01-a.md": LESSON.format(1),
            "module-1/chapter-2/01-b.md": LESSON.format(3),
            "module-1/chapter-2/02-c.md": LESSON.format(9),
        }
    )
    done = vade("bulk-index", folder, "-c", "book", "--profile", "course", "--json",
                VADE_EMBEDDER="none")  # fmt: skip
    [failed] = json.loads(done.stdout)["failed"]
    assert failed["path"] == "module-1/chapter-2/02-c.md"
    assert "hardware_tier must be 1 to 4, not 9" in failed["error"]

    found = vade("search", "node", "-c", "book", "--filter", "hardware_tier<=2", "--json")
    [hit] = json.loads(found.stdout)["results"]
    assert hit["facets"]["chapter"] == 1
    bad = vade("search", "node", "-c", "book", "--filter", "tier=1")
    assert bad.returncode == 2
    assert "profile course has no facet 'tier'" in bad.stderr


def test_profile_check_tells_mistakes_by_line(vade: Vade, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(vade("profile", "show", "course").stdout.replace('"level"\n', '"levle"\n', 1))
    done = vade("profile", "check", mine)
    assert done.returncode == 2
    assert f"{mine}:43: proficiency_level needs a type" in done.stderr
    assert vade("profile", "check", tmp_path / "none.toml").returncode == 2
