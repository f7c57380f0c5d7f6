"""Text and image encoders: names as in the files that ComfyUI and transformers load."""

from __future__ import annotations

from collections.abc import Sequence

from .tensor import Tensor, Tensors, linear, norm


def t5(
    dim: int = 4096, ffn: int = 10240, layers: int = 24, heads: int = 64, head: int = 64,
    vocabulary: int = 32128, buckets: int = 32, bias_everywhere: bool = False,
) -> Tensors:  # fmt: skip
    """T5's encoder; UMT5 has a table of relative positions in every layer."""
    yield Tensor("shared.weight", (vocabulary, dim), "embeddings")
    for i in range(layers):
        name = f"encoder.block.{i}.layer"
        attention = f"{name}.0.SelfAttention"
        for letter in "qkv":
            yield from linear(f"{attention}.{letter}", heads * head, dim, "attention", bias=False)
        yield from linear(f"{attention}.o", dim, heads * head, "attention", bias=False)
        if i == 0 or bias_everywhere:
            table = f"{attention}.relative_attention_bias.weight"
            yield Tensor(table, (buckets, heads), "embeddings")
        yield from norm(f"{name}.0.layer_norm", dim)
        dense = f"{name}.1.DenseReluDense"
        yield from linear(f"{dense}.wi_0", ffn, dim, "feed-forward", bias=False)
        yield from linear(f"{dense}.wi_1", ffn, dim, "feed-forward", bias=False)
        yield from linear(f"{dense}.wo", dim, ffn, "feed-forward", bias=False)
        yield from norm(f"{name}.1.layer_norm", dim)
    yield from norm("encoder.final_layer_norm", dim)


def decoder(
    dim: int, ffn: int, layers: int, heads: int, kv_heads: int, head: int, vocabulary: int,
    bias: bool = False, head_norms: bool = False, outer_norms: bool = False,
) -> Tensors:  # fmt: skip
    """A language model used as an encoder, without its output head.

    bias          of q, k and v (Qwen2.5)
    head_norms    of q and k (Qwen3, Gemma-3)
    outer_norms   two further norms around the feed-forward (Gemma-3)
    """
    yield Tensor("model.embed_tokens.weight", (vocabulary, dim), "embeddings")
    for i in range(layers):
        name = f"model.layers.{i}"
        for letter, count in (("q", heads), ("k", kv_heads), ("v", kv_heads)):
            layer = f"{name}.self_attn.{letter}_proj"
            yield from linear(layer, count * head, dim, "attention", bias=bias)
        yield from linear(f"{name}.self_attn.o_proj", dim, heads * head, "attention", bias=False)
        if head_norms:
            yield from norm(f"{name}.self_attn.q_norm", head)
            yield from norm(f"{name}.self_attn.k_norm", head)
        for layer in ("gate_proj", "up_proj"):
            yield from linear(f"{name}.mlp.{layer}", ffn, dim, "feed-forward", bias=False)
        yield from linear(f"{name}.mlp.down_proj", dim, ffn, "feed-forward", bias=False)
        yield from norm(f"{name}.input_layernorm", dim)
        yield from norm(f"{name}.post_attention_layernorm", dim)
        if outer_norms:
            yield from norm(f"{name}.pre_feedforward_layernorm", dim)
            yield from norm(f"{name}.post_feedforward_layernorm", dim)
    yield from norm("model.norm", dim)


def qwen3vl_vision(out: int, dim: int = 1152, ffn: int = 4304, layers: int = 27) -> Tensors:
    """Qwen3-VL's eyes: a tower, its merger, and three mergers of earlier layers."""
    yield Tensor("visual.patch_embed.proj.weight", (dim, 3, 2, 16, 16), "vision")
    yield Tensor("visual.patch_embed.proj.bias", (dim,), "vision")
    yield Tensor("visual.pos_embed.weight", (2304, dim), "vision")
    for i in range(layers):
        name = f"visual.blocks.{i}"
        yield from _tower_block(name, dim, ffn, ("linear_fc1", "linear_fc2"))
    deep = ((f"deepstack_merger_list.{i}", 4 * dim) for i in range(3))
    for name, width in (("merger", dim), *deep):
        yield from norm(f"visual.{name}.norm", width, bias=True, part="vision")
        yield from linear(f"visual.{name}.linear_fc1", 4 * dim, 4 * dim, "vision")
        yield from linear(f"visual.{name}.linear_fc2", out, 4 * dim, "vision")


def _tower_block(name: str, dim: int, ffn: int, layers: Sequence[str]) -> Tensors:
    yield from norm(f"{name}.norm1", dim, bias=True, part="vision")
    yield from norm(f"{name}.norm2", dim, bias=True, part="vision")
    yield from linear(f"{name}.attn.qkv", 3 * dim, dim, "vision")
    yield from linear(f"{name}.attn.proj", dim, dim, "vision")
    yield from linear(f"{name}.mlp.{layers[0]}", ffn, dim, "vision")
    yield from linear(f"{name}.mlp.{layers[1]}", dim, ffn, "vision")


def qwen25vl_vision(out: int, dim: int = 1280, ffn: int = 3420, layers: int = 32) -> Tensors:
    """Qwen2.5-VL's eyes: a tower with gated feed-forward, and its merger."""
    yield Tensor("visual.patch_embed.proj.weight", (dim, 3, 2, 14, 14), "vision")
    for i in range(layers):
        name = f"visual.blocks.{i}"
        yield from norm(f"{name}.norm1", dim, part="vision")
        yield from norm(f"{name}.norm2", dim, part="vision")
        yield from linear(f"{name}.attn.qkv", 3 * dim, dim, "vision")
        yield from linear(f"{name}.attn.proj", dim, dim, "vision")
        yield from linear(f"{name}.mlp.gate_proj", ffn, dim, "vision")
        yield from linear(f"{name}.mlp.up_proj", ffn, dim, "vision")
        yield from linear(f"{name}.mlp.down_proj", dim, ffn, "vision")
    yield from norm("visual.merger.ln_q", dim, part="vision")
    yield from linear("visual.merger.mlp.0", 4 * dim, 4 * dim, "vision")
    yield from linear("visual.merger.mlp.2", out, 4 * dim, "vision")


def siglip(
    dim: int = 1152, ffn: int = 4304, layers: int = 27, patch: int = 14, positions: int = 4096
) -> Tensors:
    """SigLIP's image tower without the pooling head."""
    name = "vision_model"
    yield Tensor(f"{name}.embeddings.patch_embedding.weight", (dim, 3, patch, patch), "vision")
    yield Tensor(f"{name}.embeddings.patch_embedding.bias", (dim,), "vision")
    yield Tensor(f"{name}.embeddings.position_embedding.weight", (positions, dim), "vision")
    yield from _clip_layers(f"{name}.encoder.layers", dim, ffn, layers, "vision")
    yield from norm(f"{name}.post_layernorm", dim, bias=True, part="vision")


def gemma3_projector(dim: int = 1152, out: int = 3840) -> Tensors:
    """From SigLIP's states to Gemma-3's."""
    name = "multi_modal_projector"
    yield Tensor(f"{name}.mm_input_projection_weight", (dim, out), "vision")
    yield from norm(f"{name}.mm_soft_emb_norm", dim, part="vision")


def clip_text(
    dim: int = 768, ffn: int = 3072, layers: int = 12, vocabulary: int = 49408, positions: int = 77
) -> Tensors:
    """CLIP's text tower (CLIP-L by default)."""
    name = "text_model"
    yield Tensor(f"{name}.embeddings.token_embedding.weight", (vocabulary, dim), "embeddings")
    yield Tensor(f"{name}.embeddings.position_embedding.weight", (positions, dim), "embeddings")
    yield from _clip_layers(f"{name}.encoder.layers", dim, ffn, layers, "layers")
    yield from norm(f"{name}.final_layer_norm", dim, bias=True)


def clip_vision(
    dim: int = 1280, ffn: int = 5120, layers: int = 32, patch: int = 14, positions: int = 257
) -> Tensors:
    """CLIP's image tower without its projection (CLIP-H by default)."""
    name = "vision_model"
    yield Tensor(f"{name}.embeddings.class_embedding", (dim,), "embeddings")
    yield Tensor(f"{name}.embeddings.patch_embedding.weight", (dim, 3, patch, patch), "embeddings")
    yield Tensor(f"{name}.embeddings.position_embedding.weight", (positions, dim), "embeddings")
    yield from norm(f"{name}.pre_layrnorm", dim, bias=True)  # sic: OpenCLIP's spelling
    yield from _clip_layers(f"{name}.encoder.layers", dim, ffn, layers, "layers")
    yield from norm(f"{name}.post_layernorm", dim, bias=True)


def _clip_layers(prefix: str, dim: int, ffn: int, layers: int, part: str) -> Tensors:
    for i in range(layers):
        name = f"{prefix}.{i}"
        for layer in ("k_proj", "v_proj", "q_proj", "out_proj"):
            yield from linear(f"{name}.self_attn.{layer}", dim, dim, part)
        yield from norm(f"{name}.layer_norm1", dim, bias=True, part=part)
        yield from linear(f"{name}.mlp.fc1", ffn, dim, part)
        yield from linear(f"{name}.mlp.fc2", dim, ffn, part)
        yield from norm(f"{name}.layer_norm2", dim, bias=True, part=part)
