"""Tables of docs/quality.md from the lab's figures, written between their markers.

    <!-- lab:NAME --> ... <!-- /lab:NAME -->

Nothing else of the page is touched. A part that was not run says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from h3video.blend.kernels import KERNELS

from . import nano_tables, stats, store
from .nano_tables import table
from .targets import Parts, fewer, targets_table
from .tilings import HEXAGONS, KERNEL, RECTANGLES

PAGE = Path(__file__).parents[2] / "docs" / "quality.md"

Rows = list[dict[str, Any]]


def write(page: Path = PAGE, folder: Path = store.FOLDER) -> None:
    """Put the figures of the results into the page."""
    page.write_text(filled(page.read_text(), folder))


def filled(text: str, folder: Path = store.FOLDER) -> str:
    """The page's text with every table made anew. Raises ValueError for an unknown marker."""

    all_parts = {part: store.load(part, folder) for part in ("fields", "counted", "nano")}

    def made(match: re.Match[str]) -> str:
        name = match[1]
        if name not in TABLES:
            raise ValueError(f"no table {name!r}; the lab has {', '.join(TABLES)}")
        part, make = TABLES[name]
        data = all_parts if part == "all" else all_parts[part]
        body = make(data) if data else f"*Not run yet: `python -m benchmarks.quality {part}`.*"
        return f"<!-- lab:{name} -->\n{body}\n<!-- /lab:{name} -->"

    return re.sub(r"<!-- lab:([\w-]+) -->\n.*?<!-- /lab:\1 -->", made, text, flags=re.DOTALL)


def select(rows: Rows, key: str, **where: Any) -> list[float]:
    """A measure of all rows that agree, by seed."""
    found = [r for r in rows if all(r[k] == v for k, v in where.items())]
    return [r[key] for r in sorted(found, key=lambda r: r["seed"])]


def against(rows: Rows, key: str, tiling: str = HEXAGONS, **where: Any) -> stats.Estimate:
    """Hexagons' mean against rectangles', paired by seed."""
    return stats.ratio(
        select(rows, key, tiling=tiling, **where), select(rows, key, tiling=RECTANGLES, **where)
    )


def excess(rows: Rows, tiling: str, **where: Any) -> list[float]:
    """What columns and rows hold beyond other directions, by seed."""
    axis, chance = (select(rows, k, tiling=tiling, **where) for k in ("axis", "chance"))
    return [a - c for a, c in zip(axis, chance)]


def _seams(data: dict[str, Any]) -> str:
    """The tint field: seams by definition, fade and tile size."""
    rows, out = data["turns"], []
    for side in sorted({r["side"] for r in rows}, reverse=True):
        for overlap in sorted({r["overlap"] for r in rows}):
            where = {"side": side, "overlap": overlap}
            beyond = [stats.mean(excess(rows, t, **where)) for t in (RECTANGLES, HEXAGONS)]
            floor = stats.ratio(*(select(rows, k, tiling=RECTANGLES, **where)
                                  for k in ("chance", "axis")))  # fmt: skip
            out.append(
                [f"{side} px tiles, {overlap} px fade", against(rows, "total", **where),
                 against(rows, "axis", **where), floor, against(rows, "line", **where),
                 against(rows, "angle", **where), against(rows, "junction", **where), *beyond]
            )  # fmt: skip
    head = ["hexagons / rectangles", "all gradient", "axis, signed", "without direction",
            "lines on the axes", "worst angle", "junctions", "beyond chance, rectangles",
            "beyond chance, hexagons"]  # fmt: skip
    return table(head, out)


def _turns(data: dict[str, Any]) -> str:
    """Orientation: seams against rectangles' by degrees from upright."""
    rows, out = data["turns"], []
    for tiling in dict.fromkeys(r["tiling"] for r in rows if r["tiling"] != RECTANGLES):
        turn = tiling.partition(" ")[2]
        name = f"{turn} degrees" if turn else "native (19.1 degrees)"
        cells = [
            against(rows, key, tiling, side=128, overlap=overlap)
            for overlap in (8, 32) for key in ("axis", "line", "angle")
        ]  # fmt: skip
        out.append([name, *cells])
    head = ["hexagons from upright"] + [
        f"{key}, {overlap} px" for overlap in (8, 32) for key in ("axis", "lines", "worst angle")
    ]
    return table(head, out)


def _fields(part: str) -> Callable[[dict[str, Any]], str]:
    def make(data: dict[str, Any]) -> str:
        rows, out = data.get(part) or [], []
        if not rows:
            return "*Not run.*"
        for field in dict.fromkeys(r["field"] for r in rows):
            for overlap in (8, 32):
                where = {"field": field, "overlap": overlap}
                hexes, rects = (
                    select(rows, "flip", tiling=t, **where) for t in (HEXAGONS, RECTANGLES)
                )
                out.append(
                    [f"{field}, {overlap} px", f"{np.mean(rects):.4f}", f"{np.mean(hexes):.4f}",
                     stats.ratio(hexes, rects), against(rows, "line", **where),
                     against(rows, "drift", **where)]
                )  # fmt: skip
        head = ["field, fade", "FLIP, rectangles", "FLIP, hexagons", "FLIP, ratio",
                "lines on the axes, ratio", "colour drift, ratio"]  # fmt: skip
        return table(head, out)

    return make


def _dip(data: dict[str, Any]) -> str:
    rows, out = data["photographs"], []
    for overlap in (8, 32):
        out.append([f"{overlap} px"] + [
            stats.mean(select(rows, "dip", tiling=t, field="texture", overlap=overlap))
            for t in (RECTANGLES, HEXAGONS)
        ])  # fmt: skip
    return table(["fade", "rectangles", "hexagons"], out)


def _kernels(data: dict[str, Any]) -> str:
    """Curves of the fade against the smoothstep."""
    rows, out = data.get("kernels", []), []
    if not rows:
        return "*Not run.*"
    for kernel in KERNELS:
        found = {(f, t): {"field": f, "tiling": f"{HEXAGONS} {t}"}
                 for f in ("tint", "texture") for t in (kernel, KERNEL)}  # fmt: skip

        def to_default(field: str, key: str, found: Any = found, kernel: str = kernel) -> Any:
            base = select(rows, key, **found[field, KERNEL])
            return stats.ratio(select(rows, key, **found[field, kernel]), base)

        out.append(
            [kernel, *(to_default("tint", k) for k in ("total", "line", "angle", "flip")),
             to_default("texture", "flip"),
             stats.mean(select(rows, "dip", **found["texture", kernel]))]
        )  # fmt: skip
    head = ["kernel / smoothstep", "all gradient", "lines on the axes", "worst angle",
            "FLIP, tint", "FLIP, texture", "variance dip"]  # fmt: skip
    return table(head, out)


def _interior(data: dict[str, Any]) -> str:
    out = []
    for r in data["interior"]:
        h = r["hexagons"]
        out.append(
            [f"{r['side']:.0f} px, {r['context']:g} x inradius = {r['radius']:.0f} px",
             f"{h:.0f}", f"{r['rounded']:.0f}", f"{r['rectangles']:.0f}",
             f"{1 - h / r['rounded']:.1%}", f"{1 - h / r['rectangles']:.1%}"]
        )  # fmt: skip
    head = ["cell, context", "hexagon", "rounded square", "square crop",
            "fewer than rounded", "fewer than crop"]  # fmt: skip
    return table(head, out)


def _plans(sizes: int) -> Callable[[dict[str, Any]], str]:
    def make(data: dict[str, Any]) -> str:
        cases: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
        for r in data["plans"]:
            if r["sizes"] == sizes:
                key = (r["family"], r["width"], r["height"], r["radius"], r["limit"])
                cases.setdefault(key, {})[r["way"]] = r
        out = []
        for (family, width, height, radius, limit), ways in cases.items():
            if ways.keys() < {"hexagons", "rectangles", "crops"}:
                continue
            h = ways["hexagons"]
            cells = [f"x{ways[w]['price']:.2f} ({ways[w]['tiles']})" for w in PLAN_WAYS]
            less = [f"{1 - h['tokens'] / ways[w]['tokens']:+.1%}" for w in PLAN_WAYS[1:]]
            out.append([f"{family} {width}x{height}, {radius:.0f} px, {limit:.1%}", *cells, *less])
        less = [f"{np.median(fewer(data['plans'], w, sizes)):+.1%}" for w in PLAN_WAYS[1:]]
        out.append([f"median of {len(out)} plans", "", "", "", *less])
        head = ["plan, context, largest tile", *PLAN_WAYS, "fewer than rectangles",
                "fewer than crops"]  # fmt: skip
        return table(head, out)

    return make


PLAN_WAYS = ("hexagons", "rectangles", "crops")


def _about(parts: Parts) -> str:
    """Seeds, the machine, and how long the parts took."""
    lines = []
    for part, data in parts.items():
        if data:
            seeds = {r["seed"] for rows in data.values() if isinstance(rows, list) for r in rows
                     if "seed" in r}  # fmt: skip
            took = f"{data.get('seconds', 0) / 60:.0f} minutes" if "seconds" in data else ""
            drawn = f"{data['drawn']} of {len(data['rows'])} clips drawn" if "drawn" in data else ""
            many = f"{len(seeds)} seeds" if seeds else ""
            about = data["about"]
            words = [many, took, drawn, f"{about['cores']} cores", about["day"]]
            lines.append(f"{part}: " + ", ".join(w for w in words if w))
    return "; ".join(lines) + "."


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "about": ("all", _about), "seams": ("fields", _seams),
    "turns": ("fields", _turns), "fields": ("fields", _fields("photographs")),
    "nano-fields": ("fields", _fields("nano")), "dip": ("fields", _dip),
    "kernels": ("fields", _kernels),
    "interior": ("counted", _interior), "plans": ("counted", _plans(3)),
    "plans-one": ("counted", _plans(1)),
    "nano": ("nano", nano_tables.main_table), "nano-ratio": ("nano", nano_tables.ratio_table),
    "nano-methods": ("nano", nano_tables.methods_table), "targets": ("all", targets_table),
}  # fmt: skip
"""Name of a table -> the results that it is made of, and how."""
