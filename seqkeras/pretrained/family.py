"""The record of a family of architectures, which one loader reads for all families."""

import dataclasses
import re
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Plan:
    """The model that a config describes.

    Args:
        make: dtype -> the model, not built.
        harmless: regular expressions of tensors that may stay unused.
    """

    make: Callable
    harmless: tuple = ()


@dataclasses.dataclass(frozen=True)
class Description:
    """A model in terms of `transformers`.

    Args:
        architecture: its name.
        fields: fields of config.json.
        defaults: more fields, which the caller of `save_hugging_face` may override.
        required: fields that the caller must give, because the model does not know them.
        generation: the caller's fields -> the fields of generation_config.json; None for no such
            file.
        left_out: prefix of tensors that the architecture lacks.
    """

    architecture: str
    fields: dict
    defaults: dict = dataclasses.field(default_factory=dict)
    required: tuple = ()
    generation: Callable | None = None
    left_out: tuple = ()


@dataclasses.dataclass(frozen=True)
class Family:
    """A family: converts config and tensors to a model, and back.

    Args:
        model_type: in config.json.
        architectures: its names in config.json; the first one is the model without heads.
        base: the prefix of tensors' names, except in files of the first architecture.
        outside: beginnings of the names that never have the prefix `base`.
        plan: (`Config`, architecture, names of the tensors, whether heads are wanted) -> `Plan`; it
            tells the config what is wrong.
        links: model -> its name map, of names without `base`.
        describe: model -> `Description`, or None if it is of another family.
        renamed: pairs of regular expression and replacement, for names of older files.
    """

    model_type: str
    architectures: tuple
    base: str
    outside: tuple
    plan: Callable
    links: Callable
    describe: Callable
    renamed: tuple = ()

    def common_name(self, name: str) -> str:
        """Return a tensor's name in name maps: without `base`, in the form of newer files."""
        name = name.removeprefix(self.base)
        for old, new in self.renamed:
            name = re.sub(old, new, name)
        return name

    def full_name(self, name: str, architecture: str) -> str:
        """Return a tensor's name in a file of this architecture."""
        bare = architecture == self.architectures[0]
        return name if bare or name.startswith(self.outside) else self.base + name
