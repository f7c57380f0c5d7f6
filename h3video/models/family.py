"""A video model family in plain numbers, and the checks that need no model."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError


@dataclass(frozen=True)
class DenoiserShape:
    """The sizes of a transformer that decide its work and memory.

    hidden, ffn, heads, layers   widths and counts
    text_tokens                  length of the text sequence in cross attention
    dtype_bytes                  bytes of an activation (2 for bf16/fp16, 4 for fp32)
    inner      width of self attention; 0: that of the hidden states
    linear     multiply-adds of a block's linear layers and cross attention for one token; 0: those
               of q, k, v, o, two for cross attention and a plain feed-forward
    along      tokens of text and sound in the frame's own sequence, which every tile runs, too
    """

    hidden: int
    ffn: int
    heads: int
    layers: int
    text_tokens: int = 512
    dtype_bytes: int = 2
    inner: int = 0
    linear: int = 0
    along: int = 0

    def linear_flops(self, tokens: int) -> float:
        """Work of the layers that see one token at a time, in multiply-adds x 2, a block."""
        d = self.hidden
        plain = 6 * d * d + 2 * d * self.ffn + 2 * self.text_tokens * d
        return 2.0 * (tokens + self.along) * (self.linear or plain)

    def attention_flops(self, tokens: int) -> float:
        """Work of self attention over `tokens` tokens, in multiply-adds x 2, a block."""
        return 4.0 * float(tokens + self.along) ** 2 * (self.inner or self.hidden)

    def hidden_bytes(self, tokens: int) -> int:
        """Bytes of the hidden states of `tokens` tokens."""
        return tokens * self.hidden * self.dtype_bytes

    def block_bytes(self, tokens: int) -> int:
        """Bytes that one block needs beside its input, for `tokens` tokens, without scores.

        The larger of the feed-forward's two inner tensors and of attention's
        q, k, v with their rotated copies; the norms run in float32.
        """
        e, d = self.dtype_bytes, self.hidden
        norm = 12 * d + e * d
        attention = 7 * e * d + 4 * d
        feed_forward = 2 * e * self.ffn + 2 * e * d
        return tokens * max(norm, attention, feed_forward)

    def largest_tensor(self, tokens: int) -> int:
        """Elements of the largest tensor of a block over `tokens` tokens."""
        return tokens * max(self.ffn, self.hidden)


@dataclass(frozen=True)
class VideoFamily:
    """What a family of video models accepts.

    transformer_classes   names of its transformer in diffusers
    size_multiple    width and height must be multiples of this many px
    frame_step       a clip has `frame_step * k + frame_first` frames
    vae_space        px of the frame that one latent covers, each way
    vae_time         frames that one latent frame covers (on average, where they differ)
    patch            latents that one token covers, each way
    patch_time       latent frames that one token covers; a clip that does not fill the last
                     token is padded
    fps              frames a second that it was trained on
    frame_first      see frame_step
    latent_first, latent_step   such a clip has `latent_step * k + latent_first` latent frames
    sound            whether it makes a sound track in the same sequence
    """

    name: str
    transformer_classes: tuple[str, ...]
    size_multiple: int
    frame_step: int
    vae_space: int
    vae_time: int
    patch: int
    fps: int
    frame_first: int = 1
    latent_first: int = 1
    latent_step: int = 1
    sound: bool = False
    patch_time: int = 1

    @property
    def token_px(self) -> int:
        """Px of the frame that one token covers, each way."""
        return self.vae_space * self.patch

    def check(self, width: int, height: int, frames: int) -> None:
        """Raise UsageError unless the model takes a clip of this size and length."""
        for name, side in (("width", width), ("height", height)):
            if side < self.size_multiple or side % self.size_multiple:
                legal = " or ".join(str(v) for v in self._nearest(side, self.size_multiple, 0))
                raise UsageError(
                    f"{name} {side} is not a multiple of {self.size_multiple} for {self.name}; "
                    f"use {legal}"
                )
        if frames < self.frame_first or (frames - self.frame_first) % self.frame_step:
            near = self._nearest(frames, self.frame_step, self.frame_first)
            legal = " or ".join(str(v) for v in near)
            raise UsageError(
                f"frames {frames} is not {self.frame_step}k+{self.frame_first} for {self.name}; "
                f"use {legal}"
            )

    @staticmethod
    def _nearest(value: int, step: int, offset: int) -> list[int]:
        low = max(value - offset, 0) // step * step + offset
        return [v for v in (low, low + step) if v >= 1]

    def latent_frames(self, frames: int) -> int:
        """Latent frames of a clip of `frames` frames."""
        groups = (frames - self.frame_first) // self.frame_step
        return groups * self.latent_step + self.latent_first

    def latent_grid(self) -> str:
        """How many latent frames a clip can have, as people write it: 5k+2."""
        if self.latent_step == 1:
            return f"{self.latent_first} or more"
        return f"{self.latent_step}k+{self.latent_first}"

    def token_frames(self, frames: int) -> int:
        """Token frames of a clip of `frames` frames."""
        return -(-self.latent_frames(frames) // self.patch_time)

    def token_grid(self, width: int, height: int) -> tuple[int, int]:
        """Token columns and rows of a frame."""
        return width // self.token_px, height // self.token_px
