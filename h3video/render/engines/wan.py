"""Render a Wan job with diffusers, one phase at a time: only that phase's parts are resident."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import torch

from ..job import RenderJob
from ..source import ModelSource
from .diffusers import apply_hex_tiling, describe

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

    def encode(self) -> tuple[Any, Any]:
        """Prompt embeddings (positive, negative or None), on the device."""
        pipe = self._pipeline("tokenizer", "text_encoder")
        pipe.text_encoder.to(self.device)
        with torch.inference_mode():
            positive, negative = pipe.encode_prompt(
                self.job.prompt,
                self.job.negative or None,
                do_classifier_free_guidance=self.job.cfg > 1.0,
                max_sequence_length=512,
                device=self.device,
            )
        return positive, negative

    def denoise(
        self, embeds: tuple[Any, Any], on_step: Callable[[int, Any], None] | None = None
    ) -> Any:
        """Latents [1, C, T, h, w] after all steps; `on_step(steps done, latents)` after each."""
        job = self.job
        pipe = self._pipeline("transformer", "transformer_2", "scheduler")
        self._move(pipe, "transformer", "transformer_2")
        pipe.vae_scale_factor_spatial = self.source.family.vae_space
        pipe.vae_scale_factor_temporal = self.source.family.vae_time
        pipe.set_progress_bar_config(disable=True)
        passes = job.steps * (2 if job.cfg > 1.0 else 1)

        def on_tile(phase: str, share: float) -> None:
            if self.on_tile is not None:
                self.on_tile(phase, share / passes)

        def step_end(_pipe: Any, i: int, _t: Any, tensors: dict[str, Any]) -> dict[str, Any]:
            if on_step is not None:
                on_step(i + 1, tensors["latents"])
            return tensors

        apply_hex_tiling(pipe, **job.tiling(), tile_vae=False, on_tile=on_tile)
        # Noise is drawn for the whole frame on the CPU: one seed, one noise, whatever the
        # tiles, the device and the dtype are.
        generator = torch.Generator("cpu").manual_seed(job.seed)
        result = pipe(
            prompt_embeds=embeds[0], negative_prompt_embeds=embeds[1],
            width=job.width, height=job.height, num_frames=job.frames,
            num_inference_steps=job.steps, guidance_scale=job.cfg, generator=generator,
            output_type="latent", callback_on_step_end=step_end,
        )  # fmt: skip
        return result.frames

    def decode(self, latents: Any) -> Any:
        """Frames uint8 numpy [F, H, W, 3] of latents [1, C, T, h, w]."""
        import numpy as np

        pipe = self._pipeline("vae", dtype=self.vae_dtype)
        self._move(pipe, "vae")
        apply_vae_tiling(pipe, self)
        vae = pipe.vae
        if self.device.type == "cpu":
            channels_last(vae)
        shape = (1, vae.config.z_dim, 1, 1, 1)
        mean = torch.tensor(vae.config.latents_mean, device=self.device).view(shape)
        std = torch.tensor(vae.config.latents_std, device=self.device).view(shape)
        z = (latents.to(self.device, torch.float32) * std + mean).to(self.vae_dtype)
        with torch.inference_mode():
            sample = vae.decode(z, return_dict=False)[0]  # [1, 3, F, H, W] in -1..1
        out = np.empty((sample.shape[2], *sample.shape[-2:], 3), np.uint8)
        for f in range(sample.shape[2]):
            picture = (sample[0, :, f].float() * 127.5 + 127.5).round().clamp(0, 255)
            out[f] = picture.to(torch.uint8).permute(1, 2, 0).cpu().numpy()
        return out

    def _pipeline(self, *parts: str, dtype: Any = None) -> Any:
        """A WanPipeline that holds only the named parts."""
        import warnings

        from diffusers import WanPipeline
        from diffusers.utils import logging as diffusers_logging
        from transformers.utils import logging as transformers_logging

        diffusers_logging.set_verbosity_error()
        diffusers_logging.disable_progress_bar()
        transformers_logging.disable_progress_bar()
        gc.collect()
        absent: dict[str, Any] = dict.fromkeys(
            {"tokenizer", "text_encoder", "transformer", "transformer_2", "vae"} - set(parts)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return WanPipeline.from_pretrained(
                self.source.folder, torch_dtype=dtype or self.dtype, **absent
            )

    def _move(self, pipe: Any, *parts: str) -> None:
        for part in parts:
            module = getattr(pipe, part, None)
            if module is not None:
                module.to(self.device)


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


def apply_vae_tiling(pipe: Any, engine: WanEngine) -> None:
    """Tile the decoder of a pipeline that has no transformer loaded."""
    from ...tiling.settings import HexSettings
    from .diffusers import HexTiling, wrap_vae

    job = engine.job
    settings = HexSettings(budget=job.budget, shape=job.shape, span=job.span, rotation=job.rotation)
    wrap_vae(HexTiling(engine.source.family, settings, engine.on_tile), pipe.vae)


__all__ = ["WanEngine", "describe"]
