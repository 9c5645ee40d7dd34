"""Settings: one frozen value, read once from the environment; unknown ones are refused.

Nothing here touches the disk or the network.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from vademecum.errors import BadSetting

DATABASE_VARIABLES = ("VADE_DATABASE_URL", "PRJ_NEON_DATABASE_URL", "DATABASE__URL")
"""Where a connection string may stand, first one wins."""

OLLAMA_URL = "http://127.0.0.1:11434"
"""Where Ollama listens unless told otherwise."""
OPENAI_URL = "https://api.openai.com/v1"
PINECONE_URL = "https://api.pinecone.io"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Each field is the environment variable VADE_<NAME>."""

    home: Path
    """Folder of everything kept on this machine: the embedded database and the model cache."""
    database_url: str | None = None
    """Any PostgreSQL; None is the embedded one under `home`."""
    replica_url: str | None = None
    """A read replica of it, from which searches read while it keeps up."""
    collection: str | None = None
    """The collection that commands use where none is named."""
    embedder: str = "local:all-MiniLM-L6-v2"
    """`provider:model` of new collections, or `none` for lexical search only."""
    threads: int = 0
    """Threads of the local embedder; 0 is one for each core."""
    ollama_url: str = OLLAMA_URL
    """The server of embedders `ollama:MODEL`."""
    openai_url: str = OPENAI_URL
    """The server of embedders `openai:MODEL`: OpenAI's, or any that speaks as it does."""
    openai_key: str | None = field(default=None, repr=False)
    """Its key; else OPENAI_API_KEY, where the server is OpenAI's."""
    max_cost: float = 5.0
    """US dollars that the embedding of one run may cost."""
    model: str | None = None
    """The language model, `provider:model`; None is none."""
    model_url: str | None = None
    """The server of the language model, where it is not the provider's own."""
    model_key: str | None = field(default=None, repr=False)
    """The key for `model_url`; the providers' own are the usual variables."""
    model_for: str = "answer,summary"
    """What the language model is for, by commas, where no option says so."""
    model_seconds: float = 60.0
    """Time of one call of the language model, with all its tries."""
    model_concurrency: int = 4
    """Calls of language models at once."""
    spend_limit: float = 1.0
    """US dollars that one process may spend on language models; inf is no limit."""
    prices: Path | None = None
    """A file of prices that go before ours."""
    qdrant_url: str | None = None
    """The server that collections are promoted to by `--to qdrant`, or a folder for trials."""
    qdrant_key: str | None = field(default=None, repr=False)
    pinecone_url: str = PINECONE_URL
    """Pinecone's control plane."""
    pinecone_key: str | None = field(default=None, repr=False)
    """Its key; else PINECONE_API_KEY, where the server is Pinecone's."""
    pinecone_region: str = "aws:us-east-1"
    """`cloud:region` of indexes that are made."""
    reranker: str | None = None
    """Who reranks where that is asked for: `local:/folder`, `package:NAME`, `hub:ORG/MODEL`, a
    language model `provider:model`, or `none`; None is a cross-encoder in the hub's cache."""
    rerank_ms: int = 2000
    """Reranking takes at most so many milliseconds; then the fused order stands."""
    traces_url: str | None = None
    """Where spans are sent, OTLP over HTTP; None is no tracing."""
    traces_experiment: str = "0"
    """The id of MLflow's experiment; 0 is its default one."""
    max_file_bytes: int = 32 * 1024 * 1024
    """Larger files and pages are reported and skipped."""
    read_seconds: int = 30
    """Processor time that reading one document may take before it is reported and skipped."""
    idle_minutes: int = 15
    """The embedded database stops after so long without a client."""
    memory_key: str | None = None
    """Secret of this installation that users are hashed with; another one finds none of them."""
    memory_allowed: str = ""
    """Words, by commas, that the privacy gate of the memory is to let through."""
    kept_megabytes: int = 200
    """Memory in which a process keeps collections that it is often asked to search; 0 keeps
    none."""
    search_log_days: int = 90
    """How long is kept which sources were read after which search; 0 keeps nothing of it."""
    neo4j_url: str | None = None
    """A Neo4j server that follows the graph: bolt://127.0.0.1:7687."""
    neo4j_user: str = "neo4j"
    neo4j_password: str | None = field(default=None, repr=False)
    neo4j_database: str | None = None
    """None is the user's own."""
    port: int = 8233
    """Where `vade serve` listens on loopback; 0 is any free port. (8233 is VADE on a telephone.)"""
    key_rate: int = 50
    """Requests a second that an API key may make, unless it has a rate of its own; 0 is no
    limit."""
    max_requests: int = 64
    """Requests that the server answers at once; more are sent away for a moment. 0 is no
    limit."""
    hook_cap_ms: int = 300
    """A hook delays an agent by at most so many milliseconds."""
    hook_context_tokens: int = 500
    """What is known of a prompt is told in at most so many tokens, where that hook is installed."""


def load_settings(
    environment: Mapping[str, str] | None = None, *, database_url: str | None = None
) -> Settings:
    """The settings of this process. An explicit `database_url` goes before the environment.

    Raises BadSetting for an unknown VADE_ variable or a value that cannot be read.
    """
    environment = os.environ if environment is None else environment
    types = {one.name: one.type for one in fields(Settings)}
    values: dict[str, object] = {"home": Path.home() / ".vademecum"}
    for variable, text in environment.items():
        if not variable.startswith("VADE_"):
            continue
        name = variable.removeprefix("VADE_").lower()
        if name not in types:
            raise BadSetting(
                f"{variable} is not a setting",
                hint="Settings are " + ", ".join(f"VADE_{n.upper()}" for n in types) + ".",
            )
        if text:
            values[name] = _parse(variable, text, types[name])
    for variable in DATABASE_VARIABLES:
        if environment.get(variable):
            values["database_url"] = environment[variable]
            break
    if database_url:
        values["database_url"] = database_url
    # A key is sent only where it is meant for.
    for variable, setting, server, own in (
        ("OPENAI_API_KEY", "openai_key", "openai_url", OPENAI_URL),
        ("PINECONE_API_KEY", "pinecone_key", "pinecone_url", PINECONE_URL),
    ):
        if environment.get(variable) and values.get(server, own) == own:
            values.setdefault(setting, environment[variable])
    return Settings(**values)  # type: ignore[arg-type]


def _parse(variable: str, text: str, type_: object) -> object:
    if type_ in (Path, Path | None):
        return Path(text).expanduser().absolute()
    if type_ is int:
        if not text.isdecimal():
            raise BadSetting(f"{variable} must be a whole number, not {text!r}")
        return int(text)
    if type_ is float:
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not number >= 0:
            raise BadSetting(f"{variable} must be a number from 0 up, not {text!r}")
        return number
    return text
