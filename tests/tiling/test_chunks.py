"""Chunks of a clip: legal lengths, exact sums, what is shared, nothing twice."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.models import FAMILIES, LTX2, MINIMAX_H3, WAN
from h3video.tiling.chunks import ChunkPlan, frames_of, plan_chunks

VIDEO = [f for f in FAMILIES.values() if f.frame_step > 1]


def shown(plan):
    """Frames of the clip in the order in which an untouched join would show them."""
    out = []
    for chunk in plan.chunks:
        out += range(chunk.new, chunk.stop)
    return out[: plan.frames]


@settings(max_examples=500)
@given(
    st.sampled_from(VIDEO), st.integers(1, 3000), st.integers(1, 300),
    st.one_of(st.none(), st.integers(0, 80)), st.sampled_from(["latents", "first-frame", "none"]),
)  # fmt: skip
def test_laws(family, frames, chunk_frames, overlap, continuity):
    try:
        plan = plan_chunks(frames, family, chunk_frames, overlap, continuity)
    except UsageError:
        assume(False)
        return
    # exactly the frames that were asked, each once, in order
    assert shown(plan) == list(range(frames))
    for chunk in plan.chunks:
        # a clip that the family can make
        assert (chunk.frames - family.frame_first) % family.frame_step == 0
        assert family.frame_first <= chunk.frames <= chunk_frames
        assert chunk.latent_frames == family.latent_frames(chunk.frames)
        assert frames_of(family, chunk.latent_frames) == chunk.frames
    assert max(c.frames for c in plan.chunks) - min(c.frames for c in plan.chunks) <= (
        family.frame_step
    )
    for a, b in zip(plan.chunks, plan.chunks[1:]):
        assert b.index == a.index + 1 and b.new == a.stop  # all that is shared is told
        assert b.first < b.stop and b.shared < b.frames
        # every chunk but the last shows frames that no other does, so each is worth making
        assert b.new < plan.frames
        # three chunks never share a frame: a join has room for both of its neighbours
        after = plan.chunks[b.index + 1 :][:1]
        if after:
            assert after[0].first >= a.stop and b.shared + after[0].shared <= b.frames - b.skip
        if continuity == "latents":
            assert b.latent_start + b.latent_shared == a.latent_start + a.latent_frames
            assert b.start == family.frame_step * b.latent_start and b.skip == 1
        if continuity == "first-frame":
            assert b.start == a.stop - 1 and b.shared == 1
    if overlap is not None and continuity != "first-frame":
        assert all(c.shared >= overlap for c in plan.chunks[1:])
    assert ChunkPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert plan.describe()


@settings(max_examples=300)
@given(st.integers(1, 2000), st.integers(9, 200))
def test_without_a_wish_there_is_always_a_plan(frames, chunk_frames):
    plan = plan_chunks(frames, WAN, chunk_frames)
    assert shown(plan) == list(range(frames))


@pytest.mark.parametrize(
    ("frames", "chunk", "overlap", "count"),
    [(17, 17, 4, 1), (13, 17, 4, 1), (1, 17, 4, 1), (27, 17, 4, 2), (23, 17, 4, 2),
     (73, 17, 4, 6), (81, 17, 4, 7), (79, 17, 4, 7)],
)  # fmt: skip
def test_one_two_and_seven_chunks_at_odd_lengths(frames, chunk, overlap, count):
    plan = plan_chunks(frames, WAN, chunk, overlap)
    assert len(plan.chunks) == count and shown(plan) == list(range(frames))


def test_half_a_minute_of_wan():
    plan = plan_chunks(721, WAN, 81)
    assert len(plan.chunks) == 11 and plan.chunks[-1].stop == 721
    assert all(c.shared == 12 and c.latent_shared == 4 for c in plan.chunks[1:])
    assert "4 frozen latent frames" in plan.describe() and plan.made / 721 < 1.25


def test_half_a_minute_of_minimax_h3():
    plan = plan_chunks(722, MINIMAX_H3, 124, continuity="first-frame")
    assert {c.frames for c in plan.chunks} <= {107, 124}
    assert "from the last picture" in plan.describe()


def test_a_remainder_is_spread_over_all_chunks():
    sizes = [c.frames for c in plan_chunks(22 * 4 - 3, WAN, 81, 12).chunks]
    assert sizes == [49, 49]  # and not 81 and 17


def test_a_clip_that_fits_is_one_chunk_whatever_is_shared():
    assert plan_chunks(81, WAN, 81, 500).chunks == plan_chunks(81, WAN, 81).chunks


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((100, WAN, 3), "chunk_frames 3 is too short for wan; use at least 5"),
        ((100, WAN, 17, 16), "do not advance; use chunk_frames of at least 21"),
        ((100, WAN, 17, 12), "12 frames is over half of a chunk of 16; use at most 8"),
        ((100, WAN, 17, 0), "overlap 0 is too short; use at least 4 frames"),
        ((0, WAN, 17), "frames 0 is out of range"),
        ((500, MINIMAX_H3, 124), "none can be frozen at a chunk's head; use continuity first"),
        ((500, MINIMAX_H3, 22, 22, "none"), "that share 22 do not advance"),
        ((100, WAN, 17, 4, "keyframes"), "continuity 'keyframes' is unknown; use latents"),
        ((100_000, WAN, 9, 4), "gives 24999 chunks, the limit is 4096"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        plan_chunks(*arguments)


def test_other_steps():
    plan = plan_chunks(300, LTX2, 121, 16)
    assert shown(plan) == list(range(300)) and all(c.frames % 8 == 1 for c in plan.chunks)
