"""What a changelog says of a package's APIs, and what it only seems to say."""

import pytest

from vademecum.graph.changelog import is_back, notices, resolved
from vademecum.graph.versions import Ecosystem

KNOWN = {
    "shop": False,
    "shop.old": False,
    "shop.json.Encoder": False,
    "shop.client.Client": False,
    "shop.client.Client.send": True,
    "shop.server.Server.send": True,
    "shop.deep.first.helper": False,
    "shop.deep.second.helper": False,
}


def said(text: str, ecosystem: Ecosystem = "pypi") -> dict[str, tuple[str | None, str | None]]:
    found = resolved(notices(text, ecosystem), KNOWN)
    return {name: (one.since, one.until) for name, one in found.items()}


@pytest.mark.parametrize(
    ("item", "api", "since", "until", "replacement"),
    [
        ("`old()` is deprecated: use `new()`.", "shop.old", "2.0", None, "new()"),
        ("The ``old`` function has been deprecated.", "shop.old", "2.0", None, None),
        ("Deprecate `old` in favor of `fresh`.", "shop.old", "2.0", None, "fresh"),
        ("Deprecated `old`. Use `fresh` instead. #123", "shop.old", "2.0", None, "fresh"),
        ("`old` is deprecated and will be removed in 3.0.", "shop.old", "2.0", "3.0", None),
        ("`old` will be removed in 3.0.", "shop.old", None, "3.0", None),
        ("Remove the deprecated `json.Encoder` class.", "shop.json.Encoder", None, "2.0", None),
        ("The `Client.send` method was removed.", "shop.client.Client.send", None, "2.0", None),
        ("`old` had been deprecated. It is now fully removed.", "shop.old", None, "2.0", None),
        ("The `gone` and `old` helpers are removed.", "shop.old", None, "2.0", None),
    ],
)
def test_what_is_said(
    item: str, api: str, since: str | None, until: str | None, replacement: str | None
) -> None:
    found = resolved(notices(f"# Changes\n\n## Version 2.0 (2026-01-02)\n\n- {item}\n"), KNOWN)

    assert list(found) == [api]
    assert (found[api].since, found[api].until) == (since, until)
    assert found[api].replacement == replacement
    assert found[api].sentence.startswith(item[:20])


@pytest.mark.parametrize(
    "item",
    [
        "{option}`old` is deprecated.",
        "The `old` parameter of `Client.send` is deprecated.",
        "Remove the `old` argument from `Client`.",
        "The `size` argument to `old` is deprecated.",
        "Support for files in `old` has been removed.",
        "Fix a deprecation warning in `old`.",
        "`old` is no longer deprecated.",
        "Restore `old`, which was removed.",
        "Deprecated old.",
        "The `send` method is deprecated.",  # of which class?
        "`helper` is deprecated.",  # of which module?
        "`unknown` is deprecated.",
        "Removed locks around `old`.",
    ],
)
def test_what_is_not_said(item: str) -> None:
    assert said(f"## 2.0\n\n- {item}\n") == {}


def test_roles_before_a_name_are_not_told() -> None:
    text = (
        "# 2.0\n\n- {func}`old` is deprecated: use {py:func}`fresh`.\n"
        "- The :meth:`Client.send` was removed.\n"
    )
    found = resolved(notices(text), KNOWN)
    assert [(name, one.replacement, one.sentence) for name, one in found.items()] == [
        ("shop.old", "fresh", "`old` is deprecated: use `fresh`."),
        ("shop.client.Client.send", None, "The `Client.send` was removed."),
    ]


def test_sections_say_the_version_and_what_became_of_their_items() -> None:
    text = """
Unreleased
----------

- `old` was removed.

3.0.0 / 2026-02-03
------------------

### Removed

* `json.Encoder`: use `json`
* support for Python 3.8

### Fixed

* `old`

2.0
---

Deprecations:

- `json.Encoder` is deprecated.

```python
# `old` is deprecated
```
"""

    assert said(text) == {"shop.json.Encoder": ("2.0", "3.0.0")}


def test_what_was_taken_back_later_does_not_count() -> None:
    later = "## 2.1\n\n- Re-add `old`, which was removed by accident.\n\n"
    text = "## 2.0\n\n- `old` is removed.\n- `json.Encoder` is deprecated.\n"

    assert said(later + text) == {"shop.json.Encoder": ("2.0", None)}
    assert "shop.old" in said(text + later.replace("2.1", "1.9"))


def test_a_version_that_has_it_knows_better_than_a_removal_before() -> None:
    [one] = notices("## 2.0\n\n- `old` was removed.\n")

    assert is_back(one, "2.1", "pypi")
    assert is_back(one, "10.0", "pypi")
    assert not is_back(one, "1.9", "pypi")
