"""A tiny teacher and student that cut texts differently, and texts that are hard on both.

Models are random and wide in their weights, so that attention is far from uniform and vectors of
different texts differ.
"""

import string
import unicodedata

import numpy as np
import pandas as pd
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from emo.texts import text_key

EMO_ROWS = "original.mined.text.m8.paired.k1"
PAPER_ROWS = "normalised.mined-types.content.third.apart.k2"
TEACHER_PROMPT = "query: "
STUDENT_PROMPT = "text: "
TEACHER_LENGTH = 40
STUDENT_LENGTH = 32

# fmt: off
WORDS = [
    "the", "a", "cat", "dog", "man", "woman", "child", "bird", "plays", "sings", "runs", "sleeps",
    "eats", "reads", "writes", "flute", "guitar", "song", "bread", "book", "letter", "garden",
    "river", "house", "street", "slowly", "quickly", "happily", "never", "always", "often", "in",
    "on", "under", "beside", "with", "without", "red", "green", "old", "young", "small", "large",
    "what", "who", "where", "when", "why", "how", "many",
]
# fmt: on
SYMBOLS = [*string.ascii_letters, *string.digits, *"!?.,:;'()[]<>/+#-"]
PIECES = ["ing", "er", "ed", "ly", "th", "pl", "ay", "re", "un", "st"]

HARD_TEXTS = (
    "cat",  # one token on both sides
    "ᚠᚢᚦ ᚨᚱᚲ",  # nothing but unknown tokens
    "the old man sings a song in the garden " * 12,  # longer than either model reads
    "a man 👩‍👩‍👧 plays 😀 guitar",
    "中文的猫在花园里唱歌",
    unicodedata.normalize("NFD", "café été naïve garçon"),
    "what is [CLS] and where does <s> end </s> [SEP]",
)


def sentences(count, seed=0):
    """Return different sentences of known words, four to fifteen long."""
    generator = np.random.default_rng(seed)
    made = {}
    while len(made) < count:
        size = generator.integers(4, 16)
        made[" ".join(generator.choice(WORDS, size=size))] = None
    return list(made)


def teacher_tokenizer():
    """Unigram behind a Metaspace, as XLM-R's; its padding id is not 0."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -4.0)]
    pieces += [(f"▁{word}", -5.0) for word in WORDS if word not in WORDS[::5]] + [
        ("▁query", -5.0),
        ("中文", -6.0),
    ]
    pieces += [(piece, -6.0) for piece in PIECES]
    pieces += [(symbol, -9.0) for symbol in [*SYMBOLS, *"éïç的猫在"]]
    backend = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=64,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )


def student_tokenizer():
    """WordPiece that lower-cases and drops accents, as uncased BERT's."""
    symbols = [symbol for symbol in SYMBOLS if not symbol.isupper()] + list("中文花唱")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "text", *symbols]
    words += [f"##{piece}" for piece in [*PIECES, *string.ascii_lowercase, *string.digits]]
    return wordpiece_tokenizer(dict.fromkeys(words), model_max_length=64, mask_token="[MASK]")


def wordpiece_tokenizer(words, **options):
    """WordPiece over words that start with [PAD], [UNK], [CLS] and [SEP], as uncased BERT's."""
    vocabulary = {word: index for index, word in enumerate(words)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        **options,
    )


def write_model(folder, tokenizer, layers, width, seed):
    """Write a transformers folder with random weights."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=2 * width,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=0.25,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_teacher(folder):
    """Write the source folder of the teacher: 4 layers, width 48."""
    return write_model(folder, teacher_tokenizer(), layers=4, width=48, seed=1)


def write_student(folder, layers=2):
    """Write the source folder of the student: width 32."""
    return write_model(folder, student_tokenizer(), layers=layers, width=32, seed=2)


def write_texts(texts, path):
    """Write a text set, of texts or of pairs."""
    columns = {"text": texts}
    if isinstance(texts[0], tuple):
        columns = dict(zip(("text", "second"), map(list, zip(*texts, strict=True)), strict=True))
    table = pd.DataFrame(columns | {"key": [text_key(text) for text in texts]}, dtype="str")
    table.to_parquet(path, index=False)
    return path
