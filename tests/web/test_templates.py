"""Every shipped workflow opens from the template browser without a red node."""

import urllib.parse

import pytest
from catalogue import WORKFLOWS
from comfy_harness import comfyui_version

RED = """() => app.graph.nodes
    .filter(n => !(n.type in LiteGraph.registered_node_types)
        || n.has_errors && !/Load/.test(n.type))
    .map(n => n.type)"""
"""Newer pages also mark loaders whose file is not there, which is right here."""

LOOSE = """() => app.graph.nodes.flatMap(n => (n.inputs ?? [])
    .filter(i => i.link != null && !app.graph.links[i.link] && !app.graph.links.get?.(i.link))
    .map(i => `${n.type}.${i.name}`))"""


@pytest.mark.parametrize("name", list(WORKFLOWS))
def test_opens_without_red_nodes(open_page, comfy, comfyui, name):
    workflow = WORKFLOWS[name]
    needed = tuple(int(n) for n in workflow.comfy.split(".")) if workflow.comfy else (0,)
    if comfyui_version(comfyui) < needed:
        pytest.skip(f"needs ComfyUI {workflow.comfy}")
    page = open_page()
    title = urllib.parse.quote(workflow.title)
    graph = comfy.json(f"/api/workflow_templates/ComfyUI-H3-Video/{title}.json")
    page.js("g => app.loadGraphData(g)", graph)
    page.wait("n => app.graph.nodes.length === n", len(graph["nodes"]))
    assert page.js(RED) == [] and page.js(LOOSE) == []
