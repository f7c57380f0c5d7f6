"""Decode a clip of any length frame by frame: memory does not grow with it.

Wan's decoder makes latent frames one after the other and looks back on what its convolutions keep
of the frames before. Here that is kept between calls, for every crop of the frame, so that frames
come out as they are made, and are bit for bit those that decoding the whole clip at once gives.
Crops are decoded a block of latent frames at a time; what they keep meanwhile waits on the CPU.

Other decoders look forward in time, or normalise over the clip; they decode it as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..errors import UsageError
from ..tiling import CropPlan

STREAMED = ("AutoencoderKLWan",)
"""Decoders in diffusers that make latent frames one by one."""

BLOCK = 8
"""Latent frames that a crop is decoded for before the next crop: 32 frames of pixels are held."""

OnTile = Callable[[float], None]


def can_stream(vae: Any) -> bool:
    """Whether `stream_pictures` holds only a part of the clip with this VAE."""
    return type(vae).__name__ in STREAMED and not getattr(vae, "use_tiling", False)


def stream_frames(
    vae: Any, latents: Any, crops: CropPlan | None = None, on_tile: OnTile | None = None,
    block: int = BLOCK,
) -> Iterator[Any]:  # fmt: skip
    """Frames uint8 numpy [H, W, 3] of a sampler's latents; see `stream_pictures`.

    latents   [1, C, T, h, w], normalised as the sampler leaves them
    """
    for picture in stream_pictures(vae, latents, crops, on_tile, block):
        values = (picture.float() * 127.5 + 127.5).round().clamp(0, 255)
        yield values.to(torch.uint8).permute(1, 2, 0).contiguous().cpu().numpy()


def stream_pictures(
    vae: Any, latents: Any, crops: CropPlan | None = None, on_tile: OnTile | None = None,
    block: int = BLOCK,
) -> Iterator[Tensor]:  # fmt: skip
    """Pictures [3, H, W] in -1..1 and the VAE's dtype, frame by frame.

    latents   a tensor [1, C, T, h, w], or a LatentFile, of which only a block is read at a time
    crops     the decoder's crops; None or one crop: the whole frame at once
    on_tile   called after each crop of each block with its share of the work; may raise to stop
    """
    steps = latents.shape[2]
    whole = crops is None or len(crops.tiles) == 1
    # Without crops nothing waits for another crop: frames come as they are made.
    block = max(1, min(block if can_stream(vae) else steps, steps)) if not whole else 1
    if not can_stream(vae):
        yield from _decoded_whole(vae, latents, on_tile)
        return
    if not whole and tuple(latents.shape[-2:]) != (crops.rows, crops.columns):  # type: ignore[union-attr]
        raise RuntimeError(
            f"latents are {latents.shape[-1]}x{latents.shape[-2]}, the plan is for other sizes"
        )
    made = _whole_frames if whole else _cropped_frames
    with torch.inference_mode():
        yield from made(vae, latents, crops, on_tile or (lambda share: None), block)


def _whole_frames(
    vae: Any, latents: Any, _crops: CropPlan | None, on_tile: OnTile, _block: int
) -> Iterator[Tensor]:
    decoder = FrameDecoder(vae)
    steps = latents.shape[2]
    for t in range(steps):
        frames = decoder.step(_raw(vae, latents[:, :, t : t + 1]))
        on_tile(1.0 / steps)
        yield from frames[0].unbind(1)


def _cropped_frames(
    vae: Any, latents: Any, crops: CropPlan | None, on_tile: OnTile, block: int
) -> Iterator[Tensor]:
    assert crops is not None
    decoders = [FrameDecoder(vae, away=True) for _ in crops.tiles]
    weights = _crop_weights(crops)
    steps = latents.shape[2]
    for start in range(0, steps, block):
        part = latents[:, :, start : start + block]
        count = part.shape[2]
        out: Tensor | None = None
        dtype = part.dtype
        for tile, decoder, weight in zip(crops.tiles, decoders, weights):
            rows = slice(tile.top, tile.top + crops.crop_rows)
            columns = slice(tile.left, tile.left + crops.crop_columns)
            crop = part[..., rows, columns].contiguous()
            at = 0
            decoder.fetch()
            for t in range(count):
                frames = decoder.step(_raw(vae, crop[:, :, t : t + 1]))
                if out is None:
                    dtype = frames.dtype
                    total = count * _frames_a_step(vae) - (start == 0) * (_frames_a_step(vae) - 1)
                    out = torch.zeros(
                        (3, total, crops.height, crops.width), dtype=torch.float32,
                        device=frames.device,
                    )  # fmt: skip
                _add(out, frames, at, tile, crops, weight)
                at += frames.shape[2]
            decoder.leave()
            on_tile(count / steps / len(crops.tiles))
        assert out is not None
        yield from out.to(dtype).unbind(1)


def _add(out: Tensor, frames: Tensor, at: int, tile: Any, crops: CropPlan, weight: Tensor) -> None:
    """Add a crop's frames [1, 3, F, rows, columns] with its weights."""
    unit = crops.unit
    rows = slice(tile.top * unit, (tile.top + crops.crop_rows) * unit)
    columns = slice(tile.left * unit, (tile.left + crops.crop_columns) * unit)
    for f in range(frames.shape[2]):
        out[:, at + f, rows, columns].addcmul_(frames[0, :, f].float(), weight.to(out.device))


def _crop_weights(crops: CropPlan) -> list[Tensor]:
    """Every crop's weights on its own pixels: float32 [crop rows, crop columns] in pixels."""
    out = []
    for tile, weights in zip(crops.tiles, crops.weights()):
        frame = torch.zeros(crops.height * crops.width, dtype=torch.float32)
        frame[torch.as_tensor(weights.points)] = torch.as_tensor(weights.weight)
        unit = crops.unit
        part = frame.view(crops.height, crops.width)[
            tile.top * unit : (tile.top + crops.crop_rows) * unit,
            tile.left * unit : (tile.left + crops.crop_columns) * unit,
        ]
        out.append(part.clone())
    return out


class FrameDecoder:
    """Wan's decoder with what it keeps of earlier frames; see the module's text.

    away   between `leave` and `fetch` that waits on the CPU
    """

    def __init__(self, vae: Any, away: bool = False) -> None:
        self.vae, self.away = vae, away
        vae.clear_cache()
        self.kept: list[Any] = [None] * vae._conv_num
        self.first = True

    def step(self, z: Tensor) -> Tensor:
        """Frames [1, 3, F, H, W] in -1..1 of a raw latent frame [1, C, 1, h, w]: 1, then 4."""
        vae = self.vae
        x = vae.post_quant_conv(z)
        out = vae.decoder(x, feat_cache=self.kept, feat_idx=[0], first_chunk=self.first)
        self.first = False
        if vae.config.patch_size is not None:
            from diffusers.models.autoencoders.autoencoder_kl_wan import unpatchify

            out = unpatchify(out, patch_size=vae.config.patch_size)
        return torch.clamp(out, min=-1.0, max=1.0)

    def leave(self) -> None:
        """Move what is kept to the CPU."""
        if self.away:
            self.kept = [k.to("cpu") if isinstance(k, Tensor) else k for k in self.kept]

    def fetch(self) -> None:
        """Move it back."""
        if self.away:
            device = next(self.vae.parameters()).device
            self.kept = [k.to(device) if isinstance(k, Tensor) else k for k in self.kept]


def _frames_a_step(vae: Any) -> int:
    return int(getattr(vae.config, "scale_factor_temporal", 4) or 4)


def _decoded_whole(vae: Any, latents: Any, on_tile: OnTile | None) -> Iterator[Tensor]:
    with torch.inference_mode():
        sample = vae.decode(_raw(vae, latents[:, :, :]), return_dict=False)[0]
    if on_tile is not None:
        on_tile(1.0)
    yield from sample[0].unbind(1)


def _raw(vae: Any, latents: Tensor) -> Tensor:
    """A VAE's own latents of a sampler's: on its device, in its dtype."""
    weight = next(vae.parameters())
    z = latents.to(weight.device, torch.float32)
    config = vae.config
    mean, std = getattr(config, "latents_mean", None), getattr(config, "latents_std", None)
    if mean is not None and std is not None:
        shape = (1, len(mean), 1, 1, 1)
        z = z * torch.tensor(std, device=z.device).view(shape)
        z = z + torch.tensor(mean, device=z.device).view(shape)
    return z.to(weight.dtype)


class LatentFile:
    """Latents [1, C, T, h, w] in a safetensors file, read a block of latent frames at a time.

    Raises UsageError when the file is no such thing.
    """

    def __init__(self, path: Path, name: str = "latents") -> None:
        from safetensors import safe_open

        try:
            with safe_open(str(path), framework="pt") as file:
                self.shape = tuple(file.get_slice(name).get_shape())
        except Exception as e:  # safetensors raises its own type, which moved between releases
            raise UsageError(f"{path} holds no {name} ({e}); give a latents file") from None
        if len(self.shape) != 5 or self.shape[0] != 1:
            raise UsageError(f"{path}: {name} of {self.shape} are not [1, C, T, h, w]")
        self.path, self.name = path, name

    def __getitem__(self, key: tuple[slice, slice, slice]) -> Tensor:
        """latents[:, :, i:j], a copy."""
        from safetensors import safe_open

        with safe_open(str(self.path), framework="pt") as file:
            return file.get_slice(self.name)[:, :, key[2]].clone()
