"""Facets of documents: where they come from, and what a document that lacks them is told."""

import pytest

from vademecum.errors import ProfileViolation
from vademecum.profiles.profile import load_profile, parse_profile, profile_names

COURSE = load_profile("course")
LESSON = {"module": "ros2", "chapter": 1, "lesson": 2, "hardware_tier": 1}


def test_front_matter_goes_before_the_path_and_that_before_the_default() -> None:
    path = "module-1-ros2/chapter-3/04-nodes.md"
    assert COURSE.facets_of(path, {"hardware_tier": "2", "lesson": 7, "level": "b1"}, "") == {
        "module": "ros2",
        "chapter": 3,
        "lesson": 7,
        "hardware_tier": 2,
        "proficiency_level": "B1",
        "layer": "L1",
    }


@pytest.mark.parametrize(
    ("path", "module", "chapter", "lesson"),
    [
        ("docs/module-2/chapter-1/01-lesson.md", "gazebo", 1, 1),
        ("module-4/README.md", "vla", 0, 0),
        ("module-3-isaac/chapter-12/index.md", "isaac", 12, 0),
        ("module-1/chapter-02/lesson-15-slam.mdx", "ros2", 2, 15),
    ],
)
def test_a_book_says_by_its_paths_where_a_lesson_stands(
    path: str, module: str, chapter: int, lesson: int
) -> None:
    facets = COURSE.facets_of(path, {"tier": 1}, "")
    assert (facets["module"], facets["chapter"], facets["lesson"]) == (module, chapter, lesson)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"chapter": 21}, "chapter must be 0 to 20, not 21"),
        ({"lesson": -1}, "lesson must be 0 to 15, not -1"),
        ({"hardware_tier": "high"}, "hardware_tier must be a whole number, not 'high'"),
        ({"hardware_tier": True}, "hardware_tier must be a whole number, not 'True'"),
        ({"module": "cooking"}, "module must be one of ros2, gazebo, isaac, vla, not 'cooking'"),
        ({"level": ["A1", "A2"]}, "proficiency_level must be one value"),
    ],
)
def test_a_value_that_is_not_allowed_is_named(metadata: dict[str, object], reason: str) -> None:
    with pytest.raises(ProfileViolation, match=f"violates profile course: {reason}"):
        COURSE.facets_of("a.md", LESSON | metadata, "")


def test_every_reason_is_told_at_once() -> None:
    with pytest.raises(ProfileViolation) as caught:
        COURSE.facets_of("a.md", {"front_matter_error": "line 2: no colon"}, "")
    assert [reason.split(" ")[0] for reason in caught.value.reasons] == [
        "module",
        "hardware_tier",
        "the",
    ]
    assert "no `hardware_tier` in the front matter" in str(caught.value)


def test_a_reference_classifies_by_the_text() -> None:
    profile = load_profile("reference")
    text = "# json.dumps(obj)\n\nMakes text.\n\n## Examples\n\nNone."
    metadata = {"tags": ["json", "text", "json"], "date": "2024-02-29T10:00:00"}
    assert profile.facets_of("python/3.12/json.md", metadata, text) == {
        "version": "3.12",
        "kind": "function",
        "examples": True,
        "deprecated": False,
        "tags": ["json", "text"],
        "updated": "2024-02-29",
    }


def test_a_facet_may_be_the_topic_of_the_document() -> None:
    profile = parse_profile(
        "sql",
        '[chunks]\nmax_tokens = 100\noverlap_tokens = 0\nheader = ""\n'
        '[facets.about]\ntype = "keyword"\nclassifier = "topics"\n'
        "[[topics]]\nname = 'JOIN'\npattern = '\\bjoin\\b'\n",
    )
    assert profile.facets_of("a.md", {}, "A JOIN of tables") == {"about": "JOIN"}
    assert profile.facets_of("a.md", {}, "Nothing") == {}


def test_every_profile_that_comes_with_it_is_good() -> None:
    assert {"course", "docs", "kb", "reference", "web"} <= set(profile_names())
    for name in profile_names():
        load_profile(name)
