"""Patterns beside `re.fullmatch`, on texts of their own letters."""

import random
import re
import unicodedata

import pytest

from serving.text import Pattern

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


@pytest.mark.parametrize("expression", [r"\w", r"\d", r"\S", r"[^é-\U00010101]", "(?i)ß|k"])
def test_a_class_holds_the_characters_that_python_has_in_it(expression):
    pattern, compiled = Pattern.of_expression(expression), re.compile(expression)
    for point in [
        *range(0, 0xD800, 7),
        *range(0xE000, 0x11FFF, 11),
        *range(0x1F600, 0x110000, 997),
    ]:
        text = chr(point)
        assert pattern.allows(text) == bool(compiled.fullmatch(text)), unicodedata.name(text, point)


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
        (r"a{1,70000}", r"is too large: repeat less"),
        (r"(a|b)*a(a|b){15}", r"is too large: repeat less, or have fewer alternatives"),
        ("(" * 5000 + ")" * 5000, r"has more than 1000 groups"),
        ("\ud800", r"regex: text must hold no lone surrogate"),
        (5, r"regex: text must be a string; received 5"),
    ],
)
def test_what_has_no_automaton_is_refused_in_a_line(expression, message):
    with pytest.raises(ValueError, match=message) as refused:
        Pattern.of_expression(expression)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_no_texts_are_no_pattern():
    with pytest.raises(ValueError, match=r"^choices must be one text at least; received none\.$"):
        Pattern.of_texts([])
