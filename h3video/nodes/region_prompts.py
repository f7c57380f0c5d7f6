"""H3RegionPrompts: a prompt for part of the frame, at no extra cost per step on tiles."""

from __future__ import annotations

import itertools
from typing import Any

from comfy_api.latest import io

from ..errors import UsageError
from .sockets import Cells


class H3RegionPrompts(io.ComfyNode):
    """(base, prompt, where) -> CONDITIONING; chain it for further regions."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3RegionPrompts",
            display_name="H3 Region Prompts",
            category="h3-video/sampling",
            description="Gives a part of the frame a prompt of its own; the base prompt rules "
            "everywhere else. Chain several for several regions. With H3 Hex Tiles a tile inside "
            "one region runs once, with that region's prompt. Without tiles ComfyUI's own mask "
            "conditioning does the same at the price of a full frame per region.",
            inputs=[
                io.Conditioning.Input(
                    "base", tooltip="The prompt of the rest of the frame, or another H3 Region "
                    "Prompts.",
                ),
                io.Conditioning.Input("prompt", tooltip="The prompt of this region."),
                io.Mask.Input(
                    "mask", optional=True,
                    tooltip="Where the region is: 1 inside, 0 outside; in between both prompts "
                    "count. Any size with the frame's proportions. Or use cells.",
                ),
                Cells.Input(
                    "cells", optional=True,
                    tooltip="A grid of cells whose chosen ones are the region, soft over its "
                    "overlap. Or use mask.",
                ),
                io.String.Input(
                    "select", default="ring<=1", multiline=True, optional=True,
                    tooltip="Which of the cells: ids, ring<=2, row 0, x<50%, ... as in H3 Cell "
                    "Mask. Not used with a mask.",
                ),
            ],
            outputs=[
                io.Conditioning.Output(
                    "conditioning", display_name="conditioning",
                    tooltip="Base prompt and regions, for a sampler or another H3 Region Prompts.",
                ),
            ],
        )  # fmt: skip

    @classmethod
    def execute(
        cls, base: Any, prompt: Any, mask: Any = None, cells: Any = None, select: str = "ring<=1"
    ) -> Any:
        return io.NodeOutput(add_region(base, prompt, region_mask(mask, cells, select)))


def region_mask(mask: Any, cells: Any, select: str) -> Any:
    """The region as a mask [height, width]. Raises UsageError when it is missing or empty."""
    import torch

    if (mask is None) == (cells is None):
        given = "both are" if mask is not None else "neither is"
        raise UsageError(f"a region is a mask or cells; {given} connected, connect one")
    if cells is not None:
        from ..grid.select import select_cells

        values = [0.0] * len(cells.grid.cells)
        for index in select_cells(cells, select):
            values[index] = 1.0
        if not any(values):
            raise UsageError(f"select {select!r} chooses no cell; a region must cover something")
        return torch.from_numpy(cells.mask(values))
    flat = mask if mask.ndim == 2 else mask.squeeze()
    if flat.ndim != 2:
        raise UsageError(
            f"the mask is a batch of shape {tuple(mask.shape)}; a region has one mask for all "
            "frames, so give one of [1, height, width]"
        )
    if not flat.max() > 0:
        raise UsageError("the mask is empty (all 0); a region must cover something")
    return flat.float().clamp(0.0, 1.0).cpu()


def add_region(base: Any, prompt: Any, mask: Any) -> Any:
    """A conditioning with one region more."""
    from ..render.engines.comfyui.regions import BASE, REGION
    from ..tiling.regions import Region

    if not prompt:
        raise UsageError("the region's prompt is an empty conditioning; connect a prompt")
    earlier = [o for _, o in base if isinstance(o.get(REGION), Region)]
    names = {o[REGION].name for o in earlier}
    name = next(n for i in itertools.count(1) if (n := f"region {i}") not in names)
    region = Region(name, mask.numpy())
    out = [[e, {**o, REGION: o.get(REGION, BASE)}] for e, o in base]
    out += [[e, {**o, REGION: region}] for e, o in prompt]
    return [[e, {**o, **_for_untiled(o[REGION], out)}] for e, o in out]


def _for_untiled(region: Any, entries: Any) -> dict[str, Any]:
    """The same as ComfyUI's mask conditioning, for samplers without tiles."""
    import torch

    from ..render.engines.comfyui.regions import REGION
    from ..tiling.regions import Region

    regions = {id(o[REGION]): o[REGION] for _, o in entries if isinstance(o[REGION], Region)}
    if isinstance(region, Region):
        own = torch.from_numpy(region.mask)
    else:
        sizes = [r.mask.shape for r in regions.values()]
        rows, columns = max(h for h, _ in sizes), max(w for _, w in sizes)
        total = sum(
            torch.nn.functional.interpolate(
                torch.from_numpy(r.mask)[None, None], (rows, columns), mode="bilinear"
            )[0, 0]
            for r in regions.values()
        )
        own = (1.0 - total).clamp(0.0, 1.0)
    return {"mask": own[None], "mask_strength": 1.0, "set_area_to_bounds": False}
