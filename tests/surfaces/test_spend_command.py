"""vade spend."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from model_server import KEY, ModelServer
from vademecum.inference.language.model import Message, Prompt
from vademecum.models import Models
from vademecum.settings import Settings
from vademecum.store.db import Database

Vade = Callable[..., Any]


def test_spend_lists_what_was_used(vade: Vade, settings: Settings) -> None:
    assert vade("spend").stdout == "No language model was used in the last 30d.\n"
    served = ModelServer()
    asyncio.run(_ask(settings, served))
    served.close()
    shown = vade("spend", "--last", "1h").stdout
    assert "openai:gpt-5  answer   1      0       100        20          0.0003\n" in shown
    assert shown.endswith("\n$0.0003 in the last 1h\n")
    told = json.loads(vade("spend", "--json").stdout)
    assert told["cost"] == 0.000325
    assert [one["model"] for one in told["models"]] == ["gpt-5"]


def test_a_period_that_is_none(vade: Vade) -> None:
    for wrong in ("soon", "0d"):
        refused = vade("spend", "--last", wrong)
        assert refused.returncode == 2
        assert "Traceback" not in refused.stderr


async def _ask(settings: Settings, served: ModelServer) -> None:
    async with Database(str(settings.database_url)) as database:
        url = f"{served.url}/v1"
        models = Models(database, replace(settings, model_url=url, model_key=KEY), {})
        said = [Message(role="user", text="hello")]
        await models.named("openai:gpt-5").complete(
            Prompt(purpose="answer", system="", messages=said, max_tokens=9)
        )
