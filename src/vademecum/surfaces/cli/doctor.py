"""doctor: the whole path on this machine, one check after the other."""

import asyncio
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vademecum.errors import VadeError
from vademecum.settings import Settings
from vademecum.surfaces.cli.run import note, options, print_json

if TYPE_CHECKING:
    from vademecum.app import App

PAGE = """# The lighthouse of Vademecum

The lamp of the lighthouse is lit by the keeper at dusk. It is put out at dawn.

## Stores

Oil for the lamp is kept in the cellar, in barrels of forty litres.
"""
QUESTION = "Where is the oil for the lamp kept?"
LOOKS = 5
"""At a replica, a second apart: something may just have been written."""
FIXED_PGVECTOR = (0, 8, 4)
"""Before it, vacuum could fail on an HNSW index (pgvector's changelog)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    name: str
    ok: bool
    detail: str
    hint: str | None = None
    took_ms: float


@click.command(
    "doctor",
    epilog="""
\b
Example:
  vade doctor --json
""",
)
@options
def doctor_command(settings: Settings, as_json: bool) -> None:
    """Prove the whole path on this machine: database, model, write, search, answer; a page through
    the cache's hooks; the server, if one runs.

    Works in collections of its own that it deletes again.
    """
    checks = asyncio.run(_checks(settings, quiet=as_json))
    healthy = all(check.ok for check in checks)
    log = _last_lines(settings.home / "serve" / "hooks.log")
    if as_json:
        print_json(
            {"ok": healthy, "checks": checks, "hooks_log": log, "settings": _shown(settings)}
        )
    else:
        for line in log:
            click.echo(f"hooks.log  {line}")
        click.echo("settings")
        for name, value in _shown(settings).items():
            click.echo(f"  VADE_{name.upper()}={value}")
        click.echo("all is well" if healthy else "something is wrong: see above")
    sys.exit(0 if healthy else 1)


async def _checks(settings: Settings, *, quiet: bool) -> list[Check]:
    from vademecum.app import App
    from vademecum.surfaces.cli import doctor_web as web

    checks: list[Check] = []

    async def check(name: str, work: Callable[[], Awaitable[str]]) -> None:
        started = time.perf_counter()
        try:
            detail, ok, hint = await work(), True, None
        except VadeError as error:
            detail, ok, hint = str(error), False, error.hint
        took = (time.perf_counter() - started) * 1000
        checks.append(Check(name=name, ok=ok, detail=detail, hint=hint, took_ms=round(took, 1)))
        if not quiet:
            _print(checks[-1])

    try:
        started = time.perf_counter()
        async with App.open(settings, notice=note) as app:
            opened = (time.perf_counter() - started) * 1000
            await check("database", lambda: _database(app, opened))
            if settings.replica_url is not None:
                await check("replica", lambda: _replica(app))
            await check("model", lambda: _model(app))
            await check("language", lambda: _language(app))
            await check("reranker", lambda: _reranker(app))
            name = f"doctor-{uuid.uuid4().hex[:12]}"
            try:
                await check("write", lambda: _write(app, name))
                await check("search", lambda: _search(app, name))
                await check("answer", lambda: _answer(app, name))
            finally:
                await _clean(app, name)
            await check("cache", lambda: web.chain(app))
            await check("server", lambda: web.server(app))
            await check("agent", lambda: web.agent(app))
    except VadeError as unavailable:
        error = unavailable

        async def failed() -> str:
            raise error

        await check("database", failed)
    return checks


async def _database(app: "App", opened: float) -> str:
    about = await app.database.about()
    version = tuple(int(part) for part in about["pgvector"].split("."))
    advice = "" if version >= FIXED_PGVECTOR else "; pgvector 0.8.4 and later mend known faults"
    return (
        f"PostgreSQL {about['postgresql']}, pgvector {about['pgvector']}, {about['size']},"
        f" open in {opened:.0f} ms: {app.database.shown}{advice}"
    )


async def _replica(app: "App") -> str:
    from vademecum.errors import DatabaseUnavailable

    for _ in range(LOOKS):
        state = await app.reads.look()
        if state.reading:
            return f"{state.replica}: {state.reason}, searches may read from it"
        await asyncio.sleep(1)
    raise DatabaseUnavailable(
        f"{state.replica}: {state.reason}",
        hint="Searches read from the primary until it keeps up.",
    )


async def _model(app: "App") -> str:
    embedder = app.embedders.named(app.settings.embedder)
    if embedder is None:
        return "none is set: lexical search only"
    await embedder.embed_query("warm")
    started = time.perf_counter()
    await embedder.embed_query(QUESTION)
    took = (time.perf_counter() - started) * 1000
    return f"{embedder.space.model}, {embedder.space.dimensions} numbers, {took:.1f} ms a query"


async def _language(app: "App") -> str:
    """Ask the language model for a word: answers hide its absence behind the sources' own words."""
    from vademecum.inference.language.model import Message, Prompt

    if app.settings.model is None:
        return "none is set: answers and summaries are in the sources' own words"
    model = app.models.named(app.settings.model)
    started = time.perf_counter()
    ready = Message(role="user", text="Answer with the one word: ready")
    said = await model.complete(
        Prompt(
            purpose="doctor", system="You are asked for a word.", messages=[ready], max_tokens=200
        )
    )
    took = (time.perf_counter() - started) * 1000
    if not said.text.strip():
        raise VadeError(f"{model.name} answered with nothing ({said.stop})")
    return f"{model.name} answers in {took:.0f} ms"


async def _reranker(app: "App") -> str:
    reranker = app.models.reranker()
    if reranker is None:
        return "none is here: the fused order stands"
    parts = [part.strip() for part in PAGE.split("## Stores")]
    started = time.perf_counter()
    scores = await reranker.scores(QUESTION, parts)
    took = (time.perf_counter() - started) * 1000
    if scores[1] <= scores[0]:
        raise VadeError(f"{reranker.name} does not prefer the passage that answers the question")
    slow = took > app.settings.rerank_ms
    late = f", more than VADE_RERANK_MS={app.settings.rerank_ms}" if slow else ""
    return f"{reranker.name} reads 2 passages in {took:.0f} ms{late}"


async def _write(app: "App", collection: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "lighthouse.md").write_text(PAGE, encoding="utf-8")
        report = await app.ingest.bulk_index(Path(folder), collection=collection)
    if report.inserted != 1 or report.failed:
        raise VadeError(f"the page was not stored: {report.failed}")
    return f"1 page, {report.chunks} chunks, {report.embedded} embedded"


async def _search(app: "App", collection: str) -> str:
    from vademecum.types import Query

    result = await app.search(Query(text=QUESTION, collection=collection))
    if not result.results or result.results[0].section_id != "stores":
        raise VadeError("the page just written is not found by what it says")
    return f"{result.results[0].reference} in {result.took_ms:.1f} ms ({result.mode})"


async def _answer(app: "App", collection: str) -> str:
    answer = await app.answer(QUESTION, collection=collection)
    if not answer.found or "cellar" not in answer.answer:
        raise VadeError("the page just written does not answer what it says")
    return answer.answer


async def _clean(app: "App", collection: str) -> None:
    known = [found.name for found in await app.list_collections()]
    if collection in known:
        await app.delete_collection(collection)


def _last_lines(path: Path, count: int = 5) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []


def _print(check: Check) -> None:
    mark = click.style("ok  ", fg="green") if check.ok else click.style("FAIL", fg="red")
    click.echo(f"{mark} {check.name:9} {check.detail}")
    if check.hint and not check.ok:
        click.echo(f"               {check.hint}")


def _shown(settings: Settings) -> dict[str, object]:
    """The settings, secrets left out."""
    from vademecum.inference.language.wire import without_login
    from vademecum.store.db import redacted

    values = {field.name: getattr(settings, field.name) for field in fields(settings)}
    for name in ("database_url", "replica_url"):
        if values[name] is not None:
            values[name] = redacted(values[name])
    for field in fields(settings):
        if not field.repr and values[field.name] is not None:
            values[field.name] = "…"
    if settings.model_url is not None:
        values["model_url"] = without_login(settings.model_url)
    return {name: str(value) for name, value in values.items() if value is not None}
