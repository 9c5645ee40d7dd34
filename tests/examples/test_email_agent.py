"""The example as a user runs it, on two messages of one user from two addresses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vademecum.settings import Settings

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "email_agent.py"
MAIL = """From: Jane Doe <{sender}>
To: agent@vade.example
Subject: leave
Message-ID: <{number}@forces.example>
Content-Type: text/plain; charset=utf-8

{text}

Regards,
Jane
"""


def test_the_second_reply_knows_what_the_first_message_told(
    settings: Settings, tmp_path: Path
) -> None:
    first, second = tmp_path / "1.eml", tmp_path / "2.eml"
    text = "I prefer concise answers.\n\nMy service number is A12 345 678."
    first.write_text(MAIL.format(sender="jane.doe@forces.example", number=1, text=text))
    text = "I have a question about leave policy."
    second.write_text(MAIL.format(sender="Jane.Doe@ecn.forces.example", number=2, text=text))

    done = subprocess.run(
        [sys.executable, EXAMPLE, first, second],
        env=dict(
            os.environ, VADE_HOME=str(settings.home), VADE_DATABASE_URL=str(settings.database_url)
        ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    one, two = done.stdout.split("--- 2.eml")
    assert "<memory>\nNo prior interaction history.\n</memory>" in one
    assert "Prefers concise answers." in two
    assert "345" not in two
    assert "jane" not in two.casefold()


@pytest.mark.parametrize(("arguments", "said"), [([], "usage"), (["absent.eml"], "absent.eml")])
def test_wrong_input_is_told_in_one_line(
    settings: Settings, tmp_path: Path, arguments: list[str], said: str
) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLE, *arguments],
        cwd=tmp_path,
        env=dict(
            os.environ, VADE_HOME=str(settings.home), VADE_DATABASE_URL=str(settings.database_url)
        ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
