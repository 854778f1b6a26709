"""Calls of the model on token ids, and specs that signatures on strings share."""

from serving.manifest import TensorSpec


def outputs_of(signature, encoded):
    """The outputs of a signature on token ids, by name."""
    return signature.function(**encoded.inputs(spec.name for spec in signature.inputs))


def output_name(signature, settings):
    """The name of the output that the settings select."""
    return settings.get("output") or signature.outputs[0].name


def strings(name):
    """The spec of one string for each row."""
    return TensorSpec(name, "string", ("batch",))


def score():
    """The spec of one score for each row."""
    return TensorSpec("score", "float32", ("batch",))
