import json

import numpy as np
import pytest

from emo.errors import DataError
from emo.store import Store, write_store
from emo.texts import text_key

KEYS = [text_key(text) for text in ("a", "b", "ü")]


def write(folder, identity=None):
    with write_store(folder, identity or {"code": "1"}, KEYS) as writer:
        vectors = writer.create("vectors", (3, 4), "float32")
        vectors[:] = np.arange(12).reshape(3, 4)
        writer.create("nothing", (0, 4), "float32")
        writer.save("offsets", np.array([0, 1, 3, 7]))
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "deep" / "store")


def test_what_is_written_is_read(folder):
    store = Store(folder)
    assert store["vectors"].tolist() == np.arange(12).reshape(3, 4).tolist()
    assert store["vectors"].dtype == np.float32
    assert store["offsets"].tolist() == [0, 1, 3, 7]
    assert store["nothing"].shape == (0, 4)
    assert (len(store), store.identity) == (3, {"code": "1"})


def test_rows_are_found_by_key_in_any_order(folder):
    """Pitfalls 15 to 18: rows by position pair a text with another text's signals."""
    assert Store(folder).rows([KEYS[2], KEYS[0], KEYS[2]]).tolist() == [2, 0, 2]
    assert Store(folder).rows([]).tolist() == []


def test_a_text_that_is_not_there_is_an_error(folder):
    with pytest.raises(DataError, match="1 of 2 texts are not in the store .* make it again"):
        Store(folder).rows([KEYS[0], text_key("c")])


def test_an_unknown_signal_is_an_error_that_lists_the_known(folder):
    """Pitfall 25."""
    with pytest.raises(DataError, match=r"no signal `states`; it holds \['nothing', 'offsets'"):
        Store(folder)["states"]


def test_damaged_truncated_and_missing_files_are_named(folder):
    path = folder / "vectors.npy"
    content = path.read_bytes()
    for damage, state in (
        (content[:-3], "damaged"),
        (content[:-1] + bytes([content[-1] ^ 1]), "damaged"),
        (None, "missing"),
    ):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
        with pytest.raises(DataError, match=rf"vectors\.npy: {state}; remove .*store"):
            Store(folder)
        path.write_bytes(content)


def test_a_store_without_manifest_is_unfinished(folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"no manifest\.json; the store is unfinished"):
        Store(folder)


def test_another_layout_is_refused(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"layout": 0}))
    with pytest.raises(DataError, match="layout 0, this version reads 1"):
        Store(folder)


def test_a_failed_write_leaves_nothing(tmp_path):
    def fail():
        with write_store(tmp_path / "store", {}, KEYS) as writer:
            writer.create("vectors", (3, 4), "float32")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_the_digest_follows_identity_and_content(folder, tmp_path):
    """A training names the store it used by this digest."""
    assert Store(write(tmp_path / "same")).digest == Store(folder).digest
    assert Store(write(tmp_path / "other", {"code": "2"})).digest != Store(folder).digest


def test_large_arrays_are_memory_maps(tmp_path):
    with write_store(tmp_path / "store", {}, []) as writer:
        writer.create("states", (1 << 16, 8), "float32")[:] = 1
    states = Store(tmp_path / "store")["states"]
    assert isinstance(states, np.memmap)
    assert not states.flags.writeable
