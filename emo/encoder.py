"""An embedding model opened to its tokens: states, pooled vectors and attention of a batch.

Shapes: ``B`` texts, ``S`` tokens of the longest text, ``D`` width; of a capture ``k`` layers, ``m``
rows a text and ``Q`` sets of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense
from torch import Tensor, nn

from emo.attention import Capture, Recorder, listen, recording
from emo.errors import ConfigError
from emo.outputs import read_json
from emo.prompt_pooling import count_prompt, model_tokenizer
from emo.tokens import TextTokenizer, TokenizedText


@dataclass(frozen=True, slots=True)
class Encoding:
    """What a model says of a batch.

    Attributes:
        states: Last hidden states, ``(B, S, D)``.
        layer_states: States after each layer asked for, ``(B, S, D)`` each; those of the last
            layer are ``states``.
        pooled: States after the pooling module, ``(B, D)``.
        vectors: Embeddings, after every module of the model, ``(B, D)``.
        rows: Head-mean attention rows of the layers asked for, ``(k, B, m, S)``, float32; columns
            of padding are 0. Empty when none were asked for.
        importance: Attention that each token receives in the last layer from each set of rows,
            ``(Q, B, S)``, float32; 0 at padding. Empty when none was asked for.
        mask: True on tokens, False on padding, ``(B, S)``.
    """

    states: Tensor
    layer_states: tuple[Tensor, ...]
    pooled: Tensor
    vectors: Tensor
    rows: Tensor
    importance: Tensor
    mask: Tensor


class Encoder(nn.Module):
    """A SentenceTransformer whose token states and attention can be read, with gradients.

    Attention runs fused whether it is captured or not; see :mod:`emo.attention`.

    Args:
        model: The model; see :func:`load_encoder` for one from a folder.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        super().__init__()
        self.model = model
        listen(self.transformer)
        count_prompt(model)

    @property
    def head(self) -> nn.Linear:
        """The projection into the teacher's space; see :meth:`add_head`.

        Raises:
            ValueError: None was added.
        """
        for module in self.model:
            if isinstance(module, Dense):
                return module.linear
        raise ValueError("the model has no head; add one first")

    def add_head(self, head: nn.Linear) -> None:
        """Put a projection behind the pooling: it becomes part of the model and is saved with it.

        Mean pooling is linear, so the same projection maps single token states, too.
        """
        dense = Dense(head.in_features, head.out_features, activation_function=nn.Identity())
        dense.linear = head
        transformer, pooling, *others = self.model
        self.model = SentenceTransformer(
            modules=[transformer, pooling, dense, *others],
            prompts={name: prompt or "" for name, prompt in self.model.prompts.items()},
            default_prompt_name=self.model.default_prompt_name,
            device=str(self.device),
        )

    @property
    def transformer(self) -> Any:
        """The transformers model inside."""
        return self.model[0].auto_model

    @property
    def layers(self) -> int:
        """Number of attention layers."""
        return int(self.transformer.config.num_hidden_layers)

    @property
    def width(self) -> int:
        """Width of the token states."""
        return int(self.transformer.config.hidden_size)

    @property
    def vector_width(self) -> int:
        """Width of the embeddings."""
        width = self.model.get_embedding_dimension()
        return self.width if width is None else int(width)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    @property
    def pad_id(self) -> int:
        """Id that fills a batch; padding itself is told by the mask, never by this id."""
        return int(self.model.tokenizer.pad_token_id or 0)

    def tokenizer(self) -> TextTokenizer:
        """Return a tokenizer with the model's own prompt and maximum length.

        It remembers its digest and the characters of its tokens, so that one should serve all
        texts.
        """
        return model_tokenizer(self.model)

    def forward(
        self,
        input_ids: Tensor,
        mask: Tensor,
        capture: Capture | None = None,
        layers: Sequence[int] = (),
    ) -> Encoding:
        """Run the model on a padded batch.

        Args:
            input_ids: ``(B, S)``.
            mask: True on tokens, ``(B, S)``.
            capture: What to take out of the attention.
            layers: Layers whose states to return beside the last ones, 0-based.

        Raises:
            ConfigError: The model's attention cannot be captured although it was asked for.
            ValueError: The capture does not fit the batch or the model.
        """
        recorder = None
        if capture is not None:
            capture.require_fit(mask, self.layers)
            recorder = Recorder(capture, self.layers)
        with recording(recorder):
            output = self.transformer(
                input_ids=input_ids,
                attention_mask=mask.long(),
                **({"output_hidden_states": True} if layers else {}),
            )
        states = output.last_hidden_state
        if recorder is not None and not recorder.complete:
            raise ConfigError(self._deaf(recorder.calls))
        features = {"token_embeddings": states, "attention_mask": mask.long()}
        pooling, *others = list(self.model)[1:]
        features = pooling(features)
        pooled = features["sentence_embedding"]
        for module in others:
            features = module(features)
        nothing = torch.empty(0, device=states.device)
        return Encoding(
            states=states,
            layer_states=tuple(self._after(layer, output) for layer in layers),
            pooled=pooled,
            vectors=features["sentence_embedding"],
            rows=nothing if recorder is None else recorder.rows(mask),
            importance=nothing if recorder is None else recorder.importance(mask),
            mask=mask,
        )

    def _after(self, layer: int, output: Any) -> Tensor:
        """Return the states after a layer; what comes before the first layer is the first entry."""
        # A final norm, where there is one, belongs to the last states.
        last = layer == self.layers - 1
        states: Tensor = output.last_hidden_state if last else output.hidden_states[layer + 1]
        return states

    def _deaf(self, heard: int) -> str:
        config = self.transformer.config
        return (
            f"{type(self.transformer).__name__} runs `{config._attn_implementation}` attention; "
            f"{heard} of {self.layers} layers were heard, so its attention cannot be captured; "
            "take a model that runs transformers' `sdpa`, or, if it is the student, a method "
            "without an attention term"
        )


def choose_device() -> torch.device:
    """Return CUDA where torch has it, else the CPU; Apple's MPS has no float64, which CKA needs."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def device_name(device: torch.device) -> str:
    """Return what a cost is said to be measured on: the GPU's name, or the kind of device.

    >>> device_name(torch.device("cpu"))
    'cpu'
    """
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def require_model_folder(folder: Path) -> None:
    """Check that a folder is a SentenceTransformer folder.

    Raises:
        ConfigError: It is not.
    """
    if not (folder / "modules.json").is_file():
        raise ConfigError(
            f"{folder}: no modules.json; prepare the model with `emo model` or distil it first"
        )


def brings_code(folder: Path) -> bool:
    """Tell whether a prepared folder holds code of its own that its settings allow to run."""
    record = folder / "model.json"
    settings = read_json(record).get("settings", {}) if record.is_file() else {}
    return bool(settings.get("remote_code", False))


def load_encoder(
    folder: Path, dtype: str = "float32", device: torch.device | None = None
) -> Encoder:
    """Load a prepared model folder.

    Args:
        folder: A SentenceTransformer folder.
        dtype: Precision of the weights, a torch dtype's name.
        device: Where to; torch's choice when None.

    Raises:
        ConfigError: The folder is no SentenceTransformer folder.
    """
    require_model_folder(folder)
    model = SentenceTransformer(
        str(folder),
        device=str(device or choose_device()),
        local_files_only=True,
        trust_remote_code=brings_code(folder),
        model_kwargs={"dtype": getattr(torch, dtype)},
    )
    return Encoder(model)


def pad(texts: Sequence[TokenizedText], pad_id: int) -> tuple[Tensor, Tensor]:
    """Pad tokenized texts on the right.

    Returns:
        ``input_ids`` ``(B, S)`` and ``mask`` ``(B, S)``, True on tokens.
    """
    length = max(len(text.input_ids) for text in texts)
    input_ids = torch.full((len(texts), length), pad_id, dtype=torch.long)
    mask = torch.zeros(len(texts), length, dtype=torch.bool)
    for row, text in enumerate(texts):
        size = len(text.input_ids)
        input_ids[row, :size] = torch.from_numpy(text.input_ids)
        mask[row, :size] = True
    return input_ids, mask


def pad_arrays(arrays: Sequence[NDArray[Any]]) -> Tensor:
    """Pad arrays of ``(length, ...)`` on the right with zeros.

    Returns:
        ``(B, longest, ...)``, longest being 1 at least.
    """
    longest = max(1, *(len(array) for array in arrays))
    padded = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), dtype=arrays[0].dtype)
    for row, array in enumerate(arrays):
        padded[row, : len(array)] = array
    return torch.from_numpy(padded)
