"""Two small tokenizers that cut the same texts differently, and a byte-level third."""

import string

import pytest
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from emo.tokens import TextTokenizer

from ...tiny_models import wordpiece_tokenizer

LETTERS = string.ascii_lowercase + string.digits
SIGNS = "!\"#$%&'()*+,-./:;<=>?@[]_|~"


@pytest.fixture(scope="session")
def student() -> TextTokenizer:
    """WordPiece that lower-cases and drops accents, like uncased BERT."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "hello", "don", "query", "中"]
    words += ["##s", "##ing", "##llo", "play", "vs", "world", *LETTERS, *SIGNS]
    words += ["##" + letter for letter in LETTERS if letter != "s"]
    return TextTokenizer(wordpiece_tokenizer(words))


@pytest.fixture(scope="session")
def teacher() -> TextTokenizer:
    """Unigram with Metaspace like XLM-R, behind a prompt."""
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("▁", -3.0)]
    pieces += [(word, -4.0) for word in ("▁the", "▁ca", "▁hell", "▁play", "ing", "▁C", "++", "été")]
    pieces += [(word, -4.0) for word in ("▁query", "▁don't", "▁vs", "▁wor", "▁中文", "▁Hello")]
    letters = string.ascii_letters + string.digits
    pieces += [(sign, -8.0) for sign in dict.fromkeys([*letters, *SIGNS, *"éïö1fi."])]
    backend = Tokenizer(models.Unigram(pieces, 0, False))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
    )
    return TextTokenizer(tokenizer, prompt="query: ")


@pytest.fixture(scope="session")
def byte_teacher() -> TextTokenizer:
    """Byte-level BPE that ends texts with its pad token and opens them with nothing."""
    backend = Tokenizer(models.BPE(ignore_merges=True))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>"],
    )
    backend.train_from_iterator(["are you ok? hello world, the cat is playing"] * 4, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", 0)]
    )
    return TextTokenizer(
        PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>", pad_token="<|end|>")
    )
