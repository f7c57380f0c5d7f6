"""From training checkpoints to the folder that `diffusers.WanPipeline.from_pretrained` reads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import torch
from torch import Tensor

from .text import make_encoder, make_tokenizer
from .transformer import make_transformer
from .vae import BASE_DIM, LATENTS, fold_statistics

FLOW_SHIFT = 5.0
"""The scheduler's default shift: enough steps where the prompt is decided (train_transformer)."""

MAX_BYTES = 25_000_000
"""Largest size of the weights folder, all files together."""

Weights = dict[str, Tensor]


def pack(
    out: str | os.PathLike[str], vae: Weights, mean: Tensor, std: Tensor, weights: Weights
) -> int:
    """Write the pipeline in float16 to `out` and return its size in bytes.

    vae         state of the trained AutoencoderKLWan, before folding
    mean, std   [16] statistics of its latents, which the transformer was trained with
    weights     "text." and "dit." parameters, averaged over training

    The folder is written beside `out` and renamed, so a reader never sees half of it.
    Raises ValueError when it is larger than MAX_BYTES.
    """
    from diffusers import AutoencoderKLWan, UniPCMultistepScheduler, WanPipeline

    model_vae = AutoencoderKLWan(base_dim=BASE_DIM, z_dim=LATENTS)
    model_vae.load_state_dict(vae)
    # Folding in float32, before rounding: the rounding is then the only loss. Float16 keeps
    # three bits more of a weight than bfloat16, and these weights need no wider exponents.
    fold_statistics(model_vae, mean, std)
    transformer, encoder = make_transformer(), make_encoder()
    _load(transformer, weights, "dit.")
    _load(encoder, weights, "text.")
    pipeline = WanPipeline(
        tokenizer=make_tokenizer(),
        text_encoder=encoder.half(),
        vae=model_vae.half(),
        transformer=transformer.half(),
        scheduler=UniPCMultistepScheduler(
            prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=FLOW_SHIFT
        ),
    )
    target = Path(out)
    draft = target.with_name(target.name + ".new")
    shutil.rmtree(draft, ignore_errors=True)
    pipeline.save_pretrained(draft)
    _tidy(draft)
    size = folder_bytes(draft)
    if size > MAX_BYTES:
        raise ValueError(
            f"{draft} has {size} bytes, over the limit of {MAX_BYTES}; make the model narrower"
        )
    shutil.rmtree(target, ignore_errors=True)
    os.replace(draft, target)
    return size


def folder_bytes(folder: str | os.PathLike[str]) -> int:
    """Size of all files under a folder, in bytes."""
    return sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())


def _load(model: torch.nn.Module, weights: Weights, prefix: str) -> None:
    """Fill every parameter; a missing one is an error, a tied twin is not."""
    own = dict(model.named_parameters())
    missing = [n for n in own if prefix + n not in weights and "embed_tokens" not in n]
    if missing:
        raise ValueError(f"the checkpoint lacks {missing[:3]}; train again with this version")
    with torch.no_grad():
        for name, p in own.items():
            if prefix + name in weights:
                p.copy_(weights[prefix + name])


def _tidy(folder: Path) -> None:
    """Make the files independent of the machine that wrote them."""
    for file in folder.rglob("*.json"):
        data = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(data, dict) and "_name_or_path" in data:
            del data["_name_or_path"]
            file.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    for file in folder.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
