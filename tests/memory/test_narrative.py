"""The narrator: what it takes from gated sentences, and how it says it."""

import pytest

from vademecum.memory.narrative import learn, narrate


def told(*exchanges: str) -> str:
    facts: dict[str, object] = {}
    for exchange in exchanges:
        facts, _ = learn(facts, exchange, agent="policy")
    return narrate(facts)


@pytest.mark.parametrize(
    ("said", "narrated"),
    [
        ("I am a corporal and work as a mechanic.", "The user is a corporal and a mechanic."),
        ("I'm a sergeant now.", "The user is a sergeant."),
        ("I am a corporal and need help with pay.", "The user is a corporal."),
        ("I serve as a naval officer.", "The user is a naval officer."),
        ("I work as engineer.", "The user is an engineer."),
        ("I'd like detailed answers in French.", "Prefers detailed answers in French."),
        ("J'aimerais des réponses courtes.", "Prefers réponses courtes."),
        ("I am learning Kubernetes.", "Is learning Kubernetes."),
        ("I usually write notes for my team.", "Usually writes notes for their team."),
        ("I use Excel for planning.", "Uses Excel for planning."),
        ("I prefer short answers and usually work in Python.", "Prefers short answers."),
        ("I prefer short answers, and I usually work in Python.", "Usually works in Python."),
    ],
)
def test_a_fact_is_told_in_the_third_person(said: str, narrated: str) -> None:
    assert narrated in told(said)


def test_a_new_role_replaces_the_one_before() -> None:
    text = told("I am a corporal.", "I am a sergeant.")

    assert "The user is a sergeant." in text
    assert "Was a corporal before." in text


def test_small_talk_is_no_fact() -> None:
    assert learn({}, "I am happy to hear that. I need this today.", agent="policy") == ({}, False)
