"""The main job, on documents that every machine has.

Indexes Python's own language reference and this project's documentation, searches them and asks
a question, by the same commands that you would type.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from pydoc_data import topics

PROJECT = Path(__file__).resolve().parent.parent
HOME = PROJECT / ".vade"
REFERENCE = HOME / "demo" / "python-reference"


def main() -> None:
    started = time.perf_counter()
    write_reference(REFERENCE)
    print("Vademecum: a database, an index and answers, all on this machine.\n", flush=True)
    vade("bulk-index", str(REFERENCE), "-c", "python")
    vade("bulk-index", str(PROJECT / "docs"), "-c", "vademecum")
    vade("search", "catch several exceptions in one clause", "-c", "python", "-k", "3")
    vade("search", "__getattr__", "-c", "python", "-k", "2", "--explain")
    vade("answer", "What happens when an exception is raised in a finally clause?", "-c", "python")
    vade("answer", "Which PostgreSQL versions does it work with?", "-c", "vademecum")
    vade("answer", "How do I book a flight to Lisbon?", "-c", "python")
    print(f"\nThe demo took {time.perf_counter() - started:.1f} s.", flush=True)
    print(f"Its data is in {HOME}; try your own:\n")
    print(f"  export VADE_HOME={shlex.quote(str(HOME))}")
    print("  uv run vade bulk-index DIR")
    print('  uv run vade answer "QUESTION" -c NAME')


def write_reference(folder: Path) -> None:
    """Python's language reference as the standard library carries it, a file for each topic."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in topics.topics.items():
        # Footnotes as reStructuredText has them: these texts were written to be printed.
        text = re.sub(r"^(\[\d+\] )", r".. \1", text, flags=re.MULTILINE)
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")


def vade(*arguments: str) -> None:
    print(f"$ vade {shlex.join(arguments)}", flush=True)
    environment = os.environ | {"VADE_HOME": str(HOME)}
    done = subprocess.run(["vade", *arguments], env=environment, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    print(flush=True)


if __name__ == "__main__":
    main()
