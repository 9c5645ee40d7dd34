"""Precision and recall of `vade radar` on old versions of real libraries.

    python benchmarks/radar.py [NAME…]

`benchmarks/radar/NAME.py.txt` is code that uses a library at the version below. By hand, after the
library's release notes, each line is marked that uses what this version deprecates
(`# deprecated`, `# argument` for a parameter) or no longer has (`# removed`); all others are not
affected (`# ok` says why where one may doubt it).
A line counts once. A finding on a marked line is right whatever its
rule; the rule is counted apart. Old versions are installed by uv, into a folder that is kept.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from vademecum.graph.watch import radar

VERSIONS = {
    "django": "Django==4.2.16",
    "flask": "Flask==2.2.5 Werkzeug==2.2.3",
    "werkzeug": "Werkzeug==2.3.8",
    "jinja2": "Jinja2==3.0.3",
    "sqlalchemy": "SQLAlchemy==1.4.49",
    "pydantic": "pydantic==2.5.3",
    "numpy": "numpy==1.26.4",
    "pandas": "pandas==1.5.3 numpy==1.26.4",
    "pillow": "Pillow==9.5.0",
    "httpx": "httpx==0.27.2",
    "marshmallow": "marshmallow==3.22.0",
}
KEPT = Path(tempfile.gettempdir()) / "vade-radar"
_MARK = re.compile(r"#\s*(removed|deprecated|argument)\b")
_RULES = {"removed": "removed", "deprecated": "deprecated", "argument": "parameter"}


def main(names: list[str]) -> None:
    here = Path(__file__).parent / "radar"
    right = wrong = missed = same_rule = 0
    lines = 0
    for name in names or VERSIONS:
        environment = _installed(name)
        with tempfile.TemporaryDirectory() as folder:
            code = Path(folder) / "main.py"
            shutil.copy(here / f"{name}.py.txt", code)
            report = radar(Path(folder), home=KEPT / "libraries", python=environment)
            text = code.read_text().splitlines()
        marked = {n: m[1] for n, line in enumerate(text, 1) if (m := _MARK.search(line))}
        found = {one.line: one for one in reversed(report.findings)}
        good = marked.keys() & found.keys()
        right += len(good)
        wrong += len(found.keys() - marked.keys())
        missed += len(marked.keys() - found.keys())
        same_rule += sum(_RULES[marked[n]] == found[n].rule for n in good)
        lines += len(text)
        print(
            f"{VERSIONS[name]:32} {len(good):3} right of {len(marked):3} marked, "
            f"{len(found.keys() - marked.keys())} wrong, {report.seconds:.1f} s"
        )
        for number in sorted(marked.keys() - found.keys()):
            print(f"    missed {number}: {text[number - 1].strip()}")
        for number in sorted(found.keys() - marked.keys()):
            print(
                f"    wrong  {number}: {text[number - 1].strip()} | {found[number].sentence[:90]}"
            )
    precision, recall = right / max(right + wrong, 1), right / max(right + missed, 1)
    print(
        f"precision {precision:.3f} ({right} of {right + wrong}), recall {recall:.3f} "
        f"({right} of {right + missed}), rule right {same_rule} of {right}, {lines} lines"
    )


def _installed(name: str) -> Path:
    folder = KEPT / name
    if not (folder / "done").exists():
        uv = shutil.which("uv") or "uv"
        subprocess.run([uv, "venv", "--quiet", "--clear", folder], check=True)
        subprocess.run(
            [uv, "pip", "install", "--quiet", "--python", folder, *VERSIONS[name].split()],
            check=True,
        )
        (folder / "done").touch()
    return folder


if __name__ == "__main__":
    main(sys.argv[1:])
