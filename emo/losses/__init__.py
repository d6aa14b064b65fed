"""Losses of both forms of EMO: pure functions from tensors to tensors."""

from emo.losses.cka import MINIMUM_ROWS, CkaLoss, Estimator, cka, cka_loss, pooled_cka_loss
from emo.losses.contrastive import info_nce
from emo.losses.cost import attention_cost, cosine_cost, euclidean_cost
from emo.losses.importance import (
    attention_importance,
    paper_student_masses,
    paper_teacher_masses,
    student_masses,
    teacher_masses,
)
from emo.losses.paper_cka import paper_cka_loss
from emo.losses.paper_transport import paper_transport_loss
from emo.losses.pooled import cosine_loss, relational_loss
from emo.losses.transport import TransportLoss, transport_loss

__all__ = [
    "MINIMUM_ROWS",
    "CkaLoss",
    "Estimator",
    "TransportLoss",
    "attention_cost",
    "attention_importance",
    "cka",
    "cka_loss",
    "cosine_cost",
    "cosine_loss",
    "euclidean_cost",
    "info_nce",
    "paper_cka_loss",
    "paper_student_masses",
    "paper_teacher_masses",
    "paper_transport_loss",
    "pooled_cka_loss",
    "relational_loss",
    "student_masses",
    "teacher_masses",
    "transport_loss",
]
