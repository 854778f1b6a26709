"""Patterns beside `re.fullmatch`, on texts of their own letters."""

import json
import os
import random
import re
import signal
import time

import pytest

from seqkeras.serving.text import Pattern
from tests.conftest import CHECKOUT

LARGE = CHECKOUT / "serving/javascript/test/large_expressions.json"

EXPRESSIONS = [
    (r"none|(19[5-9]\d|20[0-4]\d)-(0[1-9]|1[0-2])", "0129-5none٣"),
    (r"(?i)stra(ß|ss)e\d?", "straſSßE٣1"),
    (r"^[^a-c]{2,4}?(x|yz)*$", "abcxyzé\n"),
    (r"\w+\s?(foo|fo)*", "foé _1\u2003"),
    (r"a.?(?s:.)b{0,3}", "ab\n€😀"),
    (r"(a|b)*abb", "ab"),
    (r"", "a"),
    (r"(?x) a b  # a comment", "ab "),
    (r"[\d\-x]+?", "1-x٣"),
    (r"(?:a{2}){1,2}|(?P<name>b{3,})", "ab"),
    (r"[^\W\d_]{1,3}(?i:x)", "aäxX1_"),
    (r"(?a)\w\d", "aä1٣"),
    (r"[\u00e0-\uffff]?[\U00010000-\U0010ffff]*", "aé€\ue000😀\U0010ffff"),
]


@pytest.mark.parametrize("expression, letters", EXPRESSIONS, ids=lambda each: ascii(each)[:20])
def test_a_pattern_allows_what_python_matches_as_a_whole(expression, letters):
    pattern, drawn = Pattern.of_expression(expression), random.Random(0)
    texts = {"".join(drawn.choices(letters, k=k)) for k in range(8) for _ in range(150)}
    matched = {text for text in texts if re.fullmatch(expression, text)}
    assert {text for text in texts if pattern.allows(text)} == matched
    assert matched or expression.startswith(("none", "(?i)stra"))


def test_a_set_of_texts_is_allowed_and_no_other():
    texts = ["", "no", "none", "über", "überall", "😀"]
    pattern = Pattern.of_texts(texts)
    begun = {text[:k] for text in texts for k in range(len(text) + 1)} | {"x", "nn"}
    assert {text for text in begun if pattern.allows(text)} == set(texts)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (r"(a)\1", r"holds groupref, which no finite automaton knows"),
        (r"(?=a)b", r"holds assert, which no finite automaton knows"),
        (r"\bx", r"holds at, which no finite automaton knows"),
        (r"(?>a)b", r"holds atomic_group, which"),
        (r"a++", r"holds possessive_repeat, which"),
        (r"a(", r"can not be read: missing \), unterminated subpattern at position 1"),
        (r"(?m)^a$", r"has other flags than a, i, s, u and x"),
        ("\ud800", r"regex: text must hold no lone surrogate"),
        (5, r"regex: text must be a string; received 5"),
    ],
)
def test_what_has_no_automaton_is_refused_in_a_line(expression, message):
    with pytest.raises(ValueError, match=message) as refused:
        Pattern.of_expression(expression)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


CLASSES = r"[a-z] [^k] k [\u0130-\u0131ſ] [Ⓐ-Ⓗ] \w [\W_] [µ-ÿ] [^\W\d] .".split()
CLASSES += [r"\d", r"\S", r"[^\ud7a4-\U00010101]", "ß|k"]


@pytest.mark.parametrize("flags", ["i", "ai", "a", "s"])
def test_a_class_holds_the_characters_that_python_has_in_it(flags):
    for source in CLASSES:
        expression = f"(?{flags}){source}"
        pattern, compiled = Pattern.of_expression(expression), re.compile(expression)
        for point in [
            *range(0x2200),
            *range(0x2200, 0xD800, 13),
            *range(0xE000, 0x10000, 37),
            *range(0x10380, 0x10500),
            *range(0x1F600, 0x110000, 997),
            0x10FFFF,
        ]:
            text = chr(point)
            assert pattern.allows(text) == bool(compiled.fullmatch(text)), (expression, hex(point))


LARGE_EXPRESSIONS = json.loads(LARGE.read_text(encoding="utf-8"))


def refusal_of(expression):
    """What is said of an expression, or None, within a second of the processor's time."""
    begin, refusal = time.process_time(), None
    try:
        Pattern.of_expression(expression)
    except ValueError as error:
        refusal = str(error)
    assert time.process_time() - begin < 1, expression
    return refusal


@pytest.fixture
def in_time():
    """End the process of a test that does not end."""
    signal.alarm(300)
    yield
    signal.alarm(0)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no alarm")
def test_the_work_of_an_expression_is_bounded(in_time):
    for case in LARGE_EXPRESSIONS:
        refusal = refusal_of("".join(text * times for text, times in case["pieces"]))
        if case["refused"] is None:
            assert refusal is None, case
            continue
        assert case["refused"] in refusal, case
        assert "\n" not in refusal and len(refusal) < 200


def drawn_expression(drawn, depth):
    """Nested repetitions of letters, classes, alternatives and of nothing."""
    if not depth:
        return drawn.choice(["", "", "|", "(?:|)", "a", "é", ".", "[a-c]", r"\w", "(a|b)*"])
    parts = []
    for _ in range(drawn.choice([1, 1, 2, 3])):
        most = drawn.choice([1, 3, 30, 300, 3000, 6000, 12_000, 24_000])
        least = drawn.choice([0, 0, 1, most])
        inner = drawn_expression(drawn, depth - 1)
        parts.append(f"(?:{inner})" + drawn.choice(["", "*", *3 * [f"{{{least},{most}}}"]]))
    return drawn.choice(["", "", "|"]).join(parts)


def test_nested_repetitions_are_read_or_refused_within_a_second():
    for seed in range(25):
        drawn = random.Random(seed)
        refusal_of(drawn_expression(drawn, drawn.randint(1, 4)))


def test_many_distinct_classes_are_refused_before_they_are_made():
    characters = map(chr, range(0x100, 0x100 + 1900))
    with pytest.raises(ValueError, match=r"is too large: have fewer classes\.$"):
        Pattern.of_expression("".join(f"[\\w{character}]" for character in characters))


def test_choices_are_bounded_by_their_bytes():
    message = (
        r"^choices must have 19,999 bytes together at most, those of a common beginning once\.$"
    )
    with pytest.raises(ValueError, match=message):
        Pattern.of_texts(["x" * 10**7])
    assert len(Pattern.of_texts(["x" * 19_999, "x" * 19_998]).accepts) == 20_000
