"""Numbers as texts, by the table that JavaScript's test reads too, and by Babel."""

import json

import babel.numbers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqkeras.serving.written_numbers import number_of
from tests.conftest import CHECKOUT

TABLE = CHECKOUT / "serving/javascript/test/numbers.json"


@pytest.mark.parametrize("case", json.loads(TABLE.read_text(encoding="utf-8")), ids=str)
def test_a_text_is_the_number_that_it_writes(case):
    text, decimal, number = case
    assert number_of(text, decimal) == number


@given(
    st.decimals(-(10**12), 10**12, places=3),
    st.sampled_from([("en_US", "."), ("de_DE", ","), ("fr_FR", ","), ("zh_CN", "."), ("sv", ",")]),
)
def test_numbers_that_babel_writes_are_read(number, locale):
    name, decimal = locale
    assert number_of(babel.numbers.format_decimal(number, locale=name), decimal) == float(number)
    percent = babel.numbers.format_percent(number, "#,##0.###%", locale=name)
    assert number_of(percent, decimal) == pytest.approx(float(number), rel=1e-12, abs=1e-5)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_that_python_writes_are_read(number):
    assert number_of(repr(number)) == number_of(repr(number), ".") == number
