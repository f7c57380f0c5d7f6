"""H3GridEncode: a frame as hexagonal cells, a mask that falls off from a focus, and a picture."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from ..grid import DEFAULT_SPAN
from .preview import grid_message, preview_image, summary
from .query import check, encode
from .sockets import Cells, advanced, says_what_to_install

RESOLUTIONS = ["auto", *map(str, range(16))]


class H3GridEncode(io.ComfyNode):
    """Lay an H3 grid over a frame."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3GridEncode",
            display_name="H3 Grid Encode",
            category="h3-video/grid",
            description="Lay Uber's H3 hexagons over a frame. The mask is strongest at the focus "
            "and falls off ring by ring; it can go straight into ConditioningSetMask.",
            inputs=[
                io.Int.Input(
                    "width", default=1024, min=16, max=16384, step=8,
                    tooltip="Width of the frame in px.",
                ),
                io.Int.Input(
                    "height", default=576, min=16, max=16384, step=8,
                    tooltip="Height of the frame in px.",
                ),
                io.Combo.Input(
                    "hex_res", options=RESOLUTIONS, default="4",
                    tooltip="H3 resolution: one more makes cells 2.65 times smaller. At 4 a cell's "
                    "edge is 6 % of the longer side; auto gives edges of 30 to 79 px.",
                ),
                io.Int.Input(
                    "overlap", default=32, min=0, max=256,
                    tooltip="Width in px of the soft band that neighbouring cells share; 0 gives "
                    "hard edges. Wider than a cell is taken as a cell's width.",
                ),
                advanced(io.Float.Input(
                    "span", default=DEFAULT_SPAN, min=0.001, max=0.33, step=0.001, optional=True,
                    tooltip="Plane units of the icosahedron face across the longer side: larger "
                    "makes cells smaller in px.",
                )),
                advanced(io.Float.Input(
                    "rotation", default=0.0, min=-180.0, max=180.0, step=0.1, optional=True,
                    tooltip="Turn of the grid in degrees. Odd resolutions are turned by 19.107 "
                    "degrees of their own.",
                )),
                advanced(io.Combo.Input(
                    "projection", options=["face", "equirectangular"], default="face",
                    optional=True,
                    tooltip="face: regular hexagons (for tiling). equirectangular: the frame is a "
                    "map of the whole globe.",
                )),
                advanced(io.Float.Input(
                    "focus_x", default=0.5, min=0.0, max=1.0, step=0.001, optional=True,
                    tooltip="Where the mask is strongest, as a share of the width. Click into the "
                    "grid to set it.",
                )),
                advanced(io.Float.Input(
                    "focus_y", default=0.5, min=0.0, max=1.0, step=0.001, optional=True,
                    tooltip="Where the mask is strongest, as a share of the height, from the top.",
                )),
                advanced(io.Float.Input(
                    "falloff", default=0.75, min=0.0, max=1.0, step=0.01, optional=True,
                    tooltip="How much weaker the farthest ring is than the focus: 0 is an even "
                    "mask, 1 lets the farthest ring reach zero.",
                )),
            ],
            outputs=[
                io.Mask.Output(
                    "mask", display_name="mask",
                    tooltip="Weight of every pixel, 1 at the focus [1, height, width].",
                ),
                Cells.Output(
                    "cells", display_name="cells",
                    tooltip="The grid as data for the other H3 nodes.",
                ),
                io.Image.Output(
                    "preview", display_name="preview",
                    tooltip="The cells with their ids, shaded by weight.",
                ),
                io.String.Output(
                    "summary", display_name="summary",
                    tooltip="Cells, edge in px, and the ids.",
                ),
            ],
        )  # fmt: skip

    @classmethod
    def validate_inputs(
        cls, width: Any = None, height: Any = None, hex_res: Any = None, span: Any = None,
        rotation: Any = None, projection: Any = None,
    ) -> bool | str:  # fmt: skip
        """Refuse a grid that cannot be before anything runs. A linked input is None here.

        ComfyUI leaves the range of every input that is named here to us.
        """
        named = {
            "width": width, "height": height, "hex_res": hex_res, "span": span,
            "rotation": rotation, "projection": projection,
        }  # fmt: skip
        try:
            if None not in (width, height, hex_res):
                check(**{k: v for k, v in named.items() if v is not None})
        except UsageError as e:
            return str(e)
        return True

    @classmethod
    @says_what_to_install
    def execute(
        cls, width: int, height: int, hex_res: str, overlap: int, span: float = DEFAULT_SPAN,
        rotation: float = 0.0, projection: str = "face", focus_x: float = 0.5,
        focus_y: float = 0.5, falloff: float = 0.75,
    ) -> Any:  # fmt: skip
        import torch

        cells = encode(
            width, height, hex_res, overlap, span, rotation, projection, focus_x, focus_y, falloff
        )
        mask = cells.mask(cells.attention())
        return io.NodeOutput(
            torch.from_numpy(mask)[None], cells, preview_image(cells, mask), summary(cells),
            ui=grid_message(cells),
        )  # fmt: skip
