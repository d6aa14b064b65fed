import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaModel

from emo.encoder import load_encoder
from emo.errors import CheckError
from emo.losses import mean_cosine
from emo.store import Store
from emo.student import add_drawn_head, add_fitted_head, check_collapse, set_dropout, spread
from emo.texts import text_key


def test_mean_cosine_is_that_of_different_rows():
    vectors = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    pairs = [
        torch.cosine_similarity(vectors[i], vectors[j], dim=0).item()
        for i in range(7)
        for j in range(7)
        if i != j
    ]
    assert mean_cosine(vectors) == pytest.approx(sum(pairs) / len(pairs), abs=1e-6)
    assert mean_cosine(vectors[:1].expand(4, -1)) == pytest.approx(1.0)
    assert mean_cosine(vectors[:1]) == 0.0


def test_the_fitted_head_is_ridge_least_squares_on_the_pooled_states(tiny):
    """A random start would drag the student through a random rotation."""
    student, texts = load_encoder(tiny.student, device=torch.device("cpu")), list(tiny.texts_read)
    tokenized, signals = student.tokenizer()(texts), Store(tiny.store)
    with torch.inference_mode():
        alone = [student.eval()(*single(text)).pooled[0].double().numpy() for text in tokenized]
    add_fitted_head(student, tokenized, [text_key(text) for text in texts], signals)
    points = np.stack(alone)
    centred = points - points.mean(axis=0)
    rows = signals.rows([text_key(text) for text in texts])
    targets = signals.stacked("vectors", rows).astype(np.float64)
    ridge = np.sqrt(1e-4 * (centred**2).sum(axis=0).mean()) * np.eye(points.shape[1])
    given = np.vstack([centred, ridge])
    wanted = np.vstack([targets - targets.mean(axis=0), np.zeros((len(ridge), targets.shape[1]))])
    solution, *_ = np.linalg.lstsq(given, wanted, rcond=None)
    np.testing.assert_allclose(student.head.weight.detach().numpy(), solution.T, atol=1e-3)


def test_a_drawn_head_is_told_by_the_seed_alone(tiny):
    heads = []
    for _ in range(2):
        student = load_encoder(tiny.student, device=torch.device("cpu"))
        torch.manual_seed(5)
        add_drawn_head(student, teacher_width=12)
        heads.append(student.head.weight.detach())
    assert heads[0].shape == (12, student.width)
    assert torch.equal(*heads)
    assert heads[0].abs().max() <= student.width**-0.5, "as torch draws a linear layer"


def single(text):
    return torch.from_numpy(text.input_ids)[None], torch.ones(
        1, len(text.input_ids), dtype=torch.bool
    )


def test_dropout_is_set_everywhere_and_the_spread_does_not_depend_on_it(tiny):
    student = load_encoder(tiny.student, device=torch.device("cpu"))
    tokenized = student.tokenizer()(list(tiny.texts_read))
    set_dropout(student, 0.5)
    rates = {m.p for m in student.modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.5}
    student.train()
    assert spread(student, tokenized) == spread(student, tokenized)
    assert student.training, "the mode is as it was"


@pytest.mark.parametrize("after", [0.0, 0.019, float("nan")])
def test_a_student_whose_spread_is_gone_has_collapsed(after):
    with pytest.raises(CheckError, match=rf"collapsed: .* from 0\.2000 to {after:.4f}"):
        check_collapse(0.2, after)


def test_a_collapse_that_is_to_be_kept_is_warned_of(caplog):
    assert check_collapse(0.2, 0.019, keep=True)
    assert "went from 0.2000 to 0.0190; it is kept" in caplog.text
    assert not check_collapse(0.2, 0.021, keep=True)
    with pytest.raises(CheckError, match="to nan"):
        check_collapse(0.2, float("nan"), keep=True)


def test_a_teacher_space_that_is_narrow_is_no_collapse():
    """E5 vectors have a mean cosine of 0.8: a fixed limit would refuse narrower teachers."""
    assert not check_collapse(0.02, 0.015)


def test_dropout_reaches_attention_that_drops_by_itself():
    """Llama keeps the rate of its attention as a number, not as a layer."""
    config = LlamaConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        attention_dropout=0.5,
    )
    model = LlamaModel(config).train()
    input_ids = torch.arange(8)[None]

    def moves():
        states = [model(input_ids).last_hidden_state for _ in range(2)]
        return not torch.equal(*states)

    assert moves()
    set_dropout(model, 0.0)
    assert not moves()
    set_dropout(model, 0.5)
    assert moves()
