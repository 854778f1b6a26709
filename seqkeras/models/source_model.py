"""The base class of encoder-decoders, with a source of token ids or of frames."""

import numpy as np
from keras import ops

from seqkeras.models.inputs import SOURCE, SOURCE_OF_FRAMES, require_inputs
from seqkeras.models.token_model import TokenModel
from seqkeras.values import scaling


class SourceModel(TokenModel):
    """Base of the encoder-decoders.

    A subclass has `sizes`, of which "target_vocab_size" and what `source_size` gives are some, and
    `source_features`: of a source that is frames, how many numbers each has; else None. With
    `source_scaling`, the mean and the deviation of each number, the encoder reads
    (x - mean) / deviation.
    """

    @property
    def source_names(self):
        """The inputs that the encoder reads."""
        return SOURCE if self.source_features is None else SOURCE_OF_FRAMES

    @property
    def input_names(self):
        return ([*self.source_names, "target_ids"],)

    @property
    def target_vocab_size(self):
        return self.sizes["target_vocab_size"]

    @property
    def id_limits(self):
        names = {"token_ids": "source_vocab_size", "target_ids": "target_vocab_size"}
        return {
            name: (size, self.sizes[size]) for name, size in names.items() if size in self.sizes
        }

    def require_source(self, source, lengths):
        """Raise a ValueError unless they are what the encoder reads."""
        inputs = dict(zip(self.source_names, (source, lengths), strict=True))
        require_inputs(self, inputs, self.source_names)
        self.check_ids(inputs)

    def embed_source(self, source, mask):
        """Return the vectors of a source's steps: embeddings of tokens, or frames, mapped if there
        is a `source_embedding`. Masked frames become zeros, because NaNs would reach the
        gradient."""
        if self.source_scaling is not None:
            source = scaling(*self.source_scaling)(ops.cast(source, "float32"))
        if self.source_features is not None:
            source = ops.where(mask[..., None], ops.cast(source, self.compute_dtype), 0)
        return source if self.source_embedding is None else self.source_embedding(source)


def checked_scaling(model, given, features):
    """Return the mean and the deviation of each number of frames as lists; None for None.

    Raises:
        ValueError: unless they are as many numbers as a frame has, and deviations are over 0.
    """
    if given is None:
        return None
    mean, deviation = (np.array(numbers, "float64") for numbers in given)
    if {mean.shape, deviation.shape} != {(features,)} or not (deviation > 0).all():
        raise ValueError(
            f"{type(model).__name__}: source_scaling must be two lists of source_features numbers, "
            f"means and deviations over 0; received {given!r}, with source_features {features}."
        )
    return [mean.tolist(), deviation.tolist()]


def source_size(model, vocab_size, features, name="source_vocab_size"):
    """Return the size of the encoder's inputs, as {name of the argument: size}.

    Args:
        model: the model that errors name.
        vocab_size: how many ids a source of tokens has, or None.
        features: how many numbers each frame of another source has, or None.
        name: name of the argument that gives vocab_size.

    Raises:
        ValueError: unless one of them is given.
    """
    if (vocab_size is None) == (features is None):
        raise ValueError(
            f"{type(model).__name__}: {name}, of tokens, or source_features, of frames, must be "
            f"given, and the other one left None; received {vocab_size!r} and {features!r}."
        )
    if features is None:
        return {"source_vocab_size": vocab_size}
    return {"source_features": features}
