"""The tensors that the catalog generates, against the classes that load the published files.

ComfyUI's classes are compared where COMFYUI_PATH points at a ComfyUI that has them (0.33 knows
all); the tests of /tests/comfy start one, this one only builds its models on the meta device.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from h3video.models.catalog import CATALOG, ENCODERS, VAES

torch = pytest.importorskip("torch")


def meta(make):
    """{name: shape} of a model built without memory."""
    with torch.device("meta"):
        return {k: tuple(v.shape) for k, v in make().state_dict().items()}


def count(shapes):
    total = 0
    for shape in shapes:
        n = 1
        for side in shape:
            n *= side
        total += n
    return total


def encoder_classes():
    tr = pytest.importorskip("transformers")

    def qwen25():
        c = tr.Qwen2_5_VLConfig()
        t, v = c.text_config, c.vision_config
        t.hidden_size, t.intermediate_size, t.num_hidden_layers = 3584, 18944, 28
        t.num_attention_heads, t.num_key_value_heads, t.vocab_size = 28, 4, 152064
        t.layer_types = ["full_attention"] * 28
        v.hidden_size, v.intermediate_size, v.out_hidden_size = 1280, 3420, 3584
        return tr.Qwen2_5_VLModel(c)

    def qwen3():
        c = tr.Qwen3VLConfig()
        t, v = c.text_config, c.vision_config
        t.hidden_size, t.intermediate_size, t.num_hidden_layers = 5120, 25600, 50
        t.num_attention_heads, t.num_key_value_heads, t.head_dim = 64, 8, 128
        t.vocab_size, v.hidden_size, v.intermediate_size, v.depth = 151936, 1152, 4304, 27
        v.out_hidden_size, v.deepstack_visual_indexes = 5120, [8, 16, 24]
        return tr.Qwen3VLModel(c)

    def llama():
        return tr.LlamaModel(tr.LlamaConfig(
            hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
            num_attention_heads=32, num_key_value_heads=8, vocab_size=128320,
        ))  # fmt: skip

    def gemma():
        return tr.Gemma3TextModel(tr.Gemma3TextConfig(
            hidden_size=3840, intermediate_size=15360, num_hidden_layers=48,
            num_attention_heads=16, num_key_value_heads=8, head_dim=256, vocab_size=262208,
        ))  # fmt: skip

    def t5(**more):
        return tr.T5EncoderModel(tr.T5Config(feed_forward_proj="gated-gelu", **more))

    xxl = dict(d_model=4096, d_ff=10240, d_kv=64, num_heads=64, num_layers=24)
    return {
        "qwen3-vl-32b-50": qwen3, "qwen2.5-vl-7b": qwen25, "llava-llama-3-8b": llama,
        "gemma-3-12b": gemma, "t5-xxl": lambda: t5(vocab_size=32128, **xxl),
        "umt5-xxl": lambda: tr.UMT5EncoderModel(
            tr.UMT5Config(vocab_size=256384, feed_forward_proj="gated-gelu", **xxl)
        ),
        "byt5-small-glyph": lambda: t5(
            d_model=1472, d_ff=3584, d_kv=64, num_heads=6, num_layers=12, vocab_size=1510
        ),
        "clip-l": lambda: tr.CLIPTextModel(
            tr.CLIPTextConfig(hidden_size=768, intermediate_size=3072)
        ),
        "clip-vision-h": lambda: tr.CLIPVisionModel(tr.CLIPVisionConfig(
            hidden_size=1280, intermediate_size=5120, num_hidden_layers=32, patch_size=14,
            num_attention_heads=16,
        )),
        "siglip-so400m": lambda: tr.SiglipVisionModel(tr.SiglipVisionConfig(
            hidden_size=1152, intermediate_size=4304, num_hidden_layers=27,
            num_attention_heads=16, image_size=384, patch_size=14, vision_use_head=False,
        )),
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(ENCODERS) - {"nano-text"}))
def test_encoders(name):
    """Every shape the class has, as often, and no other (names differ by prefixes only)."""
    state = meta(encoder_classes()[name])
    state.pop("encoder.embed_tokens.weight", None) if "shared.weight" in state else None
    ours = [t for t in ENCODERS[name].tensors() if name != "gemma-3-12b" or t.part != "vision"]
    assert Counter(state.values()) == Counter(t.shape for t in ours)


def vae_classes():
    d = pytest.importorskip("diffusers")
    return {
        "minimax-h3-vae": lambda: d.AutoencoderKLMiniMaxH3(),
        "wan2.1-vae": lambda: d.AutoencoderKLWan(),
        "wan2.2-vae": lambda: d.AutoencoderKLWan(
            base_dim=160, decoder_base_dim=256, z_dim=48, is_residual=True, in_channels=12,
            out_channels=12, patch_size=2, scale_factor_spatial=16,
        ),
        "hunyuan-video-vae": lambda: d.AutoencoderKLHunyuanVideo(),
        "hunyuan-video-1.5-vae": lambda: d.AutoencoderKLHunyuanVideo15(),
        "cogvideox-vae": lambda: d.AutoencoderKLCogVideoX(
            block_out_channels=(128, 256, 256, 512), latent_channels=16, layers_per_block=3
        ),
        "mochi-vae": lambda: d.AutoencoderKLMochi(),
        "ltx-video-vae": lambda: d.AutoencoderKLLTXVideo(),
        "ltx-video-0.9.7-vae": lambda: d.AutoencoderKLLTXVideo(
            block_out_channels=(128, 256, 512, 1024, 2048),
            down_block_types=("LTXVideo095DownBlock3D",) * 4, spatio_temporal_scaling=(True,) * 4,
            decoder_block_out_channels=(256, 512, 1024), layers_per_block=(4, 6, 6, 2, 2),
            decoder_layers_per_block=(5, 5, 5, 5), decoder_spatio_temporal_scaling=(True,) * 3,
            decoder_inject_noise=(False,) * 4, upsample_residual=(True,) * 3,
            downsample_type=("spatial", "temporal", "spatiotemporal", "spatiotemporal"),
            upsample_factor=(2, 2, 2), timestep_conditioning=True,
        ),
        "ltx-2-vae": lambda: d.AutoencoderKLLTX2Video(),
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(VAES) - {
    "nano-vae", "minimax-h3-audio-vae", "ltx-2-audio-vae"}))  # fmt: skip
def test_vaes(name):
    """Both halves; classes and files differ by a few statistics of the latents."""
    state = meta(vae_classes()[name])
    first = {k: v for k, v in state.items() if k.startswith(("encoder.", "quant_conv."))}
    vae = VAES[name]
    assert abs(count(first.values()) - vae.encoder) <= 1e-4 * vae.encoder
    assert abs(count(state.values()) - vae.parameters) <= 1e-4 * vae.parameters


COMFY = """
    import json, sys
    sys.argv = ["x", "--cpu"]
    import comfy.options; comfy.options.enable_args_parsing()
    import torch, comfy.ops
    from comfy.ldm.wan.model import WanModel, VaceWanModel
    from comfy.ldm.minimax.model import MiniMaxH3Model
    from comfy.ldm.lightricks.model import LTXVModel
    from comfy.ldm.lightricks.av_model import LTXAVModel
    from comfy.ldm.hunyuan_video.model import HunyuanVideo
    from comfy.ldm.genmo.joint_model.asymm_models_joint import AsymmDiTJoint
    more = dict(dtype=torch.bfloat16, device="meta", operations=comfy.ops.disable_weight_init)
    def wan(dim, ffn, layers, inp, out=16, kind="t2v", cls=WanModel, **k):
        return cls(model_type=kind, dim=dim, ffn_dim=ffn, num_heads=dim // 128, num_layers=layers,
                   in_dim=inp, out_dim=out, **k, **more)
    def ltx(head, layers, cls=LTXVModel, text=4096):
        return cls(in_channels=128, cross_attention_dim=32 * head, attention_head_dim=head,
                   num_attention_heads=32, caption_channels=text, num_layers=layers, **more)
    def hunyuan(new):
        return HunyuanVideo(
            image_model="hunyuan_video", in_channels=65 if new else 16,
            out_channels=32 if new else 16, patch_size=[1, 1, 1] if new else [1, 2, 2],
            vec_in_dim=None if new else 768, context_in_dim=3584 if new else 4096,
            hidden_size=2048 if new else 3072, mlp_ratio=4, num_heads=16 if new else 24,
            depth=54 if new else 20, depth_single_blocks=0 if new else 40, axes_dim=[16, 56, 56],
            theta=256, qkv_bias=True, guidance_embed=not new, byt5=new, meanflow=False,
            use_cond_type_embedding=new, vision_in_dim=1152 if new else None, meanflow_sum=new,
            **more)
    makers = {
        "minimax-h3": lambda: MiniMaxH3Model(**more),
        "minimax-h3-pruned": lambda: MiniMaxH3Model(
            adaln_curve_grid=1025, time_embed_dim=8, **more),
        "wan2.1-t2v-1.3b": lambda: wan(1536, 8960, 30, 16),
        "wan2.1-t2v-14b": lambda: wan(5120, 13824, 40, 16),
        "wan2.1-i2v-14b": lambda: wan(5120, 13824, 40, 36, kind="i2v"),
        "wan2.2-i2v-a14b": lambda: wan(5120, 13824, 40, 36),
        "wan2.2-ti2v-5b": lambda: wan(3072, 14336, 30, 48, 48),
        "wan-vace-1.3b": lambda: wan(1536, 8960, 30, 16, kind="vace", cls=VaceWanModel,
                                     vace_layers=15, vace_in_dim=96),
        "wan-vace-14b": lambda: wan(5120, 13824, 40, 16, kind="vace", cls=VaceWanModel,
                                    vace_layers=8, vace_in_dim=96),
        "ltx-video-2b": lambda: ltx(64, 28), "ltx-video-13b": lambda: ltx(128, 48),
        "ltx-2": lambda: ltx(128, 48, LTXAVModel, 3840),
        "hunyuan-video": lambda: hunyuan(False), "hunyuan-video-1.5": lambda: hunyuan(True),
        "mochi-1": lambda: AsymmDiTJoint(
            depth=48, patch_size=2, num_heads=24, hidden_size_x=3072, hidden_size_y=1536,
            mlp_ratio_x=4.0, mlp_ratio_y=4.0, learn_sigma=False, in_channels=12, qk_norm=True,
            qkv_bias=False, out_bias=True, attn_drop=0, patch_embed_bias=True,
            posenc_preserve_area=True, timestep_mlp_bias=True, attend_to_padding=False,
            timestep_scale=1000.0, use_t5=True, t5_feat_dim=4096, t5_token_length=256,
            rope_theta=10000.0, **more),
    }
    print(json.dumps({
        n: {k: list(v.shape) for k, v in make().state_dict().items()}
        for n, make in makers.items()
    }))
"""


@pytest.fixture(scope="module")
def comfy():
    """{model: {name: shape}} from ComfyUI's classes."""
    path = os.environ.get("COMFYUI_PATH")
    if not path:
        pytest.skip("set COMFYUI_PATH to a ComfyUI (and COMFYUI_PYTHON to its Python)")
    python = os.environ.get("COMFYUI_PYTHON", sys.executable)
    run = subprocess.run(
        [python, "-c", textwrap.dedent(COMFY)], cwd=path, capture_output=True, text=True
    )
    if run.returncode:
        pytest.skip(f"this ComfyUI lacks a model: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", [n for n in CATALOG if n not in ("wan2.2-t2v-a14b", "nano")
                                  and not n.startswith("cogvideox")])  # fmt: skip
def test_comfyui_s_names_and_shapes(comfy, name):
    """Name by name: ComfyUI loads a file of exactly these tensors without a missing key."""
    ours = {t.name: list(t.shape) for t in CATALOG[name].tensors()}
    assert ours == comfy[name]
