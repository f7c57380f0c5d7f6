"""LTX-Video and LTX-2: Lightricks' own names (also diffusers', but for embeddings)."""

from __future__ import annotations

from .tensor import Tensor, Tensors, linear, norm

FREQUENCIES = 256
REGISTERS = 128
"""Learnt tokens of LTX-2's connectors."""


def ltx_video(dim: int, layers: int, channels: int = 128, text: int = 4096) -> Tensors:
    """All tensors of an LTX-Video transformer."""
    yield Tensor("scale_shift_table", (2, dim), "modulation")
    yield from linear("patchify_proj", dim, channels, "embeddings")
    yield from _adaln("adaln_single", dim, 6)
    yield from _caption("caption_projection", dim, text)
    for i in range(layers):
        name = f"transformer_blocks.{i}"
        yield Tensor(f"{name}.scale_shift_table", (6, dim), "modulation")
        yield from _attention(f"{name}.attn1", dim, dim, dim, "self attention")
        yield from _feed_forward(f"{name}.ff", dim, "feed-forward")
        yield from _attention(f"{name}.attn2", dim, dim, dim, "cross attention")
    yield from linear("proj_out", channels, dim, "head")


def ltx_2(
    dim: int = 4096, sound: int = 2048, layers: int = 48, channels: int = 128, text: int = 3840
) -> Tensors:
    """All tensors of LTX-2: a picture stream `dim` wide, a sound stream `sound` wide, and the two
    connectors between the text encoder and the streams."""
    yield Tensor("scale_shift_table", (2, dim), "modulation")
    yield Tensor("audio_scale_shift_table", (2, sound), "modulation")
    for prefix, width in (("", dim), ("audio_", sound)):
        yield from linear(f"{prefix}patchify_proj", width, channels, "embeddings")
        yield from _adaln(f"{prefix}adaln_single", width, 6)
        yield from _caption(f"{prefix}caption_projection", width, text)
    yield from _adaln("av_ca_video_scale_shift_adaln_single", dim, 4)
    yield from _adaln("av_ca_a2v_gate_adaln_single", dim, 1)
    yield from _adaln("av_ca_audio_scale_shift_adaln_single", sound, 4)
    yield from _adaln("av_ca_v2a_gate_adaln_single", sound, 1)
    for which in ("audio", "video"):
        yield from _connector(f"{which}_embeddings_connector", text)
    for i in range(layers):
        yield from _av_block(f"transformer_blocks.{i}", dim, sound)
    yield from linear("proj_out", channels, dim, "head")
    yield from linear("audio_proj_out", channels, sound, "head")


def _av_block(name: str, dim: int, sound: int) -> Tensors:
    yield Tensor(f"{name}.scale_shift_table", (6, dim), "modulation")
    yield Tensor(f"{name}.audio_scale_shift_table", (6, sound), "modulation")
    yield Tensor(f"{name}.scale_shift_table_a2v_ca_audio", (5, sound), "modulation")
    yield Tensor(f"{name}.scale_shift_table_a2v_ca_video", (5, dim), "modulation")
    yield from _attention(f"{name}.attn1", dim, dim, dim, "self attention")
    yield from _attention(f"{name}.audio_attn1", sound, sound, sound, "sound")
    yield from _attention(f"{name}.attn2", dim, dim, dim, "cross attention")
    yield from _attention(f"{name}.audio_attn2", sound, sound, sound, "sound")
    yield from _attention(f"{name}.audio_to_video_attn", dim, sound, sound, "sound")
    yield from _attention(f"{name}.video_to_audio_attn", sound, sound, dim, "sound")
    yield from _feed_forward(f"{name}.ff", dim, "feed-forward")
    yield from _feed_forward(f"{name}.audio_ff", sound, "sound")


def _connector(name: str, text: int) -> Tensors:
    yield Tensor(f"{name}.learnable_registers", (REGISTERS, text), "connectors")
    for i in range(2):
        block = f"{name}.transformer_1d_blocks.{i}"
        yield from _attention(f"{block}.attn1", text, text, text, "connectors")
        yield from _feed_forward(f"{block}.ff", text, "connectors")


def _attention(name: str, query: int, inner: int, context: int, part: str) -> Tensors:
    """Queries from `query` wide states, keys and values from `context` wide ones, out again."""
    yield from norm(f"{name}.q_norm", inner)
    yield from norm(f"{name}.k_norm", inner)
    yield from linear(f"{name}.to_q", inner, query, part)
    yield from linear(f"{name}.to_k", inner, context, part)
    yield from linear(f"{name}.to_v", inner, context, part)
    yield from linear(f"{name}.to_out.0", query, inner, part)


def _feed_forward(name: str, dim: int, part: str) -> Tensors:
    yield from linear(f"{name}.net.0.proj", 4 * dim, dim, part)
    yield from linear(f"{name}.net.2", dim, 4 * dim, part)


def _adaln(name: str, dim: int, slots: int) -> Tensors:
    yield from linear(f"{name}.emb.timestep_embedder.linear_1", dim, FREQUENCIES, "time")
    yield from linear(f"{name}.emb.timestep_embedder.linear_2", dim, dim, "time")
    yield from linear(f"{name}.linear", slots * dim, dim, "time")


def _caption(name: str, dim: int, text: int) -> Tensors:
    yield from linear(f"{name}.linear_1", dim, text, "text")
    yield from linear(f"{name}.linear_2", dim, dim, "text")
