"""The head of token states: fitted on mapped tokens, trained, and left out of the result."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from emo.alignment import read_alignment
from emo.assembly import assemble
from emo.distil import distil
from emo.errors import DataError
from emo.history import read_history
from emo.token_head import fit_token_head

from ..plain_models import PlainModel
from ..tiny_models import STUDENT_PROMPT, TEACHER_PROMPT
from .tiny_online import online_inputs
from .tiny_training import inputs, killed_at, settings, weights

OWN = {"token_head": "own", "matched": 1.0}


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
    head = assemble(
        settings("emo", method=OWN), inputs(tiny), tmp_path
    ).model.method.space.token_head
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
    started = assemble(own, inputs(tiny), tmp_path / "start").model.method.space.token_head
    kept = load_file(checkpoint)["method.space.token_head.weight"]
    assert not torch.equal(kept, started.weight.cpu()), "it learns"
    run("resumed")
    assert weights(tmp_path / "resumed") == weights(tmp_path / "whole")
    histories = [read_history(tmp_path / name / "history.jsonl") for name in ("whole", "resumed")]
    assert histories[0] == histories[1]
    names = load_file(tmp_path / "whole" / "student" / "model.safetensors")
    assert not [name for name in names if "token_head" in name]


def test_the_online_teacher_serves_it_likewise(tiny, tmp_path):
    own = settings("emo", method=OWN)
    stored = assemble(own, inputs(tiny), tmp_path / "stored").model.method.space.token_head
    asked = assemble(own, online_inputs(tiny), tmp_path / "online").model.method.space.token_head
    torch.testing.assert_close(asked.weight, stored.weight, atol=1e-3, rtol=1e-3)


def test_texts_without_mapped_tokens_are_refused(tiny, tmp_path):
    made = assemble(settings("emo"), inputs(tiny), tmp_path)

    def unmapped(texts):
        batch = made.collator(texts)
        return batch | {"pairs": batch["pairs"][:0]}

    with pytest.raises(DataError, match="0 mapped tokens in 24 texts are too few"):
        fit_token_head(made.model.student, settings("emo").method, unmapped, 24)
