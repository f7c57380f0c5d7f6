"""The denoiser's sizes, and a lean forward pass to train it with on a CPU."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from diffusers import WanTransformer3DModel
from torch import Tensor

HEADS, HEAD_DIM, LAYERS, FFN = 2, 128, 6, 768
WIDTH = HEADS * HEAD_DIM
"""Widths that ComfyUI's Wan detection accepts: a multiple of 128 with heads of 128."""


def make_transformer() -> WanTransformer3DModel:
    """An untrained transformer of 7.2 M weights; residual branches and modulation start small."""
    model = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=HEADS, attention_head_dim=HEAD_DIM,
        in_channels=16, out_channels=16, text_dim=4096, freq_dim=256, ffn_dim=FFN,
        num_layers=LAYERS, cross_attn_norm=True, qk_norm="rms_norm_across_heads",
    )  # fmt: skip
    with torch.no_grad():
        for block in model.blocks:
            for linear in (block.attn1.to_out[0], block.attn2.to_out[0], block.ffn.net[2]):
                linear.weight.mul_(0.5)
                linear.bias.zero_()
        model.proj_out.weight.mul_(0.1)
        model.proj_out.bias.zero_()
        model.condition_embedder.time_proj.weight.mul_(0.2)
    return model


def forward(
    model: Any, x: Tensor, timestep: Tensor, text: Tensor, keep: Tensor | None = None,
    run_block: Any = None, outputs: list[Tensor] | None = None,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """The model's own forward pass in the dtype of its weights, without float32 detours.

    x          latents [B, 16, T, h, w];  timestep [B] in 0..1000;  text [B, L, 4096]
    keep       spatial token indices: only these tokens are run, at their own positions
    run_block  `compiled_block()`, or nothing for the eager form
    outputs    a list to which every block's output is added
    Returns (output patches [B, n, 64], token indices or None).
    tests/nano/test_training.py holds it against diffusers' forward.
    """
    b, c, t, h, w = x.shape
    cos, sin = model.rope(x)
    spatial = (h // 2) * (w // 2)
    patches = x.view(b, c, t, h // 2, 2, w // 2, 2).permute(0, 2, 3, 5, 1, 4, 6)
    hidden = patches.reshape(b, t * spatial, c * 4)
    index = None
    if keep is not None:
        index = (torch.arange(t)[:, None] * spatial + keep[None]).reshape(-1)
        hidden, cos, sin = hidden[:, index], cos[:, index], sin[:, index]
    dtype = model.patch_embedding.weight.dtype
    hidden = F.linear(
        hidden.to(dtype), model.patch_embedding.weight.flatten(1), model.patch_embedding.bias
    )
    # one row of angles per token and pair of channels; the model repeats each twice
    rotary = cos[0, :, 0, 0::2].to(dtype).contiguous(), sin[0, :, 0, 1::2].to(dtype).contiguous()
    embed = model.condition_embedder
    time = embed.time_embedder(embed.timesteps_proj(timestep).to(dtype))
    modulation = embed.time_proj(F.silu(time)).unflatten(1, (6, -1))
    context = embed.text_embedder(text)
    run_block = run_block or _block
    for block in model.blocks:
        hidden = run_block(block, hidden, context, modulation, rotary)
        if outputs is not None:
            outputs.append(hidden)
    shift, scale = (model.scale_shift_table + time.unsqueeze(1)).chunk(2, 1)
    return model.proj_out(_norm(hidden) * (1 + scale) + shift), index


def compiled_block() -> Any:
    """The block through torch.compile: 2.7 times faster here, as small tensors wait for memory."""
    return torch.compile(_block, dynamic=True)


LONG = 1500
"""Tokens from which a score matrix costs more memory than PyTorch's fused attention costs time."""


def _norm(x: Tensor) -> Tensor:
    """Layer norm without weights, in float32."""
    y = x.float()
    y = y - y.mean(-1, keepdim=True)
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


def _rotate(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """x [B, n, heads, 128], pairs of neighbouring channels turned by the angles [n, 64]."""
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = rotary[0][:, None, :], rotary[1][:, None, :]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def _attention(a: Any, x: Tensor, context: Tensor, rotary: Any = None) -> Tensor:
    q = _rms(F.linear(x, a.to_q.weight, a.to_q.bias), a.norm_q.weight)
    k = _rms(F.linear(context, a.to_k.weight, a.to_k.bias), a.norm_k.weight)
    v = F.linear(context, a.to_v.weight, a.to_v.bias)
    q, k, v = (y.unflatten(2, (HEADS, HEAD_DIM)) for y in (q, k, v))
    if rotary is not None:
        q, k = _rotate(q, rotary), _rotate(k, rotary)
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    if rotary is not None and x.shape[1] > LONG:
        out = F.scaled_dot_product_attention(q, k, v)
    else:
        # On a CPU the backward pass of the fused form is the slower one for short sequences.
        scores = (q * HEAD_DIM**-0.5) @ k.transpose(-1, -2)
        out = torch.softmax(scores.float(), -1).to(q.dtype) @ v
    return F.linear(out.transpose(1, 2).flatten(2), a.to_out[0].weight, a.to_out[0].bias)


def _block(block: Any, hidden: Tensor, context: Tensor, modulation: Tensor, rotary: Any) -> Tensor:
    parts = (block.scale_shift_table + modulation).chunk(6, 1)
    shift, scale, gate, ffn_shift, ffn_scale, ffn_gate = parts
    x = _norm(hidden) * (1 + scale) + shift
    hidden = hidden + _attention(block.attn1, x, x, rotary) * gate
    x = _norm(hidden) * block.norm2.weight + block.norm2.bias
    hidden = hidden + _attention(block.attn2, x, context)
    x = _norm(hidden) * (1 + ffn_scale) + ffn_shift
    up, down = block.ffn.net[0].proj, block.ffn.net[2]
    x = F.gelu(F.linear(x, up.weight, up.bias), approximate="tanh")
    return hidden + F.linear(x, down.weight, down.bias) * ffn_gate


def patches_of(x: Tensor) -> Tensor:
    """Latents [B, 16, T, h, w] as the transformer's output patches [B, n, 64]."""
    b, c, t, h, w = x.shape
    split = x.view(b, c, t, h // 2, 2, w // 2, 2).permute(0, 2, 3, 5, 4, 6, 1)
    return split.reshape(b, t * (h // 2) * (w // 2), -1)
