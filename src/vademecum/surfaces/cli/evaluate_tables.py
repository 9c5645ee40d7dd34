"""What the commands of eval print: estimates with their intervals, in rows."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vademecum.evaluate.metrics import Estimate

MODES = ("hybrid", "dense", "lexical", "hybrid+rerank")
# Names of the metrics for people and for JSON.
NAMES = {"hit": "hit@k", "reciprocal_rank": "mrr", "ndcg": "ndcg@10", "recall": "recall@10"}


def titles(k: int) -> list[str]:
    return [f"hit@{k}", "MRR", "nDCG@10", "recall@10"]


def numbers(estimates: "Mapping[str, Estimate]") -> dict[str, object]:
    """The means by metric, and beside them their intervals."""
    return {
        **{NAMES[metric]: round(one.mean, 6) for metric, one in estimates.items()},
        "intervals": {
            NAMES[metric]: [round(one.low, 6), round(one.high, 6)]
            for metric, one in estimates.items()
        },
    }


def cell(one: "Estimate", *, sign: str = "") -> str:
    text = f"{one.mean:{sign}.3f} [{one.low:{sign}.3f}, {one.high:{sign}.3f}]"
    if not sign:
        return text
    return text + ("*" if one.low > 0 or one.high < 0 else " ")


def print_rows(rows: "Sequence[Sequence[str]]") -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
