"""The ledger: phases of a run against a machine, and whether they fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .ask import Ask
from .blockers import Blocker, blockers, warnings
from .calibration import Calibration, calibrated
from .runtimes import runtime
from .terms import Phase
from .units import Range, gib

FITS, TIGHT, TOO_LARGE = "fits", "tight", "does not fit"


@dataclass(frozen=True)
class Place:
    """One kind of memory in one phase: bytes that cannot be given up, against the limit.

    name     device | memory (all of the RAM) | RAM (beside a card)
    peak     bytes that are used: all that fits, what is elastic included
    """

    name: str
    peak: int
    needed: int
    high: int
    limit: Range

    @property
    def title(self) -> str:
        """Its name in a sentence."""
        return {"device": "device memory", "memory": "the machine's memory"}.get(
            self.name, self.name
        )

    @property
    def state(self) -> str:
        """fits | tight (depends on what is known only as a range) | does not fit."""
        if self.needed > self.limit.high:
            return TOO_LARGE
        return TIGHT if max(self.needed, self.high) > self.limit.low else FITS

    @property
    def over(self) -> int:
        """Bytes beyond the limit's top."""
        return max(0, self.needed - self.limit.high)


_ORDER = {FITS: 0, TIGHT: 1, TOO_LARGE: 2}


@dataclass(frozen=True)
class Ledger:
    """A plan: what every phase needs, and whether that fits.

    phases   with their terms;  blockers   reasons to fail whatever the memory is
    """

    ask: Ask
    phases: tuple[Phase, ...]
    blockers: tuple[Blocker, ...]
    warnings: tuple[str, ...]

    def places(self, phase: Phase) -> tuple[Place, ...]:
        """The memories that a phase uses, each against its limit."""
        machine = self.ask.machine
        found = []
        if machine.gpu != "cpu":
            found.append(_place("device", phase, "device", machine.device_limit))
        host = None if machine.unified else "host"
        found.append(_place("memory" if machine.unified else "RAM", phase, host, machine.ram_limit))
        return tuple(found)

    @cached_property
    def worst(self) -> tuple[Phase, Place]:
        """The phase and the memory that decide: nearest to its limit, or furthest beyond."""
        pairs = [(phase, place) for phase in self.phases for place in self.places(phase)]
        return max(
            pairs, key=lambda pair: (_ORDER[pair[1].state], pair[1].needed / pair[1].limit.high)
        )

    @property
    def state(self) -> str:
        """fits | tight | does not fit."""
        if self.blockers:
            return TOO_LARGE
        return self.worst[1].state

    @property
    def fits(self) -> bool:
        """Whether it runs as asked."""
        return self.state != TOO_LARGE

    @property
    def peak(self) -> int:
        """The highest peak of the memory that the work is done in, in bytes."""
        return max(self.places(phase)[0].peak for phase in self.phases)

    @property
    def streamed(self) -> int:
        """Bytes of weights that are read again in every pass."""
        limit = self.ask.machine.device_limit.low
        most = 0
        for phase in self.phases:
            if phase.name.startswith("denoise"):
                beyond = 0
                if not self.ask.machine.unified:
                    beyond = max(0, phase.total("device") - limit)
                most = max(most, phase.streamed, beyond)
        return most

    @property
    def from_disk(self) -> int:
        """Bytes of `streamed` that RAM cannot hold beside the rest: they come from the disk."""
        machine = self.ask.machine
        if machine.unified:
            return self.streamed
        most = 0
        for phase in self.phases:
            if phase.name.startswith("denoise"):
                # a runtime that keeps the weights in RAM has counted them there
                paged = sum(t.elastic for t in phase.terms if t.where == "device")
                room = machine.ram_limit.low - phase.needed("host")
                most = max(most, paged - max(0, room))
        return min(most, self.streamed)

    def phase(self, name: str) -> Phase:
        """A phase by name; "denoise" is the first expert's."""
        return next(p for p in self.phases if p.name.split(",")[0] == name)

    def because(self) -> str:
        """Why, in one line."""
        if self.blockers:
            return self.blockers[0].text()
        phase, place = self.worst
        if place.state == TOO_LARGE:
            largest = max(
                (t for t in phase.terms if place.name != "device" or t.where == "device"),
                key=lambda t: t.needed,
            )
            return (
                f"{phase.name} needs {gib(place.needed)} of {place.title}, "
                f"{place.limit.text()} can be had; the largest part is {largest.name} "
                f"({gib(largest.needed)}: {largest.formula})"
            )
        room = place.limit.low - place.needed
        what = "depends on what is known only as a range" if place.state == TIGHT else "fits"
        return (
            f"{phase.name} decides: {gib(place.needed)} of {place.limit.text()} of {place.title} "
            f"({gib(abs(room))} {'free' if room >= 0 else 'over the low end'}); {what}"
        )

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data; see schema.py."""
        from .schema import ledger_json

        return ledger_json(self)


def _place(name: str, phase: Phase, where: str | None, limit: Range) -> Place:
    needed, total = phase.needed(where), phase.total(where)
    peak = max(needed, min(total, limit.high))
    return Place(name, peak, needed, phase.high(where), limit)


def plan(ask: Ask, calibration: Calibration | None = None) -> Ledger:
    """Answer an ask."""
    stopped = blockers(ask)
    phases = runtime(ask.runtime).phases(ask)
    if calibration is not None:
        phases = calibrated(phases, ask, calibration)
    return Ledger(ask, phases, stopped, warnings(ask))
