"""The prompt side: a word tokenizer and a small UMT5 encoder, 4096 wide as Wan expects."""

from __future__ import annotations

from typing import Any

from .words import WORDS

VOCABULARY_ROWS = 72
"""Rows of the embedding table: 3 special tokens, the words, and room for more."""


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
    """An untrained UMT5EncoderModel: one narrow layer (1.2 M weights)."""
    from transformers import UMT5Config, UMT5EncoderModel

    return UMT5EncoderModel(
        UMT5Config(
            vocab_size=VOCABULARY_ROWS, d_model=4096, d_kv=16, num_heads=2, num_layers=1, d_ff=32,
            dropout_rate=0.0, feed_forward_proj="gated-gelu", relative_attention_num_buckets=16,
            relative_attention_max_distance=32, pad_token_id=0, eos_token_id=1,
            decoder_start_token_id=0, tie_word_embeddings=False,
        )
    )  # fmt: skip
