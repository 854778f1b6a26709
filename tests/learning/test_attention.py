"""What attention promises: to learn; restricted, a window of r sees r far, and a stack adds up."""

import keras
import numpy as np
import pytest

from seqkeras.attention import (
    AdditiveScore,
    Attention,
    BiAttention,
    GeneralScore,
    KeyValueAttention,
    KeyValuePredictAttention,
    LocalAttention,
    MultiHeadAttention,
    RestrictedSelfAttention,
)
from seqkeras.losses import span_loss
from seqkeras.models import BiDAF
from tests.arrays import floats, right_padded
from tests.catalogue.embeddings import characters
from tests.learning import tasks
from tests.seqkeras.models.support import losses_by_heart


@pytest.mark.parametrize("num_layers, sees", [(1, False), (2, True)])
def test_two_windows_of_three_see_six_positions_and_one_does_not(num_layers, sees):
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    token_ids, near = tasks.near(100 * 32, 37, 6, random)
    inputs = keras.Input((37,), dtype="int32")
    hidden = keras.layers.Embedding(19, 16)(inputs)
    for _ in range(num_layers):
        context = RestrictedSelfAttention(num_heads=2, head_dim=8, window=3)(hidden)
        hidden = keras.layers.Dense(16, activation="relu")(hidden + context)
    model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01, clipnorm=1.0), loss, jit_compile=False)
    model.fit(token_ids, near, batch_size=32, verbose=0)
    token_ids, near = tasks.near(200, 37, 6, random)
    right = np.mean(np.argmax(model.predict(token_ids, verbose=0), axis=-1) == near)
    assert right > 0.97 if sees else right < 0.9


def to_itself(make):
    """A layer of query, key and value over one sequence: its context, or all it returns."""

    def outputs(sequence, mask):
        result = make()(sequence, sequence, sequence, attention_mask=mask[:, None])
        return result[0] if isinstance(result, (list, tuple)) else result

    return outputs


# (sequence (B, 13, 24), mask) -> (B, 13, ·). HardAttention learns by REINFORCE, in its own tests.
OVERFITTERS = {
    "Attention": to_itself(lambda: Attention(AdditiveScore(16))),
    "LocalAttention(monotonic)": to_itself(lambda: LocalAttention(GeneralScore(), 2)),
    "LocalAttention(predictive)": to_itself(
        lambda: LocalAttention(GeneralScore(), 2, "predictive")
    ),
    "MultiHeadAttention": to_itself(lambda: MultiHeadAttention(3, 8)),
    "RestrictedSelfAttention": lambda x, mask: RestrictedSelfAttention(3, 8, 2)(x, mask=mask),
    "KeyValueAttention": lambda x, mask: KeyValueAttention(3)(x, mask=mask)[0],
    "KeyValuePredictAttention": lambda x, mask: KeyValuePredictAttention(3)(x, mask=mask)[0],
    "BiAttention": lambda x, mask: BiAttention()(
        x, x[:, :5], context_mask=mask, query_mask=mask[:, :5]
    ),
}


@pytest.mark.parametrize("name", OVERFITTERS)
def test_a_layer_overfits_a_batch(name):
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    inputs, labels = floats(32, 13, 7), random.integers(5, size=32)
    mask = right_padded(random.integers(3, 14, size=32), 13)
    sequences, real = keras.Input((13, 7)), keras.Input((13,), dtype="bool")
    outputs = OVERFITTERS[name](keras.layers.Dense(24, "tanh")(sequences), real)
    pooled = keras.layers.GlobalAveragePooling1D()(outputs)
    model = keras.Model([sequences, real], keras.layers.Dense(5)(pooled))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.02), loss, jit_compile=False)
    assert model.evaluate([inputs, mask], labels, verbose=0) > 1
    again = [np.concatenate([each] * 200) for each in (inputs, mask, labels)]
    model.fit(again[:2], again[2], batch_size=32, shuffle=False, verbose=0)
    assert model.evaluate([inputs, mask], labels, verbose=0) < 0.01


def test_bidaf_overfits_a_batch():
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    inputs = {
        "context_ids": random.integers(1, 19, (2, 7)),
        "context_characters": characters(17, 7),
        "context_lengths": np.array([7, 5]),
        "query_ids": random.integers(1, 19, (2, 3)),
        "query_characters": characters(17, 3, seed=1),
        "query_lengths": np.array([2, 3]),
    }
    targets = {"start_logits": np.array([4, 1]), "end_logits": np.array([6, 3])}
    sizes = {"vocab_size": 19, "embedding_dim": 7, "character_vocab_size": 17, "character_dim": 5}
    model = BiDAF(**sizes, character_filters=13, units=11, num_highways=1, num_modelling_layers=1)
    losses = dict.fromkeys(targets, span_loss)
    first, last = losses_by_heart(model, inputs, targets, losses, steps=60, learning_rate=0.03)
    assert first > 3 and last < 0.01
