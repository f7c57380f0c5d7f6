"""A chunk as a command line of antirez/h3.c, and what its screen says.

Flags, limits and phases: that project's main.c and h3.c, commit 8974cc05. It runs MiniMax-H3 on
Apple GPUs with a distilled model: one pass a step, no guidance and no negative prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ....errors import UsageError
from ..protocol import ChunkRequest

FPS = 24
MOST_PIXELS = 768 * 1344
MOST_FRAMES = 362

OPTIONS = {
    "binary": "the h3 program, a path or a name on PATH (default: h3)",
    "model": "folder of the model, if --model does not say it",
    "reuse": "denoiser reuse: 1 exact (default), 2 fast, 3 aggressive",
    "layers": "transformer blocks 35..50 (default: 50)",
    "core-reuse": "core refresh 1..6 (default: 1); not together with reuse",
    "token-reduction": "yes: pair video tokens in middle blocks",
    "ssd-streaming": "yes: stream the weights from the disk, two blocks in memory",
    "int8-row-fc2": "yes: faster 8-bit layer (M5); not with ssd-streaming",
    "reference-rope": "yes: the released positions at 256 x 256",
    "render-size": "WxH: a smaller canvas inside, of the same shape, enlarged at the end",
}

_NUMBERS = {"reuse": (1, 3), "layers": (35, 50), "core-reuse": (1, 6)}

_SWITCHES = {
    "token-reduction": "--token-reduction", "ssd-streaming": "--ssd-streaming",
    "int8-row-fc2": "--use-int8-row-fc2", "reference-rope": "--use-reference-rope",
}  # fmt: skip


def option_flags(options: Mapping[str, str]) -> list[str]:
    """Flags of the engine options. Raises UsageError naming option, value and limits."""
    unknown = options.keys() - OPTIONS.keys()
    if unknown:
        raise UsageError(
            f"engine h3c has no option {', '.join(sorted(unknown))}; use {', '.join(OPTIONS)}"
        )
    flags: list[str] = []
    for name, (low, high) in _NUMBERS.items():
        if name in options:
            value = options[name]
            if not value.isdigit() or not low <= int(value) <= high:
                raise UsageError(f"engine option {name} {value!r} is out of range {low}..{high}")
            flags += [f"--{name}", value]
    for name, flag in _SWITCHES.items():
        value = options.get(name, "no")
        if value not in ("yes", "no"):
            raise UsageError(f"engine option {name} {value!r} is neither yes nor no")
        if value == "yes":
            flags.append(flag)
    if "render-size" in options:
        size = re.fullmatch(r"(\d{1,5})x(\d{1,5})", options["render-size"])
        if not size or int(size[1]) % 32 or int(size[2]) % 32:
            raise UsageError(
                f"engine option render-size {options['render-size']!r} is no WxH in multiples of 32"
            )
        flags += ["--render-width", size[1], "--render-height", size[2]]
    if "--ssd-streaming" in flags and "--use-int8-row-fc2" in flags:
        raise UsageError("h3.c cannot combine ssd-streaming with int8-row-fc2; drop one of them")
    if int(options.get("reuse", "1")) > 1 and int(options.get("core-reuse", "1")) > 1:
        raise UsageError("h3.c cannot combine reuse with core-reuse; set one of them to 1")
    return flags


def check_job(width: int, height: int, frames: int, fps: float, steps: int) -> None:
    """Raise UsageError for a chunk that h3.c would refuse."""
    for name, side in (("width", width), ("height", height)):
        if side < 32 or side % 32:
            raise UsageError(f"{name} {side} is not a multiple of 32 for h3.c")
    if width * height > MOST_PIXELS:
        raise UsageError(
            f"{width}x{height} has {width * height:,} pixels, h3.c takes {MOST_PIXELS:,} "
            "(1344x768) at most; use a smaller canvas"
        )
    if not 5 <= frames <= MOST_FRAMES:
        raise UsageError(
            f"a chunk of {frames} frames is out of range 5..{MOST_FRAMES} for h3.c; use "
            "shorter chunks"
        )
    if fps != FPS:
        raise UsageError(f"fps {fps:g} is not 24, the only rate of MiniMax-H3; use --fps 24")
    if not 2 <= steps <= 1000:
        raise UsageError(f"steps {steps} is out of range 2..1000 for h3.c")


def own_seed(request: ChunkRequest) -> int:
    """The seed of a chunk for engines that draw the noise themselves: every chunk its own, unless
    the job asks for the same."""
    return (request.seed + request.index) % 2**63 if request.noise == "field" else request.seed


def chunk_command(
    binary: Path, model: Path, flags: list[str], request: ChunkRequest, folder: Path
) -> list[str]:  # fmt: skip
    """The command that makes a chunk: frames into folder/frames, sound into folder/chunk.mp4, the
    first frame from folder/first.png if the chunk has one."""
    command = [
        str(binary), "-d", str(model), "-p", request.prompt, "-o", str(folder / "chunk.mp4"),
        "--frames-dir", str(folder / "frames"),
        "--width", str(request.width), "--height", str(request.height),
        "--frames", str(request.frames), "--steps", str(request.steps),
        "--seed", str(own_seed(request)), *flags,
    ]  # fmt: skip
    if request.first_frame is not None:
        command += ["--first-frame", str(folder / "first.png")]
    return command


# ---- the screen ----

_PROGRESS = re.compile(r"(.+?)\s+(\d+)/(\d+)\s*")


@dataclass(frozen=True)
class Said:
    """One message: a phase with how far it is, or text.

    phase, done, total   "denoise", 3, 20
    text                 anything else
    """

    phase: str = ""
    done: int = 0
    total: int = 0
    text: str = ""


class Screen:
    """Takes what the program writes to stderr in pieces of any size; gives messages.

    Progress is a line that is written anew after a carriage return: "denoise   3/20".
    """

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[Said]:
        """Messages that are complete; one without an end yet is a progress line that stands."""
        self._rest += text
        *whole, self._rest = re.split(r"[\r\n]", self._rest)
        for line in whole:
            yield from self._line(line)
        # The program flushes whole progress lines and ends them only later.
        if re.fullmatch(r".{25,} +\d+/\d+ *", self._rest) and self._rest.endswith(" "):
            line, self._rest = self._rest, ""
            yield from self._line(line)

    def end(self) -> Iterator[Said]:
        """What is left when the program has ended."""
        line, self._rest = self._rest, ""
        yield from self._line(line)

    @staticmethod
    def _line(line: str) -> Iterator[Said]:
        line = line.strip()
        if not line:
            return
        found = _PROGRESS.fullmatch(line)
        if found and not line.startswith("h3:") and int(found[3]) > 0:
            yield Said(found[1].strip(), int(found[2]), int(found[3]))
        else:
            yield Said(text=line)
