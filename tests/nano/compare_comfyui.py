"""compare_comfyui.py COMFYUI MODELS: diffusers and ComfyUI's own classes on the same inputs.

A process of its own, because ComfyUI reads sys.argv on import and takes the names `comfy`
and `nodes`. Fails with AssertionError when outputs differ by more than 1e-4 (float32).
"""

import sys
from pathlib import Path

comfyui, models = sys.argv[1], Path(sys.argv[2])
sys.argv = [sys.argv[0], "--cpu"]
sys.path.insert(0, comfyui)
sys.path.insert(1, str(Path(__file__).parents[2]))

import torch
from diffusers import AutoencoderKLWan, WanTransformer3DModel
from safetensors.torch import load_file

from h3video import nano
from h3video.nano.export_comfy import DIT_FILE, VAE_FILE

LIMIT = 1e-4


def close(name, ours, theirs):
    worst = (ours - theirs).abs().max().item()
    print(f"{name}: largest difference {worst:.2e}, largest value {ours.abs().max().item():.2f}")
    assert worst < LIMIT, name


def main():
    import comfy.options

    comfy.options.enable_args_parsing()  # else --cpu is not read
    import comfy.ops
    from comfy.ldm.wan.model import WanModel
    from comfy.ldm.wan.vae import WanVAE
    from comfy.model_detection import model_config_from_unet

    torch.manual_seed(0)
    state = {k: v.float() for k, v in load_file(models / DIT_FILE).items()}
    config = model_config_from_unet(dict(state), "")
    assert type(config).__name__ == "WAN21_T2V", type(config)
    unet = {k: v for k, v in config.unet_config.items() if k != "image_model"}
    theirs = WanModel(**unet, operations=comfy.ops.disable_weight_init, dtype=torch.float32)
    theirs.load_state_dict(state)
    ours = WanTransformer3DModel.from_pretrained(
        nano.path(), subfolder="transformer", torch_dtype=torch.float32
    )
    x, t = torch.randn(2, 16, 5, 12, 20), torch.tensor([900.0, 250.0])
    text = torch.randn(2, 32, 4096)
    with torch.no_grad():
        a = ours(x, t, text, return_dict=False)[0]
        close("transformer", a, theirs.eval()(x, t, text))

    state = {k: v.float() for k, v in load_file(models / VAE_FILE).items()}
    dim = state["decoder.head.0.gamma"].shape[0]
    vae = WanVAE(dim=dim, z_dim=16, dim_mult=[1, 2, 4, 4], num_res_blocks=2, attn_scales=[],
                 temperal_downsample=[False, True, True], dropout=0.0)  # fmt: skip
    vae.load_state_dict(state)
    own = AutoencoderKLWan.from_pretrained(nano.path(), subfolder="vae", torch_dtype=torch.float32)
    clip, latents = torch.rand(1, 3, 9, 64, 96) * 2 - 1, torch.randn(1, 16, 3, 8, 12)
    with torch.no_grad():
        close("encode", own.encode(clip).latent_dist.mode(), vae.eval().encode(clip))
        close("decode", own.decode(latents).sample, vae.decode(latents).clamp(-1, 1))


if __name__ == "__main__":
    main()
