"""One published model in numbers: geometry, tokens, parts, what it needs beside the transformer.

The tensors come from code (layouts/), so that parameters and bytes are exact and cost nothing
until asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from ..errors import UsageError
from .family import DenoiserShape, VideoFamily
from .layouts.tensor import Tensor, Tensors

Layout = Callable[[], Tensors]


@dataclass(frozen=True)
class Encoder:
    """A text or image encoder.

    hidden, layers   width of its states, and layers that are run
    kind             "text" or "image"
    optional         needed for some jobs only (pictures as input, written words)
    head             weights of the language model's output layer, which encoding does not run,
                     but which its GGUF files hold; 0 where it is the word embeddings again
    layout           its tensors, in the names of its published file
    """

    name: str
    title: str
    hidden: int
    layers: int
    layout: Layout = field(repr=False, compare=False)
    kind: str = "text"
    dtype: str = "BF16"
    optional: bool = False
    head: int = 0

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors of its published file."""
        return _tensors(self.layout)

    @property
    def parameters(self) -> int:
        """All its weights."""
        return sum(t.elements for t in self.tensors())

    @property
    def layer_parameters(self) -> int:
        """Weights of its largest layer: what a runtime holds that streams layer by layer."""
        return max(_numbered(self.tensors()).values())


@dataclass(frozen=True)
class Vae:
    """A video or sound autoencoder: weights of both halves; `dtype` of the published file.

    Counted from the model classes of diffusers (tests/models/test_catalog.py).
    """

    name: str
    title: str
    encoder: int
    decoder: int
    dtype: str = "BF16"
    kind: str = "video"

    @property
    def parameters(self) -> int:
        """All its weights."""
        return self.encoder + self.decoder


@dataclass(frozen=True)
class Tokens:
    """What a clip is to the transformer.

    frames      frames that are made
    latent      latent frames, rows, columns
    grid        token frames, rows, columns; `video` is their product
    conditions  tokens of given pictures in the same sequence
    sound, text tokens of the sound track and of the prompt
    sequence    rows that self attention sees at once in the picture's stream
    """

    frames: int
    latent: tuple[int, int, int]
    grid: tuple[int, int, int]
    video: int
    conditions: int
    sound: int
    text: int
    sequence: int


@dataclass(frozen=True)
class ModelSpec:
    """A published model.

    family, denoiser  legal sizes and lengths; widths and counts of the transformer
    channels     of its latents
    layout       the transformer's tensors, in the names of its published file
    encoders     text and image encoders; vaes: picture and sound
    experts      transformers of this size that a clip needs one after the other
    passes       forwards a step as it is meant to be run (2: with and without the prompt)
    text_tokens  usual length of the prompt
    text_inside  whether the prompt is in the picture's sequence
    sound_rate   rows of the sound track a second; sound_inside: in the picture's sequence
    dtype        of the published transformer; refused: dtypes that break it, with the reason
    comfy_factor ComfyUI's memory_usage_factor; comfy_packed: its latents are one flat vector there
    max_area     trained limit of width x height in px, 0 where none is published
    pictures     given pictures that it cannot do without
    """

    name: str
    title: str
    family: VideoFamily
    denoiser: DenoiserShape
    channels: int
    layout: Layout = field(repr=False, compare=False)
    encoders: tuple[Encoder, ...] = ()
    vaes: tuple[Vae, ...] = ()
    experts: int = 1
    passes: int = 2
    text_tokens: int = 512
    text_inside: bool = False
    sound_rate: float = 0.0
    sound_inside: bool = False
    dtype: str = "BF16"
    refused: tuple[tuple[str, str], ...] = ()
    comfy_factor: float = 2.0
    comfy_packed: bool = False
    max_area: int = 0
    pictures: int = 0
    aliases: tuple[str, ...] = ()

    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors of one transformer."""
        return _tensors(self.layout)

    @property
    def parameters(self) -> int:
        """Weights of one transformer (an A14B has two)."""
        return sum(t.elements for t in self.tensors())

    def parts(self) -> dict[str, int]:
        """Weights by part, in the order of the file."""
        out: dict[str, int] = {}
        for t in self.tensors():
            out[t.part] = out.get(t.part, 0) + t.elements
        return out

    def blocks(self) -> dict[str, int]:
        """Weights of every numbered block, by the block's name ("blocks.0")."""
        return dict(_numbered(self.tensors()))

    def runs_as(self, frames: int) -> int:
        """Frames that are really made when `frames` are asked for.

        Rounded up to the family's grid, as MiniMax-H3 does itself; others refuse or cut, and
        rounding up never promises less than asked.
        """
        family = self.family
        groups = -(-max(frames - family.frame_first, 0) // family.frame_step)
        return groups * family.frame_step + family.frame_first

    def nearest(self, width: int, height: int, frames: int) -> tuple[int, int, int]:
        """The closest size and the length that `frames` runs as. Sizes halfway go down."""
        step = self.family.size_multiple

        def side(value: int) -> int:
            return max((value + (step - 1) // 2) // step, 1) * step

        return side(width), side(height), self.runs_as(frames)

    def tokens(
        self, width: int, height: int, frames: int, text: int | None = None, pictures: int = 0
    ) -> Tokens:
        """Tokens of a clip of `frames` frames of `width` x `height` px.

        text      length of the prompt in tokens (None: the usual one)
        pictures  given pictures of the clip's size that join the sequence (MiniMax-H3's first or
                  last frame, one each); other families mix them into the latents
        Raises UsageError for a size or length that the model does not take, or a negative count.
        """
        self.family.check(width, height, frames)
        text = self.text_tokens if text is None else text
        if text < 0 or pictures < 0:
            raise UsageError(
                f"text {text} and pictures {pictures} must not be negative; use 0 for none"
            )
        family = self.family
        across, down = family.token_grid(width, height)
        grid = (family.token_frames(frames), down, across)
        video = grid[0] * down * across
        conditions = pictures * down * across if self.sound_inside else 0
        sound = self.sound_tokens(frames)
        beside = conditions + (text if self.text_inside else 0)
        beside += sound if self.sound_inside else 0
        space = family.vae_space
        latent = (family.latent_frames(frames), height // space, width // space)
        return Tokens(frames, latent, grid, video, conditions, sound, text, video + beside)

    def sound_tokens(self, frames: int) -> int:
        """Rows of the sound track of `frames` frames; 0 for silent models."""
        if not self.sound_rate:
            return 0
        if self.sound_inside:  # MiniMax-H3: two rows (left, right) of every latent frame
            return 2 * round(frames * self.sound_rate / 2 / self.family.fps)
        return round(frames * self.sound_rate / self.family.fps)


@lru_cache(maxsize=64)
def _tensors(layout: Layout) -> tuple[Tensor, ...]:
    return tuple(layout())


def _numbered(tensors: tuple[Tensor, ...]) -> dict[str, int]:
    """Weights by the name up to its first number; what has none is left out."""
    out: dict[str, int] = {}
    for t in tensors:
        words = t.name.split(".")
        number = next((i for i, word in enumerate(words) if word.isdigit()), 0)
        # A number behind the last but two words is a layer's place in a Sequential, not a block.
        if number and len(words) - number > 2:
            key = ".".join(words[: number + 1])
            out[key] = out.get(key, 0) + t.elements
    return out
