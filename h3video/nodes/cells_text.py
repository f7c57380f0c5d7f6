"""H3CellsToText and H3CellsFromText: a grid as JSON, for workflow files and other programs."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from ..grid import GridCells
from .preview import grid_message
from .sockets import Cells


class H3CellsToText(io.ComfyNode):
    """Write a grid as JSON."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3CellsToText",
            display_name="H3 Cells to Text",
            category="h3-video/grid",
            description="The grid as JSON with its H3 ids, to keep or to use outside ComfyUI.",
            inputs=[Cells.Input("cells", tooltip="The grid, from H3 Grid Encode.")],
            outputs=[
                io.String.Output(
                    "text", display_name="text", tooltip="One JSON object; ids are strings."
                )
            ],
        )

    @classmethod
    def execute(cls, cells: GridCells) -> Any:
        return io.NodeOutput(cells.to_json())


class H3CellsFromText(io.ComfyNode):
    """Read a grid from JSON."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3CellsFromText",
            display_name="H3 Cells from Text",
            category="h3-video/grid",
            description="The grid that H3 Cells to Text wrote. Ids that do not belong to its size "
            "are refused.",
            inputs=[
                io.String.Input(
                    "text", default="", multiline=True, tooltip="What H3 Cells to Text wrote."
                )
            ],
            outputs=[
                Cells.Output(
                    "cells",
                    display_name="cells",
                    tooltip="The grid as data for the other H3 nodes.",
                )
            ],
        )

    @classmethod
    def validate_inputs(cls, text: Any = None) -> bool | str:
        """Refuse what is no grid before anything runs. A linked input is None here."""
        try:
            if text is not None:
                GridCells.from_json(text)
        except UsageError as e:
            return str(e)
        return True

    @classmethod
    def execute(cls, text: str) -> Any:
        cells = GridCells.from_json(text)
        return io.NodeOutput(cells, ui=grid_message(cells))
