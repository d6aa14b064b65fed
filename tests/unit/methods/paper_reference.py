"""The paper's form written per text and token, without batches: the slow oracle of `emo-paper`.

Follows the authors' code in float64: maps by strings, column sums, softmax twice, root CKA,
Sinkhorn with offsets and an early end. Two things are this project's and not the authors':
ties go to the first string in sorted order, where theirs follow the hash seed; and models may have
prompts, whose tokens are no tokens of a text but stay columns of the student's attention rows.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import editdistance
import numpy as np
from torch import Tensor
from torch.nn import Linear

from ...plain_models import PlainModel, PlainPass, Text


@dataclass(frozen=True)
class Contrastive:
    """InfoNCE between two views of each text, which are one vector without dropout."""

    temperature: float


@dataclass(frozen=True)
class Classification:
    """Cross-entropy over the classes: BERT's pooler on [CLS], then a linear layer."""

    labels: Sequence[int]
    pooler: Linear
    classifier: Linear


@dataclass(frozen=True)
class Regression:
    """Squared error of 5 * sigmoid against scores of 0 to 5: two layers on [CLS]."""

    scores: Sequence[float]
    hidden: Linear
    output: Linear


Task = Contrastive | Classification | Regression


def reference_terms(
    teacher: PlainModel,
    student: PlainModel,
    texts: Sequence[Text],
    task: Task,
    projection: Linear,
    without_stop_words: Callable[[str], str],
) -> dict[str, float]:
    """Return the terms before their weights; `attention` is the sum scaled by 4/B.

    Args:
        teacher: With eager attention.
        student: The same, without dropout.
        texts: Texts, or pairs that are read as one joint sequence.
        task: The task, with one label or score a text and the weights of the head.
        projection: From the teacher's width to the student's.
        without_stop_words: Takes stop words and digits out of a normalised text.
    """
    layers = attention_layers(task, texts)
    relation = [relation_loss(teacher, student, text, layers, without_stop_words) for text in texts]
    transport = [transport_loss(teacher(text), student(text), projection) for text in texts]
    return {
        "task": task_loss(student, texts, task),
        "attention": sum(relation) * 4 / len(texts),
        "transport": sum(transport) / len(texts),
    }


def weighted(terms: Mapping[str, float], rate: float = 0.5, attention: float = 0.1):
    """Return the terms as they enter the total; the total is their sum."""
    return {
        "task": (1 - rate) * terms["task"],
        "attention": rate * attention * terms["attention"],
        "transport": rate * terms["transport"],
    }


def attention_layers(task: Task, texts: Sequence[Text]) -> int:
    """Return k: 1 to classify single texts, else 2."""
    single = all(isinstance(text, str) for text in texts)
    return 1 if isinstance(task, Classification) and single else 2


# Maps between token strings (1.1)


def nearest(string: str, candidates: set[str]) -> str:
    return min(sorted(candidates), key=lambda other: editdistance.eval(string, other))


def mutual_map(teacher_types: set[str], student_types: set[str]) -> dict[str, str]:
    """M1: teacher type to student type, where each is the other's nearest."""
    if not teacher_types or not student_types:
        return {}
    to_student = {t: nearest(t, student_types) for t in teacher_types}
    to_teacher = {s: nearest(s, teacher_types) for s in student_types}
    return {t: s for t, s in to_student.items() if to_teacher[s] == t}


def mass_map(
    teacher_tokens: Sequence[str], student_tokens: Sequence[str], first: tuple[str, str]
) -> dict[str, str]:
    """M2: teacher string to student string; `first` names what starts a sequence on each side."""
    teacher_first, student_first = first
    candidates = set(student_tokens) - {student_first}
    return {
        token: student_first if token == teacher_first else nearest(token, candidates)
        for token in teacher_tokens
    }


# Attention term (1.2, 1.3)


def normalised(student: PlainModel, text: Text) -> str:
    """Return the one string that a text or a pair has become for M1."""
    decoded = student.tokenizer.decode(student(text).ids, skip_special_tokens=True)
    return re.sub(r"[^\w\s]", "", decoded.lower())


def text_types(read: PlainPass) -> set[str]:
    return {token for token, special in zip(read.tokens, read.special, strict=True) if not special}


def column_sums(attention: Tensor) -> list[float]:
    """Return the attention that each token receives from all tokens."""
    return [sum(float(row[key]) for row in attention) for key in range(len(attention))]


def top_tokens(read: PlainPass, count: int) -> set[str]:
    """Return the strings on the `count` places that receive most attention in the last layer."""
    sums = column_sums(read.attention[-1])
    order = sorted(range(len(sums)), key=lambda place: (-sums[place], place))
    return {read.tokens[place] for place in order[:count]}


def first_place(read: PlainPass, token: str) -> int:
    return next(
        place
        for place, other in enumerate(read.tokens)
        if other == token and not read.special[place]
    )


def layer_pairs(student_layers: int, teacher_layers: int, count: int) -> list[tuple[int, int]]:
    """Pair the last student layers with the last teacher layer of their block."""
    block = teacher_layers // student_layers
    last = range(student_layers - count, student_layers)
    return [(layer, layer * block + block - 1) for layer in last]


def relation_loss(
    teacher: PlainModel,
    student: PlainModel,
    text: Text,
    layers: int,
    without_stop_words: Callable[[str], str],
) -> float:
    """Return the attention term of one text, summed over its layers."""
    string = normalised(student, text)
    teacher_read, student_read = teacher(string), student(string)
    mapped = mutual_map(text_types(teacher_read), text_types(student_read))
    top = top_tokens(teacher(without_stop_words(string)), len(mapped) // 3)
    kept = {t: s for t, s in mapped.items() if t in top}
    # The authors sort both lists apart, so row i of one side need not be mapped to row i.
    teacher_places = sorted(first_place(teacher_read, t) for t in kept)
    student_places = sorted(first_place(student_read, s) for s in kept.values())
    pairs = layer_pairs(len(student_read.attention), len(teacher_read.attention), layers)
    return sum(
        root_cka_loss(
            student_read.all_keys[student_layer][student_places].double().numpy(),
            teacher_read.attention[teacher_layer][teacher_places].double().numpy(),
        )
        for student_layer, teacher_layer in pairs
    )


def root_cka_loss(student_rows: np.ndarray, teacher_rows: np.ndarray) -> float:
    if len(student_rows) == 0:
        return 1.0
    student_rows = student_rows - student_rows.mean(axis=0)
    teacher_rows = teacher_rows - teacher_rows.mean(axis=0)
    norm = np.linalg.norm
    student_norm = norm(student_rows.T @ student_rows) + 1e-8
    teacher_norm = norm(teacher_rows.T @ teacher_rows) + 1e-8
    return float(1.0 - norm(student_rows.T @ teacher_rows) / math.sqrt(student_norm * teacher_norm))


# Transport term (1.2, 1.4)


def softmax(values: Sequence[float]) -> list[float]:
    highest = max(values)
    powers = [math.exp(value - highest) for value in values]
    total = sum(powers)
    return [power / total for power in powers]


def carried_masses(
    teacher_masses: Sequence[float],
    teacher_tokens: Sequence[str],
    student_tokens: Sequence[str],
    targets: Mapping[str, str],
) -> list[float]:
    """Write each teacher mass to every occurrence of its target; later tokens overwrite."""
    carried = [min(teacher_masses)] * len(student_tokens)
    for token, mass in zip(teacher_tokens, teacher_masses, strict=True):
        for place, student_token in enumerate(student_tokens):
            if student_token == targets[token]:
                carried[place] = mass
    return carried


def attention_cost(student_states: np.ndarray, projected: np.ndarray) -> np.ndarray:
    scores = student_states @ projected.T / math.sqrt(student_states.shape[1])
    return np.array([[1.0 - share for share in softmax(list(row))] for row in scores])


def sinkhorn(cost: np.ndarray, student_mass: np.ndarray, teacher_mass: np.ndarray) -> np.ndarray:
    """Return the plan of the authors' loop."""
    kernel = np.exp(-cost / 0.1)
    u = np.ones(len(student_mass))
    for _ in range(100):
        previous = u
        v = teacher_mass / (kernel.T @ u + 1e-9)
        u = student_mass / (kernel @ v + 1e-9)
        if np.abs(u - previous).max() < 1e-9:
            break
    return u[:, None] * kernel * v[None, :]


def transport_loss(teacher_read: PlainPass, student_read: PlainPass, projection: Linear) -> float:
    """Return the transport term of one text; both sides start with their [CLS]."""
    teacher_masses = softmax(column_sums(teacher_read.attention[-1]))
    first = teacher_read.tokens[0], student_read.tokens[0]
    targets = mass_map(teacher_read.tokens, student_read.tokens, first)
    student_masses = softmax(
        carried_masses(teacher_masses, teacher_read.tokens, student_read.tokens, targets)
    )
    projected = dense(projection, teacher_read.states.double().numpy())
    cost = attention_cost(student_read.states.double().numpy(), projected)
    student_mass = np.array(student_masses) / sum(student_masses)
    teacher_mass = np.array(teacher_masses) / sum(teacher_masses)
    return float((sinkhorn(cost, student_mass, teacher_mass) * cost).sum())


# Task term (1.5)


def dense(layer: Linear, states: np.ndarray) -> np.ndarray:
    weight, bias = layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()
    return states @ weight.T + bias


def head_output(first: Linear, second: Linear, read: PlainPass) -> np.ndarray:
    """Return what a head of two layers with tanh between them makes of the [CLS] state."""
    return dense(second, np.tanh(dense(first, read.states[0].double().numpy())))


def task_loss(student: PlainModel, texts: Sequence[Text], task: Task) -> float:
    reads = [student(text) for text in texts]
    if isinstance(task, Contrastive):
        return contrastive_loss([read.vector.double().numpy() for read in reads], task.temperature)
    losses = []
    if isinstance(task, Classification):
        for read, label in zip(reads, task.labels, strict=True):
            shares = softmax(list(head_output(task.pooler, task.classifier, read)))
            losses.append(-math.log(shares[label]))
    else:
        for read, score in zip(reads, task.scores, strict=True):
            (logit,) = head_output(task.hidden, task.output, read)
            losses.append((5 / (1 + math.exp(-logit)) - score) ** 2)
    return sum(losses) / len(losses)


def contrastive_loss(vectors: Sequence[np.ndarray], temperature: float) -> float:
    losses = []
    for own, vector in enumerate(vectors):
        shares = softmax([float(vector @ other) / temperature for other in vectors])
        losses.append(-math.log(shares[own]))
    return sum(losses) / len(losses)
