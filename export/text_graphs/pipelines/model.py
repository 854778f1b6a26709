"""What the signatures on strings share: the model on token ids below them, and their own specs."""

from serving.manifest import TensorSpec


def outputs_of(signature, read):
    """What a signature on token ids gives, of those inputs that it takes, by name."""
    return signature.function(**read.inputs(spec.name for spec in signature.inputs))


def output_name(signature, settings):
    """The name of the output that is asked for."""
    return settings.get("output") or signature.outputs[0].name


def strings(name):
    """The spec of a string for each row."""
    return TensorSpec(name, "string", ("batch",))


def score():
    """The spec of a score for each row."""
    return TensorSpec("score", "float32", ("batch",))
