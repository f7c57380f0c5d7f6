"""The ledger's laws, the calibration rows, and the refusals that users met."""

import dataclasses
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.memory.advice import advise, verdict
from h3video.memory.ask import Ask, Tiles
from h3video.memory.ledger import plan
from h3video.memory.machine import find_machine
from h3video.memory.quants import parse_quant
from h3video.memory.runtimes import MODULES
from h3video.models.catalog import CATALOG, model_spec
from h3video.render.forecast import make_ask, tiler

GIB = 2**30


def ask(model, quant, machine, **more):
    size = more.pop("size", None)
    if size is not None:
        more["width"], more["height"], more["frames"] = size
    found = find_machine(machine) if isinstance(machine, str) else machine
    return make_ask(model_spec(model), quant, found, **more)


def peak(ledger):
    return max(phase.total("device") for phase in ledger.phases)


# The four rows of measured machines that constants may be fitted on; docs/ledger.md states the
# tolerance: 5 % of the stated number, whichever unit it is in.


def test_row_2_sdcpp_quantized_on_a_card():
    """16.87 GiB: MiniMax-H3 pruned Q4_K_M, text encoder on the CPU, 25 frames asked."""
    a = ask("minimax-h3-pruned", "Q4_K_M", "rtx4090", runtime="sdcpp", size=(640, 384, 25),
            flags=("--clip-on-cpu", "--diffusion-fa"), encoder_quant="Q2_K")  # fmt: skip
    assert a.frames == 39
    assert peak(plan(a)) == pytest.approx(16.87 * GIB, rel=0.05)


def test_row_24_resident_blocks():
    """36,751 MB for 50 of 50 blocks, and no swap on 64 GB."""
    ledger = plan(ask("minimax-h3", "BF16", "m5max-64gb", runtime="vpipe", size=(544, 960, 124)))
    blocks = [t for t in ledger.phase("denoise").terms if "50 blocks" in t.name]
    assert blocks[0].bytes == pytest.approx(36_751 * 2**20, rel=0.001)
    assert ledger.state == "fits"


def test_row_41_wan_1_3b_official_code():
    """8.19 GB (as nvidia-smi counts) on an RTX 4090 with offload and T5 on the CPU."""
    a = ask("wan2.1-t2v-1.3b", "BF16", "rtx4090", runtime="official", size=(832, 480, 81),
            offload="model", flags=("--t5_cpu",))  # fmt: skip
    assert peak(plan(a)) == pytest.approx(8.19 * GIB, rel=0.05)


def test_row_45_wan_a14b_official_code():
    """41.3 GB on an A100 or H100 with offload."""
    a = ask("wan2.2-t2v-a14b", "BF16", "a100", runtime="official", size=(832, 480, 81),
            offload="model")  # fmt: skip
    assert peak(plan(a)) == pytest.approx(41.3 * GIB, rel=0.05)


# Refusals name the reason.


@pytest.mark.parametrize("frames, rows", [(124, 26_358), (158, 33_654)])
def test_full_score_matrix_on_64_gb(frames, rows):
    """h3.c issue 67: 78 GB at 26,358 rows, 127 GB at 33,654."""
    a = ask("minimax-h3", "BF16", "m1max-64gb", runtime="h3c", size=(992, 704, frames))
    a = a.but(text=max(0, rows - a.tokens.video - (a.beside - a.tokens.text)))
    assert a.rows == rows
    ledger = plan(a)
    assert ledger.state == "does not fit"
    assert "score matrix" in ledger.because() and f"{rows:,}^2" in ledger.because()
    scores = ledger.phase("denoise").total(kind="scores")
    assert scores == 112 * rows**2


def test_150568_tokens_on_mps():
    """ComfyUI issue 15315: past 2^31 elements, whatever the memory is."""
    a = ask("minimax-h3-pruned", "BF16", "m3ultra-512gb", size=(1344, 768, 124))
    a = a.but(text=150_568 - a.tokens.video - a.tokens.sound)
    assert a.rows == 150_568
    ledger = plan(a)
    assert ledger.blockers and "2^31" in ledger.because() and "150,568" in ledger.because()
    assert plan(a.but(machine=find_machine("h200"))).blockers == ()


def test_24_gb_at_1376x768():
    for quant in ("Q4_K_M", "BF16"):
        ledger = plan(ask("minimax-h3-pruned", quant, "m4pro-24gb", size=(1376, 768, 124)))
        assert ledger.state == "does not fit"
        assert "denoise needs" in ledger.because()
    area = plan(ask("minimax-h3", "BF16", "m4pro-24gb", runtime="h3c", size=(1376, 768, 124)))
    assert "1,032,192 px" in area.because()


def test_height_720():
    with pytest.raises(UsageError, match=r"720 is not a multiple of 32 .*; use 704 or 736"):
        ask("minimax-h3", "Q4_K_M", "m1max-64gb", size=(1280, 720, 124))


@pytest.mark.parametrize("quant", ["fp8", "nvfp4", "int8", "nf4"])
def test_types_that_metal_lacks(quant):
    found = ask("minimax-h3", parse_quant(quant).name, "m3ultra-512gb", size=(864, 480, 124))
    ledger = plan(found)
    assert ledger.blockers and ledger.state == "does not fit"
    assert verdict(ledger, advise(ledger, tiler)) == "fits if"
    assert not plan(found.but(machine=find_machine("rtxpro6000"))).blockers


def test_float16_breaks_h3():
    assert "overflow" in plan(ask("minimax-h3", "F16", "h200", size=(512, 512, 22))).because()
    forced = ask(
        "minimax-h3", "BF16", "m3ultra-512gb", flags=("--force-fp16",), size=(512, 512, 22)
    )
    assert "overflow" in plan(forced).because()


@pytest.mark.parametrize("flag", ["--normal-vram", "--smart-vram", "--medvram", "--no-such-flag"])
def test_unknown_flags_stop_comfyui(flag):
    ledger = plan(ask("wan2.1-t2v-1.3b", "BF16", "m1max-64gb", flags=(flag,)))
    assert flag in ledger.because() and "exits at start" in ledger.because()


def test_flags_that_do_nothing():
    on_mac = plan(ask("wan2.1-t2v-1.3b", "BF16", "m1max-64gb", flags=("--lowvram",)))
    assert on_mac.fits and any("--lowvram does nothing" in w for w in on_mac.warnings)
    plain = plan(ask("wan2.1-t2v-1.3b", "BF16", "m1max-64gb"))
    assert [p.terms for p in on_mac.phases] == [p.terms for p in plain.phases]
    card = plan(ask("wan2.1-t2v-1.3b", "BF16", "rtx4090", flags=("--lowvram",)))
    assert any("--lowvram does nothing" in w for w in card.warnings)
    smart = plan(ask("wan2.1-t2v-1.3b", "BF16", "m1max-64gb", flags=("--disable-smart-memory",)))
    assert not smart.warnings


# What each runtime keeps where.


def test_mac_loads_whole_and_encodes_on_the_cpu():
    mac = plan(ask("wan2.1-t2v-14b", "Q4_K_M", "m1max-64gb"))
    assert mac.phase("encode").total("device", "weights") == 0
    assert mac.phase("denoise").needed("device") > 9 * GIB
    card = plan(ask("wan2.1-t2v-14b", "Q4_K_M", "rtx4090"))
    assert card.phase("encode").total("device", "weights") > 2 * GIB
    assert card.phase("denoise").needed("device") < 9 * GIB  # paged
    whole = plan(ask("wan2.1-t2v-14b", "Q4_K_M", "rtx4090", flags=("--highvram",)))
    assert whole.phase("denoise").needed("device") > 9 * GIB


def test_caches_decide_what_stays():
    def held(*flags):
        return plan(ask("minimax-h3", "Q4_K_M", "m1max-64gb", flags=flags)).phase("denoise")

    normal, none, classic = held(), held("--cache-none"), held("--cache-classic")
    assert none.total("host") < normal.total("host") == classic.total("host")
    assert none.needed("host") == normal.needed("host") < classic.needed("host")


def test_offload_modes_go_down():
    peaks = [
        plan(ask("wan2.1-t2v-14b", "BF16", "rtx4090", runtime="diffusers", offload=mode))
        .phase("denoise").needed("device")
        for mode in ("none", "model", "group", "sequential")
    ]  # fmt: skip
    assert peaks == sorted(peaks, reverse=True) and len(set(peaks)) == 4


def test_streaming_and_layers_of_h3c():
    base = ask("minimax-h3", "BF16", "m5max-64gb", runtime="h3c", size=(512, 512, 22))
    whole, fewer = plan(base), plan(base.but(layers=40))
    streamed = plan(base.but(streaming=True))
    part = [p.phase("denoise").total("device") for p in (whole, fewer, streamed)]
    assert part == sorted(part, reverse=True)
    assert part[2] < 3 * GIB and streamed.streamed > 30 * GIB
    assert fewer.phase("denoise").terms[1].bytes == pytest.approx(
        0.8 * whole.phase("denoise").terms[1].bytes
    )


def test_mps_attention_builds_the_matrix():
    base = ask("wan2.1-t2v-1.3b", "BF16", "m3max-128gb", size=(832, 480, 81))
    lazy = plan(base).phase("denoise")
    full = plan(base.but(attention="pytorch")).phase("denoise")
    assert full.total(kind="scores") >= 12 * 32_760**2 * 2 > 4 * lazy.needed("device")
    card = plan(base.but(machine=find_machine("rtx4090"))).phase("denoise")
    assert card.total(kind="scores") == 0


def test_halving_the_tile_shows():
    base = ask("wan2.1-t2v-14b", "BF16", "h200", runtime="diffusers", size=(1280, 720, 81))
    video = base.tokens.video

    def with_tile(tokens):
        return plan(base.but(tiles=Tiles(tokens, video, 4))).phase("denoise").total("device")

    whole = plan(base).phase("denoise").total("device")
    assert with_tile(video // 4) < with_tile(video // 2) < whole
    weights = plan(base).phase("denoise").total("device", "weights")
    assert (with_tile(video // 4) - weights) < 0.75 * (whole - weights)


def test_one_tile_is_no_tiling():
    base = ask("wan2.1-t2v-14b", "BF16", "h200", size=(832, 480, 81))
    one = base.but(tiles=Tiles(base.tokens.video, base.tokens.video, 1))
    assert plan(one).phases == plan(base).phases


# Laws.

RUNS = [
    ("comfyui", "m1max-64gb"), ("comfyui", "rtx4080"), ("comfyui", "m3max-36gb"),
    ("diffusers", "rtx4090"), ("sdcpp", "rtx4090"), ("official", "a100"),
]  # fmt: skip
BY_BITS = ["Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "BF16"]


def memories(ledger):
    """The need and the peak of the worst phase, by kind of memory."""
    found = {}
    for phase in ledger.phases:
        for place in ledger.places(phase):
            need, top = found.get(place.name, (0, 0))
            found[place.name] = (max(need, place.needed), max(top, place.peak))
    return found


def never_falls(less, more):
    a, b = memories(plan(less)), memories(plan(more))
    for name in a:
        assert a[name][0] <= b[name][0] and a[name][1] <= b[name][1], (name, less, more)


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(sorted(CATALOG)), run=st.sampled_from(RUNS),
    columns=st.integers(4, 40), rows=st.integers(4, 24), groups=st.integers(0, 10),
    grow=st.sampled_from(["width", "height", "frames", "quant", "text"]), bits=st.integers(0, 5),
)  # fmt: skip
def test_more_never_lowers_a_peak(name, run, columns, rows, groups, grow, bits):
    spec = CATALOG[name]
    runtime, machine = run
    family = spec.family
    side = family.size_multiple
    quant = BY_BITS[bits] if runtime in ("comfyui", "sdcpp") else "BF16"
    less = Ask(
        spec, quant, columns * side, rows * side,
        family.frame_first + groups * family.frame_step, find_machine(machine), runtime,
    )  # fmt: skip
    more = {
        "width": less.but(width=less.width + side), "height": less.but(height=less.height + side),
        "frames": less.but(frames=less.frames + family.frame_step),
        "quant": less.but(quant=BY_BITS[BY_BITS.index(quant) + 1]) if quant != "BF16" else less,
        "text": less.but(text=less.tokens.text + 64),
    }[grow]  # fmt: skip
    never_falls(less, more)


@settings(max_examples=25, deadline=None)
@given(
    name=st.sampled_from(["minimax-h3", "wan2.1-t2v-14b", "hunyuan-video", "wan2.2-t2v-a14b"]),
    machine=st.sampled_from(["m4pro-24gb", "m1max-32gb", "m3max-36gb", "rtx4060", "rtx4080"]),
    runtime=st.sampled_from(["comfyui", "diffusers"]), quant=st.sampled_from(BY_BITS),
    size=st.sampled_from([(832, 480), (1280, 704), (1920, 1088)]), groups=st.integers(1, 14),
)  # fmt: skip
def test_advice_that_fits_fits(name, machine, runtime, quant, size, groups):
    spec = model_spec(name)
    frames = spec.family.frame_first + groups * spec.family.frame_step
    quant = quant if runtime == "comfyui" else "BF16"
    ledger = plan(ask(name, quant, machine, size=(*size, frames), runtime=runtime))
    found = advise(ledger, tiler)
    for a in found:
        again = plan(a.ledger.ask)
        assert again.phases == a.ledger.phases and again.state == a.ledger.state
        assert a.fits == (again.state in ("fits", "tight"))
        rebuilt = ledger.ask
        for change in a.changes:
            rebuilt = change.apply(rebuilt)
        assert plan(rebuilt).state == again.state
    if ledger.state == "does not fit":
        assert found, "a refusal always comes with what is nearest"
    prices = [a.price for a in found if a.fits]
    assert all(b >= a - 0.011 for a, b in itertools.pairwise(prices))


@pytest.mark.parametrize("runtime", sorted(MODULES))
@pytest.mark.parametrize("name", sorted(CATALOG))
def test_every_model_has_phases_on_every_runtime(name, runtime):
    machine = "m3ultra-512gb" if runtime in ("h3c", "vpipe") else "h200"
    if runtime in ("h3c", "vpipe") and not name.startswith("minimax"):
        assert plan(ask(name, "BF16", machine, runtime=runtime)).blockers
        return
    ledger = plan(ask(name, "BF16", machine, runtime=runtime))
    assert ledger.phases[0].name == "encode"
    assert {"denoise", "decode", "save"} <= {p.name.split(",")[0] for p in ledger.phases}
    for phase in ledger.phases:
        for t in phase.terms:
            assert t.size.low <= t.bytes <= t.size.high and 0 <= t.needed <= t.bytes, (t, phase)
            assert t.formula and t.source and t.where in ("device", "host")


def test_asks_refuse_nonsense():
    for change in ({"runtime": "magic"}, {"attention": "x"}, {"offload": "all"}):
        with pytest.raises(UsageError, match="is unknown; use"):
            dataclasses.replace(ask("nano", "F16", "rtx4090"), **change)
