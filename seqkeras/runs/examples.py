"""The real inputs of a run with their targets, as JSON content beside arrays."""

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

VALIDATION = "validation.json"
"""Real inputs with their targets, on which export compares the models."""
ARRAYS = "validation.npz"
"""The inputs of `VALIDATION` that are arrays."""
ARRAY = "array"  # the only key of a dictionary that refers to an array of `ARRAYS`
EXAMPLES = 'a list of {"input": ...} or {"text": ..., "target": ...}, one at least'
"""What validation examples must be, in words for errors."""


def are_examples(validation: object) -> bool:
    """Return whether a value has the form of a run's validation examples, `EXAMPLES`.

    Args:
        validation: any value.

    Returns:
        True for a list of dictionaries, one at least, each with an "input", or with a "text" and a
        "target".

    Example:
        >>> from seqkeras.runs import are_examples
        >>> are_examples([{"text": "Samstag, 3. Mai", "target": "05-03"}, {"input": "Sonntag"}])
        True
        >>> are_examples([]), are_examples(["Samstag"])
        (False, False)
    """
    return isinstance(validation, list) and bool(validation) and all(map(_is_example, validation))


def with_arrays(examples: list[dict[str, Any]], folder: Path | str) -> list[dict[str, Any]]:
    """Return the examples of a run folder's `VALIDATION`, with the inputs from its `ARRAYS`.

    Args:
        examples: the content of `VALIDATION`, where {"array": NAME} stands for an array.
        folder: the run folder.

    Returns:
        The examples, with arrays in their places.

    Raises:
        OSError: if `ARRAYS` is needed and missing.
        KeyError, ValueError: if it lacks an array, or is damaged.

    Example:
        >>> import numpy as np
        >>> from seqkeras.runs import with_arrays
        >>> np.savez("validation.npz", array_0=np.zeros((5, 3)))
        >>> with_arrays([{"input": {"array": "array_0"}}], ".")[0]["input"].shape
        (5, 3)
    """
    with contextlib.ExitStack() as stack:
        arrays = None

        def put(value):
            nonlocal arrays
            if not isinstance(value, dict):
                return value
            if set(value) != {ARRAY}:
                return {name: put(part) for name, part in value.items()}
            if arrays is None:
                arrays = stack.enter_context(np.load(Path(folder) / ARRAYS, allow_pickle=False))
            return arrays[value[ARRAY]]

        return [put(example) for example in examples]


def without_arrays(validation: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Return the examples, each array of numbers in an input moved to `arrays` and replaced by its
    name there."""

    def taken(value):
        if isinstance(value, dict):
            return {name: taken(part) for name, part in value.items()}
        if not isinstance(value, np.ndarray) or not value.ndim or value.dtype.kind not in "biuf":
            return value
        arrays[f"array_{len(arrays)}"] = value
        return {ARRAY: f"array_{len(arrays) - 1}"}

    if not isinstance(validation, list):
        return validation
    return [
        {**example, "input": taken(example["input"])}
        if isinstance(example, dict) and "input" in example
        else example
        for example in validation
    ]


def _is_example(value):
    if not isinstance(value, dict):
        return False
    strings = [isinstance(value.get(key), str) and value[key] for key in ("text", "target")]
    return all(strings) or "input" in value
