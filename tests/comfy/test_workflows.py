"""The workflows of workflows/tests, run over HTTP and websocket, and what their pictures show."""

import copy
import json

import graphs
import pytest
from catalogue import WORKFLOWS
from comfy_harness.pack import ROOT

FOLDER = ROOT / "workflows" / "tests"


def load(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def find(prompt, kind):
    """The id of the only node of a type."""
    (found,) = [i for i, node in prompt.items() if node["class_type"] == kind]
    return found


def measured(prompt, **links):
    """The prompt with a TestImageStats on each link; their ids are the names."""
    out = copy.deepcopy(prompt)
    for name, link in links.items():
        out[name] = graphs.node("TestImageStats", images=link)
    return out


def stats(run, node):
    return run.outputs[node]["stats"][0]


def video_of(comfy, run, prompt):
    """The saved video as uint8 numpy [F, H, W, 3]."""
    import io

    import av
    import numpy as np

    (saved,) = run.outputs[find(prompt, "SaveVideo")]["images"]
    query = "&".join(f"{k}={saved[k]}" for k in ("filename", "subfolder", "type"))
    status, body, _ = comfy.get(f"/view?{query}")
    assert status == 200
    with av.open(io.BytesIO(body)) as file:
        return np.stack([f.to_ndarray(format="rgb24") for f in file.decode(video=0)])


def test_files_are_what_the_catalogue_makes():
    """`python tests/comfy/make_workflows.py` writes them; a change is made there."""
    assert {p.stem for p in FOLDER.glob("*.json")} == set(WORKFLOWS)
    for name, workflow in WORKFLOWS.items():
        assert load(name) == workflow.tiny(), name


def test_article(comfy):
    prompt = load("article")
    decode, merge, encode, sampler = (
        find(prompt, kind) for kind in ("VAEDecode", "H3MergeChunks", "H3GridEncode", "KSampler")
    )
    run = comfy.run(
        measured(prompt, decoded=[decode, 0], merged=[merge, 0], grid=[encode, 2])
        | {"mask": graphs.node("TestMaskStats", mask=[encode, 0])}
    ).expect()
    assert [v for v, _ in run.steps_of(sampler)][-1] == graphs.NANO.steps
    last, most = run.steps_of(merge)[-1]
    assert last == most > 1
    merged = stats(run, "merged")
    assert merged["shape"] == [17, 96, 160, 3] and merged["finite"]
    assert merged["sha"] == stats(run, "decoded")["sha"]  # untouched tiles: bit for bit
    assert merged["std"] > 0.03 and merged["motion"] > 0.001  # neither flat nor still
    mask = stats(run, "mask")
    assert mask["shape"] == [1, 96, 160] and mask["max"] == pytest.approx(1.0, abs=1e-5)
    assert 0.0 <= mask["min"] < 0.5
    assert mask["left"] == pytest.approx(mask["right"], abs=0.1)  # the focus is in the middle
    assert stats(run, "grid")["std"] > 0.05
    video = video_of(comfy, run, prompt)
    assert video.shape == (17, 96, 160, 3)
    assert abs(video.mean() / 255 - merged["mean"]) < 0.03
    assert run.outputs[encode]["h3_grid"][0]["width"] == 160


def test_upscale_merge(comfy):
    prompt = load("upscale_merge")
    merge = find(prompt, "H3MergeChunks")
    prompt["whole"] = graphs.node(
        "ImageScaleBy", image=[find(prompt, "GetVideoComponents"), 0], upscale_method="bicubic",
        scale_by=2.0,
    )  # fmt: skip
    prompt["difference"] = graphs.node("TestImageDifference", a=[merge, 0], b=["whole", 0])
    run = comfy.run(measured(prompt, merged=[merge, 0])).expect()
    assert stats(run, "merged")["shape"] == [17, 192, 320, 3]
    # The halo hides the tiles' edges: it is as if the whole clip had been scaled at once.
    assert stats(run, "difference")["worst"] < 1e-5
    assert run.steps_of(merge)[-1][0] == run.steps_of(merge)[-1][1] > 1
    assert video_of(comfy, run, prompt).shape == (17, 192, 320, 3)


def blue_left(seen):
    """How much bluer the left half is than the right one: blue minus red, -2..2."""
    left, right = seen["left"], seen["right"]
    return (left[2] - left[0]) - (right[2] - right[0])


def test_regional(comfy):
    prompt = load("regional")
    decode = find(prompt, "VAEDecode")
    left, right = (i for i, n in prompt.items() if n["class_type"] == "H3CellMask")
    prompt = measured(prompt, seen=[decode, 0])
    prompt["m1"] = graphs.node("TestMaskStats", mask=[left, 0])
    prompt["m2"] = graphs.node("TestMaskStats", mask=[right, 0])
    run = comfy.run(prompt).expect()
    one, two = stats(run, "m1"), stats(run, "m2")
    assert one["mean"] + two["mean"] == pytest.approx(1.0, abs=1e-4)  # the masks share the frame
    assert one["left"] > 0.8 > 0.2 > one["right"] and two["right"] > 0.8 > 0.2 > two["left"]
    seen = stats(run, "seen")
    assert seen["shape"] == [17, 96, 160, 3]
    # One prompt says blue ground, the other sand: exchanged, the frame's halves change places.
    texts = {i: prompt[i]["inputs"]["text"] for i in ("5", "6")}
    prompt["5"]["inputs"]["text"], prompt["6"]["inputs"]["text"] = texts["6"], texts["5"]
    other = stats(comfy.run(prompt).expect(), "seen")
    assert blue_left(seen) > blue_left(other) + 0.1
    assert video_of(comfy, run, prompt).shape == (17, 96, 160, 3)


def fractions(run, node):
    """Progress of a node as it was shown, 0..1."""
    return [value / most for value, most in run.steps_of(node)]


def logged(comfy, prompt):
    """(run, what the server logged meanwhile)."""
    before = len(comfy.log())
    run = comfy.run(prompt).expect()
    return run, comfy.log()[before:]


def test_hex_upscale(comfy):
    prompt = load("hex_upscale")
    large = next(i for i, n in prompt.items() if n["inputs"].get("denoise") == 0.35)
    small = next(i for i, n in prompt.items() if n["inputs"].get("denoise") == 1.0)
    prompt["small"] = graphs.node("VAEDecode", samples=[small, 0], vae=["3", 0])
    prompt["as large"] = graphs.node(
        "ImageScale", image=["small", 0], upscale_method="bicubic", width=320, height=192,
        crop="disabled",
    )  # fmt: skip
    decoded = [find(load("hex_upscale"), "VAEDecode"), 0]
    prompt["d"] = graphs.node("TestImageDifference", a=decoded, b=["as large", 0])
    run, log = logged(comfy, measured(prompt, seen=decoded))
    assert "[h3video] 2 hex tiles" in log and "start from noise" not in log
    seen = stats(run, "seen")
    assert seen["shape"] == [9, 192, 320, 3] and seen["finite"]
    assert stats(run, "d")["psnr"] > 12.0  # the small frame's composition stays
    assert fractions(run, large)[-1] == 1.0
    assert video_of(comfy, run, prompt).shape == (9, 192, 320, 3)


def test_long_clip(comfy):
    prompt = load("long_clip")
    run, log = logged(comfy, measured(prompt, seen=[find(prompt, "VAEDecode"), 0]))
    assert "in 3 windows of 5 latent frames" in log
    seen = stats(run, "seen")
    assert seen["shape"] == [33, 96, 160, 3] and seen["finite"] and seen["std"] > 0.03
    assert video_of(comfy, run, prompt).shape == (33, 96, 160, 3)


def test_wan22_regions(comfy):
    prompt = load("wan22_regions")
    prompt = measured(prompt, seen=[find(prompt, "VAEDecode"), 0])
    run, log = logged(comfy, prompt)
    assert log.count("hex tiles at hex_res 3") == 2  # both experts
    seen = stats(run, "seen")
    assert seen["shape"] == [9, 96, 160, 3] and seen["finite"]
    # One region's ground is blue, the other's sand: exchanged, the frame's halves change places.
    texts = {i: prompt[i]["inputs"]["text"] for i in ("10", "11")}
    prompt["10"]["inputs"]["text"], prompt["11"]["inputs"]["text"] = texts["11"], texts["10"]
    assert blue_left(seen) > blue_left(stats(comfy.run(prompt).expect(), "seen")) + 0.1


def sound_of(comfy, run, prompt):
    """Seconds of the saved video's sound track."""
    import io

    import av

    (saved,) = run.outputs[find(prompt, "SaveVideo")]["images"]
    query = "&".join(f"{k}={saved[k]}" for k in ("filename", "subfolder", "type"))
    with av.open(io.BytesIO(comfy.get(f"/view?{query}")[1])) as file:
        return sum(f.samples / f.sample_rate for f in file.decode(audio=0))


@pytest.mark.comfy_min("0.33")
@pytest.mark.parametrize("name", ["minimax_h3_t2v", "minimax_h3_i2v"])
def test_minimax_h3(comfy, name):
    prompt = load(name)
    sampler = find(prompt, "KSampler")
    prompt["latents"] = graphs.node("TestLatentStats", samples=[sampler, 0])
    run, log = logged(comfy, prompt)
    assert "hex tiles" in log and "[h3video] sound: every tile carries" in log
    picture, sound = run.outputs["latents"]["stats"]
    assert picture["shape"] == [1, 24, 7, 20, 32] and picture["finite"]
    assert sound["shape"] == [1, 32, 2, 37] and sound["finite"]
    assert fractions(run, sampler)[-1] == 1.0
    assert video_of(comfy, run, prompt).shape == (22, 320, 512, 3)
    assert sound_of(comfy, run, prompt) == pytest.approx(22 / 24, abs=0.1)
