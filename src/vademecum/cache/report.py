"""The measurement plan of the cache over a period: metric, target, measured, verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from vademecum.store import cache
from vademecum.store.cache import Bucket, EventTotal
from vademecum.store.db import Connection

Verdict = Literal["held", "missed", "not measured"]

SERVED = ("hit", "verified", "changed", "stale")
STEPS = 48
"""Of the picture over time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    target: str
    measured: str
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    since: datetime
    until: datetime
    metrics: list[Metric]
    buckets: list[Bucket]
    """The checks in STEPS equal steps of the period; steps without a check are left out."""

    @property
    def held(self) -> bool:
        return all(metric.verdict != "missed" for metric in self.metrics)


async def report(connection: Connection, since: datetime, until: datetime) -> Report:
    """What the events of the period and the state of the store say."""
    totals = await cache.totals(connection, since, until)
    latencies = await cache.latencies(connection, since, until)
    state = await cache.state(connection)
    begin = max(since, state.first_event or since)
    buckets = await cache.buckets(connection, begin, until, STEPS) if begin < until else []
    check, search = latencies.get("check"), latencies.get("search")
    metrics = [
        _hit_rate(totals),
        _below("Cache check latency p95", 100, check.p95 if check else None),
        _below("Search latency p95", 200, search.p95 if search else None),
        _saved(totals),
        _equal("Documents searchable", state.searchable, state.documents),
        _equal("Jobs that wait", state.queued, 0),
        _equal("Documents stored twice", state.doubles, 0),
    ]
    return Report(since=begin, until=until, metrics=metrics, buckets=buckets)


def _hit_rate(totals: Sequence[EventTotal]) -> Metric:
    """Of the checks of addresses that were asked for before; what a rule lets pass is no check."""
    warm = [t for t in totals if t.kind == "check" and t.warm and t.outcome != "pass"]
    checks = sum(total.events for total in warm)
    hits = sum(total.events for total in warm if total.outcome in SERVED)
    return Metric(
        name="Cache hit rate after warm-up",
        target="> 60 %",
        measured=f"{100 * hits / checks:.1f} % of {checks}" if checks else "no checks",
        verdict=_verdict(checks, hits > 0.6 * checks),
    )


def _saved(totals: Sequence[EventTotal]) -> Metric:
    served = [t for t in totals if t.kind == "check" and t.outcome in SERVED]
    hits = sum(total.events for total in served)
    saved = sum(total.saved for total in served)
    return Metric(
        name="Tokens saved per hit, mean",
        target="> 500",
        measured=f"{saved / hits:.0f} over {hits} hits" if hits else "no hits",
        verdict=_verdict(hits, saved > 500 * hits),
    )


def _below(name: str, limit: int, measured: float | None) -> Metric:
    return Metric(
        name=name,
        target=f"< {limit} ms",
        measured="none" if measured is None else f"{measured:.1f} ms",
        verdict="not measured" if measured is None else _verdict(1, measured < limit),
    )


def _equal(name: str, measured: int, target: int) -> Metric:
    return Metric(
        name=name,
        target=str(target),
        measured=str(measured),
        verdict=_verdict(1, measured == target),
    )


def _verdict(events: int, held: bool) -> Verdict:
    if not events:
        return "not measured"
    return "held" if held else "missed"
