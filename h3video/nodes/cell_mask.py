"""H3CellMask: a mask of the cells that an expression chooses."""

from __future__ import annotations

import json
from typing import Any

from comfy_api.latest import io

from ..grid import GridCells, select_cells
from .preview import grid_message
from .sockets import Cells


class H3CellMask(io.ComfyNode):
    """A mask from chosen cells."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3CellMask",
            display_name="H3 Cell Mask",
            category="h3-video/grid",
            description="A mask of chosen cells, soft over the overlap: by id, ring, row, polygon "
            "or a combination. Click cells in the drawing to toggle them.",
            inputs=[
                Cells.Input("cells", tooltip="The grid, from H3 Grid Encode."),
                io.String.Input(
                    "select", default="ring<=1", multiline=True,
                    tooltip="Which cells: ids, ring<=2, row 0, row 1..3, index 5, colour 1, x<50%, "
                    "y>=100, parent ID, polygon x,y x,y x,y, border, all, none; joined by and, or, "
                    "not and parentheses.",
                ),
                io.Int.Input(
                    "overlap", default=-1, min=-1, max=256,
                    tooltip="Width in px of the mask's soft edge; -1 takes the grid's overlap, 0 "
                    "is hard.",
                ),
            ],
            outputs=[
                io.Mask.Output(
                    "mask", display_name="mask",
                    tooltip="1 inside the chosen cells [1, height, width].",
                ),
                io.String.Output(
                    "ids", display_name="ids",
                    tooltip="The chosen cells' H3 ids as a JSON list.",
                ),
            ],
        )  # fmt: skip

    @classmethod
    def execute(cls, cells: GridCells, select: str, overlap: int = -1) -> Any:
        import torch

        chosen = select_cells(cells, select)
        values = [0.0] * len(cells.grid.cells)
        for index in chosen:
            values[index] = 1.0
        mask = cells.mask(values, None if overlap < 0 else float(overlap))
        ids = json.dumps([f"{cells.grid.cells[i].id:x}" for i in chosen])
        return io.NodeOutput(
            torch.from_numpy(mask)[None], ids, ui=grid_message(cells, select=select)
        )
