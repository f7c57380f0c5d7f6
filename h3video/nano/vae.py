"""The video VAE: a narrow Wan 2.1 VAE, started well, and quick on a CPU while it is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKLWan
from diffusers.models.autoencoders import autoencoder_kl_wan as wan
from torch import Tensor, nn

BASE_DIM = 16
LATENTS = 16


def make_vae() -> AutoencoderKLWan:
    """An untrained VAE of 3.6 M weights whose signal reaches the far end on the first step.

    Residual branches start small, the skip path is orthogonal, and the temporal
    parts copy a frame, so that a VAE trained on images already does clips.
    """
    vae = AutoencoderKLWan(base_dim=BASE_DIM, z_dim=LATENTS)
    ends = (
        vae.encoder.conv_in, vae.encoder.conv_out, vae.decoder.conv_in,
        vae.quant_conv, vae.post_quant_conv,
    )  # fmt: skip
    with torch.no_grad():
        for module in vae.modules():
            if isinstance(module, wan.WanResidualBlock):
                module.conv2.weight.mul_(0.1)
                module.conv2.bias.zero_()
                if not isinstance(module.conv_shortcut, nn.Identity):
                    _orthogonal(module.conv_shortcut.weight)
                    module.conv_shortcut.bias.zero_()
            elif isinstance(module, wan.WanAttentionBlock):
                module.proj.weight.mul_(0.1)
            elif isinstance(module, wan.WanResample):
                _orthogonal(module.resample[1].weight)
                module.resample[1].bias.zero_()
                if hasattr(module, "time_conv"):
                    _copy_last_frame(module.time_conv)
        for conv in ends:
            conv.weight.zero_()
            last = torch.empty_like(conv.weight[:, :, -1])
            _orthogonal(last)
            conv.weight[:, :, -1].copy_(last)
            conv.bias.zero_()
        vae.decoder.conv_out.weight.mul_(0.5)
    return vae


def _orthogonal(weight: Tensor) -> None:
    flat = torch.empty(weight.shape[0], weight[0].numel())
    nn.init.orthogonal_(flat)
    weight.copy_(flat.view_as(weight))


def _copy_last_frame(conv: nn.Conv3d) -> None:
    conv.weight.zero_()
    if conv.bias is not None:
        conv.bias.zero_()
    channels = conv.weight.shape[1]
    for out in range(conv.weight.shape[0]):
        conv.weight[out, out % channels, -1] = 1.0


@contextmanager
def fast_convolutions() -> Iterator[None]:
    """Run Wan's causal convolutions channels-last, and single frames in 2-D, while training.

    A single frame without a cache meets only the last temporal tap (the others
    see zero padding), so the 2-D form is the same sum at a third of the work.
    """

    def forward(self: Any, x: Tensor, cache_x: Tensor | None = None) -> Tensor:
        if x.shape[2] == 1 and cache_x is None and self.stride[0] == 1:
            frame = x[:, :, 0].contiguous(memory_format=torch.channels_last)
            padding = (self._padding[2], self._padding[0])
            out = F.conv2d(frame, self.weight[:, :, -1], self.bias, padding=padding)
            return out.unsqueeze(2)
        padding_all = list(self._padding)
        if cache_x is not None and self._padding[4] > 0:
            x = torch.cat([cache_x, x], dim=2)
            padding_all[4] -= cache_x.shape[2]
        x = F.pad(x, padding_all).contiguous(memory_format=torch.channels_last_3d)
        weight = self.weight.contiguous(memory_format=torch.channels_last_3d)
        return F.conv3d(x, weight, self.bias, self.stride)

    original = wan.WanCausalConv3d.forward
    wan.WanCausalConv3d.forward = forward
    try:
        yield
    finally:
        wan.WanCausalConv3d.forward = original


def encode(vae: AutoencoderKLWan, x: Tensor) -> Tensor:
    """Latent means [B, 16, T, h, w] of clips [B, 3, F, H, W] in -1..1; keeps gradients."""
    moments = vae.quant_conv(vae.encoder(x)) if x.shape[2] == 1 else vae._encode(x)
    return moments[:, :LATENTS]


def decode(vae: AutoencoderKLWan, z: Tensor) -> Tensor:
    """Clips [B, 3, F, H, W] of latents [B, 16, T, h, w]; keeps gradients, does not clamp."""
    if z.shape[2] == 1:
        return vae.decoder(vae.post_quant_conv(z), first_chunk=True)
    vae.clear_cache()
    x, out = vae.post_quant_conv(z), []
    for i in range(z.shape[2]):
        vae._conv_idx = [0]
        out.append(
            vae.decoder(
                x[:, :, i : i + 1], feat_cache=vae._feat_map, feat_idx=vae._conv_idx,
                first_chunk=i == 0,
            )
        )  # fmt: skip
    vae.clear_cache()
    return torch.cat(out, 2)


@torch.no_grad()
def psnr(vae: AutoencoderKLWan, clip: Any) -> float:
    """PSNR in dB of a clip, float32 [F, H, W, 3] in 0..1, after encoding and decoding."""
    x = torch.as_tensor(clip).permute(3, 0, 1, 2)[None] * 2 - 1
    y = decode(vae, encode(vae, x.to(vae.dtype))).float().clamp(-1, 1)
    return -10 * math.log10(((x - y) ** 2).mean().item() / 4)


def fold_statistics(vae: AutoencoderKLWan, mean: Tensor, std: Tensor) -> None:
    """Give the latents the statistics of the official Wan 2.1 VAE, by its 1x1x1 convolutions.

    mean, std   [16] of the latents that `vae` makes now

    Afterwards `(z - latents_mean) / latents_std` with the values of the default
    configuration is what was `(z - mean) / std` before, so pipelines (and ComfyUI's
    fixed Wan latent format) need no other numbers. The variance half becomes tiny.
    """
    want_mean = torch.tensor(vae.config.latents_mean)
    want_std = torch.tensor(vae.config.latents_std)
    gain = want_std / std
    with torch.no_grad():
        quant, post = vae.quant_conv, vae.post_quant_conv
        quant.weight[:LATENTS] *= gain.view(-1, 1, 1, 1, 1)
        quant.bias[:LATENTS] = (quant.bias[:LATENTS] - mean) * gain + want_mean
        quant.weight[LATENTS:] = 0.0
        quant.bias[LATENTS:] = -20.0
        post.bias += post.weight[:, :, 0, 0, 0] @ (mean - want_mean / gain)
        post.weight /= gain.view(1, -1, 1, 1, 1)
