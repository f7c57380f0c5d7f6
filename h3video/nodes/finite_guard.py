"""H3FiniteGuard: stop at the step, or the tensor, that breaks, and say what usually causes it."""

from __future__ import annotations

import logging
from typing import Any

from comfy_api.latest import io

log = logging.getLogger("h3video")


class H3FiniteGuard(io.ComfyNode):
    """Refuse NaN, infinity, and pictures that are black, tinted or noise."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3FiniteGuard",
            display_name="H3 Finite Guard",
            category="h3-video/memory",
            description="Passes a model, latent or images through and stops with the reason when "
            "they hold NaN or infinity; on a model it checks every sampling step. Images are "
            "checked for black, purple or green tint, and noise, too.",
            inputs=[
                io.MultiType.Input(
                    "value", [io.Model, io.Latent, io.Image],
                    tooltip="A model (checked at every step), a latent or images.",
                ),
                io.Combo.Input(
                    "suspicious", options=["stop", "warn", "ignore"], default="stop", optional=True,
                    tooltip="What to do with images that are black, tinted or noise. NaN and "
                    "infinity always stop.",
                ),
            ],
            outputs=[
                io.Custom("MODEL,LATENT,IMAGE").Output(
                    "checked", display_name="value", tooltip="What came in, unchanged."
                ),
                io.String.Output(
                    "report", display_name="report",
                    tooltip="Mean, spread, minimum and maximum of every channel.",
                ),
            ],
        )  # fmt: skip

    @classmethod
    def execute(cls, value: Any, suspicious: str = "stop") -> Any:
        from ..render.health import check_images, check_values

        if hasattr(value, "set_model_sampler_post_cfg_function"):
            guarded = value.clone()
            guarded.set_model_sampler_post_cfg_function(check_step)
            return io.NodeOutput(guarded, "every sampling step will be checked")
        if isinstance(value, dict):
            samples = value["samples"]
            parts = samples.unbind() if getattr(samples, "is_nested", False) else [samples]
            found = [
                check_values(p, 1, "the latent" if len(parts) == 1 else f"part {i} of the latent")
                for i, p in enumerate(parts)
            ]
        else:
            found = [check_images(value)]
        for health in found:
            if health.broken or (health.suspicious and suspicious == "stop"):
                raise ValueError(health.broken or health.suspicious)
            if health.suspicious and suspicious == "warn":
                log.warning("%s", health.suspicious)
        return io.NodeOutput(value, "\n".join(h.report for h in found))


def check_step(args: dict[str, Any]) -> Any:
    """A post-CFG function of ComfyUI: pass the prediction on, or raise with the step's number."""
    import torch

    from ..render.health import check_values

    denoised = args["denoised"]
    if not torch.isfinite(denoised).all():
        # The two halves tell whether the model or the guidance broke.
        halves = {
            "the conditional prediction": args.get("cond_denoised"),
            "the unconditional prediction": args.get("uncond_denoised"),
        }
        broken = [n for n, t in halves.items() if t is not None and not torch.isfinite(t).all()]
        where = f" ({' and '.join(broken)})" if broken else " (after guidance only)"
        raise ValueError(check_values(denoised, 1, f"sampling {step_name(args)}{where}").broken)
    return denoised


def step_name(args: dict[str, Any]) -> str:
    """`step 3 of 20 at sigma 0.91`, from what ComfyUI tells a post-CFG function."""
    sigma = float(args["sigma"].flatten()[0])
    options = args.get("model_options", {}).get("transformer_options", {})
    sigmas = options.get("sample_sigmas")
    if sigmas is None:
        return f"at sigma {sigma:.4g}"
    steps = len(sigmas) - 1
    nearest = min(range(max(steps, 1)), key=lambda i: abs(float(sigmas[i]) - sigma))
    return f"step {nearest + 1} of {steps} at sigma {sigma:.4g}"
