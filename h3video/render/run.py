"""Run a job from prompt to files, and finish one from its latents."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..memory import PhaseMeter
from ..tiling.chunks import frames_of
from .bill import bill_json, bill_text
from .job import RenderJob
from .latents import latents_path, load_latents, save_latents
from .pictures import contact_sheet, first_picture, save_png, thumbnails_of
from .source import ModelSource


def render(
    job: RenderJob, source: ModelSource, output: Path, quiet: bool = False,
    codec: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Render a job; returns the bill. Files: the video, a sheet beside it, the latents.

    A KeyboardInterrupt leaves the latents of the last finished step and says so.
    """
    from .engines.wan import WanEngine, describe

    plan = job.token_plan(source.family, source.denoiser(job.dtype))
    say = _printer(quiet)
    say(describe(plan))
    kept = latents_path(output)
    image = first_picture(job.image, job.width, job.height) if source.from_image else None
    meter = device_meter(job.device)
    latest: list[Any] = []

    def on_step(done: int, latents: Any) -> None:
        latest[:] = [done, latents]

    passes = job.steps * (2 if job.cfg > 1.0 else 1)
    engine = WanEngine(source, job)
    with meter.phase("encode"):
        embeds = engine.encode()
    gc.collect()
    with Progress("denoise", passes * len(plan.tiles), quiet) as bar:
        engine.on_tile = bar.advance
        try:
            with meter.phase("denoise"):
                latents = engine.denoise(embeds, on_step, image=image)
        except KeyboardInterrupt:
            if latest:
                save_latents(kept, latest[1], job, latest[0])
                _note(f"stopped after step {latest[0]} of {job.steps}; the latents so far are "
                      f"kept in {kept} (`h3video decode` shows them, noisy)")  # fmt: skip
            else:
                _note("stopped before the first step was finished; nothing was kept")
            raise
    del embeds
    save_latents(kept, latents, job, job.steps)
    return _finish(job, source, latents, kept, output, meter, quiet, codec)


def decode(
    job: RenderJob, source: ModelSource, latents: Path, output: Path, quiet: bool = False,
    codec: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Make the video of saved latents; returns the bill."""
    meter = device_meter(job.device)
    return _finish(job, source, load_latents(latents), latents, output, meter, quiet, codec)


def _finish(
    job: RenderJob, source: ModelSource, latents: Any, kept: Path, output: Path,
    meter: PhaseMeter, quiet: bool, codec: str | None,
) -> dict[str, Any]:  # fmt: skip
    from .engines.wan import WanEngine
    from .video import open_writer

    plan = job.token_plan(source.family, source.denoiser(job.dtype))
    crops = job.crop_plan(source.family)
    shown = Shown(frames_of(source.family, latents.shape[2]), job.height, job.width)
    try:
        with Progress("decode", len(crops.tiles), quiet) as bar, meter.phase("decode"):
            engine = WanEngine(source, job, bar.advance)
            with open_writer(
                output, job.width, job.height, job.fps, job.to_json(), codec=codec
            ) as writer:
                for frame in engine.stream(latents):
                    writer.write(frame)
                    shown.add(frame)
        with meter.phase("save"):
            sheet = output.with_suffix(".sheet.png" if output.suffix == ".png" else ".png")
            tiles = [t.cells for t in plan.tiles]
            caption = f"{job.prompt}   |   seed {job.seed}, {job.shape} hex_res {plan.grid.res}"
            save_png(contact_sheet(shown, plan.grid, tiles, caption), sheet)
    except KeyboardInterrupt:
        _note(f"stopped while decoding; the latents are kept: `h3video decode {kept}` finishes")
        raise
    files = {"video": str(output), "pictures": str(sheet), "latents": str(kept)}
    _printer(quiet)(bill_text(job, plan, crops, meter, files, source.folder))
    return bill_json(job, plan, crops, meter, files, source.folder)


class Shown:
    """The frames of a clip that a contact sheet shows; the others are forgotten."""

    def __init__(self, count: int, height: int, width: int) -> None:
        self.shape = (count, height, width, 3)
        self.kept: dict[int, Any] = {}
        self._wanted = {*thumbnails_of(count), count // 2}
        self._next = 0

    def add(self, frame: Any) -> None:
        """Take the next frame, uint8 numpy [H, W, 3]."""
        if self._next in self._wanted:
            self.kept[self._next] = frame
        self._next += 1

    def __getitem__(self, index: int) -> Any:
        return self.kept[index]


class Progress:
    """One bar over tiles x passes, on stderr; silent when quiet."""

    def __init__(self, label: str, tiles: int, quiet: bool) -> None:
        from tqdm import tqdm

        self.tiles = tiles
        self.bar = tqdm(
            total=tiles, desc=label, unit="tile", disable=quiet, file=sys.stderr,
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {n:.0f}/{total} tiles "
            "[{elapsed}<{remaining}]",
        )  # fmt: skip

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def advance(self, _phase: str, share: float) -> None:
        """Move on by a share of the whole bar."""
        self.bar.update(min(share * self.tiles, self.tiles - self.bar.n))


def device_meter(device: str) -> PhaseMeter:
    """A meter that knows the device's peak."""
    import torch

    if device == "cuda":
        return PhaseMeter(torch.cuda.reset_peak_memory_stats, torch.cuda.max_memory_allocated)
    if device == "mps":
        return PhaseMeter(None, torch.mps.driver_allocated_memory)
    return PhaseMeter()


def _printer(quiet: bool) -> Callable[[str], None]:
    return (lambda text: None) if quiet else print


def _note(text: str) -> None:
    print(f"h3video: {text}", file=sys.stderr)
