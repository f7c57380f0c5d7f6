"""H3MemoryLedger: whether a clip fits this machine, before anything is sampled."""

from __future__ import annotations

import sys
from typing import Any

from comfy_api.latest import io

from ..memory.ask import ATTENTIONS
from ..models.catalog import CATALOG
from .sockets import advanced, says_what_to_install

THIS = "this machine"

QUANTS = ["as published", "BF16", "F16", "fp8", "INT8", "NVFP4", "Q8_0", "Q6_K", "Q5_K_M",
          "Q4_K_M", "Q4_0", "Q3_K_M", "Q2_K"]  # fmt: skip


class H3MemoryLedger(io.ComfyNode):
    """Model, clip and machine -> a report, a picture, and settings for other nodes."""

    @classmethod
    def define_schema(cls) -> Any:
        return io.Schema(
            node_id="H3MemoryLedger",
            display_name="H3 Memory Ledger",
            category="h3-video/memory",
            description="Says whether a model fits a machine at a canvas and length, where the "
            "peak is, and what would make it fit. Nothing is loaded. Its outputs go into H3 Hex "
            "Tiles and the chunk nodes.",
            is_output_node=True,
            inputs=[
                io.Combo.Input(
                    "model", options=list(CATALOG), default="minimax-h3-pruned",
                    tooltip="The model to plan for; ignored when a loaded one is connected.",
                ),
                io.Combo.Input(
                    "quant", options=QUANTS, default="Q4_K_M",
                    tooltip="What its transformer is quantized to; a loaded model's own counts.",
                ),
                io.Int.Input("width", default=864, min=16, max=16384, step=16,
                             tooltip="Width of the clip in pixels."),
                io.Int.Input("height", default=480, min=16, max=16384, step=16,
                             tooltip="Height of the clip in pixels."),
                io.Int.Input("frames", default=124, min=1, max=100000,
                             tooltip="Frames of the clip; a length between two that the model "
                             "makes runs as the longer."),
                io.String.Input(
                    "machine", default=THIS,
                    tooltip="this machine, or another: m1max-64gb, rtx4090.",
                ),
                io.Model.Input(
                    "loaded", optional=True,
                    tooltip="A model from a loader: its own tensors are counted.",
                ),
                advanced(io.String.Input(
                    "flags", default="", optional=True,
                    tooltip="ComfyUI's command line to plan for, such as --cache-none. Empty: "
                    "this server's own on this machine, none on another.",
                )),
                advanced(io.Combo.Input(
                    "attention", options=list(ATTENTIONS), default="auto", optional=True,
                    tooltip="auto: what ComfyUI takes on that machine.",
                )),
                advanced(io.String.Input(
                    "encoder_quant", default="", optional=True,
                    tooltip="What the text encoder is quantized to. Empty: like the transformer.",
                )),
            ],
            outputs=[
                io.String.Output("report", display_name="report",
                                 tooltip="The plan: peaks of every phase, verdict, advice."),
                io.Image.Output("picture", display_name="picture",
                                tooltip="The phases as bars, the limits as lines."),
                io.Boolean.Output("fits", display_name="fits",
                                  tooltip="Whether it runs as asked."),
                io.String.Output("budget", display_name="budget",
                                 tooltip="For H3 Hex Tiles: the largest tile that fits; 100% "
                                 "where no tiles are needed."),
                io.Int.Output("chunk_frames", display_name="chunk_frames",
                              tooltip="Frames of a chunk that fits; all frames where no chunks "
                              "are needed."),
            ],
        )  # fmt: skip

    @classmethod
    def fingerprint_inputs(cls, machine: str = THIS, **_: Any) -> Any:
        """This machine's free memory changes from run to run."""
        return float("nan") if machine.strip() in ("", THIS) else machine

    @classmethod
    @says_what_to_install
    def execute(
        cls, model: str, quant: str, width: int, height: int, frames: int, machine: str,
        loaded: Any = None, flags: str = "", attention: str = "auto", encoder_quant: str = "",
    ) -> Any:  # fmt: skip
        import numpy as np
        import torch

        from ..memory.advice import advise, verdict
        from ..memory.ledger import plan
        from ..memory.machine import find_machine
        from ..memory.picture import draw
        from ..memory.report import text
        from ..render.forecast import make_ask, tiler

        here = machine.strip() in ("", THIS)
        spec, stored, files = source(model, quant, loaded)
        ask = make_ask(
            spec, stored, find_machine(None if here else machine.strip()), width=width,
            height=height, frames=frames, runtime="comfyui", attention=attention, files=files,
            encoder_quant=checked(encoder_quant), flags=command_line(flags, here),
        )  # fmt: skip
        ledger = plan(ask)
        advice = advise(ledger, tiler)
        report = text(ledger, advice)
        budget, chunk = values(ledger, advice)
        picture = np.asarray(draw(ledger, verdict(ledger, advice)), np.float32) / 255.0
        image = torch.from_numpy(picture)[None]
        return io.NodeOutput(
            report, image, ledger.fits, budget, chunk, ui=shown(cls, report, image)
        )


def shown(cls: Any, report: str, image: Any) -> dict[str, Any]:
    """What the node shows: the text and the picture."""
    from comfy_api.latest import ui

    try:
        preview = ui.PreviewImage(image, cls=cls).as_dict()
    except (AttributeError, OSError, RuntimeError):  # outside a server there is no folder for it
        preview = {}
    return {**preview, "text": [report]}


def values(ledger: Any, advice: Any) -> tuple[str, int]:
    """(budget, frames of a chunk) for other nodes: of the cheapest advice that these nodes can
    carry out alone, else of the cheapest."""
    if ledger.fits or not any(a.fits for a in advice):
        return "100%", ledger.ask.frames
    ours = [a for a in advice if a.fits and {c.kind for c in a.changes} <= {"tiles", "frames"}]
    best = (ours or [a for a in advice if a.fits])[0]
    found = best.settings
    return found.get("budget", "100%"), int(found.get("chunk_frames", ledger.ask.frames))


def checked(name: str) -> str | None:
    """A quantization's name, or None for an empty one. Raises UsageError for an unknown one."""
    from ..memory.quants import parse_quant

    return parse_quant(name).name if name.strip() else None


def command_line(flags: str, here: bool) -> tuple[str, ...]:
    """The flags to plan for: as written, else this server's where this machine is meant."""
    import shlex

    from ..memory.flags import KNOWN

    if flags.strip():
        return tuple(shlex.split(flags))
    return tuple(a for a in sys.argv[1:] if here and a.split("=")[0] in KNOWN)


def source(model: str, quant: str, loaded: Any) -> tuple[Any, str | None, Any]:
    """(spec, quantization, sizes of files): of a loaded model by its tensors, else by name.

    Raises UsageError for a loaded model that is not in the catalog.
    """
    from ..memory.ask import Files
    from ..models.catalog import model_spec

    if loaded is None:
        return model_spec(model), None if quant == QUANTS[0] else checked(quant), Files()
    from ..memory.local import describe

    spec, found, files, _ = describe("the loaded model", [header_of(loaded)])
    return spec, found, files


TYPES = {
    "torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16",
    "torch.float8_e4m3fn": "F8_E4M3", "torch.float8_e5m2": "F8_E5M2", "torch.int8": "I8",
    "torch.uint8": "U8",
}  # fmt: skip


def header_of(loaded: Any) -> Any:
    """A loaded model's tensors as a file's header would list them.

    ComfyUI-GGUF's tensors tell their quantized type and their shape before packing.
    """
    from ..memory.formats.header import FileHeader, StoredTensor

    tensors = []
    for name, value in loaded.model.diffusion_model.state_dict().items():
        kind = getattr(value, "tensor_type", None)
        stated = getattr(kind, "name", None) or TYPES.get(str(value.dtype), "F32")
        shape = tuple(getattr(value, "tensor_shape", value.shape))
        count = value.numel() * value.element_size()
        tensors.append(StoredTensor(name, shape, stated, 0, count))
    total = sum(t.bytes for t in tensors)
    return FileHeader("safetensors", "the loaded model", {}, tuple(tensors), total, total)
