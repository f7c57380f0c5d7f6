"""The ComfyUI nodes, one file each. Importing this loads neither torch nor ComfyUI.

Whatever is missing (an old ComfyUI, a package, a broken file of ours), every node stays
registered: the others work, and the one concerned says at run time what to install.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

log = logging.getLogger("h3video")

NODES = {
    "H3GridEncode": "encode",
    "H3CellMask": "cell_mask",
    "H3CellsToText": "cells_text",
    "H3CellsFromText": "cells_text",
    "H3SplitTiles": "split_tiles",
    "H3MergeChunks": "merge_chunks",
    "H3HexTiles": "hex_tiles",
    "H3RegionPrompts": "region_prompts",
    "H3FreeMemory": "free_memory",
    "H3MemoryLedger": "memory_ledger",
    "H3FiniteGuard": "finite_guard",
    "H3HexWalkSampler": "hex_walk_sampler",
    "H3ChunkPlan": "chunk_plan",
    "H3ChunkSave": "chunk_save",
    "H3ChunkLoad": "chunk_load",
    "H3ChunkJoin": "chunk_join",
}
"""Node id -> the module of this package that holds the class of the same name."""

OLDEST_COMFYUI = "0.3.75"


def has_v3() -> bool:
    """Whether this ComfyUI has the V3 node schema; says so in one log line if not."""
    try:
        from comfy_api.latest import ComfyExtension, io

        return hasattr(io, "ComfyNode") and ComfyExtension is not None
    except Exception as e:
        log.warning(
            "ComfyUI-H3-Video needs ComfyUI %s or later (%s); its nodes only say so until then",
            OLDEST_COMFYUI, e,
        )  # fmt: skip
        return False


async def comfy_entrypoint() -> Any:
    """The V3 extension."""
    from comfy_api.latest import ComfyExtension

    class H3VideoExtension(ComfyExtension):
        async def get_node_list(self) -> list[Any]:
            return node_classes()

    try:
        from .routes import add_routes

        add_routes()
    except Exception as e:
        log.warning("the live grid preview is off (%s: %s)", type(e).__name__, e)
    return H3VideoExtension()


def node_classes() -> list[Any]:
    """Every node's class; a placeholder for one whose module does not load."""
    from .placeholder import placeholder_v3

    found = []
    for node_id, module in NODES.items():
        try:
            found.append(getattr(import_module(f".{module}", __name__), node_id))
        except Exception as e:
            reason = f"{node_id} cannot be used: {type(e).__name__}: {e}"
            log.warning("%s", reason)
            found.append(placeholder_v3(node_id, reason))
    return found


def old_comfyui_mappings() -> dict[str, Any]:
    """Placeholders in the old schema."""
    from .placeholder import placeholder_v1

    reason = f"this node needs ComfyUI {OLDEST_COMFYUI} or later; update ComfyUI"
    return {node_id: placeholder_v1(node_id, reason) for node_id in NODES}
