"""The walk in ComfyUI: finished cells stay, context is noised right, a killed run goes on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from h3video.errors import UsageError
from h3video.tiling.settings import HexSettings

SIZE = (1, 4, 24, 40)
SETTINGS = HexSettings(hex_res=3, overlap=32.0, halo=32.0)
HERE = Path(__file__).parent


@pytest.fixture
def toys():
    import toys

    return toys


@pytest.fixture
def walk():
    import h3video.render.engines.comfyui.walk as walk

    return walk


@pytest.fixture
def walker(toys, walk):
    """walker(sampler, settings, **options) -> a SAMPLER."""

    def make(sampler="euler", settings=SETTINGS, **options):
        return walk.WalkSampler(toys.sampler_object(sampler), settings, walk.WalkOptions(**options))

    return make


def network(model):
    return model.model.diffusion_model


def smooth(x, _):
    """An answer that depends on its surroundings."""
    return torch.nn.functional.avg_pool2d(x, 5, 1, 2) * 0.7


def plan_of(shape=SIZE, settings=SETTINGS, **how):
    from h3video.tiling.walk import plan_walk

    return plan_walk(shape[-1], shape[-2], 8, 2, settings, **how)


def by_crop(model):
    """The network's calls, cell by cell: [(box, [inputs])]."""
    found = []
    for x, inputs in network(model).calls:
        turn = inputs["options"]["h3video_crop"], inputs["options"]["h3video_cell"]
        if not found or found[-1][0] != turn:
            found.append((turn, []))
        found[-1][1].append((x, inputs))
    return [(box, calls) for (box, _), calls in found]


# ---- what a walk is ----


@pytest.mark.parametrize("sampler", ["euler", "dpmpp_2m"])
@pytest.mark.parametrize("shape", [SIZE, (1, 4, 3, 24, 40), (2, 4, 24, 40)])
def test_where_latents_do_not_interact_a_walk_changes_nothing(toys, walker, sampler, shape):
    """Each latent meets its own noise at every step, bit for bit."""
    model = toys.toy(lambda x, _: x * 0.5 + 0.1, 2)
    plain = toys.run(model, shape, cfg=3.0, steps=3, sampler=sampler)[0]
    walked = toys.run(model, shape, cfg=3.0, steps=3, sampler=walker(sampler))[0]
    assert torch.equal(plain, walked)


def test_one_cell_is_no_walk(toys, walker):
    model = toys.toy(smooth, 2)
    plain = toys.run(model, SIZE, steps=2)[0]
    one = walker(settings=HexSettings(shape="none"))
    assert torch.equal(plain, toys.run(model, SIZE, steps=2, sampler=one)[0])


def test_only_a_crop_is_sampled_at_a_time_and_every_cell_once(toys, walker):
    model = toys.toy(smooth, 2)
    toys.run(model, SIZE, steps=2, sampler=walker())
    plan = plan_of()
    visited = by_crop(model)
    assert [b for b, _ in visited] == [plan.box(i) for i in plan.sampled]
    for box, calls in visited:
        assert len(calls) == 2
        assert all(tuple(x.shape[-2:]) == (box.rows, box.columns) for x, _ in calls)
    assert plan.share < 1.0


def flow_model(toys, answer):
    import comfy.model_base

    return toys.toy(answer, 2, comfy.model_base.ModelType.FLOW)


def test_frozen_latents_have_the_noise_of_the_step(toys, walker):
    model = flow_model(toys, lambda x, _: smooth(x, _))
    final = toys.run(model, SIZE, steps=3, sampler=walker())[0]
    noise = torch.randn(SIZE, generator=torch.Generator().manual_seed(7))
    plan = plan_of()
    owner = torch.from_numpy(plan.finished_by)
    seen = 0
    for step, (box, calls) in zip(plan.sampled, by_crop(model)):
        part = slice(box.top, box.top + box.rows), slice(box.left, box.left + box.columns)
        frozen = owner[part] < step
        for x, inputs in calls:
            sigma = float(inputs["t"].flatten()[0]) / 1000.0
            wanted = (sigma * noise + (1 - sigma) * final)[..., part[0], part[1]]
            assert torch.allclose(x[..., frozen], wanted[..., frozen], atol=1e-5)
            seen += int(frozen.sum())
    assert seen > 0


def test_finished_neighbours_give_context(toys, walker):
    """A cell beside a finished one comes out otherwise than alone."""
    model = toys.toy(smooth, 2)
    a = toys.run(model, SIZE, steps=2, sampler=walker(order="spiral"))[0]
    b = toys.run(model, SIZE, steps=2, sampler=walker(order="spiral", focus=(0.0, 0.0)))[0]
    assert not torch.equal(a, b)


def test_the_users_mask_holds_and_cells_outside_it_cost_nothing(toys, walker):
    model = toys.toy(smooth, 2)
    mask = torch.zeros(1, 1, 24, 40)
    mask[..., :12] = 1.0
    start = torch.arange(4 * 24 * 40, dtype=torch.float32).reshape(SIZE) / 4000.0
    out = toys.run(model, SIZE, steps=2, sampler=walker(), noise_mask=mask, latent=[start])[0]
    assert torch.allclose(out[..., 12:], start[..., 12:], atol=1e-5)
    assert not torch.allclose(out[..., :12], start[..., :12], atol=1e-5)
    assert 0 < len(by_crop(model)) < len(plan_of().sampled)


def test_conditioning_is_cropped(toys, walker):
    hint = torch.arange(3 * 192 * 320, dtype=torch.float32).reshape(1, 3, 192, 320) / 1e4

    def answer(x, inputs):
        shown = torch.zeros_like(x)
        shown[:, :3] = inputs["control"]["middle"][0]
        return shown

    positive = toys.cond(control=toys.control_net(hint))
    plain = toys.run(toys.toy(answer, 2), SIZE, positive, steps=2)[0]
    walked = toys.run(toys.toy(answer, 2), SIZE, positive, steps=2, sampler=walker())[0]
    assert torch.allclose(plain, walked, atol=1e-4) and plain.std() > 0


def test_unknown_conditioning_is_refused_before_the_first_cell(toys, walker):
    import comfy.conds

    model = toys.toy(smooth, 2)
    strange = toys.cond(toy_inputs={"strange": comfy.conds.CONDRegular(torch.ones(1, 4, 33, 33))})
    with pytest.raises(UsageError, match="'strange'"):
        toys.run(model, SIZE, strange, sampler=walker())
    assert not network(model).calls


@pytest.mark.parametrize("name", ["EasyCacheHolder", "LazyCacheHolder"])
def test_caches_between_predictions_are_refused(toys, walker, name):
    model = toys.toy(smooth, 2)
    model.model_options["transformer_options"]["easycache"] = type(name, (), {})()
    with pytest.raises(UsageError, match=r"(Easy|Lazy)Cache would take"):
        toys.run(model, SIZE, sampler=walker())
    assert not network(model).calls


AV = [(1, 4, 3, 24, 40), (1, 8, 2, 11)]


def test_sound_is_made_once_and_is_the_untiled_sound(toys, walker):
    def answer(x, _):
        video, audio = x
        return [video.roll(1, -1) * 0.5, audio * 0.5 + audio.flip(-1) * 0.25]

    plain = toys.run(toys.toy(answer, 2), AV, cfg=2.0, steps=3)
    model = toys.toy(answer, 2)
    walked = toys.run(model, AV, cfg=2.0, steps=3, sampler=walker())
    assert torch.equal(plain[1], walked[1]) and not torch.equal(plain[0], walked[0])
    assert all(x[0].shape[-1] < 40 and x[1].shape[-1] == 11 for x, _ in network(model).calls)


@pytest.mark.parametrize("family", ["wan", "unet"])
@pytest.mark.parametrize("sampler", ["euler", "dpmpp_2m", "dpmpp_sde"])
def test_real_networks(toys, tiny, walker, family, sampler):
    if family == "unet":
        run = lambda: toys.run(  # noqa: E731
            toys.unet(), SIZE, cfg=2.0, steps=2, sampler=walker(sampler)
        )[0]
    else:
        run = lambda: toys.run(  # noqa: E731
            tiny.wan(), (1, 16, 3, 24, 40), tiny.prompt("wan"), tiny.prompt("wan", seed=2),
            cfg=2.0, steps=2, sampler=walker(sampler),
        )[0]  # fmt: skip
    first = run()
    assert torch.isfinite(first).all() and first.std() > 0
    assert torch.equal(first, run())


# ---- models with their own idea of frozen ----


def test_a_model_that_keeps_frozen_frames_clean_gets_noised_cells(toys, walker, monkeypatch):
    import comfy.model_base

    model = flow_model(toys, smooth)
    clean = lambda self, latent_image, **_: latent_image  # noqa: E731
    monkeypatch.setattr(toys.ToyModel, "scale_latent_inpaint", clean, raising=False)
    a = toys.run(model, SIZE, steps=2, sampler=walker())[0]
    monkeypatch.setattr(
        toys.ToyModel, "scale_latent_inpaint", comfy.model_base.BaseModel.scale_latent_inpaint
    )
    b = toys.run(flow_model(toys, smooth), SIZE, steps=2, sampler=walker())[0]
    assert torch.equal(a, b)


def test_ltx_is_told_by_token(tiny, toys, walker, monkeypatch):
    import comfy.model_base

    model = tiny.ltx()
    masks = []
    inner = comfy.model_base.LTXV.process_timestep

    def note(self, timestep, x, denoise_mask=None, **kwargs):
        masks.append(denoise_mask)
        return inner(self, timestep, x, denoise_mask=denoise_mask, **kwargs)

    monkeypatch.setattr(comfy.model_base.LTXV, "process_timestep", note)
    out = toys.run(
        model, (1, 128, 3, 12, 20), tiny.prompt("ltx"), tiny.prompt("ltx", seed=2), steps=1,
        sampler=walker(settings=SETTINGS),
    )[0]  # fmt: skip
    assert torch.isfinite(out).all()
    assert masks[0] is None and any(m is not None and (m == 0).any() for m in masks[1:])


@pytest.mark.comfy_min("0.33")
@pytest.mark.parametrize("family", ["minimax_h3", "ltxav"])
def test_families_with_sound(tiny, toys, walker, family):
    _, noise = tiny.latent(family)
    shapes = [tuple(t.shape) for t in noise.unbind()]
    out = toys.run(
        getattr(tiny, family)(), shapes, tiny.prompt(family), tiny.prompt(family, seed=2),
        steps=1, sampler=walker(settings=SETTINGS),
    )  # fmt: skip
    assert [tuple(o.shape) for o in out] == shapes and all(torch.isfinite(o).all() for o in out)


# ---- going on after a break ----


def test_killed_with_sigkill_it_goes_on_and_the_bytes_are_the_same(comfy_inproc, tmp_path):
    def once(folder, out, *die_at):
        command = [sys.executable, str(HERE / "walk_once.py"), str(comfy_inproc),
                   str(tmp_path / folder), str(tmp_path / out), "dpmpp_sde", *die_at]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, timeout=550)

    unbroken = once("a", "unbroken")
    assert unbroken.returncode == 0, unbroken.stderr[-2000:]
    calls = int(unbroken.stdout.split("calls")[1])
    killed = once("b", "never", str(calls // 2))
    assert killed.returncode == -signal.SIGKILL and not (tmp_path / "never").exists()
    (run,) = (tmp_path / "b").iterdir()
    done = {f.name: f.stat().st_mtime_ns for f in run.glob("cell-*")}
    assert done and not list(run.glob(".*"))
    again = once("b", "again")
    assert again.returncode == 0, again.stderr[-2000:]
    assert (tmp_path / "again").read_bytes() == (tmp_path / "unbroken").read_bytes()
    assert {f.name: f.stat().st_mtime_ns for f in run.glob("cell-*") if f.name in done} == done
    made = int(again.stdout.split("calls")[1])
    cells = len(list(run.glob("cell-*")))
    assert made == calls // cells * (cells - len(done))


@pytest.mark.parametrize("sampler", ["euler", "dpmpp_2m", "dpmpp_sde", "euler_ancestral"])
def test_interrupted_it_goes_on_with_every_kind_of_sampler(toys, walker, tmp_path, sampler):
    import comfy.model_management as management

    model = toys.toy(smooth, 2)
    run = lambda folder: toys.run(  # noqa: E731
        model, SIZE, cfg=2.0, steps=2, sampler=walker(sampler, folder=tmp_path / folder)
    )[0]
    whole = run("a")
    calls = len(network(model).calls)

    def stop(x, inputs):
        if len(network(model).calls) == calls // 2:
            management.interrupt_current_processing(True)
        return smooth(x, inputs)

    network(model).calls.clear()
    network(model).answer = stop
    with pytest.raises(management.InterruptProcessingException):
        run("b")
    management.interrupt_current_processing(False)
    assert len(network(model).calls) == calls // 2, "not interrupted within a step"
    network(model).answer = smooth
    network(model).calls.clear()
    assert torch.equal(run("b"), whole)
    assert 0 < len(network(model).calls) < calls
    network(model).calls.clear()
    assert torch.equal(run("b"), whole) and not network(model).calls


def folders(path):
    return sorted(p.name for p in path.iterdir()) if path.exists() else []


def test_another_run_has_another_folder(toys, walker, tmp_path):
    def run(seed=7, prompt=1, settings=SETTINGS, mask=None, cfg=1.0, steps=1, sampler="euler",
            **how):  # fmt: skip
        toys.run(
            toys.toy(smooth, 2), SIZE, toys.cond(prompt), cfg=cfg, steps=steps, seed=seed,
            noise_mask=mask, sampler=walker(sampler, settings, folder=tmp_path, **how),
        )  # fmt: skip
        return len(folders(tmp_path))

    assert run() == 1 and run() == 1
    assert run(seed=8) == 2
    assert run(prompt=3) == 3
    assert run(settings=HexSettings(hex_res=3, overlap=64.0, halo=32.0)) == 4
    assert run(mask=torch.ones(1, 1, 24, 40) * 0.5) == 5
    assert run(cfg=2.0) == 6
    assert run(steps=2) == 7
    assert run(sampler="heun") == 8
    assert run(order="bfs", focus=(0.1, 0.1)) == 9
    assert run() == 9


def test_the_fingerprint_sees_loras_and_weights_but_not_the_process(toys):
    from h3video.render.engines.comfyui.fingerprint import Fingerprint

    def mark(model):
        return Fingerprint().add_model(model).hexdigest()

    model = toys.unet()
    assert mark(model) == mark(toys.unet()) == mark(model.clone())
    patched = model.clone()
    key = "diffusion_model.out.2.weight"
    patched.add_patches({key: ("diff", (torch.ones(4, 32, 3, 3),))}, 0.5)
    other = model.clone()
    other.add_patches({key: ("diff", (torch.ones(4, 32, 3, 3),))}, 0.6)
    assert len({mark(model), mark(patched), mark(other)}) == 3
    before = mark(patched)
    patched.patch_model()
    assert mark(patched) == before, "a loaded LoRA changes the base weights' mark"
    patched.unpatch_model()
    changed = toys.unet()
    with torch.no_grad():
        changed.model.diffusion_model.out[2].weight += 1e-3
    assert mark(changed) != mark(model)


def test_a_damaged_cell_is_done_again(toys, walker, tmp_path, caplog):
    model = toys.toy(smooth, 2)
    run = lambda: toys.run(model, SIZE, steps=2, sampler=walker(folder=tmp_path))[0]  # noqa: E731
    whole = run()
    cells = sorted((tmp_path / folders(tmp_path)[0]).glob("cell-*"))
    cells[0].write_bytes(cells[0].read_bytes()[:-7])
    data = bytearray(cells[1].read_bytes())
    data[-1] ^= 1
    cells[1].write_bytes(bytes(data))
    network(model).calls.clear()
    assert torch.equal(run(), whole)
    assert len(network(model).calls) == 4
    assert "cannot be read" in caplog.text and "is damaged" in caplog.text


def test_cells_can_be_deleted_afterwards(toys, walker, tmp_path):
    toys.run(toys.toy(smooth, 2), SIZE, sampler=walker(folder=tmp_path / "walks", keep=False))
    assert folders(tmp_path / "walks") == []


def test_the_plan_is_beside_the_cells(toys, walker, tmp_path):
    import json

    toys.run(toys.toy(smooth, 2), SIZE, sampler=walker(folder=tmp_path))
    (run,) = tmp_path.iterdir()
    plan = json.loads((run / "plan.json").read_text())
    assert plan["fingerprint"].startswith(run.name) and len(plan["classes"]) == 3
    steps = [s for s in plan["steps"] if s["latents"]]
    assert {f"cell-{s['id']}.safetensors" for s in steps} == {f.name for f in run.glob("cell-*")}


def test_a_broken_prediction_is_not_saved(toys, walker, tmp_path):
    model = toys.toy(lambda x, _: x * float("nan"), 2)
    with pytest.raises(ValueError, match=r"cell 8[0-9a-f]+ came out as NaN"):
        toys.run(model, SIZE, sampler=walker(folder=tmp_path))
    assert not list(tmp_path.rglob("cell-*"))


# ---- progress, limits, the node ----


def test_one_bar_over_cells_and_steps_and_previews_of_the_growing_latent(toys, walker, tmp_path):
    told = []
    seen = lambda step, x0, x, total: told.append((step, x0.clone(), total))  # noqa: E731
    sampler = walker(folder=tmp_path)
    out = toys.run(toys.toy(smooth, 2), SIZE, steps=3, sampler=sampler, callback=seen)[0]
    cells = len(plan_of().sampled)
    assert [s for s, _, _ in told] == list(range(3 * cells))
    assert {t for _, _, t in told} == {3 * cells}
    assert all(x0.shape == SIZE for _, x0, _ in told)
    assert torch.equal(told[-1][1], out)
    first = torch.from_numpy(plan_of().finished_by) == plan_of().sampled[0]
    assert torch.equal(told[2][1][..., first], out[..., first])
    told.clear()
    toys.run(toys.toy(smooth, 2), SIZE, steps=3, sampler=sampler, callback=seen)
    assert [s for s, _, _ in told] == list(range(2, 3 * cells, 3)), "found cells are one tick each"


def test_sigmas_must_end_at_zero(toys, walker):
    import comfy.sample
    import comfy.samplers

    model = toys.toy(smooth, 2)
    with pytest.raises(UsageError, match="end at"):
        comfy.sample.sample_custom(
            model, torch.randn(SIZE), 1.0, walker(), torch.tensor([14.0, 5.0, 1.0]), toys.cond(),
            toys.cond(), torch.zeros(SIZE), disable_pbar=True, seed=1,
        )  # fmt: skip
    assert not network(model).calls


def test_orders_by_a_mask(toys, walker):
    mask = torch.zeros(1, 96, 160)
    mask[:, 60:90, 120:150] = 1.0
    model = toys.toy(smooth, 2)
    toys.run(model, SIZE, sampler=walker(order="importance", importance=mask))
    box = by_crop(model)[0][0]
    assert box.left + box.columns == 40 and box.top + box.rows == 24


def test_crop_tiles_inside_a_walk(toys, walker):
    """A model that already predicts in crops sees crops of the cell's crop."""
    from h3video.render.engines.comfyui.crops import attach_crops

    model = toys.toy(lambda x, _: x * 0.5, 2)
    plain = toys.run(model, SIZE, steps=2)[0]
    network(model).calls.clear()
    cut = attach_crops(model, HexSettings(hex_res=3, halo=8.0))
    assert torch.equal(toys.run(cut, SIZE, steps=2, sampler=walker())[0], plain)


@pytest.mark.parametrize("shape", [SIZE, (1, 4, 3, 24, 40)])
def test_in_comfyuis_own_advanced_sampler_node(toys, walker, shape, monkeypatch):
    """Both of its outputs are the whole latent, and its bar counts cells x steps."""
    import comfy.samplers
    import comfy.utils
    from comfy_extras.nodes_custom_sampler import Noise_RandomNoise, SamplerCustomAdvanced

    told = []
    monkeypatch.setattr(
        comfy.utils, "PROGRESS_BAR_HOOK", lambda value, total, *a, **k: told.append((value, total))
    )
    model = toys.toy(lambda x, _: x * 0.5, 2)
    guider = comfy.samplers.CFGGuider(model)
    guider.set_conds(toys.cond(), toys.cond(2))
    guider.set_cfg(2.0)
    sigmas = comfy.samplers.calculate_sigmas(
        model.get_model_object("model_sampling"), "normal", 2
    )  # fmt: skip

    def run(sampler):
        run_node = getattr(SamplerCustomAdvanced, "execute", None) or SamplerCustomAdvanced().sample
        with torch.inference_mode():
            out = run_node(Noise_RandomNoise(4), guider, sampler, sigmas,
                           {"samples": torch.zeros(shape)})  # fmt: skip
        return [o["samples"] for o in getattr(out, "args", out)]

    plain = run(toys.sampler_object("euler"))
    told.clear()
    walked = run(walker())
    assert torch.equal(plain[0], walked[0])
    assert torch.allclose(plain[1], walked[1], atol=1e-5)  # the walk's is what it returns
    cells = len(plan_of().sampled)
    assert told[-1] == (2 * cells, 2 * cells)


def test_the_node(comfy_inproc, toys, tmp_path, monkeypatch):
    import folder_paths

    monkeypatch.setattr(folder_paths, "get_output_directory", lambda: str(tmp_path))
    from h3video.nodes.hex_walk_sampler import H3HexWalkSampler, output_folder

    made = H3HexWalkSampler.execute(toys.sampler_object("euler"), hex_res="3", overlap=32)
    (sampler,) = made.args
    model = toys.toy(lambda x, _: x * 0.5, 2)
    plain = toys.run(model, SIZE, steps=2)[0]
    assert torch.equal(toys.run(model, SIZE, steps=2, sampler=sampler)[0], plain)
    assert len(list((tmp_path / "h3video_walk").iterdir())) == 1
    with pytest.raises(UsageError, match="connect one"):
        H3HexWalkSampler.execute(toys.sampler_object("euler"), order="importance")
    for name in ("../elsewhere", str(tmp_path.parent / "x"), "."):
        with pytest.raises(UsageError, match="not inside"):
            output_folder(name)
    assert output_folder(" mine/walks ") == tmp_path / "mine" / "walks"
