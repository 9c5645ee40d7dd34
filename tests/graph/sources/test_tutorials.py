"""Tutorials by feeds and sitemaps over a real socket, and the rule for their quality."""

from datetime import UTC, datetime, timedelta

import pytest

from graph.sources.host import Host
from vademecum.app import App
from vademecum.errors import BadSetting, UnreadableSource
from vademecum.graph.sources.adapter import Subject
from vademecum.graph.sources.feeds import read_feed, read_sitemap
from vademecum.graph.sources.places import parse_places
from vademecum.graph.sources.tutorials import quality

NOW = datetime.now(UTC)
TOPIC = Subject(kind="topic", name="retries with asyncio", language="python")
WORDS = "<p>How a call is tried again after a failure, step by step and with its reasons.</p>"
GOOD = "<pre><code class='language-python'>import asyncio\n\nasyncio.run(main())\n</code></pre>"
BROKEN = "<pre><code class='language-python'>import asyncio:\n    run(main(\n</code></pre>"


def page(title: str, *parts: str) -> str:
    return f"<html><title>{title}</title><main><h1>{title}</h1>{''.join(parts)}</main></html>"


def atom(host: Host, entries: list[tuple[str, str, datetime]]) -> str:
    """As RFC 4287 has it."""
    listed = "".join(
        f"<entry><title type='html'>{title}</title><link href='/{path}'/><id>{path}</id>"
        f"<updated>{date.isoformat()}</updated><summary type='html'>&lt;b&gt;About&lt;/b&gt; it"
        "</summary></entry>"
        for path, title, date in entries
    )
    return f"<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom'>{listed}</feed>"


@pytest.fixture
def site(host: Host) -> Host:
    entries = [
        ("good", "Retry with Asyncio", NOW - timedelta(days=30)),
        ("old", "Retries in asyncio, once", NOW - timedelta(days=800)),
        ("bare", "Asyncio retries without code", NOW - timedelta(days=30)),
        ("wrong", "Asyncio retries that break", NOW - timedelta(days=700)),
        ("other", "Cooking for two", NOW),
    ]
    host.put("/atom.xml", atom(host, entries), "application/atom+xml")
    host.put("/good", page("Retry with Asyncio", WORDS, GOOD, WORDS, GOOD + WORDS))
    host.put("/bare", page("Without code", *[WORDS] * 5))
    host.put("/wrong", page("That break", GOOD, BROKEN, BROKEN, WORDS * 3))
    return host


async def test_only_what_is_recent_and_good_is_let_through(app: App, site: Host) -> None:
    report = await app.sources.fetch(TOPIC, only=["tutorials"])
    told = {notice.split("'")[1]: notice for notice in report.notices}
    found = await app.graph.relevant("retries asyncio")

    assert [one.source_url for one in report.documents] == [f"{site.url}/good"]
    assert report.documents[0].examples == 1  # the same twice
    assert set(told) == {
        "Retries in asyncio, once",
        "Asyncio retries without code",
        "Asyncio retries that break",
    }
    assert f"of {NOW - timedelta(days=800):%Y-%m}" in told["Retries in asyncio, once"]
    assert "code 0.00" in told["Asyncio retries without code"]
    assert "quality 0." in told["Asyncio retries that break"]
    assert "/other" not in site.asked
    assert [one.document.category for one in found] == ["tutorial"]


async def test_a_site_that_has_a_sitemap_of_sitemaps(app: App, site: Host) -> None:
    place = app.settings.home / "sources.toml"
    place.write_text(f'[[tutorials]]\nsitemap = "{site.url}/sitemap.xml"\nsource = "real_python"\n')
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    schema = "http://www.sitemaps.org/schemas/sitemap/0.9"
    site.put(
        "/sitemap.xml",
        f'{head}<sitemapindex xmlns="{schema}"><sitemap><loc>{site.url}/part.xml</loc></sitemap>'
        "</sitemapindex>",
        "application/xml",
    )
    url = f"{site.url}/retries-in-asyncio"
    site.put(
        "/part.xml",
        f'{head}<urlset xmlns="{schema}"><url><loc>{url}</loc><lastmod>{NOW:%Y-%m-%d}</lastmod>'
        "</url></urlset>",
        "text/xml",
    )
    site.put("/retries-in-asyncio", page("Retries", WORDS, GOOD))
    report = await app.sources.fetch(TOPIC, only=["tutorials"])

    assert [one.source_url for one in report.documents] == [url]


async def test_a_site_whose_feed_is_away_is_told(app: App, site: Host) -> None:
    site.failing = (500, {"content-type": "text/html"}, b"")
    report = await app.sources.fetch(TOPIC, only=["tutorials"])

    assert "/atom.xml: it answered 500" in report.failed[0].reason


def test_rss_is_read_as_well() -> None:
    text = (
        "<rss version='2.0'><channel><title>News</title><item><title>One &amp;amp; two</title>"
        "<link>https://news.example/1</link><description><![CDATA[<p>Of <b>it</b></p>]]>"
        "</description><pubDate>Sat, 21 Nov 2026 10:00:00 GMT</pubDate></item></channel></rss>"
    )
    [one] = read_feed(text.encode(), "https://news.example/rss")

    assert (one.title, one.summary) == ("One &amp; two", "Of it")
    assert one.published == datetime(2026, 11, 21, 10, tzinfo=UTC)


def test_what_is_no_feed_or_would_read_files() -> None:
    attack = (
        b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"
        b"<rss><channel><item><title>&e;</title></item></channel></rss>"
    )

    assert read_feed(attack, "u")[0].title == "&e;"
    for data in (b"", b"<html/>", b"no xml"):
        with pytest.raises(UnreadableSource):
            read_feed(data, "u")
        with pytest.raises(UnreadableSource):
            read_sitemap(data, "u")


def test_the_parts_of_quality() -> None:
    text = "Some words that explain well what comes next.\n\n```python\nx = 1\n```\n"
    of = quality(text, NOW - timedelta(days=365), "real_python", "python", NOW)
    broken = quality(text.replace("x = 1", "x = ("), NOW, "blog_unknown", "python", NOW)

    assert (of.recent, of.credible, of.code, of.clear) == (1.0, 0.85, 1.0, 1.0)
    assert (broken.credible, broken.code) == (0.40, 0.0)
    assert broken.score < 0.7 < of.score


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pypi = 1", "pypi = 1 is no place"),
        ("unknown = 'https://x.example'", "is no place"),
        ("pypi = 'ftp://x.example'", "only http and https"),
        ("pypi = ", "sources.toml"),
        ("[[tutorials]]\nsource = 'real_python'", "have a feed or a sitemap"),
        ("[[tutorials]]\nfeed = 'https://x.example'\nsource = 'mdn'", "no source of tutorials"),
    ],
)
def test_places_that_cannot_be(text: str, reason: str) -> None:
    with pytest.raises(BadSetting, match=reason):
        parse_places(text)
