"""Folders of tiny random models as their publishers lay them out: encoders, decoders, adapters."""

import torch
from peft import LoraConfig, get_peft_model
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedTokenizerFast

from .tiny_architectures import CONFIGS
from .tiny_models import WORDS, teacher_tokenizer, wordpiece_tokenizer

TEXTS = ["the cat", "a", "what is the old man in the red house with a flute", "river ! <"]


def sentencepiece_tokenizer(start=True, pad=None):
    """BPE behind a dummy space, as Mistral's: no end token and, if asked, no padding token."""
    pieces = ["<unk>", "<s>", "</s>", "\u2581", *(f"\u2581{word}" for word in WORDS)]
    pieces += [*"abcdefghijklmnopqrstuvwxyz:!<>", "\u2581query", "\u2581Find"]
    scores = [(piece, -float(place > 3)) for place, piece in enumerate(dict.fromkeys(pieces))]
    backend = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=False))
    backend.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    backend.decoder = decoders.Metaspace(prepend_scheme="first")
    if start:
        backend.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token=pad,
    )


def byte_tokenizer(ends=True):
    """Byte-level BPE as Qwen3's: texts end with the padding token, not with the `eos_token`."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: place for place, letter in enumerate(alphabet)}
    backend = Tokenizer(models.BPE(vocabulary, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|endoftext|>", "<|im_end|>"])
    steps = [processors.ByteLevel(trim_offsets=False)]
    if ends:
        steps.append(
            processors.TemplateProcessing(
                single="$A <|endoftext|>",
                pair="$A <|endoftext|> $B <|endoftext|>",
                special_tokens=[("<|endoftext|>", len(alphabet))],
            )
        )
    backend.post_processor = processors.Sequence(steps)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
    )


def bert_words():
    """WordPiece, as BERT's and MPNet's."""
    return wordpiece_tokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, "query", ":"])


TOKENIZERS = {
    "bert": bert_words,
    "mpnet": bert_words,
    "xlm-roberta": teacher_tokenizer,
    "mistral": sentencepiece_tokenizer,
    "llama": sentencepiece_tokenizer,
    "qwen3": byte_tokenizer,
}


def write_folder(name, folder, seed=0, tokenizer=None):
    """Write a transformers folder of an architecture, with random weights."""
    tokenizer = tokenizer or TOKENIZERS[name]()
    torch.manual_seed(seed)
    sizes = CONFIGS[name] | {"vocab_size": len(tokenizer) + 3, "max_position_embeddings": 80}
    config = AutoConfig.for_model(name, **sizes)
    pooled = name in ("bert", "mpnet", "xlm-roberta")
    options = {"add_pooling_layer": False} if pooled else {}
    AutoModel.from_config(config, **options).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_adapter(base, folder, seed, **options):
    """Write a LoRA adapter for the model ``base``, trained in so far as none of it is 0."""
    targets = ["q_proj", "v_proj", "up_proj"]
    config = LoraConfig(**({"r": 2, "lora_alpha": 4, "target_modules": targets} | options))
    adapted = get_peft_model(base, config)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_" in name:
                weight.normal_(std=0.3, generator=generator)
    adapted.save_pretrained(folder)
    adapted.unload()
    return folder
