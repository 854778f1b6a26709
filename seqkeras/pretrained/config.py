"""A config.json, checked field by field; one error lists all problems."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Any

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
THEIR_ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu"}


class Config:
    """Fields of a config, with the defaults of its architecture for missing ones.

    Args:
        values: a dictionary, as config.json holds it.
        source: source of the config, for errors.
    """

    def __init__(self, values: dict, source: object):
        self.values = values
        self.source = source
        self.problems = []
        self.num_tensors = None  # of the weights beside it, once they are known

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field; null means the default."""
        value = self.values.get(name)
        return default if value is None else value

    def size(self, name: str, default: int, least: int = 1) -> int:
        """Return a whole number."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.refuse(f"{name} must be a whole number from {least}; received {value!r}")
            return max(least, 1)
        return value

    def layers(self, name: str, default: int) -> int:
        """Return a number of layers, each of which has tensors."""
        value = self.size(name, default)
        if self.num_tensors is not None and value > self.num_tensors:
            self.refuse(
                f"{name} must be at most the number of tensors, {self.num_tensors}; "
                f"received {value}"
            )
            return 1
        return value

    def rate(self, name: str, default: float) -> float:
        """Return a number from 0 on and under 1, as a dropout or an epsilon."""
        value = self.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            self.refuse(f"{name} must be a number from 0 to under 1; received {value!r}")
            return 0.0
        return float(value)

    def activation(self, name: str, default: str) -> str | None:
        """Return our name of an activation."""
        return ACTIVATIONS.get(self.choice(name, default, sorted(ACTIVATIONS)))

    def choice(self, name: str, default: Any, known: Collection[Any]) -> Any:
        """Return a field that is one of some names, else None."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in known:
            self.refuse(f"{name} must be one of {list(known)}; received {value!r}")
            return None
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return a field that is True or False."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            self.refuse(f"{name} must be true or false; received {value!r}")
        return bool(value)

    def heads(self, dim_name: str, dim: int, heads_name: str, num_heads: int) -> None:
        """Require a number of heads that divides the width."""
        if dim % num_heads:
            self.refuse(f"{heads_name} must divide {dim_name}; received {num_heads} and {dim}")

    def fixed(self, name: str, value: Any, like: str | None = None) -> None:
        """Require one value of a field, the value of another field if `like` names one."""
        if self.get(name, value) != value:
            reason = f", as {like} is" if like else ""
            self.refuse(f"{name} must be {value!r}{reason}; received {self.values[name]!r}")

    def labels(self) -> int:
        """Return how many labels a head has."""
        named = self.get("id2label", {})
        if not isinstance(named, dict):
            self.refuse(f"id2label must be an object, a name for each number; received {named!r}")
            return 1
        return len(named) or self.size("num_labels", 2)

    def refuse(self, problem: str) -> None:
        """Keep a problem for `check`."""
        self.problems.append(problem)

    def check(self) -> None:
        """Raise a ValueError of all the problems, if there are any."""
        if self.problems:
            number = len(self.problems)
            raise ValueError(
                f"{self.source}: {number} {'field does' if number == 1 else 'fields do'} not make "
                "a model of ours:\n  " + "\n  ".join(self.problems)
            )


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of config.json that is an argument of a model.

    Args:
        theirs, ours: the name of the field, and of the argument.
        kind: the method of `Config` that checks it.
        default: the value of a missing field.
    """

    theirs: str
    ours: str
    kind: str
    default: object


def read_fields(config: Config, fields: Iterable["Field"]) -> dict[str, Any]:
    """Return arguments of the model, from the fields."""
    return {
        field.ours: getattr(config, field.kind)(field.theirs, field.default) for field in fields
    }


def write_fields(arguments: Mapping[str, Any], fields: Iterable["Field"]) -> dict[str, Any]:
    """Return fields of config.json, from the arguments."""
    written = {field.theirs: arguments[field.ours] for field in fields}
    for field in fields:
        if field.kind == "activation":
            written[field.theirs] = THEIR_ACTIVATIONS[arguments[field.ours]]
    return written
