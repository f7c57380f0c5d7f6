"""Token tiles inside ComfyUI's sampler: the same laws for every family."""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from tests_support import attach, family_parameters, record_first_block, replaced_blocks, settings

FAMILIES = family_parameters()
every_family = pytest.mark.parametrize("family", FAMILIES)
TILED = dict(hex_res=3, overlap=64.0)


def close(a, b, rtol=1e-5):
    return all((x - y).norm() <= rtol * y.norm() for x, y in zip(a, b))


@every_family
@pytest.mark.parametrize("cfg", [1.0, 3.0])
def test_one_tile_is_no_tiling_bit_for_bit(tiny, family, cfg):
    model = getattr(tiny, family)()
    plain = tiny.sample(model, family, cfg=cfg)
    one = tiny.sample(attach(model, settings(shape="none")), family, cfg=cfg)
    assert len(plain) == len(one)
    assert all(torch.equal(a, b) for a, b in zip(plain, one))


@every_family
@pytest.mark.parametrize(
    "how",
    [
        {}, {"exchange": "block"}, {"order": "tile-major"}, {"shape": "rect"},
        {"accumulate": "cpu"}, {"window": 2, "window_overlap": 1},
    ],
    ids=str,
)  # fmt: skip
def test_blocks_that_do_nothing_show_that_every_token_comes_back(tiny, family, how):
    """With identity blocks the tiled model is the untiled one, wherever tokens went in between."""
    model = getattr(tiny, family)()
    if family == "minimax_h3" and how.get("window"):
        how = {"window": 7, "window_overlap": 1}
    with replaced_blocks(model, family):
        plain = tiny.sample(model, family)
        tiled = tiny.sample(attach(model, settings(**TILED, **how)), family)
    assert all(t.isfinite().all() for t in tiled)
    assert close(tiled, plain), [float((a - b).norm() / b.norm()) for a, b in zip(tiled, plain)]


@every_family
def test_tokens_and_positions_are_the_full_frames(tiny, family):
    model = getattr(tiny, family)()
    with record_first_block(model, family) as full:
        tiny.sample(model, family, steps=1)
    with record_first_block(model, family) as seen:
        tiling = attach(model, settings(**TILED))
        tiny.sample(tiling, family, steps=1)
    plan = tiling.h3video_tiling.plans[-1]
    assert len(seen) == len(plan.tiles) > 2
    (tokens, positions), spatial = full[0], plan.columns * plan.rows
    covered = set()
    for tile, (got, angles) in zip(plan.tiles, seen):
        where = [t * spatial + i for t in range(plan.latent_frames) for i in tile.tokens]
        start = full.video_start(tokens.shape[0], plan.frame_tokens)
        index = torch.tensor(where) + start
        mine = slice(full.video_start(got.shape[0], len(where)), None)
        assert torch.equal(got[mine][: len(where)], tokens[index])
        shift = full.position_shift
        assert torch.equal(
            angles[mine.start + shift :][: len(where)], positions[index + shift]
        )
        covered |= set(tile.tokens)
    assert covered == set(range(spatial))  # sizes that divide evenly by nothing


@every_family
def test_tiles_come_close_to_the_whole(tiny, family):
    model = getattr(tiny, family)()
    plain = tiny.sample(model, family)
    tiled = tiny.sample(attach(model, settings(**TILED)), family)
    difference = [float((a - b).norm() / b.norm()) for a, b in zip(tiled, plain)]
    assert all(0.0 < d < 0.2 for d in difference), difference


@pytest.mark.parametrize("sampler", ["euler", "dpmpp_2m", "res_multistep", "uni_pc", "dpmpp_sde"])
def test_samplers(tiny, sampler):
    model = tiny.wan()
    shapes = []
    tiled = tiny.sample(
        attach(model, settings(**TILED)), "wan", steps=3, sampler=sampler, cfg=2.0,
        callback=lambda step, x0, x, total: shapes.append((tuple(x0.shape), tuple(x.shape))),
    )  # fmt: skip
    plain = tiny.sample(model, "wan", steps=3, sampler=sampler, cfg=2.0)
    whole = (1, *tiny.SIZE["wan"])
    assert shapes == [(whole, whole)] * 3  # the sampler's state is never a tile
    assert tiled[0].isfinite().all() and not torch.equal(tiled[0], plain[0])
    assert close(tiled, plain, 0.3)


def test_one_model_call_per_step_and_every_block_once_per_tile(tiny):
    model = tiny.wan()
    calls, blocks = [], []
    inner = model.model.diffusion_model
    tiling = attach(model, settings(**TILED))
    forward = inner.forward

    def counted(*args, **kwargs):
        calls.append(args[0].shape)
        return forward(*args, **kwargs)

    with contextlib.ExitStack() as stack:
        stack.enter_context(patched(inner, "forward", counted))
        for i, block in enumerate(inner.blocks):
            original = block.forward

            def one(*args, i=i, original=original, **kwargs):
                blocks.append(i)
                return original(*args, **kwargs)

            stack.enter_context(patched(block, "forward", one))
        tiny.sample(tiling, "wan", steps=2, cfg=2.0)
    tiles = len(tiling.h3video_tiling.plans[-1].tiles)
    assert [s[0] for s in calls] == [2, 2]  # prompt and negative together, once per step
    assert blocks == [i for _ in range(2) for i in range(3) for _ in range(tiles)]


@contextlib.contextmanager
def patched(owner, name, value):
    object.__setattr__(owner, name, value)
    try:
        yield
    finally:
        object.__delattr__(owner, name)


def test_start_and_end_step(tiny):
    model = tiny.wan()
    plain = tiny.sample(model, "wan", steps=3)
    none = tiny.sample(attach(model, settings(**TILED, start_step=3)), "wan", steps=3)
    assert torch.equal(none[0], plain[0])  # no step is left for tiles
    late = tiny.sample(attach(model, settings(**TILED, start_step=2)), "wan", steps=3)
    tiled = tiny.sample(attach(model, settings(**TILED)), "wan", steps=3)
    assert (late[0] - plain[0]).norm() < (tiled[0] - plain[0]).norm()
    assert not torch.equal(late[0], plain[0])


def test_attached_twice_the_last_settings_rule_and_detach_undoes(tiny):
    from h3video.render.engines.comfyui.attach import detach

    model = tiny.wan()
    plain = tiny.sample(model, "wan")
    twice = attach(attach(model, settings(**TILED)), settings(shape="none"))
    assert torch.equal(tiny.sample(twice, "wan")[0], plain[0])
    assert torch.equal(tiny.sample(detach(attach(model, settings(**TILED))), "wan")[0], plain[0])
    assert torch.equal(tiny.sample(model, "wan")[0], plain[0])  # the original was not touched


def test_two_models_in_one_graph(tiny):
    wan, flux = tiny.wan(), tiny.flux()
    a, b = attach(wan, settings(**TILED)), attach(flux, settings(**TILED))
    first = tiny.sample(a, "wan")
    second = tiny.sample(b, "flux")
    assert torch.equal(tiny.sample(a, "wan")[0], first[0])
    assert torch.equal(tiny.sample(b, "flux")[0], second[0])
    other = attach(wan, settings(hex_res=2))  # and one model with two settings
    assert not torch.equal(tiny.sample(other, "wan")[0], first[0])
    assert torch.equal(tiny.sample(a, "wan")[0], first[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("family", ["wan", "hunyuan"])
def test_half_precision(tiny, family, dtype):
    model = getattr(tiny, family)(dtype=getattr(torch, dtype))
    plain = tiny.sample(model, family)
    tiled = tiny.sample(attach(model, settings(**TILED)), family)
    assert tiled[0].isfinite().all() and close(tiled, plain, 0.2)


def test_an_interrupt_is_noticed_within_one_tile(tiny):
    import comfy.model_management as mm

    model = tiny.wan()
    tiling = attach(model, settings(**TILED))
    done = []
    block = model.model.diffusion_model.blocks[1]
    original = block.forward

    def interrupting(*args, **kwargs):
        done.append(1)
        mm.interrupt_current_processing(True)
        return original(*args, **kwargs)

    with patched(block, "forward", interrupting), pytest.raises(mm.InterruptProcessingException):
        tiny.sample(tiling, "wan")
    assert len(done) == 1
    mm.interrupt_current_processing(False)
    assert tiny.sample(tiling, "wan")[0].isfinite().all()  # nothing is left behind


def test_progress_runs_over_steps_and_tiles(tiny, monkeypatch):
    import comfy.utils

    seen = []

    def watch(self, value, total=None, preview=None):  # what it sends on is throttled by time
        seen.append((value, total))

    monkeypatch.setattr(comfy.utils.ProgressBar, "update_absolute", watch)
    tiling = attach(tiny.wan(), settings(**TILED))
    tiny.sample(tiling, "wan", steps=2, cfg=2.0)
    values, totals = [v for v, _ in seen], {t for _, t in seen}
    tiles = len(tiling.h3video_tiling.plans[-1].tiles)
    assert values == sorted(set(values)) and len(values) > tiles * 3
    assert len(totals) == 1 and values[-1] == totals.pop()


def test_comfyui_reserves_memory_for_a_tile(tiny):
    from comfy.patcher_extension import WrappersMP

    asked = []

    def watch(executor, model, shape, *args, **kwargs):
        asked.append(list(shape))
        return executor(model, shape, *args, **kwargs)

    tiling = attach(tiny.wan(), settings(**TILED))
    tiling.add_wrapper_with_key(WrappersMP.PREPARE_SAMPLING, "test", watch)
    tiny.sample(tiling, "wan")
    whole = [1, *tiny.SIZE["wan"]]
    assert asked[0][:-1] == whole[:-1] and 0 < asked[0][-1] < whole[-1]


def test_a_model_without_tiles_is_refused_by_name(tiny):
    import comfy.model_patcher

    from h3video.errors import UsageError

    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.diffusion_model = torch.nn.Linear(2, 2)

    cpu = torch.device("cpu")
    model = comfy.model_patcher.ModelPatcher(Other(), load_device=cpu, offload_device=cpu)
    with pytest.raises(UsageError, match=r"Linear .* has no token tiles"):
        attach(model, settings(tiles="tokens"))
