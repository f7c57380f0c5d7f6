"""The nodes' execute methods on ComfyUI's real modules."""

import importlib
import json
import logging
import sys

import pytest

torch = pytest.importorskip("torch")

from h3video.errors import UsageError


@pytest.fixture(scope="session")
def nodes(comfyui):
    """h3video.nodes on the ComfyUI under test, in this process, on the CPU."""
    sys.path.insert(0, str(comfyui))
    import comfy.cli_args

    comfy.cli_args.args.cpu = True
    return importlib.import_module("h3video.nodes")


@pytest.fixture
def node(nodes):
    """node("H3GridEncode") -> the class."""
    by_id = {c.GET_SCHEMA().node_id: c for c in nodes.node_classes()}
    return by_id.__getitem__


def run(cls, *args, **kwargs):
    out = cls.execute(*args, **kwargs)
    return out.args if hasattr(out, "args") else out.result


def grid(node, width=256, height=160, hex_res="4", overlap=32, **more):
    return run(node("H3GridEncode"), width, height, hex_res, overlap, **more)


def test_every_node_is_real_and_explains_itself(nodes):
    classes = nodes.node_classes()
    assert [c.GET_SCHEMA().node_id for c in classes] == list(nodes.NODES)
    for c in classes:
        schema = c.GET_SCHEMA()
        assert "unavailable" not in schema.display_name
        assert schema.category.startswith("h3-video/") and len(schema.description) > 30
        for socket in [*schema.inputs, *schema.outputs]:
            assert socket.tooltip and socket.tooltip.endswith("."), (schema.node_id, socket.id)


def test_encode_gives_mask_cells_picture_and_summary(node):
    mask, cells, preview, summary = grid(node, focus_x=0.25, focus_y=0.25)
    assert mask.shape == (1, 160, 256) and mask.dtype == torch.float32
    assert mask.max() > 0.999 and mask.argmax() % 256 < 128
    assert cells.grid.width == 256 and cells.focus == (64.0, 40.0)
    assert preview.shape[0] == 1 and preview.shape[3] == 3 and preview.shape[2] >= 768
    assert preview.min() >= 0 and preview.max() <= 1 and preview.std() > 0.05
    assert summary.count("\n") == len(cells.grid.cells) + 1
    assert all(f"{c.id:x}" in summary for c in cells.grid.cells)


def test_encode_in_the_articles_sizes(node):
    _, cells, _, _ = grid(node, 1024, 576, "4", 32)
    assert 60 < cells.grid.edge < 62


def test_encode_refuses_before_anything_runs(node):
    check = node("H3GridEncode").validate_inputs
    assert check(width=1024, height=576, hex_res="4") is True
    assert check(width=None, height=576, hex_res="4") is True  # linked: known only when it runs
    assert check(width=64, height=64, hex_res="9") == (
        "hex_res 9 gives cells of 0.03 px edge at 64x64; at least 2 px are needed: use hex_res 4 "
        "or less"
    )
    assert "16384" in check(width=20000, height=64, hex_res="4")
    assert "face projection" in check(
        width=512, height=256, hex_res="5", projection="equirectangular"
    )


def test_encode_on_a_globe(node):
    mask, cells, preview, _ = grid(node, 512, 256, "auto", 4, projection="equirectangular")
    assert mask.shape == (1, 256, 512) and cells.projection == "equirectangular"
    assert preview.shape[3] == 3


def test_masks_of_cells(node):
    _, cells, _, _ = grid(node)
    mask, ids = run(node("H3CellMask"), cells, "ring<=1", -1)
    assert mask.shape == (1, 160, 256) and mask.max() == 1.0 and mask.min() == 0.0
    assert len(json.loads(ids)) == 7
    rest, _ = run(node("H3CellMask"), cells, "not ring<=1", -1)
    assert torch.allclose(mask + rest, torch.ones_like(mask), atol=1e-6)
    hard, _ = run(node("H3CellMask"), cells, "ring<=1", 0)
    assert set(hard.unique().tolist()) == {0.0, 1.0}
    with pytest.raises(UsageError, match="not understood"):
        run(node("H3CellMask"), cells, "rung 1", -1)


def test_text_and_back(node):
    _, cells, _, _ = grid(node, rotation=10.0)
    (text,) = run(node("H3CellsToText"), cells)
    (again,) = run(node("H3CellsFromText"), text)
    assert again == cells
    assert node("H3CellsFromText").validate_inputs(text=text) is True
    assert "no grid" in node("H3CellsFromText").validate_inputs(text="{}")


def frames(f=5, h=160, w=256, seed=0):
    return torch.rand(f, h, w, 3, generator=torch.Generator().manual_seed(seed))


def split_merge(node, clip, cells, merge=None, change=lambda t: t, **settings):
    tiles, layout, summary = run(node("H3SplitTiles"), clip, cells, **settings)
    assert str(len(tiles)) in summary
    merged, _ = run(node("H3MergeChunks"), [change(t) for t in tiles], [layout], **(merge or {}))
    return merged


@pytest.mark.parametrize(
    "settings", [{}, {"halo": 0}, {"chunk_frames": 2}, {"chunk_frames": 4, "chunk_overlap": 2}]
)
def test_images_come_back_bit_for_bit(node, settings):
    _, cells, _, _ = grid(node)
    clip = frames()
    assert torch.equal(split_merge(node, clip, cells, **settings), clip)


def test_tiles_may_come_as_one_batch_and_larger(node):
    _, cells, _, _ = grid(node)
    clip = frames(3)
    tiles, layout, _ = run(node("H3SplitTiles"), clip, cells)
    merged, _ = run(node("H3MergeChunks"), [torch.cat(tiles)], [layout])
    assert torch.equal(merged, clip)
    double = [t.repeat_interleave(2, 1).repeat_interleave(2, 2) for t in tiles]
    merged, text = run(node("H3MergeChunks"), double, [layout])
    assert torch.equal(merged, clip.repeat_interleave(2, 1).repeat_interleave(2, 2))
    assert "512" in text


def test_missing_tiles_are_named_and_indices_say_which_came(node):
    _, cells, _, _ = grid(node)
    tiles, layout, _ = run(node("H3SplitTiles"), frames(1), cells)
    with pytest.raises(UsageError, match=r"1 of .* missing: tile 0 "):
        run(node("H3MergeChunks"), tiles[1:], [layout], indices=[f"1-{len(tiles) - 1}"])
    back = [tiles[i] for i in reversed(range(len(tiles)))]
    order = ",".join(map(str, reversed(range(len(tiles)))))
    merged, _ = run(node("H3MergeChunks"), back, [layout], indices=[order])
    assert torch.equal(merged, frames(1))


@pytest.mark.parametrize(
    "text, says", [("0-", "no number"), ("0,99", "out of range"), ("0", "came")]
)
def test_bad_indices_are_refused(node, text, says):
    _, cells, _, _ = grid(node)
    tiles, layout, _ = run(node("H3SplitTiles"), frames(1), cells)
    with pytest.raises(UsageError, match=says):
        run(node("H3MergeChunks"), tiles, [layout], indices=[text])


def test_a_clip_of_another_size_is_refused(node):
    _, cells, _, _ = grid(node)
    with pytest.raises(UsageError, match="the clip is 250x160, the grid is for 256x160"):
        run(node("H3SplitTiles"), frames(1, 160, 250), cells)


def test_latents_with_a_mask_come_back(node):
    _, cells, _, _ = grid(node, 256, 160)
    latent = {
        "samples": torch.randn(1, 16, 5, 20, 32), "noise_mask": torch.rand(1, 1, 160, 256),
        "batch_index": [0],
    }  # fmt: skip
    tiles, layout, _ = run(node("H3SplitTiles"), latent, cells, chunk_frames=3, chunk_overlap=1)
    assert tiles[0]["noise_mask"].shape[-1] == tiles[0]["samples"].shape[-1] * 8
    assert [t["h3_tile"] for t in tiles] == list(range(len(tiles)))
    merged, _ = run(node("H3MergeChunks"), tiles[::-1], [layout])  # numbered: any order will do
    assert torch.equal(merged["samples"], latent["samples"])
    assert torch.equal(merged["noise_mask"], latent["noise_mask"]) and merged["batch_index"] == [0]
    assert "h3_tile" not in merged


def test_a_mask_that_does_not_fit_is_refused(node):
    _, cells, _, _ = grid(node, 256, 160)
    latent = {"samples": torch.randn(1, 16, 5, 20, 32), "noise_mask": torch.rand(1, 1, 33, 50)}
    with pytest.raises(UsageError, match="noise_mask is 50x33"):
        run(node("H3SplitTiles"), latent, cells)


def test_latents_of_single_images_come_back(node):
    _, cells, _, _ = grid(node, 256, 160)
    latent = {"samples": torch.randn(3, 4, 20, 32)}
    tiles, layout, _ = run(node("H3SplitTiles"), latent, cells)
    assert tiles[0]["samples"].shape[:2] == (3, 4)
    merged, _ = run(node("H3MergeChunks"), tiles, [layout])
    assert torch.equal(merged["samples"], latent["samples"])


@pytest.mark.parametrize("settings", [{}, {"chunk_frames": 4, "chunk_overlap": 2}])
@pytest.mark.parametrize("sound", [(1, 32, 2, 37), (1, 8, 41, 16)])
def test_video_with_sound_comes_back(node, settings, sound):
    from comfy.nested_tensor import NestedTensor

    _, cells, _, _ = grid(node, 256, 160)
    video, audio = torch.randn(1, 24, 7, 10, 16), torch.randn(sound)
    latent = {"samples": NestedTensor([video, audio])}
    tiles, layout, _ = run(node("H3SplitTiles"), latent, cells, **settings)
    assert all(t["samples"].is_nested for t in tiles)
    merged, _ = run(node("H3MergeChunks"), tiles, [layout])
    a, b = merged["samples"].unbind()
    assert torch.equal(a, video) and torch.equal(b, audio)


def test_sound_is_the_mean_by_owned_area(node):
    from comfy.nested_tensor import NestedTensor

    _, cells, _, _ = grid(node, 256, 160)
    latent = {"samples": NestedTensor([torch.randn(1, 24, 7, 10, 16), torch.zeros(1, 32, 2, 37)])}
    tiles, layout, _ = run(node("H3SplitTiles"), latent, cells)
    plan = layout.layout
    pixels = [sum(plan.grid.cells[i].pixels for i in t.cells) for t in plan.tiles]
    changed = [
        {
            **t,
            "samples": NestedTensor(
                [t["samples"].unbind()[0], torch.full((1, 32, 2, 37), float(i))]
            ),
        }
        for i, t in enumerate(tiles)
    ]
    merged, _ = run(node("H3MergeChunks"), changed, [layout])
    wanted = sum(i * p for i, p in enumerate(pixels)) / sum(pixels)
    assert merged["samples"].unbind()[1].mean().item() == pytest.approx(wanted, rel=1e-4)


def test_sound_of_an_unknown_kind_may_be_tiled_but_not_chunked(node):
    from comfy.nested_tensor import NestedTensor

    _, cells, _, _ = grid(node, 256, 160)
    audio = torch.randn(1, 5, 9)
    latent = {"samples": NestedTensor([torch.randn(1, 24, 7, 10, 16), audio])}
    merged = split_merge(node, latent, cells)
    assert torch.equal(merged["samples"].unbind()[1], audio)
    with pytest.raises(UsageError, match="use chunk_frames 0"):
        split_merge(node, latent, cells, chunk_frames=4)


def test_free_memory_passes_anything_and_reports(node):
    for value in (None, 5, {"a": 1}, torch.zeros(2)):
        same, report = run(node("H3FreeMemory"), value)
        assert same is value and "->" in report and "GiB" in report
    assert "used by ComfyUI" in run(node("H3FreeMemory"), 1, True)[1]


def test_guard_passes_what_is_sound(node):
    latent = {"samples": torch.randn(1, 16, 5, 8, 8)}
    same, report = run(node("H3FiniteGuard"), latent)
    assert same is latent and report.count("channel") == 16
    images = torch.full((2, 32, 32, 3), 0.5)
    assert run(node("H3FiniteGuard"), images)[0] is images


def test_guard_stops_what_is_not(node, caplog):
    bad = torch.zeros(1, 16, 5, 8, 8)
    bad[0, 2] = float("nan")
    for how in ("stop", "warn", "ignore"):
        with pytest.raises(ValueError, match=r"6\.2% NaN.*in 1 of 16 channels: 2.*Likely causes"):
            run(node("H3FiniteGuard"), {"samples": bad}, how)
    black = torch.zeros(2, 32, 32, 3)
    with pytest.raises(ValueError, match="black"):
        run(node("H3FiniteGuard"), black)
    with caplog.at_level(logging.WARNING, "h3video"):
        assert run(node("H3FiniteGuard"), black, "warn")[0] is black
    assert "black" in caplog.text
    assert run(node("H3FiniteGuard"), black, "ignore")[0] is black


def test_guard_names_the_step_of_a_model(node):
    from comfy.nested_tensor import NestedTensor  # noqa: F401  (ComfyUI is importable)

    guard = importlib.import_module("h3video.nodes.finite_guard")

    class Patcher:
        hooks = ()

        def clone(self):
            return Patcher()

        def set_model_sampler_post_cfg_function(self, f):
            self.hooks = (*self.hooks, f)

    model = Patcher()
    guarded, _ = run(node("H3FiniteGuard"), model)
    assert guarded is not model and not model.hooks and guarded.hooks == (guard.check_step,)
    sigmas = torch.linspace(1, 0, 21)
    args = {
        "denoised": torch.zeros(1, 4, 3, 3), "cond_denoised": torch.zeros(1, 4, 3, 3),
        "uncond_denoised": torch.zeros(1, 4, 3, 3), "sigma": sigmas[2:3],
        "model_options": {"transformer_options": {"sample_sigmas": sigmas}},
    }  # fmt: skip
    assert guard.check_step(args) is args["denoised"]
    args["denoised"] = args["uncond_denoised"] = torch.full((1, 4, 3, 3), float("nan"))
    with pytest.raises(
        ValueError, match=r"step 3 of 20 at sigma 0.9 \(the unconditional prediction\)"
    ):
        guard.check_step(args)


def test_a_node_that_does_not_load_is_replaced_by_one_that_says_so(nodes, monkeypatch, caplog):
    monkeypatch.setitem(nodes.NODES, "H3CellMask", "no_such_module")
    by_id = {c.GET_SCHEMA().node_id: c for c in nodes.node_classes()}
    assert len(by_id) == len(nodes.NODES)
    assert len([r for r in caplog.records if "H3CellMask cannot be used" in r.message]) == 1
    with pytest.raises(RuntimeError, match="no_such_module"):
        by_id["H3CellMask"].execute()


def test_a_missing_package_is_named_with_the_way_to_get_it(node, monkeypatch):
    import builtins

    real = builtins.__import__

    def without_pillow(name, *args, **kwargs):
        if name.split(".")[0] == "PIL":
            raise ModuleNotFoundError("No module named 'PIL'", name="PIL")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(RuntimeError, match="H3GridEncode needs the Python package Pillow"):
        grid(node)


def test_an_old_comfyui_gets_placeholders(nodes):
    mappings = nodes.old_comfyui_mappings()
    assert list(mappings) == list(nodes.NODES)
    with pytest.raises(RuntimeError, match="update ComfyUI"):
        mappings["H3GridEncode"]().execute()
