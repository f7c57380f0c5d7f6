"""Wrong values, interruption, the cache, and nodes fed with something unexpected."""

import json

import graphs
import pytest
from graphs import node


def split_and_merge(frames=9, width=160, height=96, res="3", chunk=0, between=None, **merge):
    """The test clip, scaled, split and merged; node ids tell the parts."""
    prompt = {
        "clip": node("LoadVideo", file=graphs.CLIP),
        "parts": node("GetVideoComponents", video=["clip", 0]),
        "scaled": node("ImageScale", image=["parts", 0], upscale_method="bilinear", width=width,
                       height=height, crop="disabled"),
        "some": node("ImageFromBatch", image=["scaled", 0], batch_index=0, length=frames),
        "grid": node("H3GridEncode", width=width, height=height, hex_res=res, overlap=8),
        "split": node("H3SplitTiles", clip=["some", 0], cells=["grid", 1], halo=8,
                      chunk_frames=chunk, chunk_overlap=0),
        "merge": node("H3MergeChunks", tiles=["split", 0], layout=["split", 1], **merge),
        "out": node("TestImageStats", images=["merge", 0]),
    }  # fmt: skip
    if between:
        prompt["between"] = node(between.pop("kind"), tiles=["split", 0], **between)
        prompt["merge"]["inputs"]["tiles"] = ["between", 0]
    return prompt


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"hex_res": "16"}, "hex_res"),
        ({"width": 8}, "width 8"),
        ({"span": 0.5}, "0.33"),
        ({"rotation": 200.0}, "180"),
        ({"width": 1024, "height": 512, "projection": "equirectangular", "hex_res": "9"}, "8 px"),
    ],
)
def test_wrong_grids_are_rejected_before_anything_runs(comfy, inputs, said):
    prompt = {"grid": node("H3GridEncode", **{"width": 160, "height": 96, "hex_res": "3",
                                              "overlap": 8, **inputs}),
              "see": node("TestMaskStats", mask=["grid", 0])}  # fmt: skip
    run = comfy.run(prompt).expect("rejected")
    assert said in run.message()


def test_wrong_selection_fails_with_our_words(comfy):
    prompt = {"grid": node("H3GridEncode", width=160, height=96, hex_res="3", overlap=8),
              "cells": node("H3CellMask", cells=["grid", 1], select="ring<=", overlap=-1),
              "see": node("TestMaskStats", mask=["cells", 0])}  # fmt: skip
    run = comfy.run(prompt)
    assert run.status in ("error", "rejected")
    assert "select" in run.message() and "ring" in run.message()


def test_wrong_text_is_rejected(comfy):
    prompt = {"cells": node("H3CellsFromText", text="no grid"),
              "mask": node("H3CellMask", cells=["cells", 0], select="all", overlap=-1),
              "see": node("TestMaskStats", mask=["mask", 0])}  # fmt: skip
    assert "H3CellsToText wrote" in comfy.run(prompt).expect("rejected").message()


def test_a_grid_survives_as_text(comfy):
    """Written by one prompt, read by another, as in a workflow file."""
    prompt = {"grid": node("H3GridEncode", width=160, height=96, hex_res="3", overlap=8,
                           focus_x=0.2, focus_y=0.8),
              "text": node("H3CellsToText", cells=["grid", 1]),
              "back": node("H3CellsFromText", text=["text", 0]),
              "one": node("H3CellMask", cells=["grid", 1], select="ring<=1", overlap=-1),
              "two": node("H3CellMask", cells=["back", 0], select="ring<=1", overlap=-1),
              "see1": node("TestMaskStats", mask=["one", 0]),
              "see2": node("TestMaskStats", mask=["two", 0]),
              "show": node("PreviewAny", source=["text", 0])}  # fmt: skip
    run = comfy.run(prompt).expect()
    assert run.outputs["see1"]["stats"] == run.outputs["see2"]["stats"]
    text = run.outputs["show"]["text"][0]
    json.loads(text)
    again = {"cells": node("H3CellsFromText", text=text),
             "mask": node("H3CellMask", cells=["cells", 0], select="ring<=1", overlap=-1),
             "see": node("TestMaskStats", mask=["mask", 0])}  # fmt: skip
    assert comfy.run(again).expect().outputs["see"]["stats"] == run.outputs["see1"]["stats"]


def test_missing_tiles_are_named(comfy):
    prompt = split_and_merge(between={"kind": "TestDropTiles", "drop": "1"})
    run = comfy.run(prompt).expect("error")
    assert run.error["node_id"] == "merge"
    assert "missing" in run.message() and "tile" in run.message()


def test_indices_say_which_tiles_came(comfy):
    """Without tile 1 and told so: the message names exactly that one."""
    count = comfy.run(split_and_merge()).expect().steps_of("merge")[-1][1]
    prompt = split_and_merge(
        between={"kind": "TestDropTiles", "drop": "1"}, indices=f"0,2-{int(count) - 1}"
    )
    run = comfy.run(prompt).expect("error")
    assert "tile 1 " in run.message() and "tile 2 " not in run.message()


def test_split_and_merge_give_the_clip_back(comfy):
    prompt = split_and_merge(chunk=4)
    prompt["before"] = node("TestImageStats", images=["some", 0])
    run = comfy.run(prompt).expect()
    before, after = (run.outputs[k]["stats"][0] for k in ("before", "out"))
    assert before == after and before["std"] > 0.05


def test_latents_give_themselves_back(comfy):
    prompt = {
        "vae": node("VAELoader", vae_name="h3video_nano_vae.safetensors"),
        "clip": node("LoadVideo", file=graphs.CLIP),
        "parts": node("GetVideoComponents", video=["clip", 0]),
        "latent": node("VAEEncode", pixels=["parts", 0], vae=["vae", 0]),
        "grid": node("H3GridEncode", width=160, height=96, hex_res="3", overlap=16),
        "split": node("H3SplitTiles", clip=["latent", 0], cells=["grid", 1], halo=8,
                      chunk_frames=2, chunk_overlap=1),
        "merge": node("H3MergeChunks", tiles=["split", 0], layout=["split", 1]),
        "before": node("TestLatentStats", samples=["latent", 0]),
        "after": node("TestLatentStats", samples=["merge", 0]),
    }  # fmt: skip
    run = comfy.run(prompt).expect()
    assert run.outputs["before"]["stats"] == run.outputs["after"]["stats"]
    assert run.outputs["after"]["stats"][0]["shape"] == [1, 16, 5, 12, 20]


def test_grid_of_another_size_is_refused(comfy):
    prompt = split_and_merge()
    prompt["grid"]["inputs"]["height"] = 160
    run = comfy.run(prompt).expect("error")
    assert "160x96" in run.message() and "160x160" in run.message()


def test_cells_that_are_none(comfy):
    prompt = {"cells": node("TestCells", text="nonsense"),
              "mask": node("H3CellMask", cells=["cells", 0], select="all", overlap=-1),
              "see": node("TestMaskStats", mask=["mask", 0])}  # fmt: skip
    run = comfy.run(prompt).expect("error")
    assert run.error["node_id"] == "mask"


def test_interrupt_while_merging(comfy):
    """Dozens of tiles, some seconds of work; it is left within a tile."""
    prompt = split_and_merge(frames=17, width=832, height=480, res="4", chunk=2)
    run = comfy.run(prompt, interrupt_in="merge").expect("interrupted")
    done, most = run.steps_of("merge")[-1]
    assert done < most, "the merge ended before the interruption came; make it longer"
    assert run.seconds - run.interrupted_at < 10.0
    assert "out" not in run.executed
    comfy.run(split_and_merge(frames=3)).expect()  # and the server goes on


def test_interrupt_while_sampling(comfy):
    prompt = graphs.article(graphs.NANO)
    prompt["12"]["inputs"] |= {"steps": 60, "seed": 77}
    run = comfy.run(prompt, interrupt_in="12").expect("interrupted")
    assert run.steps_of("12")[-1][0] < 60 and "15" not in run.executed


def test_second_run_is_cached_and_a_changed_input_is_not(comfy):
    prompt = split_and_merge(frames=5)
    prompt["mask"] = node("H3CellMask", cells=["grid", 1], select="all", overlap=-1)
    prompt["see"] = node("TestMaskStats", mask=["mask", 0])
    nodes = {"grid", "split", "merge", "mask"}
    comfy.run(prompt).expect()
    again = comfy.run(prompt).expect()
    assert nodes <= set(again.cached) and not nodes & set(again.executed)
    prompt["mask"]["inputs"]["select"] = "ring<=1"
    changed = comfy.run(prompt).expect()
    assert "mask" in changed.executed and not {"grid", "split", "merge"} & set(changed.executed)
    prompt["grid"]["inputs"]["overlap"] = 6
    changed = comfy.run(prompt).expect()
    assert nodes <= set(changed.executed)


def test_free_memory_passes_anything_through(comfy):
    prompt = split_and_merge(frames=3)
    prompt["free"] = node("H3FreeMemory", value=["merge", 0], unload_models=True)
    prompt["free2"] = node("H3FreeMemory", value=["grid", 1], unload_models=False)
    prompt["freed"] = node("TestImageStats", images=["free", 0])
    prompt["mask"] = node("H3CellMask", cells=["free2", 0], select="all", overlap=-1)
    prompt["see"] = node("TestMaskStats", mask=["mask", 0])
    prompt["report"] = node("PreviewAny", source=["free", 1])
    run = comfy.run(prompt).expect()
    assert run.outputs["freed"] == run.outputs["out"]
    assert "GiB" in run.outputs["report"]["text"][0]


def test_finite_guard_on_images(comfy):
    prompt = split_and_merge(frames=3)
    prompt["guard"] = node("H3FiniteGuard", value=["merge", 0], suspicious="stop")
    prompt["fine"] = node("TestImageStats", images=["guard", 0])
    run = comfy.run(prompt).expect()
    assert run.outputs["fine"] == run.outputs["out"]
    prompt["broken"] = node("TestHalfNaN", images=["merge", 0])
    prompt["guard"]["inputs"]["value"] = ["broken", 0]
    run = comfy.run(prompt).expect("error")
    assert run.error["node_id"] == "guard" and "50" in run.error["exception_message"]
    assert "NaN" in run.error["exception_message"]


def test_finite_guard_on_a_model_changes_nothing(comfy):
    """The guarded model gives the same latents, and its checks ran at every step."""
    prompt = graphs.regional(graphs.NANO)
    prompt = {k: v for k, v in prompt.items() if int(k) <= 15}
    prompt["plain"] = node("TestLatentStats", samples=["15", 0])
    prompt["guard"] = node("H3FiniteGuard", value=["4", 0])
    sampler = prompt["15"]["inputs"] | {"model": ["guard", 0]}
    prompt["guarded"] = node("TestLatentStats", samples=["sample", 0])
    prompt["sample"] = node("KSampler", **sampler)
    run = comfy.run(prompt).expect()
    assert run.outputs["plain"] == run.outputs["guarded"]
