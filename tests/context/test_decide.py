import pytest

from vademecum.context.decide import should_query_external


@pytest.mark.parametrize(
    ("task", "given", "looks", "rule"),
    [
        ("look up the documentation of httpx", {"notes": 5}, True, "explicit_request"),
        ("fix it", {"failure": "ValueError: x"}, True, "unsolved_error"),
        ("fix it", {"failure": "ValueError: x", "solved": True}, False, "solved_error"),
        ("fix it", {"failure": "ValueError: x", "notes": 3}, True, "unsolved_error"),
        ("add a retry", {"notes": 3, "new_apis": ["a.b"]}, False, "enough_notes"),
        ("add a retry", {"notes": 2, "new_apis": ["a.b"]}, True, "new_apis"),
        ("rename the client", {"new_apis": ["a.b"]}, False, "refactoring"),
        ("refactor it and add support for b", {"new_apis": ["a.b"]}, True, "new_apis"),
        ("add a retry", {}, False, "nothing_new"),
    ],
)
def test_rules(task: str, given: dict[str, object], looks: bool, rule: str) -> None:
    decision = should_query_external(task, **({"notes": 0} | given))  # type: ignore[arg-type]
    assert (decision.look_outside, decision.rule) == (looks, rule)
    assert decision.reason
