"""Joins in time: nothing where chunks agree, each cell at its best frame, no step of brightness."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.tiling.join import COLOURS, JOINS, ClipJoiner, JoinSettings, join_frames, plan_join

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "join.py"
_spec = importlib.util.spec_from_file_location("h3video_join_benchmark", SCRIPT)
bench = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)


def noise(n, rows, columns, channels=3, seed=0):
    return np.random.default_rng(seed).random((n, rows, columns, channels), np.float32)


def out_of(old, new, settings=None, carry=(), **more):
    plan = plan_join(old, new, settings or JoinSettings(), **more)
    return plan, list(join_frames(plan, old, new, carry, unit=more.get("unit")))


# ---- equal chunks ----


@given(
    st.integers(1, 6), st.integers(16, 70), st.integers(16, 70), st.sampled_from(JOINS),
    st.sampled_from(COLOURS), st.sampled_from(["f4", "u1", "torch", "half"]), st.integers(0, 999),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_equal_chunks_come_out_bit_for_bit(n, rows, columns, mode, colour, kind, seed):
    clip = noise(n, rows, columns, seed=seed)
    if kind == "u1":
        clip = (clip * 255).astype(np.uint8)
    elif kind == "torch":
        clip = torch.from_numpy(clip)
    elif kind == "half":
        clip = torch.from_numpy(clip).half()
    _, out = out_of(clip, clip, JoinSettings(mode, colour))
    assert len(out) == n
    for got, want in zip(out, clip):
        assert type(got) is type(want) and got.dtype == want.dtype
        assert (got == want).all()


def test_the_first_and_last_frames_are_one_chunks_own_where_all_cells_switch_between():
    old, new = bench.scene("meeting", 208, 120, 10)
    over = slice(bench.MARGIN, bench.MARGIN + 10)
    plan, out = out_of(old[over], new[over], JoinSettings(colour="off"))
    assert min(plan.switch) > 0 and max(plan.switch) < 10 and not plan.faded
    assert np.array_equal(out[0], old[over][0]) and np.array_equal(out[-1], new[over][-1])


# ---- each cell at its own frame ----


def two_halves(n, left, right, rows=96, columns=192):
    """Chunks that agree in the left half at frame `left` and before, in the right at `right`."""
    old = np.full((n, rows, columns, 3), 0.5, np.float32)
    new = old.copy()
    for f in range(n):
        for best, part in ((left, slice(0, columns // 2)), (right, slice(columns // 2, None))):
            if f not in (best - 1, best):
                # Lines, whose mean is the same: no level to be evened out.
                new[f, ::2, part] += 0.2
                new[f, 1::2, part] -= 0.2
    return old, new


def test_every_cell_switches_where_its_chunks_agree():
    old, new = two_halves(12, 3, 9)
    plan, _ = out_of(old, new, JoinSettings(overlap=8.0))
    for cell, frame in zip(plan.grid.cells, plan.switch):
        if cell.x < 70:
            assert frame == 3, cell
        if cell.x > 122:
            assert frame == 9, cell
    # Cells over both halves agree at no frame.
    assert all(70 <= plan.grid.cells[i].x <= 122 for i in plan.faded)


def test_cells_in_which_nothing_matches_dissolve_and_the_others_do_not():
    old, new = two_halves(12, 3, 9)
    new[:, ::2, :96] = 0.8  # the left half never agrees now
    new[:, 1::2, :96] = 0.2
    plan, out = out_of(old, new, JoinSettings(overlap=8.0))
    faded = {plan.grid.cells[i].index for i in plan.faded}
    for cell in plan.grid.cells:
        if cell.x < 70:
            assert cell.index in faded
        if cell.x > 122:
            assert cell.index not in faded and plan.switch[cell.index] == 9
    middle = out[6][:, :40]
    share = (middle[::2] - 0.5) / 0.3
    assert np.ptp(share) < 0.01 and 0.5 < share.mean() < 0.62  # smoothstep of 6.5 / 12: 0.56


def test_what_changes_by_itself_from_frame_to_frame_is_no_reason_to_dissolve():
    """Water: frames differ as much within a chunk as between the chunks, so a switch is hidden."""
    old, new = noise(6, 96, 160), noise(6, 96, 160, seed=1)
    assert plan_join(old, new, JoinSettings()).faded == ()
    still = np.repeat(old[:1], 6, 0), np.repeat(new[:1], 6, 0)
    assert len(plan_join(*still, JoinSettings()).faded) > 10


@pytest.mark.parametrize("name", ["meeting", "parting"])
def test_bodies_that_move_otherwise_are_not_shown_twice(name):
    old, new = bench.scene(name, 320, 192, 10)
    found = {}
    for mode in JOINS:
        out, _, _ = bench.joined(old, new, JoinSettings(mode))
        found[mode] = (bench.ghost(old, new, out), bench.jump(old, new, out), bench.flicker(out))
    assert found["cell"][0] < 0.1 * found["fade"][0]  # ghosts
    assert found["cell"][1] <= 1.02  # nothing jumps more than it moves by itself
    assert found["cut"][1] > found["cell"][1]
    assert found["cell"][2] <= found["fade"][2] + 0.05  # brightness


def test_a_lost_body_is_no_worse_than_a_dissolve():
    old, new = bench.scene("lost", 320, 192, 10)
    cell, _, _ = bench.joined(old, new, JoinSettings("cell"))
    fade, _, _ = bench.joined(old, new, JoinSettings("fade"))
    cut, _, _ = bench.joined(old, new, JoinSettings("cut"))
    assert bench.ghost(old, new, cell) < bench.ghost(old, new, fade)
    assert bench.jump(old, new, cell) < bench.jump(old, new, cut)


def test_measures_have_the_known_answers():
    old, new = bench.scene("lost", 160, 96, 8)
    half = np.concatenate([old[:4], (old[4:12] + new[4:12]) / 2.0, new[12:]])
    assert bench.ghost(old, new, half) == pytest.approx(1.0, abs=1e-5)
    assert bench.ghost(old, new, old) == bench.ghost(old, new, new) == 0.0
    assert bench.jump(old, new, old) <= 1.0


# ---- brightness ----


def chunks_of_a_still_scene(count=5, length=24, shared=6, level=2.5, slope=0.0):
    """Chunks as models give them: one scene, another grain and level in each."""
    picture = bench.ground(160, 96, 5)
    for k in range(count):
        grain = np.random.default_rng(k + 50)
        frames = [
            picture + grain.normal(0.0, 0.008, picture.shape)
            + (level * [0, 1, -0.6, 0.8, -1][k % 5] + slope * f) / 255.0
            for f in range(length)
        ]  # fmt: skip
        yield (
            np.stack(frames).astype(np.float32),
            shared if k else 0,
            (shared if k < count - 1 else 0),
        )


def brightness(mode, colour, **scene):
    joiner, out = ClipJoiner(JoinSettings(mode, colour)), []
    for frames, shared, held in chunks_of_a_still_scene(**scene):
        out += [f.mean(dtype=np.float64) * 255.0 for f in joiner.feed(frames, shared, held)]
    return np.array(out), joiner


@pytest.mark.parametrize("mode", JOINS)
def test_five_chunks_of_a_still_scene_have_no_step_and_no_rhythm(mode):
    shown, joiner = brightness(mode, "hold")
    assert len(shown) == 5 * 24 - 4 * 6 and len(joiner.plans) == 4
    assert np.abs(np.diff(shown)).max() < 0.5
    spectrum = np.abs(np.fft.rfft(shown - shown.mean()))
    beat = len(shown) / 18.0  # chunks come every 18 frames
    around = spectrum[1 : int(3 * beat)]
    near = spectrum[int(beat) : int(beat) + 2].max()
    assert near < 3.0 * np.median(around) + 0.5, (near, np.median(around))
    assert np.ptp(shown) < 0.5  # held to the first chunk to the end


def test_eased_levels_have_no_step_either_and_come_back():
    shown, _ = brightness("cell", "ease", level=1.0)
    assert np.abs(np.diff(shown)).max() < 0.5
    assert abs(shown[-1] - shown[0] - -1.0) < 0.2  # the last chunk is its own -1/255 again


def test_without_it_the_step_is_there():
    """The test above can fail: left as they are, the chunks' levels step."""
    shown, _ = brightness("cut", "off")
    assert np.abs(np.diff(shown)).max() > 2.0


def test_sums_of_levels_are_carried_on():
    shown, joiner = brightness("fade", "hold", slope=0.05)
    assert len(joiner.carry) == 3
    # Every chunk drifts by 0.05 a frame and starts anew: held together, the drift goes on.
    assert shown[-1] - shown[0] == pytest.approx(0.05 * (len(shown) - 1), abs=0.5)


def test_a_body_elsewhere_is_no_level():
    old, new = bench.scene("lost", 320, 192, 8)
    plan = plan_join(old[4:12], new[4:12])
    assert max(map(abs, plan.hold)) < 0.3 / 255.0


def test_another_picture_is_not_taken_for_a_drift():
    old = np.full((4, 64, 96, 3), 0.2, np.float32)
    plan = plan_join(old, old + 0.5)
    assert max(plan.hold) == pytest.approx(10.0 / 255.0, abs=1e-5)


# ---- whole clips ----


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_frames_of_a_cut_up_clip_come_back(data):
    """Chunks cut from one clip, joined frame by frame: the clip, and every frame exactly once."""
    clip = (noise(data.draw(st.integers(8, 40)), 24, 32, seed=3) * 255).astype(np.uint8)
    joiner, out, start, shared = ClipJoiner(), [], 0, 0
    while True:
        length = data.draw(st.integers(2 * shared + 1, 20))
        last = start + length >= len(clip)
        held = 0 if last else data.draw(st.integers(0, min(length - shared, 5)))
        part = clip[start : start + length]
        out += list(joiner.feed(iter(part), shared, held))
        if last:
            break
        start, shared = start + length - held, held
    assert np.array_equal(np.stack(out), clip)


def test_only_an_overlap_is_held():
    import weakref

    alive = {}

    class Counted(np.ndarray):
        pass

    def frames(count):
        for _ in range(count):
            frame = noise(1, 32, 48)[0].view(Counted)
            number = id(frame)
            alive[number] = weakref.ref(frame, lambda _, number=number: alive.pop(number))
            yield frame

    joiner, most = ClipJoiner(JoinSettings("fade")), 0
    for shared, held in ((0, 4), (4, 4), (4, 0)):
        for _ in joiner.feed(frames(60), shared, held):
            most = max(most, len(alive))
    assert 4 <= most <= 10, most  # both sides of an overlap, and what is in our own hands


# ---- latents and wrong input ----


def test_latents_join_in_their_own_units():
    generator = torch.Generator().manual_seed(0)
    old = torch.randn(4, 12, 20, 16, generator=generator)  # [T, h, w, C]
    new = old + 0.3 * torch.randn(old.shape, generator=generator)
    plan, out = out_of(old, new, JoinSettings(overlap=32.0), step=8.0, unit=4.0)
    assert plan.grid.width == 160 and plan.grid.height == 96
    low, high = torch.minimum(old, new) - 0.5, torch.maximum(old, new) + 0.5
    assert torch.stack(out).shape == old.shape
    assert ((torch.stack(out) >= low) & (torch.stack(out) <= high)).all()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (JoinSettings("blend"), "join 'blend' is unknown; use cell, fade, cut"),
        (JoinSettings(colour="x"), "colour 'x' is unknown"),
        (JoinSettings(overlap=-1.0), "overlap -1"),
        (JoinSettings(hex_res=16), "hex_res 16 is out of range 0..15"),
    ],
)
def test_wrong_settings_are_refused(settings, says):
    clip = noise(2, 48, 64)
    with pytest.raises(UsageError, match=says):
        plan_join(clip, clip, settings)


def test_wrong_frames_are_refused():
    clip = noise(3, 48, 64)
    with pytest.raises(UsageError, match="share 3 and 2 frames"):
        plan_join(clip, clip[:2])
    with pytest.raises(UsageError, match="cannot be joined"):
        plan_join(clip, clip[:, :40])
    with pytest.raises(UsageError, match="share no frame"):
        plan_join(clip[:0], clip[:0])
    joiner = ClipJoiner()
    list(joiner.feed(clip, 0, 2))
    with pytest.raises(UsageError, match="shares 1 frames with the one before, which kept 2"):
        list(joiner.feed(clip, 1, 0))
    with pytest.raises(UsageError, match="must be as long as both"):
        list(joiner.feed(clip, 2, 2))


def test_plans_say_what_they_do():
    import json

    old, new = two_halves(12, 3, 9)
    plan = plan_join(old, new)
    assert "switch at frame 3-9 of 12" in plan.summary()
    data = json.loads(json.dumps(plan.to_json()))
    assert data["mode"] == "cell" and len(data["switch"]) == len(plan.grid.cells)
