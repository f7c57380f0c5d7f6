"""H3SplitTiles: cut a clip into tiles around cells and chunks of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from ..grid import GridCells
from .sockets import Cells, Clip, Layout, advanced


@dataclass(frozen=True)
class SplitClip:
    """What H3_LAYOUT carries: how the clip was cut, and what of a LATENT is not in the tiles.

    rest           the LATENT's other entries (masks, batch indices), given back when merging
    audio_length   samples of its audio along time, None without audio
    """

    layout: Any
    rest: dict[str, Any]
    audio_length: int | None = None


class H3SplitTiles(io.ComfyNode):
    """Cut a clip into a list of tiles."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3SplitTiles",
            display_name="H3 Split Tiles",
            category="h3-video/tiles",
            description="Cuts images or a video latent into equally large tiles, one around every "
            "cell (small ones share), and into chunks of frames. Work on the tiles one by one, "
            "then merge them with H3 Merge Chunks.",
            inputs=[
                io.MultiType.Input(
                    "clip", [io.Image, io.Latent],
                    tooltip="Images of the grid's size, or latents of the same shape of frame.",
                ),
                Cells.Input("cells", tooltip="The grid, from H3 Grid Encode (projection face)."),
                io.Int.Input(
                    "halo", default=32, min=0, max=1024, optional=True,
                    tooltip="Context in px that a tile sees beyond what it owns; it is thrown away "
                    "when merging.",
                ),
                io.Int.Input(
                    "chunk_frames", default=0, min=0, max=4096, optional=True,
                    tooltip="Frames of a chunk (latent frames for a latent); 0 keeps all in one.",
                ),
                advanced(io.Int.Input(
                    "chunk_overlap", default=0, min=0, max=256, optional=True,
                    tooltip="Frames that neighbouring chunks share and fade over; 0 cuts. At most "
                    "half of chunk_frames.",
                )),
            ],
            outputs=[
                Clip.Output(
                    "tiles", display_name="tiles", is_output_list=True,
                    tooltip="A list: all tiles of the first chunk, then of the next.",
                ),
                Layout.Output(
                    "layout", display_name="layout",
                    tooltip="How the clip was cut, for H3 Merge Chunks.",
                ),
                io.String.Output(
                    "summary", display_name="summary",
                    tooltip="Sizes, the extra work, and every tile.",
                ),
            ],
        )  # fmt: skip

    @classmethod
    def execute(
        cls, clip: Any, cells: GridCells, halo: int = 32, chunk_frames: int = 0,
        chunk_overlap: int = 0,
    ) -> Any:  # fmt: skip
        video, audio, rest = open_clip(clip)
        rows, columns = video.shape[1:3] if video.ndim == 4 else video.shape[3:5]
        frames = video.shape[0] if video.ndim == 4 else video.shape[2]
        from ..tiling.audio import time_axis
        from ..tiling.clip import clip_layout

        layout = clip_layout(
            cells, columns, rows, frames, halo=float(halo), chunk_frames=chunk_frames,
            chunk_overlap=chunk_overlap,
        )  # fmt: skip
        tiles = [cut(clip, video, audio, rest, layout, tile) for tile in layout.tiles]
        length = None
        if audio is not None:
            length = 1 if len(layout.chunks) == 1 else audio.shape[time_axis(audio)]
        return io.NodeOutput(tiles, SplitClip(layout, rest, length), layout.summary())


def open_clip(clip: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Video tensor, audio tensor or None, and the other entries of an IMAGE or LATENT."""
    if not isinstance(clip, dict):
        if clip.ndim != 4:
            raise UsageError(f"images have 4 axes [F, H, W, C], not {tuple(clip.shape)}")
        return clip, None, {}
    samples = clip["samples"]
    rest = {k: v for k, v in clip.items() if k != "samples"}
    parts = list(samples.unbind()) if getattr(samples, "is_nested", False) else [samples]
    if parts[0].ndim == 4:  # the latents of single images: their batch is what frames are
        parts[0] = parts[0].transpose(0, 1)[None]
        rest["h3_image_latents"] = True
    if parts[0].ndim != 5 or len(parts) > 2:
        raise UsageError(
            f"a LATENT of {len(parts)} parts, the first of shape {tuple(parts[0].shape)}, is "
            "neither images, nor video, nor video with audio"
        )
    return parts[0], parts[1] if len(parts) == 2 else None, rest


def cut(
    clip: Any, video: Any, audio: Any, rest: dict[str, Any], layout: Any, tile: Any
) -> Any:  # fmt: skip
    """One tile as an IMAGE, or as a LATENT with its number, mask and sound."""
    from ..tiling.audio import cut_audio
    from ..tiling.merge import cut_tile

    part = cut_tile(video, tile, layout).contiguous()
    if not isinstance(clip, dict):
        return part
    out = {k: v for k, v in clip.items() if k not in ("samples", "noise_mask")}
    out["h3_tile"] = tile.index
    if "noise_mask" in clip:
        out["noise_mask"] = cut_mask(clip["noise_mask"], layout, tile)
    if "h3_image_latents" in rest:
        part = part[0].transpose(0, 1).contiguous()
    if audio is None:
        return {**out, "samples": part}
    from comfy.nested_tensor import NestedTensor

    sound = cut_audio(audio, layout, tile.index // layout.places).clone()
    return {**out, "samples": NestedTensor([part, sound])}


def cut_mask(mask: Any, layout: Any, tile: Any) -> Any:
    """The tile's part of a noise mask [..., (T,) H, W] that is as large as the latents, a whole
    multiple of them, or one value."""
    rows, columns = mask.shape[-2:]
    if (rows, columns) == (1, 1):
        return mask
    if columns % layout.columns or rows % layout.rows:
        raise UsageError(
            f"noise_mask is {columns}x{rows}, the latents are {layout.columns}x{layout.rows}; a "
            "mask must be a whole multiple of that"
        )
    across, down = columns // layout.columns, rows // layout.rows
    mask = mask[
        ...,
        tile.top * down : (tile.top + layout.crop_rows) * down,
        tile.left * across : (tile.left + layout.crop_columns) * across,
    ]
    if mask.ndim == 5 and mask.shape[2] == layout.frames:
        mask = mask[:, :, tile.start : tile.stop]
    return mask.contiguous()
