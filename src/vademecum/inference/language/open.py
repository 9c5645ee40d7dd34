"""From the setting `provider:model` to the language model it names."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from vademecum.errors import BadSetting
from vademecum.inference.language import anthropic, openai
from vademecum.inference.language.anthropic import AnthropicModel
from vademecum.inference.language.ollama import OllamaModel
from vademecum.inference.language.openai import OpenAIModel

KNOWN = "anthropic:MODEL, openai:MODEL (OpenAI, or any server that speaks as it does), ollama:MODEL"

Adapter = AnthropicModel | OpenAIModel | OllamaModel


def open_language_model(
    setting: str,
    *,
    environment: Mapping[str, str],
    url: str | None,
    key: str | None,
    openai_url: str,
    openai_key: str | None,
    ollama_url: str,
    seconds: float,
) -> Adapter:
    """The model that `setting` names; addresses and keys are the environment's.

    `url` and `key` go before: a provider's own key is not sent elsewhere. A server other than the
    provider's own may do without a key. Cheap: nothing is asked before the first prompt. Raises
    BadSetting.
    """
    provider, _, model = setting.partition(":")
    if provider not in ("anthropic", "openai", "ollama") or not model:
        raise BadSetting(f"there is no language model {setting!r}", hint=f"Known are {KNOWN}.")
    if provider == "ollama":
        return OllamaModel(model, url=_checked(url or ollama_url), seconds=seconds)
    module = anthropic if provider == "anthropic" else openai
    usual_key = environment.get(module.KEY) or None
    if url is None and (base := environment.get(module.BASE)):
        url, key = base, key or usual_key
    elif url is None and provider == "openai" and openai_url != openai.URL:
        url, key = openai_url, key or openai_key
    elif url is None:
        url, key = module.URL, key or (openai_key if provider == "openai" else None) or usual_key
    if key is None and url.rstrip("/") == module.URL:
        raise BadSetting(
            f"{setting} needs a key, and {module.KEY} is not set",
            hint=f"Set {module.KEY}, or {module.BASE} for a server of your own.",
        )
    adapter = AnthropicModel if provider == "anthropic" else OpenAIModel
    return adapter(model, key=key, url=_checked(url), seconds=seconds)


def _checked(address: str) -> str:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadSetting(
            "the address of the language model is not one of the web",
            hint="It looks like http://127.0.0.1:8000/v1.",
        )
    return address
