"""Tiny random transformers of every family in diffusers, each with one call to make."""

from dataclasses import dataclass, field

import pytest

TALL, WIDE = 11, 19
"""Token rows and columns: nothing divides evenly."""


@dataclass
class Tiny:
    """A transformer and the arguments of one forward pass.

    frames    latent frames; the frame starts at token `start` of the sequence `hidden_states`
    """

    transformer: object
    call: dict
    frames: int
    start: int = 0
    pipe: object = field(init=False)

    def __post_init__(self):
        self.pipe = Pipe(self.transformer)

    def run(self):
        """The outputs, always as a tuple."""
        import torch

        with torch.no_grad():
            return self.transformer(**self.call, return_dict=False)

    @property
    def blocks(self):
        """All blocks in order."""
        t = self.transformer
        if hasattr(t, "blocks"):
            return list(t.blocks)
        return list(t.transformer_blocks) + list(getattr(t, "single_transformer_blocks", []))


class Pipe:
    """What apply_hex_tiling needs of a pipeline."""

    vae = None

    def __init__(self, transformer):
        self.transformer = transformer


def tame(model, seed=5):
    """Random weights whose outputs stay of order one."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, value in sorted(model.named_parameters()):
            if value.ndim > 1:
                spread = 1.0 / max(1, value[0].numel()) ** 0.5
                value.copy_(torch.randn(value.shape, generator=generator) * spread)
            elif name.endswith("weight"):
                value.fill_(1.0)
            else:
                value.copy_(torch.randn(value.shape, generator=generator) * 0.05)
    return model.eval()


def noise(*shape, seed=1):
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def wan(**changes):
    import torch
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(**dict(
        num_attention_heads=2, attention_head_dim=24, in_channels=16, out_channels=16, text_dim=32,
        freq_dim=64, ffn_dim=96, num_layers=3,
    ) | changes)  # fmt: skip
    call = dict(
        hidden_states=noise(1, model.config.in_channels, 3, 2 * TALL, 2 * WIDE),
        timestep=torch.tensor([500.0]), encoder_hidden_states=noise(1, 12, 32, seed=2),
    )  # fmt: skip
    return Tiny(tame(model), call, 3)


def wan_i2v():
    """Concat latents, and an image's tokens before 512 of text."""
    tiny = wan(in_channels=36, image_dim=20, added_kv_proj_dim=48)
    tiny.call |= dict(
        encoder_hidden_states=noise(1, 512, 32, seed=2),
        encoder_hidden_states_image=noise(1, 7, 20, seed=3),
    )
    return tiny


def wan_per_token():
    """Wan 2.2 5B: a timestep for every token."""
    import torch

    tiny = wan()
    steps = torch.full((1, 3 * TALL * WIDE), 500.0)
    steps[:, : TALL * WIDE] = 0.0
    tiny.call |= dict(timestep=steps)
    return tiny


def wan_vace():
    import torch
    from diffusers import WanVACETransformer3DModel

    model = WanVACETransformer3DModel(
        num_attention_heads=2, attention_head_dim=24, in_channels=16, out_channels=16, text_dim=32,
        freq_dim=64, ffn_dim=96, num_layers=4, vace_layers=[0, 3], vace_in_channels=8,
    )  # fmt: skip
    call = dict(
        hidden_states=noise(1, 16, 3, 2 * TALL, 2 * WIDE), timestep=torch.tensor([500.0]),
        encoder_hidden_states=noise(1, 12, 32, seed=2),
        control_hidden_states=noise(1, 8, 3, 2 * TALL, 2 * WIDE, seed=3),
        control_hidden_states_scale=torch.tensor([1.0, 0.5]),
    )  # fmt: skip
    return Tiny(tame(model), call, 3)


def ltx(**changes):
    import torch
    from diffusers import LTXVideoTransformer3DModel

    model = LTXVideoTransformer3DModel(
        in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=24,
        cross_attention_dim=48, num_layers=3, caption_channels=16,
    )  # fmt: skip
    call = dict(
        hidden_states=noise(1, 3 * TALL * WIDE, 8), encoder_hidden_states=noise(1, 9, 16, seed=2),
        timestep=torch.tensor([500.0]), encoder_attention_mask=torch.ones(1, 9), num_frames=3,
        height=TALL, width=WIDE, rope_interpolation_scale=(8 / 25, 32, 32),
    ) | changes  # fmt: skip
    return Tiny(tame(model), call, 3)


def coordinates(frames, tall=TALL, wide=WIDE, first=0):
    """As LTXConditionPipeline makes them: [1, 3, tokens] in px and frames."""
    import torch

    grid = torch.meshgrid(torch.arange(frames), torch.arange(tall), torch.arange(wide),
                          indexing="ij")  # fmt: skip
    coords = torch.stack(grid).flatten(1).float() * torch.tensor([8.0, 32.0, 32.0])[:, None]
    coords[0] = (coords[0] - 7.0).clamp(min=0.0) + first
    return coords[None]


def ltx_conditions():
    """A condition of another size and a keyframe on the frame's grid, both before the frame."""
    import torch

    spatial = TALL * WIDE
    coords = torch.cat([coordinates(1, 4, 5, first=16), coordinates(1, first=8), coordinates(3)], 2)
    steps = torch.full((1, 20 + 4 * spatial, 1), 500.0)
    steps[:, : 20 + spatial] = 0.0
    tiny = ltx(hidden_states=noise(1, 20 + 4 * spatial, 8), timestep=steps, video_coords=coords,
               num_frames=None, height=None, width=None)  # fmt: skip
    tiny.start = 20 + spatial
    return tiny


def ltx2(model_changes=(), **changes):
    import torch
    from diffusers import LTX2VideoTransformer3DModel

    model = LTX2VideoTransformer3DModel(**dict(
        in_channels=8, out_channels=8, num_attention_heads=2, attention_head_dim=24,
        cross_attention_dim=48, audio_in_channels=6, audio_out_channels=6,
        audio_num_attention_heads=2, audio_attention_head_dim=12, audio_cross_attention_dim=24,
        num_layers=3, caption_channels=16,
    ) | dict(model_changes))  # fmt: skip
    call = dict(
        hidden_states=noise(1, 3 * TALL * WIDE, 8), audio_hidden_states=noise(1, 10, 6, seed=4),
        encoder_hidden_states=noise(1, 9, 16, seed=2),
        audio_encoder_hidden_states=noise(1, 9, 16, seed=3), timestep=torch.tensor([500.0]),
        encoder_attention_mask=torch.ones(1, 9), audio_encoder_attention_mask=torch.ones(1, 9),
        num_frames=3, height=TALL, width=WIDE, audio_num_frames=10, fps=25.0,
    ) | changes  # fmt: skip
    return Tiny(tame(model), call, 3)


def ltx2_split():
    """Rotary tables split by head, as the published model has them; a timestep per token."""
    import torch

    steps = torch.full((1, 3 * TALL * WIDE), 500.0)
    steps[:, : TALL * WIDE] = 0.0
    return ltx2(dict(rope_type="split"), timestep=steps, audio_timestep=torch.tensor([500.0]))


def ltx2_keyframe():
    """A keyframe after the frame, and a self-attention mask."""
    import torch

    spatial = TALL * WIDE
    tiny = ltx2()
    rope, first = tiny.transformer.rope, None
    first = rope.prepare_video_coords(1, 3, TALL, WIDE, torch.device("cpu"), fps=25.0)
    key = first[:, :, :spatial].clone()
    key[:, 0] += 0.5
    mask = torch.ones(1, 4 * spatial, 4 * spatial)
    mask[:, : 3 * spatial, 3 * spatial :] = 0.5
    tiny.call |= dict(
        hidden_states=noise(1, 4 * spatial, 8),
        video_coords=torch.cat([first, key], 2),
        video_self_attention_mask=mask,
    )
    return tiny


def hunyuan(**changes):
    import torch
    from diffusers import HunyuanVideoTransformer3DModel

    model = HunyuanVideoTransformer3DModel(**dict(
        in_channels=16, out_channels=16, num_attention_heads=2, attention_head_dim=24,
        num_layers=2, num_single_layers=2, num_refiner_layers=1, mlp_ratio=2.0, text_embed_dim=16,
        pooled_projection_dim=8, rope_axes_dim=(8, 8, 8),
    ) | changes)  # fmt: skip
    mask = torch.ones(1, 9)
    mask[:, 6:] = 0.0
    call = dict(
        hidden_states=noise(1, 16, 3, 2 * TALL, 2 * WIDE), timestep=torch.tensor([500.0]),
        encoder_hidden_states=noise(1, 9, 16, seed=2), encoder_attention_mask=mask,
        pooled_projections=noise(1, 8, seed=3), guidance=torch.tensor([6000.0]),
    )  # fmt: skip
    return Tiny(tame(model), call, 3)


def hunyuan_i2v():
    """The first frame's tokens have a modulation of their own."""
    return hunyuan(image_condition_type="token_replace")


def hunyuan15():
    import torch
    from diffusers import HunyuanVideo15Transformer3DModel

    model = HunyuanVideo15Transformer3DModel(
        in_channels=9, out_channels=8, num_attention_heads=2, attention_head_dim=24, num_layers=3,
        num_refiner_layers=1, mlp_ratio=2.0, text_embed_dim=16, text_embed_2_dim=12,
        image_embed_dim=10, rope_axes_dim=(8, 8, 8),
    )  # fmt: skip
    call = dict(
        hidden_states=noise(1, 9, 3, TALL, WIDE), timestep=torch.tensor([500.0]),
        encoder_hidden_states=noise(1, 9, 16, seed=2), encoder_attention_mask=torch.ones(1, 9),
        encoder_hidden_states_2=noise(1, 4, 12, seed=3), encoder_attention_mask_2=torch.ones(1, 4),
        image_embeds=torch.zeros(1, 5, 10),
    )  # fmt: skip
    return Tiny(tame(model), call, 3)


def minimax_h3_model():
    from diffusers import MiniMaxH3Transformer3DModel

    return tame(MiniMaxH3Transformer3DModel(
        num_attention_heads=2, attention_head_dim=36, hidden_size=48, num_layers=3,
        num_refiner_layers=1, ffn_dim=64, in_channels=6, audio_in_channels=5, text_dim=16,
        freq_dim=32, time_embed_hidden_dim=32, time_embed_dim=24, rope_freq_dim=6,
    ))  # fmt: skip


def minimax_h3(anchors=(), frames=12):
    """Text, keyframes, sound and the frame in one sequence, laid out by diffusers' own code."""
    import torch
    from diffusers.modular_pipelines.minimax_h3.before_denoise import (
        MiniMaxH3PrepareLayoutStep,
        MiniMaxH3SetTimestepsStep,
    )

    spatial, sound, text = TALL * WIDE, 6, 8
    positions, tags, video, audio, words, conditions, _ = (
        MiniMaxH3PrepareLayoutStep.build_packed_sequence(
            torch.ones(text, dtype=torch.long), frames, 2 * TALL, 2 * WIDE, sound, (1, 2, 2), 2,
            2, 0, anchors,
        )
    )  # fmt: skip
    times, rows = MiniMaxH3SetTimestepsStep.build_row_timesteps(
        video, audio, conditions, 0, text, 0.3, 0.6, 0.999, 1.0
    )
    call = dict(
        hidden_states=noise(1, len(video), 24), audio_hidden_states=noise(1, 2 * sound, 5, seed=2),
        encoder_hidden_states=noise(1, text, 16, seed=3), timestep=times, timestep_indices=rows,
        token_tags=tags, position_ids=positions, video_indices=video, audio_indices=audio,
        text_indices=words,
    )  # fmt: skip
    start = text + 2 * sound + len(anchors) * spatial
    return Tiny(minimax_h3_model(), call, frames, start)


def minimax_h3_keyframes():
    return minimax_h3(("first", "last"))


FAMILIES = {
    f.__name__: f
    for f in (
        wan, wan_i2v, wan_per_token, wan_vace, ltx, ltx_conditions, ltx2, ltx2_split, ltx2_keyframe,
        hunyuan, hunyuan_i2v, hunyuan15, minimax_h3, minimax_h3_keyframes,
    )
}  # fmt: skip


@pytest.fixture(params=FAMILIES)
def tiny(request):
    """Every family and variant in turn."""
    pytest.importorskip("torch")
    pytest.importorskip("diffusers")
    return FAMILIES[request.param]()


@pytest.fixture
def make_tiny():
    """Make one by name."""
    pytest.importorskip("diffusers")
    return lambda name, *args, **kwargs: FAMILIES[name](*args, **kwargs)
