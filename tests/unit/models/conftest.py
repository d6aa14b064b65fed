"""Tiny models and tokenizers built in code."""

import pytest
import torch
from transformers import BertConfig, BertModel

from ...tiny_models import wordpiece_tokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "man", "plays", "flute", "##s", "query"]


def bert_config(**keys):
    sizes = {
        "vocab_size": len(WORDS),
        "hidden_size": 8,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 32,
    }
    return BertConfig(**{**sizes, **keys})


@pytest.fixture
def bert():
    torch.manual_seed(0)
    return BertModel(bert_config(), add_pooling_layer=False).eval()


@pytest.fixture
def bert_folder(bert, tmp_path):
    folder = tmp_path / "bert"
    bert.save_pretrained(folder)
    tokenizer = wordpiece_tokenizer(WORDS, model_max_length=32, mask_token="[MASK]")
    tokenizer.save_pretrained(folder)
    return folder
