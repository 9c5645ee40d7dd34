"""What language models are told, a file each."""

from importlib.resources import files


def prompt(name: str) -> str:
    """The text of `name`.md."""
    return files("vademecum.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8")
