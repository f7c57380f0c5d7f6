"""From what a person or a node says to a plan of the ledger, tiles included.

The ledger knows models and machines, `tiling` knows tiles; neither imports the other. Here they
meet: a tile plan becomes the handful of numbers that the ledger counts with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..memory.ask import Ask, Files, Tiles
from ..memory.machine import Machine
from ..models.catalog import CATALOG, model_spec
from ..models.spec import ModelSpec

if TYPE_CHECKING:
    from ..tiling import TokenPlan

USUAL_CLIPS = {
    "minimax-h3": (864, 480, 124), "wan": (832, 480, 81), "wan2.2-5b": (1280, 704, 121),
    "ltx-video": (768, 512, 121), "ltx-2": (768, 512, 121), "hunyuan-video": (1280, 720, 129),
    "hunyuan-video-1.5": (848, 480, 121), "cogvideox": (720, 480, 49),
    "cogvideox-1.5": (1360, 768, 81), "mochi": (848, 480, 163),
}  # fmt: skip
"""The clip that a plan without a size is about, by family."""


def usual_clip(spec: ModelSpec) -> tuple[int, int, int]:
    """Width, height and frames of the model's usual clip."""
    if spec.name == "nano":
        return 480, 288, 33
    return USUAL_CLIPS.get(spec.family.name, (832, 480, 81))


def tiles_of(plan: TokenPlan, settings: Mapping[str, Any] | None = None, order: str = "block-major",
             accumulate: str = "device") -> Tiles:  # fmt: skip
    """A tile plan in the numbers that the ledger counts with."""
    return Tiles(
        plan.tile_tokens, plan.frame_tokens, plan.runs, plan.exchange, order, accumulate,
        plan.expected_time or plan.price,
        tuple((k, str(v)) for k, v in (settings or {}).items()), plan.tokens_run,
    )  # fmt: skip


def tiler(ask: Ask, share: float) -> Tiles | None:
    """A tile plan of at most `share` of the clip, or None where no tile is that small."""
    try:
        plan = _largest(ask, {"budget": share})
    except UsageError:
        return None
    return tiles_of(plan, {"budget": f"{round(share * 100)}%"})


def wanted_tiles(ask: Ask, settings: Mapping[str, Any]) -> Tiles:
    """The tiles that a person asked for. Raises UsageError when they cannot be planned."""
    given = {k: v for k, v in settings.items() if v is not None}
    # As the node H3 Hex Tiles calls its inputs.
    named = {"grid_shift" if k == "shift" else k: v for k, v in given.items() if k != "exchange"}
    return tiles_of(_largest(ask, given), named)


def _largest(ask: Ask, settings: Mapping[str, Any]) -> TokenPlan:
    """The plan of a clip; with a grid that moves, the largest of its plans."""
    from ..tiling.settings import HexSettings
    from ..tiling.shift import clip_schedule

    return clip_schedule(
        ask.width, ask.height, ask.frames, ask.spec.family, HexSettings(**settings),
        ask.spec.denoiser,
    ).largest  # fmt: skip


def find_source(name: str) -> tuple[ModelSpec, str | None, Files, tuple[str, ...]]:
    """A model by catalog name or local path: spec, quantization, sizes of files, remarks.

    Raises UsageError for neither.
    """
    path = Path(name).expanduser()
    looks_local = path.exists() or name.startswith((".", "/", "~")) or path.suffix in (
        ".gguf", ".safetensors",
    )  # fmt: skip
    if not looks_local:
        try:
            return model_spec(name), None, Files(), ()
        except UsageError as e:
            raise UsageError(f"{e}; or give a .gguf or .safetensors file, or a folder") from None
    if not path.exists():
        raise UsageError(f"model {name} is not there; give a file, a folder, or a catalog name")
    from ..memory.local import read_local

    return read_local(path)


def make_ask(
    spec: ModelSpec, quant: str | None, machine: Machine, *, width: int | None = None,
    height: int | None = None, frames: int | None = None, tiling: Mapping[str, Any] | None = None,
    tiles: bool = True, pictures: int | None = None, **more: Any,
) -> Ask:  # fmt: skip
    """An ask with legal frames: a length between two legal ones runs as the longer, as the
    runtimes do. Sizes that the model does not take are refused, with the nearest legal ones.

    tiling     settings of the tile plan; None: no tiles
    pictures   given ones of the clip's size; None: one where the model starts from one
    """
    usual = usual_clip(spec)
    width, height = width or usual[0], height or usual[1]
    asked = frames or usual[2]
    ask = Ask(
        spec, quant or spec.dtype, width, height, spec.runs_as(asked), machine,
        asked_frames=asked, pictures=spec.pictures if pictures is None else pictures, **more,
    )  # fmt: skip
    spec.family.check(width, height, ask.frames)
    if tiling and tiles:
        ask = replace(ask, tiles=wanted_tiles(ask, tiling))
    return ask


def catalog_names() -> list[str]:
    """Names of the catalog, for combos."""
    return list(CATALOG)
