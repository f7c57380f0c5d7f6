"""`h3video decode`: finish a video from the latents that `h3video render` kept."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from . import options


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "decode",
        help="make the video from saved latents",
        description="Decode the latents that `h3video render` saved, without sampling again.",
    )
    p.add_argument("latents", type=Path, help="a .latents.safetensors file")
    p.add_argument("-o", "--output", type=Path, help="video (default: beside the latents)")
    p.add_argument("--codec", choices=("h264", "h265", "av1", "ffv1", "png", "exr"),
                   help="default: by the output's name (.mp4, .mkv, .png, .exr)")  # fmt: skip
    options.device(p)
    p.add_argument("--json", action="store_true", help="print the bill as JSON")
    p.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check the file, then load the decoder, decode, write."""
    from ..render.job import check_output
    from ..render.latents import read_job

    job, steps_done = read_job(args.latents)
    if args.output is None:
        name = args.latents.name.removesuffix(".safetensors").removesuffix(".latents")
        args.output = args.latents.with_name(f"{name}.mp4")
    codec = check_output(args.output, args.codec)
    from ..render.device import resolve
    from ..render.run import decode
    from ..render.source import find_model

    source = find_model(job.model)
    if steps_done < job.steps:
        print(
            f"h3video: these latents stopped after step {steps_done} of {job.steps}; "
            "the video will be noisy",
            file=sys.stderr,
        )
    device, dtype = resolve(args.device, args.dtype)
    job = dataclasses.replace(job, device=device, dtype=dtype)
    bill = decode(job, source, args.latents, args.output, quiet=args.json, codec=codec)
    if args.json:
        json.dump(bill, sys.stdout, indent=2, ensure_ascii=False)
        print()
    return 0
