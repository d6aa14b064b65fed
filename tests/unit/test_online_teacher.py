"""A batch of an asked teacher against the same batch read from a store of float32."""

import shutil

import pytest
import torch
from transformers import set_seed

from emo.assembly import assemble
from emo.config_models import TeacherSettings
from emo.encoder import Encoder
from emo.models import prepare_model
from emo.outputs import read_json

from ..conftest import Tiny
from ..plain_models import PlainModel
from ..stores import make_store
from ..tiny_decoders import write_folder
from ..tiny_models import TEACHER_PROMPT, write_texts
from .tiny_online import ONLINE, online_inputs, online_store, stored_inputs
from .tiny_training import FORMS, settings

TEACHERS = {
    "wordpiece": ("mpnet", {"prompt": "query: "}),
    "unigram-without-prompt": ("xlm-roberta", {}),
    "left-padded-bytes": ("qwen3", {"pooling": "last", "end_token": "<|endoftext|>"}),
    "bidirectional-prompt-left-out": (
        "mistral",
        {"bidirectional": True, "prompt": "Find the text ", "include_prompt": False},
    ),
}
BATCHES = [[0, 5, 23, 17, 18], [19, 2, 18], [21, 20, 22, 1, 1]]
"""Numbers of texts, hard ones among them; 18 has no pairs, and one text stands there twice."""


def made_of(files, texts):
    """Write a text set and the stored signals of a teacher and a student that are there."""
    write_texts(texts, files.texts)
    make_store(files.teacher, files.texts, files.folder / "store")
    return files


@pytest.fixture(scope="module", params=TEACHERS)
def files(request, tiny_models, tmp_path_factory):
    """A teacher of another make with the same student and texts."""
    folder = tmp_path_factory.mktemp("teacher")
    name, options = TEACHERS[request.param]
    source = write_folder(name, folder / "source", seed=4)
    chosen = TeacherSettings(source={"path": "unused"}, max_length=60, **options)
    prepare_model(chosen, source, folder / "teacher")
    shutil.copytree(tiny_models.student, folder / "student")
    return made_of(Tiny(folder, folder, tiny_models.texts_read), list(tiny_models.texts_read))


def assembled(inputs, folder, form, method=None):
    set_seed(1)
    return assemble(settings(form, method=method), inputs, folder)


def assert_same_batch(batch, expected):
    assert batch.keys() == expected.keys()
    for name, tensor in expected.items():
        assert batch[name].shape == tensor.shape, name
        assert batch[name].dtype == tensor.dtype, name
        if name in ("teacher_states", "teacher_rows"):
            assert (batch[name] - tensor).abs().max() < 1e-5, name
        else:
            assert torch.equal(batch[name], tensor), name


def assert_same(files, tmp_path, form, method=None):
    """Compare batches and, as in training, with dropout, the terms that are made of them."""
    stored = assembled(stored_inputs(files, form, method), tmp_path / "stored", form, method)
    online = assembled(online_inputs(files, form, method), tmp_path / "online", form, method)
    for numbers in BATCHES:
        expected, batch = stored.collator(numbers), online.collator(numbers)
        assert_same_batch(batch, expected)
        terms = []
        for made, tensors in ((stored, expected), (online, batch)):
            set_seed(2)
            made.model.train()
            device = made.model.student.device
            terms.append(made.model(**{name: tensors[name].to(device) for name in tensors}))
        one, other = terms
        assert one.losses.keys() == other.losses.keys()
        for name, term in one.losses.items():
            assert other.losses[name].item() == pytest.approx(term.item(), abs=1e-4), name
        assert {name: float(count) for name, count in one.counts.items()} == {
            name: float(count) for name, count in other.counts.items()
        }


@pytest.mark.parametrize("form", FORMS)
def test_batches_and_terms_are_those_of_the_store(files, tmp_path, form):
    assert_same(files, tmp_path, form)


@pytest.mark.parametrize("form", FORMS)
def test_pairs_of_texts_are_read_alike(tiny_pairs, tmp_path, monkeypatch, form):
    monkeypatch.setitem(globals(), "BATCHES", [[0, 9, 4], [10, 8, 1]])
    assert_same(tiny_pairs, tmp_path, form)


@pytest.mark.parametrize(
    ("form", "method"),
    [
        ("emo", {"row_ranking": "content"}),
        ("emo", {"rows": "third", "row_pairing": "apart"}),
        ("emo", {"row_text": "normalised"}),
        ("emo", {"layers": [[0, 3], [1, 0]]}),
        ("emo", {"tokens": "all"}),
        ("emo", {"attention": 0.0}),
        ("emo", {"transport": 0.0}),
        ("emo-paper", {"row_ranking": "text"}),
        ("emo-paper", {"transport": 0.0}),
    ],
)
def test_each_choice_between_the_forms_is_asked_for_alike(tiny, tmp_path, form, method):
    assert_same(tiny, tmp_path, form, method)


def test_states_and_rows_are_those_of_the_text_alone(tiny, tmp_path):
    """Against transformers itself: no prompt's state, padding in no state, its prompt attended."""
    plain = PlainModel(tiny.teacher, TEACHER_PROMPT)
    batch = assembled(online_inputs(tiny), tmp_path, "emo").collator(BATCHES[0])
    for place, number in enumerate(BATCHES[0]):
        read = plain(tiny.texts_read[number])
        count = len(read.kept)
        assert batch["teacher_mask"][place].tolist() == [
            column < count for column in range(batch["teacher_mask"].shape[1])
        ]
        states = batch["teacher_states"][place]
        torch.testing.assert_close(states[:count], read.states, atol=2e-5, rtol=0)
        assert not states[count:].any()
        rows = batch["teacher_rows"][0, place][batch["row_mask"][place]]
        columns = batch["row_positions"][place][batch["row_mask"][place]].tolist()
        teacher_of = {
            student: teacher for text, teacher, student in batch["pairs"].tolist() if text == place
        }
        expected = read.attention[3][[teacher_of[column] for column in columns]]
        torch.testing.assert_close(rows[:, :count], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("form", "method", "passes"),
    [
        ("pooled", {}, 0),
        ("emo", {}, 1),
        ("emo", {"attention": 0.0}, 1),
        ("emo", {"transport": 0.0}, 1),
        ("emo", {"row_ranking": "content"}, 2),
        ("emo-paper", {}, 3),
        ("emo-paper", {"transport": 0.0}, 2),
    ],
)
def test_the_teacher_runs_no_oftener_than_it_has_to(
    tiny, tmp_path, monkeypatch, form, method, passes
):
    """States and rows of one text come out of one pass."""
    made = assembled(online_inputs(tiny, form, method), tmp_path, form, method)
    counted = []
    forward = Encoder.forward

    def count(self, *args):
        counted.append(self)
        return forward(self, *args)

    monkeypatch.setattr(Encoder, "forward", count)
    made.collator([0, 3, 7])
    assert len(counted) == passes


def test_a_batch_of_many_tokens_is_read_in_several_passes(tiny, tmp_path, monkeypatch):
    """What bounds the memory of the teacher pass bounds it here, and the order stays."""
    monkeypatch.setattr("emo.teacher_pass.BATCH_TOKENS", 60)
    stored = assembled(stored_inputs(tiny), tmp_path / "stored", "emo")
    online = assembled(online_inputs(tiny), tmp_path / "online", "emo")
    sizes = []
    forward = Encoder.forward

    def see(self, input_ids, *args):
        sizes.append(input_ids.numel())
        return forward(self, input_ids, *args)

    monkeypatch.setattr(Encoder, "forward", see)
    numbers = [0, 19, 5, 17, 1, 7, 23]
    assert_same_batch(online.collator(numbers), stored.collator(numbers))
    assert len(sizes) > 2
    assert max(sizes) <= 60


def test_the_teacher_is_no_part_of_what_is_trained(tiny, tmp_path):
    """Pitfall 93: it is neither wrapped nor saved, has no dropout and no gradients."""
    made = assembled(online_inputs(tiny), tmp_path, "emo")
    teacher = made.collator._source._encoder
    made.model.train()
    assert not teacher.training
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    trained = {id(parameter) for parameter in made.model.parameters()}
    assert not trained & {id(parameter) for parameter in teacher.parameters()}
    batch = made.collator([0, 1])
    assert not any(tensor.requires_grad or tensor.is_inference() for tensor in batch.values())
    assert teacher.device == made.model.student.device


def test_the_teacher_has_the_precision_of_its_store_and_hands_over_float32(tiny, tmp_path):
    store = make_store(
        tiny.teacher, tiny.texts, tmp_path / "half", settings=ONLINE, dtype="bfloat16"
    )
    made = assembled(online_inputs(tiny, store=store), tmp_path / "tokens", "emo")
    teacher = made.collator._source._encoder
    assert {parameter.dtype for parameter in teacher.parameters()} == {torch.bfloat16}
    full = assembled(online_inputs(tiny), tmp_path / "full", "emo").collator([0, 1, 2])
    batch = made.collator([0, 1, 2])
    for name in ("teacher_states", "teacher_rows"):
        assert batch[name].dtype == torch.float32
    difference = (batch["teacher_states"] - full["teacher_states"]).abs().max()
    assert 1e-5 < difference < 0.2


def test_a_store_without_states_is_small_and_otherwise_the_same(tiny):
    """Bit for bit, so that a head and its centres are those of the stored way."""
    online, full = online_store(tiny).parent, tiny.store.parent
    for part in ("1-of-2", "2-of-2"):
        names = {path.name for path in (online / part).glob("*.npy")}
        assert {path.name for path in (full / part).glob("*.npy")} - names == {"states.npy"}
        for name in names:
            assert (online / part / name).read_bytes() == (full / part / name).read_bytes()
    one, other = (read_json(folder / "store.json") for folder in (online, full))
    assert one["constants"] == other["constants"]
    assert one["record"].keys() == {"texts", "bytes", "text_tokens", "tokens"}
    assert one["identity"]["store"]["states"] == "online"
    # A text has 48 numbers, and each of its tokens 9 bytes instead of 9 and 48 numbers.
    assert one["record"]["bytes"] < other["record"]["bytes"] / 4
