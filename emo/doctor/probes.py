"""Texts that a teacher is examined with: of distinct meaning, short, long, and hard to tokenize."""

from pathlib import Path

from emo.errors import DataError

LEAST_TEXTS = 8
MOST_TEXTS = 64
"""As many as the largest batch of the checks holds."""

_HARD = (
    "a",
    ".",
    "42",
    "The lighthouse keeper wrote down the height of every wave that passed the rocks. " * 24,
    "Ünïcödé façade, naïve cafés: ½ ≠ ⅓",
    "cafe\u0301 e\u0301te\u0301",  # accents apart from their letters
    "中文的猫在花园里唱歌",
    "Кошка спит на тёплой печи",
    "العلم نور والجهل ظلام",
    "👩‍👩‍👧 won 🥇 again 😀",
    "if (x != null) { return x[0] / 2; }",
    "https://example.org/a?b=c&d=%20e#f",
    "what is [CLS] and where does <s> end </s> [SEP]",
    "SHOUTING   WITH\tODD\nSPACES",
)

_MEANINGS = """\
The surgeon closed the wound with seven stitches.
Interest rates were raised by a quarter of a point.
How far is the moon from the earth?
My grandmother bakes rye bread on Sundays.
The goalkeeper saved a penalty in the last minute.
Photosynthesis turns light into sugar.
Please reset my password, I cannot log in.
A violin string broke during the concert.
The treaty was signed by twelve nations.
Cheap flights to Lisbon in October
This vacuum cleaner stopped working after two weeks.
Whales sleep with half of their brain at a time.
The defendant was found not guilty.
Add a pinch of salt and whisk the eggs.
Who invented the steam engine?
Heavy snow closed the mountain pass overnight.
The compiler reports a missing semicolon.
She learned to ride a bicycle at the age of forty.
Volcanic ash grounded all planes in Iceland.
The museum bought a painting by Vermeer.
Our train was delayed by a fallen tree.
Bees tell each other where flowers are by dancing.
The bridge was painted green last summer.
A new vaccine against malaria is being tested.
He proposed to her on the roof of the hotel.
The price of copper fell for the third day.
Prime numbers have exactly two divisors.
The dog buried its bone under the apple tree.
Voters rejected the reform by a narrow margin.
What is the capital of Mongolia?
The novel tells the story of a blind clockmaker.
Drink plenty of water when you have a fever.
The telescope found water vapour on a distant planet.
Children under six travel free of charge.
The orchestra tuned to the oboe.
Two men are playing chess in the park.
The invoice must be paid within thirty days.
Glaciers in the Alps have lost half of their ice.
I would not recommend this restaurant to anyone.
The enzyme breaks down lactose.
An old sailor tied the boat to the pier.
Electric cars need fewer spare parts.
The keys are under the red flowerpot.
Shakespeare was born in Stratford.
The stock clerk counted four hundred boxes of nails.
Never mix bleach with vinegar.
The marathon starts at nine in front of the town hall.
Her new haircut made him laugh.
Silk was carried to Rome along desert roads.
The referee showed him a yellow card."""

PROBE_TEXTS = (*_HARD, *_MEANINGS.splitlines())


def read_probes(path: Path | None) -> list[str]:
    """Return the probe texts: those of a file, one a line, or the ones that come with the doctor.

    Blank lines and repeats are passed over, and no more than the first 64 are taken.

    Raises:
        DataError: The file cannot be read or has too few texts.
    """
    if path is None:
        return list(PROBE_TEXTS)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a readable UTF-8 text file: {error}") from error
    texts = list(dict.fromkeys(line for line in lines if line.strip()))[:MOST_TEXTS]
    if len(texts) < LEAST_TEXTS:
        raise DataError(
            f"{path} has {len(texts)} different texts, the doctor needs {LEAST_TEXTS}, of distinct "
            "meaning; add some, or leave the file out"
        )
    return texts
