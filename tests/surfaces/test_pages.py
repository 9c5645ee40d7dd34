"""The pages of `vade serve`, as a browser uses them and as another site might try to."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import served

from vademecum.settings import Settings
from vademecum.surfaces.http.instance import token

USER = {"user": "alice.n@forces.example"}


@pytest.fixture
def browser(settings: Settings, tmp_path: Path) -> Iterator[httpx.Client]:
    """Knows no token."""
    (tmp_path / "models").symlink_to(settings.home / "models")
    assert settings.database_url
    with (
        served(tmp_path, settings.database_url, VADE_EMBEDDER="none") as running,
        httpx.Client(base_url=running.address.url, follow_redirects=True, timeout=60) as client,
    ):
        yield client


def form_token(page: httpx.Response) -> dict[str, str]:
    found = re.search(r'name="form_token" value="([^"]+)"', page.text)
    assert found, page.text
    return {"form_token": found[1]}


def test_a_memory_is_edited_undone_and_forgotten(browser: httpx.Client, tmp_path: Path) -> None:
    assert "Log in" in browser.get("/memories").text
    assert browser.post("/memories/login", data={"token": "guess"}).status_code == 403
    begun = browser.post("/memories/login", data={"token": token(tmp_path)})
    of = form_token(begun) | USER

    text = "Work context\nWrites <b>tools</b>.\nWorks with Sgt Tremblay in Gagetown."
    edited = browser.post("/memories/edit", data=of | {"version": "0", "text": text})
    assert "Saved." in edited.text
    assert "Left out by the privacy gate" in edited.text
    assert "Tremblay" not in edited.text
    stale = browser.post("/memories/edit", data=of | {"version": "0", "text": "Writes songs."})
    assert stale.status_code == 400
    assert "changed meanwhile" in stale.text

    assert "Writes" in browser.post("/memories/view", data=of).text
    assert "Writes" not in browser.post("/memories/undo", data=of).text
    assert "tick the box" in browser.post("/memories/forget", data=of).text
    assert "Receipt" in browser.post("/memories/forget", data=of | {"sure": "yes"}).text
    assert browser.post("/memories/view", data=of | {"user": " "}).status_code == 400

    browser.post("/memories/logout", data=of)
    assert browser.post("/memories/view", data=of).status_code == 401


def test_no_other_site_and_no_visitor_gets_in(browser: httpx.Client, tmp_path: Path) -> None:
    for action in ("view", "edit", "undo", "forget"):
        assert browser.post(f"/memories/{action}", data=USER).status_code == 401
    begun = browser.post("/memories/login", data={"token": token(tmp_path)})
    cookie = begun.history[0].headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/memories" in cookie
    assert "frame-ancestors 'none'" in begun.headers["content-security-policy"]

    # The cookie alone, as another site would make the browser send it.
    assert browser.post("/memories/undo", data=USER).status_code == 403
    assert browser.post("/memories/undo", data=USER | {"form_token": "x"}).status_code == 403
    # It opens no other route.
    assert browser.get("/status").status_code == 401
    named = {"user": "'><script>alert(1)</script>"}
    shown = browser.post("/memories/view", data=form_token(begun) | named)
    assert "<script>" not in shown.text
