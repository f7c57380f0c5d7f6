"""What a prediction is made of: terms with a formula and a source, summed per phase."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .units import Range

EXACT, FORMULA, RANGE = "exact", "formula", "range"
"""How a term is known: from a file's header or from shapes; from the code of a runtime, applied to
shapes; or only as a range."""


@dataclass(frozen=True)
class Term:
    """Some bytes that are resident during a phase.

    where      device (what the graphics processor holds) | host
    kind       weights | activations | scores | pixels | runtime
    size       bytes; a range where only that is known
    basis      exact | formula | range
    elastic    bytes of it that the runtime gives up when memory is short (paged weights, models
               kept for the next run); the cost is time, never failure
    formula    how the number comes about, with the numbers in it
    source     where the formula or the figure is from
    """

    name: str
    where: str
    kind: str
    size: Range
    basis: str
    formula: str
    source: str
    elastic: int = 0
    usual: int | None = None

    @property
    def bytes(self) -> int:
        """What is usual, else the middle of the range."""
        return (self.size.low + self.size.high) // 2 if self.usual is None else self.usual

    @property
    def needed(self) -> int:
        """Bytes of it that cannot be given up."""
        return max(self.size.low - self.elastic, self.bytes - self.elastic, self._floor)

    @property
    def _floor(self) -> int:
        return max(0, min(self.bytes, self.size.high - self.elastic)) if self.elastic else 0

    def to_json(self) -> dict[str, Any]:
        """The term as plain data."""
        return {
            "name": self.name, "where": self.where, "kind": self.kind, "bytes": self.bytes,
            "low_bytes": self.size.low, "high_bytes": self.size.high,
            "elastic_bytes": self.elastic, "basis": self.basis, "formula": self.formula,
            "source": self.source,
        }  # fmt: skip


@dataclass(frozen=True)
class Phase:
    """One phase of a run: what is resident at its worst moment.

    streamed   bytes of weights that are read again in every pass even with room to spare
    """

    name: str
    terms: tuple[Term, ...]
    streamed: int = 0
    notes: tuple[str, ...] = field(default=())

    def total(self, where: str | None = None, kind: str | None = None) -> int:
        """Bytes of all terms, of one place or kind."""
        return sum(t.bytes for t in self._of(where, kind))

    def needed(self, where: str | None = None) -> int:
        """Bytes that cannot be given up."""
        return sum(t.needed for t in self._of(where, None))

    def high(self, where: str | None = None) -> int:
        """Bytes that cannot be given up when every range ends at its top."""
        return sum(max(t.needed, t.size.high - t.elastic) for t in self._of(where, None))

    def _of(self, where: str | None, kind: str | None) -> list[Term]:
        return [
            t for t in self.terms
            if (where is None or t.where == where) and (kind is None or t.kind == kind)
        ]  # fmt: skip


def weights(
    name: str, where: str, size: Range, usual: int, formula: str, source: str,
    elastic: bool = False,
) -> Term:  # fmt: skip
    """A model's weights; all of it elastic, or none."""
    basis = EXACT if size.low == size.high else RANGE
    return Term(
        name, where, "weights", size, basis, formula, source, size.high if elastic else 0, usual
    )


def computed(name: str, where: str, kind: str, count: float, formula: str, source: str) -> Term:
    """Bytes that follow from shapes and a runtime's code."""
    return Term(name, where, kind, Range.exactly(count), FORMULA, formula, source)


def ranged(
    name: str, where: str, kind: str, low: float, high: float, formula: str, source: str
) -> Term:
    """Bytes known as a range."""
    return Term(name, where, kind, Range(int(low), int(high)), RANGE, formula, source)
