"""The embedder setting."""

from pathlib import Path

import pytest

from vademecum.errors import BadSetting
from vademecum.inference.open import open_embedder


def test_none_is_lexical_search_only(tmp_path: Path) -> None:
    assert open_embedder("none", home=tmp_path) is None


def test_local_model_and_local_folder_are_one_space(tmp_path: Path) -> None:
    named = open_embedder("local:all-MiniLM-L6-v2", home=tmp_path)
    of_folder = open_embedder(f"local:{tmp_path}", home=tmp_path, threads=2)
    assert named is not None
    assert of_folder is not None
    assert named.space == of_folder.space
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "setting", ["", "local", "local:", "local:other-model", "all-MiniLM-L6-v2", "huggingface:x"]
)
def test_unknown_setting_lists_the_known(tmp_path: Path, setting: str) -> None:
    with pytest.raises(BadSetting) as caught:
        open_embedder(setting, home=tmp_path)
    assert repr(setting) in str(caught.value)
    assert "local:all-MiniLM-L6-v2" in str(caught.value.hint)
