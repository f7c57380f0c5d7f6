"""H3MergeChunks: merge tiles and chunks back into a clip, weighted by their hexagons."""

from __future__ import annotations

import re
from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from .sockets import Clip, Layout, advanced
from .split_tiles import SplitClip, open_clip


class H3MergeChunks(io.ComfyNode):
    """Merge a list of tiles."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3MergeChunks",
            display_name="H3 Merge Chunks",
            category="h3-video/tiles",
            description="Merges the tiles of H3 Split Tiles. They may have been scaled, all alike. "
            "Untouched tiles give back the clip exactly.",
            is_input_list=True,
            inputs=[
                io.MultiType.Input(
                    "tiles", [io.Image, io.Latent],
                    tooltip="The tiles as a list, or as one batch, in the order they were cut.",
                ),
                Layout.Input("layout", tooltip="From the H3 Split Tiles that cut them."),
                io.Combo.Input(
                    "match", options=["none", "mean/std"], default="none", optional=True,
                    tooltip="mean/std: first draw the tiles' colours and contrast together where "
                    "they overlap.",
                ),
                advanced(io.String.Input(
                    "indices", default="", optional=True,
                    tooltip="Which tiles these are, such as 0-5,7; empty: all, in order.",
                )),
            ],
            outputs=[
                Clip.Output("clip", display_name="clip", tooltip="The merged images or latent."),
                io.String.Output(
                    "summary", display_name="summary",
                    tooltip="Sizes and number of tiles.",
                ),
            ],
        )  # fmt: skip

    @classmethod
    def execute(
        cls, tiles: list[Any], layout: list[SplitClip], match: list[str] | None = None,
        indices: list[str] | None = None,
    ) -> Any:  # fmt: skip
        import comfy.model_management as mm
        import comfy.utils

        if len(layout) != 1:
            raise UsageError(f"{len(layout)} layouts came; connect one H3 Split Tiles")
        split = layout[0]
        plan = split.layout
        tiles = from_batch(tiles, plan)
        order = which(tiles, (indices or [""])[0], len(plan.tiles))
        bar = comfy.utils.ProgressBar(len(tiles))

        def on_tile() -> None:
            bar.update(1)
            mm.throw_exception_if_processing_interrupted()

        opened = [open_clip(t) for t in tiles]
        from ..tiling.merge import merge_clip

        video = merge_clip(
            plan, [v for v, _, _ in opened], match=(match or ["none"])[0], indices=order,
            on_tile=on_tile,
        )  # fmt: skip
        shape = "x".join(map(str, video.shape))
        text = f"{len(tiles)} tiles merged to {shape}"
        if not isinstance(tiles[0], dict):
            return io.NodeOutput(video, text)
        rest = dict(split.rest)
        if rest.pop("h3_image_latents", False):
            video = video[0].transpose(0, 1).contiguous()
        if split.audio_length is None:
            return io.NodeOutput({**rest, "samples": video}, text)
        from comfy.nested_tensor import NestedTensor

        from ..tiling.audio import AudioMerger

        merger = AudioMerger(plan, split.audio_length)
        for index, (_, audio, _) in zip(order, opened):
            if audio is None:
                raise UsageError(f"{plan.tiles[index].name} has lost its audio; pass it on, too")
            merger.add(index, audio)
        sound = merger.finish(opened[0][1].dtype)
        return io.NodeOutput({**rest, "samples": NestedTensor([video, sound])}, text)


def from_batch(tiles: list[Any], layout: Any) -> list[Any]:
    """One IMAGE batch of all tiles' frames as a list of tiles; a list stays as it is."""
    if len(tiles) != 1 or len(layout.tiles) == 1 or isinstance(tiles[0], dict):
        return tiles
    lengths = [t.stop - t.start for t in layout.tiles]
    if tiles[0].shape[0] != sum(lengths):
        return tiles
    return list(tiles[0].split(lengths))


def which(tiles: list[Any], text: str, count: int) -> list[int]:
    """The place of every tile: as told, else as the tiles' own numbers say, else in order."""
    if text.strip():
        found = parse_indices(text, count)
        if len(found) != len(tiles):
            raise UsageError(f"indices {text!r} name {len(found)} tiles, {len(tiles)} came")
        return found
    if tiles and all(isinstance(t, dict) and "h3_tile" in t for t in tiles):
        return [int(t["h3_tile"]) for t in tiles]
    if len(tiles) > count:
        raise UsageError(f"{len(tiles)} tiles came, the layout has {count}")
    return list(range(len(tiles)))


def parse_indices(text: str, count: int) -> list[int]:
    """Numbers and ranges: 0-5,7."""
    found: list[int] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        match = re.fullmatch(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?", part)
        if not match:
            raise UsageError(f"indices {text!r}: {part!r} is no number or range; write 0-5,7")
        low = int(match.group(1))
        high = int(match.group(2) or low)
        if not low <= high < count:
            raise UsageError(f"indices {text!r}: {part!r} is out of range 0..{count - 1}")
        found.extend(range(low, high + 1))
    return found
