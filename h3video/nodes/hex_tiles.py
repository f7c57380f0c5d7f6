"""H3HexTiles: a model that samples in hexagonal tiles, whatever sampler runs it."""

from __future__ import annotations

from typing import Any

from comfy_api.latest import io

from .encode import RESOLUTIONS
from .sockets import advanced, says_what_to_install


class H3HexTiles(io.ComfyNode):
    """MODEL -> MODEL."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3HexTiles",
            display_name="H3 Hex Tiles",
            category="h3-video/sampling",
            description="Samples in hexagonal tiles: a step needs the memory of a tile, not of a "
            "frame, and large frames are faster. KSampler and every other sampler stay as they "
            "are. For Wan, MiniMax-H3, LTX, HunyuanVideo and Flux tiles are sets of tokens with "
            "the full frame's positions; other models are run in crops.",
            inputs=[
                io.Model.Input("model", tooltip="The model to sample with, with its LoRAs."),
                io.Combo.Input(
                    "hex_res", options=RESOLUTIONS, default="auto",
                    tooltip="Size of the hexagons: an H3 resolution 0 (largest) to 15, or auto: "
                    "the coarsest whose tile fits the budget.",
                ),
                io.String.Input(
                    "budget", default="auto",
                    tooltip="How much a tile may take: a share of the frame such as 25%, or the "
                    "memory of a step's activations such as 6GiB. auto: at most a third of the "
                    "frame, less where that costs little.",
                ),
                io.Int.Input(
                    "overlap", default=-1, min=-1, max=4096, step=16,
                    tooltip="Width in pixels of the band that neighbouring tiles share. -1: two "
                    "tokens, or four (three of 32 px) where the grid stays. 0: a hard edge.",
                ),
                advanced(io.Int.Input(
                    "halo", default=-1, min=-1, max=4096, step=16, optional=True,
                    tooltip="Pixels that a tile sees beyond its cells. -1: half the overlap. More "
                    "context costs time.",
                )),
                advanced(io.Combo.Input(
                    "shape", options=["hex", "rect", "none"], default="hex", optional=True,
                    tooltip="rect: squares of the same area, to compare. none: one tile, the same "
                    "as no tiling.",
                )),
                advanced(io.Combo.Input(
                    "tiles", options=["auto", "tokens", "crop"], default="auto", optional=True,
                    tooltip="auto: token tiles where the model's family has them, else crops.",
                )),
                advanced(io.Combo.Input(
                    "order", options=["block-major", "tile-major"], default="block-major",
                    optional=True,
                    tooltip="block-major: every block on all tiles, weights are read once a step. "
                    "tile-major: one tile through all blocks, then the next: less memory, and "
                    "weights are read once per tile.",
                )),
                advanced(io.Combo.Input(
                    "exchange", options=["step", "block"], default="step", optional=True,
                    tooltip="When tiles see each other's work: after every step, or after every "
                    "block of the model.",
                )),
                advanced(io.Combo.Input(
                    "accumulate", options=["device", "cpu"], default="device", optional=True,
                    tooltip="Where the tiles' hidden states wait between blocks. cpu saves memory "
                    "of a graphics card and takes time; on a Mac both are the same memory.",
                )),
                advanced(io.Int.Input(
                    "window", default=0, min=0, max=1024, optional=True,
                    tooltip="Latent frames that a tile takes at a time; 0: all. For clips longer "
                    "than the model was made for.",
                )),
                advanced(io.Int.Input(
                    "window_overlap", default=2, min=0, max=256, optional=True,
                    tooltip="Latent frames that neighbouring windows share, at least.",
                )),
                advanced(io.Combo.Input(
                    "window_mode", options=["fused", "frozen"], default="fused", optional=True,
                    tooltip="fused: windows are blended where they overlap. frozen: the earlier "
                    "one rules there, and the later one only sees it.",
                )),
                advanced(io.Int.Input(
                    "start_step", default=0, min=0, max=10000, optional=True,
                    tooltip="First sampling step in tiles, counted from 0. Steps before it see "
                    "the full frame: with small tiles from pure noise the subject may be drawn "
                    "once per tile.",
                )),
                advanced(io.Int.Input(
                    "end_step", default=-1, min=-1, max=10000, optional=True,
                    tooltip="First step that is not in tiles any more. -1: tiles to the end.",
                )),
                advanced(io.Float.Input(
                    "span", default=0.075, min=0.001, max=0.33, step=0.001, optional=True,
                    tooltip="Which part of the icosahedron's face the frame's longer side spans: "
                    "a fine control of the hexagons' size.",
                )),
                advanced(io.Float.Input(
                    "rotation", default=0.0, min=-180.0, max=180.0, step=0.001, optional=True,
                    tooltip="Turns the grid, in degrees. 0 with hex_res auto: whichever "
                    "needs least of a few that leave no lines along rows and columns.",
                )),
                advanced(io.Combo.Input(
                    "positions", options=["full", "local"], default="full", optional=True,
                    tooltip="For crops: where the model thinks that a crop lies. full: in the "
                    "frame, for families that can be told. local: at the origin, to compare with.",
                )),
                advanced(io.Int.Input(
                    "guide_steps", default=0, min=0, max=10000, optional=True,
                    tooltip="First sampling steps in which a prediction of the whole frame, shrunk "
                    "to the size of a tile, leads the large forms of the tiles': one subject "
                    "instead of one per tile when a clip starts from noise. About half of the "
                    "steps; such a step reads the weights twice. 0: none.",
                )),
                advanced(io.Combo.Input(
                    "grid_shift", options=["auto", "none", "step"], default="auto", optional=True,
                    tooltip="step: the grid lies elsewhere at every sampling step, so that seams "
                    "never stay and little overlap and halo do. none: it stays. auto: step, but "
                    "none for crops.",
                )),
                advanced(io.Int.Input(
                    "shift_seed", default=0, min=0, max=0xFFFFFFFF, optional=True,
                    tooltip="Where a grid that moves lies.",
                )),
                advanced(io.Combo.Input(
                    "kernel", options=["linear", "smoothstep", "cosine", "gaussian"],
                    default="linear", optional=True,
                    tooltip="The curve by which one tile fades into the next across the overlap.",
                )),
                advanced(io.Combo.Input(
                    "blend", options=["mean", "variance"], default="mean", optional=True,
                    tooltip="For crops. variance: detail that two crops draw apart keeps the "
                    "strength that it has in each, where a mean would make it fainter.",
                )),
                advanced(io.Int.Input(
                    "tile_sizes", default=0, min=0, max=1024, optional=True,
                    tooltip="At most so many different token counts of tiles. More save work; each "
                    "is compiled once where models are compiled, and on a Mac. 1: all are equal. "
                    "0: 3, or 8 over all places of a grid that moves.",
                )),
                advanced(io.Float.Input(
                    "origin_x", default=0.0, min=-16384.0, max=16384.0, step=1.0, optional=True,
                    tooltip="Pixels by which the grid's centre lies right of the frame's. 0 and 0 "
                    "with hex_res auto: wherever tiles need the least.",
                )),
                advanced(io.Float.Input(
                    "origin_y", default=0.0, min=-16384.0, max=16384.0, step=1.0, optional=True,
                    tooltip="Pixels by which the grid's centre lies below the frame's.",
                )),
            ],
            outputs=[
                io.Model.Output(
                    "tiled", display_name="model", tooltip="The model, sampling in tiles."
                ),
            ],
        )  # fmt: skip

    @classmethod
    @says_what_to_install
    def execute(
        cls, model: Any, hex_res: str = "auto", budget: str = "auto", overlap: int = -1,
        halo: int = -1, end_step: int = -1, window: int = 0, rotation: float = 0.0,
        grid_shift: str = "auto", origin_x: float = 0.0, origin_y: float = 0.0,
        tile_sizes: int = 0, **rest: Any,
    ) -> Any:  # fmt: skip
        from ..render.engines.comfyui.attach import attach
        from ..tiling.settings import HexSettings

        settings = HexSettings(
            hex_res=hex_res if hex_res == "auto" else int(hex_res),
            budget=None if budget.strip() in ("", "auto") else budget,
            overlap=None if overlap < 0 else float(overlap),
            halo=None if halo < 0 else float(halo),
            window=window or None,
            rotation=rotation or None,
            origin=(origin_x, origin_y) if origin_x or origin_y else None,
            shift=grid_shift,
            tile_sizes=tile_sizes or None,
            end_step=None if end_step < 0 else end_step,
            **rest,
        )
        return io.NodeOutput(attach(model, settings))
