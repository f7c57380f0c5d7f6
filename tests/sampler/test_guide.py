"""Guided steps in ComfyUI: the whole frame predicted again, small, in the first steps."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from tests_support import attach, family_parameters, settings

FAMILIES = family_parameters()
every_family = pytest.mark.parametrize("family", FAMILIES)
TILED = dict(hex_res=3, overlap=64.0)


def picture(value):
    """Sound comes second."""
    return value if isinstance(value, torch.Tensor) else value[0]


@contextlib.contextmanager
def passes(model):
    """Every pass of the diffusion model: what it saw and what it said."""
    inner, seen = model.model.diffusion_model, []
    original = inner._forward

    def spy(x, timestep, *args, **kwargs):
        out = original(x, timestep, *args, **kwargs)
        dicts = [a for a in (*args, *kwargs.values()) if isinstance(a, dict)]
        sigmas = next(d["sigmas"] for d in dicts if "sigmas" in d)
        seen.append((picture(x), timestep, picture(out), sigmas))
        return out

    object.__setattr__(inner, "_forward", spy)
    try:
        yield seen
    finally:
        object.__delattr__(inner, "_forward")


@every_family
def test_the_first_steps_see_the_small_frame_too(tiny, family):
    model = getattr(tiny, family)()
    tiled = attach(model, settings(**TILED, guide_steps=1))
    with passes(model) as seen:
        tiny.sample(tiled, family, steps=3, denoise=0.7)
    sizes = [tuple(x.shape[-2:]) for x, *_ in seen]
    assert len(sizes) == 4 and sizes[0] == sizes[2] == sizes[3]
    factor = next(s[0] / n for s, n in zip(sizes[:1], [sizes[1][0]]))
    assert factor >= 1.5
    tokens = [h * w for h, w in sizes[:2]]
    plan = tiled.h3video_tiling.plans[-1]
    assert tokens[1] <= tokens[0] * plan.share * 1.35  # the small frame is whole patches
    (_, time, _, _), (_, small_time, _, _) = seen[:2]
    assert (small_time < time).all()


@pytest.mark.parametrize("family", ["wan", "ltx", "hunyuan", "flux"])
@pytest.mark.parametrize("denoise", [1.0, 0.6])
def test_the_result_is_the_tiles_led_by_the_small_frame(tiny, family, denoise):
    from h3video.tiling.guide import Guide, Shrink, shrink_factor

    model = getattr(tiny, family)()
    plain = tiny.sample(attach(model, settings(**TILED)), family, steps=1, denoise=denoise)[0]
    tiled = attach(model, settings(**TILED, guide_steps=1))
    with passes(model) as seen:
        guided = tiny.sample(tiled, family, steps=1, denoise=denoise)[0]
    (x, time, velocity, sigmas), (small_x, small_time, small, _) = seen
    plan = tiled.h3video_tiling.plans[-1]
    patch = tiled.h3video_tiling.family.patch_of(model.model.diffusion_model)
    shrink = Shrink(shrink_factor(plan), patch, x.shape[-1], x.shape[-2])
    guide = Guide(x[:, : velocity.shape[1]], sigmas, shrink)
    assert torch.allclose(small_x[:, : velocity.shape[1]], guide.small_x, atol=1e-5)
    assert torch.allclose(small_time, time * guide.ratio)
    sigma = guide.sigma
    led = x - sigma * guide.lead(velocity, small)
    out = model.model.process_latent_out
    expected = out(led) - out(x - sigma * velocity)
    assert (guided - plain).abs().max() > 1e-3
    assert torch.allclose(guided - plain, expected, atol=1e-3, rtol=1e-3)


@pytest.mark.comfy_min("0.33")
@pytest.mark.parametrize("family", ["minimax_h3", "ltxav"])
def test_sound_is_that_of_the_tiles(tiny, family):
    model = getattr(tiny, family)()
    plain = tiny.sample(attach(model, settings(**TILED)), family, steps=1)
    guided = tiny.sample(attach(model, settings(**TILED, guide_steps=1)), family, steps=1)
    assert not torch.equal(guided[0], plain[0])
    assert torch.equal(guided[1], plain[1])


@every_family
def test_one_tile_needs_no_guide(tiny, family):
    model = getattr(tiny, family)()
    plain = tiny.sample(model, family)
    one = tiny.sample(attach(model, settings(shape="none", guide_steps=2)), family)
    assert all(torch.equal(a, b) for a, b in zip(plain, one))


def test_concatenated_latents_are_made_small_too(tiny):
    model = tiny.wan(model_type="i2v", in_dim=36)
    tiled = attach(model, settings(**TILED, guide_steps=1))
    start = torch.zeros(tiny.latent("wan")[0].shape)
    positive = tiny.prompt("wan", concat_latent_image=start, concat_mask=start[:, :1] + 1.0)
    with passes(model) as seen:
        tiny.sample(tiled, "wan", positive=positive, negative=positive, steps=1)
    assert [x.shape[1] for x, *_ in seen] == [36, 36]
    assert torch.allclose(seen[1][0][:, 16:20], seen[0][0][:, 16:20][..., :1, :1].expand_as(
        seen[1][0][:, 16:20]), atol=1e-5)  # fmt: skip


def test_inputs_with_a_place_that_cannot_be_made_small_are_refused_by_name(tiny):
    from h3video.errors import UsageError

    model = tiny.flux()
    reference = torch.zeros(1, 16, 8, 8)
    tiled = attach(model, settings(**TILED, guide_steps=1))
    with pytest.raises(UsageError, match=r"guide_steps cannot make 'ref_latents' small"):
        tiny.sample(tiled, "flux", positive=tiny.prompt("flux", reference_latents=[reference]))


def test_parts_at_noise_levels_of_their_own_are_refused(tiny):
    """A mask of LTX keeps what it covers clean, which the small frame would take for noise."""
    from h3video.errors import UsageError

    start, _ = tiny.latent("ltx")
    mask = torch.ones_like(start[:, :1])
    mask[:, :, 0] = 0.0
    tiled = attach(tiny.ltx(), settings(**TILED, guide_steps=1))
    with pytest.raises(UsageError, match=r"guide_steps .*(noise level|denoise_mask)"):
        tiny.sample(tiled, "ltx", noise_mask=mask)


def test_regional_prompts_are_refused_before_the_first_step(tiny):
    from h3video.errors import UsageError
    from h3video.render.engines.comfyui.regions import REGION

    model = tiny.wan()
    tiled = attach(model, settings(**TILED, guide_steps=1))
    with (
        passes(model) as seen,
        pytest.raises(UsageError, match=r"guide_steps 1 has one prompt for the whole frame"),
    ):
        tiny.sample(tiled, "wan", positive=tiny.prompt("wan", **{REGION: object()}))
    assert not seen


def test_models_without_token_tiles_are_refused(tiny):
    from h3video.errors import UsageError

    model = tiny.wan()
    model.model.diffusion_model.__class__ = type("Stranger", (torch.nn.Module,), {})
    with pytest.raises(UsageError, match=r"guide_steps 2 is for token tiles, which Stranger"):
        attach(model, settings(guide_steps=2))
