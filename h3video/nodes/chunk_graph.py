"""What of a workflow made a value: the nodes before it, in a form that can be compared.

Node ids change when people edit a workflow, so nodes are numbered in the order in which they are
met on the way back from the value. Plain data; knows nothing of ComfyUI.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Graph = list[dict[str, Any]]

IDLE = {
    "H3ChunkPlan": {"index", "folder", "content", "fps"},
    "H3ChunkSave": {"if_changed"},
}
"""Inputs of our own nodes that say where a chunk is kept, not what is in it."""


def ancestors(prompt: Mapping[str, Any], link: Any) -> Graph:
    """The nodes that a link's value depends on, each {"class", "title", "inputs"}.

    prompt   a workflow in API format
    link     [node id, output], as an input's value has it; anything else has no ancestors

    Links are {"node": number, "output": n}. Nodes of a loop are met once.
    """
    numbers: dict[str, int] = {}
    found: Graph = []

    def visit(node_id: str) -> int:
        if node_id in numbers:
            return numbers[node_id]
        node = prompt[node_id]
        numbers[node_id] = len(found)
        entry = {
            "class": node["class_type"], "title": (node.get("_meta") or {}).get("title", ""),
            "inputs": {},
        }  # fmt: skip
        found.append(entry)
        for name in sorted(node["inputs"].keys() - IDLE.get(node["class_type"], set())):
            value = node["inputs"][name]
            if _is_link(value, prompt):
                number = visit(str(value[0]))
                entry["inputs"][name] = {"node": number, "output": int(value[1])}
            else:
                entry["inputs"][name] = value
        return numbers[node_id]

    if _is_link(link, prompt):
        visit(str(link[0]))
        found[0] = {**found[0], "output": int(link[1])}
    return json.loads(json.dumps(found))  # type: ignore[no-any-return]


def _is_link(value: Any, prompt: Mapping[str, Any]) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and isinstance(value[1], int)
        and str(value[0]) in prompt
    )


def difference(old: Graph, new: Graph) -> str:
    """What differs first between two graphs, in words; "" if nothing that matters does."""
    for a, b in zip(old, new):
        name = b["title"] or b["class"]
        if a["class"] != b["class"]:
            return f"{a['class']} was where {b['class']} is"
        for key in sorted(a["inputs"].keys() | b["inputs"].keys()):
            before, now = a["inputs"].get(key), b["inputs"].get(key)
            if before != now:
                return f"{key} of {name} was {_shown(before)}, is {_shown(now)}"
        if a.get("output") != b.get("output"):
            return f"another output of {name} is connected"
    if len(old) != len(new):
        return f"{len(old)} nodes were before it, now {len(new)} are"
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, dict) and "node" in value:
        return "a link to another node"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
