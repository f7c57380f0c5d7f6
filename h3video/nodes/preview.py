"""What nodes show of a grid: a picture, a summary, and a message for the page."""

from __future__ import annotations

from typing import Any

from ..grid import GridCells

LONGEST, SHORTEST = 2048, 768
"""The picture's longer side in px: large frames are shrunk, small ones enlarged to be readable."""

COLD, WARM = (16, 20, 40), (240, 168, 48)


def preview_image(cells: GridCells, mask: Any, chosen: tuple[int, ...] | None = None) -> Any:
    """The grid over a mask as an IMAGE: float32 torch [1, H', W', 3].

    mask   float32 numpy [height, width] in 0..1
    """
    import numpy as np
    import torch

    from ..render.pictures import draw_grid

    grid = cells.grid
    longest = max(grid.width, grid.height)
    scale = min(max(longest, SHORTEST), LONGEST) / longest
    cold, warm = np.array(COLD, np.float32), np.array(WARM, np.float32)
    skip = max(1, longest // LONGEST)  # no need to colour 16k x 16k pixels for a 2k picture
    m = mask[::skip, ::skip, None]
    base = np.clip(cold + m * (warm - cold), 0, 255).astype(np.uint8)
    picture = draw_grid(base, grid, [(c.index,) for c in grid.cells], scale)
    return torch.from_numpy(np.asarray(picture.convert("RGB"), np.float32) / 255.0)[None]


def summary(cells: GridCells) -> str:
    """Cells, edge in px, ids, for people."""
    grid = cells.grid
    rings = cells.rings()
    lines = [
        f"{len(grid.cells)} cells at hex_res {grid.res} on {grid.width}x{grid.height} px",
        f"edge {grid.edge:.1f} px, overlap {cells.overlap:.1f} px, {max(rings)} rings around "
        f"{grid.cells[rings.index(0)].id:x}",
    ]
    return "\n".join([*lines, *(f"{c.id:x} ring {rings[c.index]}" for c in grid.cells)])


def grid_message(cells: GridCells, **more: Any) -> dict[str, Any]:
    """The `ui` part of a node's output: what the page asks /h3video/grid with."""
    grid = cells.grid
    query = {
        "width": grid.width, "height": grid.height, "hex_res": grid.res,
        "overlap": cells.overlap, "span": getattr(grid, "span", 0.075),
        "rotation": getattr(grid, "rotation", 0.0), "projection": cells.projection,
        "focus_x": cells.focus[0] / grid.width, "focus_y": cells.focus[1] / grid.height,
        "falloff": cells.falloff, **more,
    }  # fmt: skip
    return {"h3_grid": [query]}
