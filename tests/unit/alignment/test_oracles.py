"""All methods against slow loops that share no code with them."""

import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import editdistance
import pytest

from emo.alignment import align
from emo.tokens import TextTokenizer

TEXTS = [
    "",
    " ",
    "ok",
    "?!",
    "123",
    "😀",
    "👩‍👩‍👧 family",
    "the cat is playing",
    "The Cat IS playing the cats",
    "the the the the",
    "cat the dog the cat the",
    "C++ vs C#",
    "hello  world",
    "hello\tworld\n",
    "don't stop",
    "中文 hello",
    "中文中文中",
    "été",
    "e\u0301te\u0301",
    "naïve café",
    "ﬁne … ①",
    "[CLS] hello [SEP]",
    "<s> hello </s>",
    "a [CLS] b <s> c [CLS] d <s>",
    "[UNK] <unk>",
    "...",
    "Ünï©ødé",
    "query: query: hello",
    "hellllo wrld plying",
    "T\x10his \x10 is",
    "et La Société………don't",
    "##ing ▁the",
    "xyz xzy zyx",
    "ab ba ab ba",
    "s s' 's",
    "12 21 2 1 12",
]


@dataclass
class Token:
    position: int
    string: str
    covered: str
    middle: int
    special: bool
    unknown: bool
    span: tuple[int, int]


def plain_tokens(tokenizer: TextTokenizer, text: str) -> list[Token]:
    encoding = tokenizer.tokenizer.backend_tokenizer.encode(tokenizer.prompt + text)
    read, offset = tokenizer.prompt + text, len(tokenizer.prompt)
    tokens = []
    for token_id, (start, end), special in zip(
        encoding.ids, encoding.offsets, encoding.special_tokens_mask, strict=True
    ):
        covered = read[start:end]
        start += len(covered) - len(covered.lstrip())
        end = max(start, end - len(covered) + len(covered.rstrip()))
        if not special and offset and end <= offset:
            continue
        string = tokenizer.tokenizer.convert_ids_to_tokens([token_id])[0]
        unknown = token_id == tokenizer.tokenizer.unk_token_id
        middle = max(start - offset, 0) + end - offset
        covered = read[max(start, offset) : end]
        span = (max(start - offset, 0), end - offset)
        tokens.append(Token(len(tokens), string, covered, middle, bool(special), unknown, span))
    return tokens


def as_student(piece: str) -> str:
    """The student's normaliser, by hand: no accents, marks or control characters, lower case."""
    piece = unicodedata.normalize("NFD", unicodedata.normalize("NFC", piece))
    kept = (char for char in piece if unicodedata.category(char) != "Mn")
    return "".join(char for char in kept if char not in "\x10\u200d▁").lower().strip()


def teacher_piece(token: Token) -> str:
    bare = token.string.removeprefix("▁")
    right = token.unknown or unicodedata.normalize("NFKC", token.covered) == bare
    return as_student(token.covered if right else bare)


def student_piece(token: Token) -> str:
    bare = token.string.removeprefix("##")
    right = token.unknown or as_student(token.covered) == bare
    return as_student(token.covered if right else bare)


def oracle_mined(text: str, teacher: TextTokenizer, student: TextTokenizer) -> list[tuple]:
    left = [t for t in plain_tokens(teacher, text) if not t.special and teacher_piece(t)]
    right = [s for s in plain_tokens(student, text) if not s.special and student_piece(s)]
    distance = {
        (i, j): editdistance.eval(teacher_piece(t), student_piece(s))
        for i, t in enumerate(left)
        for j, s in enumerate(right)
    }
    rows = []
    for i, t in enumerate(left):
        order = [(distance[i, j], abs(t.middle - s.middle), j) for j, s in enumerate(right)]
        if not order:
            continue
        j = min(order)[2]
        s = right[j]
        back = [(distance[k, j], abs(u.middle - s.middle), k) for k, u in enumerate(left)]
        longer = max(len(teacher_piece(t)), len(student_piece(s)))
        if min(back)[2] == i and distance[i, j] < longer:
            rows.append((t.position, s.position, distance[i, j]))
    return rows


def oracle_dp(text: str, teacher: TextTokenizer, student: TextTokenizer) -> list[tuple]:
    left = [token for token in plain_tokens(teacher, text) if not token.special]
    right = [token for token in plain_tokens(student, text) if not token.special]
    left_pieces = [teacher_piece(token) for token in left]
    right_pieces = [student_piece(token) for token in right]
    left_over = 720_720 // 2

    @cache
    def best(i: int, j: int) -> tuple[int, int]:
        """Least (cost, gaps) of the first i and j tokens."""
        return min((cost for cost, _ in choices(i, j)), default=((i + j) * left_over, 0))

    @cache
    def choices(i: int, j: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
        if not (i and j):
            return []
        over = []
        for a, b in ((i - 1, j), (i, j - 1)):
            cost, gaps = best(a, b)
            over.append(((cost + left_over, gaps), (a, b)))
        t, s = left_pieces[i - 1], right_pieces[j - 1]
        distance, longer = editdistance.eval(t, s), max(len(t), len(s))
        if distance < longer:
            cost, gaps = best(i - 1, j - 1)
            gap = abs(left[i - 1].middle - right[j - 1].middle)
            cost += (distance << 16) // longer
            over.append(((cost, gaps + gap), (i - 1, j - 1)))
        return over

    rows, i, j = [], len(left), len(right)
    while i and j:
        a, b = next(where for cost, where in choices(i, j) if cost == best(i, j))
        if (a, b) == (i - 1, j - 1):
            distance = editdistance.eval(left_pieces[a], right_pieces[b])
            rows.append((left[a].position, right[b].position, distance))
        i, j = a, b
    return rows[::-1]


def oracle_span(text: str, teacher: TextTokenizer, student: TextTokenizer) -> list[tuple]:
    left = [token for token in plain_tokens(teacher, text) if not token.special]
    right = [token for token in plain_tokens(student, text) if not token.special]

    def share(t: Token, s: Token) -> Fraction:
        both = set(range(*t.span)) & set(range(*s.span))
        either = set(range(*t.span)) | set(range(*s.span))
        return Fraction(len(both), len(either)) if both else Fraction(0)

    def order(t: Token, s: Token) -> tuple:
        return (-share(t, s), abs(t.middle - s.middle))

    rows = []
    for t in left:
        s = min(right, key=lambda s: (*order(t, s), s.position), default=None)
        if s and share(t, s) and min(left, key=lambda u: (*order(u, s), u.position)) is t:
            distance = editdistance.eval(teacher_piece(t), student_piece(s))
            rows.append((t.position, s.position, distance))
    return rows


def nearest(string: str, candidates: set[str]) -> str:
    if string in candidates:
        return string
    return min(sorted(candidates), key=lambda other: editdistance.eval(string, other))


def oracle_types(text: str, teacher: TextTokenizer, student: TextTokenizer) -> list[tuple]:
    left = [token for token in plain_tokens(teacher, text) if not token.special]
    right = [token for token in plain_tokens(student, text) if not token.special]
    left_types, right_types = {t.string for t in left}, {s.string for s in right}
    rows = []
    for string in left_types if right_types else ():
        other = nearest(string, right_types)
        if nearest(other, left_types) == string:
            first = next(t.position for t in left if t.string == string)
            other_first = next(s.position for s in right if s.string == other)
            rows.append((first, other_first, editdistance.eval(string, other)))
    return sorted(rows)


def oracle_masses(text: str, teacher: TextTokenizer, student: TextTokenizer) -> list[tuple]:
    left, right = plain_tokens(teacher, text), plain_tokens(student, text)
    right_types = {s.string for s in right} - {"[CLS]"}
    masses: dict[int, tuple[int, int]] = {}
    for t in left:
        target = "[CLS]" if t.string == "<s>" else nearest(t.string, right_types)
        distance = 0 if t.string == "<s>" else editdistance.eval(t.string, target)
        for s in right:
            if s.string == target:
                masses[s.position] = (t.position, distance)
    return sorted((t, s, distance) for s, (t, distance) in masses.items())


ORACLES = {
    "mined": oracle_mined,
    "mined-dp": oracle_dp,
    "span": oracle_span,
    "mined-types": oracle_types,
    "mined-masses": oracle_masses,
}


@pytest.mark.parametrize("method", ORACLES)
def test_all_texts_equal_the_slow_loop(method, teacher, student):
    alignment = align(TEXTS, teacher, student, method)
    rows = zip(
        alignment.teacher_position.tolist(),
        alignment.student_position.tolist(),
        alignment.distance.tolist(),
        strict=True,
    )
    found: list[list[tuple]] = [[] for _ in TEXTS]
    for text, row in zip(alignment.text.tolist(), rows, strict=True):
        found[text].append(row)
    expected = [ORACLES[method](text, teacher, student) for text in TEXTS]
    assert sum(map(len, expected)) > 60
    for text, rows_found, rows_expected in zip(TEXTS, found, expected, strict=True):
        assert rows_found == rows_expected, text
