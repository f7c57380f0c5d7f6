"""Write the embedded model under ComfyUI's native Wan key names.

    python -m h3video.nano.export_comfy OUT_DIR [--weights FOLDER]

OUT_DIR is a ComfyUI `models` folder. Two files are written there:
`diffusion_models/h3video_nano.safetensors` (UNETLoader) and
`vae/h3video_nano_vae.safetensors` (VAELoader). Values and dtypes stay as they
are. ComfyUI has no loader for a text encoder this small: prompts are encoded
by this package.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

DIT_FILE = "diffusion_models/h3video_nano.safetensors"
VAE_FILE = "vae/h3video_nano_vae.safetensors"

# (pattern of a diffusers key, ComfyUI's name); the first match wins.
_DIT_RULES: tuple[tuple[str, str], ...] = (
    (r"patch_embedding\.(\w+)", r"patch_embedding.\1"),
    (r"condition_embedder\.text_embedder\.linear_1\.(\w+)", r"text_embedding.0.\1"),
    (r"condition_embedder\.text_embedder\.linear_2\.(\w+)", r"text_embedding.2.\1"),
    (r"condition_embedder\.time_embedder\.linear_1\.(\w+)", r"time_embedding.0.\1"),
    (r"condition_embedder\.time_embedder\.linear_2\.(\w+)", r"time_embedding.2.\1"),
    (r"condition_embedder\.time_proj\.(\w+)", r"time_projection.1.\1"),
    (r"scale_shift_table", r"head.modulation"),
    (r"proj_out\.(\w+)", r"head.head.\1"),
    (r"blocks\.(\d+)\.scale_shift_table", r"blocks.\1.modulation"),
    (r"blocks\.(\d+)\.norm2\.(\w+)", r"blocks.\1.norm3.\2"),
    (r"blocks\.(\d+)\.ffn\.net\.0\.proj\.(\w+)", r"blocks.\1.ffn.0.\2"),
    (r"blocks\.(\d+)\.ffn\.net\.2\.(\w+)", r"blocks.\1.ffn.2.\2"),
    (r"blocks\.(\d+)\.attn1\.(.+)", r"blocks.\1.self_attn.\2"),
    (r"blocks\.(\d+)\.attn2\.(.+)", r"blocks.\1.cross_attn.\2"),
)

_RESIDUAL = {
    "norm1": "residual.0", "conv1": "residual.2", "norm2": "residual.3",
    "conv2": "residual.6", "conv_shortcut": "shortcut",
}  # fmt: skip
_UP_STRIDE = 4
"""Modules in one of Wan's upsampling levels: three residual blocks and a resampler."""


def dit_key(key: str) -> str:
    """ComfyUI's name of a transformer weight. Raises KeyError for a name it does not know."""
    for pattern, name in _DIT_RULES:
        if match := re.fullmatch(pattern, key):
            out = match.expand(name)
            # to_q -> q, to_out.0 -> o; norm_q and norm_k keep their names
            return re.sub(r"\.to_([qkv])\.", r".\1.", out).replace(".to_out.0.", ".o.")
    raise KeyError(f"no ComfyUI name for the transformer weight {key}")


def vae_key(key: str) -> str:
    """ComfyUI's name of a VAE weight. Raises KeyError for a name it does not know."""
    if match := re.fullmatch(r"(post_)?quant_conv\.(\w+)", key):
        return f"{'conv2' if match[1] else 'conv1'}.{match[2]}"
    match = re.fullmatch(r"(encoder|decoder)\.(.+)", key)
    if match is None:
        raise KeyError(f"no ComfyUI name for the VAE weight {key}")
    side, rest = match[1], match[2]
    heads = (
        (r"conv_in\.(\w+)", lambda m: f"conv1.{m[1]}"),
        (r"norm_out\.gamma", lambda m: "head.0.gamma"),
        (r"conv_out\.(\w+)", lambda m: f"head.2.{m[1]}"),
        (r"mid_block\.attentions\.0\.(.+)", lambda m: f"middle.1.{m[1]}"),
        (r"mid_block\.resnets\.(\d)\.(.+)", lambda m: f"middle.{2 * int(m[1])}.{_part(m[2])}"),
        (r"down_blocks\.(\d+)\.(.+)", lambda m: f"downsamples.{m[1]}.{_part(m[2])}"),
        (
            r"up_blocks\.(\d+)\.resnets\.(\d+)\.(.+)",
            lambda m: f"upsamples.{_UP_STRIDE * int(m[1]) + int(m[2])}.{_part(m[3])}",
        ),
        (
            r"up_blocks\.(\d+)\.upsamplers\.0\.(.+)",
            lambda m: f"upsamples.{_UP_STRIDE * int(m[1]) + _UP_STRIDE - 1}.{m[2]}",
        ),
    )
    for pattern, name in heads:
        if found := re.fullmatch(pattern, rest):
            return f"{side}.{name(found)}"
    raise KeyError(f"no ComfyUI name for the VAE weight {key}")


def _part(rest: str) -> str:
    """A weight inside a residual block; resamplers keep their names."""
    name, dot, tail = rest.partition(".")
    return _RESIDUAL.get(name, name) + dot + tail


def rename(weights: Mapping[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """Weights under new names. Raises ValueError when two of them would collide."""
    out = {name(key): value for key, value in weights.items()}
    if len(out) != len(weights):
        raise ValueError(f"{len(weights)} weights became {len(out)} names; the mapping is wrong")
    return out


PathLike = str | os.PathLike[str]


def export(out: PathLike, weights: PathLike | None = None) -> list[Path]:
    """Write both files under `out` (a ComfyUI `models` folder); returns their paths."""
    from safetensors.torch import load_file, save_file

    from . import path

    source, target = Path(weights or path()), Path(out)
    jobs = (("transformer", dit_key, DIT_FILE), ("vae", vae_key, VAE_FILE))
    written = []
    for part, name, file in jobs:
        tensors = load_file(source / part / "diffusion_pytorch_model.safetensors")
        final = target / file
        final.parent.mkdir(parents=True, exist_ok=True)
        draft = final.with_name(final.name + ".new")
        save_file(rename(tensors, name), draft, metadata={"format": "pt", "model": "h3video nano"})
        os.replace(draft, final)
        written.append(final)
    return written


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m h3video.nano.export_comfy")
    parser.add_argument("out", metavar="OUT_DIR", help="ComfyUI's models folder")
    parser.add_argument("--weights", help="folder in diffusers format (default: the embedded one)")
    args = parser.parse_args(argv)
    for file in export(args.out, args.weights):
        print(f"{file}  {file.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
