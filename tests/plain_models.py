"""Models read one text at a time with transformers alone: the slow oracle of the fast paths."""

from dataclasses import dataclass

import torch
from transformers import AutoModel, AutoTokenizer

Text = str | tuple[str, str]


@dataclass(frozen=True)
class PlainPass:
    """One text as a model reads it; ``kept`` lists its tokens but the prompt's.

    ``states`` and ``special`` are of these tokens only, ``attention`` is (layers, n, n) of them;
    ``all_keys`` is (layers, n, N), with the columns of the prompt.
    """

    ids: list[int]
    tokens: list[str]
    special: list[bool]
    states: torch.Tensor
    attention: torch.Tensor
    all_keys: torch.Tensor
    pooled: torch.Tensor
    vector: torch.Tensor
    kept: list[int]


class PlainModel:
    """A prepared folder, mean pooling.

    It reads a pair as one joint sequence without token types, the prompt before the first text.
    """

    def __init__(self, folder, prompt):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
        self.prompt = prompt

    def __call__(self, text):
        first, *second = (text,) if isinstance(text, str) else text
        prompted = self.prompt + first
        tokens = self.tokenizer(
            prompted,
            *second,
            truncation=True,
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
        )
        with torch.no_grad():
            output = self.model(torch.tensor([tokens["input_ids"]]), output_attentions=True)
        special = [bool(flag) for flag in tokens["special_tokens_mask"]]
        kept = [
            index
            for index, (_, end) in enumerate(tokens["offset_mapping"])
            if special[index]
            or tokens.sequence_ids()[index] == 1
            or len(prompted[:end].rstrip()) > len(self.prompt.strip())
        ]
        states = output.last_hidden_state[0]
        attention = torch.stack([layer[0].mean(dim=0) for layer in output.attentions])
        pooled = states.mean(dim=0)
        ids = [tokens["input_ids"][index] for index in kept]
        return PlainPass(
            ids=ids,
            tokens=self.tokenizer.convert_ids_to_tokens(ids),
            special=[special[index] for index in kept],
            states=states[kept],
            attention=attention[:, kept][:, :, kept],
            all_keys=attention[:, kept],
            pooled=pooled,
            vector=pooled / pooled.norm(),
            kept=kept,
        )


def received_attention(attention, counted):
    """Return the column sums over counted rows, 0 for keys that do not count; slowly."""
    sums = []
    for key in range(len(attention)):
        received = 0.0
        for query in range(len(attention)):
            if counted[query] and counted[key]:
                received += float(attention[query][key])
        sums.append(received)
    return sums
