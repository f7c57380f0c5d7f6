"""The sound track beside a tiled clip: every tile carries it whole, and it is merged by mean.

Each tile's audio counts as much as the area that the tile owns; chunks in time are cut in
proportion to the frames and fade as the frames do.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..blend.accumulate import mix, share_of_weight
from ..errors import UsageError
from .clip import ClipLayout, chunk_weights


def time_axis(audio: Tensor) -> int:
    """The axis of an audio latent that is time: MiniMax-H3 [B, 32, 2, L], LTX-2 [B, 8, L, 16]."""
    if audio.ndim == 4 and audio.shape[1] == 32:
        return 3
    if audio.ndim == 4 and audio.shape[1] == 8 and audio.shape[3] == 16:
        return 2
    raise UsageError(
        f"an audio latent of shape {tuple(audio.shape)} is of no known model (MiniMax-H3: "
        "[B, 32, 2, L], LTX-2: [B, 8, L, 16]); use chunk_frames 0, which leaves audio whole"
    )


def audio_chunks(layout: ClipLayout, length: int) -> tuple[tuple[int, int], ...]:
    """Samples (start, stop) of each chunk of a clip whose audio has `length` samples."""
    rate = length / layout.frames
    return tuple((round(a * rate), round(b * rate)) for a, b in layout.chunks)


def cut_audio(audio: Tensor, layout: ClipLayout, chunk: int) -> Tensor:
    """The audio of one chunk."""
    if len(layout.chunks) == 1:
        return audio
    axis = time_axis(audio)
    start, stop = audio_chunks(layout, audio.shape[axis])[chunk]
    return audio.narrow(axis, start, stop - start)


class AudioMerger:
    """Merges the tiles' audio; tiles that left it alone give it back bit for bit."""

    def __init__(self, layout: ClipLayout, length: int) -> None:
        """length: samples of the whole clip's audio along its time axis."""
        self.layout = layout
        self.length = length
        places = layout.tiles[: layout.places]
        pixels = [sum(layout.grid.cells[i].pixels for i in t.cells) for t in places]
        self.area = [p / sum(pixels) for p in pixels]
        self.chunks = audio_chunks(layout, length) if len(layout.chunks) > 1 else ((0, length),)
        fade = round(layout.fade * length / layout.frames)
        self.time = chunk_weights(self.chunks, fade, length)
        self.seen = np.zeros(length, np.float32)
        self.out: Tensor | None = None

    def add(self, index: int, audio: Tensor) -> None:
        """Add the audio of tile `index` of the layout."""
        chunk = index // self.layout.places
        start, stop = self.chunks[chunk]
        axis = time_axis(audio) if len(self.chunks) > 1 else audio.ndim - 1
        if len(self.chunks) == 1:
            # One weight for the whole track, whatever its axes mean.
            self.out = (
                torch.zeros_like(audio, dtype=torch.float32) if self.out is None else self.out
            )
            weight = np.float32(self.area[index])
            alpha = share_of_weight(weight, self.seen[0])
            self.seen[0] += weight
            self._mix(self.out, audio, torch.tensor(alpha))
            return
        if audio.shape[axis] != stop - start:
            raise UsageError(
                f"{self.layout.tiles[index].name} has {audio.shape[axis]} audio samples, cut as "
                f"{stop - start}; leave the length as it is"
            )
        if self.out is None:
            shape = list(audio.shape)
            shape[axis] = self.length
            self.out = torch.zeros(shape, dtype=torch.float32, device=audio.device)
        weight = np.float32(self.area[index % self.layout.places]) * self.time[chunk, start:stop]
        alpha = share_of_weight(weight, self.seen[start:stop])
        self.seen[start:stop] += weight
        view = [1] * audio.ndim
        view[axis] = -1
        self._mix(
            self.out.narrow(axis, start, stop - start), audio, torch.from_numpy(alpha).view(view)
        )

    def finish(self, dtype: torch.dtype) -> Tensor:
        """The merged audio."""
        assert self.out is not None
        return self.out.to(dtype)

    @staticmethod
    def _mix(out: Tensor, tile: Tensor, alpha: Tensor) -> None:
        mix(out, tile.to(out.device, torch.float32), alpha.to(out.device))
