"""The workflows that sample in hexagonal tiles, as ComfyUI prompts (API format) in two forms.

real   the official files of MiniMax-H3 and Wan: what example_workflows/ shows
tiny   the embedded model, or a random MiniMax-H3 a few megabytes large: what workflows/tests/ runs
       in seconds on a CPU. TestNanoCLIP, TestH3CLIP and TestH3VAE stand in for what is not small
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphs import NEGATIVE, TEXT_ENCODER, Prompt, node, text, video

H3_MODEL = "minimax_h3_fl2va_pruned-Q4_K.gguf"
H3_ENCODER = "qwen3vl_32b_minimax_h3_int8_convrot.safetensors"
H3_VAE = "minimax_h3_video_vae_fp16.safetensors"
H3_AUDIO_VAE = "minimax_h3_audio_vae_fp32.safetensors"
H3_TINY = "h3video_tiny_minimax_h3.safetensors"

WAN_SMALL = "wan2.1_t2v_1.3B_fp16.safetensors"
WAN_HIGH = "wan2.2_t2v_high_noise_14B_fp8_scaled.safetensors"
WAN_LOW = "wan2.2_t2v_low_noise_14B_fp8_scaled.safetensors"
WAN_I2V = "wan2.1_i2v_480p_14B_fp8_scaled.safetensors"
WAN_VAE = "wan_2.1_vae.safetensors"
NANO, NANO_VAE = "h3video_nano.safetensors", "h3video_nano_vae.safetensors"

PICTURE, TINY_PICTURE = "example.png", "h3video_frame.png"
"""Input pictures: ComfyUI brings the first one, tests write the second one."""


@dataclass(frozen=True)
class Size:
    """Of a clip, in px and frames, with the steps to sample it."""

    width: int
    height: int
    length: int
    steps: int


H3_SIZE, H3_TINY_SIZE = Size(1920, 1088, 124, 20), Size(512, 320, 22, 2)

Link = list[Any]


def _wan(tiny: bool, model: str = WAN_SMALL) -> dict[str, Any]:
    return node("UNETLoader", unet_name=NANO if tiny else model, weight_dtype="default")


def _umt5(tiny: bool) -> dict[str, Any]:
    if tiny:
        return node("TestNanoCLIP")
    return node("CLIPLoader", clip_name=TEXT_ENCODER, type="wan", device="default")


def _wan_vae(tiny: bool) -> dict[str, Any]:
    return node("VAELoader", vae_name=NANO_VAE if tiny else WAN_VAE)


def _negative(tiny: bool) -> dict[str, Any]:
    return text("" if tiny else NEGATIVE, "Negative prompt")


def _shift(model: Link, value: float) -> dict[str, Any]:
    return node("ModelSamplingSD3", model=model, shift=value)


def _tiles(model: Link, **settings: Any) -> dict[str, Any]:
    return node(
        "H3HexTiles", model=model, **{"hex_res": "auto", "budget": "auto", "overlap": -1} | settings
    )


def _empty(size: Size) -> dict[str, Any]:
    return node("EmptyHunyuanLatentVideo", width=size.width, height=size.height,
                length=size.length, batch_size=1)  # fmt: skip


def _sample(
    title: str, model: Link, positive: Link, negative: Link, latent: Link, size: Size,
    cfg: float, denoise: float = 1.0, sampler: str = "euler",
) -> dict[str, Any]:  # fmt: skip
    return node(
        "KSampler", title, model=model, positive=positive, negative=negative, latent_image=latent,
        seed=1, steps=size.steps, cfg=cfg, sampler_name=sampler, scheduler="simple",
        denoise=denoise,
    )  # fmt: skip


def _save(prompt: Prompt, first: int, images: Link, fps: float, name: str, **more: Any) -> Prompt:
    """The prompt with CreateVideo and SaveVideo as nodes `first` and `first` + 1."""
    create, save = video(images, fps, name, **more)
    save["inputs"]["video"] = [str(first), 0]
    return prompt | {str(first): create, str(first + 1): save}


def minimax_h3_t2v(tiny: bool) -> Prompt:
    """Text to video with sound."""
    size = H3_TINY_SIZE if tiny else H3_SIZE
    words = (
        "A lighthouse on a cliff at dusk, waves break on the rocks below. The camera rises slowly. "
        "Sound: surf, gulls, and a low foghorn far away."
    )
    prompt = {
        "1": node("UnetLoaderGGUF", unet_name=H3_TINY if tiny else H3_MODEL),
        "2": node("TestH3CLIP") if tiny else node(
            "CLIPLoader", clip_name=H3_ENCODER, type="minimax", device="default"),
        "3": node("TestH3VAE", stream="picture") if tiny else node("VAELoader", vae_name=H3_VAE),
        "4": node("TestH3VAE", stream="sound") if tiny else node(
            "VAELoader", vae_name=H3_AUDIO_VAE),
        "5": node("MiniMaxH3ImageToVideo", "Prompt and size", clip=["2", 0], vae=["3", 0],
                  prompt=words, width=size.width, height=size.height, length=size.length),
        "6": node("ConditioningZeroOut", "No negative prompt (cfg 1)", conditioning=["5", 0]),
        "7": _tiles(["1", 0], **{"budget": "60%"} if tiny else {}),
        "8": _sample("", ["7", 0], ["5", 0], ["6", 0], ["5", 1], size, 1.0),
        "9": node("LTXVSeparateAVLatent", "Picture and sound apart", av_latent=["8", 0]),
        "10": node("VAEDecode", samples=["9", 0], vae=["3", 0]),
        "11": node("VAEDecodeAudio", samples=["9", 1], vae=["4", 0]),
    }  # fmt: skip
    return _save(prompt, 12, ["10", 0], 24.0, "minimax_t2v", audio=["11", 0])


def minimax_h3_i2v(tiny: bool) -> Prompt:
    """The same from a first frame."""
    prompt = minimax_h3_t2v(tiny)
    picture = TINY_PICTURE if tiny else PICTURE
    prompt["14"] = node("LoadImage", "First frame", image=picture)
    prompt["5"]["inputs"] |= {
        "first_frame": ["14", 0],
        "prompt": "The scene comes alive: a light wind, the camera moves in slowly. Sound: wind "
        "and quiet footsteps.",
    }
    prompt["13"]["inputs"]["filename_prefix"] = "video/h3_minimax_i2v"
    return prompt


def wan22_regions(tiny: bool) -> Prompt:
    """Wan 2.2's two experts, a base prompt and two regions given as cells."""
    size = Size(160, 96, 9, 6) if tiny else Size(1280, 704, 81, 20)
    base, left, right = (
        ("a white circle moves right over green waves",
         "a white circle moves right over blue waves",
         "a white circle moves right over sand waves")
        if tiny else
        ("a harbour at dusk, warm light, slow camera move, ripples on the water",
         "a red lighthouse on a pier at dusk, its lamp turns",
         "a white sailing boat in a harbour at dusk, its sail moves in the wind")
    )  # fmt: skip
    half, cfg = size.steps // 2, 4.0 if tiny else 3.5
    hexes = {"hex_res": "3", "overlap": 0, "halo": 32} if tiny else {}

    def expert(model: str, latent: str, **steps: Any) -> dict[str, Any]:
        return node(
            "KSamplerAdvanced", model=[model, 0], positive=["15", 0], negative=["12", 0],
            latent_image=[latent, 0], noise_seed=3, steps=size.steps, cfg=cfg,
            sampler_name="euler", scheduler="simple", **steps,
        )  # fmt: skip

    prompt = {
        "1": _wan(tiny, WAN_HIGH), "2": _umt5(tiny), "3": _wan_vae(tiny),
        "4": _wan(tiny, WAN_LOW),
        "5": _shift(["1", 0], 5.0 if tiny else 8.0), "6": _shift(["4", 0], 5.0 if tiny else 8.0),
        "7": _tiles(["5", 0], **hexes), "8": _tiles(["6", 0], **hexes),
        "9": text(base, "Prompt: the whole frame"),
        "10": text(left, "Prompt: left"), "11": text(right, "Prompt: right"),
        "12": _negative(tiny),
        "13": node("H3GridEncode", width=size.width, height=size.height,
                   hex_res="3" if tiny else "4", overlap=8 if tiny else 64),
        "14": node("H3RegionPrompts", "Region: left", base=["9", 0], prompt=["10", 0],
                   cells=["13", 1], select="x<50%" if tiny else "x<30%"),
        "15": node("H3RegionPrompts", "Region: right", base=["14", 0], prompt=["11", 0],
                   cells=["13", 1], select="x>=50%" if tiny else "x>=60% and y>=40%"),
        "16": _empty(size),
        "17": expert("7", "16", add_noise="enable", start_at_step=0, end_at_step=half,
                     return_with_leftover_noise="enable"),
        "18": expert("8", "17", add_noise="disable", start_at_step=half, end_at_step=10000,
                     return_with_leftover_noise="disable"),
        "19": node("VAEDecode", samples=["18", 0], vae=["3", 0]),
    }  # fmt: skip
    prompt["17"]["_meta"] = {"title": "First half: the high noise expert"}
    prompt["18"]["_meta"] = {"title": "Second half: the low noise expert"}
    return _save(prompt, 20, ["19", 0], 8.0 if tiny else 16.0, "wan22_regions")


def long_clip(tiny: bool) -> Prompt:
    """Fifteen seconds of a model made for five."""
    size = Size(160, 96, 33, 3) if tiny else Size(832, 480, 241, 20)
    words = (
        "a red circle moves left over blue waves" if tiny else
        "a steam train crosses a mountain viaduct in autumn, seen from a drone that follows it"
    )  # fmt: skip
    settings: dict[str, Any] = {"window": 21, "window_overlap": 5, "window_mode": "fused"}
    if tiny:
        settings = {"hex_res": "3", "overlap": 0, "halo": 16, "window": 5, "window_overlap": 2,
                    "window_mode": "fused"}  # fmt: skip
    prompt = {
        "1": _wan(tiny), "2": _umt5(tiny), "3": _wan_vae(tiny),
        "4": _shift(["1", 0], 5.0 if tiny else 8.0),
        "5": text(words, "Prompt"), "6": _negative(tiny),
        "7": _tiles(["4", 0], **settings),
        "8": _empty(size),
        "9": _sample("", ["7", 0], ["5", 0], ["6", 0], ["8", 0], size, 5.0, sampler="dpmpp_2m"),
        "10": node("VAEDecode", samples=["9", 0], vae=["3", 0]),
    }  # fmt: skip
    return _save(prompt, 11, ["10", 0], 8.0 if tiny else 16.0, "long_clip")


def long_chunks(tiny: bool) -> Prompt:
    """Fifteen seconds from a picture, chunk by chunk, each kept on disk; every run makes one."""
    size = Size(160, 96, 17, 3) if tiny else Size(832, 480, 241, 20)
    fps = 8.0 if tiny else 16.0
    words = (
        "a red circle moves left over blue waves" if tiny else
        "a steam train crosses a mountain viaduct in autumn, seen from a drone that follows it"
    )  # fmt: skip
    prompt = {
        "1": _wan(tiny, WAN_I2V), "2": _umt5(tiny), "3": _wan_vae(tiny),
        "4": _shift(["1", 0], 5.0),
        "5": text(words, "Prompt"), "6": _negative(tiny),
        "7": node("H3ChunkPlan", frames=size.length, chunk_frames=9 if tiny else 81, family="wan",
                  folder="h3_chunks/example", index=-1, continuity="first-frame",
                  overlap_frames=-1, content="images", fps=fps),
        "8": node("LoadImage", "Start picture", image=TINY_PICTURE if tiny else PICTURE),
        "9": node("H3ChunkLoad", "Last picture of the chunk before", chunks=["7", 0],
                  content="images", offset=-1, last_frames=1, otherwise=["8", 0]),
        "10": node("WanImageToVideo", positive=["5", 0], negative=["6", 0], vae=["3", 0],
                   width=size.width, height=size.height, length=["7", 2], batch_size=1,
                   start_image=["9", 0]),
        "11": _sample("", ["4", 0], ["10", 0], ["10", 1], ["10", 2], size, 5.0),
        "12": node("VAEDecode", samples=["11", 0], vae=["3", 0]),
        "13": node("H3ChunkSave", value=["12", 0], chunks=["7", 0], content="images",
                   if_changed="stop", index=-1, precision="exact"),
        "14": node("H3ChunkJoin", chunks=["7", 0], join="cell", colour="hold", after=["13", 0],
                   hex_res=-1),
    }  # fmt: skip
    return _save(prompt, 15, ["14", 0], fps, "long_chunks")


def hex_upscale(tiny: bool) -> Prompt:
    """A small frame decides what is where; the large one is sampled from it in tiles."""
    size = Size(160, 96, 9, 4) if tiny else Size(640, 352, 81, 20)
    words = (
        "a red circle moves left over blue waves" if tiny else
        "an old fisherman mends a net on a quay in the morning sun, boats rock behind him"
    )  # fmt: skip
    positive, negative = ["5", 0], ["6", 0]
    prompt = {
        "1": _wan(tiny), "2": _umt5(tiny), "3": _wan_vae(tiny),
        "4": _shift(["1", 0], 5.0 if tiny else 8.0),
        "5": text(words, "Prompt"), "6": _negative(tiny),
        "7": _empty(size),
        "8": _sample("Small, whole frame", ["4", 0], positive, negative, ["7", 0], size, 5.0),
        "9": node("LatentUpscale", "Twice the size", samples=["8", 0], upscale_method="bicubic",
                  width=2 * size.width, height=2 * size.height, crop="disabled"),
        "10": _shift(["1", 0], 3.0),
        "11": _tiles(["10", 0], **{"budget": "70%"} if tiny else {}),
        "12": _sample("Large, in tiles", ["11", 0], positive, negative, ["9", 0], size, 5.0, 0.35),
        "13": node("VAEDecode", samples=["12", 0], vae=["3", 0]),
    }  # fmt: skip
    return _save(prompt, 14, ["13", 0], 8.0 if tiny else 16.0, "hex_upscale")
