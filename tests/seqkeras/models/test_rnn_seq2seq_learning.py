"""The classical encoder-decoders learn a batch by heart; those that attend learn a rule."""

import keras
import numpy as np
import pytest

from seqkeras.decoding import greedy
from seqkeras.models import RNNSeq2Seq
from seqkeras.schedules import LinearDecay
from tests.arrays import needs_tensorflow, numbers

pytestmark = needs_tensorflow  # minutes elsewhere, and the gradients are the same there
BOS, EOS, FIRST, VOCAB_SIZE = 2, 3, 4, 11
LENGTH = 6
LUONG = {"attention_place": "after", "wiring": "initial_state"}


def copied(source):
    return source


def turned(source):
    return source[::-1]


def examples(count, order, seed):
    """Sources of 2 to 6 random tokens, and targets that are the same in the order wanted."""
    random = np.random.default_rng(seed)
    lengths = random.integers(2, LENGTH + 1, count)
    sources, targets = np.zeros((count, LENGTH), int), np.zeros((count, LENGTH + 1), int)
    for row, length in enumerate(lengths):
        sources[row, :length] = random.integers(FIRST, VOCAB_SIZE, length)
        targets[row, : length + 1] = [*order(sources[row, :length]), EOS]
    shifted = np.concatenate([np.full((count, 1), BOS), targets[:, :-1]], axis=1)
    return {"token_ids": sources, "lengths": lengths, "target_ids": shifted}, targets


def train(arguments, inputs, targets, batch_size):
    keras.utils.set_random_seed(0)
    model = RNNSeq2Seq(VOCAB_SIZE, VOCAB_SIZE, 16, 32, 32, **arguments)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    optimizer = keras.optimizers.Adam(0.01, global_clipnorm=1.0)
    model.build()
    optimizer.build(model.trainable_variables)  # or Keras traces the training step twice
    model.compile(optimizer, loss, jit_compile=False)
    model.fit(inputs, targets, batch_size=batch_size, shuffle=False, verbose=0)
    return model


def share_right(model, inputs, targets):
    """How many of the rows greedy decoding gives whole."""
    state = model.encode(inputs["token_ids"], inputs["lengths"])
    found, *_ = greedy(model.step, state, start_id=BOS, end_id=EOS, max_length=LENGTH + 1)
    return np.mean(np.all(numbers(found) == targets, axis=1))


@pytest.mark.parametrize(
    "order, arguments",
    [
        (copied, LUONG | {"attention": "general", "cell": "lstm"}),
        (turned, {"teacher_forcing": LinearDecay(1.0, 0.002)}),
        (np.sort, {"cell": "lstm"}),
    ],
    ids=["copy", "reverse", "sort"],
)
def test_attention_learns_a_rule_that_holds_for_unseen_sequences(order, arguments):
    model = train(arguments, *examples(64 * 200, order, seed=0), batch_size=64)
    assert share_right(model, *examples(500, order, seed=1)) > 0.95


@pytest.mark.parametrize(
    "arguments",
    [
        {"wiring": "initial_state", "cell": "lstm", "initial_cell": "bridge"},
        {"wiring": "context", "context": "combination"},
        {"wiring": "context_and_output", "context": "map", "cell": "simple_rnn"},
    ],
    ids=lambda arguments: arguments["wiring"],
)
def test_a_decoder_without_attention_learns_a_batch_by_heart(arguments):
    inputs, targets = examples(7, turned, seed=0)
    often = {name: np.tile(each, (150, *[1] * (each.ndim - 1))) for name, each in inputs.items()}
    model = train(arguments | {"attention": None}, often, np.tile(targets, (150, 1)), batch_size=7)
    assert float(model.loss(targets, model(inputs))) < 0.05
    assert share_right(model, inputs, targets) == 1
