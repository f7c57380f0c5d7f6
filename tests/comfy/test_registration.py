"""What the server says about our nodes: ids, inputs, outputs, help, locales, templates.

`H3VIDEO_REFRESH=1 python -m pytest tests/comfy/test_registration.py` writes object_info.json anew;
look at the difference: an id, an input or a default that changes breaks people's workflows.
"""

import json
import os
import urllib.parse
from pathlib import Path

import pytest
from catalogue import FROM_OTHERS, WORKFLOWS
from comfy_harness import comfyui_version
from comfy_harness.pack import FOLDER, ROOT

SNAPSHOT = Path(__file__).with_name("object_info.json")

KEPT = ("default", "min", "max", "step", "multiline", "advanced", "options")
"""What of an input's settings the snapshot holds: what a stored workflow depends on."""


def ours(info):
    """Node id -> definition of what our pack registers."""
    return {k: v for k, v in info.items() if v["python_module"] == f"custom_nodes.{FOLDER}"}


def inputs(definition):
    """(name, section, type, settings) of every input of a definition."""
    for section in ("required", "optional"):
        for name, (kind, *settings) in definition["input"].get(section, {}).items():
            yield name, section, kind, settings[0] if settings else {}


def brief(definition):
    """The part of a definition that the snapshot holds."""
    found = {}
    for name, section, kind, settings in inputs(definition):
        if isinstance(kind, list):  # how old ComfyUIs write a COMBO
            kind, settings = "COMBO", {**settings, "options": kind}
        found[name] = {"type": kind, "section": section}
        found[name] |= {k: settings[k] for k in KEPT if settings.get(k) not in (None, False)}
    return {
        "display_name": definition["display_name"],
        "category": definition["category"],
        "inputs": found,
        "outputs": [list(o) for o in zip(definition["output"], definition["output_is_list"])],
        "output_node": definition["output_node"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def nodes(comfy):
    return ours(comfy.json("/object_info"))


def test_nodes_are_as_in_the_snapshot(nodes):
    now = {name: brief(definition) for name, definition in sorted(nodes.items())}
    if os.environ.get("H3VIDEO_REFRESH"):
        SNAPSHOT.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert now == json.loads(SNAPSHOT.read_text(encoding="utf-8"))


def test_snapshot_has_the_nodes_of_the_issue():
    assert set(json.loads(SNAPSHOT.read_text(encoding="utf-8"))) >= {
        "H3GridEncode", "H3CellMask", "H3CellsToText", "H3CellsFromText", "H3SplitTiles",
        "H3MergeChunks", "H3FreeMemory", "H3FiniteGuard", "H3HexTiles", "H3RegionPrompts",
        "H3HexWalkSampler", "H3ChunkPlan", "H3ChunkSave", "H3ChunkLoad", "H3ChunkJoin",
    }  # fmt: skip


def test_everything_has_a_tooltip(nodes):
    for node_id, definition in nodes.items():
        assert definition["description"], node_id
        assert definition["category"].startswith("h3-video/"), node_id
        for name, _, _, settings in inputs(definition):
            assert settings.get("tooltip"), f"{node_id}.{name} has no tooltip"
        tips = definition["output_tooltips"]
        assert len(tips) == len(definition["output"]) and all(tips), node_id


OUTPUTS = {
    "H3GridEncode": ["mask", "cells", "preview", "summary"], "H3CellMask": ["mask", "ids"],
    "H3CellsToText": ["text"], "H3CellsFromText": ["cells"],
    "H3SplitTiles": ["tiles", "layout", "summary"], "H3MergeChunks": ["clip", "summary"],
    "H3MemoryLedger": ["report", "picture", "fits", "budget", "chunk_frames"],
    "H3FreeMemory": ["value", "report"], "H3FiniteGuard": ["value", "report"],
    "H3HexTiles": ["model"], "H3RegionPrompts": ["conditioning"], "H3HexWalkSampler": ["sampler"],
    "H3ChunkPlan": ["chunks", "index", "length", "start", "count", "continues", "summary"],
    "H3ChunkSave": ["value", "report"], "H3ChunkLoad": ["value", "found"],
    "H3ChunkJoin": ["images", "audio", "report"],
}  # fmt: skip


def test_outputs_are_named(nodes):
    """ComfyUI 0.3.75 shows an output's type where it has no display_name, 0.33 its id."""
    assert {node_id: nodes[node_id]["output_name"] for node_id in OUTPUTS} == OUTPUTS


def test_article_order(nodes):
    assert nodes["H3GridEncode"]["output"] == ["MASK", "H3_CELLS", "IMAGE", "STRING"]
    assert list(nodes["H3GridEncode"]["input"]["required"]) == [
        "width", "height", "hex_res", "overlap",
    ]  # fmt: skip


def pack_path(*parts):
    return "/extensions/" + "/".join(urllib.parse.quote(part) for part in (FOLDER, *parts))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_help_pages(comfy, nodes, language):
    """The page asks for docs/<id>/<language>.md, then for docs/<id>.md."""
    for node_id in nodes:
        status, body, _ = comfy.get(pack_path("docs", node_id, f"{language}.md"))
        if status != 200 and language == "en":
            status, body, _ = comfy.get(pack_path("docs", f"{node_id}.md"))
        text = body.decode("utf-8")
        assert status == 200 and len(text) > 200, f"{node_id} has no help page in {language}"
        if language == "zh":
            assert any("\u4e00" <= c <= "\u9fff" for c in text), node_id


@pytest.mark.parametrize("language", ["en", "zh"])
def test_locales(comfy, nodes, language):
    found = comfy.json("/i18n")[language]["nodeDefs"]
    for node_id, definition in nodes.items():
        texts = found[node_id]
        assert texts["display_name"] and texts["description"], node_id
        for name, *_ in inputs(definition):
            assert texts["inputs"][name]["tooltip"], f"{node_id}.{name}"
        for index in range(len(definition["output"])):
            assert texts["outputs"][str(index)]["tooltip"], f"{node_id} output {index}"


def test_english_locale_says_what_the_nodes_say(comfy, nodes):
    found = comfy.json("/i18n")["en"]["nodeDefs"]
    for node_id, definition in nodes.items():
        assert found[node_id]["display_name"] == definition["display_name"]
        for name, _, _, settings in inputs(definition):
            assert found[node_id]["inputs"][name]["tooltip"] == settings["tooltip"], (
                f"{node_id}.{name}"
            )


def test_page_scripts_are_served(comfy):
    scripts = [s for s in comfy.json("/extensions") if s.startswith(f"/extensions/{FOLDER}/")]
    assert scripts, "the pack has no script"
    assert len(scripts) == len(set(scripts))
    for script in scripts:
        assert comfy.get(urllib.parse.quote(script))[0] == 200


def test_example_workflows_are_listed_with_pictures(comfy):
    there = {p.stem for p in (ROOT / "example_workflows").glob("*.json")}
    assert set(comfy.json("/workflow_templates")[FOLDER]) == there
    assert there == {workflow.title for workflow in WORKFLOWS.values()}
    for name in there:
        base = f"/api/workflow_templates/{urllib.parse.quote(f'{FOLDER}/{name}')}"
        assert json.loads(comfy.get(f"{base}.json")[1])["nodes"]
        status, picture, _ = comfy.get(f"{base}.jpg")
        assert status == 200 and picture[:2] == b"\xff\xd8", f"{name} has no picture"


def version(text):
    return tuple(int(n) for n in text.split(".")) if text else (0,)


@pytest.mark.parametrize("name", list(WORKFLOWS))
def test_example_workflows_use_nodes_and_inputs_that_exist(comfy, comfyui, name):
    """Nodes of other packs are named in the note, and the tests have stand-ins for them."""
    workflow = WORKFLOWS[name]
    if comfyui_version(comfyui) < version(workflow.comfy):
        pytest.skip(f"needs ComfyUI {workflow.comfy}")
    info = comfy.json("/object_info")
    file = ROOT / "example_workflows" / f"{workflow.title}.json"
    nodes = json.loads(file.read_text(encoding="utf-8"))["nodes"]
    notes = " ".join(n["widgets_values"][0] for n in nodes if n["type"] == "MarkdownNote")
    for node in nodes:
        if node["type"] in ("MarkdownNote", "Note"):
            continue
        assert node["type"] in info, node["type"]
        known = {name for name, *_ in inputs(info[node["type"]])}
        named = {i["name"] for i in node["inputs"] if i["name"] != "upload"}
        assert named <= known, f"{node['type']} has no {named - known}"
        assert not node["type"].startswith("Test")
        if node["type"] in FROM_OTHERS:
            assert FROM_OTHERS[node["type"]] in notes


def test_import_says_nothing_alarming(comfy):
    """One line about the pure-Python index is right: a clone has no compiled library."""
    lines = [line for line in comfy.log().splitlines() if "h3video" in line.lower()]
    assert not any("Traceback" in line or "error" in line.lower() for line in lines), lines
