"""H3FreeMemory: hand memory back between two nodes, and say how much that was."""

from __future__ import annotations

import gc
from typing import Any

from comfy_api.latest import io


class H3FreeMemory(io.ComfyNode):
    """Pass anything through, freeing memory on the way."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3FreeMemory",
            display_name="H3 Free Memory",
            category="h3-video/memory",
            description="Passes anything through and frees what is not in use: Python's garbage, "
            "ComfyUI's and PyTorch's caches; on demand the loaded models, too.",
            inputs=[
                io.AnyType.Input("value", tooltip="Anything; it is passed on unchanged."),
                io.Boolean.Input(
                    "unload_models", default=False, optional=True,
                    tooltip="Also take loaded models off the device: for before a step that needs "
                    "all of it. They are loaded again when they are needed.",
                ),
            ],
            outputs=[
                io.AnyType.Output("same", display_name="value", tooltip="What came in."),
                io.String.Output(
                    "report", display_name="report",
                    tooltip="Free and used memory before and after.",
                ),
            ],
        )  # fmt: skip

    @classmethod
    def execute(cls, value: Any, unload_models: bool = False) -> Any:
        import comfy.model_management as mm
        import torch

        before = measure(mm)
        if unload_models:
            mm.unload_all_models()
        gc.collect()
        mm.soft_empty_cache(True)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if torch.backends.mps.is_available():
            torch.mps.empty_cache()
        report = compare(before, measure(mm))
        return io.NodeOutput(value, report, ui={"text": [report]})


def measure(mm: Any) -> dict[str, int]:
    """Bytes: free on the device, free on the host, resident in this process."""
    import psutil

    device = mm.get_torch_device()
    found = {f"free on {device}": int(mm.get_free_memory(device))}
    if device.type != "cpu":
        found["free on the host"] = int(psutil.virtual_memory().available)
    found["used by ComfyUI"] = int(psutil.Process().memory_info().rss)
    return found


def compare(before: dict[str, int], after: dict[str, int]) -> str:
    """A line for every figure."""
    gib = 2.0**30
    return "\n".join(
        f"{name}: {before[name] / gib:.2f} -> {after[name] / gib:.2f} GiB "
        f"({(after[name] - before[name]) / gib:+.2f})"
        for name in before
    )
