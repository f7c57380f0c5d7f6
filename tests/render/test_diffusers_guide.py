"""Guided steps in diffusers: the whole frame predicted again, small, in the first steps."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

import h3video
from h3video.errors import UsageError
from h3video.tiling.guide import Guide, Shrink

from .conftest import TALL, WIDE

TILED = dict(hex_res=3)


class Scheduler:
    """What a flow scheduler tells."""

    def __init__(self, kind="flow_prediction"):
        self.step_index = None
        self.config = type("Config", (), dict(prediction_type=kind, num_train_timesteps=1000))()


def prepared(make_tiny, name, **settings):
    tiny = make_tiny(name)
    tiny.pipe.scheduler = Scheduler()
    return tiny, h3video.apply_hex_tiling(tiny.pipe, **TILED, **settings)


def spied(tiny):
    """Shapes and times of every pass of the patch embedding and the time embedding."""
    shapes, times = [], []
    t = tiny.transformer
    embedding = getattr(t, "patch_embedding", None) or t.x_embedder
    embedding.register_forward_pre_hook(lambda m, args: shapes.append(tuple(args[0].shape)))
    return shapes, times


@pytest.mark.parametrize("name", ["wan", "wan_i2v", "wan_vace", "hunyuan", "hunyuan15"])
def test_the_frame_is_predicted_again_small_and_leads(make_tiny, name):
    """The clean frame that is returned has the small one's mean, where it is small."""
    tiny, tiling = prepared(make_tiny, name, guide_steps=1)
    shapes, _ = spied(tiny)
    guided = tiny.run()[0]
    h3video.remove_hex_tiling(tiny.pipe)
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    plain = tiny.run()[0]
    x = tiny.call["hidden_states"]
    assert len(shapes) >= 3 and shapes[1] != shapes[0] == shapes[2]
    assert not torch.equal(guided, plain) and guided.dtype == plain.dtype

    patch = tiny.transformer.config.patch_size
    patch = patch if isinstance(patch, int) else patch[-1]
    sigma = tiny.call["timestep"].float()[:1] / 1000
    shrink = Shrink(2, patch, x.shape[-1], x.shape[-2])
    assert shapes[1][-2:] == shrink.small(x).shape[-2:]
    guide = Guide(x[:, : plain.shape[1]], sigma, shrink)
    # By hand: the small frame through the model without tiles.
    h3video.remove_hex_tiling(tiny.pipe)
    call = dict(tiny.call)
    for key in ("hidden_states", "control_hidden_states"):
        if call.get(key) is not None:
            call[key] = shrink.small(call[key])
    call["hidden_states"][:, : plain.shape[1]] = guide.small_x
    call["timestep"] = call["timestep"] * guide.ratio
    with torch.no_grad():
        small = tiny.transformer(**call, return_dict=False)[0]
    assert torch.allclose(guided, guide.lead(plain, small), atol=1e-4)
    assert tiling.largest.share > 0.25


def test_only_the_first_steps_are_guided(make_tiny):
    tiny, _ = prepared(make_tiny, "wan", guide_steps=2)
    shapes, _ = spied(tiny)
    for step, passes in [(None, 2), (1, 2), (2, 1), (7, 1)]:
        tiny.pipe.scheduler.step_index = step
        shapes.clear()
        tiny.run()
        assert len(shapes) == passes, step


def test_one_tile_needs_no_guide(make_tiny):
    tiny = make_tiny("wan")
    plain = tiny.run()
    tiny.pipe.scheduler = Scheduler()
    h3video.apply_hex_tiling(tiny.pipe, shape="none", guide_steps=3)
    assert torch.equal(tiny.run()[0], plain[0])


def test_outputs_may_be_objects(make_tiny):
    tiny, _ = prepared(make_tiny, "wan", guide_steps=1)
    pair = tiny.run()[0]
    with torch.no_grad():
        assert torch.equal(tiny.transformer(**tiny.call).sample, pair)


@pytest.mark.parametrize("name", ["ltx", "ltx2", "minimax_h3"])
def test_other_families_refuse_at_once(make_tiny, name):
    tiny = make_tiny(name)
    tiny.pipe.scheduler = Scheduler()
    with pytest.raises(UsageError, match=r"guide_steps 2 is not offered for .* in diffusers"):
        h3video.apply_hex_tiling(tiny.pipe, guide_steps=2)


def test_schedulers_that_cannot_are_refused(make_tiny):
    tiny = make_tiny("wan")
    with pytest.raises(UsageError, match="does not tell its step"):
        h3video.apply_hex_tiling(tiny.pipe, guide_steps=2)
    tiny.pipe.scheduler = Scheduler("epsilon")
    with pytest.raises(UsageError, match="needs a scheduler of flow matching; Scheduler is not"):
        h3video.apply_hex_tiling(tiny.pipe, guide_steps=2)


def test_tokens_with_times_of_their_own_are_refused(make_tiny):
    tiny, _ = prepared(make_tiny, "wan_per_token", guide_steps=1)
    with pytest.raises(UsageError, match=f"given {3 * TALL * WIDE} .tokens with their own"):
        tiny.run()
