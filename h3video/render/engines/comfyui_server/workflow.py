"""A user's workflow in API format, and which of its inputs a chunk fills.

A node says by its title what it takes: `NAME` or `NAME.INPUT`, several with commas between. A node
titled `positive.text` has its input `text` set to the chunk's prompt; `seed` alone finds the input
by its usual names. What has no title stays as it is in the workflow.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ....errors import UsageError

INPUTS = {
    "positive": ("text", "prompt", "string", "value"),
    "negative": ("text", "prompt", "string", "value"),
    "seed": ("seed", "noise_seed", "value"),
    "frames": ("length", "frames", "num_frames", "video_length", "value"),
    "width": ("width", "value"),
    "height": ("height", "value"),
    "fps": ("fps", "frame_rate", "value"),
    "steps": ("steps", "value"),
    "cfg": ("cfg", "guidance", "value"),
    "first_frame": ("image",),
    "index": ("index", "chunk", "value"),
    "start": ("start", "value"),
}
"""What a chunk gives, and the inputs that take it if the title does not name one."""

NEEDED = ("positive", "seed", "frames")

RESULT, SOUND = "result", "sound"
"""Titles of the node whose files are the chunk's pictures, and its sound if that is another one."""


@dataclass(frozen=True)
class Slot:
    """An input that is filled: of node `node`, with what `name` is for the chunk."""

    name: str
    node: str
    input: str


@dataclass(frozen=True)
class Workflow:
    """A workflow and its slots. `results` and `sounds`: nodes with these titles."""

    nodes: dict[str, Any]
    slots: tuple[Slot, ...]
    results: tuple[str, ...]
    sounds: tuple[str, ...]

    def takes(self, name: str) -> bool:
        """Whether a node is titled so."""
        return any(slot.name == name for slot in self.slots)

    def filled(self, values: dict[str, Any]) -> dict[str, Any]:
        """The workflow for one chunk; names without a value stay as they are."""
        nodes = copy.deepcopy(self.nodes)
        for slot in self.slots:
            value = values.get(slot.name)
            if value is not None:
                nodes[slot.node]["inputs"][slot.input] = value
        return nodes

    def identity(self) -> dict[str, Any]:
        """All that decides a result and is not filled: every node's kind and inputs."""
        filled = {(s.node, s.input) for s in self.slots if s.name != "first_frame"}
        return {
            node: {
                "class_type": made["class_type"],
                "inputs": {
                    k: v for k, v in sorted(made["inputs"].items()) if (node, k) not in filled
                },
            }
            for node, made in sorted(self.nodes.items())
        }


def load_workflow(path: Path) -> Workflow:
    """Read a workflow. Raises UsageError when it is none, or lacks a title that is needed."""
    try:
        nodes = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise UsageError(f"workflow {path} cannot be read ({e.strerror}); check the path") from None
    except ValueError as e:
        raise UsageError(f"workflow {path} is no JSON ({e})") from None
    if isinstance(nodes, dict) and "nodes" in nodes and "links" in nodes:
        raise UsageError(
            f"workflow {path} is a saved graph; export it in ComfyUI with File > Export (API)"
        )
    if not (
        isinstance(nodes, dict)
        and nodes
        and all(isinstance(n, dict) and isinstance(n.get("inputs"), dict) and "class_type" in n
                for n in nodes.values())
    ):  # fmt: skip
        raise UsageError(f"workflow {path} is not in API format; use File > Export (API)")
    return read_titles(nodes, path)


def read_titles(nodes: dict[str, Any], path: Path) -> Workflow:
    """The slots of a workflow. Raises UsageError."""
    slots, results, sounds = [], [], []
    for node in sorted(nodes, key=lambda n: (len(n), n)):
        title = nodes[node].get("_meta", {}).get("title", "")
        for part in (p.strip() for p in title.split(",")):
            name, _, wanted = part.partition(".")
            name = name.strip().lower().replace(" ", "_")
            if name == RESULT:
                results.append(node)
            elif name == SOUND:
                sounds.append(node)
            elif name in INPUTS and (
                wanted or part.lower() == title.strip().lower() or "," in title
            ):
                slots.append(
                    Slot(name, node, _input(nodes[node], name, wanted.strip(), part, path))
                )
    found = Workflow(nodes, tuple(slots), tuple(results), tuple(sounds))
    missing = [name for name in NEEDED if not found.takes(name)]
    if missing:
        example = INPUTS[missing[0]][0]
        raise UsageError(
            f"workflow {path} has no node titled {' or '.join(missing)}; give the node that takes "
            f"it the title {missing[0]}.{example} (right click > Title) and export it again"
        )
    return found


def _input(node: dict[str, Any], name: str, wanted: str, title: str, path: Path) -> str:
    """The input that a title means."""
    have = node["inputs"]
    if wanted:
        if wanted not in have:
            raise UsageError(
                f"workflow {path}: the node titled {title!r} ({node['class_type']}) has no input "
                f"{wanted}; it has {', '.join(have) or 'none'}"
            )
        return wanted
    for candidate in INPUTS[name]:
        if candidate in have:
            return candidate
    raise UsageError(
        f"workflow {path}: it is not clear which input of {node['class_type']} takes {name}; "
        f"write it into the title: {name}.INPUT with one of {', '.join(have) or 'none'}"
    )
