from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from cache.site import Site
from vademecum.app import App
from vademecum.cache.polite import Politeness
from vademecum.cache.rules import Rule, Rules


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def web(fake_app: App) -> App:
    """Its cache may fetch from this machine, and does not pause."""
    fake_app.cache.state.rules = Rules(
        defaults=Rule(private_network=True, least_ttl=timedelta(0)), private_projects=("/secret/*",)
    )
    fake_app.cache.state.fetcher = replace(
        fake_app.cache.state.fetcher, politeness=Politeness(fake_app.database, 0)
    )
    return fake_app
