"""What a language model costs, by a declared table."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from vademecum.errors import BadSetting

MILLION = 1_000_000
_DATED = re.compile(r"-\d{8}$|-\d{4}-\d{2}-\d{2}$|-latest$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """US dollars."""
        return (self.input * tokens_in + self.output * tokens_out) / MILLION


FREE = Price(input=0, output=0)


def price_of(name: str, own: Path | None = None) -> Price | None:
    """That of `provider:model`, in the file `own` or else in ours; None where neither has it.

    A dated name such as gpt-5-2026-01-31 costs what the name without a date does, if it is not
    listed itself. Raises BadSetting for a file that cannot be used.
    """
    ours = files("vademecum.inference.language").joinpath("prices.toml")
    tables = [_read(own)] if own else []
    tables.append(_parse(ours.read_text(encoding="utf-8"), "prices.toml"))
    for table in tables:
        for form in (name, _DATED.sub("", name)):
            if form in table:
                return table[form]
    return None


def _read(path: Path) -> dict[str, Price]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadSetting(f"VADE_PRICES: {path} cannot be read: {reason}") from None
    return _parse(text, str(path))


def _parse(text: str, place: str) -> dict[str, Price]:
    try:
        return {name: _price(name, entry) for name, entry in tomllib.loads(text).items()}
    except ValueError as error:
        raise BadSetting(
            f"VADE_PRICES: {place}: {error}",
            hint='Each entry is ["provider:model"] with input = … and output = …, in US dollars '
            "for a million tokens.",
        ) from None


def _price(name: str, entry: object) -> Price:
    if not isinstance(entry, Mapping) or set(entry) != {"input", "output"}:
        raise ValueError(f"{name} needs input and output, and nothing else")
    for key, value in entry.items():
        if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
            raise ValueError(f"{key} of {name} must be a number of dollars, not {value!r}")
    return Price(input=float(entry["input"]), output=float(entry["output"]))
