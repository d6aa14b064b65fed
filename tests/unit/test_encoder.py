"""The encoder against sentence-transformers and transformers on their own."""

import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers import AutoTokenizer, BertModel

from emo.attention import Capture
from emo.config_models import StudentSettings
from emo.encoder import load_encoder, pad
from emo.errors import ConfigError
from emo.models import prepare_model

from ..tiny_architectures import CONFIGS, LAYERS, encoder_of, random_batch, transformer

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
    """Encode texts and take every row of the layers and the importance from all tokens."""
    input_ids, mask = pad(encoder.tokenizer()(list(texts)), encoder.pad_id)
    if not layers:
        return encoder(input_ids, mask)
    every = torch.arange(mask.shape[1]).expand(mask.shape)
    return encoder(input_ids, mask, Capture(layers, every, mask[None]))


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
                other.rows[:, place, :size, :size], alone.rows[:, 0], atol=1e-5, rtol=0
            )
            torch.testing.assert_close(
                other.importance[0, place, :size], alone.importance[0, 0], atol=1e-5, rtol=0
            )
            assert other.rows[:, place, :, size:].eq(0).all(), "padding must get no attention"


@pytest.mark.parametrize("name", ["bert", "modernbert", "llama", "mpnet"])
def test_the_length_of_the_padding_changes_nothing(name):
    """Pitfall 71: padded to the longest of the batch, or to the model's maximum."""
    encoder = encoder_of(transformer(name, None))
    input_ids, mask = random_batch((9, 4))
    more = torch.nn.functional.pad(input_ids, (0, 21), value=1)
    wide = torch.nn.functional.pad(mask, (0, 21))
    positions = torch.tensor([[0, 8], [3, 1]])
    with torch.no_grad():
        longest = encoder(input_ids, mask, Capture([2], positions, mask[None]))
        maximum = encoder(more, wide, Capture([2], positions, wide[None]))
    for name in ("pooled", "vectors"):
        torch.testing.assert_close(
            getattr(maximum, name), getattr(longest, name), atol=1e-5, rtol=0
        )
    for name in ("rows", "importance"):
        torch.testing.assert_close(
            getattr(maximum, name)[..., :9], getattr(longest, name), atol=1e-5, rtol=0
        )
        assert getattr(maximum, name)[..., 9:].eq(0).all()


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_states_of_inner_layers_are_what_these_give_on(name):
    """Asked in any order; the last ones have gone through the final norm, where there is one."""
    model = transformer(name, None)
    encoder = encoder_of(model)
    given = []
    stacks = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    stack = next((s for s in stacks if len(s) == LAYERS), None)
    for layer in stack if stack is not None else [model.encoder.albert_layer_groups[0]]:
        layer.register_forward_hook(
            lambda _, args, output: given.append(output[0] if type(output) is tuple else output)
        )
    with torch.no_grad():
        encoding = encoder(*random_batch((9, 4)), layers=[2, 0, 1])
    assert len(given) == LAYERS
    last, *inner = encoding.layer_states
    assert torch.equal(last, encoding.states)
    assert all(torch.equal(states, given[layer]) for layer, states in enumerate(inner))
    assert not torch.equal(*inner)
    assert encoder(*random_batch((9, 4))).layer_states == ()


def test_left_padding_gives_the_same_where_positions_are_relative():
    """Pitfalls 54 and 68: masks tell the tokens, not their place."""
    encoder = encoder_of(transformer("llama", None))
    sides = [random_batch((9, 4, 1), side) for side in ("right", "left")]
    with torch.no_grad():
        right, left = (encoder(*batch, Capture(queries=batch[1][None])) for batch in sides)
    torch.testing.assert_close(left.pooled, right.pooled, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        left.importance[0][left.mask], right.importance[0][right.mask], atol=1e-5, rtol=0
    )


def test_texts_without_words_are_finite(teacher):
    """Pitfall 74: nothing but special tokens is left of an empty text."""
    encoding = encode(teacher, ["", " ", "\u200b", "a cat sleeps"], [0])
    for value in (encoding.states, encoding.vectors, encoding.rows, encoding.importance):
        assert value.isfinite().all()


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
            torch.testing.assert_close(encoding.rows[place], expected, atol=1e-6, rtol=0)


def test_pooled_states_stand_before_the_later_modules(teacher):
    encoding = encode(teacher, ["a cat sleeps", "cat"])
    torch.testing.assert_close(
        torch.nn.functional.normalize(encoding.pooled, dim=-1), encoding.vectors
    )
    assert not torch.allclose(encoding.pooled.norm(dim=-1), torch.ones(2))


@pytest.mark.parametrize("name", ["states", "pooled", "vectors", "rows", "importance"])
def test_gradients_reach_the_weights(tiny_models, name):
    encoder = load_encoder(tiny_models.student, device=CPU)
    encoding = encode(encoder, ["a cat sleeps", "the dog eats bread"], [1])
    getattr(encoding, name).square().sum().backward()
    first = encoder.transformer.encoder.layer[0].attention.self.query.weight
    assert first.grad is not None
    assert first.grad.abs().max() > 0


def test_attention_is_not_computed_unasked(teacher):
    encoding = encode(teacher, ["cat"])
    assert encoding.rows.numel() == encoding.importance.numel() == 0


def test_prompt_and_length_come_from_the_folder(teacher, cls_student):
    tokenizer = teacher.tokenizer()
    assert (tokenizer.prompt, tokenizer.max_length) == ("query: ", 40)
    tokenizer = load_encoder(cls_student, device=CPU).tokenizer()
    assert (tokenizer.prompt, tokenizer.max_length) == ("", 24)
    assert (teacher.layers, teacher.width, teacher.pad_id) == (4, 48, 1)


def test_precision_of_the_weights(tiny_models):
    encoder = load_encoder(tiny_models.teacher, "bfloat16", CPU)
    assert next(encoder.parameters()).dtype == torch.bfloat16
    encoding = encode(encoder, ["cat"], [0])
    assert encoding.states.dtype == encoding.vectors.dtype == torch.bfloat16
    assert encoding.rows.dtype == encoding.importance.dtype == torch.float32


def test_a_head_has_the_precision_of_the_weights(tiny_models, tmp_path):
    """Pitfall 75: heads are fitted and saved in float32."""
    encoder = load_encoder(tiny_models.student, "bfloat16", CPU)
    encoder.add_head(torch.nn.Linear(32, 48))
    assert encode(encoder, ["cat"]).vectors.shape == (1, 48)
    encoder.model.save(str(tmp_path))
    loaded = load_encoder(tmp_path, "bfloat16", CPU)
    assert encode(loaded, ["cat"]).vectors.dtype == torch.bfloat16


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"no modules\.json; prepare the model with `emo model`"):
        load_encoder(tmp_path)


def test_pad(teacher):
    input_ids, mask = pad(teacher.tokenizer()(["cat", "a cat sleeps"]), pad_id=1)
    assert mask.sum(dim=1).tolist() == [len(row) for row in map(torch.nonzero, mask)]
    assert mask[0].tolist() == sorted(mask[0].tolist(), reverse=True), "padding is on the right"
    assert (input_ids[~mask] == 1).all()
