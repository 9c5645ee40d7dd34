"""The fake of the Messages API, as the vendor's own client sees it."""

from collections.abc import Iterator

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam

from anthropic_server import MessagesServer, ToolCall, ToolResult

MODEL = "claude-test"
TOOL: ToolParam = {"name": "Look", "input_schema": {"type": "object"}}
ASKED: MessageParam = {"role": "user", "content": "go"}
CALL = {"url": "https://example.org", "deep": True}


@pytest.fixture
def messages() -> Iterator[MessagesServer]:
    with MessagesServer([ToolCall(name="Look", input=CALL), "All done."]) as server:
        yield server


@pytest.fixture
def client(messages: MessagesServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=messages.url, api_key="none", max_retries=0) as client:
        yield client


def conversation(call: anthropic.types.Message) -> list[MessageParam]:
    """The first turn with what the tool answered to it."""
    block = call.content[0]
    assert block.type == "tool_use"
    return [
        ASKED,
        {"role": "assistant", "content": call.content},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": block.id,
                    "content": [{"type": "text", "text": "seen"}],
                    "is_error": True,
                }
            ],
        },
    ]


def test_a_script_is_followed_turn_by_turn(
    client: anthropic.Anthropic, messages: MessagesServer
) -> None:
    first = client.messages.create(model=MODEL, max_tokens=9, tools=[TOOL], messages=[ASKED])
    assert first.stop_reason == "tool_use"
    assert first.content[0].type == "tool_use"
    assert first.content[0].input == CALL

    told = conversation(first)
    last = client.messages.create(model=MODEL, max_tokens=9, tools=[TOOL], messages=told)
    assert last.stop_reason == "end_turn"
    assert last.content[0].type == "text"
    assert last.content[0].text == "All done."
    assert messages.tool_results == [ToolResult(text="seen", is_error=True)]


def test_streamed_it_is_the_same(client: anthropic.Anthropic) -> None:
    with client.messages.stream(
        model=MODEL, max_tokens=9, tools=[TOOL], messages=[ASKED]
    ) as stream:
        first = stream.get_final_message()
    assert first.stop_reason == "tool_use"
    assert first.content[0].type == "tool_use"
    assert first.content[0].input == CALL
    told = conversation(first)
    with client.messages.stream(model=MODEL, max_tokens=9, tools=[TOOL], messages=told) as stream:
        assert "".join(stream.text_stream) == "All done."


def test_without_the_tool_it_is_an_aside(client: anthropic.Anthropic) -> None:
    aside = client.messages.create(model=MODEL, max_tokens=9, messages=[ASKED])
    assert aside.content[0].type == "text"
    assert aside.content[0].text == "A side remark."


def test_tokens_are_counted_and_errors_are_errors(client: anthropic.Anthropic) -> None:
    assert client.messages.count_tokens(model=MODEL, messages=[ASKED]).input_tokens > 0
    with pytest.raises(anthropic.BadRequestError, match="max_tokens: Field required"):
        client.post("/v1/messages", cast_to=object, body={"model": MODEL, "messages": []})
    with pytest.raises(anthropic.NotFoundError):
        client.models.list()
