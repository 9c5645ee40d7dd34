"""Speed of reading and resolving a project's code, in lines a second.

    python benchmarks/link.py DIR [--python PATH]

The reference is `ast.parse` alone on the same files in the same run: what no reader of Python can
do without. Libraries are read before the clock starts; how long that took is told apart.
"""

import argparse
import ast
import tempfile
import time
from pathlib import Path

from vademecum.graph.libraries import Libraries
from vademecum.graph.project import read_project
from vademecum.graph.resolve import Resolver
from vademecum.graph.sources import environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", type=Path)
    given = parser.parse_args()
    project = read_project(given.folder)
    python = [file for file in project.files if file.language == "python"]
    lines = sum(file.lines for file in python)
    texts = [(project.root / file.path).read_bytes() for file in python]
    kept = Path(tempfile.gettempdir()) / "vade-link" / "libraries"
    libraries = Libraries(environment.find(given.folder, given.python), home=kept)
    began = time.perf_counter()
    uses = [use.target for file in python for use in file.uses]
    for target in set(uses):
        Resolver(project.definitions, project.modules, libraries.get).library_of(target)
    read = time.perf_counter() - began

    began = time.perf_counter()
    for text in texts:
        ast.parse(text)
    parsing = time.perf_counter() - began
    began = time.perf_counter()
    read_project(given.folder)
    reading = time.perf_counter() - began
    resolver = Resolver(project.definitions, project.modules, libraries.get)
    began = time.perf_counter()
    found = sum(resolver.resolve(target) is not None for target in uses)
    resolving = time.perf_counter() - began
    print(f"{lines} lines in {len(python)} files, {len(uses)} uses, {found} lead to a library")
    print(f"libraries read in {read:.1f} s")
    print(f"ast.parse  {lines / parsing:9.0f} lines/s")
    print(f"reading    {lines / reading:9.0f} lines/s ({reading / parsing:.1f} times ast.parse)")
    print(
        f"resolving  {lines / resolving:9.0f} lines/s ({resolving / parsing:.1f} times ast.parse)"
    )


if __name__ == "__main__":
    main()
