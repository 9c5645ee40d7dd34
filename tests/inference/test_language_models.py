"""Language models of every provider, over a real socket."""

import asyncio
import json
import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from model_server import KEY, Asked, Failure, ModelServer, Refused
from vademecum.errors import (
    BadSetting,
    LanguageModelFailed,
    LanguageModelRefused,
    LanguageModelUnreachable,
    SpendLimitReached,
)
from vademecum.inference.language import wire
from vademecum.inference.language.limits import Purse, most_tokens
from vademecum.inference.language.model import Completion, LanguageModel, Message, Prompt
from vademecum.inference.language.prices import price_of
from vademecum.models import Models
from vademecum.settings import Settings, load_settings
from vademecum.store.db import Database

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
VENDORS = {
    "anthropic": "anthropic:claude-haiku-5-5",
    "openai": "openai:gpt-6-luna",
    "ollama": "ollama:llama3.2",
}


def prompt(text: str = "hello", **more: object) -> Prompt:
    values = {"purpose": "answer", "system": "be brief", "max_tokens": 50} | more
    return Prompt(messages=[Message(role="user", text=text)], **values)  # type: ignore[arg-type]


def reply(asked: Asked) -> str:
    if asked.text == "no":
        raise Refused
    if asked.text == "silence":
        return ""
    return '{"word": "yes"}' if asked.schema else f"{asked.system}: {asked.text}"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setattr(wire, "FIRST_WAIT", 0.01)
    server = ModelServer(reply)
    yield server
    server.close()


def environment(served: ModelServer) -> dict[str, str]:
    return {
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": served.url,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{served.url}/v1",
    }


@pytest.fixture
def models(database: Database, settings: Settings, served: ModelServer) -> Models:
    return opened(database, settings, served)


def opened(
    database: Database,
    settings: Settings,
    served: ModelServer,
    variables: Mapping[str, str] | None = None,
    **more: object,
) -> Models:
    settings = replace(settings, ollama_url=served.url, **more)  # type: ignore[arg-type]
    return Models(database, settings, {**environment(served), **(variables or {})})


@pytest.fixture(params=VENDORS.values(), ids=VENDORS)
def model(request: pytest.FixtureRequest, models: Models) -> LanguageModel:
    return models.named(request.param)


async def test_a_completion_has_text_and_counts(model: LanguageModel, served: ModelServer) -> None:
    said = await model.complete(prompt())
    assert said == Completion(text="be brief: hello", stop="end", tokens_in=100, tokens_out=20)
    [asked] = served.asked
    assert model.name == f"{asked.vendor}:{asked.model}"


async def test_turns_reach_the_model_in_order(model: LanguageModel, served: ModelServer) -> None:
    turns = [Message(role=r, text=t) for r, t in (("user", "a"), ("assistant", "b"), ("user", "c"))]  # type: ignore[arg-type]
    await model.complete(replace(prompt(), messages=turns))
    [asked] = served.asked
    said = [(one["role"], one["content"]) for one in asked.body["messages"]]
    assert said[-3:] == [("user", "a"), ("assistant", "b"), ("user", "c")]


async def test_a_schema_gives_an_object(model: LanguageModel, served: ModelServer) -> None:
    said = await model.complete(prompt(schema=SCHEMA))
    assert said.object() == {"word": "yes"}
    assert served.asked[0].schema == SCHEMA


@pytest.mark.parametrize(
    ("text", "value"), [('{"a": 1}', {"a": 1}), ('```json\n{"a": 1}\n```', {"a": 1})]
)
def test_an_object_may_stand_in_a_fence(text: str, value: object) -> None:
    assert Completion(text=text, stop="end", tokens_in=1, tokens_out=1).object() == value


@pytest.mark.parametrize("text", ["Sure! {", "[1]", "null", ""])
def test_anything_else_is_no_object(text: str) -> None:
    with pytest.raises(LanguageModelRefused, match="the form"):
        Completion(text=text, stop="end", tokens_in=1, tokens_out=1).object()


async def test_what_passes_is_tried_again(model: LanguageModel, served: ModelServer) -> None:
    served.failures.extend([Failure(status=529), Failure(status=0), Failure(status=503)])
    assert (await model.complete(prompt())).text == "be brief: hello"
    assert len(served.asked) == 4


async def test_what_lasts_is_an_error(model: LanguageModel, served: ModelServer) -> None:
    served.failures.extend([Failure(status=500)] * 9)
    with pytest.raises(LanguageModelUnreachable, match="status 500: the model is overloaded"):
        await model.complete(prompt())
    assert len(served.asked) == wire.TRIES


async def test_a_refusal_is_not_tried_again(model: LanguageModel, served: ModelServer) -> None:
    served.failures.append(Failure(status=400, message="context too long"))
    with pytest.raises(LanguageModelRefused, match="status 400: context too long"):
        await model.complete(prompt())
    assert len(served.asked) == 1


async def test_a_server_that_is_gone_is_unreachable(
    model: LanguageModel, served: ModelServer
) -> None:
    served.close()
    with pytest.raises(LanguageModelUnreachable, match="does not answer at http://127"):
        await model.complete(prompt())


async def test_a_completion_that_was_cut_off_is_none(
    model: LanguageModel, served: ModelServer, models: Models
) -> None:
    served.stop = "length"
    with pytest.raises(LanguageModelRefused, match="cut off"):
        await model.complete(prompt())
    [spend] = await models.spend(timedelta(hours=1))
    assert (spend.calls, spend.failed, spend.tokens_in, spend.tokens_out) == (1, 1, 100, 20)


async def test_silence_is_none(model: LanguageModel) -> None:
    with pytest.raises(LanguageModelRefused, match="said nothing"):
        await model.complete(prompt("silence"))


@pytest.mark.parametrize("vendor", ["anthropic", "openai"])
async def test_a_model_may_decline(vendor: str, models: Models) -> None:
    with pytest.raises(LanguageModelRefused, match="declined to answer"):
        await models.named(VENDORS[vendor]).complete(prompt("no"))


async def test_a_page_of_the_web_is_no_model(models: Models, served: ModelServer) -> None:
    """Another server at the address, such as a portal's."""
    served.reply = lambda asked: "x"
    served.answer = lambda path, headers, body: (200, {}, {"hello": "world"})  # type: ignore[method-assign]
    for name in VENDORS.values():
        with pytest.raises(LanguageModelRefused, match="does not answer as the provider"):
            await models.named(name).complete(prompt())


@pytest.mark.parametrize(
    "header",
    [
        {"Retry-After": "0"},
        {"retry-after-ms": "30"},
        {"Retry-After": format_datetime(datetime.now(UTC), usegmt=True)},
    ],
)
async def test_it_waits_as_long_as_it_is_asked(
    models: Models, served: ModelServer, header: dict[str, str]
) -> None:
    served.failures.append(Failure(status=429, headers=header))
    await models.named(VENDORS["openai"]).complete(prompt())
    assert len(served.asked) == 2


async def test_too_long_a_wait_is_not_begun(models: Models, served: ModelServer) -> None:
    served.failures.append(Failure(status=429, headers={"Retry-After": "3600"}))
    started = time.monotonic()
    with pytest.raises(LanguageModelUnreachable, match="status 429"):
        await models.named(VENDORS["anthropic"]).complete(prompt())
    assert time.monotonic() - started < 60
    assert len(served.asked) == 1


async def test_a_call_has_a_time(
    database: Database, settings: Settings, served: ModelServer
) -> None:
    served.delay = 2
    models = opened(database, settings, served, model_seconds=0.2)
    with pytest.raises(LanguageModelUnreachable, match=r"within 0\.2 s"):
        await models.named(VENDORS["ollama"]).complete(prompt())
    [spend] = await models.spend(timedelta(hours=1))
    assert (spend.calls, spend.failed, spend.cost) == (1, 1, 0.0)


async def test_so_many_calls_at_once(
    database: Database, settings: Settings, served: ModelServer
) -> None:
    served.delay = 0.05
    models = opened(database, settings, served, model_concurrency=2)
    one, other = models.named(VENDORS["openai"]), models.named(VENDORS["ollama"])
    await asyncio.gather(*(model.complete(prompt()) for model in (one, other) * 4))
    assert (served.most_at_once, len(served.asked)) == (2, 8)


async def test_the_key_is_in_no_error_and_no_log(
    database: Database,
    settings: Settings,
    served: ModelServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "sk-very-secret"
    keys = {"ANTHROPIC_API_KEY": secret, "OPENAI_API_KEY": secret}
    models = opened(database, settings, served, keys)
    for vendor in ("anthropic", "openai"):
        with pytest.raises(LanguageModelRefused, match="does not accept the key") as refused:
            await models.named(VENDORS[vendor]).complete(prompt())
        assert secret not in f"{refused.value} {refused.value.hint} {refused.value.__context__!r}"
        assert refused.value.hint == f"Check {vendor.upper()}_API_KEY."
    served.answer = lambda path, headers, body: (  # type: ignore[method-assign]
        400,
        {},
        {"error": {"message": f"what is {secret}?"}},
    )
    with pytest.raises(LanguageModelRefused, match=r"what is \*\*\*\?"):
        await models.named(VENDORS["openai"]).complete(prompt())
    assert secret not in caplog.text


async def test_a_password_in_the_address_is_not_shown(
    database: Database, settings: Settings
) -> None:
    url = "http://me:hunter2@127.0.0.1:9/v1"
    models = Models(database, replace(settings, model_url=url), {})
    with pytest.raises(LanguageModelFailed, match="http://127") as failed:
        await models.named(VENDORS["openai"]).complete(prompt())
    assert "hunter2" not in str(failed.value)


async def test_servers_of_ones_own_need_no_key_and_know_the_older_limit(
    database: Database, settings: Settings, served: ModelServer
) -> None:
    served.answer = _without_keys(served)  # type: ignore[method-assign]
    models = Models(database, replace(settings, model_url=f"{served.url}/v1"), {})
    await models.named("openai:qwen3").complete(prompt())
    assert served.asked[0].body["max_tokens"] == 50
    assert "authorization" not in served.asked[0].headers


def _without_keys(served: ModelServer):  # type: ignore[no-untyped-def]
    checked = served.answer

    def answer(path, headers, body):  # type: ignore[no-untyped-def]
        status, extra, value = checked(path, headers | {"authorization": f"Bearer {KEY}"}, body)
        if served.asked and "authorization" not in headers:
            served.asked[-1].headers.pop("authorization", None)
        return status, extra, value

    return answer


async def test_a_providers_key_is_not_sent_elsewhere(
    database: Database, settings: Settings, served: ModelServer
) -> None:
    keys = {"ANTHROPIC_API_KEY": "sk-theirs", "OPENAI_API_KEY": "sk-theirs"}
    own = replace(settings, model_url=served.url, model_key=KEY)
    await Models(database, own, keys).named(VENDORS["anthropic"]).complete(prompt())
    with pytest.raises(LanguageModelRefused, match="wants a key") as refused:
        await (
            Models(database, replace(own, model_key=None), keys)
            .named(VENDORS["anthropic"])
            .complete(prompt())
        )
    assert "theirs" not in str(served.asked) + str(refused.value)


async def test_the_embedders_server_is_the_language_models_too(
    database: Database, settings: Settings, served: ModelServer
) -> None:
    both = replace(settings, openai_url=f"{served.url}/v1", openai_key=KEY)
    await (
        Models(database, both, {"OPENAI_API_KEY": "sk-other"}).named("openai:x").complete(prompt())
    )
    assert served.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_server_that_wants_the_newer_limit_gets_it(
    models: Models, served: ModelServer
) -> None:
    checked = served.answer

    def answer(path, headers, body):  # type: ignore[no-untyped-def]
        if "max_tokens" in body:
            message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."
            return 400, {}, {"error": {"message": message}}
        return checked(path, headers, body)

    served.answer = answer  # type: ignore[method-assign]
    model = models.named(VENDORS["openai"])
    await model.complete(prompt())
    await model.complete(prompt())
    assert [one.body["max_completion_tokens"] for one in served.asked] == [50, 50]


async def test_ollama_is_given_room_for_the_prompt(models: Models, served: ModelServer) -> None:
    await models.named(VENDORS["ollama"]).complete(prompt("word " * 4000, max_tokens=500))
    options = served.asked[0].body["options"]
    assert (options["num_ctx"], options["num_predict"]) == (16384, 500)


@pytest.mark.parametrize(
    ("name", "environment", "said"),
    [
        ("gpt-6", {}, "there is no language model 'gpt-6'"),
        ("mistral:large", {}, "there is no language model"),
        ("anthropic:", {}, "there is no language model"),
        ("anthropic:claude-haiku-5-5", {}, "ANTHROPIC_API_KEY is not set"),
        ("openai:gpt-6-luna", {}, "OPENAI_API_KEY is not set"),
        ("openai:gpt-6-luna", {"OPENAI_BASE_URL": "localhost:8000"}, "not one of the web"),
        ("openai:gpt-99", {"OPENAI_API_KEY": "x"}, "no price of openai:gpt-99 is known"),
    ],
)
async def test_what_cannot_be_opened(
    database: Database, settings: Settings, name: str, environment: dict[str, str], said: str
) -> None:
    with pytest.raises(BadSetting, match=said) as bad:
        Models(database, settings, environment).named(name)
    assert bad.value.hint


async def test_a_purpose_has_the_model_of_the_settings(
    database: Database, settings: Settings, served: ModelServer
) -> None:
    assert opened(database, settings, served).meant_for("answer") is None
    models = opened(database, settings, served, model=VENDORS["ollama"], model_for="summary")
    assert models.meant_for("answer") is None
    summaries = models.meant_for("summary")
    assert summaries is not None
    assert summaries.name == VENDORS["ollama"]
    with pytest.raises(BadSetting, match="no purpose lunch"):
        opened(database, settings, served, model_for="lunch").meant_for("answer")


async def test_a_server_is_told_of_wrong_settings_before_it_serves(
    database: Database, settings: Settings, served: ModelServer
) -> None:
    opened(database, settings, served).check()
    opened(database, settings, served, model=VENDORS["openai"]).check()
    for wrong in ({"model": "gpt"}, {"model_for": "lunch"}, {"reranker": "local:/nowhere"}):
        with pytest.raises(BadSetting):
            opened(database, settings, served, **wrong).check()


# --- money ----------------------------------------------------------------------------------


async def test_what_is_spent_is_kept_by_model_and_purpose(models: Models) -> None:
    await models.named(VENDORS["anthropic"]).complete(prompt())
    await models.named(VENDORS["anthropic"]).complete(prompt())
    await models.named(VENDORS["ollama"]).complete(prompt(purpose="summary"))
    first, second = await models.spend(timedelta(hours=1))
    assert (first.provider, first.model, first.purpose) == (
        "anthropic",
        "claude-haiku-5-5",
        "answer",
    )
    assert (first.calls, first.failed, first.tokens_in, first.tokens_out) == (2, 0, 200, 40)
    assert first.cost == pytest.approx(2 * (100 * 0.10 + 20 * 0.50) / 1e6)
    assert (second.provider, second.purpose, second.cost) == ("ollama", "summary", 0)
    assert first.unpriced == second.unpriced == 0


async def test_nothing_is_begun_that_might_exceed_the_limit(
    database: Database, settings: Settings, served: ModelServer, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["openai:gpt-6-luna"]\ninput = 0\noutput = 1000\n')
    served.tokens_out = 50
    models = opened(database, settings, served, spend_limit=0.12, prices=prices)
    model = models.named(VENDORS["openai"])
    await model.complete(prompt())
    await model.complete(prompt())
    with pytest.raises(SpendLimitReached, match=r"\$0\.12 is reached: \$0\.1000 are spent"):
        await model.complete(prompt())
    assert len(served.asked) == 2
    [spend] = await models.spend(timedelta(hours=1))
    assert spend.cost == pytest.approx(0.1)


async def test_calls_side_by_side_keep_the_limit_too(
    database: Database, settings: Settings, served: ModelServer, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["openai:gpt-6-luna"]\ninput = 0\noutput = 1000\n')
    served.tokens_out, served.delay = 50, 0.05
    models = opened(database, settings, served, spend_limit=0.12, prices=prices)
    model = models.named(VENDORS["openai"])
    tries = [model.complete(prompt()) for _ in range(4)]
    said = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(one) for one in said].count(Completion) == 2
    assert [type(one) for one in said].count(SpendLimitReached) == 2


def test_the_estimate_is_an_upper_bound() -> None:
    assert most_tokens(prompt("é" * 100, schema=SCHEMA)) >= 200 + len(json.dumps(SCHEMA))


def test_a_purse_gives_back_what_was_not_spent() -> None:
    purse = Purse(1.0)
    with pytest.raises(ValueError, match="oops"), purse.hold(0.9):
        raise ValueError("oops")
    with purse.hold(0.9), pytest.raises(SpendLimitReached), purse.hold(0.2):
        pass


async def test_a_price_that_is_unknown_is_said_to_be(
    database: Database, settings: Settings, served: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire.Wire, "here", False)
    models = opened(database, settings, served, spend_limit=float("inf"))
    await models.named("openai:gpt-99").complete(prompt())
    [spend] = await models.spend(timedelta(hours=1))
    assert (spend.cost, spend.unpriced) == (0, 1)


def test_prices(tmp_path: Path) -> None:
    haiku = price_of("anthropic:claude-haiku-4-5")
    assert haiku is not None
    assert haiku.cost(1_000_000, 1_000_000) == 6.0
    assert price_of("anthropic:claude-haiku-4-5-20251001") == haiku
    assert price_of("openai:gpt-5-pro") is None
    own = tmp_path / "mine.toml"
    own.write_text('["anthropic:claude-haiku-4-5"]\ninput = 2\noutput = 3\n')
    mine = price_of("anthropic:claude-haiku-4-5-20251001", own)
    assert mine is not None
    assert (mine.input, mine.output) == (2, 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "mine.toml"),
        ('["a:b"]\ninput = 1\n', "a:b needs input and output"),
        ('["a:b"]\ninput = "1"\noutput = 1\n', "input of a:b must be a number"),
        ('["a:b"]\ninput = -1\noutput = 1\n', "input of a:b must be a number"),
    ],
)
def test_prices_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(text)
    with pytest.raises(BadSetting, match=said):
        price_of("a:b", own)
    with pytest.raises(BadSetting, match="cannot be read"):
        price_of("a:b", tmp_path / "none.toml")


def test_settings_are_read() -> None:
    read = load_settings(
        {"VADE_MODEL": "ollama:x", "VADE_SPEND_LIMIT": "0.5", "VADE_PRICES": "~/p.toml"}
    )
    assert (read.model, read.spend_limit) == ("ollama:x", 0.5)
    assert read.prices == Path.home() / "p.toml"
    assert load_settings({"VADE_SPEND_LIMIT": "inf"}).spend_limit == float("inf")
    for wrong in ("-1", "nan", "much"):
        with pytest.raises(BadSetting, match="VADE_SPEND_LIMIT must be a number"):
            load_settings({"VADE_SPEND_LIMIT": wrong})
