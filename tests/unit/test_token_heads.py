"""The head of token states: fitted on mapped tokens, trained, and left out of the result."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from emo.alignment import read_alignment
from emo.assembly import assemble
from emo.distil import distil
from emo.errors import ConfigError, DataError
from emo.history import read_history
from emo.student import set_dropout
from emo.token_heads import fit_token_heads

from ..plain_models import PlainModel
from ..tiny_models import STUDENT_PROMPT, TEACHER_PROMPT
from .tiny_online import online_inputs
from .tiny_training import inputs, killed_at, settings, weights

OWN = {"token_head": "own", "matched": 1.0}


def heads_of(given, folder, **changes):
    """Return the heads that a training starts with."""
    made = assemble(settings("emo", method=OWN | changes), given, folder)
    return made.model.method.space.token_heads


def test_it_is_ridge_least_squares_on_the_states_of_mapped_tokens(tiny, tmp_path):
    teacher, student = (
        PlainModel(tiny.teacher, TEACHER_PROMPT),
        PlainModel(tiny.student, STUDENT_PROMPT),
    )
    table = read_alignment(tiny.alignment("mined.original"))
    read = [(teacher(text), student(text)) for text in tiny.texts_read]
    pairs = zip(table.text, table.teacher_position, table.student_position, strict=True)
    points, targets = [], []
    for text, t, s in pairs:
        points.append(read[text][1].states[s].double().numpy())
        targets.append(read[text][0].states[t].double().numpy())
    points, targets = np.stack(points), np.stack(targets)
    centred = points - points.mean(axis=0)
    ridge = np.sqrt(1e-4 * (centred**2).sum(axis=0).mean()) * np.eye(points.shape[1])
    given = np.vstack([centred, ridge])
    wanted = np.vstack([targets - targets.mean(axis=0), np.zeros((len(ridge), targets.shape[1]))])
    solution, *_ = np.linalg.lstsq(given, wanted, rcond=None)
    (head,) = heads_of(inputs(tiny), tmp_path)
    np.testing.assert_allclose(head.weight.detach().numpy(), solution.T, atol=2e-3)
    bias = targets.mean(axis=0) - points.mean(axis=0) @ solution
    np.testing.assert_allclose(head.bias.detach().numpy(), bias, atol=5e-3)


def test_a_training_with_it_resumes_and_leaves_it_out(tiny, tmp_path):
    own = settings("emo", method=OWN)

    def run(name):
        distil(own, inputs(tiny), [], tmp_path / f"{name}-checks", tmp_path / name)

    run("whole")
    with killed_at(3):
        run("resumed")
    (checkpoint,) = (tmp_path / "resumed-checks").glob("*/checkpoint-2/model.safetensors")
    (started,) = heads_of(inputs(tiny), tmp_path / "start")
    kept = load_file(checkpoint)["method.space.token_heads.0.weight"]
    assert not torch.equal(kept, started.weight.cpu()), "it learns"
    run("resumed")
    assert weights(tmp_path / "resumed") == weights(tmp_path / "whole")
    histories = [read_history(tmp_path / name / "history.jsonl") for name in ("whole", "resumed")]
    assert histories[0] == histories[1]
    names = load_file(tmp_path / "whole" / "student" / "model.safetensors")
    assert not [name for name in names if "token_head" in name]


def test_the_online_teacher_serves_it_likewise(tiny, tmp_path):
    (stored,) = heads_of(inputs(tiny), tmp_path / "stored")
    (asked,) = heads_of(online_inputs(tiny), tmp_path / "online")
    torch.testing.assert_close(asked.weight, stored.weight, atol=1e-3, rtol=1e-3)


def test_each_layer_has_a_head_fitted_on_its_own_states(tiny, tmp_path):
    """That of the last layer is the one which it has alone, wherever it stands in the list."""
    (alone,) = heads_of(inputs(tiny), tmp_path / "alone")
    last, inner = heads_of(inputs(tiny), tmp_path / "both", state_layers=[1, 0])
    torch.testing.assert_close(last.weight, alone.weight)
    assert not torch.allclose(inner.weight, alone.weight, atol=1e-2)


def test_several_layers_train(tiny, tmp_path):
    several = settings("emo", method=OWN | {"state_layers": [0, 1], "relations": 1.0}, steps=2)
    distil(several, inputs(tiny), [], tmp_path / "checks", tmp_path / "out")
    terms = read_history(tmp_path / "out" / "history.jsonl")[-1]["terms"]
    assert terms.keys() >= {"transport", "matched", "relations"}


def test_a_layer_that_the_student_lacks_is_refused(tiny, tmp_path):
    with pytest.raises(ConfigError, match="state_layers: 2 is out of range, the student has"):
        heads_of(inputs(tiny), tmp_path, state_layers=[1, 2])


def test_dropout_has_no_part_in_the_start(tiny, tmp_path):
    made = assemble(settings("emo", method=OWN), inputs(tiny), tmp_path)
    (usual,) = made.model.method.space.token_heads
    student = made.model.student.train()
    set_dropout(student, 0.5)
    (fitted,) = fit_token_heads(student, settings("emo", method=OWN).method, made.collator, 24)
    torch.testing.assert_close(fitted.weight, usual.weight)
    assert student.training, "the mode is as it was"


def test_texts_without_mapped_tokens_are_refused(tiny, tmp_path):
    made = assemble(settings("emo"), inputs(tiny), tmp_path)

    def unmapped(texts):
        batch = made.collator(texts)
        return batch | {"pairs": batch["pairs"][:0]}

    with pytest.raises(DataError, match="0 mapped tokens in 24 texts are too few"):
        fit_token_heads(made.model.student, settings("emo").method, unmapped, 24)
