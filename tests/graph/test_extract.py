"""Which sentences of a page are taken for best practices."""

from datetime import UTC, datetime

import pytest

from vademecum.graph.extract import practices
from vademecum.graph.nodes import ExternalDoc

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def found(sentence: str, url: str = "https://lib.example/docs/forms.html") -> int:
    doc = ExternalDoc(
        source="python_docs", source_url=url, title="Forms", content_hash="", last_updated=NOW
    )
    return len(practices(doc, f"# Forms\n\n{sentence}\n", now=NOW))


@pytest.mark.parametrize(
    "sentence",
    [
        "Never unpickle data that could have come from an untrusted source.",
        "Ensure the __str__() method does indeed return text that doesn't require escaping.",
        "Always use placeholders instead of string formatting to bind values to SQL statements.",
        "You should always have a simple means of recreating an environment.",
    ],
)
def test_advice_that_stands_by_itself(sentence: str) -> None:
    assert found(sentence) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "Make sure your web server never attempts to interpret them.",
        "Make sure you have Apache installed with the mod_wsgi module activated.",
        "Make sure the commit message for each security fix explains that it is one.",
        "Don't use the ticket tracker for lengthy discussions, because they get lost.",
        "Consider using ConfigParser instead which checks types of the values.",
        "If both variables exist and disagree, lowercase is preferred.",
        "The egg loader is deprecated as distributing applications as eggs is not recommended.",
        "The format is not specified, so you should not rely on the returned string.",
        "Any other use is strongly discouraged by the project.",
        "We recommend that users of these APIs code defensively.",
    ],
)
def test_steps_descriptions_and_what_lacks_its_subject(sentence: str) -> None:
    assert found(sentence) == 0


def test_pages_for_contributors_and_of_what_changed_give_none() -> None:
    advice = "Never unpickle data that could have come from an untrusted source."
    for page in (
        "internals/security.html",
        "releases/4.2/",
        "intro/tutorial01/",
        "contributing.md",
    ):
        assert found(advice, f"https://lib.example/docs/{page}") == 0
    assert found(advice, "https://docs.example/3/tutorial/errors.html") == 1
