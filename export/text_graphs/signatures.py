"""Calls of the model on token ids, and what signatures on strings share."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from seqkeras.export.signatures import Signature, to_trace
from seqkeras.export.text_graphs.row_errors import ERROR, with_errors
from seqkeras.serving.manifest import TensorSpec
from seqkeras.tensors import Tensor

DEFAULT, PAIR, TRUNCATE = "serving_default", "pair", "truncate"
SCORE = TensorSpec("score", "float32", ("batch",))


def by_strings(
    function: Callable[..., Any],
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    name: str = DEFAULT,
) -> dict[str, Signature]:
    """Return the signature of that name, and the one that cuts texts over the limit, "truncate" or
    "truncate_pair" beside "pair"; both share a graph, and give the errors of rows too.

    `function` takes the inputs and `truncate`, a scalar boolean; it returns the outputs by name,
    and the (B,) errors of rows.
    """

    def answer(truncate, **texts):
        return with_errors(*function(**texts, truncate=truncate))

    shared = to_trace(answer, [TensorSpec(TRUNCATE, "bool", ()), *inputs])

    def of(truncate):
        def asked(**texts):
            return shared(tf.constant(truncate), *(texts[spec.name] for spec in inputs))

        return Signature(asked, inputs, [*outputs, strings(ERROR)])

    cuts = TRUNCATE if name == DEFAULT else f"{TRUNCATE}_{name}"
    return {name: of(False), cuts: of(True)}


def outputs_of(signature: Signature, encoded: Any, **others: Tensor) -> dict[str, Tensor]:
    """Return outputs of a signature on token ids, by name; `others`: inputs that are no texts."""
    names = [spec.name for spec in signature.inputs if spec.name not in others]
    return signature.function(**encoded.inputs(names), **others)


def output_name(signature: Signature, settings: Mapping[str, Any]) -> str:
    """Return the name of the output that the settings select."""
    return settings.get("output") or signature.outputs[0].name


def strings(name: str) -> TensorSpec:
    """Return the spec of one string for each row."""
    return TensorSpec(name, "string", ("batch",))
