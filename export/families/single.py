"""Models that answer in a single pass: from all inputs to all outputs, without a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqkeras import models
from seqkeras.export.families.calling import by_keyword, called
from seqkeras.export.families.inputs import candidates, first_that_works, require_specs
from seqkeras.export.families.shapes import infer_outputs
from seqkeras.export.feeds import SEGMENTS, TOKENS
from seqkeras.export.signatures import Signature
from seqkeras.models.encoder_model import EncoderModel
from seqkeras.runs.reference import OwnCall
from seqkeras.serving.manifest import TensorSpec

if TYPE_CHECKING:
    import keras

MASKS = {"masked_positions": ("int64", ("batch", "masks"))}


def _encoder(model):
    return TOKENS | (SEGMENTS if "segment_ids" in model.id_limits else {})


def _with_heads(model):
    inputs = _encoder(model.encoder)
    if _has(model, models.MultipleChoiceHead):
        inputs = {
            name: (dtype, (shape[0], "choices", *shape[1:]))
            for name, (dtype, shape) in inputs.items()
        }
    # A token has as many logits as the vocabulary has tokens: only those of masked positions.
    return inputs | (MASKS if _has(model, models.MaskedLMHead) else {})


def _has(model, kind):
    return any(isinstance(head, kind) for head in model.heads.values())


def _bidaf(model):
    inputs = {}
    for part in ("context", "query"):
        words = ("batch", f"{part}_length")
        inputs |= {
            f"{part}_ids": ("int64", words),
            f"{part}_characters": ("int64", (*words, f"{part}_word_length")),
            f"{part}_lengths": ("int64", ("batch",)),
        }
    return inputs


def _bilm(model):
    characters = ("batch", "length", "word_length")
    return {"character_ids": ("int64", characters), "lengths": TOKENS["lengths"]}


def _forecaster(model):
    return {
        "window": ("float32", ("batch", "length", model.num_features)),
        "lengths": TOKENS["lengths"],
        **(
            {"known": ("float32", ("batch", model.sizes["horizon"], model.num_known))}
            if model.num_known
            else {}
        ),
    }


def _tree_classifier(model):
    return {
        "token_ids": ("int64", ("batch", "nodes")),
        "lengths": ("int64", ("batch",)),
        "children": ("int64", ("batch", "nodes", model.sizes["num_children"])),
        "levels": ("int64", ("batch", "height", "width")),
    }


# The inputs of each model of seqkeras: name -> (dtype, symbolic shape).
INPUTS = {
    models.Bert: _encoder,
    models.WithHeads: _with_heads,
    models.SentenceEncoder: lambda model: _encoder(model.encoder),
    models.BiDAF: _bidaf,
    models.BiLM: _bilm,
    models.Forecaster: _forecaster,
    models.TreeClassifier: _tree_classifier,
}


def graphs(
    model: keras.Model,
    inputs: Sequence[TensorSpec] | None = None,
    feeds: Mapping[str, Any] | None = None,
    vectors: bool = False,
    binding: Mapping[str, Any] | None = None,
    by_numbers: bool = False,
) -> tuple[dict[str, Signature], OwnCall | None]:
    """Return the graphs of a model by role, and the `OwnCall` that has the outputs of "model".

    A `BiLM` has also "representations", which are its "model" for a pipeline of vectors. No call
    has those outputs.
    """
    declared = _declared(model)
    if declared and binding:
        raise ValueError(
            f"binding: a {type(model).__name__} is called with {', '.join(_names(declared))}; "
            "leave binding out."
        )
    if inputs is not None:
        return _graphs(model, require_specs(inputs), binding)
    if declared:
        return _graphs(model, declared, binding, vectors)
    return first_that_works(
        candidates(model, feeds or {}, binding, by_numbers),
        lambda inputs_and_binding: _graphs(model, *inputs_and_binding),
    )


def rows_of(model: keras.Model, inputs: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
    """Return the inputs over which a model attends; every choice is a row."""
    if not isinstance(model, EncoderModel):
        return inputs
    return [TensorSpec(name, *spec) for name, spec in _encoder(model.encoder).items()]


def _names(specs):
    return [spec.name for spec in specs]


def _graphs(model, inputs, binding, vectors=False):
    if not isinstance(model, tuple(INPUTS)):
        function, outputs, own_call = called(model, inputs, binding)
        if twice := {spec.name for spec in inputs} & {spec.name for spec in outputs}:
            raise ValueError(
                f"inputs and outputs must have different names; {', '.join(sorted(twice))} "
                "is the name of both. The only output of a model that names none is output."
            )
        return {"model": Signature(function, inputs, outputs)}, own_call
    own_call = OwnCall({name: (name,) for name in _names(inputs)})
    functions = {"model": by_keyword(model)}
    if isinstance(model, models.BiLM):
        functions["representations"] = lambda **tensors: {"layers": model.represent(tensors)}
        if vectors:
            functions, own_call = {"model": functions["representations"]}, None
    signatures = {
        role: Signature(function, inputs, infer_outputs(function, inputs, of_ones=True))
        for role, function in functions.items()
    }
    return signatures, own_call


def _declared(model):
    """Return the `TensorSpec`s of one of our models, or None."""
    for kind, declared in INPUTS.items():
        if isinstance(model, kind):
            return [TensorSpec(name, *spec) for name, spec in declared(model).items()]
    return None
