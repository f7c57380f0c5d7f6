"""Mochi 1: Genmo's own names."""

from __future__ import annotations

from .tensor import Tensor, Tensors, linear, norm

TEXT, FREQUENCIES, HEAD, HEADS = 4096, 256, 128, 24


def tensors(dim: int = 3072, text_dim: int = 1536, layers: int = 48, channels: int = 12) -> Tensors:
    """All tensors of Mochi: a picture stream `dim` wide and a text stream `text_dim` wide."""
    yield Tensor("pos_frequencies", (3, HEADS, HEAD // 2), "embeddings")
    yield Tensor("x_embedder.proj.weight", (dim, channels, 2, 2), "embeddings")
    yield Tensor("x_embedder.proj.bias", (dim,), "embeddings")
    yield from linear("t_embedder.mlp.0", dim, FREQUENCIES, "time")
    yield from linear("t_embedder.mlp.2", dim, dim, "time")
    yield from linear("t5_y_embedder.to_kv", 2 * TEXT, TEXT, "text")
    yield from linear("t5_y_embedder.to_q", TEXT, TEXT, "text")
    yield from linear("t5_y_embedder.to_out", dim, TEXT, "text")
    yield from linear("t5_yproj", text_dim, TEXT, "text")
    for i in range(layers):
        yield from _block(f"blocks.{i}", dim, text_dim, last=i == layers - 1)
    yield from linear("final_layer.mod", 2 * dim, dim, "head")
    yield from linear("final_layer.linear", 4 * channels, dim, "head")


def _block(name: str, dim: int, text_dim: int, last: bool) -> Tensors:
    """The last block's text is only looked at: its output layers do not exist."""
    yield from linear(f"{name}.mod_x", 4 * dim, dim, "modulation")
    yield from linear(f"{name}.mod_y", text_dim if last else 4 * text_dim, dim, "modulation")
    attention = f"{name}.attn"
    yield from linear(f"{attention}.qkv_x", 3 * dim, dim, "self attention", bias=False)
    yield from linear(f"{attention}.qkv_y", 3 * dim, text_dim, "self attention", bias=False)
    for which in ("q_norm_x", "k_norm_x", "q_norm_y", "k_norm_y"):
        yield from norm(f"{attention}.{which}", HEAD)
    yield from linear(f"{attention}.proj_x", dim, dim, "self attention")
    if not last:
        yield from linear(f"{attention}.proj_y", text_dim, dim, "self attention")
    yield from _gated(f"{name}.mlp_x", dim)
    if not last:
        yield from _gated(f"{name}.mlp_y", text_dim)


def _gated(name: str, dim: int) -> Tensors:
    inner = 4 * dim * 2 // 3
    yield from linear(f"{name}.w1", 2 * inner, dim, "feed-forward", bias=False)
    yield from linear(f"{name}.w2", dim, inner, "feed-forward", bias=False)
