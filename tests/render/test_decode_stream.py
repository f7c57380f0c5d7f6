"""Decoding frame by frame: the same bits as at once, and no more memory for more frames."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")
pytest.importorskip("safetensors")

from safetensors.torch import save_file

from h3video import nano
from h3video.errors import UsageError
from h3video.models import WAN
from h3video.render import decode_stream
from h3video.render.decode_stream import LatentFile, can_stream, stream_frames, stream_pictures
from h3video.tiling import plan_crop_tiles
from h3video.tiling.decode import decode_crops

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def vae():
    return narrow()


def narrow():
    """Wan 2.1's VAE, a few channels wide."""
    torch.manual_seed(0)
    return diffusers.AutoencoderKLWan(
        base_dim=2, z_dim=4, dim_mult=[1, 1, 2, 2], num_res_blocks=1,
        latents_mean=[0.1, 0.0, -0.2, 0.3], latents_std=[1.0, 0.5, 2.0, 1.5],
    ).eval()  # fmt: skip


def wan22():
    """The narrow form of Wan 2.2's VAE: residual blocks and patches of 2."""
    torch.manual_seed(0)
    return diffusers.AutoencoderKLWan(
        base_dim=8, decoder_base_dim=8, z_dim=4, dim_mult=[1, 2, 2, 2], num_res_blocks=1,
        temperal_downsample=[False, True, True], is_residual=True, patch_size=2, in_channels=12,
        out_channels=12, scale_factor_spatial=16, latents_mean=[0.0] * 4, latents_std=[1.0] * 4,
    ).eval()  # fmt: skip


def latents(frames, rows=6, columns=10, channels=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, channels, frames, rows, columns, generator=generator)


def at_once(vae, z):
    raw = decode_stream._raw(vae, z)
    with torch.inference_mode():
        return vae.decode(raw, return_dict=False)[0][0].transpose(0, 1)  # [F, 3, H, W]


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_frames_are_those_of_the_whole_clip(vae, frames):
    z = latents(frames)
    want = at_once(vae, z)
    got = torch.stack(list(stream_pictures(vae, z)))
    assert len(got) == 4 * frames - 3 and torch.equal(got, want)


def test_nano_too():
    vae = diffusers.AutoencoderKLWan.from_pretrained(nano.path(), subfolder="vae").eval()
    z = latents(2, 4, 4, channels=16)
    assert torch.equal(torch.stack(list(stream_pictures(vae, z))), at_once(vae, z))


def test_wan_22_too():
    vae, z = wan22(), latents(3)
    got = torch.stack(list(stream_pictures(vae, z)))
    assert got.shape[2:] == (96, 160) and torch.equal(got, at_once(vae, z))


@pytest.mark.parametrize("block", [1, 2, 8])
def test_crops_are_those_of_the_crop_decoder(vae, block):
    plan = plan_crop_tiles(192, 64, WAN, overlap=8.0, budget=0.6)
    assert len(plan.tiles) > 1
    z = latents(3, 8, 24)
    raw = decode_stream._raw(vae, z)
    with torch.inference_mode():
        want = decode_crops(plan, raw, lambda crop: vae.decode(crop, return_dict=False)[0])
    done = []
    got = torch.stack(list(stream_pictures(vae, z, plan, done.append, block)))
    assert torch.equal(got, want[0].transpose(0, 1))
    assert sum(done) == pytest.approx(1.0)


def test_bytes_and_16_bit(vae):
    z = latents(2)
    frames = list(stream_frames(vae, z))
    assert frames[0].shape == (48, 80, 3) and frames[0].dtype == np.uint8
    want = (at_once(vae, z)[3] * 127.5 + 127.5).round().clamp(0, 255).permute(1, 2, 0)
    assert np.array_equal(frames[3], want.to(torch.uint8).numpy())
    near = np.stack(list(stream_frames(narrow().bfloat16(), z))).astype(int)
    assert np.abs(near - np.stack(frames)).mean() < 3.0


def test_latents_are_read_a_block_at_a_time(vae, tmp_path, monkeypatch):
    z = latents(7)
    save_file({"latents": z}, str(tmp_path / "z.safetensors"))
    file = LatentFile(tmp_path / "z.safetensors")
    read = []
    original = LatentFile.__getitem__
    monkeypatch.setattr(
        LatentFile, "__getitem__", lambda self, key: read.append(key[2]) or original(self, key)
    )
    got = torch.stack(list(stream_pictures(vae, file)))
    assert torch.equal(got, at_once(vae, z))
    assert read == [slice(t, t + 1) for t in range(7)]
    with pytest.raises(UsageError, match="holds no sound"):
        LatentFile(tmp_path / "z.safetensors", "sound")
    save_file({"latents": z[0]}, str(tmp_path / "y.safetensors"))
    with pytest.raises(UsageError, match="are not"):
        LatentFile(tmp_path / "y.safetensors")


def test_other_decoders_decode_the_whole():
    torch.manual_seed(0)
    vae = diffusers.AutoencoderKLLTXVideo(
        latent_channels=6, block_out_channels=(8, 8, 8, 8),
        decoder_block_out_channels=(8, 8, 8, 8), layers_per_block=(1, 1, 1, 1, 1),
        decoder_layers_per_block=(1, 1, 1, 1, 1),
    ).eval()  # fmt: skip
    assert not can_stream(vae)
    z, done = latents(2, 3, 4, 6), []
    vae.register_to_config(latents_mean=None)
    frames = list(stream_pictures(vae, z, None, done.append))
    with torch.inference_mode():
        want = vae.decode(z, return_dict=False)[0][0].transpose(0, 1)
    assert len(frames) == 9 and torch.equal(torch.stack(frames), want) and done == [1.0]


def test_a_stop_reaches_the_decoder_and_the_vae_is_as_before(vae):
    z = latents(4)
    want = at_once(vae, z)

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(stream_pictures(vae, z, None, stop))
    assert torch.equal(at_once(vae, z), want)
    two = zip(stream_pictures(vae, z), stream_pictures(vae, latents(4, seed=1)))
    assert torch.equal(torch.stack([a for a, _ in two]), want)  # two clips at the same time


GROWTH = """
import resource, sys
from pathlib import Path
import torch, diffusers
from h3video.render.decode_stream import LatentFile, stream_frames
from h3video.render.video import open_writer

def used():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

torch.set_num_threads(1)
torch.manual_seed(0)
vae = diffusers.AutoencoderKLWan(
    base_dim=2, z_dim=4, dim_mult=[1, 1, 1, 1], num_res_blocks=1, latents_mean=[0.0] * 4,
    latents_std=[1.0] * 4,
).eval()
early = most = 0
with open_writer(Path(sys.argv[2]), 64, 48, 16) as out:
    for i, frame in enumerate(stream_frames(vae, LatentFile(Path(sys.argv[1])))):
        out.write(frame)
        if i % 8 == 0:
            most = max(most, used())
        if i == 81:
            early = most
print(i + 1, most - early)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_thousand_frames_take_less_than_a_chunk_more(tmp_path):
    """1,001 frames from file to file: memory grows by less than a chunk of 81 float32 frames."""
    save_file({"latents": latents(251, 6, 8)}, str(tmp_path / "z.safetensors"))
    run = subprocess.run(
        [sys.executable, "-c", GROWTH, str(tmp_path / "z.safetensors"), str(tmp_path / "a.mp4")],
        cwd=ROOT, capture_output=True, text=True,
        # Freed memory goes back to the system at once, so that what is seen is what is held.
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1",
             "MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    frames, growth = map(int, run.stdout.split())
    chunk = 81 * 64 * 48 * 3 * 4
    print(f"{growth / chunk:.2f} chunks")
    assert frames == 1001 and growth < chunk, (growth, chunk)
