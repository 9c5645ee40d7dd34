"""What stands before documents and queries, by each model's own card; no server adds it."""

PREFIXES = {
    "nomic-embed-text": ("search_document: ", "search_query: "),
    "mxbai-embed-large": ("", "Represent this sentence for searching relevant passages: "),
    "snowflake-arctic-embed": ("", "Represent this sentence for searching relevant passages: "),
    "e5-": ("passage: ", "query: "),
    "multilingual-e5-": ("passage: ", "query: "),
}
"""By the beginning of the model's name, without its owner."""


def prefixes(model: str) -> tuple[str, str]:
    """The prefixes of documents and of queries; `owner/name:tag` is known by its name."""
    return next(
        (both for name, both in PREFIXES.items() if family(model).startswith(name)), ("", "")
    )


def family(model: str) -> str:
    """The model's name without owner and tag."""
    return model.rpartition("/")[2].partition(":")[0].lower()
