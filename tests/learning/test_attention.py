"""What restricted attention promises: a window of r sees r far, and a stack adds up."""

import keras
import numpy as np
import pytest

from seqkeras.attention import RestrictedSelfAttention
from tests.learning import tasks


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
