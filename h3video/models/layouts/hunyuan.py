"""HunyuanVideo and HunyuanVideo 1.5: Tencent's names as ComfyUI's repack has them."""

from __future__ import annotations

from .tensor import Tensor, Tensors, linear, norm

FREQUENCIES, HEAD, POOLED, BYT5, VISION = 256, 128, 768, 1472, 1152
"""Widths of the timestep's sines, an attention head, CLIP's pooled state, byT5, SigLIP."""


def tensors(
    dim: int, double: int, single: int, channels: int, out: int, patch: int, text: int,
    version_15: bool = False,
) -> Tensors:  # fmt: skip
    """All tensors of a HunyuanVideo transformer.

    double, single   blocks that keep text and frame apart, and blocks that run them as one
    channels, out    latent channels that enter and leave
    patch            latents that a token covers, each way
    version_15       no guidance and no pooled text; byT5 for written words, SigLIP for pictures
    """
    yield Tensor("img_in.proj.weight", (dim, channels, 1, patch, patch), "embeddings")
    yield Tensor("img_in.proj.bias", (dim,), "embeddings")
    yield from _embedder("time_in", dim, FREQUENCIES, "time")
    if not version_15:
        yield from _embedder("vector_in", dim, POOLED, "text")
        yield from _embedder("guidance_in", dim, FREQUENCIES, "time")
    yield from _text("txt_in", dim, text)
    for i in range(double):
        yield from _double(f"double_blocks.{i}", dim)
    for i in range(single):
        yield from _single(f"single_blocks.{i}", dim)
    if version_15:
        yield from norm("byt5_in.layernorm", BYT5, bias=True, part="text")
        for name, inp in (("fc1", BYT5), ("fc2", dim), ("fc3", dim)):
            yield from linear(f"byt5_in.{name}", dim, inp, "text")
    yield from linear("final_layer.linear", out * patch * patch, dim, "head")
    yield from linear("final_layer.adaLN_modulation.1", 2 * dim, dim, "head")
    if version_15:
        yield from norm("vision_in.proj.0", VISION, bias=True, part="image")
        yield from linear("vision_in.proj.1", VISION, VISION, "image")
        yield from linear("vision_in.proj.3", dim, VISION, "image")
        yield from norm("vision_in.proj.4", dim, bias=True, part="image")
        yield Tensor("cond_type_embedding.weight", (3, dim), "text")


def _embedder(name: str, dim: int, inp: int, part: str) -> Tensors:
    yield from linear(f"{name}.in_layer", dim, inp, part)
    yield from linear(f"{name}.out_layer", dim, dim, part)


def _text(name: str, dim: int, text: int) -> Tensors:
    """The refiner of the text states: two blocks."""
    yield from linear(f"{name}.input_embedder", dim, text, "text")
    yield from _embedder(f"{name}.t_embedder", dim, FREQUENCIES, "text")
    yield from _embedder(f"{name}.c_embedder", dim, text, "text")
    for i in range(2):
        block = f"{name}.individual_token_refiner.blocks.{i}"
        yield from linear(f"{block}.adaLN_modulation.1", 2 * dim, dim, "text")
        yield from norm(f"{block}.norm1", dim, bias=True, part="text")
        yield from linear(f"{block}.self_attn.qkv", 3 * dim, dim, "text")
        yield from linear(f"{block}.self_attn.proj", dim, dim, "text")
        yield from norm(f"{block}.norm2", dim, bias=True, part="text")
        yield from linear(f"{block}.mlp.0", 4 * dim, dim, "text")
        yield from linear(f"{block}.mlp.2", dim, 4 * dim, "text")


def _double(name: str, dim: int) -> Tensors:
    for stream in ("img", "txt"):
        yield from linear(f"{name}.{stream}_mod.lin", 6 * dim, dim, "modulation")
        yield from linear(f"{name}.{stream}_attn.qkv", 3 * dim, dim, "self attention")
        yield from norm(f"{name}.{stream}_attn.norm.query_norm", HEAD)
        yield from norm(f"{name}.{stream}_attn.norm.key_norm", HEAD)
        yield from linear(f"{name}.{stream}_attn.proj", dim, dim, "self attention")
        yield from linear(f"{name}.{stream}_mlp.0", 4 * dim, dim, "feed-forward")
        yield from linear(f"{name}.{stream}_mlp.2", dim, 4 * dim, "feed-forward")


def _single(name: str, dim: int) -> Tensors:
    """linear1 makes q, k, v and the feed-forward's inside at once; linear2 takes both back."""
    yield from linear(f"{name}.linear1", 7 * dim, dim, "single blocks")
    yield from linear(f"{name}.linear2", dim, 5 * dim, "single blocks")
    yield from norm(f"{name}.norm.query_norm", HEAD)
    yield from norm(f"{name}.norm.key_norm", HEAD)
    yield from linear(f"{name}.modulation.lin", 3 * dim, dim, "modulation")
