"""The alignment beside the published mapping as a loop over ``editdistance``, on one core.

The published mapping takes three sweeps a text over the strings of its
tokens: teacher to student and back for the relation map, teacher to student with special tokens for
the transport map. A sweep compares every string with every string of the other side; a second
figure leaves out the strings that stand on the other side themselves, which need no comparison.

Our mapping goes on from block to block of a text set, as `align` does: it has seen the shorter
sentences of the set before, and each repeat has texts of its own. Rates are those of `align` over
all of the texts at once, which begins anew each time. Processor time is taken, which on one thread
is what a core of its own would need.
"""

import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import editdistance

from benchmarks.child import run_child
from benchmarks.material import METHOD, Material
from benchmarks.results import Result, device_name
from benchmarks.timing import ratios, spread, timed_in_turns
from emo.alignment import align, align_tokens, pair_finder
from emo.alignment.stage import load_tokenizer
from emo.texts import joined, load_texts
from emo.tokens import TextTokenizer, TokenizedText

NAMES = ("alignment", "alignment.exact_hits_first", "alignment.texts_per_second")
PAIRS = 5
TEXTS = 500
"""Texts of each repeat."""
SHORTEST, LONGEST = 15, 60
"""Student tokens of a text."""

ONE_CORE = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


Strings = tuple[set[str], set[str]]
"""Token strings of a text: those that are not special, and all."""


def sweep(strings: Iterable[str], others: set[str], exact_first: bool) -> dict[str, str]:
    """Find the nearest other string of each, one comparison after the other."""
    nearest = {}
    for string in strings:
        if exact_first and string in others:
            nearest[string] = string
        else:
            nearest[string] = min(others, key=lambda other: editdistance.eval(string, other))
    return nearest


def published_sweeps(teacher: Strings, student: Strings, exact_first: bool) -> None:
    """Do the three sweeps of a text."""
    sweep(teacher[0], student[0], exact_first)
    sweep(student[0], teacher[0], exact_first)
    sweep(teacher[1], student[1], exact_first)


def token_strings(tokenizer: TextTokenizer, texts: Sequence[TokenizedText]) -> list[Strings]:
    """Return the token strings of each text, marks included; the prompt takes no part."""
    found = []
    for text in texts:
        strings = tokenizer.tokenizer.convert_ids_to_tokens(list(text.input_ids))
        rows = list(zip(strings, text.special, text.prompt, strict=True))
        found.append(
            (
                {string for string, special, prompt in rows if not special and not prompt},
                {string for string, _, prompt in rows if not prompt},
            )
        )
    return found


def measure_alignment(material: Material) -> list[Result]:
    """Measure in a process that has one thread, whatever this one has."""
    request = {name: str(getattr(material, name)) for name in ("teacher", "student", "sentences")}
    seconds = run_child("benchmarks.alignment", request, ONE_CORE)
    device = device_name(threads=1)
    rates = [(PAIRS + 1) * TEXTS / taken for taken in seconds["whole"]]
    sweeps = [
        Result.of(
            name,
            spread(ratios(seconds[part], seconds["mapping"])),
            "x editdistance sweeps",
            device,
        )
        for name, part in zip(NAMES, ("all", "exact_first"), strict=False)
    ]
    return [*sweeps, Result.of(NAMES[-1], spread(rates), "texts/s", device)]


def seconds_of(teacher: str, student: str, sentences: str) -> dict[str, list[float]]:
    """Time both kinds of sweeps, the mapping, and the alignment with both tokenizers, in turns."""
    tokenizers = load_tokenizer(teacher), load_tokenizer(student)
    texts = [joined(text) for text in load_texts(Path(sentences)).texts]
    sizes = [len(text.input_ids) for text in tokenizers[1](texts)]
    shorter = [text for text, size in zip(texts, sizes, strict=True) if size < SHORTEST]
    texts = [text for text, size in zip(texts, sizes, strict=True) if SHORTEST <= size <= LONGEST]
    needed = (PAIRS + 1) * TEXTS
    if len(texts) < needed:
        raise ValueError(
            f"{sentences}: {len(texts)} texts of {SHORTEST} to {LONGEST} tokens, {needed} needed"
        )
    teacher_tokens, student_tokens = (tokenizer(texts[:needed]) for tokenizer in tokenizers)
    strings = [
        token_strings(tokenizers[0], teacher_tokens),
        token_strings(tokenizers[1], student_tokens),
    ]

    def block(number: int) -> slice:
        return slice(number * TEXTS, (number + 1) * TEXTS)

    def sweeps(number: int, exact_first: bool) -> None:
        teacher_strings, student_strings = (side[block(number)] for side in strings)
        for pair in zip(teacher_strings, student_strings, strict=True):
            published_sweeps(*pair, exact_first)

    finder = pair_finder(*tokenizers, METHOD.mass_map)
    align_tokens(shorter, tokenizers[0](shorter), tokenizers[1](shorter), finder)

    def mapping(number: int) -> None:
        inside = block(number)
        align_tokens(texts[inside], teacher_tokens[inside], student_tokens[inside], finder)

    taken = timed_in_turns(
        [
            lambda number: sweeps(number, False),
            lambda number: sweeps(number, True),
            mapping,
            lambda number: align(texts[:needed], *tokenizers, METHOD.mass_map),
        ],
        PAIRS,
        clock=time.process_time,
    )
    return dict(zip(("all", "exact_first", "mapping", "whole"), taken, strict=True))


if __name__ == "__main__":
    print(json.dumps(seconds_of(**json.loads(sys.argv[1]))))
