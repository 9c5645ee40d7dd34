from pathlib import Path

import pytest

from vademecum.ingest.read import read_bytes
from vademecum.types import Document


def read(text: str) -> Document:
    return read_bytes(text.encode(), name="a-page.rst")


def test_a_page() -> None:
    document = read(
        """\
:author: Somebody

=====
Title
=====

Words with *emphasis*, **bold**, ``code`` and `a link <https://e.org>`_.

Section
-------

* a
* b

  1. c
  2. d

Sub
~~~

term
    Its meaning.

-o FILE    Output.

::

    literal  text

>>> 1 + 1
2

+---+---+
| a | b |
+===+===+
| 1 | 2 |
+---+---+

    A quote.

.. a comment
"""
    )
    assert document.title == "Title"
    assert document.metadata == {"author": "Somebody"}
    assert document.text == (
        "# Title\n\nWords with *emphasis*, **bold**, `code` and [a link](https://e.org).\n\n"
        "## Section\n\n- a\n\n- b\n  1. c\n  2. d\n\n".replace("- a\n\n- b", "- a\n- b")
        + "### Sub\n\n- **term**: Its meaning.\n\n- **-o FILE**: Output.\n\n"
        "```\nliteral  text\n```\n\n```python\n>>> 1 + 1\n2\n```\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n> A quote."
    )


@pytest.mark.parametrize(
    ("markup", "markdown"),
    [
        (":ref:`the text <target>` and :doc:`page`", "the text and page"),
        (":func:`open` :class:`~a.B` :meth:`!x.y()` :envvar:`HOME` :pep:`8`",
         "`open()` `a.B` `x.y()` `HOME` [PEP 8](https://peps.python.org/pep-0008)"),
        (":py:func:`f` :unknown:`words` `default.role` `a title`",
         "`f()` words `default.role` a title"),
        (":menuselection:`File --> Open` :file:`a/{b}.txt`", "File → Open `a/b.txt`"),
        (".. note:: Mind.\n\n   More.", "**Note:** Mind.\n\nMore."),
        (".. warning::\n\n   * a", "**Warning:**\n\n- a"),
        (".. code-block:: python\n   :linenos:\n   :caption: x.py\n\n   x = 1",
         "**x.py**\n\n```python\nx = 1\n```"),
        (".. sourcecode:: sh\n\n   ls", "```sh\nls\n```"),
        (".. code:: python\n   :unknown: 1\n\n   x = 1", "```python\nx = 1\n```"),
        (".. click:example::\n\n   @x\n   def f(): ...", "```\n@x\ndef f(): ...\n```"),
        (".. versionadded:: 3.1", "New in version 3.1"),
        (".. versionchanged:: 3.2 Now :func:`f`.", "Changed in version 3.2: Now `f()`."),
        (".. deprecated:: 4\n   Use *x*.", "Deprecated since version 4: Use *x*."),
        (".. toctree::\n   :maxdepth: 2\n\n   intro\n   The end <end>", "- intro\n- The end"),
        (".. seealso::\n\n   Words.", "**See also**\n\nWords."),
        (".. unknown-thing:: Argument\n   :option: x\n\n   The *content*.",
         "**Argument**\n\nThe *content*."),
        (".. list-table::\n   :header-rows: 1\n\n   * - a\n     - b\n   * - 1\n     - 2",
         "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        (".. figure:: x.png\n   :alt: A chart\n\n   The caption.", "A chart\n\nThe caption."),
        (".. image:: x.png\n   :nonsense: y\n\n   Survives.", "Survives."),
        (".. index:: x\n.. highlight:: c\n\nwords", "words"),
        (".. contents::\n\nwords", "words"),
        (".. |x| replace:: the *words*\n\nHere |x|.", "Here the *words*."),
        (".. math:: x^2", "```math\nx^2\n```"),
        ("See [1]_.\n\n.. [1] Footnote.", "See [1].\n\n[1] Footnote."),
    ],
)  # fmt: skip
def test_markup(markup: str, markdown: str) -> None:
    assert read(f"Title\n=====\n\n{markup}\n").text.removeprefix("# Title").strip() == markdown


def test_signatures_are_headings_over_their_description() -> None:
    document = read(
        "Title\n=====\n\nSection\n-------\n\n.. py:class:: A(x)\n\n   An A.\n\n"
        "   .. py:method:: run(a, \\\n         b)\n                  run()\n\n      Runs.\n"
    )
    assert document.text == (
        "# Title\n\n## Section\n\n### A(x)\n\nAn A.\n\n"
        "#### run(a,                       b)\n\n`run()`\n\nRuns."
    ).replace("run(a,                       b)", "run(a, b)")


@pytest.mark.parametrize(
    "directive",
    [
        ".. include:: {}",
        ".. literalinclude:: {}",
        ".. csv-table::\n   :file: {}",
        ".. raw:: html\n   :file: {}",
        ".. raw:: html\n   :url: file://{}",
        ".. figure:: {}",
        ".. code-block:: text\n   :include: {}",
    ],
)
def test_no_other_file_is_read(directive: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2,hunter2")
    assert "hunter2" not in read(f"words\n\n{directive.format(secret)}\n\nend").text


def test_raw_markup_is_left_out() -> None:
    assert (
        read("words\n\n.. raw:: html\n\n   <script>alert(1)</script>\n\nend").text == "words\n\nend"
    )


def test_errors_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    document = read("Title\n==\n\n*open `and |wrong|_ :bad:`x`\n\n  odd\n indent\n\n.. nope::\n")
    assert "open" in document.text
    assert capfd.readouterr() == ("", "")


def test_title_without_an_overline_and_without_any() -> None:
    assert read("No section here.").title == "A page"
    two = read("One\n===\n\na\n\nTwo\n===\n\nb")
    assert (two.title, two.text) == ("One", "# One\n\na\n\n# Two\n\nb")
