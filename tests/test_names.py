"""A variable of the program has the noun of what it holds."""

import ast

from tests.test_imports import SOURCES, tree_of

TELL_NOTHING = {"own", "found", "place", "each", "of"}


def bound(tree):
    """Yield the names of the variables and arguments of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_variables_are_named_by_what_they_hold():
    told = {(source, name) for source in SOURCES for name in bound(tree_of(source))}
    assert {(source, name) for source, name in told if name in TELL_NOTHING} == set()


def test_the_reader_sees_every_kind_of_variable():
    text = "def f(a, *b, c=1): d = [e for e in a]\nwith a as g: h: int = 1\n(lambda i: i)"
    assert set(bound(ast.parse(text))) == set("abcdeghi")
