"""Teacher signals on disk: shards that jobs fill apart, and the one file that joins them."""

from emo.store.gathered import STORE_FILE, Store, gather, verify
from emo.store.name import ShardName
from emo.store.reconstruction import Reconstruction
from emo.store.shard import Shard, ShardWriter, write_shard
from emo.store.states import BASIS, Basis, StateCodec, read_basis
from emo.store.totals import TOKENS

__all__ = [
    "BASIS",
    "STORE_FILE",
    "TOKENS",
    "Basis",
    "Reconstruction",
    "Shard",
    "ShardName",
    "ShardWriter",
    "StateCodec",
    "Store",
    "gather",
    "read_basis",
    "verify",
    "write_shard",
]
