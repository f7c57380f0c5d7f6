"""`h3video plan`: what fits, before anything is downloaded."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from . import options

if TYPE_CHECKING:
    from ..memory.ask import Ask
    from ..memory.ledger import Ledger

FITS, IF_CHANGED, DOES_NOT = 0, 3, 4
"""Exit codes: fits as asked, fits with changes, does not fit."""

EPILOG = """examples:
  h3video plan minimax-h3-pruned --quant Q4_K_M --size 864x480 --seconds 5 --machine m1max-64gb
  h3video plan wan2.2-t2v-a14b --quant fp8 --machine rtx4080 --runtime comfyui
  h3video plan ./wan2.1-t2v-14b-Q5_K_M.gguf --machine m3max-36gb --explain

exit codes: 0 fits, 3 fits with changes, 4 does not fit, 2 a value that cannot be used"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the parser."""
    p = commands.add_parser(
        "plan",
        help="say whether a model fits a machine, and what would make it fit",
        description="Whether a model, in a quantization, at a canvas and length, runs on a "
        "machine: the peak of every phase, and what to change. Nothing is loaded or downloaded.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    p.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help="a name of the catalog (--list shows them), or a local file or folder",
    )
    p.add_argument("--list", action="store_true", help="list models and machines, and stop")
    p.add_argument("--quant", help="Q4_K_M, Q8_0, BF16, fp8, int8, ... (default: as published)")
    p.add_argument("--size", type=_size, metavar="WxH", help="canvas, for example 1344x768")
    p.add_argument("--width", type=options.integer("width", 16, 16384))
    p.add_argument("--height", type=options.integer("height", 16, 16384))
    p.add_argument("--frames", type=options.integer("frames", 1, 100_000))
    p.add_argument("--seconds", type=options.number("seconds", 0.01, 3600))
    _machine(p)
    _runtime(p)
    _contents(p)
    options.tiling(p)
    p.set_defaults(shape=None, exchange=None, span=None, kernel=None, grid_shift=None)
    p.add_argument("--no-tiles", action="store_true", help="the whole frame at once (the default)")
    p.add_argument(
        "--decode-tile",
        type=options.integer("decode-tile", 64, 8192),
        metavar="PX",
        help="VAE tiles of so many px",
    )
    p.add_argument("--json", action="store_true", help="print the plan as JSON")
    p.add_argument("--explain", action="store_true", help="show every number's formula and source")
    p.add_argument("-o", "--output", type=Path, metavar="PNG", help="draw the phases as bars")
    p.add_argument(
        "--calibrate",
        type=Path,
        metavar="BILL",
        help="learn this machine's constants from the --json bill of a render",
    )
    p.set_defaults(run=run)  # fmt: skip
    _take_flags(p)


def _take_flags(p: argparse.ArgumentParser) -> None:
    """Let `--flags "--lowvram"` work: argparse takes a lone value that begins with -- as an
    option of its own."""
    parse = p.parse_known_args

    def joined(args: Any = None, namespace: Any = None) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        for at in range(len(given) - 2, -1, -1):
            if given[at] == "--flags":
                given[at : at + 2] = [f"--flags={given[at + 1]}"]
        return parse(given, namespace)

    p.parse_known_args = joined  # type: ignore[assignment]


def _machine(p: argparse.ArgumentParser) -> None:
    g = p.add_argument_group("machine (default: this one)")
    g.add_argument("--machine", help="m1max-64gb, rtx4090, ... (--list shows them)")
    g.add_argument("--ram", help="memory, for example 64GB")
    g.add_argument("--gpu", choices=("mps", "cuda", "rocm", "cpu"))
    g.add_argument("--vram", help="memory of the card, for example 16GB")


def _runtime(p: argparse.ArgumentParser) -> None:
    from ..memory.ask import ATTENTIONS, OFFLOADS, RUNTIMES

    g = p.add_argument_group("runtime")
    g.add_argument("--runtime", choices=RUNTIMES, default="comfyui")
    g.add_argument("--flags", default="", help='the runtime\'s own, in quotes: "--lowvram"')
    g.add_argument("--encoder-quant", help="of the text encoder (default: as its users have it)")
    g.add_argument("--vae-dtype", choices=("F32", "F16", "BF16"))
    g.add_argument("--attention", choices=ATTENTIONS, default="auto")
    g.add_argument("--offload", choices=OFFLOADS, default="none", help="of diffusers and sd.cpp")
    g.add_argument("--streaming", action="store_true", help="weights from disk (h3.c, vpipe)")
    g.add_argument("--layers", type=options.integer("layers", 1, 200), help="of h3.c")


def _contents(p: argparse.ArgumentParser) -> None:
    g = p.add_argument_group("what goes in")
    g.add_argument(
        "--image",
        type=options.integer("image", 0, 64),
        default=None,
        metavar="N",
        nargs="?",
        const=1,
        help="given pictures of the clip's size (first, last; 1 where the model needs one)",
    )
    g.add_argument(
        "--references",
        type=options.integer("references", 0, 64),
        default=0,
        metavar="N",
        help="reference pictures of the clip's size, in the sequence",
    )
    g.add_argument("--text-tokens", type=options.integer("text-tokens", 0, 65536))
    g.add_argument("--passes", type=options.integer("passes", 1, 4), help="1 without guidance")
    g.add_argument("--lora", default=None, metavar="SIZE", help="of LoRA files, e.g. 400MB")
    g.add_argument("--resident", action="append", default=[],
                   choices=("encoder", "vae", "transformer", "preview"),
                   help="a part that stays loaded (may be given again)")  # fmt: skip


def _size(text: str) -> tuple[int, int]:
    sides = text.lower().replace("*", "x").split("x")
    if len(sides) != 2 or not all(side.strip().isdigit() for side in sides):
        raise options.Refused(f"size {text!r} is not WIDTHxHEIGHT, for example 1344x768")
    return (
        options.integer("width", 16, 16384)(sides[0]),
        options.integer("height", 16, 16384)(sides[1]),
    )


def run(args: argparse.Namespace) -> int:
    """Plan, print, draw."""
    if args.list:
        print(_listing())
        return FITS
    if args.calibrate is not None:
        _calibrate(args.calibrate)
        if args.model is None:
            return FITS
    if args.model is None:
        raise UsageError("no model is given; `h3video plan --list` shows the catalog")
    from ..memory.advice import advise, verdict
    from ..memory.calibration import load
    from ..memory.ledger import plan
    from ..render.forecast import tiler

    ask = make_ask(args)
    constants = load() if ask.machine.source == "probed" else None
    ledger = plan(ask, constants)
    advice = advise(ledger, tiler, constants)
    decided = verdict(ledger, advice)
    _print(ledger, advice, args)
    if args.output is not None:
        from ..memory.picture import save

        save(ledger, decided, args.output)
        print(f"h3video: drawn in {args.output}", file=sys.stderr)
    return {"fits": FITS, "tight": FITS, "fits if": IF_CHANGED}.get(decided, DOES_NOT)


def _print(ledger: Ledger, advice: Any, args: argparse.Namespace) -> None:
    if args.json:
        from ..memory.schema import ledger_json

        json.dump(ledger_json(ledger, advice), sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        from ..memory.report import text

        print(text(ledger, advice, args.explain))


def make_ask(args: argparse.Namespace) -> Ask:
    """The question that the options make."""
    from ..memory.machine import find_machine
    from ..memory.quants import parse_quant
    from ..memory.units import parse_size
    from ..render import forecast

    if args.size is not None and (args.width or args.height):
        raise UsageError("both --size and --width or --height are given; use one of them")
    if args.frames and args.seconds:
        raise UsageError("both --frames and --seconds are given; use one of them")
    spec, stored, files, remarks = forecast.find_source(args.model)
    for remark in remarks:
        print(f"h3video: {remark}", file=sys.stderr)
    quant = stored or args.quant
    if args.quant is not None:
        quant = parse_quant(args.quant).name
        if files.transformer is not None and quant != stored:
            print(
                f"h3video: the file holds {stored}; planned as {quant} from its shapes",
                file=sys.stderr,
            )
            files = replace(files, transformer=None)
    if args.encoder_quant is not None:
        args.encoder_quant = parse_quant(args.encoder_quant).name
    usual = forecast.usual_clip(spec)
    width, height = args.size or (args.width or usual[0], args.height or usual[1])
    frames = args.frames
    if args.seconds:
        frames = max(1, round(args.seconds * spec.family.fps))
    return forecast.make_ask(
        spec, quant, find_machine(args.machine, args.ram, args.gpu, args.vram),
        width=width, height=height, frames=frames, tiling=_tiling(args), tiles=not args.no_tiles,
        runtime=args.runtime, flags=_flags(args.flags),
        encoder_quant=args.encoder_quant, vae_dtype=args.vae_dtype, attention=args.attention,
        offload=args.offload, streaming=args.streaming or "--ssd-streaming" in args.flags,
        layers=args.layers, pictures=args.image, references=args.references * width * height,
        text=args.text_tokens, passes=args.passes,
        lora=0 if args.lora is None else parse_size(args.lora, "lora"),
        resident=tuple(dict.fromkeys(args.resident)), decode_tile=args.decode_tile, files=files,
    )  # fmt: skip


def _flags(text: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text))
    except ValueError as e:
        raise UsageError(
            f'flags {text!r} cannot be split into words ({e}); for example --flags "--cache-none"'
        ) from None


def _tiling(args: argparse.Namespace) -> dict[str, Any]:
    """The tile settings that were given; empty when none was."""
    names = ("overlap", "halo", "shape", "exchange", "span", "rotation", "window", "tile_sizes",
             "kernel")  # fmt: skip
    found = {n: getattr(args, n) for n in names if getattr(args, n) is not None}
    if args.grid_shift is not None:
        found["shift"] = args.grid_shift
    if args.budget is not None:
        from ..tiling import parse_budget

        found["budget"] = parse_budget(args.budget)
    if args.hex_res != "auto":
        found["hex_res"] = args.hex_res
    if args.origin is not None:
        found["origin"] = tuple(args.origin)
    if args.window is not None:
        found["window_overlap"] = args.window_overlap
    if found and args.no_tiles:
        option = {"shift": "grid-shift"}.get(first := next(iter(found)), first.replace("_", "-"))
        raise UsageError(f"--no-tiles and --{option} are given; use one of them")
    return found


def _calibrate(path: Path) -> None:
    from ..memory.calibration import learn, load, save

    try:
        bill = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise UsageError(f"bill {path} cannot be read ({e.strerror})") from None
    except ValueError as e:
        raise UsageError(f"bill {path} is no JSON ({e}); make it with render --json") from None
    if not isinstance(bill, dict):
        raise UsageError(f"bill {path} holds no JSON object; make it with render --json")
    learned, lines = learn(bill, load())
    written = save(learned)
    print("\n".join([*lines, f"kept in {written}"]), file=sys.stderr)


def _listing() -> str:
    from ..memory.machines import CARDS, MACS
    from ..memory.quants import QUANTS
    from ..models.catalog import CATALOG

    lines = ["models:"]
    lines += [f"  {s.name:<22} {s.title}" for s in CATALOG.values()]
    lines += ["", "quantizations:", "  " + " ".join(QUANTS)]
    macs = [f"{chip}-{'|'.join(map(str, sizes))}gb" for chip, sizes in MACS.items()]
    lines += ["", "machines:", "  " + " ".join(macs), "  " + " ".join(CARDS)]
    return "\n".join(lines)
