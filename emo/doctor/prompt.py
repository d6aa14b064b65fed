"""Is the prompt put before a text exactly once, by our passes and by SentenceTransformer?"""

from typing import Any

from sentence_transformers import SentenceTransformer
from torch import nn

from emo.doctor.finding import TOLERANCES, Difference, Finding
from emo.doctor.subject import Subject

NAME = "prompt"

_TEXTS = ("river", "Who wrote the BOOK?", "the old house beside the river " * 200)


def check_prompt(subject: Subject) -> Finding:
    """Compare what is read with the tokens of prompt and text as one string, then the vectors."""
    prompt = _declared(subject)
    difference = Difference.between(subject.reference.vectors, subject.reference.sentence)
    measured: dict[str, float | int | str] = {
        "prompt": prompt,
        "vectors: difference": difference.largest,
        "vectors: cosine": difference.cosine,
    }
    ours = [text.input_ids.tolist() for text in subject.encoder.tokenizer()(_TEXTS)]
    model = subject.encoder.model
    for place, text in enumerate(_TEXTS):
        once = _ids(model, prompt + text)
        theirs = _ids_read(model, text)
        for ids, who in ((ours[place], "the teacher pass"), (theirs, "SentenceTransformer")):
            if ids != once:
                return Finding(
                    NAME,
                    "failed",
                    f"{who} does not read the prompt {prompt!r} once before a text: "
                    f"{model.tokenizer.convert_ids_to_tokens(ids[:12])}",
                    measured,
                    "make `prompt` of the config and `prompts` of the folder's "
                    "config_sentence_transformers.json agree: prepare the teacher anew with "
                    "`emo model`",
                )
    if not difference.within(TOLERANCES["float32"]):
        return Finding(
            NAME,
            "failed",
            "the teacher pass and SentenceTransformer give different vectors",
            measured,
            "the folder's modules.json asks for something that a pass leaves out; prepare the "
            "teacher anew with `emo model`",
        )
    meaning = "the prompt is read once" if prompt else "no prompt is declared and none is read"
    return Finding(NAME, "passed", f"{meaning}; SentenceTransformer gives our vectors", measured)


def _declared(subject: Subject) -> str:
    """Return the prompt of the settings; a folder may have been asked for one of its own."""
    settings, model = subject.settings, subject.encoder.model
    if settings.prompt or settings.format != "sentence-transformers":
        return settings.prompt
    return model.prompts.get(model.default_prompt_name or "") or ""


def _ids(model: SentenceTransformer, text: str) -> list[int]:
    tokens = model.tokenizer(text, truncation=True, max_length=model.max_seq_length)
    return [int(token) for token in tokens["input_ids"]]


def _ids_read(model: SentenceTransformer, text: str) -> list[int]:
    """Return the ids that the transformer inside is given when a user encodes a text."""
    read: list[int] = []

    def take(_: nn.Module, inputs: tuple[dict[str, Any], ...]) -> None:
        features = inputs[0]
        read.extend(features["input_ids"][0][features["attention_mask"][0].bool()].tolist())

    handle = model[0].register_forward_pre_hook(take)
    try:
        model.encode([text], show_progress_bar=False)
    finally:
        handle.remove()
    return read
