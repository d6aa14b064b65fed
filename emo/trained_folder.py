"""Save a trained model with the layout of the SentenceTransformer folder it was loaded from."""

import shutil
from pathlib import Path
from typing import Any

from emo.encoder import Encoder
from emo.outputs import read_json, sha256_file, write_json

_TAKEN_OVER = ("sentence_bert_config.json", "tokenizer.json")
"""What a save would write anew: without the loading options, and with the last call's padding."""


def save_trained(encoder: Encoder, prepared: Path, out: Path, **told: Any) -> None:
    """Save a trained model.

    Args:
        encoder: The trained model.
        prepared: The folder it was loaded from; how it is loaded is taken over from there.
        out: Folder to write.
        told: What else ``model.json`` is to say.
    """
    encoder.model.save_pretrained(str(out), create_model_card=False)
    for name in _TAKEN_OVER:
        shutil.copy(prepared / name, out / name)
    record = read_json(prepared / "model.json") | told
    record["weights_sha256"] = sha256_file(out / "model.safetensors")
    record["parameters"] = sum(weight.numel() for weight in encoder.parameters())
    write_json(out / "model.json", record)
