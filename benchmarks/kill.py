"""Kill commands, workers, `vade serve` and the database server at random, hundreds of times.

    python benchmarks/kill.py --rounds 300 [--web]

Every `--compare` rounds the index is compared with a fresh one of the same folder; with `--web`,
the pages that agents read meanwhile with pages fetched anew. Stops at the first thing that is not
as it must be, and leaves its database there to look at.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "durability"))

from killing import Arena, arena
from killing_web import Web, web

from scratch import CACHE


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill vade at random moments.")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--compare", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=80)
    parser.add_argument("--embedder", default="none", help="none, or local:all-MiniLM-L6-v2")
    parser.add_argument("--web", action="store_true", help="agents that read the web")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="vade-kill-"))
    killed = web(root, seed=options.seed) if options.web else _arena(root, options)
    print(f"{options.rounds} rounds, seed {options.seed}, in {root}", flush=True)
    began = time.monotonic()
    for number in range(1, options.rounds + 1):
        killed.round()
        if number % options.compare == 0 or number == options.rounds:
            killed.compare()
            print(f"{number} rounds, {time.monotonic() - began:.0f} s: all whole", flush=True)
    for kind, times in sorted(killed.rounds.items()):
        print(f"{kind:18} {times:4} rounds, {killed.hit[kind]:4} while at work")
    print(_also(killed))
    killed.close()
    shutil.rmtree(root)


def _arena(root: Path, options: argparse.Namespace) -> Arena:
    models = CACHE / "models"
    models.mkdir(parents=True, exist_ok=True)
    killed = arena(root, seed=options.seed, embedder=options.embedder, models=models)
    killed.files = options.files
    killed.make_files()
    return killed


def _also(killed: Arena | Web) -> str:
    if isinstance(killed, Arena):
        return f"{killed.survived} of {killed.hit['server']} commands outlived their server"
    return (
        f"{len(killed.hooks)} hooks, {killed.served} of them answered with a page, the slowest in"
        f" {max(killed.hooks):.2f} s; {len(killed.kept)} pages told of, all kept"
    )


if __name__ == "__main__":
    main()
