"""Stand-ins for what of MiniMax-H3 is not small: its text encoder (25.8B) and its two VAEs.

Shapes and time grids are the real ones; contents are a picture's own colours, or noise that
follows from the words.
"""

import hashlib

import torch

TEXT_DIM = 64
"""Width of a conditioning row, see tiny_h3.py."""

COVERS = (1, 4, 4, 4, 4)
"""Frames that the latent frames of a group cover; a group is 17 frames."""


def row(*what):
    """A row of noise that depends on `what` alone."""
    digest = hashlib.sha256(repr(what).encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:6], "big"))
    return torch.randn(TEXT_DIM, generator=generator)


class H3CLIP:
    """One row a word, four a picture (tag 0); as CLIPTextEncode and MiniMaxH3ImageToVideo ask."""

    def clone(self, *_args, **_options):
        """The same object: nothing in it changes."""
        return self

    def tokenize(self, text, images=(), **_options):
        """{"h3": (token, tag) pairs}."""
        pictures = [(f"picture {i}", 0) for i in range(len(images)) for _ in range(4)]
        return {"h3": pictures + [(word, 1) for word in text.split() or [""]]}

    def encode_from_tokens(self, tokens, return_pooled=False, return_dict=False):
        """Conditioning [1, L, 64]; there is no pooled output."""
        found = tokens["h3"]
        cond = torch.stack([row(i, word) for i, (word, _) in enumerate(found)])[None]
        tags = torch.tensor([tag for _, tag in found])
        if return_dict:
            return {"cond": cond, "pooled_output": None, "minimax_token_tags": tags}
        return (cond, None) if return_pooled else cond

    def encode_from_tokens_scheduled(self, tokens, unprojected=False, add_dict=None, **_options):
        """The conditioning in the form that samplers take."""
        options = self.encode_from_tokens(tokens, return_dict=True)
        return [[options.pop("cond"), {**options, **(add_dict or {})}]]


class TestH3CLIP:
    """A text encoder that knows no language."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}

    RETURN_TYPES = ("CLIP",)
    FUNCTION = "load"
    CATEGORY = "testing"

    def load(self):
        return (H3CLIP(),)


class PictureVAE:
    """[F, H, W, 3] <-> [1, 24, T, H/16, W/16] by the mean of a block."""

    def encode(self, pixels):
        """Latents of one picture, or of 17k + 5 frames."""
        frames = pixels[..., :3].float().movedim(-1, 1)
        frames = frames[:: len(frames)] if len(frames) < 5 else frames
        small = torch.nn.functional.avg_pool2d(frames, 16) * 2 - 1
        length = 1 if len(small) == 1 else (len(small) - 5) // 17 * 5 + 2
        picks = torch.linspace(0, len(small) - 1, length).round().long()
        return small[picks].movedim(0, 1)[None].repeat(1, 8, 1, 1, 1)

    def decode(self, latent, **_options):
        """Frames in 0..1, each latent pixel as a block of 16."""
        colours = (latent[0, :3].float() * 0.25 + 0.5).clamp(0, 1).movedim(0, -1)
        times = torch.tensor([COVERS[t % 5] for t in range(len(colours))])
        return colours.repeat_interleave(times, 0).repeat_interleave(16, 1).repeat_interleave(16, 2)


class SoundVAE:
    """[1, 32, 2, T] -> [1, 800 T, 2], 32 kHz."""

    audio_sample_rate = 32000

    def __init__(self):
        self.first_stage_model = self

    def decode(self, latent, **_options):
        """A wave that follows the latent's mean."""
        return latent.float().mean(1).repeat_interleave(800, -1).movedim(1, -1).clamp(-1, 1)


class TestH3VAE:
    """A stand-in for the picture's or the sound's VAE."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"stream": (["picture", "sound"],)}}

    RETURN_TYPES = ("VAE",)
    FUNCTION = "load"
    CATEGORY = "testing"

    def load(self, stream):
        return (PictureVAE() if stream == "picture" else SoundVAE(),)
