"""The catalog against published numbers, and its tensors against the classes of diffusers."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h3video.errors import UsageError
from h3video.models import COGVIDEOX, COGVIDEOX_15, MOCHI
from h3video.models.catalog import CATALOG, ENCODERS, VAES, model_spec

every_model = pytest.mark.parametrize("name", CATALOG)

# Exact where the class was counted, digits as published elsewhere.
PARAMETERS = {
    "minimax-h3": "33122992912",
    "minimax-h3-pruned": "20.11",
    "wan2.1-t2v-1.3b": "1.419",
    "wan2.1-t2v-14b": "14.288",
    "wan2.1-i2v-14b": "16.395",
    "wan2.2-t2v-a14b": "14.288",
    "wan2.2-i2v-a14b": "14.289",
    "wan2.2-ti2v-5b": "5.000",
    "ltx-video-2b": "1.923",
    "ltx-video-13b": "13.043",
    "ltx-2": "19.585",
    "hunyuan-video": "12.821",
    "hunyuan-video-1.5": "8.327",
    "cogvideox-2b": "1.694",
    "cogvideox-5b": "5.570",
    "cogvideox1.5-5b": "5.571",
    "mochi-1": "10.028",
}
ENCODER_PARAMETERS = {
    "qwen3-vl-32b-50": "25.753",
    "umt5-xxl": "5.681",
    "t5-xxl": "4.762",
    "gemma-3-12b": "12.19",
    "llava-llama-3-8b": "7.505",
    "qwen2.5-vl-7b": "7.747",
}


def digits(count, published):
    """`count` written with as many digits as the published number of billions."""
    return f"{count / 1e9:.{len(published.split('.')[1])}f}" if "." in published else str(count)


@pytest.mark.parametrize(("name", "published"), PARAMETERS.items())
def test_parameters(name, published):
    assert digits(CATALOG[name].parameters, published) == published


@pytest.mark.parametrize(("name", "published"), ENCODER_PARAMETERS.items())
def test_encoders(name, published):
    assert digits(ENCODERS[name].parameters, published) == published


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("minimax-h3-vae", 2603.9), ("minimax-h3-audio-vae", 151.3), ("wan2.1-vae", 126.9),
        ("wan2.2-vae", 704.7), ("cogvideox-vae", 215.6), ("mochi-vae", 459.7),
        ("ltx-video-vae", 419.2), ("ltx-video-0.9.7-vae", 1246.9),
    ],
)  # fmt: skip
def test_vaes(name, millions):
    assert round(VAES[name].parameters / 1e6, 1) == millions


def test_minimax_h3_by_part():
    """Section 1.2 of the facts, counted from ComfyUI's class."""
    spec = CATALOG["minimax-h3"]
    parts = spec.parts()
    assert parts["blocks AdaLN linear"] == 13_010_457_600
    assert parts["blocks mlp.fc1"] == 7_707_033_600
    assert parts["blocks qkv"] == 5_780_275_200
    assert parts["blocks mlp.fc2"] == 3_853_516_800
    assert parts["blocks attn out"] == 1_926_758_400
    assert parts["token refiner"] == 770_730_752
    assert parts["final layer"] == 29_605_760
    assert parts["condition_proj"] == 27_530_496
    assert parts["time embedder"] == 15_835_008
    assert parts["patch projections"] == 698_880
    assert sum(parts.values()) == spec.parameters == 33_122_992_912
    # The official index: 2 bytes a weight and 4 for those it keeps wide.
    wide = sum(t.elements for t in spec.tensors() if t.wide)
    assert 2 * spec.parameters + 2 * wide == 66_280_430_144
    assert spec.blocks()["blocks.0"] == 385_351_680 + 260_209_152 + 11_008


def test_twice_an_a14b():
    assert CATALOG["wan2.2-t2v-a14b"].experts == 2
    assert CATALOG["wan2.1-t2v-14b"].experts == 1


@pytest.mark.parametrize(
    ("name", "canvas", "video", "sequence"),
    [
        ("wan2.1-t2v-14b", (832, 480, 81), 32_760, 32_760),
        ("wan2.1-t2v-14b", (1280, 720, 81), 75_600, 75_600),
        ("wan2.2-ti2v-5b", (1280, 704, 121), 27_280, 27_280),
        ("hunyuan-video", (1280, 720, 129), 118_800, 118_800 + 256),
        ("cogvideox-5b", (720, 480, 49), 17_550, 17_550 + 226),
        ("cogvideox1.5-5b", (1360, 768, 81), 44_880, 44_880 + 226),
        ("mochi-1", (848, 480, 163), 44_520, 44_520 + 256),
        ("ltx-video-2b", (768, 512, 121), 6_144, 6_144),
    ],
)
def test_tokens(name, canvas, video, sequence):
    tokens = CATALOG[name].tokens(*canvas)
    assert (tokens.video, tokens.sequence) == (video, sequence)


@pytest.mark.parametrize(
    ("canvas", "runs", "latent", "video", "sound"),
    [
        ((512, 512, 22), 22, 7, 1_792, 74),
        ((640, 384, 25), 39, 12, 2_880, 130),
        ((640, 384, 48), 56, 17, 4_080, 186),
        ((864, 480, 124), 124, 37, 14_985, 414),
        ((960, 544, 124), 124, 37, 18_870, 414),
        ((1344, 768, 124), 124, 37, 37_296, 414),
        ((1344, 768, 362), 362, 107, 107_856, 1_206),
    ],
)
def test_tokens_of_minimax_h3(canvas, runs, latent, video, sound):
    """Section 1.4: what is asked, what runs, and the rows of the packed sequence."""
    spec = CATALOG["minimax-h3"]
    assert spec.runs_as(canvas[2]) == runs
    tokens = spec.tokens(*canvas[:2], runs, text=100)
    assert (tokens.latent[0], tokens.video, tokens.sound) == (latent, video, sound)
    assert tokens.sequence == 100 + video + sound
    with_picture = spec.tokens(*canvas[:2], runs, text=100, pictures=1)
    assert with_picture.sequence - tokens.sequence == canvas[0] * canvas[1] // 1024


def test_illegal_sizes_name_the_legal_ones():
    with pytest.raises(UsageError, match=r"height 720 is not a multiple of 32 .* 704 or 736"):
        CATALOG["minimax-h3"].tokens(1280, 720, 124)
    with pytest.raises(UsageError, match=r"frames 48 is not 17k\+5 .* 39 or 56"):
        CATALOG["minimax-h3"].tokens(640, 384, 48)
    with pytest.raises(UsageError, match="must not be negative"):
        CATALOG["minimax-h3"].tokens(640, 384, 56, text=-1)


@given(
    st.sampled_from(sorted(CATALOG)), st.integers(1, 4000), st.integers(1, 4000),
    st.integers(1, 1000),
)  # fmt: skip
def test_the_nearest_is_legal_and_near(name, width, height, frames):
    spec = CATALOG[name]
    w, h, f = spec.nearest(width, height, frames)
    step = spec.family.size_multiple
    assert f >= frames and f - frames < max(spec.family.frame_step, spec.family.frame_first)
    for asked, given_ in ((width, w), (height, h)):
        assert abs(given_ - asked) <= step / 2 or (given_ == step and asked < step)
    tokens = spec.tokens(w, h, f)
    assert tokens.video == tokens.grid[0] * tokens.grid[1] * tokens.grid[2] > 0
    assert spec.nearest(w, h, f) == (w, h, f)
    assert spec.tokens(w, h, spec.runs_as(f + 1)).sequence > tokens.sequence


def test_families_of_cogvideox_and_mochi():
    assert COGVIDEOX.latent_frames(49) == 13
    assert COGVIDEOX_15.latent_frames(81) == 21 and COGVIDEOX_15.token_frames(81) == 11
    assert MOCHI.latent_frames(163) == 28
    with pytest.raises(UsageError, match=r"frames 48 is not 8k\+1 .* 41 or 49"):
        COGVIDEOX.check(720, 480, 48)


@pytest.mark.parametrize(
    ("asked", "name"),
    [("H3", "minimax-h3"), ("wan_2.2", None), ("LTX", "ltx-video-2b"), ("mochi", "mochi-1")],
)
def test_names(asked, name):
    if name:
        assert model_spec(asked).name == name
    else:
        with pytest.raises(UsageError, match=r"'wan_2.2' is not known; did you mean .*wan2\.2"):
            model_spec(asked)


def test_a_name_like_nothing_lists_all():
    with pytest.raises(UsageError, match=r"known: minimax-h3, minimax-h3-pruned, wan2\.1"):
        model_spec("qqqq")


def test_names_and_aliases_are_distinct():
    names = [n for spec in CATALOG.values() for n in (spec.name, *spec.aliases)]
    assert len(names) == len(set(names))


@every_model
def test_tensors_are_named_once(name):
    names = [t.name for t in CATALOG[name].tensors()]
    assert len(names) == len(set(names))


@every_model
def test_blocks_are_part_of_the_whole(name):
    spec = CATALOG[name]
    assert len(spec.blocks()) >= spec.denoiser.layers
    assert 0.5 < sum(spec.blocks().values()) / spec.parameters < 1


def test_importing_the_catalog_is_quick_and_generates_nothing():
    code = (
        "import h3video.models, time; t = time.process_time()\n"
        "import h3video.models.catalog as c; print(time.process_time() - t)\n"
        "from h3video.models import spec; print(spec._tensors.cache_info().currsize)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(3)
    ]
    assert min(float(r.stdout.split()[0]) for r in runs) < 0.02
    assert runs[0].stdout.split()[1] == "0"
