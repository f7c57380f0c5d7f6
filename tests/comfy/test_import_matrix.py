"""The pack in odd places and poor surroundings: it loads, and says in one line what is off."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from comfy_harness import copy_pack

HARNESS = Path(__file__).with_name("comfy_harness")
WITHOUT_WEIGHTS = shutil.ignore_patterns("*.safetensors")
NODES = ["H3CellMask", "H3CellsFromText", "H3CellsToText", "H3ChunkJoin", "H3ChunkLoad",
         "H3ChunkPlan", "H3ChunkSave", "H3FiniteGuard", "H3FreeMemory", "H3GridEncode",
         "H3HexTiles", "H3HexWalkSampler", "H3MemoryLedger", "H3MergeChunks", "H3RegionPrompts",
         "H3SplitTiles"]  # fmt: skip
GRID = ["H3GridEncode", {"width": 160, "height": 96, "hex_res": "3", "overlap": 8}]
TEXT = ["H3CellsToText", {"cells": {"from": [0, 1]}}]


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    """A copy of the pack as git has it."""
    return copy_pack(tmp_path_factory.mktemp("packs") / "ComfyUI-H3-Video")


@pytest.fixture(scope="module")
def load(comfyui, tmp_path_factory):
    """Load a pack in a fork of a process that has ComfyUI imported; see load_pack.py."""
    log = tmp_path_factory.mktemp("load") / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(HARNESS / "load_pack.py"), str(comfyui)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip

    def one(folder, **case):
        assert process.poll() is None, log.read_text()[-3000:]
        print(json.dumps({"pack": str(folder), **case}), file=process.stdin, flush=True)
        line = process.stdout.readline()
        assert line, log.read_text()[-3000:]
        return json.loads(line)

    yield one
    process.kill()
    process.wait(30)
    process.stdin.close()
    process.stdout.close()


def our_lines(answer):
    """What our logger said, at any level."""
    return [line for line in answer["log"].splitlines() if " h3video" in line.split(":")[0]]


def loads_like_any(answer):
    """All nodes are there and nothing was said."""
    assert answer["loaded"], answer["log"]
    assert answer["nodes"] == NODES
    assert answer["path_kept"], "the pack changed sys.path or sys.meta_path"
    assert our_lines(answer) == [] and "Traceback" not in answer["log"], answer["log"]


def test_plain(load, pack):
    answer = load(pack, calls=[GRID, TEXT])
    assert answer["loaded"] and answer["nodes"] == NODES and answer["path_kept"]
    assert answer["calls"] == [{"ok": True}] * 2
    # A clone has no compiled index: one line says so, and only once it is needed.
    (line,) = our_lines(answer)
    assert "make native" in line and "pure-Python index serves" in line
    loads_like_any(load(pack))


@pytest.mark.parametrize(
    "name", ["another_name", "my video nodes (2)", "h3.video-v1.0", "видео 六角"]
)
def test_other_folder_names(load, pack, tmp_path, name):
    shutil.copytree(pack, tmp_path / name, ignore=WITHOUT_WEIGHTS)
    loads_like_any(load(tmp_path / name))
    assert load(tmp_path / name, calls=[GRID])["calls"] == [{"ok": True}]


def test_symlink(load, pack, tmp_path):
    (tmp_path / "linked").symlink_to(pack, target_is_directory=True)
    loads_like_any(load(tmp_path / "linked"))


def test_read_only_folder(load, pack, tmp_path):
    """Nothing is written at import (Python keeps its own caches elsewhere or goes without)."""
    copy = Path(shutil.copytree(pack, tmp_path / "pack", ignore=WITHOUT_WEIGHTS))
    before = {p for p in copy.rglob("*") if "__pycache__" not in p.parts}
    loads_like_any(load(copy, env={"PYTHONDONTWRITEBYTECODE": "1"}))
    assert {p for p in copy.rglob("*") if "__pycache__" not in p.parts} == before


@pytest.mark.parametrize("kind", ["text", "foreign", "absent"])
def test_broken_native_library(load, pack, tmp_path, kind):
    library = tmp_path / "libh3video.so"
    if kind == "text":
        library.write_text("no library")
    elif kind == "foreign":  # a shared library, but not ours
        import _ctypes

        shutil.copy(_ctypes.__file__, library)
    answer = load(pack, env={"H3VIDEO_H3_LIBRARY": str(library)}, calls=[GRID])
    assert answer["loaded"] and answer["nodes"] == NODES
    assert answer["calls"] == [{"ok": True}]
    (line,) = our_lines(answer)
    assert str(library) in line and "pure-Python index serves" in line


def test_without_pillow(load, pack):
    text = load(pack, calls=[GRID, TEXT])["text"][1][0]
    answer = load(pack, hide=["PIL"], calls=[
        GRID, ["H3CellsFromText", {"text": text}],
        ["H3CellMask", {"cells": {"from": [1, 0]}, "select": "ring<=1"}],
    ])  # fmt: skip
    assert answer["loaded"] and answer["nodes"] == NODES
    encode, *others = answer["calls"]
    if "error" in encode:  # the picture needs it
        assert "pip install" in encode["error"] and "illow" in encode["error"]
    assert others == [{"ok": True}] * 2
    assert len(our_lines(answer)) <= 1 + 1  # at most one line beside that of the pure index


@pytest.mark.parametrize("hidden", [["av"], ["tqdm"], ["safetensors"], ["av", "tqdm", "scipy"]])
def test_without_packages_that_no_node_needs(load, pack, hidden):
    answer = load(pack, hide=hidden, calls=[GRID, TEXT])
    assert answer["loaded"] and answer["nodes"] == NODES
    assert answer["calls"] == [{"ok": True}] * 2


@pytest.mark.parametrize("hidden", [["comfy_api.latest"], ["comfy_api"]])
def test_old_comfyui(load, pack, hidden):
    answer = load(pack, hide=hidden, calls=[["H3GridEncode", {}]])
    assert answer["loaded"], answer["log"]
    assert answer["nodes"] == NODES  # workflows open, and the nodes say what to do
    (line,) = our_lines(answer)
    assert "needs ComfyUI 0.3.75" in line
    assert "update" in answer["calls"][0]["error"]


def test_a_broken_file_of_ours_takes_one_node_only(load, pack, tmp_path):
    copy = Path(shutil.copytree(pack, tmp_path / "pack", ignore=WITHOUT_WEIGHTS))
    (copy / "h3video" / "nodes" / "merge_chunks.py").write_text("this is no Python\n")
    answer = load(copy, calls=[GRID, ["H3MergeChunks", {}]])
    assert answer["loaded"] and answer["nodes"] == NODES
    assert answer["calls"][0] == {"ok": True}
    assert "H3MergeChunks cannot be used" in answer["calls"][1]["error"]
    assert len([line for line in our_lines(answer) if "H3MergeChunks" in line]) == 1


def test_several_copies_in_a_real_start(comfyui, pack, tmp_path):
    """main.py with the pack under three names at once, as people end up with: it starts."""
    from comfy_harness.server import BOOT, HIDDEN

    for name in ("input", "output", "temp", "user", "custom_nodes"):
        (tmp_path / name).mkdir()
    home = tmp_path / "custom_nodes"
    (home / "ComfyUI-H3-Video").symlink_to(pack)
    shutil.copytree(pack, home / "h3 video, older copy", ignore=WITHOUT_WEIGHTS)
    done = subprocess.run(
        [sys.executable, str(BOOT), str(comfyui), "--hide", ",".join(HIDDEN), "--", "--cpu",
         "--quick-test-for-ci", "--base-directory", str(tmp_path), "--disable-api-nodes",
         "--database-url", f"sqlite:///{tmp_path}/user/c.db"],
        capture_output=True, text=True, timeout=240, env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    log = done.stdout + done.stderr
    assert done.returncode == 0, log[-3000:]
    assert "IMPORT FAILED" not in log, log[-3000:]
    lines = log[log.find("Import times for custom nodes") :].splitlines()
    found = [line for line in lines if "ComfyUI-H3-Video" in line or "older copy" in line]
    assert len(found) == 2, log[-3000:]
