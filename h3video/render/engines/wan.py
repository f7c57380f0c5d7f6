"""Render a Wan job with diffusers, one phase at a time: only that phase's parts are resident."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...errors import UsageError
from ...tiling.chunks import frames_of
from ..job import RenderJob
from ..source import ModelSource
from .diffusers import apply_hex_tiling, describe
from .wan_parts import load_parts, place, scheduler_of

OnTile = Callable[[str, float], None]


class WanEngine:
    """Text encoding, denoising and decoding of one job.

    on_tile   called with (phase, share of the phase) as work is done
    """

    def __init__(self, source: ModelSource, job: RenderJob, on_tile: OnTile | None = None) -> None:
        self.source, self.job, self.on_tile = source, job, on_tile
        self.device = torch.device(job.device)
        self.dtype = getattr(torch, job.dtype)
        # Decoders lose more to 16 bit than denoisers; on a CPU the 3-D convolutions of
        # float32 are several times slower, and the pictures are 8 bit.
        self.vae_dtype = self.dtype if self.device.type == "cpu" else torch.float32
        self._denoiser: Any = None
        self._decoder: Any = None

    def encode(self) -> tuple[Any, Any]:
        """Prompt embeddings (positive, negative or None), on the device."""
        return self.encode_all([(self.job.prompt, self.job.negative)])[0]

    def encode_all(self, texts: list[tuple[str, str]]) -> list[tuple[Any, Any]]:
        """Embeddings of (prompt, negative) pairs; the encoder is loaded once and let go."""
        pipe = load_parts(self.source, self.job, ("tokenizer", "text_encoder"), self.dtype)
        pipe.text_encoder.to(self.device)
        found = []
        for prompt, negative in texts:
            with torch.inference_mode():
                found.append(
                    pipe.encode_prompt(
                        prompt, negative or None, do_classifier_free_guidance=self.job.cfg > 1.0,
                        max_sequence_length=512, device=self.device,
                    )
                )  # fmt: skip
        return found

    def denoise(
        self,
        embeds: tuple[Any, Any],
        on_step: Callable[[int, Any], None] | None = None,
        *,
        noise: Any = None,
        head: Any = None,
        image: Any = None,
    ) -> Any:
        """Latents [1, C, T, h, w] after all steps; `on_step(steps done, latents)` after each.

        noise   float32 of the latents' shape; None: drawn from the job's seed
        head    latents [1, C, V, h, w] that the clip shall begin with: kept at each step's noise
                level while sampling, and exactly so at the end
        image   uint8 numpy [H, W, 3] to start from, for models that do
        """
        job, pipe = self.job, self._sampler()
        passes = job.steps * (2 if job.cfg > 1.0 else 1)

        def on_tile(phase: str, share: float) -> None:
            if self.on_tile is not None:
                self.on_tile(phase, share / passes)

        # Noise is drawn for the whole frame on the CPU: one seed, one noise, whatever the
        # tiles, the device and the dtype are.
        generator = torch.Generator("cpu").manual_seed(job.seed)
        frozen = None if head is None else FrozenHead(pipe.scheduler, head, noise)
        if frozen is not None:
            noise = frozen.begin(noise, job.steps, self.device)

        def step_end(_pipe: Any, i: int, _t: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            if frozen is not None:
                tensors = {**tensors, "latents": frozen.keep(tensors["latents"], i + 1)}
            if on_step is not None:
                on_step(i + 1, tensors["latents"])
            return tensors

        apply_hex_tiling(pipe, **job.tiling(), tile_vae=False, on_tile=on_tile)
        started = {"image": picture(image)} if self.source.from_image else {}
        result = pipe(
            prompt_embeds=embeds[0], negative_prompt_embeds=embeds[1],
            width=job.width, height=job.height, num_frames=job.frames,
            num_inference_steps=job.steps, guidance_scale=job.cfg, generator=generator,
            latents=noise, output_type="latent", callback_on_step_end=step_end, **started,
        )  # fmt: skip
        return result.frames

    def _sampler(self) -> Any:
        """The pipeline without text encoder; kept for the next call."""
        if self._denoiser is None:
            wanted = ["transformer", "transformer_2", "scheduler"]
            if self.source.from_image:  # the picture is encoded beside the transformer
                wanted += ["vae", "image_encoder", "image_processor"]
            pipe = load_parts(self.source, self.job, wanted, self.dtype)
            pipe.scheduler = scheduler_of(pipe.scheduler, self.job)
            pipe.vae_scale_factor_spatial = self.source.family.vae_space
            pipe.vae_scale_factor_temporal = self.source.family.vae_time
            pipe.set_progress_bar_config(disable=True)
            place(pipe, self.job, self.device)
            self._denoiser = pipe
        return self._denoiser

    def forget(self, *parts: str) -> None:
        """Let go of the "denoiser", the "decoder" (none named: both); the next call loads them."""
        held = [p for p in parts or ("denoiser", "decoder") if getattr(self, f"_{p}") is not None]
        for part in held:
            setattr(self, f"_{part}", None)
        if held:  # modules are in cycles; collecting takes a second with everything imported
            gc.collect()

    def decode(self, latents: Any) -> Any:
        """Frames uint8 numpy [F, H, W, 3] of latents [1, C, T, h, w]."""
        import numpy as np

        count = frames_of(self.source.family, latents.shape[2])
        out: Any = None
        for f, frame in enumerate(self.stream(latents)):
            if out is None:
                out = np.empty((count, *frame.shape), np.uint8)
            out[f] = frame
        return out

    def stream(self, latents: Any) -> Iterator[Any]:
        """The same frames one by one; a block of latent frames and its pixels are held.

        latents   a tensor [1, C, T, h, w], or a LatentFile
        """
        from ..decode_stream import stream_frames

        crops = self.job.crop_plan(self.source.family)
        yield from stream_frames(
            self._vae(), latents, crops, lambda share: self._on_tile("decode", share)
        )

    def _vae(self) -> Any:
        """The decoder; kept for the next call."""
        if self._decoder is None:
            pipe = load_parts(self.source, self.job, ("vae",), self.vae_dtype)
            pipe.vae.to(self.device)
            if self.device.type == "cpu":
                channels_last(pipe.vae)
            self._decoder = pipe.vae
        return self._decoder

    def _on_tile(self, phase: str, share: float) -> None:
        if self.on_tile is not None:
            self.on_tile(phase, share)


class FrozenHead:
    """Latent frames at the head of a clip that are known: the end of the chunk before.

    A flow model's latents at noise level s are (1 - s) x + s n. Before every step the head is set
    to that, with the noise that it was made from, so the model sees what it would see had it made
    the head itself; whatever the solver did to it is thrown away.
    """

    def __init__(self, scheduler: Any, head: Any, noise: Any) -> None:
        """Raises UsageError for a scheduler that is not a flow's."""
        config = scheduler.config
        flow = type(scheduler).__name__.startswith("FlowMatch") or (
            getattr(config, "prediction_type", "") == "flow_prediction"
        )
        if not flow:
            raise UsageError(
                f"{type(scheduler).__name__} is no flow scheduler, so a chunk cannot continue the "
                "one before; use a sampler that is (unipc, euler, dpm++)"
            )
        self.scheduler = scheduler
        self.count = head.shape[2]
        self.head = head.float()
        self.noise = noise[:, :, : self.count].float()

    def begin(self, noise: Any, steps: int, device: Any) -> Any:
        """The latents to start from: noise, with the head at the first step's level."""
        self.scheduler.set_timesteps(steps, device=device)
        return self.keep(noise.to(device, torch.float32).clone(), 0)

    def keep(self, latents: Any, step: int) -> Any:
        """Latents with the head at the level that `step` starts from; exact after the last."""
        level = self.scheduler.sigmas[step].to(latents.device, torch.float32)
        head, noise = self.head.to(latents.device), self.noise.to(latents.device)
        kept = head if step == len(self.scheduler.sigmas) - 1 else head + level * (noise - head)
        latents[:, :, : self.count] = kept.to(latents.dtype)
        return latents


def picture(image: Any) -> Any:
    """A PIL image of uint8 numpy [H, W, 3]."""
    from PIL import Image

    return Image.fromarray(image)


def channels_last(vae: Any) -> None:
    """Lay convolution kernels out channels-last: a CPU decodes 2.4 times as fast with them."""
    for module in vae.modules():
        if isinstance(module, torch.nn.Conv3d):
            layout = torch.channels_last_3d
        elif isinstance(module, torch.nn.Conv2d):
            layout = torch.channels_last
        else:
            continue
        module.weight.data = module.weight.data.contiguous(memory_format=layout)


__all__ = ["WanEngine", "describe"]
