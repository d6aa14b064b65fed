"""What is stored with less precision, width or tokens, against plain float64 computations."""

import numpy as np
import pytest
import torch
from scipy.fft import dct

from emo.alignment import read_alignment
from emo.batches import Collator, TokenSignals
from emo.config_store import StoreSettings
from emo.encoder import load_encoder
from emo.errors import CheckError, ConfigError, DataError
from emo.outputs import read_json
from emo.store import Store, gather
from emo.store.states import CLIPPED, Basis, StateCodec
from emo.teach import teach
from emo.teach_basis import Moments, mixed, teach_basis
from emo.texts import text_key
from emo.token_source import StoredSource

from ..stores import make_store

WIDTH = 12
ASKED = {
    "half": {"states": "float16"},
    "int8": {"states": "int8"},
    "int4": {"states": "int4"},
    "narrow": {"width": WIDTH},
    "int4-narrow": {"states": "int4", "width": WIDTH},
    "int8-narrow": {"states": "int8", "width": WIDTH},
    "few": {"tokens": 3},
    "all": {"states": "int8", "width": WIDTH, "tokens": 3},
}


@pytest.fixture(scope="module")
def full(tiny):
    return Store(tiny.store)


@pytest.fixture(scope="module", params=ASKED)
def asked(request):
    return StoreSettings(**ASKED[request.param])


@pytest.fixture(scope="module")
def path(tiny, asked, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compressed")
    if asked.width is not None:
        teach_basis(tiny.teacher, tiny.texts, folder / "basis", asked.width)
    return make_store(tiny.teacher, tiny.texts, folder, settings=asked)


def kept_positions(full, row, most):
    """The most important text tokens of a text, the first one first on ties."""
    special, importance = (full.pieces(name, [row])[0] for name in ("special", "importance"))
    places = [place for place in range(len(special)) if not special[place]]
    ranked = sorted(places, key=lambda place: (-importance[place], place))
    return sorted(ranked[:most]) if most else list(range(len(special)))


def basis_of(full, width):
    """Mean of all tokens, and their first components by an SVD, mixed by scipy's transform."""
    states = np.concatenate(full.pieces("states", range(len(full)))).astype(np.float64)
    centre = states.mean(axis=0)
    components = np.linalg.svd(states - centre, full_matrices=False)[2][:width]
    for component in components:
        component *= np.sign(component[np.abs(component).argmax()])
    return centre, dct(components, axis=0, norm="ortho")


def rounded(values, precision):
    """Each token with a precision's own steps, in float64."""
    if precision == "float16":
        return values.astype(np.float16).astype(np.float64)
    if precision == "int8":
        return np.array([steps(token, np.abs(token).max() / 127, 127) for token in values])
    if precision == "int4":
        return np.array([best_steps(token) for token in values])
    return values


def steps(token, scale, most):
    return np.clip(np.round(token / scale), -most, most) * scale


def best_steps(token):
    """Of the steps that leave the largest number as it is or cut it off, the closest ones."""
    tried = [steps(token, share * np.abs(token).max() / 7, 7) for share in CLIPPED["int4"]]
    return min(tried, key=lambda found: ((found - token) ** 2).sum())


@pytest.fixture(scope="module")
def expected(full, asked, tiny):
    """For each text the states as they were and as they must come back."""
    pairs = []
    for text in tiny.texts_read:
        row = full.rows([text_key(text)])[0]
        kept = kept_positions(full, row, asked.tokens)
        states = full.pieces("states", [row])[0][kept].astype(np.float64)
        back = states
        if asked.width is not None:
            centre, components = basis_of(full, asked.width)
            back = rounded((states - centre) @ components.T, asked.states) @ components + centre
        else:
            back = rounded(states, asked.states)
        pairs.append((states, back))
    return pairs


def test_states_come_back_as_a_plain_computation_has_them(tiny, path, asked, expected):
    """An integer may fall to the other side where float32 rounds, hence one step of room."""
    store = Store(path)
    restored = store.states(store.rows([text_key(text) for text in tiny.texts_read]))
    for (_, back), found in zip(expected, restored, strict=True):
        assert found.dtype == np.float32
        steps = {"int8": 127, "int4": 7}.get(asked.states)
        room = 1e-4 if steps is None else 2 * np.abs(back).max() / steps
        np.testing.assert_allclose(found, back, atol=room)
        assert np.abs(found - back).mean() < 1e-3


def test_the_reported_error_is_that_of_what_is_read(tiny, path, asked, expected):
    store = Store(path)
    restored = store.states(store.rows([text_key(text) for text in tiny.texts_read]))
    given = np.concatenate([states for states, _ in expected])
    back = np.concatenate(restored).astype(np.float64)
    cosines = [
        x @ y / np.linalg.norm(x) / np.linalg.norm(y) for x, y in zip(given, back, strict=True)
    ]
    squares = ((given - back) ** 2).sum()
    record = store.record
    assert record["stored_tokens"] == len(given)
    assert record["state_cosine"] == pytest.approx(np.mean(cosines), abs=1e-9)
    relative = np.sqrt(squares / (given**2).sum())
    assert record["state_relative_error"] == pytest.approx(relative, rel=1e-5, abs=1e-9)
    spread = ((given - given.mean(axis=0)) ** 2).sum()
    assert record["state_unexplained"] == pytest.approx(squares / spread, rel=1e-5, abs=1e-9)
    lossless = asked.states == "float32" and asked.width is None
    assert (record["state_relative_error"] == 0) == lossless


def test_everything_else_is_as_in_the_full_store(tiny, path, full):
    store, keys = Store(path), [text_key(text) for text in tiny.texts_read]
    rows, full_rows = store.rows(keys), full.rows(keys)
    for name in ("vector_centre", "state_centre"):
        np.testing.assert_array_equal(store[name], full[name])
    np.testing.assert_array_equal(
        store.stacked("vectors", rows), full.stacked("vectors", full_rows)
    )
    for name in ("importance", "importance_all", "special"):
        for one, other in zip(store.pieces(name, rows), full.pieces(name, full_rows), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_share_of_importance_that_is_kept_is_reported(tiny, path, asked, full):
    record = Store(path).record
    if asked.tokens is None:
        assert "importance_kept" not in record
        return
    kept = total = 0.0
    for row in range(len(full)):
        importance = full.pieces("importance", [row])[0].astype(np.float64)
        total += importance.sum()
        kept += importance[kept_positions(full, row, asked.tokens)].sum()
    assert record["importance_kept"] == pytest.approx(kept / total, rel=1e-6)
    assert 0.2 < record["importance_kept"] < 0.95


def test_a_full_store_reports_no_loss(full):
    assert full.record["state_cosine"] == pytest.approx(1.0, abs=1e-12)
    assert full.record["state_relative_error"] == full.record["state_unexplained"] == 0.0


def test_batches_hold_the_kept_columns_and_their_pairs(tiny, path, full, asked):
    tokenized = load_encoder(tiny.student, device=torch.device("cpu")).tokenizer()(tiny.texts_read)
    alignment = read_alignment(tiny.alignment("mined.original"))
    keys = [text_key(text) for text in tiny.texts_read]
    numbers = [5, 0, 17, 23, 2]
    of_full, of_path = (
        Collator(
            *(tokenized, keys, 0, store, StoredSource(store, keys, states=True)),
            TokenSignals("importance", alignment),
        )
        for store in (full, Store(path))
    )
    whole, batch = of_full(numbers), of_path(numbers)
    pairs = set()
    for place, number in enumerate(numbers):
        row = full.rows([keys[number]])[0]
        kept = kept_positions(full, row, asked.tokens)
        assert batch["teacher_mask"][place].sum() == len(kept)
        for name in ("teacher_importance", "teacher_text"):
            expected = whole[name][place][kept].tolist()
            assert batch[name][place][: len(kept)].tolist() == expected
            assert not batch[name][place][len(kept) :].any()
        pairs |= {
            (place, kept.index(teacher), student)
            for text, teacher, student in whole["pairs"].tolist()
            if text == place and teacher in kept
        }
    assert {tuple(pair) for pair in batch["pairs"].tolist()} == pairs
    assert len(pairs) == len(batch["pairs"])
    dropped = len(whole["pairs"]) - len(pairs)
    assert (dropped > 0) == (asked.tokens is not None)
    assert (of_path.pairs_read, of_path.pairs_dropped) == (len(whole["pairs"]), dropped)
    assert batch["teacher_states"].dtype == torch.float32


@pytest.mark.parametrize(("precision", "largest"), [("int8", 127), ("int4", 7)])
def test_a_token_of_zeros_survives_integers(precision, largest):
    codec = StateCodec(precision, None)
    states = np.zeros((2, 4), dtype=np.float32)
    states[1] = [1, 2, 3, -4]
    restored = codec.decode(*codec.encode(states))
    np.testing.assert_allclose(restored, states, atol=4 / largest / 2)
    assert restored[0].tolist() == [0, 0, 0, 0]


def test_a_state_too_large_for_float16_is_refused():
    with pytest.raises(CheckError, match="too large for float16; set the teacher's `store.states`"):
        StateCodec("float16", None).encode(np.array([[1e5]], dtype=np.float32))


def test_components_are_those_of_an_svd():
    points = np.random.default_rng(0).normal(size=(200, 6)) @ np.diag([5, 3, 2, 1, 0.5, 0.1]) + 7
    moments = Moments(6)
    for block in np.split(points.astype(np.float32), 4):
        moments.add(block)
    centre, components, share = moments.components(3)
    np.testing.assert_allclose(centre, points.mean(axis=0), rtol=1e-5)
    _, values, vectors = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs((components * vectors[:3]).sum(axis=1)), 1, atol=1e-5)
    assert share == pytest.approx((values[:3] ** 2).sum() / (values**2).sum(), rel=1e-5)
    assert (components[np.arange(3), np.abs(components).argmax(axis=1)] > 0).all()
    codec = StateCodec("float32", Basis(centre, moments.components(6)[1], ""))
    np.testing.assert_allclose(
        codec.decode(*codec.encode(points.astype(np.float32))), points, rtol=1e-4
    )


def test_mixed_components_are_the_cosine_transform():
    given = np.random.default_rng(0).normal(size=(5, 9)).astype(np.float32)
    np.testing.assert_allclose(mixed(given), dct(given, axis=0, norm="ortho"), atol=1e-6)


def test_two_numbers_of_int4_share_a_byte():
    states = np.array([[7, -7, 0, 3, -1, 7]], dtype=np.float32)
    codes, scales = StateCodec("int4", None).encode(states)
    assert (codes.shape, codes.dtype, scales.tolist()) == ((1, 3), np.uint8, [1.0])
    assert codes[0].tolist() == [15 + (1 << 4), 8 + (11 << 4), 7 + (15 << 4)]
    np.testing.assert_array_equal(StateCodec("int4", None).decode(codes, scales), states)


def test_fine_steps_are_worth_more_than_the_ends():
    """For normal numbers four bits are best cut at 2.6 deviations, where 320 reach to 3."""
    states = np.random.default_rng(0).normal(size=(50, 320)).astype(np.float32)
    codec = StateCodec("int4", None)
    codes, scales = codec.encode(states)
    lost = np.square(codec.decode(codes, scales) - states).sum(axis=1)
    plain = np.array([steps(token, np.abs(token).max() / 7, 7) for token in states])
    unclipped = np.square(plain - states).sum(axis=1)
    assert (lost <= unclipped).all()
    assert lost.mean() < 0.85 * unclipped.mean()
    assert lost.mean() / 320 == pytest.approx(0.0125, abs=0.001)


def test_an_odd_width_of_int4_is_refused():
    with pytest.raises(ValueError, match="two components in a byte; give an even `width`"):
        StoreSettings(states="int4", width=5)


@pytest.mark.parametrize("shrunk", [{"width": 4}, {"tokens": 3}])
def test_states_that_are_not_stored_cannot_be_shrunk(shrunk):
    told = "stores no token states, so there are none to shrink; leave out `width` and `tokens`"
    with pytest.raises(ValueError, match=told):
        StoreSettings(states="online", **shrunk)


def test_more_components_than_dimensions_are_refused(tiny, tmp_path):
    with pytest.raises(ConfigError, match=r"store\.width: 49 is more than the 48 dimensions"):
        teach_basis(tiny.teacher, tiny.texts, tmp_path / "basis", 49)


def test_a_basis_is_fitted_first_and_stays_that_of_its_shards(tiny, tmp_path):
    settings = StoreSettings(width=4)
    with pytest.raises(DataError, match="basis: not there; fit the basis first"):
        teach(tiny.teacher, tiny.texts, tmp_path / "1-of-1", settings=settings)
    teach_basis(tiny.teacher, tiny.texts, tmp_path / "basis", 4)
    path = make_store(tiny.teacher, tiny.texts, tmp_path, settings=settings)
    teach_basis(tiny.teacher, tiny.texts, tmp_path / "basis", 5)
    with pytest.raises(DataError, match="basis: not the basis in which the shards are stored"):
        Store(path)
    with pytest.raises(DataError, match="basis: not the basis in which the shards are stored"):
        gather([tmp_path / "1-of-2", tmp_path / "2-of-2"], path)


def test_a_damaged_basis_is_named(tiny, tmp_path):
    teach_basis(tiny.teacher, tiny.texts, tmp_path / "basis", 4)
    path = tmp_path / "basis" / "components.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\x00")
    with pytest.raises(DataError, match=r"basis/components\.npy: damaged; remove"):
        teach(tiny.teacher, tiny.texts, tmp_path / "1-of-1", settings=StoreSettings(width=4))


def test_the_sizes_are_those_that_were_asked_for(tiny, path, asked, full):
    """A state costs its numbers, and for int8 a scale."""
    record = read_json(path)["record"]
    size = {"float32": 4, "float16": 2, "int8": 1, "int4": 0.5}[asked.states]
    scale = 4 * asked.states.startswith("int")
    token = size * (asked.width or 48) + scale + 4 * bool(asked.tokens)
    saved = full.record["stored_tokens"] * 4 * 48 - record["stored_tokens"] * token
    # Headers of 128 bytes and offsets are all else that differs.
    assert full.record["bytes"] - record["bytes"] == pytest.approx(saved, abs=1500)
