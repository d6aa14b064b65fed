"""The end token, and last-token pooling, which must find it on either side of the padding."""

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer

from emo.config_models import TeacherSettings
from emo.encoder import load_encoder, pad
from emo.errors import ConfigError
from emo.models import prepare_model
from emo.models.end_token import ensure_end_token

from ...tiny_decoders import TEXTS, byte_tokenizer, sentencepiece_tokenizer, write_folder

LENGTH = 12
ENDS = {"mistral": "</s>", "llama": "</s>", "qwen3": "<|endoftext|>"}


@pytest.fixture(params=ENDS)
def prepared(request, tmp_path):
    source = write_folder(request.param, tmp_path / "source")
    settings = TeacherSettings(
        source={"path": "x"}, pooling="last", end_token=ENDS[request.param], max_length=LENGTH
    )
    prepare_model(settings, source, tmp_path / "out")
    return tmp_path / "out", ENDS[request.param]


def test_every_text_ends_with_it_once_short_and_cut(prepared):
    folder, token = prepared
    tokenizer = AutoTokenizer.from_pretrained(folder)
    end = tokenizer.convert_tokens_to_ids(token)
    for text in [*TEXTS, "", "the cat " * 40]:
        ids = tokenizer(text, truncation=True)["input_ids"]
        assert len(ids) <= LENGTH
        assert ids[-1] == end
        assert ids.count(end) == 1
    pair = tokenizer("the cat", "a dog")["input_ids"]
    assert pair[-1] == end
    assert pair.count(end) == 2


def test_it_counts_as_special_and_the_start_token_stays(prepared):
    encoder = load_encoder(prepared[0], device=torch.device("cpu"))
    for text in encoder.tokenizer()([*TEXTS, "the cat " * 40]):
        assert text.special[-1]
        assert text.special.sum() == (1 if prepared[1] == "<|endoftext|>" else 2)
        assert text.special[0] == (prepared[1] == "</s>")


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_last_token_is_pooled_on_both_sides_of_the_padding(prepared, side):
    """Pitfalls 68 and 70: by the mask, since the end token may be the padding token, too."""
    folder, _ = prepared
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    assert model.tokenizer.padding_side == "right"
    model.tokenizer.padding_side = side
    texts = [*TEXTS, "the cat " * 40]
    together = torch.from_numpy(model.encode(texts))
    encoder = load_encoder(folder, device=torch.device("cpu")).eval()
    for row, tokens in enumerate(encoder.tokenizer()(texts)):
        ids = torch.from_numpy(tokens.input_ids)[None]
        with torch.no_grad():
            states = encoder.transformer(input_ids=ids).last_hidden_state
        expected = torch.nn.functional.normalize(states[0, -1], dim=0)
        torch.testing.assert_close(together[row], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_our_own_passes_pool_it_on_both_sides(prepared, side):
    encoder = load_encoder(prepared[0], device=torch.device("cpu")).eval()
    tokens = encoder.tokenizer()(TEXTS)
    input_ids, mask = pad(tokens, encoder.pad_id)
    if side == "left":
        shifts = mask.shape[1] - mask.sum(1)
        rows = [
            (torch.roll(a, int(n)), torch.roll(b, int(n)))
            for a, b, n in zip(input_ids, mask, shifts, strict=True)
        ]
        input_ids, mask = (torch.stack(part) for part in zip(*rows, strict=True))
    with torch.no_grad():
        vectors = encoder(input_ids, mask).vectors
        for row, text in enumerate(tokens):
            alone = encoder(*pad([text], encoder.pad_id)).vectors[0]
            torch.testing.assert_close(vectors[row], alone, atol=1e-5, rtol=0)


def test_a_tokenizer_that_ends_with_it_is_left_alone():
    tokenizer = byte_tokenizer()
    before = tokenizer.backend_tokenizer.to_str()
    ensure_end_token(tokenizer, "<|endoftext|>")
    assert tokenizer.backend_tokenizer.to_str() == before


def test_unknown_and_other_ends_are_refused():
    with pytest.raises(ConfigError, match="has no token `<end>`"):
        ensure_end_token(sentencepiece_tokenizer(), "<end>")
    with pytest.raises(
        ConfigError, match=r"ends texts with `<\|endoftext\|>`, not with `<\|im_end"
    ):
        ensure_end_token(byte_tokenizer(), "<|im_end|>")


def test_a_tokenizer_without_padding_pads_with_its_end_token(tmp_path):
    source = write_folder("mistral", tmp_path / "source")
    settings = TeacherSettings(source={"path": "x"}, max_length=LENGTH)
    prepare_model(settings, source, tmp_path / "out")
    assert AutoTokenizer.from_pretrained(tmp_path / "out").pad_token == "</s>"
    bare = sentencepiece_tokenizer()
    bare.eos_token = None
    source = write_folder("mistral", tmp_path / "bare", tokenizer=bare)
    with pytest.raises(ConfigError, match="neither a padding token nor an end token"):
        prepare_model(settings, source, tmp_path / "out")
