"""The nano model's text encoder as ComfyUI's CLIP, for the stock CLIPTextEncode."""

import os
from pathlib import Path

import torch

ROWS = 512
"""Rows of a conditioning; those after the prompt are zero, as in diffusers' Wan pipeline."""


class NanoCLIP:
    """Answers what CLIPTextEncode asks of a CLIP: `tokenize` and `encode_from_tokens*`."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer, UMT5EncoderModel

        self.tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
        self.encoder = UMT5EncoderModel.from_pretrained(
            folder / "text_encoder", dtype=torch.float32
        ).eval()

    def clone(self, *_args, **_options):
        """The same object: nothing in it changes."""
        return self

    def tokenize(self, text, **_options):
        """{"nano": ids [1, L]}."""
        return {"nano": self.tokenizer(text, return_tensors="pt").input_ids[:, :ROWS]}

    def encode_from_tokens(self, tokens, return_pooled=False, return_dict=False):
        """Conditioning [1, 512, 4096], float32; there is no pooled output."""
        ids = tokens["nano"]
        with torch.inference_mode():
            rows = self.encoder(ids, torch.ones_like(ids)).last_hidden_state
        cond = torch.zeros(1, ROWS, rows.shape[-1])
        cond[:, : rows.shape[1]] = rows
        if return_dict:
            return {"cond": cond, "pooled_output": None}
        return (cond, None) if return_pooled else cond

    def encode_from_tokens_scheduled(self, tokens, unprojected=False, add_dict=None, **_options):
        """The conditioning in the form that samplers take."""
        return [[self.encode_from_tokens(tokens), {"pooled_output": None, **(add_dict or {})}]]


class TestNanoCLIP:
    """Load the text encoder of the embedded model."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}

    RETURN_TYPES = ("CLIP",)
    FUNCTION = "load"
    CATEGORY = "testing"

    def load(self):
        return (NanoCLIP(Path(os.environ["H3VIDEO_TEST_NANO"])),)
