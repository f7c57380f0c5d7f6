"""Import directions (design section 2), and what an import may load."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "h3video"
MAY = {  # room -> rooms of ours that it may import
    "h3": {"errors"},
    "memory": {"errors", "models"},
    "models": {"errors"},
    "grid": {"h3", "errors"},
    "blend": {"grid", "h3", "errors"},
    "tiling": {"blend", "grid", "h3", "models", "errors"},
}
HEAVY = {"torch", "numpy", "diffusers", "transformers", "av", "PIL", "tqdm", "safetensors"}
STDLIB_ONLY = ("h3", "grid", "memory", "models")


def modules():
    return sorted(p for p in ROOT.rglob("*.py"))


def imports(path):
    """(module-level?, absolute dotted name) of every import of a file."""
    package = ("h3video", *path.relative_to(ROOT).parts[:-1])
    tree = ast.parse(path.read_text())
    top = set(map(id, tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield id(node) in top, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            name = ".".join([*base, *([node.module] if node.module else [])])
            if node.level and not node.module:
                for alias in node.names:
                    yield id(node) in top, f"{name}.{alias.name}"
            else:
                yield id(node) in top, name


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_directions(path):
    room = path.relative_to(ROOT).parts[0]
    for at_top, name in imports(path):
        parts = name.split(".")
        if parts[0] == "h3video" and len(parts) > 1 and room in MAY:
            allowed = MAY[room] | {room}
            assert parts[1] in allowed, f"{room} must not import {name}"
        if at_top and room in STDLIB_ONLY:
            assert parts[0] not in HEAVY, f"{path} imports {name} at module level"
        if parts[0] == "diffusers":
            assert room in ("render", "nano", "nodes"), f"{path} imports diffusers"
        if parts[0] in ("comfy", "comfy_api", "nodes", "folder_paths"):
            assert room in ("render", "nodes"), f"{path} imports ComfyUI"


def loaded_by(code):
    out = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(' '.join(sorted(sys.modules)))"],
        capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "80"},
    )  # fmt: skip
    return {name.split(".")[0] for name in out.stdout.splitlines()[-1].split()}


def test_import_h3video_loads_nothing_heavy():
    assert not loaded_by("import h3video") & HEAVY


def test_help_loads_nothing_heavy():
    code = (
        "from h3video.cli.main import main\n"
        "try:\n    main(['{}'])\nexcept SystemExit as e:\n    assert e.code == 0"
    )
    assert not loaded_by(code.format("--help")) & HEAVY
    assert not loaded_by(code.format("render', '--help")) & HEAVY


def test_grid_plans_load_no_torch():
    code = "import h3video; from h3video.models import WAN\n" + (
        "h3video.plan_token_tiles(480, 288, 33, WAN)"
    )
    assert "torch" not in loaded_by(code)


def test_lazy_names_exist():
    import h3video

    for name in ("hex_grid", "plan_token_tiles", "plan_crop_tiles"):
        assert callable(getattr(h3video, name))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        h3video.nonsense  # noqa: B018
