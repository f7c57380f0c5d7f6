"""`h3video render`: a prompt becomes a video file, a long one chunk by chunk."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from . import long_options, options

if TYPE_CHECKING:
    from ..models import VideoFamily
    from ..render.job import RenderJob
    from ..render.source import ModelSource

PRESETS = {"nano": {"width": 480, "height": 288, "frames": 33, "steps": 20, "cfg": 4.0}}
DEFAULTS = {"width": 832, "height": 480, "frames": 81, "steps": 50, "cfg": 5.0}


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "render",
        help="render a video from a prompt in hexagonal tiles",
        description="Render a video from a prompt in hexagonal tiles. A clip longer than one chunk "
        "is made as a job: every finished piece is kept in OUTPUT.job, and the same command (or "
        "`h3video resume`) continues after a crash.",
    )
    p.add_argument("prompt", type=options.prompt, nargs="?", default="",
                   help="the prompt, or @file to read it")  # fmt: skip
    p.add_argument("-o", "--output", type=Path, default=Path("out.mp4"), help="video (out.mp4)")
    p.add_argument("--codec", choices=("h264", "h265", "av1", "ffv1", "png", "exr"),
                   help="default: by the output's name (.mp4, .mkv, .png, .exr)")  # fmt: skip
    p.add_argument("--negative", type=options.prompt, default="", help="negative prompt or @file")
    p.add_argument(
        "--model", default="nano",
        help="nano (embedded), a folder in diffusers format, or a hub id (default: nano)",
    )  # fmt: skip
    p.add_argument("--width", type=options.integer("width", 16, 16384))
    p.add_argument("--height", type=options.integer("height", 16, 16384))
    p.add_argument("--frames", type=options.integer("frames", 1, 100_000))
    p.add_argument("--fps", type=options.integer("fps", 1, 240), help="default: the model's")
    p.add_argument("--steps", type=options.integer("steps", 1, 1000))
    p.add_argument("--cfg", type=options.number("cfg", 0, 100), help="guidance; 1 turns it off")
    p.add_argument("--seed", type=options.integer("seed", 0, 2**63 - 1), default=0)
    options.device(p)
    options.weights(p)
    options.tiling(p)
    options.steps(p)
    long_options.add(p)
    p.add_argument("--plan", action="store_true", help="print the tile plan and stop")
    p.add_argument("--json", action="store_true", help="print the plan or the bill as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check everything, then load, render, write."""
    if not args.prompt and args.prompts is None:
        raise UsageError("the prompt is empty; say what should be seen")
    if args.engine != "diffusers":
        return long_options.run_elsewhere(args)
    from ..render.source import find_model

    source = find_model(args.model)
    fill_sizes(args, {**DEFAULTS, **PRESETS.get(source.name, {})})
    long = long_options.is_long(args, int(PRESETS.get(source.name, DEFAULTS)["frames"]))
    if not long:
        source.family.check(args.width, args.height, args.frames)
    job = make_job(args, source.family, source.name)
    check_files(job, source)
    if long:
        return long_options.run_here(args, job, source)
    return run_short(args, job, source)


def fill_sizes(args: argparse.Namespace, size: dict[str, Any]) -> None:
    """Set what was not given."""
    for name in size:
        if getattr(args, name) is None:
            setattr(args, name, size[name])


def make_job(args: argparse.Namespace, family: VideoFamily, model: str) -> RenderJob:
    """The job as asked; device and dtype "auto" as they are until a model is loaded."""
    from ..render.job import RenderJob
    from ..tiling import parse_budget

    return RenderJob(
        prompt=args.prompt, negative=args.negative, model=model,
        width=args.width, height=args.height, frames=args.frames,
        fps=args.fps or family.fps, steps=args.steps, cfg=args.cfg, seed=args.seed,
        hex_res=args.hex_res, overlap=args.overlap, halo=args.halo,
        budget=parse_budget(args.budget), shape=args.shape, exchange=args.exchange,
        span=args.span, rotation=args.rotation, window=args.window or 0,
        window_overlap=args.window_overlap,
        origin=None if args.origin is None else tuple(args.origin),
        tile_sizes=args.tile_sizes, kernel=args.kernel, grid_shift=args.grid_shift,
        shift_seed=args.shift_seed, start_step=args.start_step, end_step=args.end_step,
        guide_steps=args.guide_steps,
        dtype="bfloat16" if args.dtype == "auto" else args.dtype, device=args.device,
        sampler=args.sampler, shift=args.shift, gguf=tuple(args.gguf or ()),
        lora=tuple(args.lora or ()), image=args.image or "", offload=args.offload,
    )  # fmt: skip


def check_files(job: RenderJob, source: ModelSource) -> None:
    """Raise UsageError for files that are not there or that the model would not use."""
    if source.from_image and not job.image:
        raise UsageError(f"{source.name} starts from a picture; give one with --image FILE")
    if job.image and not source.from_image:
        raise UsageError(
            f"{source.name} makes a video from text alone and would not use --image; leave it out, "
            "or use an image-to-video model"
        )
    from ..render.weights_files import check_weight_files

    check_weight_files(job.gguf, job.lora, ("transformer_2" in source.parts) + 1)
    if job.image and not Path(job.image).is_file():
        raise UsageError(f"image {job.image} is not there; check the path")


def run_short(args: argparse.Namespace, job: RenderJob, source: ModelSource) -> int:
    """A clip of one chunk, without a job folder."""
    from ..render.job import check_output

    plans = job.token_schedule(source.family, source.denoiser(job.dtype))
    crops = job.crop_plan(source.family)
    if args.plan:
        from ..render.plan_text import plan_json, plan_text

        if args.json:
            json.dump(plan_json(plans, crops), sys.stdout, indent=2)
            print()
        else:
            print(plan_text(job, plans, crops))
        return 0
    codec = check_output(args.output, args.codec)
    warn_unknown_words(job.model, [job.prompt])
    from ..render.device import resolve
    from ..render.run import render

    device, dtype = resolve(args.device, args.dtype)
    job = dataclasses.replace(job, device=device, dtype=dtype)
    bill = render(job, source, args.output, quiet=args.json, codec=codec)
    if args.json:
        json.dump(bill, sys.stdout, indent=2, ensure_ascii=False)
        print()
    return 0


def warn_unknown_words(model: str, prompts: list[str]) -> None:
    """The embedded model knows a small vocabulary; say which words it will not see."""
    if model != "nano":
        return
    from .. import nano

    unknown = nano.unknown_words(" ".join(prompts))
    if unknown:
        print(
            f"h3video: nano does not know {', '.join(repr(w) for w in unknown)}; "
            "its words are in h3video/nano/README.md",
            file=sys.stderr,
        )
