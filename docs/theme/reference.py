"""A griffe extension: docstrings in our own form for mkdocstrings, with links between public names.

mkdocs.yml names this file. What it makes of a docstring: docs/theme/docstrings.py.
"""

import contextlib
import functools
import importlib.util
import re
from pathlib import Path

import griffe

_spec = importlib.util.spec_from_file_location(
    "seqkeras_docstrings", Path(__file__).with_name("docstrings.py")
)
docstrings = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(docstrings)


class Docstrings(griffe.Extension):
    """Turns the docstrings of a package into Markdown, once it is loaded."""

    def on_package(self, *, pkg, **options):
        public = {module.path: module for module in _modules(pkg) if module.exports is not None}
        objects = [*_objects(pkg)]
        for module in public.values():
            _uncover(module)
        names = {}  # name or path -> identifiers in the reference
        for path, module in public.items():
            names.setdefault(path, []).append(path)
            for name in map(str, module.exports):
                for known in {name, f"{path}.{name}", _canonical(module, name)}:
                    names.setdefault(known, []).append(f"{path}.{name}")
        for obj in objects:
            if obj.docstring is not None:
                obj.docstring.value = docstrings.as_markdown(
                    obj.docstring.value,
                    link=functools.partial(_identifier, names=names, obj=obj),
                    types=_types(obj),
                    call=_call(obj),
                )


def _modules(module):
    yield module
    for member in module.modules.values():
        if not member.is_alias:
            yield from _modules(member)


def _uncover(module):
    """Make a public name that a submodule has too, such as `greedy`, the function of that name in
    the submodule: Python finds the function, and griffe the submodule."""
    for name in map(str, module.exports):
        hidden = module.members.get(name)
        with contextlib.suppress(griffe.AliasResolutionError):
            hides = hidden is not None and hidden.is_module and hidden.exports is None
            inner = hidden.members.get(name) if hides else None
            if inner is not None and inner.is_function:
                module.members[name] = griffe.Alias(name, inner, parent=module)


def _objects(obj):
    yield obj
    for member in obj.members.values():
        if not member.is_alias:
            yield from _objects(member)


def _canonical(module, name):
    """Return the path where a public name is defined."""
    member = module.members.get(name)
    return member.target_path if member is not None and member.is_alias else f"{module.path}.{name}"


def _identifier(name, names, obj):
    """Return where a name in backticks leads to in the reference, or None.

    A short name is one of the same package, or the name of a class. A single small word, such as
    `options`, may be an argument, and leads nowhere.
    """
    if name.startswith("serving."):
        name = f"seqkeras.{name}"
    identifiers = names.get(name, [])
    if name == obj.name or not identifiers or re.fullmatch("[a-z]+", name):
        return None
    package = ".".join(obj.path.split(".")[:2])
    siblings = [identifier for identifier in identifiers if identifier.startswith(f"{package}.")]
    if siblings or "." in name:
        return (siblings or identifiers)[0]
    return identifiers[0] if name[0].isupper() and not name.isupper() else None


def _types(obj):
    """Return the types of an object's arguments: of a class, those of its constructor."""
    if not (obj.is_function or obj.is_class):
        return {}
    return {
        parameter.name: str(parameter.annotation)
        for parameter in obj.parameters
        if parameter.annotation is not None
    }


def _call(obj):
    """Return how a layer is called, such as "call(query, key)"; empty for anything else."""
    call = obj.all_members.get("call") if obj.is_class else None
    if call is None or not call.is_function:
        return ""
    arguments = [
        parameter.name if parameter.required else f"{parameter.name}={parameter.default}"
        for parameter in list(call.parameters)[1:]
    ]
    return f"call({', '.join(arguments)})"
