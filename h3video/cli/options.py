"""Types of command-line values that several subcommands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Refused(Exception):
    """A value that an option does not take.

    Not a ValueError: argparse replaces the message of those by its own.
    """


def hex_res(text: str) -> int | str:
    """0..15 or auto."""
    if text == "auto":
        return text
    value = integer("hex-res", 0, 15)(text)
    return value


def integer(name: str, low: int, high: int) -> Callable[[str], int]:
    """A whole number low..high."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise Refused(f"{name} {text!r} is not a whole number") from None
        if not low <= value <= high:
            raise Refused(f"{name} {value} is out of range {low}..{high}")
        return value

    return parse


def number(name: str, low: float, high: float) -> Callable[[str], float]:
    """A number low..high."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise Refused(f"{name} {text!r} is not a number") from None
        if not (math.isfinite(value) and low <= value <= high):
            raise Refused(f"{name} {text} is out of range {low:g}..{high:g}")
        return value

    return parse


def prompt(text: str) -> str:
    """A prompt, or @file to read it from a file."""
    if not text.startswith("@"):
        return text.strip()
    path = Path(text[1:]).expanduser()
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as e:
        raise Refused(f"prompt file {path} cannot be read ({e.strerror})") from None
    except UnicodeDecodeError:
        raise Refused(f"prompt file {path} is not UTF-8 text; save it as UTF-8") from None


def tiling(parser: argparse.ArgumentParser) -> None:
    """The options that decide the tiles."""
    from ..blend import DEFAULT_KERNEL, KERNELS
    from ..grid import DEFAULT_SPAN, MAX_SPAN
    from ..tiling.settings import SHIFTS

    group = parser.add_argument_group("tiles")
    group.add_argument(
        "--shape", choices=("hex", "rect", "none"), default="hex",
        help="hexagons, rectangles of the same area (the baseline), or one tile (default: hex)",
    )  # fmt: skip
    group.add_argument(
        "--hex-res", type=hex_res, default="auto", metavar="N",
        help="H3 resolution 0..15 of the cells, or auto: the coarsest that fits the budget",
    )  # fmt: skip
    group.add_argument(
        "--overlap", type=number("overlap", 0, 4096), metavar="PX",
        help="width of the band that neighbouring cells share (default: 2 tokens, 4 where the grid "
        "stays, 3 if they are 32 px; 0: hard edges)",
    )  # fmt: skip
    group.add_argument(
        "--halo", type=number("halo", 0, 4096), metavar="PX",
        help="context that a tile sees beyond its cell (default and least: half the overlap)",
    )  # fmt: skip
    group.add_argument(
        "--budget", metavar="B",
        help="largest tile: a share of the frame (25%%) or bytes for a step's activations "
        "(2GiB); default: a third of the frame",
    )  # fmt: skip
    group.add_argument(
        "--exchange", choices=("step", "block"), default="step",
        help="blend the tiles once a step, or after every transformer block (default: step)",
    )  # fmt: skip
    group.add_argument(
        "--window", type=integer("window", 1, 4096), metavar="N",
        help="latent frames that a tile takes at a time (default: all)",
    )  # fmt: skip
    group.add_argument(
        "--window-overlap", type=integer("window-overlap", 0, 4096), default=2, metavar="N",
        help="latent frames that neighbouring windows share (default: 2)",
    )  # fmt: skip
    group.add_argument(
        "--span", type=number("span", 0.001, MAX_SPAN), default=DEFAULT_SPAN, metavar="W",
        help=f"gnomonic plane units across the longer side (default: {DEFAULT_SPAN})",
    )  # fmt: skip
    group.add_argument(
        "--rotation", type=number("rotation", -360, 360), default=None, metavar="DEG",
        help="turn of the grid in degrees (default: 0, or what needs less with hex_res auto)",
    )  # fmt: skip
    group.add_argument(
        "--origin", type=number("origin", -16384, 16384), nargs=2, metavar=("X", "Y"),
        help="px by which the grid's centre lies right of and below the frame's (default: 0 0, or "
        "what needs less with hex_res auto)",
    )  # fmt: skip
    group.add_argument(
        "--tile-sizes", type=integer("tile-sizes", 1, 1024), default=None, metavar="N",
        help="at most so many different token counts of tiles, each a graph of its own (default: "
        "3, or 8 over all places of a grid that moves; 1: all tiles are equal)",
    )  # fmt: skip
    group.add_argument(
        "--kernel", choices=KERNELS, default=DEFAULT_KERNEL,
        help=f"curve of the fade across the overlap (default: {DEFAULT_KERNEL})",
    )  # fmt: skip
    group.add_argument(
        "--grid-shift", choices=SHIFTS, default="auto",
        help="step: the grid lies elsewhere at every sampling step, so that seams never stay and "
        "little overlap does; none: it stays; auto: step where the sampler tells its steps "
        "(default: auto)",
    )  # fmt: skip


def steps(parser: argparse.ArgumentParser) -> None:
    """The options that decide in which sampling steps there are which tiles."""
    group = parser.add_argument_group("tiles by step")
    group.add_argument(
        "--shift-seed", type=integer("shift-seed", 0, 2**63 - 1), default=0, metavar="N",
        help="where a grid that moves lies (default: 0)",
    )  # fmt: skip
    group.add_argument(
        "--start-step", type=integer("start-step", 0, 10000), default=0, metavar="N",
        help="first sampling step in tiles, from 0; steps before it see the whole frame, and need "
        "its memory (default: 0)",
    )  # fmt: skip
    group.add_argument(
        "--end-step", type=integer("end-step", 1, 10000), default=None, metavar="N",
        help="first step that is not in tiles any more (default: tiles to the end)",
    )  # fmt: skip
    group.add_argument(
        "--guide-steps", type=integer("guide-steps", 0, 10000), default=0, metavar="N",
        help="first steps in which a small prediction of the whole frame leads the tiles: against "
        "subjects that repeat (default: 0)",
    )  # fmt: skip


def device(parser: argparse.ArgumentParser) -> None:
    """Where and in which precision to run."""
    parser.add_argument(
        "--device", choices=("auto", "cpu", "cuda", "mps"), default="auto",
        help="where to run (default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--dtype", choices=("auto", "float32", "bfloat16", "float16"), default="auto",
        help="precision (default: auto: bfloat16 where the device is fast at it)",
    )  # fmt: skip


def weights(parser: argparse.ArgumentParser) -> None:
    """Files beside the model, the sampler, and where weights wait."""
    group = parser.add_argument_group("weights and sampler")
    group.add_argument(
        "--gguf", action="append", metavar="FILE",
        help="quantised transformer in place of the model's; a second one for Wan 2.2's low noise",
    )  # fmt: skip
    group.add_argument("--lora", action="append", metavar="FILE[:SCALE]", help="may be repeated")
    group.add_argument("--image", metavar="FILE", help="first picture, for image-to-video models")
    group.add_argument(
        "--sampler", choices=("model", "unipc", "euler", "dpm++"), default="model",
        help="default: as the model's folder says",
    )  # fmt: skip
    group.add_argument("--shift", type=number("shift", 0.01, 100), help="of the noise levels")
    group.add_argument(
        "--offload", choices=("none", "model", "group", "sequential"), default="none",
        help="keep weights in the computer's memory: whole parts, block by block, or layer by "
        "layer (none)",
    )  # fmt: skip


def allow(parser: Any) -> None:
    """What may have changed since a job was begun."""
    parser.add_argument(
        "--allow", action="append", metavar="FIELD",
        help="go on although FIELD (cfg, model, lora, prompt, ...) has changed; may be repeated",
    )


def worker(parser: Any) -> None:
    """A process for the engine."""
    parser.add_argument(
        "--worker", action="store_true",
        help="run the engine in a process of its own: if the system kills it for memory, it is "
        "started again once with smaller tiles",
    )


def pairs(texts: list[str] | None, known: dict[str, str]) -> dict[str, str]:
    """NAME=VALUE options as a dict. Raises Refused for a name that is not known."""
    found = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            lines = "; ".join(f"{k}: {v}" for k, v in known.items()) or "none"
            raise Refused(f"engine-option {text!r} is not NAME=VALUE of a known one ({lines})")
        found[name] = value
    return found
