"""A render job in plain data: everything that decides the video, and the checks before any work."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..blend.kernels import DEFAULT_KERNEL
from ..errors import UsageError
from ..grid import DEFAULT_SPAN
from ..models import DenoiserShape, VideoFamily
from ..tiling import CropPlan, TokenPlan, plan_crop_tiles
from ..tiling.settings import HexSettings
from ..tiling.shift import Schedule, clip_schedule


@dataclass(frozen=True)
class RenderJob:
    """What to render. Lengths in px, `frames` in frames, `seed` 0..2^64-1.

    hex_res, overlap, halo, budget, shape, exchange   see plan_token_tiles
    origin, tile_sizes, kernel   see plan_token_tiles, too
    grid_shift, shift_seed    shift and shift_seed of HexSettings (`shift` is the noise levels')
    start_step, end_step, guide_steps   see HexSettings
    window, window_overlap    latent frames that a tile takes at a time, see plan_windows
    dtype, device             as resolved, never "auto"
    sampler, shift            "model" and None: as the model's scheduler is configured
    gguf                      GGUF files of the transformer (and of Wan 2.2's second one)
    lora                      files, each with ":scale" after it if that is not 1
    image                     file of the first picture, for models that start from one
    offload                   where weights wait: none | model | group | sequential
    decode_budget             budget of the decoder's crops; None: `budget`
    """

    prompt: str
    negative: str
    model: str
    width: int
    height: int
    frames: int
    fps: int
    steps: int
    cfg: float
    seed: int
    hex_res: int | str = "auto"
    overlap: float | None = None
    halo: float | None = None
    budget: float | int | None = None
    shape: str = "hex"
    exchange: str = "step"
    span: float = DEFAULT_SPAN
    rotation: float | None = None
    dtype: str = "float32"
    device: str = "cpu"
    version: str = __version__
    window: int = 0
    window_overlap: int = 2
    sampler: str = "model"
    shift: float | None = None
    gguf: tuple[str, ...] = ()
    lora: tuple[str, ...] = ()
    image: str = ""
    offload: str = "none"
    decode_budget: float | int | None = None
    origin: tuple[float, float] | None = None
    tile_sizes: int | None = None
    kernel: str = DEFAULT_KERNEL
    grid_shift: str = "auto"
    shift_seed: int = 0
    start_step: int = 0
    end_step: int | None = None
    guide_steps: int = 0

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(dataclasses.asdict(self), ensure_ascii=False, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> RenderJob:
        """The job that `to_json` wrote; raises UsageError when it is not one."""
        try:
            data = json.loads(text)
            known = {f.name for f in dataclasses.fields(RenderJob)}
            told: dict[str, Any] = {
                k: tuple(v) if isinstance(v, list) else v for k, v in data.items()
            }
            return RenderJob(**{k: v for k, v in told.items() if k in known})
        except (TypeError, ValueError, AttributeError) as e:
            raise UsageError(f"the stored job cannot be read ({e}); render again") from None

    def tiling(self) -> dict[str, Any]:
        """The settings that `apply_hex_tiling` takes, and HexSettings."""
        return {
            "hex_res": self.hex_res, "overlap": self.overlap, "halo": self.halo,
            "budget": self.budget, "shape": self.shape, "exchange": self.exchange,
            "span": self.span, "rotation": self.rotation, "origin": self.origin,
            "tile_sizes": self.tile_sizes, "kernel": self.kernel, "shift": self.grid_shift,
            "shift_seed": self.shift_seed, "start_step": self.start_step,
            "end_step": self.end_step, "guide_steps": self.guide_steps,
            **({"window": self.window, "window_overlap": self.window_overlap} if self.window
               else {}),
        }  # fmt: skip

    def token_plan(self, family: VideoFamily, denoiser: DenoiserShape) -> TokenPlan:
        """The denoiser's plan; with a grid that moves, the largest of its plans."""
        return self.token_schedule(family, denoiser).largest

    def token_schedule(self, family: VideoFamily, denoiser: DenoiserShape) -> Schedule[TokenPlan]:
        """The denoiser's plans: one, or one for every place of a grid that moves."""
        settings = HexSettings(**self.tiling())
        return clip_schedule(self.width, self.height, self.frames, family, settings, denoiser)

    def crop_plan(self, family: VideoFamily) -> CropPlan:
        """The decoder's plan."""
        budget = self.budget if self.decode_budget is None else self.decode_budget
        return plan_crop_tiles(
            self.width, self.height, family, budget=budget, shape=self.shape,
            span=self.span, rotation=self.rotation or 0.0,
        )  # fmt: skip


def check_output(path: Path, codec: str | None = None) -> str:
    """The codec of an output; raises UsageError unless it can be written at `path`.

    Makes missing folders. Pictures (.png, .exr) go to a folder of the output's name.
    """
    from .video import SEQUENCES, choose_codec

    if path.is_dir():
        raise UsageError(f"output {path} is a folder; give a file name such as {path}/out.mp4")
    chosen = choose_codec(path, codec)
    if chosen in SEQUENCES:
        from .sequence import check_folder, sequence_folder

        check_folder(sequence_folder(path))
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{path.name}.{os.getpid()}.probe"
        probe.touch()
        probe.unlink()
    except OSError as e:
        reason = e.strerror or type(e).__name__
        raise UsageError(
            f"output folder {folder} is not writable ({reason}); choose another with -o"
        ) from None
    return chosen
