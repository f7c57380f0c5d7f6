"""Everything else that a model is given: images, masks, keyframes, control, guides.

The proof is the same everywhere. Tiles that see the whole frame each compute the untiled result,
and their blend must be that: any input that a tile got wrong shows.
"""

import pytest

torch = pytest.importorskip("torch")

from tests_support import attach, attach_seeing_all, family_parameters, settings

ALL = dict(hex_res=3, overlap=64.0)


def randn(*shape, seed=8):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def same(tiny, model, family, how=ALL, **kw):
    """Tiled as untiled, and what was given matters at all."""
    plain = tiny.sample(model, family, **kw)
    tiling = attach_seeing_all(model, settings(**how))
    tiled = tiny.sample(tiling, family, **kw)
    plan = tiling.h3video_tiling.plans[-1]
    assert len(plan.tiles) > 2
    for a, b in zip(tiled, plain):
        assert b.isfinite().all()
        assert (a - b).norm() <= 2e-4 * b.norm(), float((a - b).norm() / b.norm())
    return plain


def differs(a, b):
    assert any((x - y).norm() > 1e-3 * y.norm() for x, y in zip(a, b))


@pytest.mark.parametrize("family", family_parameters())
@pytest.mark.parametrize("how", [{}, {"exchange": "block"}, {"order": "tile-major"}], ids=str)
def test_tiles_that_see_everything_give_the_untiled_result(tiny, family, how):
    same(tiny, getattr(tiny, family)(), family, {**ALL, **how}, cfg=2.0)


def test_wan_image_to_video(tiny):
    model = tiny.wan(model_type="i2v", in_dim=36)
    shape = (1, *tiny.SIZE["wan"])
    image, mask = randn(*shape), torch.ones(1, 4, *shape[2:])
    mask[:, :, :1] = 0
    cond = tiny.prompt("wan", concat_latent_image=image, concat_mask=mask)
    given = same(tiny, model, "wan", positive=cond, negative=cond)
    other = tiny.prompt("wan", concat_latent_image=-image, concat_mask=mask)
    differs(given, tiny.sample(model, "wan", positive=other, negative=other))


def test_wan_clip_vision(tiny):
    class Vision:
        penultimate_hidden_states = randn(1, 257, 1280)

    model = tiny.wan(model_type="i2v", in_dim=36)
    cond = tiny.prompt("wan", clip_vision_output=Vision())
    given = same(tiny, model, "wan", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "wan"))


def test_wan_reference_latent(tiny):
    model = tiny.wan(in_dim=16, in_dim_ref_conv=16)
    cond = tiny.prompt("wan", reference_latents=[randn(1, 16, 1, 24, 40)])
    given = same(tiny, model, "wan", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "wan"))


@pytest.mark.parametrize("contexts", [1, 2])
@pytest.mark.parametrize("how", [{}, {"order": "tile-major"}, {"exchange": "block"}], ids=str)
@pytest.mark.parametrize("layers", [3, 1])
def test_wan_vace(tiny, contexts, how, layers):
    model = tiny.wan(model_type="vace", vace_layers=layers, vace_in_dim=96)
    frames = [randn(1, 32, *tiny.SIZE["wan"][1:], seed=i) for i in range(contexts)]
    cond = tiny.prompt("wan", vace_frames=frames, vace_strength=[0.7, 0.4][:contexts])
    given = same(tiny, model, "wan", {**ALL, **how}, positive=cond, negative=cond)
    differs(given, tiny.sample(model, "wan"))


def test_wan_camera(tiny):
    model = tiny.wan(model_type="camera", in_dim=32, in_dim_control_adapter=24)
    wide, tall = 40 * 8, 24 * 8
    cond = tiny.prompt("wan", camera_conditions=randn(1, 24, 3, tall, wide))
    given = same(tiny, model, "wan", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "wan"))


@pytest.mark.parametrize("family", family_parameters())
def test_noise_mask(tiny, family):
    if family in ("minimax_h3", "ltxav"):
        pytest.skip("ComfyUI takes nested masks for packed latents; see the tests of regions")
    model = getattr(tiny, family)()
    mask = torch.ones(1, 1, *tiny.SIZE[family][1:])
    mask[..., : mask.shape[-1] // 2] = 0
    given = same(tiny, model, family, noise_mask=mask)
    differs(given, tiny.sample(model, family))


@pytest.mark.comfy_min("0.33")
def test_minimax_h3_keyframes(tiny):
    model = tiny.minimax_h3()
    first, last = randn(1, 24, 1, 24, 40), randn(1, 24, 1, 24, 40, seed=2)
    keyframes = [
        {"latent": first, "resolved_frame_index": 0, "frame_index": 0},
        {"latent": last, "resolved_frame_index": 21, "frame_index": -1},
    ]
    cond = tiny.prompt("minimax_h3", minimax_keyframes=keyframes)
    given = same(tiny, model, "minimax_h3", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "minimax_h3"))
    # and those near the tile only, when tiles are real ones
    tiling = attach(model, settings(hex_res=3, overlap=64.0))
    tiny.sample(tiling, "minimax_h3", positive=cond, negative=cond)
    table = tiling.h3video_tiling.tables._tables[-1]
    spans = table.sequences["img"].spans
    assert [s.target for s in spans] == [False, False, True]
    assert all(len(t.indices["img"].pieces) == 3 for t in table.tiles)


@pytest.mark.comfy_min("0.33")
def test_minimax_h3_references(tiny):
    model = tiny.minimax_h3()
    refs = [{"kind": "image", "latent": randn(1, 24, 1, 16, 24), "latent_t": 1, "ref_audio_t": 0,
             "latent_h": 16, "latent_w": 24}]  # fmt: skip
    cond = tiny.prompt("minimax_h3", minimax_refs=refs)
    given = same(tiny, model, "minimax_h3", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "minimax_h3"))


@pytest.mark.parametrize(
    "family", ["ltx", pytest.param("ltxav", marks=pytest.mark.comfy_min("0.33"))]
)
def test_ltx_guide_frames(tiny, family):
    model = getattr(tiny, family)()
    tokens = 12 * 20
    where = torch.zeros(1, 3, tokens, 2)
    where[:, 1, :, 0] = torch.arange(12).repeat_interleave(20) * 32
    where[:, 2, :, 0] = torch.arange(20).repeat(12) * 32
    where[..., 1] = where[..., 0] + 32
    if family == "ltx" and not hasattr(model.model.diffusion_model, "_process_output"):
        where = where[..., 0]
    cond = tiny.prompt(family, keyframe_idxs=where)
    mask = torch.ones(1, 1, 3, 12, 20)
    if family == "ltxav":
        mask = tiny.nested(mask, torch.ones(1, 1, 9, 16))
    given = same(tiny, model, family, positive=cond, negative=cond, noise_mask=mask)
    differs(given, tiny.sample(model, family))


def test_hunyuan_guiding_frame(tiny):
    model = tiny.hunyuan()
    cond = tiny.prompt("hunyuan", guiding_frame_index=0)
    given = same(tiny, model, "hunyuan", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "hunyuan"))


def test_hunyuan_reference(tiny):
    model = tiny.hunyuan()
    cond = tiny.prompt("hunyuan", ref_latent=randn(1, 16, 1, 24, 40))
    given = same(tiny, model, "hunyuan", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "hunyuan"))


def test_flux_reference_picture(tiny):
    model = tiny.flux()
    cond = tiny.prompt("flux", reference_latents=[randn(1, 16, 32, 24)])
    given = same(tiny, model, "flux", positive=cond, negative=cond)
    differs(given, tiny.sample(model, "flux"))


@pytest.mark.comfy_min("0.33")
def test_flux_reference_with_a_timestep_of_its_own_is_refused(tiny):
    from h3video.errors import UsageError

    model = tiny.flux()
    cond = tiny.prompt("flux", reference_latents=[randn(1, 16, 32, 24)],
                       reference_latents_method="index_timestep_zero")  # fmt: skip
    with pytest.raises(UsageError, match="index_timestep_zero"):
        tiny.sample(attach(model, settings(**ALL)), "flux", positive=cond, negative=cond)


@pytest.mark.parametrize("family", ["hunyuan", "flux"])
def test_a_control_net_that_adds_between_blocks(tiny, family):
    from comfy.patcher_extension import WrappersMP

    model = getattr(tiny, family)()
    size = tiny.SIZE[family]
    tokens = (size[-1] // 2) * (size[-2] // 2) * (size[1] if len(size) == 4 else 1)
    add = randn(1, tokens, 128) * 0.3
    control = {"input": [add, None], "output": [None, add]}

    def controlled(executor, *args, **kwargs):
        args = list(args)
        place = {"hunyuan": 11, "flux": 6}[family]
        args[place] = control
        return executor(*args, **kwargs)

    controlled_model = model.clone()
    controlled_model.add_wrapper_with_key(WrappersMP.DIFFUSION_MODEL, "control", controlled)
    given = same(tiny, controlled_model, family)
    differs(given, tiny.sample(model, family))


@pytest.mark.parametrize("family", ["wan", "hunyuan"])
def test_other_block_replacements_stay_in_force(tiny, family):
    model = getattr(tiny, family)()
    seen = []

    def skip(args, extra):
        seen.append(args["img"].shape[1])
        return args

    patched = model.clone()
    patched.set_model_patch_replace(skip, "dit", "double_block", 1)
    given = same(tiny, patched, family)
    differs(given, tiny.sample(model, family))
    assert seen


def test_prompts_of_different_length_and_number(tiny):
    model = tiny.wan()
    positive = tiny.prompt("wan", tokens=5) + tiny.prompt("wan", tokens=300, seed=4)
    same(tiny, model, "wan", positive=positive, negative=tiny.prompt("wan", tokens=9), cfg=2.0)


def test_area_and_mask_conditionings(tiny):
    model = tiny.wan()
    mask = torch.zeros(1, 24, 40)
    mask[:, :, :20] = 1
    positive = tiny.prompt("wan") + tiny.prompt("wan", seed=5, mask=mask, mask_strength=1.0)
    given = same(tiny, model, "wan", positive=positive)
    differs(given, tiny.sample(model, "wan"))


def test_hooks_and_timestep_ranges(tiny):
    model = tiny.wan()
    positive = tiny.prompt("wan", start_percent=0.0, end_percent=0.5) + tiny.prompt(
        "wan", seed=6, start_percent=0.5, end_percent=1.0
    )
    same(tiny, model, "wan", positive=positive, steps=4)


@pytest.mark.comfy_min("0.33")
@pytest.mark.parametrize("how", [{}, {"exchange": "block"}, {"order": "tile-major"}], ids=str)
def test_sound_that_does_not_hear_the_picture_is_exactly_the_untiled_one(tiny, how):
    """LTX-2 with its picture-to-sound attention off: the mean over tiles of equal sounds."""
    model = tiny.ltxav().clone()
    model.model_options["transformer_options"]["v2a_cross_attn"] = False
    plain = tiny.sample(model, "ltxav", cfg=2.0)
    tiled = tiny.sample(attach(model, settings(**ALL, **how)), "ltxav", cfg=2.0)
    assert torch.equal(tiled[1], plain[1])
    assert not torch.equal(tiled[0], plain[0])
    hearing = tiny.sample(tiny.ltxav(), "ltxav", cfg=2.0)
    assert not torch.equal(hearing[1], plain[1])
