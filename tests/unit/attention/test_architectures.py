"""Captured rows and importance against eager attention, in every architecture."""

import pytest
import torch

from emo.attention import Capture

from ...tiny_architectures import LAYERS, fused_and_eager, random_batch, transformer

BATCHES = {
    "right": ((11, 5, 8), "right"),
    "left": ((11, 5, 8), "left"),
    "alone": ((9,), "right"),  # no padding: no mask at all
    "equal": ((9, 9), "right"),
    "one-token": ((1, 6), "right"),
}
ASKED = [LAYERS - 1, 0]


@pytest.fixture(params=list(BATCHES))
def batch(request):
    """Ids, mask, three positions a text and two sets of queries."""
    input_ids, mask = random_batch(*BATCHES[request.param])
    generator = torch.Generator().manual_seed(3)
    positions = torch.multinomial(mask.float(), 3, replacement=True, generator=generator)
    some = mask & (torch.rand(mask.shape, generator=generator) > 0.3)
    return input_ids, mask, positions, torch.stack([mask, some])


def eager_maps(model, input_ids, mask):
    output = model(input_ids=input_ids, attention_mask=mask.long(), output_attentions=True)
    return output.last_hidden_state, [layer.mean(dim=1) for layer in output.attentions]


def eager_parts(model, batch):
    """Rows and importance, picked out of whole maps."""
    input_ids, mask, positions, queries = batch
    _, maps = eager_maps(model, input_ids, mask)
    texts = torch.arange(len(mask))[:, None]
    rows = torch.stack([maps[layer][texts, positions] for layer in ASKED])
    importance = torch.stack(
        [(maps[-1] * chosen[:, :, None]).sum(dim=1) for chosen in queries.float()]
    )
    return rows, importance


def captured(encoder, batch):
    input_ids, mask, positions, queries = batch
    return encoder(input_ids, mask, Capture(ASKED, positions, queries))


def test_rows_importance_and_states_are_those_of_eager_attention(pair, batch):
    """Pitfalls 49, 51, 52, 54: fused attention gives nothing, other shapes or other masks."""
    encoder, eager = pair
    _, mask, positions, queries = batch
    with torch.no_grad():
        encoding = captured(encoder, batch)
        states, _ = eager_maps(eager, *batch[:2])
        rows, importance = eager_parts(eager, batch)
    assert encoding.rows.shape == (len(ASKED), *positions.shape, mask.shape[1])
    assert encoding.importance.shape == queries.shape
    torch.testing.assert_close(encoding.states[mask], states[mask], atol=1e-5, rtol=0)
    torch.testing.assert_close(encoding.rows, rows, atol=1e-5, rtol=0)
    torch.testing.assert_close(encoding.importance, importance, atol=1e-5, rtol=0)
    torch.testing.assert_close(encoding.rows.sum(dim=-1), torch.ones(rows.shape[:-1]))
    assert encoding.rows.masked_select(~mask[None, :, None]).eq(0).all()
    assert encoding.importance.masked_select(~mask).eq(0).all()


def test_gradients_are_those_of_eager_attention(pair, batch):
    encoder, eager = pair
    encoding = captured(encoder, batch)
    parts = zip((encoding.rows, encoding.importance), eager_parts(eager, batch), strict=True)
    generator = torch.Generator().manual_seed(4)
    gradients = [{}, {}]
    for fused_part, eager_part in parts:
        weight = torch.randn(fused_part.shape, generator=generator)
        for place, (part, model) in enumerate(
            ((fused_part, encoder.transformer), (eager_part, eager))
        ):
            named = dict(model.named_parameters())
            found = torch.autograd.grad(
                (part * weight).sum(), list(named.values()), retain_graph=True, allow_unused=True
            )
            gradients[place] |= {
                (name, fused_part.shape): gradient
                for name, gradient in zip(named, found, strict=True)
                if gradient is not None
            }
    fused_gradients, eager_gradients = gradients
    assert fused_gradients.keys() == eager_gradients.keys()
    assert max(gradient.abs().max() for gradient in eager_gradients.values()) > 1e-2
    for name, expected in eager_gradients.items():
        torch.testing.assert_close(
            fused_gradients[name], expected, atol=1e-5, rtol=1e-4, msg=str(name)
        )


def test_a_capture_changes_no_state(pair, batch):
    """The forward pass is transformers' own, listened to or not."""
    encoder, _ = pair
    with torch.no_grad():
        assert torch.equal(captured(encoder, batch).states, encoder(*batch[:2]).states)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["bert", "distilbert", "llama", "qwen3"])
def test_without_capture_it_is_transformers_sdpa(name, training):
    """Dropout included: the same random numbers are drawn."""
    rate = {"distilbert": "dropout", "bert": "hidden_dropout_prob"}.get(name, "attention_dropout")
    encoder, _ = fused_and_eager(name, **{rate: 0.2})
    plain = transformer(name, "sdpa", **{rate: 0.2})
    assert plain.config._attn_implementation == "sdpa"
    assert encoder.transformer.config._attn_implementation != "sdpa"
    input_ids, mask = random_batch((7, 4))
    encoder.train(training), plain.train(training)
    torch.manual_seed(5)
    states = encoder(input_ids, mask).states
    torch.manual_seed(5)
    expected = plain(input_ids=input_ids, attention_mask=mask.long()).last_hidden_state
    assert torch.equal(states, expected)


@pytest.mark.parametrize(
    "changes", [{"scale_attn_weights": False}, {"reorder_and_upcast_attn": True}]
)
def test_the_scalings_of_gpt2_are_honoured(changes):
    encoder, eager = fused_and_eager("gpt2", **changes)
    input_ids, mask = random_batch((7, 4))
    batch = input_ids, mask, torch.tensor([[0, 6], [1, 3]]), mask[None]
    with torch.no_grad():
        encoding = captured(encoder, batch)
        rows, importance = eager_parts(eager, batch)
    torch.testing.assert_close(encoding.rows, rows, atol=1e-5, rtol=0)
    torch.testing.assert_close(encoding.importance, importance, atol=1e-5, rtol=0)


def test_importance_of_a_text_does_not_see_its_batch(pair):
    """Pitfall 53: padded query rows also sum to 1 and would count."""
    encoder, _ = pair
    input_ids, mask = random_batch((5, 12, 1))
    with torch.no_grad():
        together = encoder(input_ids, mask, Capture(queries=mask[None])).importance[0]
        for row, size in enumerate((5, 12, 1)):
            alone = input_ids[[row], :size], mask[[row], :size]
            expected = encoder(*alone, Capture(queries=alone[1][None])).importance[0, 0]
            torch.testing.assert_close(together[row, :size], expected, atol=1e-5, rtol=0)


def test_rows_asked_for_at_padding_give_padding_nothing():
    """Positions of a batch are filled up with 0, which is padding where that is on the left."""
    encoder, _ = fused_and_eager("llama")
    input_ids, mask = random_batch((3, 7), "left")
    encoding = encoder(
        input_ids, mask, Capture([1], torch.zeros(2, 1, dtype=torch.int64), mask[None] | True)
    )
    for value in (encoding.rows[0, 0], encoding.importance[0, 0]):
        assert value.isfinite().all()
        assert value[..., ~mask[0]].eq(0).all()


@pytest.mark.parametrize("name", ["bert", "llama", "mpnet", "modernbert"])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_gives_full_precision_rows(name, autocast):
    """Pitfall 72: texts of mixed length in bfloat16 stay finite, padding of windows included."""
    encoder, _ = fused_and_eager(name)
    input_ids, mask = random_batch((30, 2, 17))
    capture = Capture([1], torch.zeros(3, 2, dtype=torch.int64), mask[None])
    with torch.no_grad():
        full = encoder(input_ids, mask, capture)
        if not autocast:
            encoder.bfloat16()
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            half = encoder(input_ids, mask, capture)
    assert half.rows.dtype == half.importance.dtype == torch.float32
    for value in (half.states, half.pooled, half.vectors, half.rows, half.importance):
        assert value.isfinite().all()
    torch.testing.assert_close(half.rows.sum(dim=-1), torch.ones(1, 3, 2), atol=1e-6, rtol=0)
    torch.testing.assert_close(half.importance, full.importance, atol=0.2, rtol=0.1)


def test_rows_are_dropped_from_as_the_layer_drops():
    """Eager attention returns what dropout left; a draw of its own has the same mean."""
    encoder, _ = fused_and_eager("bert", attention_probs_dropout_prob=0.5, hidden_dropout_prob=0.0)
    input_ids, mask = random_batch((6, 6))
    capture = Capture([0], torch.tensor([[0, 5], [2, 2]]), mask[None])
    with torch.no_grad():
        expected = encoder(input_ids, mask, capture).rows
        encoder.train()
        draws = torch.stack([encoder(input_ids, mask, capture).rows for _ in range(400)])
    torch.testing.assert_close(draws.mean(dim=0), expected, atol=0.04, rtol=0)
    # The mean of four heads, each kept with p = 1/2 and then doubled, spreads by sqrt(Σ a²) / 4.
    assert draws.std(dim=0).mean() > 0.3 * expected.mean()
