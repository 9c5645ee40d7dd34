import pytest

from vademecum.notes.contradiction import contradicts, same


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The pool has 12 connections.", "The pool has 6 connections."),
        ("We deploy with Python 3.12.", "We deploy with Python 3.11."),
        ("Do not edit migrations after the merge.", "Edit migrations after the merge."),
        ("The cache is disabled in tests.", "The cache is enabled in tests."),
        ("Tests don't mock our own code.", "Tests mock our own code."),
        ("Read it. The pool has 12 connections.", "The pool has 6 connections. It is small."),
    ],
)
def test_what_says_otherwise(new: str, old: str) -> None:
    assert contradicts(new, old)
    assert contradicts(old, new)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("The pool has 6 connections.", "The pool has 6 connections."),
        ("The pool has 6 connections.", "The queue has 3 retries."),
        ("Port 80 is for the web.", "Port 5432 is for the database."),
        ("The web server listens on 80.", "The database is not reachable from the web."),
        ("Use black.", "Use ruff."),
        ("The parser reads Markdown.", "The writer makes HTML from Markdown files of users."),
        ("Never log secrets.", "Never log tokens of the API in production."),
    ],
)
def test_what_does_not(new: str, old: str) -> None:
    assert contradicts(new, old) is None


def test_the_same_words() -> None:
    assert same("Use  `ruff`.", "use ruff")
    assert not same("Use ruff", "Use black")
