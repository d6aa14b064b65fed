"""Can attention be captured, and is it the same whatever stands beside a text?"""

import torch
from torch import Tensor

from emo.attention import Capture
from emo.doctor.finding import Finding
from emo.doctor.passes import lay_out
from emo.doctor.subject import Subject
from emo.encoder import Encoding
from emo.errors import ConfigError
from emo.tokens import TokenizedText

NAME = "attention"


def check_attention(subject: Subject) -> Finding:
    """Capture rows and importance of a text alone and beside a longer one."""
    by_length = sorted(subject.tokenized, key=lambda text: len(text.input_ids))
    text, longer = by_length[len(by_length) // 2], by_length[-1]
    try:
        alone, beside = _capture(subject, [text]), _capture(subject, [text, longer])
    except ConfigError as error:
        return Finding(
            NAME,
            "failed",
            str(error),
            remedy="choose a teacher whose attention can be captured; its importance is stored "
            "for every text",
        )
    size = len(text.input_ids)
    sums = max(_off_one(encoding) for encoding in (alone, beside))
    # Of each query, so that the difference does not grow with the text.
    received = (alone.importance[0, 0] - beside.importance[0, 0, :size]) / size
    apart = float(received.abs().max())
    measured: dict[str, float | int | str] = {
        "layers": subject.encoder.layers,
        "row sums off 1": sums,
        "importance, alone and beside": apart,
    }
    if not (sums <= 1e-4 and apart <= subject.tolerance.attention):
        return Finding(
            NAME,
            "failed",
            "captured attention is not that of the text: rows do not sum to 1, or importance "
            "depends on the text beside it",
            measured,
            "choose another teacher, or set its `dtype` to float32",
        )
    return Finding(NAME, "passed", "rows and importance can be captured", measured)


@torch.inference_mode()
def _capture(subject: Subject, texts: list[TokenizedText]) -> Encoding:
    encoder = subject.encoder
    input_ids, mask = (table.to(encoder.device) for table in lay_out(texts, encoder.pad_id))
    every = torch.arange(mask.shape[1], device=encoder.device).expand(mask.shape)
    asked = Capture(layers=[encoder.layers - 1], positions=every, queries=mask[None])
    encoding: Encoding = encoder(input_ids, mask, asked)
    return encoding


def _off_one(encoding: Encoding) -> float:
    sums: Tensor = encoding.rows[0].sum(dim=-1)[encoding.mask]
    return float((sums - 1).abs().max())
