"""Numbers as texts, in the form that data has, or as people write them.

    data        12, -0.5, 1.5e-7: no groups, a point
    people      with the decimal sign that their column names: 1,250.5, 1 250.5 and 1'250.5 where it
                is a point, 1.250,5 and 1 250,5 where it is a comma; 12 % is 0.12, and a unit after
                a number multiplies it: 千, 万, 百万, 亿, 万亿; K, M, B (10^3, 10^6, 10^9)

Characters of full width count as ASCII. `serving/javascript/src/written_numbers.js` is the same
in JavaScript.
"""

import re

DATA = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?", re.IGNORECASE)
SPACES = " \u00a0\u202f\u2009"
UNITS = {"千": 3, "万": 4, "萬": 4, "百万": 6, "百萬": 6, "亿": 8, "億": 8, "万亿": 12, "萬億": 12}
UNITS |= {"K": 3, "k": 3, "M": 6, "B": 9}
SIGNS = "%", "‰"  # 10^-2, 10^-3
WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}


def _of_people(point, groups):
    ends = "|".join(sorted(UNITS, key=len, reverse=True))
    return re.compile(
        rf"([+\-\u2212]?)(?:([0-9]{{1,3}}(?:([{groups}])[0-9]{{3}})(?:\3[0-9]{{3}})*)|([0-9]+))"
        rf"(?:{point}([0-9]+))?[{SPACES}]?({ends})?[{SPACES}]?([{''.join(SIGNS)}])?"
    )


DECIMALS = {
    ".": _of_people(r"\.", f",'\u2019{SPACES}"),
    ",": _of_people(",", rf".'\u2019{SPACES}"),
}


def narrow(text):
    """Return a text with its characters of full width as ASCII, without white space around it."""
    return text.strip().translate(WIDE)


def number_of(text, decimal=None):
    """Return the number that a text writes, or None if it writes none.

    Args:
        text: the text.
        decimal: the decimal sign of a column whose numbers people write, "." or ","; None for data
            alone, which is read in every column whose decimal sign is not a comma.
    """
    text = narrow(text)
    if decimal != "," and DATA.fullmatch(text):
        return float(text)
    match = DECIMALS[decimal].fullmatch(text) if decimal else None
    if match is None:
        return None
    sign, grouped, _, plain, fraction, unit, percent = match.groups()
    digits = re.sub("[^0-9]", "", grouped or plain)
    exponent = UNITS.get(unit, 0) - (SIGNS.index(percent) + 2 if percent else 0)
    number = float(f"{digits}.{fraction or 0}e{exponent}")
    return number if sign in ("", "+") else -number
