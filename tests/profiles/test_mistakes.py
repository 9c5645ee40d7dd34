"""A declaration with mistakes: each is told with its line."""

import pytest

from vademecum.errors import BadProfile
from vademecum.profiles.profile import parse_profile

GOOD = """\
[chunks]
max_tokens = 400
overlap_tokens = 50
header = \"\"\"
[facets.not_a_table]
{title}\"\"\"

"""


def mistakes(text: str) -> list[tuple[int, str]]:
    with pytest.raises(BadProfile) as caught:
        parse_profile("my.toml", text)
    return caught.value.mistakes


@pytest.mark.parametrize(
    ("line", "declared", "told"),
    [
        (9, '[facets.tier]\ntype = "number"\npath = "x"', "tier needs a type"),
        (8, '[facets.tier]\nfront_matter = "tier"', "tier needs a type"),
        (8, '[facets.tier]\ntype = "integer"', "tier needs a source"),
        (8, '[facets.Tier-1]\ntype = "integer"', "cannot name a facet"),
        (10, '[facets.a]\ntype = "integer"\npath = "("', "no regular expression"),
        (10, '[facets.a]\ntype = "level"\nvalues = ["A"]\npath = "x"', "lowest first"),
        (10, '[facets.a]\ntype = "date"\nvalues = ["A"]\npath = "x"', "no date"),
        (11, '[facets.a]\ntype = "integer"\nmaximum = 3\ndefault = 4', "-9007199254740992 to 3"),
        (10, '[facets.a]\ntype = "date"\nminimum = 3\npath = "x"', "only an integer"),
        (10, '[facets.a]\ntype = "keyword"\nrequired = "yes"\npath = "x"', "true or false"),
        (
            13,
            '[facets.a]\ntype = "keyword"\nvalues = ["x"]\nfront_matter = "a"\n'
            '[facets.a.classifier]\ny = "x"',
            "must be one of x, not 'y'",
        ),
        (10, '[facets.a]\ntype = "boolean"\nsource = "x"\npath = "x"', "unknown key 'source'"),
        (10, '[facets.a]\ntype = "keyword"\nclassifier = "topics"', "no [[topics]]"),
        (13, '[[topics]]\nname = "A"\npattern = "a"\n[[topics]]\nname = "B"\nptrn = "b"', "ptrn"),
        (8, "[index]\nfields = 3", "unknown key 'index'"),
        (9, "[facets.a]\ntype = keyword", "Invalid value"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(line: int, declared: str, told: str) -> None:
    found = mistakes(GOOD + declared)
    assert [text for at, text in found if at == line and told in text], found


def test_all_of_them_are_told_at_once_and_in_order() -> None:
    found = mistakes(
        "[chunks]\nmax_tokens = 0\noverlap_tokens = 1\nheader = '{nobody}'\n"
        "[facets.a]\ntype = 'keyword'\n"
    )
    assert [line for line, _ in found] == [2, 4, 5]


def test_chunks_are_needed() -> None:
    assert mistakes("") == [(1, "the table [chunks] is missing")]
    assert mistakes("[chunks]\nmax_tokens = 9") == [(1, "[chunks] lacks overlap_tokens, header")]
