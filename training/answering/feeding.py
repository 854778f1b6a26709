"""What a model is fed, and which of its outputs are the logits, while it trains."""

import itertools

from seqkeras.models.token_model import TokenModel


def fed(model, given):
    """Return the inputs that a model reads.

    Args:
        model: a functional model, or one of ours; an encoder may have no segments.
        given: name -> tensor: token_ids, lengths, segment_ids and others.
    """
    if isinstance(model, TokenModel):
        has_segments = "segment_ids" in model.id_limits
        names = [
            name
            for name in itertools.chain(*model.input_names)
            if name in given and (name != "segment_ids" or has_segments)
        ]
    else:
        names = [tensor.name for tensor in model.inputs]
    return {name: given[name] for name in names}


def only_output(model, inputs):
    """Return what a model with one output returns, without its name."""
    outputs = model(inputs, training=False)
    if isinstance(outputs, dict):
        [outputs] = outputs.values()
    return outputs
