"""apply_hex_tiling on a real (tiny, random) Wan pipeline of diffusers."""

import logging

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

import h3video
from h3video.errors import UsageError


@pytest.mark.parametrize("cfg", [1.0, 4.0])
@pytest.mark.parametrize("exchange", ["step", "block"])
def test_one_tile_is_bit_identical(tiny_pipe, run_pipe, cfg, exchange):
    plain = run_pipe(tiny_pipe, cfg=cfg)
    h3video.apply_hex_tiling(tiny_pipe, shape="none", exchange=exchange)
    assert torch.equal(run_pipe(tiny_pipe, cfg=cfg), plain)
    # one tile through the hexagonal path, too: a budget that lets everything in
    h3video.apply_hex_tiling(tiny_pipe, budget=1.0, exchange=exchange)
    assert torch.equal(run_pipe(tiny_pipe, cfg=cfg), plain)


def test_one_crop_decodes_bit_identically(tiny_pipe, run_pipe):
    plain = run_pipe(tiny_pipe, output="pt")
    h3video.apply_hex_tiling(tiny_pipe, shape="none")
    assert torch.equal(run_pipe(tiny_pipe, output="pt"), plain)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("exchange", ["step", "block"])
def test_tiled_runs_in_every_dtype_and_is_repeatable(tiny_pipe, run_pipe, dtype, exchange):
    tiny_pipe.to(dtype)
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3, exchange=exchange)
    a, b = run_pipe(tiny_pipe), run_pipe(tiny_pipe)
    assert torch.isfinite(a.float()).all()
    assert torch.equal(a, b)


@pytest.mark.parametrize(
    "name",
    ["FlowMatchEulerDiscreteScheduler", "UniPCMultistepScheduler", "DPMSolverMultistepScheduler"],
)
def test_any_scheduler(tiny_pipe, run_pipe, name):
    import diffusers

    cls = getattr(diffusers, name)
    options = (
        {"shift": 3.0}
        if name.startswith("FlowMatch")
        else {"prediction_type": "flow_prediction", "use_flow_sigmas": True, "flow_shift": 3.0}
    )
    tiny_pipe.scheduler = cls(**options)
    plain = run_pipe(tiny_pipe)
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    tiled = run_pipe(tiny_pipe)
    assert tiled.shape == plain.shape
    assert not torch.equal(tiled, plain)
    # random weights, mild attention: tiles must stay close to the untiled result
    assert (tiled - plain).norm() / plain.norm() < 0.1


def test_removed_without_a_trace(tiny_pipe, run_pipe):
    plain = run_pipe(tiny_pipe, output="pt")
    before = [set(m.__dict__) for m in tiny_pipe.transformer.modules()]
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    run_pipe(tiny_pipe)
    assert h3video.remove_hex_tiling(tiny_pipe) is True
    assert h3video.remove_hex_tiling(tiny_pipe) is False
    assert [set(m.__dict__) for m in tiny_pipe.transformer.modules()] == before
    assert torch.equal(run_pipe(tiny_pipe, output="pt"), plain)


def test_applying_again_replaces_the_settings(tiny_pipe, run_pipe):
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    first = run_pipe(tiny_pipe)
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3, halo=100.0)
    assert not torch.equal(run_pipe(tiny_pipe), first)
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    assert torch.equal(run_pipe(tiny_pipe), first)


def test_positions_in_the_hooks_are_the_full_frames(tiny_pipe):
    model = tiny_pipe.transformer
    x = torch.randn(1, 16, 2, 22, 38)  # 19 x 11 tokens: nothing divides evenly
    full = model.rope(x)
    seen = []
    for block in model.blocks:
        original = block.forward

        def spy(h, ctx, temb, rotary, original=original, block=block):
            seen.append((block, h, rotary))
            return original(h, ctx, temb, rotary)

        block.forward = spy
    entered = []
    handle = model.blocks[0].register_forward_pre_hook(
        lambda m, args: entered.append(args[0].clone())  # its memory is given back
    )
    tiling = h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    with torch.no_grad():
        model(x, torch.tensor([500.0]), torch.randn(1, 12, 64))
    handle.remove()
    (plan,) = tiling.plans
    count = len(plan.tiles)
    assert count > 1
    spatial = 19 * 11
    assert len(seen) == count * len(model.blocks)
    for n, (block, hidden, rotary) in enumerate(seen):
        assert block is model.blocks[n // count]
        tokens = torch.tensor(plan.tiles[n % count].tokens)
        index = torch.cat([tokens + t * spatial for t in range(2)])
        for got, want in zip(rotary, full):
            assert torch.equal(got, want[:, index])
        if n < count:  # what enters the first block is the patch embedding at these tokens
            assert torch.equal(hidden, entered[0][:, index])


def test_each_block_is_called_once_per_tile_and_pass(tiny_pipe, run_pipe):
    calls = []
    for i, block in enumerate(tiny_pipe.transformer.blocks):
        original = block.forward

        def spy(*a, original=original, i=i, **k):
            calls.append(i)
            return original(*a, **k)

        block.forward = spy
    tiling = h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    run_pipe(tiny_pipe, steps=2, cfg=4.0)
    tiles = len(tiling.plans[0].tiles)
    one_pass = [i for i in range(4) for _ in range(tiles)]
    assert calls == one_pass * 4  # 2 steps x (cond, uncond)


def test_per_token_timesteps_are_gathered(tiny_pipe):
    # Wan 2.2 TI2V-5B passes one timestep per token: modulation [B, S, 6, d]
    model = tiny_pipe.transformer
    x, text = torch.randn(1, 16, 2, 20, 32), torch.randn(1, 12, 64)
    steps = torch.full((1, 2 * 10 * 16), 500.0)
    with torch.no_grad():
        plain = model(x, steps, text).sample
        h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
        tiled = model(x, steps, text).sample
        same = model(x, steps[:, 0], text).sample
    assert (tiled - plain).norm() / plain.norm() < 0.1
    torch.testing.assert_close(tiled, same, rtol=1e-4, atol=1e-4)


def test_batches_of_prompts(tiny_pipe):
    model = tiny_pipe.transformer
    x, text = torch.randn(2, 16, 2, 20, 32), torch.randn(2, 12, 64)
    h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    with torch.no_grad():
        both = model(x, torch.tensor([500.0, 500.0]), text).sample
        one = model(x[1:], torch.tensor([500.0]), text[1:]).sample
    torch.testing.assert_close(both[1:], one, rtol=1e-4, atol=1e-4)


def test_noise_does_not_depend_on_the_plan(tiny_pipe, run_pipe):
    starts = []
    for settings in (dict(shape="none"), dict(hex_res=3), dict(hex_res=4), dict(shape="rect")):
        h3video.apply_hex_tiling(tiny_pipe, **settings)
        grabbed = []
        handle = tiny_pipe.transformer.patch_embedding.register_forward_pre_hook(
            lambda m, args, grabbed=grabbed: grabbed.append(args[0].clone())
        )
        run_pipe(tiny_pipe, steps=1, seed=7)
        handle.remove()
        starts.append(grabbed[0])
    assert all(torch.equal(s, starts[0]) for s in starts)


def test_an_interrupted_pass_leaves_nothing_behind(tiny_pipe, run_pipe):
    count = []

    def stop(phase, share):
        count.append(phase)
        if len(count) == 5:
            raise KeyboardInterrupt

    h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
    whole = run_pipe(tiny_pipe)
    tiling = h3video.apply_hex_tiling(tiny_pipe, hex_res=3, on_tile=stop)
    with pytest.raises(KeyboardInterrupt):
        run_pipe(tiny_pipe)
    assert len(count) == 5  # within one tile
    assert all(t.current is None for t in tiling.transformers)  # nor the tiles' states
    tiling.on_tile = None
    assert torch.equal(run_pipe(tiny_pipe), whole)


def test_progress_counts_passes_and_decode(tiny_pipe, run_pipe):
    done = {"denoise": 0.0, "decode": 0.0}

    def on_tile(phase, share):
        done[phase] += share

    h3video.apply_hex_tiling(tiny_pipe, hex_res=3, on_tile=on_tile)
    run_pipe(tiny_pipe, steps=2, cfg=4.0, output="pt")
    assert done["denoise"] == pytest.approx(4.0)
    assert done["decode"] == pytest.approx(1.0)


def test_the_plan_is_logged_once(tiny_pipe, run_pipe, caplog):
    with caplog.at_level(logging.INFO, "h3video"):
        h3video.apply_hex_tiling(tiny_pipe, hex_res=3)
        run_pipe(tiny_pipe)
        run_pipe(tiny_pipe)
    assert caplog.text.count("hex tiles at hex_res 3") == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(hex_res=16), "hex_res 16"), (dict(overlap=-3.0), "overlap -3"),
        (dict(budget="lots"), "budget 'lots'"), (dict(shape="oval"), "shape 'oval'"),
        (dict(exchange="x"), "exchange 'x'"), (dict(span=2.0), "span 2"),
    ],
)  # fmt: skip
def test_bad_settings_are_refused_at_once(tiny_pipe, settings, message):
    with pytest.raises(UsageError, match=message):
        h3video.apply_hex_tiling(tiny_pipe, **settings)
    assert "forward" not in tiny_pipe.transformer.__dict__


def test_unknown_models_are_refused_by_name():
    class SomeTransformer(torch.nn.Module):
        pass

    class Pipe:
        transformer = SomeTransformer()

    with pytest.raises(UsageError, match="SomeTransformer has no tiling adapter"):
        h3video.apply_hex_tiling(Pipe())
    with pytest.raises(UsageError, match="no transformer"):
        h3video.apply_hex_tiling(object())


def test_a_frame_too_small_for_tiles_is_not_tiled(tiny_pipe, run_pipe):
    plain = run_pipe(tiny_pipe, width=64, height=32)
    h3video.apply_hex_tiling(tiny_pipe, budget=1.0)
    assert torch.equal(run_pipe(tiny_pipe, width=64, height=32), plain)
