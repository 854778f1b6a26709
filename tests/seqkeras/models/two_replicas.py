"""Models of token ids, trained alone and by two replicas on logical CPUs: run as a module.

It prints a line of JSON: for each model the largest difference of a weight after one step.
"""

import json

import keras
import numpy as np
import tensorflow as tf

from seqkeras.embeddings import TokenEmbedding
from seqkeras.models import (
    GPT,
    Bert,
    RNNLanguageModel,
    RNNSeq2Seq,
    TaggingHead,
    Transformer,
    WithHeads,
)

ROWS, LENGTH, VOCAB = 4, 5, 11
SIZES = {"hidden_dim": 6, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 7}
RANDOM = np.random.default_rng(0)
IDS = RANDOM.integers(3, VOCAB, (ROWS, LENGTH))
TARGETS = RANDOM.integers(3, VOCAB, (ROWS, LENGTH))
TEXT = {"token_ids": IDS, "lengths": np.full(ROWS, LENGTH)}
PAIR = TEXT | {"target_ids": RANDOM.integers(3, VOCAB, (ROWS, LENGTH))}


class Plain(keras.Model):
    """Of a user, with a layer of ours."""

    def __init__(self):
        super().__init__()
        self.embedding = TokenEmbedding(VOCAB, 7)
        self.out = keras.layers.Dense(VOCAB)

    def call(self, inputs):
        return self.out(self.embedding(inputs["token_ids"]))


MODELS = {
    "GPT": (lambda: GPT(VOCAB, **SIZES, max_length=LENGTH), TEXT),
    "RNNLanguageModel": (lambda: RNNLanguageModel(VOCAB, 5, 7), TEXT),
    "Transformer": (lambda: Transformer(VOCAB, VOCAB, **SIZES), PAIR),
    "RNNSeq2Seq": (lambda: RNNSeq2Seq.bahdanau(VOCAB, VOCAB, 5, 7, 6), PAIR),
    "Bert": (lambda: WithHeads(_bert(), {"tags": TaggingHead(VOCAB)}), TEXT),
    "a model of a user's": (Plain, {"token_ids": IDS}),
}


def _bert():
    return Bert(VOCAB, **SIZES, max_length=LENGTH)


def _trained(make, inputs, strategy):
    """The weights after a step of gradient descent."""
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = make()
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras.optimizers.SGD(0.5), loss, jit_compile=False)
    targets = {"tags": TARGETS} if isinstance(model, WithHeads) else TARGETS
    model.fit(inputs, targets, batch_size=ROWS, epochs=1, shuffle=False, verbose=0)
    return model.get_weights()


def main():
    [cpu] = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, logical)
    two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    differences = {}
    for name, (make, inputs) in MODELS.items():
        pairs = zip(
            _trained(make, inputs, tf.distribute.get_strategy()),
            _trained(make, inputs, two),
            strict=True,
        )
        differences[name] = max(float(np.abs(one - other).max()) for one, other in pairs)
    print(json.dumps(differences))


if __name__ == "__main__":
    main()
