import json

import numpy as np
import pytest

from emo.errors import ConfigError, DataError
from emo.store import Shard, ShardName, Store, gather, verify, write_shard
from emo.texts import text_key

TEXTS = ("a", "b", "ü", "d", "e")
KEYS = [text_key(text) for text in TEXTS]
LENGTHS = (1, 2, 0, 3, 1)


def write(folder, chosen, identity=None):
    """A shard of some texts: text i has the vector (i, i, i, i) and tokens 10 i, 10 i + 1, ..."""
    totals = {"texts": len(chosen), "vector_sum": [float(sum(chosen))] * 4}
    with write_shard(folder, identity or {"code": "1"}, totals) as writer:
        writer.create("vectors", "float32", (4,))
        writer.create("tokens", "int64", offsets="offsets")
        for text in chosen:
            writer.append_keys([KEYS[text]])
            writer.append("vectors", np.full((1, 4), text, dtype=np.float32))
            writer.append_counts("offsets", [LENGTHS[text]])
            writer.append("tokens", 10 * text + np.arange(LENGTHS[text]))
    return folder


@pytest.fixture
def path(tmp_path):
    """A store of two shards and an empty third, each in another order than the texts."""
    folder = tmp_path / "deep" / "store"
    shards = [write(folder / f"{n}-of-3", c) for n, c in ((1, [1, 0]), (2, [4, 3, 2]), (3, []))]
    gather(shards[::-1], folder / "store.json")
    return folder / "store.json"


def test_what_is_written_is_read(path):
    store = Store(path)
    assert (len(store), store.identity) == (5, {"code": "1"})
    rows = store.rows(KEYS)
    assert store.stacked("vectors", rows)[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert store.stacked("vectors", rows).dtype == np.float32
    expected = [[10 * text + n for n in range(LENGTHS[text])] for text in range(5)]
    assert [piece.tolist() for piece in store.pieces("tokens", rows)] == expected
    assert store.counts("tokens")[rows].tolist() == list(LENGTHS)
    assert store["vector_centre"].tolist() == [2.0] * 4


def test_rows_are_found_by_key_in_any_order(path):
    """Pitfalls 15 to 18: rows by position pair a text with another text's signals."""
    store = Store(path)
    rows = store.rows([KEYS[2], KEYS[0], KEYS[2]])
    assert store.stacked("vectors", rows)[:, 0].tolist() == [2, 0, 2]
    assert store.rows([]).tolist() == []


def test_keys_that_end_in_zeros_are_told_apart(tmp_path):
    """Numpy takes zeros at the end of a byte string for padding."""
    keys = ["ab" * 31 + "00", "ab" * 30 + "0000", "00" * 32]
    with write_shard(tmp_path / "1-of-1", {}, {"texts": 3}) as writer:
        writer.append_keys(keys)
    gather([tmp_path / "1-of-1"], tmp_path / "store.json")
    store = Store(tmp_path / "store.json")
    assert store.rows(keys[::-1]).tolist() == [2, 1, 0]
    with pytest.raises(DataError, match="1 of 1 texts are not in the store"):
        store.rows(["ab" * 29 + "000000"])


def test_a_text_that_is_not_there_is_an_error(path):
    absent = text_key("c")
    with pytest.raises(DataError, match=rf"1 of 2 .* not in the store \(first: {absent[:12]}"):
        Store(path).rows([KEYS[0], absent])


def test_an_unknown_signal_is_an_error_that_lists_the_known(path):
    """Pitfall 25."""
    with pytest.raises(DataError, match=r"no signal `states`; it holds \['keys', 'offsets'"):
        Store(path).pieces("states", [0])
    with pytest.raises(DataError, match=r"no signal `state_centre`; it holds \['vector_centre'\]"):
        Store(path)["state_centre"]


def damage(path, how):
    content = path.read_bytes()
    path.write_bytes({"cut": content[:-3], "flip": content[:-1] + bytes([content[-1] ^ 1])}[how])


def test_a_truncated_or_missing_file_is_named_when_the_store_is_opened(path):
    shard = path.parent / "2-of-3"
    damage(shard / "tokens.npy", "cut")
    way_out = rf"remove {shard} and run `snakemake {shard} {path}`"
    with pytest.raises(DataError, match=rf"2-of-3/tokens\.npy: truncated.*; {way_out}"):
        Store(path)
    (shard / "tokens.npy").unlink()
    with pytest.raises(DataError, match=rf"2-of-3/tokens\.npy: missing; {way_out}"):
        Store(path)


def test_flipped_bits_are_found_by_verify_and_by_gather(path):
    """Opening reads no array, so it cannot know; a training would have to hash the whole store."""
    verify(path)
    damage(path.parent / "2-of-3" / "tokens.npy", "flip")
    damage(path.parent / "1-of-3" / "vectors.npy", "flip")
    Store(path)
    with pytest.raises(DataError, match=r"1-of-3/vectors.npy: damaged.*\n.*2-of-3/tokens.npy: dam"):
        verify(path)
    with pytest.raises(DataError, match=r"1-of-3/vectors\.npy: damaged; remove .*1-of-3 and run"):
        gather([path.parent / f"{n}-of-3" for n in (1, 2, 3)], path)


def test_a_shard_that_was_made_anew_must_be_gathered_anew(path):
    write(path.parent / "1-of-3", [0, 1])
    with pytest.raises(DataError, match="1-of-3: not the shard that was gathered; run `snakemake"):
        Store(path)


def test_the_same_shard_made_again_is_the_gathered_one(path):
    before = path.read_bytes()
    write(path.parent / "1-of-3", [1, 0])
    assert len(Store(path)) == 5
    gather([path.parent / f"{n}-of-3" for n in (1, 2, 3)], path)
    assert path.read_bytes() == before


def test_shards_of_different_origin_are_not_joined(path):
    """Pitfall 19: half of the texts with another prompt."""
    shards = [path.parent / f"{n}-of-3" for n in (1, 2, 3)]
    write(shards[1], [2, 3, 4], {"code": "1", "prompt": "other"})
    with pytest.raises(DataError, match=r"2-of-3: made from something else .*different prompt"):
        gather(shards, path)


@pytest.mark.parametrize("numbers", [(1, 2), (1, 3), (), (1, 1, 2)])
def test_a_part_that_is_missing_is_no_store(path, numbers):
    with pytest.raises(DataError, match="not all shards of one set|no shards"):
        gather([path.parent / f"{n}-of-3" for n in numbers], path)


def test_shards_lie_beside_their_file(path, tmp_path):
    with pytest.raises(DataError, match="1-of-3: not beside"):
        gather([path.parent / f"{n}-of-3" for n in (1, 2, 3)], tmp_path / "store.json")


def test_a_shard_without_manifest_is_unfinished(path):
    (path.parent / "3-of-3" / "manifest.json").unlink()
    with pytest.raises(DataError, match=r"3-of-3: no manifest\.json; the shard is unfinished"):
        Store(path)


def test_a_store_that_was_not_gathered_is_none(path):
    path.unlink()
    with pytest.raises(DataError, match=r"store\.json: not there; gather its shards with `emo st"):
        Store(path)


def test_another_layout_is_refused(path):
    for file in (path.parent / "1-of-3" / "manifest.json", path):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"layout": 1}))
        with pytest.raises(DataError, match="layout 1, this version reads 2"):
            Store(path)


def test_a_failed_write_leaves_nothing(tmp_path):
    def fail():
        with write_shard(tmp_path / "1-of-1", {}, {}) as writer:
            writer.create("vectors", "float32", (4,))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_rows_of_another_shape_or_type_are_refused(tmp_path):
    with write_shard(tmp_path / "1-of-1", {}, {}) as writer:
        writer.create("vectors", "float32", (4,))
        for wrong in (np.zeros((1, 3), dtype=np.float32), np.zeros((1, 4))):
            with pytest.raises(ValueError, match=r"vectors\.npy: rows of float32\(4,\), not"):
                writer.append("vectors", wrong)


def test_the_digest_follows_identity_and_content(path):
    """A training names the store it used by this digest."""
    before = Store(path).digest
    shards = [path.parent / f"{n}-of-3" for n in (1, 2, 3)]
    write(shards[0], [0, 1])
    gather(shards, path)
    other_content = Store(path).digest
    for shard, chosen in zip(shards, ([0, 1], [4, 3, 2], []), strict=True):
        write(shard, chosen, {"code": "2"})
    gather(shards, path)
    assert len({before, other_content, Store(path).digest}) == 3


def test_large_arrays_are_memory_maps_that_can_be_given_back(tmp_path):
    with write_shard(tmp_path / "1-of-1", {}, {}) as writer:
        writer.create("states", "float32", (8,))
        for block in range(4):
            writer.append("states", np.full((1 << 14, 8), block, dtype=np.float32))
    shard = Shard(tmp_path / "1-of-1")
    states = shard.array("states")
    assert states.shape == (1 << 16, 8)
    assert states[:: 1 << 14, 0].tolist() == [0, 1, 2, 3]
    assert not states.flags.writeable
    held = resident(tmp_path / "1-of-1" / "states.npy")
    assert held > 0, "a memory map"
    shard.release()
    assert resident(tmp_path / "1-of-1" / "states.npy") == 0
    assert states[-1, 0] == 3
    np.testing.assert_array_equal(np.load(tmp_path / "1-of-1" / "states.npy"), states)


def resident(path):
    """Return how many KiB of a file this process holds mapped."""
    with open("/proc/self/smaps") as maps:
        lines = iter(maps)
        for line in lines:
            if line.rstrip().endswith(str(path)):
                return next(int(found.split()[1]) for found in lines if found.startswith("Rss:"))
    return 0


def test_shards_part_the_texts():
    for texts in (0, 1, 7, 24):
        for count in (1, 2, 5, 9):
            parts = [ShardName(count, number + 1).rows(texts) for number in range(count)]
            assert [row for part in parts for row in part] == list(range(texts))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("name", ["store", "0-of-2", "3-of-2", "1-of-0", "1-of-2x"])
def test_a_name_of_no_shard_is_refused(name):
    with pytest.raises(ConfigError, match=f"`{name}` names no shard; write one like 1-of-2"):
        ShardName.parse(name)
