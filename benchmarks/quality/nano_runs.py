"""The embedded model in tiles at 2x and 4x its canvas, against itself untiled.

Two paths: from pure noise, and from an upscaled small render that is sampled again in part. For
each the untiled result, hexagons, and rectangles that run as many tokens. Every finished render is
appended to a file at once, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from h3video.models.wan import WAN
from h3video.nano.follow import GUIDANCE, held_out_scenes
from h3video.nano.judge import measure
from h3video.tiling.tokens import TokenPlan, plan_token_tiles

from .measures import colour_drift, count_subjects, flip, pulse, seam_energy
from .tilings import ALIGNED, span_of

Array = Any

PATHS = ("noise", "upscaled")
VARIANTS = ("untiled", "hexagons", "rectangles")
STRENGTH = 0.5
"""Share of the steps that are sampled again after upscaling."""


@dataclass(frozen=True)
class Canvas:
    """What is drawn: the small size in px, the factor to the large one, frames, steps."""

    width: int = 240
    height: int = 144
    factor: int = 2
    frames: int = 9
    steps: int = 8
    budget: float = 0.5

    @property
    def large(self) -> tuple[int, int]:
        """The large size in px, down to the model's multiple."""
        m = WAN.size_multiple
        return self.width * self.factor // m * m, self.height * self.factor // m * m


def tile_settings(canvas: Canvas) -> dict[str, dict[str, Any]]:
    """Settings of apply_hex_tiling by variant; rectangles run as many tokens as hexagons."""
    hexes = plan_token_tiles(*canvas.large, canvas.frames, WAN, budget=canvas.budget)
    return {"hexagons": dict(budget=canvas.budget), "rectangles": equal_tokens(hexes, canvas)}


def equal_tokens(hexes: TokenPlan, canvas: Canvas) -> dict[str, Any]:
    """Settings of rectangles whose tokens run come closest to a plan's, about as many tiles."""

    def plans() -> Iterator[tuple[float, int, dict[str, Any]]]:
        width, height = canvas.large
        for side in np.geomspace(64, min(width, height), 14):
            for halo in range(32, 97, 8):
                span = span_of(float(side), max(width, height), ALIGNED)
                settings = dict(shape="rect", hex_res=ALIGNED, span=span, halo=float(halo))
                plan = plan_token_tiles(*canvas.large, canvas.frames, WAN, **settings)
                off = abs(plan.tokens_run / hexes.tokens_run - 1.0)
                yield off, abs(len(plan.tiles) - len(hexes.tiles)), settings

    found = list(plans())
    near = [(tiles, off, s) for off, tiles, s in found if off <= 0.03]
    return min(near or found, key=lambda f: f[:2])[2]


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

    def draw(self, canvas: Canvas, path: str, prompt: str, seed: int, size: tuple[int, int],
             tiles: dict[str, Any] | None, start: Array | None = None) -> Array:  # fmt: skip
        """A clip [f, h, w, 3] in 0..1; `start` is the upscaled clip of the second path."""
        import torch

        from h3video import apply_hex_tiling, remove_hex_tiling

        pipe = self.text if path == "noise" else self.video
        shared = dict(
            negative_prompt="", width=size[0], height=size[1], guidance_scale=GUIDANCE,
            num_inference_steps=canvas.steps, output_type="np",
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
        if path == "noise":
            shared["num_frames"] = canvas.frames
        else:
            shared |= dict(video=_pil(start), strength=STRENGTH)
        if tiles is not None:
            apply_hex_tiling(pipe, tile_vae=False, **tiles)
        try:
            return pipe(prompt=prompt, **shared).frames[0]
        finally:
            if tiles is not None:
                remove_hex_tiling(pipe)


def _pil(clip: Array) -> list[Any]:
    from PIL import Image

    return [Image.fromarray((f * 255).round().astype(np.uint8)) for f in clip]


def upscaled(clip: Array, size: tuple[int, int]) -> Array:
    """A clip at another size, bicubic."""
    from PIL import Image

    frames = [f.resize(size, Image.Resampling.BICUBIC) for f in _pil(clip)]
    return np.stack([np.asarray(f, np.float64) / 255.0 for f in frames])


def look(clip: Array, untiled: Array, scene: Any) -> dict[str, Any]:
    """All measures of a clip against the untiled one."""
    middle = len(clip) // 2
    seams, steps = seam_energy(clip[middle], untiled[middle]), pulse(clip, untiled)
    seen = measure((clip * 255).round().astype(np.uint8))
    return {
        "flip": flip(clip[:: max(1, middle)], untiled[:: max(1, middle)]),
        "axis": seams.axis, "line": seams.line, "pulse": steps.frame,
        "drift": colour_drift(clip, untiled).part,
        "subjects": count_subjects(clip, scene.ground),
        "colour": seen.colour == scene.colour, "ground": seen.ground == scene.ground,
        "direction": seen.direction == scene.direction,
    }  # fmt: skip


def run(path: Path, seeds: int, canvas: Canvas, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Draw and measure what is not in the file yet; a line of JSON for every render."""
    from h3video.nano.follow import pipeline

    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(r["canvas"], r["path"], r["seed"]) for r in rows if r["variant"] == VARIANTS[-1]}
    width, height = canvas.large
    name = f"{width}x{height}x{canvas.frames}, {canvas.steps} steps, {canvas.budget:.0%} tiles"
    settings = tile_settings(canvas)
    with pipeline() as pipe, path.open("a") as file:
        painter = Painter(pipe)
        for seed, scene in enumerate(held_out_scenes(seeds)):
            for way in PATHS:
                if (name, way, seed) in done:
                    continue
                found = list(_one(painter, canvas, way, scene, seed, settings))
                new = [{"canvas": name, "path": way, "seed": seed, **row} for row in found]
                file.write("".join(json.dumps(row) + "\n" for row in new))
                file.flush()
                rows += new
                say(f"nano {name} {way}: seed {seed + 1} of {seeds}")
    return [r for r in rows if r["canvas"] == name and r["seed"] < seeds]


def _one(painter: Painter, canvas: Canvas, way: str, scene: Any, seed: int,
         settings: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:  # fmt: skip
    """All variants of one prompt on one path."""
    start = None
    if way == "upscaled":
        small = (canvas.width, canvas.height)
        clip = painter.draw(canvas, "noise", scene.caption(), seed, small, None)
        start = upscaled(clip, canvas.large)
    untiled = None
    for variant in VARIANTS:
        tiles = settings.get(variant)
        clip = painter.draw(canvas, way, scene.caption(), seed, canvas.large, tiles, start)
        untiled = clip if untiled is None else untiled
        tokens = None if tiles is None else _tokens(canvas, tuple(sorted(tiles.items())))
        yield {"variant": variant, "tokens": tokens, **look(clip, untiled, scene)}


@lru_cache(maxsize=8)
def _tokens(canvas: Canvas, settings: tuple[tuple[str, Any], ...]) -> float:
    """Tokens that a variant runs, against the frame's."""
    return plan_token_tiles(*canvas.large, canvas.frames, WAN, **dict(settings)).price
