"""fastembed, with a model of a folder: vectors as they are meant, mistakes said in words."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from reference import Reference

from fastembed_model import make_model
from vademecum.errors import BadSetting, ModelUnavailable
from vademecum.inference.fastembed import FastembedEmbedder
from vademecum.inference.open import open_embedder

TEXTS = ["build the graph", "rotate the keys", "A longer text, that is padded with none. " * 8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("hub") / "all-MiniLM-L6-v2")


async def test_vectors_are_those_of_the_model_in_full_precision(folder: Path, home: Path) -> None:
    embedder = open_embedder(f"fastembed:{folder}", home=home)
    assert embedder is not None
    made = await embedder.embed(TEXTS)
    assert np.allclose(made, Reference().embed(TEXTS), atol=1e-4)
    assert np.allclose(await embedder.embed_query(TEXTS[0]), made[0], atol=1e-5)


async def test_the_model_says_how_much_it_reads(folder: Path, home: Path) -> None:
    embedder = FastembedEmbedder(str(folder), home=home)
    assert embedder.max_tokens == 254  # 256 it was trained with, and two stand around each text
    full = " ".join(["word"] * 254)
    assert np.allclose(
        (await embedder.embed([full]))[0], await embedder.embed_query(full + " more"), atol=1e-5
    )


def test_the_same_files_elsewhere_are_the_same_space(
    folder: Path, home: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "all-MiniLM-L6-v2"
    shutil.copytree(folder, elsewhere)
    one = FastembedEmbedder(str(folder), home=home).space
    assert FastembedEmbedder(str(elsewhere), home=home).space == one
    with (elsewhere / "model.onnx").open("ab") as file:
        file.write(b"\x32\x01x")  # a doc string, which leaves the graph as it is
    assert FastembedEmbedder(str(elsewhere), home=home).space.digest != one.digest


def test_what_cannot_be_a_model_is_said(folder: Path, home: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"holds no model\.onnx"):
        _ = FastembedEmbedder(str(tmp_path), home=home).space
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    (other / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_max_tokens": True}))
    with pytest.raises(ModelUnavailable, match="neither the mean"):
        _ = FastembedEmbedder(str(other), home=home).space
    (other / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    (other / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelUnavailable, match="cannot load"):
        _ = FastembedEmbedder(str(other), home=home).space
    with pytest.raises(BadSetting, match="knows no model"):
        _ = FastembedEmbedder("nobody/nothing", home=home).space


def test_a_model_that_is_not_here_is_not_downloaded(home: Path) -> None:
    with pytest.raises(ModelUnavailable, match="cannot load BAAI") as caught:
        _ = FastembedEmbedder("BAAI/bge-small-en-v1.5", home=home).tokenizer
    assert str(home / "models" / "fastembed") in str(caught.value.hint)
