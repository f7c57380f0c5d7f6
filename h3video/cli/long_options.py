"""Options of `h3video render` for long clips, and what makes a job of them."""

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
    from ..models import VideoFamily
    from ..render.job import RenderJob
    from ..render.source import ModelSource
    from ..tiling.chunks import ChunkPlan

ENGINES = ("diffusers", "comfyui", "h3c")

BUDGET_SECONDS = 5
"""A chunk of a family without a preset is about this long, as the models were trained."""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    group = parser.add_argument_group("long clips")
    group.add_argument(
        "--chunk-frames", type=options.integer("chunk-frames", 1, 100_000), metavar="N",
        help="most frames of a chunk (default: the model's usual clip); a longer clip is made in "
        "chunks, kept one by one",
    )  # fmt: skip
    group.add_argument(
        "--chunk-overlap", type=options.integer("chunk-overlap", 0, 1000), metavar="N",
        help="frames that neighbouring chunks share at least (default: 12)",
    )  # fmt: skip
    group.add_argument(
        "--prompts", type=Path, metavar="FILE",
        help="YAML or JSON list of prompts with times (at: 0:05)",
    )  # fmt: skip
    group.add_argument(
        "--seeds", choices=("field", "next", "same"), default="field",
        help="noise of the chunks: one field by position, seed + number, or the same (field)",
    )  # fmt: skip
    group.add_argument(
        "--join", choices=("cell", "fade", "cut"), default="cell",
        help="how chunks are joined: every cell at its own frame, dissolved, or cut (cell)",
    )  # fmt: skip
    group.add_argument(
        "--join-colour", choices=("hold", "ease", "off"), default="hold",
        help="keep the level of the chunk before, return to the own one, or leave it (hold)",
    )  # fmt: skip
    group.add_argument("--job", type=Path, metavar="DIR", help="job folder (default: OUTPUT.job)")
    options.allow(group)
    group.add_argument("--engine", choices=ENGINES, default="diffusers",
                       help="what makes the chunks (diffusers)")  # fmt: skip
    group.add_argument("--engine-option", action="append", metavar="NAME=VALUE",
                       help="for engines comfyui and h3c; may be repeated")  # fmt: skip
    group.add_argument("--family", help="the model's family, for engine comfyui (minimax-h3, ...)")
    options.worker(group)


def is_long(args: argparse.Namespace, usual: int) -> bool:
    """Whether a clip becomes a job; sets the length of its chunks."""
    asked = args.chunk_frames is not None or args.job is not None or args.prompts is not None
    if args.chunk_frames is None:
        args.chunk_frames = usual
    return asked or args.worker or args.frames > args.chunk_frames


def run_here(args: argparse.Namespace, job: RenderJob, source: ModelSource) -> int:
    """A job of the engine diffusers."""
    from ..render.job import check_output
    from .render import warn_unknown_words

    continuity = "first-frame" if source.from_image else "latents"
    plan = plan_of(args, source.family, continuity)
    longest = dataclasses.replace(job, frames=max(c.frames for c in plan.chunks))
    tiles = longest.token_schedule(source.family, source.denoiser(job.dtype))
    texts = texts_of(args, plan, job.fps)
    if args.plan:
        from ..render.plan_text import plan_json, plan_text

        crops = longest.crop_plan(source.family)
        if args.json:
            told = {"chunks": plan.to_json(), **plan_json(tiles, crops)}
            json.dump(told, sys.stdout, indent=2)
            print()
        else:
            print(f"chunks      {plan.describe()}")
            print(plan_text(longest, tiles, crops))
        return 0
    codec = check_output(args.output, args.codec)
    warn_unknown_words(job.model, [text for text, _ in texts])
    from ..render.device import resolve

    device, dtype = resolve(args.device, args.dtype)
    settings = settings_of(
        args, dataclasses.replace(job, device=device, dtype=dtype), source.family
    )
    from ..render.weights_files import parse_lora

    files: dict[str, Any] = {
        "gguf": [{"file": str(Path(f).expanduser().absolute())} for f in job.gguf],
        "lora": [_place(*parse_lora(text)) for text in job.lora],
    }
    if job.image:
        files["inputs"] = {"image": {"file": str(Path(job.image).absolute())}}
    engine = {"name": "diffusers", "options": {}, "worker": args.worker, "gives": "latents",
              "offload": job.offload}  # fmt: skip
    model = source.name if source.name == "nano" or not Path(source.folder).is_dir() else str(
        Path(source.folder).absolute())  # fmt: skip
    return start(args, settings, engine, plan, texts, codec, model, files)


def _place(file: str, scale: float) -> dict[str, Any]:
    return {"file": str(Path(file).expanduser().absolute()), "scale": scale}


def run_elsewhere(args: argparse.Namespace) -> int:
    """A job of an engine that drives another program."""
    from ..models import FAMILIES
    from ..render.engines import registry
    from ..render.job import check_output
    from .render import DEFAULTS, fill_sizes, make_job

    name = registry.FAMILY.get(args.engine, args.family)
    if name not in FAMILIES:
        raise UsageError(
            f"engine {args.engine} needs the model's family, not {name}; give --family "
            f"{', '.join(FAMILIES)}"
        )
    family = FAMILIES[name]
    usual = usual_frames(family)
    fill_sizes(args, {**DEFAULTS, "frames": usual})
    if args.chunk_frames is None:
        args.chunk_frames = usual
    wishes = options.pairs(args.engine_option, registry.options_of(args.engine))
    continuity, gives = registry.traits(args.engine, wishes)
    plan = plan_of(args, family, continuity)
    job = make_job(args, family, "")
    texts = texts_of(args, plan, job.fps)
    if args.plan:
        print(plan.describe())
        return 0
    codec = check_output(args.output, args.codec)
    settings = settings_of(args, job, family)
    engine = {"name": args.engine, "options": wishes, "worker": args.worker, "gives": gives}
    files: dict[str, Any] = {}
    if args.image:
        files["inputs"] = {"image": {"file": str(Path(args.image).absolute())}}
    return start(args, settings, engine, plan, texts, codec, args.engine, files)


def usual_frames(family: VideoFamily) -> int:
    """Frames of a chunk of about five seconds, on the family's grid."""
    steps = -(-(BUDGET_SECONDS * family.fps - family.frame_first) // family.frame_step)
    return family.frame_first + steps * family.frame_step


def plan_of(args: argparse.Namespace, family: VideoFamily, continuity: str) -> ChunkPlan:
    """The chunks of the clip, checked against the family."""
    from ..tiling.chunks import plan_chunks
    from ..tiling.join import JoinSettings

    family.check(args.width, args.height, family.frame_first)
    JoinSettings(args.join, args.join_colour).check(args.width, args.height)
    return plan_chunks(args.frames, family, args.chunk_frames, args.chunk_overlap, continuity)


def texts_of(args: argparse.Namespace, plan: ChunkPlan, fps: int) -> list[tuple[str, str]]:
    """(prompt, negative) of every chunk."""
    if args.prompts is None:
        return [(args.prompt, args.negative)] * len(plan.chunks)
    from ..render.prompts import assign, read_prompts

    if args.prompt:
        raise UsageError("a prompt and --prompts were given; use one of them")
    return assign(plan, read_prompts(args.prompts, fps), args.negative, fps)


NOT_SETTINGS = ("prompt", "negative", "model", "version", "gguf", "lora", "image", "offload")


def settings_of(args: argparse.Namespace, job: RenderJob, family: VideoFamily) -> dict[str, Any]:
    """What a job document has under "settings"."""
    plain = dataclasses.asdict(job)
    for name in NOT_SETTINGS:
        del plain[name]
    return {**plain, "family": family.name, "seeds": args.seeds}


def start(
    args: argparse.Namespace, settings: dict[str, Any], engine: dict[str, Any], plan: ChunkPlan,
    texts: list[tuple[str, str]], codec: str, model: str, files: dict[str, Any],
) -> int:  # fmt: skip
    """Start the job, or continue it if its folder is there."""
    from ..render.document import make_document
    from ..render.jobs import job_folder

    merge = {"join": args.join, "join_colour": args.join_colour, "codec": codec}
    document = make_document(
        settings, engine, plan, texts, args.output, model, merge=merge, **files
    )
    if not args.json:
        print(plan.describe(), flush=True)
    return work(args.job or job_folder(args.output), document, args.allow, args.json)


def work(folder: Path, document: dict[str, Any] | None, allow: list[str], as_json: bool) -> int:
    """Run a job and print its bill."""
    from ..render.jobs import run_job

    outcome = run_job(folder, document, allow=allow or (), quiet=as_json, meter=_meter)
    if as_json:
        json.dump(outcome.bill, sys.stdout, indent=2, ensure_ascii=False)
        print()
    return 0


def _meter() -> Any:
    """A meter that knows the peaks of the device that is used, if torch is loaded by then."""
    from ..memory import PhaseMeter

    torch = sys.modules.get("torch")
    if torch is None:
        return PhaseMeter()
    from ..render.device import resolve
    from ..render.run import device_meter

    return device_meter(resolve("auto", "float32")[0])
