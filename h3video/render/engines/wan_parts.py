"""Loading the parts of a Wan pipeline: GGUF transformers, LoRAs, schedulers, offloading."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ..job import RenderJob
from ..source import ModelSource
from ..weights_files import parse_lora

SAMPLERS = {
    "unipc": "UniPCMultistepScheduler",
    "euler": "FlowMatchEulerDiscreteScheduler",
    "dpm++": "DPMSolverMultistepScheduler",
}
"""Samplers by the names that people know; "model" is what the model's folder says."""

OFFLOAD = ("none", "model", "group", "sequential")

LOADED = ("tokenizer", "text_encoder", "transformer", "transformer_2", "vae", "image_encoder",
          "image_processor")  # fmt: skip


def load_parts(source: ModelSource, job: RenderJob, parts: Iterable[str], dtype: Any) -> Any:
    """A pipeline that holds only the named parts, in `dtype`, on the CPU."""
    import diffusers

    quiet()
    wanted = set(parts)
    given: dict[str, Any] = dict.fromkeys(set(source.parts or LOADED) & set(LOADED) - wanted)
    for name, file in zip(("transformer", "transformer_2"), job.gguf):
        if name in wanted:
            given[name] = load_gguf(source, name, Path(file), dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = getattr(diffusers, source.pipeline).from_pretrained(
            source.folder, torch_dtype=dtype, **given
        )
    if "transformer" in wanted and job.lora:
        add_loras(pipe, job.lora)
    return pipe


def quiet() -> None:
    """No progress bars and notes of the libraries: ours are shown."""
    from diffusers.utils import logging as diffusers_logging
    from transformers.utils import logging as transformers_logging

    diffusers_logging.set_verbosity_error()
    diffusers_logging.disable_progress_bar()
    transformers_logging.disable_progress_bar()


def load_gguf(source: ModelSource, part: str, file: Path, dtype: Any) -> Any:
    """A transformer from a GGUF file; its weights stay quantised and are widened layer by layer.

    Raises UsageError when the file is no Wan transformer of this size.
    """
    import diffusers

    if importlib.util.find_spec("gguf") is None:
        raise UsageError(f"{file} needs the package gguf; install it with `pip install gguf`")
    try:
        return diffusers.WanTransformer3DModel.from_single_file(
            str(file), config=source.folder, subfolder=part, torch_dtype=dtype,
            quantization_config=diffusers.GGUFQuantizationConfig(compute_dtype=dtype),
        )  # fmt: skip
    except (ValueError, KeyError, RuntimeError, NotImplementedError) as e:
        raise UsageError(
            f"{file} cannot be loaded as {source.name}'s {part} ({e}); use a GGUF file of the "
            "same model"
        ) from None


def add_loras(pipe: Any, loras: Iterable[str]) -> None:
    """Load LoRAs and set their scales. Raises UsageError naming the file that does not fit."""
    if importlib.util.find_spec("peft") is None:
        raise UsageError("LoRAs need the package peft; install it with `pip install peft`")
    names, scales = [], []
    for i, text in enumerate(loras):
        file, scale = parse_lora(text)
        path = Path(file).expanduser()
        if not path.is_file():
            raise UsageError(f"LoRA file {path} is not there; check the path")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pipe.load_lora_weights(
                    str(path.parent), weight_name=path.name, adapter_name=f"lora{i}"
                )
        except (ValueError, KeyError, RuntimeError) as e:
            raise UsageError(
                f"LoRA {path} does not fit {type(pipe.transformer).__name__} ({e})"
            ) from None
        if f"lora{i}" not in getattr(pipe.transformer, "peft_config", {}):
            raise UsageError(
                f"LoRA {path} changes nothing in {type(pipe.transformer).__name__}: none of its "
                "weights has a place there; use one made for this model"
            )
        names.append(f"lora{i}")
        scales.append(scale)
    pipe.set_adapters(names, scales)


def scheduler_of(scheduler: Any, job: RenderJob) -> Any:
    """The model's scheduler, or the one that the job asks for, with its shift."""
    import diffusers

    if job.sampler == "model" and job.shift is None:
        return scheduler
    kind = type(scheduler)
    if job.sampler != "model":
        kind = getattr(diffusers, SAMPLERS[job.sampler])
    shift = job.shift
    if shift is None:
        shift = getattr(scheduler.config, "flow_shift", getattr(scheduler.config, "shift", 1.0))
    named = "shift" if kind.__name__.startswith("FlowMatch") else "flow_shift"
    flow = {} if named == "shift" else {
        "prediction_type": "flow_prediction", "use_flow_sigmas": True}  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind.from_config(scheduler.config, **{named: shift, **flow})


def sigmas_of(scheduler: Any, steps: int) -> list[float]:
    """The noise levels of all steps, the last 0; rounded as far as machines agree."""
    scheduler.set_timesteps(steps, device="cpu")
    return [round(float(s), 6) for s in scheduler.sigmas]


def place(pipe: Any, job: RenderJob, device: Any) -> None:
    """Bring what is loaded to the device, or leave it to an offload mode.

    Raises UsageError where a mode makes no sense.
    """
    if job.offload in ("model", "sequential"):
        if device.type == "cpu":
            raise UsageError(
                f"offload {job.offload} moves weights off an accelerator, the device is cpu; use "
                "none, or group to try the code path"
            )
        if job.offload == "model":
            pipe.enable_model_cpu_offload(device=device)
        else:
            pipe.enable_sequential_cpu_offload(device=device)
        return
    for name in LOADED:
        module: Any = getattr(pipe, name, None)
        if not hasattr(module, "parameters"):
            continue
        if job.offload == "group" and name in ("transformer", "transformer_2"):
            module.enable_group_offload(
                onload_device=device, offload_device="cpu", offload_type="block_level",
                num_blocks_per_group=1,
            )  # fmt: skip
        else:
            module.to(device)
