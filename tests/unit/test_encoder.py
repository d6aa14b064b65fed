"""The encoder against sentence-transformers and transformers on their own."""

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertModel

from emo.config import StudentSettings
from emo.encoder import load_encoder, pad
from emo.errors import ConfigError, DataError
from emo.models import prepare_model

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def teacher(tiny_models):
    return load_encoder(tiny_models.teacher, device=CPU).eval()


@pytest.fixture(scope="module")
def cls_student(tiny_models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cls") / "student"
    settings = StudentSettings(source={"path": "x"}, pooling="cls", max_length=24)
    prepare_model(settings, tiny_models.folder / "student-source", folder)
    return folder


def encode(encoder, texts, layers=()):
    return encoder(*pad(encoder.tokenizer()(list(texts)), encoder.pad_id), layers)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_vectors_are_those_of_sentence_transformers(tiny_models, cls_student, pooling):
    """Otherwise a student is trained on other vectors than its users get."""
    folder = {"mean": tiny_models.teacher, "cls": cls_student}[pooling]
    expected = SentenceTransformer(str(folder), device="cpu").encode(list(tiny_models.texts_read))
    encoder = load_encoder(folder, device=CPU).eval()
    vectors = encode(encoder, tiny_models.texts_read).vectors
    torch.testing.assert_close(vectors, torch.from_numpy(expected), atol=1e-5, rtol=0)


def test_a_text_does_not_see_its_batch(teacher, tiny_models):
    """Pitfalls 52, 70, 71: other answers alone, beside longer texts and in another order."""
    texts = list(tiny_models.texts_read)
    layers = [1, 3]
    together = encode(teacher, texts, layers)
    backwards = encode(teacher, texts[::-1], layers)
    for row, text in enumerate(texts):
        alone = encode(teacher, [text], layers)
        size = alone.mask.shape[1]
        for other, place in ((together, row), (backwards, len(texts) - 1 - row)):
            for name in ("vectors", "pooled"):
                torch.testing.assert_close(
                    getattr(other, name)[place], getattr(alone, name)[0], atol=1e-5, rtol=0
                )
            torch.testing.assert_close(
                other.states[place, :size], alone.states[0], atol=2e-5, rtol=0
            )
            torch.testing.assert_close(
                other.attention[:, place, :size, :size], alone.attention[:, 0], atol=1e-5, rtol=0
            )
            assert other.attention[:, place, :, size:].eq(0).all(), "padding must get no attention"


def test_attention_and_states_are_those_of_transformers(teacher, tiny_models):
    """Pitfalls 49 and 51: the fused implementations return none, or another shape."""
    model = BertModel.from_pretrained(
        tiny_models.teacher, add_pooling_layer=False, attn_implementation="eager"
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_models.teacher)
    for text in tiny_models.texts_read:
        tokens = tokenizer("query: " + text, return_tensors="pt", truncation=True)
        with torch.no_grad():
            output = model(**tokens, output_attentions=True)
            encoding = encode(teacher, [text], [3, 0])
        torch.testing.assert_close(encoding.states, output.last_hidden_state, atol=1e-5, rtol=0)
        for place, layer in enumerate((3, 0)):
            expected = output.attentions[layer].mean(dim=1)
            torch.testing.assert_close(encoding.attention[place], expected, atol=1e-6, rtol=0)


def test_pooled_states_stand_before_the_later_modules(teacher):
    encoding = encode(teacher, ["a cat sleeps", "cat"])
    torch.testing.assert_close(
        torch.nn.functional.normalize(encoding.pooled, dim=-1), encoding.vectors
    )
    assert not torch.allclose(encoding.pooled.norm(dim=-1), torch.ones(2))


@pytest.mark.parametrize("name", ["states", "pooled", "vectors", "attention"])
def test_gradients_reach_the_weights(tiny_models, name):
    encoder = load_encoder(tiny_models.student, device=CPU)
    encoding = encode(encoder, ["a cat sleeps", "the dog eats bread"], [1])
    getattr(encoding, name).square().sum().backward()
    first = encoder.transformer.encoder.layer[0].attention.self.query.weight
    assert first.grad is not None
    assert first.grad.abs().max() > 0


def test_a_model_that_returns_no_attention_is_an_error(tiny_models):
    """Pitfall 55: the reference code then went on with uniform weights."""
    encoder = load_encoder(tiny_models.student, device=CPU)
    encoder.transformer.set_attn_implementation("sdpa")
    with pytest.raises(DataError, match="BertModel returned no attention; load it with attn_impl"):
        encode(encoder, ["cat"], [0])


def test_attention_is_not_computed_unasked(teacher):
    assert encode(teacher, ["cat"]).attention.numel() == 0


def test_prompt_and_length_come_from_the_folder(teacher, cls_student):
    tokenizer = teacher.tokenizer()
    assert (tokenizer.prompt, tokenizer.max_length) == ("query: ", 40)
    tokenizer = load_encoder(cls_student, device=CPU).tokenizer()
    assert (tokenizer.prompt, tokenizer.max_length) == ("", 24)
    assert (teacher.layers, teacher.width, teacher.pad_id) == (4, 48, 1)


def test_precision_of_the_weights(tiny_models):
    encoder = load_encoder(tiny_models.teacher, "bfloat16", CPU)
    assert next(encoder.parameters()).dtype == torch.bfloat16
    assert encode(encoder, ["cat"]).states.dtype == torch.bfloat16


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no modules\.json; prepare the model with `emo model`"):
        load_encoder(tmp_path)


def test_pad(teacher):
    input_ids, mask = pad(teacher.tokenizer()(["cat", "a cat sleeps"]), pad_id=1)
    assert mask.sum(dim=1).tolist() == [len(row) for row in map(torch.nonzero, mask)]
    assert mask[0].tolist() == sorted(mask[0].tolist(), reverse=True), "padding is on the right"
    assert (input_ids[~mask] == 1).all()
