"""What a plan is asked about: a model, a clip, a machine, a runtime and its settings."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import UsageError
from ..models.spec import Encoder, ModelSpec, Tokens, Vae
from .machine import Machine

RUNTIMES = ("comfyui", "diffusers", "h3c", "sdcpp", "official", "vpipe", "h3video")
ATTENTIONS = ("auto", "pytorch", "flash", "sage", "sub-quadratic", "split", "math")
OFFLOADS = ("none", "model", "sequential", "group")


@dataclass(frozen=True)
class Tiles:
    """A tile plan in numbers.

    tile_tokens    tokens of the frame that the largest tile runs
    frame_tokens   of the whole clip
    runs           tiles times windows;  exchange   step | block
    tokens         of all runs together; None: all are as large as tile_tokens
    order          block-major | tile-major
    accumulate     device | cpu
    time           expected time of a step against the untiled one
    settings       how to ask for this plan: {"budget": 0.25}, ...
    """

    tile_tokens: int
    frame_tokens: int
    runs: int
    exchange: str = "step"
    order: str = "block-major"
    accumulate: str = "device"
    time: float = 1.0
    settings: tuple[tuple[str, str], ...] = ()
    tokens: int | None = None

    @property
    def all_tokens(self) -> int:
        """Tokens of the frame that all runs together have."""
        return self.runs * self.tile_tokens if self.tokens is None else self.tokens

    @property
    def share(self) -> float:
        """The largest tile's tokens against the clip's."""
        return self.tile_tokens / self.frame_tokens


@dataclass(frozen=True)
class Files:
    """Bytes of files that are there, instead of predictions.

    transformer   of one expert;  encoders, vaes   by catalog name
    largest       elements of the transformer's largest tensor, None: the catalog's
    """

    transformer: int | None = None
    encoders: tuple[tuple[str, int], ...] = ()
    vaes: tuple[tuple[str, int], ...] = ()
    source: str = ""


@dataclass(frozen=True)
class Ask:
    """One question to the ledger.

    spec, quant      the model and what its transformer is quantized to
    width, height, frames   of the clip in px and frames (frames already legal)
    machine, runtime
    encoder_quant, vae_dtype   None: what the runtime's users usually have
    attention        auto: the runtime's own choice on this machine
    offload          of diffusers and sd.cpp;  flags   of the runtime's command line
    passes           forwards a step; None: the model's
    text             prompt tokens; None: the usual
    pictures         given pictures of the clip's size (first or last frame)
    references       pixels of reference pictures or clips that join the sequence
    lora             bytes of LoRA files
    tiles            None: the whole frame at once
    decode_tile      px of a VAE tile; None: the runtime's habit
    resident         parts that stay in memory: encoder, vae, transformer, preview
    layers           transformer layers that are run (h3.c); None: all
    streaming        whether weights are read from disk block by block (h3.c, vpipe, sd.cpp)
    files            sizes of local files
    asked_frames     what was asked for before rounding
    """

    spec: ModelSpec
    quant: str
    width: int
    height: int
    frames: int
    machine: Machine
    runtime: str = "comfyui"
    encoder_quant: str | None = None
    vae_dtype: str | None = None
    attention: str = "auto"
    offload: str = "none"
    flags: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    passes: int | None = None
    text: int | None = None
    pictures: int = 0
    references: int = 0
    lora: int = 0
    tiles: Tiles | None = None
    decode_tile: int | None = None
    resident: tuple[str, ...] = ()
    layers: int | None = None
    streaming: bool = False
    files: Files = field(default=Files())
    asked_frames: int | None = None

    def __post_init__(self) -> None:
        """Raise UsageError for a value that is none of the known ones."""
        for name, value, known in (
            ("runtime", self.runtime, RUNTIMES), ("attention", self.attention, ATTENTIONS),
            ("offload", self.offload, OFFLOADS),
        ):  # fmt: skip
            if value not in known:
                raise UsageError(f"{name} {value!r} is unknown; use {', '.join(known)}")

    @property
    def tokens(self) -> Tokens:
        """The clip as the transformer sees it."""
        return self.spec.tokens(
            self.width, self.height, self.frames, text=self.text, pictures=self.pictures
        )

    @property
    def reference_tokens(self) -> int:
        """Rows that references add to the sequence."""
        side = self.spec.family.token_px
        return math.ceil(self.references / (side * side))

    @property
    def beside(self) -> int:
        """Rows of the sequence that are not the clip's own: text, sound, conditions, references."""
        tokens = self.tokens
        return tokens.sequence - tokens.video + self.reference_tokens

    @property
    def frame_rows(self) -> int:
        """Rows of the whole sequence without tiles."""
        return self.tokens.video + self.beside

    @property
    def rows(self) -> int:
        """Rows that a block sees at once: of a tile, or of the whole clip."""
        if self.tiles is None:
            return self.frame_rows
        return min(self.tiles.tile_tokens, self.tokens.video) + self.beside

    @property
    def tiled(self) -> bool:
        """Whether there is more than one tile."""
        return self.tiles is not None and self.tiles.runs > 1

    @property
    def pixels(self) -> int:
        """Pixels of the whole clip."""
        return self.width * self.height * self.frames

    def has_flag(self, *names: str) -> bool:
        """Whether one of the command line's flags is given."""
        return any(flag.split("=")[0] in names for flag in self.flags)

    def encoders(self) -> tuple[Encoder, ...]:
        """Text encoders, and image encoders when pictures are given."""
        given = self.pictures or self.references
        return tuple(
            e for e in self.spec.encoders
            if (e.kind == "text" or given or not e.optional) and not (e.optional and not given)
        )  # fmt: skip

    def vaes(self, kind: str = "video") -> tuple[Vae, ...]:
        """The model's VAEs of a kind."""
        return tuple(v for v in self.spec.vaes if v.kind == kind)

    def but(self, **changes: Any) -> Ask:
        """The same with other settings."""
        return replace(self, **changes)
