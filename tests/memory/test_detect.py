"""Detection: every model of the catalog by its tensors, in every layout and packing; loaders."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from h3video.memory.formats import read_header
from h3video.memory.formats.header import FileHeader, StoredTensor
from h3video.memory.quants import BY_NAME, parse_quant
from h3video.memory.sizes import _recipes, gguf_types
from h3video.models.catalog import CATALOG, ENCODERS
from h3video.models.detect import detect


def stored(name, shape, kind="BF16"):
    t = BY_NAME[kind]
    size = 1
    for n in shape:
        size *= n
    return StoredTensor(name, tuple(shape), kind, 0, size // t.block * t.bytes)


def header(tensors, kind="safetensors", metadata=None, shards=()):
    size = sum(t.bytes for t in tensors)
    return FileHeader(kind, "x", metadata or {}, tuple(tensors), size, size, shards=shards)


def plain(spec, kind="BF16", prefix=""):
    return header([stored(prefix + t.name, t.shape, kind) for t in spec.tensors()])


def gguf(spec, quant, label=None):
    q = parse_quant(quant)
    types = gguf_types(spec.tensors(), q, _recipes(spec, q)[0])
    metadata = {} if label is None else {"general.architecture": label}
    return header([stored(t.name, t.shape, kind) for t, kind in types], "gguf", metadata)


def renamed(head, name):
    return replace(head, tensors=tuple(t._replace(name=name(t.name)) for t in head.tensors))


SAME = {"wan2.2-t2v-a14b": "wan2.1-t2v-14b"}
"""Models whose tensors are another's."""


@pytest.mark.parametrize("name", CATALOG)
def test_every_model_by_its_tensors(name):
    found = detect(plain(CATALOG[name]))
    assert found.spec is CATALOG[SAME.get(name, name)]
    assert found.kind == "transformer" and not found.gap and found.quant == "BF16"
    assert found.weights == CATALOG[name].parameters
    if name in SAME:
        assert any("Wan 2.2" in p for p in found.problems)


@pytest.mark.parametrize("name", CATALOG)
def test_inside_a_checkpoint(name):
    whole = plain(CATALOG[name], prefix="model.diffusion_model.")
    extra = (stored("vae.decoder.conv_in.weight", (8, 8, 3, 3)),)
    found = detect(replace(whole, tensors=whole.tensors + extra))
    assert found.spec is CATALOG[SAME.get(name, name)]
    assert found.weights == CATALOG[name].parameters
    assert any("model.diffusion_model." in p for p in found.problems)


@pytest.mark.parametrize("name", ["minimax-h3", "wan2.2-ti2v-5b", "ltx-2", "hunyuan-video"])
@pytest.mark.parametrize("quant", ["Q4_K_M", "Q2_K"])
def test_gguf(name, quant):
    found = detect(gguf(CATALOG[name], quant, "wan"))
    assert found.spec is CATALOG[name]
    assert found.quant == parse_quant(quant).base
    assert sum(size for _, size in found.types.values()) > 0


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_by_its_tensors(encoder):
    found = detect(plain(ENCODERS[encoder]))
    assert found.match.encoder is ENCODERS[encoder]
    assert found.kind == ("image encoder" if ENCODERS[encoder].kind == "image" else "text encoder")
    assert found.loads["ComfyUI"][0] == ("no" if encoder == "nano-text" else "yes")


def llama_cpp(head):
    """The text part of a language model in llama.cpp's names."""
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "mlp.up_proj": "ffn_up",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.down_proj": "ffn_down"}  # fmt: skip

    def name(old):
        new = re.sub(r"^model\.layers\.", "blk.", old).replace("model.embed_tokens", "token_embd")
        for a, b in names.items():
            new = new.replace(a, b)
        return new

    text = tuple(t for t in head.tensors if not t.name.startswith("visual."))
    return renamed(replace(head, tensors=text, kind="gguf"), name)


@pytest.mark.parametrize(
    ("label", "verdict", "why"),
    [
        ("qwen3vl", "yes", "separate mmproj file"), ("qwen3", "yes", ""),
        ("minimax_te", "no", "refused"), (None, "no", "use the safetensors file"),
    ],
)  # fmt: skip
def test_text_encoders_as_gguf(label, verdict, why):
    head = llama_cpp(plain(ENCODERS["qwen3-vl-32b-50"]))
    head = replace(head, metadata={"general.architecture": label} if label else {})
    found = detect(head)
    assert found.layout == "llama.cpp" and found.match.encoder is ENCODERS["qwen3-vl-32b-50"]
    assert found.loads["ComfyUI"][0] == "no"
    got, reason = found.loads["ComfyUI-GGUF"]
    assert got == verdict and why in reason


def test_comfyui_s_layout_of_a_text_encoder_needs_no_mmproj():
    head = replace(plain(ENCODERS["qwen3-vl-32b-50"]), kind="gguf",
                   metadata={"general.architecture": "qwen3vl"})  # fmt: skip
    found = detect(head)
    assert found.layout == "huggingface" and found.loads["ComfyUI-GGUF"] == ("yes", "")


def test_all_64_layers():
    encoder = ENCODERS["qwen3-vl-32b-50"]
    more = [
        stored(t.name.replace(".0.", f".{i}."), t.shape) for i in range(50, 64)
        for t in encoder.tensors() if t.name.startswith("model.layers.0.")
    ]  # fmt: skip
    head = plain(encoder)
    found = detect(replace(head, tensors=head.tensors + tuple(more)))
    assert found.match.encoder is encoder
    assert any("MiniMax-H3 runs 50 of them" in p for p in found.problems)


@pytest.mark.parametrize(
    ("label", "verdict", "why"),
    [
        ("minimax_h3", "no", "'minimax_h3' is refused; files labelled 'wan' are let in"),
        ("wan", "yes", "labelled 'wan', which it is not"), (None, "no", "no architecture"),
        ("pig", "no", "no architecture"),
    ],
)  # fmt: skip
def test_minimax_h3_s_labels(label, verdict, why):
    found = detect(gguf(CATALOG["minimax-h3-pruned"], "Q4_K_M", label))
    got, reason = found.loads["ComfyUI-GGUF"]
    assert got == verdict and why in reason
    assert found.loads["ComfyUI"][0] == "no" and "node pack" in found.loads["ComfyUI"][1]
    assert found.loads["h3.c"] == ("no", "h3.c reads BF16 safetensors only")
    assert found.loads["sd.cpp"][0] == "yes"
    assert found.loads["diffusers"] == ("no", "its class knows the full model only, no curve form")
    assert any("rank 8" in p for p in found.problems)


def test_labels_of_wan():
    spec = CATALOG["wan2.1-t2v-1.3b"]
    assert detect(gguf(spec, "Q8_0", "wan")).loads["ComfyUI-GGUF"] == ("yes", "")
    assert "compatibility" in detect(gguf(spec, "Q8_0")).loads["ComfyUI-GGUF"][1]
    assert "labelled 'flux'" in detect(gguf(spec, "Q8_0", "flux")).loads["ComfyUI-GGUF"][1]
    slow = detect(gguf(spec, "IQ2_XS", "wan"))
    assert slow.loads["ComfyUI-GGUF"][0] == "slow" and "IQ2_XS" in slow.loads["ComfyUI-GGUF"][1]
    assert slow.loads["diffusers"][0] == "no"


def test_hunyuan_without_a_label_is_told_by_tencent_s_names():
    head = gguf(CATALOG["hunyuan-video"], "Q8_0")
    assert detect(head).loads["ComfyUI-GGUF"][0] == "no"
    own = renamed(
        head, lambda n: n.replace("_attn.qkv", "_attn_qkv").replace("_attn.proj", "_attn_proj")
    )
    found = detect(own)
    assert found.layout == "original" and found.loads["ComfyUI-GGUF"][0] == "yes"


@pytest.mark.parametrize("name", ["wan2.1-t2v-14b", "hunyuan-video"])
def test_a_missing_convolution(name):
    head = gguf(CATALOG[name], "Q4_K_M", "wan")
    head = replace(head, tensors=tuple(t for t in head.tensors if len(t.shape) != 5))
    found = detect(head)
    assert found.spec is CATALOG[name]
    assert any("is missing: it has five dimensions" in p for p in found.problems)
    assert {v for v, _ in found.loads.values()} == {"no"}


def test_float16_of_minimax_h3():
    found = detect(plain(CATALOG["minimax-h3"], "F16"))
    assert any("F16 breaks MiniMax-H3" in p and "use BF16" in p for p in found.problems)
    assert not any("breaks" in p for p in detect(plain(CATALOG["minimax-h3"])).problems)


def test_interleaved_or_flat_is_said_to_be_open():
    found = detect(plain(CATALOG["minimax-h3"]))
    assert any("interleaved head by head" in p and "noise" in p for p in found.problems)
    assert found.loads["h3.c"][0] == "unknown"
    shards = replace(plain(CATALOG["minimax-h3"]), shards=("a", "b"))
    assert detect(shards).loads["h3.c"][0] == "yes"
    assert detect(shards).loads["ComfyUI"][0] == "no"


def packed(spec, weight, scale, factor=1, second=False):
    """A scaled file as ComfyUI stores it: the blocks' matrices and their scales."""
    out = []
    for t in spec.tensors():
        if len(t.shape) != 2 or "blocks" not in t.name:
            out.append(stored(t.name, t.shape))
            continue
        out.append(stored(t.name, (t.shape[0], t.shape[1] // factor), weight))
        base = t.name.removesuffix(".weight")
        out.append(stored(f"{base}.weight_scale", (t.shape[0], 1), scale))
        out.append(stored(f"{base}.comfy_quant", (40,), "U8"))
        if second:
            out.append(stored(f"{base}.weight_scale_2", (), "F32"))
    return header(out)


@pytest.mark.parametrize(
    ("args", "quant", "problem"),
    [
        (("F8_E4M3", "F32"), "scaled fp8", "no float8"), (("I8", "F32"), "INT8", "aten::_int_mm"),
        (("U8", "F32", 2), "INT4", "ConvRot"), (("U8", "F8_E4M3", 2, True), "NVFP4", "CUDA only"),
    ],
)  # fmt: skip
def test_scaled_files(args, quant, problem):
    spec = CATALOG["minimax-h3-pruned"]
    found = detect(packed(spec, *args))
    assert found.spec is spec and found.quant == quant and found.weights == spec.parameters
    assert any(problem in p for p in found.problems)
    assert found.loads["diffusers"][0] == "no" and found.loads["ComfyUI"][0] == "yes"


def test_reshaped_rows_of_gguf():
    """MiniMax-H3's 2688 wide modulation, stored as rows of 256 with its shape beside."""
    head = gguf(CATALOG["minimax-h3"], "Q4_K_M", "wan")
    tensors, metadata = [], dict(head.metadata)
    for t in head.tensors:
        if "adaln" in t.name and len(t.shape) == 2:
            metadata[f"comfy.gguf.orig_shape.{t.name}"] = list(t.shape)
            t = t._replace(shape=(t.shape[0] * t.shape[1] // 256, 256))
        tensors.append(t)
    found = detect(replace(head, tensors=tuple(tensors), metadata=metadata))
    assert found.spec is CATALOG["minimax-h3"]
    assert found.weights == CATALOG["minimax-h3"].parameters


def test_what_is_not_in_the_catalog_is_a_gap():
    spec = CATALOG["wan2.1-t2v-1.3b"]
    less = [stored(t.name, t.shape) for t in spec.tensors() if not t.name.startswith("blocks.29.")]
    found = detect(header(less))
    assert found.spec is None and found.match.family == "Wan" and "no catalog entry" in found.gap
    assert any("29 blocks" in p for p in found.problems)
    unknown = detect(header([stored("some.weight", (4, 4))]))
    assert unknown.kind == "unknown" and "16 values" in unknown.gap and not unknown.loads
    assert detect(header([])).gap == "it holds no tensors"
    gates = plain(CATALOG["ltx-2"])
    gate = stored("transformer_blocks.0.attn1.to_gate_logits.weight", (32, 4096))
    gates = replace(gates, tensors=(*gates.tensors, gate))
    assert detect(gates).spec is None and "LTX-2.3" in detect(gates).problems[0]


def test_merged_weights_are_said():
    spec = CATALOG["mochi-1"]
    head = plain(spec)
    found = detect(replace(head, tensors=head.tensors + (stored("more.weight", (40_000, 40_000)),)))
    assert any(
        "11,627,677,744 weights, and mochi-1 has 10,027,677,744" in p for p in found.problems
    )


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ({"blocks.0.self_attn.q.lora_A.weight": (8, 64), "blocks.0.self_attn.q.lora_B.weight":
          (64, 8)}, "lora"),
        ({"v.blk.0.attn_q.weight": (64, 64), "mm.0.weight": (64, 64)}, "mmproj"),
        ({"double_blocks.0.img_attn.proj.weight": (64, 64)}, "transformer"),
        ({"encoder.conv1.weight": (8, 3, 3, 3, 3), "decoder.conv1.weight": (8, 3, 3, 3, 3)}, "vae"),
    ],
)  # fmt: skip
def test_other_files(names, kind):
    found = detect(header([stored(n, s) for n, s in names.items()]))
    assert found.kind == kind and found.spec is None


def test_nano_s_files():
    from tests.memory.test_formats import NANO

    found = detect(read_header(NANO / "transformer/diffusion_pytorch_model.safetensors"))
    assert found.spec is CATALOG["nano"] and found.layout == "diffusers" and found.quant == "F16"
    assert found.loads["diffusers"][0] == "yes" and found.loads["ComfyUI"][0] == "no"
    assert detect(read_header(NANO / "vae/diffusion_pytorch_model.safetensors")).match.vae
    text = detect(read_header(NANO / "text_encoder/model.safetensors"))
    assert text.match.encoder is ENCODERS["nano-text"]


DIFFUSERS = {
    "minimax-h3": ("MiniMaxH3Transformer3DModel", {}),
    "wan2.1-t2v-1.3b": ("WanTransformer3DModel",
                        dict(num_attention_heads=12, ffn_dim=8960, num_layers=30)),
    "wan2.1-i2v-14b": ("WanTransformer3DModel",
                       dict(num_attention_heads=40, ffn_dim=13824, num_layers=40, in_channels=36,
                            image_dim=1280, added_kv_proj_dim=5120)),
    "wan2.2-ti2v-5b": ("WanTransformer3DModel",
                       dict(num_attention_heads=24, ffn_dim=14336, num_layers=30, in_channels=48,
                            out_channels=48)),
    "wan-vace-1.3b": ("WanVACETransformer3DModel",
                      dict(num_attention_heads=12, ffn_dim=8960, num_layers=30,
                           vace_layers=list(range(0, 30, 2)))),
    "ltx-video-2b": ("LTXVideoTransformer3DModel", {}),
    "ltx-video-13b": ("LTXVideoTransformer3DModel",
                      dict(attention_head_dim=128, num_layers=48, cross_attention_dim=4096)),
    "ltx-2": ("LTX2VideoTransformer3DModel", {}),
    "hunyuan-video": ("HunyuanVideoTransformer3DModel", {}),
    "hunyuan-video-1.5": ("HunyuanVideo15Transformer3DModel", {}),
    "cogvideox-2b": ("CogVideoXTransformer3DModel", {}),
    "cogvideox-5b": ("CogVideoXTransformer3DModel",
                     dict(num_attention_heads=48, num_layers=42,
                          use_rotary_positional_embeddings=True)),
    "cogvideox1.5-5b": ("CogVideoXTransformer3DModel",
                        dict(num_attention_heads=48, num_layers=42, patch_size_t=2,
                             use_rotary_positional_embeddings=True, patch_bias=True)),
    "mochi-1": ("MochiTransformer3DModel", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFUSERS)
def test_against_the_classes_of_diffusers(name):
    """Layout, detection and parameters of the real class, on the meta device."""
    torch = pytest.importorskip("torch")
    diffusers = pytest.importorskip("diffusers")
    kind, config = DIFFUSERS[name]
    if not hasattr(diffusers, kind):
        pytest.skip(f"this diffusers has no {kind}")
    with torch.device("meta"):
        state = getattr(diffusers, kind)(**config).state_dict()
    found = detect(header([stored(k, tuple(v.shape)) for k, v in state.items()]))
    spec = CATALOG[name]
    assert found.layout == "diffusers" and found.match.spec is spec
    count = sum(v.numel() for v in state.values())
    if name == "ltx-2":  # diffusers keeps the connectors in a part of their own
        count += spec.parts()["connectors"] + 8 * 3840  # and counts their norms there
    own = sum(t.elements for t in spec.tensors() if t.name != "rope.inv_freq")
    assert count == own
    if name.startswith("cogvideox"):  # published in diffusers' own names
        assert {k: tuple(v.shape) for k, v in state.items()} == {
            t.name: t.shape for t in spec.tensors()
        }


@given(
    st.lists(
        st.tuples(st.text(max_size=30), st.lists(st.integers(0, 9), max_size=5)), max_size=20,
        unique_by=lambda pair: pair[0],
    ),
    st.dictionaries(st.text(max_size=9), st.integers() | st.text(max_size=5), max_size=3),
)  # fmt: skip
def test_any_header_is_described(tensors, metadata):
    found = detect(header([stored(n, s) for n, s in tensors], "gguf", metadata))
    assert found.gap or found.match


EVERYTHING = [*CATALOG.values(), *ENCODERS.values()]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(EVERYTHING), st.integers(1, 40), st.randoms(use_true_random=False))
def test_real_names_with_odd_shapes_do_not_break_it(spec, one_in, random):
    """A file may have a model's names and any shapes, or lack some."""
    tensors = []
    for t in spec.tensors():
        if random.randrange(one_in):
            tensors.append(stored(t.name, t.shape))
        elif random.randrange(2):
            tensors.append(
                stored(t.name, [random.randrange(9) for _ in range(random.randrange(6))])
            )
    found = detect(header(tensors))
    assert found.gap or found.match


def test_any_object_with_these_fields_is_a_header():
    tensors = [SimpleNamespace(name="a", shape=(2,), type="F32", bytes=8)]
    assert detect(SimpleNamespace(kind="gguf", metadata={}, tensors=tensors, shards=())).gap
