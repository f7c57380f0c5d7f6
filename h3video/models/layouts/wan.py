"""Wan 2.1 and 2.2, VACE, and the embedded nano: Wan-AI's own names."""

from __future__ import annotations

from .tensor import Tensor, Tensors, linear, norm

TEXT, FREQUENCIES, IMAGE = 4096, 256, 1280
"""Widths of UMT5's states, of the timestep's sines and of CLIP's states."""


def tensors(
    dim: int, ffn: int, layers: int, channels: int, out: int, image: bool = False, vace: int = 0,
    vace_channels: int = 96,
) -> Tensors:  # fmt: skip
    """All tensors of a Wan transformer.

    channels, out   latent channels that enter and leave (36 enter the 14B image-to-video models)
    image           Wan 2.1's image-to-video: cross attention to CLIP's image states, too
    vace            number of VACE blocks
    """
    yield Tensor("patch_embedding.weight", (dim, channels, 1, 2, 2), "embeddings")
    yield Tensor("patch_embedding.bias", (dim,), "embeddings")
    yield from linear("text_embedding.0", dim, TEXT, "text")
    yield from linear("text_embedding.2", dim, dim, "text")
    yield from linear("time_embedding.0", dim, FREQUENCIES, "time")
    yield from linear("time_embedding.2", dim, dim, "time")
    yield from linear("time_projection.1", 6 * dim, dim, "time")
    for i in range(layers):
        yield from _block(f"blocks.{i}", dim, ffn, image)
    yield Tensor("head.modulation", (1, 2, dim), "head")
    yield from linear("head.head", 4 * out, dim, "head")
    if image:
        yield from _image_embedding(dim)
    if vace:
        yield from _vace(dim, ffn, vace, vace_channels)


def _block(name: str, dim: int, ffn: int, image: bool) -> Tensors:
    yield Tensor(f"{name}.modulation", (1, 6, dim), "modulation")
    for attention in ("self_attn", "cross_attn"):
        part = "self attention" if attention == "self_attn" else "cross attention"
        if attention == "cross_attn":
            yield from norm(f"{name}.norm3", dim, bias=True)
        for letter in "qkvo":
            yield from linear(f"{name}.{attention}.{letter}", dim, dim, part)
        yield from norm(f"{name}.{attention}.norm_q", dim)
        yield from norm(f"{name}.{attention}.norm_k", dim)
    if image:
        yield from linear(f"{name}.cross_attn.k_img", dim, dim, "cross attention")
        yield from linear(f"{name}.cross_attn.v_img", dim, dim, "cross attention")
        yield from norm(f"{name}.cross_attn.norm_k_img", dim)
    yield from linear(f"{name}.ffn.0", ffn, dim, "feed-forward")
    yield from linear(f"{name}.ffn.2", dim, ffn, "feed-forward")


def _image_embedding(dim: int) -> Tensors:
    yield from norm("img_emb.proj.0", IMAGE, bias=True, part="image")
    yield from linear("img_emb.proj.1", IMAGE, IMAGE, "image")
    yield from linear("img_emb.proj.3", dim, IMAGE, "image")
    yield from norm("img_emb.proj.4", dim, bias=True, part="image")


def _vace(dim: int, ffn: int, blocks: int, channels: int) -> Tensors:
    for i in range(blocks):
        name = f"vace_blocks.{i}"
        yield from _block(name, dim, ffn, image=False)
        if i == 0:
            yield from linear(f"{name}.before_proj", dim, dim, "control")
        yield from linear(f"{name}.after_proj", dim, dim, "control")
    yield Tensor("vace_patch_embedding.weight", (dim, channels, 1, 2, 2), "embeddings")
    yield Tensor("vace_patch_embedding.bias", (dim,), "embeddings")
