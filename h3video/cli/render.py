"""`h3video render`: a prompt becomes a video file."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from . import options

if TYPE_CHECKING:
    from ..render.job import RenderJob

PRESETS = {"nano": {"width": 480, "height": 288, "frames": 33, "steps": 20, "cfg": 4.0}}
DEFAULTS = {"width": 832, "height": 480, "frames": 81, "steps": 50, "cfg": 5.0}


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "render",
        help="render a video from a prompt in hexagonal tiles",
        description="Render a video from a prompt in hexagonal tiles.",
    )
    p.add_argument("prompt", type=options.prompt, help="the prompt, or @file to read it")
    p.add_argument("-o", "--output", type=Path, default=Path("out.mp4"), help="video (out.mp4)")
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
    options.tiling(p)
    p.add_argument("--plan", action="store_true", help="print the tile plan and stop")
    p.add_argument("--json", action="store_true", help="print the plan or the bill as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check everything, then load, render, write."""
    from ..render.job import RenderJob, check_output
    from ..render.plan_text import plan_text
    from ..render.source import find_model
    from ..tiling import parse_budget

    if not args.prompt:
        raise UsageError("the prompt is empty; say what should be seen")
    budget = parse_budget(args.budget)
    source = find_model(args.model)
    size = {**DEFAULTS, **PRESETS.get(source.name, {})}
    for name in size:
        if getattr(args, name) is None:
            setattr(args, name, size[name])
    source.family.check(args.width, args.height, args.frames)
    job = RenderJob(
        prompt=args.prompt, negative=args.negative, model=source.name,
        width=args.width, height=args.height, frames=args.frames,
        fps=args.fps or source.family.fps, steps=args.steps, cfg=args.cfg, seed=args.seed,
        hex_res=args.hex_res, overlap=args.overlap, halo=args.halo, budget=budget,
        shape=args.shape, exchange=args.exchange, span=args.span, rotation=args.rotation,
        dtype="bfloat16" if args.dtype == "auto" else args.dtype, device=args.device,
    )  # fmt: skip
    plan = job.token_plan(source.family, source.denoiser(job.dtype))
    crops = job.crop_plan(source.family)
    if args.plan:
        if args.json:
            json.dump({"denoise": plan.to_json(), "decode": crops.to_json()}, sys.stdout, indent=2)
            print()
        else:
            print(plan_text(job, plan, crops))
        return 0
    check_output(args.output)
    warn_unknown_words(job)
    from ..render.device import resolve
    from ..render.run import render

    device, dtype = resolve(args.device, args.dtype)
    job = dataclasses.replace(job, device=device, dtype=dtype)
    bill = render(job, source, args.output, quiet=args.json)
    if args.json:
        json.dump(bill, sys.stdout, indent=2, ensure_ascii=False)
        print()
    return 0


def warn_unknown_words(job: RenderJob) -> None:
    """The embedded model knows a small vocabulary; say which words it will not see."""
    if job.model != "nano":
        return
    from .. import nano

    unknown = nano.unknown_words(job.prompt)
    if unknown:
        print(
            f"h3video: nano does not know {', '.join(repr(w) for w in unknown)}; "
            "its words are in h3video/nano/README.md",
            file=sys.stderr,
        )
