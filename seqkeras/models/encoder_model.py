"""What models share that stand on an encoder."""

from seqkeras.models.token_model import TokenModel


class EncoderModel(TokenModel):
    """Base of the models that stand on an `encoder` as `Bert`.

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


def _without(variables, others):
    """The variables that are none of the others."""
    left_out = {id(each) for each in others}
    return [each for each in variables if id(each) not in left_out]
