"""An app whose sources are all one host of this machine."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from graph.sources.host import Host
from vademecum.app import App
from vademecum.cache.polite import Politeness
from vademecum.settings import Settings


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.stop()


@pytest.fixture
def house(tmp_path: Path, host: Host) -> Path:
    """A home folder whose sources are on the host, which may be fetched from."""
    (tmp_path / "cache.toml").write_text("[defaults]\nprivate_network = true\n")
    (tmp_path / "sources.toml").write_text(
        f"""pypi = "{host.url}"
npm = "{host.url}/npm"
python = "{host.url}/python/{{version}}"
mdn = "{host.url}/mdn"
microsoft_learn = "{host.url}/learn"
stack_exchange = "{host.url}/2.3"
github = "{host.url}/github"

[sphinx]
shoplib = "{host.url}/shoplib"

[[tutorials]]
feed = "{host.url}/atom.xml"
source = "real_python"
language = "python"
"""
    )
    return tmp_path


@pytest.fixture
async def app(house: Path, database_url: str) -> AsyncIterator[App]:
    settings = Settings(home=house, database_url=database_url, embedder="none")
    async with App.open(settings) as app:
        state = app.cache.state
        state.fetcher = replace(state.fetcher, politeness=Politeness(app.database, 0))
        yield app
