import hashlib
import os
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import Found, Skipped, hash_file, read_file, scan


def write(root: Path, *names: str, text: str = "words\n") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def found(root: Path, max_bytes: int = 1000) -> list[str]:
    return [each.relative for each in scan(root, max_bytes=max_bytes) if isinstance(each, Found)]


def skipped(root: Path, max_bytes: int = 1000) -> dict[str, str]:
    return {
        each.relative: each.reason
        for each in scan(root, max_bytes=max_bytes)
        if isinstance(each, Skipped)
    }


def test_known_extensions_in_order_of_names(tmp_path: Path) -> None:
    write(
        tmp_path, "b.md", "a.html", "z/c.rst", "d/README", "d/e.TXT", "d/f.mdx", "g.adoc", "h.pdf"
    )
    write(tmp_path, "x.py", "y.png", "Makefile", "z/data.json", "no_extension", ".hidden.md")
    assert found(tmp_path) == [
        "a.html",
        "b.md",
        "g.adoc",
        "h.pdf",
        "d/README",
        "d/e.TXT",
        "d/f.mdx",
        "z/c.rst",
    ]
    assert skipped(tmp_path) == {}


def test_a_found_file_tells_its_size_and_time(tmp_path: Path) -> None:
    write(tmp_path, "a.md", text="12345")
    os.utime(tmp_path / "a.md", ns=(0, 1_700_000_000_123_456_789))
    (file,) = scan(tmp_path, max_bytes=10)
    assert file == Found(
        path=tmp_path / "a.md",
        relative="a.md",
        size=5,
        modified_at=datetime.fromtimestamp(1_700_000_000.123456789, UTC),
    )


def test_folders_that_are_never_entered(tmp_path: Path) -> None:
    for folder in (
        ".git",
        ".hg",
        ".svn",
        "node_modules",
        ".venv",
        "venv",
        "__pycache__",
        ".kb",
        ".x",
    ):
        write(tmp_path, f"{folder}/a.md", f"docs/{folder}/a.md")
    write(tmp_path, "docs/a.md")
    assert found(tmp_path) == ["docs/a.md"]


def test_what_we_write_ourselves_is_not_read_back(tmp_path: Path) -> None:
    write(tmp_path, "TASKS.md", text="# Tasks (auto-generated)\n")
    write(tmp_path, "a.summary6.md", "docs/TASKS.md", "a.summary.md")
    assert found(tmp_path) == ["a.summary.md", "docs/TASKS.md"]


GITIGNORE = """
# a comment
/build/
*.draft.md
!keep.draft.md
/only-here.md
deep/**/gone.md
\\#hash.md
trailing.md\\ {}
name with space.md
logs/*
!logs/keep.md
sub/ignored.md
[ab].md
"""
NESTED = """
!again.draft.md
local.md
/anchored.md
"""
NAMES = """
build/a.md docs/build/a.md a.draft.md keep.draft.md docs/x.draft.md only-here.md docs/only-here.md
deep/1/2/gone.md deep/gone.md deep/1/kept.md #hash.md logs/x.md logs/keep.md logs/y/z.md
sub/ignored.md sub/kept.md nested/again.draft.md nested/other.draft.md nested/local.md
nested/deeper/local.md nested/anchored.md nested/deeper/anchored.md a.md b.md c.md nested/b.md
"""


def test_ignore_files_mean_what_they_mean_to_git(tmp_path: Path) -> None:
    """The same tree, read by us and by git itself."""
    write(tmp_path, *NAMES.split(), "name with space.md", "trailing.md")
    write(tmp_path, ".gitignore", text=GITIGNORE.replace("{}", ""))
    write(tmp_path, "nested/.gitignore", text=NESTED)
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    write(tmp_path, ".git/info/exclude", text="c.md\n/sub/kept.md\n")
    listing = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard", "-z"], check=True, capture_output=True
    )
    expected = {name for name in listing.stdout.decode().split("\0") if name.endswith(".md")}
    assert set(found(tmp_path)) == expected
    assert {"keep.draft.md", "logs/keep.md", "nested/again.draft.md"} <= expected

    # Part of a repository obeys the rules above it.
    nested = {name.removeprefix("nested/") for name in expected if name.startswith("nested/")}
    assert set(found(tmp_path / "nested")) == nested

    # A folder that is ignored but named is meant.
    assert found(tmp_path / "build") == ["a.md"]


def test_vadeignore_has_the_last_word(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md", "c.md", "drafts/d.md")
    write(tmp_path, ".gitignore", text="a.md\nb.md\n")
    write(tmp_path, ".vadeignore", text="!a.md\nc.md\ndrafts\n")
    assert found(tmp_path) == ["a.md"]


def test_an_ignore_file_that_is_half_nonsense_still_counts(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md")
    (tmp_path / ".gitignore").write_bytes(b"\xff\xfe\n!\n/\na.md\n")
    assert found(tmp_path) == ["b.md"]


def test_links_stay_inside(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    write(root, "docs/a.md", "text.in")
    write(outside, "secret.md", "folder/secret.md")
    (root / "out.md").symlink_to(outside / "secret.md")
    (root / "out").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "alias.md").symlink_to("docs/a.md")
    (root / "alias").symlink_to("docs")
    (root / "loop").symlink_to(".")
    (root / "docs/loop").symlink_to("../docs")
    (root / "self.md").symlink_to("self.md")
    (root / "nothing.md").symlink_to("nowhere")
    (root / "template.md").symlink_to("text.in")
    (root / "out.png").symlink_to(outside / "secret.md")
    assert found(root) == ["docs/a.md", "template.md"]
    assert skipped(root) == {
        "out.md": "it is a link that leads out of the folder",
        "out": "it is a link that leads out of the folder",
        "up": "it is a link that leads out of the folder",
        "self.md": "it is a link to nothing",
        "nothing.md": "it is a link to nothing",
    }


def test_links_do_not_lead_to_what_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, ".git/a.md", "ignored/b.in", "kept.md")
    write(tmp_path, ".gitignore", text="ignored/\n")
    (tmp_path / "a.md").symlink_to(".git/a.md")
    (tmp_path / "b.md").symlink_to("ignored/b.in")
    assert found(tmp_path) == ["kept.md"]


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", "a.md")
    (tmp_path / "link").symlink_to("real")
    assert found(tmp_path / "link") == ["a.md"]


def test_a_file_with_two_names_is_two_documents(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    os.link(tmp_path / "a.md", tmp_path / "b.md")
    assert found(tmp_path) == ["a.md", "b.md"]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path, "good.md")
    (tmp_path / "empty.md").touch()
    write(tmp_path, "large.md", text="x" * 1001)
    os.mkfifo(tmp_path / "pipe.md")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.md"))
        assert skipped(tmp_path) == {
            "empty.md": "it is empty",
            "large.md": "it is too large (1001 bytes, the limit is 1000 bytes)",
            "pipe.md": "it is not a regular file",
            "socket.md": "it is not a regular file",
        }
    assert found(tmp_path) == ["good.md"]


def test_file_names_that_are_not_text(tmp_path: Path) -> None:
    for name in (b"caf\xe9.md", b"caf\xe8.md", "漢字\n.md".encode()):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("words")
    files = [each for each in scan(tmp_path, max_bytes=100) if isinstance(each, Found)]
    assert sorted(file.relative for file in files) == ["caf\\xe8.md", "caf\\xe9.md", "漢字\n.md"]
    for file in files:
        file.relative.encode()
        assert read_file(file.path, name=file.relative, max_bytes=100).text == "words"


def test_deep_nesting(tmp_path: Path) -> None:
    depth = 300
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("a.md", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    (each,) = scan(tmp_path, max_bytes=10)
    assert each == Skipped(relative="d/" * depth + "a.md", reason="it is empty")
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


@pytest.mark.parametrize("name", ["nowhere", "file.md", "bad\0name"])
def test_a_folder_that_is_none(tmp_path: Path, name: str) -> None:
    write(tmp_path, "file.md")
    with pytest.raises(UnreadableSource):
        list(scan(tmp_path / name, max_bytes=10))


def test_hash_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"x" * 3_000_000)
    assert hash_file(tmp_path / "a.md") == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    document = read_file(tmp_path / "a.md", name="a.md", max_bytes=4_000_000)
    assert document.source_hash == hash_file(tmp_path / "a.md")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone.md", "it does not exist"),
        ("folder", "it is not a regular file"),
        ("pipe.md", "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
        ("/dev/tty", None),
        ("circle.md", "its symbolic links go in a circle"),
        ("bad\0name.md", None),
        ("x" * 300, None),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, reason: str | None) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "circle.md").symlink_to("circle.md")
    with pytest.raises(UnreadableSource) as failure:
        read_file(tmp_path / name, name="shown", max_bytes=100)
    assert failure.value.source == "shown"
    assert reason is None or failure.value.reason == reason
    with pytest.raises(UnreadableSource):
        hash_file(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permission_denied(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "folder/b.md")
    (tmp_path / "a.md").chmod(0)
    (tmp_path / "folder").chmod(0)
    assert skipped(tmp_path) == {"folder": "permission denied"}
    with pytest.raises(UnreadableSource, match="permission denied"):
        read_file(tmp_path / "a.md", name="a.md", max_bytes=100)
    (tmp_path / "folder").chmod(0o700)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    write(tmp_path, "a.md", text="x" * 3_000_000)
    with pytest.raises(UnreadableSource, match=r"too large \(2\.9 MB, the limit is 1\.0 MB\)"):
        read_file(tmp_path / "a.md", name="a.md", max_bytes=2**20)
