"""Why a part of a sentence may not be kept."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Why a part of a sentence may not be kept. Offsets are of the normalised sentence."""

    kind: str
    start: int
    end: int
