import io
import json

import pytest

from seqkeras.serving.checks import require_number, shown
from seqkeras.serving.parsing import MOST_NESTED, bounded_lines, parse_json, parse_request


def nested(levels, opening="[", closing="]"):
    return opening * levels + closing * levels


@pytest.mark.parametrize("text", ["1", '"a"', "[]", '{"a": [{"b": []}, 1]}', nested(MOST_NESTED)])
def test_json_is_read_as_python_reads_it(text):
    assert parse_json(text) == parse_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize("levels", [MOST_NESTED + 2, 900, 990, 10**5])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_what_is_nested_too_deep_is_refused(levels, brackets):
    text = nested(levels, *brackets).replace(":}", ":1}")
    with pytest.raises(ValueError, match="^it is nested over 100 levels deep$"):
        parse_json(text)


OVERFLOWS = ["1e400", "-2E+309", "1e0400", f"1{300 * '0'}e99", f"{400 * '9'}.0"]


@pytest.mark.parametrize("number", [*OVERFLOWS, "NaN", "-Infinity"], ids=lambda text: text[:9])
def test_a_request_has_finite_numbers(number):
    message = rf"^its numbers must be finite, and null where one is missing; it has {number[:2]}"
    with pytest.raises(ValueError, match=message):
        parse_request(f'{{"inputs": [[1.5, {number}]]}}')
    assert parse_request(f'["{number}", "{"7" * 250}"]')[0] == number


def test_a_request_is_read_as_python_reads_it():
    for text in ("5e307", "1e-400", "9" * 400, f"{200 * '1'}e99", '["NaN", 0.1e3]'):
        assert parse_request(text) == json.loads(text)


@pytest.mark.parametrize("sign", ["", "-"])
def test_a_whole_number_of_too_many_digits_is_refused_in_our_words(sign):
    assert parse_request(sign + 4300 * "7") == int(sign + 4300 * "7")
    with pytest.raises(ValueError, match=r"^a whole number may have 4,300 digits; it has 4,301$"):
        parse_request(f"[{sign}{4301 * '7'}]")


def test_lines_that_are_too_long_are_passed_over(monkeypatch):
    monkeypatch.setattr("seqkeras.serving.parsing.MOST_OF_LINE", 7)
    lines = [b"seven77\r\n", b"eight888\n", b"\n", b"x" * 50 + b"\n", b"a\x85b\n", b"y" * 9]
    found = [*bounded_lines(io.BytesIO(b"".join(lines)))]
    assert found == [b"seven77\r\n", None, b"\n", None, b"a\x85b\n", None]
    assert [*bounded_lines(io.BytesIO(b"".join(lines[:3])[:-1]))] == [b"seven77\r\n", None]


def test_any_value_is_shown_in_a_few_characters():
    deep = []
    for _ in range(10**5):
        deep = [deep]
    wide = [[0] * 10**3] * 10**3
    for value in (
        deep,
        wide,
        {"a": deep},
        10**10**5,
        -(10**10**5),
        "a" * 10**6,
        (deep,),
        {1: wide},
    ):
        assert len(shown(value)) < 60
    assert shown({"b": 1, "a": [2]}) == "dict {'b': 1, 'a': [2]}"
    assert shown("a" * 60) == f"'{'a' * 48}…"


@pytest.mark.parametrize("number", [10**400, -(10**400), float("nan")])
def test_a_number_beyond_float64_is_none(number):
    with pytest.raises(ValueError, match="^x must be a number; received (int|float) "):
        require_number("x", number)
