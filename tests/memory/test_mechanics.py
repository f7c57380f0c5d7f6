"""What is resident when, against the code of the runtimes: each case was once counted wrongly."""

import dataclasses
import math

import pytest

from h3video.memory.activations import Block, Moment, full_scores, score_bytes, sub_quadratic
from h3video.memory.advice import advise, verdict
from h3video.memory.calibration import Calibration
from h3video.memory.ledger import plan
from h3video.memory.machine import find_machine
from h3video.memory.report import streaming, text
from h3video.memory.runtimes import comfyui, diffusers
from h3video.models.catalog import model_spec
from h3video.render.forecast import make_ask, tiler

GIB = 2**30


def ask(model, quant, machine, size=None, **more):
    width, height, frames = size or (None, None, None)
    return make_ask(
        model_spec(model), quant, find_machine(machine), width=width, height=height,
        frames=frames, **more,
    )  # fmt: skip


def named(phase, part):
    return [t for t in phase.terms if part in t.name]


# Attention and the feed-forward are not at work at the same time.


def test_scores_fill_what_the_feed_forward_needs_at_another_time():
    a = ask("wan2.1-t2v-14b", "BF16", "h200", runtime="diffusers", size=(832, 480, 81))
    block = Block(0, 0, (Moment("feed-forward", 1000, ""), Moment("attention", 400, "")), 1, "")
    one = score_bytes(a, a.rows)
    assert full_scores(a, "device", "", 1, 1).bytes == one
    assert full_scores(a, "device", "", 1, 1, block=block).bytes == one - 600 * a.rows
    small, wide = a.but(frames=5, width=64, height=64), Moment("feed-forward", 10_000, "")
    block = dataclasses.replace(block, moments=(wide, block.attention))
    assert full_scores(small, "device", "", 1, 1, block=block).bytes == 0


def test_scores_are_alive_twice_and_bounded_by_what_is_free():
    a = ask("minimax-h3-pruned", "Q4_K_M", "m1max-64gb", size=(864, 480, 124))
    one_query = 56 * a.rows * 2
    plenty, short = (sub_quadratic(a, "device", free) for free in (2**50, 0))
    assert plenty.bytes == 2 * 4096 * one_query
    parts = 2 * math.ceil(a.rows**0.5) * 512 * 7168 * 2  # a root of the keys at a time
    assert plenty.needed == short.bytes == min(2 * 256 * one_query, parts)
    some = sub_quadratic(a, "device", 8 * GIB)
    assert some.bytes == 4 * GIB  # four copies must fit the free memory, two are made


@pytest.mark.parametrize("model, bytes_", [("wan2.1-t2v-14b", 4), ("minimax-h3-pruned", 2)])
def test_macs_compute_the_scores_of_float16_models_in_float32(model, bytes_):
    """comfy force_upcast_attention_dtype: float16 since macOS 14.5; MiniMax-H3 runs in bfloat16."""
    a = ask(model, "Q4_K_M", "m3ultra-512gb")
    (scores,) = named(plan(a).phase("denoise"), "scores of a chunk")
    heads = a.spec.denoiser.heads
    assert scores.bytes == pytest.approx(2 * 4096 * heads * a.rows * bytes_, rel=0.2)
    kept = a.but(flags=("--dont-upcast-attention",))
    (halves,) = named(plan(kept).phase("denoise"), "scores of a chunk")
    assert halves.bytes <= scores.bytes
    assert not comfyui.upcast(a.but(machine=find_machine("rtx4090")))


def test_split_attention_needs_a_64th_of_three_matrices():
    a = ask("hunyuan-video", "Q4_K_M", "rtx4060", flags=("--use-split-cross-attention",))
    found = plan(a)
    (scores,) = named(found.phase("denoise"), "scores of a slice")
    assert scores.needed == pytest.approx(3 * 24 * a.rows**2 * 2 / 64, rel=0.01)
    assert plan(a.but(flags=())).phase("denoise").total(kind="scores") == 0


# MiniMax-H3's int8 layers fold the activation: no tensor of its width is made.


def test_int8_h3_on_a_card_makes_no_activated_tensor():
    def row(quant, machine="rtx3060"):
        a = ask("minimax-h3-pruned", quant, machine, size=(1344, 768, 124))
        return comfyui.block(a).worst.row

    d, i, f = 5376, 7168, 28672
    assert row("BF16") == row("Q4_K_M") == (d + f + 2 * f // 2) * 2
    assert row("INT8") == max((2 * d + f) * 2 + f // 2, (d + 6 * i) * 2)


# Finished models.


def test_finished_models_stay_on_a_macs_device_until_ram_is_short():
    a = ask("wan2.2-ti2v-5b", "F16", "m3max-128gb")
    decode = plan(a).phase("decode")
    (kept,) = named(decode, "transformer")
    assert kept.where == "device" and kept.needed == 0
    moved = plan(a.but(flags=("--disable-smart-memory",))).phase("decode")
    assert named(moved, "transformer")[0].where == "host"
    assert not named(plan(a.but(flags=("--cache-none",))).phase("decode"), "transformer")
    card = plan(a.but(machine=find_machine("rtx4090"))).phase("decode")
    assert named(card, "transformer")[0].where == "host"


# The publishers' own code.


def test_tencents_and_genmos_code_decodes_in_tiles():
    a = ask("mochi-1", "BF16", "h200", runtime="official")
    whole = a.but(runtime="diffusers")
    assert plan(a).phase("decode").total() < 0.5 * plan(whole).phase("decode").total()
    named_tile = plan(a.but(decode_tile=128)).phase("decode").total()
    assert named_tile < plan(a).phase("decode").total()


def test_tencents_single_block_keeps_its_intermediate_results():
    """Twenty-six times the states in one block: linear1's seven, q and k thrice, linear2's five."""
    a = ask("hunyuan-video", "BF16", "h200", runtime="official", offload="model")
    (term,) = [t for t in plan(a).phase("denoise").terms if t.name == "activations"]
    states = a.rows * 3072 * 2
    assert term.bytes == pytest.approx(26 * states, rel=0.01)
    lean = diffusers.block(dataclasses.replace(a, runtime="diffusers"))
    assert term.bytes > a.rows * (lean.state + lean.worst.row)


# Where weights come from, and what a person is told.


def test_weights_that_ram_cannot_hold_come_from_the_disk():
    small = plan(ask("minimax-h3", "BF16", "rtx4060"))
    assert 0 < small.from_disk < small.streamed
    assert "from the disk" in streaming(small)
    large = plan(dataclasses.replace(small.ask, machine=find_machine("rtx4060", ram="128GB")))
    assert large.from_disk == 0 and "disk" not in streaming(large)
    ssd = plan(ask("minimax-h3", "BF16", "m5max-64gb", runtime="h3c", streaming=True))
    assert ssd.from_disk == ssd.streamed > 30 * GIB


def test_models_that_start_from_a_picture_encode_one():
    for name in ("wan2.1-i2v-14b", "wan2.2-i2v-a14b"):
        a = ask(name, "Q4_K_M", "rtx4090")
        assert a.pictures == 1 and plan(a).phase("encode pictures")
        assert ask(name, "Q4_K_M", "rtx4090", pictures=0).pictures == 0
    assert ask("wan2.2-t2v-a14b", "Q4_K_M", "rtx4090").pictures == 0


def test_a_flag_that_stops_comfyui_is_advised_away():
    a = ask("wan2.1-t2v-1.3b", "BF16", "m1max-64gb", flags=("--cache-none", "--medvram"))
    ledger = plan(a)
    found = advise(ledger, tiler)
    assert verdict(ledger, found) == "fits if"
    assert found[0].ledger.ask.flags == ("--cache-none",)


def test_notes_of_two_experts_are_said_once():
    lines = text(plan(ask("wan2.2-t2v-a14b", "Q4_K_M", "rtx4090")), ()).splitlines()
    notes = [line for line in lines if line.startswith("note:")]
    assert len(notes) == len(set(notes))


def test_chunks_are_searched_with_what_this_machine_taught():
    a = ask("wan2.1-t2v-14b", "Q4_K_M", "m3max-36gb", size=(1280, 720, 201))
    taught = Calibration({"comfyui on mps": {"denoise": 1.6}})

    def longest(calibration):
        found = advise(plan(a, calibration), None, calibration)
        return max(x.ledger.ask.frames for x in found if x.changes[0].kind == "frames")

    assert longest(taught) < longest(None)
