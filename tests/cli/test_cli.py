"""The command line: exit codes, one-line errors before any model is loaded, the plan."""

import json
import os
import subprocess
import sys

import pytest

from h3video.cli.main import main

MODEL = ["--model", "tiny"]


@pytest.fixture
def tiny_folder(tmp_path):
    """Configuration files only: enough to plan, and proof that no weights are read."""
    folder = tmp_path / "model"
    for part, data in {
        "model_index.json": {"_class_name": "WanPipeline",
                             "transformer": ["diffusers", "WanTransformer3DModel"]},
        "transformer/config.json": {"num_attention_heads": 12, "attention_head_dim": 128,
                                    "ffn_dim": 8960, "num_layers": 30},
        "vae/config.json": {},
    }.items():  # fmt: skip
        path = folder / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data))
    return folder


def render(folder, *arguments):
    return main(["render", "a red circle", "--model", str(folder), *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--width", 641], "width 641 is not a multiple of 16 for wan; use 640 or 656"),
        (["--height", 100], "height 100 is not a multiple of 16 for wan; use 96 or 112"),
        (["--frames", 48], "frames 48 is not 4k+1 for wan; use 45 or 49"),
        (["--frames", 0], "frames 0 is out of range 1..100000"),
        (["--hex-res", 16], "hex-res 16 is out of range 0..15"),
        (["--hex-res", "fine"], "hex-res 'fine' is not a whole number"),
        (["--overlap", -1], "overlap -1 is out of range 0..4096"),
        (["--overlap", "nan"], "overlap nan is out of range"),
        (["--steps", 0], "steps 0 is out of range 1..1000"),
        (["--seed", -1], "seed -1 is out of range"),
        (["--budget", "lots"], "budget 'lots' is not understood; use for example 0.25, 25% or 512"),
        (["--budget", "0.001"], "no tile of 832x480 with 21 latent frames fits the budget"),
        (["--shape", "oval"], "invalid choice: 'oval'"),
        (["--kernel", "box"], "invalid choice: 'box'"),
        (["--tile-sizes", 0], "tile-sizes 0 is out of range 1..1024"),
        (["--origin", 0, "far"], "origin 'far' is not a number"),
        (["--origin", 5000, 0, "--hex-res", 2], "lies 5000 px from the frame's centre"),
        (["--grid-shift", "often"], "invalid choice: 'often'"),
        (["--shift-seed", -1], "shift-seed -1 is out of range"),
        (["--start-step", 3, "--end-step", 2], "steps 3 to 2 are none"),
        (["--guide-steps", -1], "guide-steps -1 is out of range 0..10000"),
        (["--span", 2], "span 2 is out of range 0.001..0.33"),
        (["--unknown", 2], "unrecognized arguments: --unknown"),
        (["-o", "out.gif"], "output out.gif ends in .gif; use .mp4, .mkv, .png, .exr"),
    ],
)
def test_bad_arguments_end_with_2_and_one_line(tiny_folder, capsys, arguments, message):
    assert render(tiny_folder, *arguments) == 2
    err = capsys.readouterr().err
    assert err.startswith("h3video: error: ") and err.count("\n") == 1
    assert message in err


def test_bad_prompts(tiny_folder, capsys, tmp_path):
    assert main(["render", "@no/such/prompt.txt", "--model", str(tiny_folder)]) == 2
    assert "prompt file no/such/prompt.txt cannot be read (No such file" in capsys.readouterr().err
    assert main(["render", "  ", "--model", str(tiny_folder)]) == 2
    assert "the prompt is empty" in capsys.readouterr().err
    binary = tmp_path / "p.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    assert main(["render", f"@{binary}", "--model", str(tiny_folder)]) == 2
    assert "is not UTF-8" in capsys.readouterr().err


def test_bad_models(capsys, tmp_path):
    assert main(["render", "x", "--model", str(tmp_path / "none")]) == 2
    assert "has no model_index.json" in capsys.readouterr().err
    (tmp_path / "model_index.json").write_text("{")
    assert main(["render", "x", "--model", str(tmp_path)]) == 2
    assert "is not valid JSON" in capsys.readouterr().err
    (tmp_path / "model_index.json").write_text('{"_class_name": "FluxPipeline"}')
    for part in ("transformer", "vae"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "config.json").write_text('{"_class_name": "FluxTransformer2DModel"}')
    assert main(["render", "x", "--model", str(tmp_path)]) == 2
    assert "is a FluxPipeline with a FluxTransformer2DModel" in capsys.readouterr().err


def test_unwritable_outputs(tiny_folder, capsys, tmp_path):
    blocker = tmp_path / "file"
    blocker.touch()
    assert render(tiny_folder, "-o", blocker / "out.mp4") == 2
    assert f"output folder {blocker} is not writable" in capsys.readouterr().err
    folder = tmp_path / "dir.mp4"
    folder.mkdir()
    assert render(tiny_folder, "-o", folder) == 2
    assert "is a folder" in capsys.readouterr().err
    if os.geteuid() != 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o500)
        assert render(tiny_folder, "-o", locked / "out.mp4") == 2
        assert "is not writable" in capsys.readouterr().err


def test_errors_come_before_torch(tiny_folder):
    code = (
        "import sys\nfrom h3video.cli.main import main\n"
        f"assert main(['render', 'x', '--model', {str(tiny_folder)!r}, '--width', '641']) == 2\n"
        f"assert main(['render', 'x', '--model', {str(tiny_folder)!r}, '--plan']) == 0\n"
        "assert not {'torch', 'diffusers', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_windows_are_in_the_plan(tiny_folder, capsys):
    asked = ("--plan", "--width", 1280, "--height", 704, "--window", 6, "--window-overlap", 1)
    assert render(tiny_folder, *asked) == 0
    assert "windows     4 of 6 latent frames" in capsys.readouterr().out
    assert render(tiny_folder, *asked, "--json") == 0
    windows = json.loads(capsys.readouterr().out)["denoise"]["windows"]
    assert windows[0] == {"start": 0, "length": 6} and windows[1]["start"] <= 5


def test_plan_as_text_and_json(tiny_folder, capsys):
    assert render(tiny_folder, "--plan", "--width", 1280, "--height", 704) == 0
    text = capsys.readouterr().out
    assert "80x44 tokens x 21 latent frames = 73920 tokens" in text
    assert "hex hex_res" in text and "step time" in text and "of 2^31" in text
    assert "the grid moves every step, through 8 places" in text
    assert render(tiny_folder, "--plan", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["denoise"]["kind"] == "tokens" and data["decode"]["kind"] == "crop"
    assert data["denoise"]["frame_tokens"] == 32760
    assert render(tiny_folder, "--plan", "--shape", "none") == 0
    assert "no tiling" in capsys.readouterr().out


def test_every_tile_option_reaches_the_plan(tiny_folder, capsys):
    def plan(*options):
        assert render(tiny_folder, "--plan", "--json", "--hex-res", 2, *options) == 0
        return json.loads(capsys.readouterr().out)["denoise"]

    plain = plan()
    still = plan("--grid-shift", "none")
    assert plain["places"] == 8 and 1.0 < plain["mean_price"] < 1.2
    assert "places" not in still and still["overlap_px"] > plain["overlap_px"]
    stays = ("--grid-shift", "none", "--origin", 40, -30)
    assert plan(*stays)["grid"]["origin"] == [40.0, -30.0]
    assert plan("--kernel", "cosine") != plain
    assert len({len(t["tokens"]) for t in plan("--tile-sizes", 1)["tiles"]}) == 1
    moved = plan("--grid-shift", "step", "--overlap", 16)
    assert moved["overlap_px"] == 16.0 and moved["grid"] != still["grid"]
    assert plan("--grid-shift", "step") == plain
    assert plan("--grid-shift", "step", "--shift-seed", 5) != plan("--grid-shift", "step")
    assert plan("--guide-steps", 3, "--start-step", 1, "--end-step", 4) == plain


def test_the_grid_moves_and_the_frame_leads_on_the_embedded_model(tmp_path, capsys):
    """Every option of tiles by step in one render; what was asked is in the bill."""
    pytest.importorskip("diffusers")
    pytest.importorskip("av")
    made = main([
        "render", "a big red circle moves right over green waves", "--width", "480", "--height",
        "288", "--frames", "1", "--steps", "3", "--guide-steps", "1", "--grid-shift", "step",
        "--shift-seed", "4", "--halo", "32", "--end-step", "2", "--json", "-o",
        str(tmp_path / "o.png"),
    ])  # fmt: skip
    assert made == 0
    job = json.loads(capsys.readouterr().out)["job"]
    assert (job["guide_steps"], job["grid_shift"], job["shift_seed"], job["end_step"]) == (
        1, "step", 4, 2
    )  # fmt: skip


def test_no_command_prints_help(capsys):
    assert main([]) == 0
    assert "render" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("h3video ")


def test_decode_refuses_foreign_files(capsys, tmp_path):
    pytest.importorskip("safetensors")
    assert main(["decode", str(tmp_path / "none.safetensors")]) == 2
    assert "is not there" in capsys.readouterr().err
    junk = tmp_path / "junk.safetensors"
    junk.write_bytes(b"12345678 not a header")
    assert main(["decode", str(junk)]) == 2
    assert "no readable safetensors file" in capsys.readouterr().err
    import numpy as np
    from safetensors.numpy import save_file

    foreign = tmp_path / "foreign.safetensors"
    save_file({"latents": np.zeros(3, np.float32)}, str(foreign))
    assert main(["decode", str(foreign)]) == 2
    assert "holds no h3video job" in capsys.readouterr().err


def test_the_console_script_and_module_agree():
    out = subprocess.run(
        [sys.executable, "-m", "h3video", "render", "x", "--width", "641"], capture_output=True,
        text=True, env={**os.environ, "H3VIDEO_TRACEBACK": "1"},
    )  # fmt: skip
    assert out.returncode == 2
    assert out.stderr.count("\n") == 1
