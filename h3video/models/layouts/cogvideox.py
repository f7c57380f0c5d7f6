"""CogVideoX: diffusers' names, in which it is published."""

from __future__ import annotations

from .tensor import Tensor, Tensors, linear, norm

TIME, TEXT, HEAD = 512, 4096, 64


def tensors(
    dim: int, layers: int, channels: int = 16, out: int = 16, patch_time: int = 0
) -> Tensors:
    """All tensors of a CogVideoX transformer; `patch_time` is 2 for version 1.5."""
    if patch_time:
        patch = channels * 2 * 2 * patch_time
        yield Tensor("patch_embed.proj.weight", (dim, patch), "embeddings")
    else:
        yield Tensor("patch_embed.proj.weight", (dim, channels, 2, 2), "embeddings")
    yield Tensor("patch_embed.proj.bias", (dim,), "embeddings")
    yield from linear("patch_embed.text_proj", dim, TEXT, "text")
    yield from linear("time_embedding.linear_1", TIME, dim, "time")
    yield from linear("time_embedding.linear_2", TIME, TIME, "time")
    for i in range(layers):
        yield from _block(f"transformer_blocks.{i}", dim)
    yield from norm("norm_final", dim, bias=True)
    yield from linear("norm_out.linear", 2 * dim, TIME, "head")
    yield from norm("norm_out.norm", dim, bias=True)
    yield from linear("proj_out", out * 2 * 2 * (patch_time or 1), dim, "head")


def _block(name: str, dim: int) -> Tensors:
    yield from linear(f"{name}.norm1.linear", 6 * dim, TIME, "modulation")
    yield from norm(f"{name}.norm1.norm", dim, bias=True)
    yield from norm(f"{name}.attn1.norm_q", HEAD, bias=True)
    yield from norm(f"{name}.attn1.norm_k", HEAD, bias=True)
    for layer in ("to_q", "to_k", "to_v", "to_out.0"):
        yield from linear(f"{name}.attn1.{layer}", dim, dim, "self attention")
    yield from linear(f"{name}.norm2.linear", 6 * dim, TIME, "modulation")
    yield from norm(f"{name}.norm2.norm", dim, bias=True)
    yield from linear(f"{name}.ff.net.0.proj", 4 * dim, dim, "feed-forward")
    yield from linear(f"{name}.ff.net.2", dim, 4 * dim, "feed-forward")
