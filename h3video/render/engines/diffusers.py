"""Hexagonal tiling of a diffusers pipeline: two calls, no other change to the caller's code.

    h3video.apply_hex_tiling(pipe, hex_res="auto")
    pipe(prompt, ...)                               # as before, at the peak of a tile
    h3video.remove_hex_tiling(pipe)

Blocks are wrapped through instance attributes (`block.forward`), which module
hooks, offloading and LoRA see as before; nothing of diffusers is patched.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from ...grid import DEFAULT_SPAN
from ...models import VideoFamily, family_of
from ...models.wan import denoiser_shape, with_vae
from ...tiling.budget import parse_budget
from ...tiling.crops import CropPlan, plan_crop_tiles
from ...tiling.tokens import TokenPlan, plan_token_tiles
from .describe import describe

if TYPE_CHECKING:
    from ...tiling.fuse import Streams
    from ...tiling.table import Tile

log = logging.getLogger("h3video")

_ATTRIBUTE = "_h3video_tiling"


class HexTiling:
    """The tiling of one pipeline: settings, plans by frame size, and what was wrapped."""

    def __init__(
        self, family: VideoFamily, settings: dict[str, Any], vae: dict[str, Any] | None,
        on_tile: Callable[[str, float], None] | None,
    ) -> None:  # fmt: skip
        self.family = family
        self.settings = settings
        self.vae_settings = vae
        self.on_tile = on_tile
        self.measure = False
        self.own_seconds = 0.0
        self.plans: list[TokenPlan] = []
        self._wrapped: list[tuple[Any, str]] = []
        self._said: set[str] = set()

    def token_plan(self, width: int, height: int, frames: int, denoiser: Any = None) -> TokenPlan:
        """The plan for a clip of this size; the same for the same settings."""
        return plan_token_tiles(
            width, height, frames, self.family, denoiser=denoiser, **self.settings
        )

    def crop_plan(self, width: int, height: int) -> CropPlan:
        """The plan of the decoder for a frame of this size."""
        return plan_crop_tiles(width, height, self.family, **(self.vae_settings or {}))

    def wrap(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace a method on one instance by `make(original)`."""
        original = getattr(owner, name)
        setattr(owner, name, functools.wraps(original)(make(original)))
        self._wrapped.append((owner, name))

    def undo(self) -> None:
        """Take every wrapper off again."""
        for owner, name in reversed(self._wrapped):
            owner.__dict__.pop(name, None)
        self._wrapped.clear()

    def say_once(self, text: str) -> None:
        """Log a line the first time that it comes up."""
        if text not in self._said:
            self._said.add(text)
            log.info("%s", text)


def apply_hex_tiling(
    pipe: Any,
    hex_res: int | str = "auto",
    overlap: float | None = None,
    halo: float | None = None,
    budget: float | int | str | None = None,
    *,
    shape: str = "hex",
    span: float = DEFAULT_SPAN,
    rotation: float = 0.0,
    exchange: str = "step",
    tile_vae: bool = True,
    on_tile: Callable[[str, float], None] | None = None,
) -> HexTiling:
    """Run a diffusers Wan pipeline in hexagonal token tiles.

    pipe       a WanPipeline (or one with the same transformer and VAE classes)
    hex_res    H3 resolution 0..15, or "auto": the coarsest grid whose tile fits the budget
    overlap    px shared along every cell edge (None: 4 tokens; 0: a hard partition)
    halo       px of context that a tile sees beyond its cell (None: 3 tokens)
    budget     share of the frame's tokens ("25%"), or bytes for a step's activations ("2GiB")
    shape      hex | rect (the baseline) | none (one tile: bit-identical to no tiling)
    exchange   step | block, see h3video.tiling.fuse
    tile_vae   decode in crops with hexagonal seams, too
    on_tile    called with ("denoise" | "decode", share of a forward pass or of the frame)

    Every later call of `pipe` is tiled, whatever its size. Calling this again replaces
    the settings. Raises UsageError for a bad value or an unknown transformer.
    """
    transformers = [
        t for t in (getattr(pipe, "transformer", None), getattr(pipe, "transformer_2", None))
        if t is not None
    ]  # fmt: skip
    if not transformers:
        raise UsageError(f"{type(pipe).__name__} has no transformer to tile; use a Wan pipeline")
    family = family_of(type(transformers[0]).__name__)
    if family is None:
        raise UsageError(
            f"{type(transformers[0]).__name__} has no tiling adapter yet; "
            "use a Wan pipeline (WanTransformer3DModel)"
        )
    family = with_vae(family, getattr(pipe, "vae_scale_factor_spatial", family.vae_space))
    settings = {
        "hex_res": hex_res, "overlap": overlap, "halo": halo, "budget": parse_budget(budget),
        "shape": shape, "span": span, "rotation": rotation, "exchange": exchange,
    }  # fmt: skip
    vae_settings = {"budget": settings["budget"], "shape": shape, "span": span,
                    "rotation": rotation} if tile_vae else None  # fmt: skip
    remove_hex_tiling(pipe)
    tiling = HexTiling(family, settings, vae_settings, on_tile)
    # Out-of-range settings must show now and not after the text encoder has run.
    probe = family.size_multiple * 32
    if not isinstance(settings["budget"], int):
        tiling.token_plan(probe, probe, 1)
    try:
        for transformer in transformers:
            _wrap_transformer(tiling, transformer)
        if tile_vae and getattr(pipe, "vae", None) is not None:
            wrap_vae(tiling, pipe.vae)
    except BaseException:
        tiling.undo()
        raise
    object.__setattr__(pipe, _ATTRIBUTE, tiling)
    return tiling


def remove_hex_tiling(pipe: Any) -> bool:
    """Undo `apply_hex_tiling`. True if there was something to undo."""
    tiling = pipe.__dict__.pop(_ATTRIBUTE, None)
    if tiling is None:
        return False
    tiling.undo()
    return True


def _wrap_transformer(tiling: HexTiling, transformer: Any) -> None:
    """Wrap a WanTransformer3DModel: its forward opens a step, its blocks run tile by tile."""
    from ...tiling.fuse import TileRunner
    from ...tiling.sequence import Sequence, Span
    from ...tiling.table import TileTable

    blocks = list(transformer.blocks)
    known: list[TileTable] = []  # the table of the last frame size
    current: list[TileRunner] = []  # the runner of the forward pass under way

    def on_tile(share: float) -> None:
        if tiling.on_tile is not None:
            tiling.on_tile("denoise", share)

    def table_for(plan: TokenPlan, device: Any) -> TileTable:
        sequences = {"img": Sequence(plan.frame_tokens, (Span(0, plan.latent_frames),))}
        if not known or not known[0].matches(plan, sequences, device):
            known[:] = [TileTable(plan, sequences, device)]
        return known[0]

    def make_forward(original: Any) -> Any:
        def forward(hidden_states: Any, *args: Any, **kwargs: Any) -> Any:
            _, _, latent_frames, rows, columns = hidden_states.shape
            vae_time, vae_space = tiling.family.vae_time, tiling.family.vae_space
            plan = tiling.token_plan(
                columns * vae_space, rows * vae_space, (latent_frames - 1) * vae_time + 1,
                denoiser_shape(transformer.config, hidden_states.element_size()),
            )  # fmt: skip
            tiling.say_once(describe(plan))
            if plan not in tiling.plans:
                tiling.plans.append(plan)
            if plan.single:
                out = original(hidden_states, *args, **kwargs)
                on_tile(1.0)
                return out
            runner = TileRunner(table_for(plan, hidden_states.device), on_tile=on_tile)
            runner.measure = tiling.measure
            current[:] = [runner]
            try:
                return original(hidden_states, *args, **kwargs)
            finally:
                current.clear()
                tiling.own_seconds += runner.own_seconds

        return forward

    def make_block(i: int) -> Callable[[Any], Any]:
        def make(original: Any) -> Any:
            def forward(
                hidden_states: Any, encoder_hidden_states: Any, temb: Any, rotary_emb: Any
            ) -> Any:
                if not current:  # not in tiles, or outside a forward pass of the transformer
                    return original(hidden_states, encoder_hidden_states, temb, rotary_emb)

                def call(tile: Tile, states: Streams) -> Streams:
                    own = original(
                        states["img"], encoder_hidden_states, _rows(tile, temb),
                        _rows(tile, rotary_emb),
                    )  # fmt: skip
                    return {"img": own}

                last = i == len(blocks) - 1
                out = current[0].block({"img": hidden_states}, call, 1.0 / len(blocks), last,
                                       release=(hidden_states,))  # fmt: skip
                return out["img"]

            return forward

        return make

    tiling.wrap(transformer, "forward", make_forward)
    for i, block in enumerate(blocks):
        tiling.wrap(block, "forward", make_block(i))


def _rows(tile: Tile, value: Any) -> Any:
    """The tile's rows of anything that has the token axis at 1; other tensors as they are."""
    if isinstance(value, (tuple, list)):
        return type(value)(_rows(tile, v) for v in value)
    plan_tokens = tile.total("img")
    if getattr(value, "ndim", 0) > 2 and value.shape[1] == plan_tokens:
        return tile.rows("img", value, 1)
    return value


def wrap_vae(tiling: HexTiling, vae: Any) -> None:
    """Wrap an AutoencoderKLWan: decode in crops, blend with hexagonal weights."""
    from diffusers.models.autoencoders.vae import DecoderOutput

    from ...tiling.decode import decode_crops

    def on_tile(share: float) -> None:
        if tiling.on_tile is not None:
            tiling.on_tile("decode", share)

    def make(original: Any) -> Any:
        def _decode(z: Any, return_dict: bool = True) -> Any:
            unit = tiling.family.vae_space
            plan = tiling.crop_plan(z.shape[-1] * unit, z.shape[-2] * unit)
            sample = decode_crops(plan, z, lambda c: original(c, return_dict=False)[0], on_tile)
            return DecoderOutput(sample=sample) if return_dict else (sample,)

        return _decode

    tiling.wrap(vae, "_decode", make)
