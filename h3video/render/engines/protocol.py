"""What a chunk engine is: a request in plain data, a result in arrays, five methods.

An engine makes one chunk of a clip at a time and knows nothing of jobs, journals and joins. Those
that keep latents (diffusers) return them and decode them later; those that drive another program
(a ComfyUI server, the h3.c binary) return frames and sound. Importing this loads no torch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

LATENTS = "latents"
"""Continuity: the last latent frames of the chunk before are frozen at the head of the next."""

FIRST_FRAME = "first-frame"
"""Continuity: the last picture of the chunk before is the first of the next."""

NOTHING = "none"
"""Continuity: chunks are made apart; only the join brings them together."""


class Cancelled(RuntimeError):
    """The caller asked to stop; the engine has stopped and let go of what it held."""


class EngineDied(RuntimeError):
    """The process that worked for us has ended (killed by the system for memory, mostly)."""


class Cancel:
    """A wish to stop that engines look at between pieces of work; safe across threads."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        """Ask for a stop."""
        self._event.set()

    def check(self) -> None:
        """Raise Cancelled if a stop was asked for."""
        if self._event.is_set():
            raise Cancelled("stopped as asked")

    @property
    def is_set(self) -> bool:
        """Whether a stop was asked for."""
        return self._event.is_set()


@dataclass(frozen=True)
class Sound:
    """A sound track: `samples` float32 numpy [channels, count] in -1..1, `rate` a second."""

    samples: Any
    rate: int


@dataclass(frozen=True)
class ChunkRequest:
    """One chunk to make. Everything that decides it is here.

    index              of the chunk in the clip
    frames             to make, on the family's grid; latent_frames of the same clip
    start              frame of the whole clip that the chunk's first frame is
    latent_start       latent frame of the whole clip that its first latent frame is
    width, height, fps canvas in px, frames a second
    prompt, negative   texts of this chunk
    steps, cfg, seed   seed is the chunk's own (0..2^64-1)
    noise              field: noise of latent frame t of the whole clip comes from (seed, t), so
                       that chunks neither repeat nor differ where they overlap;
                       chunk: noise is drawn for the chunk as one clip from `seed`
    head               latents [1, C, V, h, w] to freeze at the head (continuity "latents"), or None
    first_frame        uint8 numpy [H, W, 3] to start from (continuity "first-frame"), or None
    tail_sound         the sound of the chunk before, for engines that continue it; or None
    tiling             settings of the tile plan as apply_hex_tiling takes them
    decode_budget      budget of the decoder's crops (share or bytes); None: as in `tiling`
    """

    index: int
    frames: int
    latent_frames: int
    start: int
    latent_start: int
    width: int
    height: int
    fps: int
    prompt: str
    negative: str
    steps: int
    cfg: float
    seed: int
    noise: str = "field"
    head: Any = None
    first_frame: Any = None
    tail_sound: Sound | None = None
    tiling: dict[str, Any] = field(default_factory=dict)
    decode_budget: float | int | None = None


@dataclass(frozen=True)
class ChunkResult:
    """What an engine made; at least one of latents and frames is there.

    latents   [1, C, T, h, w], normalised, on the CPU (a tensor), or a dict of named tensors
    frames    uint8 numpy [frames, H, W, 3]
    sound     of the same length as the frames
    """

    latents: Any = None
    frames: Any = None
    sound: Sound | None = None


Progress = Callable[[str, float], None]
"""Called with (phase, share of the phase that was just done); shares of a phase sum to 1."""


@runtime_checkable
class Engine(Protocol):
    """Makes chunks. One object serves a whole job; calls come one at a time, from one thread.

    name         as in the job document
    continuity   LATENTS, FIRST_FRAME or NOTHING: how the next chunk continues this one
    gives        "latents" (decode is called later) or "frames" (decode is never called)
    """

    name: str
    continuity: str
    gives: str

    def identity(self) -> dict[str, Any]:
        """Plain data that decides the result beside the request (model files with size and hash,
        LoRAs, scheduler, precision, workflow, program version): goes into the job's fingerprint.

        Raises UsageError when the engine cannot work at all, before anything is done.
        """
        ...

    def generate(self, request: ChunkRequest, progress: Progress, cancel: Cancel) -> ChunkResult:
        """Make a chunk. Raises Cancelled, EngineDied, MemoryError (or the backend's own
        out-of-memory error), UsageError."""
        ...

    def decode(
        self, latents: Any, request: ChunkRequest, progress: Progress, cancel: Cancel
    ) -> ChunkResult:
        """Frames (and sound) of latents that `generate` returned."""
        ...

    def release(self, everything: bool = False) -> None:
        """Between chunks: let go of caches and of what the next call of the same kind does not
        need; with `everything` of weights, too (after an out-of-memory error)."""
        ...

    def close(self) -> None:
        """End: stop processes, close connections. Safe to call twice."""
        ...
