"""The base class of models on top of an encoder."""

from keras import ops

from seqkeras.masks import padding_mask
from seqkeras.models.token_model import TokenModel

ENCODER_INPUTS = ("token_ids", "lengths", "segment_ids")


class EncoderModel(TokenModel):
    """Base of the models on top of an `encoder` such as `Bert`.

    The ids are the encoder's. Its pooler, unless the model `pools`, is no weight that is trained:
    no gradient reaches it.
    """

    pools = False

    @property
    def id_limits(self):
        return getattr(self.encoder, "id_limits", {})

    @property
    def positions(self):
        return getattr(self.encoder, "positions", None)

    def attention_weights(self, inputs):
        """Return the attention weights of the encoder; each of the choices (B, C, T) is a row."""
        if not hasattr(self.encoder, "attention_weights"):
            return super().attention_weights(inputs)
        return self.encoder.attention_weights(encoder_rows(inputs))

    # The pooler may belong to another model too, where it learns: its own flag stays as it is.
    @property
    def trainable_weights(self):
        return self._without_pooler(super().trainable_weights)

    @property
    def trainable_variables(self):
        return self._without_pooler(super().trainable_variables)

    @property
    def non_trainable_weights(self):
        return _without(self.weights, self.trainable_weights)

    @property
    def non_trainable_variables(self):
        return _without(self.variables, self.trainable_variables)

    def _without_pooler(self, variables):
        pooler = None if self.pools else self.encoder.pooler
        return variables if pooler is None else _without(variables, pooler.variables)


def encoder_rows(inputs):
    """Return what an encoder takes of a dictionary of inputs; of choices (B, C, T) each becomes a
    row."""
    rows = {name: inputs[name] for name in ENCODER_INPUTS if inputs.get(name) is not None}
    if len(inputs["token_ids"].shape) == 3:
        rows = {
            name: ops.reshape(tensor, (-1, *ops.shape(tensor)[2:])) for name, tensor in rows.items()
        }
    return rows


def mean_of_positions(hidden, lengths=None):
    """Return (B, D) mean of the hidden states (B, T, D) over the real positions; 0 of an empty
    text."""
    if lengths is None:
        return ops.mean(hidden, axis=1)
    mask = padding_mask(lengths, ops.shape(hidden)[1])[..., None]
    total = ops.sum(ops.where(mask, hidden, 0), axis=1)  # (B, D)
    return total / ops.maximum(ops.cast(lengths, hidden.dtype)[:, None], 1)


def _without(variables, others):
    """Return the variables that are not among the others."""
    left_out = {id(variable) for variable in others}
    return [variable for variable in variables if id(variable) not in left_out]
