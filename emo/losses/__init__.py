"""Losses of the methods: pure functions from tensors to tensors."""

from emo.losses.attention import MINIMUM_ROWS, CkaLoss, Estimator, Reduction, attention_loss
from emo.losses.cka import cka, pooled_cka
from emo.losses.contrastive import info_nce
from emo.losses.cosine import mean_cosine
from emo.losses.cost import attention_cost, centred_states, cosine_cost, euclidean_cost
from emo.losses.fused import fused_transport_loss
from emo.losses.importance import (
    pair_shares,
    paper_student_masses,
    paper_teacher_masses,
    student_masses,
    teacher_masses,
)
from emo.losses.logits import logit_loss
from emo.losses.matched import PairLoss, matched_loss
from emo.losses.paper_transport import paper_transport_loss
from emo.losses.plan import TransportLoss
from emo.losses.pooled import cosine_loss, relational_loss
from emo.losses.relations import relation_loss
from emo.losses.root_cka import root_cka
from emo.losses.similarity import similarity_loss
from emo.losses.task import class_loss, score_loss, scores_of
from emo.losses.transport import transport_loss
from emo.losses.unbalanced import unbalanced_transport_loss

__all__ = [
    "MINIMUM_ROWS",
    "CkaLoss",
    "Estimator",
    "PairLoss",
    "Reduction",
    "TransportLoss",
    "attention_cost",
    "attention_loss",
    "centred_states",
    "cka",
    "class_loss",
    "cosine_cost",
    "cosine_loss",
    "euclidean_cost",
    "fused_transport_loss",
    "info_nce",
    "logit_loss",
    "matched_loss",
    "mean_cosine",
    "pair_shares",
    "paper_student_masses",
    "paper_teacher_masses",
    "paper_transport_loss",
    "pooled_cka",
    "relation_loss",
    "relational_loss",
    "root_cka",
    "score_loss",
    "scores_of",
    "similarity_loss",
    "student_masses",
    "teacher_masses",
    "transport_loss",
    "unbalanced_transport_loss",
]
