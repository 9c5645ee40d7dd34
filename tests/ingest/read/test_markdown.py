import pytest

from vademecum.ingest.read import read_bytes
from vademecum.types import Document


def read(text: str, name: str = "docs/a-page.md") -> Document:
    return read_bytes(text.encode(), name=name)


PLAIN = """# Title

A paragraph with `code`, *emphasis*, [a link](https://example.org/a_b) and 2 < 3 > 1.
Use `<div>` or <name> as you like.

* a list

      code in a list

1. and `{{< not a shortcode >}}`

| a | b |
|---|---|
| 1 | 2 |

> a quote

```yaml
# not a heading
key: {{ .Values.key }}{spaces}
<!-- kept --> {% raw %}

Not setext
===
```

    indented <b>code</b> {{< note >}}
    Also not setext
    ===

The end.
""".replace("{spaces}", "   ")


def test_plain_markdown_stays_as_it_is() -> None:
    document = read(PLAIN)
    assert document.text == PLAIN.strip()
    assert (document.title, document.format, document.metadata) == ("Title", "markdown", {})


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Front\n---\n# Heading\n", "Front"),
        ("text\n\n# The `first` [heading](x) {#id}\n\n# Second\n", "The first heading"),
        ("Setext title\n============\n\ntext", "Setext title"),
        ("```\n# code\n```\n## Second level", "A page"),
        ("---\ntitle: [no, string]\n---\n\n# Heading", "Heading"),
        ("# " + "long " * 100, "long " * 38 + "long…"),
    ],
)
def test_title(text: str, title: str) -> None:
    assert read(text).title == title


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("getting-started.md", "Getting started"),
        ("install/README.md", "Install"),
        ("install/_index.md", "Install"),
        ("README.md", "README"),
        ("https://example.org/a/how_to%20do.md?x=1", "How to do"),
        ("-.md", "-.md"),
    ],
)
def test_title_from_the_name(name: str, title: str) -> None:
    assert read("text", name).title == title


def test_yaml_front_matter() -> None:
    document = read(
        "---\ntitle: A\ndate: 2024-05-06\nat: 2024-05-06T07:08:09Z\ntags: [x, 1, 1.5, null]\n"
        "deep: {a: {b: !!set {c}}}\n"
        "big: 123456789012345678901234567890\nnot: .nan\n3: three\n---\n\nBody\n"
    )
    assert document.text == "Body"
    assert document.metadata == {
        "title": "A",
        "date": "2024-05-06",
        "at": "2024-05-06T07:08:09+00:00",
        "tags": ["x", 1, 1.5, None],
        "deep": {"a": {"b": ["c"]}},
        "big": "123456789012345678901234567890",
        "not": "nan",
        "3": "three",
    }


def test_toml_front_matter() -> None:
    document = read('+++\ntitle = "A"\ndate = 2024-05-06\n[x]\ny = 1\n+++\nBody')
    assert (document.title, document.text) == ("A", "Body")
    assert document.metadata == {"title": "A", "date": "2024-05-06", "x": {"y": 1}}


def test_broken_front_matter_gives_what_it_can_and_says_so() -> None:
    document = read("---\ntitle: ForEach\nalias: x\nlist:\n  - %\n---\nBody")
    assert (document.title, document.text) == ("ForEach", "Body")
    assert document.metadata["alias"] == "x"
    assert "cannot start any token" in str(document.metadata["front_matter_error"])


@pytest.mark.parametrize(
    "front",
    [
        "a: &a [*a]",
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        "b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d]",
        "a: !!python/object/apply:os.system [true]",
        "a: 2024-13-45",
        "a: " + "[" * 30_000,
        "- " * 20_000,
        "? [a]: b",
        "- a\n- b: c",
    ],
)
def test_front_matter_that_means_harm(front: str) -> None:
    document = read(f"---\nkey: x\n{front}\n---\nBody")
    assert document.text.endswith("Body")
    assert document.metadata["front_matter_error"]


def test_rules_are_not_front_matter() -> None:
    text = "---\n\nNo keys here, only prose.\n\n---\n\nMore."
    assert read(text).text == text


def test_page_of_a_title_only() -> None:
    assert (
        read("---\ntitle: Tasks\ndescription: What to do.\n---\n").text == "# Tasks\n\nWhat to do."
    )


@pytest.mark.parametrize(
    ("markup", "words"),
    [
        ('a {{< glossary_tooltip text="Pod" term_id="pod" >}}s', "a Pods"),
        ("a {{< glossary_tooltip term_id='api-server' >}}", "a api server"),
        ('## {{% heading "whatsnext" %}}', "## What's next"),
        ("{{< note >}}\nMind the gap.\n{{< /note >}}", "**Note:** Mind the gap."),
        ('{{% alert title="Gone" color="x" %}}\nMind.\n{{% /alert %}}', "**Gone:** Mind."),
        ('{{< tabs name="t" >}}{{% tab name="Linux" %}}\nUse apt.\n{{% /tab %}}{{< /tabs >}}',
         "**Linux**\nUse apt."),
        ('See [x]({{< relref "/docs/x" >}}).', "See [x](/docs/x)."),
        ('{{% code_sample language="yaml" file="pods/a.yaml" %}}', "`pods/a.yaml`"),
        ('{{< figure src="/a.svg" alt="A diagram" class="x" >}}', "A diagram"),
        ('{{< feature-state state="beta" for_k8s_version="v1.25" >}}',
         "Feature state: beta since v1.25"),
        ("since {{< skew currentVersion >}} it works", "since  it works"),
        ('a\n{{< comment >}}\nhidden\n```\ncode\n```\n{{< /comment >}}\nb', "a\n\nb"),
        ("{{< highlight go >}}\nx := 1\ny\n{{< /highlight >}}", "```go\nx := 1\ny\n```"),
        ('use {{< highlight promql "hl_inline=true" >}}sum(\n  x){{< /highlight >}} here',
         "use `sum( x)` here"),
        ("{% note %}\nMind.\n{% endnote %}", "Mind."),
        ("{% highlight ruby %}\nputs 1\nputs 2\n{% endhighlight %}",
         "```ruby\nputs 1\nputs 2\n```"),
        ("[x]({% link _docs/x.md %}) {{ site.baseurl }}/y", "[x](_docs/x.md) /y"),
        ("{% raw %}{{ kept }}{% endraw %}", "{{ kept }}"),
        ("a <!-- hidden --> b", "a  b"),
        ("a <!-- hid\n\n```\nden\n```\n--> b", "a  b"),
        ("a <!-- never closed", "a <!-- never closed"),
        ("## Heading ## {#id .class}", "## Heading"),
        ("## Heading {: .no_toc }\n{:toc}", "## Heading"),
        ("Title\n=====\n\nSub\n---\ntext", "# Title\n\n## Sub\ntext"),
        ("a paragraph\nof two lines\n---", "a paragraph\nof two lines\n---"),
        ("- item\n---", "- item\n---"),
        ("| a | b |\n| --- | --- |\n| x<br>y | <b>z</b> |",
         "| a | b |\n| --- | --- |\n| x y | **z** |"),
        ('line<br/>line <a name="x"></a><a href="https://e.org">link</a>',
         "line\nline [link](https://e.org)"),
        ("press <kbd>Ctrl</kbd> in <placeholder> x<sup>2</sup>",
         "press `Ctrl` in <placeholder> x2"),
        ("<details>\n<summary>More</summary>\n\nwords\n\n</details>", "**More**\n\nwords"),
        ('<p align="center"><img src="a.png" alt="Logo"></p>', "Logo"),
        ("<h2 id=x>Head <em>ing</em></h2>", "## Head ing"),
        ("<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>`2`</td></tr></table>",
         "| a | b |\n| --- | --- |\n| 1 | `2` |"),
        ('<pre><code class="language-sh">ls &lt;x&gt;\nls</code></pre>',
         "```bash\nls <x>\nls\n```"),
        ("<script>alert(1)</script>text", "text"),
        ("> [!NOTE]\n> Mind.", "> **Note:** Mind."),
        ("[!INCLUDE [x](y.md)]\ntext", "text"),
        (':::image type="x" source="a.png" alt-text="A chart":::', "A chart"),
        (":::tip Title\nwords\n:::", "**Title**\n\nwords"),
        ('!!! warning "Mind"\n    words\n\n    ```\n    code\n    ```\nafter',
         "**Mind**\n\nwords\n\n```\ncode\n```\nafter"),
        ("[TOC]\n\ntext", "text"),
    ],
)  # fmt: skip
def test_markup_of_site_generators(markup: str, words: str) -> None:
    assert read("text\n\n" + markup).text.removeprefix("text").strip() == words


@pytest.mark.parametrize(
    "code",
    ["`<b>`", "`{{< note >}}`", "``a ` <!-- b -->``", "`{#id}`", "```\n<br>{{% x %}}\n\n<!--\n```"],
)
def test_code_is_never_touched(code: str) -> None:
    assert read(f"before\n\n{code}\n\nafter <br>").text == f"before\n\n{code}\n\nafter"


def test_code_in_lists_and_quotes() -> None:
    text = (
        "1. step\n\n   ```sh\n   echo <b>   \n   ```\n\n> ~~~\n> <b>\n> ~~~\n\n- ```\n  <i>\n  ```"
    )
    assert read(text).text == text


def test_shortcode_in_a_deeply_indented_list_is_no_code() -> None:
    text = '1.  first\nlazy line\n\n    1.  second\n\n        {{% code_sample file="a.yaml" %}}\n'
    assert "`a.yaml`" in read(text).text


def test_mdx() -> None:
    document = read(
        "---\ntitle: T\n---\nimport Tabs from '@theme/Tabs';\nimport {\n  A,\n} from 'b';\n\n"
        "export const x = () => {\n  return 1;\n};\n\n# Head\n\n"
        "{/* hidden */}\n<Tabs groupId={x}>\n"
        '<TabItem value="a" label="Linux">\n\nUse **apt**.\n\n</TabItem>\n</Tabs>\n\n'
        '<Card title="More" onClick={() => { go() }} />\n\n```js\nimport a from "b"\n<Tabs>\n```\n',
        "a.mdx",
    )
    assert document.title == "T"
    assert document.text == (
        '# Head\n\n**Linux**\n\nUse **apt**.\n\n**More**\n\n```js\nimport a from "b"\n<Tabs>\n```'
    )
