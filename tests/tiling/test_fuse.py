"""Block-major fusing on a toy transformer whose blocks can be read."""

import pytest

torch = pytest.importorskip("torch")

from h3video.models import WAN
from h3video.models.minimax_h3 import MINIMAX_H3
from h3video.tiling import plan_token_tiles
from h3video.tiling.fuse import TileRunner
from h3video.tiling.sequence import Sequence, Span
from h3video.tiling.table import TileTable
from h3video.tiling.tokens import plan_latent_tiles


def table_of(plan, before=0, after=0):
    """A sequence with `before` tokens, the frame, and `after` tokens."""
    sequence = Sequence(before + plan.frame_tokens + after, (Span(before, plan.latent_frames),))
    return TileTable(plan, {"img": sequence}, "cpu")


def toy(table, blocks, function, hidden, **kw):
    """`function(block, tile, hidden)` on every tile of every block."""
    runner = TileRunner(table, **kw)
    for i in range(blocks):
        def call(tile, states, i=i):
            return {"img": function(i, tile, states["img"])}

        hidden = runner.block({"img": hidden}, call, 1 / blocks, i == blocks - 1)["img"]
    return hidden


def plan_for(exchange="step", **kw):
    return plan_token_tiles(480, 288, 9, WAN, hex_res=3, exchange=exchange, **kw)


@pytest.mark.parametrize("exchange", ["step", "block"])
def test_tokens_and_rows_are_the_full_frames(exchange):
    plan = plan_for(exchange)
    n = plan.frame_tokens
    hidden = torch.arange(n, dtype=torch.float32).view(1, n, 1).expand(1, n, 4).contiguous()
    rotary = torch.arange(n).view(1, n, 1, 1) * 10.0
    seen = []

    def function(i, tile, h):
        torch.testing.assert_close(tile.rows("img", rotary, 1)[0, :, 0, 0], h[0, :, 0] * 10.0)
        seen.append((i, h.shape[1]))
        return h

    out = toy(table_of(plan), 3, function, hidden)
    torch.testing.assert_close(out, hidden, rtol=1e-6, atol=1e-3)
    sizes = [len(t.tokens) * plan.windows[0].length for t in plan.tiles]
    assert len(set(sizes)) > 1
    # block-major: every tile of a block before the next block
    assert seen == [(i, size) for i in range(3) for size in sizes]


@pytest.mark.parametrize("exchange", ["step", "block"])
@pytest.mark.parametrize("overlap", [None, 0.0])
@pytest.mark.parametrize("window", [None, 2])
def test_constant_fields_stay_constant(exchange, overlap, window):
    plan = plan_for(exchange, overlap=overlap, window=window, window_overlap=1)
    table = table_of(plan, before=5, after=3)
    hidden = torch.full((2, table.sequences["img"].total, 3), 0.7)
    out = toy(table, 2, lambda i, tile, h: h, hidden)
    assert (out - 0.7).abs().max() <= 1e-6


@pytest.mark.parametrize("exchange", ["step", "block"])
@pytest.mark.parametrize("accumulate", ["device", "cpu"])
def test_the_blend_is_the_weighted_sum(exchange, accumulate):
    plan = plan_for(exchange)
    hidden = torch.zeros(1, plan.frame_tokens, 1)
    out = toy(table_of(plan), 1, lambda i, tile, h: torch.full_like(h, float(tile.number)), hidden,
              accumulate=accumulate)  # fmt: skip
    want = torch.zeros(plan.frame_tokens)
    spatial = plan.columns * plan.rows
    for k, w in enumerate(plan.weights()):
        for t in range(plan.latent_frames):
            want[torch.as_tensor(w.points) + t * spatial] += k * torch.as_tensor(w.weight)
    torch.testing.assert_close(out[0, :, 0], want)


@pytest.mark.parametrize("mode", ["fused", "frozen"])
@pytest.mark.parametrize("exchange", ["step", "block"])
def test_windows_blend_by_their_weights(mode, exchange):
    plan = plan_latent_tiles(10, 6, 12, MINIMAX_H3, shape="none", window=7, window_overlap=1,
                             window_mode=mode, exchange=exchange)  # fmt: skip
    assert [(w.start, w.length) for w in plan.windows] == [(0, 7), (5, 7)]
    hidden = torch.zeros(1, plan.frame_tokens, 1)
    out = toy(table_of(plan), 1, lambda i, t, h: torch.full_like(h, float(t.window.start)), hidden)
    by_frame = out.view(12, 60)
    assert torch.equal(by_frame, by_frame[:, :1].expand(12, 60))
    want = torch.zeros(12)
    for w in plan.windows:
        for j, weight in enumerate(w.weights):
            want[w.start + j] += weight * w.start
    torch.testing.assert_close(by_frame[:, 0], want)
    if mode == "frozen":
        assert by_frame[:7].eq(0).all() and by_frame[7:].eq(5).all()


def test_tokens_outside_the_frame_are_the_mean_by_area():
    plan = plan_for()
    table = table_of(plan, before=4, after=2)
    hidden = torch.zeros(1, table.sequences["img"].total, 1)
    out = toy(table, 1, lambda i, tile, h: torch.full_like(h, float(tile.number)), hidden)
    want = sum(
        k * float(w.weight.sum()) / (plan.columns * plan.rows) for k, w in enumerate(plan.weights())
    )
    along = torch.cat((out[0, :4, 0], out[0, -2:, 0]))
    torch.testing.assert_close(along, torch.full((6,), want))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_equal_tokens_outside_the_frame_keep_their_bits(dtype):
    plan = plan_for()
    table = table_of(plan, before=9)
    hidden = torch.randn(1, table.sequences["img"].total, 8).to(dtype)
    for exchange in ("step", "block"):
        out = toy(table, 3, lambda i, tile, h: h + i, hidden.clone(), exchange=exchange)
        want = hidden[:, :9]
        for i in range(3):
            want = want + i
        assert torch.equal(out[:, :9], want)


def test_keyframes_on_the_frames_grid_follow_the_tile():
    plan = plan_for()
    spatial = plan.columns * plan.rows
    sequence = Sequence(3 + spatial + plan.frame_tokens,
                        (Span(3, 1, target=False), Span(3 + spatial, plan.latent_frames)))
    table = TileTable(plan, {"img": sequence}, "cpu")
    for tile, planned in zip(table.tiles, plan.tiles):
        index = tile.tensors["img"].tolist()
        assert index[:3] == [0, 1, 2]
        assert index[3 : 3 + tile.tokens] == [3 + t for t in planned.tokens]
        assert tile.frames("img") == [0, *range(1, 1 + plan.latent_frames)]


def test_between_blocks_nothing_of_the_full_frame_is_held():
    plan = plan_for("step")
    hidden = torch.randn(1, plan.frame_tokens, 8)
    runner = TileRunner(table_of(plan))
    between = runner.block({"img": hidden}, lambda t, s: s, 0.5, False, release=(hidden,))["img"]
    assert between.shape == hidden.shape
    assert between.untyped_storage().nbytes() <= 16
    # what the host still calls its embedding takes no memory either
    assert hidden.shape == between.shape and hidden.untyped_storage().nbytes() <= 16


def test_what_the_host_does_not_read_is_gone_before_the_tiles_are_copied():
    plan = plan_for("step")
    hidden, spare = torch.randn(1, plan.frame_tokens, 8), torch.randn(1, plan.frame_tokens, 8)
    seen = []
    runner = TileRunner(table_of(plan))
    gather = runner._gather
    runner._gather = lambda s: (seen.append(spare.untyped_storage().nbytes()), gather(s))
    runner.block({"img": hidden}, lambda t, s: s, 0.5, False, release=(hidden, spare))
    assert seen[0] <= 16
    # a host that joins the placeholders makes a whole frame of zeros, which nothing needs either
    joined = torch.zeros(1, plan.frame_tokens, 8)
    held = []
    out = runner.block({"img": joined}, lambda t, s: held.append(joined.untyped_storage().nbytes())
                       or s, 0.5, True, release=(joined,))["img"]  # fmt: skip
    assert max(held) <= 16
    assert out.shape == joined.shape and out.abs().max() > 0


def test_only_active_tiles_run():
    plan = plan_for()
    ran = []
    toy(table_of(plan), 2, lambda i, tile, h: ran.append(tile.number) or h,
        torch.zeros(1, plan.frame_tokens, 1), active={1: 0.5, 3: 0.5})  # fmt: skip
    assert ran == [1, 3, 1, 3]


def test_progress_of_one_pass_adds_up_to_one():
    ticks = []
    plan = plan_for()
    toy(table_of(plan), 3, lambda i, tile, h: h, torch.zeros(1, plan.frame_tokens, 1),
        on_tile=ticks.append)  # fmt: skip
    assert len(ticks) == 3 * len(plan.tiles)
    assert sum(ticks) == pytest.approx(1.0)


def test_another_frame_size_is_refused():
    with pytest.raises(RuntimeError, match="the plan is for"):
        toy(table_of(plan_for()), 1, lambda i, tile, h: h, torch.zeros(1, 7, 1))
    with pytest.raises(RuntimeError, match="do not fit"):
        TileTable(plan_for(), {"img": Sequence(7, (Span(0, 3),))}, "cpu")


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
        toy(table_of(plan, after=0), 2, lambda i, tile, h: h, hidden)
