"""spend: what language models were used for, and what it cost."""

from typing import TYPE_CHECKING

import click

from vademecum.settings import Settings
from vademecum.surfaces.cli.run import options, print_json, run

if TYPE_CHECKING:
    from vademecum.app import App
    from vademecum.store.usage import Spend


@click.command(
    "spend",
    epilog="""
\b
Examples:
  vade spend
  vade spend --last 24h
  vade spend --json

Costs are by the price table of the time of the call. VADE_SPEND_LIMIT is what one process may
spend; VADE_PRICES names a file of prices that go before ours.
""",
)
@click.option(
    "--last", default="30d", metavar="D", help="The period: 30m, 24h, 7d.", show_default=True
)
@options
def spend_command(settings: Settings, as_json: bool, last: str) -> None:
    """Show what language models were used for, and what it cost."""

    async def work(app: "App") -> "list[Spend]":
        from vademecum.cache.rules import duration

        return await app.models.spend(duration(last, name="--last"))

    found = run(settings, work)
    total = sum(one.cost for one in found)
    if as_json:
        print_json({"last": last, "cost": round(total, 8), "models": found})
        return
    if not found:
        click.echo(f"No language model was used in the last {last}.")
        return
    rows = [("model", "purpose", "calls", "failed", "tokens in", "tokens out", "US dollars")]
    rows += [
        (
            f"{one.provider}:{one.model}",
            one.purpose,
            str(one.calls),
            str(one.failed),
            str(one.tokens_in),
            str(one.tokens_out),
            f"{one.cost:.4f}" + (f" + {one.unpriced} calls of unknown price" * bool(one.unpriced)),
        )
        for one in found
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
    click.echo(f"\n${total:.4f} in the last {last}")
