"""The targets that the lab was built for, what was measured, and whether they are met."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import stats
from .nano_tables import COMPARED, PULSE, beyond, doubled, of, over, places, ratio, table
from .nano_variants import HEXAGONS, PREVIOUS, STAYS, UNTILED
from .tilings import HEXAGONS as FIELD_HEXAGONS
from .tilings import RECTANGLES as FIELD_RECTANGLES

Parts = dict[str, dict[str, Any] | None]
Line = tuple[str, str, bool]
"""What must hold, what was measured, whether it holds."""


def targets_table(parts: Parts) -> str:
    """A line for every reading of every target; parts that were not run have none."""
    lines = [line for make in MAKERS for line in make(parts)]
    rows = [(target, found, "met" if met else "**missed**") for target, found, met in lines]
    return table(["target", "measured", ""], rows)


def _field(rows: list[dict[str, Any]], key: str, **where: Any) -> stats.Estimate:
    a, b = (of(rows, tiling=t, **where) for t in (FIELD_HEXAGONS, FIELD_RECTANGLES))
    return ratio(a, b, key)


def _seams(parts: Parts) -> Iterator[Line]:
    data = parts["fields"]
    if not data:
        return
    names = {"line": "lines on the axes, without sign", "axis": "axis, signed"}
    for overlap, limit in ((8, 1 / 4), (32, 1 / 2)):
        for key, name in names.items():
            found = _field(data["turns"], key, side=128, overlap=overlap)
            floor = f"; without direction {_floor(data['turns'], overlap):.2f}"
            yield (f"seams along columns and rows, {overlap} px fade: at most {limit:g} of "
                   f"rectangles' ({name})", str(found) + (floor if key == "axis" else ""),
                   found.value <= limit)  # fmt: skip


def _floor(rows: list[dict[str, Any]], overlap: int) -> float:
    """The signed measure of rectangles' gradient if it preferred no direction, against its own."""
    found = of(rows, tiling=FIELD_RECTANGLES, side=128, overlap=overlap).values()
    return float(np.mean([r["chance"] for r in found]) / np.mean([r["axis"] for r in found]))


def _flips(parts: Parts) -> Iterator[Line]:
    data = parts["fields"]
    if not data:
        return
    found = {
        (source, r["field"], r["overlap"]): _field(
            data[source], "flip", field=r["field"], overlap=r["overlap"]
        )
        for source in ("photographs", "nano") for r in data[source]
    }  # fmt: skip
    (_, field, overlap), worst = max(found.items(), key=lambda f: f[1].value)
    yield ("FLIP on no field worse than rectangles', within noise",
           f"worst of {len(found)}: {field}, {overlap} px: {worst}",
           all(f.low <= 1.0 for f in found.values()))  # fmt: skip


def _tokens(parts: Parts) -> Iterator[Line]:
    data = parts["counted"]
    if not data:
        return
    for key, way, limit in (("rectangles", "crops", 0.08), ("rounded", "rectangles", 0.03)):
        name = "square crops" if way == "crops" else "rectangular token tiles with round corners"
        inner = [1 - r["hexagons"] / r[key] for r in data["interior"] if r["context"] >= 1]
        yield (f"tokens: {limit:.0%} fewer than {name}, one tile away from the edge, "
               "context of an inradius or more",
               f"{min(inner):.1%} to {max(inner):.1%}", min(inner) >= limit)  # fmt: skip
        for sizes, words in ((3, "up to three sizes of tile"), (1, "all tiles of one size")):
            less = fewer(data["plans"], way, sizes)
            many = sum(v >= limit for v in less)
            yield (f"the same, whole plans, {words}: {limit:.0%} fewer than {name}",
                   f"median {np.median(less):+.1%}, {min(less):+.1%} to {max(less):+.1%}; "
                   f"{many} of {len(less)} plans", bool(np.median(less) >= limit))  # fmt: skip


def fewer(plans: list[dict[str, Any]], way: str, sizes: int = 3) -> list[float]:
    """By how much hexagons run fewer tokens, for every case that both ways fit."""
    cases: dict[tuple[Any, ...], dict[str, int]] = {}
    for r in plans:
        if r["sizes"] == sizes:
            key = (r["family"], r["width"], r["height"], r["radius"], r["limit"])
            cases.setdefault(key, {})[r["way"]] = r["tokens"]
    return [1 - c["hexagons"] / c[way] for c in cases.values() if c.keys() >= {"hexagons", way}]


NAMES = {HEXAGONS: "plans within one budget", STAYS: "the same, grids that stay"}


def _nano(parts: Parts) -> Iterator[Line]:
    data = parts["nano"]
    if not data:
        return
    rows = data["rows"]
    for a, b in COMPARED:
        for name, where in places(rows):
            hexes, rects = (of(rows, variant=v, **where) for v in (a, b))
            if len(hexes.keys() & rects.keys()) >= 2:
                found = ratio(hexes, rects, "flip")
                what = NAMES.get(a, f"{a} / {b}")
                yield ("FLIP on the embedded model lower than rectangles' at equal tokens "
                       f"({name}; {what})", str(found), found.high < 1.0)  # fmt: skip
    for name, where in places(rows):
        base = of(rows, variant=PREVIOUS, **where)
        for option in (HEXAGONS, "halo 8"):
            found = of(rows, variant=option, **where)
            if len(found.keys() & base.keys()) >= 2:
                flip, tokens = ratio(found, base, "flip"), next(iter(found.values()))["tokens"]
                still = next(iter(base.values()))["tokens"]
                what = "the default" if option == HEXAGONS else option
                yield ("a grid that moves each step: the FLIP of the default before it at 1.10 of "
                       f"the frame's tokens ({name}; {what})",
                       f"{flip} at x{tokens:.2f} instead of x{still:.2f}",
                       flip.low <= 1.0 and tokens <= 1.10)  # fmt: skip
    for name, where in places(rows):
        found = of(rows, variant=HEXAGONS, **where)
        count = sum(r["subjects"] > 1 for r in found.values())
        if where["path"] == "upscaled":
            yield (f"doubled subjects: at most 1 in 20 ({name})", doubled(found),
                   count <= len(found) / 20)  # fmt: skip
    for name, where in places(rows):
        found, untiled = (of(rows, variant=v, **where) for v in (HEXAGONS, UNTILED))
        kinds = {
            "in the difference from the untiled clip": [r["pulse"] for r in found.values()],
            "the clip's largest step beyond the untiled one's": beyond(found, untiled),
        }
        for kind, steps in kinds.items():
            if len(steps) >= 2:
                yield (f"pulse below {PULSE:g} of 255 ({name}; {kind})",
                       f"{stats.mean(steps)}, largest {max(steps):.2f}, {over(steps)} not",
                       max(steps) < PULSE)  # fmt: skip


MAKERS: tuple[Callable[[Parts], Iterator[Line]], ...] = (_seams, _flips, _tokens, _nano)
