"""What on a page is not its content."""

import re
from typing import TYPE_CHECKING

from lxml import etree

from vademecum.ingest.read.content import word_set

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

NEVER_SHOWN = (
    "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed",
    "audio", "video", "map", "dialog", "select", "textarea", "button", "input", "progress",
    "meter", "datalist",
)  # fmt: skip
"""Elements without prose of their own."""

_NOISE = word_set(
    """
    headerlink permalink anchor-link anchorjs-link header-anchor heading-anchor hash-link
    navheader navfooter navbar nav-bar navigation nav-links site-nav main-nav topnav sidenav
    sphinxsidebar sphinxsidebarwrapper rst-versions related relations wy-nav-side wy-breadcrumbs
    breadcrumb breadcrumbs crumbs prev-next prevnext prev-next-area next-prev pagination pager
    pagination-nav browse-horizontal footer-nav rst-footer-buttons toc table-of-contents
    tableofcontents toctitle toc-tree localtoc on-this-page theme-doc-toc-mobile
    theme-doc-toc-desktop md-sidebar page-toc inline-toc site-header site-footer page-footer
    global-header global-footer masthead md-header md-footer edit-page edit-this-page
    theme-edit-this-page editlink edit-link feedback page-feedback feedback-container
    was-this-helpful page-meta last-updated theme-last-updated share sharing social social-share
    share-buttons addtoany sharedaddy cookie-banner cookie-consent cookie-notice cookie-bar gdpr
    consent-banner cc-window onetrust-banner-sdk onetrust-consent-sdk advert advertisement ads
    ad-banner sponsor sponsors newsletter newsletter-signup promo comments comment-list
    disqus_thread respond skip-link skip-to-content skiplink skip-nav sr-only visually-hidden
    screen-reader-text mw-editsection mw-jump-link noprint catlinks printfooter
    vector-page-toolbar copybtn copy-button clipboard zeroclipboard-container line-numbers-rows
    linenos gutter viewcode-link viewcode-back docutils-todo theme-switch searchbox search-form
    searchform footer colophon
    """
)
_NOISE_ROLES = {"navigation", "search", "menu", "menubar", "toolbar", "dialog", "alertdialog"}
_NOISE_ROLES_OUTSIDE = _NOISE_ROLES | {"banner", "contentinfo", "complementary"}
_SIDE = {"sidebar", "side-bar", "sidebar-wrapper", "menu", "nav", "header", "banner", "topbar"}
_UNSEEN = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.I)
_ADMONITION = {"admonition", "note", "tip", "warning", "caution", "important", "footnote-list"}
_LINK_FARM_LINKS = 6
_LINK_FARM_SHARE = 0.8


def is_noise(element: "Element", *, inside_main: bool) -> bool:
    """Whether an element is navigation, decoration or hidden.

    Inside the main content only what is surely noise goes: a page's `header` may hold its
    title, its `aside` a remark.
    """
    role = element.get("role")
    if role in (_NOISE_ROLES if inside_main else _NOISE_ROLES_OUTSIDE):
        return True
    if role != "tabpanel" and _is_hidden(element):
        return True
    tag = element.tag
    if tag == "nav":
        return True
    names = (element.get("class", "") + " " + element.get("id", "")).lower().split()
    if not _NOISE.isdisjoint(names) and tag not in ("body", "main", "article", "h1"):
        return not _is_local_word(tag, names)
    if "contents" in names and "topic" in names:
        return True
    if inside_main:
        return False
    if tag == "footer" or (tag == "aside" and _ADMONITION.isdisjoint(names)):
        return True
    if tag == "header" or not _SIDE.isdisjoint(names):
        return next(element.iter("h1"), None) is None
    return tag in ("ul", "ol", "table") and _is_link_farm(element)


def _is_local_word(tag: str, names: list[str]) -> bool:
    """Words that are also a section's own name: an anchor id on a heading is no class."""
    return tag in ("section", "h2", "h3", "h4", "h5", "h6", "dt", "p", "li", "span") and not any(
        name in ("headerlink", "sr-only", "visually-hidden", "linenos", "viewcode-link")
        or name.startswith("copy")
        for name in names
    )


def _is_hidden(element: "Element") -> bool:
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    style = element.get("style")
    return style is not None and _UNSEEN.search(style) is not None


def _is_link_farm(element: "Element") -> bool:
    links = sum(1 for _ in zip(element.iter("a"), range(_LINK_FARM_LINKS), strict=False))
    if links < _LINK_FARM_LINKS:
        return False
    return _linked_length(element) >= _LINK_FARM_SHARE * _length(element)


def nonlink_length(element: "Element") -> int:
    """Characters of text that lead nowhere: what prose has and navigation lacks."""
    return _length(element) - _linked_length(element)


def _linked_length(element: "Element") -> int:
    return sum(map(_length, element.iter("a")))


def _length(element: "Element") -> int:
    text = element.text or ""
    if len(element):
        text = etree.tostring(element, method="text", encoding="unicode", with_tail=False)
    return len("".join(text.split()))
