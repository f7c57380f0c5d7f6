"""Every workflow that we ship: its name for people, its two forms, the ComfyUI that it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import graphs
import sampling_graphs as sampling
from graphs import Prompt


@dataclass(frozen=True)
class Workflow:
    """One workflow.

    title   its file in example_workflows/, which is what ComfyUI's template browser shows
    real    makes the prompt that is shown; tiny: the one that tests run
    comfy   the oldest ComfyUI that has its nodes; "" where any does
    """

    title: str
    real: Callable[[], Prompt]
    tiny: Callable[[], Prompt]
    comfy: str = ""


def _plain(name: str, make: Callable[[graphs.Form], Prompt]) -> Workflow:
    return Workflow(name, lambda: make(graphs.REAL), lambda: make(graphs.NANO))


def _sampled(title: str, make: Callable[[bool], Prompt], comfy: str = "") -> Workflow:
    return Workflow(title, lambda: make(False), lambda: make(True), comfy)


WORKFLOWS = {name: _plain(name, make) for name, make in graphs.WORKFLOWS.items()} | {
    "hex_upscale": _sampled("H3 Hex Upscale", sampling.hex_upscale),
    "minimax_h3_t2v": _sampled(
        "MiniMax-H3 text to video in hex tiles", sampling.minimax_h3_t2v, "0.33"
    ),
    "minimax_h3_i2v": _sampled(
        "MiniMax-H3 image to video in hex tiles", sampling.minimax_h3_i2v, "0.33"
    ),
    "wan22_regions": _sampled("Wan 2.2 with regions", sampling.wan22_regions),
    "long_clip": _sampled("Long clip in time windows", sampling.long_clip),
    "long_chunks": _sampled("Long video in saved chunks", sampling.long_chunks),
}
"""Name -> workflow; workflows/tests/ has files of these names."""

FROM_OTHERS = {"UnetLoaderGGUF": "ComfyUI-GGUF"}
"""Nodes of other packs that a workflow uses -> the pack, which its note names."""
