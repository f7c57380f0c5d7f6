"""H3HexWalkSampler: a sampler that finishes a frame cell by cell, and can go on after a crash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from .encode import RESOLUTIONS
from .sockets import advanced, says_what_to_install

ORDERS = {"spiral": "spiral", "breadth-first": "bfs", "importance": "importance"}

FOLDER = "h3video_walk"
"""Folder inside ComfyUI's output folder; its temp folder is emptied at every start."""


class H3HexWalkSampler(io.ComfyNode):
    """SAMPLER -> SAMPLER."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3HexWalkSampler",
            display_name="H3 Hex Walk Sampler",
            category="h3-video/sampling",
            description="Finishes a frame one hexagon after the other: only a cell and the ring "
            "around it are sampled at a time, finished neighbours stay as they are and give "
            "context. Every finished cell is saved, so that a run that broke off goes on where it "
            "was. Slower than H3 Hex Tiles, smallest in memory.",
            inputs=[
                io.Sampler.Input(
                    "sampler", tooltip="The sampler that samples each cell: KSamplerSelect or any.",
                ),
                io.Combo.Input(
                    "hex_res", options=RESOLUTIONS, default="auto",
                    tooltip="Size of the hexagons: an H3 resolution 0 (largest) to 15, or auto: "
                    "the coarsest whose cell and ring fit the budget.",
                ),
                io.Combo.Input(
                    "order", options=["spiral", "breadth-first", "importance"], default="spiral",
                    tooltip="spiral: ring by ring around the focus. breadth-first: along the "
                    "neighbours from the focus. importance: always the most important cell that "
                    "touches a finished one; connect a mask.",
                ),
                io.String.Input(
                    "budget", default="auto",
                    tooltip="How much a cell with its ring may take: a share of the frame such as "
                    "25%, or the model's memory estimate such as 6GiB. auto: half of the frame.",
                ),
                io.Int.Input(
                    "overlap", default=-1, min=-1, max=4096, step=16,
                    tooltip="A cell is finished half this width in pixels beyond its edge. -1: 32 "
                    "pixels, at least 4 latents. 0: to its edge.",
                ),
                advanced(io.Int.Input(
                    "halo", default=-1, min=-1, max=4096, step=16, optional=True,
                    tooltip="Pixels that a cell sees around it. -1: one ring of cells. Less is "
                    "faster and gives less context.",
                )),
                advanced(io.Float.Input(
                    "focus_x", default=0.5, min=0.0, max=1.0, step=0.001, optional=True,
                    tooltip="Where the walk begins, as a share of the width.",
                )),
                advanced(io.Float.Input(
                    "focus_y", default=0.5, min=0.0, max=1.0, step=0.001, optional=True,
                    tooltip="Where the walk begins, as a share of the height, from the top.",
                )),
                io.Mask.Input(
                    "importance", optional=True,
                    tooltip="For order importance: cells are walked from bright to dark.",
                ),
                io.String.Input(
                    "folder", default="h3video_walk", optional=True,
                    tooltip="Where finished cells are kept: a folder inside ComfyUI's output "
                    "folder. Each run has a folder of its own in it.",
                ),
                io.Combo.Input(
                    "afterwards", options=["keep", "delete"], default="keep", optional=True,
                    tooltip="What to do with the finished cells when the walk is done. Kept, they "
                    "survive a crash while decoding; delete the folder by hand.",
                ),
                advanced(io.Float.Input(
                    "span", default=0.075, min=0.001, max=0.33, step=0.001, optional=True,
                    tooltip="Which part of the icosahedron's face the frame's longer side spans: "
                    "a fine control of the hexagons' size.",
                )),
                advanced(io.Float.Input(
                    "rotation", default=0.0, min=-180.0, max=180.0, step=0.001, optional=True,
                    tooltip="Turns the grid, in degrees.",
                )),
            ],
            outputs=[
                io.Sampler.Output(
                    display_name="sampler", tooltip="A sampler that walks from cell to cell."
                ),
            ],
        )  # fmt: skip

    @classmethod
    @says_what_to_install
    def execute(
        cls, sampler: Any, hex_res: str = "auto", order: str = "spiral", budget: str = "auto",
        overlap: int = -1, halo: int = -1, focus_x: float = 0.5, focus_y: float = 0.5,
        importance: Any = None, folder: str = FOLDER, afterwards: str = "keep",
        span: float = 0.075, rotation: float = 0.0,
    ) -> Any:  # fmt: skip
        from ..render.engines.comfyui.walk import WalkOptions, WalkSampler
        from ..tiling.settings import HexSettings

        if order == "importance" and importance is None:
            raise UsageError("order importance needs a mask; connect one to importance")
        settings = HexSettings(
            hex_res="auto" if hex_res == "auto" else int(hex_res),
            budget=None if budget.strip() in ("", "auto") else budget,
            overlap=None if overlap < 0 else float(overlap),
            halo=None if halo < 0 else float(halo),
            span=span, rotation=rotation,
        )  # fmt: skip
        options = WalkOptions(
            order=ORDERS[order], focus=(focus_x, focus_y),
            importance=importance if order == "importance" else None,
            folder=output_folder(folder), keep=afterwards == "keep",
        )  # fmt: skip
        return io.NodeOutput(WalkSampler(sampler, settings, options))


def output_folder(name: str) -> Path:
    """A folder inside ComfyUI's output folder.

    Raises UsageError for a name that leads out of it: a workflow from elsewhere must not write
    where it likes.
    """
    import folder_paths

    root = Path(folder_paths.get_output_directory())
    part = Path(name.strip() or FOLDER)
    target = (root / part).resolve()
    if part.is_absolute() or part.drive or root.resolve() not in target.parents:
        raise UsageError(
            f"folder {name!r} is not inside ComfyUI's output folder {root}; give a name such as "
            f"{FOLDER}, or start ComfyUI with --output-directory on another disk"
        )
    return root / part
