import time

import pytest

from vademecum.errors import UnreadableSource
from vademecum.ingest.read import read_bytes
from vademecum.types import Document

PROSE = "These are the words of the page, long enough that nobody takes them for a menu."


def read(html: str, name: str = "a-page.html") -> Document:
    return read_bytes(html.encode(), name=name)


def body(html: str, name: str = "a-page.html") -> str:
    return read(f"<main>{html}</main>", name).text


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h2>A <em>b</em> <code>c</code></h2><p>d\n  e</p>", "## A b c\n\nd e"),
        ("<p>one<br>two<br/>three</p>", "one\ntwo\nthree"),
        ("a <b>bold</b>, <i>it </i>x, un<b>believ</b>able, <em><code>c</code></em>",
         "a **bold**, *it* x, unbelievable, `c`"),
        ("<code>a</code><code>b</code> <code>c</code>, <code>x`y</code>", "`ab c`, `` x`y ``"),
        ("m<sup>2</sup> x<sub>1</sub> note<sup><a href='#n'>[1]</a></sup>", "m^2 x1 note[1]"),
        ("<p>a &lt;b&gt; &amp; &#8364; &nbsp; c</p>", "a <b> & € c"),
        ("<p># no heading</p><p>- no list</p>", "\\# no heading\n\n\\- no list"),
        ('<a href="https://e.org/a b(c)">t [x]</a> <a href="#x">here</a> <a href="">e</a>',
         "[t [x]](https://e.org/a%20b%28c%29) here e"),
        ('<a href="javascript:x()">js</a> <a href="rel/b.html">rel</a> <a href="x"></a>',
         "js [rel](rel/b.html)"),
        ('<h2>T<a class="headerlink" href="#t">¶</a></h2><h3>U <a href="#u">#</a></h3>',
         "## T\n\n### U"),
        ('<p>An <img src="x.png" alt="apple"> and <img alt="x.png"></p>', "An apple and"),
        ("<ul><li>a<ul><li>b</li><li><p>c</p><p>d</p></li></ul></li><li>e</li></ul>",
         "- a\n  - b\n\n  - c\n\n    d\n\n- e"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ol><li>a<pre>x\ny</pre></li></ol>", "1. a\n\n   ```\n   x\n   y\n   ```"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<blockquote><ul><li>a</li></ul></blockquote>", "- a"),
        ("<dl><dt>-a</dt><dt>--all</dt><dd>All.</dd>"
         "<dt><code>-b</code></dt><dd><p>B.</p><p>C.</p></dd></dl>",
         "- **-a**, **--all**: All.\n\n- `-b`: B.\n\n  C."),
        ("<details><summary>More</summary>words</details>", "**More**\n\nwords"),
        ("<div class=note><h3 class=title>Note</h3><p>Mind.</p></div>", "**Note:** Mind."),
        ('<div class="admonition tip"><p class="admonition-title">Tip</p><ul><li>a</ul></div>',
         "**Tip:**\n\n- a"),
        ("<p>a</p><p hidden>b</p><p style='color:red; display: none'>c</p>"
         "<span aria-hidden=true>d</span>", "a"),
        ("<script>x</script><style>y</style><noscript>z</noscript><p>a<button>Copy</button></p>",
         "a"),
        ("<nav>x</nav><div class=breadcrumbs>y</div><div id=toc>z</div>text", "text"),
        ("<math alttext='x^2'><mi>x</mi></math> <ruby>漢<rt>kan</rt></ruby>", "$x^2$ 漢"),
    ],
)  # fmt: skip
def test_elements(html: str, markdown: str) -> None:
    assert body(f"<p>{PROSE}</p>{html}").removeprefix(PROSE).strip() == markdown


@pytest.mark.parametrize(
    ("html", "fence"),
    [
        ("<pre>a\n  b  \n\n</pre>", "```\na\n  b\n```"),
        ("<pre><code class='hljs language-js'>x</code></pre>", "```javascript\nx\n```"),
        ("<div class='highlight-python3 notranslate'><div class=highlight><pre><span></span>"
         "<span class=k>def</span> f\n</pre></div></div>", "```python\ndef f\n```"),
        ("<div class='highlight highlight-source-shell'><pre>ls</pre></div>", "```shell\nls\n```"),
        ("<pre class=programlisting>SELECT 1</pre>", "```\nSELECT 1\n```"),
        ("<pre class='highlight'><code data-lang='ruby'>x</code></pre>", "```ruby\nx\n```"),
        ("<pre><code>a()</code><code>b()</code></pre>", "```\na()\n\nb()\n```"),
        ("<pre>a<br>b</pre>", "```\na\nb\n```"),
        ("<pre>x ``` y</pre>", "````\nx ``` y\n````"),
        ("<pre><span class=linenos>1</span>a\n<span class=linenos>2</span>b</pre>",
         "```\na\nb\n```"),
        ("<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre></td>"
         "<td class=code><pre>a\nb</pre></td></tr></table>", "```\na\nb\n```"),
        ("<pre>&gt;&gt;&gt; 1 &lt; 2</pre>", "```python\n>>> 1 < 2\n```"),
    ],
)  # fmt: skip
def test_code_blocks(html: str, fence: str) -> None:
    assert body(html) == fence


@pytest.mark.parametrize(
    ("rows", "markdown"),
    [
        ("<tr><th>a<th>b<tr><td>1|2<td><p>x</p><p>y</p>",
         "| a | b |\n| --- | --- |\n| 1\\|2 | x y |"),
        ("<tr><td>1<td>2<tr><td>3<td>4", "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |"),
        ("<tr><th>a<th>b<th>c<tr><td rowspan=2>1<td colspan=2>2<tr><td>3<td>4",
         "| a | b | c |\n| --- | --- | --- |\n| 1 | 2 |  |\n| 1 | 3 | 4 |"),
        ("<caption>Cap</caption><tr><th>a<th>b<tr><td>1<td><ul><li>x<li>y</ul>",
         "**Cap**\n\n| a | b |\n| --- | --- |\n| 1 | x; y |"),
        ("<tr><th>Function<tr><td><p class=func_signature><code>f</code> ( <code>x</code> )</p>"
         "<p>Does.</p><tr><td>g", "**Function**\n\n- `f ( x )`\n  Does.\n- g"),
        ("<tr><th>a<th>b<tr><td>1<td><pre>x\ny</pre>",
         "- **a:** 1\n\n  **b:**\n\n  ```\n  x\n  y\n  ```"),
        ("<tr><td>--flag<td><tr><td><td>What it does.", "- --flag: What it does."),
        ("<tr><td><h2>Head</h2><p>layout</p>", "## Head\n\nlayout"),
        ("", ""),
    ],
)  # fmt: skip
def test_tables(rows: str, markdown: str) -> None:
    found = body(f"<p>{PROSE}</p><table>{rows}</table>")
    assert found.removeprefix(PROSE).strip() == markdown


def test_signatures_of_an_api_are_headings_that_keep_their_description() -> None:
    long = ", ".join(f"argument_{i}=None" for i in range(9))
    assert body(
        "<h1>m</h1><h2>Use</h2>"
        '<dl class="py class"><dt class="sig sig-object py" id="m.A"><em class="property">class '
        '</em><span class="sig-prename">m.</span><span class="sig-name">A</span>(<em>x</em>)'
        '<a class="reference" href="#"><span class="viewcode-link">[source]</span></a>'
        '<a class="headerlink" href="#m.A" title="Link">¶</a></dt><dd><p>An A.</p>'
        f'<dl class="py method"><dt class="sig">run({long})</dt><dt class="sig">run()</dt>'
        "<dd><p>Runs.</p></dd></dl></dd></dl>"
    ) == (
        "# m\n\n## Use\n\n### class m.A(x)\n\nAn A.\n\n#### run(…)\n\n"
        f"`run({long})`\n\n`run()`\n\nRuns."
    )


MENU = "".join(f"<li><a href=/{i}>A menu entry {i}</a></li>" for i in range(30))


@pytest.mark.parametrize(
    "page",
    [
        "<header>Site</header><nav>{menu}</nav><main><h1>T</h1>{p}</main><footer>(c)</footer>",
        "<div id=sidebar><ul>{menu}</ul></div><div role=main><h1>T</h1>{p}</div>",
        "<ul>{menu}</ul><article><h1>T</h1>{p}</article><aside>Ads and more of them</aside>",
        "<main><div class=side><ul>{menu}</ul></div><article><h1>T</h1>{p}</article></main>",
        "<div class=document><div class=body><h1>T</h1>{p}</div></div><div class=x>{menu}</div>",
        "<div class=navheader>x</div><h1>T</h1>{p}<div class=navfooter>{menu}</div>",
        "<div class=cookie-banner>We use cookies</div><ul>{menu}</ul><h1>T</h1>{p}",
        "<table><tr><td><ul>{menu}</ul></td><td><h1>T</h1>{p}</td></tr></table>",
        "<form><div id=content><h1>T</h1>{p}</div></form><div>{menu}</div>",
        "<header><h1>T</h1></header><div class=main-content>{p}</div><ul>{menu}</ul>",
    ],
)
def test_only_the_main_content(page: str) -> None:
    found = read(page.format(menu=MENU, p=f"<p>{PROSE}</p>" * 3))
    assert found.text == "# T\n\n" + "\n\n".join([PROSE] * 3)
    assert found.title == "T"


def test_an_index_page_keeps_its_links() -> None:
    assert "[A menu entry 7](/7)" in read(f"<nav>x</nav><h1>All</h1><ul>{MENU}</ul>").text


def test_several_articles_are_all_kept() -> None:
    articles = "".join(f"<article><h2>{i}</h2><p>{PROSE}</p></article>" for i in range(5))
    assert read(f"<div id=list>{articles}</div>").text.count(PROSE) == 5


def test_tab_panels_are_content_although_hidden() -> None:
    assert "second" in body(f"<p>{PROSE}</p><div role=tabpanel hidden>second</div>")


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        (
            "json — JSON encoder — Python 3.11 documentation",
            "json — JSON encoder¶",
            "json — JSON encoder",
        ),
        ("Install | Tool", "", "Install"),
        ("Install - Tool Docs", "", "Install"),
        ("Install - on Linux", "", "Install - on Linux"),
        ("git-commit - Record changes", "git-commit(1)", "git-commit(1)"),
        ("Tool", "Install", "Install"),
        ("", "", "A page"),
        ("Tool documentation", "", "Tool documentation"),
    ],
)
def test_title(title: str, heading: str, expected: str) -> None:
    html = f"<title>{title}</title><main><h1>{heading}</h1><p>{PROSE}</p></main>"
    assert read(html).title == expected


def test_metadata() -> None:
    document = read(
        '<html lang="en"><head><meta name="description" content=" What it\n is. ">'
        '<link rel="canonical" href="/b"><meta property="article:published_time" content="2024">'
        '<meta name="viewport" content="x"><meta property="og:site_name" content="Site">'
        f"<title>Page - Site</title></head><body><p>{PROSE}</p></body></html>",
        "https://example.org/a?x=1",
    )
    assert document.title == "Page"
    assert document.metadata == {
        "lang": "en",
        "description": "What it is.",
        "canonical": "https://example.org/b",
        "date": "2024",
    }


@pytest.mark.parametrize(
    ("base", "link"),
    [
        ("", "https://example.org/docs/b.html"),
        ('<base href="/x/">', "https://example.org/x/b.html"),
    ],
)
def test_links_of_a_web_page_are_absolute(base: str, link: str) -> None:
    html = f"{base}<main><p>{PROSE}<a href=b.html>b</a></p></main>"
    assert f"[b]({link})" in read(html, "https://example.org/docs/a.html").text


@pytest.mark.parametrize(
    "html", ["<html></html>", "<p> </p>", "<div id=root></div><script>x</script>"]
)
def test_pages_without_text(html: str) -> None:
    with pytest.raises(UnreadableSource, match="it holds no text"):
        read(html)


@pytest.mark.parametrize(
    "html",
    [
        "<p>a<div>b</p>c</div></span>d</b>e",
        "<ul><li>a<p>b</ul>c<li>d e",
        "a<table><tr>b<p>c<td>d</table>e",
        "<a href='x'><h2>a</h2><p>b</a>c<b>d<p>e</b>",
        "</p></div>a b c d e<!-- never closed",
        "<dl>a<dd>b<dt>c</dl>d<dt>e<dd>",
        "<td>a<th>b<tr>c</tr><caption>d</caption>e",
        "<p a b=c' =\">a b c d e",
    ],
)
def test_malformed_pages_keep_their_words(html: str) -> None:
    found = read(html).text
    assert [letter for letter in "abcde" if letter in found] == list("abcde")


def test_a_large_page_takes_less_than_a_second() -> None:
    entry = (
        f"<h2>Head</h2><p>{PROSE} <a href=x><code>y</code></a> <em>z</em></p>"
        "<ul><li>a</li><li>b</li></ul><pre><span class=k>if</span> x</pre>"
        "<table><tr><td>1<td>2</table>"
    )
    html = f"<main>{entry * (1_000_000 // len(entry))}</main>"
    began = time.process_time()
    read(html)
    assert time.process_time() - began < 1
