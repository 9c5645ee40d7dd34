"""The fake of the providers' chat interfaces, as each vendor's own client sees it."""

import json
from collections.abc import Iterator

import anthropic
import ollama
import openai
import pytest

from model_server import KEY, MODEL, Asked, Failure, ModelServer, Refused

SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def reply(asked: Asked) -> str:
    if asked.text == "no":
        raise Refused
    return json.dumps({"ok": True}) if asked.schema else f"{asked.system}/{asked.text}"


@pytest.fixture
def served() -> Iterator[ModelServer]:
    server = ModelServer(reply)
    yield server
    server.close()


def test_anthropic(served: ModelServer) -> None:
    with anthropic.Anthropic(base_url=served.url, api_key=KEY, max_retries=0) as client:

        def ask(text: str, **more: object) -> anthropic.types.Message:
            return client.messages.create(
                model=MODEL,
                max_tokens=9,
                system="be brief",
                messages=[{"role": "user", "content": text}],
                **more,  # type: ignore[arg-type]
            )

        said = ask("hello")
        assert [block.type for block in said.content] == ["thinking", "text"]
        assert said.content[1].text == "be brief/hello"  # type: ignore[union-attr]
        assert (said.stop_reason, said.usage.output_tokens) == ("end_turn", 20)
        assert (said.usage.input_tokens, said.usage.cache_read_input_tokens) == (90, 10)
        assert ask("no").stop_reason == "refusal"
        form = {"format": {"type": "json_schema", "schema": SCHEMA}}
        assert ask("form", output_config=form).content[1].text == '{"ok": true}'  # type: ignore[union-attr]
        loose = {"format": {"type": "json_schema", "schema": SCHEMA | {"maxItems": 3}}}
        with pytest.raises(anthropic.BadRequestError, match="maxItems is not supported"):
            ask("form", output_config=loose)
        with pytest.raises(anthropic.BadRequestError, match="temperature: Extra inputs"):
            ask("warm", extra_body={"temperature": 0})
        served.failures.append(Failure(status=529))
        with pytest.raises(anthropic.InternalServerError, match="overloaded"):
            ask("hello")
        served.failures.append(Failure(status=0))
        with pytest.raises(anthropic.APIConnectionError):
            ask("hello")
    with (
        anthropic.Anthropic(base_url=served.url, api_key="other", max_retries=0) as client,
        pytest.raises(anthropic.AuthenticationError),
    ):
        client.messages.create(model=MODEL, max_tokens=9, messages=[])


def test_openai(served: ModelServer) -> None:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key=KEY, max_retries=0) as client:
        said = client.chat.completions.create(
            model="gpt-6-luna",
            max_completion_tokens=9,
            messages=[
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
            ],
        )
        [choice] = said.choices
        assert (choice.message.content, choice.finish_reason) == ("be brief/hello", "stop")
        assert said.usage is not None
        assert (said.usage.prompt_tokens, said.usage.completion_tokens) == (100, 20)
        refused = client.chat.completions.create(
            model="gpt-6-luna", messages=[{"role": "user", "content": "no"}]
        )
        assert refused.choices[0].message.refusal == "I cannot help with that."
        formed = client.chat.completions.create(
            model="gpt-6-luna",
            messages=[{"role": "user", "content": "form"}],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "x", "schema": SCHEMA, "strict": True},
            },
        )
        assert formed.choices[0].message.content == '{"ok": true}'
        served.failures.append(Failure(status=429, headers={"Retry-After": "1"}))
        with pytest.raises(openai.RateLimitError, match="overloaded"):
            client.chat.completions.create(
                model="gpt-6-luna", messages=[{"role": "user", "content": "hello"}]
            )


def test_ollama(served: ModelServer) -> None:
    with ollama.Client(served.url) as client:
        said = client.chat(
            "llama3.2",
            messages=[
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "hello"},
            ],
        )
        assert (said.message.content, said.done_reason) == ("be brief/hello", "stop")
        assert (said.prompt_eval_count, said.eval_count) == (100, 20)
        formed = client.chat("llama3.2", [{"role": "user", "content": "form"}], format=SCHEMA)
        assert formed.message.content == '{"ok": true}'
        served.failures.append(Failure(status=500))
        with pytest.raises(ollama.ResponseError, match="overloaded"):
            client.chat("llama3.2", [{"role": "user", "content": "hello"}])
