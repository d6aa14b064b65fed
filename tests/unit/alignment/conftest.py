"""Small tokenizers of every kind that cut the same texts differently."""

import string

import numpy as np
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
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

from emo.alignment.pieces import Pieces
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
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 1), ("</s>", 2)],
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
        single="$A <|end|>", pair="$A <|end|> $B <|end|>", special_tokens=[("<|end|>", 0)]
    )
    return TextTokenizer(
        PreTrainedTokenizerFast(
            tokenizer_object=backend,
            eos_token="<|end|>",
            pad_token="<|end|>",
            unk_token="<|end|>",
            padding_side="left",
        )
    )


@pytest.fixture(scope="session")
def fallback_teacher() -> TextTokenizer:
    """BPE with marks for spaces and bytes for what it does not know, as Llama 2 and Mistral.

    It opens texts with "<s>", ends them with nothing, loses the start of long ones and has an
    added token behind its vocabulary.
    """
    words = ["▁the", "▁cat", "▁play", "ing", "▁hello", "▁world", "▁", *LETTERS, *SIGNS, "é", "中"]
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys(words))}
    merges = [("▁", letter) for letter in "tcphw"]
    vocabulary |= {"".join(merge): len(vocabulary) + index for index, merge in enumerate(merges)}
    backend = Tokenizer(
        models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    backend.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        unk_token="<unk>",
        pad_token="<unk>",
        truncation_side="left",
    )
    tokenizer.add_tokens(["ELLE"])
    return TextTokenizer(tokenizer, max_length=48)


@pytest.fixture(scope="session")
def slow_student(tmp_path_factory) -> TextTokenizer:
    """BERT's tokenizer as it was in Python: lower-casing, without character offsets."""
    file = tmp_path_factory.mktemp("slow") / "vocab.txt"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "play", "##ing", "hello"]
    words += ["text", "中", *LETTERS, *SIGNS, *("##" + letter for letter in LETTERS)]
    file.write_text("\n".join(words), encoding="utf-8")
    return TextTokenizer(BertTokenizerLegacy(str(file)), prompt="text: ")


def pieces(strings, middles, positions=None):
    """Make the pieces of one text; each span is as long as its string."""
    lengths = np.array([len(string) for string in strings], dtype=np.int32)
    middles = np.array(middles, dtype=np.int32)
    starts = (middles - lengths) // 2
    if positions is None:
        positions = range(1, len(strings) + 1)
    return Pieces(
        strings=list(strings),
        lengths=lengths,
        positions=np.array(positions, dtype=np.int32),
        spans=np.stack([starts, starts + lengths], axis=1).astype(np.int64),
        middles=middles,
        bounds=np.array([0, len(strings)]),
    )


def rows(pairs):
    """List the pairs of one text as (teacher position, student position, distance)."""
    columns = (pairs.teacher_position, pairs.student_position, pairs.distance)
    return list(zip(*(column.tolist() for column in columns), strict=True))
