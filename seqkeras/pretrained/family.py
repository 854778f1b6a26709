"""What a family of architectures says of itself, so that one loader serves all of them."""

import dataclasses
import re
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Plan:
    """A model of ours that a config names.

    Args:
        make: dtype -> the model, not built.
        harmless: regular expressions of tensors that it has no use for, and that need none.
    """

    make: Callable
    harmless: tuple = ()


@dataclasses.dataclass(frozen=True)
class Description:
    """A model of ours in their words.

    Args:
        architecture: its name.
        fields: of config.json.
        defaults: more of them, which the caller of `save_hugging_face` may say better.
        required: those that the caller must say, as the model does not know them.
        generation: the caller's fields -> those of generation_config.json; None for no such file.
        left_out: what the names of tensors begin with that the architecture has not.
    """

    architecture: str
    fields: dict
    defaults: dict = dataclasses.field(default_factory=dict)
    required: tuple = ()
    generation: Callable | None = None
    left_out: tuple = ()


@dataclasses.dataclass(frozen=True)
class Family:
    """A family: config and tensors to a model of ours, and back.

    Args:
        model_type: in config.json.
        architectures: its names in config.json; the first one is the model without heads.
        base: what stands before a tensor's name, but not in a file of the first architecture.
        outside: what the names begin with that never have `base` before them.
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

    def common_name(self, name):
        """A tensor's name as name maps have it: without `base`, and as newer files say it."""
        name = name.removeprefix(self.base)
        for old, new in self.renamed:
            name = re.sub(old, new, name)
        return name

    def full_name(self, name, architecture):
        """A tensor's name in a file of this architecture."""
        bare = architecture == self.architectures[0]
        return name if bare or name.startswith(self.outside) else self.base + name
