"""`h3video inspect` as a user runs it."""

import json
import subprocess
import sys

import pytest

from h3video.cli.main import main
from tests.memory.gguf_bytes import Writer, small
from tests.memory.test_formats import NANO


def test_a_folder(capsys):
    assert main(["inspect", str(NANO)]) == 0
    out = capsys.readouterr().out
    assert "a diffusers pipeline WanPipeline, 3 models" in out
    assert "nano, the embedded model: transformer, diffusers names" in out
    assert "7,216,448 weights in 177 tensors" in out
    assert all(len(line) <= 100 and line == line.rstrip() for line in out.splitlines())


def test_json_of_a_folder(capsys):
    assert main(["inspect", str(NANO), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == 1 and data["format"] == "diffusers"
    models = {p["role"]: p for p in data["parts"]}
    assert models["transformer"]["model"] == "nano" and models["vae"]["model"] == "nano-vae"
    assert models["transformer"]["types"]["F16"]["bytes"] == 2 * 7_216_448
    assert models["transformer"]["loads"]["diffusers"]["verdict"] == "yes"
    assert models["text encoder"]["loads"]["ComfyUI"]["verdict"] == "no"
    assert data["file_bytes"] == sum(p["file_bytes"] for p in data["parts"])


def test_a_file(tmp_path, capsys):
    path = tmp_path / "Wan2.1-T2V-14B-Q4_K_M.gguf"  # a name that lies
    path.write_bytes(small())
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "unknown" in out and "Q4_0" in out and "labelled 'wan'" in out
    assert "not known: 2 tensors, 259 values" in out
    assert main(["inspect", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["model"] is None and data["quantization"] == "Q4_0" and data["gap"]


def test_names_cannot_write_to_the_terminal(tmp_path, capsys):
    w = Writer().count(0).count(1).text("general.architecture").n("I", 8).text("\x1b[2Jx\x07")
    path = tmp_path / "m.gguf"
    path.write_bytes(w.done())
    for more in ([], ["--json"]):
        assert main(["inspect", str(path), *more]) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out and "\x07" not in out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nope.gguf"], "cannot be opened"), (["/dev/zero"], "a device or pipe"), ([], "required"),
        (["pyproject.toml"], "neither a GGUF nor a safetensors"),
    ],
)  # fmt: skip
def test_wrong_input(args, message, capsys):
    assert main(["inspect", *args]) == 2
    err = capsys.readouterr().err
    assert err.startswith("h3video: error: ") and message in err and err.count("\n") == 1


def test_it_loads_nothing_heavy():
    code = (
        "import sys; from h3video.cli.main import main\n"
        f"main(['inspect', {str(NANO)!r}])\n"
        "names = {m.split('.')[0] for m in sys.modules}\n"
        "print('heavy:', sorted(names & {'torch', 'numpy', 'safetensors', 'diffusers'}))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "heavy: []"
