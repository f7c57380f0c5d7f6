"""Curves and blends of crop tiles inside ComfyUI's sampler."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")

from h3video.errors import UsageError
from h3video.tiling.settings import HexSettings

SIZE = (1, 4, 60, 88)
CUT = HexSettings(hex_res=3, overlap=64.0, halo=32.0, tiles="crop")
VARIANCE = dataclasses.replace(CUT, blend="variance")


@pytest.fixture
def toys():
    import toys

    return toys


def tiled(model, settings):
    from h3video.render.engines.comfyui.attach import attach

    return attach(model, settings)


def textures(toys):
    """A model that draws a texture of its own in every call."""

    def answer(x, inputs):
        answer.calls += 1
        g = torch.Generator().manual_seed(answer.calls)
        if isinstance(x, list):
            return [torch.randn(part.shape, generator=g) for part in x]
        return torch.randn(x.shape, generator=g)

    answer.calls = 0
    return toys.toy(answer)


def shares(settings, size=SIZE):
    """The sum of the squares of the weights at every latent: 1 where one tile rules."""
    from h3video.tiling.latent_crops import plan_latent_crops

    plan = plan_latent_crops(size[-1], size[-2], 8, 8, settings)
    squares = torch.zeros(size[-2] * size[-1])
    for w in plan.weights():
        squares[torch.as_tensor(w.points)] += torch.as_tensor(w.weight) ** 2
    return squares.view(size[-2], size[-1])


@pytest.mark.parametrize("shape", [SIZE, (1, 16, 3, 60, 88)])
def test_textures_of_their_own_keep_their_strength(toys, shape):
    squares = shares(CUT)
    inside, shared = squares == 1.0, squares < 0.6
    found = {}
    for settings in (CUT, VARIANCE):
        ((a, _),) = toys.predictions(tiled(textures(toys), settings), shape)
        found[settings.blend] = a
        assert float(a[..., inside].std()) == pytest.approx(1.0, abs=0.05)
    assert torch.equal(found["mean"][..., inside], found["variance"][..., inside])
    assert float(found["mean"][..., shared].std()) < 0.75
    assert float(found["variance"][..., shared].std()) == pytest.approx(1.0, abs=0.06)


def test_crops_that_agree_keep_their_bits(toys):
    plain = toys.toy(lambda x, _: x)
    ((a, _),) = toys.predictions(plain, SIZE)
    ((b, _),) = toys.predictions(tiled(plain, VARIANCE), SIZE)
    assert torch.equal(a, b)


def test_prompts_of_a_call_have_one_gain(toys):
    """Where both prompts draw the same texture, guidance has nothing to amplify."""

    def answer(x, inputs):
        box = inputs["options"]["h3video_crop"]
        g = torch.Generator().manual_seed(box.left * 1000 + box.top)
        return torch.randn(x.shape[1:], generator=g).expand(x.shape).clone()

    ((a, b),) = toys.predictions(tiled(toys.toy(answer), VARIANCE), SIZE, cfg=4.0)
    assert torch.equal(a, b)


def test_sound_beside_the_picture_is_the_plain_mean(toys):
    shapes = [(1, 4, 3, 40, 56), (1, 8, 11)]
    found = {}
    for settings in (CUT, VARIANCE):
        found[settings.blend] = toys.run(tiled(textures(toys), settings), shapes)
    assert torch.equal(found["mean"][1], found["variance"][1])
    assert not torch.equal(found["mean"][0], found["variance"][0])


@pytest.mark.parametrize("kernel", ["cosine", "gaussian", "smoothstep"])
def test_other_curves_blend_other_weights_to_one(toys, kernel):
    settings = dataclasses.replace(CUT, kernel=kernel)
    ((a, _),) = toys.predictions(toys.toy(lambda x, _: x), SIZE)
    ((b, _),) = toys.predictions(tiled(toys.toy(lambda x, _: x), settings), SIZE)
    assert torch.equal(a, b)
    ((usual, _),) = toys.predictions(tiled(textures(toys), CUT), SIZE)
    ((other, _),) = toys.predictions(tiled(textures(toys), settings), SIZE)
    assert not torch.equal(usual, other)


def test_token_tiles_refuse_it_with_the_reason(tiny):
    with pytest.raises(UsageError, match="blend=variance is for crops"):
        tiled(tiny.wan(), HexSettings(blend="variance"))
