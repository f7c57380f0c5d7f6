"""Tables of what the embedded model drew in tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import stats
from .nano_variants import (
    HEXAGONS,
    PATHS,
    RECTANGLES,
    RECTANGLES_STAY,
    SAME,
    SQUARES,
    STAYS,
    UNTILED,
)

Rows = list[dict[str, Any]]

PULSE = 0.5
"""Steps of brightness that are allowed, levels of 255."""


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table, first column left, others right."""
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(str(c) for c in line) + " |" for line in lines)


def of(rows: Rows, **where: Any) -> dict[int, dict[str, Any]]:
    """Rows that agree, by seed."""
    return {r["seed"]: r for r in rows if all(r[k] == v for k, v in where.items())}


def ratio(rows: dict[int, Any], base: dict[int, Any], key: str) -> stats.Estimate:
    """A measure's mean against the base's, over the seeds that both have."""
    seeds = sorted(rows.keys() & base.keys())
    return stats.ratio([rows[s][key] for s in seeds], [base[s][key] for s in seeds])


def wins(rows: dict[int, Any], base: dict[int, Any], key: str) -> str:
    """In how many of the seeds that both have a measure is lower."""
    seeds = rows.keys() & base.keys()
    return f"{sum(rows[s][key] < base[s][key] for s in seeds)} of {len(seeds)}"


def places(rows: Rows) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every canvas and path: a name and what rows must agree in."""
    for canvas in dict.fromkeys(r["canvas"] for r in rows):
        for path in PATHS:
            if of(rows, canvas=canvas, path=path):
                yield f"{canvas}, {path}", {"canvas": canvas, "path": path}


def _share(found: dict[int, Any], key: str) -> str:
    return f"{np.mean([r[key] for r in found.values()]):.0%}"


def _mean(found: dict[int, Any], key: str) -> stats.Estimate:
    return stats.mean([found[s][key] for s in sorted(found)])


def beyond(found: dict[int, Any], untiled: dict[int, Any]) -> list[float]:
    """A clip's largest step of brightness less that of the untiled clip, by seed."""
    return [found[s]["step"] - untiled[s]["step"] for s in sorted(found.keys() & untiled.keys())]


def doubled(found: dict[int, Any]) -> str:
    """Clips with more than one subject."""
    return f"{sum(r['subjects'] > 1 for r in found.values())} of {len(found)}"


def over(steps: Sequence[float]) -> str:
    """How many of the steps are not below the limit."""
    return f"{sum(step >= PULSE for step in steps)} of {len(steps)}"


def missing(found: dict[int, Any]) -> str:
    """Clips without one."""
    return f"{sum(r['subjects'] == 0 for r in found.values())} of {len(found)}"


def main_table(data: dict[str, Any]) -> str:
    """Untiled, hexagons and rectangles on every canvas and path."""
    rows, out = data["rows"], []
    for name, where in places(rows):
        untiled = of(rows, variant=UNTILED, **where)
        for variant in (UNTILED, HEXAGONS, RECTANGLES):
            found = of(rows, variant=variant, **where)
            if len(found) < 2:
                continue
            one = next(iter(found.values()))
            plan = ["", ""] if variant == UNTILED else [
                f"{one['tiles']} of {one['share']:.0%}", f"x{one['tokens']:.2f}"
            ]  # fmt: skip
            measured = [""] * 5 if variant == UNTILED else [
                _mean(found, "flip"), _mean(found, "line"), _mean(found, "pulse"),
                over([r["pulse"] for r in found.values()]), over(beyond(found, untiled)),
            ]  # fmt: skip
            out.append(
                [f"{name}, {variant}", *plan, *measured, doubled(found), missing(found)]
                + [_share(found, k) for k in ("colour", "ground", "direction")]
            )
    head = ["canvas, path, tiles", "tiles", "tokens", "FLIP", "lines on the axes", "pulse",
            "pulse 0.5 or more", "beyond by 0.5 or more", "doubled", "missing", "colour",
            "ground", "direction"]  # fmt: skip
    return table(head, out)


COMPARED = ((HEXAGONS, RECTANGLES), (STAYS, RECTANGLES_STAY), (SAME, SQUARES))


def ratio_table(data: dict[str, Any]) -> str:
    """Hexagons against rectangles, in pairs over seeds."""
    rows, out = data["rows"], []
    for name, where in places(rows):
        for hexes, rects in COMPARED:
            a, b = (of(rows, variant=v, **where) for v in (hexes, rects))
            if len(a.keys() & b.keys()) < 2:
                continue
            h, r = next(iter(a.values())), next(iter(b.values()))
            out.append(
                [f"{name}: {hexes} / {rects}",
                 f"{h['tiles']} of {h['share']:.0%} / {r['tiles']} of {r['share']:.0%}",
                 f"{h['tokens'] / r['tokens'] - 1:+.1%}", ratio(a, b, "flip"), wins(a, b, "flip")]
                + [ratio(a, b, k) for k in ("total", "line", "flicker", "drift")]
            )  # fmt: skip
    head = ["hexagons / rectangles", "tiles", "tokens", "FLIP", "FLIP lower in", "all gradient",
            "lines on the axes", "flicker", "colour drift"]  # fmt: skip
    return table(head, out)


def methods_table(data: dict[str, Any]) -> str:
    """Options, each against the default, in pairs over seeds."""
    rows, out = data["rows"], []
    for name, where in places(rows):
        options = dict.fromkeys(
            r["variant"] for r in rows
            if r["group"] == "methods" and all(r[k] == v for k, v in where.items())
        )  # fmt: skip
        for option in [HEXAGONS, *options] if options else []:
            found, base = (of(rows, variant=v, **where) for v in (option, HEXAGONS))
            if len(found.keys() & base.keys()) < 2:
                continue
            one = next(iter(found.values()))
            out.append(
                [f"{name}: " + ("default" if option == HEXAGONS else option),
                 f"{one['tiles']} of {one['share']:.0%}", f"x{one['tokens']:.2f}",
                 f"{_mean(found, 'flip').value:.4f}"]
                + [ratio(found, base, k) for k in ("flip", "line", "pulse", "seconds")]
                + [doubled(found), _share(found, "colour"), _share(found, "ground")]
            )  # fmt: skip
    head = ["option", "tiles", "tokens", "FLIP", "FLIP / default", "lines / default",
            "pulse / default", "CPU time / default", "doubled", "colour", "ground"]  # fmt: skip
    return table(head, out)
