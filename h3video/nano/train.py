"""`python -m h3video.nano.train`: make the embedded model from nothing, on a CPU, within 2 hours.

Four stages, each kept in --out and not repeated when it is there: the VAE on
frames, the VAE on clips, the training clips as latents, the transformer with the
text encoder. The transformer goes on from its checkpoint with --resume.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from . import latents, train_transformer, train_vae
from .pack import pack
from .vae import make_vae


def main() -> None:
    """Train everything and write the weights folder."""
    p = argparse.ArgumentParser(prog="python -m h3video.nano.train", description=__doc__)
    p.add_argument("--out", type=Path, default=Path("nano-training"), help="checkpoints")
    p.add_argument("--weights", type=Path, default=Path(__file__).with_name("weights"))
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--frame-minutes", type=float, default=9.0)
    p.add_argument("--clip-minutes", type=float, default=12.0)
    p.add_argument("--transformer-minutes", type=float, default=150.0)
    p.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    a = p.parse_args()
    state = torch.load(train_vae.train(a.out, a.seed, (a.frame_minutes, a.clip_minutes)))
    vae = make_vae()
    vae.load_state_dict(state)
    vae.eval().to(torch.bfloat16)
    stats = a.out / "statistics.pt"
    if not stats.exists():
        torch.save(latents.statistics(vae, a.seed), stats)
    mean, std = torch.load(stats)
    latents.make(vae, a.out / "latents", mean, std, a.seed)
    path = train_transformer.train(a.out, a.seed, a.transformer_minutes, a.resume)
    size = pack(a.weights, state, mean, std, torch.load(path)["average"])
    print(f"{size} bytes of weights written to {a.weights}")


if __name__ == "__main__":
    main()
