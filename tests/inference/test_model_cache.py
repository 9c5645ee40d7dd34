"""The graph's file: built once, whole or not at all, rebuilt where damaged."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from vademecum.errors import ModelUnavailable
from vademecum.inference.local import LocalEmbedder

PRINT_VECTOR = """
import asyncio, sys
from pathlib import Path
from vademecum.inference.local import LocalEmbedder
vector = asyncio.run(LocalEmbedder(home=Path(sys.argv[1]), threads=1).embed_query("hello"))
print(vector.tobytes().hex())
"""


def graph_file(home: Path) -> Path:
    [path] = (home / "models").glob("*.onnx")  # beside it there may be folders of other models
    return path


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, empty, Path.unlink])
async def test_damaged_graph_is_built_again(
    home: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(home / "models", tmp_path / "models")
    damage(graph_file(tmp_path))
    expected = await LocalEmbedder(home=home).embed_query("hello")
    assert np.array_equal(await LocalEmbedder(home=tmp_path).embed_query("hello"), expected)
    assert graph_file(tmp_path).read_bytes() == graph_file(home).read_bytes()


def test_graph_is_valid_onnx_and_names_its_digest(home: Path) -> None:
    path = graph_file(home)
    onnx.checker.check_model(str(path))
    assert path.name == f"all-MiniLM-L6-v2-int8-{LocalEmbedder(home=home).space.digest}.onnx"


async def test_three_processes_build_at_once(home: Path, tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PRINT_VECTOR, tmp_path], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    vectors = [process.communicate(timeout=120)[0].strip() for process in processes]
    expected = await LocalEmbedder(home=home).embed_query("hello")
    assert vectors == [expected.tobytes().hex()] * 3
    assert graph_file(tmp_path).read_bytes() == graph_file(home).read_bytes()


async def test_what_a_killed_build_left_is_cleared(tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    name = "all-MiniLM-L6-v2-int8-" + LocalEmbedder(home=tmp_path).space.digest + ".onnx"
    old, recent = models / f"{name}abc.tmp", models / f"{name}def.tmp"
    old.write_bytes(b"half")
    recent.write_bytes(b"half")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    await LocalEmbedder(home=tmp_path).warm()
    assert {path.name for path in models.iterdir()} == {name, recent.name}


async def test_home_that_cannot_be_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file where the folder should be")
    with pytest.raises(ModelUnavailable, match=r"cannot be kept as .*home") as caught:
        await LocalEmbedder(home=home).embed_query("hello")
    assert "VADE_HOME" in str(caught.value.hint)
