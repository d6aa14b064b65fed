"""Tiny models and tokenizers built in code."""

import pytest
import torch
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "man", "plays", "flute", "##s", "query"]


def wordpiece_tokenizer():
    tokenizer = Tokenizer(WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=32,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


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
    wordpiece_tokenizer().save_pretrained(folder)
    return folder
