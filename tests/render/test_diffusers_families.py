"""The laws of token tiles on tiny random transformers of every family in diffusers."""

import inspect
import logging
import weakref

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

import h3video
from h3video.errors import UsageError
from h3video.render.engines.diffusers.families import family_class

TILED = dict(hex_res=3)


def windows(tiny):
    """A window that fits the family's clips of the tests."""
    return dict(window=2, window_overlap=1) if tiny.frames == 3 else dict(window=7)


def close(a, b, tolerance=1e-5):
    return all((x - y).norm() <= tolerance * y.norm() for x, y in zip(a, b))


def do_nothing(tiny):
    """Blocks that return what they were given."""
    pairs = type(tiny.transformer).__name__.startswith(("Hunyuan", "LTX2"))

    def forward(hidden_states, second=None, *args, **kwargs):
        second = kwargs.get("audio_hidden_states", second)
        return (hidden_states, second) if pairs else hidden_states

    for block in tiny.blocks:
        block.forward = forward
    for block in getattr(tiny.transformer, "vace_blocks", ()):
        block.forward = lambda hidden_states, text, control, *args: (control, control)


@pytest.mark.parametrize("settings", [dict(shape="none"), dict(budget=1.0)], ids=str)
def test_one_tile_is_no_tiling_bit_for_bit(tiny, settings):
    plain = tiny.run()
    h3video.apply_hex_tiling(tiny.pipe, **settings)
    assert all(torch.equal(a, b) for a, b in zip(tiny.run(), plain))


@pytest.mark.parametrize(
    "how",
    [{}, {"exchange": "block"}, {"shape": "rect"}, {"accumulate": "cpu"}, {"window": True}],
    ids=str,
)
def test_blocks_that_do_nothing_show_that_every_token_comes_back(tiny, how):
    """With identity blocks the tiled model is the untiled one, wherever tokens went in between."""
    do_nothing(tiny)
    plain = tiny.run()
    tiling = h3video.apply_hex_tiling(
        tiny.pipe, **TILED, **({**how, **windows(tiny)} if how.get("window") else how)
    )
    tiled = tiny.run()
    assert tiling.plans[0].runs > 2
    assert close(tiled, plain), [float((a - b).norm() / b.norm()) for a, b in zip(tiled, plain)]


def test_tiles_come_close_to_the_whole(tiny):
    plain = tiny.run()
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiled = tiny.run()
    differences = [float((a - b).norm() / b.norm()) for a, b in zip(tiled, plain)]
    assert all(0.0 < d < 0.3 for d in differences), differences
    assert all(torch.equal(a, b) for a, b in zip(tiny.run(), tiled))  # and repeat


def test_tokens_positions_and_modulation_are_the_full_frames(tiny):
    block, seen = tiny.blocks[0], []
    names = [n for n in inspect.signature(type(block).forward).parameters if n != "self"]
    original = block.forward

    def spy(*args, **kwargs):
        named = {**dict(zip(names, args)), **kwargs}
        seen.append({k: _copy(v) for k, v in named.items()})
        return original(*args, **kwargs)

    block.forward = spy
    tiny.run()
    full = seen.pop()
    tiling = h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiny.run()
    plan = tiling.plans[-1]
    assert (plan.columns, plan.rows, plan.latent_frames) == (19, 11, tiny.frames)
    assert len(seen) == len(plan.tiles) > 2
    total, spatial = full["hidden_states"].shape[1], plan.columns * plan.rows
    covered = set()
    for tile, mine in zip(plan.tiles, seen):
        tokens = torch.tensor(tile.tokens)
        target = torch.cat([tiny.start + t * spatial + tokens for t in range(tiny.frames)])
        have = mine["hidden_states"].shape[1]
        index = _index_of(mine["hidden_states"], full["hidden_states"])
        assert len(index) == have and set(target.tolist()) <= set(index.tolist())
        outside = set(range(total)) - set(range(tiny.start, tiny.start + tiny.frames * spatial))
        gone = outside - set(index.tolist())  # of keyframes on the frame's grid
        assert len(gone) % (spatial - len(tokens)) == 0
        _same_rows(mine, full, index, total)
        covered |= set(tile.tokens)
    assert covered == set(range(spatial))


def _copy(value):
    if isinstance(value, (tuple, list)):
        return tuple(_copy(v) for v in value)
    return value.clone() if isinstance(value, torch.Tensor) else value


def _index_of(rows, full):
    """Where each row of [1, n, d] is in [1, S, d]; random rows differ everywhere."""
    place = {row.numpy().tobytes(): i for i, row in enumerate(full[0])}
    assert len(place) == full.shape[1]
    return torch.tensor([place[row.numpy().tobytes()] for row in rows[0]])


def _same_rows(mine, full, index, total):
    """Everything with a row per token has the tile's rows; everything else is whole."""
    text = full.get("encoder_hidden_states")
    text = 0 if text is None else text.shape[1]
    for name, value in full.items():
        got = mine[name]
        pairs = zip(got, value) if isinstance(value, tuple) else [(got, value)]
        for a, b in pairs:
            if not isinstance(b, torch.Tensor):
                assert name == "num_tokens" or a == b, name
                continue
            for axis in range(b.ndim):
                if b.shape[axis] == total:
                    b = b.index_select(axis, index)
                elif name == "attention_mask" and b.shape[axis] == total + text:
                    both = torch.cat([index, torch.arange(total, total + text)])
                    b = b.index_select(axis, both)
            assert torch.equal(a, b), name


def test_text_sound_and_references_go_along_whole(make_tiny):
    for name, expected in (("ltx_conditions", 20), ("minimax_h3_keyframes", 8 + 12)):
        tiny = make_tiny(name)
        seen = []
        original = tiny.blocks[0].forward

        def spy(hidden_states, *args, original=original, seen=seen, **kwargs):
            seen.append(hidden_states.shape[1])
            return original(hidden_states, *args, **kwargs)

        tiny.blocks[0].forward = spy
        tiling = h3video.apply_hex_tiling(tiny.pipe, **TILED)
        tiny.run()
        plan = tiling.plans[-1]
        keyframes = 1 if name == "ltx_conditions" else 2
        own = [(keyframes + tiny.frames) * len(tile.tokens) for tile in plan.tiles]
        assert seen == [expected + tokens for tokens in own]


def test_sound_that_depends_on_sound_alone_is_exact(make_tiny):
    tiny = make_tiny("ltx2")
    tiny.call |= dict(isolate_modalities=True)
    plain = tiny.run()
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiled = tiny.run()
    assert torch.equal(tiled[1], plain[1])
    assert not torch.equal(tiled[0], plain[0])


def test_the_policy_for_sound_is_logged(make_tiny, caplog):
    tiny = make_tiny("minimax_h3")
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    with caplog.at_level(logging.INFO, "h3video"):
        tiny.run()
    assert "every tile carries the whole sound track" in caplog.text


def test_windows_run_in_every_family(tiny):
    tiling = h3video.apply_hex_tiling(tiny.pipe, **TILED, **windows(tiny))
    tiled = tiny.run()
    assert len(tiling.plans[-1].windows) > 1
    assert all(t.isfinite().all() for t in tiled)


@pytest.mark.parametrize("mode", ["fused", "frozen"])
def test_windows_keep_to_the_familys_grid(make_tiny, mode):
    tiny = make_tiny("minimax_h3")
    tiling = h3video.apply_hex_tiling(
        tiny.pipe, **TILED, window=9, window_overlap=2, window_mode=mode
    )
    tiled = tiny.run()
    assert [(w.start, w.length) for w in tiling.plans[-1].windows] == [(0, 7), (5, 7)]
    assert all(t.isfinite().all() for t in tiled)


def test_a_window_off_the_grid_is_refused_at_once(make_tiny):
    tiny = make_tiny("minimax_h3")
    with pytest.raises(UsageError, match="5k\\+2 latent frames"):
        h3video.apply_hex_tiling(tiny.pipe, window=4, window_overlap=2)


@pytest.mark.parametrize("exchange", ["step", "block"])
def test_dtypes(tiny, exchange):
    tiny.transformer.to(torch.bfloat16)
    states = ["hidden", "audio_hidden", "encoder", "audio_encoder", "control", "image", "pooled"]
    if "Hunyuan" in type(tiny.transformer).__name__:
        states.append("timestep")  # as its pipeline does
    for name, value in tiny.call.items():
        if isinstance(value, torch.Tensor) and name.startswith(tuple(states)):
            tiny.call[name] = value.bfloat16()
    plain = tiny.run()
    h3video.apply_hex_tiling(tiny.pipe, **TILED, exchange=exchange)
    tiled = tiny.run()
    assert [t.dtype for t in tiled] == [p.dtype for p in plain]
    assert all(t.isfinite().all() for t in tiled)


def test_removed_without_a_trace(tiny):
    plain = tiny.run()
    before = [set(m.__dict__) for m in tiny.transformer.modules()]
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiny.run()
    assert h3video.remove_hex_tiling(tiny.pipe) is True
    assert [set(m.__dict__) for m in tiny.transformer.modules()] == before
    assert all(torch.equal(a, b) for a, b in zip(tiny.run(), plain))


def test_batches(make_tiny):
    tiny = make_tiny("ltx")
    both = {
        k: torch.cat([v, v.flip(-1)]) if isinstance(v, torch.Tensor) and v.ndim > 1 else v
        for k, v in tiny.call.items()
    } | dict(timestep=torch.tensor([500.0, 500.0]))
    one = {k: v[1:] if isinstance(v, torch.Tensor) else v for k, v in both.items()}
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    with torch.no_grad():
        a = tiny.transformer(**both, return_dict=False)[0][1:]
        b = tiny.transformer(**one, return_dict=False)[0]
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


def test_vace_strength_counts(make_tiny):
    """The side blocks' results reach the frame, with the strength that was asked for."""
    tiny = make_tiny("wan_vace")
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    full = tiny.run()[0]
    tiny.call |= dict(control_hidden_states_scale=torch.tensor([0.0, 0.0]))
    none = tiny.run()[0]
    h3video.remove_hex_tiling(tiny.pipe)
    plain_none = tiny.run()[0]
    assert not close([full], [none], 0.01)
    assert close([none], [plain_none], 0.3)


def test_unknown_transformers_are_refused_by_name():
    from diffusers import CogVideoXTransformer3DModel

    class Pipe:
        transformer = CogVideoXTransformer3DModel(
            num_attention_heads=1, attention_head_dim=16, num_layers=1, text_embed_dim=8
        )

    with pytest.raises(UsageError, match="CogVideoXTransformer3DModel has no tiling adapter"):
        h3video.apply_hex_tiling(Pipe())


def test_a_subclass_is_another_model(make_tiny):
    transformer = make_tiny("wan").transformer

    class Animate(type(transformer)):
        pass

    assert family_class(transformer) is not None
    transformer.__class__ = Animate
    assert family_class(transformer) is None


def test_other_orders_are_not_offered(make_tiny):
    with pytest.raises(UsageError, match="use block-major"):
        h3video.apply_hex_tiling(make_tiny("wan").pipe, order="tile-major")


def test_caches_are_refused_by_name(make_tiny):
    from diffusers import FirstBlockCacheConfig

    tiny = make_tiny("wan")
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiny.transformer.enable_cache(FirstBlockCacheConfig(threshold=0.1))
    with (
        tiny.transformer.cache_context("cond"),
        pytest.raises(UsageError, match=r"FBCHeadBlockHook on blocks\.0 keeps what a block saw"),
    ):
        tiny.run()


# -- steps and pipelines --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "tiled"),
    [(dict(start_step=2), [0, 0, 1, 1]), (dict(end_step=1), [1, 0, 0, 0]),
     (dict(start_step=1, end_step=3), [0, 1, 1, 0])],
)  # fmt: skip
def test_only_some_steps_run_in_tiles(tiny_pipe, run_pipe, limits, tiled):
    calls = []
    original = tiny_pipe.transformer.blocks[0].forward

    def spy(*args):
        calls.append(args[0].shape[1])
        return original(*args)

    tiny_pipe.transformer.blocks[0].forward = spy
    tiling = h3video.apply_hex_tiling(tiny_pipe, **TILED, **limits)
    for _ in range(2):  # the count starts again with every call of the pipeline
        calls.clear()
        run_pipe(tiny_pipe, steps=4, cfg=4.0)
        frame = tiling.plans[-1]
        moving = tiling.schedule(
            frame.columns, frame.rows, frame.latent_frames, frame.denoiser
        )  # fmt: skip
        expected = []
        for step, t in enumerate(tiled):
            sizes = [len(tile.tokens) * frame.latent_frames for tile in moving.at(step).tiles]
            expected += (sizes if t else [frame.frame_tokens]) * 2
        assert calls == expected


def test_steps_need_a_scheduler_that_tells_them(make_tiny):
    with pytest.raises(UsageError, match="does not tell its step"):
        h3video.apply_hex_tiling(make_tiny("wan").pipe, start_step=1)


def test_the_grid_stays_where_steps_are_not_told(make_tiny):
    tiny = make_tiny("wan")
    tiling = h3video.apply_hex_tiling(tiny.pipe, hex_res=3)
    tiny.run()
    (plan,) = tiling.plans
    assert plan.overlap == 64.0 and len(plan.tiles) > 1
    with pytest.raises(UsageError, match="does not tell its step"):
        h3video.apply_hex_tiling(tiny.pipe, hex_res=3, shift="step")


def test_both_transformers_of_wan_2_2(tiny_pipe, run_pipe, make_tiny):
    import diffusers

    other = make_tiny("wan", text_dim=64).transformer
    pipe = diffusers.WanPipeline(
        tokenizer=None, text_encoder=None, vae=tiny_pipe.vae, scheduler=tiny_pipe.scheduler,
        transformer=tiny_pipe.transformer, transformer_2=other, boundary_ratio=0.9,
    )  # fmt: skip
    pipe.set_progress_bar_config(disable=True)
    tiling = h3video.apply_hex_tiling(pipe, **TILED)
    run_pipe(pipe, steps=3)
    assert len(tiling.transformers) == 2
    assert all(t.tables._tables for t in tiling.transformers)  # both ran in tiles
    h3video.remove_hex_tiling(pipe)
    assert "forward" not in other.__dict__ and "forward" not in pipe.transformer.__dict__


def test_minimax_h3s_modular_pipeline():
    """diffusers' own modular denoising, from prompt embeddings to latents, video and sound."""
    from diffusers import MiniMaxH3Scheduler
    from diffusers.modular_pipelines.minimax_h3.modular_blocks_minimax_h3 import (
        MiniMaxH3CoreDenoiseStep,
    )

    model = _minimax_of_the_published_channels()
    pipe = MiniMaxH3CoreDenoiseStep().init_pipeline()
    with pytest.raises(UsageError, match="load_components"):
        h3video.apply_hex_tiling(pipe)
    pipe.update_components(
        transformer=model, scheduler=MiniMaxH3Scheduler(shift=12.0),
        audio_scheduler=MiniMaxH3Scheduler(shift=3.0),
    )  # fmt: skip

    def run():
        state = pipe(
            prompt_embeds=torch.randn(1, 8, 16, generator=torch.Generator().manual_seed(1)),
            text_token_tags=torch.ones(8, dtype=torch.long), height=256, width=384, num_frames=124,
            num_inference_steps=3, generator=torch.Generator().manual_seed(2),
        )  # fmt: skip
        return state.get("latents"), state.get("audio_latents")

    plain = run()
    assert plain[0].shape == (1, 24, 37, 16, 24)
    h3video.apply_hex_tiling(pipe, shape="none")
    assert all(torch.equal(a, b) for a, b in zip(run(), plain))
    tiling = h3video.apply_hex_tiling(pipe, hex_res=3, overlap=0.0, halo=32.0, start_step=1)
    tiled = run()
    plan = tiling.plans[-1]
    assert (plan.columns, plan.rows, plan.latent_frames) == (12, 8, 37)
    assert len(plan.tiles) > 1
    differences = [float((a - b).norm() / b.norm()) for a, b in zip(tiled, plain)]
    assert all(0.0 < d < 0.3 for d in differences), differences
    assert h3video.remove_hex_tiling(pipe) is True
    assert all(torch.equal(a, b) for a, b in zip(run(), plain))


def _minimax_of_the_published_channels():
    from diffusers import MiniMaxH3Transformer3DModel

    torch.manual_seed(0)
    return MiniMaxH3Transformer3DModel(
        num_attention_heads=1, attention_head_dim=36, hidden_size=24, num_layers=2,
        num_refiner_layers=1, ffn_dim=32, text_dim=16, freq_dim=32, time_embed_hidden_dim=32,
        time_embed_dim=24, rope_freq_dim=6,
    ).eval()  # fmt: skip


# -- memory: weights move once per step, the head does not make the peak ------------------------


def count_onloads(monkeypatch):
    """Names are not known to groups; count by the first parameter's shape and identity."""
    from diffusers.hooks.group_offloading import ModuleGroup

    counts = {}
    original = ModuleGroup.onload_

    def counted(group):
        counts[id(group)] = counts.get(id(group), 0) + 1
        return original(group)

    monkeypatch.setattr(ModuleGroup, "onload_", counted)
    return counts


@pytest.mark.parametrize("first", ["offload", "tiling"])
@pytest.mark.parametrize("level", ["block_level", "leaf_level"])
@pytest.mark.parametrize("name", ["wan", "wan_vace", "hunyuan", "minimax_h3"])
def test_group_offloading_moves_every_weight_once_per_pass(
    make_tiny, monkeypatch, first, level, name
):
    tiny = make_tiny(name)
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    expected = tiny.run()
    h3video.remove_hex_tiling(tiny.pipe)
    counts = count_onloads(monkeypatch)
    options = dict(onload_device=torch.device("cpu"), offload_type=level)
    if level == "block_level":
        options |= dict(num_blocks_per_group=1)
    if first == "tiling":
        tiling = h3video.apply_hex_tiling(tiny.pipe, **TILED)
        tiny.transformer.enable_group_offload(**options)
    else:
        tiny.transformer.enable_group_offload(**options)
        tiling = h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiled = tiny.run()
    assert len(tiling.plans[-1].tiles) > 2
    inside = {id(g) for b in tiny.blocks for g in _groups(b)}
    assert inside and {counts[i] for i in inside} == {1}
    assert all(torch.equal(a, b) for a, b in zip(tiled, expected))
    h3video.remove_hex_tiling(tiny.pipe)
    counts.clear()
    tiny.run()  # the hooks are still there
    assert {counts[i] for i in inside} == {1}


def _groups(block):
    for module in block.modules():
        registry = vars(module).get("_diffusers_hook")
        hook = None if registry is None else registry.get_hook("group_offloading")
        if hook is not None:
            yield hook.group


def test_hooks_that_come_and_go_leave_the_tiling_in_place(make_tiny):
    """As a pipeline with model offloading takes its hooks off and on again after every call."""
    accelerate = pytest.importorskip("accelerate")
    tiny = make_tiny("wan")
    plain = tiny.run()
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiled = tiny.run()
    h3video.remove_hex_tiling(tiny.pipe)
    hook = accelerate.hooks.CpuOffload(execution_device="cpu")
    accelerate.hooks.add_hook_to_module(tiny.transformer, hook)
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    for _ in range(2):
        assert torch.equal(tiny.run()[0], tiled[0])
        accelerate.hooks.remove_hook_from_module(tiny.transformer)
        accelerate.hooks.add_hook_to_module(tiny.transformer, hook)
    h3video.remove_hex_tiling(tiny.pipe)
    assert torch.equal(tiny.run()[0], plain[0])
    accelerate.hooks.remove_hook_from_module(tiny.transformer)
    assert torch.equal(tiny.run()[0], plain[0])


def test_sequential_offloading_fetches_every_weight_once_per_pass(make_tiny, monkeypatch):
    accelerate = pytest.importorskip("accelerate")
    tiny = make_tiny("wan")
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    expected = tiny.run()
    h3video.remove_hex_tiling(tiny.pipe)
    accelerate.cpu_offload(tiny.transformer, execution_device="cpu")
    fetched = {}
    original = accelerate.hooks.set_module_tensor_to_device

    def counted(module, name, device, *args, **kwargs):
        if str(device) != "meta":
            fetched[id(module), name] = fetched.get((id(module), name), 0) + 1
        return original(module, name, device, *args, **kwargs)

    monkeypatch.setattr(accelerate.hooks, "set_module_tensor_to_device", counted)
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiled = tiny.run()
    assert fetched and set(fetched.values()) == {1}
    assert torch.equal(tiled[0], expected[0])
    assert all(p.device.type == "meta" for p in tiny.transformer.blocks.parameters())


@pytest.mark.parametrize("name", ["wan", "wan_per_token", "ltx", "ltx2", "hunyuan", "minimax_h3"])
def test_the_head_runs_in_pieces(make_tiny, name):
    """Norm and projection see an eighth of the frame at a time; the result is that of the whole."""
    tiny = make_tiny(name)
    transformer, widths = tiny.transformer, {"norm_out": [], "proj_out": []}
    do_nothing(tiny)
    plain = tiny.run()
    for part, seen in widths.items():
        module = getattr(transformer, part)

        def spy(x, *args, original=module.forward, seen=seen):
            seen.append(x.shape[1])
            return original(x, *args)

        module.forward = spy
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiled = tiny.run()
    total = tiny.start + tiny.frames * 11 * 19
    for seen in widths.values():
        assert sum(seen) in (total, 2 * total)  # MiniMax-H3 has two projections of every token
        assert max(seen) <= total // 8 + 1
    assert close(tiled, plain)


def test_rows_are_the_tensor_where_a_host_wants_it_whole():
    from h3video.render.engines.diffusers.rows import Rows

    value = torch.randn(2, 11, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    shift = torch.randn(2, 11, 4, dtype=torch.float64)
    rows = 2.0 * (Rows(value).float().type_as(Rows(value)) * (1 + shift) + 1.0)
    want = 2.0 * (value.float().double() * (1 + shift) + 1.0)
    assert torch.equal(rows.whole(), want)
    assert rows.shape == want.shape and rows.dtype == want.dtype and rows.device == want.device
    assert torch.equal(torch.cat([shift, shift * 0 + 1], 1)[:, :11] * rows, shift * want)
    assert torch.equal(torch.flip(rows, [1]), want.flip(1))
    assert torch.equal(rows.through(lambda r: r.sum(-1, keepdim=True)), want.sum(-1, keepdim=True))


@pytest.mark.parametrize(
    ("name", "layer"),
    [("wan", "patch_embedding"), ("ltx", "proj_in"), ("hunyuan", "x_embedder"),
     ("minimax_h3", "proj_in")],
)  # fmt: skip
def test_the_frames_embedding_is_given_back_before_the_first_tile(make_tiny, name, layer):
    tiny, seen, alive = make_tiny(name), [], []
    embed, block = getattr(tiny.transformer, layer), tiny.blocks[0]

    def watched(*args, original=embed.forward):
        out = original(*args)
        seen.append(weakref.ref(out.untyped_storage()))
        return out

    def spy(*args, original=block.forward, **kwargs):
        alive.append(seen[0]() is not None)
        return original(*args, **kwargs)

    embed.forward, block.forward = watched, spy
    h3video.apply_hex_tiling(tiny.pipe, **TILED)
    tiny.run()
    assert alive and not any(alive)
