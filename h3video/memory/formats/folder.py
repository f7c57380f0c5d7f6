"""A folder of model files: a diffusers pipeline, ComfyUI's `models` folder, or just files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from .header import FileHeader, open_regular, read_header
from .safetensors import MAX_JSON, parse_object

MAX_FILES = 2000
MAX_DEPTH = 3

ROLES = {
    "transformer": "transformer", "transformer_2": "transformer", "unet": "transformer",
    "diffusion_models": "transformer", "checkpoints": "checkpoint",
    "text_encoder": "text encoder", "text_encoder_2": "text encoder",
    "text_encoder_3": "text encoder", "text_encoders": "text encoder", "clip": "text encoder",
    "image_encoder": "image encoder", "clip_vision": "image encoder", "vae": "vae",
    "audio_vae": "vae", "vocoder": "vae", "connectors": "transformer", "loras": "lora",
    "controlnet": "control", "upscale_models": "upscaler", "latent_upscale_models": "upscaler",
}  # fmt: skip
"""What a subfolder holds, by the names that diffusers and ComfyUI use."""


@dataclass(frozen=True)
class Part:
    """One model of a folder: `name` relative to it, and the role of the subfolder it is in."""

    name: str
    role: str
    header: FileHeader


@dataclass(frozen=True)
class Folder:
    """What a folder holds.

    kind       "diffusers", "comfyui" or "files"
    pipeline   the class that diffusers' model_index.json names, or ""
    configs    the config.json of every diffusers part, by subfolder
    problems   files that could not be read, each with the reason
    """

    path: str
    kind: str
    parts: tuple[Part, ...]
    pipeline: str = ""
    configs: dict[str, dict[str, Any]] | None = None
    problems: tuple[str, ...] = ()

    @property
    def file_bytes(self) -> int:
        """Of all model files."""
        return sum(p.header.file_bytes for p in self.parts)


def read_folder(path: str | os.PathLike[str]) -> Folder:
    """All model files of a folder and its subfolders, headers only.

    A damaged file is a problem of the folder, not an error. Links to folders are not followed.
    Raises UsageError when there is no such folder, it holds no model, or too many files.
    """
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f"{path} is no folder; give a model's file or folder")
    files = list(_model_files(root))
    parts, problems = [], []
    for file in _without_shards(files):
        name = file.relative_to(root).as_posix()
        role = next((ROLES[p] for p in reversed(name.split("/")[:-1]) if p in ROLES), "")
        if file.suffix in (".bin", ".pt", ".pth", ".ckpt"):
            problems.append(f"{name} is pickled: not read, as loading it can run code")
            continue
        try:
            parts.append(Part(name, role, read_header(file)))
        except UsageError as e:
            problems.append(str(e))
    if not parts and not problems:
        raise UsageError(
            f"{path} holds no model file; give a folder with .safetensors or .gguf files in it "
            f"or up to {MAX_DEPTH} folders deeper"
        )
    return _describe(root, tuple(parts), problems)


def _describe(root: Path, parts: tuple[Part, ...], problems: list[str]) -> Folder:
    index = root / "model_index.json"
    if index.is_file():
        pipeline = _json(index, problems).get("_class_name", "")
        names = {p.name.split("/")[0] for p in parts if "/" in p.name}
        configs = {
            n: _json(root / n / "config.json", problems)
            for n in sorted(names)
            if (root / n / "config.json").is_file()
        }
        return Folder(str(root), "diffusers", parts, str(pipeline), configs, tuple(problems))
    inside = {p.name.split("/")[0] for p in parts if "/" in p.name}
    inside |= {p.name.split("/")[1] for p in parts if p.name.count("/") > 1}
    comfy = inside & {"diffusion_models", "unet", "text_encoders", "checkpoints", "clip", "loras"}
    return Folder(str(root), "comfyui" if comfy else "files", parts, "", None, tuple(problems))


def _json(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        with open_regular(path) as (file, size):
            if size > MAX_JSON:
                raise UsageError(f"{path} has {size} bytes, too many for a configuration")
            return parse_object(path, file.read(size))
    except UsageError as e:
        problems.append(str(e))
        return {}


SUFFIXES = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt")


def _model_files(root: Path) -> Iterator[Path]:
    """Files with a model's suffix and indexes, sorted, without following links to folders."""
    count = 0
    for folder, subfolders, names in os.walk(root, followlinks=False):
        here = Path(folder)
        if len(here.relative_to(root).parts) >= MAX_DEPTH:
            subfolders.clear()
        subfolders.sort()
        for name in sorted(names):
            count += 1
            if count > MAX_FILES:
                raise UsageError(
                    f"{root} holds more than {MAX_FILES} files; give the model's own folder"
                )
            if name.endswith((*SUFFIXES, ".safetensors.index.json")):
                yield here / name


def _without_shards(files: list[Path]) -> Iterator[Path]:
    """Indexes instead of their shards; of several variants of one part, each on its own."""
    covered: set[Path] = set()
    for index in (f for f in files if f.name.endswith(".index.json")):
        stem = index.name.removesuffix(".safetensors.index.json")
        # diffusion_pytorch_model.fp16.safetensors.index.json covers
        # diffusion_pytorch_model.fp16-00001-of-00002.safetensors
        for f in files:
            if f.parent == index.parent and f.name.startswith(f"{stem}-"):
                covered.add(f)
    for file in files:
        if file not in covered:
            yield file
