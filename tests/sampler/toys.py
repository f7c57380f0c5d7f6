"""Toy models in ComfyUI's own classes: networks that answer with what they were given.

Only importable inside ComfyUI, see conftest.py.
"""

from __future__ import annotations

import comfy.conds
import comfy.controlnet
import comfy.latent_formats
import comfy.model_base
import comfy.model_patcher
import comfy.samplers
import comfy.supported_models
import comfy.supported_models_base
import torch

CPU = torch.device("cpu")


class Format(comfy.latent_formats.LatentFormat):
    """4 channels, 8 px, no scale."""

    latent_channels = 4
    scale_factor = 1.0


class Echo(torch.nn.Module):
    """A network that answers with `answer(x, inputs)` and keeps what it was called with."""

    dtype = torch.float32

    def __init__(self, answer, patch_size=None):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.answer = answer
        self.calls = []
        if patch_size is not None:
            self.patch_size = patch_size

    def forward(self, x, t, context=None, control=None, transformer_options=None, **inputs):
        inputs = {**inputs, "context": context, "control": control, "t": t}
        inputs["options"] = dict(transformer_options or {})
        self.calls.append((x, inputs))
        return self.answer(x, inputs)


class ToyModel(comfy.model_base.BaseModel):
    """Its network's answer is the prediction. `toy_inputs` of a conditioning become inputs."""

    def extra_conds(self, **kwargs):
        out = super().extra_conds(**kwargs)
        if kwargs.get("denoise_mask") is not None and kwargs.get("noise").ndim > 3:
            out["denoise_mask"] = comfy.conds.CONDRegular(kwargs["denoise_mask"])
        if kwargs.get("latent_shapes") and len(kwargs["latent_shapes"]) > 1:
            out["latent_shapes"] = comfy.conds.CONDConstant(kwargs["latent_shapes"])
        out.update(kwargs.get("toy_inputs", {}))
        return out


def toy(answer, patch_size=None, kind=None):
    """A ModelPatcher around an Echo; its predictions are the answers, bit for bit."""
    config = comfy.supported_models_base.BASE({"disable_unet_model_creation": True})
    config.latent_format = Format()
    kind = comfy.model_base.ModelType.IMG_TO_IMG if kind is None else kind
    config.sampling_settings = {}
    model = ToyModel(config, kind, device=CPU)
    model.diffusion_model = Echo(answer, patch_size)
    return comfy.model_patcher.ModelPatcher(model, load_device=CPU, offload_device=CPU)


def cond(seed=1, tokens=7, width=16, **options):
    """A conditioning with a random embedding."""
    g = torch.Generator().manual_seed(seed)
    return [[torch.randn(1, tokens, width, generator=g), {**options}]]


def predictions(model, shape, positive=None, negative=None, cfg=1.0, noise_mask=None, steps=1,
                latent=None):  # fmt: skip
    """(cond, uncond) predictions of every step of euler, as they leave the tiles."""
    found = []

    def note(args):
        found.append((args["cond_denoised"].clone(), args["uncond_denoised"].clone()))
        return args["denoised"]

    model = model.clone()
    model.set_model_sampler_post_cfg_function(note, disable_cfg1_optimization=cfg != 1.0)
    run(model, shape, positive, negative, cfg, noise_mask, steps, latent)
    return found


def run(model, shape, positive=None, negative=None, cfg=1.0, noise_mask=None, steps=1,
        latent=None, sampler="euler", callback=None, seed=7):  # fmt: skip
    """Sample; shape may be a list of shapes for a packed latent."""
    import comfy.nested_tensor
    import comfy.sample

    g = torch.Generator().manual_seed(seed)
    shapes = shape if isinstance(shape, list) else [shape]
    noises = [torch.randn(s, generator=g) for s in shapes]
    starts = [torch.zeros(s) for s in shapes] if latent is None else latent
    noise, start = noises[0], starts[0] if isinstance(starts, list) else starts
    if len(shapes) > 1:
        noise = comfy.nested_tensor.NestedTensor(noises)
        start = comfy.nested_tensor.NestedTensor(starts)
    sigmas = comfy.samplers.calculate_sigmas(
        model.get_model_object("model_sampling"), "normal", steps
    )
    with torch.inference_mode():
        out = comfy.sample.sample_custom(
            model, noise, cfg, sampler_object(sampler), sigmas, positive or cond(),
            negative or cond(2), start, noise_mask=noise_mask, callback=callback,
            disable_pbar=True, seed=seed,
        )  # fmt: skip
    return list(out.unbind()) if getattr(out, "is_nested", False) else [out]


def sampler_object(sampler):
    """A SAMPLER by name, or as it is."""
    return comfy.samplers.sampler_object(sampler) if isinstance(sampler, str) else sampler


def unet(width=32, **changes):
    """A tiny UNet like SD1.5's, random weights."""
    import tiny

    config = dict(
        image_size=32, in_channels=4, out_channels=4, model_channels=width,
        num_res_blocks=[1, 1], channel_mult=[1, 2], transformer_depth=[1, 1],
        transformer_depth_output=[1, 1, 1, 1], transformer_depth_middle=1, num_heads=2,
        context_dim=16, use_spatial_transformer=True, use_linear_in_transformer=False,
        adm_in_channels=None, use_temporal_attention=False, use_checkpoint=False, legacy=False,
    ) | changes  # fmt: skip
    config = {**config, "num_classes": None} if config["adm_in_channels"] is None else config
    return tiny.patcher(tiny.build(comfy.supported_models.SD15, config))


class ToyControlModel(torch.nn.Module):
    """A control network whose only output is its hint, one value per latent."""

    dtype = torch.float32

    def __init__(self, step=8):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.step = step
        self.hints = []

    def forward(self, x, hint, timesteps, context, **extra):
        self.hints.append(hint)
        return {"middle": [hint[..., :: self.step, :: self.step].clone()]}


def control_net(hint, step=8, strength=1.0, previous=None):
    """A ControlNet of ComfyUI around the toy network, with its hint set."""
    net = comfy.controlnet.ControlNet(ToyControlModel(step), load_device=CPU)
    made = net.copy().set_cond_hint(hint, strength)
    return made if previous is None else made.set_previous_controlnet(previous)


class ToyAdapterModel(torch.nn.Module):
    """A T2I adapter whose feature is its hint, one value per latent."""

    unshuffle_amount = 8
    input_channels = 3

    def forward(self, hint):
        return {"middle": [hint[..., ::8, ::8].clone()]}


def adapter(hint):
    """A T2IAdapter of ComfyUI with its hint set."""
    made = comfy.controlnet.T2IAdapter(ToyAdapterModel(), 3, 8, "nearest-exact", device=CPU)
    return made.copy().set_cond_hint(hint, 1.0)
