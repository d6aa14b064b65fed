"""Do texts begin and end with the tokens that the teacher was trained with?"""

from typing import Any

import torch

from emo.doctor.finding import Finding
from emo.doctor.passes import ask
from emo.doctor.subject import Subject
from emo.tokens import TokenizedText

NAME = "begin and end tokens"

_WORD = "river "


def check_specials(subject: Subject) -> Finding:
    """Look at the first and last token of a short text and of one that is cut."""
    tokenizer: Any = subject.encoder.model.tokenizer
    # A letter or more of each word is a token, so this many words are always cut.
    cut_text = _WORD * int(subject.encoder.model.max_seq_length or 0)
    short, cut = subject.encoder.tokenizer()([_WORD, cut_text])
    begin, end = _promised(subject, short)
    measured: dict[str, float | int | str] = {
        "first": _token(tokenizer, short, 0),
        "last": _token(tokenizer, short, -1),
        "first of a cut text": _token(tokenizer, cut, 0),
        "last of a cut text": _token(tokenizer, cut, -1),
    }
    for text, which in ((short, "a text"), (cut, "a text that is cut")):
        for token, place, verb in ((begin, 0, "begin"), (end, -1, "end")):
            if token is None:
                continue
            fault = _fault(tokenizer, text, token, place)
            if fault:
                return Finding(
                    NAME,
                    "failed",
                    f"{which} should {verb} with one `{token}` and {fault}",
                    measured,
                    _remedy(verb),
                )
    if subject.pooling != "lasttoken":
        return Finding(NAME, "passed", "texts begin and end as the tokenizer promises", measured)
    return _last_token(subject, short, measured)


def _promised(subject: Subject, short: TokenizedText) -> tuple[str | None, str | None]:
    """Return the tokens that every text must begin and end with, None where nothing is promised.

    A tokenizer that has a token of class and one of separation is that of an encoder, which puts
    them around each text. `add_bos_token` and `add_eos_token` are not asked: transformers drops
    them where there is a tokenizer.json. For the rest, what a short text has a cut one must have.
    """
    tokenizer: Any = subject.encoder.model.tokenizer
    if tokenizer.cls_token and tokenizer.sep_token:
        begin, end = tokenizer.cls_token, tokenizer.sep_token
    else:
        begin = _token(tokenizer, short, 0) if short.special[0] else None
        end = _token(tokenizer, short, -1) if short.special[-1] else None
    return begin, subject.settings.end_token or end


def _fault(tokenizer: Any, text: TokenizedText, token: str, place: int) -> str | None:
    token_id = tokenizer.convert_tokens_to_ids(token)
    beside = 1 if place == 0 else -2
    ids = text.input_ids
    if ids[place] != token_id or not text.special[place]:
        return "does not"
    if len(ids) > 1 and ids[beside] == token_id:
        return "does twice"
    return None


def _last_token(
    subject: Subject, short: TokenizedText, measured: dict[str, float | int | str]
) -> Finding:
    """Last-token pooling: is it the last by the mask, and one that is always the same?"""
    said = ask(subject.encoder, subject.tokenized, 8)
    last = torch.stack([states[-1] for states in said.states])
    if not torch.equal(said.pooled, last):
        return Finding(
            NAME,
            "failed",
            "the pooled state is not that of a text's last token",
            measured,
            "pool by the attention mask: set `pooling: last` rather than code of the model's own",
        )
    if not short.special[-1]:
        return Finding(
            NAME,
            "warning",
            "the pooled token is whatever a text ends with",
            measured,
            "name the `end_token` that the teacher was trained with, if it was with one",
        )
    return Finding(NAME, "passed", "the pooled token is the end token", measured)


def _remedy(verb: str) -> str:
    if verb == "end":
        return (
            "set the teacher's `end_token` to the token that it was trained with, and prepare it "
            "anew with `emo model`"
        )
    return (
        "add the token to the `post_processor` of the source's tokenizer.json, or use the "
        "tokenizer files of the version that the teacher was published with"
    )


def _token(tokenizer: Any, text: TokenizedText, place: int) -> str:
    return str(tokenizer.convert_ids_to_tokens(int(text.input_ids[place])))
