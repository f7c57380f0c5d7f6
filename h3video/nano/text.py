"""The prompt side: a word tokenizer and a small UMT5 encoder, 4096 wide as Wan expects."""

from __future__ import annotations

from typing import Any

from .words import WORDS

VOCABULARY_ROWS = 72
"""Rows of the embedding table: 3 special tokens, the words, and room for more."""

NEXT, PREVIOUS = 9, 1
"""Buckets of the relative positions +1 and -1 among UMT5's 16."""


def make_tokenizer() -> Any:
    """A lower-casing word tokenizer: <pad> 0, </s> 1, <unk> 2, then the words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<pad>": 0, "</s>": 1, "<unk>": 2}
    vocabulary |= {word: i + 3 for i, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
        model_max_length=512,
    )  # fmt: skip


def make_encoder() -> Any:
    """An untrained UMT5EncoderModel: one narrow layer (1.2 M weights).

    One head starts by looking at the next word and one at the word before, so that
    "blue" of "blue waves" differs from "blue" of "a blue star" from the first step on.
    """
    import torch
    from transformers import UMT5Config, UMT5EncoderModel

    model = UMT5EncoderModel(
        UMT5Config(
            vocab_size=VOCABULARY_ROWS, d_model=4096, d_kv=16, num_heads=2, num_layers=1, d_ff=32,
            dropout_rate=0.0, feed_forward_proj="gated-gelu", relative_attention_num_buckets=16,
            relative_attention_max_distance=32, pad_token_id=0, eos_token_id=1,
            decoder_start_token_id=0, tie_word_embeddings=False,
        )
    )  # fmt: skip
    bias = model.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight
    with torch.no_grad():
        model.shared.weight.normal_(0.0, 1.0)
        bias.zero_()
        bias[NEXT, 0] = bias[PREVIOUS, 1] = 5.0
    return model
