"""Crop tiles in ComfyUI's sampler: every input reaches the network cropped exactly, or is refused.

Most tests use networks that answer with one of their inputs. Blended over the frame, the answer
of the tiles must then be that input of the full frame, bit for bit.
"""

import dataclasses

import pytest

torch = pytest.importorskip("torch")

from h3video.errors import UsageError
from h3video.tiling.settings import HexSettings

SIZE = (1, 4, 40, 56)
CUT = HexSettings(hex_res=3, overlap=32.0, halo=16.0)


@pytest.fixture
def toys():
    import toys

    return toys


def tiled(model, settings=CUT):
    from h3video.render.engines.comfyui.crops import attach_crops

    return attach_crops(model, settings)


def ramp(*shape):
    """Values that differ everywhere."""
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape) / 64.0


def network(model):
    return model.model.diffusion_model


def sizes(model):
    """(rows, columns) of everything the network was given."""
    return {tuple(x.shape[-2:]) for x, _ in network(model).calls}


# ---- the latent itself ----


@pytest.mark.parametrize("shape", [SIZE, (1, 4, 3, 40, 56), (2, 4, 40, 56), (1, 4, 41, 57)])
def test_a_crop_is_a_slice_and_the_blend_puts_it_back(toys, shape):
    plain = toys.toy(lambda x, _: x)
    model = tiled(plain)
    ((a, _),) = toys.predictions(plain, shape)
    network(model).calls.clear()
    ((b, _),) = toys.predictions(model, shape)
    assert torch.equal(a, b)
    (size,) = sizes(model)
    assert size[0] <= shape[-2] and size[1] < shape[-1]
    assert len(network(model).calls) > 2


@pytest.mark.parametrize("patch", [2, (1, 4, 4)])
def test_crops_lie_on_the_patch(toys, patch):
    model = tiled(toys.toy(lambda x, _: x, patch))
    toys.predictions(model, SIZE)
    step = patch if isinstance(patch, int) else patch[-1]
    for x, inputs in network(model).calls:
        box = inputs["options"]["h3video_crop"]
        assert box.left % step == box.top % step == 0
        assert x.shape[-1] % step == x.shape[-2] % step == 0
        assert (box.columns, box.rows) == (x.shape[-1], x.shape[-2])


@pytest.mark.parametrize("cfg", [1.0, 4.0])
@pytest.mark.parametrize("family", ["unet", "wan", "flux"])
def test_one_crop_is_no_tiling(toys, tiny, family, cfg):
    model = toys.unet() if family == "unet" else getattr(tiny, family)()
    settings = HexSettings(shape="none")

    def sample(m):
        if family == "unet":
            return toys.run(m, (1, 4, 16, 24), cfg=cfg, steps=2)[0]
        return tiny.sample(m, family, cfg=cfg)[0]

    assert torch.equal(sample(model), sample(tiled(model, settings)))


@pytest.mark.parametrize("sampler", ["euler", "dpmpp_2m", "dpmpp_sde", "uni_pc", "res_multistep"])
def test_unet_in_crops_with_every_kind_of_sampler(toys, sampler):
    model, size = toys.unet(), (1, 4, 16, 32)
    plain = toys.run(model, size, cfg=3.0, steps=2, sampler=sampler)[0]
    cut = toys.run(tiled(model), size, cfg=3.0, steps=2, sampler=sampler)[0]
    assert cut.shape == plain.shape and torch.isfinite(cut).all()
    again = toys.run(tiled(model), size, cfg=3.0, steps=2, sampler=sampler)[0]
    assert torch.equal(cut, again)
    # Random weights see their whole surroundings; crops still tell the same picture.
    assert torch.nn.functional.cosine_similarity(cut.flatten(), plain.flatten(), 0) > 0.9


def test_weights_are_hexagons_and_sum_to_one(toys):
    """A network that answers with its tile's number shows where each tile counts."""
    model = tiled(toys.toy(lambda x, _: torch.full_like(x, float(len(network(model).calls)))))
    ((shown, _),) = toys.predictions(model, SIZE)
    from h3video.tiling.latent_crops import plan_latent_crops

    plan = plan_latent_crops(56, 40, 8, 8, CUT)
    wanted = torch.zeros(40 * 56)
    for i, w in enumerate(plan.weights()):
        wanted[torch.as_tensor(w.points)] += (i + 1.0) * torch.as_tensor(w.weight)
    assert (shown[0, 0].flatten() - wanted).abs().max() < 1e-4


# ---- conditioning ----


def test_noise_mask_is_cropped(toys):
    mask = (ramp(1, 1, 40, 56) / ramp(1, 1, 40, 56).max()).clamp(0.01, 1.0)
    answer = lambda x, i: i["denoise_mask"].expand(x.shape).clone()  # noqa: E731
    ((a, _),) = toys.predictions(toys.toy(answer), SIZE, noise_mask=mask)
    ((b, _),) = toys.predictions(tiled(toys.toy(answer)), SIZE, noise_mask=mask)
    assert torch.equal(a, b) and a.std() > 0


@pytest.mark.parametrize("shape", [SIZE, (1, 4, 3, 40, 56)])
def test_concat_latents_are_cropped(toys, shape):
    concat = ramp(*shape)
    answer = lambda x, _: x[:, 4:].clone()  # noqa: E731  the network gets x and the concat latent
    positive = toys.cond(noise_concat=concat)
    ((a, _),) = toys.predictions(toys.toy(answer), shape, positive)
    ((b, _),) = toys.predictions(tiled(toys.toy(answer)), shape, positive)
    assert torch.equal(a, concat) and torch.equal(a, b)


def control_answer(x, inputs):
    control = inputs["control"]
    shown = torch.zeros_like(x)
    if control is not None:
        shown[:, :3] = control["middle"][0]
    return shown


@pytest.mark.parametrize("kind", ["net", "adapter", "chain", "net of another size"])
def test_control_hints_are_cropped_not_squeezed(toys, kind):
    hint = ramp(1, 3, 320, 448)
    control = {
        "net": lambda: toys.control_net(hint),
        "adapter": lambda: toys.adapter(hint),
        "chain": lambda: toys.control_net(hint, previous=toys.adapter(hint.flip(-1))),
        "net of another size": lambda: toys.control_net(ramp(1, 3, 200, 300)),
    }[kind]()
    positive = toys.cond(control=control, control_apply_to_uncond=True)
    ((a, _),) = toys.predictions(toys.toy(control_answer), SIZE, positive)
    model = tiled(toys.toy(control_answer))
    ((b, _),) = toys.predictions(model, SIZE, positive)
    assert torch.equal(a, b) and a.std() > 0


def test_control_copies_are_shared_kept_over_steps_and_dropped(toys, monkeypatch):
    from h3video.render.engines.comfyui import controls

    made, closed = [], []
    keep_copy, keep_close = controls.ControlCrops._copy, controls.ControlCrops.close
    monkeypatch.setattr(
        controls.ControlCrops, "_copy",
        lambda self, control, box: made.append(keep_copy(self, control, box)) or made[-1],
    )  # fmt: skip
    monkeypatch.setattr(
        controls.ControlCrops, "close", lambda self: keep_close(self) or closed.append(self)
    )
    control = toys.control_net(ramp(1, 3, 320, 448))
    model = tiled(toys.toy(control_answer))
    toys.predictions(
        model, SIZE, toys.cond(control=control), toys.cond(2, control=control), cfg=3.0, steps=3
    )
    tiles = len({i["options"]["h3video_crop"] for _, i in network(model).calls})
    assert len(made) == tiles and closed
    assert all(c.cond_hint is None for c in made)
    assert control.cond_hint_original.shape == (1, 3, 320, 448)


@pytest.mark.parametrize("area", [(16, 24, 12, 20), (40, 20, 0, 0), (8, 56, 32, 0)])
@pytest.mark.parametrize("shape", [SIZE, (1, 4, 3, 40, 56)])
def test_areas_act_where_they_act_untiled(toys, area, shape):
    """Each prompt answers with its own number; the fade between them is the frame's."""

    def answer(x, inputs):
        return inputs["context"][:, :1, :1].reshape(-1, *[1] * (x.ndim - 1)).expand(x.shape).clone()

    base = [[torch.full((1, 7, 16), 1.0), {}]]
    placed = [[torch.full((1, 7, 16), 5.0), {"area": area, "strength": 0.7}]]
    ((a, _),) = toys.predictions(toys.toy(answer), shape, base + placed)
    ((b, _),) = toys.predictions(tiled(toys.toy(answer)), shape, base + placed)
    assert (a - b).abs().max() < 1e-5 and a.std() > 0


def test_masks_act_where_they_act_untiled_and_only_there(toys):
    def answer(x, inputs):
        return inputs["context"][:, :1, :1].reshape(-1, 1, 1, 1).expand(x.shape).clone()

    mask = torch.zeros(1, 40, 56)
    mask[:, :12, :15] = 0.5
    positive = [
        [torch.full((1, 7, 16), 1.0), {}],
        [torch.full((1, 300, 16), 5.0), {"mask": mask, "mask_strength": 0.8}],
    ]
    ((a, _),) = toys.predictions(toys.toy(answer), SIZE, positive)
    model = tiled(toys.toy(answer))
    ((b, _),) = toys.predictions(model, SIZE, positive)
    assert (a - b).abs().max() < 1e-6 and a.std() > 0
    long = [i for _, i in network(model).calls if i["context"].shape[1] == 300]
    short = [i for _, i in network(model).calls if i["context"].shape[1] == 7]
    assert 0 < len(long) < len(short), "a tile without the mask ran its prompt"


def test_lists_of_different_length_and_prompts_of_different_length(toys):
    def answer(x, inputs):
        return inputs["context"].mean((1, 2)).reshape(-1, 1, 1, 1).expand(x.shape).clone()

    positive = toys.cond(1, tokens=5) + toys.cond(3, tokens=300) + toys.cond(4, tokens=77)
    negative = toys.cond(2, tokens=9)
    for a, b in zip(
        toys.predictions(toys.toy(answer), SIZE, positive, negative, cfg=4.0)[0],
        toys.predictions(tiled(toys.toy(answer)), SIZE, positive, negative, cfg=4.0)[0],
    ):
        assert (a - b).abs().max() < 1e-6


def test_lora_hooks_and_their_schedule_act_in_every_tile(toys):
    import comfy.hooks

    answer = lambda x, _: x * 0 + network(model).weight  # noqa: E731
    model = toys.toy(answer)
    hooks = comfy.hooks.create_hook_lora({}, 1.0, 1.0)
    hook = hooks.hooks[0]
    hook.weights = {"diffusion_model.weight": ("diff", (torch.ones(1),))}
    hook.need_weight_init = False
    frames = comfy.hooks.HookKeyframeGroup()
    frames.add(comfy.hooks.HookKeyframe(strength=0.0, start_percent=0.0))
    frames.add(comfy.hooks.HookKeyframe(strength=2.0, start_percent=0.5))
    hooks.set_keyframes_on_hooks(frames)
    positive = toys.cond(hooks=hooks)
    plain = toys.predictions(model, SIZE, positive, steps=4)
    cut = toys.predictions(tiled(model), SIZE, positive, steps=4)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(plain, cut))
    assert plain[0][0].abs().max() == 0.0 and plain[-1][0].abs().max() > 0.0


def inputs_of(toys, **named):
    """A conditioning whose network inputs are these."""
    import comfy.conds

    made = {}
    for name, value in named.items():
        kind = comfy.conds.CONDList if isinstance(value, list) else comfy.conds.CONDRegular
        if not isinstance(value, (list, torch.Tensor)):
            kind = comfy.conds.CONDConstant
        made[name] = kind(value)
    return toys.cond(toy_inputs=made)


@pytest.mark.parametrize(
    ("name", "shape", "shown"),
    [
        ("vace_context", (1, 2, 4, 3, 40, 56), lambda v: v[:, 0, :, 0]),
        ("something_new", (1, 4, 40, 56), lambda v: v),
        ("camera_conditions", (1, 4, 320, 448), lambda v: v[..., ::8, ::8]),
        ("time_dim_concat", (1, 4, 1, 40, 56), lambda v: v[:, :, 0]),
    ],
)
def test_pictures_of_the_frame_are_cropped_and_scaled(toys, name, shape, shown):
    values = ramp(*shape)
    answer = lambda x, i: shown(i[name]).clone()  # noqa: E731
    positive = inputs_of(toys, **{name: values})
    ((a, _),) = toys.predictions(toys.toy(answer), SIZE, positive)
    ((b, _),) = toys.predictions(tiled(toys.toy(answer)), SIZE, positive)
    assert torch.equal(a, b) and torch.equal(a, shown(values))


@pytest.mark.parametrize(
    ("name", "value"),
    [("ref_latents", [torch.ones(1, 4, 40, 56)]), ("clip_fea", torch.ones(1, 257, 32)),
     ("face_pixel_values", torch.ones(1, 3, 5, 320, 448)), ("y", torch.ones(1, 12)),
     ("guidance", torch.ones(1)), ("fps", 24)],
)  # fmt: skip
def test_what_is_whole_stays_whole(toys, name, value):
    model = tiled(toys.toy(lambda x, _: x))
    toys.predictions(model, SIZE, inputs_of(toys, **{name: value}))
    for _, inputs in network(model).calls:
        got = inputs[name]
        if isinstance(value, list):
            assert got[0].shape == value[0].shape
        elif isinstance(value, torch.Tensor):
            assert got.shape == value.shape
        else:
            assert got == value


REFUSED = [
    ("strange_map", torch.ones(1, 4, 20, 28), "coarser than the latent"),
    ("strange_map", torch.ones(1, 4, 33, 33), "fits neither the latent"),
    ("strange_map", torch.ones(1, 40, 56), "a map of the frame or a sequence"),
    ("per_token", torch.ones(1, 40 * 56, 3), "as many entries as the frame has tokens"),
    ("hidden", {"deep": [torch.ones(1, 4, 40, 56)]}, "inside a value"),
    ("attention_mask", torch.ones(1, 4000, 4000), "covers the frame's tokens"),
]


@pytest.mark.parametrize(("name", "value", "why"), REFUSED)
def test_what_is_not_known_is_refused_by_name_before_the_first_step(toys, name, value, why):
    model = tiled(toys.toy(lambda x, _: x))
    with pytest.raises(UsageError, match=why) as caught:
        toys.predictions(model, SIZE, inputs_of(toys, **{name: value}))
    assert repr(name) in str(caught.value) and "40 rows and 56 columns" in str(caught.value)
    assert not network(model).calls


def test_an_unknown_control_is_refused(toys):
    import comfy.controlnet

    class SomeOtherControl(comfy.controlnet.ControlBase):
        def get_models(self):
            return []

    control = SomeOtherControl()
    model = tiled(toys.toy(lambda x, _: x))
    with pytest.raises(UsageError, match="SomeOtherControl"):
        toys.predictions(model, SIZE, toys.cond(control=control))
    assert not network(model).calls


def test_a_patch_that_holds_a_picture_is_refused(toys):
    class MaskedPatch:
        def __init__(self):
            self.image = torch.ones(1, 512, 512, 3)

        def __call__(self, q, k, v, options):
            return q, k, v

    model = toys.toy(lambda x, _: x)
    model.set_model_attn1_patch(MaskedPatch())
    cut = tiled(model)
    with pytest.raises(UsageError, match=r"MaskedPatch.*'image' of shape \[1, 512, 512, 3\]"):
        toys.predictions(cut, SIZE)
    assert not network(model).calls


@pytest.mark.parametrize("name", ["EasyCacheHolder", "LazyCacheHolder"])
def test_a_cache_between_calls_of_the_network_is_refused(toys, name):
    model = toys.toy(lambda x, _: x)
    holder = type(name, (), {})
    model.model_options["transformer_options"]["easycache"] = holder()
    cut = tiled(model)
    if name == "LazyCacheHolder":  # it compares whole predictions, which stay whole
        toys.predictions(cut, SIZE)
        return
    with pytest.raises(UsageError, match="EasyCache would take one tile's step for another's"):
        toys.predictions(cut, SIZE)


# ---- guides: inputs whose crop is more than a slice ----


def frame_and_box():
    from h3video.render.engines.comfyui.guides import Frame
    from h3video.render.engines.comfyui.latents import LatentLayout
    from h3video.tiling.latent_crops import LatentBox

    return Frame(LatentLayout(((1, 4, 5, 6, 8),), False), 32), LatentBox(2, 4, 4, 2, 8, 6)


def test_ltx_keyframes_are_cropped_and_moved_to_the_crops_corner():
    from h3video.render.engines.comfyui.guides import keyframe_idxs

    frame, box = frame_and_box()
    t, y, x = torch.meshgrid(torch.arange(3), torch.arange(6), torch.arange(8), indexing="ij")
    coords = torch.stack([t * 8, y * 32, x * 32]).reshape(1, 3, -1, 1).float()
    cut = keyframe_idxs(torch.cat([coords, coords + 32], -1), frame, box)
    assert cut.shape == (1, 3, 3 * 2 * 4, 2)
    grid = cut[0, ..., 0].reshape(3, 3, 2, 4)
    assert grid[0, :, 0, 0].tolist() == [0, 8, 16]
    assert grid[1, 0, :, 0].tolist() == [0, 32] and grid[2, 0, 0].tolist() == [0, 32, 64, 96]
    with pytest.raises(UsageError, match="not a multiple of the frame's 8x6"):
        keyframe_idxs(coords[:, :, :-1], frame, box)


def test_ltx_guides_are_counted_anew():
    from h3video.render.engines.comfyui.guides import generated_keyframes, guide_attention_entries

    frame, box = frame_and_box()
    entries = [
        {"pre_filter_count": 96, "latent_shape": [2, 6, 8], "strength": 1.0, "pixel_mask": None},
        {"pre_filter_count": 48, "latent_shape": [1, 3, 4], "strength": 0.5, "pixel_mask": None},
    ]
    cut = guide_attention_entries(entries, frame, box)
    assert [e["pre_filter_count"] for e in cut] == [16, 8]
    assert [e["latent_shape"] for e in cut] == [[2, 2, 4], [1, 1, 2]]
    assert entries[0]["pre_filter_count"] == 96
    with pytest.raises(UsageError, match="attention mask"):
        guide_attention_entries([{**entries[0], "pixel_mask": torch.ones(1)}], frame, box)
    with pytest.raises(UsageError, match="does not lie on"):
        guide_attention_entries([{**entries[0], "latent_shape": [2, 5, 5]}], frame, box)
    slots = {"tokens_per_frame": 48, "first_latent_frame": 1, "num_keyframes": 2}
    assert generated_keyframes(slots, frame, box)["tokens_per_frame"] == 8


def test_stable_cascades_prior_is_stretched_over_the_frame_before_it_is_cut():
    from h3video.render.engines.comfyui.guides import effnet

    frame, box = frame_and_box()
    row = torch.linspace(0, 7, 3).expand(1, 2, 2, 3)
    assert torch.allclose(effnet(row, frame, box)[0, 0, 0], torch.tensor([2.0, 3.0, 4.0, 5.0]))


# ---- sound ----


AV = [(1, 4, 3, 24, 40), (1, 8, 2, 11)]


def av_answer(x, _):
    """Sound that depends only on sound, a video that depends on its neighbours."""
    video, audio = x
    return [video.roll(1, -1) * 0.5, audio * 0.5 + audio.flip(-1)]


def test_sound_is_whole_in_every_tile_and_comes_out_untouched(toys):
    plain = toys.run(toys.toy(av_answer), AV, cfg=3.0, steps=3)
    model = tiled(toys.toy(av_answer))
    cut = toys.run(model, AV, cfg=3.0, steps=3)
    assert torch.equal(plain[1], cut[1]) and not torch.equal(plain[0], cut[0])
    for (video, audio), _ in network(model).calls:
        assert audio.shape[1:] == (8, 2, 11) and video.shape[-1] < 40


def test_sound_is_the_mean_by_owned_area(toys):
    model = tiled(toys.toy(
        lambda x, _: [x[0], torch.full_like(x[1], float(len(network(model).calls)))]
    ))  # fmt: skip
    ((shown, _),) = toys.predictions(model, AV)
    from h3video.tiling.latent_crops import plan_latent_crops

    plan = plan_latent_crops(40, 24, 8, 8, CUT)
    wanted = sum((i + 1) * a for i, a in enumerate(plan.areas()))
    assert shown[0, 0, -1].item() == pytest.approx(wanted, rel=1e-5)


def test_places_on_a_packed_latent_are_refused(toys):
    model = tiled(toys.toy(av_answer))
    with pytest.raises(UsageError, match="'area'"):
        toys.run(model, AV, toys.cond(area=(8, 8, 0, 0)))


def test_a_latent_without_rows_and_columns_is_refused(toys):
    model = tiled(toys.toy(lambda x, _: x))
    with pytest.raises(UsageError, match=r"shape \[1, 8, 200\].*no rows and columns"):
        toys.run(model, (1, 8, 200))


# ---- positions ----


@pytest.mark.parametrize("family", ["wan", "flux"])
def test_tokens_have_the_full_frames_positions(tiny, family, monkeypatch):
    """The angles of a crop are rows of the full frame's."""
    model = getattr(tiny, family)()
    net = model.model.diffusion_model
    seen = []
    embedder = "rope_embedder" if family == "wan" else "pe_embedder"
    inner = getattr(net, embedder)
    hook = inner.register_forward_pre_hook(lambda _, args: seen.append(args[0].clone()))
    tiny.sample(model, family, steps=1)
    full = {tuple(p) for p in seen[0][0].tolist()}
    seen.clear()
    tiny.sample(tiled(model), family, steps=1)
    hook.remove()
    assert len(seen) > 2 and len(seen[0][0]) < len(full)
    parts = [{tuple(p) for p in s[0].tolist()} for s in seen]
    assert all(p <= full for p in parts)
    assert set.union(*parts) == full


@pytest.mark.parametrize("family", ["wan", "flux"])
def test_local_positions_are_every_crops_own(tiny, family):
    model = getattr(tiny, family)()
    embedder = "rope_embedder" if family == "wan" else "pe_embedder"
    seen = []
    hook = getattr(model.model.diffusion_model, embedder).register_forward_pre_hook(
        lambda _, args: seen.append(args[0].clone())
    )
    local = dataclasses.replace(CUT, tiles="crop", positions="local")
    tiny.sample(tiled(model, local), family, steps=1)
    hook.remove()
    assert len(seen) > 2 and all(torch.equal(s, seen[0]) for s in seen)


def test_flux_references_stay_where_they_are(tiny):
    model = tiny.flux()
    seen = []
    hook = model.model.diffusion_model.pe_embedder.register_forward_pre_hook(
        lambda _, args: seen.append(args[0][0].clone())
    )
    reference = tiny.prompt("flux", reference_latents=[torch.ones(1, 16, 12, 16)])
    tiny.sample(tiled(model), "flux", positive=reference, steps=1)
    hook.remove()
    tokens = [s[-6 * 8 :] for s in seen]
    assert len(tokens) > 2 and all(torch.equal(t, tokens[0]) for t in tokens)


@pytest.mark.comfy_min("0.33")
@pytest.mark.parametrize("family", ["minimax_h3", "ltxav", "ltx"])
def test_families_with_layouts_of_their_own(tiny, family):
    model = getattr(tiny, family)()
    plain = tiny.sample(model, family)
    cut = tiny.sample(tiled(model), family)
    assert [c.shape for c in cut] == [p.shape for p in plain]
    assert all(torch.isfinite(c).all() for c in cut)


@pytest.mark.comfy_min("0.33")
def test_minimax_keyframes_and_positions(tiny, monkeypatch):
    model = tiny.minimax_h3()
    net = model.model.diffusion_model
    seen = []
    inner = net.rope_freqs
    monkeypatch.setattr(net, "rope_freqs", lambda p, d: seen.append(p.clone()) or inner(p, d))
    keyframe = {"latent": torch.ones(1, 24, 1, 24, 40), "resolved_frame_index": 0}
    positive = tiny.prompt("minimax_h3", minimax_keyframes=[keyframe])
    tiny.sample(model, "minimax_h3", positive=positive, steps=1)
    full = {tuple(p) for p in seen[0].tolist()}
    seen.clear()
    cut = tiny.sample(tiled(model), "minimax_h3", positive=positive, steps=1)
    assert torch.isfinite(cut[0]).all() and len(seen) > 1
    assert all({tuple(p) for p in s.tolist()} <= full for s in seen)
    keyframe["latent"] = torch.ones(1, 24, 1, 12, 20)
    with pytest.raises(UsageError, match="keyframe of 20x12"):
        tiny.sample(tiled(model), "minimax_h3", positive=positive, steps=1)


# ---- steps, memory, interruption ----


def test_steps_outside_the_range_see_the_full_frame(toys):
    settings = HexSettings(hex_res=3, overlap=32.0, halo=16.0, start_step=1, end_step=3)
    model = tiled(toys.toy(lambda x, _: x), settings)
    toys.predictions(model, SIZE, steps=4)
    widths = [x.shape[-1] for x, _ in network(model).calls]
    assert widths[0] == widths[-1] == 56
    assert all(w < 56 for w in widths[1:-1]) and len(widths) > 4


@pytest.mark.parametrize("shape", [SIZE, AV])
def test_the_estimate_is_for_a_crop(toys, shape, monkeypatch):
    plain, cut = [], []
    for found, attach in ((plain, lambda m: m), (cut, tiled)):
        model = toys.toy(av_answer if shape is AV else lambda x, _: x)
        inner = model.model.memory_required
        monkeypatch.setattr(
            model.model, "memory_required",
            lambda s, inner=inner, found=found, **k: found.append(tuple(s)) or inner(s, **k),
        )  # fmt: skip
        toys.run(attach(model), shape)
    count = lambda s: torch.Size(s[1:]).numel()  # noqa: E731
    assert max(map(count, cut)) < min(map(count, plain))


def test_a_budget_in_bytes_is_kept(toys):
    model = toys.toy(lambda x, _: x, 2)
    whole = model.model.memory_required([2, 4, 40, 56])
    cut = tiled(model, HexSettings(budget=int(whole * 0.4), halo=8.0))
    toys.predictions(cut, SIZE)
    ((rows, columns),) = sizes(model)
    assert model.model.memory_required([2, 4, rows, columns]) <= whole * 0.4
    with pytest.raises(UsageError, match="fits the budget"):
        toys.predictions(tiled(model, HexSettings(budget=1000)), SIZE)


def test_interrupted_between_tiles(toys):
    import comfy.model_management as management

    def answer(x, _):
        if len(network(model).calls) == 2:
            management.interrupt_current_processing(True)
        return x

    model = tiled(toys.toy(answer))
    with pytest.raises(management.InterruptProcessingException):
        toys.predictions(model, SIZE)
    management.interrupt_current_processing(False)
    assert len(network(model).calls) == 2
    network(model).answer = lambda x, _: x
    ((b, _),) = toys.predictions(model, SIZE)
    assert torch.isfinite(b).all()


def test_the_bar_shows_steps_times_tiles(toys, monkeypatch):
    import comfy.utils

    told = []
    monkeypatch.setattr(
        comfy.utils, "PROGRESS_BAR_HOOK", lambda value, total, *a, **k: told.append((value, total))
    )
    model = tiled(toys.toy(lambda x, _: x))
    toys.run(model, SIZE, steps=3)
    tiles = len(network(model).calls) // 3
    # ComfyUI 0.33 tells the page only so often.
    assert [v for v, _ in told] == sorted({v for v, _ in told}) and told[-1][0] == 3 * tiles
    assert {t for _, t in told} == {3 * tiles} and told[0][0] == 1


def test_no_float64_on_the_way(toys, monkeypatch):
    """Metal has none."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from h3video.render.engines.comfyui import crops

    doubles = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for t in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(t, torch.Tensor) and t.dtype == torch.float64:
                    doubles.append(str(func))
            return out

    inner = crops.CropRun.predict

    def watched(self, *args):
        with Watch():
            return inner(self, *args)

    monkeypatch.setattr(crops.CropRun, "predict", watched)
    positive = toys.cond(area=(16, 24, 12, 20)) + toys.cond(
        3, control=toys.control_net(ramp(1, 3, 320, 448)), mask=torch.ones(1, 40, 56)
    )
    toys.predictions(tiled(toys.toy(lambda x, _: x)), SIZE, positive, steps=2)
    toys.predictions(tiled(toys.toy(av_answer)), AV)
    assert not doubles


def test_attached_twice_the_last_settings_hold_and_the_first_model_stays(toys):
    model = toys.toy(lambda x, _: x)
    first = tiled(model)
    second = tiled(first, HexSettings(shape="none"))
    toys.predictions(second, SIZE)
    assert sizes(model) == {(40, 56)}
    network(model).calls.clear()
    toys.predictions(first, SIZE)
    assert sizes(model) != {(40, 56)}
    network(model).calls.clear()
    toys.predictions(model, SIZE)
    assert sizes(model) == {(40, 56)}
