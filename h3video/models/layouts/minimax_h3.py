"""MiniMax-H3, full and pruned (curve form): the official names, which ComfyUI's repack keeps."""

from __future__ import annotations

from .tensor import Tensor, Tensors, linear, norm

HIDDEN, INNER, FFN, TEXT = 5376, 7168, 14336, 5120
TIME_IN, TIME_MID, TIME = 256, 5376, 2688
VIDEO, AUDIO = 96, 32
"""Width of the stream, of attention, of the gated feed-forward, of the text states, of the
timestep's sines, middle and embedding, of a video token (24 channels, 2 x 2) and an audio row."""


def tensors(layers: int = 50, refiner: int = 2, rank: int = 0, curve: int = 1025) -> Tensors:
    """All tensors of a MiniMax-H3.

    rank    0: the full model, whose blocks turn the timestep's embedding into modulation with
            layers of 260 M weights each. Otherwise the pruned form: a table of `curve` timesteps
            in `rank` numbers, and layers of that width (stored at 16 bits, held at 32 by ComfyUI)
    """
    yield from linear("video_patch_proj", HIDDEN, VIDEO, "patch projections", wide=True)
    yield from linear("audio_patch_proj", HIDDEN, AUDIO, "patch projections", wide=True)
    yield from linear("condition_proj", HIDDEN, TEXT, "condition_proj")
    if rank:
        yield Tensor("adaln_t_table", (curve, rank), "time embedder", True)
    else:
        yield from linear("time_embedder.proj_in", TIME_MID, TIME_IN, "time embedder", wide=True)
        yield from linear("time_embedder.proj_out", TIME, TIME_MID, "time embedder", wide=True)
    yield Tensor("rope.inv_freq", (16,), "norms", True)
    for i in range(refiner):
        yield from _block(f"token_refiner.blocks.{i}", "token refiner")
    yield from norm("token_refiner.final_norm", HIDDEN, part="token refiner")
    for i in range(layers):
        name = f"blocks.{i}"
        yield from _block(name)
        yield from _adaln(name, 18, rank, "blocks AdaLN linear")
    yield from norm("final_layer.norm", HIDDEN, part="final layer")
    yield from _adaln("final_layer", 2, rank, "final layer")
    yield from linear("final_layer.video_out", VIDEO, HIDDEN, "final layer", wide=True)
    yield from linear("final_layer.audio_out", AUDIO, HIDDEN, "final layer", wide=True)


def _block(name: str, part: str = "") -> Tensors:
    """Norms, attention and the gated feed-forward; `part` overrides what they are counted under."""
    yield from norm(f"{name}.norm1", HIDDEN, part=part or "norms")
    yield from norm(f"{name}.norm2", HIDDEN, part=part or "norms")
    qkv, out = part or "blocks qkv", part or "blocks attn out"
    yield from linear(f"{name}.attn.qkv_proj", 3 * INNER, HIDDEN, qkv, bias=False)
    yield from norm(f"{name}.attn.q_norm", 128, part=part or "norms")
    yield from norm(f"{name}.attn.k_norm", 128, part=part or "norms")
    yield from linear(f"{name}.attn.out_proj", HIDDEN, INNER, out, bias=False)
    up, down = part or "blocks mlp.fc1", part or "blocks mlp.fc2"
    yield from linear(f"{name}.mlp.fc1", 2 * FFN, HIDDEN, up, bias=False)
    yield from linear(f"{name}.mlp.fc2", HIDDEN, FFN, down, bias=False)


def _adaln(name: str, slots: int, rank: int, part: str) -> Tensors:
    layer = f"{name}.adaln_proj.linear"
    yield from linear(layer, slots * HIDDEN, rank or TIME, part)
