"""Shared settings: small thread counts, quiet hypothesis, tiny real models."""

import os
import signal

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # two test workers on two cores
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from hypothesis import HealthCheck, settings

# What a shell starts in its background ignores SIGINT, and children inherit that: tests of Ctrl-C
# would wait forever under `make test &`.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "h3video",
    deadline=None,
    max_examples=60,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("h3video")


@pytest.fixture
def tiny_wan():
    """A WanTransformer3DModel with random weights: 4 blocks, 2 heads, a few thousand weights."""
    torch = pytest.importorskip("torch")
    from diffusers import WanTransformer3DModel

    torch.manual_seed(0)
    model = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=24, in_channels=16,
        out_channels=16, text_dim=64, freq_dim=64, ffn_dim=96, num_layers=4,
        cross_attn_norm=True, qk_norm="rms_norm_across_heads", rope_max_seq_len=1024,
    )  # fmt: skip
    return model.eval()


@pytest.fixture
def tiny_pipe(tiny_wan):
    """A WanPipeline on the tiny transformer and a tiny VAE, without a text encoder."""
    import torch
    from diffusers import AutoencoderKLWan, UniPCMultistepScheduler, WanPipeline

    torch.manual_seed(1)
    vae = AutoencoderKLWan(base_dim=4, z_dim=16).eval()
    scheduler = UniPCMultistepScheduler(
        prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0
    )
    pipe = WanPipeline(
        tokenizer=None, text_encoder=None, vae=vae, scheduler=scheduler, transformer=tiny_wan
    )
    pipe.set_progress_bar_config(disable=True)
    return pipe


def run_pipe(pipe, *, width=256, height=160, frames=5, steps=2, cfg=4.0, seed=0, output="latent"):
    """Run a pipeline without a text encoder on fixed random embeddings."""
    import torch

    g = torch.Generator().manual_seed(99)
    dtype = pipe.transformer.dtype
    embeds = torch.randn(1, 12, 64, generator=g).to(dtype)
    negative = torch.randn(1, 12, 64, generator=g).to(dtype)
    return pipe(
        prompt_embeds=embeds, negative_prompt_embeds=negative, width=width, height=height,
        num_frames=frames, num_inference_steps=steps, guidance_scale=cfg,
        generator=torch.Generator().manual_seed(seed), output_type=output,
    ).frames  # fmt: skip


@pytest.fixture(name="run_pipe")
def _run_pipe():
    return run_pipe
