"""The engine `diffusers`: chunks of a Wan pipeline, made in this process.

Continuity: text-to-video models freeze the last latent frames of the chunk before at the head of
the next; image-to-video models start from its last picture.
"""

from __future__ import annotations

import gc
import hashlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from ...errors import UsageError
from ..fingerprint import file_identity, folder_identity
from ..job import RenderJob
from ..source import find_model
from ..weights_files import parse_lora
from .protocol import FIRST_FRAME, LATENTS, Cancel, ChunkRequest, ChunkResult, Progress
from .wan import WanEngine
from .wan_parts import load_parts, place, scheduler_of, sigmas_of

OPTIONS: dict[str, str] = {}


class DiffusersEngine:
    """Chunks of one job. `texts` are all (prompt, negative) pairs that will come: they are encoded
    together, so that the text encoder is loaded once."""

    name = "diffusers"
    gives = "latents"

    def __init__(self, job: RenderJob, texts: list[tuple[str, str]]) -> None:
        self.source = find_model(job.model).local()
        self.job = job
        self.continuity = FIRST_FRAME if self.source.from_image else LATENTS
        self._wan: WanEngine | None = None
        self._texts = list(dict.fromkeys(texts))
        self._embeds: dict[tuple[str, str], Any] = {}

    def identity(self) -> dict[str, Any]:
        """Weights, LoRAs, the picture, the sampler and its noise levels, the tile plan."""
        job, folder = self.job, Path(self.source.folder)
        replaced = ("transformer", "transformer_2")[: len(job.gguf)]
        wanted = [p for p in (*self.source.parts, "model_index.json") if p not in replaced]
        pipe = load_parts(self.source, job, ("scheduler",), torch.float32)
        scheduler = scheduler_of(pipe.scheduler, job)
        if job.offload != "none":
            place(pipe, replace(job), torch.device(job.device))
        found: dict[str, Any] = {
            "model": {"file": job.model, "files": folder_identity(folder, wanted)},
            "gguf": [{"file": f, **file_identity(Path(f))} for f in job.gguf],
            "lora": [_lora(text) for text in job.lora],
            "sampler": {"class": type(scheduler).__name__, **_plain(scheduler.config)},
            "sigmas": sigmas_of(scheduler, job.steps),
            "tiles": self._tiles(),
        }
        if job.image:
            found["inputs"] = {"image": {"file": job.image, **file_identity(Path(job.image))}}
        return found

    def _tiles(self) -> dict[str, Any]:
        plan = self.job.token_plan(self.source.family, self.source.denoiser(self.job.dtype))
        crops = self.job.crop_plan(self.source.family)
        text = repr((plan.to_json(), crops.to_json())).encode()
        return {
            "count": len(plan.tiles), "hex_res": plan.grid.res, "tokens": plan.tile_tokens,
            "crops": len(crops.tiles), "sha256": hashlib.sha256(text).hexdigest(),
        }  # fmt: skip

    def generate(self, request: ChunkRequest, progress: Progress, cancel: Cancel) -> ChunkResult:
        """Sample a chunk; see Engine."""
        wan = self._engine(request, progress, cancel)
        if not self.source.from_image:
            wan.forget("decoder")
        embeds = self._encoded(wan, (request.prompt, request.negative))
        progress("encode", 1.0)
        cancel.check()
        noise = field_noise(request, wan) if _needs_noise(request) else None
        latents = wan.denoise(
            embeds, lambda _done, _latents: cancel.check(), noise=noise, head=request.head,
            image=request.first_frame,
        )  # fmt: skip
        return ChunkResult(latents=latents.detach().float().cpu().contiguous())

    def decode(
        self, latents: Any, request: ChunkRequest, progress: Progress, cancel: Cancel
    ) -> ChunkResult:
        """Frames of a chunk's latents; see Engine."""
        wan = self._engine(request, progress, cancel)
        if not self.source.from_image:  # that goes on sampling after every decoded chunk
            wan.forget("denoiser")
        return ChunkResult(frames=wan.decode(latents))

    def _engine(self, request: ChunkRequest, progress: Progress, cancel: Cancel) -> WanEngine:
        job = chunk_job(self.job, request)

        def on_tile(phase: str, share: float) -> None:
            cancel.check()
            progress(phase, share)

        if self._wan is None:
            self._wan = WanEngine(self.source, job, on_tile)
        self._wan.job, self._wan.on_tile = job, on_tile
        return self._wan

    def _encoded(self, wan: WanEngine, wanted: tuple[str, str]) -> Any:
        if wanted not in self._embeds:
            texts = list(dict.fromkeys([*self._texts, wanted]))
            wan.forget()
            self._embeds = dict(zip(texts, wan.encode_all(texts)))
            empty_caches()
        return self._embeds[wanted]

    def release(self, everything: bool = False) -> None:
        """Free what the next chunk does not need; see Engine."""
        if everything and self._wan is not None:
            self._wan.forget()
            self._wan = None
        empty_caches()

    def close(self) -> None:
        """Let go of everything."""
        self._embeds = {}
        self.release(everything=True)


def open_engine(document: dict[str, Any], options: dict[str, str]) -> DiffusersEngine:
    """The engine of a job document. Raises UsageError."""
    if options:
        raise UsageError(f"engine diffusers takes no option {', '.join(options)}")
    texts = [(c["prompt"], c["negative"]) for c in document["chunks"]]
    return DiffusersEngine(job_of(document), texts)


def job_of(document: dict[str, Any]) -> RenderJob:
    """The settings of a job document as a RenderJob for its longest chunk."""
    settings: dict[str, Any] = {
        k: tuple(v) if isinstance(v, list) else v for k, v in document["settings"].items()
    }
    known = {f.name for f in fields(RenderJob)}
    longest = max(c["frames"] for c in document["plan"]["chunks"])
    first = document["chunks"][0]
    return RenderJob(
        **{k: v for k, v in settings.items() if k in known}
        | {"prompt": first["prompt"], "negative": first["negative"], "frames": longest}
        | {"model": document["model"]["file"]}
        | {name: tuple(e["file"] for e in document.get(name, ())) for name in ("gguf",)}
        | {"lora": tuple(f"{e['file']}:{e['scale']:g}" for e in document.get("lora", ()))}
        | {"image": document.get("inputs", {}).get("image", {}).get("file", "")}
        | {"offload": document["engine"].get("offload", "none")}
    )


def chunk_job(job: RenderJob, request: ChunkRequest) -> RenderJob:
    """A job for one chunk."""
    return replace(
        job, prompt=request.prompt, negative=request.negative, frames=request.frames,
        seed=request.seed, decode_budget=request.decode_budget, **request.tiling,
    )  # fmt: skip


def _needs_noise(request: ChunkRequest) -> bool:
    return request.noise == "field" or request.head is not None


def field_noise(request: ChunkRequest, wan: WanEngine) -> Any:
    """Noise [1, C, T, h, w] of a chunk, float32 on the CPU.

    Each latent frame's noise comes from the seed and its position in the whole clip, so that
    neighbours agree where they overlap and never repeat. With noise "chunk" it is what the
    pipeline would draw for the chunk alone, with the head's by position.
    """
    unit = wan.source.family.vae_space
    size = (request.height // unit, request.width // unit)
    channels = int(wan.source.transformer.get("out_channels") or 16)
    shape = (1, channels, request.latent_frames, *size)
    if request.noise == "field":
        frames = [
            torch.randn(channels, *size, generator=seeded(request.seed, request.latent_start + t))
            for t in range(request.latent_frames)
        ]
        return torch.stack(frames, 1)[None]
    return torch.randn(shape, generator=torch.Generator("cpu").manual_seed(request.seed))


def seeded(seed: int, position: int) -> torch.Generator:
    """A generator for one latent frame of a clip; every pair gives unrelated numbers."""
    told = hashlib.sha256(f"h3video noise {seed} {position}".encode()).digest()
    return torch.Generator("cpu").manual_seed(int.from_bytes(told[:8], "little") >> 1)


def empty_caches() -> None:
    """Give memory that nothing uses back to the device and the system."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    if torch.backends.mps.is_available():
        torch.mps.empty_cache()


def _lora(text: str) -> dict[str, Any]:
    file, scale = parse_lora(text)
    return {"file": file, "scale": scale, **file_identity(Path(file).expanduser())}


def _plain(config: Any) -> dict[str, Any]:
    kept = (str, int, float, bool, list, type(None))
    return {
        k: v for k, v in sorted(dict(config).items()) if isinstance(v, kept) and k[:1] != "_"
    }
