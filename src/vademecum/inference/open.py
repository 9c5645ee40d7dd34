"""From the setting `provider:model` to the embedder it names."""

from pathlib import Path

from vademecum.errors import BadSetting
from vademecum.inference.embedder import Embedder
from vademecum.inference.weights import MODEL

KNOWN = (f"local:{MODEL}", "local:/path/to/folder", "none")


def open_embedder(setting: str, *, home: Path, threads: int = 0) -> Embedder | None:
    """The embedder that `setting` names; None for `none`, which is lexical search only.

    Cheap: nothing is loaded before the first text. Raises BadSetting.
    """
    if setting == "none":
        return None
    provider, _, model = setting.partition(":")
    folder = Path(model).expanduser()
    if provider != "local" or not (model == MODEL or folder.is_absolute()):
        raise BadSetting(
            f"there is no embedder {setting!r}", hint=f"Known embedders: {', '.join(KNOWN)}."
        )
    from vademecum.inference.local import LocalEmbedder

    return LocalEmbedder(home=home, threads=threads, folder=None if model == MODEL else folder)
