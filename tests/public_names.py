"""The public names of the library: those in the `__all__` of its modules."""

import ast
import functools
import importlib
import inspect
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
FOLDERS = ("seqkeras", "training", "export", "serving")  # the last three are links in the first


def _module_of(path):
    parts = path.relative_to(CHECKOUT).with_suffix("").parts
    parts = parts if parts[0] == "seqkeras" else ("seqkeras", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _names_in(path):
    """Return the names in the `__all__` of a file, or None; nothing is imported."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return ast.literal_eval(statement.value)
    return None


@functools.cache
def public_names():
    """Return a dictionary: public module -> its names, in order; links are not followed."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            if "node_modules" not in path.parts and (names := _names_in(path)) is not None:
                found[_module_of(path)] = names
    return found


def value_of(module, name):
    """Return what a public name stands for; a module may be imported only now."""
    try:
        return getattr(importlib.import_module(module), name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}")


def is_constant(module, name):
    """Return whether a public name in capitals stands for neither a class nor a function.

    Other names are not imported.
    """
    if not name.isupper():
        return False
    value = value_of(module, name)
    return not (inspect.isclass(value) or inspect.isroutine(value))


def members(module):
    """Return a dictionary: name -> value, of the classes and functions of a public module."""
    found = {name: value_of(module, name) for name in public_names()[module]}
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) or inspect.isroutine(value)
    }
