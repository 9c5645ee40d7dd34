"""The real Claude Code with our plugin: the model searches a knowledge base over MCP."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from claude_client import Client, claude

from anthropic_server import MessagesServer, ToolCall
from conftest import Vade

Write = Callable[[dict[str, str | bytes]], Path]
PLUGIN = Path(__file__).parents[2] / "integrations" / "claude-code"
TOOL = "mcp__plugin_vademecum_vademecum__search_knowledge"
DONE = "All done."


@pytest.fixture
def client(tmp_path: Path) -> Client:
    user = tmp_path / "user"
    (user / ".claude").mkdir(parents=True)
    return Client(command=claude(), user=user, certificates=tmp_path / "none.pem")


def test_the_model_searches_through_the_plugin(
    client: Client, vade: Vade, write: Write, home: Path, database_url: str
) -> None:
    pages: dict[str, str | bytes] = {
        "rain.md": "# Rain\n\n## Hail\n\nHail is made of ice.\n",
        "wind.md": "# Wind\n\nWind is air that moves.\n",
    }
    assert vade("bulk-index", write(pages), "-c", "sky", VADE_EMBEDDER="none").returncode == 0
    call = ToolCall(name=TOOL, input={"query": "what is hail made of", "repository": "sky"})

    with MessagesServer([call, DONE]) as model:
        said = client.ask(
            model,
            "Search the knowledge base.",
            *("--plugin-dir", PLUGIN),
            allowed=TOOL,
            # The tools that are marked to be always loaded are there without a search for them.
            ENABLE_TOOL_SEARCH="true",
            # A busy machine takes longer to start a server than the client waits for by itself.
            MCP_CONNECTION_NONBLOCKING="0",
            MCP_CONNECT_TIMEOUT_MS="60000",
            MCP_TIMEOUT="60000",
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            VADE_HOME=str(home),
            VADE_DATABASE_URL=database_url,
        )

        assert said == DONE
        (result,) = model.tool_results
        asked = next(request for request in model.requests if TOOL in request.tools)

    assert not result.is_error, result.text
    passages = json.loads(result.text)["passages"]
    assert passages[0]["ref"] == "sky/rain.md#hail"
    assert "Hail is made of ice." in passages[0]["text"]
    ours = {name.rpartition("__")[2] for name in asked.tools if "vademecum" in name}
    assert ours == {"search_knowledge", "answer_knowledge", "get_context"}
    assert "Before you fetch a page" in json.dumps(asked.body), "the server's instructions"
