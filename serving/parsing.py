"""JSON from files and from users, which may be nested as deep as Python's stack lasts, and back."""

import json
import re

RAW = re.compile("[\x7f-\x9f\ud800-\udfff]")
MOST_NESTED = 100  # levels: what reads, shows or writes JSON calls itself for each


def parse_json(text, parse_constant=None):
    """Return what JSON holds.

    Args:
        text: a string, or bytes of UTF-8.
        parse_constant: takes NaN, Infinity and -Infinity, as `json.loads` calls it.

    Raises:
        ValueError: if it is not JSON, or lists and objects in it lie over 100 levels deep.
    """
    try:
        content = json.loads(text, parse_constant=parse_constant)
    except RecursionError as error:
        raise ValueError(_too_deep()) from error
    level = [content]
    for _ in range(MOST_NESTED + 1):
        level = [each for value in level for each in _inner(value)]
        if not level:
            return content
    raise ValueError(_too_deep())


def as_json(content, **options):
    """Return JSON text that UTF-8 can hold and no terminal obeys.

    What JSON may hold as it is and these can not is escaped: lone surrogates, control characters.

    Args:
        content: what JSON can hold.
        options: of `json.dumps`.
    """
    text = json.dumps(content, ensure_ascii=False, **options)
    return RAW.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _inner(value):
    """Return the lists and objects that a value holds."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return ()
    return [each for each in value if isinstance(each, (dict, list))]


def _too_deep():
    return f"it is nested over {MOST_NESTED} levels deep"
