"""The VAE on held-out clips, and at the size of the demo."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from h3video.nano.data import render
from h3video.nano.follow import FRAMES, HEIGHT, PSNR_LIMIT, WIDTH, held_out_scenes, pipeline
from h3video.nano.vae import psnr


@pytest.mark.slow_model
def test_psnr():
    scenes = held_out_scenes(13, seed=5)
    with pipeline() as pipe:
        small = [psnr(pipe.vae, render(s, WIDTH, HEIGHT, FRAMES)) for s in scenes[:12]]
        large = psnr(pipe.vae, render(scenes[12], 480, 288, 9))
    assert np.mean(small) >= PSNR_LIMIT, small
    assert large >= PSNR_LIMIT
