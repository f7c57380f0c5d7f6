"""Workflows as ComfyUI prompts (API format), each in two forms; those with tiles in the sampler
are in sampling_graphs.py.

real   Wan 2.1 T2V 1.3B with its official file names: what example_workflows/ shows
nano   the embedded model at 160x96x17: what workflows/tests/ runs in CI, seconds on a CPU

`make_workflows.py` writes both from here, so they cannot drift apart. They differ in
sizes and loaders, in `TestNanoCLIP` in place of CLIPLoader, and in the upscaler.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

Prompt = dict[str, dict[str, Any]]

CLIP = "h3video_clip.mp4"
"""The input clip of the nano form, see write_clip."""


@dataclass(frozen=True)
class Form:
    """What the two forms of a workflow differ in. Sizes in px, lengths in frames."""

    width: int
    height: int
    length: int
    steps: int
    fps: float
    hex_res: str
    overlap: int
    halo: int
    shift: float
    transformer: str
    vae: str
    nano: bool


REAL = Form(
    832, 480, 81, 20, 16.0, "4", 32, 32, 8.0, "wan2.1_t2v_1.3B_fp16.safetensors",
    "wan_2.1_vae.safetensors", False,
)  # fmt: skip
NANO = Form(
    160, 96, 17, 6, 8.0, "3", 8, 8, 5.0, "h3video_nano.safetensors",
    "h3video_nano_vae.safetensors", True,
)  # fmt: skip

TEXT_ENCODER = "umt5_xxl_fp8_e4m3fn_scaled.safetensors"
UPSCALER = "RealESRGAN_x2plus.pth"
NEGATIVE = (
    "blurry, low quality, worst quality, jpeg artifacts, static, watermark, subtitles, deformed"
)


def node(kind: str, title: str = "", **inputs: Any) -> dict[str, Any]:
    """One node; an input that is a list [id, output] is a link."""
    made: dict[str, Any] = {"class_type": kind, "inputs": inputs}
    if title:
        made["_meta"] = {"title": title}
    return made


def loaders(form: Form) -> Prompt:
    """Nodes 1 (model), 2 (text encoder), 3 (VAE), 4 (model with its sigma shift)."""
    encoder = node("TestNanoCLIP") if form.nano else node(
        "CLIPLoader", clip_name=TEXT_ENCODER, type="wan", device="default"
    )  # fmt: skip
    return {
        "1": node("UNETLoader", unet_name=form.transformer, weight_dtype="default"),
        "2": encoder,
        "3": node("VAELoader", vae_name=form.vae),
        "4": node("ModelSamplingSD3", model=["1", 0], shift=form.shift),
    }


def _grid(form: Form, **more: Any) -> dict[str, Any]:
    return node("H3GridEncode", width=form.width, height=form.height, hex_res=form.hex_res,
                overlap=form.overlap, **more)  # fmt: skip


def latent(form: Form) -> dict[str, Any]:
    """Wan's empty latent."""
    return node("EmptyHunyuanLatentVideo", width=form.width, height=form.height,
                length=form.length, batch_size=1)  # fmt: skip


def _sampler(form: Form, positive: list[Any], negative: list[Any], latent: list[Any], seed: int,
             cfg: float) -> dict[str, Any]:  # fmt: skip
    return node(
        "KSampler", model=["4", 0], positive=positive, negative=negative, latent_image=latent,
        seed=seed, steps=form.steps, cfg=cfg, sampler_name="dpmpp_2m", scheduler="simple",
        denoise=1.0,
    )  # fmt: skip


def text(words: str, title: str) -> dict[str, Any]:
    """A prompt for the text encoder, node 2."""
    return node("CLIPTextEncode", title, clip=["2", 0], text=words)


def video(images: list[Any], fps: Any, name: str, **more: Any) -> tuple[dict[str, Any], ...]:
    """CreateVideo, and SaveVideo whose link is still missing."""
    return (
        node("CreateVideo", images=images, fps=fps, **more),
        node("SaveVideo", filename_prefix=f"video/h3_{name}", format="auto", codec="auto"),
    )


def article(form: Form) -> Prompt:
    """Two prompts, one weighted by the grid's mask; the clip is split and merged again."""
    scene, focus = (
        ("a yellow star moves right over grey dots", "a red circle moves left over blue waves")
        if form.nano else
        ("a misty pine forest at dawn, soft light, slow camera move",
         "a red fox stands still and turns its head, detailed fur, sharp focus")
    )  # fmt: skip
    prompt = loaders(form) | {
        "5": text(scene, "Prompt: the whole frame"),
        "6": text(focus, "Prompt: what the focus shows"),
        "7": text("" if form.nano else NEGATIVE, "Negative prompt"),
        "8": _grid(form, focus_x=0.5, focus_y=0.5, falloff=1.0),
        "9": node("ConditioningSetMask", conditioning=["6", 0], mask=["8", 0], strength=2.0,
                  set_cond_area="default"),
        "10": node("ConditioningCombine", conditioning_1=["5", 0], conditioning_2=["9", 0]),
        "11": latent(form),
        "12": _sampler(form, ["10", 0], ["7", 0], ["11", 0], 1, 7.0),
        "13": node("VAEDecode", samples=["12", 0], vae=["3", 0]),
        "14": node("H3SplitTiles", clip=["13", 0], cells=["8", 1], halo=form.halo,
                   chunk_frames=8 if form.nano else 33, chunk_overlap=2 if form.nano else 8),
        "15": node("H3MergeChunks", tiles=["14", 0], layout=["14", 1], match="none"),
        "18": node("PreviewImage", "Preview of the grid", images=["8", 2]),
    }  # fmt: skip
    prompt["16"], prompt["17"] = video(["15", 0], form.fps, "article")
    prompt["17"]["inputs"]["video"] = ["16", 0]
    return prompt


def upscale_merge(form: Form) -> Prompt:
    """A clip is cut into tiles, each is upscaled by itself, and they are merged."""
    prompt = {
        "1": node("LoadVideo", file=CLIP if form.nano else "input.mp4"),
        "2": node("GetVideoComponents", video=["1", 0]),
        "3": node("GetImageSize", image=["2", 0]),
        "4": _grid(form),
        "5": node("H3SplitTiles", clip=["2", 0], cells=["4", 1], halo=form.halo,
                  chunk_frames=8 if form.nano else 16, chunk_overlap=2 if form.nano else 4),
        "7": node("H3MergeChunks", tiles=["6", 0], layout=["5", 1], match="none"),
    }  # fmt: skip
    prompt["4"]["inputs"] |= {"width": ["3", 0], "height": ["3", 1]}
    if form.nano:
        prompt["6"] = node("ImageScaleBy", image=["5", 0], upscale_method="bicubic", scale_by=2.0)
    else:
        prompt["10"] = node("UpscaleModelLoader", model_name=UPSCALER)
        prompt["6"] = node("ImageUpscaleWithModel", upscale_model=["10", 0], image=["5", 0])
    prompt["8"], prompt["9"] = video(["7", 0], ["2", 2], "upscale_merge", audio=["2", 1])
    prompt["9"]["inputs"]["video"] = ["8", 0]
    return prompt


def regional(form: Form) -> Prompt:
    """Two prompts, each with a mask of its own cells; together they cover the frame."""
    left, right = (
        ("a white circle moves left over blue waves", "a black circle moves left over sand waves")
        if form.nano else
        ("a stormy sea with high waves under dark clouds, rain",
         "a desert with golden dunes under a clear blue sky, wind blows sand")
    )  # fmt: skip
    prompt = loaders(form) | {
        "5": text(left, "Prompt: left"),
        "6": text(right, "Prompt: right"),
        "7": text("" if form.nano else NEGATIVE, "Negative prompt"),
        "8": _grid(form),
        "9": node("H3CellMask", "Cells: left", cells=["8", 1], select="x<50%", overlap=-1),
        "10": node("H3CellMask", "Cells: right", cells=["8", 1], select="x>=50%", overlap=-1),
        "11": node("ConditioningSetMask", conditioning=["5", 0], mask=["9", 0], strength=1.0,
                   set_cond_area="default"),
        "12": node("ConditioningSetMask", conditioning=["6", 0], mask=["10", 0], strength=1.0,
                   set_cond_area="default"),
        "13": node("ConditioningCombine", conditioning_1=["11", 0], conditioning_2=["12", 0]),
        "14": latent(form),
        "15": _sampler(form, ["13", 0], ["7", 0], ["14", 0], 3, 4.0 if form.nano else 5.0),
        "16": node("VAEDecode", samples=["15", 0], vae=["3", 0]),
    }  # fmt: skip
    prompt["17"], prompt["18"] = video(["16", 0], form.fps, "regional")
    prompt["18"]["inputs"]["video"] = ["17", 0]
    return prompt


WORKFLOWS = {"article": article, "upscale_merge": upscale_merge, "regional": regional}


def write_clip(path: Path, width: int = 160, height: int = 96, frames: int = 17) -> None:
    """A smooth moving test clip as H.264, 8 frames per second."""
    import av
    import numpy as np

    y, x = np.mgrid[0:height, 0:width] / height
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=8)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.options = {"crf": "12", "preset": "ultrafast"}
        for f in range(frames):
            t = f / frames
            waves = [0.5 + 0.4 * np.sin(6.0 * (x * a + y * b) + 6.3 * t)
                     for a, b in ((1.0, 0.4), (0.3, 1.1), (-0.8, 0.7))]  # fmt: skip
            picture = (np.stack(waves, -1) * 255).astype(np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)


def write_picture(path: Path, width: int = 512, height: int = 320) -> None:
    """A smooth test picture."""
    import numpy as np
    from PIL import Image

    y, x = np.mgrid[0:height, 0:width] / height
    waves = [0.5 + 0.4 * np.sin(5.0 * (x * a + y * b)) for a, b in ((1, 0.4), (0.3, 1), (-1, 0.7))]
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((np.stack(waves, -1) * 255).astype(np.uint8)).save(path)
