"""Block-major fusing on a toy transformer whose blocks can be read."""

import pytest

torch = pytest.importorskip("torch")

from h3video.models import WAN
from h3video.tiling import plan_token_tiles
from h3video.tiling.fuse import BlockMajor


def toy(plan, blocks, function, hidden, rotary=None, modulation=None, on_tile=None):
    runner = BlockMajor(plan, blocks, on_tile)
    for i in range(blocks):
        hidden = runner.block(i, lambda h, m, r, i=i: function(i, h, m, r), hidden, modulation,
                              rotary)  # fmt: skip
    return hidden


def plan_for(exchange="step", **kw):
    return plan_token_tiles(480, 288, 9, WAN, hex_res=3, exchange=exchange, **kw)


@pytest.mark.parametrize("exchange", ["step", "block"])
def test_tokens_and_rows_are_the_full_frames(exchange):
    plan = plan_for(exchange)
    n = plan.frame_tokens
    hidden = torch.arange(n, dtype=torch.float32).view(1, n, 1).expand(1, n, 4).contiguous()
    rotary = (torch.arange(n).view(1, n, 1, 1) * 10.0, torch.arange(n).view(1, n, 1, 1) * 3.0)
    modulation = torch.arange(n).view(1, n, 1, 1) * 7.0
    seen = []

    def function(i, h, m, r):
        torch.testing.assert_close(r[0][0, :, 0, 0], h[0, :, 0] * 10.0)
        torch.testing.assert_close(r[1][0, :, 0, 0], h[0, :, 0] * 3.0)
        torch.testing.assert_close(m[0, :, 0, 0], h[0, :, 0] * 7.0)
        seen.append((i, h.shape[1]))
        return h

    out = toy(plan, 3, function, hidden, rotary, modulation)
    torch.testing.assert_close(out, hidden, rtol=1e-6, atol=1e-3)
    tiles = len(plan.tiles)
    # block-major: every tile of a block before the next block, all of one size
    assert seen == [(i, plan.tile_tokens) for i in range(3) for _ in range(tiles)]


def test_modulation_without_a_token_axis_goes_along_whole():
    plan = plan_for()
    modulation = torch.randn(1, 6, 4)
    got = []
    toy(plan, 1, lambda i, h, m, r: got.append(m) or h, torch.zeros(1, plan.frame_tokens, 4), None,
        modulation)  # fmt: skip
    assert all(m is modulation for m in got)


@pytest.mark.parametrize("exchange", ["step", "block"])
@pytest.mark.parametrize("overlap", [None, 0.0])
def test_constant_fields_stay_constant(exchange, overlap):
    plan = plan_for(exchange, overlap=overlap)
    hidden = torch.full((2, plan.frame_tokens, 3), 0.7)
    out = toy(plan, 2, lambda i, h, m, r: h, hidden)
    assert (out - 0.7).abs().max() <= 1e-6


@pytest.mark.parametrize("exchange", ["step", "block"])
def test_the_blend_is_the_weighted_sum(exchange):
    plan = plan_for(exchange)
    hidden = torch.zeros(1, plan.frame_tokens, 1)
    count = iter(range(10**6))
    out = toy(plan, 1, lambda i, h, m, r: torch.full_like(h, float(next(count))), hidden)
    want = torch.zeros(plan.frame_tokens)
    spatial = plan.columns * plan.rows
    for k, w in enumerate(plan.weights()):
        for t in range(plan.latent_frames):
            want[torch.as_tensor(w.points) + t * spatial] += k * torch.as_tensor(w.weight)
    torch.testing.assert_close(out[0, :, 0], want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_one_tile_is_the_identity(dtype):
    plan = plan_token_tiles(480, 288, 9, WAN, shape="none")
    hidden = torch.randn(1, plan.frame_tokens, 8).to(dtype)
    marker = []
    out = toy(plan, 2, lambda i, h, m, r: marker.append(h) or h, hidden)
    assert out is hidden and marker[0] is hidden


def test_between_blocks_nothing_of_the_full_frame_is_held():
    plan = plan_for("step")
    hidden = torch.randn(1, plan.frame_tokens, 8)
    runner = BlockMajor(plan, 3)
    between = runner.block(0, lambda h, m, r: h, hidden, None, None)
    assert between.shape == hidden.shape
    assert between.untyped_storage().nbytes() <= 16


def test_progress_of_one_pass_adds_up_to_one():
    ticks = []
    plan = plan_for()
    toy(plan, 3, lambda i, h, m, r: h, torch.zeros(1, plan.frame_tokens, 1), on_tile=ticks.append)
    assert len(ticks) == 3 * len(plan.tiles)
    assert sum(ticks) == pytest.approx(1.0)


def test_another_frame_size_is_refused():
    with pytest.raises(RuntimeError, match="the plan is for"):
        toy(plan_for(), 1, lambda i, h, m, r: h, torch.zeros(1, 7, 1))


def test_no_float64_reaches_the_device():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for t in out if isinstance(out, (tuple, list)) else [out]:
                assert not (isinstance(t, torch.Tensor) and t.dtype == torch.float64), func
            return out

    plan = plan_for()
    hidden = torch.randn(1, plan.frame_tokens, 4)
    with Watch():
        toy(plan, 2, lambda i, h, m, r: h, hidden)
