"""The pure functions of web/js in node's own test runner, and rules for all scripts."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[1] / "web" / "js"


def test_pure_functions():
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node")
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    if int(version.lstrip("v").split(".")[0]) < 18:
        pytest.skip(f"node {version.strip()} has no test runner; 18 or later has")
    tests = sorted(map(str, HERE.glob("*.test.mjs")))
    done = subprocess.run([node, "--test", *tests], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_only_one_script_is_loaded_at_page_start():
    """ComfyUI loads every .js; the rest are .mjs, which that one imports."""
    assert [p.name for p in SCRIPTS.rglob("*.js")] == ["grid.js"]


@pytest.mark.parametrize("script", sorted(SCRIPTS.iterdir()), ids=lambda p: p.name)
def test_scripts_leave_the_page_alone(script):
    text = script.read_text(encoding="utf-8")
    for forbidden in (r"\bwindow\.", r"globalThis", r"document\.(add|body)", r"\.prototype\b",
                      r"\bLiteGraph\.", r"\balert\(", r"\beval\(", r"innerHTML",
                      r"localStorage"):  # fmt: skip
        assert not re.search(forbidden, text), forbidden
    imports = re.findall(r'from "([^"]+)"', text)
    outside = [i for i in imports if not i.startswith("./")]
    allowed = ["../../../scripts/api.js", "../../../scripts/app.js"]
    assert outside == (allowed if script.name == "grid.js" else [])
    assert max(map(len, text.splitlines())) <= 100
