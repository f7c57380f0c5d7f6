"""H3 Hex Tiles and H3 Region Prompts on a real server: the sampler's result, progress, errors."""

import graphs
import pytest
from graphs import node
from sampling_graphs import H3_TINY

TILED = {"hex_res": "3", "overlap": 0, "halo": 16}
"""Nine tiles at 160x96 on the embedded model."""

WORDS = "a white circle moves right over {} waves"
BASE, LEFT, RIGHT = WORDS.format("green"), WORDS.format("blue"), WORDS.format("sand")


def tiles(**settings):
    """An H3HexTiles on node "model"."""
    values = {"hex_res": "auto", "budget": "auto", "overlap": -1} | settings
    return node("H3HexTiles", model=["model", 0], **values)


def sampler(model, positive="positive", negative="negative", **more):
    values = {"seed": 5, "steps": 3, "cfg": 4.0, "sampler_name": "euler", "scheduler": "simple",
              "denoise": 1.0}  # fmt: skip
    return node("KSampler", model=[model, 0], positive=[positive, 0], negative=[negative, 0],
                latent_image=["empty", 0], **values | more)  # fmt: skip


def nano(width=160, height=96, length=9):
    """The embedded model, its prompts and an empty latent."""
    return {
        "file": node("UNETLoader", unet_name=graphs.NANO.transformer, weight_dtype="default"),
        "model": node("ModelSamplingSD3", model=["file", 0], shift=5.0),
        "2": node("TestNanoCLIP"),
        "positive": node("CLIPTextEncode", clip=["2", 0], text=BASE),
        "negative": node("CLIPTextEncode", clip=["2", 0], text=""),
        "empty": node("EmptyHunyuanLatentVideo", width=width, height=height, length=length,
                      batch_size=1),
    }  # fmt: skip


def minimax_h3():
    """The tiny MiniMax-H3, its prompts and an empty latent of picture and sound."""
    return {
        "model": node("UNETLoader", unet_name=H3_TINY, weight_dtype="default"),
        "2": node("TestH3CLIP"),
        "positive": node("CLIPTextEncode", clip=["2", 0], text=BASE),
        "negative": node("CLIPTextEncode", clip=["2", 0], text="blurry"),
        "empty": node("EmptyMiniMaxH3LatentAV", width=512, height=320, length=22),
    }


def compared(prompt, settings, **more):
    """The prompt sampled untiled ("plain") and with tiles ("hex"), and what differs ("d")."""
    return prompt | {
        "tiles": tiles(**settings),
        "plain": sampler("model", **more), "hex": sampler("tiles", **more),
        "d": node("TestLatentDifference", a=["plain", 0], b=["hex", 0]),
    }  # fmt: skip


def difference(run):
    return run.outputs["d"]["stats"]


ONE_TILE = [{"shape": "none"}, {"hex_res": "2"}, {"hex_res": "2", "order": "tile-major"}]


@pytest.mark.parametrize("cfg", [1.0, 4.0])
@pytest.mark.parametrize("settings", ONE_TILE, ids=["none", "one cell", "one cell, tile-major"])
def test_one_tile_is_no_tiling(comfy, settings, cfg):
    run = comfy.run(compared(nano(), settings, cfg=cfg)).expect()
    assert difference(run)[0]["worst"] == 0.0


@pytest.mark.comfy_min("0.33")
@pytest.mark.parametrize("cfg", [1.0, 4.0])
def test_one_tile_is_no_tiling_with_sound(comfy, cfg):
    run = comfy.run(compared(minimax_h3(), {"shape": "none"}, cfg=cfg)).expect()
    assert [part["worst"] for part in difference(run)] == [0.0, 0.0]


@pytest.mark.parametrize(
    "more", [{}, {"order": "tile-major"}, {"exchange": "block"}, {"tiles": "crop", "halo": 32}],
    ids=["block-major", "tile-major", "exchange block", "crop"],
)  # fmt: skip
def test_tiles_come_close(comfy, more):
    """Not the same, since a tile sees less, but the same picture."""
    run = comfy.run(compared(nano(), TILED | {"halo": 64} | more)).expect()
    (seen,) = difference(run)
    assert 1e-3 < seen["relative"] < 0.5


def test_orders_agree(comfy):
    """tile-major computes the same in another order."""
    prompt = nano() | {
        "tiles": tiles(**TILED), "other": tiles(**TILED, order="tile-major"),
        "a": sampler("tiles"), "b": sampler("other"),
        "d": node("TestLatentDifference", a=["a", 0], b=["b", 0]),
    }  # fmt: skip
    assert difference(comfy.run(prompt).expect())[0]["relative"] < 1e-3


@pytest.mark.comfy_min("0.33")
def test_tiles_keep_sound_whole(comfy):
    run = comfy.run(compared(minimax_h3(), {"budget": "60%"}, steps=1, cfg=1.0)).expect()
    picture, sound = difference(run)
    assert 1e-4 < picture["relative"] < 0.7 and sound["relative"] < 0.7


def test_steps_outside_the_range_are_untiled(comfy):
    """start_step beyond the last step: nothing is tiled, byte for byte."""
    run = comfy.run(compared(nano(), TILED | {"start_step": 3})).expect()
    assert difference(run)[0]["worst"] == 0.0


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": "lots"}, ("budget 'lots'", "25%")),
        ({"budget": "0%"}, ("budget", "25%")),
        ({"budget": "1KiB"}, ("budget 1KiB", "smallest")),
        ({"start_step": 4, "end_step": 2}, ("end_step", "start_step")),
        ({"window": 4, "window_overlap": 3}, ("window_overlap 3", "at most 2")),
        ({"order": "tile-major", "exchange": "block"}, ("block-major",)),
    ],
)
def test_wrong_settings_are_told(comfy, settings, said):
    """In words, with the value and what to do; 3 steps at 320x192 would tile."""
    run = comfy.run(compared(nano(320, 192), settings)).expect("error")
    assert run.error["node_id"] in ("tiles", "hex")
    for words in said:
        assert words in run.error["exception_message"]


def test_progress_over_steps_and_tiles(comfy):
    prompt = nano(length=17) | {
        "tiles": tiles(**TILED), "hex": sampler("tiles", steps=4),
        "end": node("TestLatentStats", samples=["hex", 0]),
    }  # fmt: skip
    run = comfy.run(prompt).expect()
    shown = [value / most for value, most in run.steps_of("hex")]
    assert shown == sorted(shown) and shown[-1] == 1.0
    inside = {round(f, 4) for f in shown if 4 * f % 1 > 1e-6}
    assert len(inside) >= 8, shown  # ticks within steps, not only at their ends


def test_interrupt_comes_within_a_tile(comfy):
    """A step of six blocks on several tiles takes seconds; it is left at the next tile."""
    prompt = nano(832, 480, 17) | {
        "tiles": tiles(), "hex": sampler("tiles", steps=20),
        "end": node("TestLatentStats", samples=["hex", 0]),
    }  # fmt: skip
    run = comfy.run(prompt, interrupt_in="hex").expect("interrupted")
    value, most = run.steps_of("hex")[-1]
    assert value / most < 1 / 20, "the first step ended before the interruption came"
    assert "end" not in run.executed
    comfy.run(nano() | {"hex": sampler("model", seed=6), "end": prompt["end"]}).expect()


def test_two_models_in_one_graph(comfy):
    """Each tiled on its own, one after the other, as if it were alone."""
    prompt = compared(nano(), TILED) | {
        "other": node("ModelSamplingSD3", model=["file", 0], shift=3.0),
        "other tiles": node("H3HexTiles", model=["other", 0], budget="auto",
                            **TILED | {"halo": 32}),
        "second": sampler("other tiles"),
        "s1": node("TestLatentStats", samples=["hex", 0]),
        "s2": node("TestLatentStats", samples=["second", 0]),
    }  # fmt: skip
    both = comfy.run(prompt).expect().outputs
    del prompt["d"], prompt["plain"], prompt["hex"], prompt["s1"]
    prompt["second"]["inputs"]["denoise"] = 0.9999  # not from the cache
    alone = comfy.run(prompt).expect().outputs
    assert both["s1"] != both["s2"]
    assert both["s2"]["stats"][0]["std"] == pytest.approx(alone["s2"]["stats"][0]["std"], rel=1e-2)


@pytest.mark.parametrize("first", ["tokens", "crop"])
def test_the_last_of_two_tilings_rules(comfy, first):
    """One that tiles, then one that does not: nothing is tiled."""
    prompt = compared(nano(), {"shape": "none"}) | {
        "before": node("H3HexTiles", model=["model", 0], budget="auto", **TILED, tiles=first),
    }
    prompt["tiles"]["inputs"]["model"] = ["before", 0]
    assert difference(comfy.run(prompt).expect())[0]["worst"] == 0.0


# -- regions ------------------------------------------------------------------------------------


def regions(prompt, left=LEFT, right=RIGHT, select=("x<40%", "x>=60%")):
    """The prompt with two regions and a gap as "regions", from cells of a grid."""
    return prompt | {
        "grid": node("H3GridEncode", width=160, height=96, hex_res="3", overlap=8),
        "left": node("CLIPTextEncode", clip=["2", 0], text=left),
        "right": node("CLIPTextEncode", clip=["2", 0], text=right),
        "one": node("H3RegionPrompts", base=["positive", 0], prompt=["left", 0],
                    cells=["grid", 1], select=select[0]),
        "regions": node("H3RegionPrompts", base=["one", 0], prompt=["right", 0],
                        cells=["grid", 1], select=select[1]),
    }  # fmt: skip


def test_a_region_changes_nothing_beyond_it(comfy):
    """In one step: another prompt on the left, and the right quarter keeps its bytes."""
    prompt = regions(nano()) | {
        "tiles": tiles(**TILED), "a": sampler("tiles", "regions", steps=1),
        "again": node("CLIPTextEncode", clip=["2", 0], text=RIGHT),
        "other one": node("H3RegionPrompts", base=["positive", 0], prompt=["again", 0],
                          cells=["grid", 1], select="x<40%"),
        "others": node("H3RegionPrompts", base=["other one", 0], prompt=["right", 0],
                       cells=["grid", 1], select="x>=60%"),
        "b": sampler("tiles", "others", steps=1),
        "d": node("TestLatentDifference", a=["a", 0], b=["b", 0]),
    }  # fmt: skip
    (seen,) = difference(comfy.run(prompt).expect())
    assert seen["left"] > 1e-3 and seen["right"] == 0.0


@pytest.mark.parametrize("kind", ["tokens", "crop", "untiled"])
def test_regions_have_an_effect(comfy, kind):
    """With token tiles, and through ComfyUI's mask conditioning with crops and without tiles."""
    model = "model" if kind == "untiled" else "tiles"
    prompt = regions(nano()) | {
        "tiles": tiles(**TILED, tiles="auto" if kind == "untiled" else kind),
        "a": sampler(model, "regions"), "b": sampler(model),
        "d": node("TestLatentDifference", a=["a", 0], b=["b", 0]),
    }  # fmt: skip
    (seen,) = difference(comfy.run(prompt).expect())
    assert seen["left"] > 1e-2 and seen["right"] > 1e-2


@pytest.mark.comfy_min("0.33")
def test_regions_on_packed_latents(comfy):
    """Prompts of different length on picture and sound, where ComfyUI's masks fail."""
    prompt = regions(minimax_h3(), right="a long prompt " * 40) | {
        "tiles": tiles(hex_res="3", overlap=0, halo=32),
        "a": sampler("tiles", "regions", cfg=1.0, steps=2),
        "b": sampler("tiles", cfg=1.0, steps=2),
        "d": node("TestLatentDifference", a=["a", 0], b=["b", 0]),
    }  # fmt: skip
    picture, sound = difference(comfy.run(prompt).expect())
    assert picture["left"] > 1e-3 and picture["right"] > 1e-3 and sound["worst"] > 0.0


def test_regions_that_are_none(comfy):
    prompt = regions(nano(), select=("none", "x>=60%")) | {"a": sampler("model", "regions")}
    prompt["end"] = node("TestLatentStats", samples=["a", 0])
    run = comfy.run(prompt).expect("error")
    assert run.error["node_id"] == "one" and "chooses no cell" in run.message()
    del prompt["one"]["inputs"]["cells"]
    run = comfy.run(prompt).expect("error")
    assert "neither is connected" in run.message()
    prompt["black"] = node("SolidMask", value=0.0, width=64, height=64)
    prompt["one"]["inputs"]["mask"] = ["black", 0]
    assert "mask is empty" in comfy.run(prompt).expect("error").message()
