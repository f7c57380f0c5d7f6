"""Read-only routes for the page: the geometry that it draws comes from the same code as the nodes'.

GET /h3video/grid     cells of a grid, with outlines, rings and neighbours
GET /h3video/select   indices of the cells that an expression chooses
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from ..errors import UsageError
from ..grid import GridCells, select_cells
from ..grid.hexgrid import MAX_SPAN
from ..grid.lattice import Lattice
from .query import PARAMETERS, encode, read_query

MAX_DRAWN = 4000
"""Most cells that a page is sent: more cannot be told apart, and would stall it."""

MAX_MAP = 1 << 21
"""Most pixels of an equirectangular map that is drawn live: a second for the pure index."""

MAX_TEXT = 20_000
"""Longest expression in characters."""


def add_routes() -> None:
    """Register the routes on ComfyUI's server; nothing happens where there is none."""
    from aiohttp import web
    from server import PromptServer

    server = getattr(PromptServer, "instance", None)
    if server is None:
        return

    def route(path: str, answer: Callable[[Mapping[str, str]], str]) -> None:
        @server.routes.get(path)
        async def handle(request: Any) -> Any:
            try:
                status, text = 200, answer(request.rel_url.query)
            except UsageError as e:
                status, text = 400, json.dumps({"error": str(e)})
            headers = {"Cache-Control": "no-cache"}
            return web.Response(
                text=text, status=status, content_type="application/json", headers=headers
            )

    route("/h3video/grid", grid_answer)
    route("/h3video/select", select_answer)


def grid_answer(query: Mapping[str, str]) -> str:
    """The JSON text of /h3video/grid."""
    _known(query, PARAMETERS)
    return _grid_text(read_query(query))


def select_answer(query: Mapping[str, str]) -> str:
    """The JSON text of /h3video/select."""
    _known(query, (*PARAMETERS, "select"))
    text = query.get("select", "")
    if len(text) > MAX_TEXT:
        raise UsageError(f"select has {len(text)} characters, the limit is {MAX_TEXT}")
    return _select_text(read_query(query), text)


def _known(query: Mapping[str, str], names: tuple[str, ...]) -> None:
    unknown = sorted(set(query) - set(names))
    if unknown:
        raise UsageError(f"parameter {unknown[0]!r} is unknown; use {', '.join(names)}")


def _bounded(key: tuple[Any, ...]) -> GridCells:
    """The cells, refused when they are too many to draw; the count is estimated first, since
    building them takes longer than a page should wait."""
    width, height, hex_res, _, span, rotation, projection, *_ = key
    if projection == "equirectangular" and width * height > MAX_MAP:
        raise UsageError(f"a map of {width}x{height} px is too large to draw live; run the node")
    if projection == "face" and hex_res.isdecimal() and int(hex_res) <= 15:
        finest = _finest_drawn(width, height, span, rotation)
        if int(hex_res) > max(finest, 0) and 0.0 < span <= MAX_SPAN:
            raise UsageError(
                f"hex_res {hex_res} gives too many cells to draw at {width}x{height}, the limit is "
                f"{MAX_DRAWN}; use hex_res {finest} or less"
            )
    return encode(*key)


def _finest_drawn(width: int, height: int, span: float, rotation: float) -> int:
    """The finest resolution with at most about MAX_DRAWN cells."""
    if min(width, height) < 1 or not span > 0.0:
        return 15  # left to the grid to refuse
    area = width * height / (3.0**0.5 / 2.0)
    return max(
        (
            res for res in range(16)
            if area / Lattice.over_frame(width, height, res, span, rotation).pitch ** 2
            <= MAX_DRAWN
        ),
        default=0,
    )  # fmt: skip


@lru_cache(maxsize=64)
def _grid_text(key: tuple[Any, ...]) -> str:
    cells = _bounded(key)
    grid, rings = cells.grid, cells.rings()
    return json.dumps(
        {
            "width": grid.width, "height": grid.height, "res": grid.res,
            "edge": round(grid.edge, 2), "overlap": round(cells.overlap, 2),
            "count": len(grid.cells), "focus": grid.cell_at(*cells.focus),
            "cells": [
                {
                    "id": f"{c.id:x}", "x": round(c.x, 2), "y": round(c.y, 2),
                    "ring": rings[c.index],
                    "corners": [[round(x, 2), round(y, 2)] for x, y in grid.corners(c.index)],
                    "neighbours": list(grid.neighbours[c.index]),
                }
                for c in grid.cells
            ],
        },
        separators=(",", ":"),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _select_text(key: tuple[Any, ...], text: str) -> str:
    return json.dumps({"chosen": list(select_cells(_bounded(key), text))})
