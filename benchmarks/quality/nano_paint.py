"""Draws clips with the embedded model: from noise or from an enlarged clip, in tiles or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from h3video.nano.follow import GUIDANCE

from .nano_variants import Canvas, Settings

Array = Any


class Painter:
    """The embedded pipelines, text to video and video to video, with one set of weights."""

    def __init__(self, pipe: Any) -> None:
        from diffusers import WanVideoToVideoPipeline

        self.text = pipe
        self.video = WanVideoToVideoPipeline(
            tokenizer=pipe.tokenizer, text_encoder=pipe.text_encoder, vae=pipe.vae,
            transformer=pipe.transformer, scheduler=pipe.scheduler,
        )  # fmt: skip
        self.video.set_progress_bar_config(disable=True)
        pipe.vae.encode = once(pipe.vae.encode)

    def small(self, canvas: Canvas, prompt: str, seed: int) -> Array:
        """The small render's middle frames [frames, h, w, 3] in 0..1."""
        import torch

        clip = self.text(
            prompt, negative_prompt="", width=canvas.width, height=canvas.height,
            num_frames=canvas.first_frames, num_inference_steps=canvas.first_steps,
            guidance_scale=GUIDANCE, generator=torch.Generator().manual_seed(seed),
            output_type="np",
        ).frames[0]  # fmt: skip
        first = (canvas.first_frames - canvas.frames) // 2
        return clip[first : first + canvas.frames]

    def draw(self, canvas: Canvas, prompt: str, seed: int, tiles: Settings | None,
             start: Array | None = None) -> Array:  # fmt: skip
        """A large clip [f, h, w, 3] in 0..1, from noise or from an enlarged clip `start`."""
        import torch

        from h3video import apply_hex_tiling, remove_hex_tiling

        width, height = canvas.large
        shared: dict[str, Any] = dict(
            negative_prompt="", width=width, height=height, guidance_scale=GUIDANCE,
            num_inference_steps=canvas.steps, output_type="np",
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
        if start is None:
            pipe, more = self.text, dict(num_frames=canvas.frames)
        else:
            pipe, more = self.video, dict(video=images(start), strength=canvas.strength)
        if tiles is not None:
            apply_hex_tiling(pipe, tile_vae=False, **tiles)
        try:
            return pipe(prompt=prompt, **shared, **more).frames[0]
        finally:
            if tiles is not None:
                remove_hex_tiling(pipe)


def once(encode: Any) -> Any:
    """An encoder that remembers the last clip: all variants of a seed start from the same one."""
    import torch

    last: list[Any] = []

    def remembered(clip: Any, *args: Any, **more: Any) -> Any:
        if not (last and last[0].shape == clip.shape and torch.equal(last[0], clip)):
            last[:] = [clip, encode(clip, *args, **more)]
        return last[1]

    return remembered


def images(clip: Array) -> list[Any]:
    """Frames in 0..1 as PIL images."""
    from PIL import Image

    return [Image.fromarray(f) for f in to_bytes(clip)]


def to_bytes(clip: Array) -> Array:
    """A clip in 0..1 as uint8."""
    return (np.clip(clip, 0.0, 1.0) * 255.0).round().astype(np.uint8)


def enlarged(clip: Array, size: tuple[int, int]) -> Array:
    """A clip in 0..1 at another size (width, height), bicubic."""
    from PIL import Image

    frames = [f.resize(size, Image.Resampling.BICUBIC) for f in images(clip)]
    return np.stack([np.asarray(f, np.float64) / 255.0 for f in frames])


class Shelf:
    """Clips on disk as uint8, drawn once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, draw: Any) -> Array:
        """The clip of a name in 0..1; `draw()` makes it where it is not there."""
        path = self.folder / f"{name}.npy"
        if not path.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(".part.npy")
            np.save(part, to_bytes(draw()))
            part.replace(path)
        return np.load(path) / 255.0
