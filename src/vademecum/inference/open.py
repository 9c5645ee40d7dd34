"""From the setting `provider:model` to the embedder it names."""

import math
from pathlib import Path

from vademecum.errors import BadSetting
from vademecum.inference.embedder import Embedder
from vademecum.inference.weights import MODEL
from vademecum.settings import OLLAMA_URL, OPENAI_URL

KNOWN = (
    f"local:{MODEL}",
    "local:/path/to/folder",
    "ollama:MODEL",
    "openai:MODEL",
    "fastembed:MODEL",
    "fastembed:/path/to/folder",
    "none",
)


def open_embedder(
    setting: str,
    *,
    home: Path,
    threads: int = 0,
    ollama_url: str = OLLAMA_URL,
    openai_url: str = OPENAI_URL,
    openai_key: str | None = None,
    max_cost: float = math.inf,
) -> Embedder | None:
    """The embedder that `setting` names; None for `none`, which is lexical search only.

    Cheap: nothing is loaded before the first text. Raises BadSetting.
    """
    if setting == "none":
        return None
    provider, _, model = setting.partition(":")
    if provider == "ollama" and model:
        from vademecum.inference.ollama import OllamaEmbedder

        return OllamaEmbedder(model, url=ollama_url)
    if provider == "openai" and model:
        from vademecum.inference.openai import OpenAIEmbedder

        return OpenAIEmbedder(model, url=openai_url, key=openai_key, cap=max_cost)
    if provider == "fastembed" and model:
        from vademecum.inference.fastembed import FastembedEmbedder

        return FastembedEmbedder(model, home=home, threads=threads)
    folder = Path(model).expanduser()
    if provider != "local" or not (model == MODEL or folder.is_absolute()):
        raise BadSetting(
            f"there is no embedder {setting!r}", hint=f"Known embedders: {', '.join(KNOWN)}."
        )
    from vademecum.inference.local import LocalEmbedder

    return LocalEmbedder(home=home, threads=threads, folder=None if model == MODEL else folder)
