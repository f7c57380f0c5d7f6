"""Where the nodes of the example workflows stand: groups of columns, left to right, and notes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import graphs
import sampling_graphs as sampling

GAP, TITLE, GROUP_TITLE, MARGIN = 30, 30, 50, 20
"""px: between nodes, of a node's title bar, of a group's title, around a group."""

WIDTHS = {"CLIPTextEncode": 380, "H3GridEncode": 340, "SaveVideo": 420, "PreviewImage": 380,
          "H3CellMask": 340, "LoadVideo": 360, "MiniMaxH3ImageToVideo": 400,
          "H3RegionPrompts": 340, "UNETLoader": 360, "UnetLoaderGGUF": 360}  # fmt: skip
HEIGHTS = {"CLIPTextEncode": 160, "SaveVideo": 380, "PreviewImage": 300, "H3CellMask": 420,
           "H3GridEncode": 560, "LoadVideo": 320, "MiniMaxH3ImageToVideo": 360,
           "H3RegionPrompts": 180, "LoadImage": 320}  # fmt: skip
WIDTH = 300
"""px, of all other nodes; heights are the page's own."""

GREEN, RED, OWN = ("#232", "#353"), ("#322", "#533"), ("#223", "#335")
COLOURS = ("#3f789e", "#8a8", "#a1309b", "#b58b2a", "#88A", "#3f789e")

HUB = "https://huggingface.co"
WAN21 = f"{HUB}/Comfy-Org/Wan_2.1_ComfyUI_repackaged/resolve/main/split_files"
WAN22 = f"{HUB}/Comfy-Org/Wan_2.2_ComfyUI_Repackaged/resolve/main/split_files"
MINIMAX = f"{HUB}/Comfy-Org/MiniMax-H3/resolve/main"
MODELS = {
    graphs.REAL.transformer: (f"{WAN21}/diffusion_models", "diffusion_models"),
    sampling.WAN_HIGH: (f"{WAN22}/diffusion_models", "diffusion_models"),
    sampling.WAN_LOW: (f"{WAN22}/diffusion_models", "diffusion_models"),
    sampling.WAN_I2V: (f"{WAN21}/diffusion_models", "diffusion_models"),
    graphs.TEXT_ENCODER: (f"{WAN21}/text_encoders", "text_encoders"),
    graphs.REAL.vae: (f"{WAN21}/vae", "vae"),
    sampling.H3_MODEL: (f"{HUB}/unsloth/MiniMax-H3-GGUF/resolve/main", "diffusion_models"),
    sampling.H3_ENCODER: (f"{MINIMAX}/text_encoders", "text_encoders"),
    sampling.H3_VAE: (f"{MINIMAX}/vae", "vae"),
    sampling.H3_AUDIO_VAE: (f"{MINIMAX}/vae", "vae"),
    graphs.UPSCALER: ("https://github.com/xinntao/Real-ESRGAN/releases/download/v0.2.1",
                      "upscale_models"),
}  # fmt: skip
"""File -> where it is published, ComfyUI's folder: the page offers missing ones."""


@dataclass(frozen=True)
class Group:
    """A titled frame around columns of node ids."""

    title: str
    columns: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Plan:
    """The groups of a workflow and the text of its note (Markdown)."""

    groups: tuple[Group, ...]
    note: str


MINIMAX_NOTE = (
    "{}\n\n"
    "**H3 Hex Tiles** lets a step see one hexagon and its surroundings at a time: the memory of a "
    "tile, every token at its place in the full frame, the sound track whole in every tile. Its "
    "defaults take tiles of at most a third of the frame.\n\n"
    "{} The model was trained up to 1344x768: for one large subject sample small first, as in "
    "*H3 Hex Upscale*, or set `start_step` to 6 if a full frame fits.\n\n"
    "**Unet Loader (GGUF)** is a node of ComfyUI-GGUF (github.com/city96/ComfyUI-GGUF). Versions "
    "that do not know MiniMax-H3 refuse the file (see its pull requests 476, 480, 481); *Load "
    "Diffusion Model* with a safetensors file is as good. On a Mac the text encoder should be a "
    "GGUF file as well.\n\n"
    "Needs ComfyUI 0.33."
)

PLANS = {
    "article": Plan(
        (
            Group("1. Model", ((1, 2, 3),)),
            Group("2. Prompts", ((5, 6, 7),)),
            Group("3. The hexagonal grid", ((8, 18),)),
            Group("4. Prompt by weight", ((9, 10, 11),)),
            Group("5. Sample", ((4, 12, 13),)),
            Group("6. Split, merge, save", ((14, 15, 16), (17,))),
        ),
        "## A focus on hexagons\n\n"
        "**H3 Grid Encode** lays Uber's H3 hexagons over the frame. Its mask is strongest at the "
        "focus (click into the grid to move it) and falls off ring by ring. It weights the second "
        "prompt, so that one describes the focus and the first the whole frame.\n\n"
        "After decoding, **H3 Split Tiles** cuts the clip into tiles around cells and chunks of "
        "frames, and **H3 Merge Chunks** joins them without a seam; untouched tiles give the clip "
        "back exactly. Put whatever should see one tile at a time between the two.\n\n"
        "Needs Wan 2.1 T2V 1.3B, its text encoder and its VAE.",
    ),
    "upscale_merge": Plan(
        (
            Group("1. Clip", ((1, 2, 3),)),
            Group("2. The hexagonal grid", ((4,),)),
            Group("3. Tile by tile", ((5, 10, 6), (7,))),
            Group("4. Save", ((8, 9),)),
        ),
        "## Upscale a clip tile by tile\n\n"
        "The grid takes the clip's size. **H3 Split Tiles** gives a list of tiles, so the upscaler "
        "runs once for each tile and never sees a whole frame: the peak is a tile and the result. "
        "**H3 Merge Chunks** finds the scale factor by itself.\n\n"
        "Seams or changes of tone between tiles: more `halo`, or `match` = mean/std. Out of "
        "memory: a larger `hex_res` or a smaller `chunk_frames`.\n\n"
        "No upscale model at hand? Put *Upscale Image By* in its place. The sound is passed on.",
    ),
    "regional": Plan(
        (
            Group("1. Model", ((1, 2, 3),)),
            Group("2. Prompts", ((5, 6, 7),)),
            Group("3. Grid and cells", ((8,), (9, 10))),
            Group("4. Prompt by region", ((11, 12, 13),)),
            Group("5. Sample", ((4, 14, 15, 16),)),
            Group("6. Save", ((17, 18),)),
        ),
        "## Two prompts, two regions\n\n"
        "Each **H3 Cell Mask** chooses cells: click them in the drawing, or write an expression "
        "(`x<50%`, `ring<=2`, `row 0..2`, ids). The two masks share a soft edge as wide as the "
        "grid's `overlap`, and sum to one where they meet.\n\n"
        "More regions: one more prompt, cell mask, Conditioning (Set Mask) and Conditioning "
        "(Combine) each. Cells that no mask covers are left without a prompt; `not (...)` chooses "
        "the rest.\n\n"
        "Needs Wan 2.1 T2V 1.3B, its text encoder and its VAE.",
    ),
    "minimax_h3_t2v": Plan(
        (
            Group("1. Model", ((1, 2, 3, 4),)),
            Group("2. Prompt and size", ((5, 6),)),
            Group("3. Hexagonal tiles", ((7,),)),
            Group("4. Sample", ((8, 9),)),
            Group("5. Decode and save", ((10, 11, 12), (13,))),
        ),
        MINIMAX_NOTE.format(
            "## MiniMax-H3 at 1920x1088, with sound",
            "Describe picture and sound in one prompt.",
        ),
    ),
    "minimax_h3_i2v": Plan(
        (
            Group("1. Model", ((1, 2, 3, 4),)),
            Group("2. First frame", ((14,),)),
            Group("3. Prompt and size", ((5, 6),)),
            Group("4. Hexagonal tiles", ((7,),)),
            Group("5. Sample", ((8, 9),)),
            Group("6. Decode and save", ((10, 11, 12), (13,))),
        ),
        MINIMAX_NOTE.format(
            "## MiniMax-H3 from a first frame, with sound",
            "The picture is stretched to the frame: crop it to 16:9 first. Every tile sees the "
            "part of it that is near, so the subject stays one. A last frame can be connected, "
            "too.",
        ),
    ),
    "wan22_regions": Plan(
        (
            Group("1. Models", ((1, 4, 2, 3),)),
            Group("2. Prompts", ((9, 10, 11, 12),)),
            Group("3. Grid and regions", ((13,), (14, 15))),
            Group("4. Hexagonal tiles", ((5, 7, 6, 8),)),
            Group("5. Sample", ((16, 17, 18, 19),)),
            Group("6. Save", ((20, 21),)),
        ),
        "## Wan 2.2: a prompt per region\n\n"
        "**H3 Region Prompts** gives cells of the grid a prompt of their own; the base prompt "
        "rules elsewhere. Chain one more for one more region. With **H3 Hex Tiles** on both "
        "experts a tile inside one region runs once, with that region's prompt; tiles on a border "
        "run once per region.\n\n"
        "Choose cells by expression (`x<30%`, `ring<=1`, `row 0..2`, ids), or connect a mask "
        "instead. Describe the same place and light in every prompt.\n\n"
        "Needs both experts of Wan 2.2 T2V A14B, the text encoder and the VAE of Wan 2.1.",
    ),
    "long_clip": Plan(
        (
            Group("1. Model", ((1, 2, 3),)),
            Group("2. Prompts", ((5, 6),)),
            Group("3. Tiles and windows", ((4, 7, 8),)),
            Group("4. Sample", ((9, 10),)),
            Group("5. Save", ((11, 12),)),
        ),
        "## Fifteen seconds in windows of five\n\n"
        "`window` in **H3 Hex Tiles** is how many *latent* frames a tile takes at a time: 21 are "
        "Wan's 81 frames. Windows share `window_overlap` latent frames and are blended at every "
        "step (`fused`), or the earlier one rules there (`frozen`). A step needs the memory of "
        "one tile in one window, however long the clip is.\n\n"
        "For MiniMax-H3 a window has 5k+2 latent frames: 37 are 124 frames. Do not use ComfyUI's "
        "Context Windows on the same model.\n\n"
        "One prompt holds for the whole clip. Needs Wan 2.1 T2V 1.3B, its text encoder and its "
        "VAE.",
    ),
    "long_chunks": Plan(
        (
            Group("1. Model", ((1, 2, 3),)),
            Group("2. Prompts", ((5, 6),)),
            Group("3. The chunk of this run", ((7,), (8, 9))),
            Group("4. Sample", ((4, 10), (11, 12))),
            Group("5. Keep, join, save", ((13, 14), (15, 16))),
        ),
        "## Long video in chunks that are kept\n\n"
        "**H3 Chunk Plan** cuts the clip into chunks on the model's frame grid and takes the first "
        "that is missing. **H3 Chunk Save** keeps it the moment it is made. Queue this as often as "
        "there are chunks (here 3); the last run joins them and saves the video.\n\n"
        "If ComfyUI stops, start it and queue again: finished chunks are loaded, nothing before "
        "them runs. Set the sampler's seed to *fixed*: a finished chunk that would be made "
        "otherwise now stops the run and names what differs.\n\n"
        "The first chunk starts from the picture, the others from the last picture of the one "
        "before. A new clip needs a new `folder`. Needs Wan 2.1 I2V 480p, its text encoder and "
        "its VAE.",
    ),
    "hex_upscale": Plan(
        (
            Group("1. Model", ((1, 2, 3),)),
            Group("2. Prompts", ((5, 6),)),
            Group("3. Small, whole frame", ((4, 7, 8),)),
            Group("4. Large, in hexagonal tiles", ((9, 10, 11), (12,))),
            Group("5. Save", ((13, 14), (15,))),
        ),
        "## H3 Hex Upscale: one subject, not seven\n\n"
        "From pure noise every tile may draw the subject for itself. Here the model sees the "
        "whole frame at 640x352 and decides what is where; the latent is enlarged, and sampled "
        "again in tiles at `denoise` 0.35: detail is new, the composition stays.\n\n"
        "Repeats in the large picture: a lower `denoise` (0.3), or a larger `budget` (50%). Soft "
        "picture: 0.5, which lets tiles draw subjects of their own. The second pass has a lower "
        "sampling shift, since there is less noise to remove.\n\n"
        "With MiniMax-H3 put *Separate AV Latent* before *Upscale Latent* and *Concat AV Latent* "
        "after it. Needs Wan 2.1 T2V 1.3B, its text encoder and its VAE.",
    ),
}  # fmt: skip

NOTE_SIZE = (340, 460)

SEEDS = {"KSampler": 1, "KSamplerAdvanced": 2}
"""Place of "control after generate" among a node's widgets."""


def arrange(graph: dict[str, Any], name: str) -> dict[str, Any]:
    """The page's serialised graph, set out after PLANS[name], without what differs from run to run.

    Raises ValueError when a node of the graph has no place in the plan or the reverse.
    """
    plan = PLANS[name]
    nodes = {n["id"]: n for n in graph["nodes"]}
    placed = [i for g in plan.groups for column in g.columns for i in column]
    if sorted(placed) != sorted(nodes):
        raise ValueError(f"{name}: the plan places {sorted(placed)}, the graph has {sorted(nodes)}")
    for node in nodes.values():
        _tidy(node)
    note = max(nodes) + 1
    x, groups = NOTE_SIZE[0] + 2 * GAP, []
    for number, group in enumerate(plan.groups):
        left, bottom = x, 0.0
        x += MARGIN
        for column in group.columns:
            wide = max(nodes[i]["size"][0] for i in column)
            y = float(GROUP_TITLE + TITLE)
            for i in column:
                nodes[i]["pos"] = [x, y]
                nodes[i]["size"][0] = wide
                y += nodes[i]["size"][1] + TITLE + GAP
            bottom = max(bottom, y - TITLE - GAP)
            x += wide + GAP
        x += MARGIN - GAP
        groups.append({
            "id": number + 1, "title": group.title, "color": COLOURS[number % len(COLOURS)],
            "bounding": [left, 0, x - left, bottom + MARGIN], "font_size": 24, "flags": {},
        })  # fmt: skip
        x += GAP
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"ComfyUI-H3-Video/{name}")), "revision": 0,
        "last_node_id": note, "last_link_id": graph["last_link_id"],
        "nodes": [nodes[i] for i in sorted(nodes)] + [_note(note, plan.note)],
        "links": graph["links"], "groups": groups, "config": {}, "extra": {},
        "version": graph["version"],
    }  # fmt: skip


def _tidy(node: dict[str, Any]) -> None:
    kind, title = node["type"], node.get("title", "")
    size = node["size"]  # a list, or an object in older pages
    tall = size[1] if isinstance(size, list) else size["1"]
    node["size"] = [WIDTHS.get(kind, WIDTH), max(round(tall), HEIGHTS.get(kind, 0))]
    node["properties"] = {"Node name for S&R": kind}
    if kind.startswith("H3"):
        node["color"], node["bgcolor"] = OWN
    if title.startswith(("Prompt", "Negative")):
        node["color"], node["bgcolor"] = RED if title.startswith("Negative") else GREEN
    values = node.get("widgets_values") or [None]
    if values[0] in MODELS:
        source, folder = MODELS[values[0]]
        model = {"name": values[0], "url": f"{source}/{values[0]}", "directory": folder}
        node["properties"]["models"] = [model]
    if kind in SEEDS:
        values[SEEDS[kind]] = "fixed"  # the page loads API prompts with "randomize"


def _note(number: int, text: str) -> dict[str, Any]:
    return {
        "id": number, "type": "MarkdownNote", "pos": [0, GROUP_TITLE + TITLE],
        "size": list(NOTE_SIZE), "flags": {}, "order": 0, "mode": 0, "inputs": [], "outputs": [],
        "title": "About this workflow", "properties": {}, "widgets_values": [text],
        "color": "#432", "bgcolor": "#653",
    }  # fmt: skip
